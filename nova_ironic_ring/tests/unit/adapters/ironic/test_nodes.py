# SPDX-License-Identifier: Apache-2.0

"""What the pool driver asks of Ironic."""

import logging
from unittest import mock
from urllib import parse

import fixtures
from nova import exception
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
from oslotest import base

from nova_ironic_ring.adapters.ironic import nodes
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import ironic_api

NODE, OTHER = fake_nova.NODES[:2]


class IronicTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_nova.FakeNova())
        self.cloud = self.fake.cloud
        self.ironic = nodes.Ironic(upstream.NovaIronicDriver(mock.Mock()))

    def describe(self, node=NODE):
        return self.ironic.describe(
            self.ironic.nodes(settings.Scope()))[node]


class DescribeTestCase(IronicTestCase):
    """A node as the scheduler sees it."""

    def test_kind(self):
        self.cloud.nodes[NODE].kind = pools.Kind(
            'CUSTOM_GOLD', frozenset({'CUSTOM_FAST'}))
        self.fake.properties[NODE] = {
            'capabilities': 'boot_mode:uefi, raid:1,malformed'}
        self.assertEqual(
            pools.Kind('CUSTOM_GOLD', frozenset({'CUSTOM_FAST'}), frozenset({
                ('cpu_arch', 'x86_64'), ('boot_mode', 'uefi'),
                ('raid', '1')})), self.describe().kind)

    def test_what_the_scheduler_cannot_tell_apart(self):
        self.fake.properties[NODE] = {
            'capabilities': 'a:1,b:2', 'memory_mb': 1, 'vendor': 'x'}
        self.fake.properties[OTHER] = {'capabilities': 'b:2,a:1'}
        self.assertEqual(self.describe().kind, self.describe(OTHER).kind)

    def test_architecture_that_a_capability_hides(self):
        kinds = set()
        for properties in (
                {'cpu_arch': 'x86_64'},
                # Nova knows no architecture of these two.
                {'cpu_arch': None, 'capabilities': 'cpu_arch:x86_64'},
                {'cpu_arch': 'beige', 'capabilities': 'cpu_arch:x86_64'},
                {'cpu_arch': 'aarch64', 'capabilities': 'cpu_arch:x86_64'}):
            self.fake.properties[NODE] = properties
            kind = self.describe().kind
            self.assertEqual(
                frozenset({('cpu_arch', 'x86_64')}), kind.properties)
            kinds.add(kind.architecture)
        self.assertEqual({None, '', 'aarch64'}, kinds)

    def test_architecture_that_is_said_twice(self):
        before = self.describe().kind
        for capabilities, raw in (('cpu_arch:x86_64', 'amd64'), ('', 'beige')):
            self.fake.properties[NODE] = {
                'cpu_arch': raw, 'capabilities': capabilities}
            self.assertIsNone(self.describe().kind.architecture)
        self.fake.properties[NODE] = {
            'cpu_arch': 'amd64', 'capabilities': 'cpu_arch:x86_64'}
        self.assertEqual(before, self.describe().kind)

    def test_properties_that_cannot_be(self):
        self.fake.properties[NODE] = {
            'memory_mb': 2 ** 40, 'cpu_arch': ['x86_64'],
            'capabilities': 'a:1,\n'}
        logged = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        found = self.describe()
        self.assertEqual(0, found.size.memory)
        self.assertEqual(frozenset({('a', '1')}), found.kind.properties)
        self.ironic.for_nova([NODE])
        self.describe()
        said = [line for line in logged.output.splitlines()
                if 'impossible' in line]
        self.assertEqual([
            f'Node {NODE} has impossible properties or traits in Ironic, '
            'which are ignored: memory_mb is 1099511627776; cpu_arch is '
            "['x86_64']; a capability is '\\n'. Correct them, or ask the "
            'owner of the node to.'
        ], said)
        # When it says something else that cannot be.
        self.fake.properties[NODE] = {'memory_mb': -1}
        self.describe()
        self.assertIn('memory_mb is -1', logged.output)

    def test_traits_that_are_too_many_for_an_address(self):
        self.cloud.nodes[NODE].kind = pools.Kind('CUSTOM_GOLD', frozenset(
            f'CUSTOM_{number}'.ljust(255, 'X') for number in range(50)))
        logged = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        kind = self.describe().kind
        for known in kind.traits, self.ironic.for_nova([NODE])[NODE].traits:
            self.assertEqual(kind.traits, frozenset(known))
            self.assertLess(len(','.join(known)), 2048)
        self.assertEqual(1, logged.output.count('there are too many traits'))
        # It is of that kind when it is reserved as well.
        self.assertTrue(self.ironic.reserve(NODE, 'i', kind))

    def test_node_that_the_driver_cannot_take(self):
        logged = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        describe = upstream.describe

        def fail(driver, node):
            if node.id == NODE:
                raise AttributeError('no \n lower')
            return describe(driver, node)
        self.useFixture(fixtures.MockPatchObject(upstream, 'describe', fail))
        for _ in range(2):
            found = self.ironic.describe(self.ironic.nodes(settings.Scope()))
            self.assertEqual(pools.Node(None, None, False), found[NODE])
            self.assertTrue(found[OTHER].is_free)
        self.assertNotIn(NODE, self.ironic.free_nodes(settings.Scope()))
        self.assertEqual(1, logged.output.count(
            f"Node {NODE} cannot be described to Nova, and nothing is built "
            "on it: 'no \\n lower'."))

    def test_properties_that_cannot_be_are_not_for_nova(self):
        self.fake.properties[NODE] = {'memory_mb': float('inf'), 'cpus': 4}
        self.ironic.nodes(settings.Scope())
        found = self.ironic.for_nova([NODE])[NODE]
        self.assertEqual(
            {'memory_mb': 0, 'cpus': 4, 'cpu_arch': 'x86_64'},
            found.properties)

    def test_node_without_a_class(self):
        self.cloud.nodes[NODE].kind = None
        self.assertIsNone(self.describe().kind)

    def test_size(self):
        self.fake.properties[NODE] = {
            'memory_mb': '2048', 'local_gb': 10, 'cpus': 4}
        self.assertEqual(pools.Size(2048, 10, 4), self.describe().size)

    def test_properties_that_change(self):
        before = self.describe()
        self.fake.properties[NODE] = {'capabilities': 'a:1'}
        self.assertNotEqual(before.kind, self.describe().kind)

    def test_properties_that_are_the_same_are_looked_at_once(self):
        self.describe()
        with mock.patch.object(upstream, 'size') as size:
            self.describe()
        size.assert_not_called()

    def test_what_can_be_built_on(self):
        self.assertTrue(self.describe().is_free)
        self.fake.provision_states[NODE] = 'cleaning'
        self.assertFalse(self.describe().is_ready)
        self.fake.provision_states[NODE] = 'available'
        self.cloud.nodes[NODE].is_ready = False
        self.assertFalse(self.describe().is_ready)
        self.cloud.nodes[NODE] = clouds.Node(instance='i')
        self.assertFalse(self.describe().is_free)
        self.assertEqual('i', self.describe().instance)


