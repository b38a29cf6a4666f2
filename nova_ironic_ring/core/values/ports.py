# SPDX-License-Identifier: Apache-2.0

"""What a pass asks of Nova, Ironic, Placement and its own process.

The driver has real services behind these ports; the simulation and the
forecast have a world in memory. If a service does not answer, its port raises
the service's error. A write that raises an error may have been done, or may be
done yet: read again before anything is concluded.
"""

from collections.abc import Collection, Container, Iterable, Mapping
from collections.abc import Sequence
import dataclasses
import datetime
from typing import Protocol

from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings


@dataclasses.dataclass(frozen=True)
class Expected:
    """What has to be true of an instance before its service is changed.

    :ivar host: the name of the service that it belongs to
    :ivar node: the UUID of the node, or the name of the pool, that Nova has it
        on
    :ivar task: its task state in Nova; None for no task
    """

    host: str
    node: str
    task: str | None = None


@dataclasses.dataclass(frozen=True)
class Taking:
    """The row of a node that this service is to take.

    :ivar owner: the name of the service that has to have it
    :ivar made_of: the fingerprint, to be written, of what the row is made of
    :ivar made_at: when it was made of that, in seconds of the wall clock; None
        if it is to be made again
    """

    owner: str
    made_of: str
    made_at: float | None = None


@dataclasses.dataclass(frozen=True)
class Saying:
    """What a service writes into its member record.

    :ivar current: its settings
    :ivar last_pass: its passes
    :ivar held: the codes of the shards that it holds; None if nodes are not
        divided by their shards
    :ivar ring: a fingerprint of the ring that it acknowledges; None for none
    :ivar has_pools: whether its compute nodes are pools
    :ivar differ: canonical names of services that acknowledge another ring
    """

    current: settings.Settings
    last_pass: model.LastPass
    held: frozenset[str] | None = None
    ring: str | None = None
    has_pools: bool = False
    differ: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Glance:
    """What Ironic has of a node, as far as builds depend on it.

    :ivar instance: the UUID of the instance on it, None for a free one
    :ivar is_ready: whether Ironic would deploy it now, if it is free
    :ivar described: a text that changes whenever its class, traits or
        properties change in Ironic
    """

    instance: str | None
    is_ready: bool
    described: str = ''


@dataclasses.dataclass(frozen=True)
class Latest:
    """A node that has lately changed in Ironic.

    :ivar node: the node's UUID
    :ivar before: its former state, if it has changed in any way, even one that
        does not concern builds; None for a node without a change, and for one
        that was not listed
    :ivar now: its present state; None likewise
    """

    node: str
    before: Glance | None = None
    now: Glance | None = None


