# SPDX-License-Identifier: Apache-2.0

"""The private names of Nova that this project uses.

They are all here, behind names of our own, so that a release of Nova that
changes one breaks this module and its test, and nothing else. By the table in
:mod:`nova_ironic_ring.adapters.names` a service sees at its start whether Nova
has them.
"""

from collections.abc import (
    Callable, Collection, Iterable, Iterator, Mapping, Sequence)
import contextlib
import dataclasses
import functools
from importlib import metadata
import inspect
import json
import logging as python_logging
import time
from typing import Any
from typing import NamedTuple
from typing import TypeAlias
from typing import TypeVar

from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import claims
from nova.compute import provider_tree as nova_provider_tree
from nova.compute import resource_tracker
from nova.compute import task_states
from nova.compute import utils as compute_utils
import nova.conf
from nova.conf import ironic as conf_ironic
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import fields as nova_fields
from nova.scheduler.client import report
from nova import utils
from nova import version
from nova.virt import driver as virt_driver
from nova.virt.ironic import driver
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging

from nova_ironic_ring.adapters import limits
from nova_ironic_ring.adapters import plain
from nova_ironic_ring.core.values import bounds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import states

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

_T = TypeVar('_T')

#: Nova's own driver; its public methods are called directly.
NovaIronicDriver: TypeAlias = driver.IronicDriver

#: The exceptions of a request to Ironic, or of a look into the catalog.
NO_ANSWER = (sdk_exceptions.SDKException, keystone_exceptions.ClientException,
             exception.ServiceUnavailable)


# Seconds for which it is believed that there is no node.
_FRESH = 60
# Ironic's answers for a node that another request uses or has locked.
_OF_ONE_NODE = (sdk_exceptions.ConflictException,
                sdk_exceptions.BadRequestException,
                sdk_exceptions.NotFoundException)


def is_of_one_node(error: Exception) -> bool:
    """Return whether Ironic has refused a request for one node only.

    :param error: the exception of the request
    """
    return isinstance(error, _OF_ONE_NODE)


class NodeCache:
    """Fills the cache of Nova's driver when Nova asks for the nodes.

    Nova's driver does the reverse: it lists what its cache has.

    To be mixed in before Nova's driver. It adds no public method: Nova's own
    tests compare a driver with the interface.
    """

    node_cache_time: float

    def _refresh_cache(self) -> None:
        """Refresh the cache when Nova's driver finds it empty.

        It asks for each instance, and Ironic may just have shown no node.
        """
        if not 0 <= time.time() - self.node_cache_time < _FRESH:
            self.get_available_nodes()  # type: ignore[attr-defined]

    def _get_node(self, node_id: str) -> sdk_node.Node:
        """Read a node that the cache does not have.

        So Nova's driver does after each server that was deleted, and describes
        the node by that.

        :param node_id: the node's UUID
        :returns: the node, with the properties and traits that can be believed
        """
        node: sdk_node.Node = super()._get_node(node_id)  # type: ignore[misc]
        properties = bounds.properties(node.properties)
        traits = bounds.traits(node.traits)
        if not properties.complaints + traits.complaints:
            return node
        return for_nova({
            **node.to_dict(computed=False, original_names=True),
            'properties': properties.said, 'traits': list(traits.said)})


class OwnNodes:
    """Prevents Nova's driver from taking a node from another instance.

    Nova's driver uses the node as it was when the build, or the delete, began,
    and the service may have been frozen since. To be mixed in before Nova's
    driver.
    """

    def _cleanup_deploy(self, node: sdk_node.Node, instance: objects.Instance,
                        network_info: object = None) -> None:
        """Take an instance off its node.

        :param node: the node, as it was read
        :param instance: the instance
        :param network_info: its networks
        """
        if not _is_of_another(self, node, instance):
            super()._cleanup_deploy(  # type: ignore[misc]
                node, instance, network_info)

    def _unprovision(self, instance: objects.Instance, node: sdk_node.Node
                     ) -> None:
        """Tear down the machine of an instance.

        :param instance: the instance
        :param node: its node, as it was read
        """
        if not _is_of_another(self, node, instance):
            super()._unprovision(instance, node)  # type: ignore[misc]


def _is_of_another(source: Any, node: sdk_node.Node,
                   instance: objects.Instance) -> bool:
    """Return whether Ironic has another instance on a node by now."""
    now = None
    # If Ironic does not answer, Nova's own request reports it.
    with contextlib.suppress(*NO_ANSWER):
        now = source.ironic_connection.get_node(
            node.id, fields=['instance_uuid']).instance_id
    if not isinstance(now, str) or now == instance.uuid:
        return False
    LOG.warning('Node %(node)s has instance %(other)s now: it is not cleaned '
                'up after instance %(instance)s.', {
                    'node': node.id, 'other': now, 'instance': instance.uuid})
    return True


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


def add_to_cache(source: NovaIronicDriver,
                 nodes: Mapping[str, sdk_node.Node]) -> None:
    """Add nodes to the cache that Nova's driver answers from.

    :param source: the driver
    :param nodes: the nodes, by UUID
    """
    source.node_cache = {**source.node_cache, **nodes}


def cached_instances(source: NovaIronicDriver) -> dict[str, str]:
    """Return the nodes of the instances that Nova's driver answers with.

    :param source: the driver
    :returns: the UUID of its node, by the UUID of each instance
    """
    # Copied at once: Nova's driver changes it.
    return {node.instance_id: node.id
            for node in source.node_cache.copy().values()
            if node.instance_id is not None}


def signature(name: str) -> inspect.Signature:
    """Return the parameters of a public method of Nova's driver.

    :param name: the method's name
    """
    return inspect.signature(getattr(NovaIronicDriver, name))


def make_peer_list_mutable() -> bool:
    """Let ``[ironic] peer_list`` change on SIGHUP, as before 2024.1.

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

    After an upgrade, the manager then finds out again which RPC versions it
    may use. It also forgets the providers that it knows. That must not happen
    while the resource tracker claims a node: the claim would fail with "No
    such provider", and the build with it.

    This waits until the tracker has ended what it does.

    :param source: the driver that the manager has
    """
    in_turn_with_tracker(source.virtapi._compute.reset)


