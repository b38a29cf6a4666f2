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

"""When the picture that the database gives is not to be trusted.

When nova-conductor, RabbitMQ or the database stands still, or this service
does, the heartbeats of all services grow old together. As they start again in
turn, a service whose own is fresh would take the others for dead.
"""

import datetime

from nova_ironic_ring import membership


class Blackout:
    """Watches this service's own heartbeat.

    It is in this very process, and goes the way that those of the others go:
    where it is late, theirs may be as well.
    """

    def __init__(self) -> None:
        self._first: datetime.datetime | None = None
        self._bad: datetime.datetime | None = None
        #: Whether this service's heartbeat has been seen since it started.
        self.started = False

    def fail(self, now: datetime.datetime) -> None:
        """Note that the database could not be asked.

        :param now: the present time, with time zone
        """
        self._bad = now

    def trusts(self, own: membership.Service | None, now: datetime.datetime,
               down_time: float, report_interval: float,
               gap: float) -> bool:
        """Say whether services that look dead are to be believed dead.

        :param own: the record of this service; None if there is none
        :param now: the present time, with time zone
        :param down_time: seconds without a heartbeat after which a service is
            down; also for how long all must be well until there is trust again
        :param report_interval: seconds between two heartbeats
        :param gap: the longest time without a heartbeat since the last time,
            in seconds
        """
        if own is None or not self._has_started(own):
            return False
        # Half way from a heartbeat that is in time to one that is too late.
        patience = (report_interval + down_time) / 2
        if gap > patience or self._is_old(own, now, patience):
            self._bad = now
        return (self._bad is None
                or (now - self._bad).total_seconds() >= down_time)

    def _has_started(self, own: membership.Service) -> bool:
        """Say whether a heartbeat has come that is not of an earlier life."""
        if self._first is None:
            self._first = own.last_seen
        if not self.started:
            self.started = (own.last_seen != self._first
                            if own.alive is None else own.alive)
        return self.started

    def _is_old(self, own: membership.Service, now: datetime.datetime,
                patience: float) -> bool:
        """Say whether the heartbeat that the database has is not in time."""
        if own.alive is not None:
            return not own.alive
        return abs((now - own.last_seen).total_seconds()) > patience
