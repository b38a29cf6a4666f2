# SPDX-License-Identifier: Apache-2.0

"""The pool driver on a Nova, an Ironic and a Placement in memory."""

from unittest import mock

import fixtures
from nova.compute import power_state
from nova.compute import provider_tree
from nova.compute import stats as compute_stats
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler.filters import compute_capabilities_filter
from nova.scheduler import host_manager
from nova.virt.ironic import driver as nova_driver
from openstack import exceptions as sdk_exceptions
from oslo_utils.fixture import uuidsentinel

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import driver
from nova_ironic_ring.compute.instances import guards
from nova_ironic_ring.compute.instances import recovery
from nova_ironic_ring.compute import metrics
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.compute.recording import counters
from nova_ironic_ring.compute import report
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import nova_policy
from nova_ironic_ring.tests.unit.compute import base

NODES = fake_nova.NODES
KIND = base.KIND
POOL = pools.name('me', KIND)


class PoolDriverTestCase(base.DriverTestCase):
    """The service me, alone, with the pool driver."""

    def setUp(self):
        super().setUp()
        self.cloud.rows.clear()
        for host in 'a', 'b':
            del self.cloud.services[host]
        self.nova.computes.clear()
        self.me = self.nova.compute('me', pool_driver.IronicPoolDriver)
        self.driver = self.me.driver
        self.settle()

    def tree(self, name=POOL):
        """Return a provider tree that the driver has updated."""
        tree = provider_tree.ProviderTree()
        tree.new_root(name, pools.uuid_of(name))
        self.driver.update_provider_tree(tree, name)
        return tree.data(name)

    def counted(self):
        """Return total and reserved of the one pool."""
        found = self.tree().inventory['CUSTOM_BAREMETAL']
        return found['total'], found['reserved']

    def build(self, uuid='i'):
        """Have the driver reserve a node for an instance of the pool."""
        self.nova.put(uuid, POOL, 'me', is_building=True)
        instance = self.nova.instance(uuid)
        self.driver.prepare_for_spawn(instance)
        (node,) = (name for name, known in self.cloud.nodes.items()
                   if known.instance == uuid)
        return instance, node

    def name(self, node, role='admin'):
        """Begin a build for a node that somebody with a role has named."""
        self.driver.ring_named_nodes.begin(upstream.Request(
            'i', {'ironic_node': [node]}, nova_context.RequestContext(
                'user', 'project', roles=[role])))

    def settle_with_peer(self):
        """Return the service b, when both have their shares."""
        self.nova.add_service('b')
        other = self.nova.compute('b', pool_driver.IronicPoolDriver)
        for _ in range(3):
            for each in self.me, other:
                each.run_pass()
            self.nova.advance()
        return other

    def allocate(self, *uuids):
        self.cloud.allocations[pools.uuid_of(POOL)] = set(uuids)


class MetricsTestCase(PoolDriverTestCase):

    def test_metrics_of_the_service(self):
        values = {
            family.name: [sample.value for sample in family.samples]
            for family in metrics.Collector(self.me.ring, lambda: 3).collect()}
        self.assertEqual([2], values['nova_ironic_ring_passes'])
        self.assertEqual([1], values['nova_ironic_ring_members'])
        self.assertEqual([3], values['nova_ironic_ring_instances_to_recover'])
        # It has pools, and decides on no node alone.
        self.assertNotIn('nova_ironic_ring_nodes', values)
        self.assertEqual([1], values['nova_ironic_ring_pools'])
        self.assertEqual([len(NODES), 0, 0],
                         values['nova_ironic_ring_pool_nodes'])

    def test_nodes_of_pools(self):
        self.nova.put('i', POOL, 'me')
        self.cloud.nodes[NODES[0]].instance = 'i'
        self.cloud.nodes[NODES[1]].is_ready = False
        self.allocate('i')
        self.settle()
        values = {
            sample.labels['use']: sample.value
            for family in metrics.Collector(self.me.ring, lambda: 0).collect()
            for sample in family.samples if 'use' in sample.labels}
        self.assertEqual({'free': len(NODES) - 2, 'instance': 1,
                          'reserved': 1}, values)

    def test_reservations(self):
        counted = counters.Counters()
        self.useFixture(fixtures.MockPatchObject(
            counters, 'COUNTERS', counted))
        for number, node in enumerate(NODES[1:]):
            self.cloud.nodes[node].instance = f'other {number}'
        for uuid in 'first', 'second':
            self.me.ring.reserve(mock.Mock(uuid=uuid, node=POOL))
        with mock.patch.object(self.me.ring.ironic, 'free_nodes',
                               side_effect=sdk_exceptions.SDKException):
            self.assertRaises(
                sdk_exceptions.SDKException, self.me.ring.reserve,
                mock.Mock(uuid='third', node=POOL))
        families = {family.name: family.samples for family
                    in metrics.Collector(
                        self.me.ring, lambda: 0, counted).collect()}
        self.assertEqual({'reserved': 1, 'no_node': 1, 'failed': 1}, {
            sample.labels['result']: sample.value for sample in families[
                'nova_ironic_ring_reservations']})
        (conflicts,) = families['nova_ironic_ring_reservation_conflicts']
        # Each node but the free one, and that one as well for the second.
        self.assertLessEqual(len(NODES) - 1, conflicts.value)


class LastPassTestCase(PoolDriverTestCase):
    """What the driver says of itself in its member record."""

    def setUp(self):
        super().setUp()
        self.uuid = member.uuid_of('me')

    def said(self):
        return stats.read_member(
            self.nova.row(self.uuid).stats, 'me').last_pass

    def test_profile(self):
        self.assertEqual(
            profile.Profile(pools_limit=100),
            stats.read_profile(
                self.nova.row(self.uuid).stats, 'me'))

    def test_it_goes_on_with_each_good_pass(self):
        for _ in range(2):
            before = self.said()
            self.nova.advance(60)
            self.me.run_pass()
            self.assertGreater(self.said().at, before.at)

    def test_it_stands_still_while_passes_fail(self):
        before = self.said()
        self.nova.ironic.get.side_effect = sdk_exceptions.SDKException
        self.nova.advance(60)
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        # As after an instance was deleted.
        self.me.update(POOL)
        self.assertEqual(before, self.said())


