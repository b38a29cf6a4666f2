# SPDX-License-Identifier: Apache-2.0

"""What was last asked for an instance, as Nova's API has recorded it."""

from nova.compute import instance_actions
from nova import context as nova_context
from nova.objects import instance_action

from nova_ironic_ring.core.deciding import audit

# Masakari locks a server while it evacuates it; and it may have been taken
# over since.
_BESIDE = frozenset({instance_actions.LOCK, instance_actions.UNLOCK,
                     *audit.ACTIONS.values()})
# Among so many is the last one that is none of those.
_LATEST = 20


def last(context: nova_context.RequestContext, instance: str
         ) -> instance_action.InstanceAction | None:
    """Return the last request for an instance; None if Nova knows none.

    :param context: with the rights of an administrator
    :param instance: its UUID
    """
    found = instance_action.InstanceActionList.get_by_instance_uuid(
        context, instance, limit=_LATEST)
    return next((each for each in found if each.action not in _BESIDE), None)


def resume(context: nova_context.RequestContext, instance: str) -> None:
    """Let what is done with a context be part of the last request.

    Nova looks for the request at the beginning and at the end of what it does.
    Without the ID of one, Nova takes the last request each time. So if a user
    asks for the next thing meanwhile, Nova's end of the first fails, and Nova
    then ends the task of the second.

    :param context: as above; gets the ID of that request
    :param instance: its UUID
    """
    request = last(context, instance)
    if request is not None:
        context.request_id = request.request_id
