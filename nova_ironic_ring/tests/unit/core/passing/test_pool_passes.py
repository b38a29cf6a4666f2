# SPDX-License-Identifier: Apache-2.0

"""Passes of services with pools, on a cloud in memory."""

import dataclasses

import fixtures

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.taking.building import unclaimed
from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.unit.core import pool_base

NODES, KIND, OTHER = pool_base.NODES, pool_base.KIND, pool_base.OTHER


class ShareTestCase(pool_base.PoolPassTestCase):
    """Which nodes count for which service."""

    def test_each_node_counts_once(self):
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())
        self.assertEqual(30, sum(
            service.total() for service in self.services.values()))
        for service in self.services.values():
            self.assertEqual(0, service.pool.inventory().reserved)

    def test_each_kind_is_a_pool(self):
        for node in NODES[:15]:
            self.cloud.nodes[node].kind = OTHER
        self.run_passes()
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())
        for host, service in self.services.items():
            self.assertEqual({pools.name(host, KIND), pools.name(host, OTHER)},
                             set(service.result.found))

    def test_each_inventory_is_read_anew_once_in_five_intervals(self):
        for node, trait in zip(NODES, range(10)):
            self.cloud.nodes[node].kind = dataclasses.replace(
                KIND, traits=frozenset({f'CUSTOM_{trait}'}))
        self.run_passes(6, seconds=60)
        service, asked = self.services['a'], []
        service.world.placement.reread = asked.append
        for _ in range(2):
            turns = []
            for _ in range(5):
                asked.clear()
                self.run_passes(seconds=60)
                turns.append(frozenset(asked))
            self.assertEqual(sorted(service.result.found), sorted(
                name for turn in turns for name in turn))
            # Not all of them at once.
            self.assertLess(1, len(set(turns)))

    def test_instance_counts_for_its_service(self):
        service = self.services['a']
        theirs = min(self.services['b'].pool.free)
        self.build('a', 'i', theirs)
        self.run_passes()
        self.assertIn(theirs, service.pool.used)
        self.assertEqual(0, service.pool.inventory().reserved)
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())

    def test_pool_that_novas_own_driver_has_deleted(self):
        self.build('a', 'i')
        self.run_passes()
        service = self.services['a']
        uuid, total = service.pool.uuid, service.total()
        for kept in (self.cloud.rows, self.cloud.inventories,
                     self.cloud.allocations):
            del kept[uuid]
        service.memory = observation.Memory()
        self.run_passes(2)
        self.assertEqual(uuid, service.pool.uuid)
        self.assertIn(uuid, self.cloud.rows)
        # The one with the instance.
        self.assertEqual(pools.Inventory(total, 1),
                         self.cloud.inventories[uuid])

    def test_instance_without_its_allocation_is_reserved(self):
        self.build('a', 'i', allocates=False)
        self.run_passes()
        self.assertEqual(1, self.services['a'].pool.inventory().reserved)

    def test_peer_lists_that_differ_are_told_of(self):
        # Disputes are looked for between records of nodes only.
        self.differ(pool_base.DIFFERENT_RINGS['peers'])
        self.run_passes()
        for host, left_out in ('a', 'c'), ('c', 'a'):
            (event,) = self.services[host].happened(events.PeerListDiffers)
            self.assertEqual({left_out}, event.unlisted)

    def test_instance_that_nobody_has_is_reserved(self):
        for number, node in enumerate(NODES):
            self.cloud.nodes[node].instance = f'i{number}'
        self.run_passes()
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())
        for service in self.services.values():
            found = service.pool.inventory()
            self.assertEqual(found.total, found.reserved)
            self.assertEqual({self.cloud.nodes[node].instance
                              for node in service.nodes()},
                             service.result.orphans)

    def test_cleaning_node_is_reserved(self):
        node = min(self.services['a'].pool.free)
        self.cloud.nodes[node].is_ready = False
        self.run_passes()
        found = self.services['a'].pool.inventory()
        self.assertEqual(1, found.reserved)
        self.assertEqual(30, sum(
            service.total() for service in self.services.values()))

    def test_instance_stays_in_the_pool_that_nova_has_it_in(self):
        node = self.build('a', 'i')
        before = self.services['a'].pool.name
        self.cloud.nodes[node].kind = OTHER
        self.run_passes()
        self.assertEqual({node}, self.services['a'].result.found[before].used)
        self.assertEqual(KIND, self.services['a'].result.found[before].kind)

    def test_instance_that_nova_has_on_another_node_is_told_of_once(self):
        service = self.services['a']
        node, elsewhere = sorted(service.pool.free)[:2]
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('kvm', elsewhere)
        service.run_pass()
        self.assertEqual([events.InstanceElsewhere(node, 'i', 'kvm')],
                         service.happened(events.InstanceElsewhere))
        service.run_pass()
        self.assertEqual([], service.happened(events.InstanceElsewhere))

    def test_instance_that_is_not_in_a_pool_yet_is_reserved(self):
        node = min(self.services['a'].pool.free)
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance(
            'a', node, task='rebuilding')
        self.run_passes()
        self.assertEqual(1, self.counts()[node])
        self.assertEqual(1, self.services['a'].pool.inventory().reserved)
        self.assertEqual(node, self.cloud.instances['i'].node)

    def test_instance_on_another_node_than_ironic_says_does_not_count(self):
        node, elsewhere = sorted(self.services['a'].pool.free)[:2]
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('a', elsewhere)
        self.run_passes()
        self.assertEqual(0, self.counts()[node])

    def test_build_in_another_pool_of_the_same_service(self):
        service = self.services['a']
        node = self.build('a', 'i')
        self.cloud.instances['i'] = model.Instance(
            'a', service.pool.name, is_building=True)
        self.cloud.nodes[node].kind = OTHER
        self.run_passes()
        other = pools.name('a', OTHER)
        self.cloud.instances['i'] = model.Instance('a', other)
        self.run_passes()
        self.assertEqual({node}, set(service.result.found[other].nodes))

    def test_placement_that_does_not_answer(self):
        node = self.build('a', 'i')
        service = self.services['a']

        def fail(_):
            raise ValueError('no')
        service.world.placement.consumers = fail
        service.run_pass()
        self.assertEqual({node}, service.pool.used)
        self.assertEqual([service.pool.name], [
            each.pool for each in service.happened(
                events.AllocationsUnknown)])

    def test_many_small_pools_are_worth_a_warning_once(self):
        for number, node in enumerate(NODES):
            self.cloud.nodes[node].kind = pools.Kind(
                'CUSTOM_BAREMETAL', frozenset({f'CUSTOM_{number}'}))
        for host in 'bc':
            del self.services[host], self.cloud.services[host]
        self.run_passes(30)
        service = self.services['a']
        self.assertEqual(30, len(service.result.found))
        self.assertEqual([], service.happened(events.PoolsTooSmall))
        service.memory = observation.Memory()
        service.run_pass()
        self.assertEqual([events.PoolsTooSmall(30, 30)],
                         service.happened(events.PoolsTooSmall))

    def test_steady_pass_reads_no_instance(self):
        self.build('a', 'i')
        self.run_passes(2)
        service = self.services['a']

        def fail(_):
            raise AssertionError()
        service.world.nova.instances = fail
        service.run_pass()
        self.assertEqual(1, len(service.pool.used))
        self.assertFalse(service.happened(events.PoolsCounted)[0].changed)


