# SPDX-License-Identifier: Apache-2.0

"""Placement, by way of Nova's own client."""

import dataclasses
import json
from unittest import mock

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import manager
from nova import exception
from nova import objects
from oslo_utils import uuidutils
from oslotest import base
import requests

from nova_ironic_ring.adapters.nova import evacuations
from nova_ironic_ring.adapters import placement
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.fixtures import real_placement

NODE, OTHER, FREE, INSTANCE, SECOND = (
    f'{each}0000000-0000-0000-0000-000000000000' for each in '012ab')

POOL = pools.Pool('me.CUSTOM_GOLD.01234567', pools.Kind('CUSTOM_GOLD'))
OPEN = 'peer.CUSTOM_GOLD.01234567'

# What a request meets.
FAULTS = {
    'down': keystone_exceptions.ConnectFailure('refused'),
    'silent': keystone_exceptions.ConnectTimeout('no answer'),
    'no endpoint': keystone_exceptions.EndpointNotFound(),
    'no password': keystone_exceptions.Unauthorized(),
    **{f'{status} of {who}': (status, text) for status in (401, 404, 409, 503)
       for who, text in (('a proxy', '<html>'), ('its middleware', json.dumps(
           {'error': {'code': status}})))},
    '503': (503, json.dumps({'errors': [
        {'status': 503, 'code': 'placement.undefined_code'}]}))}
# What asks Placement, and what of that writes.
READS = {
    'consumers': lambda port: port.consumers(NODE),
    'known': lambda port: port.known(),
    'disabled': lambda port: port.disabled(),
    'in_use': lambda port: port.in_use([NODE]),
    'unused': lambda port: port.unused([NODE]),
    'providers_of': lambda port: port.providers_of(INSTANCE),
    'used_classes': lambda port: port.used_classes(NODE),
    'is_changed': lambda port: port.is_changed(NODE, 0)}
WRITES = {
    'free': lambda port: port.free(INSTANCE),
    'move': lambda port: port.move(INSTANCE, {NODE}, POOL.uuid),
    'keep_only': lambda port: port.keep_only(SECOND, OTHER),
    'write': lambda port: port.write(POOL, pools.Inventory(5, 2)),
    'make': lambda port: port.write(
        pools.Pool('new.CUSTOM_RED.01234567', pools.Kind('CUSTOM_RED')),
        pools.Inventory(1, 0)),
    'reserve_all': lambda port: port.reserve_all(OPEN),
    'make_room': lambda port: port.make_room(POOL.name, POOL.name),
    'drop_provider': lambda port: port.drop_provider(FREE),
    'delete_provider': lambda port: port.delete_provider(NODE),
    'delete_free': lambda port: port.delete_provider(FREE)}