def watch_heartbeats(source: NovaIronicDriver,
                     beat: Callable[[Callable[[], object]], None]) -> None:
    """Replace each heartbeat with a call from now on.

    :param source: the driver that the manager has
    :param beat: called instead of each heartbeat, with the function that
        writes the heartbeat to the database
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
    """Make a copy of an instance refuse to be saved.

    :param instance: the copy
    :param error: the exception of its saving from now on
    """
    def refuse(*_: object, **__: object) -> None:
        raise error
    setattr(instance, 'save', refuse)


def is_deleted(source: NovaIronicDriver, node: str) -> bool:
    """Return whether Ironic lacks a node.

    :param source: any driver, which asks Ironic
    :param node: the node's UUID
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    try:
        if isinstance(source, NodeCache):
            # What comes after the mixin: Nova's driver, or a site's own.
            return super(NodeCache, source).is_node_deleted(  # type: ignore
                node)
        return source.is_node_deleted(node)
    except NO_ANSWER as error:
        LOG.error('Cannot find out whether Ironic has node %(node)s: '
                  '%(error)s',
                  {'node': node, 'error': error})
        raise exception.VirtDriverNotReady() from error


def tracks(source: NovaIronicDriver, node: str) -> bool:
    """Return whether Nova's resource tracker tracks a node now.

    :param source: the driver that the manager has
    :param node: the node's UUID
    """
    return node in source.virtapi._compute.rt.compute_nodes


def tracked_nodes(source: NovaIronicDriver) -> frozenset[str]:
    """Return the nodes that Nova's resource tracker tracks.

    It tracks a node from its first update on. It drops a node of another
    service when a pass begins, after it has asked for the nodes.

    :param source: the driver that the manager has
    :returns: UUIDs
    """
    # Copied at once: other threads add some.
    return frozenset(source.virtapi._compute.rt.compute_nodes.copy())


#: What :func:`recover` reads of an instance.
RECOVERY_ATTRIBUTES = ('info_cache', 'metadata', 'system_metadata',
                       'numa_topology', 'flavor')


def recover(source: NovaIronicDriver, context: nova_context.RequestContext,
            instance: objects.Instance) -> None:
    """Recover an instance as a restart of its service would.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service
    """
    source.virtapi._compute._init_instance(context, instance)


def soft_delete(source: NovaIronicDriver,
                context: nova_context.RequestContext,
                instance: objects.Instance) -> None:
    """Switch an instance off, to be deleted later, as Nova's API asks for.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service, with the task
        ``soft-deleting``
    """
    source.virtapi._compute.soft_delete_instance(context, instance)


def finish_build(source: NovaIronicDriver,
                 context: nova_context.RequestContext,
                 instance: objects.Instance) -> None:
    """Do what Nova does with an instance when its machine is deployed.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service, with the task ``spawning``
    :raises nova.exception.UnexpectedTaskStateError: if it has another task now
    """
    network_info = instance.get_network_info()
    _set_access_addresses(instance, network_info)
    _finish(source, context, instance, 'create.end', network_info=network_info,
            extra_usage_info={'message': 'Success'})
    compute_utils.notify_about_instance_create(
        context, instance, instance.host, phase='end')


def _set_access_addresses(instance: objects.Instance, network_info: Any
                          ) -> None:
    """Set the addresses of an instance on the network that the option names.

    Those that its user has given it stay.

    :param network_info: its ports, as Nova has them
    """
    label = CONF.default_access_ip_network_name
    if not label or instance.access_ip_v4 or instance.access_ip_v6:
        return
    found = next((vif for vif in network_info
                  if vif['network']['label'] == label), None)
    for address in found.fixed_ips() if found else ():
        field = f'access_ip_v{address["version"]}'
        if not getattr(instance, field):
            setattr(instance, field, address['address'])


def _finish(source: NovaIronicDriver, context: nova_context.RequestContext,
            instance: objects.Instance, event: str, **more: Any) -> None:
    """Record that an instance is active now.

    :param event: what Nova notifies of
    :param more: what else it notifies with
    """
    compute = source.virtapi._compute
    compute._update_instance_after_spawn(instance)
    instance.save(expected_task_state=task_states.SPAWNING)
    compute._update_scheduler_instance_info(context, instance)
    compute._notify_about_instance_usage(context, instance, event, **more)


def abandon_build(source: NovaIronicDriver,
                  context: nova_context.RequestContext,
                  instance: objects.Instance) -> None:
    """Free what Ironic and Placement reserve for a build.

    As Nova does when a build fails.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service, with its information cache
    :raises Exception: if Ironic or Placement does not answer, or refuses
    """
    source.destroy(context, instance, instance.get_network_info())
    # It returns False if there is none.
    if placement(source).delete_allocation_for_instance(
            context, instance.uuid, force=True) is None:
        raise exception.ServiceUnavailable('Placement cannot be reached.')


def offload(source: NovaIronicDriver, context: nova_context.RequestContext,
            instance: objects.Instance) -> None:
    """Shelve an instance, as Nova does with one that boots from a volume.

    This is not the method for Nova's requests, which ends the task if it
    fails.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service, with the task ``shelving`` or
        ``shelving_offloading``; Ironic may have none on any node
    """
    compute = source.virtapi._compute
    utils.synchronized(instance.uuid)(compute._shelve_offload_instance)(
        context, instance, False)


def leave_offloaded(source: NovaIronicDriver, instance: objects.Instance
                    ) -> None:
    """Record that a shelved instance no longer has a service.

    As Nova does at the end.

    :param source: the driver that the manager has
    :param instance: an instance of this service without a task
    :raises nova.exception.UnexpectedTaskStateError: if it has one now
    """
    source.virtapi._compute._nil_out_instance_obj_host_and_node(instance)
    instance.save(expected_task_state=[None])


def finish_unshelving(source: NovaIronicDriver,
                      context: nova_context.RequestContext,
                      instance: objects.Instance) -> None:
    """Do what Nova does when the machine of a shelved instance is deployed.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service, with the task ``spawning``
    :raises nova.exception.UnexpectedTaskStateError: if it has another task now
    """
    compute_utils.remove_shelved_keys_from_system_metadata(instance)
    _restore_key(instance)
    _finish(source, context, instance, 'unshelve.end')
    compute_utils.notify_about_instance_action(
        context, instance, instance.host, action='unshelve', phase='end')


def undo_unshelving(source: NovaIronicDriver,
                    context: nova_context.RequestContext,
                    instance: objects.Instance) -> None:
    """Return an instance to its shelved state, as Nova does after a failure.

    Nova's own code leaves the deployed node in Ironic.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service, with the task ``spawning``,
        and with its information cache
    :raises Exception: if Ironic, Placement or Cinder refuses
    """
    compute = source.virtapi._compute
    abandon_build(source, context, instance)
    compute._terminate_volume_connections(
        context, instance, objects.BlockDeviceMappingList.get_by_instance_uuid(
            context, instance.uuid))
    compute._nil_out_instance_obj_host_and_node(instance)
    _restore_key(instance)
    instance.task_state = None
    instance.save(expected_task_state=task_states.SPAWNING)


