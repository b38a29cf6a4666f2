# SPDX-License-Identifier: Apache-2.0

"""A Nova, an Ironic and a Placement in memory, behind the ports of a pass.

The forecast of the command and the simulation run passes on them. This module
also does what Nova's resource tracker does with listed nodes.
"""

from collections.abc import Collection, Container, Iterable, Mapping
from collections.abc import Sequence
import dataclasses
import datetime

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking import new_nodes
from nova_ironic_ring.core.taking import tracking
from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

_SIZE = pools.Size(1024, 10, 1)

#: The calls of ports that write. Each may be done, and answer an error.
WRITES = frozenset({
    'delete_row', 'delete_provider', 'drop_provider', 'end_build',
    'end_unshelve', 'free', 'make_room', 'move', 'place_instance', 'record',
    'release', 'reserve', 'reserve_all', 'say_member', 'set_instance_host',
    'take_rows', 'tell_status', 'write'})

#: When the time of a cloud begins.
EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


@dataclasses.dataclass
class Node:
    """A node of Ironic.

    :ivar instance: the UUID of the instance on it, if there is one
    :ivar group: its conductor group
    :ivar shard: its shard, if it has one
    :ivar kind: what the scheduler may ask of it
    :ivar is_ready: whether something can be built on it, if it is free
    :ivar is_deployed: whether Ironic has begun to deploy its instance, if it
        has one
    """

    instance: str | None = None
    group: str = ''
    shard: str | None = None
    kind: pools.Kind | None = pools.Kind('CUSTOM_BAREMETAL')
    is_ready: bool = True
    is_deployed: bool = True

    def said(self) -> pools.Node:
        """What Ironic says of it."""
        return pools.Node(self.kind, self.instance, self.is_ready, _SIZE)

    def glance(self) -> ports.Glance:
        """What Ironic says of it, as far as a build depends on it."""
        return ports.Glance(
            self.instance, self.said().is_free, repr(self.kind))


@dataclasses.dataclass
class Row:
    """The record of a node.

    :ivar owner: the name of the service that the node is recorded for
    :ivar pool: the name of the pool, if it is one
    :ivar sayer: canonical name of the service that has written the rest
    :ivar counted: how many nodes it says there are
    :ivar made_of: what it says that row and provider were made of
    :ivar made_at: when it was made of that, in seconds of the wall clock
    :ivar counts: whether the tracker has counted an instance on the node
    """

    owner: str
    sayer: str | None = None
    pool: str | None = None
    counted: model.Counted | None = None
    made_of: str | None = None
    made_at: float | None = None
    counts: bool = False

    @classmethod
    def of(cls, row: model.Row) -> 'Row':
        """Return a record in which its owner has written all that it says.

        :param row: what the record says
        """
        return cls(row.owner, row.owner_name, row.pool, row.counted)

    def say_as(self, host: str) -> None:
        """Forget what another service has written.

        :param host: the name of the service that writes
        """
        if self.sayer != model.canonical(host):
            self.sayer = model.canonical(host)
            self.counted = self.made_of = self.made_at = None


@dataclasses.dataclass
class Cloud:
    """Nova, Ironic and Placement in memory.

    :ivar now: the present time, in seconds
    :ivar services: by canonical name
    :ivar nodes: by UUID
    :ivar rows: by the node's UUID
    :ivar members: what services say in their member records, by canonical
        name
    :ivar instances: by UUID
    :ivar allocations: the instances that have an allocation of a node, by the
        node's UUID; those on the node itself are not among them
    :ivar other_drivers: canonical names of the hosts with another driver
    :ivar inventories: what was written of pools, by the provider's UUID
    :ivar providers: the nodes that have a provider, as far as trackers have
        made them
    :ivar kept_away: the nodes that the scheduler is kept away from, since
        their service is disabled, as far as it has been told
    :ivar arrived: the service that each build has come to last, as far as that
        is known
    :ivar given_up: how many seconds ago that service has given each build to
        the next one, if it has
    """

    now: float = 0.0
    services: dict[str, model.Service] = dataclasses.field(
        default_factory=dict)
    nodes: dict[str, Node] = dataclasses.field(default_factory=dict)
    rows: dict[str, Row] = dataclasses.field(default_factory=dict)
    members: dict[str, model.Member] = dataclasses.field(default_factory=dict)
    instances: dict[str, model.Instance] = dataclasses.field(
        default_factory=dict)
    deleted: dict[str, model.Instance] = dataclasses.field(
        default_factory=dict)
    allocations: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    other_drivers: frozenset[str] = frozenset()
    inventories: dict[str, pools.Inventory] = dataclasses.field(
        default_factory=dict)
    providers: set[str] = dataclasses.field(default_factory=set)
    kept_away: set[str] = dataclasses.field(default_factory=set)
    arrived: dict[str, str] = dataclasses.field(default_factory=dict)
    given_up: dict[str, float] = dataclasses.field(default_factory=dict)

    def arrival(self, instance: str) -> model.Arrival | None:
        """Return where a build has come last; None if it has come to none.

        :param instance: its UUID
        """
        host = self.arrived.get(instance)
        return None if host is None else model.Arrival(
            host, self.given_up.get(instance))

    def beat(self, host: str) -> None:
        """Write the heartbeat of a service.

        :param host: its name
        """
        name = model.canonical(host)
        seen = EPOCH + datetime.timedelta(seconds=self.now)
        known = self.services.get(name)
        self.services[name] = dataclasses.replace(
            known, last_seen=seen) if known else model.Service(host, seen)


