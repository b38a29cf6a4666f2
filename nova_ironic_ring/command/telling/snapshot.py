# SPDX-License-Identifier: Apache-2.0

"""The knowledge of the command about a deployment at one time.

Records in, answers out: this module has the data, and does not read them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Sequence
import dataclasses
import datetime
import functools
import re
from typing import TypeAlias

from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import rings
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile as profiles


@dataclasses.dataclass(frozen=True)
class Service:
    """A nova-compute.

    :ivar record: its record in Nova
    :ivar cell: the name of its cell
    :ivar reason: why it was disabled, if a reason was given
    :ivar aggregates: the host aggregates that it is in, each with its
        availability zone if it has one
    """

    record: model.Service
    cell: str
    reason: str | None = None
    aggregates: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate.

    :ivar name: its name, with its availability zone if it has one
    :ivar hosts: its hosts, as Nova has them
    :ivar providers: the UUIDs of the resource providers that Placement has in
        it; None where it was not asked
    """

    name: str
    hosts: frozenset[str]
    providers: frozenset[str] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row(model.Row):
    """The record of a node, or of a pool.

    :ivar node: the node's UUID, or the pool's name
    :ivar cell: the name of the cell that it is in
    """

    node: str
    cell: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Member(model.Member):
    """The member record of a service.

    :ivar cell: the name of the cell that it is in
    :ivar profile: the report of the service; None if it cannot be read
    :ivar failed: the nodes on which builds of the service have failed, by UUID
    """

    cell: str
    profile: profiles.Profile | None = None
    failed: failures.Failures = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instance(model.Instance):
    """An instance.

    :ivar uuid: its UUID
    :ivar name: its name
    :ivar cell: the name of its cell
    :ivar project: the ID of its project; empty where it was not read
    """

    uuid: str
    name: str
    cell: str
    project: str = ''

    @property
    def pool(self) -> str | None:
        """The name of its pool; None if it is in none."""
        return self.node if self.host is not None and pools.is_of(
            self.host, self.node) else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Node(pools.Node):
    """A node of Ironic.

    Without pools, its kind, its size and whether it is ready are not read.

    :ivar uuid: its UUID
    :ivar name: its name, if it has one
    :ivar group: its conductor group
    :ivar shard: its shard, if it has one
    :ivar resource_class: its resource class in Ironic; None if it has none;
        empty where it was not read
    :ivar is_available: whether Ironic says that it could be deployed now, but
        for an instance on it
    """

    uuid: str
    name: str | None = None
    group: str = ''
    shard: str | None = None
    resource_class: str | None = ''
    is_available: bool = False

    @property
    def placement_class(self) -> str:
        """The name of its resource class in Placement; empty for none."""
        return 'CUSTOM_' + re.sub('[^A-Z0-9]+', '_', (
            self.resource_class.upper())) if self.resource_class else ''


@dataclasses.dataclass(frozen=True)
class Inventory(pools.Inventory):
    """What Placement has of a pool.

    :ivar used: how many nodes have an allocation
    """

    used: int = 0

    @property
    def free(self) -> int:
        """The number of nodes to which the scheduler may still send builds."""
        return max(0, self.total - self.reserved - self.used)


