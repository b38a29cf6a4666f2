# SPDX-License-Identifier: Apache-2.0

import uuid

from oslotest import base
from tooz import hashring

from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import model

NODES = [str(uuid.UUID(int=number * 7919)) for number in range(1000)]


def _owners(*members: str, partitions: int = 32) -> dict[str, str | None]:
    current = ring.Ring(members, partitions)
    return {node: current.owner(node) for node in NODES}


class RingTestCase(base.BaseTestCase):

    def test_every_member_owns_some(self):
        self.assertEqual({'a', 'b', 'c'}, set(_owners('a', 'b', 'c').values()))

    def test_order_of_members_does_not_matter(self):
        self.assertEqual(_owners('a', 'b', 'c'), _owners('c', 'a', 'b'))

    def test_joining_member_takes_only_what_it_gains(self):
        before, after = _owners('a', 'b'), _owners('a', 'b', 'c')
        moved = {node for node in NODES if before[node] != after[node]}
        self.assertNotEqual(set(), moved)
        self.assertEqual({'c'}, {after[node] for node in moved})

    def test_leaving_member_loses_only_its_own(self):
        before, after = _owners('a', 'b', 'c'), _owners('a', 'b')
        self.assertEqual(
            {node for node in NODES if before[node] == 'c'},
            {node for node in NODES if before[node] != after[node]})

    def test_partitions_shape_the_ring(self):
        self.assertNotEqual(_owners('a', 'b', 'c'),
                            _owners('a', 'b', 'c', partitions=64))

    def test_without_members_nobody_owns_anything(self):
        current = ring.Ring((), 32)
        self.assertIsNone(current.owner(NODES[0]))
        self.assertEqual([], list(current.successors(NODES[0])))

    def test_what_was_answered_once_is_answered_again(self):
        current = ring.Ring({'a', 'b'}, 32)
        self.assertEqual([current.owner(node) for node in NODES],
                         [current.owner(node) for node in NODES])

    def test_successors_are_who_is_left(self):
        members = {'a', 'b', 'c', 'd'}
        current = ring.Ring(members, 32)
        for node in NODES[:100]:
            order = list(current.successors(node))
            self.assertEqual(members, set(order))
            self.assertEqual(len(members), len(order))
            for gone in range(len(order)):
                self.assertEqual(
                    order[gone],
                    ring.Ring(order[gone:], 32).owner(node))

    def test_agrees_with_the_stock_driver(self):
        # Services of both drivers can then share nodes.
        stock = hashring.HashRing({'a', 'b', 'c'}, partitions=2 ** 5)
        self.assertEqual(
            {node: {owner} for node, owner in _owners('a', 'b', 'c').items()},
            {node: stock.get_nodes(node.encode('utf-8')) for node in NODES})


class RebuiltTestCase(base.BaseTestCase):

    def test_the_very_ring_where_nothing_has_changed(self):
        current = ring.Ring({'a', 'b'}, 32)
        self.assertIs(current, current.rebuilt(frozenset({'b', 'a'}), 32))

    def test_another_ring(self):
        current = ring.Ring({'a', 'b'}, 32)
        for members, partitions in (({'a'}, 32), ({'a', 'b'}, 7)):
            changed = current.rebuilt(frozenset(members), partitions)
            self.assertEqual(ring.Ring(members, partitions), changed)
            self.assertEqual(members, changed.members)
            self.assertEqual(partitions, changed.partitions)

    def test_equality(self):
        current = ring.Ring({'a', 'b'}, 32)
        same = ring.Ring(('b', 'a'), 32)
        self.assertEqual(current, same)
        self.assertEqual(hash(current), hash(same))
        for other in (ring.Ring({'a'}, 32), ring.Ring({'a', 'b'}, 7), 'a'):
            self.assertNotEqual(current, other)


class FingerprintTestCase(base.BaseTestCase):

    def _of(self, members: str = 'ab', partitions: int = 32,
            deal: shards.Deal | None = None, group: str | None = None,
            shard: str | None = None) -> str:
        return ring.Ring(members, partitions, deal).fingerprint(
            model.Scope(group, shard))

    def test_whatever_says_for_whom_a_node_is(self):
        found = [
            self._of(), self._of('abc'), self._of(partitions=64),
            self._of(group=''), self._of(group='rack'), self._of(shard='s'),
            self._of(deal=shards.Deal(frozenset('pq'), {})),
            ring.Ring({'a,b'}, 32).fingerprint(model.Scope())]
        self.assertEqual(len(found), len(set(found)))

    def test_what_is_spelled_otherwise(self):
        self.assertEqual(self._of('ba', group='Rack', shard=''),
                         self._of('ab', group='rack'))