class Nova:
    """Nova's records, as one service reads and writes them."""

    def __init__(self, cloud: Cloud, host: str) -> None:
        """Choose the cloud.

        :param cloud: the cloud
        :param host: the name of the service
        """
        self.cloud = cloud
        self.host = host

    def services(self) -> list[model.Service]:
        ironic = {*map(model.canonical, self._owners()), *self.cloud.members}
        said = self.cloud.members.get
        return [dataclasses.replace(
            service, is_ironic=name in ironic).saying(said(name))
            for name, service in self.cloud.services.items()]

    def members(self, hosts: Collection[str]) -> dict[str, model.Member]:
        return {name: self.cloud.members[name]
                for name in map(model.canonical, hosts)
                if name in self.cloud.members}

    def say_member(self, said: ports.Saying) -> None:
        if said.current.me in self.cloud.members:
            self.make_member(said)

    def make_member(self, said: ports.Saying) -> None:
        """Make the member record of this service, as the tracker does.

        :param said: what the record is to say
        """
        current = said.current
        self.cloud.members[current.me] = model.Member(
            said.last_pass, current.scope, current.by_shards,
            said.held or frozenset(), said.ring, current.follows,
            said.has_pools, said.differ)

    def _owners(self) -> set[str]:
        """Return the names of all owners of rows, as they are spelled."""
        return {row.owner for row in self.cloud.rows.values()}

    def service(self, host: str) -> model.Service | None:
        return self.cloud.services.get(model.canonical(host))

    def rows_of(self, host: str) -> dict[str, model.Row]:
        spelled = _spelled(host, self._owners())
        return {node: _read(row) for node, row in self.cloud.rows.items()
                if row.owner in spelled}

    def rows(self, nodes: Collection[str]) -> dict[str, model.Row]:
        return {node: _read(self.cloud.rows[node]) for node in nodes
                if node in self.cloud.rows}

    def pools_of(self, host: str) -> frozenset[str]:
        spelled = _spelled(host, self._owners())
        return frozenset(
            row.pool for row in self.cloud.rows.values()
            if row.pool and row.owner in spelled)

    def instances_of(self, host: str) -> frozenset[str]:
        spelled = _spelled(host, {
            instance.host for instance in self.cloud.instances.values()
            if instance.host is not None})
        return frozenset(
            uuid for uuid, instance in self.cloud.instances.items()
            if instance.host in spelled)

    def instances(self, uuids: Iterable[str]) -> dict[str, model.Instance]:
        return {uuid: self.cloud.instances[uuid] for uuid in uuids
                if uuid in self.cloud.instances}

    def deleted_instances(self, uuids: Iterable[str]
                          ) -> dict[str, model.Instance]:
        return {uuid: self.cloud.deleted[uuid] for uuid in uuids
                if uuid in self.cloud.deleted}

    def instances_on(self, node: str) -> frozenset[str]:
        return frozenset(
            uuid for uuid, instance in self.cloud.instances.items()
            if instance.node == node)

    def other_drivers(self, hosts: Iterable[str]) -> frozenset[str]:
        return self.cloud.other_drivers & set(map(model.canonical, hosts))

    def delete_row(self, node: str, owner: str) -> bool:
        row = self.cloud.rows.get(node)
        if row is None or row.owner != owner:
            return False
        del self.cloud.rows[node]
        return True

    def take_rows(self, rows: Mapping[str, ports.Taking]) -> frozenset[str]:
        taken = set()
        for node, wanted in rows.items():
            if self.take_row(node, wanted.owner):
                row = self.cloud.rows[node]
                row.say_as(self.host)
                row.made_of, row.made_at = wanted.made_of, wanted.made_at
                taken.add(node)
        return frozenset(taken)

    def take_row(self, node: str, owner: str) -> bool:
        """Make the row of a node this service's.

        :param node: the node's UUID
        :param owner: the name of the owner that it has to have
        :returns: False if it has another one
        """
        row = self.cloud.rows.get(node)
        if row is None or row.owner != owner:
            return False
        row.owner = self.host
        return True

    def set_instance_host(self, instance: str, expected: ports.Expected
                          ) -> bool:
        found = self.cloud.instances.get(instance)
        if found is None or (found.host, found.node, found.task) != (
                expected.host, expected.node, expected.task):
            return False
        self.cloud.instances[instance] = dataclasses.replace(
            found, host=self.host)
        return True

    def place_instance(self, instance: str, expected: ports.Expected,
                       place: str) -> bool:
        row = self.cloud.rows.get(pools.provider(place))
        if row is None or row.owner != self.host or (
                not self.set_instance_host(instance, expected)):
            return False
        self.cloud.instances[instance] = dataclasses.replace(
            self.cloud.instances[instance], node=place)
        return True

    def end_unshelve(self, instance: str) -> bool:
        found = self.cloud.instances.get(instance)
        if found is None or found.host is not None or not found.is_unshelving:
            return False
        self.cloud.instances[instance] = dataclasses.replace(found, task=None)
        return True

    def unclaimed(self) -> dict[str, model.Instance]:
        return {uuid: instance for uuid, instance
                in self.cloud.instances.items()
                if instance.host is None and instance.is_to_be_built}

    def arrived_at(self, instance: str) -> model.Arrival | None:
        return self.cloud.arrival(instance)

    def end_build(self, instance: str, host: str | None,
                  is_claimed: bool = True) -> bool:
        found = self.cloud.instances.get(instance)
        if found is None or not found.is_building or (
                found.host_name not in (
                    None, host and is_claimed and model.canonical(host))):
            return False
        self.cloud.instances[instance] = dataclasses.replace(
            found, host=None, node=None, is_building=False, task=None,
            is_given_up=True)
        return True


