# SPDX-License-Identifier: Apache-2.0

"""Volumes of the lab's Cinder, which are nowhere.

The drivers that Cinder has need disks, or programs that want to be root; what
its tests have in their place needs LVM to be installed.
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
    """Says of each thing that it is done, and has nothing to do."""

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
        """Return where a volume would be.

        :param volume: the volume
        :param connector: who wants it
        :returns: a target of iSCSI, at which nothing listens
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
        """Return the path of a volume: that of nothing."""
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
