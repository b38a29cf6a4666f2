# SPDX-License-Identifier: Apache-2.0

"""The takeover of the instances of dead services into pools of this one.

Each instance is transferred by the steps of
:mod:`nova_ironic_ring.core.taking.transfer`, each of which is safe to be the
last one. Room for all instances that come into a pool is made at once, after
the pool counts their nodes.

An instance on a node that has a record of its own, as with the ring driver,
comes into a pool in the same way, whether a dead service or this one has it.
After that, the node's record is deleted.

An error does not fail the pass: instances may have been taken over.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
import functools

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import pool_plan
from nova_ironic_ring.core.looking import consumers
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.taking import transfer
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports

#: What is to be taken over, by the name of the pool that it comes into.
Wanted = Mapping[str, list[pool_plan.Wanted]]
#: Names the nodes of a pool that have lost their instance since the last pass.
Released = Callable[[str], frozenset[str]]


@dataclasses.dataclass(frozen=True)
class Own:
    """The pools of this service.

    :ivar found: the pools, by name
    :ivar released: names the nodes that have lost their instance
    """

    found: Mapping[str, pools.Pool]
    released: Released

    def make_room(self, placement: ports.Placement, name: str, needed: int
                  ) -> None:
        """Make room in a pool for some allocations.

        Their nodes count, and are reserved. For the time of the takeover they
        are not reserved, or Placement would refuse the allocations. Builds on
        nodes that do not count here, and leftovers, take room as well: so the
        room is added to all that is allocated.

        :param placement: the port
        :param name: the name of the pool
        :param needed: how many allocations are to come
        """
        pool = self.found[name]
        counted = pool.inventory(self.released(name))
        used = len(placement.consumers(pool.uuid))
        placement.write(pool, dataclasses.replace(
            counted, reserved=max(0, counted.reserved - needed)
        ).with_room(used, needed))

    def having(self, instances: Collection[str]) -> 'Own':
        """Return the pools, with the nodes of some instances in use.

        :param instances: UUIDs of those that have come with an allocation; the
            nodes of the others stay reserved
        """
        return dataclasses.replace(self, found={
            name: dataclasses.replace(pool, used=pool.used | {
                uuid for uuid, node in pool.nodes.items()
                if node.instance in instances})
            for name, pool in self.found.items()})


@dataclasses.dataclass(frozen=True)
class Came:
    """What has come into the pools of this service.

    :ivar instances: the UUIDs of the instances
    :ivar allocated: the UUIDs of those that had an allocation
    """

    instances: frozenset[str] = frozenset()
    allocated: frozenset[str] = frozenset()


def take_over(this: one_pass.Pass, seen: pool_plan.Seen, own: Own,
              wanted: Wanted) -> Came:
    """Take over the wanted instances.

    :param this: the pass
    :param seen: what was read
    :param own: the pools of this service
    :param wanted: what is wanted
    """
    hosts = {each.host for batch in wanted.values() for each in batch
             if not each.is_own}
    batches: Wanted = {}
    sources: frozenset[str] = frozenset()
    first = next((each for batch in wanted.values() for each in batch), None)
    if first is None:
        return Came()
    with this.going_on(
            events.InstanceNotTaken, first.instance, first.host):
        left = _without(this, wanted, this.world.nova.other_drivers(
            sorted(hosts)) if hosts else frozenset())
        sources = _sources(this, seen, hosts)
        batches = left
    _forget(this.memory, wanted)
    taking = _Taking(this, own, sources)
    for name, batch in batches.items():
        # Without a row there is no compute node to put an instance on: the
        # resource tracker makes it after this pass.
        if name in seen.recorded:
            # Another pass finishes what is half done.
            with this.going_on(events.InstanceNotTaken,
                               batch[0].instance, batch[0].host):
                taking.take_into(name, batch)
    return Came(frozenset(taking.came),
                frozenset(taking.came & taking.allocated))


def _without(this: one_pass.Pass, wanted: Wanted,
             other_drivers: frozenset[str]) -> Wanted:
    """Leave instances to services that run another driver."""
    left: dict[str, list[pool_plan.Wanted]] = {}
    for pool, batch in wanted.items():
        for each in batch:
            if each.is_own or model.canonical(each.host) not in other_drivers:
                left.setdefault(pool, []).append(each)
            else:
                this.happened.append(events.InstanceElsewhere(
                    each.node, each.instance, each.host))
    return left


def _sources(this: one_pass.Pass, seen: pool_plan.Seen, hosts: Iterable[str]
             ) -> frozenset[str]:
    """Return the providers of the pools to take instances over from.

    A service that died in a takeover has allocations of instances that still
    belong to another.
    """
    dead = set(hosts) | {
        host for host in this.view.states
        if this.view.is_dead(host, this.current.failover_after)}
    return frozenset(
        pools.uuid_of(name) for host in sorted(dead)
        for name in this.world.nova.pools_of(host)) | {
            pools.uuid_of(str(instance.node))
            for instance in seen.of_others.values()
            if instance.host in dead and pools.is_pool(instance.node)}


def _forget(memory: observation.Memory, wanted: Wanted) -> None:
    """Forget the services of instances that were to be taken over.

    This service has them now, or another one was faster.
    """
    gone = {each.instance for batch in wanted.values() for each in batch}
    memory.forget_instances(gone)
    memory.pooled.places = {
        uuid: place for uuid, place in memory.pooled.places.items()
        if uuid not in gone}


class _Taking:
    """One call of :func:`take_over`: what its parts share, and nothing more.

    :ivar came: UUIDs of the instances that have come into pools
    :ivar allocated: UUIDs of those that had an allocation to be moved
    """

    def __init__(self, this: one_pass.Pass, own: Own,
                 sources: frozenset[str]) -> None:
        self._this = this
        self._own = own
        self._sources = sources
        self.came: set[str] = set()
        self.allocated: set[str] = set()

    @functools.cached_property
    def _in_sources(self) -> frozenset[str]:
        # Asked only once for all pools.
        return frozenset[str]().union(*map(
            self._this.world.placement.consumers, sorted(self._sources)))

    def take_into(self, name: str, wanted: Sequence[pool_plan.Wanted]) -> None:
        """Take over the wanted instances into one pool.

        :param name: the name of the pool
        :param wanted: the instances; those beyond the limit of a pass are left
            to the next one
        """
        this = self._this
        batch = self._readable(wanted[:takeover.MOST])
        allocated = {
            each.instance for each, _ in batch if self._has_allocation(each)}
        self.allocated |= allocated
        if allocated:
            self._own.make_room(this.world.placement, name, len(allocated))
        look.renew(this)
        for each, instance in this.while_lost(
                batch, lambda one: (
                    None if one[0].has_to_be_idle else one[0].host)):
            # Where it fails, the next pass sees how far it has come.
            with this.going_on(
                    events.InstanceNotTaken, each.instance, each.host):
                if self._take(each, transfer.Transfer(
                        each.instance, instance, self._sources | {each.node},
                        name)):
                    self.came.add(each.instance)

    def _readable(self, wanted: Sequence[pool_plan.Wanted]
                  ) -> list[tuple[pool_plan.Wanted, model.Instance]]:
        """Return the instances that Nova still has where they were seen."""
        found = self._this.world.nova.instances(
            each.instance for each in wanted)
        return [(each, instance) for each in wanted
                if (instance := found.get(each.instance)) is not None
                and instance.host == each.host
                and pools.has(instance, each.node)
                and (instance.is_idle or not each.has_to_be_idle)]

    def _has_allocation(self, each: pool_plan.Wanted) -> bool:
        """Return whether an instance has an allocation to be moved.

        An instance may have none, for instance after a failed rebuild.
        """
        return each.instance in self._in_sources or (
            # The node has it if its service has, or had, the ring driver.
            each.instance in self._this.world.placement.consumers(each.node))

    def _take(self, each: pool_plan.Wanted, made: transfer.Transfer) -> bool:
        """Transfer an instance into a pool, whoever has it."""
        this = self._this
        if not each.is_own:
            return transfer.take(this, made, each.node, not each.consents)
        is_moved = transfer.make(this, made)
        if is_moved:
            this.happened.append(events.InstanceMoved(
                each.instance, each.node, made.place))
        return is_moved


def give_back(this: one_pass.Pass, names: Iterable[str],
              having: consumers.Consumers, expected: frozenset[str]) -> None:
    """Give back instances that were only half taken over into the pools.

    This service moved allocations to a pool and ended before the next step.
    The service of the instances has come back since, or another one is to take
    them. A service with the ring driver had the pool driver then.

    :param this: the pass
    :param names: the names of this service's pools
    :param having: names their consumers
    :param expected: UUIDs of this service's instances, and of those that it
        is to take over
    """
    for name in names:
        strange = (having.of(name) or frozenset()) - expected
        if strange:
            with this.going_on(events.AllocationsUnknown, name):
                _give_back(this, name, this.world.nova.instances(strange))


def _give_back(this: one_pass.Pass, pool: str,
               strange: Mapping[str, model.Instance]) -> None:
    """Give back the allocations of some instances.

    :param pool: the name of the pool
    :param strange: the instances
    """
    placement = this.world.placement
    for uuid, instance in strange.items():
        # A build has no service before it has arrived at one.
        if not instance.needs_no_node and (
                instance.host is None or instance.node in (pool, None)):
            continue
        with this.going_on(
                events.InstanceNotTaken, uuid, str(instance.host)):
            if instance.host is None:
                # Whoever ended the build ended before this step.
                placement.free(uuid)
            # Its service reserves a node whose instance has no allocation, and
            # others reserve all nodes of a lost service.
            elif not transfer.turn_back(placement, transfer.Transfer(
                    uuid, instance, (), pool)):
                this.happened.append(events.AllocationNotMoved(
                    uuid, str(instance.node)))


def reclaim(this: one_pass.Pass, seen: pool_plan.Seen, own: Own) -> None:
    """Take back instances that another service has half taken over.

    A service that believed this one dead moved allocations, and ended before
    the next step.

    :param this: the pass
    :param seen: what was read
    :param own: the pools of this service
    """
    missing = {name: held for name, pool in own.found.items() if (
        held := {uuid: str(node.instance)
                 for uuid, node in pool.nodes.items()
                 if node.instance in seen.mine and uuid not in pool.used
                 and seen.places.get(str(node.instance)) == name})}
    if not missing:
        return
    nova, placement, in_pools = this.world.nova, this.world.placement, None
    with this.going_on(events.AllocationsUnknown, min(missing)):
        sources = frozenset(
            pools.uuid_of(name) for host, state in sorted(
                this.view.states.items()) if state.is_lost
            for name in nova.pools_of(host))
        in_pools = frozenset[str]().union(*map(
            placement.consumers, sorted(sources)))
    if in_pools is None:
        return
    for name, held in missing.items():
        # If it fails, the next pass tries again.
        with this.going_on(events.AllocationsUnknown, name):
            # Or the node has it, because this service was about to change to
            # the ring driver. Some instances have none at all.
            instances = [
                instance for uuid, instance in held.items()
                if instance in in_pools
                or instance in placement.consumers(uuid)]
            if instances:
                own.make_room(placement, name, len(instances))
            for instance in instances:
                transfer.transfer(nova, placement, transfer.Transfer(
                    instance, model.Instance(this.current.host, name),
                    sources | held.keys(), name))


def reserve_unused(world: ports.Ports, names: Iterable[str],
                   in_use: Callable[[], Collection[str | None]]
                   ) -> frozenset[str]:
    """Reserve the pools that have neither instances nor allocations.

    After that they are looked at again: the scheduler may have sent a build
    there since the first look. Their providers are deleted: Nova deletes their
    records next, and nobody would look for the providers again.

    :param world: the ports
    :param names: the names of pools
    :param in_use: names the compute nodes that Nova has instances on; it is
        asked once, when nothing more can come into the pools
    :returns: the names of those that have none, and will get none
    """
    empty = [name for name in names
             if not world.placement.consumers(pools.uuid_of(name))]
    for name in empty:
        world.placement.reserve_all(name)
    having = in_use() if empty else ()
    return frozenset(
        name for name in empty if name not in having
        and world.placement.drop_provider(pools.uuid_of(name)))


@dataclasses.dataclass(frozen=True)
class Left:
    """A pool that a lost service has left behind.

    :ivar pool: its name
    :ivar host: the canonical name of the service
    :ivar is_dead: whether its instances may be taken
    :ivar target: the name of a pool of this service; None if it has none, as
        with the ring driver
    """

    pool: str
    host: str
    is_dead: bool
    target: str | None


def settle(this: one_pass.Pass, left: Left, deployed: frozenset[str]) -> None:
    """Settle instances in the pool of a lost service that have no node.

    A build that was on its way there ends, and so does an unshelving. An
    instance that was being deleted or shelved and has lost its node already,
    or that was about to get one by an unshelving, is taken over by this
    service, which finishes the task. An error with one of them does not affect
    the others.

    :param this: the pass
    :param left: the pool
    :param deployed: instances that Ironic has on a node
    """
    world = this.world
    if not this.is_valid or not this.view.is_lost(left.host):
        return
    # Nothing is to be built there when the service comes back.
    world.placement.reserve_all(left.pool)
    having = world.placement.consumers(pools.uuid_of(left.pool))
    own = world.nova.instances_of(left.host)
    # No node is reserved before the service has the build. If Ironic has
    # another instance on one, the node's owner may have written it.
    having -= own & deployed
    # The allocation may have been freed before the service died.
    waiting = having | (own - deployed)
    found = world.nova.instances(waiting) if waiting else {}
    for uuid, instance in this.while_lost(
            found.items(), lambda _: left.host):
        if uuid not in having and not (
                instance.is_to_be_finished and instance.node == left.pool):
            continue
        if instance.host_name not in (None, left.host) or (
                not (instance.is_to_be_finished or instance.needs_no_node
                     or instance.is_to_be_built)):
            continue
        # What was taken before it has to be looked after all the same.
        event = (functools.partial(events.InstanceNotTaken, uuid, left.host)
                 if instance.is_to_be_finished else functools.partial(
                     events.BuildNotEnded, left.pool, uuid, left.host))
        with this.going_on(event):
            _settle(this, left, uuid, instance)


def _settle(this: one_pass.Pass, left: Left, uuid: str,
            instance: model.Instance) -> None:
    """Settle one instance, unless Ironic has it on a node."""
    if any(pools.has(instance, node)
           for node in this.world.ironic.nodes_of([uuid])):
        return
    if instance.is_to_be_finished:
        if left.is_dead:
            node = str(instance.node)
            this.take(model.Takeover(
                left.target or node, uuid, str(instance.host), instance.task,
                True), node if left.target else None)
    elif instance.needs_no_node:
        # Whoever ended the build ended before this step.
        builds.free(this, uuid, instance)
    else:
        builds.end(this, observation.LeftBuild(
            left.pool, left.host, frozenset({uuid})), uuid, instance)
