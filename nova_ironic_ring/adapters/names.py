# SPDX-License-Identifier: Apache-2.0

"""The names of Nova that this project uses and that Nova does not promise.

Here stands with which parameters, so that a Nova that lacks one is refused
when a service starts. doc/source/contributor/nova.rst says what each is for.
Nothing of Nova is imported before somebody asks.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import dataclasses
import dis
import importlib
import inspect
import itertools
import re
from typing import Any

_MANAGER = 'nova.compute.manager:ComputeManager'
_VIRTAPI = 'nova.compute.manager:ComputeVirtAPI'
_TRACKER = 'nova.compute.resource_tracker:ResourceTracker'
_CLIENT = 'nova.scheduler.client.report:SchedulerReportClient'
_DRIVER = 'nova.virt.ironic.driver:IronicDriver'
_TREE = 'nova.compute.provider_tree:ProviderTree'
_DATA = 'nova.compute.provider_tree:ProviderData'
_OPTIONS = 'nova.conf:CONF'

#: The first and the last release of Nova that this project is tested with.
TESTED = (31, 34)

# The version of Nova's main branch after the last of them: pbr counts up the
# second number there, and the third one on a stable branch.
_NEXT = re.compile(rf'{TESTED[1]}\.[1-9]\d*\.0\.dev')


@dataclasses.dataclass(frozen=True)
class Name:
    """A name of Nova, and what is done with it.

    :ivar owner: where it is: a module, or a module, a colon and a class in it
    :ivar name: the name
    :ivar call: the parameters that it is called with, in their order; one that
        is given by its name ends with ``=``; None if it is not called
    :ivar read: the parameters that are read, by their names, of a call that
        Nova makes
    :ivar replaced: the parameters of what Nova calls in its place, ``*`` as
        the last for any more; None if it is not replaced
    """

    owner: str
    name: str
    call: tuple[str, ...] | None = None
    read: tuple[str, ...] = ()
    replaced: tuple[str, ...] | None = None

    @property
    def is_function(self) -> bool:
        """Whether it is called, by this project or by Nova."""
        return bool(self.read) or (self.call, self.replaced) != (None, None)

    def __str__(self) -> str:
        """Return the name as people read it, with the parameters in use."""
        if self.owner.startswith(_OPTIONS):
            group = self.owner.removeprefix(_OPTIONS)[1:] or 'DEFAULT'
            return f'[{group}] {self.name}'
        where = self.owner.rpartition(':')[2]
        if not self.is_function:
            return f'{where}.{self.name}'
        used = dict.fromkeys(
            each.rstrip('=') for each in (
                *(self.call or ()), *self.read, *(self.replaced or ()))
            if each != '*')
        return f'{where}.{self.name}({", ".join(used)})'


#: Those that :mod:`nova_ironic_ring.adapters.upstream` alone uses.
NAMES: tuple[Name, ...] = (
    # What leads from a driver to the rest of nova-compute.
    Name(_VIRTAPI, '_compute'),
    Name(_VIRTAPI, 'reportclient'),
    Name(_MANAGER, 'reportclient'),
    Name(_MANAGER, 'rt'),
    # The process.
    Name(_MANAGER, 'service_ref'),
    Name(_MANAGER, 'reset', call=()),
    Name(_MANAGER, 'post_start_hook', replaced=('*',)),
    Name('nova.version', 'version_string', call=()),
    Name('nova.conf.ironic', 'ironic_options'),
    Name('nova.utils', '_get_auth_and_session', read=('confgrp',)),
    Name(f'{_OPTIONS}.pci', 'report_in_placement'),
    # Instances at a start, and those of others.
    Name(_MANAGER, '_init_instance', call=('context', 'instance'),
         replaced=('context', 'instance')),
    Name(_MANAGER, '_destroy_evacuated_instances',
         replaced=('context', 'node_cache')),
    Name(_MANAGER, '_error_out_instances_whose_build_was_interrupted',
         replaced=('context', 'already_handled_instances', 'node_uuids')),
    Name(_MANAGER, 'soft_delete_instance', call=('context', 'instance')),
    Name('nova.compute.task_states', 'SPAWNING'),
    # What is made of the state of an instance.
    Name(_MANAGER, '_instance_update', read=('instance',)),
    Name(_MANAGER, '_set_instance_obj_error_state', read=('instance',),
         replaced=('instance', '*')),
    Name(_MANAGER, 'power_update', read=('instance',)),
    # Builds.
    Name(_MANAGER, 'build_and_run_instance', read=('context', 'instance')),
    Name(_MANAGER, '_do_build_and_run_instance', read=(
        'context', 'instance', 'request_spec', 'filter_properties')),
    Name(_MANAGER, '_get_scheduler_hints',
         call=('filter_properties', 'request_spec')),
    Name(_MANAGER, '_update_instance_after_spawn', call=('instance',)),
    Name(_MANAGER, '_update_scheduler_instance_info',
         call=('context', 'instance')),
    Name(_MANAGER, '_notify_about_instance_usage', call=(
        'context', 'instance', 'event_suffix', 'network_info=',
        'extra_usage_info=')),
    Name('nova.compute.utils', 'notify_about_instance_create', call=(
        'context', 'instance', 'host', 'phase=')),
    Name('nova.compute.utils', 'notify_about_instance_action', call=(
        'context', 'instance', 'host', 'action=', 'phase=')),
    Name(_OPTIONS, 'default_access_ip_network_name'),
    Name(_MANAGER, '_cleanup_allocated_networks', read=('instance',)),
    Name(_MANAGER, '_cleanup_volumes', read=('instance', 'bdms')),
    Name(_MANAGER, '_shutdown_instance', read=('instance', 'bdms')),
    Name(_MANAGER, '_terminate_volume_connections',
         call=('context', 'instance', 'bdms'), read=('instance',)),
    Name(_TRACKER, 'instance_claim', read=('instance', 'nodename')),
    Name('nova.compute.claims:NopClaim', 'abort', call=()),
    Name(_TRACKER, 'build_failed', replaced=('nodename',)),
    Name('nova.virt.driver', 'block_device_info_get_mapping',
         call=('block_device_info',)),
    # Shelving.
    Name(_MANAGER, '_shelve_offload_instance',
         call=('context', 'instance', 'clean_shutdown')),
    Name(_MANAGER, '_nil_out_instance_obj_host_and_node', call=('instance',)),
    Name(_MANAGER, 'unshelve_instance', read=('instance', 'node')),
    Name(_MANAGER, '_unshelve_instance', read=('instance', 'node')),
    Name('nova.compute.utils', 'remove_shelved_keys_from_system_metadata',
         call=('instance',)),
    Name('nova.utils', 'synchronized', call=('name', 'fair=')),
    # Rebuilds and evacuations.
    Name(_TRACKER, 'rebuild_claim', read=('instance',)),
    Name(_TRACKER, 'finish_evacuation',
         replaced=('instance', 'node', 'migration')),
    Name(_TRACKER, 'delete_allocation_for_evacuated_instance',
         replaced=('context', 'instance', 'node', '*')),
    # Compute nodes.
    Name(_TRACKER, 'compute_nodes'),
    Name(_TRACKER, 'stats'),
    Name(_TRACKER, 'provider_configs'),
    Name(_TRACKER, 'update_available_resource',
         call=('context', 'nodename', 'startup='),
         replaced=('context', 'nodename', 'startup')),
    Name(_TRACKER, 'remove_node', call=('nodename',)),
    Name(_TRACKER, '_update', replaced=('context', 'compute_node', '*')),
    Name('nova.compute.resource_tracker', 'COMPUTE_RESOURCE_SEMAPHORE'),
    Name(_MANAGER, '_update_compute_provider_status',
         replaced=('context', 'enabled')),
    Name(_MANAGER, '_get_compute_nodes_in_db',
         replaced=('context', 'nodenames', '*')),
    # Placement.
    Name(_CLIENT, '_client'),
    Name(_CLIENT, '_provider_tree'),
    Name(_CLIENT, 'delete_allocation_for_instance',
         call=('context', 'uuid', 'force='), read=('uuid',)),
    Name(_CLIENT, 'delete_resource_provider',
         call=('context', 'compute_node', 'cascade='),
         replaced=('context', 'compute_node', 'cascade')),
    Name(_CLIENT, 'get_providers_in_tree', call=('context', 'uuid')),
    Name(_CLIENT, 'get_allocations_for_provider_tree',
         replaced=('context', 'nodename')),
    Name(_CLIENT, 'invalidate_resource_provider', call=('name_or_uuid',)),
    Name(_CLIENT, 'remove_provider_tree_from_instance_allocation',
         call=('context', 'consumer_uuid', 'root_rp_uuid')),
    Name(_TREE, 'exists', call=('name_or_uuid',)),
    Name(_TREE, 'data', call=('name_or_uuid',)),
    Name(_DATA, 'aggregates'),
    Name(_DATA, 'name'),
    Name(_DATA, 'uuid'),
    # Nova's driver, and what it makes of a node.
    Name(_DRIVER, 'node_cache'),
    Name(_DRIVER, 'node_cache_time'),
    Name(_DRIVER, '_refresh_cache', replaced=()),
    Name(_DRIVER, '_get_node', call=('node_id',), replaced=('node_id',)),
    Name(_DRIVER, '_get_node_list', call=('fields=', 'shard=')),
    Name('nova.virt.ironic.driver', '_NODE_FIELDS'),
    Name('nova.virt.ironic.driver', 'IRONIC_API_VERSION'),
    Name(_DRIVER, 'ironic_connection'),
    Name(_DRIVER, '_can_send_version', call=('version',)),
    Name(_DRIVER, '_validate_instance_and_node', call=('instance',)),
    Name(_DRIVER, '_cleanup_deploy', call=(
        'node', 'instance', 'network_info'), replaced=(
            'node', 'instance', 'network_info')),
    Name(_DRIVER, '_unprovision', call=('instance', 'node'), replaced=(
        'instance', 'node')),
    Name(_DRIVER, '_node_resource', call=('node',)),
    Name(_DRIVER, '_node_resources_unavailable', call=('node_obj',)),
    Name(_DRIVER, '_parse_node_properties', call=('node',)),
    Name('nova.objects.fields:Architecture', 'canonicalize', call=('name',)),
    Name(f'{_OPTIONS}.workarounds', 'skip_reserve_in_use_ironic_nodes'),
    *(Name(_OPTIONS, name) for name in (
        'cpu_allocation_ratio', 'disk_allocation_ratio',
        'ram_allocation_ratio', 'reserved_host_cpus', 'reserved_host_disk_mb',
        'reserved_host_memory_mb')),
    # What Nova raises.
    *(Name('nova.exception', name) for name in (
        'ComputeHostNotFound', 'InstanceNotFound', 'InvalidArchitectureName',
        'IronicAPIVersionNotAvailable',
        'ResourceProviderAllocationRetrievalFailed',
        'ResourceProviderUpdateConflict', 'ServiceUnavailable',
        'VirtDriverNotReady')))
#: Those that the other modules of a service use, and by which Nova's own
#: modules call each other.
SHARED: tuple[Name, ...] = (
    Name('nova.scheduler.client.report', 'report_client_singleton', call=()),
    Name(_CLIENT, 'get', call=('url', 'version=')),
    Name(_CLIENT, 'put', call=('url', 'data=', 'version=')),
    Name(_CLIENT, 'post', call=('url', 'data=', 'version=')),
    Name(_CLIENT, 'delete', call=('url', 'version=')),
    Name(_CLIENT, 'put_allocations',
         call=('context', 'consumer_uuid', 'payload')),
    Name('nova.compute.utils', 'EventReporter',
         call=('context', 'event_name', 'host')),
    Name('nova.compute.utils', 'add_instance_fault_from_exc',
         call=('context', 'instance', 'fault')),
    Name('nova.compute.utils', 'is_volume_backed_instance',
         call=('context', 'instance')),
    Name('nova.servicegroup:API', 'service_is_up', call=('member',)),
    Name('nova.utils', 'normalize_rc_name', call=('rc_name',)),
    Name('nova.utils', 'temporary_mutation'),
    Name('nova.rpc', 'NOTIFIER'),
    Name('nova.rpc', 'LEGACY_NOTIFIER'),
    Name('nova.virt.ironic.ironic_states', 'AVAILABLE'),
    *(Name('nova.compute.power_state', name) for name in (
        'RUNNING', 'SHUTDOWN')),
    *(Name('nova.compute.vm_states', name) for name in (
        'ACTIVE', 'BUILDING', 'DELETED', 'ERROR', 'RESCUED', 'SHELVED',
        'SHELVED_OFFLOADED', 'SOFT_DELETED', 'STOPPED')),
    *(Name('nova.compute.task_states', name) for name in (
        'DELETING', 'POWERING_OFF', 'POWERING_ON', 'REBOOTING',
        'REBOOTING_HARD', 'REBOOT_PENDING', 'REBOOT_PENDING_HARD',
        'REBOOT_STARTED', 'REBOOT_STARTED_HARD',
        'REBUILDING', 'RESCUING', 'RESTORING', 'SHELVING',
        'SHELVING_IMAGE_PENDING_UPLOAD', 'SHELVING_IMAGE_UPLOADING',
        'SHELVING_OFFLOADING', 'SOFT_DELETING', 'UNRESCUING', 'UNSHELVING',
        'hard_reboot_states', 'soft_reboot_states')),
    *(Name('nova.compute.instance_actions', name) for name in (
        'CREATE', 'DELETE', 'EVACUATE', 'LOCK', 'REBOOT', 'RESTORE', 'START',
        'STOP', 'UNLOCK', 'UNSHELVE')),
    *(Name('nova.exception', name) for name in (
        'AggregateNotFound', 'AllocationUpdateFailed', 'BuildAbortException',
        'ComputeResourcesUnavailable', 'InstanceUnacceptable',
        'InstanceUpdateConflict', 'InvalidConfiguration', 'NoResourceClass',
        'NotFound', 'NovaException', 'ObjectActionError',
        'ResourceProviderInUse', 'UnexpectedTaskStateError')))


def find(owner: str) -> Any:
    """Find what has names.

    :param owner: as :class:`Name` has it
    :returns: the module or the class; None if Nova has no such
    :raises ImportError: if Nova has the module, and it cannot be imported:
        what it needs is not installed
    """
    module, _, path = owner.partition(':')
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if f'{module}.'.startswith(f'{error.name}.'):
            return None
        raise
    for part in filter(None, path.split('.')):
        found = getattr(found, part, None)
    return found


def missing(found: Callable[[str], Any] = find) -> list[str]:
    """Name what the Nova that is installed lacks of all this.

    It looks at modules and classes, and so needs no running service.

    :param found: finds what has names
    :returns: each as people read it; what has names, and not these, where that
        is not there itself
    :raises ImportError: as :func:`find`
    """
    lacking: dict[str, None] = {}
    for name in NAMES + SHARED:
        owner = found(name.owner)
        if owner is None:
            lacking[name.owner.replace(':', '.')] = None
        elif not _is_there(owner, name):
            lacking[str(name)] = None
    return list(lacking)


def _is_there(owner: Any, name: Name) -> bool:
    if not name.is_function:
        return hasattr(owner, name.name) or (
            isinstance(owner, type) and _is_set(owner, name.name))
    method = getattr(owner, name.name, None)
    return callable(method) and _fits(name, _parameters(owner, name.name))


def _is_set(owner: type, name: str) -> bool:
    """Say whether a method of a class gives its objects an attribute."""
    return any(
        step.opname == 'STORE_ATTR' and step.argval == name
        and _loads(before, code.co_varnames[:1])
        for each in owner.__mro__ for code in _codes(vars(each).values())
        if name in code.co_names
        for before, step in itertools.pairwise(dis.get_instructions(code)))


def _loads(step: dis.Instruction, variable: tuple[str, ...]) -> bool:
    """Say whether the last that a step loads is a variable.

    :param step: the step
    :param variable: its name; empty if there is none
    """
    # Newer Pythons load two in one step.
    loaded = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    return bool(variable) and loaded[-1:] == variable


def _codes(members: Iterable[Any]) -> Iterator[Any]:
    for member in members:
        if callable(member):
            code = getattr(inspect.unwrap(member), '__code__', None)
            if code is not None:
                yield code


def _parameters(owner: Any, name: str) -> inspect.Signature | None:
    """Return the parameters of a function, without the object that has it.

    :returns: None if Python does not know them
    """
    with contextlib.suppress(ValueError, TypeError):
        found = inspect.signature(getattr(owner, name))
        if isinstance(owner, type) and inspect.isfunction(
                inspect.getattr_static(owner, name)):
            return found.replace(
                parameters=list(found.parameters.values())[1:])
        return found
    return None


def _fits(name: Name, given: inspect.Signature | None) -> bool:
    """Say whether a function takes what it is used with."""
    if given is None or not set(name.read) <= given.parameters.keys():
        return False
    kinds = inspect.Parameter
    places = [each.name for each in given.parameters.values() if each.kind in (
        kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    if name.call is not None:
        place = [each for each in name.call if not each.endswith('=')]
        by_name = {each[:-1]: None for each in name.call
                   if each.endswith('=')}
        try:
            given.bind(*place, **by_name)
        except TypeError:
            return False
        # One that was put before another is noticed by the names alone.
        if places[:len(place)] != place:
            return False
    if name.replaced is None:
        return True
    ours = [each for each in name.replaced if each != '*']
    if '*' in name.replaced:
        return places[:len(ours)] == ours
    return list(given.parameters) == ours


def release() -> str:
    """Return the version of the Nova that is installed."""
    return str(find('nova.version').version_string())


def is_tested(release: str) -> bool:
    """Return whether this project is tested with a release of Nova.

    :param release: its version; that of a clone without tags says nothing
    """
    number = re.match(r'\d+', release)
    return (number is not None and TESTED[0] <= int(number[0]) <= TESTED[1]
            and not _NEXT.match(release))


def refusal(release: str, lacking: Sequence[str]) -> str:
    """Say in a sentence that this project does not work with a Nova.

    :param release: the version of Nova
    :param lacking: what it lacks
    """
    *most, last = lacking
    words = f'{", ".join(most)} and {last}' if most else last
    return (f'Nova {release} lacks {words}, which this driver needs: use Nova '
            f'{TESTED[0]} to {TESTED[1]}, or a release of the driver that is '
            'made for this Nova.')


def doubt(release: str) -> str:
    """Say in a sentence that a Nova is not one that was tested.

    :param release: its version
    """
    return (f'Nova {release} is none of the releases that this driver is '
            f'tested with, {TESTED[0]} to {TESTED[1]}: it has all names of '
            'Nova that the driver uses, and may do something else by them.')
