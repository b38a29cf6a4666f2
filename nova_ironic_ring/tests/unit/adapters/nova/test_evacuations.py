# SPDX-License-Identifier: Apache-2.0

from nova.objects import instance_action
from nova.objects import migration
from oslotest import base

from nova_ironic_ring.adapters.nova import evacuations
from nova_ironic_ring.tests.fixtures import nova_database


class EvacuationsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(nova_database.NovaDatabase())

    def _ask(self, *names: str) -> bool:
        """Have something asked of the instance, and say if it is evacuated."""
        for name in names:
            context = self.database.context()
            instance_action.InstanceAction.action_start(
                context, nova_database.INSTANCE, name)
        return evacuations.was_asked(
            self.database.context(), nova_database.INSTANCE)

    def test_what_was_asked_last(self):
        self.assertFalse(self._ask())
        self.assertFalse(self._ask('create'))
        self.assertTrue(self._ask('evacuate'))
        # What goes with it, and what comes of a takeover.
        self.assertTrue(self._ask('lock', 'unlock', 'ironic_ring_takeover'))
        # Nova records as these that Ironic has switched the machine.
        self.assertTrue(self._ask('stop', 'start'))
        self.assertFalse(self._ask('rebuild'))

    def _migrate(self, **fields: object) -> migration.Migration:
        found = migration.Migration(self.database.context(), **{
            'source_compute': 'a', 'status': 'accepted',
            'migration_type': 'evacuation',
            'instance_uuid': nova_database.INSTANCE, **fields})
        found.create()
        return found

    def test_only_those_under_way_have_failed(self):
        found = [self._migrate(), self._migrate(status='done'),
                 self._migrate(migration_type='migration')]
        evacuations.fail(self.database.context(), nova_database.INSTANCE)
        self.assertEqual(['failed', 'done', 'accepted'], [
            migration.Migration.get_by_id(
                self.database.context(), each.id).status for each in found])
