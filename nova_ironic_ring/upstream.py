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

"""The private names of Nova that this project leans on.

They are all here, behind names of our own, so that a release of Nova that
changes one breaks this module and its test, and nothing else.
"""

from collections.abc import Container, Sequence
import time

from keystoneauth1 import exceptions as keystone_exceptions
from nova.conf import ironic as conf_ironic
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler.client import report
from nova import utils
from nova.virt.ironic import driver
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# What can come of asking Ironic, or of looking for it in the catalog.
_NO_ANSWER = (sdk_exceptions.SDKException, keystone_exceptions.ClientException,
              exception.ServiceUnavailable)


class NovaIronicDriver(driver.IronicDriver):
    """Nova's ironic driver, with the choice of nodes left to a subclass."""

    node_cache_time: float

    # No public method more: Nova's own tests hold a driver to the interface.

    def _nodes_to_manage(self) -> dict[str, sdk_node.Node]:
        """Say which nodes are this service's now.

        :returns: the nodes by UUID
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        """
        raise NotImplementedError

    def _refresh_cache(self) -> None:
        """Fill the cache that Nova's driver answers from."""
        self._refresh_cache_from(time.time())

    # Nova's driver asks in many threads at once where it has no node at all.
    @utils.synchronized('ironic-ring-pass')
    def _refresh_cache_from(self, asked: float) -> None:
        """Fill the cache, unless another thread has done so meanwhile.

        :param asked: since when this was wanted, in seconds of the epoch
        """
        if self.node_cache_time > asked:
            return
        # One assignment: other threads may be reading the old cache.
        self.node_cache = self._nodes_to_manage()
        self.node_cache_time = time.time()


def make_peer_list_mutable() -> bool:
    """Have ``[ironic] peer_list`` change on SIGHUP, which it lost in 2024.1.

    :returns: whether Nova still has the option
    """
    for option in conf_ironic.ironic_options:
        if option.name == 'peer_list':
            # Read whenever a configuration changes.
            option.mutable = True
            return True
    return False


def reset_manager(source: NovaIronicDriver) -> None:
    """Do what Nova's own handling of SIGHUP does to nova-compute's manager.

    Pinned RPC versions are found out anew, above all, after an upgrade.

    :param source: the driver that the manager has
    """
    source.virtapi._compute.reset()


def service_record(source: NovaIronicDriver) -> objects.Service | None:
    """Return the record that Nova saves at each heartbeat.

    :param source: the driver that the manager has
    :returns: None until the service has one
    """
    return getattr(source.virtapi._compute, 'service_ref', None)


def is_deleted(source: NovaIronicDriver, node: str) -> bool:
    """Say whether Ironic does not have a node.

    :param source: what speaks to Ironic
    :param node: the node's UUID
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    try:
        return driver.IronicDriver.is_node_deleted(source, node)
    except _NO_ANSWER as error:
        LOG.error('Ironic does not tell of node %(node)s: %(error)s',
                  {'node': node, 'error': error})
        raise exception.VirtDriverNotReady() from error


def tracked_nodes(source: NovaIronicDriver) -> Container[str]:
    """Name the nodes that Nova's resource tracker has in hand.

    It takes one when it first updates it, and lets go of one that another
    service has when a pass begins, after it has asked for the nodes.

    :param source: the driver that the manager has
    :returns: UUIDs; not to be walked, for other threads may add some
    """
    return source.virtapi._compute.rt.compute_nodes


#: What :func:`recover` wants to know of an instance.
RECOVERY_ATTRIBUTES = ('info_cache', 'metadata', 'system_metadata',
                       'numa_topology', 'flavor')


def recover(source: NovaIronicDriver, context: nova_context.RequestContext,
            instance: objects.Instance) -> None:
    """Bring an instance to order as a restart of its service would.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service
    """
    source.virtapi._compute._init_instance(context, instance)


def provision_state(source: NovaIronicDriver,
                    instance: objects.Instance) -> str:
    """Return what Ironic is doing with an instance's node.

    :param source: what speaks to Ironic
    :param instance: the instance
    :returns: Ironic's provision state
    :raises nova.exception.InstanceNotFound: if no node holds it
    """
    return source._validate_instance_and_node(instance).provision_state


def placement(source: NovaIronicDriver) -> report.SchedulerReportClient:
    """Return what speaks to Placement, for the resource tracker as well.

    :param source: the driver that the manager has
    """
    return source.virtapi.reportclient


def list_fields(source: NovaIronicDriver,
                fields: Sequence[str]) -> list[sdk_node.Node]:
    """List all nodes of Ironic, with some of their fields.

    :param source: what speaks to Ironic
    :param fields: names of fields, as Ironic has them
    """
    return list(source._get_node_list(fields=fields))


def list_nodes(source: NovaIronicDriver,
               **filters: str) -> list[sdk_node.Node]:
    """List nodes of Ironic, with the fields that Nova's driver wants.

    :param source: what speaks to Ironic
    :param filters: Ironic's query parameters
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    try:
        return source._get_node_list(fields=driver._NODE_FIELDS, **filters)
    except _NO_ANSWER as error:
        # The SDK lists page by page: Nova's own handling of errors covers no
        # more than the making of the query.
        LOG.error('Ironic does not list its nodes: %s', error)
        raise exception.VirtDriverNotReady() from error


def has_api_version(source: NovaIronicDriver, version: str) -> bool:
    """Say whether Ironic has a version of its API.

    :param source: what speaks to Ironic
    :param version: the version, ``major.minor``
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    try:
        source._can_send_version(version)
    except exception.IronicAPIVersionNotAvailable:
        return False
    except _NO_ANSWER as error:
        LOG.error('Ironic does not tell its API versions: %s', error)
        raise exception.VirtDriverNotReady() from error
    return True
