# SPDX-License-Identifier: Apache-2.0
"""Tests of that the command has no rule of its own.

Each puts services into a state, and compares what the command says with what
passes of these very services do.
"""

from oslotest import base

from nova_ironic_ring.command.telling import nodes
from nova_ironic_ring.command.telling import prospect
from nova_ironic_ring.core.deciding import decisions as tables
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.unit.command import deployment
from nova_ironic_ring.tests.unit.command import truth

NODES = truth.NODES
Decision = tables.Decision


class ExactTestCase(base.BaseTestCase):

    def assertExact(self, world: truth.World) -> None:
        """See that the command says of each node what the services do."""
        seen = world.snapshot()
        found = prospect.of(seen, seen.keys()[0])
        quiet = {Decision.KEEP, Decision.LEAVE}
        for node, steps in world.steps().items():
            self.assertEqual(steps, found.steps(node))
            if node != NODES[0] and quiet == {
                    step.decision for step in steps.values()}:
                continue
            host, _, name = self._decision(world, node)
            if not name:
                # Nobody has to act.
                name, host = host, next(iter(steps))
            self.assertEqual(steps[host].decision.name, name)
            takers = [each for each, step in steps.items()
                      if step.decision.takes or step.decision.takes_instance]
            self.assertIn(host, takers or [host])

    def _decision(self, world: truth.World, node: str
                  ) -> tuple[str, str, str]:
        seen = world.snapshot()
        return nodes.Teller(seen).tell(
            seen.nodes[node]).decision.partition(': ')

    def assertDecision(self, expected: str, world: truth.World, number: int
                       ) -> None:
        """See what is decided on a node, by the command and in truth."""
        self.assertEqual(
            expected, ''.join(self._decision(world, NODES[number])))
        self.assertExact(world)

    def test_all_is_well(self):
        world = truth.World()
        self.assertDecision('a: KEEP', world, world.number('a'))

    def test_stock_driver_owns_what_is_for_another(self):
        world = truth.World()
        world.add('b', is_stock=True)
        number = world.number('a')
        world.own('b', number)
        self.assertDecision('a: WAIT', world, number)

    def test_stock_driver_in_a_group(self):
        world = truth.World(
            scope=settings.Scope('rack'), peers=frozenset('abc'))
        world.add('c', is_stock=True)
        self.assertExact(world)

    def test_offers(self):
        world = truth.World()
        number = world.number('a')
        world.own('b', number)
        self.assertDecision('b: OFFER', world, number)
        world.acknowledge('b', 'b', 'c')
        self.assertDecision('b: OFFER', world, number)
        world.acknowledge('b')
        self.assertDecision('a: TAKE_OFFERED', world, number)

    def test_instance_mobility(self):
        for changes, expected in (
                ({'fails_over': False}, 'b: KEEP_INSTANCE'),
                ({}, 'b: KEEP_INSTANCE'),
                ({'follows': True}, 'b: OFFER_INSTANCE')):
            world = truth.World(**changes)
            number = world.number('a')
            world.hold('b', number)
            self.assertDecision(expected, world, number)

    def test_instance_that_follows(self):
        world = truth.World(follows=True)
        number = world.number('a')
        world.hold('b', number)
        self.assertDecision('b: OFFER_INSTANCE', world, number)
        world.acknowledge('b')
        self.assertDecision('a: TAKE_INSTANCE', world, number)
        world.hold('b', number, task='rebooting')
        self.assertDecision('b: OFFER_INSTANCE', world, number)

    def test_instance_of_one_that_is_forced_down(self):
        for silent, changes, expected in (
                (100, {}, 'a: FAIL_OVER'), (0, {}, 'a: FAIL_OVER'),
                (100, {'follows': True}, 'a: FAIL_OVER'),
                (100, {'fails_over': False}, 'a: LEAVE_INSTANCE')):
            world = truth.World(**changes)
            number = world.number('a', 'a', 'c')
            world.hold('b', number)
            world.add('b', silent, fields={'forced_down': True})
            self.assertDecision(expected, world, number)

    def test_instance_of_one_that_is_forced_down_and_keeps_it(self):
        world = truth.World(fails_over=False)
        number = world.number('a', 'a', 'c')
        world.hold('b', number)
        world.add('b', fields={'forced_down': True})
        self.assertDecision('b: KEEP_INSTANCE', world, number)

    def test_service_whose_passes_fail(self):
        seen = deployment.failing(deployment.make(instances={1: 'b'}), 'b')
        found = prospect.of(seen, seen.keys()[0])
        self.assertEqual(['a', 'c'], [each.me for each in found.services])
        run = found.run()
        self.assertTrue(run.is_settled)
        self.assertEqual({NODES[1]}, {
            node for node, owner in run.owners.items() if owner == 'b'})
        self.assertEqual({1}, set(run.moves.values()))

    def test_late_service(self):
        for silent, after, expected in (
                (61, 0, 'a: LEAVE_INSTANCE'), (301, 300, 'a: FAIL_OVER'),
                (299, 300, 'a: LEAVE_INSTANCE')):
            world = truth.World(failover_after=after)
            number = world.number('a', 'a', 'c')
            world.hold('b', number)
            world.add('b', silent)
            self.assertDecision(expected, world, number)

    def test_nodes_of_a_late_service(self):
        world = truth.World()
        world.add('b', 90)
        number = world.number('c', 'a', 'c')
        world.own('b', number)
        self.assertDecision('c: TAKE_ABANDONED', world, number)

    def test_service_that_nova_does_not_have(self):
        world = truth.World()
        number = world.number('a')
        world.hold('gone', number)
        other = world.number('b')
        world.own('gone', other)
        self.assertDecision('a: FAIL_OVER', world, number)
        self.assertDecision('b: TAKE_ABANDONED', world, other)

    def test_disabled(self):
        world = truth.World()
        world.add('b', fields={'disabled': True})
        number = world.number('b')
        self.assertDecision('b: OFFER', world, number)
        world.hold('b', number)
        self.assertDecision('b: KEEP_INSTANCE', world, number)
        for host in 'ac':
            world.add(host, fields={'disabled': True})
        self.assertDecision('b: KEEP_INSTANCE', world, number)

    def test_building(self):
        world = truth.World()
        number = world.number('a')
        world.hold('b', number, is_building=True)
        world.cloud.nodes[NODES[number]].instance = None
        self.assertDecision('b: OFFER', world, number)

    def test_newcomer_takes_nothing(self):
        world = truth.World()
        world.add('d', is_new=True)
        seen = world.snapshot()
        self.assertEqual({'KEEP'}, {
            self._decision(world, node)[2] for node in NODES})
        self.assertEqual('member', seen.word('d'))
        self.assertExact(world)

    def test_newcomer_with_a_member_record(self):
        world = truth.World()
        world.add('d')
        number = world.number('d')
        owner = world.cloud.rows[NODES[number]].owner
        self.assertDecision(f'{owner}: OFFER', world, number)

    def test_new_node(self):
        world = truth.World()
        number = world.number('b')
        del world.cloud.rows[NODES[number]]
        self.assertDecision('b: CREATE', world, number)

    def test_instance_that_nova_has_elsewhere(self):
        world = truth.World()
        number = world.number('a')
        world.hold('b', number, owner='b', node=NODES[29])
        world.add('b', 100, fields={'forced_down': True})
        other = world.number('c', 'a', 'c')
        world.hold('kvm', other, node='kvm-1')
        world.cloud.other_drivers = frozenset({'kvm'})
        for each in (number, other):
            self.assertDecision('LEAVE_INSTANCE', world, each)

    def test_service_with_nodes_of_two_kinds(self):
        world = truth.World()
        number = world.number('a', 'a', 'c')
        world.hold('b', number)
        world.cloud.other_drivers = frozenset({'b'})
        self.assertDecision('b: KEEP_INSTANCE', world, number)
        world.add('b', 100, fields={'forced_down': True})
        self.assertDecision('LEAVE_INSTANCE', world, number)
        seen = world.snapshot()
        self.assertIn('b has nodes that are not of Ironic', nodes.explain(
            seen, seen.nodes[NODES[number]])['Reason'])

    def test_instance_that_nova_does_not_have(self):
        world = truth.World()
        number = world.number('a')
        world.hold('a', number)
        world.cloud.instances.clear()
        self.assertDecision('LEAVE_INSTANCE', world, number)

    def test_peer_list_without_one(self):
        world = truth.World(
            scope=settings.Scope('rack'), peers=frozenset('abc'))
        world.add('a', peers=frozenset('ab'))
        self.assertExact(world)

    def test_very_long_peer_list(self):
        more = {f'h{number}' for number in range(60)}
        world = truth.World(
            *more, scope=settings.Scope('rack'), peers=frozenset(more))
        # It is no peer, though alive.
        world.add('alone', scope=settings.Scope('', None),
                  peers=frozenset({'alone'}))
        world.cloud.nodes['other'] = truth.clouds.Node()
        world.cloud.rows['other'] = truth.clouds.Row('alone')
        seen = world.snapshot()
        (key,) = (key for key in seen.keys()
                  if key.scope.conductor_group == 'rack')
        found = {each.me: each.peers or frozenset()
                 for each in prospect.of(seen, key).services}
        self.assertEqual({'alone'}, found.pop('alone'))
        # Those that have a record, of which alone there can be members.
        self.assertEqual({seen.known - {'alone'}}, set(found.values()))

    def test_groups(self):
        world = truth.World(
            'a', 'b', scope=settings.Scope('one'), peers=frozenset('ab'))
        for host in 'xy':
            world.add(host, scope=settings.Scope('two'),
                      peers=frozenset('xy'))
        for number in range(0, 30, 2):
            world.cloud.nodes[NODES[number]].group = 'two'
            world.own('x', number)
        # One has gone to another group with its instance.
        world.hold('a', 4)
        self.assertDecision('a: KEEP_INSTANCE', world, 4)

    def test_node_that_no_ring_serves(self):
        world = truth.World(
            scope=settings.Scope('one'), peers=frozenset('abc'))
        world.hold('a', 4)
        world.cloud.nodes[NODES[4]].group = 'nowhere'
        self.assertDecision('a: KEEP_INSTANCE', world, 4)

    def test_shards(self):
        world = truth.World('a', 'b', scope=settings.Scope(None, 's'))
        for host in 'xy':
            world.add(host, scope=settings.Scope(None, 't'))
        for number in range(0, 30, 2):
            world.cloud.nodes[NODES[number]].shard = 't'
            world.own('xy'[number // 2 % 2], number)
        self.assertExact(world)

    def test_groups_without_a_peer_list(self):
        world = truth.World('a', 'b', 'c', scope=settings.Scope('One'))
        world.add('x', scope=settings.Scope('two'))
        # One that has come from the other group.
        world.add('c', scope=settings.Scope('two'))
        for number in range(0, 30, 2):
            world.cloud.nodes[NODES[number]].group = 'two'
            world.own('x', number)
        self.assertExact(world)

    def test_all_nodes_beside_a_group(self):
        world = truth.World('a', 'b')
        world.add('x', scope=settings.Scope('two'))
        for number in range(0, 30, 2):
            world.cloud.nodes[NODES[number]].group = 'two'
            world.own('x', number)
        self.assertExact(world)

    def test_heartbeats_that_are_not_in_the_database(self):
        world = truth.World()
        number = world.number('a', 'a', 'c')
        world.hold('b', number)
        world.add('b', 100, fields={'alive': False})
        for host in 'ac':
            world.add(host, fields={'alive': True})
        self.assertDecision('a: LEAVE_INSTANCE', world, number)

    def test_names_in_any_case(self):
        world = truth.World('A', 'b', 'C')
        number = world.number('a')
        world.own('b', number)
        world.hold('C', world.number('b'))
        self.assertDecision('b: OFFER', world, number)

    def test_what_the_services_remember_is_not_known(self):
        world = truth.World(follows=True)
        world.own('b', *range(30))
        world.hold('a', 3, 4, 5)
        before = world.snapshot()
        self.assertExact(world)
        # Nothing has changed by asking.
        self.assertEqual(before, world.snapshot())