class Ironic:
    """What Ironic has."""

    def __init__(self, cloud: Cloud) -> None:
        """Choose the cloud.

        :param cloud: the cloud
        """
        self.cloud = cloud
        #: What was told last of each node that was listed, by UUID.
        self.told: dict[str, ports.Glance] = {}

    def nodes(self, scope: settings.Scope,
              shards: Collection[str] | None = None
              ) -> dict[str, str | None]:
        return self._tell(self._listed(scope, shards))

    def _tell(self, found: dict[str, str | None]) -> dict[str, str | None]:
        self.told |= {uuid: self.cloud.nodes[uuid].glance() for uuid in found}
        return found

    def _listed(self, scope: settings.Scope,
                shards: Collection[str] | None = None
                ) -> dict[str, str | None]:
        return {uuid: node.instance for uuid, node in self.cloud.nodes.items()
                if scope.has(node.group, node.shard) and (
                    shards is None or node.shard is None
                    or node.shard in shards)}

    def more(self, scope: settings.Scope, shards: Collection[str]
             ) -> dict[str, str | None]:
        return self._tell({
            node: instance for node, instance
            in self._listed(scope, shards).items()
            if self.cloud.nodes[node].shard is not None})

    def named(self, scope: settings.Scope, nodes: Collection[str]
              ) -> dict[str, str | None]:
        return self._tell({
            node: instance for node, instance
            in self._listed(scope).items() if node in nodes})

    def shards(self, scope: settings.Scope) -> frozenset[str]:
        return frozenset(
            shard for node in self._listed(scope)
            if (shard := self.cloud.nodes[node].shard) is not None)

    def places(self, nodes: Iterable[str]) -> dict[str, str]:
        return {node: shard for node in nodes if node in self.cloud.nodes
                and (shard := self.cloud.nodes[node].shard) is not None}

    def groups(self, nodes: Iterable[str]) -> dict[str, str]:
        return {node: found.group.lower() for node in nodes
                if (found := self.cloud.nodes.get(node)) is not None}

    def uuids(self, scope: settings.Scope) -> frozenset[str]:
        return frozenset(self._listed(scope))

    def nodes_of(self, instances: Iterable[str]) -> dict[str, str | None]:
        wanted = set(instances)
        return self._tell({
            uuid: node.instance for uuid, node in self.cloud.nodes.items()
            if node.instance in wanted})

    def is_available(self, node: str) -> bool:
        found = self.cloud.nodes.get(node)
        return found is not None and (
            found.instance is None or not found.is_deployed)

    def is_deleted(self, node: str) -> bool:
        return node not in self.cloud.nodes

    def fingerprints(self, nodes: Iterable[str]) -> dict[str, str]:
        return {node: repr(self.cloud.nodes[node]) for node in nodes
                if node in self.cloud.nodes}

    def latest(self, scope: settings.Scope, after: str | None = None
               ) -> Sequence[ports.Latest]:
        # Nothing says here when a node was changed.
        if after is not None:
            return ()
        news = {uuid: node.glance() for uuid, node in self.cloud.nodes.items()
                if scope.has(node.group, node.shard)
                and self.told.get(uuid, node.glance()) != node.glance()}
        found = [ports.Latest(uuid, self.told[uuid], glance)
                 for uuid, glance in news.items()]
        self.told |= news
        return found

    def glances(self, nodes: Iterable[str]) -> dict[str, ports.Glance]:
        return {node: self.told[node] for node in nodes if node in self.told}

    def describe(self, nodes: Iterable[str]) -> dict[str, pools.Node]:
        return {node: self.cloud.nodes[node].said() for node in nodes}

    def free_nodes(self, scope: settings.Scope) -> dict[str, pools.Node]:
        return {node: said for node in self.nodes(scope)
                if (said := self.cloud.nodes[node].said()).is_free}

    def find(self, node: str) -> pools.Node | None:
        found = self.cloud.nodes.get(node)
        return None if found is None else found.said()

    def reserve(self, node: str, instance: str, kind: pools.Kind,
                rule: kinds.Rule = kinds.Rule()) -> bool:
        found = self.cloud.nodes.get(node)
        # Like Ironic, which has each instance on one node only.
        if found is None or not found.said().is_free or (
                rule.kind(found.kind) != kind or self.nodes_of([instance])):
            return False
        found.instance, found.is_deployed = instance, False
        return True

    def release(self, node: str, instance: str) -> None:
        found = self.cloud.nodes.get(node)
        if found is not None and found.instance == instance:
            found.instance = None


