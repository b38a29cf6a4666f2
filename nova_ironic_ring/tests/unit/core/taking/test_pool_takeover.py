# SPDX-License-Identifier: Apache-2.0

"""Takeovers into pools, each of which may end after any step."""

import dataclasses

import ddt
import fixtures

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import pool_plan
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking import pool_takeover
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import pool_base

NODES, KIND = pool_base.NODES, pool_base.KIND


class DeadServiceTestCase(pool_base.TakeoverTestCase):

    def test_one_that_is_forced_down(self):
        self.die()
        self.run_passes()
        self.assertEqual({'a', 'c'}, self.hosts())
        taken = [each for service in self.services.values()
                 for each in service.result.taken]
        self.assertEqual(self.instances, sorted(
            each.instance for each in taken))
        for each in taken:
            self.assertEqual(self.cloud.instances[each.instance].node,
                             each.node)
            self.assertEqual(('b', True), (each.host, each.is_dead))
        self.run_passes()
        self.assert_whole()

    def test_one_that_has_run_another_driver(self):
        # Its pool and its instances are no more than what records say.
        self.cloud.other_drivers = frozenset({'b'})
        self.die()
        self.run_passes(2)
        self.assertEqual({'b'}, self.hosts())
        self.assertEqual(set(self.held), {
            event.node for service in self.services.values()
            for event in service.happened(events.InstanceElsewhere)})

    def test_it_is_said_of_each(self):
        self.die()
        self.run_passes()
        said = [each for service in self.services.values()
                for each in service.happened(events.InstanceTaken)]
        self.assertEqual(sorted(self.held), sorted(
            each.node for each in said))

    def test_counted_at_once_where_they_are_taken(self):
        self.die()
        self.run_passes()
        for service in self.services.values():
            self.assertEqual(0, service.pool.inventory().reserved)

    def test_nothing_is_built_in_its_pools_any_more(self):
        self.die()
        self.run_passes()
        found = self.cloud.inventories[pools.uuid_of(self.pool_of_b)]
        self.assertEqual(found.total, found.reserved)

    def test_it_reads_its_pools_anew_when_it_is_back(self):
        service = self.services['b']
        asked = self.asked_to_reread('b')
        self.run_passes()
        self.assertEqual([], asked)
        for forced in True, False:
            self.cloud.services['b'] = dataclasses.replace(
                self.cloud.services['b'], forced_down=forced)
            self.run_passes()
        self.assertEqual(list(service.result.found), asked)
        # Once more, for another may have been in a pass.
        self.run_passes(2)
        self.assertEqual(2 * list(service.result.found), asked)
        # Or was not heard of, which it knows of itself.
        asked.clear()
        service.world.process.longest_gap = lambda since: 1000.0
        self.run_passes()
        service.world.process.longest_gap = lambda since: 0.0
        self.run_passes(20)
        self.assertEqual(2 * list(service.result.found), asked)

    def test_one_that_is_absent_is_not_dead(self):
        self.die(forced=False)
        self.run_passes(20)
        self.assertEqual({'b'}, self.hosts())
        self.assertEqual([], [
            node for node in self.counts() if node in self.held])

    def test_one_that_is_absent_for_long(self):
        for service in self.services.values():
            service.current = dataclasses.replace(
                service.current, failover_after=100)
        self.run_passes()
        self.die(forced=False)
        self.run_passes(8)
        self.assertEqual({'b'}, self.hosts())
        self.run_passes(4)
        self.assertEqual({'a', 'c'}, self.hosts())

    def test_one_that_is_disabled_and_dead(self):
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=True)
        self.run_passes()
        self.die()
        self.run_passes(2)
        self.assertEqual({'a', 'c'}, self.hosts())

    def test_one_that_is_disabled_and_alive(self):
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=True)
        self.run_passes(3)
        self.assertEqual({'b'}, self.hosts())

    def test_pinned_instances_stay(self):
        for service in self.services.values():
            service.current = dataclasses.replace(
                service.current, fails_over=False)
        self.die()
        self.run_passes(3)
        self.assertEqual({'b'}, self.hosts())

    def test_first_pool_of_its_kind(self):
        # Its row is made by the resource tracker, after the pass.
        for node in self.held:
            self.cloud.nodes[node].kind = pool_base.OTHER
        self.die()
        self.run_passes()
        self.assertEqual({'b'}, self.hosts())
        self.assertEqual(set(self.instances), self.cloud.allocations[
            pools.uuid_of(self.pool_of_b)])
        self.run_passes()
        self.assertEqual({'a', 'c'}, self.hosts())
        self.run_passes()
        self.assert_whole()

    def test_instance_on_another_node_is_left(self):
        # Whoever owns a node in Ironic may write any instance into it.
        self.cloud.instances['i0'] = model.Instance('b', 'another')
        self.die()
        self.run_passes(2)
        self.assertEqual('b', self.cloud.instances['i0'].host)

    def test_allocation_that_rests_elsewhere_is_left_alone(self):
        self.cloud.allocations[pools.uuid_of(self.pool_of_b)].discard('i0')
        self.cloud.allocations['elsewhere'] = {'i0'}
        self.die()
        self.run_passes(2)
        self.assertEqual('b', self.cloud.instances['i0'].host)
        self.assertEqual({'i0'}, self.cloud.allocations['elsewhere'])
        self.assertEqual(['i0'], [
            each.instance for service in self.services.values()
            for each in service.happened(events.AllocationNotMoved)])

    def test_instance_without_an_allocation(self):
        # As after a rebuild that has failed.
        self.cloud.allocations[pools.uuid_of(self.pool_of_b)].discard('i0')
        self.die()
        written = []
        for service in self.services.values():
            self._watch_writes(service, written)
        self.run_passes()
        self.assertEqual({'a', 'c'}, self.hosts())
        taker = self.services[self.cloud.instances['i0'].host]
        self.assertIn('i0', {
            each.instance for each in taker.result.taken})
        self.assertEqual(set(), {
            provider for provider, consumers in self.cloud.allocations.items()
            if 'i0' in consumers})
        # There is room for no more than is moved, and its node stays reserved.
        self.assertIn((taker.host, 1), written)
        self.assertEqual(1, taker.pool.inventory().reserved)
        # Nothing of it is looked for in what the dead has left.
        written.clear()
        self.run_passes(2)
        self.assertEqual([], written)
        self.assertEqual(1, taker.pool.inventory().reserved)

    def test_node_that_was_released_in_the_pass_stays_reserved(self):
        node = self.build('a', 'mine')
        self.run_passes()
        self.die()
        written = []
        self._watch_writes(self.services['a'], written)
        self.services['a'].run_pass(lambda pool: frozenset({node}))
        self.assertEqual([('a', 1)], written)

    def test_room_beside_what_no_node_counts_for(self):
        # As a build on a node that counts for another service still.
        service = self.services['a']
        for number, node in enumerate(sorted(service.pool.free)):
            self.build('a', f'mine{number}', node)
        for uuid in 'x', 'y':
            self.allocate(service.pool.name, uuid)
        self.run_passes()
        self.die()
        self.run_passes()
        self.assertEqual({'a', 'c'}, self.hosts())

    def _watch_writes(self, service, written):
        """Note of which service a pass writes a pool, and what it reserves."""
        write = service.world.placement.write
        service.world.placement.write = lambda pool, found: (
            written.append((service.host, found.reserved)),
            write(pool, found))

    def test_not_while_heartbeats_are_late(self):
        self.die()
        for service in self.services.values():
            service.world.process.longest_gap = lambda since: 1000.0
        self.run_passes()
        self.assertEqual({'b'}, self.hosts())

    def test_not_when_about_to_end(self):
        self.die()
        for service in self.services.values():
            service.world.process.is_ending = lambda: True
        self.run_passes(2)
        self.assertEqual({'b'}, self.hosts())
        # They count: a pool that has no others would go.
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())

    def test_error_stops_one_and_not_the_others(self):
        move = self.services['a'].world.placement.move

        def fail(instance, *others):
            if instance == 'i0':
                raise ValueError('no')
            return move(instance, *others)
        self.die()
        for service in self.services.values():
            service.world.placement.move = fail
        self.run_passes()
        left = {uuid for uuid in self.instances
                if self.cloud.instances[uuid].host == 'b'}
        self.assertEqual({'i0'}, left)
        self.assertEqual(['i0'], [
            each.instance for service in self.services.values()
            for each in service.happened(events.InstanceNotTaken)])

    def test_placement_that_cannot_be_written(self):
        def fail(*_):
            raise ValueError('no')
        self.die()
        for service in self.services.values():
            service.world.placement.write = fail
        self.run_passes()
        self.assertEqual({'b'}, self.hosts())

    def _fail_after_takeover(self, name, matches):
        """Have a read of a fail once it has taken an instance over.

        :param name: the read
        :param matches: says of its argument whether it fails
        """
        nova = self.services['a'].world.nova
        place, read = nova.place_instance, getattr(nova, name)
        placed = []

        def fail(asked):
            if placed and matches(asked):
                raise ValueError('no')
            return read(asked)
        nova.place_instance = lambda *args: (
            placed.append(args[0]), place(*args))[1]
        setattr(nova, name, fail)
        self.die()
        self.run_passes()
        result = self.services['a'].result
        self.assertTrue(placed)
        self.assertEqual(set(placed), {each.instance for each in result.taken})
        self.assertEqual([self.services['a'].pool.name], [
            each.pool for each in self.services['a'].happened(
                events.AllocationsUnknown)])

    def test_error_in_what_is_to_be_given_back(self):
        self.cloud.instances['stray'] = model.Instance('x', 'another')
        self.allocate(self.services['a'].pool.name, 'stray')
        self._fail_after_takeover('instances', lambda uuids: 'stray' in uuids)

    def test_error_in_what_is_to_be_taken_back(self):
        self.build('a', 'without', allocates=False)
        self.run_passes()
        self._fail_after_takeover('pools_of', lambda host: host == 'b')

    def test_pools_of_the_dead_cannot_be_read(self):
        service = self.services['a']
        read = service.world.nova.pools_of

        def fail(host):
            if host == 'b':
                raise ValueError('no')
            return read(host)
        service.world.nova.pools_of = fail
        self.die()
        self.run_passes()
        self.assertEqual({'b', 'c'}, self.hosts())
        (failed,) = service.happened(events.InstanceNotTaken)
        self.assertEqual('b', failed.host)
        service.world.nova.pools_of = read
        self.run_passes(2)
        self.assertEqual({'a', 'c'}, self.hosts())

    def test_sources_are_asked_once_for_pools_of_two_kinds(self):
        for node in self.held[::2]:
            self.cloud.nodes[node].kind = pool_base.OTHER
        self.run_passes(3)
        self.die()
        self.run_passes()
        placement = self.services['a'].world.placement
        read, asked = placement.consumers, []
        placement.consumers = lambda node: (
            asked.append(node), read(node))[1]
        service = self.services['a']
        found = service.result.found
        wanted = {name: [pool_plan.Wanted(
            uuid, node, str(self.cloud.instances[uuid].host))]
            for name, pool in found.items()
            for node in pool.nodes
            if (uuid := self.cloud.nodes[node].instance) is not None}
        self.assertEqual(2, len(wanted))
        service.memory.view = dataclasses.replace(
            service.memory.view,
            states={'b': membership.State.FORCED_DOWN})
        pool_takeover.take_over(
            one_pass.Pass(service.world, service.current, service.memory),
            pool_plan.Seen(
                {}, frozenset(), {}, {},
                rows={pools.uuid_of(name): model.Row('a', pool=name)
                      for name in wanted}),
            pool_takeover.Own(found, lambda pool: frozenset()), wanted)
        self.assertEqual(1, asked.count(pools.uuid_of(self.pool_of_b)))

    def test_at_most_so_many_in_a_pass(self):
        self.useFixture(fixtures.MockPatchObject(takeover, 'MOST', 2))
        self.die()
        self.run_passes()
        for service in self.services.values():
            # As many as there are, where these are fewer.
            self.assertEqual(min(2, sum(
                service.memory.view.ring.owner(node) == service.host
                for node in self.held)), len(service.result.taken))
        self.run_passes(5)
        self.assertEqual({'a', 'c'}, self.hosts())