class NodesTestCase(PoolDriverTestCase):
    """What Nova sees for nodes."""

    def test_one_pool_for_all_nodes_of_a_kind(self):
        self.assertEqual([member.name('me'), POOL],
                         self.driver.get_available_nodes())
        self.assertEqual({pools.uuid_of(POOL): POOL,
                          member.uuid_of('me'): member.name('me')},
                         self.driver.get_nodenames_by_uuid())
        self.assertEqual((30, 0), self.counted())

    def test_pool_is_available(self):
        self.assertTrue(self.driver.node_is_available(POOL))
        self.assertFalse(self.driver.node_is_available(
            'me.CUSTOM_GOLD.01234567'))
        self.assertTrue(self.driver.node_is_available(NODES[0]))

    def test_first_question_runs_a_pass(self):
        for ask in ('node_is_available', 'get_available_resource'):
            other = self.nova.compute('me', pool_driver.IronicPoolDriver)
            self.assertTrue(getattr(other.driver, ask)(POOL))

    def test_power_state_is_answered_from_the_cache(self):
        instance, _ = self.build()
        self.me.run_pass()
        self.nova.asked.clear()
        self.assertEqual(power_state.SHUTDOWN,
                         self.driver.get_info(instance).state)
        self.assertEqual([], self.nova.asked)

    def test_aggregates_that_nova_does_not_tell(self):
        self.useFixture(fixtures.MockPatchObject(
            objects.AggregateList, 'get_by_host', side_effect=ValueError))
        self.nova.properties[NODES[0]] = {'capabilities': 'boot:uefi'}
        self.me.run_pass()
        (other,) = set(self.me.run_pass()) - {POOL}
        first = self.me.ring.nova.first
        names = {pools.uuid_of(name): name for name in (POOL, other)}
        tree = provider_tree.ProviderTree()
        for uuid, name in names.items():
            tree.new_root(name, uuid)
        self.me.placement._provider_tree = tree
        # And when Nova has taken the host out of it again.
        for expected in {'one'}, set():
            tree.update_aggregates(first, expected)
            for uuid, name in names.items():
                # From Nova 34 on, the driver is given one root alone.
                given = provider_tree.ProviderTree()
                given.new_root(name, uuid)
                given.update_aggregates(
                    uuid, tree.data(uuid).aggregates)
                self.driver.update_provider_tree(given, name)
                self.assertEqual(expected, given.data(name).aggregates)

    def test_deleted(self):
        self.assertFalse(self.driver.is_node_deleted(POOL))
        self.assertTrue(self.driver.is_node_deleted(
            'me.CUSTOM_GOLD.01234567'))

    def test_deleted_with_an_instance(self):
        self.nova.put('i', 'me.CUSTOM_GOLD.01234567', 'me')
        self.assertFalse(self.driver.is_node_deleted(
            'me.CUSTOM_GOLD.01234567'))

    def test_only_what_is_named_makes_a_pool(self):
        self.configure(pool_capabilities=['boot'], pool_traits=['CUSTOM_FAST'])
        for number, node in enumerate(NODES):
            self.nova.properties[node] = {
                'capabilities': f'mine:{number},boot:uefi'}
            self.cloud.nodes[node].kind = pools.Kind('CUSTOM_BAREMETAL', (
                frozenset({'CUSTOM_FAST', f'CUSTOM_MINE_{number}'})))
        (name,) = self.me.run_pass()
        pool = self.me.ring.result.found[name]
        self.assertEqual(len(NODES), len(pool.nodes))
        self.assertEqual({'CUSTOM_FAST'}, self.tree(pool.name).traits)
        said = self.driver.get_available_resource(pool.name)['stats']
        self.assertEqual('uefi', said['boot'])
        self.assertNotIn('mine', said)
        # What a node says beside it has changed, and does not matter.
        for number, node in enumerate(NODES):
            self.nova.properties[node] = {
                'capabilities': f'mine:x{number},boot:uefi'}
        self.nova.put('i', pool.name, 'me', is_building=True)
        self.driver.prepare_for_spawn(self.nova.instance('i'))
        self.assertIn('i', [
            node.instance for node in self.cloud.nodes.values()])

    def test_capability_that_nova_counts_with_makes_no_pool(self):
        self.nova.properties[NODES[0]] = {'capabilities': 'num_instances:x'}
        self.assertEqual({POOL}, self.me.run_pass())
        self.assertEqual((30, 0), self.counted())

    def test_pools_of_a_stranger(self):
        self.configure(pools_limit=3)
        for number, node in enumerate(NODES[1:]):
            self.nova.properties[node] = {'capabilities': f'mine:{number}'}
        self.assertEqual(3, len(self.me.run_pass()))
        self.assertIn(POOL, self.me.ring.result.found)
        left = self.me.ring.summary()['pools left out']
        self.assertEqual(len(NODES) - 3, len(left))

    def test_instance_that_was_unshelved_in_another_pool(self):
        self.nova.properties[NODES[1]] = {'capabilities': 'gpu:yes'}
        self.settle()
        (other,) = set(self.me.ring.result.found) - {POOL}
        for pool, node in (POOL, NODES[0]), (other, NODES[1]):
            for each in self.cloud.nodes.values():
                each.instance = None
            self.nova.put('i', pool, 'me')
            self.cloud.nodes[node].instance = 'i'
            self.cloud.allocations.clear()
            self.cloud.allocations[pools.uuid_of(pool)] = {'i'}
            self.settle()
            found = self.me.ring.result.found
            self.assertIn(node, found[pool].nodes)
            self.assertEqual({node}, set(found[pool].used))

    def test_many_that_go_cost_one_look_at_nova(self):
        for number, node in enumerate(NODES):
            self.nova.properties[node] = {'capabilities': f'mine:{number}'}
        self.me.run_pass()
        for node in NODES:
            self.nova.properties[node] = {}
        self.me.begin_pass()
        gone = [row.pool for row in self.cloud.rows.values()
                if row.pool not in (None, POOL)]
        self.assertEqual(len(NODES), len(gone))
        self.nova.asked.clear()
        for name in gone:
            self.assertTrue(self.driver.is_node_deleted(name))
        self.assertEqual(['rows of host', 'instances of host'],
                         self.nova.asked)

    def test_deleted_where_placement_does_not_tell(self):
        self.me.placement.get.side_effect = ValueError('no')
        self.assertFalse(self.driver.is_node_deleted(
            'me.CUSTOM_GOLD.01234567'))

    def test_record_of_a_node_of_another_driver_goes_in_a_pass(self):
        self.nova.put('i', NODES[0], 'me')
        for node in NODES[:2]:
            self.cloud.rows[node] = clouds.Row('me')
            self.assertFalse(self.driver.is_node_deleted(node))
        self.nova.change_instance('i', task='rebuilding')
        self.me.run_pass()
        self.assertIn(NODES[0], self.cloud.rows)
        self.assertNotIn(NODES[1], self.cloud.rows)

    def test_two_services(self):
        other = self.settle_with_peer()
        mine, theirs = self.driver.ring_service, other.driver.ring_service
        self.assertEqual(set(NODES), set(mine.nodes) | set(theirs.nodes))
        self.assertEqual(set(), set(mine.nodes) & set(theirs.nodes))
        self.assertEqual([pools.name('b', KIND)],
                         list(theirs.result.found))


