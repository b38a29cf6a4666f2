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

"""A service that dies leaves nothing behind."""

import time

from openstack.compute.v2 import server as sdk_server
from openstack import exceptions

from nova_ironic_ring.lab import servers
from nova_ironic_ring.tests.functional import base


class _FailoverTestCase(base.LabTestCase):
    """One of the services is to die."""

    NODES = 24

    def setUp(self) -> None:
        super().setUp()
        self.dead = self.lab.state.computes[1]
        self.addCleanup(self._bring_back)

    def _bring_back(self) -> None:
        self._force_down(False)
        self.lab.compute(self.dead).resume()
        self.lab.compute(self.dead).kill()
        self.lab.start_compute(self.dead)
        self.lab.wait_settled(self.NODES)

    def _die(self) -> None:
        self.lab.compute(self.dead).kill()
        self._force_down()

    def _force_down(self, forced: bool = True) -> None:
        (service,) = self.cloud.compute.services(
            host=self.dead, binary='nova-compute')
        self.cloud.compute.update_service_forced_down(
            service, self.dead, 'nova-compute', forced)

    def _wait_down(self) -> None:
        self.lab.wait(f'{self.dead} down', lambda: any(
            member.host == self.dead and member.state == 'down'
            for member in self.lab.ring()))

    def _boot(self, name: str) -> sdk_server.Server:
        server = servers.boot(self.cloud, name, self.dead)
        self.addCleanup(self._delete, server)
        return server

    def _delete(self, server: sdk_server.Server) -> None:
        if self.cloud.compute.find_server(server.id):
            servers.delete(self.cloud, [server])

    def _boot_active(self, name: str) -> sdk_server.Server:
        return servers.wait_active(self.cloud, self._boot(name))

    def _show(self, server: sdk_server.Server) -> sdk_server.Server:
        return self.cloud.compute.get_server(server.id)

    def _allocations(self, server: sdk_server.Server) -> dict[str, dict]:
        """Return what a server holds, by resource provider."""
        found = self.cloud.placement.get(f'/allocations/{server.id}').json()
        return {provider: each['resources']
                for provider, each in found['allocations'].items()}

    def _node_of(self, server: sdk_server.Server):
        """Return the node that holds a server; None if none does."""
        return next(self.cloud.baremetal.nodes(
            details=True, instance_id=server.id), None)

    def _wait_taken_over(self, *wanted: sdk_server.Server) -> None:
        self.lab.wait('Another service for the servers', lambda: all(
            self._show(server).compute_host != self.dead
            for server in wanted))
        self.lab.wait('The rows of their nodes', lambda: all(
            self.lab.owners().get(server.hypervisor_hostname)
            == self._show(server).compute_host for server in wanted))

    def _wait_idle(self, server: sdk_server.Server) -> None:
        self.lab.wait('The end of the task', lambda: (
            self._show(server).task_state is None))

    def _wait_for_task(self, server: sdk_server.Server, *tasks: str) -> None:
        """Wait until its service is at something, which may be short."""
        deadline = time.monotonic() + 30
        while self._show(server).task_state not in tasks:
            self.assertLess(time.monotonic(), deadline,
                            f'no task of {tasks} in time')
            time.sleep(0.05)

    def _wait_logged(self, host: str, what: str) -> None:
        self.lab.wait(f'"{what}" in the log of {host}', lambda: (
            what in self.lab.compute(host).log.read_text()))


