# SPDX-License-Identifier: Apache-2.0

"""The takeover of the instances of dead services into pools of this one.

Each instance is transferred by the steps of
:mod:`nova_ironic_ring.core.taking.transfer`, each of which is safe to be the
last one. Room for all instances that come into a pool is made at once, after
the pool counts their nodes.

An instance on a node that has a record of its own, as with the ring driver,
comes into a pool in the same way, be it a dead service's or this one's. The
node's record goes after that.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Mapping, Sequence
import dataclasses
import functools

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.taking import builds
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.taking import transfer
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports


@dataclasses.dataclass(frozen=True)
class Wanted:
    """An instance that is to be taken over.

    :ivar instance: its UUID
    :ivar node: the UUID of the node that it is on
    :ivar host: the name of the service that it belongs to: a dead one, one
        that consents, or this one
    :ivar is_own: whether it is this one
    :ivar consents: whether it is one that lives and consents
    """

    instance: str
    node: str
    host: str
    is_own: bool = False
    consents: bool = False

    @property
    def has_to_be_idle(self) -> bool:
        """Whether the instance is left where something is under way with it.

        That goes on with the service and the node that it has read.
        """
        return self.is_own or self.consents


@dataclasses.dataclass(frozen=True)
class WantedTakeovers:
    """What is to be taken over in a pass.

    :ivar wanted: the instances, by the name of the pool that has their nodes
    :ivar pools: this service's pools, with the inventory that they have
    :ivar recorded: the names of those that have a row
    :ivar sources: UUIDs of the providers of the pools of their services
    """

    wanted: Mapping[str, list[Wanted]]
    pools: Mapping[str, tuple[pools.Pool, pools.Inventory]]
    recorded: frozenset[str]
    sources: frozenset[str]


@dataclasses.dataclass(frozen=True)
class TakenIntoPools:
    """What has come of the takeovers of a pass.

    :ivar taken: what was taken over
    :ivar happened: the events for the log
    :ivar moved: UUIDs of this service's own instances that are in pools now
    :ivar allocated: UUIDs of those that had an allocation to be moved
    """

    taken: tuple[takeover.Takeover, ...] = ()
    happened: tuple[events.Event, ...] = ()
    moved: frozenset[str] = frozenset()
    allocated: frozenset[str] = frozenset()


def take_over(world: ports.Ports, request: WantedTakeovers) -> TakenIntoPools:
    """Take over what is wanted.

    :param world: the ports
    :param request: what is wanted
    """
    taken: list[takeover.Takeover] = []
    happened: list[events.Event] = []
    moved: set[str] = set()
    allocated: set[str] = set()
    # Asked once, however many pools there are to take into.
    in_sources = functools.cache(lambda: frozenset[str]().union(*map(
        world.placement.consumers, sorted(request.sources))))
    for name, wanted in request.wanted.items():
        # Without a row there is no compute node to put an instance on: the
        # resource tracker makes it after this pass.
        if name not in request.recorded:
            continue
        try:
            batch = _readable(world, wanted)
            allocated |= _allocated(world, in_sources, batch)
            for event, task in _of_pool(world, _Batch(
                    name, batch, frozenset(allocated)), request):
                happened.append(event)
                if isinstance(event, events.InstanceTaken):
                    taken.append(takeover.Takeover(
                        name, event.instance, event.host, task,
                        event.is_dead))
                elif isinstance(event, events.InstanceMoved):
                    moved.add(event.instance)
        except Exception as error:
            # Nothing of it is half done but what another pass finishes.
            happened.append(events.InstanceNotTaken(
                wanted[0].instance, wanted[0].host, error))
    return TakenIntoPools(tuple(taken), tuple(happened), frozenset(moved),
                          frozenset(allocated))


@dataclasses.dataclass(frozen=True)
class _Batch:
    """What is to come into one pool.

    :ivar pool: the name of the pool
    :ivar instances: the instances, and what Nova says of them
    :ivar allocated: UUIDs of instances that have an allocation to be moved
    """

    pool: str
    instances: list[tuple[Wanted, model.Instance]]
    allocated: frozenset[str]


def _readable(world: ports.Ports, wanted: list[Wanted]
              ) -> list[tuple[Wanted, model.Instance]]:
    """Name what Nova still has where it was seen, within the limit."""
    wanted = wanted[:takeover.MOST]
    found = world.nova.instances(each.instance for each in wanted)
    return [(each, instance) for each in wanted
            if (instance := found.get(each.instance)) is not None
            and instance.host == each.host
            and pools.has(instance, each.node)
            and (instance.is_idle or not each.has_to_be_idle)]


def _allocated(world: ports.Ports, in_sources: Callable[[], frozenset[str]],
               batch: list[tuple[Wanted, model.Instance]]) -> frozenset[str]:
    """Name the instances that have an allocation to be moved.

    There are instances that have none, as after a rebuild that has failed.
    """
    if not batch:
        return frozenset()
    return frozenset(
        each.instance for each, _ in batch if each.instance in in_sources()
        # Where one with the ring driver has it, or has brought it.
        or each.instance in world.placement.consumers(each.node))


def _of_pool(world: ports.Ports, batch: _Batch, request: WantedTakeovers
             ) -> Iterator[tuple[events.Event, str | None]]:
    """Take over what is wanted into one pool.

    :returns: an event, and what was being done with the instance
    """
    name = batch.pool
    pool, counted = request.pools[name]
    needed = sum(each.instance in batch.allocated
                 for each, _ in batch.instances)
    if needed:
        _make_room(world, pool, counted, needed)
    for each, instance in batch.instances:
        try:
            outcome = transfer.transfer(
                world.nova, world.placement, transfer.Transfer(
                    each.instance, instance, request.sources | {each.node},
                    name))
            if outcome is transfer.Outcome.NOT_MOVED:
                yield events.AllocationNotMoved(each.instance, name), None
            elif outcome is transfer.Outcome.DONE:
                yield (events.InstanceMoved(each.instance, each.node, name)
                       if each.is_own else events.InstanceTaken(
                           each.node, each.instance, each.host,
                           not each.consents)), instance.task
        except Exception as error:
            # The next pass sees how far it has come.
            yield events.InstanceNotTaken(
                each.instance, each.host, error), None


def _make_room(world: ports.Ports, pool: pools.Pool,
               counted: pools.Inventory, needed: int) -> None:
    """Have a pool take some allocations.

    Their nodes are counted, and reserved: for as long as it takes they are
    not, or Placement refuses the allocations. Builds on nodes that do not
    count here, and what was not cleaned up, take room as well: so it is made
    beside all that is allocated.
    """
    used = len(world.placement.consumers(pool.uuid))
    world.placement.write(pool, dataclasses.replace(
        counted, reserved=max(0, counted.reserved - needed)
    ).with_room(used, needed))


class Consumers:
    """Asks Placement who has allocations of pools, once of each."""

    def __init__(self, world: ports.Ports, happened: list[events.Event]
                 ) -> None:
        """Begin without an answer.

        :param world: the ports
        :param happened: the events for the log, to which this adds
        """
        self._world = world
        self._happened = happened
        self._known: dict[str, frozenset[str] | None] = {}

    def of(self, pool: str) -> frozenset[str] | None:
        """Name the consumers of a pool.

        :param pool: its name
        :returns: their UUIDs; None if Placement does not answer
        """
        if pool not in self._known:
            try:
                self._known[pool] = self._world.placement.consumers(
                    pools.uuid_of(pool))
            except Exception as error:
                # Nova and Ironic have answered: the pass goes on.
                self._known[pool] = None
                self._happened.append(
                    events.AllocationsUnknown(pool, error))
        return self._known[pool]


def give_back(world: ports.Ports, names: Iterable[str], consumers: Consumers,
              expected: frozenset[str]) -> list[events.Event]:
    """Give back what this service has half taken over into its pools.

    It has moved allocations to a pool and has ended before the next step; the
    service of the instances has come back since, or another is to take them. A
    service with the ring driver had the pool driver then. An error does not
    fail the pass.

    :param world: the ports
    :param names: the names of this service's pools
    :param consumers: names their consumers
    :param expected: UUIDs of this service's instances, and of those that it
        is to take over
    """
    return [event for name in names for event in _give_back(
        world, name, (consumers.of(name) or frozenset()) - expected)]


def _give_back(world: ports.Ports, pool: str, consumers: frozenset[str]
               ) -> list[events.Event]:
    """Give back the allocations of some instances.

    :param pool: the name of the pool
    :param consumers: their UUIDs
    """
    happened: list[events.Event] = []
    try:
        found = world.nova.instances(consumers) if consumers else {}
    except Exception as error:
        return [events.AllocationsUnknown(pool, error)]
    target = pools.uuid_of(pool)
    for uuid, instance in found.items():
        # A build has no service before it has arrived at one.
        if not instance.needs_no_node and (
                instance.host is None or instance.node in (pool, None)):
            continue
        try:
            if instance.host is None:
                # Who has ended the build has ended before this.
                world.placement.free(uuid)
                continue
            place = str(instance.node)
            # Its service reserves a node whose instance has no allocation, and
            # others reserve all of a lost one's.
            if not transfer.move(world.placement, transfer.Transfer(
                    uuid, instance, {target}, place, pool)):
                happened.append(events.AllocationNotMoved(uuid, place))
        except Exception as error:
            happened.append(events.InstanceNotTaken(
                uuid, str(instance.host), error))
    return happened


def reclaim(world: ports.Ports, counted: tuple[pools.Pool, pools.Inventory],
            instances: Sequence[str], sources: frozenset[str]
            ) -> list[events.Event]:
    """Take back the allocations of this service's own instances.

    A service has moved them that took this one for dead, and has ended before
    the next step.

    :param world: the ports
    :param counted: the pool of this service that has the instances, with its
        inventory
    :param instances: UUIDs of those without an allocation of it
    :param sources: UUIDs of the providers of lost services' pools
    """
    happened: list[events.Event] = []
    pool, inventory = counted
    try:
        _make_room(world, pool, inventory, len(instances))
        for uuid in instances:
            world.placement.move(uuid, sources, pool.uuid)
    except Exception as error:
        # The next pass tries again.
        happened.append(events.AllocationsUnknown(pool.name, error))
    return happened


@dataclasses.dataclass(frozen=True)
class Left:
    """A pool that a lost service has left behind.

    :ivar pool: its name
    :ivar host: the canonical name of the service
    :ivar is_dead: whether its instances may be taken
    :ivar target: the name of a pool of this service; None if it has none, as
        one with the ring driver
    """

    pool: str
    host: str
    is_dead: bool
    target: str | None


def reserve_if_unused(world: ports.Ports, pool: str) -> bool:
    """Reserve a pool that has neither instances nor allocations.

    The pool is looked at again then: the scheduler may have sent a build there
    since the first look.

    :param world: the ports
    :param pool: its name
    :returns: whether it has none, and gets none
    """
    if not _is_empty(world, pool):
        return False
    world.placement.reserve_all(pool)
    return _is_empty(world, pool)


def reserve_unused(world: ports.Ports, names: Iterable[str],
                   in_use: Callable[[], Collection[str | None]]
                   ) -> frozenset[str]:
    """Reserve the pools that have neither instances nor allocations.

    As :func:`reserve_if_unused` does it, of many pools of one service.

    :param world: the ports
    :param names: the names of pools
    :param in_use: names the compute nodes that Nova has instances on; it is
        asked once, when nothing more can come into the pools
    :returns: the names of those that have none, and get none
    """
    empty = [name for name in names
             if not world.placement.consumers(pools.uuid_of(name))]
    for name in empty:
        world.placement.reserve_all(name)
    having = in_use() if empty else ()
    return frozenset(
        name for name in empty if name not in having
        and not world.placement.consumers(pools.uuid_of(name)))


def _is_empty(world: ports.Ports, pool: str) -> bool:
    return not world.nova.instances_on(pool) and (
        not world.placement.consumers(pools.uuid_of(pool)))


def settle(world: ports.Ports, left: Left, deployed: frozenset[str]
           ) -> TakenIntoPools:
    """Settle what is not on a node of Ironic in the pool of a lost service.

    A build that was on its way there ends, and so does an unshelving. What was
    being deleted or shelved, and has lost its node already, or was about to
    get one when it was unshelved, becomes this service's, which finishes that.
    An error with one of them does not keep the others from it.

    :param world: the ports
    :param left: the pool
    :param deployed: instances that Ironic has on a node
    """
    taken: list[takeover.Takeover] = []
    happened: list[events.Event] = []
    # Nothing more is to be built there when the service comes back.
    world.placement.reserve_all(left.pool)
    consumers = world.placement.consumers(pools.uuid_of(left.pool))
    own = world.nova.instances_of(left.host)
    # No node is reserved before the service has the build. Where Ironic says
    # so of another, that is the word of a node's owner.
    consumers -= own & deployed
    # The allocation may have been freed before the service has died.
    waiting = consumers | (own - deployed)
    found = world.nova.instances(waiting) if waiting else {}
    for uuid, instance in found.items():
        if uuid not in consumers and not (
                instance.is_to_be_finished and instance.node == left.pool):
            continue
        if instance.host_name not in (None, left.host) or (
                not (instance.is_to_be_finished or instance.needs_no_node
                     or instance.is_to_be_built)):
            continue
        try:
            if any(pools.has(instance, node)
                   for node in world.ironic.nodes_of([uuid])):
                continue
            if instance.is_to_be_finished:
                if left.is_dead and _take(world, left, uuid, instance):
                    taken.append(takeover.Takeover(
                        left.target or left.pool, uuid, left.host,
                        instance.task, True))
                    happened.append(events.InstanceTaken(
                        left.target or left.pool, uuid, left.host, True))
            elif instance.needs_no_node:
                # Who has ended the build has ended before this.
                world.placement.free(uuid)
            elif builds.end(world, instance, uuid, left.host):
                happened.append(builds.ended(
                    instance, left.pool, uuid, left.host))
                world.placement.free(uuid)
        except Exception as error:
            # What was taken before it has to be looked after all the same.
            happened.append(
                events.InstanceNotTaken(uuid, left.host, error)
                if instance.is_to_be_finished else events.BuildNotEnded(
                    left.pool, uuid, left.host, error))
    return TakenIntoPools(tuple(taken), tuple(happened))


def _take(world: ports.Ports, left: Left, uuid: str, instance: model.Instance
          ) -> bool:
    """Make an instance this service's that Ironic has on no node."""
    expected = ports.Expected(
        str(instance.host), str(instance.node), instance.task)
    if left.target is None:
        return world.nova.set_instance_host(uuid, expected)
    return world.nova.place_instance(uuid, expected, left.target)
