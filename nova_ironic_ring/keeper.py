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

"""What one service makes of what it sees, pass by pass.

It joins the ring, the membership and the rule of ownership, and remembers what
has to be known from one pass to the next: since when a node is waited for,
what was taken without consent, and whether the picture was good. It does no
I/O, so that a simulation can drive many of them.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
import dataclasses
import datetime
import hashlib

from nova_ironic_ring import blackout
from nova_ironic_ring import contention
from nova_ironic_ring import membership
from nova_ironic_ring import ownership
from nova_ironic_ring import ring
from nova_ironic_ring import settings

Decision = ownership.Decision
Trust = ownership.Trust

# How many times the handover timeout a service keeps its hands off the nodes
# of one that it sees another ring than, at first.
_BACK_OFF = 10


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to do in a pass.

    :ivar decisions: by the node's UUID
    :ivar offers: who may take a node, by the node's UUID; empty if nobody may
        just now
    :ivar owners: who has to own a free node still when this service takes it,
        by the node's UUID; None for a node without a row
    :ivar abandoned: the former owners of free nodes that this service takes,
        where these are dead, by the node's UUID; None for a node without a row
    :ivar disputes: new ones, for the operator
    """

    decisions: Mapping[str, Decision]
    offers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    owners: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    abandoned: Mapping[str, str | None] = dataclasses.field(
        default_factory=dict)
    disputes: Sequence[contention.Dispute] = ()


