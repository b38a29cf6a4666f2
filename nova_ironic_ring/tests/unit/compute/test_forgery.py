# SPDX-License-Identifier: Apache-2.0

"""Nobody but the driver speaks in its name.

Whoever owns a node in Ironic, and nothing else, may set its capabilities, and
Nova saves these where the services of a ring read what they tell each other.
"""

import json
from unittest import mock

from nova.compute import stats as compute_stats
from nova import objects
from nova.scheduler.filters import compute_capabilities_filter
from nova.scheduler import host_manager
from nova.virt.ironic import driver as nova_driver
from openstack.baremetal.v1 import node as sdk_node
from oslo_serialization import jsonutils
from oslo_utils import uuidutils

from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.adapters.nova import stats as stats_adapter
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.compute import base

NODE = base.NODES[0]

#: What the service a would say of what the row of a node was made of.
MADE = stats_adapter.make('a', 'x', 7)
(_MADE_TEXT,) = MADE.values()
FORGED = (
    'ironic_ring_made:a,ironic_ring_nodes:me,ironic_ring_view:{}',
    'ironic_ring:made:a,ironic_ring:nodes:me,ironic_ring:profile:{}',
    'ironic_ring::made:a,:ironic_ring:nodes:me,ironic_ring:profile::{}',
    ' ironic_ring_made :a,\tironic_ring_nodes\n:me,ironic_ring_view :{}',
    'IRONIC_RING_MADE:a,Ironic_Ring_Nodes:me,ironic_RING:{}',
    'ironic_ring:{"from": "a"},"ironic_ring\\u003amade":a',
    'ironic_ring\uff1amade:a,ironic_ring\\x3amade:a,ironic_ring%3amade:a',
    json.dumps(MADE), MADE, [MADE],
    'boot_option:local,ironic_ring_made:a,ironic_ring_nodes:me',
    {'ironic_ring_made': _MADE_TEXT, 'ironic_ring_view': '{}'},
    {'ironic_ring:made': 'a', 'ironic_ring:profile': '{}'},
    {'x': MADE, 'ironic_ring:made': {'me': ''}},
    ['ironic_ring_made:a', 'ironic_ring:made:a',
     ('ironic_ring:made', _MADE_TEXT)],
    ('ironic_ring:made', _MADE_TEXT), 7, True)

#: What the service a would say in its member record.
SAID = stats_adapter.say_member(ports.Saying(
    settings.Settings('a', scope=settings.Scope('rack')), model.LastPass(
        60, clouds.EPOCH), frozenset(), '0a1b'))
(_TEXT,) = SAID.values()
# Nova divides capabilities at the commas.
_SHORT = '{"from":"a"}'
MEMBERS = (
    SAID, [SAID], json.dumps(SAID), f'ironic_ring:member:{_TEXT}',
    f'ironic_ring:member:{_SHORT}', f'ironic_ring::member:{_SHORT}',
    f'ironic_ring_member:{_SHORT}', f' Ironic_Ring:Member :{_SHORT}',
    f'ironic_ring\\u003amember:{_SHORT}', f'ironic_ring\uff1amember:{_SHORT}',
    f'ironic_ring%3amember:{_SHORT}', {'ironic_ring': {'member': _TEXT}},
    {' ironic_ring:member': _TEXT, 'IRONIC_RING:MEMBER': _TEXT},
    ('ironic_ring:member', _TEXT), [f'ironic_ring:member:{_SHORT}'])


#: What Nova itself writes where capabilities are written, and counts with.
COUNTED = ('num_instances:x', 'io_workload: ', 'failed_builds:x',
           'failed_builds:-99', ' failed_builds :1', 'num_vm_building:x',
           'num_task_None:1', 'num_tasks:x', 'num_os_type_None:1',
           'num_proj_fake:-1', 'uptime:7')


def _record(host: str, stats: dict[str, str | None]) -> objects.ComputeNode:
    """Return a row as it is after the resource tracker has saved it."""
    kept = compute_stats.Stats()
    kept.digest_stats(stats)
    row = objects.ComputeNode(uuid=NODE, host=host, stats=kept,
                              hypervisor_type='ironic',
                              hypervisor_hostname=NODE, running_vms=0,
                              updated_at=None)
    # By way of conductor, and of the database.
    row = objects.ComputeNode.obj_from_primitive(
        jsonutils.loads(jsonutils.dumps(row.obj_to_primitive())))
    updates = row.obj_get_changes()
    row._convert_stats_to_db_format(updates)
    row.stats = jsonutils.loads(updates['stats'])
    return row


class ForgeryTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.settle()
        self.own = min(self.nova.owned('me'))

    def _stats(self, node: str, capabilities: object) -> dict:
        """Return what the driver says of a node with some capabilities."""
        self.nova.properties[node] = {'capabilities': capabilities}
        self.me.begin_pass()
        return self.driver.get_available_resource(node)['stats']

    def test_in_the_row_of_novas_own_driver(self):
        stock = nova_driver.IronicDriver(mock.Mock())
        for capabilities in FORGED + MEMBERS:
            node = sdk_node.Node(id=NODE, properties={
                'cpu_arch': 'x86_64', 'capabilities': capabilities})
            row = _record('a', stock._node_resource(node)['stats'])
            self._says_nothing(row, 'a', capabilities)

    def _says_nothing(self, row: objects.ComputeNode, host: str,
                      capabilities: object) -> None:
        """Check that a row does not say what it is made to say."""
        self.assertNotEqual(
            'x', stats_adapter.read_made(row.stats, host)[0], capabilities)
        self.assertIsNone(
            stats_adapter.read_profile(row.stats, host), capabilities)
        self.assertEqual(model.Member(), stats_adapter.read_member(
            row.stats, host), capabilities)

    def test_node_that_imitates_a_member_record(self):
        """Its owner may choose its UUID, and nothing that Nova names it."""
        stock = nova_driver.IronicDriver(mock.Mock())
        uuid = member.uuid_of('a')
        for capabilities in MEMBERS:
            node = sdk_node.Node(id=uuid, properties={
                'cpu_arch': 'x86_64', 'capabilities': capabilities})
            self.nova.own(uuid, 'a')
            self.nova.stats[uuid] = _record(
                'a', stock._node_resource(node)['stats']).stats
            self.assertEqual({}, records.Nova().members(['a']), capabilities)
        # Not even what the service itself would say.
        self.nova.stats[uuid] = SAID
        self.assertEqual({}, records.Nova().members(['a']))
        # As its record says it.
        self.assertEqual('rack', stats_adapter.read_member(
            SAID, 'a').scope.conductor_group)

    def test_in_the_row_of_this_driver(self):
        for capabilities in FORGED + MEMBERS:
            said = self._stats(self.own, capabilities)
            self._check(said, capabilities, {'ironic_ring:made'})
            self.assertIsNotNone(stats_adapter.read_made(
                _record('me', said).stats, 'me')[0], capabilities)

    def test_in_the_row_of_a_node_that_it_has_not_decided_on(self):
        self.cloud.nodes[base.NEW] = clouds.Node()
        for capabilities in FORGED + MEMBERS:
            self.nova.properties[base.NEW] = {'capabilities': capabilities}
            self.driver.node_cache.pop(base.NEW, None)
            self._check(
                self.driver.get_available_resource(base.NEW)['stats'],
                capabilities, set())

    def _check(self, stats: dict, capabilities: object, keys: set[str]
               ) -> None:
        self.assertEqual(
            keys, {key for key in stats
                   if key.strip().lower().startswith('ironic_ring')},
            capabilities)
        for host in 'me', 'a':
            row = _record(host, stats)
            self._says_nothing(row, host, capabilities)

    def test_what_nova_counts(self):
        """Nova's scheduler goes on with all hosts, and is not led."""
        for capability in COUNTED:
            said = self._stats(self.own, f'boot:uefi,{capability}')
            self.assertEqual('uefi', said['boot'])
            kept = compute_stats.Stats()
            kept['failed_builds'] = 3
            kept.digest_stats(said)
            kept.update_stats_for_instance(objects.Instance(
                uuid=uuidutils.generate_uuid(), vm_state='building',
                task_state=None, os_type=None, project_id='fake'))
            kept.calculate_workload()
            row = objects.ComputeNode(
                uuid=NODE, host='a', hypervisor_hostname=NODE,
                hypervisor_type='ironic', hypervisor_version=1, host_ip=None,
                cpu_info='', memory_mb=1, free_ram_mb=1, vcpus=1, vcpus_used=0,
                local_gb=1, local_gb_used=0, free_disk_gb=1, metrics=None,
                disk_available_least=None, numa_topology=None, updated_at=None,
                pci_device_pools=None, supported_hv_specs=[], stats=kept,
                cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0,
                disk_allocation_ratio=1.0)
            state = host_manager.HostState('a', NODE, 'cell')
            state.update(row)
            self.assertEqual((1, 1, 3), (
                state.num_instances, state.num_io_ops, state.failed_builds),
                capability)

    def test_node_that_novas_driver_reads_itself(self):
        # As after each server that was deleted there.
        for properties in ({'capabilities': 'boot:uefi,num_instances:x'},
                           {'cpus': float('inf')}):
            self._stats(self.own, 'boot:uefi')
            self.nova.properties[self.own] = properties
            self.driver.node_cache.pop(self.own)
            said = self.driver.get_available_resource(self.own)
            self.assertNotIn('num_instances', said['stats'])
            # What updates the node next changes no more than that.
            node = self.driver.node_cache[self.own]
            self.assertEqual({}, node._body.dirty)

    def test_other_capabilities_stay(self):
        stats = self._stats(self.own, FORGED[10])
        self.assertEqual('local', stats['boot_option'])
        self.assertEqual('x86_64', stats['cpu_arch'])

    def test_nova_does_not_trip_over_the_names(self):
        said = MADE | SAID
        self.assertEqual(2, len(said))
        row = _record('a', {'boot_option': 'local', 'nothing': None, **said})
        self.assertEqual(said, {
            key: value for key, value in row.stats.items() if key in said})
        # No capability can have such a name.
        self.assertEqual([], [key for key in said if ':' not in key])

        state = host_manager.HostState('a', NODE, 'cell')
        state.stats = row.stats
        passes = compute_capabilities_filter.ComputeCapabilitiesFilter()
        for specs, outcome in (
                ({'capabilities:boot_option': 'local'}, True),
                ({'capabilities:boot_option': 'netboot'}, False),
                ({'ironic_ring:made': 'x'}, True),
                ({'capabilities:ironic_ring:made': 'a'}, False)):
            spec = objects.RequestSpec(flavor=objects.Flavor(
                extra_specs=specs))
            self.assertEqual(outcome, passes.host_passes(state, spec), specs)