class LimitTestCase(pool_base.PoolPassTestCase):
    """A stranger who writes another trait into each of his nodes."""

    HOSTS = ()
    LIMIT = 3
    #: Values of a capability.
    ALIKE = '53833', '56751'

    def setUp(self):
        super().setUp()
        for node in NODES[:5]:
            self.cloud.nodes[node].kind = OTHER
        self.service = self.start('a', pools_limit=self.LIMIT)
        self.run_passes(3)
        self.before = dict(self.service.result.found)

    def write(self, nodes, text=''):
        for number, node in enumerate(nodes):
            self.cloud.nodes[node].kind = pools.Kind(
                'CUSTOM_BAREMETAL', frozenset({f'CUSTOM_{text}_{number}'}))

    def test_new_kinds_end_no_pool(self):
        self.write(NODES[10:])
        self.run_passes()
        service = self.service
        self.assertEqual(self.LIMIT, len(service.result.found))
        for name in self.before:
            self.assertIn(name, service.result.found)
        self.assertEqual(11, len(service.nodes()))
        self.assertEqual(19, len(service.result.left_out))
        (event,) = service.happened(events.PoolsLeftOut)
        self.assertEqual((3, 3, 19), (
            event.limit, event.pools, event.left_out))
        self.assertEqual(
            sorted(set(NODES) - service.nodes()), event.nodes)

    def test_it_is_said_once_and_when_it_is_over(self):
        self.write(NODES[10:])
        self.run_passes()
        self.write(NODES[10:], 'other')
        self.run_passes()
        self.assertEqual([], self.service.happened(events.PoolsLeftOut))
        self.assertEqual(19, len(self.service.result.left_out))
        for node in NODES[10:]:
            self.cloud.nodes[node].kind = KIND
        self.run_passes(2)
        self.assertEqual([], self.service.happened(events.PoolsWithinLimit))
        self.assertEqual(self.before.keys(), self.service.result.found.keys())
        self.assertEqual(30, len(self.service.nodes()))

    def test_words_that_give_the_name_of_another_pool(self):
        # Found by trying some thousand.
        own, strange = (pools.Kind('CUSTOM_BAREMETAL', frozenset(), frozenset({
            ('x', text)})) for text in self.ALIKE)
        name = pools.name('a', own)
        self.assertEqual(name, pools.name('a', strange))
        for node in NODES[5:]:
            self.cloud.nodes[node].kind = own
        self.run_passes()
        # Of most nodes, by now.
        for node in NODES[8:]:
            self.cloud.nodes[node].kind = strange
        self.run_passes(2)
        found = self.service.result.found[name]
        self.assertEqual((own, set(NODES[5:8])),
                         (found.kind, set(found.nodes)))

    def test_passes_in_which_all_is_new(self):
        for number in range(3):
            self.write(NODES[10:], f'{number}')
            self.run_passes()
            self.assertEqual(self.LIMIT, len(self.service.result.found))
        # Each of those that have gone was without nodes.
        self.assertEqual(self.service.result.found.keys(),
                         self.service.world.nova.pools_of('a'))

    def test_kind_of_a_server_whose_service_has_died(self):
        other = self.start('b', pools_limit=self.LIMIT)
        self.run_passes(3)
        node = min(set(NODES[10:]) & set(other.pool.free))
        self.build('b', 'i', node)
        self.write([node], 'mine')
        self.write(set(NODES[10:]) - {node})
        self.run_passes()
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], forced_down=True)
        del self.services['b']
        self.run_passes(3)
        name = pools.name('a', self.cloud.nodes[node].kind)
        self.assertEqual(model.Instance('a', name),
                         self.cloud.instances['i'])
        self.assertIn(node, self.service.result.found[name].used)

    def test_pool_that_a_build_is_on_its_way_to(self):
        name = pools.name('a', OTHER)
        self.allocate(name, 'on its way')
        self.service.current = dataclasses.replace(
            self.service.current, pools_limit=1)
        self.run_passes()
        self.assertEqual({name}, self.service.result.found.keys())
        self.assertEqual(5, len(self.service.result.found[name].nodes))

    def test_servers_of_many_kinds_keep_no_free_nodes_out(self):
        self.write(NODES[10:])
        for number, node in enumerate(NODES[10:]):
            name = pools.name('a', self.cloud.nodes[node].kind)
            self.cloud.nodes[node].instance = f'i{number}'
            self.cloud.instances[f'i{number}'] = model.Instance('a', name)
            self.allocate(name, f'i{number}')
        for node in NODES[:5]:
            self.cloud.nodes[node].kind = pools.Kind('CUSTOM_NEW')
        self.run_passes(2)
        self.assertEqual(set(NODES), self.service.nodes())

    def test_instance_that_nova_does_not_have_makes_no_pool(self):
        for number, node in enumerate(NODES[10:]):
            self.cloud.nodes[node].instance = f'i{number}'
        self.write(NODES[10:])
        self.run_passes()
        self.assertEqual(self.LIMIT, len(self.service.result.found))

    def test_kinds_by_what_is_named(self):
        self.service.current = dataclasses.replace(
            self.service.current, kind_rule=kinds.Rule(
                traits=frozenset({'CUSTOM_FAST'})))
        self.write(NODES[10:])
        self.run_passes()
        self.assertEqual({pools.name('a', KIND), pools.name('a', OTHER)},
                         self.service.result.found.keys())
        self.assertEqual(25, len(self.service.pool.nodes))


