# SPDX-License-Identifier: Apache-2.0

"""What was last asked for an instance, as Nova's API has recorded it."""

import datetime

from nova.compute import instance_actions
from nova.compute import task_states
from nova import context as nova_context
from nova.objects import instance_action

from nova_ironic_ring.core.deciding import audit

# Masakari locks a server while it evacuates it; and it may have been taken
# over since.
_BESIDE = frozenset({instance_actions.LOCK, instance_actions.UNLOCK,
                     *audit.ACTIONS.values()})
# Among so many is the last one that is none of those.
_LATEST = 20
# What Nova also records if Ironic has switched a machine.
_REPORTED = frozenset({instance_actions.START, instance_actions.STOP})
#: What was asked for, by the task that it gives an instance.
_ASKED = dict.fromkeys(
    (*task_states.soft_reboot_states, *task_states.hard_reboot_states),
    instance_actions.REBOOT) | {
        task_states.POWERING_OFF: instance_actions.STOP,
        task_states.POWERING_ON: instance_actions.START,
        task_states.SOFT_DELETING: instance_actions.DELETE,
        task_states.RESTORING: instance_actions.RESTORE,
        task_states.UNSHELVING: instance_actions.UNSHELVE}


def latest(context: nova_context.RequestContext, instance: str
           ) -> list[instance_action.InstanceAction]:
    """Return the latest requests for an instance, the last one first.

    Nova also records as a request, to start or to stop, that Ironic has
    switched a machine on or off.

    :param context: with the rights of an administrator
    :param instance: its UUID
    """
    return [each for each
            in instance_action.InstanceActionList.get_by_instance_uuid(
                context, instance, limit=_LATEST)
            if each.action not in _BESIDE]


def last(context: nova_context.RequestContext, instance: str, task: str
         ) -> instance_action.InstanceAction | None:
    """Return the request that has given an instance its task.

    What Ironic has done to the machine may have been recorded after that.

    :param context: as above
    :param instance: its UUID
    :param task: the task
    :returns: the last request, if none fits the task; None if Nova knows none
    """
    found = latest(context, instance)
    fitting = [each for each in found if each.action == _ASKED.get(task)]
    return next(iter(fitting or found), None)


def asked_at(context: nova_context.RequestContext, instance: str, task: str
             ) -> datetime.datetime | None:
    """Return when something was asked for that is done with an instance.

    While Ironic deploys a node or rescues it, it reports each time that it has
    switched the machine.

    :param context: as above
    :param instance: its UUID
    :param task: the task; empty for none
    :returns: the time with time zone; None if Nova does not know it
    """
    wanted = _ASKED.get(task)
    return next((
        each.start_time for each in latest(context, instance)
        if each.action == wanted or (
            wanted is None and each.action not in _REPORTED)), None)


def resume(context: nova_context.RequestContext, instance: str, task: str
           ) -> None:
    """Let Nova record what is done with a context as part of a request.

    Nova looks for the request at the beginning and at the end of what it does.
    Without the ID of one, Nova takes the last action of the instance each
    time. If there is a newer one at the end, Nova fails, and resets the task
    that the instance has then.

    :param context: as above; gets the ID of the request
    :param instance: its UUID
    :param task: the task that the request has given the instance
    """
    request = last(context, instance, task)
    if request is not None:
        context.request_id = request.request_id
