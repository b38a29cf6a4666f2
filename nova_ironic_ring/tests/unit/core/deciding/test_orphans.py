# SPDX-License-Identifier: Apache-2.0

"""Which instances Nova is told of."""

from oslotest import base

from nova_ironic_ring.core.deciding import orphans
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.world import cloud as clouds

POOL = pools.name('a', pools.Kind('CUSTOM_BAREMETAL'))


class _Nova(clouds.Nova):
    """Counts what is asked for."""

    asked = 0

    def deleted_instances(self, uuids):
        uuids = list(uuids)
        self.asked += len(uuids)
        return super().deleted_instances(uuids)


class OrphansTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.nova = _Nova(self.cloud, 'me')

    def _believe(self, orphaned, own=None, turn=0):
        return orphans.believe(
            self.nova, orphans.Named(own or {}, orphaned), turn)

    def test_deleted_one_of_that_node_or_of_a_pool(self):
        self.cloud.deleted = {'i': model.Instance('a', 'node'),
                              'p': model.Instance('a', POOL)}
        found = self._believe({'i': 'node', 'p': 'other'})
        self.assertEqual(({'i', 'p'}, {}), (found.instances, found.strays))

    def test_deleted_one_of_somewhere_else(self):
        self.cloud.deleted = {
            'i': model.Instance('a', 'other'),
            'vm': model.Instance('kvm', 'kvm'),
            # It had been shelved, or was never built.
            'none': model.Instance(None, None),
            # A name that looks like that of a pool, of another host.
            'odd': model.Instance('kvm', POOL)}
        strays = dict.fromkeys(self.cloud.deleted, 'node')
        found = self._believe(strays)
        self.assertEqual((set(), strays), (found.instances, found.strays))
        # As well if it has come to a node of this service since the pass.
        found = self._believe({}, strays)
        self.assertEqual((set(), strays), (found.instances, found.strays))

    def test_what_nova_has_not_deleted(self):
        found = self._believe({'nowhere': 'node'}, {'mine': 'n', 'm': None})
        self.assertEqual({'nowhere', 'mine', 'm'}, found.instances)

    def test_very_many_are_looked_at_in_turn(self):
        many = {f'i{number:05}': f'n{number}' for number in range(2500)}
        self.cloud.deleted = {'i02499': model.Instance('a', 'n2499')}
        seen = set()
        for turn in range(3):
            found = self._believe(many, {'mine': 'n'}, turn)
            self.assertEqual(orphans.MOST + 1, len(found.instances))
            seen |= found.instances
        self.assertEqual(3 * (orphans.MOST + 1), self.nova.asked)
        self.assertEqual(many.keys() | {'mine'}, seen)

    def test_nothing(self):
        self.assertEqual(frozenset(), self._believe({}).instances)
        self.assertEqual(0, self.nova.asked)