class ReserveTestCase(IronicTestCase):
    """The reservation of a node."""

    def setUp(self):
        super().setUp()
        self.kind = self.describe().kind

    def reserve(self):
        return self.ironic.reserve(NODE, 'i', self.kind)

    def test_free_node(self):
        self.assertTrue(self.reserve())
        self.assertEqual('i', self.cloud.nodes[NODE].instance)
        (call,) = self.fake.ironic.update_node.call_args_list
        self.assertFalse(call.kwargs['retry_on_conflict'])

    def test_patch_says_no_more_than_the_instance(self):
        node = sdk_node.Node.existing(id=NODE)
        node._update(instance_id='i')
        self.assertEqual(
            [{'op': 'add', 'path': '/instance_uuid', 'value': 'i'}],
            node._prepare_request(requires_id=True, prepend_key=True,
                                  patch=True).body)

    def test_node_of_another_instance(self):
        self.cloud.nodes[NODE].instance = 'other'
        self.assertFalse(self.reserve())
        self.assertEqual('other', self.cloud.nodes[NODE].instance)

    def test_node_that_is_not_ready_is_released(self):
        self.fake.provision_states[NODE] = 'cleaning'
        self.assertFalse(self.reserve())
        self.assertIsNone(self.cloud.nodes[NODE].instance)

    def test_node_in_maintenance_is_released(self):
        self.cloud.nodes[NODE].is_ready = False
        self.assertFalse(self.reserve())
        self.assertIsNone(self.cloud.nodes[NODE].instance)

    def test_node_of_another_kind_by_now_is_released(self):
        said = self.cloud.nodes[NODE].kind
        for change in (
                {'kind': pools.Kind('CUSTOM_GOLD')},
                {'kind': pools.Kind(said.resource_class, frozenset({'T'}))},
                {'properties': {'capabilities': 'boot_mode:uefi'}},
                {'properties': {'cpu_arch': 'aarch64'}},
                {'properties': {'cpu_arch': 'aarch64',
                                'capabilities': 'cpu_arch:x86_64'}}):
            self.cloud.nodes[NODE].kind = change.get('kind', said)
            self.fake.properties[NODE] = change.get('properties', {})
            self.assertFalse(self.reserve(), change)
            self.assertIsNone(self.cloud.nodes[NODE].instance)
        self.cloud.nodes[NODE].kind = said
        self.fake.properties[NODE] = {'vendor': 'another'}
        self.assertTrue(self.reserve())

    def test_answer_that_is_lost(self):
        update = self.fake.ironic.update_node.side_effect

        def lose(*args, **kwargs):
            update(*args, **kwargs)
            raise sdk_exceptions.SDKException('timeout')
        self.fake.ironic.update_node.side_effect = lose
        self.assertTrue(self.reserve())

    def test_node_that_is_deleted(self):
        del self.cloud.nodes[NODE]
        self.fake.ironic.update_node.side_effect = (
            sdk_exceptions.NotFoundException())
        self.assertFalse(self.reserve())

    def test_ironic_that_fails(self):
        # As without its conductor, and not as where another has the node.
        self.fake.ironic.update_node.side_effect = (
            sdk_exceptions.HttpException('no', http_status=503))
        self.assertRaises(sdk_exceptions.HttpException,
                          self.reserve)
        self.cloud.nodes[NODE].instance = 'other'
        self.assertFalse(self.reserve())

    def test_ironic_that_does_not_answer(self):
        error = sdk_exceptions.SDKException('no')
        self.fake.ironic.update_node.side_effect = error
        self.fake.ironic.get_node.side_effect = error
        self.assertRaises(sdk_exceptions.SDKException,
                          self.reserve)


