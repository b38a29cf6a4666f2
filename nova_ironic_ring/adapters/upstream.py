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

"""The private names of Nova that this project uses.

They are all here, behind names of our own, so that a release of Nova that
changes one breaks this module and its test, and nothing else.
"""

from collections.abc import Callable, Container, Mapping, Sequence
import functools
import inspect
import time
from typing import Any
from typing import TypeAlias

from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import task_states
from nova.conf import ironic as conf_ironic
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler.client import report
from nova.virt.ironic import driver
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Nova's own driver, whose public methods are called by their names.
NovaIronicDriver: TypeAlias = driver.IronicDriver

# What can come of asking Ironic, or of looking for it in the catalog.
_NO_ANSWER = (sdk_exceptions.SDKException, keystone_exceptions.ClientException,
              exception.ServiceUnavailable)


class NodeCache:
    """Fills the cache of Nova's driver from the public method, not in turn.

    To be mixed in before Nova's driver. No public method more: Nova's own
    tests hold a driver to the interface.
    """

    def _refresh_cache(self) -> None:
        """Do what Nova's driver asks for where its cache is empty."""
        self.get_available_nodes()  # type: ignore[attr-defined]


def fill_cache(source: NovaIronicDriver,
               nodes: Mapping[str, sdk_node.Node]) -> None:
    """Fill the cache that Nova's driver answers from.

    :param source: the driver
    :param nodes: the nodes of this service, by UUID
    """
    # One assignment: other threads may be reading the old cache. Nova's driver
    # changes the new one.
    source.node_cache = dict(nodes)
    source.node_cache_time = time.time()


def signature(name: str) -> inspect.Signature:
    """Return the parameters of a public method of Nova's driver.

    :param name: the method's name
    """
    return inspect.signature(getattr(NovaIronicDriver, name))


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

    After an upgrade, this has the manager find out anew which RPC versions it
    may use.

    :param source: the driver that the manager has
    """
    source.virtapi._compute.reset()


def watch_heartbeats(source: NovaIronicDriver,
                     beat: Callable[[Callable[[], object]], None]) -> None:
    """Have something know of each heartbeat from now on.

    :param source: the driver that the manager has
    :param beat: called in the place of each heartbeat, with what writes the
        heartbeat to the database
    """
    # Nova has none until the service has a record.
    record = getattr(source.virtapi._compute, 'service_ref', None)
    if record is None or hasattr(record, '_ironic_ring_watched'):
        return
    write = record.save

    def save(*args: Any, **kwargs: Any) -> None:
        beat(functools.partial(write, *args, **kwargs))
    record.save = save
    record._ironic_ring_watched = True


def forbid_saving(instance: objects.Instance, error: Exception) -> None:
    """Have a copy of an instance refuse to be saved.

    :param instance: the copy
    :param error: what its saving raises from now on
    """
    def refuse(*_: object, **__: object) -> None:
        raise error
    setattr(instance, 'save', refuse)


def is_deleted(source: NovaIronicDriver, node: str) -> bool:
    """Say whether Ironic does not have a node.

    :param source: what speaks to Ironic
    :param node: the node's UUID
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    try:
        if isinstance(source, NodeCache):
            # What comes after the mixin: Nova's driver, or a site's own.
            return super(NodeCache, source).is_node_deleted(  # type: ignore
                node)
        return source.is_node_deleted(node)
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


#: What :func:`recover` reads of an instance.
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


def finish_build(source: NovaIronicDriver,
                 context: nova_context.RequestContext,
                 instance: objects.Instance) -> None:
    """Do what Nova does with an instance when its machine is deployed.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service, with the task ``spawning``
    :raises nova.exception.UnexpectedTaskStateError: if it has another task by
        now
    """
    compute = source.virtapi._compute
    compute._update_instance_after_spawn(instance)
    instance.save(expected_task_state=task_states.SPAWNING)
    compute._update_scheduler_instance_info(context, instance)
    compute._notify_about_instance_usage(
        context, instance, 'create.end', extra_usage_info={
            'message': 'Success'})


def guard_cleanup(source: NovaIronicDriver,
                  guard: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Have a guard decide on what Nova cleans up after a failed build.

    That is, on the networks, the volumes and the allocation of the instance.

    :param source: the driver that the manager has
    :param guard: called instead, with the instance's UUID and the call that
        was made
    """
    compute = source.virtapi._compute
    for owner, name in (
            (compute, '_cleanup_allocated_networks'),
            (compute, '_cleanup_volumes'), (compute, '_shutdown_instance'),
            (compute.reportclient, 'delete_allocation_for_instance')):
        setattr(owner, name, _guarded(getattr(owner, name), guard))


def _guarded(method: Callable[..., Any], guard: Callable[..., Any]
             ) -> Callable[..., Any]:
    parameters = inspect.signature(method)

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs).arguments
        uuid = given['instance'].uuid if 'instance' in given else given['uuid']
        return guard(uuid, functools.partial(method, *args, **kwargs))
    return call


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
