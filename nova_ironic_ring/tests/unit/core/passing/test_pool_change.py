# SPDX-License-Identifier: Apache-2.0

"""Services of one ring that change from the ring driver to pools, and back."""

import dataclasses
import os
import random

import fixtures
from oslotest import base

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.taking import leftovers
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import base as core_base
from nova_ironic_ring.tests.unit.core import pool_base

NODES, KIND = pool_base.NODES, pool_base.KIND
_STORIES = int(os.environ.get('SIMULATION_EXAMPLES', '40')) // 2


class RingService(core_base.WithTracker):
    """A service with the ring driver, and what Nova's tracker makes of it."""

    def __init__(self, cloud, host, **options):
        self.cloud = cloud
        self.host = host
        self.current = settings.Settings(host, **options)
        self.tracker = clouds.connect(cloud, self.current)
        self.world = self.tracker.world
        self.result = node_places.PassResult()

    def run_pass(self):
        self.tracker.current = self.current
        self.result = passes.run(
            self.world, self.memory, self.current, node_places.Nodes())
        self.memory = self.result.memory
        for name in sorted(self.world.nova.pools_of(self.host)):
            if leftovers.is_deleted(one_pass.Pass(
                    self.world, self.current, self.memory), name):
                del self.cloud.rows[pools.uuid_of(name)]
        self.tracker.track(self.result)
        return self.result

    def nodes(self):
        """The nodes that are recorded for it."""
        return {node for node, row in self.cloud.rows.items()
                if row.owner == self.host and row.pool is None}

    def happened(self, kind):
        return [each for each in self.result.happened
                if isinstance(each, kind)]


KINDS = {'ring': RingService, 'pool': pool_base.Service}


class Interrupt(BaseException):
    """A service dies."""


class ChangeTestCase(base.BaseTestCase):
    """Three services, each of which has an instance on each other node."""

    HOSTS = ('a', 'b', 'c')

    def setUp(self):
        super().setUp()
        self.begin('ring')

    def begin(self, driver):
        """Begin with services that all have one driver."""
        self.cloud = clouds.Cloud(
            nodes={node: clouds.Node() for node in NODES})
        self.services = {}
        for host in self.HOSTS:
            self.start(host, driver)
        self.run_passes(6)
        self.instances: dict[str, str] = {}
        for number, node in enumerate(NODES[:15]):
            self.build(f'i{number}', node)
        self.run_passes(2)
        self.assert_whole()

    def build(self, uuid, node):
        """Put an instance on a node."""
        (host,) = (host for host, service in self.services.items()
                   if node in service.nodes())
        self.cloud.nodes[node].instance = uuid
        self.instances[uuid] = node
        if isinstance(self.services[host], RingService):
            self.cloud.instances[uuid] = model.Instance(host, node)
            return
        pool = self.services[host].pool
        self.cloud.instances[uuid] = model.Instance(host, pool.name)
        self.cloud.allocations.setdefault(pool.uuid, set()).add(uuid)

    def start(self, host, driver, **options):
        """Start a service, as a new process."""
        self.cloud.beat(host)
        self.cloud.services[host] = dataclasses.replace(
            self.cloud.services[host], forced_down=False)
        self.services[host] = KINDS[driver](self.cloud, host, **options)
        return self.services[host]

    def die(self, host, forced=True):
        """Have a service end, and say that it is down."""
        self.cloud.services[host] = dataclasses.replace(
            self.cloud.services[host], forced_down=forced)
        return self.services.pop(host)

    def run_passes(self, count=1):
        for _ in range(count):
            self.cloud.now += 10
            for host in self.services:
                self.cloud.beat(host)
            for service in self.services.values():
                service.run_pass()

    def interrupt(self, host, call):
        """Have a service die before a call, once.

        :returns: whether it has made the call
        """
        world = self.services[host].world
        port, name = call
        made = getattr(getattr(world, port), name)

        def die(*args):
            raise Interrupt()
        setattr(getattr(world, port), name, die)
        try:
            self.services[host].run_pass()
        except Interrupt:
            return True
        finally:
            setattr(getattr(world, port), name, made)
        return False

    def providers_of(self, uuid):
        placement = clouds.Placement(self.cloud)
        return {provider for provider in {
            *self.cloud.nodes, *self.cloud.allocations}
            if uuid in placement.consumers(provider)}

    def assert_whole(self):
        """All is with the living, each at one place, and counted once."""
        for uuid, node in self.instances.items():
            known = self.cloud.instances[uuid]
            service = self.services[known.host]
            self.assertIn(node, service.nodes())
            is_in_pool = isinstance(service, pool_base.Service)
            self.assertEqual(is_in_pool, pools.is_of(known.host, known.node))
            if not is_in_pool:
                self.assertEqual(node, known.node)
            self.assertEqual({pools.provider(known.node)},
                             self.providers_of(uuid))
        self.assertEqual(sorted(NODES), sorted(
            node for service in self.services.values()
            for node in service.nodes()))
        recorded = {node for node, row in self.cloud.rows.items()
                    if row.pool is None}
        self.assertEqual(recorded, {
            node for service in self.services.values()
            if isinstance(service, RingService) for node in service.nodes()})
        self.assertEqual(recorded, self.cloud.providers)
        for service in self.services.values():
            if isinstance(service, RingService):
                self.assertEqual(frozenset(),
                                 service.world.nova.pools_of(service.host))
                continue
            for pool in service.result.found.values():
                self.assertEqual(0, pool.inventory().reserved)