class ReleaseTestCase(IronicTestCase):
    """The end of a reservation."""

    def setUp(self):
        super().setUp()
        self.cloud.nodes[NODE].instance = 'i'

    def test_node_that_is_reserved(self):
        self.fake.provision_states[NODE] = 'available'
        self.ironic.release(NODE, 'i')
        self.assertIsNone(self.cloud.nodes[NODE].instance)
        (call,) = self.fake.ironic.update_node.call_args_list
        self.assertFalse(call.kwargs['retry_on_conflict'])

    def test_node_that_is_not_reserved_for_it(self):
        self.fake.provision_states[NODE] = 'available'
        self.ironic.release(NODE, 'other')
        self.fake.provision_states[NODE] = 'deploying'
        self.ironic.release(NODE, 'i')
        self.assertEqual('i', self.cloud.nodes[NODE].instance)
        del self.cloud.nodes[NODE]
        self.ironic.release(NODE, 'i')

    def test_available(self):
        for state, expected in (
                ('available', True), ('deploying', False), ('active', False)):
            self.fake.provision_states[NODE] = state
            self.assertEqual(expected, self.ironic.is_available(NODE))
        del self.cloud.nodes[NODE]
        self.assertFalse(self.ironic.is_available(NODE))

    def test_patch_says_no_more_than_that(self):
        node = sdk_node.Node.existing(id=NODE, instance_id='i')
        node._update(instance_id=None)
        self.assertEqual(
            [{'op': 'replace', 'path': '/instance_uuid', 'value': None}],
            node._prepare_request(requires_id=True, prepend_key=True,
                                  patch=True).body)


class ThreadsTestCase(IronicTestCase):
    """Builds that ask while a pass goes over what it has listed."""

    def test_what_a_build_asks_for_changes_nothing_that_is_read(self):
        self.ironic.nodes(settings.Scope())
        self.cloud.nodes['elsewhere'] = clouds.Node('i')
        for _ in self.ironic.found:
            self.ironic.nodes_of(['i'])
        self.assertIn('elsewhere', self.ironic.found)

    def test_two_make_nodes_for_nova_at_a_time(self):
        self.ironic.nodes(settings.Scope())
        make = upstream.for_nova

        def meanwhile(said):
            """Have another thread list nodes, without one of these."""
            if said['uuid'] == OTHER:
                self.cloud.nodes.pop(NODE)
                self.ironic.nodes(settings.Scope())
                self.ironic.for_nova(fake_nova.NODES[2:4])
            return make(said)
        with mock.patch.object(upstream, 'for_nova', meanwhile):
            self.assertEqual([NODE, OTHER], list(
                self.ironic.for_nova([NODE, OTHER])))

    def test_builds_that_add_to_what_nodes_are_like(self):
        found = self.ironic.nodes(settings.Scope())
        self.ironic.describe(found)
        self.cloud.nodes['elsewhere'] = clouds.Node()

        class Asked(dict):
            """Has a build list the free nodes meanwhile."""

            def __contains__(asked, node):
                self.ironic.free_nodes(settings.Scope())
                return super().__contains__(node)
        said = self.ironic.describe(Asked(found))
        self.assertEqual(found.keys(), said.keys())