class MembersTestCase(pool_base.PoolPassTestCase):
    """What comes of services that come and go."""

    def test_new_one_over_reports_for_one_pass_at_most(self):
        self.start('d')
        self.run_passes()
        self.assertLessEqual(max(self.counts().values()), 2)
        self.run_passes()
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())
        self.assertTrue(self.services['d'].nodes())

    def test_disabled_one_keeps_its_instances_alone(self):
        node = self.build('b', 'i')
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=True)
        self.run_passes(2)
        self.assertEqual({node}, self.services['b'].nodes())
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())

    def test_pools_of_a_disabled_one_without_instances_go(self):
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=True)
        self.run_passes()
        self.assertEqual({}, self.services['b'].result.found)
        self.assertEqual(set(), self.services['b'].world.nova.pools_of('b'))
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=False)
        self.run_passes(2)
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())

    def test_pool_that_a_build_is_on_its_way_to_stays(self):
        name = self.services['b'].pool.name
        self.allocate(name, 'i')
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=True)
        self.run_passes()
        found = self.services['b'].result.found
        self.assertEqual({name}, set(found))
        self.assertEqual(pools.Inventory(1, 1), found[name].inventory())
        self.assertFalse(pool_places.close_unlisted(
            self.services['b'].world, self.services['b'].memory, [name]))

    def test_free_nodes_of_an_absent_one_count_for_the_others(self):
        held = self.build('b', 'i')
        self.run_passes()
        self.run_passes(8, silent=('b',))
        del self.services['b']
        self.assertEqual(dict.fromkeys(set(NODES) - {held}, 1), self.counts())

    def test_nothing_moves_while_nova_stands_still(self):
        before = {host: service.nodes()
                  for host, service in self.services.items()}
        # The heartbeats of all, with those of the database.
        self.cloud.now += 100
        for _ in range(3):
            self.cloud.now += 10
            for service in self.services.values():
                service.run_pass()
                self.assertIs(trust.Trust.BLACKOUT,
                              service.memory.view.trust)
        self.assertEqual(before, {
            host: service.nodes()
            for host, service in self.services.items()})

    def test_start_takes_nothing_from_the_living(self):
        self.services['b'].memory = observation.Memory()
        self.run_passes()
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())