class FailoverTestCase(_FailoverTestCase):

    def _network(self):
        network = self.cloud.network.create_network(name='wire')
        self.addCleanup(self.cloud.network.delete_network, network)
        self.cloud.network.create_subnet(
            network_id=network.id, ip_version=4, cidr='192.0.2.0/24')
        return network

    def assertWorks(self, server: sdk_server.Server, network) -> None:
        """See that a server does what it is told to."""
        compute = self.cloud.compute
        image = server.image.id
        for what, status in (
                (lambda: compute.reboot_server(server, 'HARD'), 'ACTIVE'),
                (lambda: compute.reboot_server(server, 'SOFT'), 'ACTIVE'),
                (lambda: compute.stop_server(server), 'SHUTOFF'),
                (lambda: compute.start_server(server), 'ACTIVE'),
                (lambda: compute.lock_server(server), 'ACTIVE'),
                (lambda: compute.unlock_server(server), 'ACTIVE'),
                (lambda: compute.rescue_server(server), 'RESCUE'),
                (lambda: compute.unrescue_server(server), 'ACTIVE'),
                # From 2.93 on Nova takes each rebuild for one of a volume,
                # which its ironic driver refuses.
                (lambda: compute.post(
                    f'/servers/{server.id}/action', microversion='2.92',
                    json={'rebuild': {'imageRef': image}}), 'ACTIVE')):
            what()
            self._wait_idle(server)
            self.assertEqual(status, self._show(server).status)
        attached = compute.create_server_interface(
            server, net_id=network.id)
        self.lab.wait('The interface', lambda: [
            attached.port_id] == [each.port_id for each in
                                  compute.server_interfaces(server)])
        compute.delete_server_interface(attached, server)
        self.lab.wait('No interface', lambda: not list(
            compute.server_interfaces(server)))
        # The lab has none, and the service says so.
        error = self.assertRaises(
            exceptions.BadRequestException,
            compute.create_server_remote_console, server, protocol='serial',
            type='serial')
        self.assertIn('console', str(error))

    def test_servers_of_a_service_that_is_forced_down(self):
        network = self._network()
        wanted = [self._boot_active(f'stays-{number}') for number in range(2)]
        before = [self._allocations(server) for server in wanted]
        self.lab.compute(self.dead).kill()
        self._wait_down()
        # That alone is no reason.
        for server in wanted:
            self.assertEqual(self.dead, self._show(server).compute_host)

        self.run_program('openstack', 'compute', 'service', 'set', '--down',
                         self.dead, 'nova-compute')
        self._wait_taken_over(*wanted)
        self.assertEqual(
            before, [self._allocations(server) for server in wanted])
        for server in wanted:
            self.assertIn('ACTIVE', self.run_program(
                'openstack', 'server', 'show', server.id))
            self.assertIn(server.hypervisor_hostname, self.run_program(
                'openstack', 'resource', 'provider', 'allocation', 'show',
                server.id))
        manage = (*self.lab.nova.manage, 'placement')
        self.run_program(*manage, 'audit', '--verbose')
        # Nothing to do:
        # https://docs.openstack.org/nova/latest/cli/nova-manage.html
        self.run_program(*manage, 'heal_allocations', '--dry-run', status=4)
        self.assertWorks(wanted[0], network)
        self.lab.wait('No node of the dead one', lambda: (
            self.dead not in self.lab.owners().values()))

        # It comes back, and finds itself without them.
        hosts = {server.id: self._show(server).compute_host
                 for server in wanted}
        self._bring_back()
        for server in wanted:
            self.assertEqual(hosts[server.id],
                             self._show(server).compute_host)
            self.assertEqual('ACTIVE', self._show(server).status)
        self.assertIn(self.dead, self.lab.owners().values())

        servers.delete(self.cloud, wanted)
        for server in wanted:
            self.assertEqual({}, self._allocations(server))

    def test_what_was_under_way(self):
        rebooting, deleted, stopping, rescuing = (
            self._boot_active(name) for name in (
                'rebooting', 'deleted', 'stopping', 'rescuing'))
        compute = self.cloud.compute
        self.lab.compute(self.dead).pause()
        compute.reboot_server(rebooting, 'HARD')
        compute.delete_server(deleted)
        compute.stop_server(stopping)
        compute.rescue_server(rescuing)
        building = self._boot('building')
        self.lab.wait('An allocation', lambda: self._allocations(building))
        self._die()

        self._wait_taken_over(rebooting, stopping, rescuing)
        for server, status in ((rebooting, 'ACTIVE'), (stopping, 'SHUTOFF'),
                               (rescuing, 'ACTIVE')):
            self._wait_idle(server)
            self.assertEqual(status, self._show(server).status)
        self.lab.wait('The end of the delete', lambda: (
            compute.find_server(deleted.id) is None))
        self.lab.wait('The node free', lambda: self._node_of(deleted) is None)
        self.lab.wait('The end of the build', lambda: (
            self._show(building).status == 'ERROR'))
        self.assertIn(f'{self.dead} has died',
                      self._show(building).fault['message'])
        self.lab.wait('No allocation',
                      lambda: not self._allocations(building))

        # It comes back to all that in its queue.
        compute.start_server(stopping)
        self._wait_idle(stopping)
        self._bring_back()
        self._wait_logged(self.dead, f'Instance {stopping.id} was taken over')
        self._wait_logged(self.dead, f'Instance {rescuing.id} was taken over')
        for server in rebooting, stopping, rescuing:
            self.assertEqual('ACTIVE', self._show(server).status)
            self.assertIsNone(self._show(server).task_state)
            self.assertEqual('active',
                             self._node_of(server).provision_state)
            self.assertEqual('power on', self._node_of(server).power_state)
        self.lab.wait('The build refused again', lambda: (
            self._show(building).status == 'ERROR'
            and not self._allocations(building)))
        self.assertIsNone(self._node_of(building))

    def test_service_that_is_frozen_and_wakes(self):
        rebooting, deleted = (self._boot_active(name) for name in (
            'rebooting', 'deleted'))
        frozen = self.lab.compute(self.dead)
        building = self._boot('building')
        self._wait_for_task(building, 'spawning')
        self.cloud.compute.reboot_server(rebooting, 'HARD')
        self._wait_for_task(rebooting, 'reboot_started_hard')
        self.cloud.compute.delete_server(deleted)
        self._wait_for_task(deleted, 'deleting')
        frozen.pause()
        under_way = [server for server in (rebooting, deleted, building)
                     if self.cloud.compute.find_server(server.id)
                     and self._show(server).task_state]
        self.assertNotEqual([], under_way)
        self._force_down()
        self._wait_taken_over(rebooting)
        self._wait_idle(rebooting)
        self.lab.wait('The end of the delete', lambda: (
            self.cloud.compute.find_server(deleted.id) is None))
        self.lab.wait('The end of the build', lambda: (
            self._show(building).status in ('ERROR', 'ACTIVE')))
        status = self._show(building).status

        frozen.resume()
        self._force_down(False)
        self.lab.wait_settled(self.NODES)
        self.assertEqual('ACTIVE', self._show(rebooting).status)
        self.assertEqual('active', self._node_of(rebooting).provision_state)
        self.assertEqual(
            self.lab.owners()[rebooting.hypervisor_hostname],
            self._show(rebooting).compute_host)
        self.assertIsNone(self._node_of(deleted))
        self.lab.wait('The build as it was', lambda: (
            self._show(building).status == status
            and self._show(building).task_state is None))
        servers.delete(self.cloud, [building])
        self.lab.wait('Its node free', lambda: (
            self._node_of(building) is None))
        self.assertEqual({}, self._allocations(building))

    def test_service_that_returns_in_the_middle(self):
        wanted = [self._boot_active(f'many-{number}') for number in range(4)]
        self._die()
        self.lab.wait('The first one taken over', lambda: any(
            self._show(server).compute_host != self.dead
            for server in wanted))
        self._force_down(False)
        self.lab.start_compute(self.dead)
        self.lab.wait('Rows where the servers are', lambda: all(
            self.lab.owners().get(server.hypervisor_hostname)
            == self._show(server).compute_host for server in wanted))
        for server in wanted:
            self.cloud.compute.reboot_server(server, 'HARD')
            self._wait_idle(server)
            self.assertEqual('ACTIVE', self._show(server).status)

    def test_what_was_deleted_when_it_had_died(self):
        server = self._boot_active('forgotten')
        node = server.hypervisor_hostname
        # For the one that is to go.
        self.lab.enroll(1)
        self.addCleanup(self.lab.wait_settled, self.NODES)
        self.lab.wait_settled(self.NODES + 1)
        victim = next(
            each for each, owner in sorted(self.lab.owners().items())
            if owner == self.dead and each != node)
        self.lab.compute(self.dead).kill()
        self._wait_down()
        servers.delete(self.cloud, [server])
        self.lab.wait('The node free', lambda: (
            self.cloud.baremetal.get_node(node).instance_id is None))
        self.lab.wait('A living service for the node', lambda: (
            self.lab.owners().get(node) not in (self.dead, None)))

        self.cloud.baremetal.delete_node(victim)
        self.lab.wait('Neither row nor provider', lambda: (
            victim not in self.lab.owners() and victim not in {
                each.id
                for each in self.cloud.placement.resource_providers()}))

    def test_silence(self):
        for name in self.lab.state.computes:
            self.lab.reconfigure(name, {'ironic_ring': {'failover_after': 12}})
            self.addCleanup(self.lab.reconfigure, name, {})
        server = self._boot_active('silent')
        self.lab.compute(self.dead).kill()
        self._wait_taken_over(server)
        self.cloud.compute.reboot_server(server, 'HARD')
        self._wait_idle(server)
        self.assertEqual('ACTIVE', self._show(server).status)


