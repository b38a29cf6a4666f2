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

"""Picks up what dead services were doing with their instances."""

from collections.abc import Mapping
import threading
import time

from nova.compute import task_states
from nova.compute import vm_states
from nova import context as nova_context
from nova import objects
from oslo_log import log as logging

from nova_ironic_ring import builds
from nova_ironic_ring import upstream

LOG = logging.getLogger(__name__)

# Seconds that the resource tracker may take to record the nodes, and Ironic to
# finish what it was told to do.
_PATIENCE = 1800
_POLL = 0.5

# What becomes of a rescue that is not under way in Ironic any more.
_AFTER_RESCUE = {
    'rescue': vm_states.RESCUED,
    'active': vm_states.ACTIVE,
}
_RESCUING = frozenset({
    'rescuing', 'rescue wait', 'unrescuing'})


def start(source: upstream.NovaIronicDriver,
          context: nova_context.RequestContext,
          instances: Mapping[str, objects.Instance],
          dead: Mapping[str, str]) -> None:
    """Bring instances that were taken over to order, as a restart would.

    In a thread of its own: it may take minutes.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instances: the instances, by node
    :param dead: the names of the services that had them, by node
    """
    if instances:
        threading.Thread(target=_recover_all, daemon=True, args=(
            source, context, instances, dead)).start()


def _recover_all(source: upstream.NovaIronicDriver,
                 context: nova_context.RequestContext,
                 instances: Mapping[str, objects.Instance],
                 dead: Mapping[str, str]) -> None:
    deadline = time.monotonic() + _PATIENCE
    for node, instance in instances.items():
        # A delete, say, wants to know what the node's row is.
        while (node not in upstream.tracked_nodes(source)
               and time.monotonic() < deadline):
            time.sleep(_POLL)
        try:
            _recover(source, context, instance, dead[node], deadline)
        except Exception:
            LOG.exception('Instance %(instance)s, which was taken over from '
                          '%(dead)s, cannot be brought to order.', {
                              'instance': instance.uuid, 'dead': dead[node]})


def _recover(source: upstream.NovaIronicDriver,
             context: nova_context.RequestContext, instance: objects.Instance,
             dead: str, deadline: float) -> None:
    if instance.vm_state == vm_states.BUILDING:
        builds.blame(context, instance, dead)
    if instance.task_state in (task_states.RESCUING, task_states.UNRESCUING):
        _end_rescue(source, instance, deadline)
    # Nova's own, for all else that may have been under way.
    upstream.recover(source, context, instance)


def _end_rescue(source: upstream.NovaIronicDriver, instance: objects.Instance,
                deadline: float) -> None:
    """See what has become of a rescue, which Nova's own recovery leaves."""
    while (state := upstream.provision_state(source, instance)) in _RESCUING:
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL)
    was = instance.task_state
    instance.vm_state = _AFTER_RESCUE.get(state, vm_states.ERROR)
    instance.task_state = None
    instance.save(expected_task_state=[was])
    LOG.info('Instance %(instance)s was %(task)s when its service died: it is '
             '%(state)s now.', {'instance': instance.uuid, 'task': was,
                                'state': instance.vm_state})
