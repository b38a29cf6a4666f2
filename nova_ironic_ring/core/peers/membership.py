# SPDX-License-Identifier: Apache-2.0

"""Which services are alive, absent or dead, and which are ring members.

The input is service records, the settings and a watch over the heartbeats; the
output is one state for each service. All other code uses these states, and
never looks at a heartbeat.

A service is *late* when its last heartbeat is older than ``service_down_time``
by the wall clock, which is what Nova's API shows. A service is *absent* when
this very process has watched its heartbeat stand still for that long. A
service is *dead* when an operator has forced it down or deleted it, or when it
has been absent for ``failover_after``.

A service is *not working* when its heartbeat goes on, and the time of its last
good pass, which it writes into its member record, has not changed for some
passes. It keeps its instances, and is no member.
"""

from collections.abc import Container, Iterable, Mapping
import dataclasses
import datetime
import enum

from nova_ironic_ring.core.values import merging
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings

# A peer that has not been heard since this service started, or since an
# outage, may still be reconnecting: it gets this multiple of the down time.
_PATIENCE_AFTER_OUTAGE = 2
#: A service that works and has thousands of nodes may need two passes, and
#: what Ironic takes to list them, until it says again that it works, or by
#: which ring.
PATIENT_PASSES = 4
# The part of a long pass that still counts in the next one: a long one may
# follow a short one, but a single long one must not count for ever.
_FADING = 0.75


class State(enum.Enum):
    """The state of a service in this service's ring."""

    MEMBER = 'member'
    #: An operator has disabled it; it is alive and hands over what it has.
    DISABLED = 'disabled'
    #: Its heartbeat goes on, and its passes have failed for long.
    NOT_WORKING = 'alive, and its passes fail'
    #: Its heartbeat has stood still for the down time.
    ABSENT = 'absent'
    #: An operator has forced it down.
    FORCED_DOWN = 'forced down'
    #: It lives, and is not among the peers that are configured.
    NOT_A_PEER = 'not in the peer list'
    #: It is alive, and says that it divides other nodes; or it runs another
    #: driver.
    OTHER_SCOPE = 'in another group or shard'
    #: It works, and says that it divides only some of the same nodes: these
    #: are left to it.
    NARROWER_SCOPE = 'limited to some of these nodes'
    #: Nova has no record of it.
    GONE = 'gone'

    @property
    def gives(self) -> bool:
        """Whether the service hands over its nodes itself: it works."""
        return self in (State.MEMBER, State.DISABLED, State.NOT_A_PEER)

    @property
    def lives(self) -> bool:
        """Whether the service is alive, whether or not it works."""
        return self.gives or self is State.NOT_WORKING

    @property
    def is_lost(self) -> bool:
        """Whether the service is absent, forced down or gone."""
        return self in (State.ABSENT, State.FORCED_DOWN, State.GONE)


def is_late(service: model.Service, now: datetime.datetime,
            down_time: float) -> bool:
    """Return whether a service is late, as Nova's API sees it.

    The rule is that of Nova's database servicegroup driver: the distance
    between the last heartbeat and now, in either direction.

    :param service: the record of the service
    :param now: the present time, with time zone
    :param down_time: seconds without a heartbeat after which it is late
    """
    if service.alive is not None:
        return not service.alive
    return abs((now - service.last_seen).total_seconds()) > down_time