class Nova(Protocol):
    """Nova's records, read and written through conductor."""

    def services(self) -> list[model.Service]:
        """Read all nova-compute services, whatever their driver.

        :returns: each with what it says in its member record
        """

    def service(self, host: str) -> model.Service | None:
        """Read the record of one nova-compute service.

        :param host: its name
        """

    def rows_of(self, host: str) -> dict[str, model.Row]:
        """Read the rows of the nodes of Ironic, and pools, of a service.

        :param host: its name
        :returns: by the UUID of the node, or of the pool; without its member
            record
        """

    def rows(self, nodes: Collection[str]) -> dict[str, model.Row]:
        """Read the rows of nodes.

        :param nodes: their UUIDs
        :returns: by the node's UUID, of those that have one
        """

    def pools_of(self, host: str) -> frozenset[str]:
        """Read the names of the pools that are recorded for a service.

        :param host: its name
        """

    def members(self, hosts: Collection[str]) -> dict[str, model.Member]:
        """Read what services say in their member records.

        :param hosts: their names
        :returns: by canonical name, of those that have one
        """

    def say_member(self, said: Saying) -> None:
        """Write the member record of this service, unless there is none yet.

        Nova's resource tracker makes one.

        :param said: what the record is to say
        """

    def instances_of(self, host: str) -> frozenset[str]:
        """Read the UUIDs of the instances that belong to a service.

        :param host: its name
        """

    def instances(self, uuids: Iterable[str]) -> dict[str, model.Instance]:
        """Read instances.

        :param uuids: their UUIDs
        :returns: by UUID, of those that Nova has not deleted
        """

    def deleted_instances(self, uuids: Iterable[str]
                          ) -> dict[str, model.Instance]:
        """Read the records that Nova keeps of instances it has deleted.

        :param uuids: their UUIDs
        :returns: by UUID, of those that Nova has deleted
        """

    def instances_on(self, node: str) -> frozenset[str]:
        """Read the UUIDs of the instances that Nova has on a node.

        :param node: the node's UUID
        """

    def other_drivers(self, hosts: Iterable[str]) -> frozenset[str]:
        """Return the services that run another driver.

        :param hosts: names of services
        :returns: canonical names of those with rows that are not of Ironic's
            nodes
        """

    def delete_row(self, node: str, owner: str) -> bool:
        """Delete the row of a node, if it still has the owner that was read.

        This is the only conditional change of a row in Nova, so only one of
        two services can win it.

        :param node: the node's UUID
        :param owner: the name of the owner
        :returns: False if the row has another owner now, or is gone
        """

    def take_rows(self, rows: Mapping[str, Taking]) -> frozenset[str]:
        """Take the rows of free nodes from other services.

        :param rows: the rows, by the node's UUID
        :returns: the nodes whose rows now belong to this service; a row that
            has another owner now stays as it is, and so does one that fails
        """

    def set_instance_host(self, instance: str, expected: Expected) -> bool:
        """Give an instance to this service.

        :param instance: its UUID
        :param expected: what must be true of it
        :returns: False if that is not true, or it is deleted
        """

    def place_instance(self, instance: str, expected: Expected,
                       place: str) -> bool:
        """Give an instance to this service, and to a compute node of it.

        :param instance: its UUID
        :param expected: what must be true of it
        :param place: the name of the pool, or the UUID of the node
        :returns: False if that is not true, or it is deleted, or this service
            has no row of the compute node
        """

    def unclaimed(self) -> dict[str, model.Instance]:
        """Read the instances to build or unshelve that no service has.

        :returns: by UUID, of those that no service has claimed a node for
        """

    def arrived_at(self, instance: str) -> model.Arrival | None:
        """Read the service that a build, or an unshelving, has come to last.

        :param instance: its UUID
        :returns: None if it has come to none yet, or waits for its turn at one
            with Nova's own driver
        """

    def end_build(self, instance: str, host: str | None,
                  is_claimed: bool = True) -> bool:
        """Set an instance that is being built to ERROR, with the reason.

        :param instance: its UUID
        :param host: the name of the service that has died; None if it is not
            known any more
        :param is_claimed: whether that service had claimed a node for the
            instance when the instance was read. If not, and it has claimed one
            since, it lives or has left a node to clean up.
        :returns: False if the instance is deleted, or built after all
        """

    def end_unshelve(self, instance: str) -> bool:
        """Return an instance that is being unshelved to its shelved state.

        :param instance: its UUID
        :returns: False if a service has it now, or it is deleted
        """


