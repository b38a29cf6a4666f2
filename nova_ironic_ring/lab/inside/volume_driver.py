# SPDX-License-Identifier: Apache-2.0

"""Volumes of the lab's Cinder, which exist in Cinder's database only.

Cinder's own drivers need disks, or programs that run as root; the driver of
its tests needs LVM to be installed.
"""

from collections.abc import Mapping
import os
from typing import Any

from cinder import interface
from cinder.volume import driver

_IQN = 'iqn.2026-01.net.example'
_WITHOUT_END = 'infinite'


@interface.volumedriver
class LabVolumeDriver(driver.VolumeDriver):
    """Does nothing, and reports success."""

    VERSION = '1'

    def do_setup(self, context: object) -> None:
        """Do nothing."""

    def check_for_setup_error(self) -> None:
        """Do nothing."""

    def create_volume(self, volume: Any) -> None:
        """Do nothing."""

    def delete_volume(self, volume: Any) -> None:
        """Do nothing."""

    def extend_volume(self, volume: Any, new_size: int) -> None:
        """Do nothing."""

    def clone_image(self, context: object, volume: Any, image_location: object,
                    image_meta: object, image_service: object
                    ) -> tuple[Mapping[str, object], bool]:
        """Report that an image is on a volume, without a check."""
        return {}, True

    def create_cloned_volume(self, volume: Any, src_vref: Any) -> None:
        """Do nothing."""

    def create_snapshot(self, snapshot: Any) -> None:
        """Do nothing."""

    def delete_snapshot(self, snapshot: Any) -> None:
        """Do nothing."""

    def create_volume_from_snapshot(self, volume: Any, snapshot: Any) -> None:
        """Do nothing."""

    def ensure_export(self, context: object, volume: Any) -> None:
        """Do nothing."""

    def create_export(self, context: object, volume: Any, connector: object
                      ) -> None:
        """Do nothing."""

    def remove_export(self, context: object, volume: Any) -> None:
        """Do nothing."""

    def create_export_snapshot(self, context: object, snapshot: Any,
                               connector: object) -> None:
        """Do nothing."""

    def remove_export_snapshot(self, context: object, snapshot: Any) -> None:
        """Do nothing."""

    def initialize_connection(self, volume: Any, connector: object
                              ) -> dict[str, Any]:
        """Return how a host reaches a volume.

        :param volume: the volume
        :param connector: the host that attaches it
        :returns: an iSCSI target, at which nothing listens
        """
        return {'driver_volume_type': 'iscsi', 'data': {
            'target_discovered': False,
            'target_portal': '127.0.0.1:3260',
            'target_iqn': f'{_IQN}:{volume.id}',
            'target_lun': 1,
            'volume_id': volume.id}}

    def terminate_connection(self, volume: Any, connector: object,
                             **kwargs: object) -> None:
        """Do nothing."""

    def local_path(self, volume: Any) -> str:
        """Return the path of a device that is always empty."""
        return os.devnull

    def _update_volume_stats(self) -> None:
        self._stats = {
            'volume_backend_name': self.configuration.safe_get(
                'volume_backend_name'),
            'vendor_name': 'nova-ironic-ring',
            'driver_version': self.VERSION,
            'storage_protocol': 'iSCSI',
            'total_capacity_gb': _WITHOUT_END,
            'free_capacity_gb': _WITHOUT_END,
            'reserved_percentage': 0,
            'multiattach': True}