@ddt.ddt
class InterruptedTestCase(pool_base.TakeoverTestCase):
    """A taker dies between two steps."""

    def interrupt(self, host, port, name):
        """Have a service die before a call of a port, once."""
        world = self.services[host].world
        call = getattr(getattr(world, port), name)

        def die(*args):
            setattr(getattr(world, port), name, call)
            raise BaseException(name)
        setattr(getattr(world, port), name, die)
        try:
            self.services[host].run_pass()
        except BaseException:
            return
        self.fail(f'{host} does not call {name}')

    def test_before_the_allocation_is_moved(self):
        self.die()
        self.interrupt('a', 'placement', 'move')
        self.run_passes(2)
        self.assertEqual({'a', 'c'}, self.hosts())
        self.assert_whole()

    def test_before_the_instance_is_changed_and_the_taker_goes_on(self):
        self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.services['a'].memory = observation.Memory()
        self.run_passes(3)
        self.assertEqual({'a', 'c'}, self.hosts())
        self.assert_whole()

    def test_before_the_instance_is_changed_and_the_taker_is_dead(self):
        self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.die('a')
        self.run_passes(3)
        self.assertEqual({'c'}, self.hosts())
        self.assert_whole()

    def test_before_the_instance_is_changed_and_its_service_comes_back(self):
        dead = self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.come_back(dead)
        self.run_passes(3)
        self.assertEqual({'b'}, self.hosts())
        self.assert_whole()

    def test_its_service_comes_back_and_its_pool_is_full(self):
        dead = self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.come_back(dead)
        # It reserves the node of the instance that has lost its allocation.
        dead.run_pass()
        found = self.cloud.inventories[pools.uuid_of(self.pool_of_b)]
        self.assertEqual((len(self.held), 1), (found.total, found.reserved))
        self.run_passes(3)
        self.assertEqual({'b'}, self.hosts())
        self.assert_whole()

    def test_another_is_to_take_it_and_the_pool_is_reserved(self):
        self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.cloud.services['a'] = dataclasses.replace(
            self.cloud.services['a'], disabled=True)
        self.services['c'].run_pass()
        found = self.cloud.inventories[pools.uuid_of(self.pool_of_b)]
        self.assertEqual(found.total, found.reserved)
        self.run_passes(4)
        self.assertEqual({'c'}, self.hosts())
        self.assert_whole()

    def test_placement_refuses_to_give_it_back(self):
        dead = self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.come_back(dead)
        service = self.services['a']
        service.world.placement.move = lambda *_: False
        service.memory = observation.Memory()
        self.run_passes(2)
        (refused,) = service.happened(events.AllocationNotMoved)
        self.assertEqual(self.pool_of_b, refused.target)
        self.assertIn(refused.instance, self.instances)

    def test_its_service_comes_back_and_the_taker_is_dead(self):
        dead = self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.come_back(dead)
        self.die('a')
        self.run_passes(3)
        self.assertEqual({'b'}, self.hosts())
        self.assert_whole()

    def test_it_is_taken_back_beside_what_no_node_counts_for(self):
        dead = self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.come_back(dead)
        self.die('a')
        # As builds on nodes that count for others still.
        for number in range(len(NODES)):
            self.allocate(self.pool_of_b, f'x{number}')
        self.run_passes(3)
        self.assertEqual({'b'}, self.hosts())
        self.assert_whole()

    def test_node_that_is_released_while_it_is_taken_back(self):
        dead = self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.come_back(dead)
        self.die('a')
        written = []
        write = dead.world.placement.write
        dead.world.placement.write = lambda pool, found: (
            written.append(found.reserved), write(pool, found))
        having = self.cloud.allocations[pools.uuid_of(self.pool_of_b)]
        node = min(node for node in self.held
                   if self.cloud.nodes[node].instance in having)
        for _ in range(3):
            self.cloud.now += 10
            self.cloud.beat('b')
            dead.run_pass(lambda pool: frozenset({node}))
        self.assertEqual([1], written)

    def test_placement_cannot_be_written_to_take_it_back(self):
        dead = self.die()
        self.interrupt('a', 'nova', 'place_instance')
        self.come_back(dead)
        self.die('a')

        def fail(*_):
            raise ValueError('no')
        dead.world.placement.write = fail
        self.run_passes(2)
        self.assertEqual(1, dead.pool.inventory().reserved)
        self.assertEqual(1, len(dead.happened(events.AllocationsUnknown)))

    def _assert_one_place(self):
        """See that each instance, and its allocation, is with one service."""
        for uuid in self.instances:
            known = self.cloud.instances[uuid]
            self.assertEqual({pools.uuid_of(known.node)}, {
                provider for provider, consumers
                in self.cloud.allocations.items() if uuid in consumers})
            self.assertTrue(pools.is_of(known.host, known.node))

    @ddt.data(*pool_base.DIFFERENT_RINGS)
    def test_two_takers_of_different_rings(self, rings):
        before = {host: service.current
                  for host, service in self.services.items()}
        self.differ(pool_base.DIFFERENT_RINGS[rings])
        self.die()
        taken = []
        for _ in range(3):
            self.run_passes()
            for service in self.services.values():
                taken += [each.instance for each in service.result.taken]
            self._assert_one_place()
        # A node may be for two of them, or for none.
        self.assertEqual(sorted(
            str(self.cloud.nodes[node].instance) for node in self.held
            if any(service.memory.view.ring.owner(node) == host
                   for host, service in self.services.items())), sorted(taken))

        for host, service in self.services.items():
            service.current = service.tracker.current = before[host]
        self.run_passes(3)
        self.assertNotIn('b', self.hosts())
        self._assert_one_place()

    @ddt.data(('placement', 'move'), ('nova', 'place_instance'))
    @ddt.unpack
    def test_takers_of_different_rings_at_the_same_time(self, port, call):
        self.differ(pool_base.DIFFERENT_RINGS['peers'])
        self.die()
        first, second = self.services['a'], self.services['c']
        original = getattr(getattr(first.world, port), call)
        seconds = []

        def late(*arguments):
            # All of the other's pass comes between.
            if not seconds:
                seconds.append(second.run_pass())
            return original(*arguments)
        setattr(getattr(first.world, port), call, late)
        for host in 'ac':
            self.cloud.beat(host)
        taken = [each.instance for each in first.run_pass().taken]
        taken += [each.instance for each in seconds[0].taken]
        self.assertEqual(self.instances, sorted(taken))
        self._assert_one_place()
        self.run_passes(3)
        self._assert_one_place()
        for uuid in self.instances:
            (holder,) = [
                host for host, service in self.services.items()
                for pool in service.result.found.values()
                if uuid in {str(pool.nodes[node].instance)
                            for node in pool.used}]
            self.assertEqual(self.cloud.instances[uuid].host, holder)