class RollingTestCase(ChangeTestCase):

    def test_there_and_back_service_by_service(self):
        for driver in 'pool', 'ring', 'pool':
            for host in self.HOSTS:
                owners = {uuid: known.host for uuid, known
                          in self.cloud.instances.items()}
                self.start(host, driver)
                self.run_passes(3)
                self.assert_whole()
                # Nobody has taken anything from anybody.
                self.assertEqual(owners, {
                    uuid: known.host for uuid, known
                    in self.cloud.instances.items()})

    def test_service_that_is_down_for_long(self):
        for driver in 'pool', 'ring':
            for host in self.HOSTS:
                self.die(host, forced=False)
                self.run_passes(20)
                self.start(host, driver)
                self.run_passes(6)
                self.assert_whole()

    def test_it_is_said(self):
        service = self.start('a', 'pool')
        moved, pooled = set(), set()
        for _ in range(3):
            self.run_passes()
            moved |= {each.instance
                      for each in service.happened(events.InstanceMoved)}
            pooled |= {node for each in service.happened(events.NodesPooled)
                       for node in each.nodes}
        self.assertEqual(service.nodes(), pooled)
        self.assertEqual({uuid for uuid, known in self.cloud.instances.items()
                          if known.host == 'a'}, moved)

    def test_what_is_under_way_is_waited_for(self):
        for driver in 'pool', 'ring':
            self.cloud.instances['i0'] = dataclasses.replace(
                self.cloud.instances['i0'], task='rebuilding')
            before = self.cloud.instances['i0']
            self.start(before.host, driver)
            self.run_passes(4)
            self.assertEqual(before, self.cloud.instances['i0'])
            self.assertEqual({pools.provider(before.node)},
                             self.providers_of('i0'))
            self.cloud.instances['i0'] = dataclasses.replace(
                before, task=None)
            self.run_passes(3)
            self.assert_whole()

    def test_nothing_is_built_in_a_pool_that_is_left(self):
        self.start('a', 'pool')
        self.run_passes(3)
        name = self.services['a'].pool.name
        for uuid, known in self.cloud.instances.items():
            self.cloud.instances[uuid] = dataclasses.replace(
                known, task='rebuilding')
        self.start('a', 'ring')
        self.run_passes()
        found = self.cloud.inventories[pools.uuid_of(name)]
        self.assertEqual(found.total, found.reserved)

    def test_newcomer_with_pools_is_given_its_share(self):
        self.start('d', 'pool')
        self.run_passes(8)
        self.assert_whole()
        self.assertNotEqual(set(), self.services['d'].nodes())

    def test_newcomer_with_the_ring_driver_is_given_its_share(self):
        for host in self.HOSTS:
            self.start(host, 'pool')
            self.run_passes(3)
        self.start('d', 'ring')
        self.run_passes(8)
        self.assert_whole()
        self.assertNotEqual(set(), self.services['d'].nodes())

    def test_record_of_a_live_service_wins(self):
        ring = self.services['b']
        self.start('a', 'pool')
        self.run_passes(3)
        node = min(self.services['a'].pool.free)
        self.cloud.rows[node] = clouds.Row('b')
        core_base.say(self.cloud, 'b', ring=None)
        self.services['a'].run_pass()
        self.assertNotIn(node, self.services['a'].nodes())
        # Until its owner acknowledges the ring.
        ring.tracker.process.tracked_nodes.add(node)
        self.run_passes(3)
        self.assertIn(node, self.services['a'].nodes())
        self.assertNotIn(node, self.cloud.rows)

    def test_node_that_its_owner_is_to_build_on_is_left(self):
        self.start('a', 'pool')
        self.run_passes(3)
        node = min(self.services['a'].pool.free)
        self.cloud.rows[node] = clouds.Row('b')
        self.cloud.allocations[node] = {'build'}
        self.services['a'].run_pass()
        self.assertNotIn(node, self.services['a'].nodes())
        self.assertEqual('b', self.cloud.rows[node].owner)

    def test_provider_that_a_tracker_has_made_once_more(self):
        self.start('a', 'pool')
        self.run_passes(3)
        node = min(self.services['a'].pool.free)
        self.cloud.rows[node] = clouds.Row('b')
        self.services['a'].run_pass()
        self.cloud.providers.add(node)
        self.run_passes()
        self.assert_whole()

    def _drop(self):
        """Have a take a node of b into a pool, and return the node."""
        self.start('a', 'pool')
        self.run_passes(3)
        node = min(self.services['a'].pool.free)
        self.cloud.rows[node] = clouds.Row('b')
        self.cloud.providers.add(node)
        self.services['a'].run_pass()
        self.assertNotIn(node, self.cloud.rows)
        self.assertNotIn(node, self.cloud.providers)
        return node

    def test_provider_of_a_node_that_another_has_taken_since(self):
        for owner in 'c', 'b':
            node = self._drop()
            # The ring maps the node to another now.
            self.cloud.services['a'] = dataclasses.replace(
                self.cloud.services['a'], disabled=True)
            self.cloud.rows[node] = clouds.Row(owner)
            self.cloud.providers.add(node)
            self.services['a'].run_pass()
            self.assertIn(node, self.cloud.providers)
            self.begin('ring')

    def test_records_cannot_be_read_to_drop_providers_again(self):
        node = self._drop()
        self.cloud.providers.add(node)
        service = self.services['a']
        read = service.world.nova.rows

        def fail(nodes):
            if list(nodes) == [node]:
                raise ValueError('no')
            return read(nodes)
        service.world.nova.rows = fail
        # The pass itself reads those of all free nodes together.
        service.run_pass()
        self.assertIn(node, self.cloud.providers)
        self.assertEqual([node], [
            each.node for each in service.happened(events.RecordNotRemoved)])

    def test_no_record_of_a_node_stays_until_there_is_a_pool(self):
        # The others know the service by its member record.
        for node in self.cloud.nodes.values():
            node.instance = None
        self.cloud.instances.clear()
        self.instances.clear()
        service = self.start('a', 'pool')
        result = passes.run(
            service.world, service.memory, service.current,
            pool_places.Pools())
        self.assertNotIn('a', [
            row.owner for row in self.cloud.rows.values()])
        self.assertEqual(1, len(result.found))
        self.assertIn('a', self.cloud.members)
        self.run_passes(2)
        self.assert_whole()

    def test_record_stays_while_placement_does_not_answer(self):
        service = self.start('a', 'pool')

        def fail(node):
            raise ValueError('no')
        drop, service.world.placement.drop_provider = (
            service.world.placement.drop_provider, fail)
        before = {node for node, row in self.cloud.rows.items()
                  if row.owner == 'a' and not row.pool}
        self.run_passes(3)
        self.assertEqual(before, {
            node for node, row in self.cloud.rows.items()
            if row.owner == 'a' and not row.pool})
        self.assertEqual(before, {
            each.node for each in service.happened(events.RecordNotRemoved)})
        service.world.placement.drop_provider = drop
        self.run_passes()
        self.assert_whole()