class FailingListingTestCase(IronicTestCase):
    """Ironic fails before a listing is done."""

    def setUp(self):
        super().setUp()
        self.fake.page = 2
        for number, node in enumerate(self.cloud.nodes.values()):
            node.shard = 'xy'[number % 2]

    def _fail_at(self, number, *shards):
        answer = self.fake.ironic.get.side_effect
        self.fake.ironic.get.side_effect = self._failing(answer, number)
        self.assertRaises(exception.VirtDriverNotReady, self.ironic.nodes,
                          settings.Scope(), *shards)
        self.fake.ironic.get.side_effect = answer

    def _failing(self, answer, number):
        left = iter(range(number))

        def get(*args, **kwargs):
            if next(left, None) is None:
                raise sdk_exceptions.SDKException('503')
            return answer(*args, **kwargs)
        return get

    def test_former_one_stays(self):
        self.ironic.nodes(settings.Scope())
        before = self.ironic.found
        for shards in ((), (['x', 'y'],)):
            for number in range(3):
                self._fail_at(number, *shards)
                self.assertEqual(before, self.ironic.found)
                self.assertEqual({NODE}, self.ironic.for_nova([NODE]).keys())

    def test_with_shards_after_one_without(self):
        found = self.ironic.nodes(settings.Scope(), ['x', 'y'])
        self._fail_at(1)
        self.assertEqual({'x', 'y'}, {*self.ironic.places(found).values()})
        # What is asked for one by one goes with it.
        named = self.ironic.named(settings.Scope(), [NODE])
        self.assertEqual({NODE}, self.ironic.places(named).keys())

    def test_good_one_replaces_it(self):
        self.ironic.nodes(settings.Scope())
        del self.cloud.nodes[NODE]
        self._fail_at(1)
        self.assertIn(NODE, self.ironic.found)
        self.ironic.nodes(settings.Scope())
        self.assertNotIn(NODE, self.ironic.found)


class NodesOfTestCase(IronicTestCase):
    """The nodes of instances, wherever they are."""

    def _ask(self, number):
        for each in range(number):
            self.cloud.nodes[f'elsewhere-{each:03}'] = clouds.Node(
                f'i{each}', group='elsewhere')
        self.cloud.nodes['theirs'] = clouds.Node('theirs')
        self.fake.asked.clear()
        found = self.ironic.nodes_of(
            ['nowhere', *(f'i{each}' for each in range(number))])
        self.assertEqual({
            f'elsewhere-{each:03}': f'i{each}' for each in range(number)},
            found)
        self.assertEqual(found.keys(), self.ironic.found.keys())

    def test_few_are_asked_for_one_by_one(self):
        self._ask(19)
        self.assertEqual(['nodes of instances'] * 20, self.fake.asked)

    def test_more_are_listed_at_once(self):
        self._ask(20)
        self.assertEqual(['nodes'], self.fake.asked)
        self.assertEqual({'associated': 'true'}, self.fake.filters)


class OthersTestCase(IronicTestCase):
    """The nodes that others divide."""

    def test_listing_of_this_service_stays(self):
        self.cloud.nodes[NODE].group = 'rack'
        self.ironic.nodes(settings.Scope())
        self.assertEqual({NODE}, self.ironic.uuids(settings.Scope('rack')))
        self.assertIn(OTHER, self.ironic.found)

    def test_groups_as_they_were_listed(self):
        self.cloud.nodes[NODE].group = 'Rack'
        found = self.ironic.nodes(settings.Scope())
        self.fake.asked.clear()
        groups = self.ironic.groups(found)
        self.assertEqual('rack', groups.pop(NODE))
        self.assertEqual({''}, {*groups.values()})
        self.assertEqual([], self.fake.asked)


