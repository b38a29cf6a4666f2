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
import contextlib
import queue
import threading
import time

from nova.compute import task_states
from nova.compute import vm_states
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging

from nova_ironic_ring import builds
from nova_ironic_ring import upstream

LOG = logging.getLogger(__name__)

# Seconds that the resource tracker may take to record a node, and Ironic to
# finish what it was told to do.
_PATIENCE = 1800
_POLL = 0.5
# How often to try, and how many at a time.
_ATTEMPTS = 3
_THREADS = 8

_RESCUING = frozenset({'rescuing', 'rescue wait', 'unrescuing'})


def start(source: upstream.NovaIronicDriver,
          context: nova_context.RequestContext, me: str,
          instances: Mapping[str, objects.Instance],
          dead: Mapping[str, str]) -> None:
    """Bring instances that were taken over to order, as a restart would.

    In threads of their own: it may take minutes.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param me: the name of this service
    :param instances: the instances, by node
    :param dead: the names of the services that had them, by node
    """
    waiting = queue.SimpleQueue[tuple[str, objects.Instance]]()
    for each in instances.items():
        waiting.put(each)

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                node, instance = waiting.get_nowait()
                _try(source, context, me, node, instance, dead[node])
    for _ in range(min(_THREADS, len(instances))):
        threading.Thread(target=work, daemon=True).start()


def _try(source: upstream.NovaIronicDriver,
         context: nova_context.RequestContext, me: str, node: str,
         instance: objects.Instance, dead: str) -> None:
    """Bring an instance to order, for all that may stand in the way."""
    deadline = time.monotonic() + _PATIENCE
    # A delete, say, wants to know what the node's row is.
    while (node not in upstream.tracked_nodes(source)
           and time.monotonic() < deadline):
        time.sleep(_POLL)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            instance.refresh()
            if instance.host == me:
                _recover(source, context, instance, dead, deadline)
            return
        except exception.InstanceNotFound:
            return
        except Exception:
            LOG.exception('Instance %(instance)s, which was taken over from '
                          '%(dead)s, cannot be brought to order (attempt '
                          '%(attempt)d of %(all)d).', {
                              'instance': instance.uuid, 'dead': dead,
                              'attempt': attempt, 'all': _ATTEMPTS})
        time.sleep(attempt * _POLL)


def _recover(source: upstream.NovaIronicDriver,
             context: nova_context.RequestContext, instance: objects.Instance,
             dead: str, deadline: float) -> None:
    if instance.vm_state == vm_states.BUILDING:
        if instance.task_state == task_states.DELETING:
            # Nova's own would see the build, and forget the delete.
            instance.vm_state = vm_states.ERROR
        else:
            builds.blame(context, instance, dead)
    if instance.task_state in (task_states.RESCUING, task_states.UNRESCUING):
        _end_rescue(source, instance, deadline)
    was = instance.task_state
    # Nova's own, for all else that may have been under way.
    upstream.recover(source, context, instance)
    if was in (None, task_states.DELETING):
        return
    instance.refresh()
    if instance.task_state == was:
        # Nova would find it in the service's queue after a restart.
        _end_task(instance, instance.vm_state)


def _end_rescue(source: upstream.NovaIronicDriver, instance: objects.Instance,
                deadline: float) -> None:
    """See what has become of a rescue, which Nova's own recovery leaves."""
    while (state := upstream.provision_state(source, instance)) in _RESCUING:
        if time.monotonic() > deadline:
            raise TimeoutError(f'Ironic is {state} still')
        time.sleep(_POLL)
    if state == 'rescue':
        _end_task(instance, vm_states.RESCUED)
    elif state != 'active':
        _end_task(instance, vm_states.ERROR)
    else:
        _end_task(instance, vm_states.ACTIVE if (
            instance.task_state == task_states.UNRESCUING)
            else instance.vm_state)


def _end_task(instance: objects.Instance, vm_state: str) -> None:
    """Say what has become of a task, if it is that task still."""
    was = instance.task_state
    instance.vm_state = vm_state
    instance.task_state = None
    instance.save(expected_task_state=[was])
    LOG.info('Instance %(instance)s was %(task)s when its service died: it is '
             '%(state)s now.', {'instance': instance.uuid, 'task': was,
                                'state': vm_state})
