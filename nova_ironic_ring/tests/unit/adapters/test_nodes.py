# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What the pool driver asks of Ironic."""

from unittest import mock

from nova import exception
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
from oslotest import base

from nova_ironic_ring.adapters import nodes
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core import cloud as clouds
from nova_ironic_ring.core import pools
from nova_ironic_ring.core import settings
from nova_ironic_ring.tests.fixtures import fake_nova

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

    def test_free_node(self):
        self.assertTrue(self.ironic.reserve(NODE, 'i'))
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
        self.assertFalse(self.ironic.reserve(NODE, 'i'))
        self.assertEqual('other', self.cloud.nodes[NODE].instance)

    def test_node_that_is_not_ready_is_released(self):
        self.fake.provision_states[NODE] = 'cleaning'
        self.assertFalse(self.ironic.reserve(NODE, 'i'))
        self.assertIsNone(self.cloud.nodes[NODE].instance)

    def test_node_in_maintenance_is_released(self):
        self.cloud.nodes[NODE].is_ready = False
        self.assertFalse(self.ironic.reserve(NODE, 'i'))
        self.assertIsNone(self.cloud.nodes[NODE].instance)

    def test_answer_that_is_lost(self):
        update = self.fake.ironic.update_node.side_effect

        def lose(*args, **kwargs):
            update(*args, **kwargs)
            raise sdk_exceptions.SDKException('timeout')
        self.fake.ironic.update_node.side_effect = lose
        self.assertTrue(self.ironic.reserve(NODE, 'i'))

    def test_ironic_that_does_not_answer(self):
        error = sdk_exceptions.SDKException('no')
        self.fake.ironic.update_node.side_effect = error
        self.fake.ironic.get_node.side_effect = error
        self.assertRaises(sdk_exceptions.SDKException,
                          self.ironic.reserve, NODE, 'i')


class OthersTestCase(IronicTestCase):
    """The nodes that others divide."""

    def test_listing_of_this_service_stays(self):
        self.cloud.nodes[NODE].group = 'rack'
        self.ironic.nodes(settings.Scope())
        self.assertEqual({NODE}, self.ironic.uuids(settings.Scope('rack')))
        self.assertIn(OTHER, self.ironic.found)


class ShardsTestCase(IronicTestCase):
    """The nodes of some shards."""

    def setUp(self):
        super().setUp()
        for number, node in enumerate(fake_nova.NODES):
            self.cloud.nodes[node].shard = (None, 'x', 'y')[number % 3]

    def _in(self, *shards):
        return {node for node in fake_nova.NODES
                if self.cloud.nodes[node].shard in shards}

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
        self.assertIn('shard', self.fake.ironic.nodes.call_args[1]['fields'])

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

    def test_very_many_shards(self):
        names = [f'shard-{number:04}' for number in range(1000)] + ['y']
        self.assertEqual(self._in('y', None), self.ironic.nodes(
            settings.Scope(), names).keys())
        for call in self.fake.ironic.nodes.call_args_list:
            self.assertLessEqual(len(call[1]['shard']), 1500)

    def test_all_nodes_have_no_shard_to_an_old_ironic(self):
        self.ironic.nodes(settings.Scope(), ['x'])
        self.fake.ironic.nodes.reset_mock()
        self.ironic.nodes(settings.Scope())
        self.assertNotIn(
            'shard', self.fake.ironic.nodes.call_args[1]['fields'])

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
        self.fake.ironic.get_node.side_effect = sdk_exceptions.HttpException
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
            {'associated': 'false', 'is_maintenance': 'false',
             'provision_state': 'available'}, self.fake.filters)

    def test_scope(self):
        self.ironic.free_nodes(settings.Scope('rack', 'a'))
        self.assertEqual(('rack', 'a'), (
            self.fake.filters['conductor_group'], self.fake.filters['shard']))

    def test_ironic_too_old_for_the_scope(self):
        self.fake.lacking.add('1.82')
        self.assertRaises(exception.VirtDriverNotReady,
                          self.ironic.free_nodes, settings.Scope(shard='a'))
