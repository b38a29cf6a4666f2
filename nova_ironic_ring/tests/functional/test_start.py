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

"""A nova-compute that starts, alone or among others."""

import re

from nova_ironic_ring.core import ring
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import state as lab_state
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.tests.functional import base


class AloneTestCase(base.LabTestCase):
    """One service with nothing to configure, as with Nova's own driver."""

    NODES = 4
    COMPUTES = 1

    def test_nodes_are_there_from_the_start(self):
        self.assertEqual(
            {node.id: 'compute-1' for node in self.cloud.baremetal.nodes()},
            self.lab.owners())
        log = self.lab.compute('compute-1').log.read_text()
        # Before the service is up: all that is done until then is logged as
        # one request.
        (start,) = {request for line in log.splitlines()
                    if 'Members of the ring' in line
                    or 'Compute node record created' in line
                    for request in re.findall('req-[-0-9a-f]*', line)}
        self.assertIn('Loading compute driver', next(
            line for line in log.splitlines() if start in line))
        self.assertNotIn('ERROR nova_ironic_ring', log)
        self.assertNotIn('WARNING nova_ironic_ring', log)

    def test_server_and_restart(self):
        server = servers.boot(self.cloud, 'lonely')
        self.addCleanup(servers.delete, self.cloud, [server])
        server = servers.wait_active(self.cloud, server)
        before = self.lab.owners()
        self.lab.compute('compute-1').stop()
        self.lab.start_compute('compute-1')
        self.assertEqual(before, self.lab.owners())
        self.cloud.compute.reboot_server(server, 'HARD')
        self.lab.wait('The reboot', lambda: (
            self.cloud.compute.get_server(server).task_state is None))
        self.assertEqual(
            'ACTIVE', self.cloud.compute.get_server(server).status)


class BuildOfAPeerTestCase(base.LabTestCase):
    """A build that is on its way to a peer when a service starts."""

    NODES = 12
    COMPUTES = 2

    def _status_after_a_start(self) -> str:
        """Return the server's status once the newcomer has looked at it."""
        joined = ring.Ring(
            [*self.lab.state.computes, 'compute-3'], cloud.PARTITIONS)
        node, owner = next(
            (node, owner) for node, owner in self.lab.owners().items()
            if joined.owner(node) == 'compute-3')
        # It is to look alive until the server is scheduled, so that what takes
        # long for the first time is done before.
        self.cloud.image.find_image(tenant.IMAGE)
        self.cloud.compute.find_flavor(tenant.FLAVOR)
        self._allocations(node)
        self.lab.compute(owner).pause()
        self.addCleanup(self.lab.compute(owner).resume)
        server = servers.boot(self.cloud, 'on-its-way',
                              node=node, host=owner)
        self.addCleanup(servers.delete, self.cloud, [server])
        self.lab.wait('An allocation', lambda: self._allocations(node))
        self.assertEqual(
            'BUILD', self.cloud.compute.get_server(server).status)

        self.lab.add_compute('compute-3')
        log = self.lab.compute('compute-3').log
        self.lab.wait('The look at interrupted builds', lambda: (
            'Looking for unclaimed instances' in log.read_text()))
        self.lab.wait_alive('compute-3')
        status = self.cloud.compute.get_server(server).status
        self.lab.compute(owner).resume()
        self.lab.wait('The end of the build', lambda: (
            self.cloud.compute.get_server(server).status != 'BUILD'))
        return status

    def _allocations(self, node: str) -> bool:
        answer = self.cloud.placement.get(
            f'/resource_providers/{node}/allocations')
        return bool(answer.json()['allocations'])


class StockTestCase(BuildOfAPeerTestCase):

    DRIVER = lab_state.STOCK_DRIVER

    def test_build_of_a_peer_is_set_to_error(self):
        self.assertEqual('ERROR', self._status_after_a_start())


class RingTestCase(BuildOfAPeerTestCase):

    def test_build_of_a_peer_is_left_alone(self):
        self.assertEqual('BUILD', self._status_after_a_start())
        (server,) = self.cloud.compute.servers()
        self.assertEqual('ACTIVE', server.status)
