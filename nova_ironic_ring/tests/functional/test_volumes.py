# SPDX-License-Identifier: Apache-2.0

"""Servers that boot from volumes of Cinder, and outlive their service."""

from typing import Any

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.tests.functional import base


class VolumesTestCase(base.LabTestCase):

    KIND = base.Kind(computes=2, nodes=6, volumes=True)

    def _volume(self, name: str) -> Any:
        """Make a volume from an image, which is gone after the test."""
        storage = self.cloud.block_storage
        image = self.cloud.image.find_image(
            tenant.IMAGE, ignore_missing=False)
        volume = storage.create_volume(
            name=name, size=1, image_id=image.id)
        self.addCleanup(storage.delete_volume, volume)
        return storage.wait_for_status(volume, 'available')

    def _boot_from(self, volume: Any, host: str | None = None
                   ) -> sdk_server.Server:
        """Boot a server from a volume."""
        return servers.wait_active(self.cloud, self.boot(
            f'from-{volume.name}', host, imageRef='',
            block_device_mapping_v2=[{
                'boot_index': 0, 'uuid': volume.id, 'source_type': 'volume',
                'destination_type': 'volume',
                'delete_on_termination': False}]))

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
        volume = self._volume('root')
        server = self._boot_from(volume)
        self.assertAttached(volume, server)
        dead = server.compute_host
        self.addCleanup(self.force_down, dead, False)
        self.addCleanup(self.lab.start_compute, dead)
        self.lab.compute(dead).kill()
        self.force_down(dead)
        self.lab.wait('A living service for the server', lambda: (
            self.show(server).compute_host != dead))
        # The instance has its service before that one has the node.
        self.lab.wait('The compute node of the server', lambda: (
            self.has_place(self.show(server))))
        self.wait_idle(server)
        self.assertAttached(volume, server)
        self.assertReboots(server)
        self.assertAttached(volume, server)
        servers.delete(self.cloud, [server])
        self.assertFree(volume)

    def test_shelve_and_unshelve(self):
        volume = self._volume('root')
        server = self._boot_from(volume)
        # Nova keeps it for the server, which has no node.
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
        self.assertReboots(server)
        servers.delete(self.cloud, [server])
        self.assertFree(volume)


class PoolTestCase(VolumesTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=6,
                     volumes=True)
