# SPDX-License-Identifier: Apache-2.0

"""Pools: the nodes of Ironic that the scheduler cannot tell apart.

With the pool driver, a compute node is a pool of one service, and its
inventory is a count of nodes. This module decides which node counts in which
pool, from values alone.
"""

import collections
from collections.abc import Iterable, Mapping
import dataclasses
import hashlib
import string
import uuid

from nova_ironic_ring.core.values import merging
from nova_ironic_ring.core.values import model

# Never change it: the UUIDs of pools are made of it.
_NAMESPACE = uuid.UUID('6f0c9a52-2d2b-4d5e-9a3c-0b8f1d7e4c61')
_ALLOWED = frozenset(string.ascii_letters + string.digits + '-_')
# With a resource class of at most 87 characters the name has less than 200.
_LONGEST_HOST = 80
_LONGEST_CLASS = 100
_DIGITS = 8
_HEX = frozenset('0123456789abcdef')


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """What the scheduler may ask of a node: alike for all nodes of a pool.

    :ivar resource_class: the resource class, as Placement has it
    :ivar traits: the traits
    :ivar properties: names and values that a filter may ask for: the
        architecture and the capabilities
    :ivar architecture: the architecture whose images can be used, '' for any;
        None if the properties tell it, which a capability of the same name may
        hide
    """

    resource_class: str
    traits: frozenset[str] = frozenset()
    properties: frozenset[tuple[str, str]] = frozenset()
    architecture: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """The size of something.

    :ivar memory: memory in MB
    :ivar disk: disk in GB
    :ivar cpus: number of processors
    """

    memory: int = 0
    disk: int = 0
    cpus: int = 0

    def __add__(self, other: 'Size') -> 'Size':
        return Size(self.memory + other.memory, self.disk + other.disk,
                    self.cpus + other.cpus)


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """What Ironic says of a node.

    :ivar kind: its kind; None if it has no resource class, so that nothing can
        be built on it
    :ivar instance: the UUID of the instance on it, None for a free one
    :ivar is_ready: whether Ironic would deploy it now, if it is free
    :ivar size: how large it is
    """

    kind: Kind | None
    instance: str | None = None
    is_ready: bool = True
    size: Size = Size()

    @property
    def is_free(self) -> bool:
        """Whether an instance can be built on it now."""
        return self.is_ready and self.instance is None


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory of a pool in Placement.

    :ivar total: the number of nodes; Placement needs at least one
    :ivar reserved: the number of nodes that cannot be built on, not counting
        those that have an allocation
    """

    total: int = 1
    reserved: int = 1

    def with_room(self, used: int, more: int = 1) -> 'Inventory':
        """Return an inventory that has room for some more allocations.

        It reserves as many fewer nodes as needed; if that is not enough, it
        counts more nodes.

        :param used: how many nodes are allocated
        :param more: how many allocations are to come
        """
        if self.total - self.reserved - used >= more:
            return self
        total = max(self.total, used + more)
        return Inventory(total, total - used - more)


@dataclasses.dataclass(frozen=True)
class Pool(merging.Merged):
    """A pool of a service, as it was at one time.

    :ivar name: its name, which is the node's name to Nova
    :ivar kind: its kind; None if no node of it has been seen
    :ivar nodes: the nodes that count, by UUID
    :ivar used: those of them with an instance that has its allocation of the
        pool
    :ivar is_hidden: whether Ironic does not show the nodes that it has
    :ivar missing: how many nodes more it had when its service was started,
        which Ironic does not show
    :ivar missing_used: how many of these have an instance with its allocation
    """

    name: str
    kind: Kind | None = None
    nodes: Mapping[str, Node] = dataclasses.field(default_factory=dict)
    used: frozenset[str] = frozenset()
    is_hidden: bool = False
    missing: int = 0
    missing_used: int = 0

    @property
    def uuid(self) -> str:
        """The UUID of its compute node and resource provider."""
        return uuid_of(self.name)

    @property
    def free(self) -> list[str]:
        """The nodes that something can be built on now."""
        return [uuid for uuid, node in self.nodes.items() if node.is_free]

    @property
    def room(self) -> Size:
        """How large the nodes are that something can be built on now."""
        return sum((node.size for node in self.nodes.values()
                    if node.is_free), Size())

    def inventory(self, released: frozenset[str] = frozenset()) -> Inventory:
        """Count the nodes.

        It counts nodes, never instances: so a build that has no node yet takes
        only its allocation from the pool.

        :param released: nodes that have lost their instance since the pool
            was counted
        """
        total = len(self.nodes) + self.missing
        if not total:
            return Inventory()
        # A build may have got a node that does not count here.
        elsewhere = len(released - self.nodes.keys())
        countable = self.missing_used + len(self.used - released) + len(
            set(self.free) - released) - elsewhere
        return Inventory(total, total - max(countable, 0))


def name(host: str, kind: Kind) -> str:
    """Return the name of a pool of a service.

    :param host: the name of the service
    :param kind: the kind of the nodes
    :returns: less than 200 letters, digits, dashes, dots and underscores
    """
    # Where the properties tell the architecture, the name is the one that
    # releases have given which did not look at it.
    hidden = () if kind.architecture is None else (kind.architecture,)
    rest = repr((model.canonical(host), kind.resource_class,
                 sorted(kind.traits), sorted(kind.properties), *hidden))
    return '.'.join((
        _bounded(model.canonical(host), _LONGEST_HOST),
        _bounded(kind.resource_class, _LONGEST_CLASS), _digest(rest)))


def uuid_of(pool: str) -> str:
    """Return the UUID of a pool, which is the same after every restart.

    :param pool: its name
    """
    return str(uuid.uuid5(_NAMESPACE, pool))


def is_pool(node: str | None) -> bool:
    """Return whether the name of a compute node is that of a pool.

    :param node: the name of the compute node, if there is one
    """
    parts = str(node or '').rsplit('.', 2)
    return len(parts) == 3 and len(parts[2]) == _DIGITS and (
        set(parts[2]) <= _HEX)


def is_of(host: str, node: str | None) -> bool:
    """Return whether the name of a compute node is that of a service's pool.

    :param host: the name of the service
    :param node: the name of the compute node, if there is one
    """
    return is_pool(node) and str(node).rsplit('.', 2)[0] == _bounded(
        model.canonical(host), _LONGEST_HOST)


def is_class_of(node: str | None, resource_class: str) -> bool:
    """Return whether the nodes of a pool are counted by a resource class.

    A pool may have more classes in Placement, which others have put there.

    :param node: the name of the compute node, if there is one
    :param resource_class: the class, as Placement has it
    :returns: False where the compute node is no pool
    """
    return is_pool(node) and str(node).rsplit('.', 2)[1] == _bounded(
        resource_class, _LONGEST_CLASS)


def has(instance: model.Instance, node: str) -> bool:
    """Return whether Nova has an instance on a node, or in a pool.

    Ironic's word alone is not enough: whoever owns a node there may write any
    instance into it.

    :param instance: what Nova says of it
    :param node: the UUID of the node that Ironic has it on
    """
    return instance.node == node or (
        instance.host is not None and is_of(instance.host, instance.node))


def provider(place: str) -> str:
    """Return the UUID of the row and the provider of a compute node.

    :param place: its name: that of a pool, or the UUID of a node
    """
    return uuid_of(place) if is_pool(place) else place


def _bounded(text: str, longest: int) -> str:
    """Return a text as a name may have it, and different for each text."""
    clean = ''.join(letter if letter in _ALLOWED or letter == '.' else '-'
                    for letter in text)
    if clean == text and len(text) <= longest:
        return text
    return f'{clean[:longest - _DIGITS - 1]}-{_digest(text)}'


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def group(host: str, nodes: Mapping[str, Node], counts: Mapping[str, str],
          named: Iterable[str] = (),
          before: Mapping[str, Pool] | None = None) -> dict[str, Pool]:
    """Group the nodes of a service into pools.

    A node with an instance is in the pool that Nova has the instance in, even
    if its kind has changed since. A pool without nodes exists if something
    names it.

    Whoever may write capabilities can find some that give a pool the name of
    another pool. Of two such kinds, the pool keeps its former kind, or else
    takes the kind of more nodes. The nodes of the other kind are in no pool,
    unless they have an instance.

    :param host: the name of the service
    :param nodes: what Ironic says of the nodes, by UUID
    :param counts: the name of the pool of each node that counts, by UUID
    :param named: the names of pools to be made even without nodes
    :param before: the pools as they were, by name
    :returns: by name; which instances have an allocation is not known yet
    """
    found: dict[str, dict[str, Node]] = {pool: {} for pool in named}
    for node, pool in counts.items():
        found.setdefault(pool, {})[node] = nodes[node]
    kinds: dict[str, Kind] = {}
    numbers = collections.Counter(
        kind for node in counts if (kind := nodes[node].kind) is not None)
    for kind, _ in numbers.most_common():
        pool = name(host, kind)
        if pool not in kinds:
            kinds[pool] = kind
            continue
        known = (before or {}).get(pool)
        other = kind
        if known is not None and known.kind == kind:
            other, kinds[pool] = kinds[pool], kind
        found[pool] = {
            node: said for node, said in found.get(pool, {}).items()
            if said.kind != other or said.instance is not None}
    return {pool: Pool(pool, kinds.get(pool), members)
            for pool, members in found.items()}


def rows_of_nodes(rows: Mapping[str, model.Row]) -> dict[str, model.Row]:
    """Return the records of nodes, without those of pools.

    :param rows: records of both, by UUID
    """
    return {node: row for node, row in rows.items() if row.pool is None}


def recorded(rows: Mapping[str, model.Row]) -> list[str]:
    """Name the pools that have a record, in their order.

    :param rows: records of nodes and of pools, by UUID
    """
    return sorted(row.pool for row in rows.values() if row.pool)