class ShardsTestCase(IronicTestCase):
    """The nodes of some shards."""

    def setUp(self):
        super().setUp()
        for number, node in enumerate(fake_nova.NODES):
            self.cloud.nodes[node].shard = (None, 'x', 'y')[number % 3]

    def _in(self, *shards):
        return {node for node in fake_nova.NODES
                if self.cloud.nodes[node].shard in shards}

    def _queries(self):
        return [call.kwargs['params']
                for call in self.fake.ironic.get.call_args_list]

    def test_names(self):
        self.assertEqual({'x', 'y'}, self.ironic.shards(settings.Scope()))
        self.assertEqual(['/shards'], self.fake.asked)

    def test_names_in_a_group(self):
        node = min(self._in('x'))
        self.cloud.nodes[node].group = 'rack'
        self.assertEqual({'x'}, self.ironic.shards(settings.Scope('rack')))

    def test_listing(self):
        found = self.ironic.nodes(settings.Scope(), ['x'])
        self.assertEqual(self._in('x', None), found.keys())
        self.assertEqual(dict.fromkeys(self._in('x'), 'x'),
                         self.ironic.places(found))
        self.assertEqual(found.keys(), self.ironic.found.keys())
        self.assertIn('shard', self._queries()[-1]['fields'].split(','))

    def test_listing_is_what_the_driver_of_nova_wants(self):
        node = min(self._in(None))
        self.fake.put('i', node, 'me')
        whole = self.ironic.describe(self.ironic.nodes(settings.Scope()))
        found = self.ironic.nodes(settings.Scope(), [])
        self.assertEqual('i', found[node])
        self.assertEqual(whole[node], self.ironic.describe(found)[node])

    def test_pages(self):
        self.fake.page = 2
        self.assertEqual(self._in(None),
                         self.ironic.nodes(settings.Scope(), []).keys())

    def test_shard_that_is_called_as_none_is(self):
        node = min(self._in('x'))
        self.cloud.nodes[node].shard = 'None'
        self.assertEqual({'x', 'y'}, self.ironic.shards(settings.Scope()))
        self.assertIn(node, self.ironic.nodes(settings.Scope(), ['y']))

    def test_group(self):
        rack = [min(self._in(shard)) for shard in ('x', None)]
        for node in rack:
            self.cloud.nodes[node].group = 'rack'
        self.assertEqual(set(rack), self.ironic.nodes(
            settings.Scope('rack'), ['x', 'y']).keys())

    def test_shards_that_ironic_cannot_be_asked_for(self):
        # It would list the nodes of x, and not these.
        for name in 'x,z', ' w':
            moved = self._in('y')
            for node in moved:
                self.cloud.nodes[node].shard = name
            self.fake.ironic.get.reset_mock()
            self.assertEqual(self._in(name, None), self.ironic.nodes(
                settings.Scope(), [name]).keys())
            self.assertEqual(3, len(self._queries()))
            for node in moved:
                self.cloud.nodes[node].shard = 'y'
        # Where there are none, nothing more is asked.
        self.fake.ironic.get.reset_mock()
        self.ironic.nodes(settings.Scope(), ['x'])
        self.assertEqual(2, len(self._queries()))

    def test_very_many_shards(self):
        names = [f'shard-{number:04}' for number in range(1000)] + ['y']
        self.assertEqual(self._in('y', None), self.ironic.nodes(
            settings.Scope(), names).keys())
        for query in self._queries():
            self.assertLessEqual(len(query.get('shard', '')), 1500)

    def test_all_nodes_have_no_shard_to_an_old_ironic(self):
        self.ironic.nodes(settings.Scope(), ['x'])
        self.fake.ironic.get.reset_mock()
        self.fake.lacking.add('1.82')
        self.ironic.nodes(settings.Scope())
        (call,) = self.fake.ironic.get.call_args_list
        self.assertNotIn('shard', call.kwargs['params']['fields'])
        self.assertEqual('1.46', call.kwargs['microversion'])

    def test_by_name(self):
        self.ironic.nodes(settings.Scope(), ['x'])
        node, other = sorted(self._in('y'))[:2]
        self.fake.put('i', node, 'me')
        self.assertEqual({node: 'i'}, self.ironic.named(
            settings.Scope(), {node, 'gone'}))
        self.assertIn(node, self.ironic.found)
        self.cloud.nodes[other].group = 'Rack'
        self.assertEqual({other: None}, self.ironic.named(
            settings.Scope('rack'), {node, other}))

    def test_ironic_does_not_answer(self):
        self.fake.ironic.get.side_effect = sdk_exceptions.HttpException
        for ask in (
                lambda: self.ironic.shards(settings.Scope()),
                lambda: self.ironic.nodes(settings.Scope(), []),
                lambda: self.ironic.named(settings.Scope(), [NODE])):
            self.assertRaises(exception.VirtDriverNotReady, ask)

    def test_account_that_may_not_see_shards(self):
        self.fake.ironic.get.side_effect = None
        self.fake.ironic.get.return_value = mock.Mock(
            status_code=403, headers={}, text='no', url='u')
        self.assertRaises(exception.VirtDriverNotReady,
                          self.ironic.shards, settings.Scope())

    def test_ironic_too_old(self):
        self.fake.lacking.add('1.82')
        for ask in (lambda: self.ironic.shards(settings.Scope()),
                    lambda: self.ironic.nodes(settings.Scope(), [])):
            self.assertRaises(exception.VirtDriverNotReady, ask)
        self.assertEqual([], self.fake.asked)


