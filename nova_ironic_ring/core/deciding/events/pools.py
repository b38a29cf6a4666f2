# SPDX-License-Identifier: Apache-2.0

"""What happens to pools of nodes."""

from collections.abc import Sequence
import dataclasses

from nova_ironic_ring.core.deciding.events import base
from nova_ironic_ring.core.values import plural


@dataclasses.dataclass(frozen=True)
class PoolsCounted(base.Event):
    """A pass of a service with pools is over.

    :ivar pools: how many pools it has
    :ivar nodes: how many nodes count in them
    :ivar free: the number of these nodes that can be built on
    :ivar changed: whether the pools have other nodes than before
    """

    pools: int
    nodes: int
    free: int
    changed: bool

    def level(self) -> base.Level:
        return base.Level.INFO if self.changed else base.Level.DEBUG

    def text(self) -> str:
        return (f'{plural.of(self.nodes, "node is", "nodes are")} in '
                f'{plural.of(self.pools, "pool")} of this service; '
                f'{self.free} of them can be built on.')


@dataclasses.dataclass(frozen=True)
class NodesPooled(base.Event):
    """Nodes count in pools now, and no longer have records of their own.

    :ivar nodes: UUIDs of the nodes
    """

    LEVEL = base.Level.INFO

    nodes: Sequence[str]

    def text(self) -> str:
        nodes = plural.of(len(self.nodes), 'node is', 'nodes are')
        return (f'{nodes} in pools now, such as {self.nodes[0]}: the record '
                'and the resource provider of each are gone.')


@dataclasses.dataclass(frozen=True)
class PoolsTooSmall(base.Event):
    """There are nearly as many pools as nodes.

    :ivar pools: how many pools the service has
    :ivar nodes: how many nodes count in them
    """

    LEVEL = base.Level.WARNING

    pools: int
    nodes: int

    def text(self) -> str:
        return (f'The {self.nodes} nodes of this service are in {self.pools} '
                'pools: nearly each has traits or capabilities that no other '
                'has. Each pool costs as much as a node costs with '
                'IronicRingDriver.')


@dataclasses.dataclass(frozen=True)
class PoolsLeftOut(base.Event):
    """There are more kinds of nodes than pools that a service may make.

    :ivar limit: how many pools without instances it makes at most
    :ivar pools: how many it has
    :ivar left_out: the number of kinds that it makes no pool of
    :ivar nodes: UUIDs of the nodes of these kinds, in order
    """

    LEVEL = base.Level.WARNING

    limit: int
    pools: int
    left_out: int
    nodes: Sequence[str]

    def text(self) -> str:
        return ('There are more kinds of nodes than this service makes pools '
                f'of ([ironic_ring] pools_limit is {self.limit}): '
                f'nothing is built on {plural.of(len(self.nodes), "node")} of '
                f'{plural.of(self.left_out, "kind")}, such as '
                f'{self.nodes[0]}. See who has set the traits and '
                'capabilities of these nodes, and name those that flavors ask '
                'for in [ironic_ring] pool_traits and pool_capabilities, or '
                'raise the limit.')


@dataclasses.dataclass(frozen=True)
class PoolsWithinLimit(base.Event):
    """A service has a pool of each kind again.

    :ivar pools: how many it has
    """

    LEVEL = base.Level.INFO

    pools: int

    def text(self) -> str:
        return ('This service has a pool of each kind of its nodes again: '
                f'{plural.of(self.pools, "pool")}.')


@dataclasses.dataclass(frozen=True)
class AllocationsUnknown(base.Event):
    """This service cannot read which instances have allocations of a pool.

    :ivar pool: the name of the pool
    :ivar error: the error
    """

    LEVEL = base.Level.WARNING

    pool: str
    error: Exception

    def text(self) -> str:
        return ('Cannot read from Placement who has allocations of pool '
                f'{self.pool}: each instance in it counts as having one: '
                f'{self.error}')