class FollowTestCase(_FailoverTestCase):
    """Instances go with the ring."""

    def setUp(self) -> None:
        super().setUp()
        for name in self.lab.state.computes:
            self.lab.reconfigure(
                name, {'ironic_ring': {'instance_mobility': 'follow'}})
            self.addCleanup(self.lab.reconfigure, name, {})

    def test_service_that_is_disabled(self):
        server = self._boot_active('follows')
        allocations = self._allocations(server)
        (service,) = self.cloud.compute.services(
            host=self.dead, binary='nova-compute')
        self.cloud.compute.disable_service(service)
        self.addCleanup(self.cloud.compute.enable_service, service)
        self.lab.wait('No node of the disabled one', lambda: (
            self.dead not in self.lab.owners().values()))
        self._wait_taken_over(server)
        self.assertEqual(allocations, self._allocations(server))
        self.cloud.compute.reboot_server(server, 'HARD')
        self._wait_idle(server)

        self.cloud.compute.enable_service(service)
        self.lab.wait('The server back', lambda: (
            self._show(server).compute_host == self.dead
            == self.lab.owners()[server.hypervisor_hostname]))
        self.cloud.compute.reboot_server(server, 'HARD')
        self._wait_idle(server)
        self.assertEqual('ACTIVE', self._show(server).status)
