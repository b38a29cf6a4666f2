# SPDX-License-Identifier: Apache-2.0

"""The records of Nova and Ironic as values: services, rows, instances."""

from collections.abc import Mapping
import dataclasses
import datetime

#: The instance on each node, None for a free one, by the node's UUID.
Nodes = Mapping[str, str | None]


def canonical(host: str) -> str:
    """Return a host name in the form that all comparisons use.

    :param host: the name of a service, as configured or recorded
    :returns: the name in lower case and without surrounding blanks
    """
    return host.strip().lower()


@dataclasses.dataclass(frozen=True)
class Scope:
    """The nodes of Ironic that a service and its peers divide.

    :ivar conductor_group: only the nodes of this group, in any case; the empty
        string is Ironic's default group; None for the nodes of all groups
    :ivar shard: only the nodes of this shard, if any
    """

    conductor_group: str | None = None
    shard: str | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the service is limited to some of Ironic's nodes."""
        return self.conductor_group is not None or bool(self.shard)

    def has(self, group: str, shard: str | None) -> bool:
        """Return whether a node is in this scope.

        :param group: the node's conductor group, in any case
        :param shard: its shard, if it has one
        """
        return (self.conductor_group is None
                or self.conductor_group.lower() == group.lower()) and (
            not self.shard or self.shard == shard)

    def covers(self, other: 'Scope') -> bool:
        """Return whether all nodes of a scope are in this one.

        :param other: that scope
        """
        group = self.conductor_group
        return (group is None or (
            other.conductor_group is not None
            and group.lower() == other.conductor_group.lower())) and (
            not self.shard or self.shard == other.shard)

    def is_same(self, other: 'Scope | None') -> bool:
        """Return whether a scope has the same nodes as this one.

        :param other: that scope, if any
        """
        return other is not None and (
            self.covers(other) and other.covers(self))


@dataclasses.dataclass(frozen=True)
class LastPass:
    """What a service says of its passes in its member record.

    :ivar cycle: seconds from the start of a pass to that of the next one, as
        they have lately been
    :ivar at: time of the last good pass, by the service's own clock, and later
        than that of the one before; None if this is not said
    """

    cycle: float
    at: datetime.datetime | None = None


@dataclasses.dataclass(frozen=True)
class Arrival:
    """Where a build, or an unshelving, has come last.

    :ivar host: the name of the service
    :ivar given_up: seconds since that service has given it to the next one;
        None if it has not
    """

    host: str
    given_up: float | None = None


#: A time before all others.
NEVER = datetime.datetime.min.replace(tzinfo=datetime.timezone.utc)


#: What a service acknowledges that is no member of its own ring: each ring of
#: its scope, because it lets go of all that it has.
EVERY_RING = 'every'


@dataclasses.dataclass(frozen=True)
class Member:
    """What a service says in its member record.

    A service with Nova's own driver has no record, and says none of this.

    :ivar last_pass: its passes
    :ivar scope: the nodes that it is limited to
    :ivar by_shards: whether it divides nodes by their shards, if all do
    :ivar held: the codes of the shards that it holds
    :ivar ring: a fingerprint of the ring that it acknowledges, by which others
        may take what is free; :data:`EVERY_RING` if it is a member of none;
        None if it acknowledges none, because its last pass was not a good one
    :ivar follows: whether its instances go with that ring as well
    :ivar has_pools: whether its compute nodes are pools
    :ivar differ: canonical names of services that it has seen acknowledge
        another ring for too long
    """

    last_pass: LastPass | None = None
    scope: Scope | None = None
    by_shards: bool = False
    held: frozenset[str] = frozenset()
    ring: str | None = None
    follows: bool = False
    has_pools: bool = False
    differ: frozenset[str] = frozenset()

    def consents(self, ring: str, scope: Scope) -> bool:
        """Return whether others may take what a ring gives to them.

        :param ring: the fingerprint of the ring
        :param scope: the nodes that they divide
        """
        return self.ring == ring or (
            self.ring == EVERY_RING and scope.is_same(self.scope))