class Placement:
    """What Placement has."""

    def __init__(self, cloud: Cloud) -> None:
        """Choose the cloud.

        :param cloud: the cloud
        """
        self.cloud = cloud

    def in_use(self, nodes: Collection[str]) -> frozenset[str]:
        return frozenset(filter(self.consumers, nodes))

    def unused(self, nodes: Collection[str]) -> frozenset[str]:
        return frozenset(
            node for node in nodes
            if node in self.cloud.providers and not self.consumers(node))

    def disabled(self) -> frozenset[str]:
        return frozenset(self.cloud.kept_away & self.cloud.providers)

    def tell_status(self, nodes: Collection[str], is_enabled: bool) -> None:
        if is_enabled:
            self.cloud.kept_away.difference_update(nodes)
        else:
            self.cloud.kept_away.update(nodes)

    def known(self) -> frozenset[str]:
        return frozenset(self.cloud.providers)

    def has_provider(self, provider: str) -> bool:
        # Only member records are asked for, which all have one here.
        return True

    def consumers(self, node: str) -> frozenset[str]:
        found = self.cloud.nodes.get(node)
        return frozenset(self.cloud.allocations.get(node, ())) | (
            {found.instance} if found and found.instance
            and node in self.providers_of(found.instance) else set())

    def providers_of(self, instance: str) -> set[str]:
        """Name the providers on which the allocation of an instance rests.

        One that nobody has written is on the node, unless Nova has the
        instance in a pool.

        :param instance: its UUID
        """
        written = {provider for provider, consumers
                   in self.cloud.allocations.items() if instance in consumers}
        known = self.cloud.instances.get(instance)
        if written or known and pools.is_pool(known.node):
            return written
        return {uuid for uuid, node in self.cloud.nodes.items()
                if node.instance == instance}

    def free(self, instance: str) -> None:
        for consumers in self.cloud.allocations.values():
            consumers.discard(instance)

    def move(self, instance: str, sources: Collection[str],
             target: str) -> bool:
        having = self.providers_of(instance)
        if not having or having == {target}:
            return True
        taken = self.cloud.allocations.setdefault(target, set())
        room = self.cloud.inventories.get(target)
        if len(having) != 1 or not having <= set(sources) or (
                room and len(taken) >= room.total - room.reserved):
            return False
        self.cloud.allocations.get(having.pop(), set()).discard(instance)
        taken.add(instance)
        return True

    def write(self, pool: pools.Pool, found: pools.Inventory) -> None:
        self.cloud.inventories[pool.uuid] = found

    def reserve_all(self, pool: str) -> None:
        uuid = pools.uuid_of(pool)
        if uuid in self.cloud.inventories:
            self.cloud.inventories[uuid] = dataclasses.replace(
                self.cloud.inventories[uuid],
                reserved=self.cloud.inventories[uuid].total)

    def reread(self, place: str) -> None:
        """Do nothing: here, nobody remembers a provider."""

    def make_room(self, place: str, pool: str) -> None:
        provider = pools.provider(place)
        found = self.cloud.inventories.get(provider)
        if found is None:
            return
        used = len(self.cloud.allocations.get(provider, ()))
        self.cloud.inventories[provider] = found.with_room(used)

    def forget_provider(self, node: str) -> None:
        """Do nothing: here, nobody remembers a provider."""

    def delete_provider(self, node: str) -> None:
        self.cloud.allocations.pop(node, None)
        self.cloud.providers.discard(node)

    def drop_provider(self, node: str) -> bool:
        if self.consumers(node):
            return False
        self.delete_provider(node)
        return True


