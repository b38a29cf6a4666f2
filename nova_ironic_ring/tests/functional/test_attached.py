# SPDX-License-Identifier: Apache-2.0

"""Servers with volumes of Cinder and ports of Neutron outlive their service.

The network interface of the nodes is "flat": Ironic binds the ports of a
server to its node, and fails a deployment whose node has no port attached.
"""

from typing import Any

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.tests.functional import base


class AttachedTestCase(base.LabTestCase):

    KIND = base.Kind(computes=2, nodes=6, volumes=True)

    @classmethod
    def furnish(cls, lab: cloud.Lab) -> None:
        # Ironic requires the network, although these nodes are not cleaned.
        network = lab.connect().network.create_network(name='cleaning').id
        system = lab.connect('lab-system').baremetal
        for number, node in enumerate(list(system.nodes(details=True))):
            system.update_node(
                node, network_interface='flat', driver_info={
                    **node.driver_info, 'cleaning_network': network})
            system.create_port(
                node_id=node.id, address=f'52:54:00:00:00:{number:02x}')

    def _volume(self, name: str) -> Any:
        """Make a volume from an image, which is gone after the test."""
        storage = self.cloud.block_storage
        image = self.cloud.image.find_image(
            tenant.IMAGE, ignore_missing=False)
        volume = storage.create_volume(
            name=name, size=1, image_id=image.id)
        self.addCleanup(storage.delete_volume, volume)
        return storage.wait_for_status(volume, 'available')

    def _port(self) -> Any:
        """Make a port of the user's, which is gone after the test."""
        port = self.cloud.network.create_port(network_id=self.network().id)
        self.addCleanup(self.cloud.network.delete_port, port)
        return port

    def _boot(self, port: Any, **more: Any) -> sdk_server.Server:
        """Boot a server with a port."""
        return servers.wait_active(self.cloud, self.boot(
            'attached', networks=[{'port': port.id}], **more))

    def _boot_from(self, volume: Any, port: Any) -> sdk_server.Server:
        """Boot a server from a volume."""
        return self._boot(port, imageRef='', block_device_mapping_v2=[{
            'boot_index': 0, 'uuid': volume.id, 'source_type': 'volume',
            'destination_type': 'volume', 'delete_on_termination': False}])

    def assertBound(self, port: Any, server: sdk_server.Server) -> None:
        """See that Neutron and Ironic have a port as a server's own."""
        node = self.node_of(server)
        system = self.lab.connect('lab-system').baremetal
        self.assertEqual([port.id], system.list_node_vifs(node.id))
        (wire,) = system.ports(node_id=node.id)
        now = self.cloud.network.get_port(port.id)
        self.assertEqual(
            (server.id, node.id, 'baremetal', wire.address),
            (now.device_id, now.binding_host_id, now.binding_vnic_type,
             now.mac_address))

    def assertUnbound(self, port: Any) -> None:
        """See that a port comes to be nobody's, and no node has it."""
        self.lab.wait('The port free', lambda: (
            not self.cloud.network.get_port(port.id).device_id))
        system = self.lab.connect('lab-system').baremetal
        self.assertEqual([], [
            vif for node in system.nodes()
            for vif in system.list_node_vifs(node.id)])

    def assertAttached(self, volume: Any, server: sdk_server.Server) -> None:
        """See that Cinder and Ironic have a volume as a server's own."""
        now = self.cloud.block_storage.get_volume(volume.id)
        self.assertEqual('in-use', now.status)
        self.assertEqual([server.id], [
            each['server_id'] for each in now.attachments])
        (target,) = self._targets(volume)
        node = self.node_of(server)
        self.assertEqual((node.id, 0), (target.node_id, target.boot_index))
        self.assertEqual('power on', node.power_state)

    def _targets(self, volume: Any) -> list[Any]:
        """Return what Ironic's nodes have of a volume."""
        system = self.lab.connect('lab-system').baremetal
        return [each for each in system.volume_targets(details=True)
                if each.volume_id == volume.id]

    def assertFree(self, volume: Any) -> None:
        """See that a volume comes to be nobody's."""
        self.lab.wait('The volume available', lambda: (
            self.cloud.block_storage.get_volume(volume.id).status
            == 'available'))
        self.assertEqual([], self._targets(volume))

    def test_boot_and_death(self):
        volume, port = self._volume('root'), self._port()
        server = self._boot_from(volume, port)
        self.assertAttached(volume, server)
        self.assertBound(port, server)
        self.fail_over(server)
        # The instance has its service before that one has the node.
        self.lab.wait('The compute node of the server', lambda: (
            self.has_place(self.show(server))))
        self.wait_idle(server)
        self.assertAttached(volume, server)
        self.assertReboots(server)
        self.assertAttached(volume, server)
        self.assertBound(port, server)
        servers.delete(self.cloud, [server])
        self.assertFree(volume)
        self.assertUnbound(port)

    def test_shelve_and_unshelve(self):
        volume, port = self._volume('root'), self._port()
        server = self._boot_from(volume, port)
        # Nova keeps both for the server, which has no node.
        self.cloud.compute.shelve_server(server)
        self.lab.wait('A shelved server', lambda: (
            self.show(server).status == 'SHELVED_OFFLOADED'))
        self.wait_idle(server)
        self.assertIsNone(self.node_of(server))
        self.assertEqual([], self._targets(volume))
        self.assertEqual({}, self.allocations(server))
        self.cloud.compute.unshelve_server(server)
        server = servers.wait_active(self.cloud, server)
        self.wait_idle(server)
        self.assertTrue(self.has_place(self.show(server)))
        self.assertAttached(volume, server)
        self.assertBound(port, server)
        self.assertReboots(server)
        servers.delete(self.cloud, [server])
        self.assertFree(volume)
        self.assertUnbound(port)

    def test_what_a_user_does_with_ports(self):
        port = self._port()
        server = self._boot(port)
        self.assertBound(port, server)
        compute = self.cloud.compute
        for what, status in (
                (lambda: compute.rescue_server(server), 'RESCUE'),
                (lambda: compute.unrescue_server(server), 'ACTIVE'),
                (lambda: servers.rebuild(self.cloud, server), 'ACTIVE')):
            self.assertBecomes(status, server, what)
            self.assertBound(port, server)
        compute.delete_server_interface(port.id, server)
        self.assertUnbound(port)
        compute.create_server_interface(server, port_id=port.id)
        self.lab.wait('The port attached', lambda: (
            self.cloud.network.get_port(port.id).device_id == server.id))
        self.assertBound(port, server)
        servers.delete(self.cloud, [server])
        self.assertUnbound(port)


class PoolTestCase(AttachedTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=6,
                     volumes=True)
