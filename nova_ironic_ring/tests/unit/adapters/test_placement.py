# SPDX-License-Identifier: Apache-2.0

"""Placement, by way of Nova's own client."""

import dataclasses
import types
from unittest import mock

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import manager
from nova.compute import provider_tree
from nova import exception
from nova import objects
from nova.scheduler.client import report
from oslo_utils import uuidutils
from oslotest import base
import testtools

from nova_ironic_ring.adapters.nova import evacuations
from nova_ironic_ring.adapters import placement
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.fixtures import real_placement

NODE = '00000000-0000-0000-0000-000000000000'

POOL = pools.Pool('me.CUSTOM_GOLD.01234567', pools.Kind('CUSTOM_GOLD'))


class PlacementTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.client = mock.create_autospec(
            report.SchedulerReportClient, instance=True)
        self.placement = placement.Placement(
            mock.Mock(virtapi=mock.Mock(reportclient=self.client)))

    def _have(self, *consumers: str) -> None:
        self.client.get_allocations_for_resource_provider.return_value = (
            types.SimpleNamespace(allocations=dict.fromkeys(consumers, {})))

    def test_consumers(self):
        self._have('one', 'two')
        self.assertEqual({'one', 'two'}, self.placement.consumers(NODE))

    def test_node_without_a_provider(self):
        self.client.get_allocations_for_resource_provider.side_effect = (
            exception.ResourceProviderAllocationRetrievalFailed(
                rp_uuid=NODE, error='{"errors": [{"status": 404}]}'))
        self.assertEqual(frozenset(), self.placement.consumers(NODE))

    def test_nodes_in_use(self):
        found = {'used': {'one': {}}, 'free': {}}

        def read(context, node):
            if node not in found:
                raise exception.ResourceProviderAllocationRetrievalFailed(
                    rp_uuid=node, error='{"errors": [{"status": 404}]}')
            return types.SimpleNamespace(allocations=found[node])
        self.client.get_allocations_for_resource_provider = read
        nodes = ['free', 'none', 'used']
        self.assertEqual({'used'}, self.placement.in_use(nodes))
        self.assertEqual({'free'}, self.placement.unused(nodes))

    def test_no_answer(self):
        for error in (exception.ResourceProviderAllocationRetrievalFailed(
                rp_uuid=NODE, error='{"errors": [{"status": 500}]}'),
                keystone_exceptions.ConnectFailure()):
            read = self.client.get_allocations_for_resource_provider
            read.side_effect = error
            self.assertRaises(type(error), self.placement.consumers, NODE)

    def test_free(self):
        self.placement.free('one')
        self.client.delete_allocation_for_instance.assert_called_once_with(
            mock.ANY, 'one', force=True)

    def test_forget_provider(self):
        self.placement.forget_provider(NODE)
        self.client.invalidate_resource_provider.assert_called_once_with(NODE)

    def test_delete_provider(self):
        self._have('one', 'two')
        self.placement.delete_provider(NODE)
        # Nova deletes no provider that has allocations.
        self.assertEqual({'one', 'two'}, {
            call.args[1] for call in
            self.client.delete_allocation_for_instance.call_args_list})
        (call,) = self.client.delete_resource_provider.call_args_list
        self.assertEqual(NODE, call.args[1].uuid)
        # Nova would delete the allocations of all instances of the host.
        self.assertEqual({}, call.kwargs)

    def _inventory(self, **found: dict) -> mock.Mock:
        """Have Placement have an inventory, and return its writing."""
        tree = self.client.get_provider_tree_and_ensure_root
        tree.return_value.data.return_value.inventory = found
        return self.client.set_inventory_for_provider

    def test_inventory_is_written(self):
        write = self._inventory()
        self.placement.write(POOL, pools.Inventory(3, 1))
        self.client.get_provider_tree_and_ensure_root.assert_called_once_with(
            mock.ANY, POOL.uuid, name=POOL.name)
        (call,) = write.call_args_list
        _, uuid, found = call.args
        self.assertEqual(POOL.uuid, uuid)
        self.assertEqual((3, 1), (found['CUSTOM_GOLD']['total'],
                                  found['CUSTOM_GOLD']['reserved']))

    def test_inventory_that_the_tracker_writes_at_the_same_time(self):
        write = self._inventory()
        write.side_effect = [exception.ResourceProviderUpdateConflict(
            uuid=POOL.uuid, generation=1, error='409'), None]
        self.placement.write(POOL, pools.Inventory())
        self.assertEqual(2, write.call_count)
        # It is read anew each time.
        self.assertEqual(
            [mock.call(POOL.uuid)] * 2,
            self.client.invalidate_resource_provider.call_args_list)

    def test_inventory_that_others_write_all_the_time(self):
        self._inventory().side_effect = (
            exception.ResourceProviderUpdateConflict(
                uuid=POOL.uuid, generation=1, error='409'))
        self.assertRaises(exception.ResourceProviderUpdateConflict,
                          self.placement.write, POOL, pools.Inventory())

    def test_provider_is_dropped(self):
        self._have()
        self.client.get_providers_in_tree.return_value = []
        self.assertTrue(self.placement.drop_provider(NODE))
        (call,) = self.client.delete_resource_provider.call_args_list
        self.assertEqual(NODE, call.args[1].uuid)
        self.assertEqual({}, call.kwargs)

    def test_provider_that_is_gone(self):
        self._have()
        self.client.get_providers_in_tree.return_value = []
        known = provider_tree.ProviderTree()
        self.client.delete_resource_provider.side_effect = (
            lambda context, row: known.get_provider_uuids_in_tree(row.uuid))
        self.assertTrue(self.placement.drop_provider(NODE))
        self.placement.delete_provider(NODE)
        self.assertEqual(
            2, self.client.delete_resource_provider.call_count)

    def test_provider_that_something_rests_on_is_not_dropped(self):
        self._have('one')
        self.assertFalse(self.placement.drop_provider(NODE))
        self.client.delete_resource_provider.assert_not_called()
        self.client.delete_allocation_for_instance.assert_not_called()

    def test_provider_that_a_build_was_faster_to_claim(self):
        # Placement refuses, and Nova's client says nothing of it.
        self._have()
        self.client.delete_resource_provider.side_effect = (
            lambda *_: self._have('one'))
        self.client.get_providers_in_tree.return_value = [{'uuid': NODE}]
        self.assertFalse(self.placement.drop_provider(NODE))

    def test_provider_that_could_not_be_deleted(self):
        # Nova's client says nothing of that either.
        self._have()
        self.client.get_providers_in_tree.return_value = [{'uuid': NODE}]
        self.assertFalse(self.placement.drop_provider(NODE))
        self.client.get_providers_in_tree.assert_called_once_with(
            mock.ANY, NODE)

    def _allocate(self, *providers: str) -> mock.Mock:
        """Have an instance have allocations, and return their writing."""
        self.client.get_allocs_for_consumer.return_value = {
            'allocations': {provider: {
                'generation': 7, 'resources': {'CUSTOM_GOLD': 1}}
                for provider in providers},
            'consumer_generation': 3, 'project_id': 'p', 'user_id': 'u'}
        return self.client.put_allocations

    def test_allocation_is_moved(self):
        put = self._allocate(NODE)
        put.return_value = True
        self.assertTrue(self.placement.move('i', {NODE}, POOL.uuid))
        # With the generation: of two takers one is refused.
        put.assert_called_once_with(mock.ANY, 'i', {
            'allocations': {POOL.uuid: {'resources': {'CUSTOM_GOLD': 1}}},
            'consumer_generation': 3, 'project_id': 'p', 'user_id': 'u'})

    def test_allocation_that_was_moved_before(self):
        put = self._allocate(POOL.uuid)
        self.assertTrue(self.placement.move('i', {NODE}, POOL.uuid))
        put.assert_not_called()

    def test_instance_without_an_allocation(self):
        put = self._allocate()
        self.assertTrue(self.placement.move('i', {NODE}, POOL.uuid))
        put.assert_not_called()

    def test_allocation_that_rests_elsewhere(self):
        self._evacuated(False)
        for providers in ('other',), (NODE, 'other'):
            put = self._allocate(*providers)
            self.assertFalse(self.placement.move('i', {NODE}, POOL.uuid))
            put.assert_not_called()

    def _evacuated(self, was_asked: bool) -> None:
        self.useFixture(fixtures.MockPatchObject(
            evacuations, 'was_asked', return_value=was_asked))

    def test_what_an_evacuation_has_reserved_does_not_stay(self):
        for providers in ((NODE, 'other'), (NODE, POOL.uuid),
                          (POOL.uuid, 'other')):
            self._evacuated(True)
            put = self._allocate(*providers)
            put.reset_mock()
            self.assertTrue(self.placement.move('i', {NODE}, POOL.uuid))
            (call,) = put.call_args_list
            self.assertEqual(
                {POOL.uuid: {'resources': {'CUSTOM_GOLD': 1}}},
                call.args[2]['allocations'])
        put = self._allocate('one', 'other')
        put.reset_mock()
        self.assertFalse(self.placement.move('i', {NODE}, POOL.uuid))
        self._evacuated(False)
        self._allocate(NODE, 'other')
        self.assertFalse(self.placement.move('i', {NODE}, POOL.uuid))
        put.assert_not_called()

    def test_what_is_reserved_elsewhere_is_freed(self):
        put = self._allocate(NODE, 'other')
        self.placement.keep_only('i', NODE)
        put.assert_called_once_with(mock.ANY, 'i', {
            'allocations': {NODE: {'resources': {'CUSTOM_GOLD': 1}}},
            'consumer_generation': 3, 'project_id': 'p', 'user_id': 'u'})
        put.return_value = False
        self.assertRaises(exception.AllocationUpdateFailed,
                          self.placement.keep_only, 'i', NODE)

    def test_nothing_is_reserved_elsewhere(self):
        for providers in (), (NODE,), ('one', 'other'):
            put = self._allocate(*providers)
            self.placement.keep_only('i', NODE)
            put.assert_not_called()

    def test_allocation_that_another_moves_at_the_same_time(self):
        self._allocate(NODE).side_effect = exception.AllocationUpdateFailed(
            consumer_uuid='i', error='409')
        self.assertFalse(self.placement.move('i', {NODE}, POOL.uuid))

    def test_allocation_whose_move_is_not_answered(self):
        put = self._allocate(NODE)
        put.side_effect = lambda *_: self._allocate(POOL.uuid) and None
        self.assertTrue(self.placement.move('i', {NODE}, POOL.uuid))
        # Nor is it told what has become.
        put = self._allocate(NODE)
        put.side_effect = lambda *_: setattr(
            self.client.get_allocs_for_consumer, 'side_effect',
            ConnectionError('no answer'))
        self.assertRaises(ConnectionError, self.placement.move,
                          'i', {NODE}, POOL.uuid)

    def test_provider_without_room(self):
        self._allocate(NODE).return_value = False
        self.assertFalse(self.placement.move('i', {NODE}, POOL.uuid))


