# SPDX-License-Identifier: Apache-2.0

"""Nodes that two services take from each other, because they see two rings.

Each is right by its own ring, for instance because their peer lists differ. A
service that sees a node taken back which it had taken stops taking nodes from
the other service for a time.
"""

from collections.abc import Container, Mapping, Sequence
import dataclasses
import enum

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model

# For this multiple of the handover timeout, at first, a service takes nothing
# without consent from one that it is in dispute with.
_BACK_OFF = 10


@dataclasses.dataclass(frozen=True)
class Dispute:
    """A service that has nodes which this one took without consent.

    :ivar host: the canonical name of that service
    :ivar nodes: UUIDs of the nodes
    """

    host: str
    nodes: Sequence[str]


class Reason(enum.Enum):
    """Why a dispute has ended; programs read the names, which never change."""

    #: This service has other options.
    OPTIONS_CHANGED = enum.auto()
    #: The state of the other service has changed.
    STATE_CHANGED = enum.auto()
    #: Nothing more was taken back.
    QUIET = enum.auto()


@dataclasses.dataclass(frozen=True)
class Ended:
    """A dispute that is over.

    :ivar host: the canonical name of the other service
    :ivar reason: why it is over
    :ivar state: what the other service is now
    """

    host: str
    reason: Reason
    state: membership.State


@dataclasses.dataclass(frozen=True)
class _BackOff:
    """How long this service takes nothing from another without consent.

    :ivar state: the state of the other when it took back what was taken from
        it
    :ivar seconds: how long this lasts
    :ivar until: when it ends, in seconds
    :ivar is_found: whether the other has taken something back itself; else a
        third service has, to which it had given that
    """

    state: membership.State
    seconds: float
    until: float
    is_found: bool = True

    def end(self, state: membership.State, at: float) -> Reason | None:
        """Return why the dispute is over, if it is.

        :param state: what the other is now
        :param at: the present time, in seconds
        """
        # A service that was restarted may have another configuration.
        if state is not self.state:
            return Reason.STATE_CHANGED
        # Since its end, this service has taken what it had waited for.
        return Reason.QUIET if at >= self.until + self.seconds else None


@dataclasses.dataclass(frozen=True)
class Disputes:
    """What this service took without consent, from whom, and the result.

    :ivar taken: the former owners of the nodes that it took, by the node
    :ivar excused: the nodes that a third service had once after that, or a
        former owner that is taken for lost, and until when that counts, in
        seconds
    :ivar back_offs: by the canonical name of the other service
    """

    taken: Mapping[str, str] = dataclasses.field(default_factory=dict)
    excused: Mapping[str, float] = dataclasses.field(default_factory=dict)
    back_offs: Mapping[str, _BackOff] = dataclasses.field(
        default_factory=dict)

    @property
    def hosts(self) -> list[str]:
        """The canonical names of those that there is a dispute with."""
        return sorted(self.back_offs)

    def ended(self, reason: Reason, members: membership.Membership
              ) -> list[Ended]:
        """Return all of them as ended.

        :param reason: why they are over
        :param members: the present states of the services
        """
        return [Ended(host, reason, members.state(host))
                for host in self.hosts if self.back_offs[host].is_found]

    def is_with(self, host: str, at: float) -> bool:
        """Return whether nothing may be taken from a service without consent.

        :param host: its canonical name
        :param at: the present time, in seconds
        """
        back_off = self.back_offs.get(host)
        return back_off is not None and at < back_off.until

    def forgotten(self) -> 'Disputes':
        """Return them without what was taken.

        Others may have taken it back because they held this service for dead.
        """
        return Disputes(back_offs=self.back_offs)

    def noted(self, taken: Mapping[str, str], kept: Container[str]
              ) -> 'Disputes':
        """Return them after a pass.

        :param taken: the former owners of the nodes that are taken without
            consent in this pass, by the node
        :param kept: the nodes that this service goes on having; the others,
            offered or out of its scope, may go to anybody
        """
        if not taken and not self.taken:
            return self
        return dataclasses.replace(self, taken={
            node: former for node, former in {**self.taken, **taken}.items()
            if node in kept})


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What shows whether nodes that were taken were taken back.

    :ivar rows: the rows of the free nodes that this service desires and does
        not own
    :ivar mine: the nodes that this service owns
    :ivar tracked: the nodes that the resource tracker did take
    :ivar members: the present states of the services
    """

    rows: Mapping[str, model.Row]
    mine: Container[str]
    tracked: Container[str]
    members: membership.Membership


@dataclasses.dataclass(frozen=True)
class Looked:
    """The result of a look.

    :ivar new: those with whom there was no dispute before
    :ivar ended: the disputes that are over
    :ivar known: what is to be remembered
    """

    new: Sequence[Dispute]
    ended: Sequence[Ended]
    known: Disputes


def look(before: Disputes, seen: Evidence, at: float, handover_timeout: float
         ) -> Looked:
    """Find the present owners of what this service took without consent.

    :param before: what is remembered
    :param seen: who has the nodes now
    :param at: the present time, in seconds
    :param handover_timeout: seconds; nothing is taken from a service without
        its consent for ten times as long after the first time, and twice as
        long after each further time. When nothing was taken back for as long
        again after that, the dispute is over
    """
    ends = {host: back_off.end(seen.members.state(host), at)
            for host, back_off in before.back_offs.items()}
    ended = [Ended(host, reason, seen.members.state(host))
             for host, reason in sorted(ends.items())
             if reason is not None and before.back_offs[host].is_found]
    back_offs = {host: back_off for host, back_off in before.back_offs.items()
                 if ends[host] is None}
    excused = {node: until for node, until in before.excused.items()
               if at < until}
    if not before.taken:
        return Looked([], ended, Disputes({}, excused, back_offs))
    found: dict[str, list[str]] = {}
    parties: set[str] = set()
    kept, longest = dict(before.taken), _BACK_OFF * handover_timeout
    for node, former in before.taken.items():
        row = seen.rows.get(node)
        if row is not None and node in seen.tracked:
            owner = row.owner_name
            is_lost = seen.members.state(owner).is_lost
            if node in excused or (owner == former and not is_lost):
                found.setdefault(owner, []).append(node)
                parties |= {owner, former}
            else:
                # A third service may have had a good reason, for instance
                # because the node was in another conductor group for a moment.
                # And a service that is back takes what it had before its first
                # heartbeat, perhaps at this very moment. Both are excused
                # once.
                excused[node] = at + longest
        if node not in seen.mine:
            del kept[node]
    known = {host for host, back_off in back_offs.items() if back_off.is_found}
    new = [Dispute(host, sorted(nodes))
           for host, nodes in sorted(found.items()) if host not in known]
    for host in parties:
        last = back_offs.get(host)
        seconds = 2 * last.seconds if last else longest
        back_offs[host] = _BackOff(
            seen.members.state(host), seconds, at + seconds,
            host in found or host in known)
    return Looked(new, ended, Disputes(kept, excused, back_offs))
