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

"""Nodes that two services take from each other, because they see two rings.

Each is right by its own ring, as with peer lists that differ. The service that
finds a node taken back which it had taken, takes no more from the other one
for a time.
"""

from collections.abc import Container, Mapping, Sequence
import dataclasses

from nova_ironic_ring.core import membership
from nova_ironic_ring.core import model

# How many times the handover timeout a service takes nothing without consent
# from one that it is in dispute with, at first.
_BACK_OFF = 10


@dataclasses.dataclass(frozen=True)
class Dispute:
    """A service that has nodes which this one took without consent.

    :ivar host: the canonical name of that service
    :ivar nodes: UUIDs of the nodes
    """

    host: str
    nodes: Sequence[str]


@dataclasses.dataclass(frozen=True)
class _BackOff:
    """For how long this service takes nothing from another without consent.

    :ivar state: what the other was when it took back what was taken from it
    :ivar seconds: how long this lasts
    :ivar until: when it ends, in seconds
    """

    state: membership.State
    seconds: float
    until: float


@dataclasses.dataclass(frozen=True)
class Disputes:
    """What this service took from whom without consent, and what came of it.

    :ivar taken: the former owners of the nodes that it took, by the node
    :ivar seen_with_third: the nodes that a third service had once after that
    :ivar back_offs: by the canonical name of the other service
    """

    taken: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seen_with_third: frozenset[str] = frozenset()
    back_offs: Mapping[str, _BackOff] = dataclasses.field(
        default_factory=dict)

    @property
    def hosts(self) -> list[str]:
        """The canonical names of those that there is a dispute with."""
        return sorted(self.back_offs)

    def is_with(self, host: str, at: float) -> bool:
        """Say whether nothing may be taken from a service without consent.

        :param host: its canonical name
        :param at: the present time, in seconds
        """
        back_off = self.back_offs.get(host)
        return back_off is not None and at < back_off.until

    def forgotten(self) -> 'Disputes':
        """Forget what was taken.

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


def look(before: Disputes, seen: Evidence, at: float, handover_timeout: float
         ) -> tuple[list[Dispute], Disputes]:
    """Find who has by now what this service took without consent.

    :param before: what is remembered
    :param seen: who has the nodes now
    :param at: the present time, in seconds
    :param handover_timeout: seconds; nothing is taken from a service without
        its consent for ten times as long after the first time, and twice as
        long after each further time
    :returns: those with whom there was no dispute before, and what is to be
        remembered
    """
    # A service that was restarted may have another configuration.
    back_offs = {
        host: back_off for host, back_off in before.back_offs.items()
        if seen.members.state(host) is back_off.state}
    if not before.taken:
        return [], dataclasses.replace(before, back_offs=back_offs)
    found: dict[str, list[str]] = {}
    parties: set[str] = set()
    kept, seen_with_third = dict(before.taken), set(before.seen_with_third)
    for node, former in before.taken.items():
        row = seen.rows.get(node)
        if row is not None and node in seen.tracked:
            owner = row.owner_name
            if owner == former or node in seen_with_third:
                found.setdefault(owner, []).append(node)
                parties |= {owner, former}
            else:
                # A third one may have had good reason, as when the node was
                # in another conductor group for a moment. Not twice, though.
                seen_with_third.add(node)
        if node not in seen.mine:
            del kept[node]
    new = [Dispute(host, sorted(nodes))
           for host, nodes in sorted(found.items()) if host not in back_offs]
    for host in parties:
        last = back_offs.get(host)
        seconds = 2 * last.seconds if last else _BACK_OFF * handover_timeout
        back_offs[host] = _BackOff(
            seen.members.state(host), seconds, at + seconds)
    return new, Disputes(kept, frozenset(seen_with_third), back_offs)
