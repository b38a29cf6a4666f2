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
"""Tests of how a deployment is read."""

import contextlib
import types

import fixtures
from nova import objects
from openstack.baremetal.v1 import node as sdk_node
from oslotest import base

from nova_ironic_ring.adapters import stats
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.command import source
from nova_ironic_ring.core import pools
from nova_ironic_ring.core import profile


class RowsTestCase(base.BaseTestCase):

    def _read(self, *rows: tuple[str, str, str, dict]):
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all', side_effect=lambda context: [
                objects.ComputeNode(
                    hypervisor_hostname=node, host=host, hypervisor_type=kind,
                    stats=said) for node, host, kind, said in rows]))
        return source._rows('context', 'cell1')

    def test_what_services_say(self):
        said = profile.Profile(conductor_group='rack', names=('a', 'b'))
        rows, _ = self._read(
            ('n1', 'A', 'ironic',
             stats.publish('a', said) | stats.offer('A', 'b')),
            ('n2', 'B', 'ironic', {}))
        self.assertEqual(said, rows['n1'].profile)
        self.assertEqual(('A', 'b', 'cell1'),
                         (rows['n1'].owner, rows['n1'].taker, rows['n1'].cell))
        self.assertIsNone(rows['n2'].profile)
        self.assertIsNone(rows['n2'].taker)

    def test_hosts_with_nodes_of_another_kind(self):
        rows, others = self._read(
            ('n1', 'a', 'ironic', {}), ('kvm-1', 'KVM', 'QEMU', {}),
            ('a', 'a', 'QEMU', {}))
        self.assertEqual(['n1'], list(rows))
        self.assertEqual({'kvm', 'a'}, others)


class AggregatesTestCase(base.BaseTestCase):

    def test_by_host(self):
        self.useFixture(fixtures.MockPatchObject(
            objects.AggregateList, 'get_all', return_value=[
                objects.Aggregate(
                    name='rack-1', hosts=['A', 'b'],
                    metadata={'availability_zone': 'east'}),
                objects.Aggregate(name='fast', hosts=['A'], metadata={})]))
        self.assertEqual({
            'A': {'fast', 'rack-1 (availability zone east)'},
            'b': {'rack-1 (availability zone east)'}}, source._aggregates())


class PoolsTestCase(base.BaseTestCase):
    """Rows of pools, their nodes, and what Placement has of them."""

    POOL = 'a.CUSTOM_BAREMETAL.0123abcd'

    def setUp(self):
        super().setUp()
        self.source = source.Source()
        self.useFixture(fixtures.MockPatchObject(
            source.Source, 'cells', return_value=[
                objects.CellMapping(name='cell1', uuid='cell')]))
        self.useFixture(fixtures.MockPatchObject(
            source.Source, 'cell_of',
            side_effect=lambda name: contextlib.nullcontext('context')))
        self.useFixture(fixtures.MockPatchObject(
            source, '_aggregates', return_value={}))
        self.useFixture(fixtures.MockPatchObject(
            objects.ServiceList, 'get_by_binary', return_value=[]))
        self.useFixture(fixtures.MockPatchObject(
            objects.InstanceList, 'get_by_filters', return_value=[]))
        self.fields: list[str] = []
        self.useFixture(fixtures.MockPatchObject(
            upstream, 'list_fields', side_effect=self._nodes))
        self.asked: list[str] = []
        self.useFixture(fixtures.MockPatchObject(
            source, '_placement', side_effect=self._placement))

    def _nodes(self, driver, fields):
        self.fields = list(fields)
        return [sdk_node.Node(
            id='n1', name='node-1', instance_id='i',
            resource_class='baremetal', traits=['CUSTOM_FAST'],
            provision_state='active',
            properties={'cpu_arch': 'x86_64', 'capabilities': 'a:b'})]

    def _placement(self, method, url):
        self.asked.append(url)
        found = {
            '/resource_providers': {'resource_providers': []},
            f'/resource_providers/{pools.uuid_of(self.POOL)}/inventories': {
                'inventories': {'CUSTOM_BAREMETAL': {
                    'total': 5, 'reserved': 2, 'max_unit': 1}}},
            f'/resource_providers/{pools.uuid_of(self.POOL)}/usages': {
                'usages': {'CUSTOM_BAREMETAL': 1}}}
        return types.SimpleNamespace(json=lambda: found.get(url, {}))

    def _read(self, *names, **options):
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all', return_value=[
                objects.ComputeNode(
                    hypervisor_hostname=name, host='a',
                    hypervisor_type='ironic', stats={}) for name in names]))
        return self.source.read(**options)

    def test_pools(self):
        seen = self._read('n1', self.POOL)
        self.assertEqual(['n1'], list(seen.rows))
        self.assertEqual([self.POOL], list(seen.pools))
        self.assertEqual(pools.Kind(
            'CUSTOM_BAREMETAL', frozenset({'CUSTOM_FAST'}),
            frozenset({('cpu_arch', 'x86_64'), ('a', 'b')})),
            seen.nodes['n1'].kind)
        self.assertEqual(('node-1', 'i'), (
            seen.nodes['n1'].name, seen.nodes['n1'].instance))
        self.assertEqual({}, seen.inventories)

    def test_no_more_is_read_where_there_are_no_pools(self):
        seen = self._read('n1')
        self.assertNotIn('properties', self.fields)
        self.assertIsNone(seen.nodes['n1'].kind)

    def test_what_placement_has(self):
        seen = self._read(self.POOL, providers=True)
        self.assertEqual({self.POOL: snapshot.Inventory(5, 2, 1)},
                         seen.inventories)
        self.assertEqual(2, seen.inventories[self.POOL].free)
        other = 'b.CUSTOM_BAREMETAL.0123abcd'
        self.assertEqual({}, self.source.inventories([other]))