class InventoryTestCase(base.BaseTestCase):
    """What Placement is told of a pool."""

    def test_pool(self):
        self.assertEqual({'CUSTOM_GOLD': {
            'total': 3, 'reserved': 1, 'min_unit': 1, 'max_unit': 1,
            'step_size': 1, 'allocation_ratio': 1.0}}, placement.inventory(
                POOL, pools.Inventory(3, 1), {}))

    def test_pool_of_which_no_node_was_seen(self):
        pool = pools.Pool(POOL.name)
        self.assertEqual({}, placement.inventory(
            pool, pools.Inventory(), {}))
        found = placement.inventory(pool, pools.Inventory(2, 1), {
            'CUSTOM_GOLD': {'total': 9, 'reserved': 0}})
        self.assertEqual(
            (2, 1), (found['CUSTOM_GOLD']['total'],
                     found['CUSTOM_GOLD']['reserved']))

    def test_hidden_nodes_stay_and_are_reserved(self):
        pool = pools.Pool(POOL.name, POOL.kind, is_hidden=True)
        self.assertEqual(
            {'CUSTOM_GOLD': {'total': 9, 'reserved': 9}},
            placement.inventory(pool, pools.Inventory(), {
                'CUSTOM_GOLD': {'total': 9, 'reserved': 0}}))
        # One that Placement does not have.
        found = placement.inventory(pool, pools.Inventory(), {})
        self.assertEqual(1, found['CUSTOM_GOLD']['reserved'])

    def test_class_that_others_have_added(self):
        known = {'CUSTOM_GOLD': {'total': 9, 'reserved': 0},
                 'CUSTOM_LICENSE': {'total': 10, 'reserved': 0}}
        for pool in (POOL, pools.Pool(POOL.name), pools.Pool(
                POOL.name, is_hidden=True)):
            self.assertEqual({'CUSTOM_GOLD'}, placement.inventory(
                pool, pools.Inventory(3, 1), known).keys())