def patiences(down_time: float) -> tuple[float, float]:
    """Return the silences after which a service counts as absent.

    :param down_time: seconds without a heartbeat after which it is
    :returns: in seconds: that, and what it is where nothing was heard of the
        service since the watch began
    """
    return down_time, down_time * _PATIENCE_AFTER_OUTAGE


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
class Watch(merging.Merged):
    """How long this process has seen each heartbeat stand still.

    All times are those of this process's monotonic clock, so that neither a
    step of a wall clock nor the distance between two of them matters.

    :ivar at: when it was last looked, in seconds
    """

    at: float = 0.0
    _heard: Mapping[str, _Heard] = dataclasses.field(default_factory=dict)

    def look(self, services: Iterable[model.Service], at: float,
             read_at: float | None = None, but: Container[str] = ()
             ) -> 'Watch':
        """Return the watch after one more look.

        :param services: the records of all services; others are forgotten
        :param at: the time of the look, in seconds
        :param read_at: when the records were read, in seconds, if that was
            after the look: a heartbeat that has moved was not silent until
            then
        :param but: canonical names of others that are not forgotten
        """
        heard = {host: each for host, each in self._heard.items()
                 if host in but}
        read_at = at if read_at is None else read_at
        for service in services:
            before = self._heard.get(service.name)
            if before is None:
                before = _Heard(
                    service.last_seen, read_at, bool(service.alive))
            elif before.last_seen != service.last_seen or service.alive:
                before = _Heard(service.last_seen, read_at, True)
            heard[service.name] = before
        return Watch(at, heard)

    def restarted(self, at: float, but: Container[str] = ()) -> 'Watch':
        """Return the watch as if each heartbeat was first seen now.

        :param at: the present time, in seconds
        :param but: canonical names of the services that this is not for
        """
        return Watch(at, {
            host: heard if host in but else _Heard(heard.last_seen, at)
            for host, heard in self._heard.items()})

    def after_outage(self, at: float, absent: Container[str],
                     current: settings.Settings) -> 'Watch':
        """Return the watch when heartbeats may have been lost.

        Each is watched as if it was first seen now, but this service's own.
        Who was absent before stays absent until it is heard, and is not nearer
        to being dead for the time in which nobody could hear it.

        :param at: the present time, in seconds
        :param absent: canonical names of those that were absent before
        :param current: this service's settings
        """
        usual, longer = patiences(current.down_time)
        heard = {}
        for host, each in self._heard.items():
            longest = usual if each.has_moved else longer
            if host == current.me:
                heard[host] = each
            elif host in absent and self.at - each.since >= longest:
                heard[host] = dataclasses.replace(
                    each, since=max(each.since, at - longest))
            else:
                heard[host] = _Heard(each.last_seen, at)
        return Watch(self.at, heard)

    def with_those_of(self, other: 'Watch', hosts: Container[str]) -> 'Watch':
        """Return this watch, where some services are watched as in another.

        :param other: the other watch
        :param hosts: canonical names of these services
        """
        return dataclasses.replace(self, _heard={**self._heard, **{
            host: heard for host, heard in other._heard.items()
            if host in hosts}})

    def has_moved(self, host: str) -> bool:
        """Return whether a heartbeat was seen to move since the watch began.

        :param host: canonical name of the service
        """
        heard = self._heard.get(host)
        return heard is not None and heard.has_moved

    def last_seen(self, host: str) -> datetime.datetime | None:
        """Return the last heartbeat of a service that was looked at.

        :param host: canonical name of the service
        """
        heard = self._heard.get(host)
        return None if heard is None else heard.last_seen

    def silence(self, host: str) -> float:
        """Return for how long a heartbeat has stood still.

        :param host: canonical name of the service
        :returns: seconds
        """
        heard = self._heard.get(host)
        return 0.0 if heard is None else self.at - heard.since

    def is_absent(self, service: model.Service, down_time: float) -> bool:
        """Return whether a service is absent.

        :param service: its record
        :param down_time: seconds of silence after which a service is absent
        """
        if service.alive:
            return False
        heard = self._heard.get(service.name)
        usual, longer = patiences(down_time)
        return self.silence(service.name) >= (
            usual if heard is None or heard.has_moved else longer)

    @classmethod
    def of_one_look(cls, services: Iterable[model.Service],
                    now: datetime.datetime, down_time: float) -> 'Watch':
        """Return the watch of an observer that looks once.

        To this observer, a late service is absent since its last heartbeat.

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
class WorkWatch(merging.Merged):
    """How long this process has seen each last good pass stand still.

    It watches the pass times that services report, in place of heartbeats.

    :ivar cycle: seconds from the start of a pass of this service to that of
        the next one, as they have lately been; 0 before the first
    :ivar began: when its last pass began, or Nova did not answer last, in
        seconds
    :ivar is_late: whether that pass came so late that others may believe that
        the passes of this service fail, although none has failed
    """

    cycle: float = 0.0
    began: float = 0.0
    is_late: bool = False
    _watch: Watch = Watch()

    def timed(self, at: float, current: settings.Settings) -> 'WorkWatch':
        """Return the watch at the beginning of a pass of this service.

        :param at: the present time, in seconds
        :param current: its settings
        """
        gap = at - self.began if self.cycle else 0.0
        return dataclasses.replace(
            self, began=at, is_late=0 < PATIENT_PASSES * self.cycle <= gap,
            cycle=max(current.pass_interval, gap, self.cycle * _FADING))

    def look(self, services: Iterable[model.Service], watch: Watch,
             current: settings.Settings) -> 'WorkWatch':
        """Return the watch after one more look.

        :param services: the records of services, with what they say of their
            passes
        :param watch: the watch over their heartbeats, after the same look
        :param current: this service's settings
        """
        said, silent = [], set()
        for service in services:
            if service.last_pass is None:
                # Its record may have been deleted, and be made again soon.
                if self.silence(service.name) < 2 * max(
                        current.handover_timeout,
                        PATIENT_PASSES * current.pass_interval):
                    silent.add(service.name)
                continue
            found = _pass_of(service)
            if service.last_pass.at is None:
                # It says none where it has had no good pass, or a new record.
                found = dataclasses.replace(
                    found, last_seen=self._watch.last_seen(service.name)
                    or found.last_seen)
            # From one that is absent nothing is expected until it is back.
            said.append(dataclasses.replace(found, alive=watch.is_absent(
                service, current.down_time) or None))
        return dataclasses.replace(
            self, _watch=self._watch.look(said, watch.at, but=silent))

    def restarted(self, but: Container[str]) -> 'WorkWatch':
        """Return the watch as if each last pass was first seen now.

        :param but: canonical names of the services that this is not for
        """
        return dataclasses.replace(
            self, _watch=self._watch.restarted(self._watch.at, but))

    def unanswered(self, at: float) -> 'WorkWatch':
        """Return the watch after Nova did not answer.

        :param at: the present time, in seconds
        """
        return dataclasses.replace(
            self, began=at, _watch=dataclasses.replace(self._watch, at=at))

    def silence(self, host: str) -> float:
        """Return for how long a last good pass has stood still.

        :param host: canonical name of the service
        :returns: seconds
        """
        return self._watch.silence(host)

    def is_failing(self, service: model.Service, current: settings.Settings
                   ) -> bool:
        """Return whether the passes of a service have failed for long.

        While a pass of this service takes long, theirs may as well.

        :param service: its record, with what it says of its passes
        :param current: this service's settings
        """
        said = service.last_pass
        cycle = max(self.cycle, self._watch.at - self.began
                    if self.cycle else 0.0)
        return said is not None and self._watch.is_absent(
            _pass_of(service), max(
                current.handover_timeout,
                PATIENT_PASSES * max(cycle, said.cycle)))

    @classmethod
    def of_one_look(cls, services: Iterable[model.Service],
                    now: datetime.datetime) -> 'WorkWatch':
        """Return the watch of an observer that looks once.

        The observer takes what is older than some passes of the service to
        have stood still since then. Of a service that says it in no row, one
        look tells nothing: the row that said it may just have become another
        service's. Nor does it of a time to come: the service's clock was ahead
        once, and what it says does not go back for an hour.

        :param services: the records of the services, with what they say of
            their passes
        :param now: the present time, with time zone
        """
        heard = dict[str, _Heard]()
        for service in services:
            if service.last_pass and service.last_pass.at:
                said = _pass_of(service)
                heard |= Watch.of_one_look(
                    [dataclasses.replace(
                        said, last_seen=min(said.last_seen, now))], now,
                    PATIENT_PASSES * service.last_pass.cycle)._heard
        return cls(_watch=Watch(0.0, heard))


def _pass_of(service: model.Service) -> model.Service:
    """Return a record where the last good pass is in the heartbeat's place."""
    assert service.last_pass is not None
    return dataclasses.replace(
        service, last_seen=service.last_pass.at or model.NEVER, alive=None)


