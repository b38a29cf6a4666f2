# SPDX-License-Identifier: Apache-2.0

"""Deleted instances that a silent service may still begin to deploy."""

from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.unit.compute import base


class OrphanTestCase(base.DriverTestCase):
    """A service stands still between the claim and the deployment."""

    def place(self, node: str) -> str:
        return node

    def test_it_is_not_reaped_while_its_service_may_wake(self):
        self.settle()
        node = self.first_of_b()
        self.cloud.nodes[node].instance = 'i'
        self.nova.provision_states[node] = 'available'
        self.cloud.instances['i'] = model.Instance(
            'b', self.place(node), is_building=True, task='spawning')
        self.nova.silent.add('b')
        self.run_passes(9)
        # Nova's API deletes what is on a service that is down.
        del self.cloud.instances['i']
        self.cloud.deleted['i'] = model.Instance(
            'b', self.place(node), is_deleted=True)
        self.run_passes(2)
        self.assertNotIn('i', self.driver.list_instance_uuids())
        self.nova.change_service('b', forced_down=True)
        self.run_passes(2)
        self.assertIn('i', self.driver.list_instance_uuids())

    def run_passes(self, number: int) -> None:
        for _ in range(number):
            self.nova.advance(10)
            self.me.run_pass()


class PoolOrphanTestCase(base.PeersWithPools, OrphanTestCase):
    """The same with pools."""

    def place(self, node: str) -> str:
        return pools.name('b', base.KIND)
