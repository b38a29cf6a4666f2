# SPDX-License-Identifier: Apache-2.0

"""Tests of what a change of a ring would move."""

import collections
from collections.abc import Callable
import dataclasses
from xml.etree import ElementTree

from oslotest import base

from nova_ironic_ring.command.telling import planning
from nova_ironic_ring.command.telling import prospect
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.unit.command import deployment
from nova_ironic_ring.tests.unit.command import truth

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class PlanTestCase(base.BaseTestCase):

    def _plan(self, seen: snapshot.Snapshot, partitions: int | None = None,
              **changes) -> planning.ChangePlan:
        hosts = {name: frozenset(changes.get(name, ()))
                 for name in ('add', 'remove', 'disable')}
        return planning.plan(seen, seen.keys()[0], prospect.Change(
            hosts['add'], hosts['remove'], hosts['disable'], partitions))

    def test_join(self):
        plan = self._plan(make(), add=['D'])
        self.assertEqual(['a', 'b', 'c', 'd'],
                         [share.host for share in plan.shares])
        self.assertEqual(30, sum(share.nodes for share in plan.shares))
        self.assertEqual(30, sum(share.nodes_after for share in plan.shares))
        # Only what the new one gets.
        self.assertEqual(plan.shares[3].nodes_after, plan.moved_nodes)
        self.assertEqual(0, plan.shares[3].nodes)

    def test_leave(self):
        plan = self._plan(make(instances={1: 'b', 2: 'a'}), remove=['b'])
        share = plan.shares[1]
        self.assertEqual((0, 0), (share.nodes_after, share.instances_after))
        self.assertEqual(share.nodes, plan.moved_nodes)
        self.assertEqual(1, plan.moved_instances)

    def test_instances_that_follow(self):
        held = dict.fromkeys(range(10), 'a')
        stay = self._plan(make(instances=held), add=['d'])
        self.assertEqual(0, stay.moved_instances)
        follow = self._plan(make(instances=held, said=profile.Profile(
            mobility='follow')), add=['d'])
        current = ring.Ring('abcd', 32)
        self.assertEqual(
            sum(current.owner(NODES[number]) != 'a' for number in held),
            follow.moved_instances)

    def test_partitions(self):
        plan = self._plan(make(), partitions=1024)
        self.assertLess(plan.balance_after, plan.balance)
        self.assertGreater(plan.moved_nodes, 0)

    def test_errors(self):
        for changes, message in (
                ({'add': ['A']}, '"a" is a member of the ring'),
                ({'remove': ['x']}, '"x" is no member of the ring'),
                ({'remove': ['a', 'b', 'c']}, 'Nobody would be left')):
            error = self.assertRaises(ValueError, self._plan, make(),
                                      **changes)
            self.assertIn(message, str(error))
        for changes, message in (
                ({'disable': ['x']}, '"x" is no member of the ring'),
                ({'disable': ['a', 'b'], 'remove': ['c']},
                 'Nobody would be left'),
                ({'add': ['d'], 'disable': ['D']},
                 '"d" cannot both join and leave'),
                ({'add': ['kvm']}, 'does not run an ironic driver'),
                ({'add': ['far']}, 'is in cell cell2: it cannot join'),
                ({'disable': ['far']}, '"far" is no member of the ring')):
            error = self.assertRaises(ValueError, self._plan, make(services=[
                *(service(host) for host in 'abc'), service('kvm'),
                service('far', cell='cell2')], others=frozenset({'kvm'})),
                **changes)
            self.assertIn(message, str(error))
            self.assertNotIn('\n', str(error))
        nobody = make(services=[service(host, 61) for host in 'abc'])
        error = self.assertRaises(ValueError, self._plan, nobody)
        self.assertIn('has no living member', str(error))
        # One that joins it is one.
        plan = self._plan(nobody, add=['d'])
        self.assertEqual(30, plan.shares[3].nodes_after)

    def test_shards(self):
        seen = deployment.by_shards(make(), *'uvwxyz')
        self.assertEqual([10, 10, 10], [
            share.nodes for share in self._plan(seen).shares])
        self.assertEqual(0, self._plan(seen).moved_nodes)
        # Six shards: nobody has more than two, and the new one gets one.
        plan = self._plan(seen, add=['d'])
        self.assertEqual(5, plan.shares[3].nodes_after)
        self.assertEqual(5, plan.moved_nodes)
        self.assertTrue(plan.is_settled)
        plan = self._plan(seen, remove=['b'])
        self.assertEqual([15, 0, 15], [
            share.nodes_after for share in plan.shares])
        self.assertEqual(10, plan.moved_nodes)
        self.assertTrue(plan.is_settled)

    def test_from_all_to_shards(self):
        seen = make(instances=dict.fromkeys(range(4), 'a'))
        given = {node: 'uvwxyz'[number % 6]
                 for number, node in enumerate(NODES)}
        plan = planning.plan(seen, seen.keys()[0], prospect.Change(
            by_shards=True, shards=given))
        self.assertTrue(plan.is_settled)
        self.assertEqual([4, 0, 0], [
            share.instances_after for share in plan.shares])
        self.assertEqual(26, sum(share.nodes_after for share in plan.shares))
        # Ten, and those with its instances that are in shards of others.
        self.assertEqual([10, 10], [
            share.listed_after for share in plan.shares[1:]])
        self.assertGreaterEqual(plan.shares[0].listed_after, 10)
        self.assertEqual({'a': 30, 'b': 30, 'c': 30}, prospect.of(
            seen, seen.keys()[0]).listed())

    def test_shards_of_services_with_pools(self):
        seen = deployment.by_shards(deployment.make_pooled(), *'uvwxyz')
        plan = self._plan(seen, add=['d'])
        self.assertEqual([10, 10, 10, 0], [
            share.nodes for share in plan.shares])
        self.assertEqual(5, plan.shares[3].nodes_after)
        self.assertEqual(5, plan.moved_nodes)

    def test_balance(self):
        self.assertEqual(1, planning.balance({'a': 5, 'b': 5}))
        self.assertEqual(1.5, planning.balance({'a': 9, 'b': 3}))
        self.assertEqual(1, planning.balance({'a': 0}))


