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

"""Finishes what dead services were doing with their instances."""

from collections.abc import Iterable
import contextlib
import queue
import threading
import time

from nova.compute import task_states
from nova.compute import vm_states
import nova.conf
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging

from nova_ironic_ring.adapters import marks
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core import takeover

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

# Seconds that the resource tracker may take to record a node, and Ironic to
# finish what it was told to do.
_PATIENCE = 1800
_POLL = 0.5
# How often to try, and how many at a time.
_ATTEMPTS = 3
_THREADS = 8

_RESCUING = frozenset({'rescuing', 'rescue wait', 'unrescuing'})


def start(source: upstream.NovaIronicDriver,
          taken: Iterable[takeover.Takeover]) -> None:
    """Bring instances that were taken over to order, as a restart would.

    In threads of their own: it may take minutes.

    :param source: the driver that the manager has
    :param taken: what was taken over; with the consent of a live service,
        nothing was being done with it, and nothing is done here
    """
    waiting = queue.SimpleQueue[takeover.Takeover]()
    for each in taken:
        if each.is_dead:
            waiting.put(each)

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                _try(source, waiting.get_nowait())
    for _ in range(min(_THREADS, waiting.qsize())):
        threading.Thread(target=work, daemon=True).start()


def _try(source: upstream.NovaIronicDriver, taken: takeover.Takeover) -> None:
    """Bring an instance to order, for all that may stand in the way."""
    deadline = time.monotonic() + _PATIENCE
    # A delete, say, wants to know what the node's row is.
    while (taken.node not in upstream.tracked_nodes(source)
           and time.monotonic() < deadline):
        time.sleep(_POLL)
    context = nova_context.get_admin_context()
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            instance = objects.Instance.get_by_uuid(
                context, taken.instance,
                expected_attrs=list(upstream.RECOVERY_ATTRIBUTES))
            if instance.host == CONF.host:
                _recover(source, context, instance, taken, deadline)
            return
        except exception.InstanceNotFound:
            return
        except Exception:
            LOG.exception('Instance %(instance)s, which was taken over from '
                          '%(host)s, cannot be brought to order (attempt '
                          '%(attempt)d of %(all)d).', {
                              'instance': taken.instance, 'host': taken.host,
                              'attempt': attempt, 'all': _ATTEMPTS})
        time.sleep(attempt * _POLL)


def _recover(source: upstream.NovaIronicDriver,
             context: nova_context.RequestContext, instance: objects.Instance,
             taken: takeover.Takeover, deadline: float) -> None:
    if instance.vm_state == vm_states.BUILDING:
        if instance.task_state == task_states.DELETING:
            # Nova's own would see the build, and forget the delete.
            instance.vm_state = vm_states.ERROR
        else:
            marks.give_up(context, instance, taken.host)
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
