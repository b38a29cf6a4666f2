# SPDX-License-Identifier: Apache-2.0

"""Records takeovers, failovers and moves as instance actions in Nova.

As all actions these are for the owner of the server as well, so the name of an
action says no more than what it is. The names of services are in the fields of
its event that Nova's policy has for administrators: ``host`` and
``details``.
"""

import dataclasses
import datetime
import json

from nova import context as nova_context
from nova.objects import instance_action
from oslo_utils import timeutils

from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model

#: The event by which a command asks for something that a service then does.
ASKED = 'ironic_ring_asked'

# So long after it was asked for, a failover is the one that was asked for.
_PATIENCE = datetime.timedelta(hours=1)
# A service may be faster than the command that records the request.
_JUST_NOW = datetime.timedelta(minutes=1)
# One that was asked for is among the last actions of the instance.
_LATEST = 10


@dataclasses.dataclass(frozen=True)
class _Event:
    """An event of an action.

    :ivar name: its name
    :ivar at: when it has happened, in UTC
    """

    name: str
    at: datetime.datetime


def details(entry: audit.Entry) -> str:
    """Return the details of an event, as JSON.

    :param entry: what has happened
    """
    said = entry.values()
    return json.dumps({
        name: said[name] for name in ('from', 'to', 'node', 'reason', 'by')})


def record(context: nova_context.RequestContext, entry: audit.Entry,
           at: datetime.datetime, is_again: bool = False) -> None:
    """Record that an instance is with another service.

    Where somebody has asked for a failover, it is that action which ends.

    :param context: with the rights of an administrator, and a request of its
        own
    :param entry: what has happened, with one of ``audit.ACTIONS``
    :param at: when it has happened, in UTC: it may be written minutes later
    :param is_again: whether this was tried before with the same context: some
        of it may have been written
    """
    event = _Event(audit.ACTIONS[entry.code], at)
    action = _asked(context, entry)
    if action is not None:
        context.request_id = action.request_id
        _add_event(context, action, event, entry)
        action.finish()
        return
    if is_again:
        action = instance_action.InstanceAction.get_by_request_id(
            context, str(entry.instance), context.request_id)
    if action is None:
        # One call for what Nova itself does in two: there may be hundreds.
        action = _begin(context, entry, event, is_over=True)
    elif any(each.event == event.name for each in (
            instance_action.InstanceActionEventList.get_by_action(
                context, action.id))):
        return
    _add_event(context, action, event, entry)


def ask(context: nova_context.RequestContext, entry: audit.Entry) -> None:
    """Record the request for the failover of an instance.

    Where a service has taken the instance over just now, that is what was
    asked for.

    :param context: as above
    :param entry: who has asked, of which instance
    """
    now = timeutils.utcnow()
    name = audit.ACTIONS[audit.Code.INSTANCE_FAILED_OVER]
    action = _latest(context, entry, name, _JUST_NOW)
    if action is None:
        action = _begin(context, entry, _Event(name, now))
    else:
        context.request_id = action.request_id
    _add_event(context, action, _Event(ASKED, now), entry)


def failed_over(context: nova_context.RequestContext, instance: str, host: str,
                since: datetime.datetime | None) -> str | None:
    """Return from which dead service a service has taken an instance over.

    :param context: with the rights of an administrator
    :param instance: the UUID of the instance
    :param host: the name of the service that has it
    :param since: what happened before is ignored, with time zone; None to
        ignore nothing
    :returns: the name of the service that had it last; None if nobody has
        recorded that since then
    """
    name = audit.ACTIONS[audit.Code.INSTANCE_FAILED_OVER]
    for action in instance_action.InstanceActionList.get_by_instance_uuid(
            context, instance):
        if action.action != name:
            continue
        for event in instance_action.InstanceActionEventList.get_by_action(
                context, action.id):
            if event.event == name and event.details and (
                    model.canonical(event.host or '') == model.canonical(host)
                    and (since is None or event.finish_time >= since)):
                said: str | None = json.loads(event.details).get('from')
                return said
    return None


def _begin(context: nova_context.RequestContext, entry: audit.Entry,
           event: _Event, is_over: bool = False
           ) -> instance_action.InstanceAction:
    """Make an action that begins with an event, and may end with it."""
    action = instance_action.InstanceAction(
        context, action=event.name, instance_uuid=str(entry.instance),
        request_id=context.request_id, user_id=context.user_id,
        project_id=context.project_id, start_time=event.at,
        updated_at=event.at, finish_time=event.at if is_over else None)
    action.create()
    return action


def _add_event(context: nova_context.RequestContext,
               action: instance_action.InstanceAction, event: _Event,
               entry: audit.Entry) -> None:
    # The other ways to make one write details of failures alone.
    instance_action.InstanceActionEvent(
        context, event=event.name, start_time=event.at, finish_time=event.at,
        result='Success', host=entry.host, details=details(entry)).create(
            action.instance_uuid, action.request_id)


def _asked(context: nova_context.RequestContext, entry: audit.Entry
           ) -> instance_action.InstanceAction | None:
    """Return the action by which somebody has asked for this."""
    # A service that is silent is dead at nobody's word.
    if entry.code is not audit.Code.INSTANCE_FAILED_OVER or (
            entry.reason == membership.State.ABSENT.name):
        return None
    action = _latest(context, entry, audit.ACTIONS[entry.code], _PATIENCE)
    return action if action is not None and (
        action.finish_time is None) else None


def _latest(context: nova_context.RequestContext, entry: audit.Entry,
            name: str, age: datetime.timedelta
            ) -> instance_action.InstanceAction | None:
    """Return the last action of a name, if it has begun not long ago."""
    for action in instance_action.InstanceActionList.get_by_instance_uuid(
            context, str(entry.instance), limit=_LATEST):
        if action.action == name:
            return action if timeutils.utcnow() - timeutils.normalize_time(
                action.start_time) < age else None
    return None