# The class has members of the modules' names.
_Key: TypeAlias = rings.Key
_Kind: TypeAlias = pools.Kind
_Ring: TypeAlias = ring.Ring
_Desired: TypeAlias = rings.Desired
_Peer: TypeAlias = rings.Peer
_Rings: TypeAlias = rings.Rings


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The data read of a deployment.

    :ivar now: when, with time zone
    :ivar down_time: seconds without a heartbeat after which a service is late
    :ivar services: the nova-computes
    :ivar rows: the records of nodes of Ironic, by node
    :ivar instances: by UUID
    :ivar nodes: what Ironic has, by UUID
    :ivar others: canonical names of the services with another driver
    :ivar other_rows: canonical names of the hosts that have records of nodes
        that are not of Ironic, whether or not they have others as well
    :ivar providers: the UUIDs of the resource providers that are named as
        nodes are; None if nobody has asked Placement
    :ivar pool_providers: the names of the resource providers of pools that
        Placement has; empty if nobody has asked Placement
    :ivar cell: the name of the only cell that is meant; None for all
    :ivar allocated: who has allocations of a node, by the node's UUID; of the
        nodes that Placement was asked for
    :ivar unallocated: the UUIDs of instances that have no allocation, as far
        as Placement was asked
    :ivar pools: the records of pools, by the pool's name
    :ivar members: the member records of services, by canonical name
    :ivar inventories: what Placement has of the pools that it was asked for,
        by the pool's name
    :ivar aggregates: the host aggregates, by UUID
    :ivar unread: why a cell could not be read, in a sentence, by the name of
        the cell; empty for one that nobody wanted
    :ivar twice: the names of the cells of each node that has a record in more
        than one, by node
    :ivar is_start_unlimited: whether a nova-compute with the nova.conf of this
        host waits for Placement without end when it starts
    """

    now: datetime.datetime
    down_time: float
    services: Sequence[Service]
    rows: Mapping[str, Row]
    instances: Mapping[str, Instance]
    nodes: Mapping[str, Node]
    others: frozenset[str] = frozenset()
    other_rows: frozenset[str] = frozenset()
    providers: frozenset[str] | None = None
    pool_providers: frozenset[str] = frozenset()
    cell: str | None = None
    allocated: Mapping[str, frozenset[str]] = dataclasses.field(
        default_factory=dict)
    unallocated: frozenset[str] = frozenset()
    pools: Mapping[str, Row] = dataclasses.field(default_factory=dict)
    members: Mapping[str, Member] = dataclasses.field(default_factory=dict)
    inventories: Mapping[str, Inventory] = dataclasses.field(
        default_factory=dict)
    aggregates: Mapping[str, Aggregate] = dataclasses.field(
        default_factory=dict)
    unread: Mapping[str, str] = dataclasses.field(default_factory=dict)
    twice: Mapping[str, frozenset[str]] = dataclasses.field(
        default_factory=dict)
    is_start_unlimited: bool = False

    def is_meant(self, cell: str | None) -> bool:
        """Return whether something in a cell is selected.

        :param cell: the name of the cell; None if it is in none
        """
        return None in (cell, self.cell) or cell == self.cell

    @functools.cached_property
    def hosts(self) -> dict[str, Service]:
        """The services that may run an ironic driver, by canonical name."""
        return {name: service for service in self.services
                if (name := model.canonical(service.record.host))
                not in self.others}

    @functools.cached_property
    def failed(self) -> failures.Failures:
        """The nodes on which builds have failed, as their services say."""
        said = failures.merged(*(
            each.failed for each in self.members.values()))
        return {node: failure for node, failure in said.items()
                if failure.count}

    @functools.cached_property
    def owners(self) -> frozenset[str]:
        """The hosts that have a node or a pool, by canonical name."""
        return frozenset(self._records)

    @functools.cached_property
    def known(self) -> frozenset[str]:
        """The hosts that their peers know, by canonical name.

        They have a node, a pool or a member record.
        """
        return self.owners.union(self.members)

    @functools.cached_property
    def _records(self) -> dict[str, list[Row]]:
        """The records of nodes and pools, by the owner's canonical name."""
        found: dict[str, list[Row]] = {}
        for row in (*self.rows.values(), *self.pools.values()):
            found.setdefault(model.canonical(row.owner), []).append(row)
        return found

    def has_pools(self, host: str, key: _Key | None = None) -> bool:
        """Return whether a service seems to have the pool driver.

        A service that its peers do not know counts as having the driver of
        most of them.

        :param host: its canonical name
        :param key: its ring, or the ring that it joins; None to look it up
        """
        if host in self._pooled:
            return self._pooled[host]
        key = key or (self.key(host) if host in self.hosts else None)
        found = [is_pooled for peer, is_pooled in self._pooled.items()
                 if peer in self.hosts and self.key(peer) == key]
        return 2 * sum(found) > len(found)

    @functools.cached_property
    def _pooled(self) -> dict[str, bool]:
        """Whether each service that its peers know has the pool driver.

        One that has changed its driver may have records of both kinds, of
        nodes and of pools: its member record is of its current driver.
        """
        return {**{host: any(row.node in self.pools for row in rows)
                   for host, rows in self._records.items()},
                **{host: said.has_pools for host, said in self.members.items()
                   if said.profile is not None}}

    @functools.cached_property
    def profiles(self) -> dict[str, profiles.Profile]:
        """The reports of services, by canonical name."""
        return {host: said.profile for host, said in self.members.items()
                if said.profile is not None}

    def held(self, host: str) -> frozenset[str]:
        """Return the codes of the shards that a service reports to hold.

        :param host: its canonical name
        """
        said = self.members.get(host)
        return said.held if said else frozenset()

    @functools.cached_property
    def _peers(self) -> dict[str, _Peer]:
        """The services that may run an ironic driver, with their reports."""
        return {host: rings.Peer(
            dataclasses.replace(service.record, said=model.Member(
                self._last_pass(host))),
            service.cell, self.profiles.get(host), self.held(host),
            host in self.known) for host, service in self.hosts.items()}

    @functools.cached_property
    def _looked(self) -> _Rings:
        return rings.Rings(self._peers, self.now, self.down_time)

    @property
    def states(self) -> Mapping[str, membership.State]:
        """The state of each service, by canonical name.

        A single look cannot distinguish a late service from an absent one: a
        late one counts as absent.
        """
        return self._looked.states

    def state(self, host: str) -> membership.State:
        """Return the state of a service.

        :param host: its name, in any case
        """
        return self.states.get(model.canonical(host), membership.State.GONE)

    def _last_pass(self, host: str) -> model.LastPass | None:
        """Return what a service says of its passes.

        :param host: its canonical name
        """
        said = self.members.get(host)
        return said.last_pass if said else None

    def taker(self, row: Row) -> str | None:
        """Say who may take a free node, by the ring of its owner.

        :param row: its row
        :returns: the canonical name of another service; None if nobody may
        """
        host, node = row.owner_name, self.nodes.get(row.node)
        key, said = (self.key(host) if host in self.hosts else None,
                     self.members.get(host))
        if said is None or node is None or node.instance is not None or (
                key not in self.rings
                or not said.consents(
                    self.rings[key].fingerprint(key.scope), key.scope)):
            return None
        desired = self.rings[key].owner(node.uuid)
        return None if desired == host else desired

    def last_pass(self, host: str) -> datetime.datetime | None:
        """Return the time of the last good pass of a service.

        :param host: its canonical name
        :returns: None if it does not report one
        """
        said = self._peers[host].record.last_pass
        return said.at if said else None

    def word(self, host: str) -> str:
        """Return the state of a service in an operator's word.

        "Down" is the state of a late service in Nova's API.

        :param host: its name, in any case
        """
        state = self.state(host)
        return 'down' if state is membership.State.ABSENT else state.value

    def lives(self, host: str) -> bool:
        """Return whether a service has a recent heartbeat, in any state.

        :param host: its name, in any case
        """
        service = self.hosts.get(model.canonical(host))
        return service is not None and not membership.is_late(
            service.record, self.now, self.down_time)

    def key(self, host: str) -> _Key | None:
        """Return the ring of a service.

        :param host: its canonical name
        :returns: None if it is not known
        """
        return self._looked.keys[host]

    def keys(self) -> list[_Key]:
        """Name the rings, in their order."""
        return self._looked.known()

    @property
    def needs_shards(self) -> bool:
        """Whether desired owners depend on the shards of all nodes.

        Nova's records do not have them.
        """
        return any(said.listing == 'shards' for said in
                   self.profiles.values())

    @functools.cached_property
    def rings(self) -> dict[_Key, _Ring]:
        """Each ring as its members see it, in their order."""
        return {key: self._looked.ring(key, {
            node.uuid: node.shard for node in self.served(key)
            if node.shard is not None}) for key in self._looked.known()}

    def served(self, key: _Key) -> list[Node]:
        """Return the nodes that a ring divides.

        In a ring without limits, these are also the ones of other groups. A
        node without a record may belong to a cell that was not read.

        :param key: the ring
        """
        is_known = not self.unread or key.scope.is_limited or any(
            row.cell == key.cell for row in self.pools.values())
        return [node for node in self.nodes.values()
                if key.scope.has(node.group, node.shard)
                and (self.rows[node.uuid].cell == key.cell
                     if node.uuid in self.rows else is_known)]

    @functools.cached_property
    def desired(self) -> _Desired:
        """The ring and the desired owner of each node."""
        return rings.Desired(self.rings, {
            key: [node.uuid for node in self.served(key)]
            for key in self.rings})

    def kind(self, host: str, node: Node) -> _Kind | None:
        """Return the kind of a node for a service.

        :param host: the canonical name of the service
        :param node: the node
        :returns: None if it can be in no pool
        """
        said = self.profiles.get(host)
        return node.kind if said is None else said.kind_rule.kind(node.kind)

    def instance_on(self, node: Node) -> Instance | None:
        """Return the instance on a node, if Nova has it.

        :param node: the node
        """
        return self.instances.get(node.instance) if node.instance else None

    def find(self, name: str) -> Node:
        """Find a node.

        :param name: its UUID, its name, the UUID or the name of the instance
            on it, or the beginning of its UUID
        :raises ValueError: if there is none, or more than one
        """
        return find(self.nodes.values(), name, self.instances.values())

    def service(self, name: str) -> Service:
        """Find a service that may run an ironic driver.

        :param name: its host name, in any case
        :raises ValueError: if there is none, or more than one
        """
        host = model.canonical(name)
        found = [service for service in self.services
                 if model.canonical(service.record.host) == host
                 and self.is_meant(service.cell)]
        if len(found) > 1:
            raise ValueError(
                f'There is a nova-compute on "{name}" in more than one cell '
                f'({", ".join(service.cell for service in found)}): choose '
                'one with --cell.')
        if not found:
            raise ValueError(' '.join([
                f'There is no nova-compute on "{name}": the hosts are '
                f'{_list(each.record.host for each in self.services)}.',
                # It may be in a cell that does not answer.
                *filter(None, self.unread.values())]))
        if host in self.others:
            raise ValueError(
                f'The nova-compute on "{name}" does not run an ironic '
                'driver: nothing of it is in a ring.')
        return found[0]