class Ironic(Protocol):
    """What Ironic has."""

    def nodes(self, scope: settings.Scope,
              shards: Collection[str] | None = None
              ) -> dict[str, str | None]:
        """List the nodes that this service and its peers divide.

        :param scope: which nodes these are
        :param shards: only those in these shards, and those in none; None for
            all of them
        :returns: the instance on each node, None for a free one
        """

    def more(self, scope: settings.Scope, shards: Collection[str]
             ) -> dict[str, str | None]:
        """List the nodes of some more shards, beside what was listed last.

        :param scope: the nodes that this service and its peers divide
        :param shards: the shards
        :returns: the instance on each node, None for a free one
        """

    def named(self, scope: settings.Scope, nodes: Collection[str]
              ) -> dict[str, str | None]:
        """List nodes by their names, beside those that were listed last.

        :param scope: the nodes that this service and its peers divide
        :param nodes: UUIDs of few nodes
        :returns: the instance on each of these that Ironic has in the scope
        """

    def shards(self, scope: settings.Scope) -> frozenset[str]:
        """Return the shards that nodes are in.

        :param scope: the nodes that this service and its peers divide
        """

    def places(self, nodes: Iterable[str]) -> dict[str, str]:
        """Return the shards of nodes that were listed last, with shards.

        :param nodes: their UUIDs
        :returns: by UUID, of those that are in one
        """

    def groups(self, nodes: Iterable[str]) -> dict[str, str]:
        """Return the conductor groups of nodes that were listed last.

        :param nodes: their UUIDs
        :returns: by UUID, in lower case
        """

    def uuids(self, scope: settings.Scope) -> frozenset[str]:
        """Return all nodes of a scope, with those that were not listed.

        :param scope: the scope
        """

    def nodes_of(self, instances: Iterable[str]) -> dict[str, str | None]:
        """Find the nodes of instances, whatever group or shard they are in.

        :param instances: UUIDs of instances
        :returns: the instance on each node
        """

    def is_available(self, node: str) -> bool:
        """Return whether nothing is deployed on a node, or being deployed.

        :param node: the node's UUID
        """

    def is_deleted(self, node: str) -> bool:
        """Return whether Ironic does not have a node.

        :param node: the node's UUID
        """

    def fingerprints(self, nodes: Iterable[str]) -> dict[str, str]:
        """Return a fingerprint of each node, as listed last.

        :param nodes: their UUIDs
        :returns: by UUID, of those that were listed; it changes whenever
            something changes in Ironic that Nova's driver may use
        """

    def latest(self, scope: settings.Scope, after: str | None = None
               ) -> Sequence[Latest]:
        """List a page of the nodes that were changed last in Ironic.

        A change of a listed node is remembered, so that it is reported once.

        :param scope: the nodes that this service and its peers divide
        :param after: the last node of the page before; None for the first page
        :returns: the node that was changed last comes first
        """

    def glances(self, nodes: Iterable[str]) -> dict[str, Glance]:
        """Return what Ironic has reported last about nodes.

        :param nodes: their UUIDs
        :returns: by UUID, of those that were listed
        """

    def describe(self, nodes: Iterable[str]) -> dict[str, pools.Node]:
        """Describe nodes that were listed last.

        :param nodes: their UUIDs
        :returns: by UUID
        """

    def free_nodes(self, scope: settings.Scope) -> dict[str, pools.Node]:
        """List the nodes that can be built on now.

        :param scope: the nodes that this service and its peers divide
        :returns: by UUID
        """

    def find(self, node: str) -> pools.Node | None:
        """Describe a node as it is now, whatever its group or shard.

        :param node: the node's UUID
        :returns: None if Ironic does not have it
        """

    def reserve(self, node: str, instance: str, kind: pools.Kind,
                rule: kinds.Rule = kinds.Rule()) -> bool:
        """Give a node to an instance at once, if it is free.

        If several ask for a node at the same time, one gets it.

        :param node: the node's UUID
        :param instance: the UUID of the instance
        :param kind: the kind of node that is wanted; the node may be of
            another now
        :param rule: what makes a kind
        :returns: False if the node is not free, nothing can be built on it, or
            it is of another kind
        :raises Exception: if Ironic fails; that may be for this node alone
        """

    def release(self, node: str, instance: str) -> None:
        """Take an instance off a node that is only reserved for it.

        If Ironic is working on the node, it stays as it is.

        :param node: the node's UUID
        :param instance: the UUID of the instance
        :raises Exception: if Ironic fails; that may be for this node alone
        """


