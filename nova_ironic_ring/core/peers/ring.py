# SPDX-License-Identifier: Apache-2.0

"""The consistent-hash ring: which member each node is for."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import functools
import hashlib

from tooz import hashring

from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import merging
from nova_ironic_ring.core.values import model

# So many other names, such as those of pools, are asked for.
_OTHERS = 100


@functools.lru_cache(maxsize=2)
def _hashed(members: frozenset[str], partitions: int
            ) -> tuple[hashring.HashRing, dict[str, str]]:
    """Return a ring of the library, and a cache of its answers.

    A ring never changes, so its answers stay true. A caller that asks for all
    services of a cloud makes the same ring many times.
    """
    return hashring.HashRing(members, partitions=partitions), {}


class Ring:
    """Maps nodes to members, the same on every service that builds it alike.

    A joining or leaving member moves only the nodes that it gains or loses. If
    shards are dealt, a node is for the member that its shard is for. All other
    nodes are mapped by their UUIDs.
    """

    def __init__(self, members: Iterable[str], partitions: int,
                 deal: shards.Deal | None = None,
                 places: Mapping[str, str] | None = None) -> None:
        """Build the ring.

        :param members: canonical host names
        :param partitions: points on the ring for each member
        :param deal: the shards, and who of the members holds them; None if
            nodes are not mapped by their shards
        :param places: the shards of nodes, by the node's UUID
        """
        self.members = frozenset(members)
        self.partitions = partitions
        self.deal = deal.among(self.members) if deal else None
        self.places = places or {}
        self._ring, self._owners = _hashed(self.members, partitions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ring) and (
            (self.members, self.partitions, self.deal, self.places)
            == (other.members, other.partitions, other.deal, other.places))

    def __hash__(self) -> int:
        return hash((self.members, self.partitions))

    def fingerprint(self, scope: model.Scope) -> str:
        """Return a text that only services have which map nodes alike.

        :param scope: the nodes that the service divides
        """
        dealt = sorted(self.deal.owners.items()) if self.deal else None
        group = scope.conductor_group
        said = repr((sorted(self.members), self.partitions, dealt,
                     None if group is None else group.lower(),
                     scope.shard or None))
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    def rebuilt(self, members: frozenset[str], partitions: int,
                deal: shards.Deal | None = None) -> 'Ring':
        """Return the ring of these members, which may be this very one.

        :param members: canonical host names
        :param partitions: points on the ring for each member
        :param deal: the shards, and who holds them; None if nodes are not
            mapped by their shards
        """
        dealt = deal.among(members) if deal else None
        if (members, partitions, dealt) == (
                self.members, self.partitions, self.deal):
            return self
        return Ring(members, partitions, dealt,
                    self.places if dealt else None)

    def listed_as(self, before: 'Ring', after: 'Ring') -> 'Ring':
        """Return this ring with the shards that another pass has listed.

        :param before: the ring before that pass
        :param after: its ring
        """
        if self.deal is None or after.deal is None or after is before:
            return self
        deal = before.deal or shards.Deal()
        return self.rebuilt(self.members, self.partitions, dataclasses.replace(
            self.deal, names=merging.merge(
                self.deal.names, deal.names, after.deal.names))).placed(
            merging.merge(self.places, before.places, after.places))

    def among(self, members: Iterable[str]) -> 'Ring':
        """Return what the ring would be with other members.

        :param members: canonical host names
        """
        return Ring(members, self.partitions, self.deal, self.places)

    def placed(self, places: Mapping[str, str]) -> 'Ring':
        """Return the ring with the shards of nodes.

        :param places: the shards, by the node's UUID
        """
        found = Ring((), self.partitions)
        found.members, found.deal, found.places = (
            self.members, self.deal, places)
        found._ring, found._owners = self._ring, self._owners
        return found

    def shards(self, member: str) -> frozenset[str]:
        """Name the shards that are for a member.

        :param member: its canonical name
        """
        return self.deal.of(member) if self.deal else frozenset()

    def owner(self, node: str) -> str | None:
        """Return the desired owner of a node.

        :param node: the node's UUID
        :returns: the canonical host name of a member; None if the ring has no
            members
        """
        if self.deal and (shard := self.places.get(node)) is not None and (
                found := self.deal.owners.get(shard)) is not None:
            return found
        # Asked of every node several times a pass.
        return self._owners.get(node) or self.by_name(node)

    def by_name(self, name: str) -> str | None:
        """Return the member that something is for, whatever shard it is in.

        :param name: what is to be mapped, such as a node's UUID
        :returns: as :meth:`owner`
        """
        found = self._owners.get(name)
        if found is None and self.members:
            (found,) = self._ring.get_nodes(name.encode())
            self._owners[name] = found
        return found

    def forget(self, nodes: int) -> None:
        """Forget the answers if most of them are for nodes that have gone.

        :param nodes: how many nodes there are
        """
        if len(self._owners) > 2 * nodes + _OTHERS:
            self._owners.clear()

    def successors(self, node: str) -> Iterator[str]:
        """Return the services that the node would go to, one after the other.

        :param node: the node's UUID
        :returns: the canonical host names of all members: the desired owner,
            then who is the desired owner if that one leaves, and so on
        """
        if self.deal is None:
            passed: set[str] = set()
            while len(passed) < len(self.members):
                (found,) = self._ring.get_nodes(
                    node.encode(), ignore_nodes=passed)
                yield found
                passed.add(found)
            return
        left = self
        while (successor := left.owner(node)) is not None:
            yield successor
            left = left.among(left.members - {successor})