@testtools.skipUnless(
    real_placement.WORKS, 'The locks of this Nova are copied with eventlet.')
class AddedClassTestCase(base.BaseTestCase):
    """Classes that a provider.yaml has added, in Placement itself."""

    CONFIGURED = {'$COMPUTE_NODE': {
        '__source_file': 'provider.yaml', 'inventories': {'additional': [
            {'CUSTOM_LICENSE': {'total': 10, 'reserved': 2}}]}}}
    LICENSE = {'CUSTOM_LICENSE': (10, 2)}

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.real = self.useFixture(real_placement.RealPlacement())
        self.port = self.real.port()
        self.pool = dataclasses.replace(POOL, nodes={
            str(number): pools.Node(POOL.kind) for number in range(3)})
        self.of_peer = pools.Pool(
            'peer.CUSTOM_GOLD.01234567', self.pool.kind, self.pool.nodes)
        for pool in self.pool, self.of_peer:
            self.real.add(pool.uuid, pool.name, CUSTOM_GOLD=(3, 0))

    def _add(self, pool=None):
        """Have a pool have licenses, and an instance have one of them."""
        pool = pool or self.pool
        self.real.add(pool.uuid, pool.name, CUSTOM_GOLD=(3, 0),
                      **self.LICENSE)
        return self._use(pool, 'CUSTOM_LICENSE')

    def _use(self, pool, *more):
        instance = uuidutils.generate_uuid()
        self.assertTrue(self.real.allocate(
            instance, pool.uuid, 'CUSTOM_GOLD', *more))
        return instance

    def test_room_for_a_takeover(self):
        self._add()
        self.port.write(self.pool, pools.Inventory(4, 1))
        self.assertEqual({'CUSTOM_GOLD': (4, 1), **self.LICENSE},
                         self.real.inventories(self.pool.uuid))

    def test_pool_that_is_reserved(self):
        self._add()
        self.port.reserve_all(self.pool.name)
        self.assertEqual({'CUSTOM_GOLD': (3, 3), **self.LICENSE},
                         self.real.inventories(self.pool.uuid))
        self.port.make_room(self.pool.name, self.pool.name)
        self.assertEqual({'CUSTOM_GOLD': (3, 1), **self.LICENSE},
                         self.real.inventories(self.pool.uuid))

    def test_pool_that_its_service_has_written_meanwhile(self):
        pool = self.of_peer
        self.port.write(pool, pools.Inventory(3, 1))
        self.port.reserve_all(pool.name)
        self.real.port().write(pool, pools.Inventory(4, 0))
        self.port.reserve_all(pool.name)
        self.assertEqual({'CUSTOM_GOLD': (4, 4)},
                         self.real.inventories(pool.uuid))
        # This service's client has forgotten what it has read before.
        self.port.write(pool, pools.Inventory(3, 1))
        self.assertEqual({'CUSTOM_GOLD': (3, 1)},
                         self.real.inventories(pool.uuid))

    def test_room_in_a_pool(self):
        for total, reserved, used, left in (
                (3, 3, 0, (3, 2)), (3, 1, 2, (3, 0)), (3, 1, 1, (3, 1)),
                (3, 0, 3, (4, 0)),
                # Its peers have reserved all of it, with instances there.
                (5, 5, 2, (5, 2)), (3, 3, 3, (4, 0))):
            pool = f'me.CUSTOM_GOLD.{total}{reserved}{used}00000'
            uuid = pools.uuid_of(pool)
            self.real.add(uuid, pool, CUSTOM_GOLD=(9, 0))
            for _ in range(used):
                self.assertTrue(self.real.allocate(
                    uuidutils.generate_uuid(), uuid, 'CUSTOM_GOLD'))
            self.real.add(uuid, pool, CUSTOM_GOLD=(total, reserved))
            self.port.make_room(pool, pool)
            self.assertEqual({'CUSTOM_GOLD': left},
                             self.real.inventories(uuid))

    def test_pool_that_is_gone(self):
        gone = 'peer.CUSTOM_GOLD.76543210'
        self.port.reserve_all(gone)
        self.port.make_room(gone, gone)
        self.assertEqual({self.pool.uuid, self.of_peer.uuid},
                         self.port._uuids())

    def _refuse(self, status, times):
        """Have Placement refuse to change an inventory several times."""
        client = self.real.client()
        put, answers = client.put, [
            mock.MagicMock(status_code=status, text='no',
                           __bool__=lambda self: False)
            for _ in range(times)]
        self.useFixture(fixtures.MockPatchObject(
            client, 'put', lambda *given, **named: (
                answers.pop() if answers else put(*given, **named))))
        return self.real.port(client)

    def test_pool_that_goes_meanwhile(self):
        self._refuse(404, 1).reserve_all(self.of_peer.name)
        self.assertEqual({'CUSTOM_GOLD': (3, 0)},
                         self.real.inventories(self.of_peer.uuid))

    def test_pool_that_others_write_meanwhile(self):
        self._refuse(409, 3).reserve_all(self.of_peer.name)
        self.assertEqual({'CUSTOM_GOLD': (3, 3)},
                         self.real.inventories(self.of_peer.uuid))
        self.assertRaises(
            exception.ResourceProviderUpdateConflict,
            self._refuse(409, 4).make_room, self.of_peer.name,
            self.of_peer.name)

    def test_answer_that_is_lost(self):
        client = self.real.client()
        port, put = self.real.port(client), client.put
        port.write(self.pool, pools.Inventory(3, 0))

        def lose(*given, **named):
            put(*given, **named)
            raise keystone_exceptions.ConnectTimeout()
        with mock.patch.object(client, 'put', lose):
            self.assertRaises(keystone_exceptions.ConnectTimeout,
                              port.reserve_all, self.pool.name)
        # Nova's client does not take what it has written before for true.
        port.write(self.pool, pools.Inventory(3, 0))
        self.assertEqual({'CUSTOM_GOLD': (3, 0)},
                         self.real.inventories(self.pool.uuid))

    def test_allocation_that_comes_meanwhile(self):
        self.real.add(self.pool.uuid, self.pool.name, CUSTOM_GOLD=(3, 3))
        client = self.real.client()
        port, put = self.real.port(client), client.put

        def allocate_first(*given, **named):
            client.put = put
            self.real.add(self.pool.uuid, self.pool.name, CUSTOM_GOLD=(3, 2))
            self._use(self.pool)
            return put(*given, **named)
        client.put = allocate_first
        port.make_room(self.pool.name, self.pool.name)
        # One is used, and one is free.
        self.assertEqual({'CUSTOM_GOLD': (3, 1)},
                         self.real.inventories(self.pool.uuid))

    def test_placement_that_refuses(self):
        self.assertRaises(
            exception.ResourceProviderUpdateFailed,
            self._refuse(500, 1).reserve_all, self.of_peer.name)

    def test_pool_of_which_no_node_was_seen(self):
        self._add()
        self.port.write(pools.Pool(self.pool.name), pools.Inventory(3, 1))
        self.assertEqual({'CUSTOM_GOLD': (3, 1), **self.LICENSE},
                         self.real.inventories(self.pool.uuid))

    def test_room_on_a_node(self):
        self.real.add(NODE, NODE, CUSTOM_GOLD=(1, 1), CUSTOM_LICENSE=(1, 1))
        self.port.make_room(NODE, self.pool.name)
        self.assertEqual(
            {'CUSTOM_GOLD': (1, 0), 'CUSTOM_LICENSE': (1, 1)},
            self.real.inventories(NODE))
        # A move that was interrupted is made again.
        self.assertTrue(self.real.allocate(
            uuidutils.generate_uuid(), NODE, 'CUSTOM_GOLD'))
        self.port.make_room(NODE, self.pool.name)
        self.assertEqual(
            {'CUSTOM_GOLD': (1, 0), 'CUSTOM_LICENSE': (1, 1)},
            self.real.inventories(NODE))

    def test_license_goes_with_the_instance(self):
        self._add()
        instance = self._add(self.of_peer)
        self.assertTrue(self.port.move(
            instance, {self.of_peer.uuid}, self.pool.uuid))
        self.assertEqual({self.pool.uuid: {
            'CUSTOM_GOLD': 1, 'CUSTOM_LICENSE': 1}},
            self.real.allocations(instance))

    def test_service_that_has_no_licenses(self):
        log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        instance = self._add(self.of_peer)
        self.assertTrue(self.port.move(
            instance, {self.of_peer.uuid}, self.pool.uuid))
        self.assertEqual({self.pool.uuid: {'CUSTOM_GOLD': 1}},
                         self.real.allocations(instance))
        self.assertIn('given up its allocation of CUSTOM_LICENSE', log.output)

    def test_no_license_is_left(self):
        instance = self._add(self.of_peer)
        self.real.add(self.pool.uuid, self.pool.name, CUSTOM_GOLD=(3, 0),
                      CUSTOM_LICENSE=(1, 1))
        self.assertTrue(self.port.move(
            instance, {self.of_peer.uuid}, self.pool.uuid))
        self.assertEqual({self.pool.uuid: {'CUSTOM_GOLD': 1}},
                         self.real.allocations(instance))

    def test_no_node_is_left(self):
        instance = self._add(self.of_peer)
        self.real.add(self.pool.uuid, self.pool.name, CUSTOM_GOLD=(3, 3))
        before = self.real.allocations(instance)
        self.assertFalse(self.port.move(
            instance, {self.of_peer.uuid}, self.pool.uuid))
        self.assertEqual(before, self.real.allocations(instance))