def _restore_key(instance: objects.Instance) -> None:
    """Give an instance its user's public key again.

    Nova removes the key while it unshelves an instance, and the claim of a
    node saves the instance without it. A later rebuild needs it.
    """
    if instance.key_name and instance.key_data is None and instance.keypairs:
        instance.key_data = instance.keypairs[0].public_key


def destroy_no_evacuated(source: NovaIronicDriver) -> None:
    """Keep nova-compute from destroying instances at its start.

    Before 34, Nova destroys those that were to be evacuated from the service,
    even if its driver cannot evacuate, and they still run on it.

    :param source: the driver that the manager has, before the manager has gone
        on from the driver's ``init_host``
    """
    source.virtapi._compute._destroy_evacuated_instances = (
        lambda context, node_cache: {})


def guard_cleanup(source: NovaIronicDriver, guard: Callable[..., Any]
                  ) -> None:
    """Let a guard decide on Nova's clean-up after a failed build.

    It decides on the networks, the volumes and the allocation of the instance;
    and on its volumes and its allocation if it is shelved.

    :param source: the driver that the manager has
    :param guard: called instead, with the instance's UUID, the call that was
        made, and the instance itself, where Nova gives that
    """
    compute = source.virtapi._compute
    for owner, name in (
            (compute, '_cleanup_allocated_networks'),
            (compute, '_cleanup_volumes'), (compute, '_shutdown_instance'),
            (compute, '_terminate_volume_connections'),
            (compute.reportclient, 'delete_allocation_for_instance')):
        setattr(owner, name, _guarded(getattr(owner, name), guard))


def keep_detached(source: NovaIronicDriver) -> None:
    """Prevent Nova from deleting detached volumes of an instance.

    The task that reaps instances which were deleted while their service was
    down also reads deleted attachments. Nova's API has cleaned up the
    attachments that existed when the instance was deleted.

    :param source: the driver that the manager has
    """
    compute = source.virtapi._compute
    for name in ('_shutdown_instance', '_cleanup_volumes'):
        setattr(compute, name, _without_detached(getattr(compute, name)))


def _without_detached(method: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(method)

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs)
        known = given.arguments['bdms']
        kept = [each for each in known
                if 'deleted' not in each or not each.deleted]
        if len(kept) < len(known):
            given.arguments['bdms'] = objects.BlockDeviceMappingList(
                objects=kept)
        return method(*given.args, **given.kwargs)
    return call


def guard_writes(source: NovaIronicDriver, guard: Callable[..., Any]) -> None:
    """Let a guard decide on Nova's changes of the state of an instance.

    It decides after a failure, and when Ironic reports that a machine is on or
    off.

    :param source: the driver that the manager has
    :param guard: called instead, as by :func:`guard_cleanup`
    """
    compute = source.virtapi._compute
    for name in ('_instance_update', '_set_instance_obj_error_state',
                 'power_update'):
        setattr(compute, name, _guarded(getattr(compute, name), guard))


def guard_interrupted(source: NovaIronicDriver,
                      is_ended: Callable[[objects.Instance, str], bool],
                      go_on: Callable[[], object]) -> None:
    """Let a guard decide on the builds that Nova sets to ERROR at its start.

    :param source: the driver that the manager has
    :param is_ended: called with the instance, and with the UUID of the compute
        node that it has an allocation of; if it returns False, the instance is
        left as it is
    :param go_on: called when Nova has done that, before it answers a request
    """
    compute = source.virtapi._compute
    look = compute._error_out_instances_whose_build_was_interrupted
    write = compute._set_instance_obj_error_state
    at: list[str] = []

    def walk(nodes: Iterable[str]) -> Iterator[str]:
        for node in nodes:
            at[:] = [node]
            yield node

    def looked(context: nova_context.RequestContext,
               already_handled_instances: set[str],
               node_uuids: Iterable[str]) -> None:
        try:
            look(context, already_handled_instances, walk(node_uuids))
        finally:
            at.clear()
        go_on()

    def written(instance: objects.Instance, *args: Any, **kwargs: Any) -> Any:
        if not at or is_ended(instance, at[0]):
            return write(instance, *args, **kwargs)
        return None
    compute._error_out_instances_whose_build_was_interrupted = looked
    compute._set_instance_obj_error_state = written


def look_where_builds_are(
        source: NovaIronicDriver,
        find: Callable[[Collection[str]], Collection[str]]) -> None:
    """Have the manager look for interrupted builds only where there are any.

    At its start, the manager asks Placement for the allocations of each node
    of the service, one after the other, and ends the builds among them that
    the service has not claimed before it ended. That is a third of the time of
    a restart with a thousand nodes.

    :param source: the driver that the manager has
    :param find: returns those of the given nodes that builds have allocations
        of; the manager asks for all if it raises something
    """
    compute = source.virtapi._compute
    end = compute._error_out_instances_whose_build_was_interrupted

    def where_builds_are(context: nova_context.RequestContext,
                         already_handled_instances: set[str],
                         node_uuids: Collection[str]) -> None:
        try:
            found = find(node_uuids)
        except Exception as error:
            LOG.debug('Cannot list the nodes of builds, and ask for each: %s',
                      error)
            found = node_uuids
        end(context, already_handled_instances, sorted(found))
    compute._error_out_instances_whose_build_was_interrupted = (
        where_builds_are)


def guard_failed_rebuild(source: NovaIronicDriver,
                         is_kept: Callable[[objects.Instance, str], bool]
                         ) -> None:
    """Let a guard decide on the allocation after a failed rebuild.

    Nova frees it, although the instance stays on its node. If the resource
    tracker no longer has that node, Nova fails and treats the instance as one
    in ERROR; it frees the allocation nevertheless.

    :param source: the driver that the manager has
    :param is_kept: asked with the instance, and with the name of the compute
        node that the allocation is of
    """
    tracker = source.virtapi._compute.rt
    free = tracker.delete_allocation_for_evacuated_instance

    def freed(context: nova_context.RequestContext,
              instance: objects.Instance, node: str, *args: Any,
              **kwargs: Any) -> None:
        if is_kept(instance, node):
            return
        if node in tracker.compute_nodes:
            free(context, instance, node, *args, **kwargs)
        else:
            placement(source).remove_provider_tree_from_instance_allocation(
                context, instance.uuid, pools.provider(node))
    tracker.delete_allocation_for_evacuated_instance = freed


def guard_evacuations(source: NovaIronicDriver,
                      refuse: Callable[[objects.Instance], object]) -> None:
    """Let a guard decide on each evacuation to this service.

    :param source: the driver that the manager has
    :param refuse: called with the instance before Nova claims a node for it;
        the claim passes its exceptions on
    """
    _around(source.virtapi._compute.rt, 'rebuild_claim',
            before=lambda given: refuse(given['instance']))


