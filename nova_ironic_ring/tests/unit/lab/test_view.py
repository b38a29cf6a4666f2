# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

from oslotest import base

from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import model
from nova_ironic_ring.lab import view

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
LONG_AGO = NOW - datetime.timedelta(hours=1)
NODES = ['00000000-0000-0000-0000-%012d' % number for number in range(20)]


def _snapshot(owners: dict[str, str], busy: tuple[str, ...] = (),
              instances: dict[str, int] | None = None) -> view.Snapshot:
    return view.Snapshot(
        NOW,
        [model.Service('A', NOW), model.Service('b', NOW),
         model.Service('c', LONG_AGO),
         model.Service('d', NOW, disabled=True)],
        [view.Row(node, owner, node not in busy)
         for node, owner in owners.items()],
        instances or {})


def _desired() -> dict[str, str]:
    current = ring.Ring(['a', 'b'], 32)
    return {node: str(current.owner(node)) for node in NODES}


class SnapshotTestCase(base.BaseTestCase):

    def _table(self, *args, **kwargs) -> dict[str, tuple]:
        return {line.host: (line.state, line.owned, line.desired,
                            line.instances)
                for line in _snapshot(*args, **kwargs).table(8, 32)}

    def test_table(self):
        desired = _desired()
        share = list(desired.values()).count('a')
        self.assertEqual(
            {'A': ('member', share, share, 0),
             'b': ('member', 20 - share, 20 - share, 2),
             'c': ('absent', 0, 0, 1),
             'd': ('disabled', 0, 0, 0)},
            self._table(desired, instances={'b': 2, 'c': 1}))

    def test_table_with_a_host_that_is_gone(self):
        self.assertEqual(
            ('gone', 1, 0, 0), self._table({NODES[0]: 'lost'})['lost'])

    def test_table_without_members(self):
        self.assertEqual([], view.Snapshot(NOW, [], [], {}).table(8, 32))

    def test_settled(self):
        snapshot = _snapshot(_desired())
        self.assertTrue(snapshot.is_settled(8, 32, 20))
        self.assertFalse(snapshot.is_settled(8, 32, 21))

    def test_settled_node_by_node(self):
        owners = _desired()
        one = next(node for node in NODES if owners[node] == 'a')
        two = next(node for node in NODES if owners[node] == 'b')
        owners[one], owners[two] = 'b', 'a'
        self.assertFalse(_snapshot(owners).is_settled(8, 32, 20))
        # Nodes with instances stay where they are.
        self.assertTrue(
            _snapshot(owners, busy=(one, two)).is_settled(8, 32, 20))

    def _pools(self, *pools: view.Pool) -> view.Snapshot:
        return view.Snapshot(
            NOW, [model.Service('a', NOW), model.Service('b', NOW)], [],
            {}, pools, dict.fromkeys(NODES))

    def test_table_with_pools(self):
        share = list(_desired().values()).count('a')
        found = self._pools(view.Pool('a', 7, 0), view.Pool('a', 3, 1),
                            view.Pool('b', 10, 0)).table(8, 32)
        self.assertEqual([('a', 10, share), ('b', 10, 20 - share)], [
            (line.host, line.owned, line.desired) for line in found])

    def test_shares(self):
        self.assertEqual({'a': 2, 'b': 1}, _snapshot({
            NODES[0]: 'a', NODES[1]: 'b', NODES[2]: 'a'}).shares())
        # One without nodes has a pool of one that is reserved.
        self.assertEqual({'a': 8}, self._pools(
            view.Pool('a', 7, 2), view.Pool('a', 3, 0), view.Pool('b', 1, 1),
        ).shares())

    def test_settled_with_pools(self):
        share = list(_desired().values()).count('a')
        snapshot = self._pools(view.Pool('a', share + 1, 1),
                               view.Pool('b', 20 - share, 0))
        self.assertTrue(snapshot.is_settled(8, 32, 20))
        self.assertFalse(snapshot.is_settled(8, 32, 21))

    def test_settled_pool_by_pool(self):
        share = list(_desired().values()).count('a')
        # One has come back, and the other counts its nodes still.
        self.assertFalse(self._pools(
            view.Pool('a', 20, 0), view.Pool('b', 1, 1),
        ).is_settled(8, 32, 20))
        # An instance stays with its service.
        one = next(node for node, owner in _desired().items() if owner == 'a')
        snapshot = dataclasses.replace(
            self._pools(view.Pool('a', share - 1, 0),
                        view.Pool('b', 21 - share, 0)),
            nodes=dict.fromkeys(NODES) | {one: 'b'})
        self.assertTrue(snapshot.is_settled(8, 32, 20))

    def test_settled_with_nodes_and_pools(self):
        owners = {node: owner for node, owner in _desired().items()
                  if owner == 'a'}
        snapshot = dataclasses.replace(
            _snapshot(owners), nodes=dict.fromkeys(NODES),
            pools=[view.Pool('b', 20 - len(owners), 0)])
        self.assertTrue(snapshot.is_settled(8, 32, 20))
        snapshot = dataclasses.replace(snapshot, pools=[
            view.Pool('b', 21 - len(owners), 0)])
        self.assertFalse(snapshot.is_settled(8, 32, 20))

    def test_settled_without_members(self):
        self.assertFalse(
            view.Snapshot(NOW, [], [], {}).is_settled(8, 32, 0))
