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

"""Services with pools: builds, a takeover, and the change of drivers."""

import concurrent.futures

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.core import pools
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import state as lab_state
from nova_ironic_ring.lab import view
from nova_ironic_ring.tests.functional import base

_SERVERS = 5


class PoolTestCase(base.LabTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=12)

    def _pools(self) -> list[view.Pool]:
        with self.lab.cell() as connected:
            return list(view.read(connected).pools)

    def _node(self, server: sdk_server.Server) -> str:
        """Return the node that a server is on."""
        (node,) = self.cloud.baremetal.nodes(instance_id=server.id)
        return node.id

    def _wait_free(self) -> None:
        """Wait until Ironic has no instance, and all nodes can be built on."""
        self.lab.wait('All nodes free', lambda: all(
            node.instance_id is None and node.provision_state == 'available'
            for node in self.cloud.baremetal.nodes(details=True)))
        self.lab.wait_settled(self.nodes)

    def assertWhole(self, *wanted: sdk_server.Server) -> None:
        """See that servers are with one service each, on one node."""
        for server in wanted:
            now = self.show(server)
            self.assertEqual('ACTIVE', now.status)
            place = now.hypervisor_hostname
            self.assertEqual([pools.provider(place)],
                             list(self.allocations(server)))
            if pools.is_pool(place):
                self.assertTrue(pools.is_of(now.compute_host, place))
            else:
                self.assertEqual(self._node(server), place)
                self.assertEqual(now.compute_host, self.lab.owners()[place])

    def test_builds_and_totals(self):
        with concurrent.futures.ThreadPoolExecutor(_SERVERS) as threads:
            asked = list(threads.map(
                lambda number: self.boot(f'pooled-{number}'),
                range(_SERVERS)))
        built = [servers.wait_active(self.cloud, server) for server in asked]
        self.assertEqual(_SERVERS, len({
            self._node(server) for server in built}))
        self.assertWhole(*built)
        # Nodes are counted, never instances.
        self.lab.wait_settled(self.nodes)
        self.assertEqual(self.nodes, sum(
            pool.total for pool in self._pools()))
        servers.delete(self.cloud, built)
        self._wait_free()

    def test_service_that_dies(self):
        server = self.boot_active('orphan')
        node, dead = self._node(server), self.show(server).compute_host
        self.addCleanup(self.force_down, dead, False)
        self.addCleanup(self.lab.start_compute, dead)
        self.lab.compute(dead).kill()
        self.force_down(dead)
        self.lab.wait('A living service for the server', lambda: (
            self.show(server).compute_host != dead))
        self.wait_idle(server)
        self.assertEqual(node, self._node(server))
        self.assertWhole(server)
        self.assertReboots(server)
        servers.delete(self.cloud, [server])
        # The others count what the dead one had.
        self._wait_free()
        self.assertEqual(set(), {
            pool.owner for pool in self._pools()
            if pool.owner == dead and pool.reserved < pool.total})

    def _change(self, driver: str, *kept: sdk_server.Server) -> None:
        """Have all services change the driver, one after the other."""
        for name in self.lab.state.computes:
            self.lab.compute(name).stop()
            self.lab.configure_compute(
                name, {'DEFAULT': {'compute_driver': driver}})
            self.lab.start_compute(name)
            self.lab.wait(f'All nodes with {name} changed', lambda: (
                self._has_changed(name, driver, kept)))
            self.assertWhole(*kept)

    def _has_changed(self, name: str, driver: str,
                     kept: tuple[sdk_server.Server, ...]) -> bool:
        """Say whether nothing is with a service as it was before."""
        for server in kept:
            now = self.show(server)
            self.assertEqual('ACTIVE', now.status)
            if now.compute_host == name and (
                    pools.is_pool(now.hypervisor_hostname)
                    != (driver == lab_state.POOL_DRIVER)):
                return False
        found = self._find()
        left = (found.owners.values() if driver == lab_state.POOL_DRIVER
                else [owner for owner, *_ in found.pools.values()])
        return name not in left and (
            found.providers == {*found.owners, *found.pools}
        ) and self.lab.is_settled(self.nodes)

    def test_change_of_drivers_and_back(self):
        kept, other = (self.boot_active(name) for name in ('kept', 'other'))
        before = self._node(kept)
        self._change(lab_state.RING_DRIVER, kept, other)
        self.assertEqual([], self._pools())
        self.assertEqual(self.nodes, len(self.lab.owners()))
        self.assertReboots(kept)
        servers.delete(self.cloud, [other])

        new = self.boot_active('new')
        self._change(lab_state.POOL_DRIVER, kept, new)
        self.assertEqual({}, self.lab.owners())
        for server in kept, new:
            self.assertReboots(server)
        self.assertEqual(before, self._node(kept))
        servers.delete(self.cloud, [kept, new])
        self._wait_free()