def find(nodes: Collection[Node], name: str,
         instances: Iterable[Instance]) -> Node:
    """Find a node.

    :param nodes: the nodes
    :param name: as :meth:`Snapshot.find` has it
    :param instances: those of Nova
    :raises ValueError: if there is none, or more than one
    """
    found = [node for node in nodes
             if name in (node.uuid, node.name, node.instance)]
    if not found:
        # A project may name a server like the beginning of a node's UUID: then
        # the name is ambiguous.
        called = named(instances, name)
        found = [node for node in nodes
                 if called is not None and node.instance == called
                 or is_beginning(name) and node.uuid.startswith(name)]
    if not found:
        raise ValueError(
            f'Ironic has no node "{name}", and none with such a server: give '
            'the name or UUID of a node ("nova-ironic-ring node list" has '
            'them), or of the server on it ("openstack server list '
            '--all-projects").')
    if len(found) > 1:
        raise ValueError(
            f'"{name}" fits {len(found)} nodes, {found[0].uuid} and '
            f'{found[1].uuid} among them: give the whole UUID.')
    return found[0]


def is_beginning(name: str) -> bool:
    """Return whether a name may be the beginning of a node's UUID.

    :param name: the name
    """
    return len(name) >= 4 and set(name) <= set('0123456789abcdef-')


