# SPDX-License-Identifier: Apache-2.0

"""What happens to nodes and their records."""

from collections.abc import Hashable, Mapping, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding.events import base
from nova_ironic_ring.core.values import plural


@dataclasses.dataclass(frozen=True)
class NodeTaken(base.Move):
    """A free node becomes this service's.

    :ivar node: the node's UUID
    :ivar owner: the name of its owner until now; None if it had none
    :ivar decision: the decision
    """

    node: str
    owner: str | None
    decision: decisions.Decision

    def kind(self) -> Hashable:
        return self.owner, self.decision.name

    def text(self) -> str:
        return f'Node {self.node} of {self.owner} is {self.decision.value}.'

    def text_of_many(self, count: int) -> str:
        return f'{count} nodes of {self.owner} are {self.decision.value}.'


@dataclasses.dataclass(frozen=True)
class NodeOffered(base.Move):
    """A node of this service may be taken by another.

    :ivar node: the node's UUID
    :ivar taker: the canonical name of the other service
    """

    node: str
    taker: str

    def kind(self) -> Hashable:
        return self.taker

    def text(self) -> str:
        return f'Node {self.node} is offered to {self.taker}.'

    def text_of_many(self, count: int) -> str:
        return f'{count} nodes are offered to {self.taker}.'


@dataclasses.dataclass(frozen=True)
class NodesNotOffered(base.Event):
    """Nodes for other services are not offered: Placement does not answer.

    :ivar nodes: UUIDs of the nodes
    :ivar error: the error
    """

    LEVEL = base.Level.WARNING

    nodes: Sequence[str]
    error: Exception

    def text(self) -> str:
        return ('Placement does not tell whether something is to be built on '
                f'{plural.of(len(self.nodes), "free node")} for other '
                f'services, such as {self.nodes[0]}: nothing is offered until '
                f'it does: {self.error}')


@dataclasses.dataclass(frozen=True)
class NodesVanished(base.Event):
    """Too many of a service's nodes are missing to believe them deleted.

    :ivar host: the name of the service
    :ivar is_mine: whether it is this one
    :ivar nodes: UUIDs of the missing nodes, in order
    :ivar total: how many nodes the service has
    :ivar unnamed: how many more are missing of which the names are not known
    :ivar in_pools: whether the nodes are counted in pools, and have no records
    """

    LEVEL = base.Level.ERROR

    host: str
    is_mine: bool
    nodes: Sequence[str]
    total: int
    unnamed: int = 0
    in_pools: bool = False

    def text(self) -> str:
        named = f', such as {self.nodes[0]}' if self.nodes else ''
        if not self.is_mine:
            whose = f'{self.host}, which is absent or dead{named}'
        elif self.unnamed:
            whose = 'the pools of this service before its start'
        else:
            whose = f'this service{named}'
        kept = ('they are still counted, and reserved' if self.in_pools
                else 'none of their records is deleted')
        return (f'Ironic does not show {len(self.nodes) + self.unnamed} of '
                f'{plural.of(self.total, "node")} of {whose}: {kept}. See '
                "whether Nova's account in [ironic] may still see all nodes; "
                'if they were deleted on purpose, set [ironic_ring] '
                'vanished_nodes_limit to 100 and send SIGHUP.')


@dataclasses.dataclass(frozen=True)
class NodeKept(base.Event):
    """A node is missing from Ironic, and Nova has an instance on it.

    Its record is not deleted, for that would take the instance's allocation.

    :ivar node: the node's UUID
    :ivar instance: the UUID of the instance
    """

    LEVEL = base.Level.ERROR

    node: str
    instance: str

    def text(self) -> str:
        return (f'Ironic does not show node {self.node} any more, and Nova '
                f'has instance {self.instance} on it: its record is kept. See '
                "whether Nova's account in [ironic] may still see the node; "
                'if the node was deleted on purpose, delete the server.')


@dataclasses.dataclass(frozen=True)
class NodesBack(base.Event):
    """The nodes that had vanished are there again, or believed deleted."""

    LEVEL = base.Level.INFO

    def text(self) -> str:
        return ('The nodes of this service that had vanished are there again, '
                'or believed deleted.')


@dataclasses.dataclass(frozen=True)
class HandoversUnknown(base.Event):
    """It cannot be seen yet whether builds are left on nodes handed over.

    :ivar error: the error
    """

    LEVEL = base.Level.WARNING

    error: Exception

    def text(self) -> str:
        return ('Whether builds are on their way to former owners of nodes '
                f'cannot be seen, and is looked at again: {self.error}')


@dataclasses.dataclass(frozen=True)
class RecordRemoved(base.Event):
    """The record of a dead service's node was deleted: Ironic has no node.

    :ivar node: the UUID of the node
    :ivar host: the name of the dead service
    """

    LEVEL = base.Level.INFO

    node: str
    host: str

    def text(self) -> str:
        return (f'Node {self.node} of {self.host}, which is absent or dead, '
                'is not in Ironic any more: its record is deleted.')


@dataclasses.dataclass(frozen=True)
class RecordNotRemoved(base.Event):
    """The record of a dead service's node could not be deleted.

    :ivar node: the UUID of the node; None if it could not be looked for any
    :ivar host: the name of the dead service; None if it is that of all
    :ivar reason: the error, or what stands in the way
    """

    LEVEL = base.Level.ERROR

    node: str | None
    host: str | None
    reason: object

    def text(self) -> str:
        if self.node is None:
            return ('What dead services have left behind cannot be looked '
                    f'for: {self.reason}')
        return (f'What is left of node {self.node} of {self.host} cannot be '
                f'removed: {self.reason}')


@dataclasses.dataclass(frozen=True)
class PassDone(base.Event):
    """A pass is over.

    :ivar counts: how often each decision was made
    :ivar moves: whether anything moves because of it
    """

    counts: Mapping[decisions.Decision, int]
    moves: bool

    def level(self) -> base.Level:
        return base.Level.INFO if self.moves else base.Level.DEBUG

    def text(self) -> str:
        counts = ', '.join(f'{count} {decision.value}'
                           for decision, count in self.counts.items())
        nodes = plural.of(sum(self.counts.values()), 'node')
        return f'Of {nodes}, {counts or "none"}.'