class RealTestCase(base.BaseTestCase):
    """Placement itself, and Nova's own client."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.real = self.useFixture(real_placement.RealPlacement())
        self.client = self.real.client()
        self.port = self.real.port(self.client)
        # One thread: SQLite in memory has one connection.
        self.useFixture(fixtures.MockPatchObject(
            placement.several, 'run',
            lambda call, each: list(map(call, each))))


class FaultsTestCase(RealTestCase):
    """A Placement that refuses, or cannot be reached."""

    def setUp(self):
        super().setUp()
        for node in NODE, OTHER, FREE:
            self.real.add(node, node, CUSTOM_GOLD=(2, 0))
        self.real.add(POOL.uuid, POOL.name, CUSTOM_GOLD=(2, 2))
        self.real.add(pools.uuid_of(OPEN), OPEN, CUSTOM_GOLD=(2, 0))
        self.real.allocate(INSTANCE, NODE, 'CUSTOM_GOLD')
        self.assertTrue(self.client.put_allocations(
            self.real.context, SECOND, {
                'allocations': {each: {'resources': {'CUSTOM_GOLD': 1}}
                                for each in (NODE, OTHER)},
                'project_id': 'p', 'user_id': 'u',
                'consumer_generation': None}))
        self.before = self._state()

    def _state(self):
        uuids = sorted(self.real.port().known())
        return uuids, list(map(self.real.inventories, uuids)), [
            self.real.allocations(each) for each in (INSTANCE, SECOND)]

    def _fail(self, name, *methods):
        """Have requests fail with some methods of HTTP."""
        send, fault = self.client._client.request, FAULTS[name]

        def request(url, method, **named):
            if method not in methods:
                return send(url, method, **named)
            if isinstance(fault, Exception):
                raise fault
            answer = requests.Response()
            answer.status_code, answer._content = fault[0], fault[1].encode()
            return answer
        return mock.patch.object(self.client._client, 'request', request)

    def _try(self, use):
        try:
            return use(self.port)
        except Exception:
            return 'an error'

    def test_no_request_succeeds(self):
        for fault in FAULTS:
            with self._fail(fault, 'GET', 'PUT', 'POST', 'DELETE'):
                for name, use in {**READS, **WRITES}.items():
                    with self.subTest(fault=fault, use=name):
                        # The driver goes on without this one.
                        self.assertIn(self._try(use), {
                            'is_changed': (False, 'an error')}.get(
                                name, ('an error',)))
        self.assertEqual(self.before, self._state())

    def test_no_writing_succeeds(self):
        for fault in FAULTS:
            for methods in ('PUT', 'POST'), ('DELETE',):
                with self._fail(fault, *methods):
                    for name, use in WRITES.items():
                        if (methods == ('DELETE',)) != (
                                name.startswith(('free', 'drop', 'delete'))):
                            continue
                        with self.subTest(fault=fault, use=name):
                            self.assertIn(
                                self._try(use), (False, 'an error'))
        self.assertEqual(self.before, self._state())

    def test_with_answers(self):
        for use in {**READS, **WRITES}.values():
            use(self.port)
        self.assertNotEqual(self.before, self._state())


class PlacementTestCase(RealTestCase):

    def setUp(self):
        super().setUp()
        for node in NODE, OTHER:
            self.real.add(node, node, CUSTOM_GOLD=(1, 0))
        self.real.add(POOL.uuid, POOL.name, CUSTOM_GOLD=(2, 0))

    def _have(self, *providers, instance=INSTANCE):
        """Have an instance have one of each provider, and nothing else."""
        self.real.port().free(instance)
        if providers:
            self.assertTrue(self.client.put_allocations(
                self.real.context, instance, {
                    'allocations': {each: {'resources': {'CUSTOM_GOLD': 1}}
                                    for each in providers},
                    'project_id': 'p', 'user_id': 'u',
                    'consumer_generation': None}))

    def _before(self, name, do):
        """Do something just before the client sends a request."""
        send = getattr(self.client, name)

        def first(*given, **named):
            do()
            return send(*given, **named)
        return mock.patch.object(self.client, name, first)

    def test_nodes_in_use(self):
        self._have(NODE)
        self.assertEqual({INSTANCE}, self.port.consumers(NODE))
        self.assertEqual(frozenset(), self.port.consumers(FREE))
        nodes = [NODE, OTHER, FREE]
        self.assertEqual({NODE}, self.port.in_use(nodes))
        self.assertEqual({OTHER}, self.port.unused(nodes))
        self.port.free(INSTANCE)
        self.port.free(INSTANCE)
        self.assertEqual({}, self.real.allocations(INSTANCE))

    def test_delete_provider(self):
        self._have(NODE)
        self.port.delete_provider(NODE)
        self.assertNotIn(NODE, self.port.known())
        self.port.delete_provider(NODE)

    def test_pool_without_a_provider(self):
        pool = pools.Pool(
            'me.CUSTOM_RED.01234567', pools.Kind('CUSTOM_RED'))
        self.port.write(pool, pools.Inventory(3, 1))
        self.assertEqual({'CUSTOM_RED': (3, 1)},
                         self.real.inventories(pool.uuid))
        self.assertEqual(pool.name, self.client.get_resource_provider_name(
            self.real.context, pool.uuid))

    def test_provider_is_dropped(self):
        self.assertTrue(self.port.drop_provider(NODE))
        self.assertNotIn(NODE, self.port.known())
        self.assertTrue(self.port.drop_provider(NODE))

    def test_provider_that_something_rests_on_is_not_dropped(self):
        self._have(NODE)
        self.assertFalse(self.port.drop_provider(NODE))
        self.assertEqual({NODE}, self.real.allocations(INSTANCE).keys())

    def test_provider_that_a_build_was_faster_to_claim(self):
        with self._before('delete', lambda: self._have(NODE)):
            self.assertRaises(exception.ResourceProviderInUse,
                              self.port.delete_provider, NODE)
        self.assertEqual({NODE}, self.real.allocations(INSTANCE).keys())

    def _evacuated(self, was_asked: bool) -> None:
        self.useFixture(fixtures.MockPatchObject(
            evacuations, 'was_asked', return_value=was_asked))

    def _moves(self) -> bool:
        """Return whether the allocation of an instance comes into the pool."""
        before = self.real.allocations(INSTANCE)
        if self.port.move(INSTANCE, {NODE}, POOL.uuid):
            self.assertIn(self.real.allocations(INSTANCE), (
                {}, {POOL.uuid: {'CUSTOM_GOLD': 1}}))
            return True
        self.assertEqual(before, self.real.allocations(INSTANCE))
        return False

    def test_allocation_is_moved(self):
        for providers, was_asked, moves in (
                ((NODE,), False, True),
                # It was moved before, or it has none.
                ((POOL.uuid,), False, True), ((), False, True),
                # It rests elsewhere.
                ((OTHER,), False, False), ((NODE, OTHER), False, False),
                # What an evacuation has reserved does not stay.
                ((NODE, OTHER), True, True), ((NODE, POOL.uuid), True, True),
                ((POOL.uuid, OTHER), True, True),
                ((OTHER,), True, False)):
            self._evacuated(was_asked)
            self._have(*providers)
            self.assertEqual(moves, self._moves(), (providers, was_asked))

    def test_allocation_that_another_moves_at_the_same_time(self):
        self._have(NODE)
        with self._before('put_allocations', lambda: (
                self.real.port().move(INSTANCE, {NODE}, OTHER))):
            self.assertFalse(self.port.move(INSTANCE, {NODE}, POOL.uuid))
        self.assertEqual({OTHER}, self.real.allocations(INSTANCE).keys())

    def test_provider_without_room(self):
        for _ in range(2):
            self._have(POOL.uuid, instance=uuidutils.generate_uuid())
        self._have(NODE)
        self.assertFalse(self._moves())

    def test_allocation_that_was_moved_and_no_answer_came(self):
        self._have(NODE)
        put = self.client.put_allocations

        def lose(*given):
            put(*given)
            return False
        with mock.patch.object(self.client, 'put_allocations', lose):
            self.assertTrue(self._moves())
        # Nor is it told what has become.
        self._have(NODE)
        answers = iter((self.client.get(f'/allocations/{INSTANCE}', '1.28'),))
        with mock.patch.object(self.client, 'put_allocations', lose), (
                mock.patch.object(self.client, 'get', lambda *_, **__: next(
                    answers))):
            self.assertRaises(StopIteration, self.port.move,
                              INSTANCE, {NODE}, POOL.uuid)

    def test_what_is_reserved_elsewhere_is_freed(self):
        for providers, left in (
                ((NODE, OTHER), {NODE}), ((), set()), ((NODE,), {NODE}),
                ((OTHER, POOL.uuid), {OTHER, POOL.uuid})):
            self._have(*providers)
            self.port.keep_only(INSTANCE, NODE)
            self.assertEqual(left, self.real.allocations(INSTANCE).keys())


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


class AddedClassTestCase(RealTestCase):
    """Classes that a provider.yaml has added."""

    CONFIGURED = {'$COMPUTE_NODE': {
        '__source_file': 'provider.yaml', 'inventories': {'additional': [
            {'CUSTOM_LICENSE': {'total': 10, 'reserved': 2}}]}}}
    LICENSE = {'CUSTOM_LICENSE': (10, 2)}

    def setUp(self):
        super().setUp()
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
            mock.Mock(status_code=status, text=f'{{"status": {status}}}')
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
            placement.RefusedError,
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


class ManyTestCase(RealTestCase):
    """Many nodes of several classes."""

    def setUp(self):
        super().setUp()
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


class StatusTestCase(RealTestCase):
    """Whether the scheduler may choose nodes that are not tracked."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.real.add(NODE, NODE, CUSTOM_GOLD=(1, 0))

    def test_nova_itself_fails_with_them(self):
        virtapi = manager.ComputeVirtAPI(mock.Mock(reportclient=self.client))
        self.assertRaises(
            ValueError, virtapi.update_compute_provider_status,
            self.real.context, NODE, False)

    def test_disabled_and_enabled(self):
        for _ in range(2):
            self.port.tell_status([NODE], False)
            self.assertEqual({NODE}, self.port.disabled())
        for _ in range(2):
            self.port.tell_status([NODE], True)
            self.assertEqual(frozenset(), self.port.disabled())
        self.assertEqual('', self.log.output)

    def test_other_traits_stay(self):
        url = f'/resource_providers/{NODE}/traits'
        self.assertTrue(self.client.put('/traits/CUSTOM_RED', None, '1.6'))
        self.assertTrue(self.client.put(url, {
            **self.client.get(url, '1.6').json(), 'traits': ['CUSTOM_RED']
        }, '1.6'))
        self.port.tell_status([NODE], False)
        self.port.tell_status([NODE], True)
        self.assertEqual({'CUSTOM_RED'}, self.client.get_provider_traits(
            self.real.context, NODE).traits)

    def test_provider_that_is_changed_meanwhile(self):
        put = self.client.put
        changes = iter((True, False, *[True] * 9))

        def change(*given, **named):
            if next(changes):
                self.real.put_in_aggregates(NODE, [uuidutils.generate_uuid()])
            return put(*given, **named)
        self.client.put = change
        self.port.tell_status([NODE], False)
        self.assertEqual({NODE}, self.port.disabled())
        # It may go on for ever.
        self.port.tell_status([NODE], True)
        self.assertIn('service is enabled', self.log.output)
        self.assertEqual({NODE}, self.port.disabled())

    def test_node_without_a_provider(self):
        self.port.tell_status([uuidutils.generate_uuid()], False)
        self.assertIn('service is disabled', self.log.output)
