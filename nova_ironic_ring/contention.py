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

Each is right by its own ring, as with peer lists that differ. One has to stop,
and the one whose taking was undone does.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
import dataclasses
import datetime

from nova_ironic_ring import membership
from nova_ironic_ring import ownership


@dataclasses.dataclass(frozen=True)
class Dispute:
    """A service that has nodes which this one took without consent.

    :ivar host: its name
    :ivar nodes: UUIDs of the nodes
    """

    host: str
    nodes: Sequence[str]


@dataclasses.dataclass(frozen=True)
class _Truce:
    """For how long this service keeps its hands off another's nodes.

    :ivar state: what the other was when it took back what was taken from it
    :ivar seconds: how long this lasts
    :ivar until: when it ends
    """

    state: membership.State
    seconds: float
    until: datetime.datetime


class Contention:
    """Remembers what this service took from whom without consent."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        self._went_on: set[str] = set()
        self._truces: dict[str, _Truce] = {}

    def find(self, wanted: Mapping[str, ownership.Row],
             mine: Container[str], held: Container[str],
             picture: membership.Picture, now: datetime.datetime,
             back_off: float) -> list[Dispute]:
        """Find who has by now what was taken without consent.

        :param wanted: the rows of the free nodes that this service desires
            and does not own
        :param mine: the nodes that this service owns
        :param held: the nodes that the resource tracker did take
        :param picture: the present states of the services
        :param now: the present time, with time zone
        :param back_off: seconds during which nothing is taken from a service
            without its consent after the first time; twice as many after each
            further time
        :returns: those with whom there was no dispute before
        """
        # A service that was restarted may have another configuration.
        self._truces = {
            host: truce for host, truce in self._truces.items()
            if picture.state(host) is truce.state}
        found: dict[str, list[str]] = {}
        parties: set[str] = set()
        for node, former in list(self._taken.items()):
            row = wanted.get(node)
            owner = membership.canonical(row.owner) if row else None
            if owner is not None and node in held and (
                    owner == former or node in self._went_on):
                found.setdefault(owner, []).append(node)
                parties |= {owner, former}
            elif owner is not None and node in held:
                # A third one may have had good reason, as when the node was
                # in another conductor group for a moment. Not twice, though.
                self._went_on.add(node)
            if node not in mine:
                del self._taken[node]
        new = [Dispute(host, sorted(nodes))
               for host, nodes in sorted(found.items())
               if host not in self._truces]
        for host in parties:
            last = self._truces.get(host)
            seconds = 2 * last.seconds if last else back_off
            self._truces[host] = _Truce(
                picture.state(host), seconds,
                now + datetime.timedelta(seconds=seconds))
        return new

    def with_(self, host: str, now: datetime.datetime) -> bool:
        """Say whether nothing may be taken from a service without consent.

        :param host: its name
        :param now: the present time, with time zone
        """
        truce = self._truces.get(membership.canonical(host))
        return truce is not None and now < truce.until

    @property
    def hosts(self) -> list[str]:
        """The canonical names of those that there was a dispute with."""
        return sorted(self._truces)

    def take(self, node: str, owner: str) -> None:
        """Note that a node is taken without its owner's consent.

        :param node: the node's UUID
        :param owner: the name of its owner until now
        """
        self._taken[node] = membership.canonical(owner)

    def forget(self) -> None:
        """Note that others may have thought that this service is dead."""
        self._taken.clear()
        self._went_on.clear()

    def release(self, nodes: Iterable[str]) -> None:
        """Note that nodes were offered, and may go wherever they like.

        :param nodes: their UUIDs
        """
        for node in nodes:
            self._taken.pop(node, None)
