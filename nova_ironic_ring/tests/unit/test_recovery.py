# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Tests of what becomes of an instance that is taken over."""

import threading
from unittest import mock

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
from oslotest import base

from nova_ironic_ring import recovery


class RecoveryTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.useFixture(fixtures.MockPatchObject(recovery, '_POLL', 0))
        self.source = mock.Mock()
        self.compute = self.source.virtapi._compute
        self.compute.rt.compute_nodes = {'node': object()}
        self.states = ['active']
        self.source._validate_instance_and_node.side_effect = self._node
        self.saved: list[tuple] = []
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'save', autospec=True, side_effect=self._save))
        self.refreshed: dict[str, object] = {}
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'refresh', autospec=True,
            side_effect=self._refresh))
        self.fault = self.useFixture(fixtures.MockPatch(
            'nova.compute.utils.add_instance_fault_from_exc')).mock
        self.context = nova_context.get_admin_context()

    def _node(self, instance):
        return mock.Mock(provision_state=(
            self.states.pop(0) if len(self.states) > 1 else self.states[0]))

    def _refresh(self, instance):
        for name, value in self.refreshed.items():
            setattr(instance, name, value)

    def _save(self, instance, expected_task_state=None):
        self.saved.append((instance.vm_state, instance.task_state,
                           expected_task_state))

    def _recover(self, vm_state='active', task_state=None) -> objects.Instance:
        instance = objects.Instance(
            uuid='instance', vm_state=vm_state, task_state=task_state,
            host='me', system_metadata={})
        before = set(threading.enumerate())
        recovery.start(self.source, self.context, 'me', {'node': instance},
                       {'node': 'dead'})
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
        return instance

    def test_nothing_taken_over(self):
        with fixtures.MockPatch('threading.Thread') as thread:
            recovery.start(self.source, self.context, 'me', {}, {})
        thread.mock.assert_not_called()

    def test_nova_does_what_it_does_at_a_start(self):
        def recover(context, instance):
            instance.task_state = None
        self.compute._init_instance.side_effect = recover
        instance = self._recover('active', 'rebooting')
        self.compute._init_instance.assert_called_once_with(
            self.context, instance)
        self.assertEqual([], self.saved)

    def test_task_that_nova_does_not_know_what_to_do_with(self):
        self._recover('error', 'rebuilding')
        self.assertEqual([('error', None, ['rebuilding'])], self.saved)
        self.assertIn('Instance instance was rebuilding when its service '
                      'died: it is error now', self.log.output)

    def test_delete_that_fails_is_left_to_nova(self):
        self._recover('error', 'deleting')
        self.assertEqual([], self.saved)

    def test_another_has_it_by_now(self):
        self.refreshed['host'] = 'other'
        self._recover('building', 'spawning')
        self.compute._init_instance.assert_not_called()
        self.fault.assert_not_called()

    def test_it_was_built_after_all(self):
        self.refreshed.update(vm_state='active', task_state=None)
        self._recover('building', 'spawning')
        self.fault.assert_not_called()

    def test_build(self):
        instance = self._recover('building', 'spawning')
        self.assertIn('the nova-compute dead has died',
                      str(self.fault.call_args.args[2]))
        self.compute._init_instance.assert_called_once_with(
            self.context, instance)

    def test_build_that_was_being_deleted(self):
        instance = self._recover('building', 'deleting')
        self.fault.assert_not_called()
        # In which state Nova's own goes on with the delete.
        self.assertEqual('error', instance.vm_state)
        self.compute._init_instance.assert_called_once()

    def test_waits_for_the_resource_tracker(self):
        nodes = mock.MagicMock()
        nodes.__contains__.side_effect = [False, False, True]
        self.compute.rt.compute_nodes = nodes
        self._recover()
        self.assertEqual(3, nodes.__contains__.call_count)
        self.compute._init_instance.assert_called_once()

    def test_rescue(self):
        for task, states, outcome in (
                ('rescuing', ['rescuing', 'rescue wait', 'rescue'], 'rescued'),
                ('rescuing', ['active'], 'stopped'),
                ('rescuing', ['rescue failed'], 'error'),
                ('unrescuing', ['unrescuing', 'active'], 'active'),
                ('unrescuing', ['rescue'], 'rescued'),
                ('unrescuing', ['unrescue failed'], 'error')):
            self.states = states
            self.saved.clear()
            self._recover('rescued' if task == 'unrescuing' else 'stopped',
                          task)
            self.assertEqual([(outcome, None, [task])], self.saved)

    def test_rescue_that_does_not_end(self):
        self.useFixture(fixtures.MockPatchObject(recovery, '_PATIENCE', -1))
        self.states = ['rescuing']
        self._recover('active', 'rescuing')
        self.assertEqual([], self.saved)
        self.assertIn('Ironic is rescuing still', self.log.output)

    def test_one_that_fails_is_tried_again(self):
        self.compute._init_instance.side_effect = [ValueError('once'), None]
        self._recover()
        self.assertEqual(2, self.compute._init_instance.call_count)
        self.assertIn('Instance instance, which was taken over from dead, '
                      'cannot be brought to order (attempt 1 of 3)',
                      self.log.output)

    def test_one_that_is_deleted(self):
        self.compute._init_instance.side_effect = (
            exception.InstanceNotFound(instance_id='instance'))
        self._recover()
        self.assertEqual('', self.log.output)

    def test_many(self):
        instances = {f'node-{number}': objects.Instance(
            uuid=f'instance-{number}', vm_state='active', task_state=None,
            host='me', system_metadata={}) for number in range(50)}
        self.compute.rt.compute_nodes = instances
        before = set(threading.enumerate())
        recovery.start(self.source, self.context, 'me', instances,
                       dict.fromkeys(instances, 'dead'))
        threads = set(threading.enumerate()) - before
        self.assertLessEqual(len(threads), 8)
        for thread in threads:
            thread.join(10)
        self.assertEqual(50, self.compute._init_instance.call_count)