class RefusedTestCase(ChangeTestCase):
    """Placement does not move an allocation."""

    def _refuse(self, service):
        """Run passes of which one fails to move, and say of what it tells."""
        self.addCleanup(setattr, service.world.placement, 'move',
                        service.world.placement.move)
        move = service.world.placement.move
        service.world.placement.move = lambda *_: False
        for _ in range(3):
            self.run_passes()
            told = service.happened(events.AllocationNotMoved)
            if told:
                break
        service.world.placement.move = move
        return {(each.instance, each.target) for each in told}

    def test_own_instances_out_of_pools(self):
        self.start('a', 'pool')
        self.run_passes(4)
        pool = self.services['a'].pool.name
        mine = {uuid for uuid, known in self.cloud.instances.items()
                if known.node == pool}
        self.assertEqual({(uuid, self.instances[uuid]) for uuid in mine},
                         self._refuse(self.start('a', 'ring')))
        self.run_passes(6)
        self.assert_whole()

    def test_instances_of_the_dead_out_of_pools(self):
        self.start('b', 'pool')
        self.run_passes(4)
        self.die('b')
        told = self._refuse(self.services['a'])
        self.assertTrue(told)
        self.assertLessEqual(told, set(self.instances.items()))
        self.run_passes(6)
        self.assertEqual({'a', 'c'}, {
            known.host for known in self.cloud.instances.values()})