def state(service: model.Service, current: settings.Settings,
          watch: Watch, work: WorkWatch = WorkWatch()) -> State:
    """Say what a service is to this one's ring.

    :param service: its record, with what it says
    :param current: this service's settings
    :param watch: how long the heartbeats have stood still
    :param work: how long the last good passes have stood still
    """
    found = _state_of_peer(service, current, watch, work)
    is_listed = current.peers is None or service.name in current.peers
    if service.name == current.me or not found.lives:
        return found
    if not service.is_ironic:
        return State.OTHER_SCOPE
    if not is_listed and (service.scope is None or current.scope.is_same(
            service.scope)):
        return State.NOT_A_PEER if found.gives else found
    if is_listed and current.shares(service.scope):
        return found
    if service.scope is None or not current.scope.covers(service.scope):
        return State.OTHER_SCOPE
    if found is State.NOT_WORKING:
        return found
    # Two rings divide its nodes: those of the narrower scope keep them, for as
    # long as they are to have any. By its ring, nothing goes to this one.
    return (State.NARROWER_SCOPE if found is State.MEMBER
            else State.OTHER_SCOPE)


def lives(service: model.Service, current: settings.Settings, watch: Watch,
          work: WorkWatch) -> bool:
    """Return whether a service lives, whether or not this one is its peer.

    :param service: its record
    :param current: this service's settings
    :param watch: how long the heartbeats have stood still
    :param work: how long the last good passes have stood still
    """
    return _state_of_peer(service, current, watch, work).lives


def _state_of_peer(service: model.Service, current: settings.Settings,
                   watch: Watch, work: WorkWatch) -> State:
    """Say what a service is that may be a member."""
    if service.forced_down:
        return State.FORCED_DOWN
    # This one is running this very code, whatever its heartbeat says.
    if service.name != current.me and watch.is_absent(
            service, current.down_time):
        return State.ABSENT
    # A disabled one whose passes fail does not let go of its nodes either.
    if service.name != current.me and work.is_failing(service, current):
        return State.NOT_WORKING
    return State.DISABLED if service.disabled else State.MEMBER
