# SPDX-License-Identifier: Apache-2.0

"""Kinds of nodes, zones, aggregates and what provider.yaml adds."""

from nova_ironic_ring.core.values import pools
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import shapes
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.tests.functional import base


class ShapesTestCase(base.LabTestCase):

    #: The service whose provider.yaml adds something.
    PROVIDING = 'compute-1'

    def test_flavor_of_each_class(self):
        asked = {name: self.boot(name, flavor=name) for name in shapes.FLAVORS}
        for name, server in asked.items():
            server = servers.wait_active(self.cloud, server)
            node = self.node_of(server)
            self.assertEqual(name, node.resource_class)
            self.assertEqual(
                shapes.FLAVORS[name].architecture, node.properties['cpu_arch'])
            self.assertTrue(self.has_place(server))
            self.assertEqual(
                {pools.provider(server.hypervisor_hostname): {
                    tenant.placement_class(name): 1}},
                self.allocations(server))

    def test_what_provider_yaml_adds_through_a_death(self):
        # Not by the trait: Ironic wants on the node what a flavor asks for.
        flavor = self._flavor(
            'licensed', **{f'resources:{services.PROVIDED_CLASS}': '1'})
        server = servers.wait_active(
            self.cloud, self.boot('licensed', flavor=flavor))
        self.assertEqual(self.PROVIDING, server.compute_host)
        ((provider, resources),) = self.allocations(server).items()
        self.assertIn(services.PROVIDED_TRAIT, self.cloud.placement.get(
            f'/resource_providers/{provider}/traits', microversion='1.6',
        ).json()['traits'])
        self.assertEqual({'CUSTOM_BAREMETAL': 1, services.PROVIDED_CLASS: 1},
                         resources)
        node = self.node_of(server).id
        self.fail_over(server)
        self.wait_idle(server)
        now = self.show(server)
        self.assertEqual(('ACTIVE', node),
                         (now.status, self.node_of(server).id))
        self.assertReboots(server)
        self.assertTrue(self.has_place(now))
        (left,) = self.allocations(server).values()
        self.assertEqual(1, left['CUSTOM_BAREMETAL'])
        # Nothing of this keeps the taker from working.
        taker = now.compute_host
        self.wait_for_passes(taker)
        other = self.boot_active('another', taker)
        self.assertEqual(taker, other.compute_host)
        servers.delete(self.cloud, [server, other])


class PoolTestCase(ShapesTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=12)

    def test_sizes_are_those_of_the_nodes(self):
        # Nova's own driver says none of its nodes, nor does the ring driver.
        with self.lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute('SELECT SUM(memory_mb), SUM(vcpus), SUM(local_gb) '
                           'FROM compute_nodes WHERE deleted = 0')
            ((memory, cpus, disk),) = cursor.fetchall()
        wanted = [shapes.of(number) for number in range(1, self.nodes + 1)]
        self.assertEqual(
            (sum(each.memory for each in wanted),
             sum(each.cpus for each in wanted),
             sum(each.disk for each in wanted)), (memory, cpus, disk))