def before_each_start(source: NovaIronicDriver,
                      settle: Callable[[nova_context.RequestContext,
                                        objects.Instance], bool]) -> None:
    """Call something with each instance before Nova recovers it.

    Nova does so when the service starts, and :func:`recover` asks for it.

    :param source: the driver that the manager has
    :param settle: called with a context and the instance; returns whether Nova
        is to leave the instance alone
    """
    compute = source.virtapi._compute
    begin = compute._init_instance

    def init(context: nova_context.RequestContext,
             instance: objects.Instance) -> None:
        if not settle(context, instance):
            begin(context, instance)
    compute._init_instance = init


def _guarded(method: Callable[..., Any], guard: Callable[..., Any]
             ) -> Callable[..., Any]:
    parameters = inspect.signature(method)

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs).arguments
        instance = given.get('instance')
        uuid = given['uuid'] if instance is None else instance.uuid
        return guard(
            uuid, functools.partial(method, *args, **kwargs), instance)
    return call


def guard_rebuilt(source: NovaIronicDriver,
                  guard: Callable[[objects.Instance, bool], bool]) -> None:
    """Let a guard decide whether a rebuilt instance is recorded as here.

    Nova writes the host and the node of each rebuilt instance as they were at
    the beginning of the rebuild.

    :param source: the driver that the manager has
    :param guard: asked with the instance, and with whether the resource
        tracker has its compute node
    """
    tracker = source.virtapi._compute.rt
    write = tracker.finish_evacuation

    def finish(instance: objects.Instance, node: str | None,
               migration: objects.Migration | None) -> None:
        if guard(instance, node is None or node in tracker.compute_nodes):
            write(instance, node, migration)
        elif migration:
            migration.status = 'done'
            migration.save()
    tracker.finish_evacuation = finish


def before_rebuilt(source: NovaIronicDriver, track: Callable[[str], object]
                   ) -> None:
    """Let the resource tracker track the node of a rebuilt instance.

    It knows no record of a node that it does not track.

    :param source: the driver that the manager has
    :param track: called with the UUID of a node that is not tracked
    """
    tracker = source.virtapi._compute.rt
    write = tracker.finish_evacuation

    def finish(instance: objects.Instance, node: str | None,
               migration: objects.Migration | None) -> None:
        if node is not None and node not in tracker.compute_nodes:
            track(node)
        write(instance, node, migration)
    tracker.finish_evacuation = finish


def has_volumes(block_device_info: Mapping[str, Any] | None) -> bool:
    """Return whether volumes are attached to an instance.

    :param block_device_info: Nova's description of them for drivers
    """
    return bool(virt_driver.block_device_info_get_mapping(
        block_device_info))


def watch_builds(source: NovaIronicDriver, here: set[str],
                 note: Callable[[nova_context.RequestContext, str], object]
                 ) -> None:
    """Keep the UUIDs of the builds of this service in a set.

    A build that has arrived may wait for its turn.

    :param source: the driver that the manager has
    :param here: the set, of UUIDs; an instance is in it until its build ends
    :param note: called with the context of the request, and with the UUID of
        the instance, when a build has come
    """
    compute = source.virtapi._compute

    def come(given: _Given) -> None:
        here.add(given['instance'].uuid)
        note(given['context'], given['instance'].uuid)

    def go(given: _Given) -> None:
        here.discard(given['instance'].uuid)
    # It may find no thread for the build.
    _around(compute, 'build_and_run_instance', before=come, failed=go)
    _around(compute, '_do_build_and_run_instance', after=go)


@dataclasses.dataclass(frozen=True)
class Request:
    """A build request, with its user.

    :ivar instance: the UUID of the instance
    :ivar hints: the scheduler hints, each a list of texts or a text
    :ivar context: with the rights of the user
    """

    instance: str
    hints: Mapping[str, Sequence[str]]
    context: nova_context.RequestContext


def watch_requests(source: NovaIronicDriver,
                   begins: Callable[[Request], object],
                   ends: Callable[[str], object]) -> None:
    """Report the request of each build.

    :param source: the driver that the manager has
    :param begins: called with the request before the build begins
    :param ends: called with the UUID of the instance when the build has ended
    """
    compute = source.virtapi._compute

    def begun(given: _Given) -> None:
        begins(Request(given['instance'].uuid, compute._get_scheduler_hints(
            given['filter_properties'], given['request_spec']),
            given['context']))
    _around(compute, '_do_build_and_run_instance', before=begun,
            after=lambda given: ends(given['instance'].uuid))


def excuse_builds(source: NovaIronicDriver, is_excused: Callable[[], bool]
                  ) -> None:
    """Keep Nova from counting some builds among the failed ones.

    :param source: the driver that the manager has
    :param is_excused: asked in the thread of a build that has not succeeded,
        whether it is not to be counted
    """
    tracker = source.virtapi._compute.rt
    count = tracker.build_failed

    def failed(nodename: str) -> None:
        if not is_excused():
            count(nodename)
    tracker.build_failed = failed


def has_failed_builds(source: NovaIronicDriver, node: str) -> bool:
    """Return whether builds have failed on a node since it was saved.

    Nova counts a failed build after it has saved the node, and expects that
    the tracker updates each node in its next pass.

    :param source: the driver that the manager has
    :param node: the node's UUID
    """
    row = source.virtapi._compute.rt.compute_nodes.get(node)
    saved, counted = (str((stats or {}).get('failed_builds', 0)) for stats in (
        row and row.stats, stats_of(source, node)))
    return row is not None and saved != counted


def stats_of(source: NovaIronicDriver, node: str) -> Mapping[str, Any]:
    """Return the statistics that the resource tracker has of a node.

    :param source: the driver that the manager has
    :param node: the node's UUID
    """
    found: Mapping[str, Any] = source.virtapi._compute.rt.stats.get(node, {})
    return found


#: Nova's policy for users who may force a host.
FORCED_HOST = 'os_compute_api:servers:create:forced_host'


def may_force_host(context: nova_context.RequestContext) -> bool:
    """Return whether a user may force a host.

    :param context: with their rights
    """
    return bool(context.can(FORCED_HOST, target={}, fatal=False))


def guard_unshelving(source: NovaIronicDriver,
                     is_wanted: Callable[[objects.Instance, str], bool]
                     ) -> None:
    """Let a guard decide whether this service unshelves an instance.

    :param source: the driver that the manager has
    :param is_wanted: asked with the instance as it was at the request, and
        with the chosen compute node
    """
    compute = source.virtapi._compute
    unshelve = compute.unshelve_instance
    parameters = inspect.signature(unshelve)

    @functools.wraps(unshelve)
    def unshelved(*args: Any, **kwargs: Any) -> None:
        given = parameters.bind(*args, **kwargs).arguments
        if is_wanted(given['instance'], given['node']):
            unshelve(*args, **kwargs)
    compute.unshelve_instance = unshelved


