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

"""What Ironic has: the listing of nodes and its filters."""

from collections.abc import Iterable

from nova import exception
from openstack.baremetal.v1 import node as sdk_node
from oslo_log import log as logging

from nova_ironic_ring import upstream

LOG = logging.getLogger(__name__)

# Ironic's API versions that brought the filters.
_CONDUCTOR_GROUP_VERSION = '1.46'
_SHARD_VERSION = '1.82'


def list_nodes(source: upstream.NovaIronicDriver,
               conductor_group: str | None,
               shard: str | None) -> list[sdk_node.Node]:
    """List the nodes that this service and its peers divide.

    :param source: what speaks to Ironic
    :param conductor_group: only the nodes of this group; the empty string is
        Ironic's default group; None for the nodes of all groups
    :param shard: only the nodes of this shard, if any
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer, or
        is too old for a filter
    """
    filters = {}
    if conductor_group is not None:
        _require(source, _CONDUCTOR_GROUP_VERSION, 'conductor_group')
        filters['conductor_group'] = conductor_group
    if shard:
        _require(source, _SHARD_VERSION, 'shard')
        filters['shard'] = shard
    return upstream.list_nodes(source, **filters)


def nodes_of(source: upstream.NovaIronicDriver,
             instances: Iterable[str]) -> list[sdk_node.Node]:
    """Find the nodes of instances, whatever group or shard they are in.

    :param source: what speaks to Ironic
    :param instances: UUIDs of instances, few: each is asked for by itself
    :returns: the nodes of those that have one
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    return [node for instance in sorted(instances)
            for node in upstream.list_nodes(source, instance_id=instance)]


def _require(source: upstream.NovaIronicDriver, version: str,
             option: str) -> None:
    """Insist on the API version that an option needs."""
    if upstream.has_api_version(source, version):
        return
    # Without the filter this service would claim the nodes of others.
    LOG.error('[ironic] %s needs version %s of the Ironic API, which this '
              'Ironic does not have: upgrade Ironic or unset the option. '
              'No node is listed until then.', option, version)
    raise exception.VirtDriverNotReady()
