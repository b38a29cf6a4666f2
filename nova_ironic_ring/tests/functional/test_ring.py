# SPDX-License-Identifier: Apache-2.0

"""Three real nova-computes divide the nodes of a real Ironic."""

import collections

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.core.values import member
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.tests.functional import base


class RingTestCase(base.LabTestCase):

    def _inventory(self) -> set[str]:
        return {node.id for node in self.cloud.baremetal.nodes()}

    def _divided(self, *members: str) -> dict[str, str]:
        """Return who owns each node when these are the ring's members."""
        return base.divide(self._inventory(), *members)

    def assertDivided(self, *members: str) -> None:
        """See that the nodes come to be divided among these."""
        expected = self._divided(*members)
        self.lab.wait(f'A ring of {", ".join(members)}',
                      lambda: self.lab.owners() == expected)
        # With its record a service that is deleted takes those of its nodes.
        self.lab.wait('The resource providers', lambda: (
            self._inventory() == self.providers()))

    def test_every_node_has_one_owner_and_every_owner_some(self):
        with self.lab.cell() as connection, connection.cursor() as cursor:
            cursor.execute('SELECT uuid, hypervisor_hostname, host '
                           'FROM compute_nodes WHERE deleted = 0')
            records = [record for record in cursor.fetchall()
                       if not member.is_member(record[1])]
        self.assertEqual(self.nodes, len(records))
        self.assertEqual(self._inventory(), {record[0] for record in records})
        for node, hypervisor, _ in records:
            self.assertEqual(node, hypervisor)
        shares = collections.Counter(record[2] for record in records)
        self.assertEqual(set(self.lab.state.computes), set(shares))
        self.assertEqual(self._inventory(), self.providers())

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
        asked = {host: self.boot(f'on-{host}', host)
                 for host in self.lab.state.computes}
        for host, server in asked.items():
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
        self.lab.add_compute('compute-4')
        self.addCleanup(self.remove_compute, 'compute-4')
        self.lab.wait_alive('compute-4')
        self.lab.discover_hosts()
        self.assertDivided(*three, 'compute-4')
        self.assertIn('compute-4', self.lab.owners().values())

        server = self.boot_active('on-the-fourth', 'compute-4')
        self.assertEqual('compute-4', server.compute_host)
        servers.delete(self.cloud, [server])

        tenant.leave_aggregates(self.cloud, 'compute-4')
        self.lab.compute('compute-4').stop()
        self.assertDivided(*three)

    def test_killed_and_started_again(self):
        one, two, three = self.lab.state.computes
        self.lab.compute(two).kill()
        self.assertDivided(one, three)
        self.lab.start_compute(two)
        self.assertDivided(one, two, three)

    def test_database_and_queues_that_go_and_come(self):
        computes = self.lab.state.computes
        self.assertDivided(*computes)
        server = self.boot_active('before', computes[0])
        # All queues are lost, as they are not durable by default.
        self.lab.broker.restart(is_killed=True)
        self.lab.database.restart()
        self.wait_for_passes(*computes)
        for name in computes:
            self.lab.wait_alive(name)
        self.assertDivided(*computes)
        self.assertReboots(server)
        after = self.boot_active('after', computes[-1])
        self.assertEqual(computes[-1], after.compute_host)
        servers.delete(self.cloud, [server, after])

    def _restart_with(self, driver: str, name: str) -> None:
        """Restart a nova-compute with another driver, as an upgrade does."""
        self.lab.compute(name).stop()
        self.lab.configure_compute(name, {
            'DEFAULT': {'compute_driver': driver}})
        self.lab.start_compute(name)

    def test_one_by_one_to_the_stock_driver_and_back(self):
        computes = self.lab.state.computes
        server = self.boot_active('stays', computes[0])
        expected = self._divided(*computes)
        # It is with the one that the ring maps its node to, as all are.
        self.assertEqual(computes[0], expected[server.hypervisor_hostname])

        for driver in lab_state.STOCK_DRIVER, lab_state.RING_DRIVER:
            for name in list(computes):
                self._restart_with(driver, name)
                self.lab.wait('A ring of both drivers',
                              lambda: self.lab.owners() == expected)
                # The server is managed all the time, by whichever it has.
                self.assertReboots(server)
            if driver == lab_state.STOCK_DRIVER:
                self._build_while_one_starts(driver)
        self.assertEqual(self._inventory(), self.providers())

    def _build_while_one_starts(self, driver: str) -> None:
        """See what Nova's own driver does with a build of a peer.

        What this one does, test_start tells.
        """
        status, server = self.build_while_one_starts(driver)
        self.assertEqual('ERROR', status)
        servers.delete(self.cloud, [server])
        self.remove_compute(self.lab.state.computes[-1])

    def test_builds_while_one_joins_and_another_is_disabled(self):
        one, second, three = self.lab.state.computes
        (service,) = self.cloud.compute.services(
            host=second, binary='nova-compute')
        started: list[sdk_server.Server] = []

        self.boot_more(started, 2)
        self.cloud.compute.disable_service(service)
        self.addCleanup(self.cloud.compute.enable_service, service)
        self.boot_more(started, 2)
        self.lab.add_compute('compute-5')
        self.addCleanup(self.remove_compute, 'compute-5')
        self.boot_more(started, 1)
        self.lab.wait_alive('compute-5')
        self.lab.discover_hosts()
        self.boot_more(started, 1)
        # It has begun to join, and goes on with that.
        self.lab.wait('A node of the newcomer',
                      lambda: 'compute-5' in self.lab.owners().values())
        self.boot_more(started, 2)
        built = [servers.wait_active(self.cloud, server)
                 for server in started]
        self.assertEqual(8, len({each.hypervisor_hostname for each in built}))
        self.assertLessEqual({each.compute_host for each in built[4:]},
                             {one, three, 'compute-5'})
        owners = self.lab.owners()
        for each in built:
            self.assertEqual(
                each.compute_host, owners[each.hypervisor_hostname])
            node = self.cloud.baremetal.get_node(each.hypervisor_hostname)
            self.assertEqual((each.id, 'active'),
                             (node.instance_id, node.provision_state))
        servers.delete(self.cloud, started)

        # All are free, so the ring alone says which ones it has now.
        wanted = self._divided(one, three, 'compute-5')
        node = next(
            each.id for each in self.cloud.baremetal.nodes(
                fields=['uuid', 'resource_class'])
            if each.resource_class == tenant.FLAVOR
            and wanted[each.id] == 'compute-5')
        self.lab.wait(f'Node {node} with the newcomer',
                      lambda: self.lab.owners()[node] == 'compute-5')
        last = self.boot_active('on-the-newcomer', 'compute-5', node)
        self.assertEqual('compute-5', last.compute_host)
        servers.delete(self.cloud, [last])

    def test_instance_deleted_while_its_service_is_down(self):
        name = self.lab.state.computes[1]
        server = self.boot_active('forgotten', name)
        node = server.hypervisor_hostname
        self.lab.compute(name).kill()
        self.addCleanup(self.lab.compute(name).start)
        self.wait_down(name)
        # Nobody else is to do it.
        with self.frozen(*set(self.lab.state.computes) - {name}):
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
        self.assertIn(extra, self.providers())
        self.cloud.baremetal.delete_node(extra)
        self.lab.wait('The row gone',
                      lambda: extra not in self.lab.owners())
        self.lab.wait('The resource provider gone',
                      lambda: extra not in self.providers())
        # And nothing else.
        self.assertEqual(self._inventory(), self.providers())
        self.assertEqual(self._inventory(), set(self.lab.owners()))

    def test_provider_that_is_deleted(self):
        node, owner = next(iter(self.lab.owners().items()))
        self.addCleanup(self.lab.reconfigure, owner, {})
        # Each node has its turn once in this time.
        self.lab.reconfigure(
            owner, {'ironic_ring': {'full_update_interval': 15}})
        self.cloud.placement.delete(f'/resource_providers/{node}')
        # Nova's cache alone would keep it away for minutes.
        self.lab.wait('The provider of the node', lambda: (
            self.cloud.placement.get(
                f'/resource_providers/{node}').status_code == 200), 60)
