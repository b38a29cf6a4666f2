# SPDX-License-Identifier: Apache-2.0

"""A forecast of what all services of a ring would do.

Every service runs real passes, in turn, on a copy of a cloud in memory, until
nothing moves. So the forecast has no rule of its own. It knows only the
allocations that it is given: they are read for a single node, and not for all.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import pool_limit
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds

_NODES, _POOLS = node_places.Nodes(), pool_places.Pools()

# A forecast that has not settled by then does not: services disagree.
_MOST_ROUNDS = 40


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What the services would do.

    :ivar owners: the service that each node is recorded for in the end, or in
        whose pools it counts, by its UUID
    :ivar hosts: the service of each instance in the end, by its UUID
    :ivar moves: how often each node changes its owner, by its UUID
    :ivar is_settled: whether nothing moves in the end, and the services that
        divide the same nodes go by one ring
    :ivar listed: the number of nodes that Ironic lists to each service in its
        last pass, by the canonical name of the service
    """

    owners: Mapping[str, str]
    hosts: Mapping[str, str]
    moves: Mapping[str, int]
    is_settled: bool
    listed: Mapping[str, int] = dataclasses.field(default_factory=dict)


def start(cloud: clouds.Cloud, current: settings.Settings
          ) -> observation.Memory:
    """Return the memory of a service that has been well for long.

    The members of its ring are as it sees them in its next pass.

    :param cloud: the cloud
    :param current: the service's settings
    """
    services = list(cloud.services.values())
    return observation.Memory(
        settings=current,
        watch=membership.Watch.of_one_look(
            services, clouds.EPOCH, current.down_time),
        work_watch=membership.WorkWatch.of_one_look(
            clouds.Nova(cloud, current.host).services(), clouds.EPOCH),
        own_work=observation.OwnWork(is_working=True),
        view=view.View(trust=trust.Trust.FULL))


def first_steps(cloud: clouds.Cloud, current: settings.Settings
                ) -> Mapping[str, planner.Step]:
    """Return what a service does in its next pass.

    :param cloud: the cloud, at the time 0
    :param current: the service's settings
    """
    tracker = _connect(_copy(cloud), current)
    return passes.run(
        tracker.world, start(cloud, current), current, _NODES).plan.steps


def first_count(cloud: clouds.Cloud, current: settings.Settings
                ) -> pool_limit.Limited:
    """Return what a service with pools counts in its next pass.

    :param cloud: the cloud, at the time 0
    :param current: the service's settings
    """
    tracker = _connect(_copy(cloud), current)
    result = passes.run(
        tracker.world, start(cloud, current), current, _POOLS)
    return pool_limit.Limited(result.found, result.left_out)


def listed(cloud: clouds.Cloud, services: Sequence[settings.Settings],
           pooled: Container[str] = ()) -> dict[str, int]:
    """Return the number of nodes that Ironic lists to each service.

    :param cloud: the cloud, at the time 0
    :param services: the settings of the services that live
    :param pooled: canonical names of those that have pools
    :returns: by the canonical name of the service
    """
    found = {}
    for current in services:
        tracker = _connect(_copy(cloud), current)
        memory = start(cloud, current)
        # In its first pass, a service does not know yet where its nodes are.
        for _ in range(2):
            memory = (
                passes.run(tracker.world, memory, current, _POOLS)
                if current.me in pooled else
                passes.run(tracker.world, memory, current, _NODES)).memory
        found[current.me] = len(memory.nodes)
    return found


