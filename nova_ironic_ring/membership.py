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

"""Which services belong to this service's ring, and which do not.

Service records, a configuration and a time go in, one word a service comes
out. Everything above asks that word and never the time stamps again.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import enum


def canonical(host: str) -> str:
    """Return a host name as all comparisons here use it.

    :param host: the name of a service, as configured or recorded
    :returns: the name in lower case and without surrounding blanks
    """
    return host.strip().lower()


class State(enum.Enum):
    """What a service is to this service's ring."""

    MEMBER = 'member'
    #: An operator has disabled it; it is alive and hands over what it has.
    DISABLED = 'disabled'
    #: No heartbeat within the down time.
    DOWN = 'down'
    #: An operator has said that it is down.
    FORCED_DOWN = 'forced down'
    #: Not among the peers that are configured; whether it lives is not asked.
    STRANGER = 'stranger'
    #: Nova has no record of it.
    GONE = 'gone'

    @property
    def gives(self) -> bool:
        """Whether it lives to hand over its nodes itself."""
        return self in (State.MEMBER, State.DISABLED)

    @property
    def is_silent(self) -> bool:
        """Whether Nova has it, and it does not live."""
        return self in (State.DOWN, State.FORCED_DOWN)


@dataclasses.dataclass(frozen=True)
class Service:
    """What Nova's database says of a nova-compute service.

    :ivar host: its name
    :ivar last_seen: time of its last heartbeat, with time zone
    :ivar forced_down: whether an operator has forced it down
    :ivar disabled: whether an operator has disabled it
    :ivar alive: whether Nova says that it is, where it does not judge by the
        heartbeat in the database; None where it does
    """

    host: str
    last_seen: datetime.datetime
    forced_down: bool = False
    disabled: bool = False
    alive: bool | None = None


def peers(me: str, conductor_group: str | None, shard: str | None,
          peer_list: Iterable[str]) -> frozenset[str] | None:
    """Say which hosts alone may be members, from ``[ironic]`` in nova.conf.

    :param me: the name of this service
    :param conductor_group: the group that this service is limited to; the
        empty string is Ironic's default group; None if there is no limit
    :param shard: the shard that this service is limited to, if any; Nova wants
        one service for each shard, and ignores the peer list then
    :param peer_list: the hosts that serve the group
    :returns: canonical host names; None if every host may be a member
    :raises ValueError: if the peer list is needed and this service is not in
        it; the message says what to do
    """
    if shard:
        return frozenset({canonical(me)})
    if conductor_group is None:
        return None
    hosts = frozenset(map(canonical, peer_list)) - {''}
    if not hosts:
        raise ValueError(
            '[ironic] conductor_group is set and [ironic] peer_list is empty: '
            'list there the host names of all nova-compute services of the '
            f"group, this one's ({me}) among them.")
    if canonical(me) not in hosts:
        raise ValueError(
            f'[ironic] peer_list does not name this service ({me}): add it to '
            'the list, on all services of its conductor group.')
    return hosts


@dataclasses.dataclass(frozen=True)
class Picture:
    """What the services are to this one's ring at one time.

    :ivar members: canonical names of the members
    :ivar states: what each known service is, by canonical name
    :ivar last_seen: when each was last heard of
    :ivar unheard: whether each is down whose heartbeats are not in the
        database
    """

    members: frozenset[str]
    states: Mapping[str, State]
    last_seen: Mapping[str, datetime.datetime] = dataclasses.field(
        default_factory=dict)
    unheard: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    def is_lost(self, host: str) -> bool:
        """Say whether a service is down, or not in Nova at all.

        :param host: its name, in any case
        """
        state = self.state(host)
        return state.is_silent or state is State.GONE

    def state(self, host: str) -> State:
        """Say what a service is.

        :param host: its name, in any case
        """
        return self.states.get(canonical(host), State.GONE)

    def is_dead(self, host: str, now: datetime.datetime,
                silence: float) -> bool:
        """Say whether a service is to be given up for dead.

        :param host: its name, in any case
        :param now: the present time, with time zone
        :param silence: seconds without a heartbeat after which it is; 0 if
            only an operator's word makes it so
        """
        state = self.state(host)
        if state in (State.FORCED_DOWN, State.GONE):
            return True
        if state is not State.DOWN or not silence:
            return False
        seen = self.last_seen[canonical(host)]
        return (now - seen).total_seconds() >= silence


@dataclasses.dataclass(frozen=True)
class View:
    """How this service looks at the others.

    :ivar me: the name of this service
    :ivar down_time: seconds without a heartbeat after which a service is down
    :ivar peers: canonical names of the only hosts that may be members; None
        if all may
    """

    me: str
    down_time: float
    peers: frozenset[str] | None = None

    def state(self, service: Service, now: datetime.datetime) -> State:
        """Say what a service is to this one's ring.

        Liveness is judged as Nova's database servicegroup driver does: by the
        distance between the last heartbeat and now, in either direction.

        :param service: its record
        :param now: the present time, with time zone
        """
        host = canonical(service.host)
        if self.peers is not None and host not in self.peers:
            return State.STRANGER
        if service.forced_down:
            return State.FORCED_DOWN
        # This one is running this very code, whatever its heartbeat says.
        if host != canonical(self.me) and not self._is_alive(service, now):
            return State.DOWN
        return State.DISABLED if service.disabled else State.MEMBER

    def picture(self, ring: Iterable[Service], others: Iterable[Service],
                now: datetime.datetime) -> Picture:
        """Say what all services are.

        This service is a member also where it has no record: when it starts
        for the first time.

        :param ring: the records of the services that run an ironic driver,
            and this one's
        :param others: the records of more services, none of them a member
        :param now: the present time, with time zone
        """
        ring = list(ring)
        me = canonical(self.me)
        states = {canonical(service.host): self.state(service, now)
                  for service in ring}
        states.setdefault(me, State.MEMBER)
        members = frozenset(host for host, state in states.items()
                            if state is State.MEMBER)
        known = [*others, *ring]
        for service in known:
            states.setdefault(canonical(service.host),
                              self.state(service, now))
        return Picture(members, states, {
            canonical(service.host): service.last_seen for service in known},
            {canonical(service.host): not service.alive for service in known
             if service.alive is not None})

    def _is_alive(self, service: Service, now: datetime.datetime) -> bool:
        if service.alive is not None:
            return service.alive
        silence = abs((now - service.last_seen).total_seconds())
        return silence <= self.down_time
