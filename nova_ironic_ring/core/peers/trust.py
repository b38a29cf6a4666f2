# SPDX-License-Identifier: Apache-2.0

"""Whether this service can trust what it sees of the others.

When nova-conductor, RabbitMQ, the database or this service stands still, the
heartbeats of all services grow old together. Then they start again one after
the other, and a service with a fresh heartbeat would regard the others as
dead. So a service watches its own heartbeat: it goes through the same
conductor, queue and database as those of the others, and if it is late, theirs
may be late too. A look at the others is valid for as long as a heartbeat may
be missing.
"""

import enum

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings


class Trust(enum.Enum):
    """How far this service may trust what it sees of the others."""

    #: It has only started, and its peers do not see it as alive yet.
    STARTING = 'starting'
    #: Services that look absent may be alive.
    BLACKOUT = 'blackout'
    FULL = 'full'


def lease(current: settings.Settings) -> float:
    """Return for how long a look at the others is valid.

    As long as two heartbeats may be apart: it is halfway between a heartbeat
    in time and one that is too late.

    :param current: this service's settings
    :returns: seconds
    """
    return (current.report_interval + current.down_time) / 2


def is_late(own: model.Service | None, gap: float, watch: membership.Watch,
            current: settings.Settings) -> bool:
    """Return whether this service's heartbeat is late, or was lately.

    :param own: this service's record; None if there is none
    :param gap: the longest time between two of its heartbeats since the last
        look, or since the last heartbeat, in seconds
    :param watch: how long the heartbeats have stood still, this one's too
    :param current: this service's settings
    """
    if own is not None and own.alive is False:
        return True
    silence = (watch.silence(current.me)
               if own is not None and own.alive is None else 0.0)
    return max(silence, gap) > lease(current)


def look(has_started: bool, late: bool) -> Trust:
    """Return how far to trust, by this service's own heartbeat.

    :param has_started: whether a heartbeat of this process has been seen; not
        without a record, because it is nobody's peer then
    :param late: whether the heartbeat is late now
    """
    if not has_started:
        return Trust.STARTING
    return Trust.BLACKOUT if late else Trust.FULL
