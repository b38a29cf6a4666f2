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

"""Ironic behind the port: the listing of nodes and its filters."""

from collections.abc import Iterable

from nova import exception
from openstack.baremetal.v1 import node as sdk_node
from oslo_log import log as logging

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core import settings

LOG = logging.getLogger(__name__)

# Ironic's API versions that brought the filters.
_CONDUCTOR_GROUP_VERSION = '1.46'
_SHARD_VERSION = '1.82'


class Ironic:
    """What Ironic has, asked with the client of Nova's driver.

    See :class:`nova_ironic_ring.core.ports.Ironic`. A method raises
    nova.exception.VirtDriverNotReady if Ironic does not answer, or is too old
    for a filter.
    """

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        """Choose the client.

        :param driver: the driver that has it
        """
        self._driver = driver
        #: The nodes as Nova's driver wants them, by UUID, of the last listing
        #: and what was asked for since.
        self.found: dict[str, sdk_node.Node] = {}

    def nodes(self, scope: settings.Scope) -> dict[str, str | None]:
        filters = {}
        if scope.conductor_group is not None:
            self._require(_CONDUCTOR_GROUP_VERSION, 'conductor_group')
            filters['conductor_group'] = scope.conductor_group
        if scope.shard:
            self._require(_SHARD_VERSION, 'shard')
            filters['shard'] = scope.shard
        self.found = {}
        return self._remember(upstream.list_nodes(self._driver, **filters))

    def nodes_of(self, instances: Iterable[str]) -> dict[str, str | None]:
        # They are few: each is asked for by itself.
        return self._remember(
            node for instance in sorted(instances)
            for node in upstream.list_nodes(
                self._driver, instance_id=instance))

    def is_deleted(self, node: str) -> bool:
        return upstream.is_deleted(self._driver, node)

    def _remember(self, nodes: Iterable[sdk_node.Node]
                  ) -> dict[str, str | None]:
        found = {node.id: node for node in nodes}
        self.found |= found
        return {uuid: node.instance_id for uuid, node in found.items()}

    def _require(self, version: str, option: str) -> None:
        """Insist on the API version that an option needs."""
        if upstream.has_api_version(self._driver, version):
            return
        # Without the filter this service would claim the nodes of others.
        LOG.error('[ironic] %s needs version %s of the Ironic API, which this '
                  'Ironic does not have: upgrade Ironic or unset the option. '
                  'No node is listed until then.', option, version)
        raise exception.VirtDriverNotReady()