class BuildsTestCase(pool_base.TakeoverTestCase):
    """Builds that were on their way to a service when it died."""

    def wait_for_node(self, uuid, host, **fields):
        self.cloud.instances[uuid] = model.Instance(
            host, self.pool_of_b if host else None, **fields)
        self.allocate(self.pool_of_b, uuid)

    def test_build_that_has_not_reached_ironic_ends(self):
        self.wait_for_node('here', 'b', is_building=True)
        self.wait_for_node('coming', None, is_building=True)
        self.die()
        self.run_passes()
        for uuid in 'here', 'coming':
            self.assertTrue(self.cloud.instances[uuid].is_given_up)
            self.assertNotIn(uuid, self.cloud.allocations[
                pools.uuid_of(self.pool_of_b)])
        (service,) = (each for each in self.services.values()
                      if each.happened(events.BuildEnded))
        self.assertEqual(2, len(service.happened(events.BuildEnded)))

    def test_build_that_the_owner_of_a_node_has_written_there(self):
        self.wait_for_node('coming', None, is_building=True)
        self.cloud.nodes['theirs'] = clouds.Node(instance='coming')
        self.die()
        self.run_passes()
        self.assertTrue(self.cloud.instances['coming'].is_given_up)
        self.assertNotIn('coming', self.cloud.allocations[
            pools.uuid_of(self.pool_of_b)])

    def test_build_of_a_service_whose_name_has_capitals(self):
        self.wait_for_node('here', 'B', is_building=True)
        self.die()
        self.run_passes()
        self.assertTrue(self.cloud.instances['here'].is_given_up)

    def test_allocation_of_a_build_that_was_ended_before_goes(self):
        # Who has ended it has died then.
        self.wait_for_node('ended', None, is_given_up=True)
        self.run_passes()
        self.assertNotIn('ended', self.cloud.allocations[
            pools.uuid_of(self.pool_of_b)])
        self.wait_for_node('ended', None, is_given_up=True)
        self.die()
        self.run_passes()
        self.assertNotIn('ended', self.cloud.allocations[
            pools.uuid_of(self.pool_of_b)])

    def test_build_that_ironic_has_is_taken_over(self):
        self.cloud.instances['i0'] = dataclasses.replace(
            self.cloud.instances['i0'], is_building=True, task='spawning')
        self.die()
        self.run_passes()
        self.assertIn(self.cloud.instances['i0'].host, {'a', 'c'})
        self.assertFalse(self.cloud.instances['i0'].is_given_up)
        self.assertIn('spawning', {
            each.task for service in self.services.values()
            for each in service.result.taken})

    def test_build_that_another_service_has_is_left(self):
        self.wait_for_node('other', 'a', is_building=True)
        self.die()
        self.run_passes()
        self.assertFalse(self.cloud.instances['other'].is_given_up)

    def test_builds_of_the_living_go_on(self):
        self.wait_for_node('here', 'b', is_building=True)
        self.run_passes(3)
        self.assertFalse(self.cloud.instances['here'].is_given_up)
        self.assertIn('here', self.cloud.allocations[
            pools.uuid_of(self.pool_of_b)])

    def test_build_for_one_that_is_disabled_and_dead_ends(self):
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=True)
        self.wait_for_node('here', 'b', is_building=True)
        self.die()
        self.run_passes()
        self.assertTrue(self.cloud.instances['here'].is_given_up)

    def test_delete_that_ironic_is_done_with_goes_on_elsewhere(self):
        self.wait_for_node('here', 'b', task='deleting')
        self.die()
        self.run_passes()
        known = self.cloud.instances['here']
        self.assertIn(known.host, {'a', 'c'})
        self.assertTrue(pools.is_of(known.host, known.node))
        self.assertIn(('here', 'deleting', known.node), [
            (each.instance, each.task, each.node)
            for service in self.services.values()
            for each in service.result.taken])
        self.assertIn(
            events.InstanceTaken(str(known.node), 'here', 'b', True),
            [event for service in self.services.values()
             for event in service.result.happened])

    def test_what_is_to_be_finished_goes_on_elsewhere(self):
        for fields in ({'task': 'shelving'}, {'is_offloaded': True},
                       {'is_offloaded': True, 'task': 'spawning'}):
            uuid = f'to-finish-{len(self.cloud.instances)}'
            self.wait_for_node(uuid, 'b', **fields)
            # The first of these is the last thing that its service did.
            if fields == {'task': 'shelving'}:
                for consumers in self.cloud.allocations.values():
                    consumers.discard(uuid)
        self.die()
        self.run_passes()
        found = [known for uuid, known in self.cloud.instances.items()
                 if uuid.startswith('to-finish')]
        self.assertEqual(3, len(found))
        for known in found:
            self.assertIn(known.host, {'a', 'c'})
            self.assertTrue(pools.is_of(known.host, known.node))

    def test_unshelving_that_was_on_its_way_ends(self):
        self.wait_for_node('new', None, task='unshelving', is_offloaded=True)
        self.die()
        self.run_passes()
        self.assertEqual(model.Instance(None, None, is_offloaded=True),
                         dataclasses.replace(
                             self.cloud.instances['new'], node=None))
        self.assertNotIn('new', set().union(*self.cloud.allocations.values()))

    def test_delete_of_one_that_is_absent_is_left_to_it(self):
        self.wait_for_node('here', 'b', task='deleting')
        self.die(forced=False)
        self.run_passes(20)
        self.assertEqual('b', self.cloud.instances['here'].host)

    def test_error_does_not_fail_the_pass(self):
        def fail(_):
            raise ValueError('no')
        self.die()
        for service in self.services.values():
            service.world.placement.reserve_all = fail
        self.run_passes()
        self.assertEqual(1, sum(
            len(service.happened(events.RecordNotRemoved))
            for service in self.services.values()))