def prepare_unshelving(
        source: NovaIronicDriver,
        reserved: Callable[[objects.Instance, str],
                           contextlib.AbstractContextManager[object]]) -> None:
    """Reserve a node for each instance that is being unshelved.

    Nova lets the driver reserve one for a build, but not here.

    :param source: the driver that the manager has
    :param reserved: called with the instance and the compute node; in what it
        returns, the instance is unshelved
    """
    compute = source.virtapi._compute
    unshelve = compute._unshelve_instance
    parameters = inspect.signature(unshelve)

    @functools.wraps(unshelve)
    def unshelved(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs).arguments
        with reserved(given['instance'], given['node']):
            return unshelve(*args, **kwargs)
    compute._unshelve_instance = unshelved


def watch_claims(source: NovaIronicDriver,
                 begins: Callable[[str, str], None]) -> None:
    """Call something at each claim of a node for an instance.

    :param source: the driver that the manager has
    :param begins: called with the UUIDs of instance and node before the
        resource tracker is asked for the node
    """
    _around(source.virtapi._compute.rt, 'instance_claim',
            before=lambda given: begins(
                given['instance'].uuid, given['nodename']))


def guard_claims(source: NovaIronicDriver,
                 guard: Callable[[objects.Instance], object],
                 undo: Callable[[objects.Instance], object]) -> None:
    """Let a guard check each instance for which a node was claimed.

    The claim has saved the instance, which reads what it is now.

    :param source: the driver that the manager has
    :param guard: called with the instance; what it raises ends the claim, and
        is raised
    :param undo: called with the instance before a claim ends for which
        nothing has come of it; Nova says then that it has no service
    """
    tracker = source.virtapi._compute.rt
    claim = tracker.instance_claim
    parameters = inspect.signature(claim)

    @functools.wraps(claim)
    def claimed(*args: Any, **kwargs: Any) -> claims.NopClaim:
        given = parameters.bind(*args, **kwargs).arguments
        found: claims.NopClaim = claim(*args, **kwargs)
        abort = found.abort

        def aborted() -> None:
            undo(given['instance'])
            abort()
        found.abort = aborted
        try:
            guard(given['instance'])
        except Exception:
            found.abort()
            raise
        return found
    tracker.instance_claim = claimed


def when_started(source: NovaIronicDriver, begin: Callable[[], None]) -> None:
    """Begin something when the start of nova-compute is done.

    :param source: the driver that the manager has
    :param begin: called once, and returns at once
    """
    _around(source.virtapi._compute, 'post_start_hook',
            after=lambda given: begin())


_Given: TypeAlias = Mapping[str, Any]


def _around(owner: object, name: str,
            before: Callable[[_Given], object] = lambda given: None,
            after: Callable[[_Given], object] = lambda given: None,
            failed: Callable[[_Given], object] = lambda given: None) -> None:
    """Make a method of an object call something before and after it.

    :param failed: called as well if the method raises
    """
    method = getattr(owner, name)
    parameters = inspect.signature(method)

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind_partial(*args, **kwargs).arguments
        before(given)
        try:
            return method(*args, **kwargs)
        except Exception:
            failed(given)
            raise
        finally:
            after(given)
    setattr(owner, name, called)


# Where Nova 34 logs that a task waits for a thread, and what the name of the
# pool that updates nodes ends with.
_POOL_LOGGER = 'nova.thread_pool_factory'
_UPDATES = '.update_resources'


def _is_of_no_queue(record: python_logging.LogRecord) -> bool:
    """Say whether a line does not tell that a node waits to be updated."""
    return not (record.levelno == python_logging.WARNING
                and isinstance(record.args, tuple) and record.args
                and str(record.args[0]).endswith(_UPDATES))


def update_in_turn(source: NovaIronicDriver) -> None:
    """Let only one thread at a time update each compute node.

    The tracker asks the driver before it takes its lock. Of two threads, the
    one with the older answer could write last.

    Nodes always wait for their turn then, so Nova's log does not tell it any
    more: Nova 34 hands all nodes of a pass to its threads at once, and logs a
    WARNING for each node that waits.

    :param source: the driver that the manager has
    """
    # Once, however often it is called.
    python_logging.getLogger(_POOL_LOGGER).addFilter(_is_of_no_queue)
    tracker = source.virtapi._compute.rt
    update = tracker.update_available_resource

    def in_turn(context: nova_context.RequestContext, nodename: str,
                startup: bool = False) -> None:
        # While a service is silent, the pass does not wait for each node.
        with limits.haste():
            utils.synchronized(f'ironic_ring-update-{nodename}')(update)(
                context, nodename, startup=startup)
    tracker.update_available_resource = in_turn
    # Builds come to it as well, and a pass may wait for the tracker's lock.
    tracker._update = limits.hasty(tracker._update)


def track(source: NovaIronicDriver, node: str) -> None:
    """Let the resource tracker track a node, changed or not.

    :param source: the driver that the manager has
    :param node: the UUID of the node, which has to be in the driver's cache,
        or the name of the pool
    """
    update = source.virtapi._compute.rt.update_available_resource
    getattr(update, 'always', update)(nova_context.get_admin_context(), node)


def update(source: NovaIronicDriver, place: str) -> None:
    """Do with a compute node what the manager does with it in a pass.

    :param source: the driver that the manager has
    :param place: the UUID of the node, which has to be in the driver's cache,
        or the name of the pool
    """
    source.virtapi._compute.rt.update_available_resource(
        nova_context.get_admin_context(), place)


def update_when_needed(source: NovaIronicDriver, me: str,
                       is_needed: Callable[[str], bool],
                       updating: Callable[
                           [], contextlib.AbstractContextManager[object]]
                       ) -> None:
    """Keep the resource tracker from updating nodes without need.

    :param source: the driver that the manager has
    :param me: the canonical name of this service
    :param is_needed: asked with the UUID of each node that the manager has the
        tracker update
    :param updating: in what it returns, a node is updated
    """
    tracker = source.virtapi._compute.rt
    update = tracker.update_available_resource

    def always(context: nova_context.RequestContext, nodename: str,
               startup: bool = False) -> None:
        row = tracker.compute_nodes.get(nodename)
        if row is not None and model.canonical(row.host) != me:
            # The tracker has learnt by its last write that another service has
            # the node. It would write the ID of this service into the row now.
            forget(source, nodename)
        with updating():
            update(context, nodename, startup=startup)

    def when_needed(context: nova_context.RequestContext, nodename: str,
                    startup: bool = False) -> None:
        if is_needed(nodename):
            always(context, nodename, startup)
    when_needed.always = always  # type: ignore[attr-defined]
    tracker.update_available_resource = when_needed


