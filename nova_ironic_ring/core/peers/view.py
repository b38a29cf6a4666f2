# SPDX-License-Identifier: Apache-2.0

"""What a service knows of all services of Nova, at one time.

It follows from their records, from what they say in their member records, and
from how long their heartbeats and their last good passes have stood still. All
other code asks the view, and never a heartbeat.
"""

from collections.abc import Iterable, Mapping
import dataclasses

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers.ring import Ring
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.values import merging
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings

State = membership.State


@dataclasses.dataclass(frozen=True)
class View(merging.Merged):
    """What this service knows of all services: states, trust and ring.

    :ivar services: the records, with what the services say, by canonical name
    :ivar states: what each service is to this one's ring, likewise
    :ivar silences: for how long the heartbeat of each has stood still, in
        seconds
    :ivar trust: how far that is trusted
    :ivar ring: the ring of the members
    :ivar is_ending: whether this service is about to end
    :ivar other_listing: canonical names of the members that say another
        ``listing`` than this service has
    :ivar unlisted: canonical names of those that live, say that they have the
        same scope, and are not in the peer list; none without a list
    :ivar elsewhere: canonical names of those in the peer list that say that
        they have another scope; likewise
    """

    services: Mapping[str, model.Service] = dataclasses.field(
        default_factory=dict)
    states: Mapping[str, State] = dataclasses.field(default_factory=dict)
    silences: Mapping[str, float] = dataclasses.field(default_factory=dict)
    trust: Trust = Trust.STARTING
    ring: Ring = dataclasses.field(
        default_factory=lambda: Ring((), 1))
    is_ending: bool = False
    other_listing: frozenset[str] = frozenset()
    unlisted: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()

    @property
    def members(self) -> frozenset[str]:
        """The canonical names of the members of the ring."""
        return self.ring.members

    @property
    def peers(self) -> dict[str, State]:
        """What the services with an ironic driver are, by canonical name.

        Those that an operator has disabled are left out unless they live and
        work: nobody expects anything of them.
        """
        return {host: state for host, state in self.states.items()
                if (service := self.services.get(host)) is None
                or service.is_ironic and (
                    state.gives or not service.disabled)}

    @property
    def narrower(self) -> frozenset[model.Scope]:
        """The scopes of services that divide only some of the same nodes."""
        return frozenset(
            service.scope for host, service in self.services.items()
            if service.scope is not None
            and self.states.get(host) is State.NARROWER_SCOPE)

    @property
    def is_trusted(self) -> bool:
        """Whether what is seen of the others is trusted in full."""
        return self.trust is Trust.FULL

    @property
    def may_take(self) -> bool:
        """Whether this service may take instances of others."""
        return self.is_trusted and not self.is_ending

    def is_alone(self, me: str) -> bool:
        """Return whether a service is the only one of Nova.

        :param me: its canonical name
        """
        return self.services.keys() == {me}

    def said(self, host: str) -> model.Member | None:
        """Return what a service says; None for one with Nova's own driver.

        :param host: its name, in any case
        """
        service = self.services.get(model.canonical(host))
        return None if service is None else service.said

    def state(self, host: str) -> State:
        """Return what a service is.

        :param host: its name, in any case
        """
        return self.states.get(model.canonical(host), State.GONE)

    def is_lost(self, host: str) -> bool:
        """Return whether a service is absent, forced down or not in Nova.

        :param host: its name, in any case
        """
        return self.state(host).is_lost

    def is_dead(self, host: str, failover_after: float) -> bool:
        """Return whether a service is dead: its instances may be taken.

        :param host: its name, in any case
        :param failover_after: seconds of silence after which an absent
            service is dead; 0 if only an operator's word makes it so
        """
        state = self.state(host)
        if state in (State.FORCED_DOWN, State.GONE):
            return True
        return (state is State.ABSENT and failover_after > 0
                and self.silences[model.canonical(host)] >= failover_after)

    def fails_over(self, host: str, current: settings.Settings) -> bool:
        """Return whether the instances of a service are to be taken over.

        :param host: its name, in any case
        :param current: this service's settings
        """
        return current.fails_over and self.is_dead(
            host, current.failover_after)

    def with_state(self, wanted: State) -> frozenset[str]:
        """Return the services in a state.

        :param wanted: the state
        :returns: canonical names
        """
        return frozenset(host for host, each in self.states.items()
                         if each is wanted)

    def corrected(self, newer: 'View') -> 'View':
        """Return this view with those that are not lost any more.

        A service that was lost, and is back, is not taken from; and one that
        is new is not lost. The ring stays until the next look.

        :param newer: what has been read since
        """
        known = {host for host, state in self.states.items()
                 if host not in newer.states or not state.is_lost
                 or state is newer.states[host] or (
                     newer.states[host].is_lost
                     and state is not State.FORCED_DOWN)}
        return dataclasses.replace(
            self, services={**self.services, **newer.services},
            states={**newer.states, **{
                host: self.states[host] for host in known}},
            silences={**newer.silences, **{
                host: self.silences[host] for host in known}})


def assess(services: Iterable[model.Service], current: settings.Settings,
           watch: membership.Watch,
           work: membership.WorkWatch = membership.WorkWatch()) -> View:
    """Return the view that follows from the records of all services.

    This service is a member also where it has no record: when it starts for
    the first time.

    :param services: the records, with what the services say
    :param current: this service's settings
    :param watch: how long the heartbeats have stood still
    :param work: how long the last good passes have stood still
    :returns: the view, with the ring of the members and without a deal of
        shards; nothing is known of the trust
    """
    records = {service.name: service for service in services}
    states = {host: membership.state(service, current, watch, work)
              for host, service in records.items()}
    states.setdefault(current.me, State.MEMBER)
    members = (host for host, each in states.items()
               if each is State.MEMBER)
    found = View(
        records, states, {host: watch.silence(host) for host in states},
        ring=Ring(members, current.partitions))
    if current.peers is None:
        return found
    said = {host: service for host, service in records.items()
            if service.scope is not None and host != current.me
            and not service.disabled}
    return dataclasses.replace(found, unlisted=frozenset(
        host for host, service in said.items()
        if host not in current.peers and current.scope.is_same(service.scope)
        and membership.lives(service, current, watch, work)),
        elsewhere=frozenset(
            host for host, service in said.items() if host in current.peers
            and not current.scope.is_same(service.scope)))