class WorkTestCase(pool_base.PoolPassTestCase):
    """What services say of their passes, and what becomes of failing ones."""

    CYCLE = 60.0

    def setUp(self):
        super().setUp()
        self.run_passes(3, self.CYCLE)

    def state(self):
        return self.services['a'].memory.view.state('b')

    def said(self, host):
        return self.cloud.members[host].last_pass.at

    def fail(self, count=12):
        self.run_passes(count, self.CYCLE, failing=('b',))

    def test_record_says_when_the_last_good_pass_was(self):
        for _ in range(3):
            before = self.said('a')
            self.run_passes(1, self.CYCLE)
            self.assertGreater(self.said('a'), before)

    def test_share_of_a_failing_one_goes_to_the_others(self):
        held = self.build('b', 'i')
        self.run_passes(1, self.CYCLE)
        found = []
        for _ in range(12):
            self.fail(1)
            found += self.services['a'].happened(events.PassesFail)
        self.assertEqual(['b'], [each.host for each in found])
        self.assertIs(membership.State.NOT_WORKING, self.state())
        failing = self.services.pop('b')
        self.assertEqual(dict.fromkeys(set(NODES) - {held}, 1), self.counts())
        # Its instance stays, and nothing more is built there.
        self.assertEqual('b', self.cloud.instances['i'].host)
        counted = self.cloud.inventories[failing.pool.uuid]
        self.assertEqual(counted.total, counted.reserved)

    def test_it_comes_back(self):
        self.fail()
        self.run_passes(2, self.CYCLE)
        self.assertIs(membership.State.MEMBER, self.state())
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())
        counted = self.cloud.inventories[self.services['b'].pool.uuid]
        self.assertEqual(0, counted.reserved)

    def test_it_reads_its_pools_anew_when_it_comes_back(self):
        service, asked = self.services['b'], self.asked_to_reread('b')

        def fail(_):
            raise ValueError('no')
        nodes, service.world.ironic.nodes = service.world.ironic.nodes, fail
        for _ in range(12):
            self.fail(1)
            self.assertRaises(one_pass.UnansweredError, service.run_pass)
        self.assertIs(membership.State.NOT_WORKING, self.state())
        self.assertEqual([], asked)
        service.world.ironic.nodes = nodes
        # Its peers have reserved them, and may be in a pass still.
        self.run_passes(3, self.CYCLE)
        self.assertEqual(2 * [service.pool.name], asked)

    def test_it_reads_its_pools_anew_after_a_pass_that_came_late(self):
        service, asked = self.services['b'], self.asked_to_reread('b')
        # Another task of Nova's took all that time, and nothing failed.
        self.fail()
        self.assertIs(membership.State.NOT_WORKING, self.state())
        self.run_passes(3, self.CYCLE)
        self.assertEqual(2 * [service.pool.name], asked)

    def test_nobody_has_ironic(self):
        service = self.services['a']

        def fail(_):
            raise ValueError('no')
        nodes, service.world.ironic.nodes = service.world.ironic.nodes, fail
        for _ in range(12):
            self.cloud.now += self.CYCLE
            for host in self.services:
                self.cloud.beat(host)
            self.assertRaises(one_pass.UnansweredError, service.run_pass)
        service.world.ironic.nodes = nodes
        service.run_pass()
        self.assertIs(membership.State.MEMBER, self.state())

    def test_service_without_a_pool(self):
        service = self.services['a']
        for node in self.cloud.nodes.values():
            node.kind = None
        self.cloud.rows.clear()
        before = self.said('a')
        self.run_passes(1, self.CYCLE)
        self.assertEqual({}, service.result.found)
        self.assertGreater(self.said('a'), before)
        # The others still know it.
        self.assertEqual({*'abc'}, self.services[
            'b'].memory.view.members)