class InstancesTestCase(PoolDriverTestCase):
    """Which instances there are, where Nova has them in pools.

    A peer has one in its pool, and one of this service has no node yet.
    """

    def setUp(self):
        super().setUp()
        other = self.settle_with_peer()
        for uuid, host, compute in (('mine', 'me', self.me),
                                    ('theirs', 'b', other)):
            self.put(uuid, host, min(compute.ring.nodes))
        self.nova.put('building', POOL, 'me', is_building=True)
        self.me.run_pass()

    def put(self, uuid, host, node):
        """Have a service have an instance on a node."""
        self.nova.put(uuid, pools.name(host, KIND), host)
        self.cloud.nodes[node].instance = uuid

    def test_those_on_nodes_of_this_service(self):
        self.assertEqual(['mine'], self.driver.list_instance_uuids())
        self.assertEqual([self.nova.instance('mine').name],
                         self.driver.list_instances())
        self.assertEqual(1, self.driver.get_num_instances())

    def test_one_on_a_node_that_the_ring_maps_to_a_peer(self):
        # As where the nodes of its own share were used up.
        node = min(set(NODES) - self.me.ring.nodes.keys() - {
            name for name, known in self.cloud.nodes.items()
            if known.instance})
        self.put('elsewhere', 'me', node)
        self.me.run_pass()
        self.assertEqual({'mine', 'elsewhere'},
                         set(self.driver.list_instance_uuids()))
        self.assertEqual({self.nova.instance(uuid).name
                          for uuid in ('mine', 'elsewhere')},
                         set(self.driver.list_instances()))
        self.assertEqual(2, self.driver.get_num_instances())

    def test_one_that_nova_has_deleted(self):
        self.cloud.deleted['mine'] = self.cloud.instances.pop('mine')
        self.me.run_pass()
        # Nova's task for deleted instances looks for it here.
        self.assertEqual(['mine'], self.driver.list_instance_uuids())
        self.assertEqual(0, self.driver.get_num_instances())

    def test_first_question_runs_a_pass(self):
        for ask, found in (('list_instance_uuids', 'mine'), (
                'list_instances', self.nova.instance('mine').name)):
            again = self.nova.compute('me', pool_driver.IronicPoolDriver)
            self.assertEqual([found], getattr(again.driver, ask)())

    def test_one_exists_that_is_on_a_node(self):
        def exists(uuid):
            return self.driver.instance_exists(self.nova.instance(uuid))
        self.assertTrue(exists('mine'))
        # Whoever has it, as with Nova's own driver.
        self.assertTrue(exists('theirs'))
        self.assertFalse(exists('building'))
        self.driver.prepare_for_spawn(self.nova.instance('building'))
        self.assertTrue(exists('building'))


