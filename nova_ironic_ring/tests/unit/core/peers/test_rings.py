# SPDX-License-Identifier: Apache-2.0

"""Tests of the rings that one sees who looks once."""

import datetime

from oslotest import base

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import rings
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import profile

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)
NODES = [f'node-{number}' for number in range(30)]
RACK = rings.Key('cell1', model.Scope('rack'))
ALL = rings.Key('cell1')
SAID = profile.Profile()


def peer(host: str, said: profile.Profile | None = SAID, silent: float = 0,
         is_owner: bool = True, held: frozenset[str] = frozenset(),
         cell: str = 'cell1') -> rings.Peer:
    """Make a service that was heard of some seconds ago."""
    return rings.Peer(
        model.Service(host, NOW - datetime.timedelta(seconds=silent)), cell,
        said, held, is_owner)


def look(*peers: rings.Peer) -> rings.Rings:
    return rings.Rings({each.record.name: each for each in peers}, NOW, 60)


class KeysTestCase(base.BaseTestCase):

    def test_by_what_they_say(self):
        found = look(
            peer('a'), peer('b', profile.Profile(conductor_group='Rack')),
            peer('c', profile.Profile(shard='one')), peer('d', cell='cell2'))
        self.assertEqual(
            {'a': ALL, 'b': RACK,
             'c': rings.Key('cell1', model.Scope(None, 'one')),
             'd': rings.Key('cell2')}, found.keys)
        self.assertEqual(
            ['cell cell1', 'cell cell1, shard "one"',
             'cell cell1, group "rack"', 'cell cell2'],
            [str(key) for key in found.known()])

    def test_one_that_says_nothing(self):
        said = profile.Profile(conductor_group='rack')
        self.assertEqual(ALL, look(peer('a', None)).keys['a'])
        # One without a node has not said anything yet.
        self.assertEqual(RACK, look(
            peer('a', said), peer('b', None, is_owner=False)).keys['b'])
        # One with nodes has Nova's own driver, which divides all nodes.
        self.assertIsNone(look(peer('a', said), peer('b', None)).keys['b'])
        self.assertEqual(ALL, look(peer('a'), peer('b', None)).keys['b'])

    def test_one_that_says_nothing_beside_peer_lists(self):
        said = profile.Profile(
            conductor_group='rack', peers='x', names=('a', 'b'))
        self.assertEqual(RACK, look(
            peer('a', said), peer('c'), peer('b', None)).keys['b'])

    def test_one_that_says_nothing_beside_two_rings(self):
        self.assertIsNone(look(
            peer('a'), peer('b', profile.Profile(conductor_group='rack')),
            peer('c', None, is_owner=False)).keys['c'])


class RingTestCase(base.BaseTestCase):

    def test_members(self):
        found = look(peer('a'), peer('b', silent=61),
                     peer('c', is_owner=False), peer('d'))
        self.assertEqual({'a', 'd'}, found.ring(ALL, {}).members)
        self.assertIs(membership.State.ABSENT, found.states['b'])

    def test_partitions_are_those_of_most(self):
        odd = profile.Profile(partitions=64)
        self.assertEqual(32, look(
            peer('a'), peer('b', odd), peer('c')).ring(ALL, {}).partitions)

    def test_shards_where_all_say_so(self):
        said = profile.Profile(listing='shards')
        places = {'x': 'one', 'y': 'two'}
        held = frozenset({shards.code('one'), shards.code('two')})
        found = look(peer('a', said, held=held), peer('b', said))
        divided = found.ring(ALL, places)
        self.assertEqual({'a', 'b'}, {divided.owner(node) for node in places})
        self.assertIsNone(look(
            peer('a', said, held=held), peer('b')).ring(ALL, places).deal)


class DesiredTestCase(base.BaseTestCase):

    def _desired(self, *of_rack: str) -> rings.Desired:
        return rings.Desired(
            {ALL: ring.Ring({'a', 'b'}, 32), RACK: ring.Ring(of_rack, 32)},
            {ALL: NODES, RACK: NODES[:10]})

    def test_narrower_ring_goes_before_the_wider_one(self):
        found = self._desired('c')
        self.assertEqual(
            {'c'}, {found.owner(node) for node in NODES[:10]})
        self.assertEqual(
            {'a', 'b'}, {found.owner(node) for node in NODES[10:]})
        self.assertEqual(['c'], list(found.successors(NODES[0])))
        self.assertEqual(
            {'a', 'b'}, {*found.successors(NODES[10])})

    def test_narrower_ring_without_a_member(self):
        found = self._desired()
        self.assertEqual({ALL}, {found.keys[node] for node in NODES})
        self.assertEqual(set(NODES), set(found.owners()))

    def test_node_that_no_ring_serves(self):
        found = self._desired()
        self.assertIsNone(found.owner('x'))
        self.assertEqual([], list(found.successors('x')))