@testtools.skipUnless(
    real_placement.WORKS, 'The locks of this Nova are copied with eventlet.')
class ManyTestCase(base.BaseTestCase):
    """Many nodes of several classes, in Placement itself."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.real = self.useFixture(real_placement.RealPlacement())
        self.port = self.real.port()
        # One thread: SQLite in memory has one connection.
        self.useFixture(fixtures.MockPatchObject(
            placement.several, 'run',
            lambda call, each: list(map(call, each))))
        self.read = self.useFixture(fixtures.MockPatchObject(
            self.port, '_consumers', wraps=self.port._consumers)).mock
        self.nodes = []

    def _add(self, count: int, reserved: int = 0, **more) -> list[str]:
        added = [uuidutils.generate_uuid() for _ in range(count)]
        for node in added:
            self.real.add(node, node, CUSTOM_GOLD=(1, reserved), **more)
        self.nodes += added
        return added

    def _use(self, node: str, *classes: str) -> None:
        self.assertTrue(self.real.allocate(
            uuidutils.generate_uuid(), node, *classes))

    def test_free_ones_are_not_read_one_by_one(self):
        nodes = self._add(20)
        licensed = self._add(20, CUSTOM_LICENSE=(10, 0))
        self._use(nodes[3], 'CUSTOM_GOLD')
        self._use(licensed[3], 'CUSTOM_GOLD', 'CUSTOM_LICENSE')
        used = {nodes[3], licensed[3]}
        self.assertEqual(used, self.port.in_use(self.nodes))
        self.assertGreater(20, self.read.call_count)
        self.read.reset_mock()
        self.assertEqual(set(self.nodes) - used, self.port.unused(self.nodes))
        self.assertGreater(20, self.read.call_count)

    def test_many_classes_and_nodes_whose_classes_nobody_else_has(self):
        # Their owner has chosen their UUIDs.
        odd = [f'00000000-0000-0000-0000-{number:012}' for number in range(9)]
        for number, node in enumerate(odd):
            self.real.add(node, node, **{f'CUSTOM_ODD_{number}': (1, 0)})
        for kind in range(5):
            for _ in range(15):
                node = uuidutils.generate_uuid()
                self.real.add(node, node, **{f'CUSTOM_KIND_{kind}': (1, 0)})
                self.nodes.append(node)
        self.assertEqual(frozenset(), self.port.in_use(self.nodes + odd))
        self.assertGreaterEqual(35, self.read.call_count)

    def test_what_is_added_is_no_room(self):
        # All its other classes have room for more.
        nodes = self._add(20, CUSTOM_LICENSE=(10, 0))
        for node in nodes:
            self._use(node, 'CUSTOM_GOLD', 'CUSTOM_LICENSE')
        self.assertEqual(set(nodes), self.port.in_use(nodes))
        self.assertEqual(frozenset(), self.port.unused(nodes))

    def test_only_those_that_are_asked_for(self):
        nodes = self._add(40)
        self.assertEqual(set(nodes[:20]), self.port.unused(nodes[:20]))

    def test_reserved_ones(self):
        self._add(20, 1)
        self._add(20)
        listed = self.useFixture(fixtures.MockPatchObject(
            self.port, '_uuids', wraps=self.port._uuids)).mock
        self.assertEqual(frozenset(), self.port.in_use(self.nodes))
        # They all have the same class.
        listed.assert_called_once_with('?resources=CUSTOM_GOLD:1')
        self.assertEqual(20, self.read.call_count)
        self.assertEqual(set(self.nodes), self.port.unused(self.nodes))

    def test_list_that_does_not_come(self):
        nodes = self._add(20)
        self._use(nodes[3], 'CUSTOM_GOLD')
        self.useFixture(fixtures.MockPatchObject(
            self.port, '_uuids',
            side_effect=exception.ResourceProviderRetrievalFailed(uuid='x')))
        self.assertEqual({nodes[3]}, self.port.in_use(nodes))
        self.assertEqual(20, self.read.call_count)
        self.assertEqual(set(nodes) - {nodes[3]}, self.port.unused(nodes))

    def test_without_a_provider(self):
        nodes = [uuidutils.generate_uuid() for _ in range(20)]
        self.assertEqual(frozenset(), self.port.in_use(nodes))
        self.assertEqual(frozenset(), self.port.unused(nodes))

    def test_few(self):
        nodes = self._add(2)
        self._use(nodes[0], 'CUSTOM_GOLD')
        self.assertEqual({nodes[0]}, self.port.in_use(nodes))
        self.assertEqual(2, self.read.call_count)


@testtools.skipUnless(
    real_placement.WORKS, 'The locks of this Nova are copied with eventlet.')
class StatusTestCase(base.BaseTestCase):
    """Whether the scheduler may choose nodes that are not tracked."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.real = self.useFixture(real_placement.RealPlacement())
        self.real.add(NODE, NODE, CUSTOM_GOLD=(1, 0))
        self.client = self.real.client()
        self.port = self.real.port(self.client)

    def test_nova_itself_fails_with_them(self):
        virtapi = manager.ComputeVirtAPI(mock.Mock(reportclient=self.client))
        self.assertRaises(
            ValueError, virtapi.update_compute_provider_status,
            self.real.context, NODE, False)

    def test_disabled_and_enabled(self):
        for _ in range(2):
            self.port.tell_status([NODE], False)
            self.assertEqual({NODE}, self.port.disabled())
            self.assertEqual({NODE: True}, self.port.providers())
        for _ in range(2):
            self.port.tell_status([NODE], True)
            self.assertEqual(frozenset(), self.port.disabled())
        self.assertEqual('', self.log.output)

    def test_other_traits_stay(self):
        tree = self.client.get_provider_tree_and_ensure_root(
            self.real.context, NODE, name=NODE)
        tree.update_traits(NODE, ['CUSTOM_RED'])
        self.client.update_from_provider_tree(self.real.context, tree)
        self.port.tell_status([NODE], False)
        self.port.tell_status([NODE], True)
        self.assertEqual({'CUSTOM_RED'}, self.client.get_provider_traits(
            self.real.context, NODE).traits)

    def test_provider_that_is_changed_meanwhile(self):
        read = self.client.get_provider_traits
        old = read(self.real.context, NODE)
        self.real.put_in_aggregates(NODE, [uuidutils.generate_uuid()])
        now = read(self.real.context, NODE)
        self.client.get_provider_traits = mock.Mock(side_effect=[old, now])
        self.port.tell_status([NODE], False)
        self.assertEqual({NODE}, self.port.disabled())
        # It may go on for ever.
        self.client.get_provider_traits = mock.Mock(
            return_value=old._replace(traits={'COMPUTE_STATUS_DISABLED'}))
        self.port.tell_status([NODE], True)
        self.assertIn('service is enabled', self.log.output)
        self.assertEqual({NODE}, self.port.disabled())

    def test_node_without_a_provider(self):
        self.port.tell_status([uuidutils.generate_uuid()], False)
        self.assertIn('service is disabled', self.log.output)