class FreeNodesTestCase(IronicTestCase):
    """The nodes that are free now."""

    def test_those_that_can_be_built_on(self):
        for node in fake_nova.NODES[2:]:
            del self.cloud.nodes[node]
        self.cloud.nodes[OTHER].is_ready = False
        self.assertEqual({NODE}, set(
            self.ironic.free_nodes(settings.Scope())))
        self.assertEqual(
            {'associated': 'false', 'maintenance': 'false',
             'provision_state': 'available'}, self.fake.filters)

    def test_scope(self):
        self.ironic.free_nodes(settings.Scope('rack', 'a'))
        self.assertEqual(('rack', 'a'), (
            self.fake.filters['conductor_group'], self.fake.filters['shard']))

    def test_ironic_too_old_for_the_scope(self):
        self.fake.lacking.add('1.82')
        self.assertRaises(exception.VirtDriverNotReady,
                          self.ironic.free_nodes, settings.Scope(shard='a'))


class ClientTestCase(base.BaseTestCase):
    """What the SDK's real client makes of what is asked, and is spared."""

    def setUp(self):
        super().setUp()
        self.api = ironic_api.Api(
            [ironic_api.node(number, (None, 'x', 'y')[number % 3])
             for number in range(9)], page=2)
        self.client = self.api.connect()
        self.useFixture(fixtures.MockPatch(
            'nova.utils.get_sdk_adapter', return_value=self.client))
        self.ironic = nodes.Ironic(upstream.NovaIronicDriver(mock.Mock()))

    def _list(self, shards=None):
        return self.ironic.nodes(settings.Scope(), shards)

    def test_nodes_are_those_of_the_client(self):
        # As Nova's driver lists them.
        theirs = {node.id: node for node in self.client.nodes(
            fields=upstream.node_fields() + ('conductor_group', 'shard'))}
        found = self._list()
        ours = self.ironic.for_nova(found)
        self.assertEqual(theirs.keys(), ours.keys())
        for uuid, node in ours.items():
            self.assertIsInstance(node, sdk_node.Node)
            self.assertEqual(*(
                {name: value for name, value in each.to_dict().items()
                 # Where the client was connected to.
                 if name != 'location'} for each in (theirs[uuid], node)))
            self.assertEqual(theirs[uuid].instance_id, found[uuid])

    def test_a_node_is_seen_as_one_of_the_client(self):
        said = {**self.api.nodes[1], 'maintenance': True, 'traits': None}
        node = sdk_node.Node.existing(**said)
        for name, value in upstream.seen(said)._asdict().items():
            self.assertEqual(getattr(node, name), value)

    def test_no_node_is_made_that_is_not_for_nova(self):
        with mock.patch.object(
                sdk_node.Node, '__init__', return_value=None) as make:
            self.ironic.describe(self._list())
            self._list(['x'])
            self.ironic.uuids(settings.Scope())
            self.ironic.free_nodes(settings.Scope())
            make.assert_not_called()
            self.ironic.for_nova([self.api.nodes[0]['uuid']])
            make.assert_called_once()

    def test_a_node_is_made_again_when_it_has_changed(self):
        uuids = [node['uuid'] for node in self.api.nodes]
        self._list()
        before = self.ironic.for_nova(uuids)
        self.api.change(1, power_state='power on')
        self._list()
        now = self.ironic.for_nova(uuids)
        self.assertEqual('power on', now[uuids[1]].power_state)
        self.assertEqual({uuids[1]}, {
            uuid for uuid in uuids if now[uuid] is not before[uuid]})

    def test_a_node_is_forgotten_when_it_is_gone(self):
        uuids = [node['uuid'] for node in self.api.nodes]
        self._list()
        self.ironic.for_nova(uuids)
        self._list(['x'])
        self.assertEqual({
            node['uuid'] for node in self.api.nodes if node['shard'] != 'y'},
            self.ironic.for_nova(uuids).keys())

    def _list_as_site(self) -> None:
        """Have a driver that lists no node of an odd number."""
        class Site(upstream.NovaIronicDriver):
            def _get_node_list(self, **kwargs):
                return (node for node in super()._get_node_list(**kwargs)
                        if node.provision_state == 'available')

        self.ironic = nodes.Ironic(Site(mock.Mock()))

    def test_driver_that_lists_otherwise(self):
        plain = self._list()
        ours = self.ironic.for_nova(plain)
        self._list_as_site()
        even = [node['uuid'] for node in self.api.nodes[::2]]
        found = self._list()
        self.assertEqual({uuid: plain[uuid] for uuid in even}, found)
        self.assertEqual(set(even), self.ironic.uuids(settings.Scope()))
        for uuid, node in self.ironic.for_nova(found).items():
            for field in upstream.Seen._fields:
                self.assertEqual(getattr(ours[uuid], field),
                                 getattr(node, field))

    def test_driver_that_lists_otherwise_and_shards(self):
        self._list_as_site()
        # Those of x that it lists, and all without a shard.
        self.assertEqual(
            {node['uuid'] for number, node in enumerate(self.api.nodes)
             if node['shard'] is None
             or node['shard'] == 'x' and number % 2 == 0},
            self._list(['x']).keys())
        self.assertEqual({'x'}, set(self.ironic.places(
            self.ironic.more(settings.Scope(), ['x'])).values()))

    def test_driver_that_lists_otherwise_is_refused(self):
        self._list_as_site()
        for self.api.status in 400, 403, 503:
            self.assertRaises(exception.VirtDriverNotReady, self._list)

    def test_pages(self):
        found = self._list()
        self.assertEqual(9, len(found))
        self.assertEqual(5, len(self.api.asked))
        self.assertEqual({'1.82'}, self.api.versions)

    def test_shards(self):
        found = self._list(['x'])
        self.assertEqual({node['uuid'] for node in self.api.nodes
                          if node['shard'] != 'y'}, found.keys())
        self.assertEqual({'1.82'}, self.api.versions)

    def test_node_that_is_not_there(self):
        self.api.status = 404
        self.assertEqual({}, self.ironic.named(settings.Scope(), ['gone']))
        self.assertEqual(['/nodes/gone'], [
            asked.partition('?')[0] for asked in self.api.asked])

    def test_client_that_is_refused(self):
        for self.api.status in 400, 403, 404, 503:
            self.assertRaises(exception.VirtDriverNotReady, self._list)
        for self.api.status in 403, 503:
            self.assertRaises(
                exception.VirtDriverNotReady, self.ironic.named,
                settings.Scope(), ['some'])