class ForetoldTestCase(base.BaseTestCase):
    """What is planned is what the services then do.

    They are changed as an operator would change them, and run passes for an
    hour.
    """

    def assertForetold(self, world: truth.World, change: prospect.Change,
                       apply: Callable[[], None] = lambda: None,
                       group: str | None = None) -> planning.ChangePlan:
        """See that a plan comes true.

        :param world: the services
        :param change: the change that is planned
        :param apply: makes it
        :param group: the conductor group whose ring is changed
        :returns: the plan
        """
        seen = world.snapshot()
        (key,) = (key for key in seen.keys()
                  if key.scope.conductor_group == group)
        plan = planning.plan(seen, key, change)
        foretold = prospect.of(seen, key, change).run()
        world.remember()
        apply()
        world.run()

        self.assertTrue(plan.is_settled)
        self.assertEqual(
            {node: row.owner for node, row in world.cloud.rows.items()},
            foretold.owners)
        self.assertEqual(
            {uuid: each.host for uuid, each in world.cloud.instances.items()
             if each.host}, foretold.hosts)
        after = world.snapshot()
        nodes = collections.Counter(
            row.owner.lower() for node, row in after.rows.items()
            if after.nodes[node].instance is None
            and key.scope.has(
                after.nodes[node].group, after.nodes[node].shard))
        self.assertEqual(nodes, collections.Counter({
            share.host: share.nodes_after for share in plan.shares}))
        instances = collections.Counter(
            str(after.instances[node.instance].host).lower()
            for node in after.nodes.values()
            if node.instance and key.scope.has(node.group, node.shard))
        self.assertEqual(instances, collections.Counter({
            share.host: share.instances_after for share in plan.shares}))
        return plan

    def _world(self, *hosts: str, **common) -> truth.World:
        """Make services of which each has some instances."""
        world = truth.World(*hosts, **common)
        for number in range(0, 30, 4):
            world.hold(world.cloud.rows[NODES[number]].owner, number)
        return world

    def _join(self, world: truth.World, host: str, **changes) -> None:
        world.add(host, **changes)
        world.newly(host)

    def _set(self, world: truth.World, host: str, **fields) -> None:
        world.cloud.services[host] = dataclasses.replace(
            world.cloud.services[host], **fields)

    def _die(self, world: truth.World, host: str) -> None:
        """Have a service die, which an operator says."""
        world.silent[host] = 100
        self._set(world, host, forced_down=True)

    def test_nothing(self):
        plan = self.assertForetold(self._world(), prospect.Change())
        self.assertEqual((0, 0), (plan.moved_nodes, plan.moved_instances))

    def test_join(self):
        for changes, moves in (
                ({}, False), ({'fails_over': False}, False),
                ({'follows': True}, True)):
            world = self._world(**changes)
            plan = self.assertForetold(
                world, prospect.Change(add=frozenset({'d'})),
                lambda world=world: self._join(world, 'd'))
            self.assertGreater(plan.moved_nodes, 0)
            self.assertEqual(moves, plan.moved_instances > 0)

    def test_join_of_two(self):
        world = self._world()

        def join():
            for host in 'de':
                self._join(world, host)
        self.assertForetold(
            world, prospect.Change(add=frozenset({'d', 'e'})), join)

    def test_drain(self):
        for changes, moves in (
                ({}, False), ({'follows': True}, True),
                ({'fails_over': False}, False)):
            world = self._world(**changes)
            plan = self.assertForetold(
                world, prospect.Change(disable=frozenset({'b'})),
                lambda world=world: self._set(world, 'b', disabled=True))
            self.assertEqual(0, plan.shares[1].nodes_after)
            self.assertEqual(moves, plan.moved_instances > 0)
            self.assertEqual(moves, plan.shares[1].instances_after == 0)

    def test_death(self):
        for changes, moves in (
                ({}, True), ({'follows': True}, True),
                ({'fails_over': False}, False)):
            world = self._world(**changes)
            plan = self.assertForetold(
                world, prospect.Change(remove=frozenset({'b'})),
                lambda world=world: self._die(world, 'b'))
            self.assertEqual(0, plan.shares[1].nodes_after)
            self.assertEqual(moves, plan.moved_instances > 0)

    def test_return(self):
        world = self._world('a', 'c')
        world.add('b', 100, fields={'forced_down': True})

        def come_back():
            self._set(world, 'b', forced_down=False)
            world.silent['b'] = 0
            world.newly('b')
        plan = self.assertForetold(
            world, prospect.Change(add=frozenset({'B'})), come_back)
        self.assertGreater(plan.shares[1].nodes_after, 0)

    def test_return_of_one_that_still_has_all(self):
        world = self._world()
        world.add('b', 61)

        def come_back():
            world.silent['b'] = 0
            world.newly('b')
        plan = self.assertForetold(
            world, prospect.Change(add=frozenset({'b'})), come_back)
        self.assertEqual((0, 0), (plan.moved_nodes, plan.moved_instances))

    def test_enabled_again(self):
        world = self._world('a', 'c')
        world.add('b', fields={'disabled': True})
        plan = self.assertForetold(
            world, prospect.Change(add=frozenset({'b'})),
            lambda: self._set(world, 'b', disabled=False))
        self.assertGreater(plan.shares[1].nodes_after, 0)

    def test_drained_one_that_dies(self):
        world = self._world()
        world.add('b', fields={'disabled': True})
        plan = self.assertForetold(
            world, prospect.Change(remove=frozenset({'b'})),
            lambda: self._die(world, 'b'))
        self.assertEqual(0, plan.shares[1].instances_after)

    def test_disabled_one_that_has_nodes_still(self):
        world = self._world()
        world.add('b', fields={'disabled': True})
        plan = self.assertForetold(world, prospect.Change())
        self.assertGreater(plan.moved_nodes, 0)
        self.assertEqual(0, plan.shares[1].nodes_after)

    def test_late_one_whose_nodes_move_anyway(self):
        for after, moves in ((0, False), (100, True), (1000, True)):
            world = self._world(failover_after=after)
            world.add('b', 120)
            plan = self.assertForetold(world, prospect.Change())
            self.assertGreater(plan.moved_nodes, 0)
            self.assertEqual(moves, plan.moved_instances > 0)

    def test_newcomer_that_is_there_already(self):
        world = self._world()
        world.add('d')
        plan = self.assertForetold(world, prospect.Change())
        self.assertEqual('d', plan.shares[3].host)
        self.assertGreater(plan.shares[3].nodes_after, 0)

    def test_first_start(self):
        world = truth.World()
        world.cloud.rows.clear()
        plan = self.assertForetold(world, prospect.Change())
        self.assertEqual(0, plan.moved_nodes)
        self.assertEqual(30, sum(share.nodes_after for share in plan.shares))

    def test_stock_driver_and_ours(self):
        world = self._world()
        world.add('b', is_stock=True)
        world.own('b', *range(1, 30, 4))
        plan = self.assertForetold(
            world, prospect.Change(add=frozenset({'d'})),
            lambda: self._join(world, 'd'))
        self.assertGreater(plan.shares[3].nodes_after, 0)

    def _groups(self) -> truth.World:
        world = self._world(
            'a', 'b', scope=settings.Scope('one'), peers=frozenset('ab'))
        for host in 'xy':
            world.add(host, scope=settings.Scope('two'),
                      peers=frozenset('xy'))
        found = ring.Ring('xy', 32)
        for number in range(1, 30, 2):
            world.cloud.nodes[NODES[number]].group = 'two'
            world.own(str(found.owner(NODES[number])), number)
        return world

    def test_join_of_one_of_two_groups(self):
        world = self._groups()

        def join():
            for host in 'xy':
                world.add(host, scope=settings.Scope('two'),
                          peers=frozenset('xyz'))
            self._join(world, 'z', scope=settings.Scope('two'),
                       peers=frozenset('xyz'))
        plan = self.assertForetold(
            world, prospect.Change(add=frozenset({'z'})), join, 'two')
        self.assertEqual(['x', 'y', 'z'],
                         [share.host for share in plan.shares])
        self.assertGreater(plan.moved_nodes, 0)

    def test_death_in_one_of_two_groups(self):
        world = self._groups()
        plan = self.assertForetold(
            world, prospect.Change(remove=frozenset({'a'})),
            lambda: self._die(world, 'a'), 'one')
        self.assertGreater(plan.moved_nodes, 0)
        self.assertGreater(plan.moved_instances, 0)

    def test_move_to_the_other_group(self):
        world = self._groups()

        def move():
            for host in 'xy':
                world.add(host, scope=settings.Scope('two'),
                          peers=frozenset('bxy'))
            world.add('a', scope=settings.Scope('one'), peers=frozenset('a'))
            world.add('b', scope=settings.Scope('two'),
                      peers=frozenset('bxy'))
            world.newly('b')
        self.assertForetold(
            world, prospect.Change(add=frozenset({'b'})), move, 'two')

    def test_partitions(self):
        world = self._world()

        def change():
            for host in 'abc':
                world.add(host, partitions=64)
        plan = self.assertForetold(
            world, prospect.Change(partitions=64), change)
        self.assertGreater(plan.moved_nodes, 0)

    # Those that disagree

    def assertNotSettled(self, world: truth.World) -> None:
        seen = world.snapshot()
        self.assertFalse(
            planning.plan(seen, seen.keys()[0]).is_settled)

    def test_partitions_that_differ(self):
        world = self._world()
        world.add('b', partitions=64)
        self.assertNotSettled(world)

    def test_peer_lists_that_differ(self):
        world = self._world(
            scope=settings.Scope('rack'), peers=frozenset('abc'))
        world.add('a', scope=settings.Scope('rack'), peers=frozenset('a'))
        self.assertNotSettled(world)

    def test_partitions_that_the_stock_driver_does_not_know(self):
        world = self._world()
        world.add('b', is_stock=True)
        seen = world.snapshot()
        self.assertFalse(planning.plan(
            seen, seen.keys()[0], prospect.Change(partitions=64)).is_settled)


class PictureTestCase(base.BaseTestCase):

    def test_picture(self):
        seen = deployment.make('a', '<b>', instances={1: 'a'})
        plan = planning.plan(seen, seen.keys()[0], prospect.Change(
            add=frozenset({'d'})))
        root = ElementTree.fromstring(planning.svg(plan))
        texts = [each.text for each in root.iter(
            '{http://www.w3.org/2000/svg}text')]
        self.assertIn('<b>', texts)
        self.assertIn(f'{plan.moved_nodes} free nodes and 0 instances change '
                      'hands', texts[0])
        bars = list(root.iter('{http://www.w3.org/2000/svg}rect'))
        # Two in the legend, and four a service.
        self.assertEqual(2 + 4 * 3, len(bars))
