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

"""Who is alive, absent or dead, and who is a member of this service's ring.

Service records, the settings and a watch over the heartbeats go in; one state
a service comes out. Everything else asks these states, and never looks at a
heartbeat again.

A service is *late* when its last heartbeat is older than ``service_down_time``
by the wall clock, which is what Nova's API shows. A service is *absent* when
this very process has watched its heartbeat stand still for that long. A
service is *dead* when an operator has forced it down or deleted it, or when it
has been absent for ``failover_after``.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import enum

from nova_ironic_ring.core import model
from nova_ironic_ring.core import settings

# A peer that has not been heard since this service started, or since an
# outage, may still be reconnecting: it gets so many times the down time.
_PATIENCE_AFTER_OUTAGE = 2


class State(enum.Enum):
    """What a service is to this service's ring."""

    MEMBER = 'member'
    #: An operator has disabled it; it is alive and hands over what it has.
    DISABLED = 'disabled'
    #: Its heartbeat has stood still for the down time.
    ABSENT = 'absent'
    #: An operator has said that it is down.
    FORCED_DOWN = 'forced down'
    #: Not among the peers that are configured; whether it lives is not asked.
    NOT_A_PEER = 'not in the peer list'
    #: Nova has no record of it.
    GONE = 'gone'

    @property
    def gives(self) -> bool:
        """Whether the service hands over its nodes itself: it is alive."""
        return self in (State.MEMBER, State.DISABLED)

    @property
    def is_lost(self) -> bool:
        """Whether the service is absent, forced down or gone."""
        return self in (State.ABSENT, State.FORCED_DOWN, State.GONE)


def is_late(service: model.Service, now: datetime.datetime,
            down_time: float) -> bool:
    """Say whether a service is late, as Nova's API sees it.

    The rule is that of Nova's database servicegroup driver: the distance
    between the last heartbeat and now, in either direction.

    :param service: the record of the service
    :param now: the present time, with time zone
    :param down_time: seconds without a heartbeat after which it is late
    """
    if service.alive is not None:
        return not service.alive
    return abs((now - service.last_seen).total_seconds()) > down_time


@dataclasses.dataclass(frozen=True)
class _Heard:
    """A heartbeat that is being watched.

    :ivar last_seen: the time that the heartbeat's record shows
    :ivar since: when this process saw that for the first time, in seconds
    :ivar has_moved: whether the heartbeat was seen to move since this process
        started, or since the last outage
    """

    last_seen: datetime.datetime
    since: float
    has_moved: bool = False


@dataclasses.dataclass(frozen=True)
class Watch:
    """How long this process has seen each heartbeat stand still.

    All times are those of this process's monotonic clock, so that neither a
    step of a wall clock nor the distance between two of them matters.

    :ivar at: when it was last looked, in seconds
    """

    at: float = 0.0
    _heard: Mapping[str, _Heard] = dataclasses.field(default_factory=dict)

    def look(self, services: Iterable[model.Service], at: float) -> 'Watch':
        """Return the watch after one more look.

        :param services: the records of services; those that are not among
            them stay as they were
        :param at: the present time, in seconds
        """
        heard = dict(self._heard)
        for service in services:
            before = heard.get(service.name)
            if before is None:
                heard[service.name] = _Heard(service.last_seen, at)
            elif before.last_seen != service.last_seen or service.alive:
                heard[service.name] = _Heard(service.last_seen, at, True)
        return Watch(at, heard)

    def restarted(self, at: float) -> 'Watch':
        """Return the watch as if each heartbeat was first seen now.

        :param at: the present time, in seconds
        """
        return Watch(at, {host: _Heard(heard.last_seen, at)
                          for host, heard in self._heard.items()})

    def silence(self, host: str) -> float:
        """Return for how long a heartbeat has stood still.

        :param host: canonical name of the service
        :returns: seconds
        """
        heard = self._heard.get(host)
        return 0.0 if heard is None else self.at - heard.since

    def is_absent(self, service: model.Service, down_time: float) -> bool:
        """Say whether a service is absent.

        :param service: its record
        :param down_time: seconds of silence after which a service is absent
        """
        if service.alive:
            return False
        heard = self._heard.get(service.name)
        patience = down_time * (
            1 if heard is None or heard.has_moved else _PATIENCE_AFTER_OUTAGE)
        return self.silence(service.name) >= patience

    @classmethod
    def of_one_look(cls, services: Iterable[model.Service],
                    now: datetime.datetime, down_time: float) -> 'Watch':
        """Return the watch of an observer that looks once.

        The observer takes a late service to be absent since its last
        heartbeat.

        :param services: the records of the services
        :param now: the present time, with time zone
        :param down_time: seconds without a heartbeat after which a service is
            late
        """
        return cls(0.0, {
            service.name: _Heard(
                service.last_seen,
                -max(down_time, abs((now - service.last_seen).total_seconds()))
                if is_late(service, now, down_time) else 0.0, True)
            for service in services})


@dataclasses.dataclass(frozen=True)
class Membership:
    """What the services are to this one's ring at one time.

    :ivar members: canonical names of the members
    :ivar states: what each known service is, by canonical name
    :ivar silences: for how long the heartbeat of each has stood still, in
        seconds
    """

    members: frozenset[str] = frozenset()
    states: Mapping[str, State] = dataclasses.field(default_factory=dict)
    silences: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def state(self, host: str) -> State:
        """Say what a service is.

        :param host: its name, in any case
        """
        return self.states.get(model.canonical(host), State.GONE)

    def is_lost(self, host: str) -> bool:
        """Say whether a service is absent, forced down or not in Nova at all.

        :param host: its name, in any case
        """
        return self.state(host).is_lost

    def is_dead(self, host: str, failover_after: float) -> bool:
        """Say whether a service is dead, so that its instances may be taken.

        :param host: its name, in any case
        :param failover_after: seconds of silence after which an absent
            service is dead; 0 if only an operator's word makes it so
        """
        state = self.state(host)
        if state in (State.FORCED_DOWN, State.GONE):
            return True
        return (state is State.ABSENT and failover_after > 0
                and self.silences[model.canonical(host)] >= failover_after)

    def joined(self, more: 'Membership') -> 'Membership':
        """Return this membership, which knows more services as well.

        :param more: what those services are; none becomes a member by it
        """
        return Membership(self.members, {**more.states, **self.states},
                          {**more.silences, **self.silences})


def state(service: model.Service, current: settings.Settings,
          watch: Watch) -> State:
    """Say what a service is to this one's ring.

    :param service: its record
    :param current: this service's settings
    :param watch: how long the heartbeats have stood still
    """
    if current.peers is not None and service.name not in current.peers:
        return State.NOT_A_PEER
    if service.forced_down:
        return State.FORCED_DOWN
    # This one is running this very code, whatever its heartbeat says.
    if service.name != current.me and watch.is_absent(
            service, current.down_time):
        return State.ABSENT
    return State.DISABLED if service.disabled else State.MEMBER


def assess(services: Iterable[model.Service], current: settings.Settings,
           watch: Watch) -> Membership:
    """Say what services are to this one's ring.

    This service is a member also where it has no record: when it starts for
    the first time.

    :param services: the records of the services that run an ironic driver,
        and this one's
    :param current: this service's settings
    :param watch: how long the heartbeats have stood still
    """
    states = {service.name: state(service, current, watch)
              for service in services}
    states.setdefault(current.me, State.MEMBER)
    return Membership(
        frozenset(host for host, each in states.items()
                  if each is State.MEMBER),
        states, {host: watch.silence(host) for host in states})