class DeadTestCase(ChangeTestCase):
    """A service of one kind is dead, and those of the other kind take over."""

    def test_service_with_the_ring_driver(self):
        for host in 'a', 'c':
            self.start(host, 'pool')
            self.run_passes(3)
        self.die('b')
        self.run_passes(4)
        self.assert_whole()

    def test_service_with_pools(self):
        self.start('b', 'pool')
        self.run_passes(3)
        self.die('b')
        self.run_passes(4)
        self.assertEqual({'a', 'c'}, {
            known.host for known in self.cloud.instances.values()})
        taken = [uuid for uuid in self.cloud.instances]
        self.assertEqual(15, len(taken))
        for host in 'a', 'c':
            self.assertTrue(self.services[host].nodes())
        self.start('b', 'ring')
        self.run_passes(6)
        self.assert_whole()

    def test_at_most_so_many_in_a_pass(self):
        self.start('b', 'pool')
        self.run_passes(4)
        self.die('c')
        self.run_passes(3)
        self.useFixture(fixtures.MockPatchObject(takeover, 'MOST', 2))
        self.die('b')
        counts = []
        for _ in range(20):
            self.run_passes()
            counts.append(len(self.services['a'].result.taken))
        self.assertEqual(2, max(counts))
        self.assertEqual({'a'}, {
            known.host for known in self.cloud.instances.values()})

    def test_pools_of_the_dead_cannot_be_read(self):
        self.start('b', 'pool')
        self.run_passes(4)
        theirs = {uuid for uuid, known in self.cloud.instances.items()
                  if known.host == 'c'}
        self.die('b')
        self.die('c')
        service = self.services['a']
        read = service.world.nova.pools_of

        def fail(host):
            if host == 'b':
                raise ValueError('no')
            return read(host)
        service.world.nova.pools_of = fail
        self.run_passes()
        # Those on nodes are taken all the same, and looked after.
        self.assertEqual(
            theirs, {each.instance for each in service.result.taken})
        (failed,) = service.happened(events.InstanceNotTaken)
        self.assertEqual('b', failed.host)
        service.world.nova.pools_of = read
        self.run_passes(4)
        self.assertEqual({'a'}, {
            known.host for known in self.cloud.instances.values()})
        self.run_passes(2)
        self.assert_whole()

    def test_service_with_pools_comes_back_with_them(self):
        self.start('b', 'pool')
        self.run_passes(3)
        self.die('b')
        self.run_passes(4)
        self.start('b', 'pool')
        self.run_passes(6)
        self.assert_whole()

    def test_instance_that_is_being_deleted_in_a_pool(self):
        self.start('b', 'pool')
        self.run_passes(3)
        pool = self.services['b'].pool
        self.cloud.instances['gone'] = model.Instance(
            'b', pool.name, task='deleting')
        self.cloud.instances['new'] = model.Instance(
            'b', pool.name, is_building=True)
        self.cloud.allocations[pool.uuid] |= {'gone', 'new'}
        self.die('b')
        taken = set()
        for _ in range(3):
            self.cloud.now += 600
            self.run_passes()
            taken |= {each.instance for service in self.services.values()
                      for each in service.result.taken}
        self.assertIn('gone', taken)
        self.assertIn(self.cloud.instances['gone'].host, {'a', 'c'})
        self.assertTrue(self.cloud.instances['new'].is_given_up)

    def test_pinned_instances_stay(self):
        self.start('b', 'pool')
        self.run_passes(3)
        for service in self.services.values():
            service.current = dataclasses.replace(
                service.current, fails_over=False)
        before = dict(self.cloud.instances)
        self.die('b')
        self.run_passes(4)
        self.assertEqual(before, self.cloud.instances)


