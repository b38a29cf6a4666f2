# SPDX-License-Identifier: Apache-2.0

"""What happens to nodes and their records."""

from collections.abc import Hashable, Mapping, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding.events import base
from nova_ironic_ring.core.values import plural


@dataclasses.dataclass(frozen=True)
class NodeTaken(base.Move):
    """This service takes a free node.

    :ivar node: the node's UUID
    :ivar owner: the name of its former owner; None if it had none
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
    """Another service may take a node of this service.

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
class NodesNotTaken(base.Event):
    """Nodes could not be taken at once, because of an error.

    :ivar count: the number of nodes
    :ivar error: the error
    """

    LEVEL = base.Level.WARNING

    count: int
    error: Exception

    def text(self) -> str:
        return (f'Cannot take {plural.of(self.count, "node")} directly; the '
                'resource tracker takes them, which is slower: '
                f'{self.error}')


@dataclasses.dataclass(frozen=True)
class NodesVanished(base.Event):
    """Too many of a service's nodes are missing to believe them deleted.

    :ivar host: the name of the service
    :ivar is_mine: whether it is this service
    :ivar nodes: UUIDs of the missing nodes, in order
    :ivar total: how many nodes the service has
    :ivar unnamed: the number of further missing nodes, whose UUIDs are not
        known
    :ivar in_pools: whether the nodes count in pools, and have no records
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

    Its record is kept, because deleting it would delete the instance's
    allocation.

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
    """No node counts as vanished any more."""

    LEVEL = base.Level.INFO

    def text(self) -> str:
        return ('No node of this service counts as vanished any more: the '
                'nodes are back in Ironic, or deleted.')


@dataclasses.dataclass(frozen=True)
class HandoversUnknown(base.Event):
    """The search for builds on nodes that were handed over has failed.

    :ivar error: the error
    """

    LEVEL = base.Level.WARNING

    error: Exception

    def text(self) -> str:
        return ('Cannot find out whether builds are on their way to former '
                'owners of nodes, or lost; the next pass tries again: '
                f'{self.error}')


@dataclasses.dataclass(frozen=True)
class ProvidersUnknown(base.Event):
    """It is not known at the start which nodes have no resource provider.

    :ivar error: the error
    """

    LEVEL = base.Level.WARNING

    error: Exception

    def text(self) -> str:
        return ('Cannot find out whether all nodes of this service have '
                'resource providers; a node without one gets it when the node '
                f'has its turn: {self.error}')


@dataclasses.dataclass(frozen=True)
class RecordRemoved(base.Event):
    """The record of a dead service's node was deleted, as Ironic has none.

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

    :ivar node: the UUID of the node; None if the search itself has failed
    :ivar host: the name of the dead service; None if the search has failed
    :ivar reason: the error, or what prevents the deletion
    """

    LEVEL = base.Level.ERROR

    node: str | None
    host: str | None
    reason: object

    def text(self) -> str:
        if self.node is None:
            return ('Cannot look for what dead services have left behind: '
                    f'{self.reason}')
        return ('Cannot delete the record or resource provider of node '
                f'{self.node} of {self.host}: {self.reason}')


@dataclasses.dataclass(frozen=True)
class PassDone(base.Event):
    """A pass is over.

    :ivar counts: the number of nodes for each decision
    :ivar moves: whether anything moves because of the pass
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
