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
    :ivar gap: the longest time between two heartbeats since the last look, or
        since the last heartbeat, in seconds
    """

    record: model.Service | None
    gap: float = 0.0

    def is_late(self, watch: membership.Watch, current: settings.Settings
                ) -> bool:
        """Return whether it is late, or was so since the last look.

        :param watch: how long the heartbeats have stood still, this one's too
        :param current: this service's settings
        """
        if self.record is not None and self.record.alive is False:
            return True
        silence = (watch.silence(current.me) if self.record is not None
                   and self.record.alive is None else 0.0)
        return max(silence, self.gap) > lease(current)


@dataclasses.dataclass(frozen=True)
class Start:
    """Whether this process has been seen by its peers.

    :ivar is_over: whether a heartbeat of this process has been seen
    :ivar first: the heartbeat that an earlier process of this service left
    """

    is_over: bool = False
    first: datetime.datetime | None = None

    def look(self, record: model.Service | None) -> 'Start':
        """Return the same after one more look.

        :param record: this service's record; None if there is none
        """
        if record is None or self.is_over:
            return self
        first = self.first or record.last_seen
        return Start(record.last_seen != first if record.alive is None
                     else record.alive, first)


def lease(current: settings.Settings) -> float:
    """Return for how long a look at the others is valid.

    As long as two heartbeats may be apart: it is halfway between a heartbeat
    in time and one that is too late.

    :param current: this service's settings
    :returns: seconds
    """
    return (current.report_interval + current.down_time) / 2


def look(start: Start, own: Heartbeat, is_late: bool) -> Trust:
    """Return how far to trust, by this service's own heartbeat.

    :param start: whether this process has been seen by its peers
    :param own: this service's heartbeat
    :param is_late: whether it is late now
    """
    if own.record is None or not start.is_over:
        # Without a record it is nobody's peer, as at its start.
        return Trust.STARTING
    return Trust.BLACKOUT if is_late else Trust.FULL