@dataclasses.dataclass(frozen=True)
class Service:
    """The record of a nova-compute service in Nova.

    :ivar host: the service's name
    :ivar last_seen: time of the last heartbeat, by conductor's clock
    :ivar forced_down: whether an operator has forced the service down
    :ivar disabled: whether an operator has disabled the service
    :ivar alive: whether Nova says that the service is alive, where heartbeats
        are not in the database; None if they are
    :ivar is_ironic: whether it runs an ironic driver, if that was read
    :ivar said: what it says in its member record; None if it has none, as with
        Nova's own driver, or if that was not read
    """

    host: str
    last_seen: datetime.datetime
    forced_down: bool = False
    disabled: bool = False
    alive: bool | None = None
    is_ironic: bool = True
    said: Member | None = None

    @property
    def name(self) -> str:
        """The canonical name of the service."""
        return canonical(self.host)

    @property
    def last_pass(self) -> LastPass | None:
        """What it says of its passes, if anything."""
        return None if self.said is None else self.said.last_pass

    @property
    def scope(self) -> Scope | None:
        """The nodes that it says it is limited to, if anything."""
        return None if self.said is None else self.said.scope

    def saying(self, said: Member | None) -> 'Service':
        """Return the same with what its member record says.

        :param said: that; None if it has no record
        """
        # Of a record that cannot be read, nothing is known.
        return dataclasses.replace(
            self, said=None if said is None or said.scope is None else said)


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """How many nodes there were, according to the row of a pool.

    :ivar nodes: the number of nodes in the pool
    :ivar listed: the number of nodes that its owner lists in Ironic
    :ivar asked: a fingerprint of the owner's requests to Ironic
    :ivar gone: the number of nodes that its owner has lately believed deleted
    :ivar gone_at: the last time of that, with time zone; None if never
    """

    nodes: int
    listed: int
    asked: str = ''
    gone: int = 0
    gone_at: datetime.datetime | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """The ``compute_nodes`` row of a node.

    :ivar owner: the name of the service that the node is recorded for
    :ivar pool: the name of the pool, if the row is that of one and not of a
        node
    :ivar counted: how many nodes there were in the owner's last pass; None if
        it says nothing, as in the row of a node
    :ivar made_of: a fingerprint of what the owner has last made the row and
        the resource provider of; None if it says nothing
    :ivar made_at: when the row was made of that, in seconds of the wall clock
    :ivar counts: whether Nova's tracker has counted an instance on the node
    """

    owner: str
    pool: str | None = None
    counted: Counted | None = None
    made_of: str | None = None
    made_at: float | None = None
    counts: bool = False

    @property
    def owner_name(self) -> str:
        """The canonical name of the owner."""
        return canonical(self.owner)


@dataclasses.dataclass(frozen=True)
class Instance:
    """The record of an instance in Nova that is not deleted.

    :ivar host: the name of the service that the instance belongs to; None if
        it has not arrived at one
    :ivar node: the UUID of the node that Nova has it on; None if it has none
    :ivar is_building: whether the instance is not built yet
    :ivar task: its task state in Nova; None for no task
    :ivar is_given_up: whether its build was ended because its service died
    :ivar is_deleted: whether it is deleted, except for its record, and perhaps
        its allocation
    :ivar is_offloaded: whether it is shelved, and has no machine any more
    """

    host: str | None
    node: str | None
    is_building: bool = False
    task: str | None = None
    is_given_up: bool = False
    is_deleted: bool = False
    is_offloaded: bool = False

    @property
    def is_idle(self) -> bool:
        """Whether the instance is built and nothing is being done with it."""
        return self.task is None and not self.is_building

    @property
    def is_wanted(self) -> bool:
        """Whether it has no service yet, and is to be built or unshelved.

        Nova claims a node for both in the same way.
        """
        return self.host is None and (self.is_unshelving or (
            self.is_building and not self.is_given_up))

    @property
    def is_unshelving(self) -> bool:
        """Whether a machine is to be deployed for it, which is shelved."""
        # Nova says that it spawns the instance before it claims a node.
        return self.is_offloaded and self.task in ('unshelving', 'spawning')

    @property
    def is_to_be_built(self) -> bool:
        """Whether a machine is to be deployed for it, perhaps again."""
        return self.is_building or self.is_unshelving

    @property
    def is_shelving(self) -> bool:
        """Whether it is being shelved, and loses or has lost its machine.

        Nova ends the task before it says that the instance has no service.
        """
        return self.task in ('shelving', 'shelving_offloading') or (
            self.is_offloaded and self.task is None and self.host is not None)

    @property
    def is_to_be_finished(self) -> bool:
        """Whether a service has it, and continues its task without a machine.

        Ironic may have such an instance on no node, and its service still has
        to finish the task.
        """
        return self.host is not None and (
            self.is_deleting or self.is_shelving
            or (self.is_offloaded
                and self.task in ('spawning', 'soft-deleting')))

    @property
    def needs_no_node(self) -> bool:
        """Whether its allocation is left over, because nobody builds it."""
        return self.host is None and not self.is_to_be_built and (
            self.is_given_up or (self.is_offloaded and self.task is None))

    @property
    def is_deleting(self) -> bool:
        """Whether the instance is being deleted."""
        # Nova ends the task before it frees the allocation.
        return self.task == 'deleting' or self.is_deleted

    @property
    def host_name(self) -> str | None:
        """The canonical name of its service."""
        return None if self.host is None else canonical(self.host)


@dataclasses.dataclass(frozen=True)
class Takeover:
    """An instance that is to become, or has become, this service's.

    :ivar node: the UUID of its node, or the name of the pool that it is in
    :ivar instance: its UUID
    :ivar host: the name of the service that it belonged to
    :ivar task: what was being done with it, as Nova names it
    :ivar is_dead: whether that service is dead; it has consented otherwise
    """

    node: str
    instance: str
    host: str
    task: str | None
    is_dead: bool