class ResourceTestCase(PoolDriverTestCase):
    """What the resource tracker is told of a pool."""

    def test_pool_that_this_service_does_not_have(self):
        self.assertRaises(
            exception.ComputeHostNotFound, self.driver.get_available_resource,
            'me.CUSTOM_GOLD.01234567')

    def test_architecture_that_a_capability_hides(self):
        hidden = {'cpu_arch': 'aarch64', 'capabilities': 'cpu_arch:x86_64'}
        self.nova.properties[NODES[0]] = hidden
        self.nova.properties[NODES[1]] = {**hidden, 'cpu_arch': 'beige'}
        found = {}
        for name in self.me.run_pass():
            said = self.driver.get_available_resource(name)
            self.assertEqual('x86_64', said['stats']['cpu_arch'])
            found[tuple(each[0] for each in said['supported_instances'])] = (
                set(self.me.ring.result.found[name].nodes))
        self.assertEqual({
            ('aarch64',): {NODES[0]}, (): {NODES[1]},
            ('x86_64',): set(NODES[2:])}, found)

    def test_identity(self):
        found = self.driver.get_available_resource(POOL)
        self.assertEqual(pools.uuid_of(POOL), found['uuid'])
        self.assertEqual(POOL, found['hypervisor_hostname'])
        self.assertEqual('ironic', found['hypervisor_type'])
        self.assertEqual([('x86_64', 'baremetal', 'hvm')],
                         found['supported_instances'])

    def test_what_filters_ask_for(self):
        for node in NODES:
            self.nova.properties[node] = {'capabilities': 'boot:uefi,raid:1'}
        (name,) = self.me.run_pass()
        found = self.driver.get_available_resource(name)['stats']
        self.assertEqual(
            ('x86_64', 'uefi', '1'),
            (found['cpu_arch'], found['boot'], found['raid']))

    def _passing(self, **wanted):
        """Return what Nova's filter lets a flavor be built on.

        :param wanted: the capabilities that the flavor asks for
        :returns: the value of the capability boot of each pool that passes
        """
        spec = objects.RequestSpec(flavor=objects.Flavor(extra_specs={
            f'capabilities:{name}': value for name, value in wanted.items()}))
        passes = compute_capabilities_filter.ComputeCapabilitiesFilter()
        found = set()
        for name in self.me.run_pass():
            said = self.driver.get_available_resource(name)['stats']
            # As the resource tracker saves it.
            kept = compute_stats.Stats()
            kept.digest_stats(said)
            state = host_manager.HostState('me', name, 'cell')
            state.stats = {key: str(value) for key, value in kept.items()}
            if passes.host_passes(state, spec):
                found.add(said.get('boot'))
        return found

    def test_what_flavors_with_capabilities_find(self):
        for node in NODES[:3]:
            self.nova.properties[node] = {'capabilities': 'boot:uefi,raid:1'}
        for node in NODES[3:6]:
            self.nova.properties[node] = {'capabilities': 'boot:bios,raid:5'}
        every = {'uefi', 'bios', None}
        self.assertEqual(every, self._passing())
        self.assertEqual(every, self._passing(cpu_arch='x86_64'))
        self.assertEqual(set(), self._passing(cpu_arch='aarch64'))
        self.assertEqual({'uefi'}, self._passing(boot='uefi'))
        self.assertEqual({'bios'}, self._passing(boot='bios'))
        self.assertEqual({'bios'}, self._passing(raid='>= 2'))
        self.assertEqual({'uefi', 'bios'}, self._passing(
            boot='<or> uefi <or> bios'))
        # Of one kind each.
        self.assertEqual(set(), self._passing(boot='uefi', raid='5'))
        self.assertEqual(set(), self._passing(secure='true'))

    def test_capability_cannot_speak_for_the_service(self):
        for node in NODES:
            self.nova.properties[node] = {'capabilities': 'ironic_ring:x'}
        (name,) = self.me.run_pass()
        self.assertNotIn(
            'ironic_ring', self.driver.get_available_resource(name)['stats'])

    def test_others_read_how_the_service_is_configured(self):
        found = self.driver.get_available_resource(
            member.name('me'))['stats']
        self.assertIsNotNone(stats.read_profile(found, 'me'))

    def test_others_read_by_which_ring_instances_follow(self):
        def said():
            return stats.read_member(
                self.nova.row(member.uuid_of('me')).stats, 'me')
        self.me.run_pass()
        self.assertFalse(said().follows)
        self.configure(instance_mobility='follow')
        self.me.run_pass()
        self.assertTrue(said().follows)
        ring = self.me.ring
        self.assertEqual(ring.memory.view.ring.fingerprint(
            ring.settings.scope), said().ring)
        self.configure(instance_mobility='failover')
        self.me.run_pass()
        self.assertFalse(said().follows)

    def test_weighers_compare_what_is_free(self):
        for node in NODES:
            self.nova.properties[node] = {
                'memory_mb': 1000, 'local_gb': 10, 'cpus': 4}
        self.me.run_pass()
        before = self.driver.get_available_resource(POOL)
        self.assertEqual((30000, 300, 120), (
            before['memory_mb'], before['local_gb'], before['vcpus']))
        self.allocate('i')
        self.build()
        self.me.run_pass()
        self.nova.conf.config(cpu_allocation_ratio=2.0)
        found = self.driver.get_available_resource(POOL)
        # Less what the tracker takes off for the flavor: 29 nodes.
        self.assertEqual((29000, 290, 116 * 2), (
            found['memory_mb'] - 512, found['local_gb'] - 6,
            found['vcpus'] * 2 - 2))

    def test_flavors_are_read_once(self):
        self.allocate('i')
        self.build()
        first = self.me.asked_in_a_pass().count('instances')
        second = self.me.asked_in_a_pass().count('instances')
        self.assertEqual(first - 1, second)
        found = self.driver.get_available_resource(POOL)
        # What the tracker takes off for the flavor of the instance.
        self.assertEqual(512, found['memory_mb'])

    def test_traits(self):
        for node in NODES:
            self.cloud.nodes[node].kind = pools.Kind(
                'CUSTOM_BAREMETAL', frozenset({'CUSTOM_FAST'}))
        (name,) = self.me.run_pass()
        self.assertEqual({'CUSTOM_FAST'}, set(self.tree(name).traits))

    def test_pool_that_is_not_known_is_left_as_it_is(self):
        name = 'me.CUSTOM_GOLD.01234567'
        self.assertEqual({}, self.tree(name).inventory)

    def test_report(self):
        found = report.make(self.driver.ring_service)['last pass']
        self.assertEqual({POOL: {'nodes': 30, 'free': 30, 'instances': 0}},
                         found['pools'])


