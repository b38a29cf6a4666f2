# SPDX-License-Identifier: Apache-2.0

"""Copies a ring into a cloud in memory, to run passes on it."""

from collections.abc import Mapping
import dataclasses
import datetime
import functools

from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import pool_limit
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import rings
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.core.world import forecast


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of a ring.

    :ivar add: the names of services that join it or return to it
    :ivar remove: the names of services that leave it for good
    :ivar disable: the names of services that are disabled
    :ivar partitions: points on the ring for each member; None for as now
    :ivar by_shards: whether services divide nodes by their shards; None for as
        now
    :ivar shards: the shards that nodes get, by their UUIDs
    """

    add: frozenset[str] = frozenset()
    remove: frozenset[str] = frozenset()
    disable: frozenset[str] = frozenset()
    partitions: int | None = None
    by_shards: bool | None = None
    shards: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Prospect:
    """A ring in memory.

    :ivar cloud: the services, nodes and records of its cell
    :ivar services: the settings of the services of the cell that live
    :ivar pooled: canonical names of those that have pools
    """

    cloud: clouds.Cloud
    services: tuple[settings.Settings, ...]
    pooled: frozenset[str] = frozenset()

    def steps(self, node: str) -> dict[str, planner.Step]:
        """Return what each service does with a node in its next pass.

        This does not include what services remember of their passes, such as
        how long they have waited.

        :param node: the node's UUID
        :returns: by the canonical name of the service; of those that list the
            node
        """
        return {host: steps[node] for host, steps in self._first_steps.items()
                if node in steps}

    @functools.cached_property
    def _first_steps(self) -> dict[str, Mapping[str, planner.Step]]:
        return {each.me: forecast.first_steps(self.cloud, each)
                for each in self.services if each.me not in self.pooled}

    @functools.cached_property
    def counts(self) -> dict[str, pool_limit.Limited]:
        """What each service with pools counts in its next pass.

        By the canonical name of the service.
        """
        return {each.me: forecast.first_count(self.cloud, each)
                for each in self.services if each.me in self.pooled}

    def run(self) -> forecast.Forecast:
        """Return the moves of the services until nothing moves."""
        return forecast.run(self.cloud, self.services, self.pooled)

    def listed(self) -> dict[str, int]:
        """Return how many nodes each service lists, by its canonical name."""
        return forecast.listed(self.cloud, self.services, self.pooled)


def of(seen: snapshot.Snapshot, key: rings.Key,
       change: Change = Change()) -> Prospect:
    """Return a ring as it is, or as it would be after a change.

    The other rings of its cell are there as well: some of their nodes may be
    the same.

    :param seen: what was read
    :param key: the ring
    :param change: the change
    """
    joining = {model.canonical(name): name for name in change.add}
    leaving = frozenset(map(model.canonical, change.remove))
    cloud = _cloud(dataclasses.replace(seen, nodes={
        uuid: dataclasses.replace(node, shard=change.shards[uuid])
        if uuid in change.shards else node
        for uuid, node in seen.nodes.items()}), key.cell)
    services = {}
    for host, service in seen.hosts.items():
        found = _settings(seen, host)
        # A service whose passes fail runs none.
        if found is not None and service.cell == key.cell and (
                host not in joining and seen.lives(host)
                and seen.state(host) is not membership.State.NOT_WORKING):
            services[host] = _changed(
                found, change, seen.key(host) == key,
                host in seen.known and host not in seen.profiles)
    for host, name in joining.items():
        known = seen.hosts.get(host)
        record = known.record if known else model.Service(name, clouds.EPOCH)
        cloud.services[host] = model.Service(record.host, clouds.EPOCH)
        found = _settings(seen, host) if known and (
            seen.key(host) == key) else None
        services[host] = _changed(
            found or _like_others(seen, key, record.host), change, True)
    for host in map(model.canonical, change.disable):
        cloud.services[host] = dataclasses.replace(
            cloud.services[host], disabled=True)
    for host in leaving:
        cloud.services[host] = dataclasses.replace(
            cloud.services[host], forced_down=True)
    return Prospect(cloud, tuple(
        found for host, found in sorted(services.items())
        if host not in leaving), frozenset(
            host for host in services if seen.has_pools(
                host, key if host in joining else None)))


def _settings(seen: snapshot.Snapshot, host: str) -> settings.Settings | None:
    """Return the settings that a service seems to have.

    A service with nodes that reports nothing runs Nova's own driver. One that
    its peers do not know has said nothing yet, and counts as configured like
    them.

    :param host: its canonical name
    :returns: None if nobody can tell
    """
    name, key = seen.hosts[host].record.host, seen.key(host)
    said = seen.profiles.get(host)
    if key is None:
        return None
    if said is not None:
        found = profile.settings_of(name, said, seen.down_time)
        # Its list is too long to be reported.
        return dataclasses.replace(found, peers=frozenset(
            each for each in seen.hosts if seen.key(each) == key)) if (
                said.peers is not None and not said.names) else found
    found = _like_others(seen, key, name)
    if host not in seen.known:
        return found
    return dataclasses.replace(
        profile.settings_of(name, None, seen.down_time), scope=found.scope,
        peers=found.peers)


def _like_others(seen: snapshot.Snapshot, key: rings.Key, name: str
                 ) -> settings.Settings:
    """Return the settings of a service that is configured as its peers are.

    :param key: its ring
    :param name: its name
    """
    said = sorted(host for host in seen.profiles
                  if host in seen.hosts and seen.key(host) == key)
    # The report of a dead service may be old.
    usual = next((host for host in said if seen.lives(host)),
                 said[0] if said else None)
    found = _settings(seen, usual) if usual is not None else None
    if found is None:
        return settings.Settings(
            name, seen.down_time, key.scope)
    return dataclasses.replace(
        found, host=name, peers=None if found.peers is None
        else settings.peers(name, found.scope, {*found.peers, name}))


def _changed(found: settings.Settings, change: Change, is_meant: bool,
             is_stock: bool = False) -> settings.Settings:
    """Return the settings of a service after a change.

    :param found: its settings now
    :param change: the change
    :param is_meant: whether the service is in the ring that is changed
    :param is_stock: whether it runs Nova's own driver, which knows no other
        number of partitions and no shards
    """
    joining = frozenset(map(model.canonical, change.add))
    if is_meant and change.partitions is not None and not is_stock:
        found = dataclasses.replace(found, partitions=change.partitions)
    if is_meant and change.by_shards is not None and not is_stock:
        found = dataclasses.replace(found, by_shards=change.by_shards)
    # The peer lists change as an operator has to change them. An old release
    # reports for a shard a list of one service.
    if found.peers is None or found.scope.shard:
        return found
    return dataclasses.replace(found, peers=(
        found.peers | joining if is_meant else found.peers - joining))


def _cloud(seen: snapshot.Snapshot, cell: str) -> clouds.Cloud:
    """Put a cell, and what Ironic has, into memory.

    Time begins with the snapshot: a service that is late has been silent for
    as long as it was then.
    """
    shift = clouds.EPOCH - seen.now
    services = [
        dataclasses.replace(
            service.record, alive=None,
            last_seen=_last_seen(service.record, seen, shift))
        for service in seen.services if service.cell == cell]
    return clouds.Cloud(
        services={service.name: service for service in services},
        nodes={node.uuid: clouds.Node(
            node.instance, node.group, node.shard, node.kind, node.is_ready)
            for node in seen.nodes.values()
            if node.uuid not in seen.rows
            or seen.rows[node.uuid].cell == cell},
        rows={pools.provider(name): clouds.Row.of(dataclasses.replace(
            row, pool=name if pools.is_pool(name) else None))
            for name, row in {**seen.rows, **seen.pools}.items()
            if row.cell == cell},
        members={host: _as_said(seen, host, said)
                 for host, said in seen.members.items() if said.cell == cell},
        instances={uuid: instance for uuid, instance in seen.instances.items()
                   if instance.cell == cell},
        allocations=_allocations(seen),
        other_drivers=seen.others | seen.other_rows)


def _allocations(seen: snapshot.Snapshot) -> dict[str, set[str]]:
    """Return the consumers with allocations, by the UUID of the provider.

    This does not ask Placement about pools: each instance in a pool counts as
    having its own allocation.
    """
    found = {node: set(having) for node, having in seen.allocated.items()}
    for instance in seen.instances.values():
        if instance.pool is not None:
            found.setdefault(pools.uuid_of(instance.pool), set()).add(
                instance.uuid)
    return found


def _as_said(seen: snapshot.Snapshot, host: str, said: snapshot.Member
             ) -> model.Member:
    """Return what a service says in its member record, for a forecast.

    Of its passes, that is that they have always failed, or nothing: a service
    whose passes work reports that with the first one that it runs.

    :param host: its canonical name
    :param said: its record
    """
    is_failing = seen.state(host) is membership.State.NOT_WORKING
    last_pass = dataclasses.replace(said.last_pass, at=model.NEVER) if (
        is_failing and said.last_pass is not None) else None
    return model.Member(
        last_pass, said.scope, said.by_shards, said.held, said.ring,
        said.follows, said.has_pools)


def _last_seen(service: model.Service, seen: snapshot.Snapshot,
               shift: datetime.timedelta) -> datetime.datetime:
    """Return the last heartbeat, in the time of the cloud."""
    if service.alive is None:
        return service.last_seen + shift
    if service.alive:
        return clouds.EPOCH
    # Its heartbeats are not in the database: the last one is at least that
    # old.
    return clouds.EPOCH - datetime.timedelta(seconds=2 * seen.down_time)