def read_rows_once(source: NovaIronicDriver,
                   rows: Callable[[], list[objects.ComputeNode]]) -> None:
    """Have the manager take the rows that the driver has read in this pass.

    Otherwise the manager reads all rows of the service once more in each pass,
    which takes half of nova-conductor's time in a pass in which nothing
    happens. It has the tracker forget nodes without a row, and deletes rows
    without a node; the delete of a row is on condition that the row is this
    service's. So it reads the rows itself if the tracker has a node that is
    not among them: a build may just have come to that node.

    :param source: the driver that the manager has
    :param rows: returns the rows that the pass has read; none if it has read
        none
    """
    compute = source.virtapi._compute
    read = compute._get_compute_nodes_in_db

    def from_pass(context: nova_context.RequestContext,
                  nodenames: Collection[str], **more: bool
                  ) -> list[objects.ComputeNode]:
        found = rows()
        known = {row.hypervisor_hostname for row in found}
        tracked: set[str] = set()
        # A node that is just being tracked is there when this has its turn.
        in_turn_with_tracker(
            lambda: tracked.update(compute.rt.compute_nodes))
        if found and known >= tracked:
            return found
        return read(context, nodenames, **more)
    compute._get_compute_nodes_in_db = from_pass


def forget(source: NovaIronicDriver, node: str) -> None:
    """Let the next update of a node read the node's record again.

    Otherwise it writes only what differs from its last write.

    :param source: the driver that the manager has
    :param node: the node's UUID
    """
    in_turn_with_tracker(
        lambda: source.virtapi._compute.rt.remove_node(node))


def tell_status(source: NovaIronicDriver,
                untracked: Callable[[bool], Collection[str]],
                tell_more: Callable[[Collection[str], bool], None]) -> None:
    """Report to Placement whether a service is enabled.

    Nova does so for the nodes that the resource tracker tracks.

    :param source: the driver that the manager has
    :param untracked: names the others, by UUID, of which Placement is to be
        told; called with whether the service is enabled
    :param tell_more: tells Placement of these whether they may be chosen
    """
    compute = source.virtapi._compute
    tell = compute._update_compute_provider_status

    def told(context: nova_context.RequestContext, enabled: bool) -> None:
        nodes = untracked(enabled)
        try:
            tell(context, enabled)
        except exception.ComputeHostNotFound:
            if not untracked(True):
                raise
        except RuntimeError:
            # Nova goes through what the tracker has, to which a node was added
            # meanwhile.
            tracked: set[str] = set()
            in_turn_with_tracker(lambda: tracked.update(
                row.uuid for row in compute.rt.compute_nodes.values()))
            nodes = tracked.union(nodes)
        tell_more(nodes, enabled)
    compute._update_compute_provider_status = told


class Provision(NamedTuple):
    """What Ironic does with the node of an instance.

    :ivar node: the node's UUID; None if no node holds the instance, or another
        than that which Nova has it on
    :ivar state: the provision state, as Ironic has it
    """

    node: str | None
    state: str | None

    @property
    def meaning(self) -> states.Meaning:
        """What the state means; ``NONE`` without a node."""
        return states.Meaning.NONE if self.node is None else (
            states.meaning(self.state))


def provision_of(source: NovaIronicDriver, instance: objects.Instance
                 ) -> Provision:
    """Return the node of an instance, and the provision state of that.

    :param source: any driver, which asks Ironic
    :param instance: the instance
    """
    try:
        node = source._validate_instance_and_node(instance)
    except exception.InstanceNotFound:
        return Provision(None, None)
    if not pools.is_pool(instance.node) and instance.node != node.id:
        # The owner of that node has written the instance there.
        return Provision(None, None)
    return Provision(node.id, node.provision_state)


def placement(source: NovaIronicDriver) -> report.SchedulerReportClient:
    """Return what speaks to Placement, for the resource tracker as well.

    :param source: the driver that the manager has
    """
    return source.virtapi.reportclient