class Process:
    """What a service knows of itself."""

    def __init__(self, cloud: Cloud) -> None:
        """Choose the cloud.

        :param cloud: the cloud
        """
        self.cloud = cloud
        #: The nodes tracked by Nova's resource tracker.
        self.tracked_nodes: set[str] = set()
        #: Nodes of the service that the tracker need not track.
        self.untracked: frozenset[str] = frozenset()
        #: The instances whose build waits for its turn.
        self.waiting: set[str] = set()

    def now(self) -> float:
        return self.cloud.now

    def wall_time(self) -> datetime.datetime:
        return EPOCH + datetime.timedelta(seconds=self.cloud.now)

    def longest_gap(self, since: float) -> float:
        return 0.0

    def is_ending(self) -> bool:
        return False

    def tracked(self) -> frozenset[str]:
        return self.untracked.union(self.tracked_nodes)

    def makes_with(self) -> str:
        return ''

    def waiting_builds(self) -> Container[str]:
        return frozenset(self.waiting)

    def took(self, taken: model.Takeover) -> None:
        """Do nothing: here, nothing is recovered."""


class Tracker:
    """What Nova's resource tracker does with the nodes of a pass."""

    def __init__(self, cloud: Cloud, process: Process, world: ports.Ports,
                 current: settings.Settings) -> None:
        """Choose the service.

        :param cloud: the cloud
        :param process: what the service knows of itself
        :param world: the service's ports
        :param current: the service's settings
        """
        self.cloud = cloud
        self.process = process
        self.world = world
        self.current = current
        #: What the service remembers.
        self.memory = observation.Memory()
        self.new = new_nodes.FEW

    def drop(self) -> None:
        """Let go of the nodes that another service has now."""
        self.process.tracked_nodes &= self.world.nova.rows_of(
            self.current.host).keys()

    def track(self, result: node_places.PassResult) -> None:
        """Do with all nodes what the tracker does after a pass.

        :param result: the result of the pass
        """
        self.drop()
        self.check(result)
        self.make_member(result.work)
        for node in result.listed:
            self.take(node, result)

    def make_member(self, work: own_work.Work) -> None:
        """Make the member record of the service, if there is none.

        :param work: what the pass has said
        """
        if work.to_record is not None and self.current.cooperative:
            Nova(self.cloud, self.current.host).make_member(work.to_record)

    def check(self, result: node_places.PassResult) -> None:
        """Keep what is to be known while the tracker goes through nodes.

        :param result: the result of the pass
        """
        self.new = new_nodes.NewNodes(result.plan.steps.values())
        self.process.untracked = result.changes.unchanged

    def look(self, listed: tracking.Listed) -> bool:
        """Look at a node once more, and remember the result.

        :param listed: the node
        :returns: False if another service has taken the node meanwhile
        """
        before = self.memory
        this = one_pass.Pass(
            self.world, self.current, before.copied(), before)
        try:
            return tracking.look(this, listed)
        finally:
            self.keep(before, this.memory)
            self.tell(this.happened)

    def keep(self, before: observation.Memory, after: observation.Memory
             ) -> None:
        """Remember the result of a look.

        :param before: what was remembered before
        :param after: the same with what the look has found
        """
        self.memory = self.memory.merged(before, after)

    def tell(self, happened: Sequence[events.Event]) -> None:
        """Do nothing: here, no event is recorded.

        :param happened: the events of a look
        """

    def take(self, node: str, result: node_places.PassResult,
             is_sure: bool = False) -> None:
        """Record a listed node for the service, and write what it says there.

        :param node: the node's UUID
        :param result: the result of the pass
        :param is_sure: whether it is to do so even if nothing has changed
        """
        if not (is_sure or result.changes.needs_update(node)):
            return
        step = result.plan.steps[node]
        is_tracked = node in self.process.tracked_nodes
        if not self.look(tracking.Listed(node, step, is_tracked, self.new)):
            return
        if not is_tracked:
            self.record(node)
            self.process.tracked_nodes.add(node)
        # Before anything is written: time passes here.
        made_of = self._made_of([node], result.plan.steps)
        row = self.cloud.rows.get(node)
        if row is not None:
            row.say_as(self.current.host)
            row.made_of = made_of.get(node, row.made_of)
            row.made_at = self.process.wall_time().timestamp()
            row.counts = self._counts(node)
        if result.memory.view.state(
                self.current.me) is membership.State.DISABLED:
            self.cloud.kept_away.add(node)
        else:
            self.cloud.kept_away.discard(node)

    def _counts(self, node: str) -> bool:
        """Return whether Nova counts an instance on a node."""
        found = self.cloud.nodes.get(node)
        instance = self.cloud.instances.get(found.instance or '') if (
            found) else None
        return instance is not None and instance.host == self.current.host

    def change(self, node: str, result: node_places.PassResult) -> None:
        """Update a node that has changed in Ironic since the last pass.

        :param node: its UUID
        :param result: what has come of that pass, and since
        """
        step = result.plan.steps.get(node)
        if step is not None and step.decision.lists:
            # As the tracker does without being asked whether to.
            self.take(node, result, is_sure=True)

    def _made_of(self, nodes: Iterable[str],
                 steps: Mapping[str, planner.Step]) -> dict[str, str]:
        """Return what the rows of nodes are to say that they were made of."""
        said = updates.of_process(self.process)
        return {node: updates.made_of(answer, steps[node].decision, said)
                for node, answer in self.world.ironic.fingerprints(
                    nodes).items()}

    def count(self, result: pool_places.PassResult) -> None:
        """Record the pools of a pass, and remove those that are gone.

        :param result: the result of the pass
        """
        host, nova = self.current.host, self.world.nova
        self.make_member(result.work)
        for name in sorted(pool_places.close_unlisted(
                self.world, result.memory, nova.pools_of(host))):
            del self.cloud.rows[pools.uuid_of(name)]
        for pool in result.found.values():
            row = self.cloud.rows.setdefault(
                pool.uuid, Row(host, pool=pool.name))
            row.say_as(host)
            row.counted = result.counted(pool)
            self.cloud.inventories[pool.uuid] = pool.inventory()

    def record(self, node: str) -> None:
        """Make the service the owner of a node, whoever has it.

        :param node: the node's UUID
        """
        row = self.cloud.rows.get(node)
        self.cloud.providers.add(node)
        if node in self.cloud.nodes and self.cloud.nodes[node].instance:
            # Nova's driver reserves a node that has an instance.
            self.cloud.inventories[node] = pools.Inventory()
        if row is None:
            self.cloud.rows[node] = Row(self.current.host)
        else:
            row.owner = self.current.host


def connect(cloud: Cloud, current: settings.Settings) -> Tracker:
    """Return the tracker of a service, which has the service's ports.

    :param cloud: the cloud
    :param current: the service's settings
    """
    process = Process(cloud)
    world = ports.Ports(Nova(cloud, current.host), Ironic(cloud),
                        Placement(cloud), process)
    return Tracker(cloud, process, world, current)


def _spelled(host: str, names: Collection[str]) -> set[str]:
    """Return those of some names that are a service's, however spelled.

    :param host: the name of the service
    :param names: the names, each of which there is once
    """
    wanted = model.canonical(host)
    return {name for name in names if model.canonical(name) == wanted}


def _read(row: Row) -> model.Row:
    owner = model.canonical(row.owner)
    return model.Row(
        row.owner, row.pool,
        row.counted if row.sayer == owner else None,
        row.made_of if row.sayer == owner else None,
        row.made_at if row.sayer == owner else None, row.counts)
