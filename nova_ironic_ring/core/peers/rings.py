# SPDX-License-Identifier: Apache-2.0

"""All rings of services, as an observer sees them that looks once.

A service knows its own ring, and watches its peers all the time. The command
sees every ring, but only once: it uses what the services report about
themselves, and counts a late service as absent.
"""

from collections.abc import Collection, Iterator, Mapping
import dataclasses
import datetime

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import profile as profiles
from nova_ironic_ring.core.values import settings


@dataclasses.dataclass(frozen=True)
class Key:
    """What makes services one ring.

    :ivar cell: the name of their cell
    :ivar scope: the nodes that they divide; its group is in lower case
    """

    cell: str
    scope: model.Scope = model.Scope()

    @property
    def order(self) -> tuple:
        """What rings are sorted by."""
        group = self.scope.conductor_group
        return (self.cell, group or '', group is not None,
                self.scope.shard or '')

    def __str__(self) -> str:
        parts = [f'cell {self.cell}']
        if self.scope.conductor_group is not None:
            parts.append(f'group "{self.scope.conductor_group}"')
        if self.scope.shard:
            parts.append(f'shard "{self.scope.shard}"')
        return ', '.join(parts)


@dataclasses.dataclass(frozen=True)
class Peer:
    """A service, and what it reports about itself.

    :ivar record: what Nova says of it, with what it says of its passes
    :ivar cell: the name of its cell
    :ivar profile: its configuration; None if it says nothing
    :ivar held: the codes of the shards that it says it holds
    :ivar is_owner: whether it has a member record, or one of a node or pool
    """

    record: model.Service
    cell: str
    profile: profiles.Profile | None = None
    held: frozenset[str] = frozenset()
    is_owner: bool = False

    @property
    def key(self) -> Key | None:
        """The ring that it says it is in; None if it says nothing."""
        if self.profile is None:
            return None
        group = self.profile.conductor_group
        return Key(self.cell, model.Scope(
            None if group is None else group.lower(),
            self.profile.shard or None))

    @property
    def is_by_shards(self) -> bool:
        """Whether it says that it divides nodes by their shards."""
        return self.profile is not None and self.profile.listing == 'shards'


class Rings:
    """The services of all rings, at one time.

    :ivar keys: the ring that each service is in, by the canonical name of the
        service; None if nobody can tell
    :ivar states: what each service is to its ring, likewise
    """

    def __init__(self, peers: Mapping[str, Peer], now: datetime.datetime,
                 down_time: float) -> None:
        """Look at the services.

        :param peers: the services, by canonical name
        :param now: the present time, with time zone
        :param down_time: seconds without a heartbeat after which a service is
            late
        """
        self._peers = peers
        services = [peer.record for peer in peers.values()]
        work = membership.WorkWatch.of_one_look(services, now)
        watch = membership.Watch.of_one_look(services, now, down_time)
        current = settings.Settings('', down_time, handover_timeout=0)
        self.states = {host: membership.state(
            peer.record, current, watch, work)
            for host, peer in peers.items()}
        self.keys = {host: self._key(peer) for host, peer in peers.items()}

    def _key(self, peer: Peer) -> Key | None:
        """Return the ring that a service is in.

        A service that reports nothing counts in the ring whose peer lists name
        it, or in the only ring of its cell. If it has nodes, it is in no ring
        that uses reports.
        """
        if peer.key is not None:
            return peer.key
        said = [(each.key, each.profile) for each in self._peers.values()
                if each.cell == peer.cell and each.profile is not None]
        known = {key for key, each in said
                 if peer.record.name in each.names} or {
            key for key, each in said if not peer.is_owner
            or each.peers is not None or not each.scope.is_limited}
        if len(known) > 1 or (said and not known):
            return None
        return next(iter(known), Key(peer.cell))

    def known(self) -> list[Key]:
        """Name the rings, in their order."""
        return sorted({key for key in self.keys.values() if key is not None},
                      key=lambda key: key.order)

    def of(self, key: Key) -> dict[str, Peer]:
        """Return the services that are in a ring, or may come to be.

        :param key: the ring
        :returns: by canonical name
        """
        return {host: peer for host, peer in self._peers.items()
                if self.keys[host] == key}

    def ring(self, key: Key, places: Mapping[str, str]) -> ring.Ring:
        """Return a ring as its members see it.

        A service without a record of a node is in no ring: its peers do not
        know it.

        :param key: the ring
        :param places: the shards of the nodes that it divides, by the node's
            UUID
        """
        members = {host: peer for host, peer in self.of(key).items()
                   if peer.is_owner
                   and self.states[host] is membership.State.MEMBER}
        if not members or not all(
                peer.is_by_shards for peer in members.values()):
            return ring.Ring(members, self.partitions(key))
        return ring.Ring(members, self.partitions(key), shards.Deal(
            frozenset(places.values()),
            {host: peer.held for host, peer in members.items()}), places)

    def partitions(self, key: Key) -> int:
        """Return the points for each member that most services have.

        :param key: the ring
        """
        said = [peer.profile.partitions for peer in self.of(key).values()
                if peer.profile is not None]
        return (max(said, key=said.count) if said
                else settings.Settings.partitions)


class Desired:
    """Which ring each node is for, and which member.

    Where one ring has only some of the nodes of another, they are for the
    narrower one, as long as that has a member.
    """

    def __init__(self, rings: Mapping[Key, ring.Ring],
                 served: Mapping[Key, Collection[str]]) -> None:
        """Divide nodes.

        :param rings: all rings
        :param served: the UUIDs of the nodes that each of them divides
        """
        self._rings = rings
        # The last one of those that divide a node decides.
        order = sorted(reversed(list(rings)), key=lambda key: (
            bool(rings[key].members),
            (key.scope.conductor_group is not None) + bool(key.scope.shard)))
        #: The ring that each node is for, by the node's UUID; none of those
        #: that no ring divides.
        self.keys = {node: key for key in order for node in served[key]}

    def owner(self, node: str) -> str | None:
        """Return the desired owner of a node.

        :param node: the node's UUID
        :returns: the canonical name of a member; None if there is none
        """
        key = self.keys.get(node)
        return None if key is None else self._rings[key].owner(node)

    def owners(self) -> dict[str, str]:
        """Return the desired owners of all nodes, by the node's UUID."""
        return {node: owner for node in self.keys
                if (owner := self.owner(node)) is not None}

    def successors(self, node: str) -> Iterator[str]:
        """Return the services that would have a node, one after the other.

        :param node: the node's UUID
        :returns: the canonical names of the members of its ring; the desired
            owner comes first
        """
        key = self.keys.get(node)
        return iter(()) if key is None else self._rings[key].successors(node)