@functools.cache
def limit_new_sessions() -> None:
    """Limit the requests to Ironic and Placement of Nova's new sessions."""
    make = utils._get_auth_and_session

    def limited(confgrp: str, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        auth, session = make(confgrp, *args, **kwargs)
        if confgrp in ('ironic', 'placement'):
            limits.limit(session, CONF)
        return auth, session
    utils._get_auth_and_session = limited


def limit_sessions(source: NovaIronicDriver) -> None:
    """Limit all requests of a nova-compute to Ironic and Placement.

    :param source: the driver that the manager has
    """
    limit_new_sessions()
    # Nova has made this one before it has loaded the driver.
    limits.limit(placement(source)._client.session, CONF)


def aggregates(source: NovaIronicDriver, provider: str) -> set[str] | None:
    """Return the aggregates of a resource provider, as Nova's cache has them.

    The tree that the resource tracker gives to a driver has, from Nova 34 on,
    the provider of one compute node and no others.

    :param source: the driver that the manager has
    :param provider: the provider's UUID
    :returns: the UUIDs of the aggregates; None if Nova does not know the
        provider
    """
    known = placement(source)._provider_tree
    return known.data(provider).aggregates if known.exists(provider) else None


def configured_classes(source: NovaIronicDriver,
                       provider: nova_provider_tree.ProviderData
                       ) -> frozenset[str]:
    """Return the resource classes that provider.yaml adds to a provider.

    Nova's tracker adds them to the driver's inventory, and fails if that has
    them already. Entries for all compute nodes do not apply to a node that the
    files name.

    :param source: the driver that the manager has
    :param provider: the provider of a compute node
    """
    configs = source.virtapi._compute.rt.provider_configs
    named = [configs[each] for each in (provider.uuid, provider.name)
             if each in configs]
    return frozenset(
        name for said in named or [configs.get('$COMPUTE_NODE', {})]
        for added in said.get('inventories', {}).get('additional', ())
        for name in added)


def provider_configs(source: NovaIronicDriver) -> str:
    """Return the content of provider.yaml files, as a text.

    :param source: the driver that the manager has
    """
    configs = getattr(source.virtapi._compute.rt, 'provider_configs', {})
    return json.dumps(configs, sort_keys=True, default=str)


def describes_with(source: NovaIronicDriver) -> str:
    """Return what describes nodes in addition to Ironic's data.

    :param source: the driver that the manager has
    :returns: Nova's options and the driver's capabilities, as a text
    """
    return repr((
        CONF.workarounds.skip_reserve_in_use_ironic_nodes,
        CONF.cpu_allocation_ratio, CONF.ram_allocation_ratio,
        CONF.disk_allocation_ratio, CONF.reserved_host_cpus,
        CONF.reserved_host_memory_mb, CONF.reserved_host_disk_mb,
        sorted(source.capabilities_as_traits().items())))


@functools.cache
def releases() -> tuple[str, str]:
    """Return the releases of Nova and of this project."""
    return version.version_string(), metadata.version(
        'nova-ironic-ring')


def node_of(source: NovaIronicDriver, instance: objects.Instance) -> str:
    """Return the node that an instance is on.

    :param source: any driver, which asks Ironic
    :param instance: the instance
    :returns: the node's UUID
    :raises nova.exception.InstanceNotFound: if no node holds it
    """
    return source._validate_instance_and_node(instance).id


class Seen(NamedTuple):
    """A node of plain JSON, as Nova's driver sees one of the SDK's.

    It has what :func:`describe`, :func:`size` and :func:`is_ready` need, and
    costs a hundredth of one of the SDK's.
    """

    id: str
    instance_id: str | None
    is_maintenance: bool
    power_state: str | None
    provision_state: str | None
    properties: Mapping[str, Any]
    resource_class: str | None
    traits: Sequence[str] | None


def seen(node: plain.Node) -> Seen:
    """Return a node as Nova's driver sees one.

    :param node: the node, with all that Nova's driver asks of one
    """
    return Seen(
        node['uuid'], node['instance_uuid'], node['maintenance'],
        node['power_state'], node['provision_state'], node['properties'],
        node['resource_class'], node['traits'])


def as_believed(node: sdk_node.Node | Seen, properties: Mapping[str, Any],
                traits: Sequence[str]) -> Seen:
    """Return a node with other properties and traits than Ironic has.

    :param node: the node
    :param properties: the properties
    :param traits: the traits
    """
    return Seen(node.id, node.instance_id, node.is_maintenance,
                node.power_state, node.provision_state, properties,
                node.resource_class, traits)


def describe(source: NovaIronicDriver, node: sdk_node.Node | Seen
             ) -> dict[str, Any]:
    """Return what Nova makes of a node, as its resource tracker wants it.

    :param source: any driver
    :param node: the node, as Nova's driver wants it
    """
    return source._node_resource(node)


def architecture(described: Mapping[str, Any]) -> str:
    """Return the architecture whose images can be used on a node.

    :param described: what :func:`describe` returns for the node
    :returns: its name in Nova; '' if the node has none
    """
    return next((str(each[0]) for each in described['supported_instances']),
                '')


def architecture_of(said: str | None) -> str:
    """Return the architecture that a word means to Nova's driver.

    :param said: the word; None if there is none
    :returns: its name in Nova; '' if Nova knows no such architecture
    """
    try:
        return nova_fields.Architecture.canonicalize(said) or ''
    except exception.InvalidArchitectureName:
        return ''


def size(source: NovaIronicDriver, node: sdk_node.Node | Seen
         ) -> dict[str, Any]:
    """Return how large a node is: ``memory_mb``, ``local_gb`` and ``cpus``.

    :param source: any driver
    :param node: the node, as Nova's driver wants it
    :returns: by these names, the memory in MiB, the disk in GiB and the number
        of processors
    """
    return source._parse_node_properties(node)


def is_ready(source: NovaIronicDriver, node: sdk_node.Node | Seen) -> bool:
    """Return whether Ironic would deploy a node, if no instance is on it.

    :param source: any driver
    :param node: the node, as Nova's driver wants it
    """
    return not source._node_resources_unavailable(node)


def in_turn_with_tracker(call: Callable[[], _T]) -> _T:
    """Call a function while the resource tracker does nothing.

    The tracker compares all providers that its client knows with those that
    the client knew a moment before, and deletes from Placement each provider
    that one of the two lacks. The function is in haste, because a pass may
    wait for it.

    :param call: the function
    :returns: what that returns
    """
    return utils.synchronized(
        resource_tracker.COMPUTE_RESOURCE_SEMAPHORE, fair=True)(
            limits.hasty(call))()


def skip_allocations(source: NovaIronicDriver) -> None:
    """Keep the resource tracker from reading the allocations of all instances.

    Whenever the tracker writes a provider, it makes one request for each
    instance. It needs the allocations only for PCI devices, and for a change
    of the structure of providers, which the ironic driver never makes.

    :param source: the driver that the manager has
    """
    client = placement(source)
    ask = client.get_allocations_for_provider_tree

    def read(context: nova_context.RequestContext, nodename: str
             ) -> dict[str, Any]:
        return (ask(context, nodename) if CONF.pci.report_in_placement
                else {})
    client.get_allocations_for_provider_tree = read


#: What the resource tracker adds up in the record of a compute node.
_SUMS = ('memory_mb', 'memory_mb_used', 'free_ram_mb',
         'local_gb', 'local_gb_used', 'free_disk_gb', 'vcpus', 'vcpus_used')


def bound_records(source: NovaIronicDriver, bound: Callable[[int], int]
                  ) -> None:
    """Bound the numbers that the resource tracker saves to their columns.

    The tracker itself still counts with the exact numbers.

    :param source: the driver that the manager has
    :param bound: returns the nearest number that a column takes
    """
    tracker = source.virtapi._compute.rt
    update = tracker._update

    def bounded(context: nova_context.RequestContext,
                compute_node: objects.ComputeNode, *args: Any, **kwargs: Any
                ) -> None:
        exact = {name: getattr(compute_node, name) for name in _SUMS
                 if name in compute_node}
        wrong = {name: value for name, value in exact.items()
                 if value is not None and bound(value) != value}
        for name, value in wrong.items():
            setattr(compute_node, name, bound(value))
        try:
            update(context, compute_node, *args, **kwargs)
        finally:
            for name, value in wrong.items():
                setattr(compute_node, name, value)
    tracker._update = bounded


def restore_providers(source: NovaIronicDriver) -> None:
    """Let the resource tracker create a deleted provider again.

    Nova's API deletes the providers of the nodes that a service had when its
    deletion began, and another service may have taken such a node meanwhile.
    Nova's client would use its cache for minutes, and meanwhile the tracker
    would fail.

    :param source: the driver that the manager has
    """
    client = placement(source)
    ask = client.get_allocations_for_provider_tree

    def read(context: nova_context.RequestContext, nodename: str
             ) -> dict[str, Any]:
        try:
            return ask(context, nodename)
        except exception.ResourceProviderAllocationRetrievalFailed as error:
            if not is_missing_provider(error):
                raise
            client.invalidate_resource_provider(nodename)
            # The tracker begins again, and makes the provider.
            raise exception.ResourceProviderUpdateConflict(
                uuid=nodename, generation=0, error=str(error)) from error
    client.get_allocations_for_provider_tree = read


def bear_missing_providers(source: NovaIronicDriver) -> None:
    """Let Nova go on if a compute node that it deletes has no provider.

    A nova-compute creates the record of a compute node first, and the provider
    later. If it ends in between, and does not list that node when it starts
    again, it deletes the record, and its client finds no provider to delete:
    Nova would end the start with that error.

    :param source: the driver that the manager has
    """
    client = placement(source)
    delete = client.delete_resource_provider

    def deleted(context: nova_context.RequestContext,
                compute_node: objects.ComputeNode, cascade: bool = False
                ) -> None:
        try:
            delete(context, compute_node, cascade=cascade)
        except ValueError:
            # What Placement answers may be none as well.
            if client.get_providers_in_tree(context, compute_node.uuid):
                raise
            LOG.info('Compute node %s has no resource provider to delete.',
                     compute_node.uuid)
    client.delete_resource_provider = deleted


def is_missing_provider(
        error: exception.ResourceProviderAllocationRetrievalFailed) -> bool:
    """Return whether Placement has no such resource provider.

    :param error: the error of a request for the allocations on the provider
    """
    return '"status": 404' in str(error)


def node_fields() -> tuple[str, ...]:
    """Return Ironic's names of the fields that Nova's driver reads."""
    return tuple(driver._NODE_FIELDS)


def list_nodes(source: NovaIronicDriver, fields: Iterable[str],
               **filters: str) -> Iterator[plain.Node]:
    """List nodes of Ironic.

    The SDK would make an object of each node, which takes longer than all the
    rest. If a subclass of Nova's driver lists nodes in its own way, that way
    is used, except for the nodes without a shard: the SDK cannot ask for them.

    :param source: any driver, which asks Ironic
    :param fields: the fields to read, as Ironic names them
    :param filters: Ironic's query parameters
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    fields = tuple(fields)
    if has_own_listing(source) and 'sharded' not in filters:
        return _list_as_driver(source, fields, filters)
    return plain.list_nodes(
        functools.partial(
            _get, source, '/nodes', _version_of(*fields, *filters)),
        {'fields': ','.join(fields), **filters})


def list_latest(source: NovaIronicDriver, fields: Iterable[str],
                query: Mapping[str, str]) -> list[plain.Node]:
    """List some of the nodes of Ironic, those first that have changed last.

    :param source: any driver, which asks Ironic
    :param fields: the fields to read, as Ironic names them
    :param query: Ironic's query parameters, with ``limit``, and with
        ``marker`` for another page than the first
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    fields = tuple(fields)
    # Asked for some fields only, Ironic does not return the time of a node's
    # last change: so it is asked to sort by that time.
    found: list[plain.Node] = _get(
        source, '/nodes', _version_of(*fields, *query), {
            'fields': ','.join(fields), 'sort_key': 'updated_at',
            'sort_dir': 'desc', **query})['nodes']
    return found


def has_own_listing(source: NovaIronicDriver) -> bool:
    """Return whether a driver lists nodes in another way than Nova's driver.

    :param source: any driver
    """
    return type(source)._get_node_list is not NovaIronicDriver._get_node_list


def _list_as_driver(source: NovaIronicDriver, fields: Sequence[str],
                    filters: Mapping[str, str]) -> Iterator[plain.Node]:
    """List nodes in the way of a driver that has its own."""
    # The driver may read any field that Nova's driver asks for.
    fields = tuple(dict.fromkeys((*node_fields(), *fields)))
    try:
        found = list(source._get_node_list(fields=fields, **filters))
    except NO_ANSWER as error:
        raise _not_ready('/nodes', error) from error
    # With all fields: other methods of the driver may need those that it adds.
    return (node.to_dict(computed=False, original_names=True)
            for node in found)


def for_nova(node: plain.Node) -> sdk_node.Node:
    """Return a node as Nova's driver keeps it in its cache.

    :param node: the node, with all fields that Nova's driver reads
    """
    return sdk_node.Node.existing(**node)


def shards(source: NovaIronicDriver, version: str) -> frozenset[str]:
    """Return the names of the shards that have nodes.

    :param source: any driver, which asks Ironic
    :param version: the version of the API that has shards
    :returns: the names; "None" is one if there are nodes without a shard
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    said = _get(source, '/shards', version, {})
    return frozenset(str(each['name']) for each in said['shards'])


def find_node(source: NovaIronicDriver, node: str, fields: Iterable[str]
              ) -> plain.Node | None:
    """Read a node of Ironic.

    :param source: any driver, which asks Ironic
    :param node: the node's UUID
    :param fields: the fields to read, as Ironic names them
    :returns: None if Ironic does not have it
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    fields = tuple(fields)
    try:
        return _ask(source, f'/nodes/{node}', _version_of(*fields),
                    {'fields': ','.join(fields)})
    except sdk_exceptions.NotFoundException:
        return None


def _version_of(*names: str) -> str:
    """Return the version of Ironic's API that has fields and filters.

    The version that Nova's driver needs has all fields that it reads.
    """
    return plain.version_of(names, driver.IRONIC_API_VERSION)


def _get(source: NovaIronicDriver, url: str, version: str,
         query: Mapping[str, str]) -> dict[str, Any]:
    """Ask Ironic for something that exists in any case, as plain JSON.

    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    try:
        return _ask(source, url, version, query)
    except sdk_exceptions.NotFoundException as error:
        raise _not_ready(url, error) from error


def _ask(source: NovaIronicDriver, url: str, version: str,
         query: Mapping[str, str]) -> dict[str, Any]:
    """Ask Ironic for something, as plain JSON.

    :raises openstack.exceptions.NotFoundException: if Ironic does not have it
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    try:
        answer = source.ironic_connection.get(
            url, params=dict(query), microversion=version,
            headers={'Accept': 'application/json'})
        sdk_exceptions.raise_from_response(answer)
        said: dict[str, Any] = answer.json()
        return said
    except sdk_exceptions.NotFoundException:
        raise
    except NO_ANSWER as error:
        raise _not_ready(url, error) from error


def _not_ready(url: str, error: Exception) -> exception.VirtDriverNotReady:
    LOG.error('Ironic does not answer "GET %(url)s": %(error)s',
              {'url': url, 'error': error})
    return exception.VirtDriverNotReady()


def has_api_version(source: NovaIronicDriver, version: str) -> bool:
    """Return whether Ironic has a version of its API.

    :param source: any driver, which asks Ironic
    :param version: the version, ``major.minor``
    :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
    """
    try:
        source._can_send_version(version)
    except exception.IronicAPIVersionNotAvailable:
        return False
    except NO_ANSWER as error:
        LOG.error('Cannot read the API versions of Ironic: %s', error)
        raise exception.VirtDriverNotReady() from error
    return True
