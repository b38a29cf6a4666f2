# SPDX-License-Identifier: Apache-2.0

"""The time that passes take, and the resource tracker after them, in memory.

Half of the nodes have an instance, unless a function says that all are free.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import time
import uuid

from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.taking import leftovers
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.core.world import forecast

_NODES, _POOLS = node_places.Nodes(), pool_places.Pools()
_PARTITIONS = 32
_ME, _OTHER = 'compute-1', 'compute-2'
#: The names of both services.
BOTH = (_ME, _OTHER)
# Nodes of a shard.
_SHARD = 50


def names(count: int) -> list[str]:
    """Return the UUIDs of nodes.

    :param count: how many
    """
    return [str(uuid.UUID(int=number * 7919)) for number in range(count)]


def desired(node: str) -> str | None:
    """Return the desired owner of a node, if both services are members.

    :param node: its UUID
    """
    return ring.Ring(BOTH, _PARTITIONS).owner(node)


def timed(do: Callable[[], object]) -> float:
    """Return the seconds of processor time that something takes.

    :param do: does it
    """
    start = time.process_time()
    do()
    return time.process_time() - start


def _settings(host: str = _ME, by_shards: bool = False) -> settings.Settings:
    # One scene deletes a quarter of the nodes.
    return settings.Settings(host, partitions=_PARTITIONS,
                             by_shards=by_shards, vanished_nodes_limit=50)


def _say(cloud: clouds.Cloud, current: settings.Settings,
         held: frozenset[str] = frozenset(), members: Sequence[str] = ()
         ) -> None:
    """Write the member record of a service.

    :param cloud: its cloud
    :param current: its settings
    :param held: the codes of the shards that it holds
    :param members: of the ring that it acknowledges; none if it does not
    """
    cloud.members[current.me] = model.Member(
        scope=current.scope, by_shards=current.by_shards, held=held,
        ring=ring.Ring(members, _PARTITIONS).fingerprint(current.scope)
        if members else None)


def made(count: int, hosts: Sequence[str] = BOTH, are_free: bool = False
         ) -> clouds.Cloud:
    """Make a cloud in which each node is with its desired owner.

    :param count: how many nodes it has
    :param hosts: the names of its services
    :param are_free: whether no node has an instance
    """
    cloud = clouds.Cloud()
    for host in hosts:
        cloud.beat(host)
        _say(cloud, _settings(host))
    owner = ring.Ring(hosts, _PARTITIONS).owner
    for number, node in enumerate(names(count)):
        host = str(owner(node))
        cloud.nodes[node] = clouds.Node()
        if number % 2 and not are_free:
            cloud.nodes[node].instance = f'instance-{number}'
            cloud.instances[f'instance-{number}'] = model.Instance(host, node)
        cloud.rows[node] = clouds.Row(host)
    return cloud


def _sharded(count: int) -> clouds.Cloud:
    """Make a cloud of free nodes that are divided by their shards."""
    cloud = made(count, are_free=True)
    there = [f'shard-{number:05}' for number in range(
        max(len(BOTH), count // _SHARD))]
    held = shards.deal(there, {host: () for host in BOTH})
    codes = {host: frozenset(shards.code(shard) for shard in there
                             if held[shard] == host) for host in BOTH}
    for host in BOTH:
        _say(cloud, _settings(host, True), codes[host])
    for number, (node, found) in enumerate(cloud.nodes.items()):
        found.shard = there[number % len(there)]
        cloud.rows[node] = clouds.Row(held[found.shard])
    return cloud


def pooled(count: int) -> clouds.Cloud:
    """Make a cloud of two services with pools.

    :param count: how many nodes it has
    """
    cloud = made(count)
    cloud.rows.clear()
    kind = clouds.Node().kind
    assert kind is not None
    of = {host: pools.name(host, kind) for host in BOTH}
    for host, name in of.items():
        cloud.rows[pools.uuid_of(name)] = clouds.Row(host, pool=name)
        cloud.allocations[pools.uuid_of(name)] = set()
    for instance, known in list(cloud.instances.items()):
        name = of[str(known.host)]
        cloud.instances[instance] = dataclasses.replace(known, node=name)
        cloud.allocations[pools.uuid_of(name)].add(instance)
    return cloud


class Service:
    """One service, which has had good passes for long."""

    def __init__(self, cloud: clouds.Cloud, host: str = _ME,
                 by_shards: bool = False) -> None:
        self.cloud = cloud
        self.current = _settings(host, by_shards)
        self.tracker = clouds.connect(cloud, self.current)
        self.tracker.memory = forecast.start(cloud, self.current)
        self.tracker.process.tracked_nodes = set(
            self.tracker.world.nova.rows_of(host))
        self.result = node_places.PassResult()

    def decide(self) -> None:
        """Run a pass, without the tracker, which :meth:`walk` runs."""
        self.result = passes.run(
            self.tracker.world, self.tracker.memory, self.current, _NODES)
        self.tracker.memory = self.result.memory

    def walk(self) -> None:
        """Let the tracker go from node to node."""
        self.tracker.track(self.result)

    def count(self) -> None:
        """Run a pass with pools, and record the pools."""
        result = passes.run(
            self.tracker.world, self.tracker.memory, self.current, _POOLS)
        self.tracker.memory = result.memory
        self.tracker.count(result)

    def look(self) -> None:
        """Look between two passes."""
        reaction.run(
            self.tracker.world, self.tracker.memory, self.current, _NODES)

    def look_at_pools(self) -> None:
        """Look between two passes, with pools."""
        reaction.run(
            self.tracker.world, self.tracker.memory, self.current, _POOLS)

    def wait(self) -> None:
        """Let some seconds pass."""
        self.cloud.now += 10
        for host, known in list(self.cloud.services.items()):
            if not known.forced_down:
                self.cloud.beat(host)

    def lose_other(self) -> None:
        """Force the other service down."""
        self.cloud.services[_OTHER] = dataclasses.replace(
            self.cloud.services[_OTHER], forced_down=True)
        self.wait()


def settled(cloud: clouds.Cloud, by_shards: bool = False) -> Service:
    """Return a service that has just had a pass in which nothing moved.

    :param cloud: its cloud
    :param by_shards: whether the services divide the nodes by their shards
    """
    service = Service(cloud, by_shards=by_shards)
    for _ in range(2):
        service.decide()
        service.walk()
        service.wait()
    return service


def counted(count: int) -> Service:
    """Return such a service with pools.

    :param count: how many nodes its cloud has
    """
    cloud = pooled(count)
    services = [Service(cloud, host) for host in BOTH]
    for service in services * 2:
        service.count()
        service.wait()
    return services[0]


def _steady(count: int) -> float:
    return timed(settled(made(count)).decide)


def _steady_walk(count: int) -> float:
    service = settled(made(count))
    service.decide()
    return timed(service.walk)


def _both(service: Service) -> float:
    """Return the seconds of a pass, and of the tracker after it."""
    return timed(service.decide) + timed(service.walk)


def bereft(cloud: clouds.Cloud, by_shards: bool = False) -> Service:
    """Return a service whose peer has died.

    :param cloud: its cloud
    :param by_shards: whether the services divide the nodes by their shards
    """
    service = settled(cloud, by_shards)
    service.lose_other()
    return service


def _first(count: int) -> float:
    """Time the first pass of the only service, and its tracker."""
    cloud = made(count, (_ME,), are_free=True)
    cloud.rows.clear()
    cloud.members.clear()
    return _both(Service(cloud))


def _death(count: int) -> float:
    return _both(bereft(made(count, are_free=True)))


def _failover(count: int) -> float:
    return _both(bereft(made(count)))


def _look(count: int) -> float:
    return timed(settled(made(count)).look)


def _look_at_death(count: int) -> float:
    return timed(bereft(made(count)).look)


def _offers(count: int) -> float:
    """Time the pass that offers a newcomer its half, and the tracker."""
    cloud = made(count, (_ME,), are_free=True)
    service = settled(cloud)
    cloud.beat(_OTHER)
    _say(cloud, _settings(_OTHER))
    service.wait()
    return _both(service)


def offered(count: int) -> Service:
    """Return a newcomer, to which its half of the nodes is offered.

    :param count: how many nodes its cloud has
    """
    cloud = made(count, (_OTHER,), are_free=True)
    cloud.beat(_ME)
    _say(cloud, _settings(_OTHER), members=BOTH)
    _say(cloud, _settings())
    service = Service(cloud)
    service.wait()
    return service


def _takes(count: int) -> float:
    return _both(offered(count))


def _has_taken(count: int) -> float:
    """Time the next pass, in which it looks for builds of the giver."""
    service = offered(count)
    service.decide()
    service.walk()
    service.wait()
    return _both(service)


def _look_at_offers(count: int) -> float:
    """Time a look of a service that waits for half of the nodes."""
    service = offered(count)
    _say(service.cloud, _settings(_OTHER))
    service.decide()
    _say(service.cloud, _settings(_OTHER), members=BOTH)
    return timed(service.look)


def _vanished(count: int) -> float:
    """Time a pass after a quarter of the nodes was deleted from Ironic."""
    service = settled(made(count, (_ME,), are_free=True))
    gone = names(count)[::4]
    for node in gone:
        del service.cloud.nodes[node]
    tracker = service.tracker

    def look() -> None:
        service.decide()
        for node in gone:
            leftovers.is_deleted(one_pass.Pass(
                tracker.world, tracker.current, tracker.memory), node)
    return timed(look)


def _shards(count: int) -> float:
    return timed(settled(_sharded(count), by_shards=True).decide)


def _death_with_shards(count: int) -> float:
    return _both(bereft(_sharded(count), by_shards=True))


def _pool(count: int) -> float:
    return timed(counted(count).count)


def _pool_first(count: int) -> float:
    return timed(Service(pooled(count)).count)


def _pool_death(count: int) -> float:
    service = counted(count)
    service.lose_other()
    return timed(service.count)


def _pool_look(count: int) -> float:
    return timed(counted(count).look_at_pools)


def _pool_look_at_death(count: int) -> float:
    service = counted(count)
    service.lose_other()
    return timed(service.look_at_pools)


#: Each takes the number of nodes, and returns the seconds that it takes.
SCENES: Mapping[str, Callable[[int], float]] = {
    'ring: a steady pass': _steady,
    "ring: its tracker's way": _steady_walk,
    'ring: all nodes are new': _first,
    'ring: a death, all nodes free': _death,
    'ring: a death': _failover,
    'ring: a look between passes': _look,
    'ring: one at a death': _look_at_death,
    'ring: one at offers': _look_at_offers,
    'ring: half is offered': _offers,
    'ring: half is taken': _takes,
    'ring: the pass after that': _has_taken,
    'ring: a quarter has vanished': _vanished,
    'ring over shards: a steady pass': _shards,
    'ring over shards: a death': _death_with_shards,
    'pool: the first pass': _pool_first,
    'pool: a steady pass': _pool,
    'pool: a death': _pool_death,
    'pool: a look between passes': _pool_look,
    'pool: one at a death': _pool_look_at_death}