def named(instances: Iterable[Instance], name: str) -> str | None:
    """Find the instance that has a name.

    :param instances: all that may have it
    :param name: the name
    :returns: its UUID; None if there is none
    :raises ValueError: if there is more than one
    """
    found = sorted(each.uuid for each in instances if each.name == name)
    if len(found) > 1:
        raise ValueError(
            f'There are {len(found)} servers "{name}", {found[0]} and '
            f'{found[1]} among them: give the UUID of one.')
    return found[0] if found else None


def _list(names: Iterable[str]) -> str:
    """Join names, up to a limit."""
    names = sorted(names)
    return ', '.join(names[:20]) + (', ...' if len(names) > 20 else '') or (
        'none')


def recorded(seen: Snapshot) -> dict[str, Node]:
    """Return the nodes of Nova's records, as far as these describe them.

    A node gets the conductor group and the shard of its owner. Nodes of pools
    are not known here.

    :param seen: what was read of Nova
    :returns: by UUID
    """
    held = _held(seen)
    found = {}
    for uuid, row in seen.rows.items():
        said = seen.profiles.get(model.canonical(row.owner))
        found[uuid] = Node(
            None, held.get(uuid), uuid=uuid,
            group=(said.conductor_group or '') if said else '',
            shard=said.shard if said else None)
    return found


def renewed(before: Snapshot, now: Snapshot
            ) -> Snapshot:
    """Return what is known after only Nova was asked again.

    :param before: what was known
    :param now: what Nova says by now
    """
    return dataclasses.replace(
        before, now=now.now, services=now.services, rows=now.rows,
        pools=now.pools, members=now.members, instances=now.instances,
        others=now.others, other_rows=now.other_rows,
        nodes={**{uuid: node for uuid, node in recorded(now).items()
                  if uuid not in before.nodes},
               **{node.uuid: node for node in _kept(before, now)}})


def _kept(before: Snapshot, now: Snapshot
          ) -> Iterator[Node]:
    """Return the known nodes that still exist."""
    held = _held(now)
    for uuid, node in before.nodes.items():
        # A service deletes its record when Ironic no longer has the node.
        if uuid in before.rows and uuid not in now.rows:
            continue
        instance = node.instance
        if instance in before.instances and instance not in now.instances:
            instance = None
        yield dataclasses.replace(node, instance=held.get(uuid, instance))


def _held(seen: Snapshot) -> dict[str, str]:
    """Return the instance that Nova has on each node, by the node's UUID."""
    return {instance.node: instance.uuid
            for instance in seen.instances.values()
            if instance.node is not None and instance.host is not None}