class ReserveTestCase(PoolDriverTestCase):
    """A node for an instance."""

    def test_node_of_the_pool(self):
        self.build()
        self.me.run_pass()
        # Its allocation is not there: nothing more is to be built there.
        self.assertEqual((30, 1), self.counted())
        self.allocate('i')
        self.me.run_pass()
        self.assertEqual((30, 0), self.counted())

    def test_each_build_another_node(self):
        nodes = {self.build(f'i{number}')[1] for number in range(30)}
        self.assertEqual(set(NODES), nodes)
        # Without a single conflict.
        self.assertEqual(30, self.fake_updates())

    def fake_updates(self):
        return self.nova.ironic.update_node.call_count

    def test_none_left_has_nova_try_another_service(self):
        for node in self.cloud.nodes.values():
            node.instance = 'other'
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.build)
        self.assertIn('has no free node', str(error))

    def counted_as_failed(self):
        """Say whether Nova counts the build that has just ended as failed."""
        count = mock.Mock()
        self.me.manager.rt.build_failed = count
        upstream.excuse_builds(
            self.driver, lambda: self.driver.ring_refusals.is_refused)
        self.me.manager.rt.build_failed(POOL)
        return count.called

    def test_build_that_is_refused_is_no_failed_build(self):
        self.build('built')
        # What fails from then on is a deployment.
        self.assertTrue(self.counted_as_failed())
        for node in self.cloud.nodes.values():
            node.instance = node.instance or 'other'
        self.assertRaises(exception.ComputeResourcesUnavailable, self.build)
        self.assertFalse(self.counted_as_failed())
        # The next one, in the same thread.
        self.driver._begin_build(mock.Mock())
        self.assertTrue(self.counted_as_failed())

    def test_build_that_ironic_does_not_answer_is_a_failed_build(self):
        self.test_ironic_that_does_not_answer()
        self.assertTrue(self.counted_as_failed())

    def test_instance_that_still_has_a_node(self):
        self.cloud.nodes[NODES[3]].instance = 'i'
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.build)
        self.assertIn(f'still has node {NODES[3]}', str(error))

    def test_ironic_that_does_not_answer(self):
        self.nova.ironic.update_node.side_effect = (
            sdk_exceptions.SDKException('no'))
        self.nova.ironic.get_node.side_effect = (
            sdk_exceptions.SDKException('no'))
        self.assertRaises(
            exception.ComputeResourcesUnavailable, self.build)

    def test_clean_up_after_none_was_left(self):
        for node in self.cloud.nodes.values():
            node.instance = 'other'
        self.assertRaises(
            exception.ComputeResourcesUnavailable, self.build)
        instance = self.nova.instance('i')
        self.driver.clean_networks_preparation(instance, [])
        self.driver.failed_spawn_cleanup(instance)
        self.assertNotIn('cannot be cleaned up', self.log.output)

    def test_clean_up_of_a_node_that_was_deployed_meanwhile(self):
        # By a service that was silent when this one took over its build.
        instance, node = self.build()
        self.nova.provision_states[node] = 'active'
        with mock.patch.object(
                nova_driver.IronicDriver, '_unprovision') as unprovision:
            self.driver.failed_spawn_cleanup(instance)
        (taken_down,) = unprovision.call_args_list
        self.assertEqual(('i', node), (
            taken_down.args[0].uuid, taken_down.args[1].id))
        # It is being cleaned: nothing can be built there yet.
        self.assertEqual((30, 1), self.counted())

    def test_clean_up_that_ironic_refuses(self):
        # Nova would build again where it was to abort.
        instance, node = self.build()
        self.nova.provision_states[node] = 'active'
        with mock.patch.object(
                nova_driver.IronicDriver, '_unprovision',
                side_effect=exception.NovaException('no')):
            self.driver.failed_spawn_cleanup(instance)
        self.assertIn('Cannot clean up after the failed build of instance i',
                      self.log.output)

    def test_clean_up_of_a_node_that_another_instance_has_by_now(self):
        # It was frozen when it had read its node, and its build was ended.
        instance, node = self.build()
        seen = self.nova.node(node)

        def fail(driver, context, built, *_, **__):
            self.cloud.nodes[node].instance = 'another'
            driver._cleanup_deploy(seen, built)
            raise exception.InstanceDeployFailure('it is active')
        with mock.patch.object(nova_driver.IronicDriver, 'spawn', fail):
            self.assertRaises(
                exception.InstanceDeployFailure, self.driver.spawn, None,
                instance, None, [], None, {})
        self.assertEqual('another', self.cloud.nodes[node].instance)
        self.assertIn('has instance another now', self.log.output)

    def test_delete_of_a_node_that_another_instance_has_by_now(self):
        # It was frozen when it had read its node, and a peer has finished the
        # delete since.
        instance, node = self.build()
        self.nova.provision_states[node] = 'active'
        seen = self.nova.node(node)
        for other in 'another', None:
            self.cloud.nodes[node].instance = other
            with mock.patch.object(
                    self.driver, '_validate_instance_and_node',
                    return_value=seen), mock.patch.object(
                        nova_driver.IronicDriver, '_unprovision') as taken:
                self.driver.destroy(None, instance, None)
            # Ironic itself refuses it for a node that is free.
            self.assertEqual(0 if other else 1, taken.call_count)
        self.assertIn('has instance another now', self.log.output)

    def test_clean_up_of_an_instance_that_was_active(self):
        # Which somebody has asked to be built once more.
        instance, node = self.build()
        self.nova.provision_states[node] = 'active'
        self.nova.launched.add('i')
        with mock.patch.object(
                nova_driver.IronicDriver, '_unprovision') as unprovision:
            self.driver.failed_spawn_cleanup(instance)
        unprovision.assert_not_called()
        self.assertEqual('i', self.cloud.nodes[node].instance)
        self.assertIn('its node is left alone', self.log.output)

    def test_instance_of_a_pool_that_is_no_more(self):
        self.nova.put('i', 'me.CUSTOM_GOLD.01234567', 'me', is_building=True)
        self.assertRaises(
            exception.ComputeResourcesUnavailable,
            self.driver.prepare_for_spawn, self.nova.instance('i'))

    def test_instance_on_a_node_of_ironic_is_left_to_nova(self):
        self.nova.put('i', NODES[3], 'me', is_building=True)
        self.driver.prepare_for_spawn(self.nova.instance('i'))
        self.assertEqual('i', self.cloud.nodes[NODES[3]].instance)


class NamedNodeTestCase(PoolDriverTestCase):
    """A build whose request names a node."""

    def setUp(self):
        super().setUp()
        self.useFixture(nova_policy.NovaPolicy())

    def ask(self, node, role='admin'):
        """Ask for an instance on a node, and say what has become of it."""
        self.name(node, role)
        try:
            return self.build()[1]
        except exception.InstanceUnacceptable as error:
            self.assertEqual([], [
                name for name, known in self.cloud.nodes.items()
                if known.instance == 'i'])
            return str(error)

    def test_it_gets_this_one(self):
        for node in NODES[17], NODES[3]:
            self.assertEqual(node, self.ask(node))
            self.cloud.nodes[node].instance = None

    def test_it_gets_no_other(self):
        self.assertIn('may force a host', self.ask(NODES[0], 'member'))
        self.cloud.nodes[NODES[1]].instance = 'other'
        self.assertIn('has an instance', self.ask(NODES[1]))
        self.cloud.nodes[NODES[2]].kind = pools.Kind('CUSTOM_GOLD')
        self.assertIn(f'not of the kind of pool {POOL}', self.ask(NODES[2]))
        self.assertIn('Ironic has no node', self.ask(uuidsentinel.nowhere))
        self.cloud.nodes[NODES[4]].is_ready = False
        self.assertIn('nothing can be built', self.ask(NODES[4]))

    def test_ironic_that_does_not_answer(self):
        # Another service may reach it.
        self.nova.ironic.get.side_effect = sdk_exceptions.SDKException('no')
        self.assertRaises(exception.ComputeResourcesUnavailable, self.ask,
                          NODES[0])

    def test_where_the_scheduler_has_named_a_node(self):
        self.nova.put('i', NODES[3], 'me', is_building=True)
        instance = self.nova.instance('i')
        self.name(NODES[4])
        error = self.assertRaises(
            exception.InstanceUnacceptable, self.driver.prepare_for_spawn,
            instance)
        self.assertIn(f'and not node {NODES[4]}', str(error))
        self.assertIsNone(self.cloud.nodes[NODES[3]].instance)


