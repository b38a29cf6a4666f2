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

from collections.abc import Callable
import dataclasses
from typing import Any

from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import task_states
from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler.client import report
from oslo_log import log as logging

from nova_ironic_ring import possession
from nova_ironic_ring import records
from nova_ironic_ring import upstream

LOG = logging.getLogger(__name__)

# Says in an instance's system metadata which service its build died with.
_MARK = 'ironic_ring_build_died_with'


@dataclasses.dataclass
class _Doubt:
    """What was allocated of a node and is no instance yet.

    :ivar node: the node's UUID
    :ivar dead: the name of its former owner; None if nobody knows that
    :ivar consumers: UUIDs
    :ivar looks: how often to look again
    """

    node: str
    dead: str | None
    consumers: set[str]
    looks: int = 10


class Ender:
    """Ends what dead services were to do with nodes that are free."""

    def __init__(self) -> None:
        self._doubts: list[_Doubt] = []

    def end_all(self, context: nova_context.RequestContext,
                client: report.SchedulerReportClient, node: str,
                dead: str | None) -> list[objects.Instance]:
        """End the builds for a free node that its owner has died with.

        To be asked before this service records the node as its own: from then
        on builds for it come here.

        :param context: with the rights of an administrator
        :param client: what speaks to Placement
        :param node: the node's UUID
        :param dead: the name of its owner; None if nobody knows that
        :returns: instances of that one that Ironic has no node for any more,
            because they were being deleted
        """
        try:
            found = client.get_allocations_for_resource_provider(context, node)
        except (exception.ResourceProviderAllocationRetrievalFailed,
                keystone_exceptions.ClientException) as error:
            if '"status": 404' not in str(error):
                LOG.warning('Placement does not tell of the builds for node '
                            '%(node)s that %(dead)s has left behind; look for '
                            'instances that stay in BUILD: %(error)s',
                            {'node': node, 'dead': _name(dead),
                             'error': error})
            return []
        if not found.allocations:
            return []
        doubt = _Doubt(node, dead, set(found.allocations))
        self._doubts.append(doubt)
        return self._settle(context, client, doubt)

    def look_again(self, context: nova_context.RequestContext,
                   client: report.SchedulerReportClient
                   ) -> list[tuple[str, str | None, objects.Instance]]:
        """See what has become of what was allocated and no instance then.

        :param context: with the rights of an administrator
        :param client: what speaks to Placement
        :returns: as :meth:`end_all`, with the node and its former owner
        """
        deleting = []
        for doubt in self._doubts:
            doubt.looks -= 1
            deleting += [(doubt.node, doubt.dead, instance) for instance
                         in self._settle(context, client, doubt)]
        self._doubts = [doubt for doubt in self._doubts
                        if doubt.consumers and doubt.looks > 0]
        return deleting

    def _settle(self, context: nova_context.RequestContext,
                client: report.SchedulerReportClient, doubt: _Doubt
                ) -> list[objects.Instance]:
        deleting = []
        for instance in records.find_instances(
                context, doubt.consumers, upstream.RECOVERY_ATTRIBUTES):
            try:
                # Without a host it has not arrived anywhere.
                if instance.host not in (None, doubt.dead):
                    pass
                elif instance.host and (
                        instance.task_state == task_states.DELETING):
                    deleting.append(instance)
                elif instance.vm_state == vm_states.BUILDING or (
                        _MARK in instance.system_metadata):
                    _end(context, client, instance, doubt.node, doubt.dead)
            except Exception as error:
                LOG.error('The build of instance %(instance)s, which %(dead)s '
                          'has left behind, cannot be ended yet: %(error)s',
                          {'instance': instance.uuid,
                           'dead': _name(doubt.dead), 'error': error})
                continue
            doubt.consumers.discard(instance.uuid)
        return deleting


def blame(context: nova_context.RequestContext, instance: objects.Instance,
          dead: str | None) -> None:
    """Say of an instance that its build has died with a service.

    Whoever shall build it after all, from an old message, can tell by it.

    :param context: with the rights of an administrator
    :param instance: the instance, which is not saved
    :param dead: the name of the service; None if nobody knows that
    """
    instance.system_metadata[_MARK] = dead or ''
    compute_utils.add_instance_fault_from_exc(
        context, instance, _error(instance, dead))


def for_good(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have a driver's method not build what has ended with another service.

    It raises BuildAbortException for it, and where a build fails because
    another service has taken the instance over in the meantime: Nova would
    build it somewhere else after other failures.

    :param method: one that has a parameter ``instance``
    """
    def build(instance: objects.Instance, call: Callable[[], Any]) -> Any:
        dead = _died_with(instance)
        if dead is not None:
            raise _error(instance, dead)
        try:
            return call()
        except Exception as error:
            if possession.release(instance):
                raise
            raise exception.BuildAbortException(
                instance_uuid=instance.uuid, reason=str(error)) from error
    return possession.guarded(method, build)


def _died_with(instance: objects.Instance) -> str | None:
    """Return the service that the build of an instance has died with."""
    # The message may be older than the mark.
    now = objects.Instance.get_by_uuid(
        nova_context.get_admin_context(), instance.uuid,
        expected_attrs=['system_metadata'])
    return now.system_metadata.get(_MARK)


def _end(context: nova_context.RequestContext,
         client: report.SchedulerReportClient, instance: objects.Instance,
         node: str, dead: str | None) -> None:
    """Set an instance to ERROR and free its node."""
    if instance.vm_state == vm_states.BUILDING:
        try:
            blame(context, instance, dead)
            instance.vm_state = vm_states.ERROR
            instance.task_state = None
            # Nobody has it, and its service's record may be deleted. Nova
            # wants all three together.
            instance.host = instance.node = instance.compute_id = None
            instance.save(expected_vm_state=[vm_states.BUILDING])
        except (exception.InstanceNotFound, exception.InstanceUpdateConflict):
            # Deleted, or built after all.
            return
        LOG.info('The build of instance %(instance)s on node %(node)s has '
                 'ended with %(dead)s: it is in ERROR.', {
                     'instance': instance.uuid, 'node': node,
                     'dead': _name(dead)})
    client.delete_allocation_for_instance(context, instance.uuid, force=True)


def _name(dead: str | None) -> str:
    return f'the nova-compute {dead}' if dead else 'its nova-compute'


def _error(instance: objects.Instance, dead: str | None
           ) -> exception.BuildAbortException:
    return exception.BuildAbortException(
        instance_uuid=instance.uuid,
        reason=f'{_name(dead)} has died while it was to build it')