#: What a change writes, from the first to the last.
TO_POOLS = (('placement', 'write'), ('placement', 'move'),
            ('nova', 'place_instance'), ('placement', 'drop_provider'),
            ('nova', 'delete_row'))
TO_NODES = (('placement', 'reserve_all'), ('placement', 'make_room'),
            ('placement', 'move'), ('nova', 'place_instance'))


class DyingTestCase(ChangeTestCase):

    def _interrupt(self, host, call):
        for _ in range(3):
            self.cloud.now += 10
            for each in self.services:
                self.cloud.beat(each)
            if self.interrupt(host, call):
                return
        self.fail(f'{host} does not call {call}')


class InterruptedTestCase(DyingTestCase):
    """A service dies between any two steps of a change."""

    def _test(self, then):
        """Die at each step, in both directions, and see what comes then."""
        for before, after, calls in (
                ('ring', 'pool', TO_POOLS), ('pool', 'ring', TO_NODES)):
            for call in calls:
                with self.subTest(call=call, after=after):
                    self.begin(before)
                    self.start('a', after)
                    self._interrupt('a', call)
                    then(before, after)
                    self.run_passes(8)
                    self.assert_whole()

    def test_it_goes_on(self):
        self._test(lambda before, after: self.start('a', after))

    def test_it_goes_back(self):
        self._test(lambda before, after: self.start('a', before))

    def test_others_finish(self):
        def die(before, after):
            self.die('a')
            self.run_passes(14)
            self.assertNotIn('a', {
                known.host for known in self.cloud.instances.values()})
            self.start('a', after)
        self._test(die)

    def test_others_finish_that_have_changed(self):
        def die(before, after):
            self.die('a')
            for host in 'b', 'c':
                self.start(host, after)
            self.run_passes(14)
            self.assertNotIn('a', {
                known.host for known in self.cloud.instances.values()})
            self.start('a', before)
        self._test(die)


class InterruptedTakeoverTestCase(DyingTestCase):
    """A service of the other kind dies while it takes over."""

    def _test_takeover(self, then):
        for before, after, calls in (
                ('ring', 'pool', TO_POOLS),
                ('pool', 'ring', TO_NODES[1:])):
            for call in calls:
                with self.subTest(call=call, after=after):
                    self.begin(before)
                    for host in 'a', 'c':
                        self.start(host, after)
                        self.run_passes(3)
                    dead = self.die('b')
                    self._interrupt('a', call)
                    then(before, after, dead)
                    self.run_passes(10)
                    self.assert_whole()
                    for host in self.HOSTS:
                        self.start(host, after)
                        self.run_passes(3)
                    self.run_passes(4)
                    self.assert_whole()

    def test_taker_goes_on(self):
        self._test_takeover(
            lambda before, after, dead: self.start('a', after))

    def test_taker_goes_on_with_the_other_driver(self):
        self._test_takeover(
            lambda before, after, dead: self.start('a', before))

    def test_another_finishes(self):
        def die(before, after, dead):
            self.die('a')
            self.run_passes(14)
            self.assertEqual({'c'}, {
                known.host for known in self.cloud.instances.values()})
            self.start('a', after)
        self._test_takeover(die)

    def test_the_dead_comes_back(self):
        self._test_takeover(
            lambda before, after, dead: self.start('b', before))

    def test_the_dead_comes_back_and_the_taker_is_dead(self):
        def change(before, after, dead):
            self.die('a')
            self.start('b', before)
            self.run_passes(14)
            self.start('a', after)
        self._test_takeover(change)


