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

"""The private names of Nova's ironic driver that this project leans on.

They are all here, behind names of our own, so that a release of Nova that
renames one breaks this module and its test, and nothing else.
"""

import time

from nova.virt.ironic import driver
from openstack.baremetal.v1 import node as sdk_node


class NovaIronicDriver(driver.IronicDriver):
    """Nova's ironic driver, with the listing of nodes left to a subclass."""

    def nodes_to_manage(self) -> dict[str, sdk_node.Node]:
        """Ask Nova and Ironic which nodes are this service's now.

        :returns: the nodes by UUID
        """
        raise NotImplementedError

    def list_nodes(self, **filters: str) -> list[sdk_node.Node]:
        """List nodes of Ironic, with the fields that Nova's driver wants.

        :param filters: Ironic's query parameters
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        """
        return self._get_node_list(fields=driver._NODE_FIELDS, **filters)

    def require_ironic_api(self, version: str) -> None:
        """Insist on an API version of Ironic.

        :param version: the least version, ``major.minor``
        :raises nova.exception.IronicAPIVersionNotAvailable: if Ironic does
            not have it
        """
        self._can_send_version(version)

    def _refresh_cache(self) -> None:
        """Fill the cache that Nova's driver answers from."""
        # One assignment: other threads may be reading the old cache.
        self.node_cache = self.nodes_to_manage()
        self.node_cache_time = time.time()