class ScopeTestCase(pool_base.PoolPassTestCase):
    """A conductor group."""

    HOSTS = ()

    def test_instance_outside_the_group_counts(self):
        for node in NODES[:10]:
            self.cloud.nodes[node].group = 'rack'
        service = self.start('a', scope=settings.Scope('rack'),
                             peers=frozenset('a'))
        self.run_passes(2)
        self.assertEqual(set(NODES[:10]), service.nodes())
        node = self.build('a', 'i')
        self.run_passes()
        self.cloud.nodes[node].group = 'other'
        self.run_passes()
        self.assertIn(node, service.pool.used)

    def test_shards_without_a_list(self):
        for number, node in enumerate(NODES):
            self.cloud.nodes[node].shard = 'xy'[number % 2]
        for host, shard in zip('abcd', 'xxyy'):
            self.start(host, scope=settings.Scope(None, shard))
        self.run_passes(5)
        self.assertEqual(set(NODES), set(self.counts()))
        self.assertEqual({1}, set(self.counts().values()))
        node = self.build('d', 'i')
        # One that has died and is disabled is settled, in whatever shard.
        self.cloud.services['d'] = dataclasses.replace(
            self.cloud.services['d'], forced_down=True, disabled=True)
        del self.services['d']
        for name in 'abc':
            self.services[name].run_pass()
            self.assertIs(
                membership.State.FORCED_DOWN,
                self.services[name].memory.view.state('d'))
        self.run_passes(3)
        self.assertEqual('c', self.cloud.instances['i'].host)
        self.assertIn(node, self.services['c'].pool.used)

    def test_services_without_limits_beside_a_group(self):
        for node in NODES[:10]:
            self.cloud.nodes[node].group = 'rack'
        self.start('u')
        self.run_passes(3)
        node = self.build('u', 'i', NODES[0])
        # It is nobody's.
        self.cloud.nodes[NODES[1]].instance = 'j'
        self.start('g', scope=settings.Scope('rack'))
        self.run_passes(3)
        self.assertEqual(set(NODES), set(self.counts()))
        self.assertEqual({1}, set(self.counts().values()))
        self.assertEqual({*NODES[:10]} - {node}, self.services['g'].nodes())
        # What the last one of the group leaves is for the others.
        self.cloud.services['g'] = dataclasses.replace(
            self.cloud.services['g'], forced_down=True)
        del self.services['g']
        self.run_passes(2)
        self.assertEqual(set(NODES), self.services['u'].nodes())