class ChangedTakerTestCase(DyingTestCase):
    """A taker dies in a takeover, and comes back with the ring driver.

    All had pools, and the allocation is in one that the taker had.
    """

    def begin(self, driver):
        super().begin('pool')
        self.die('b')
        self._interrupt('a', ('nova', 'place_instance'))
        provider = self.services['a'].pool.uuid
        (self.half,) = (uuid for uuid, known in self.cloud.instances.items()
                        if known.host == 'b'
                        and self.providers_of(uuid) == {provider})
        self.start('a', 'ring')

    def test_it_goes_on(self):
        self.run_passes(8)
        self.assertEqual('a', self.cloud.instances[self.half].host)
        self.assert_whole()

    def test_the_dead_comes_back(self):
        for driver in 'pool', 'ring':
            with self.subTest(driver=driver):
                self.start('b', driver)
                self.run_passes(8)
                self.assertEqual('b', self.cloud.instances[self.half].host)
                self.assert_whole()
                self.begin('pool')

    def test_placement_that_does_not_answer(self):
        self.start('b', 'pool')
        service = self.services['a']
        read = service.world.placement.consumers

        def fail(provider):
            raise ValueError('no')
        service.world.placement.consumers = fail
        name = self.services['a'].world.nova.pools_of('a')
        self.run_passes(3)
        self.assertLessEqual(name, {each.pool for each in service.happened(
            events.AllocationsUnknown)})
        service.world.placement.consumers = read
        self.run_passes(8)
        self.assert_whole()

    def test_another_is_to_take_it(self):
        # One that is disabled takes nothing.
        self.cloud.services['a'] = dataclasses.replace(
            self.cloud.services['a'], disabled=True)
        self.run_passes(8)
        self.assertEqual('c', self.cloud.instances[self.half].host)
        self.assert_whole()


class StoryTestCase(DyingTestCase):
    """Whatever befalls services of both kinds, told at random from a seed."""

    def _tell(self, told):
        self.begin(told.choice(tuple(KINDS)))
        for _ in range(25):
            lost = [host for host in self.HOSTS if host not in self.services]
            match told.randrange(6):
                case 0 if lost:
                    self.start(told.choice(lost), told.choice(tuple(KINDS)))
                case 1 if len(self.services) > 1:
                    self.die(told.choice(sorted(self.services)),
                             forced=told.random() < .7)
                case 2 | 3:
                    host = told.choice(sorted(self.services))
                    if self.interrupt(host, told.choice(
                            sorted({*TO_POOLS, *TO_NODES}))):
                        del self.services[host]
                        self.start(host, told.choice(tuple(KINDS)))
                case 4:
                    self.start(told.choice(sorted(self.services)),
                               told.choice(tuple(KINDS)))
            self.cloud.now += told.choice((1, 10, 40))
            for host in self.services:
                self.cloud.beat(host)
            for host in sorted(self.services):
                if told.random() < .8:
                    self.services[host].run_pass()
        for host in self.HOSTS:
            if host not in self.services and told.random() < .5:
                self.start(host, told.choice(tuple(KINDS)))
        for host in self.HOSTS:
            if host not in self.services:
                self.cloud.services[host] = dataclasses.replace(
                    self.cloud.services[host], forced_down=True)
        self.run_passes(10)
        for _ in range(3):
            # What dead services have left is looked for now and then.
            self.cloud.now += 600
            for host in self.services:
                self.cloud.beat(host)
            self.run_passes(4)
        self.assert_whole()

    def test_stories(self):
        for seed in range(_STORIES):
            with self.subTest(seed=seed):
                self._tell(random.Random(seed))
