# SPDX-License-Identifier: Apache-2.0

"""Tests of what is shown of the services."""

import dataclasses

from oslotest import base

from nova_ironic_ring.command.telling import overview
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import deployment

make, service = deployment.make, deployment.service


def _of(seen: snapshot.Snapshot, host: str) -> overview.ServiceLine:
    (line,) = (line for line in overview.lines(seen) if line.host == host)
    return line


class OverviewTestCase(base.BaseTestCase):

    def test_all_is_well(self):
        lines = overview.lines(make())
        self.assertEqual(['a', 'b', 'c'], [line.host for line in lines])
        self.assertEqual({'member'}, {line.is_what.words for line in lines})
        self.assertEqual({'cell cell1'}, {line.ring for line in lines})
        self.assertEqual(30, sum(line.owned for line in lines))
        for line in lines:
            self.assertEqual(line.owned, line.desired)
            self.assertEqual(0, line.to_hand_over)

    def test_shards(self):
        seen = deployment.by_shards(make(), *'uvwxyz')
        self.assertEqual([(10, 10, 0)] * 3, [
            (line.owned, line.desired, line.to_hand_over)
            for line in overview.lines(seen)])

    def test_states(self):
        seen = make('a', 'b', 'c', 'd', 'E', services=[
            service('a'), service('b', 61), service('c', disabled=True,
                                                    reason='a fan'),
            service('d', 61, forced_down=True),
            service('E', forced_down=True), service('f'), service('g', 61)])
        self.assertEqual({
            'a': 'member',
            'b': 'down since 2026-01-01 11:58:59 UTC (61 s)',
            'c': 'disabled: a fan', 'd': 'forced down',
            'E': 'forced down, but alive',
            'f': 'alive, but without a node, so in no ring',
            'g': 'down since 2026-01-01 11:58:59 UTC (61 s)',
        }, {line.host: line.is_what.words for line in overview.lines(seen)})
        self.assertEqual({
            'a': 'MEMBER', 'b': 'DOWN', 'c': 'DISABLED', 'd': 'FORCED_DOWN',
            'E': 'FORCED_DOWN', 'f': 'WITHOUT_NODE', 'g': 'DOWN',
        }, {line.host: line.is_what.code.name
            for line in overview.lines(seen)})
        # All is for the only member.
        self.assertEqual(30, _of(seen, 'a').desired)
        self.assertGreater(_of(seen, 'b').to_hand_over, 0)

    def test_passes_that_fail(self):
        seen = deployment.failing(make(), 'b')
        self.assertEqual(overview.Description(
            overview.StateCode.NOT_WORKING,
            'alive, and its passes fail since 2026-01-01 11:00:00 UTC'),
            _of(seen, 'b').is_what)
        self.assertEqual(0, _of(seen, 'b').desired)
        self.assertEqual(0, _of(seen, 'b').to_fail_over)
        self.assertEqual('member', _of(seen, 'a').is_what.words)

    def test_instances_of_the_dead(self):
        seen = make(instances={1: 'b', 2: 'b', 3: 'a', 4: 'gone'}, services=[
            service('a'), service('b', 61), service('c')])
        self.assertEqual(2, _of(seen, 'b').instances)
        self.assertEqual(2, _of(seen, 'b').to_fail_over)
        self.assertEqual(0, _of(seen, 'a').to_fail_over)
        self.assertEqual(overview.Description(
            overview.StateCode.GONE, 'Nova has no record of it'),
            _of(seen, 'gone').is_what)
        self.assertEqual(1, _of(seen, 'gone').to_fail_over)

    def test_stock_driver(self):
        seen = deployment.stock(make(), 'b')
        self.assertEqual(overview.Description(
            overview.StateCode.MEMBER_THAT_SAYS_NOTHING,
            "member, with Nova's own driver"), _of(seen, 'b').is_what)

    def test_groups_are_rings_of_their_own(self):
        seen = make(said=profile.Profile(conductor_group='rack'))
        self.assertEqual(
            {'cell cell1, group "rack"'},
            {line.ring for line in overview.lines(seen)})
        self.assertFalse(seen.keys()[0].scope.has('', None))
        self.assertTrue(
            seen.keys()[0].scope.has('Rack', None))

    def test_ring_with_some_of_the_nodes_of_another(self):
        seen = deployment.with_a_rack(make())
        lines = [_of(seen, host) for host in 'abc']
        self.assertEqual([line.owned for line in lines],
                         [line.desired for line in lines])
        self.assertEqual(10, lines[2].desired)
        # They are for the others when it has no member any more.
        seen = dataclasses.replace(seen, services=[
            service('a'), service('b'), service('c', 1000, alive=False)])
        lines = [_of(seen, host) for host in 'abc']
        self.assertEqual(30, lines[0].desired + lines[1].desired)
        self.assertEqual([0, 10], [lines[2].desired, lines[2].to_hand_over])

    def test_service_that_is_not_in_a_peer_list(self):
        seen = make(said=profile.Profile(
            conductor_group='rack', peers=profile.fingerprint('a', 'b'),
            names=('a', 'b')))
        self.assertEqual(overview.Description(
            overview.StateCode.NOT_IN_PEER_LIST,
            'alive, but not in the peer list of a, b, c'),
            _of(seen, 'c').is_what)
        self.assertEqual('member', _of(seen, 'a').is_what.words)

    def test_service_without_a_node_among_several_rings(self):
        seen = make(services=[service(host) for host in 'abcd'])
        seen = deployment.say(seen, 'c', conductor_group='Rack')
        self.assertEqual(2, len(seen.keys()))
        self.assertEqual('rack', seen.keys()[1].scope.conductor_group)
        self.assertEqual('cell cell1, unknown', _of(seen, 'd').ring)
        # Where there is but one, it is in that one.
        seen = make(services=[service(host) for host in 'abcd'])
        self.assertEqual('cell cell1', _of(seen, 'd').ring)

    def test_one_cell(self):
        seen = make(services=[service(host) for host in 'abc']
                    + [service('d', cell='cell2')])
        self.assertEqual(['d'], [line.host for line in overview.lines(
            dataclasses.replace(seen, cell='cell2'))])

    def test_services_of_other_drivers_are_no_concern(self):
        seen = make(services=[service(host) for host in 'abcd'],
                    others=frozenset({'d'}))
        self.assertEqual(3, len(overview.lines(seen)))
        error = self.assertRaises(ValueError, seen.service, 'd')
        self.assertIn('does not run an ironic driver', str(error))
