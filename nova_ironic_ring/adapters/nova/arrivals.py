# SPDX-License-Identifier: Apache-2.0

"""What Nova's database has of where a build has come to.

A build waits for its turn inside nova-compute, and Nova has no service for it
until that one claims a node. Nova notes when it begins, and not that it has
come: this is noted here, as an event of the action that Nova has for it.
"""

from collections.abc import Sequence

from nova.compute import instance_actions
from nova.compute import utils as compute_utils
from nova import context as nova_context
from nova.objects import instance_action
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ironic_ring.core.values import model

LOG = logging.getLogger(__name__)

# As Nova would name it.
_COMES = 'compute_build_and_run_instance'
# As Nova names the building of it.
_BUILDS = 'compute__do_build_and_run_instance'
# As Nova names the beginning, and of an unshelving also that it has come.
_EVENTS = {
    instance_actions.CREATE: (_COMES, _BUILDS),
    instance_actions.UNSHELVE: ('compute_unshelve_instance',)}


def note(context: nova_context.RequestContext, instance: str, host: str
         ) -> None:
    """Note that a build has come to a service.

    What fails does not keep it from being built.

    :param context: that of the request
    :param instance: the UUID of the instance
    :param host: the name of the service
    """
    try:
        with compute_utils.EventReporter(context, _COMES, host, instance):
            pass
    except Exception as error:
        LOG.warning('Cannot note that the build of instance %(instance)s has '
                    'come to this service: %(error)s',
                    {'instance': instance, 'error': error})


def last(context: nova_context.RequestContext, instance: str
         ) -> model.Arrival | None:
    """Read the service that a build, or an unshelving, has come to last.

    :param context: with the rights of an administrator
    :param instance: the UUID of the instance
    :returns: None if it has come to none yet; or to one with Nova's own
        driver, and waits for its turn there
    """
    for action in instance_action.InstanceActionList.get_by_instance_uuid(
            context, instance):
        if action.action in _EVENTS:
            # The latest comes first, also of a build that is tried once more.
            found = [event for event in
                     instance_action.InstanceActionEventList.get_by_action(
                         context, action.id)
                     if event.event in _EVENTS[action.action] and event.host]
            return model.Arrival(str(found[0].host), _given_up(found)) if (
                found) else None
    return None


def _given_up(events: Sequence[instance_action.InstanceActionEvent]
              ) -> float | None:
    """Say of what has no service when the last one has given it to the next.

    Nova writes the end of an event into any event of that name: that of a
    second service into the event of the first one. Where Nova could not have a
    build done elsewhere, the event has failed.

    :param events: the latest first
    :returns: how many seconds ago; None if the service has not
    """
    last = events[0]
    end = max((event.finish_time for event in events if event.event == _BUILDS
               and event.result == 'Success'), default=None)
    # Times are in whole seconds: at the same one, an earlier service may have
    # given it up.
    if last.event != _BUILDS or end is None or (
            last.result is None and end <= last.start_time):
        return None
    return float((timeutils.utcnow(with_timezone=True) - end).total_seconds())
