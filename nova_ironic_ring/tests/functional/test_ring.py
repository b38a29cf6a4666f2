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

"""Three real nova-computes divide the nodes of a real Ironic."""

import collections
import time

from nova_ironic_ring.core import ring
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import state as lab_state
from nova_ironic_ring.tests.functional import base


class RingTestCase(base.LabTestCase):

    def _inventory(self) -> set[str]:
        return {node.id for node in self.cloud.baremetal.nodes()}

    def _divided(self, *members: str) -> dict[str, str]:
        """Return who owns each node when these are the ring's members."""
        expected = ring.Ring(members, cloud.PARTITIONS)
        return {node: expected.owner(node) for node in self._inventory()}

    def assertDivided(self, *members: str) -> None:
        """See that the nodes come to be divided among these."""
        expected = self._divided(*members)
        self.lab.wait(f'A ring of {", ".join(members)}',
                      lambda: self.lab.owners() == expected)
        # With its record a service that is deleted takes those of its nodes.
        self.lab.wait('The resource providers', lambda: (
            self._inventory() == self._resource_providers()))

    def _resource_providers(self) -> set[str]:
        return {provider.id
                for provider in self.cloud.placement.resource_providers()}

    def test_every_node_has_one_owner_and_every_owner_some(self):
        with self.lab.cell() as connection, connection.cursor() as cursor:
            cursor.execute('SELECT uuid, hypervisor_hostname, host '
                           'FROM compute_nodes WHERE deleted = 0')
            records = cursor.fetchall()
        self.assertEqual(self.NODES, len(records))
        self.assertEqual(self._inventory(), {record[0] for record in records})
        for node, hypervisor, _ in records:
            self.assertEqual(node, hypervisor)
        shares = collections.Counter(record[2] for record in records)
        self.assertEqual(set(self.lab.state.computes), set(shares))
        self.assertEqual(self._inventory(), self._resource_providers())

    def test_owners_are_those_of_the_ring(self):
        self.assertDivided(*self.lab.state.computes)

    def test_the_driver_is_ours(self):
        for name in self.lab.state.computes:
            log = self.lab.compute(name).log.read_text()
            self.assertIn(
                "Loading compute driver 'ironic_ring.IronicRingDriver'", log)
            self.assertIn(
                'Members of the ring: compute-1, compute-2, compute-3', log)

    def test_server_on_each(self):
        for host in self.lab.state.computes:
            server = servers.boot(self.cloud, f'on-{host}', host)
            self.addCleanup(self.cloud.compute.delete_server, server,
                            ignore_missing=True)
            server = servers.wait_active(self.cloud, server)
            self.assertEqual(host, server.compute_host)
            node = self.cloud.baremetal.get_node(server.hypervisor_hostname)
            self.assertEqual(server.id, node.instance_id)
            self.assertEqual('active', node.provision_state)
            self.assertEqual(host, self.lab.owners()[node.id])

            servers.delete(self.cloud, [server])
            node = self.cloud.baremetal.get_node(node)
            self.assertIsNone(node.instance_id)
            self.assertEqual('available', node.provision_state)

    def test_join_and_leave(self):
        three = list(self.lab.state.computes)
        self.addCleanup(self.assertDivided, *three)
        self.lab.add_compute('compute-4')
        self.addCleanup(self.remove_compute, 'compute-4')
        self.lab.wait_alive('compute-4')
        self.lab.discover_hosts()
        self.assertDivided(*three, 'compute-4')
        self.assertIn('compute-4', self.lab.owners().values())

        server = servers.boot(self.cloud, 'on-the-fourth', 'compute-4')
        server = servers.wait_active(self.cloud, server)
        self.assertEqual('compute-4', server.compute_host)
        servers.delete(self.cloud, [server])

        self.lab.compute('compute-4').stop()
        self.assertDivided(*three)

    def test_killed_and_started_again(self):
        one, two, three = self.lab.state.computes
        self.lab.compute(two).kill()
        self.assertDivided(one, three)
        self.lab.start_compute(two)
        self.assertDivided(one, two, three)

    def _restart_with(self, driver: str, name: str) -> None:
        """Restart a nova-compute with another driver, as an upgrade does."""
        self.lab.compute(name).stop()
        self.lab.configure_compute(name, {
            'DEFAULT': {'compute_driver': driver}})
        self.lab.start_compute(name)

    def test_one_by_one_to_the_stock_driver_and_back(self):
        computes = self.lab.state.computes
        server = servers.boot(self.cloud, 'stays', computes[0])
        self.addCleanup(servers.delete, self.cloud, [server])
        server = servers.wait_active(self.cloud, server)
        free = self._inventory() - {server.hypervisor_hostname}

        def divided() -> bool:
            owners = self.lab.owners()
            expected = self._divided(*computes)
            return (owners[server.hypervisor_hostname] == computes[0]
                    and all(owners[node] == expected[node] for node in free))

        for driver in lab_state.STOCK_DRIVER, lab_state.RING_DRIVER:
            for name in computes:
                self._restart_with(driver, name)
                self.lab.wait('A ring of both drivers', divided)
                # The server is managed all the time, by whichever it has.
                self.cloud.compute.reboot_server(server, 'HARD')
                self.lab.wait('The reboot', lambda: (
                    self.cloud.compute.get_server(server).task_state is None))
                self.assertEqual(
                    'ACTIVE', self.cloud.compute.get_server(server).status)
        self.assertEqual(self._inventory(), self._resource_providers())

    def test_builds_while_one_joins_and_another_is_disabled(self):
        _, second, _ = computes = list(self.lab.state.computes)
        self.addCleanup(self.assertDivided, *computes)
        (service,) = self.cloud.compute.services(
            host=second, binary='nova-compute')
        started = []
        for number in range(20):
            if number == 4:
                self.cloud.compute.disable_service(service)
                self.addCleanup(self.cloud.compute.enable_service, service)
            if number == 8:
                self.lab.add_compute('compute-5')
                self.addCleanup(self.remove_compute, 'compute-5')
            if number == 12:
                self.lab.discover_hosts()
            started.append(servers.boot(self.cloud, f'moving-{number}'))
            self.addCleanup(self.cloud.compute.delete_server, started[-1],
                            ignore_missing=True)
            time.sleep(1.5)
        hosts = {servers.wait_active(self.cloud, server).compute_host
                 for server in started}
        self.assertLessEqual(hosts, {*computes, 'compute-5'})
        servers.delete(self.cloud, started)

    def test_instance_deleted_while_its_service_is_down(self):
        name = self.lab.state.computes[1]
        self.addCleanup(self.assertDivided, *self.lab.state.computes)
        server = servers.boot(self.cloud, 'forgotten', name)
        server = servers.wait_active(self.cloud, server)
        node = server.hypervisor_hostname
        self.lab.compute(name).kill()
        self.addCleanup(self.lab.compute(name).start)
        self.lab.wait(f'{name} down', lambda: any(
            member.host == name and member.state == 'down'
            for member in self.lab.ring()))
        servers.delete(self.cloud, [server])
        self.assertEqual(
            server.id, self.cloud.baremetal.get_node(node).instance_id)

        self.lab.start_compute(name)
        self.lab.wait('The node free', lambda: (
            self.cloud.baremetal.get_node(node).instance_id is None))
        self.assertDivided(*self.lab.state.computes)
        self.lab.wait('The node available', lambda: (
            self.cloud.baremetal.get_node(node).provision_state
            == 'available'))

    def test_node_deleted_in_ironic(self):
        (extra,) = self.lab.enroll(1)
        self.assertDivided(*self.lab.state.computes)
        self.assertIn(extra, self._resource_providers())
        self.cloud.baremetal.delete_node(extra)
        self.lab.wait('The row gone',
                      lambda: extra not in self.lab.owners())
        self.lab.wait('The resource provider gone',
                      lambda: extra not in self._resource_providers())
        # And nothing else.
        self.assertEqual(self._inventory(), self._resource_providers())
        self.assertEqual(self._inventory(), set(self.lab.owners()))