class DestroyTestCase(PoolDriverTestCase):
    """A node that has lost its instance."""

    def destroy(self, instance, node):
        def unprovision(*_, **__):
            self.cloud.nodes[node].instance = None
            self.nova.provision_states[node] = 'cleaning'
        with mock.patch.object(nova_driver.IronicDriver, 'destroy',
                               side_effect=unprovision):
            self.driver.destroy(mock.Mock(), instance, [])

    def written(self):
        """Return total and reserved as Placement was told at once."""
        (call,) = self.me.placement.put.call_args_list
        self.assertIn(pools.uuid_of(POOL), call.args[0])
        found = call.kwargs['data']['inventories']
        return (found['CUSTOM_BAREMETAL']['total'],
                found['CUSTOM_BAREMETAL']['reserved'])

    def test_node_is_reserved_before_the_call_returns(self):
        instance, node = self.build()
        self.allocate('i')
        self.me.run_pass()
        self.destroy(instance, node)
        self.assertEqual((30, 1), self.written())
        # And where the tracker writes it, which it does next.
        self.assertEqual((30, 1), self.counted())

    def test_pass_corrects_it(self):
        instance, node = self.build()
        self.allocate('i')
        self.me.run_pass()
        self.destroy(instance, node)
        self.allocate()
        self.me.run_pass()
        self.assertEqual((30, 1), self.counted())
        self.nova.provision_states[node] = 'available'
        self.me.run_pass()
        self.assertEqual((30, 0), self.counted())

    def test_build_that_fails_before_the_next_pass(self):
        instance, node = self.build()
        self.destroy(instance, node)
        self.assertEqual((30, 1), self.written())

    def test_pool_of_which_no_node_has_its_kind_any_more(self):
        instance, node = self.build()
        self.allocate('i')
        gold = pools.Kind('CUSTOM_BAREMETAL', frozenset({'CUSTOM_GOLD'}))
        for each in self.cloud.nodes.values():
            each.kind = gold
        # As after a restart.
        self.me = self.nova.compute('me', pool_driver.IronicPoolDriver)
        self.driver = self.me.driver
        self.me.run_pass()
        self.assertIsNone(self.me.ring.result.found[POOL].kind)
        self.cloud.inventories[pools.uuid_of(POOL)] = pools.Inventory(1, 0)
        self.me.placement.put.reset_mock()
        self.destroy(instance, node)
        self.assertEqual((1, 1), self.written())

    def test_placement_that_does_not_answer(self):
        self.me.placement.put.side_effect = ValueError('no')
        instance, node = self.build()
        self.destroy(instance, node)
        self.assertIn('Cannot write to Placement yet', self.log.output)
        self.assertEqual((30, 1), self.counted())

    def test_instance_without_a_node(self):
        self.nova.put('i', POOL, 'me')
        self.driver.destroy(mock.Mock(), self.nova.instance('i'), [])
        self.me.placement.put.assert_not_called()

    def test_instance_of_another_service_is_left_alone(self):
        instance, node = self.build()
        self.nova.add_service('b')
        self.nova.put('i', POOL, 'b')
        with mock.patch.object(nova_driver.IronicDriver, 'destroy') as call:
            self.driver.destroy(mock.Mock(), instance, [])
        call.assert_not_called()
        self.assertEqual('i', self.cloud.nodes[node].instance)

    def test_destroy_that_fails_releases_nothing(self):
        instance, node = self.build()
        with mock.patch.object(nova_driver.IronicDriver, 'destroy',
                               side_effect=ValueError('no')):
            self.assertRaises(ValueError, self.driver.destroy, mock.Mock(),
                              instance, [])
        self.me.placement.put.assert_not_called()