class LatestTestCase(base.BaseTestCase):
    """The nodes that Ironic has changed last."""

    SCOPE = settings.Scope()

    def setUp(self):
        super().setUp()
        self.api = ironic_api.Api(
            [ironic_api.node(2 * number) for number in range(6)])
        self.useFixture(fixtures.MockPatch(
            'nova.utils.get_sdk_adapter', return_value=self.api.connect()))
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.core.looking.changes.PAGE', 2))
        self.driver = upstream.NovaIronicDriver(mock.Mock())
        self.ironic = nodes.Ironic(self.driver)
        self.ironic.nodes(self.SCOPE)
        self.api.asked.clear()

    def _uuid(self, number):
        return self.api.nodes[number]['uuid']

    def _latest(self, after=None, scope=SCOPE):
        return list(self.ironic.latest(scope, after))

    def test_what_is_asked_for(self):
        self._latest()
        (asked,) = self.api.asked
        self.assertEqual({
            'fields': ','.join(
                upstream.node_fields() + ('conductor_group', 'shard')),
            'sort_key': 'updated_at', 'sort_dir': 'desc', 'limit': '2'},
            dict(parse.parse_qsl(parse.urlsplit(asked).query)))

    def test_scope(self):
        self._latest('one', settings.Scope('rack', 'a'))
        asked = dict(parse.parse_qsl(parse.urlsplit(self.api.asked[0]).query))
        self.assertEqual(('rack', 'a', 'one'), (
            asked['conductor_group'], asked['shard'], asked['marker']))

    def test_newest_first_and_a_page_at_a_time(self):
        for number in 1, 4, 3:
            self.api.change(number)
        first = [each.node for each in self._latest()]
        self.assertEqual([self._uuid(3), self._uuid(4)], first)
        self.assertEqual(
            self._uuid(1), self._latest(first[-1])[0].node)

    def test_nothing_is_new(self):
        self.api.change(1)
        self.assertEqual([(None, None)] * 2, [
            (each.before, each.now) for each in self._latest()])

    def test_it_is_told_once(self):
        self.api.change(1, maintenance=True)
        before = self.ironic.found[self._uuid(0)]
        found = self._latest()[0]
        self.assertEqual((True, False), (
            found.before.is_ready, found.now.is_ready))
        self.assertIsNone(self._latest()[0].before)
        # It is known from now on.
        self.assertTrue(self.ironic.found[self._uuid(1)]['maintenance'])
        self.assertFalse(
            self.ironic.glances([self._uuid(1)])[self._uuid(1)].is_ready)
        self.assertIs(before, self.ironic.found[self._uuid(0)])

    def test_what_builds_depend_on(self):
        for changed in (
                {'maintenance': True}, {'provision_state': 'cleaning'},
                {'instance_uuid': 'it'}, {'power_state': 'error'},
                {'resource_class': 'other'}, {'traits': ['CUSTOM_OTHER']},
                {'properties': {'cpus': 1}}):
            self.ironic.nodes(self.SCOPE)
            before = dict(self.api.nodes[1])
            self.api.change(1, **changed)
            self.assertEqual([1], self._changed(), changed)
            self.api.change(1, **before)

    def _changed(self):
        """Name the nodes that have changed, by their numbers."""
        found = changes.ask(self.ironic, self.SCOPE)
        return [number for number in range(6) if self._uuid(number) in found]

    def test_what_they_do_not_depend_on(self):
        for changed in ({'last_error': 'no'}, {'power_state': 'power on'},
                        {'target_provision_state': 'available'},
                        {'traits': self.api.nodes[1]['traits'][::-1]}):
            self.ironic.nodes(self.SCOPE)
            self.api.change(1, **changed)
            self.assertEqual([], self._changed(), changed)

    def test_many(self):
        for number in range(5):
            self.api.change(number, maintenance=True)
        self.assertEqual([0, 1, 2, 3, 4], self._changed())
        # To the page where nothing is new, which is the end here.
        self.assertEqual(4, len(self.api.asked))
        self.assertEqual([], self._changed())
        self.assertEqual(5, len(self.api.asked))

    def test_new_node(self):
        self.api.nodes.append(ironic_api.node(20))
        self.api.change(6, maintenance=True)
        found = self._latest()[0]
        self.assertEqual((self._uuid(6), None, None),
                         (found.node, found.before, found.now))
        self.assertNotIn(self._uuid(6), self.ironic.found)
        self.assertEqual({}, self.ironic.glances([self._uuid(6)]))

    def test_listing_that_ends_first(self):
        self.api.change(1, maintenance=True)
        ask = upstream.list_latest

        def late(*args):
            answer = ask(*args)
            self.api.change(1, maintenance=False)
            self.ironic.nodes(self.SCOPE)
            return answer
        with mock.patch.object(upstream, 'list_latest', late):
            self.assertIsNone(self._latest()[0].before)
        self.assertFalse(self.ironic.found[self._uuid(1)]['maintenance'])

    def test_listing_that_has_asked_for_more(self):
        with mock.patch.object(self.ironic, '_fields', ('uuid', 'traits')):
            self.api.change(1, traits=[])
            self.assertIsNone(self._latest()[0].before)

    def test_it_is_as_if_listed(self):
        self.api.change(1, maintenance=True)
        self._latest()
        uuid = self._uuid(1)
        made = self.ironic.for_nova([uuid])[uuid]
        self.assertTrue(made.is_maintenance)
        before = self.ironic.fingerprints([uuid])
        self.assertEqual(before[uuid], self.ironic.fingerprint_of(made))
        self.ironic.nodes(self.SCOPE)
        self.assertEqual(before, self.ironic.fingerprints([uuid]))

    def test_ironic_does_not_answer(self):
        self.api.status = 500
        self.assertRaises(exception.VirtDriverNotReady, self._latest)

    def test_driver_with_a_listing_of_its_own(self):
        class Site(upstream.NovaIronicDriver):
            def _get_node_list(self, **kwargs):
                return iter(())
        ironic = nodes.Ironic(Site(mock.Mock()))
        self.assertEqual([], ironic.latest(self.SCOPE))
        self.assertEqual([], self.api.asked)