class Keeper:
    """Decides for one service."""

    def __init__(self) -> None:
        self.trust = Trust.STARTING
        #: Whether this service is about to end, so that it takes nothing.
        self.leaving = False
        self.picture = membership.Picture(frozenset(), {})
        self.ring = ring.Ring((), 1)
        self._settings: settings.Settings | None = None
        self._blackout = blackout.Blackout()
        self._contention = contention.Contention()
        self._waits: dict[str, tuple[str, datetime.datetime]] = {}
        #: Since when services are down whose heartbeats the database has not.
        self._silent: dict[str, datetime.datetime] = {}

    def fail(self, now: datetime.datetime) -> None:
        """Note that Nova could not be asked.

        :param now: the present time, with time zone
        """
        self._blackout.fail(now)

    def look(self, current: settings.Settings,
             services: Iterable[membership.Service],
             own: membership.Service | None, gap: float,
             now: datetime.datetime) -> None:
        """Look at the services, which makes the ring.

        Where the picture is not to be trusted, the last one stays in force.

        :param current: the settings
        :param services: the records of the services that run an ironic driver
        :param own: the record of this service; None if there is none
        :param gap: the longest time without a heartbeat of it since the last
            look, in seconds
        :param now: the present time, with time zone
        """
        if current != self._settings:
            # What was disputed may be settled.
            self._contention = contention.Contention()
        known = [*services, *([own] if own else [])]
        trusted = self._blackout.trusts(
            own, now, current.down_time, current.report_interval, gap)
        seen = current.view.picture(known, (), now)
        if trusted or not self._blackout.started or not self.picture.members:
            self.picture = seen
        self._settings = current
        if trusted:
            self.trust = Trust.FULL
        else:
            # Without a record it is nobody's peer, as when it starts.
            self.trust = (Trust.BLACKOUT if self._blackout.started and own
                          else Trust.STARTING)
        self.ring = ring.Ring(self.picture.members, current.partitions)

    @property
    def me(self) -> str:
        """The canonical name of this service, by the settings."""
        return membership.canonical(self._current.host)

    def desired(self, node: str) -> str | None:
        """Return the desired owner of a node.

        :param node: the node's UUID
        :returns: a canonical host name; None if the ring has no members
        """
        return self.ring.owner(node) if self.ring.members else None

    def wanted(self, nodes: Mapping[str, str | None],
               mine: Container[str]) -> list[str]:
        """Name the nodes whose rows this service has to know.

        :param nodes: the instance on each node, None for a free one
        :param mine: the nodes that it owns
        :returns: those that it should own and does not; only free ones, where
            instances do not go with the ring
        """
        return [node for node, instance in nodes.items()
                if (instance is None or self._current.follows)
                and node not in mine and self.desired(node) == self.me]

    def foreign(self, nodes: Mapping[str, str | None],
                instances: Container[str]) -> list[str]:
        """Name the instances whose service this one has to know.

        :param nodes: the instance on each node, None for a free one
        :param instances: the instances of this service
        :returns: those of others, on nodes that this service should own
        """
        return [instance for node, instance in nodes.items()
                if instance is not None and instance not in instances
                and self.desired(node) == self.me]

    def misplaced(self, nodes: Mapping[str, str | None],
                  instances: Container[str]) -> list[str]:
        """Name the instances that should go with the ring.

        :param nodes: the instance on each node, None for a free one
        :param instances: the instances of this service
        :returns: those on nodes that another service should own; none where
            instances do not go with the ring
        """
        return [instance for node, instance in nodes.items()
                if self._current.follows and instance in instances
                and instance is not None
                and self.desired(node) not in (self.me, None)]

    def unwanted(self, nodes: Mapping[str, str | None],
                 mine: Iterable[str]) -> list[str]:
        """Name the nodes that this service is about to offer.

        :param nodes: the instance on each node, None for a free one
        :param mine: the nodes that it owns
        :returns: the free ones among them that are for another service
        """
        return [node for node in mine
                if nodes.get(node, '') is None
                and self.desired(node) not in (self.me, None)]

    def knows(self, hosts: Iterable[str]) -> bool:
        """Say whether the last look has told what all of these hosts are.

        :param hosts: the names of services
        """
        return all(membership.canonical(host) in self.picture.states
                   for host in hosts)

    def quarrels(self) -> list[str]:
        """Name those that see another ring, by their canonical names."""
        return self._contention.hosts

    def plan_at_once(self, nodes: Mapping[str, str | None],
                     instances: Container[str]) -> Plan:
        """Decide on all nodes by the stock rule.

        :param nodes: the instance on each node, None for a free one
        :param instances: the instances of this service
        """
        return Plan({
            node: ownership.decide_on_instance(
                self.me, ownership.Occupied(None, instance in instances))
            if instance is not None
            else ownership.decide_at_once(self.me, self.desired(node))
            for node, instance in nodes.items()})

    def plan(self, nodes: Mapping[str, str | None],
             instances: Container[str], building: Container[str],
             rows: Mapping[str, ownership.Row], hosts: Mapping[str, str],
             idle: Container[str],
             others: Sequence[membership.Service],
             held: Container[str], now: datetime.datetime) -> Plan:
        """Decide on all nodes by consent.

        :param nodes: the instance on each node, None for a free one
        :param instances: the instances of this service
        :param building: the nodes that an instance is being built for here
        :param rows: the rows of this service's nodes, and of those that are
            :meth:`wanted`; one without a row is not in it
        :param hosts: the services of the :meth:`foreign` instances; one that
            belongs to none is not in it
        :param idle: the :meth:`misplaced` instances that nothing is being done
            with
        :param others: the records of more services, among them all of these
            owners and services that are not enabled; where there are any, all
            that Nova has
        :param held: the nodes that Nova's resource tracker did take in the
            pass before
        :param now: the present time, with time zone
        """
        me = self.me
        is_alone = {membership.canonical(service.host)
                    for service in others} == {me}
        mine = {node for node, row in rows.items()
                if membership.canonical(row.owner) == me}
        more = self._current.view.picture((), others, now)
        picture = dataclasses.replace(
            self.picture, states={**more.states, **self.picture.states},
            last_seen={**more.last_seen, **self.picture.last_seen,
                       **self._find_silent(more, now)})
        if self.trust is not Trust.FULL:
            self._contention.forget()
        disputes = self._contention.find(
            {node: row for node, row in rows.items()
             if node not in mine and self._is_seen(row.owner, picture)},
            mine, held, picture, now,
            _BACK_OFF * self._current.handover_timeout)

        decisions = {}
        waits = {}
        for node, instance in nodes.items():
            if instance is not None:
                host = hosts.get(instance)
                decisions[node] = ownership.decide_on_instance(
                    me, ownership.Occupied(
                        self.desired(node), instance in instances,
                        host and membership.canonical(host), rows.get(node),
                        self._fails_over(host, picture, now),
                        self._current.follows and (
                            instance in idle or instance not in instances),
                        self.trust))
                if decisions[node].takes_instance and self.leaving:
                    decisions[node] = Decision.LEAVE_INSTANCE
                continue
            row = rows.get(node)
            decisions[node] = ownership.decide(me, ownership.Free(
                self.desired(node), row,
                picture.state(row.owner) if row else membership.State.GONE,
                # Nobody is there to be disturbed.
                Trust.FULL if is_alone else self.trust,
                node in building, self._is_overdue(node, row, now)))
            if decisions[node].takes and self.leaving or (
                    decisions[node] in _FORCED and not self._may_force(
                        rows[node].owner, picture, now)):
                decisions[node] = Decision.WAIT
            # Who does not know this service, or is dead, offers it nothing.
            if decisions[node] is Decision.WAIT and row is not None and (
                    mine and self.trust is Trust.FULL):
                waits[node] = row.owner, self._waits_since(node, row, now)
        if not mine and not is_alone:
            self._make_one_claim(decisions, rows, picture, now)
        self._waits = waits

        offers = {node: '' if node in building else str(self.desired(node))
                  for node, decision in decisions.items()
                  if decision.offers
                  or decision is Decision.HOLD and node in building}
        self._contention.release(offers)
        for node, decision in decisions.items():
            if decision in _FORCED and node in rows:
                self._contention.take(node, rows[node].owner)
        owners = {node: rows[node].owner if node in rows else None
                  for node, decision in decisions.items()
                  if decision.lists and nodes[node] is None}
        # Without a row, its owner's record was deleted, and the row with it.
        abandoned = {
            node: rows[node].owner if node in rows else None
            for node, decision in decisions.items() if decision.takes
            and (node not in rows or picture.is_lost(rows[node].owner))}
        return Plan(decisions, offers, owners, abandoned, disputes)

    def _find_silent(self, more: membership.Picture, now: datetime.datetime
                     ) -> dict[str, datetime.datetime]:
        """Say since when services are down whose heartbeats are elsewhere."""
        unheard = {**more.unheard, **self.picture.unheard}
        self._silent = {host: self._silent.get(host, now)
                        for host, is_silent in unheard.items() if is_silent}
        return self._silent

    @property
    def _current(self) -> settings.Settings:
        """The settings of the last look."""
        assert self._settings is not None
        return self._settings

    def _waits_since(self, node: str, row: ownership.Row,
                     now: datetime.datetime) -> datetime.datetime:
        """Say since when a node has been waited for."""
        owner, since = self._waits.get(node, (row.owner, now))
        # One that says that nobody may have it now is not silent.
        return since if owner == row.owner and row.taker != '' else now

    def _is_overdue(self, node: str, row: ownership.Row | None,
                    now: datetime.datetime) -> bool:
        if row is None:
            return False
        waited = now - self._waits_since(node, row, now)
        return (node in self._waits and waited.total_seconds()
                >= self._current.handover_timeout)

    def _may_force(self, owner: str, picture: membership.Picture,
                   now: datetime.datetime) -> bool:
        """Say whether a node may be taken without its owner's consent."""
        return (not self._contention.with_(owner, now)
                and self._is_seen(owner, picture))

    def _fails_over(self, host: str | None, picture: membership.Picture,
                    now: datetime.datetime) -> bool:
        """Say whether an instance is to be taken over.

        :param host: its service, if it is a foreign one
        """
        return (host is not None and self._current.fails_over
                and picture.is_dead(host, now, self._current.failover_after))

    def _is_seen(self, owner: str, picture: membership.Picture) -> bool:
        """Say whether the ring has been made with the owner of a node in mind.

        One that should be a member and is not has taken the node since then.
        """
        return (membership.canonical(owner) in self.picture.members
                or picture.state(owner) is not membership.State.MEMBER)

    def _make_one_claim(self, decisions: dict[str, Decision],
                        rows: Mapping[str, ownership.Row],
                        picture: membership.Picture,
                        now: datetime.datetime) -> None:
        """Have a newcomer take no more than one node, but that at once.

        Without a row its peers do not see it, and neither do other newcomers,
        who would take the same nodes as it does.
        """
        if self.trust is not Trust.FULL or self.leaving or (
                self.picture.state(self.me) is not membership.State.MEMBER):
            return
        takes = {node: decision for node, decision in decisions.items()
                 if decision.takes or decision.takes_instance}
        for node, decision in takes.items():
            decisions[node] = (Decision.WAIT if decision.takes
                               else Decision.LEAVE_INSTANCE)
        choice = takes or {
            node: Decision.TAKE_FIRST for node, decision in decisions.items()
            if decision is Decision.WAIT
            and self._may_force(rows[node].owner, picture, now)}
        # Others may be newcomers as well, and have the first right to some.
        all_alive = ring.Ring(
            {self.me} | {host for host, state in picture.states.items()
                         if state is membership.State.MEMBER},
            self.ring.partitions)
        choice = {node: decision for node, decision in choice.items()
                  if all_alive.owner(node) == self.me} or choice
        if choice:
            first = min(choice, key=lambda node: _distance(self.me, node))
            decisions[first] = (
                choice[first] if choice[first].takes_instance
                else Decision.TAKE_FIRST if first in rows
                else Decision.CREATE)


#: Without the consent of the owner.
_FORCED: Collection[Decision] = frozenset({
    Decision.TAKE_ABANDONED, Decision.TAKE_SILENT, Decision.TAKE_FIRST})


def _distance(host: str, node: str) -> bytes:
    """Order nodes for each host in another way."""
    return hashlib.sha256(f'{host} {node}'.encode()).digest()