class AbandonTestCase(PoolDriverTestCase):
    """A build that had a node when its service died."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(recovery, '_POLL', 0))
        _, self.node = self.build()
        self.nova.vm_states['i'] = 'building'
        self.me.tracked[POOL] = object()
        self.delete = self.me.placement.delete_allocation_for_instance

    def recover(self, error=None, task='networking'):
        def unprovision(*_, **__):
            # Who wakes goes by what is saved.
            self.assertIn('i', self.nova.faults)
            self.cloud.nodes[self.node].instance = None
        self.nova.change_instance('i', task=task)
        with mock.patch.object(nova_driver.IronicDriver, 'destroy',
                               side_effect=error or unprovision):
            base.recover(self.driver, model.Takeover(
                POOL, 'i', 'dead', task, is_dead=True))
        self.assertIn('the nova-compute dead has died',
                      str(self.nova.faults['i']))

    def test_nothing_is_left_reserved(self):
        self.recover()
        self.assertIsNone(self.cloud.nodes[self.node].instance)
        ((_, uuid), forced), = self.delete.call_args_list
        self.assertEqual(('i', {'force': True}), (uuid, forced))
        # Whether the node can be built on is for the next pass to see.
        self.assertEqual((30, 1), self.counted())
        self.me.run_pass()
        self.assertEqual((30, 0), self.counted())

    def test_builder_that_may_be_about_to_deploy(self):
        self.recover(task='spawning')
        self.assertEqual('i', self.cloud.nodes[self.node].instance)
        self.delete.assert_not_called()

    def test_ironic_that_does_not_answer(self):
        self.recover(ValueError('no'))
        self.delete.assert_not_called()
        self.assertIn('Cannot free what is reserved', self.log.output)

    def test_placement_that_cannot_be_reached(self):
        # So Nova's client says that.
        self.delete.side_effect = lambda *_, **__: None
        self.recover()
        self.assertIn('Cannot free what is reserved', self.log.output)


class SpawnTestCase(PoolDriverTestCase):
    """A deployment that fails."""

    def setUp(self):
        super().setUp()
        #: The nodes on which a deployment was tried.
        self.tried = []
        #: How many of these fail.
        self.failing = 1
        self.networks = self.useFixture(fixtures.MockPatchObject(
            nova_driver.IronicDriver,
            'prepare_networks_before_block_device_mapping')).mock
        self.useFixture(fixtures.MockPatchObject(
            nova_driver.IronicDriver, 'spawn', side_effect=self._deploy))
        self.useFixture(fixtures.MockPatchObject(
            nova_driver.IronicDriver, 'destroy', side_effect=self._unprovision
        ))
        self.instance, self.node = self.build()
        self.nova.change_instance('i', task='spawning')
        self.allocate('i')

    def _deploy(self, context, instance, *_, **__):
        self.tried.append(instance.node)
        if len(self.tried) <= self.failing:
            raise exception.InstanceDeployFailure(reason='bad')

    def _unprovision(self, context, instance, *_, **__):
        self.cloud.nodes[instance.node].instance = None

    def spawn(self, **more):
        self.driver.spawn(mock.Mock(), self.instance, mock.Mock(), [], None,
                          {}, network_info=['vif'], **more)

    def assertGivesUp(self, **more):
        self.failing = 2
        self.assertRaises(exception.NovaException, self.spawn, **more)

    def test_server_that_is_deleted_while_the_node_is_undeployed(self):
        destroy = nova_driver.IronicDriver.destroy

        def delete(context, instance, *_, **__):
            self._unprovision(context, instance)
            self.nova.change_instance('i', task='deleting')
        destroy.side_effect = delete
        self.assertRaises(exception.InstanceDeployFailure, self.spawn)
        self.assertEqual([self.node], self.tried)

    def test_another_node_is_tried(self):
        self.spawn()
        bad, good = self.tried
        self.assertEqual(self.node, bad)
        self.assertIsNone(self.cloud.nodes[bad].instance)
        self.assertEqual('i', self.cloud.nodes[good].instance)
        (call,) = self.networks.call_args_list
        self.assertEqual((good, ['vif']), (call.args[0].node, call.args[1]))
        # Nothing else is built on the bad one before the next pass.
        self.assertEqual((30, 1), self.counted())

    def test_it_is_tried_once(self):
        self.assertGivesUp()
        self.assertEqual(2, len(set(self.tried)))

    def failed_nodes(self):
        (found,) = (
            family.samples[0].value for family
            in metrics.Collector(self.me.ring, lambda: 0).collect()
            if family.name == 'nova_ironic_ring_failed_nodes')
        return found

    def test_node_that_has_failed_comes_last(self):
        self.spawn()
        bad, _ = self.tried
        self.assertEqual(1, self.failed_nodes())
        self.assertIn(f'on node {bad} has failed (1 failed deployment in a '
                      'row on this node)', self.log.output)
        self.me.run_pass()
        self.assertNotIn(bad, {
            self.build(f'i{number}')[1] for number in range(28)})
        # There is no other left.
        self.instance, node = self.build('last')
        self.assertEqual(bad, node)
        self.nova.change_instance('last', task='spawning')
        self.spawn()
        self.assertEqual(0, self.failed_nodes())

    def test_node_that_has_failed_comes_last_for_a_while(self):
        self.spawn()
        self.nova.advance(899)
        self.assertEqual(1, self.failed_nodes())
        self.nova.advance(2)
        self.assertEqual(0, self.failed_nodes())

    def test_option_without_a_wait(self):
        self.nova.conf.config(failed_node_wait=0, group='ironic_ring')
        self.me.run_pass()
        self.spawn()
        self.assertEqual(0, self.failed_nodes())

    def test_peers_know_what_has_failed(self):
        other = self.settle_with_peer()
        self.spawn()
        self.me.run_pass()
        other.run_pass()
        self.assertEqual({self.tried[0]}, other.ring.failing().keys())
        # It is not the peer's to say.
        other.run_pass()
        self.nova.advance(901)
        self.me.run_pass()
        other.run_pass()
        self.assertEqual({}, other.ring.failing())

    def test_success_ends_what_a_peer_remembers(self):
        other = self.settle_with_peer()
        self.spawn()
        self.me.run_pass()
        other.run_pass()
        # Another service has built there.
        other.ring.note_success(self.tried[0])
        self.assertEqual({}, other.ring.failing())
        other.run_pass()
        self.me.run_pass()
        self.assertEqual(0, self.failed_nodes())

    def test_restart(self):
        self.spawn()
        self.me.run_pass()
        known = self.me.ring.failing()
        self.assertEqual({self.tried[0]}, known.keys())
        for disabled in False, True:
            self.nova.change_service('me', disabled=disabled)
            again = self.nova.compute('me', pool_driver.IronicPoolDriver)
            again.run_pass()
            self.assertEqual(known, again.ring.failing())
            self.assertEqual(known, stats.read_failures(
                self.nova.row(member.uuid_of('me')).stats, 'me'))

    def test_what_is_no_fault_of_the_node(self):
        self.nova.change_instance('i', task='deleting')
        self.assertGivesUp()
        self.assertEqual(0, self.failed_nodes())

    def test_no_other_node(self):
        for name, node in self.cloud.nodes.items():
            if name != self.node:
                node.instance = 'other'
        self.assertGivesUp()
        self.assertEqual([self.node], self.tried)

    def test_volumes_are_attached_to_the_node(self):
        self.assertGivesUp(block_device_info={
            'block_device_mapping': [{'mount_device': 'sda'}]})
        self.assertEqual([self.node], self.tried)

    def test_node_that_the_request_names(self):
        self.useFixture(nova_policy.NovaPolicy())
        self.name(self.node)
        for more in {}, {'block_device_info': {
                'block_device_mapping': [{'mount_device': 'sda'}]}}:
            error = self.assertRaises(
                exception.BuildAbortException, self.spawn, **more)
            self.assertIn(f'on node {self.node}, which was asked for',
                          str(error))
            self.assertEqual([self.node], self.tried)
            self.tried.clear()

    def test_server_that_is_unshelved(self):
        # Nova has no node reserved for it.
        self.cloud.nodes[self.node].instance = None
        self.assertRaises(exception.InstanceNotFound, self.spawn)
        self.assertEqual([], self.tried)

    def test_server_that_is_shelved(self):
        self.assertRaises(
            NotImplementedError, self.driver.snapshot, mock.Mock(),
            self.instance, 'image', mock.Mock())

    def test_instance_that_is_not_wanted_any_more(self):
        self.nova.change_instance('i', task='deleting')
        self.assertGivesUp()
        del self.cloud.instances['i']
        self.assertFalse(guards.is_to_be_built(
            self.instance, ValueError('no')))
        self.assertEqual([self.node], self.tried)

    def test_what_no_other_node_would_mend(self):
        self.assertFalse(guards.is_to_be_built(
            self.instance, exception.BuildAbortException(
                instance_uuid='i', reason='image')))


class ChangeTestCase(base.DriverTestCase):
    """A service that changes from the ring driver to pools, and back."""

    def setUp(self):
        super().setUp()
        self.cloud.rows.clear()
        for host in 'a', 'b':
            del self.cloud.services[host]
        self._start(driver.IronicRingDriver)
        self.node = NODES[7]
        self.nova.put('i', self.node, 'me')
        self._run_passes()

    def _start(self, made):
        self.nova.computes.clear()
        self.me = self.nova.compute('me', made)
        self._run_passes()

    def _run_passes(self):
        for _ in range(4):
            self.nova.advance(5)
            listed = self.me.begin_pass()
            for name in [row.pool or node
                         for node, row in self.cloud.rows.items()]:
                if name not in listed and (
                        self.me.driver.is_node_deleted(name)):
                    del self.cloud.rows[fake_nova.key(name)]
            self.me.run_pass()

    def assertWhole(self, place):
        known = self.cloud.instances['i']
        self.assertEqual(('me', place), (known.host, known.node))
        self.assertEqual({pools.provider(place)}, clouds.Placement(
            self.cloud).providers_of('i'))

    def test_there_and_back(self):
        self.assertWhole(self.node)
        self.assertEqual(set(NODES), set(self.cloud.rows))
        for _ in range(2):
            self._start(pool_driver.IronicPoolDriver)
            self.assertWhole(POOL)
            self.assertEqual({pools.uuid_of(POOL)}, set(self.cloud.rows))
            self._start(driver.IronicRingDriver)
            self.assertWhole(self.node)
            self.assertEqual(set(NODES), set(self.cloud.rows))

    def test_both_take_over_from_the_other(self):
        for made, place in (
                (pool_driver.IronicPoolDriver, POOL),
                (driver.IronicRingDriver, self.node)):
            # As the other had it when it died.
            theirs = 'gone.CUSTOM_BAREMETAL.01234567'
            self.nova.add_service('gone')
            self.nova.change_service('gone', forced_down=True)
            for each in self.cloud.allocations.values():
                each.discard('i')
            if made is pool_driver.IronicPoolDriver:
                self.nova.own(self.node, 'gone')
                self.nova.put('i', self.node, 'gone')
            else:
                self.cloud.rows.pop(self.node, None)
                self.cloud.rows[pools.uuid_of(theirs)] = clouds.Row(
                    'gone', pool=theirs)
                self.nova.put('i', theirs, 'gone')
                self.cloud.allocations[pools.uuid_of(theirs)] = {'i'}
            self._start(made)
            self._run_passes()
            self.assertWhole(place)
            self.assertTrue(self.me.ring.history.wait(30))
            self.assertEqual(
                [('INSTANCE_FAILED_OVER', 'gone', 'me', 'FORCED_DOWN')],
                [(entry.code.name, entry.source, entry.target, entry.reason)
                 for entry in self.nova.actions])
            self.nova.actions.clear()


class StartTestCase(PoolDriverTestCase):
    """The start of a service."""

    def test_allocations_are_not_read_one_by_one(self):
        read = self.me.placement.get_allocations_for_provider_tree
        self.driver.init_host('me')
        self.assertEqual(
            {}, self.me.placement.get_allocations_for_provider_tree(
                mock.Mock(), POOL))
        read.assert_not_called()

    def test_nodes_are_hidden(self):
        self.allocate('i')
        self.build()
        self.me.run_pass()
        nodes = dict(self.cloud.nodes)
        self.cloud.nodes.clear()
        again = self.nova.compute('me', pool_driver.IronicPoolDriver)
        self.driver = again.driver
        again.run_pass()
        tree = provider_tree.ProviderTree()
        tree.new_root(POOL, pools.uuid_of(POOL))
        before = {'CUSTOM_BAREMETAL': {'total': 30, 'reserved': 0}}
        tree.update_inventory(POOL, before)
        self.driver.update_provider_tree(tree, POOL)
        self.assertEqual({'CUSTOM_BAREMETAL': {'total': 30, 'reserved': 30}},
                         tree.data(POOL).inventory)
        self.assertFalse(self.driver.is_node_deleted(POOL))
        self.cloud.nodes.update(nodes)
        again.run_pass()
        self.assertEqual((30, 0), self.counted())

    def test_some_nodes_are_hidden(self):
        self.me.run_pass()
        hidden = {node: self.cloud.nodes.pop(node) for node in NODES[:10]}
        # And when it is started once more.
        for _ in range(2):
            again = self.nova.compute('me', pool_driver.IronicPoolDriver)
            self.driver = again.driver
            again.run_pass()
            self.assertEqual((30, 10), self.counted())
        self.cloud.nodes.update(hidden)
        again.run_pass()
        self.assertEqual((30, 0), self.counted())