def run(cloud: clouds.Cloud, services: Sequence[settings.Settings],
        pooled: Container[str] = ()) -> Forecast:
    """Let services run passes until nothing moves.

    :param cloud: the cloud, at the time 0
    :param services: the settings of the services that live
    :param pooled: canonical names of those that have pools
    """
    cloud = _copy(cloud)
    trackers = {each.me: _connect(cloud, each) for each in services}
    for each in services:
        trackers[each.me].memory = start(cloud, each)
    step = max((each.pass_interval for each in services), default=0)
    leap = max((max(each.handover_timeout, each.failover_after)
                for each in services), default=0)
    # All of them keep sending heartbeats, even those that run no passes here.
    alive = [each.host for each in cloud.services.values() if not any(
        membership.is_late(each, clouds.EPOCH, current.down_time)
        for current in services)]
    moves: dict[str, int] = {}
    counted: dict[str, str] = {}
    state = _state(cloud, counted)
    quiet = rounds = 0
    rests: dict[str, bool] = {}
    # Twice: after the first time, everything waited for is overdue.
    while quiet < 2 and rounds < _MOST_ROUNDS and not (
            quiet and all(rests.values()) and _is_at_rest(cloud, trackers)):
        rounds += 1
        quiet += 1
        # After each pass, because another service may take at once what one
        # has taken.
        for host, tracker in trackers.items():
            if host in pooled:
                _count(tracker, counted)
            else:
                rests[host] = _pass(tracker)
            before, state = state, _state(cloud, counted)
            if before == state:
                continue
            quiet = 0
            for node, owner in state[0].items():
                if before[0].get(node, owner) != owner:
                    moves[node] = moves.get(node, 0) + 1
        cloud.now += leap if quiet else step
        for host in alive:
            cloud.beat(host)
    return Forecast(
        {**{node: row.owner for node, row in cloud.rows.items()
            if row.pool is None}, **counted},
        {uuid: instance.host for uuid, instance in cloud.instances.items()
         if instance.host}, moves,
        bool(quiet) and _agree(trackers.values()),
        {host: len(each.memory.nodes) for host, each in trackers.items()})


def _agree(trackers: Iterable[clouds.Tracker]) -> bool:
    """Return whether services that divide the same nodes go by one ring."""
    rings: dict[str, set[str]] = {}
    for each in trackers:
        scope = each.current.scope
        rings.setdefault(ring.Ring((), 1).fingerprint(scope), set()).add(
            each.memory.view.ring.fingerprint(scope))
    return all(len(found) == 1 for found in rings.values())


def _copy(cloud: clouds.Cloud) -> clouds.Cloud:
    """Copy what passes may change."""
    return dataclasses.replace(
        cloud, services=dict(cloud.services), rows={
            node: clouds.Row(**vars(row))
            for node, row in cloud.rows.items()},
        members=dict(cloud.members),
        instances=dict(cloud.instances), allocations={
            node: set(found) for node, found in cloud.allocations.items()},
        inventories=dict(cloud.inventories))


def _connect(cloud: clouds.Cloud, current: settings.Settings
             ) -> clouds.Tracker:
    """Connect a service that tracks its own nodes."""
    tracker = clouds.connect(cloud, current)
    tracker.process.tracked_nodes = set(
        tracker.world.nova.rows_of(current.host))
    return tracker


def _is_at_rest(cloud: clouds.Cloud, trackers: Mapping[str, clouds.Tracker]
                ) -> bool:
    """Return whether time alone moves nothing, if nothing has moved.

    That is not known for the nodes of a service that runs no passes here, nor
    for a service that learns in a pass which shards to list in the next.

    :param trackers: those of the services that run passes
    """
    memories = [each.memory for each in trackers.values()]
    owners = {row.owner for row in cloud.rows.values()} | {
        instance.host for instance in cloud.instances.values()
        if instance.host}
    return trackers.keys() >= set(map(model.canonical, owners)) and not any(
        each.current.by_shards for each in trackers.values()) and not any(
        each.left_builds or each.vanished.has_too_many
        or each.handovers != observation.Handovers() for each in memories)


def _pass(tracker: clouds.Tracker) -> bool:
    """Run one pass of a service, and what the resource tracker then does.

    :returns: whether it waits for nothing
    """
    result = passes.run(
        tracker.world, tracker.memory, tracker.current, _NODES)
    tracker.memory = result.memory
    tracker.track(result)
    return all(step.decision.rests for step in result.plan.steps.values())


def _count(tracker: clouds.Tracker, counted: dict[str, str]) -> None:
    """Run one pass of a service with pools, and see which nodes count there.

    :param counted: for which service each node counts; changed
    """
    result = passes.run(
        tracker.world, tracker.memory, tracker.current, _POOLS)
    tracker.memory = result.memory
    tracker.count(result)
    me = tracker.current.me
    now = {node for pool in result.found.values() for node in pool.nodes}
    for node in [node for node, host in counted.items() if host == me]:
        if node not in now:
            del counted[node]
    counted.update(dict.fromkeys(now, me))


def _state(cloud: clouds.Cloud, counted: Mapping[str, str]) -> tuple[
        dict[str, str], dict[str, object], dict[str, str | None]]:
    names = {owner: model.canonical(owner)
             for owner in {row.owner for row in cloud.rows.values()}}
    return ({**{node: names[row.owner]
                for node, row in cloud.rows.items()}, **counted},
            {host: said.ring for host, said in cloud.members.items()},
            {uuid: instance.host
             for uuid, instance in cloud.instances.items()})