class Placement(Protocol):
    """What Placement has."""

    def consumers(self, node: str) -> frozenset[str]:
        """Read the consumers that have allocations of a node.

        :param node: the node's UUID
        """

    def in_use(self, nodes: Collection[str]) -> frozenset[str]:
        """Name the nodes of which something is allocated.

        One that has no provider is not among them.

        :param nodes: their UUIDs
        """

    def providers_of(self, instance: str) -> Collection[str]:
        """Read the providers that have the allocation of an instance.

        :param instance: its UUID
        """

    def free(self, instance: str) -> None:
        """Delete the allocation of an instance.

        :param instance: its UUID
        :raises Exception: unless it has none by then
        """

    def move(self, instance: str, sources: Collection[str],
             target: str) -> bool:
        """Move the allocation of an instance to another provider.

        If several do so at the same time, one succeeds. Allocations of other
        resource classes than the one that counts nodes move too, as far as the
        other provider has room for them.

        :param instance: its UUID
        :param sources: UUIDs of providers, one of which has to have it
        :param target: the UUID of the provider that is to have it
        :returns: whether it is there now, moved or not; also True if the
            instance has none, as after a rebuild that has failed
        """

    def write(self, pool: pools.Pool, found: pools.Inventory) -> None:
        """Write the inventory of a pool at once.

        :param pool: the pool
        :param found: the inventory
        """

    def reserve_all(self, pool: str) -> None:
        """Keep builds out of a pool that its service leaves.

        :param pool: the name of the pool
        """

    def reread(self, place: str) -> None:
        """Read an inventory again that others may have written meanwhile.

        Otherwise this process does not write again what it remembers having
        written.

        :param place: the name of the pool, or the UUID of the node
        """

    def make_room(self, place: str, pool: str) -> None:
        """Make room for an allocation on the provider of a node, or of a pool.

        If it has room, nothing is done. If it has none, as many fewer nodes
        are reserved as needed, because peers may have reserved all of them,
        including those with an allocation. If that is not enough, more nodes
        are counted: its service does the same in its next pass. A node stays
        one, and Placement refuses a second allocation of it. Other classes
        than the one that counts nodes stay as they are.

        :param place: the UUID of the node, or the name of the pool
        :param pool: the name of the pool that the allocation is of, whose
            nodes are counted by the same class
        """

    def known(self) -> frozenset[str]:
        """Name all resource providers, by their UUIDs."""

    def has_provider(self, provider: str) -> bool:
        """Return whether there is a resource provider.

        :param provider: its UUID
        :raises Exception: if Placement does not answer
        """

    def unused(self, nodes: Collection[str]) -> frozenset[str]:
        """Return the nodes without an allocation.

        A node without a provider is not among them.

        :param nodes: their UUIDs
        """

    def disabled(self) -> frozenset[str]:
        """Return the providers that the scheduler is kept away from.

        :returns: the UUIDs of those whose services were disabled
        """

    def tell_status(self, nodes: Collection[str], is_enabled: bool) -> None:
        """Let the scheduler choose nodes, or keep it away from them.

        :param nodes: their UUIDs; what fails, the resource tracker does later
        :param is_enabled: whether the scheduler may choose them
        """

    def drop_provider(self, node: str) -> bool:
        """Delete the provider of a node, unless it has allocations.

        :param node: the node's UUID
        :returns: whether there is none any more
        """

    def forget_provider(self, node: str) -> None:
        """Drop the provider of a node from Nova's cache.

        :param node: the node's UUID
        """

    def delete_provider(self, node: str) -> None:
        """Delete the provider of a node, and what is allocated of it.

        :param node: the node's UUID
        :raises Exception: if there is one by then: Placement does not answer,
            or a build was faster
        """


class Process(Protocol):
    """What this process knows about itself."""

    def now(self) -> float:
        """Return the time of the monotonic clock, in seconds."""

    def wall_time(self) -> datetime.datetime:
        """Return the time of the wall clock, with time zone."""

    def longest_gap(self, since: float) -> float:
        """Return the longest time without a heartbeat.

        :param since: the time from which on, in seconds: the one counts that
            had begun before
        :returns: seconds
        """

    def is_ending(self) -> bool:
        """Return whether this service is about to end."""

    def tracked(self) -> frozenset[str]:
        """Name the nodes tracked by Nova's resource tracker."""

    def makes_with(self) -> str:
        """Return what goes into records and providers besides Ironic's data.

        :returns: a text that changes whenever all of them are to be made
            again, as after an upgrade
        """

    def waiting_builds(self) -> Container[str]:
        """Name the instances whose build waits for its turn here, by UUID."""

    def took(self, taken: model.Takeover) -> None:
        """Begin to recover an instance that has become this service's.

        It is called at once: whatever fails after it, the instance is this
        service's.

        :param taken: the instance
        """


@dataclasses.dataclass(frozen=True)
class Ports:
    """All ports of a service.

    :ivar nova: Nova's records
    :ivar ironic: what Ironic has
    :ivar placement: what Placement has
    :ivar process: what this process knows of itself
    """

    nova: Nova
    ironic: Ironic
    placement: Placement
    process: Process
