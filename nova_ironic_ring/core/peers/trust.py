# SPDX-License-Identifier: Apache-2.0

"""Whether this service can trust what it sees of the others.

When nova-conductor, RabbitMQ, the database or this service stands still, the
heartbeats of all services grow old together. Then they start again one after
the other, and a service with a fresh heartbeat would regard the others as
dead. So a service watches its own heartbeat: it goes through the same
conductor, queue and database as those of the others, and if it is late, theirs
may be late too.
"""

import dataclasses
import datetime
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


@dataclasses.dataclass(frozen=True)
class Heartbeat:
    """This service's own heartbeat.

    :ivar record: this service's record; None if there is none
    :ivar gap: the longest time between two heartbeats since the last look, in
        seconds
    """

    record: model.Service | None
    gap: float = 0.0


@dataclasses.dataclass(frozen=True)
class Confidence:
    """What is remembered of this service's own heartbeat.

    :ivar trust: how far to trust what is seen
    :ivar is_started: whether a heartbeat of this process has been seen
    :ivar first: the heartbeat that an earlier process of this service left
    :ivar bad_at: when something was last not in time, in seconds; None if
        never
    """

    trust: Trust = Trust.STARTING
    is_started: bool = False
    first: datetime.datetime | None = None
    bad_at: float | None = None

    def failed(self, at: float) -> 'Confidence':
        """Return the confidence after Nova did not answer.

        :param at: the present time, in seconds
        """
        return dataclasses.replace(self, bad_at=at)


def longest_gap(current: settings.Settings) -> float:
    """Return the longest normal time between two heartbeats.

    It is halfway between a heartbeat in time and one that is too late.

    :param current: this service's settings
    :returns: seconds
    """
    return (current.report_interval + current.down_time) / 2


def look(before: Confidence, own: Heartbeat, watch: membership.Watch,
         current: settings.Settings) -> Confidence:
    """Return how far to trust, by this service's own heartbeat.

    :param before: what is remembered
    :param own: this service's heartbeat
    :param watch: how long the heartbeats have stood still, this one's too
    :param current: this service's settings
    """
    if own.record is None:
        # Without a record it is nobody's peer, as at its start.
        return dataclasses.replace(before, trust=Trust.STARTING)
    first = before.first or own.record.last_seen
    is_started = before.is_started or (
        own.record.last_seen != first if own.record.alive is None
        else own.record.alive)
    if not is_started:
        return Confidence(Trust.STARTING, False, first, before.bad_at)
    patience = longest_gap(current)
    stands_still = (watch.silence(current.me) > patience
                    if own.record.alive is None else not own.record.alive)
    bad_at = (watch.at if stands_still or own.gap > patience
              else before.bad_at)
    is_well = bad_at is None or watch.at - bad_at >= current.down_time
    return Confidence(Trust.FULL if is_well else Trust.BLACKOUT, True, first,
                      bad_at)
