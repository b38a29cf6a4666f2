# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import fixtures
from nova.compute import power_state
from nova import exception
from nova import objects
from oslo_utils import timeutils
from oslotest import base

from nova_ironic_ring.compute.instances import evacuations
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import nova_database

INSTANCE, NODE = nova_database.INSTANCE, nova_database.NODE
OTHER = '00000000-0000-0000-0000-000000000002'


class SettleTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(nova_database.NovaDatabase())
        self.context = self.database.context()
        self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.now = self._read()
        self.source = mock.Mock()
        self.node = self.source._validate_instance_and_node
        self.node.return_value.provision_state = 'active'
        self.node.return_value.id = NODE
        self.source.get_info.return_value.state = power_state.RUNNING
        self.client = self.source.virtapi.reportclient
        self.client.get.side_effect = lambda *_, **__: fake_nova.answer(
            allocations={
                each: {'generation': 1, 'resources': {'CUSTOM_GOLD': 1}}
                for each in (NODE, OTHER)}, consumer_generation=3)

    def _read(self) -> objects.Instance:
        return objects.Instance.get_by_uuid(
            self.database.context(), INSTANCE, expected_attrs=[])

    def _become(self, asked: str = 'evacuate', **fields: object) -> None:
        """Have the instance be something, after something was asked for."""
        context = self.database.context()
        objects.InstanceAction.action_start(context, INSTANCE, asked)
        self.migration = objects.Migration(
            context, source_compute='a', status='accepted',
            migration_type='evacuation', instance_uuid=INSTANCE)
        self.migration.create()
        self.now.update(fields)
        self.now.save()

    def _settle(self) -> bool:
        return evacuations.settle(self.source, self.context, self.now)

    def assertBecame(self, vm_state: str, task: str | None, migration: str):
        found = self._read()
        self.assertEqual((vm_state, task), (found.vm_state, found.task_state))
        self.assertEqual(migration, objects.Migration.get_by_id(
            self.database.context(), self.migration.id).status)

    def test_task_ends(self):
        for state in 'active', 'stopped', 'error':
            self._become(vm_state=state, task_state='rebuilding')
            self.client.put_allocations.reset_mock()
            self.assertTrue(self._settle())
            self.assertBecame(state, None, 'failed')
            (call,) = self.client.put_allocations.call_args_list
            self.assertEqual([NODE], list(call.args[2]['allocations']))

    def test_rebuild_is_for_nova(self):
        self._become('rebuild', vm_state='active', task_state='rebuilding')
        self.assertFalse(self._settle())
        self.assertBecame('active', 'rebuilding', 'accepted')
        self.client.put_allocations.assert_not_called()

    def test_destination_has_refused_meanwhile(self):
        self._become(vm_state='active', task_state='rebuilding')
        now = self._read()
        now.task_state = None
        now.save()
        self.assertTrue(self._settle())
        self.assertIsNone(self.now.task_state)
        self.assertBecame('active', None, 'failed')

    def test_placement_that_does_not_answer(self):
        self._become(vm_state='active', task_state='rebuilding')
        self.client.put_allocations.return_value = False
        # It is tried again.
        self.assertRaises(exception.AllocationUpdateFailed, self._settle)
        self.assertBecame('active', 'rebuilding', 'accepted')
        # The start of a service goes on, and Nova has nothing to set to ERROR.
        evacuations.settle_at_start(self.source, self.context, self.now)
        self.assertBecame('active', None, 'failed')

    def test_error_is_what_the_machine_is(self):
        launched = timeutils.utcnow()
        self._become(vm_state='error', task_state=None, launched_at=launched)
        self.assertTrue(self._settle())
        self.assertBecame('active', None, 'accepted')
        self._become(vm_state='error')
        self.source.get_info.return_value.state = power_state.SHUTDOWN
        self.assertTrue(self._settle())
        self.assertBecame('stopped', None, 'accepted')
        for state, outcome in (
                ('rescue', 'rescued'), ('service failed', 'stopped'),
                # Meanwhile Ironic switches it.
                ('servicing', 'active'), ('service wait', 'active'),
                ('service hold', 'active')):
            self.node.return_value.provision_state = state
            self._become(vm_state='error')
            self.assertTrue(self._settle(), state)
            self.assertBecame(outcome, None, 'accepted')

    def test_error_that_stays(self):
        launched = timeutils.utcnow()
        # It has failed to be built.
        self._become(vm_state='error', task_state=None)
        self.assertFalse(self._settle())
        self.node.return_value.provision_state = 'deploy failed'
        self._become(vm_state='error', launched_at=launched)
        self.assertFalse(self._settle())
        self.node.side_effect = exception.InstanceNotFound(
            instance_id=INSTANCE)
        self.assertFalse(self._settle())
        self.node.side_effect = None
        self.node.return_value.provision_state = 'active'
        self._become('rebuild', vm_state='error')
        self.assertFalse(self._settle())
        self.assertBecame('error', None, 'accepted')

    def test_nothing_was_asked_for(self):
        self.now.vm_state = 'active'
        self.assertFalse(self._settle())
        self.node.assert_not_called()