class UnansweredTestCase(pool_base.PoolPassTestCase):
    """Nova or Ironic do not answer."""

    def fail(self, *_):
        raise ValueError('no')

    def test_nova(self):
        service = self.services['a']
        service.world.nova.instances_of = self.fail
        self.assertRaises(one_pass.UnansweredError, service.run_pass)
        self.assertFalse(service.memory.view.is_trusted)

    def test_ironic(self):
        service = self.services['a']
        before = service.memory.pooled
        service.world.ironic.nodes = self.fail
        self.assertRaises(one_pass.UnansweredError, service.run_pass)
        self.assertTrue(service.memory.view.is_trusted)
        self.assertEqual(before, service.memory.pooled)


class LostBuildsTestCase(pool_base.PoolPassTestCase):
    """A build has a pool, and its message has been lost."""

    def test_it_ends(self):
        service = self.services['a']
        uuid = service.pool.uuid
        self.allocate(service.pool.name, 'i')
        self.cloud.instances['i'] = model.Instance(
            None, None, is_building=True)
        self.run_passes(int(unclaimed.PATIENCE / 60), 60.0)
        self.assertIn('i', self.cloud.allocations[uuid])
        ended = []
        for _ in range(int(2 * unclaimed.SEARCH_INTERVAL / 60) + 2):
            self.run_passes(1, 60.0)
            ended += [host for host, each in self.services.items()
                      if each.happened(events.BuildEnded)]
        self.assertEqual(set(), self.cloud.allocations[uuid])
        # Only one of the services has the pool.
        self.assertEqual(['a'], ended)


