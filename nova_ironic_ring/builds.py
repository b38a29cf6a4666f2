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

"""Ends the builds that were on their way to a service when it died."""

from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler.client import report
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# Says in an instance's system metadata which service its build died with.
_MARK = 'ironic_ring_build_died_with'


def end_all(context: nova_context.RequestContext,
            client: report.SchedulerReportClient, node: str,
            dead: str) -> None:
    """End the builds for a free node that its owner has died with.

    To be asked before this service records the node as its own: from then on
    builds for it come here.

    :param context: with the rights of an administrator
    :param client: what speaks to Placement
    :param node: the node's UUID
    :param dead: the name of its owner
    """
    try:
        found = client.get_allocations_for_resource_provider(context, node)
    except (exception.ResourceProviderAllocationRetrievalFailed,
            keystone_exceptions.ClientException) as error:
        LOG.warning('Placement does not tell of the builds for node %(node)s '
                    'that %(dead)s has left behind; look for instances that '
                    'stay in BUILD: %(error)s',
                    {'node': node, 'dead': dead, 'error': error})
        return
    if not found.allocations:
        return
    building = objects.InstanceList.get_by_filters(
        context, {'uuid': sorted(found.allocations), 'deleted': False,
                  'vm_state': vm_states.BUILDING},
        expected_attrs=['system_metadata'])
    for instance in building:
        # Without a host it has not arrived anywhere.
        if instance.host in (None, dead):
            _end(context, client, instance, node, dead)


def blame(context: nova_context.RequestContext, instance: objects.Instance,
          dead: str) -> None:
    """Say of an instance that its build has died with a service.

    Whoever shall build it after all, from an old message, can tell by it.

    :param context: with the rights of an administrator
    :param instance: the instance, which is not saved
    :param dead: the name of the service
    """
    instance.system_metadata[_MARK] = dead
    compute_utils.add_instance_fault_from_exc(
        context, instance, _error(instance, dead))


def refuse_ended(instance: objects.Instance) -> None:
    """Refuse to build an instance whose build has been ended.

    :param instance: the instance
    :raises nova.exception.BuildAbortException: if it has
    """
    dead = instance.system_metadata.get(_MARK)
    if dead is not None:
        raise _error(instance, dead)


def _end(context: nova_context.RequestContext,
         client: report.SchedulerReportClient, instance: objects.Instance,
         node: str, dead: str) -> None:
    """Set an instance to ERROR and free its node."""
    try:
        blame(context, instance, dead)
        instance.vm_state = vm_states.ERROR
        instance.task_state = None
        instance.save(expected_vm_state=[vm_states.BUILDING])
    except (exception.InstanceNotFound, exception.InstanceUpdateConflict):
        # Deleted, or built after all.
        return
    client.delete_allocation_for_instance(context, instance.uuid, force=True)
    LOG.info('The build of instance %(instance)s on node %(node)s has ended '
             'with %(dead)s: it is in ERROR.', {
                 'instance': instance.uuid, 'node': node, 'dead': dead})


def _error(instance: objects.Instance, dead: str
           ) -> exception.BuildAbortException:
    return exception.BuildAbortException(
        instance_uuid=instance.uuid,
        reason=f'the nova-compute {dead} has died while it was to build it')
