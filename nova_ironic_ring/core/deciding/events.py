# SPDX-License-Identifier: Apache-2.0

"""What happens in a pass and is worth a line in the log, as values."""

from collections.abc import Mapping, Sequence
import dataclasses
import datetime

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.peers import disputes
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened."""


@dataclasses.dataclass(frozen=True)
class MembersChanged(Event):
    """The ring has other members than before.

    :ivar before: canonical names of the members until now
    :ivar now: what the services are now
    """

    before: frozenset[str]
    now: membership.Membership


@dataclasses.dataclass(frozen=True)
class PassesFail(Event):
    """The passes of another service have failed for long, and it lives.

    :ivar host: its canonical name
    :ivar seconds: for how long this service has watched that
    """

    host: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class TimeoutTooShort(Event):
    """The handover timeout is shorter than two passes of a member.

    :ivar host: the canonical name of the slowest of the members
    :ivar needed: how long its two passes take, in seconds
    :ivar timeout: the handover timeout, in seconds
    """

    host: str
    needed: float
    timeout: float


@dataclasses.dataclass(frozen=True)
class PassesWork(Event):
    """The passes of another service work again.

    :ivar host: its canonical name
    """

    host: str


@dataclasses.dataclass(frozen=True)
class ListingDiffers(Event):
    """Members of the ring do not agree on how to divide the nodes.

    :ivar hosts: canonical names of those that say another ``listing`` than
        this service has; none if all agree again
    :ivar by_shards: whether this service has ``shards``
    """

    hosts: frozenset[str]
    by_shards: bool


@dataclasses.dataclass(frozen=True)
class PeerListDiffers(Event):
    """The peer list is not what the services say of themselves.

    :ivar unlisted: canonical names of live services that say that they have
        the scope of this one, and are not in the list
    :ivar elsewhere: canonical names of services in the list that say that they
        have another scope
    """

    unlisted: frozenset[str]
    elsewhere: frozenset[str]


@dataclasses.dataclass(frozen=True)
class SilentOwners(Event):
    """Services that cannot be peers have nodes of this one's scope.

    They say nothing of their scope, as those with Nova's own driver.

    :ivar hosts: their canonical names
    :ivar scope: the scope
    """

    hosts: frozenset[str]
    scope: model.Scope


@dataclasses.dataclass(frozen=True)
class ScopeEmpty(Event):
    """Ironic has no node in the conductor group or shard of this service.

    :ivar scope: both
    """

    scope: model.Scope


@dataclasses.dataclass(frozen=True)
class TrustChanged(Event):
    """This service goes by what it sees of the others to another degree.

    :ivar before: the trust until now
    :ivar now: the trust from now on
    :ivar down_time: seconds for which all has to be in time
    """

    before: trust.Trust
    now: trust.Trust
    down_time: float


@dataclasses.dataclass(frozen=True)
class NodesVanished(Event):
    """Too many of a service's nodes are missing to believe them deleted.

    :ivar host: the name of the service
    :ivar is_mine: whether it is this one
    :ivar nodes: UUIDs of the missing nodes, in order
    :ivar total: how many nodes the service has
    :ivar unnamed: how many more are missing of which the names are not known
    :ivar in_pools: whether the nodes are counted in pools, and have no records
    """

    host: str
    is_mine: bool
    nodes: Sequence[str]
    total: int
    unnamed: int = 0
    in_pools: bool = False


@dataclasses.dataclass(frozen=True)
class NodeKept(Event):
    """A node is missing from Ironic, and Nova has an instance on it.

    Its record is not deleted, for that would take the instance's allocation.

    :ivar node: the node's UUID
    :ivar instance: the UUID of the instance
    """

    node: str
    instance: str


@dataclasses.dataclass(frozen=True)
class NodesBack(Event):
    """The nodes that had vanished are there again, or believed deleted."""


@dataclasses.dataclass(frozen=True)
class DisputeFound(Event):
    """Another service takes back what this one has taken.

    :ivar host: the canonical name of the other service
    :ivar nodes: UUIDs of the nodes, in order
    """

    host: str
    nodes: Sequence[str]


@dataclasses.dataclass(frozen=True)
class DisputeEnded(Event):
    """Nodes may be taken from another service again without its consent.

    :ivar dispute: the dispute
    """

    dispute: disputes.Ended


@dataclasses.dataclass(frozen=True)
class NodeTaken(Event):
    """A free node becomes this service's.

    :ivar node: the node's UUID
    :ivar owner: the name of its owner until now; None if it had none
    :ivar decision: the decision
    """

    node: str
    owner: str | None
    decision: decisions.Decision


@dataclasses.dataclass(frozen=True)
class NodeOffered(Event):
    """A node of this service may be taken by another.

    :ivar node: the node's UUID
    :ivar taker: the canonical name of the other service
    """

    node: str
    taker: str


@dataclasses.dataclass(frozen=True)
class NodesNotOffered(Event):
    """Nodes for other services are not offered: Placement does not answer.

    :ivar nodes: UUIDs of the nodes
    :ivar error: the error
    """

    nodes: Sequence[str]
    error: Exception


@dataclasses.dataclass(frozen=True)
class InstanceTaken(Event):
    """An instance becomes this service's.

    :ivar node: the UUID of its node
    :ivar instance: the UUID of the instance
    :ivar host: the name of the service that it belonged to
    :ivar is_dead: whether that one is dead; it has consented otherwise
    """

    node: str
    instance: str
    host: str
    is_dead: bool


@dataclasses.dataclass(frozen=True)
class InstanceNotTaken(Event):
    """An instance could not be taken over, because of an error.

    :ivar instance: the UUID of the instance
    :ivar host: the name of the service that it belongs to
    :ivar error: the error
    """

    instance: str
    host: str
    error: Exception


@dataclasses.dataclass(frozen=True)
class AllocationNotMoved(Event):
    """Placement does not move the allocation of an instance.

    It has no room for it, the allocation rests elsewhere, or another service
    moves it at the same time.

    :ivar instance: the UUID of the instance
    :ivar target: where it was to go: the name of a pool, or the UUID of a node
    """

    instance: str
    target: str


@dataclasses.dataclass(frozen=True)
class InstanceElsewhere(Event):
    """Ironic has an instance on a node that Nova does not have it on.

    :ivar node: the UUID of the node
    :ivar instance: the UUID of the instance
    :ivar host: the name of the service that the instance belongs to
    """

    node: str
    instance: str
    host: str


@dataclasses.dataclass(frozen=True)
class BuildEnded(Event):
    """A build was ended because its service has died.

    :ivar node: the UUID of the node that it was for
    :ivar instance: the UUID of the instance
    :ivar host: the name of the service; None if it is not known any more
    """

    node: str
    instance: str
    host: str | None


@dataclasses.dataclass(frozen=True)
class UnshelveEnded(Event):
    """An instance that was to be unshelved is not: its service has died.

    :ivar node: the UUID of the node that it was for
    :ivar instance: the UUID of the instance
    :ivar host: the name of the service; None if it is not known any more
    """

    node: str
    instance: str
    host: str | None


@dataclasses.dataclass(frozen=True)
class BuildNotEnded(Event):
    """A build that a dead service has left behind could not be ended yet.

    :ivar node: the UUID of the node that it was for
    :ivar instance: the UUID of the instance; None if not known: Placement or
        Nova did not answer
    :ivar host: the name of the service; None if it is not known any more
    :ivar error: the error
    """

    node: str
    instance: str | None
    host: str | None
    error: Exception


@dataclasses.dataclass(frozen=True)
class HandoversUnknown(Event):
    """It cannot be seen yet whether builds are left on nodes handed over.

    :ivar error: the error
    """

    error: Exception


@dataclasses.dataclass(frozen=True)
class LastPassNotSaid(Event):
    """The peers could not be told that this pass was a good one.

    :ivar error: the error
    """

    error: Exception


@dataclasses.dataclass(frozen=True)
class ScopeNotSaid(Event):
    """The peers could not be told which nodes this service divides by now.

    :ivar error: the error
    """

    error: Exception


@dataclasses.dataclass(frozen=True)
class RecordRemoved(Event):
    """The record of a dead service's node was deleted: Ironic has no node.

    :ivar node: the UUID of the node
    :ivar host: the name of the dead service
    """

    node: str
    host: str


@dataclasses.dataclass(frozen=True)
class RecordNotRemoved(Event):
    """The record of a dead service's node could not be deleted.

    :ivar node: the UUID of the node; None if it could not be looked for any
    :ivar host: the name of the dead service; None if it is that of all
    :ivar reason: the error, or what stands in the way
    """

    node: str | None
    host: str | None
    reason: object


@dataclasses.dataclass(frozen=True)
class PoolsCounted(Event):
    """A pass of a service with pools is over.

    :ivar pools: how many pools it has
    :ivar nodes: how many nodes count in them
    :ivar free: how many of these can be built on
    :ivar changed: whether the pools have other nodes than before
    """

    pools: int
    nodes: int
    free: int
    changed: bool


@dataclasses.dataclass(frozen=True)
class NodesPooled(Event):
    """Nodes count in pools now, and have no records of their own any more.

    :ivar nodes: UUIDs of the nodes
    """

    nodes: Sequence[str]


@dataclasses.dataclass(frozen=True)
class InstanceMoved(Event):
    """An instance of this service is on another compute node of it.

    :ivar instance: the UUID of the instance
    :ivar source: where it was: the name of a pool, or the UUID of a node
    :ivar target: where it is now
    """

    instance: str
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class PoolsTooSmall(Event):
    """There are nearly as many pools as nodes.

    :ivar pools: how many pools the service has
    :ivar nodes: how many nodes count in them
    """

    pools: int
    nodes: int


@dataclasses.dataclass(frozen=True)
class DeploymentFailed(Event):
    """The deployment of an instance in a pool has failed.

    :ivar node: the UUID of the node
    :ivar instance: the UUID of the instance
    :ivar count: how many have failed on the node, one after the other
    :ivar until: until when builds try the node after all others
    :ivar error: the error
    """

    node: str
    instance: str
    count: int
    until: datetime.datetime
    error: Exception


@dataclasses.dataclass(frozen=True)
class PoolsLeftOut(Event):
    """There are more kinds of nodes than a service makes pools.

    :ivar limit: how many pools it makes at most, but for those with instances
    :ivar pools: how many it has
    :ivar left_out: of how many kinds it does not make a pool
    :ivar nodes: UUIDs of the nodes of these kinds, in order
    """

    limit: int
    pools: int
    left_out: int
    nodes: Sequence[str]


@dataclasses.dataclass(frozen=True)
class PoolsWithinLimit(Event):
    """A service makes a pool of each kind again.

    :ivar pools: how many it has
    """

    pools: int


@dataclasses.dataclass(frozen=True)
class AllocationsUnknown(Event):
    """Placement does not tell which instances have an allocation of a pool.

    :ivar pool: the name of the pool
    :ivar error: the error
    """

    pool: str
    error: Exception


@dataclasses.dataclass(frozen=True)
class PassDone(Event):
    """A pass is over.

    :ivar counts: how often each decision was made
    :ivar moves: whether anything moves because of it
    """

    counts: Mapping[decisions.Decision, int]
    moves: bool