class DeletedTestCase(pool_base.PoolPassTestCase):
    """Which records of compute nodes can go."""

    def is_deleted(self, name):
        service = self.services['a']
        return name in pool_places.close_unlisted(
            service.world, service.memory, [name])

    def test_pool_without_nodes_and_instances(self):
        self.assertTrue(self.is_deleted('a.CUSTOM_OLD.01234567'))

    def test_nothing_is_built_there_any_more(self):
        name = 'a.CUSTOM_OLD.01234567'
        self.cloud.inventories[pools.uuid_of(name)] = pools.Inventory(3, 1)
        self.assertTrue(self.is_deleted(name))
        self.assertEqual(pools.Inventory(3, 3),
                         self.cloud.inventories[pools.uuid_of(name)])

    def test_build_that_is_sent_there_after_the_look(self):
        name, placement = (
            'a.CUSTOM_OLD.01234567', self.services['a'].world.placement)
        reserve = placement.reserve_all
        placement.reserve_all = lambda pool: (
            self.allocate(name, 'i'), reserve(pool))
        self.assertFalse(self.is_deleted(name))

    def test_pool_that_nova_has_an_instance_in(self):
        self.cloud.instances['i'] = model.Instance(
            'a', 'a.CUSTOM_OLD.01234567')
        self.assertFalse(self.is_deleted('a.CUSTOM_OLD.01234567'))

    def test_many_pools_cost_one_look_at_nova(self):
        world, names = self.services['a'].world, [
            f'a.CUSTOM_OLD.{number:08}' for number in range(50)]
        self.cloud.instances['i'] = model.Instance('a', names[7])
        self.allocate(names[8], 'j')
        asked = []
        for name in ('instances_on', 'instances_of', 'instances'):
            self.useFixture(fixtures.MonkeyPatch(
                f'nova_ironic_ring.core.world.cloud.Nova.{name}',
                self.counted(asked, name, getattr(world.nova, name))))
        self.assertEqual(
            set(names) - {names[7], names[8]}, pool_places.close_unlisted(
                world, self.services['a'].memory, names))
        self.assertEqual(['instances', 'instances_of'], sorted(asked))

    @staticmethod
    def counted(asked, name, ask):
        def answer(_, *args):
            asked.append(name)
            return ask(*args)
        return answer

    def test_pool_with_an_allocation(self):
        self.allocate('a.CUSTOM_OLD.01234567', 'i')
        self.assertFalse(self.is_deleted('a.CUSTOM_OLD.01234567'))

    def test_pool_that_is_listed(self):
        self.assertFalse(self.is_deleted(self.services['a'].pool.name))

    def test_pool_of_another_service(self):
        self.assertFalse(self.is_deleted('b.CUSTOM_OLD.01234567'))

    def test_node_goes_in_a_pass(self):
        # Where its provider goes first.
        self.assertFalse(self.is_deleted(NODES[0]))

    def test_before_the_first_pass(self):
        self.services['a'].memory = observation.Memory()
        self.assertFalse(self.is_deleted('a.CUSTOM_OLD.01234567'))
        self.assertFalse(self.is_deleted(NODES[0]))


class SlowIronicTestCase(pool_base.PoolPassTestCase):
    """Ironic takes long to list its nodes, and the heartbeats go on."""

    #: Seconds between two heartbeats, two looks, and two passes.
    BEAT, LOOK, PASS = 10, 10, 60

    def setUp(self):
        super().setUp()
        self.a = self.services['a']
        #: When each service sends its next heartbeat, in seconds.
        self.due = {host: self.cloud.now + number
                    for number, host in enumerate(self.HOSTS)}
        #: Seconds that a listing takes.
        self.listing = 40
        #: The last heartbeat of b, in seconds, and whether b has ended.
        self.last, self.is_ended = 0.0, False
        self.looks = []
        list_nodes = self.a.world.ironic.nodes

        def nodes(*args, **kwargs):
            found = list_nodes(*args, **kwargs)
            self.advance(self.listing)
            return found
        self.a.world.ironic.nodes = nodes

    def advance(self, seconds):
        end = self.cloud.now + seconds
        while (at := min(self.due.values())) <= end:
            self.cloud.now = at
            for host, due in self.due.items():
                if due == at:
                    self.due[host] += self.BEAT
                    if host != 'b' or not self.is_ended:
                        self.cloud.beat(host)
                        self.last = at if host == 'b' else self.last
        self.cloud.now = end

    def go_on(self, passes):
        """Run passes, with looks in between, and remember what they see."""
        for _ in range(passes):
            until = self.cloud.now + self.PASS
            self.a.run_pass()
            self.see()
            while self.cloud.now < until:
                self.a.react()
                self.see()
                self.advance(self.LOOK)

    def see(self):
        self.looks.append((self.cloud.now, self.a.memory.view))

    def test_nobody_is_doubted(self):
        self.go_on(20)
        for at, known in self.looks:
            self.assertTrue(known.is_trusted, at)
            self.assertFalse(any(
                map(known.is_lost, self.HOSTS)), at)

    def test_nobody_is_absent_too_early(self):
        self.listing = 30
        self.go_on(3)
        self.a.run_pass()
        self.is_ended = True
        self.go_on(3)
        absent = min(at for at, known in self.looks if known.is_lost('b'))
        self.assertLessEqual(self.a.current.down_time, absent - self.last)
