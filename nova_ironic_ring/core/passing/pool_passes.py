# SPDX-License-Identifier: Apache-2.0

"""The pass of the pool driver: look, and count the nodes of each pool.

A free node needs no record that says whose it is: it counts for the service
that the ring maps it to. While two services see different rings, it counts
twice or not at all; Ironic gives it to one instance all the same.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import pool_limit
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import others
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.taking import pool_failover
from nova_ironic_ring.core.taking import pool_missing
from nova_ironic_ring.core.taking import pool_records
from nova_ironic_ring.core.taking import pool_takeover
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

# So many pools are worth a warning, where they have hardly more nodes.
_MANY_POOLS = 20

_Nodes = pool_failover.Nodes


@dataclasses.dataclass(frozen=True)
class PoolPassResult:
    """What has come of a pass.

    :ivar found: the pools of this service, by name
    :ivar memory: what is to be remembered
    :ivar taken: the instances that this service has taken over
    :ivar orphans: instances of others, or of nobody, on nodes that are for
        this service
    :ivar happened: the events for the log
    :ivar work: what this service says of its passes
    :ivar consent: by which ring others may take this service's instances;
        None if nobody may
    :ivar first: the UUID of this service's first compute node, as Nova has
        them; None if it has none
    :ivar listed: how many nodes Ironic has listed, with those that are hidden
    :ivar asked: a fingerprint of what Ironic was asked for
    :ivar left_out: the pools that are too many, by name, which this service
        does not make
    """

    found: Mapping[str, pools.Pool] = dataclasses.field(default_factory=dict)
    memory: observation.Memory = observation.Memory()
    taken: Sequence[takeover.Takeover] = ()
    orphans: frozenset[str] = frozenset()
    happened: Sequence[events.Event] = ()
    work: own_work.Work = own_work.Work()
    consent: str | None = None
    first: str | None = None
    listed: int = 0
    asked: str = ''
    left_out: Mapping[str, pools.Pool] = dataclasses.field(
        default_factory=dict)

    def counted(self, pool: pools.Pool) -> model.Counted | None:
        """Return what the row of a pool is to say of its nodes.

        :param pool: the pool
        :returns: None if nothing is known of them
        """
        nodes = len(pool.nodes) + pool.missing
        gone = len(self.memory.vanished.deleted)
        return model.Counted(
            nodes, self.listed, self.asked, gone,
            self.memory.pooled.gone_at if gone else None) if (
                nodes or not pool.is_hidden) else None


@dataclasses.dataclass(frozen=True)
class _SeenRecords(pool_missing.SeenNodes):
    """What was read.

    :ivar records: the records of nodes
    :ivar claimed: what has come of those of free nodes that others have
    :ivar narrowed: the nodes that count for services which are limited to some
        of this one's
    :ivar free: the free nodes that are for this service
    :ivar here: the instances of others on nodes that are for this service
    """

    records: pool_records.Records = pool_records.Records()
    claimed: pool_records.Claimed = pool_records.Claimed()
    narrowed: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()
    here: frozenset[str] = frozenset()


def _none_released(pool: str) -> frozenset[str]:
    return frozenset()


def run(world: ports.Ports, before: observation.Memory,
        current: settings.Settings,
        released: pool_failover.Released = _none_released) -> PoolPassResult:
    """Run a pass.

    What is read, is read in the order of :func:`passes.run`, for the same
    reasons.

    :param world: the ports
    :param before: what this service remembers
    :param current: its settings
    :param released: names the nodes that have lost their instance, as some may
        since they were listed
    :raises UnansweredError: if Nova or Ironic could not be asked
    """
    this = look.Pass(world, current)
    begun = listing.begin(this, before)
    memory = begun.memory
    with look.asking(this, look.Port.IRONIC, memory):
        nodes: _Nodes = current.kind_rule.nodes(
            world.ironic.describe(begun.nodes))
    with look.asking(this, look.Port.NOVA, memory):
        seen, memory = _observe(this, memory, begun, nodes)
    memory = look.at_silent_owners(this, memory, seen.records.others)
    with look.asking(this, look.Port.IRONIC, memory):
        kept, memory = pool_missing.guard(
            this, memory, seen, _share(this, memory, seen)
            if memory.pooled.started else pools.Share())
    memory = look.at_own_heartbeat(this, memory)
    with look.asking(this, look.Port.NOVA, memory):
        claimed, memory = pool_records.claim(
            this, memory, seen.records, seen.free)
    seen = dataclasses.replace(
        seen, nodes={**kept, **nodes}, claimed=claimed)
    with look.asking(this, look.Port.NOVA, memory):
        seen = pool_failover.ask_consent(this, memory, seen)
    consumers = pool_takeover.Consumers(world, this.happened)
    limited = _pools(this, memory, seen, consumers)
    found = limited.kept
    memory = pool_failover.noticed(before, memory, current)
    for name in pool_failover.to_be_reread(memory, found):
        world.placement.reread(name)
    memory = pool_failover.next_turn(memory)
    taken, outcome = claimed.instances, pool_takeover.TakenIntoPools()
    if memory.standing.trust is trust.Trust.FULL and (
            not memory.standing.is_ending):
        with look.asking(this, look.Port.NOVA, memory):
            wanted = pool_failover.wanted(this, memory, seen)
            outcome = pool_failover.take_over(this, seen, {
                name: (pool, pool.inventory(released(name)))
                for name, pool in found.items()}, wanted)
            taken += outcome.taken
            memory = pool_failover.forget(memory, wanted)
            found = pool_failover.with_taken(found, outcome)
            this.happened.extend(pool_takeover.give_back(
                world, found, consumers, seen.mine.union(
                    each.instance for batch in wanted.values()
                    for each in batch)))
            _reclaim(this, seen, found, released)
            taken += _settle(this, memory, seen)
    memory = pool_records.remove(this, memory, _replaced(seen, outcome))
    counted = {pool.uuid: True for pool in found.values()}
    own_work.say_scope(this, seen.records.own, counted, memory)
    said, memory = own_work.say(
        this, counted, memory, dict(seen.records.own))
    this.happened.extend(_count(
        memory.pooled, limited, current.pools_limit))
    return PoolPassResult(
        found, dataclasses.replace(
            memory, pooled=dataclasses.replace(
                memory.pooled, pools=found, occupied={
                    uuid: node for uuid, node in nodes.items()
                    if node.instance is not None},
                left_out=frozenset(limited.left_out))),
        taken,
        # Nova refuses to start a new service that names instances.
        seen.here if begun.is_recorded else frozenset(),
        this.happened, said, pool_failover.consent(memory, current),
        next(iter(seen.records.own), None),
        len(seen.nodes) + pool_missing.unseen(memory, seen.nodes),
        pool_missing.asked(current, memory), limited.left_out)


def close_unlisted(world: ports.Ports, memory: observation.Memory,
                   names: Iterable[str]) -> frozenset[str]:
    """Reserve the pools that are not listed, and name those that can go.

    Their records go then, and with them their providers, and by Nova's code
    the allocations of all instances that Nova has on them. One that is no pool
    is a node that this service has had with another driver: it goes in a pass.
    However many there are, Nova is asked once.

    :param world: the ports
    :param memory: what this service remembers of the pass that has not listed
        them
    :param names: the names of the compute nodes
    :returns: the names of those that nothing is in, and nothing comes into
    """
    current, pooled = memory.settings, memory.pooled
    if current is None or memory.vanished.is_closed:
        return frozenset()
    left = [name for name in names if pools.is_of(current.host, name)
            and name not in pooled.pools]
    return pool_takeover.reserve_unused(world, left, lambda: _in_use(
        world, memory, current.host)) if left else frozenset()


def _in_use(world: ports.Ports, memory: observation.Memory, host: str
            ) -> frozenset[str | None]:
    """Name the compute nodes that Nova has instances of this service on.

    What Nova deletes with a pool is what rests on it of these alone.
    """
    mine, places = world.nova.instances_of(host), memory.pooled.places
    unknown = mine - places.keys()
    found = world.nova.instances(unknown) if unknown else {}
    return frozenset(places[uuid] for uuid in mine & places.keys()) | {
        instance.node for instance in found.values()}


def _observe(this: look.Pass, memory: observation.Memory,
             begun: listing.Beginning, nodes: _Nodes
             ) -> tuple[_SeenRecords, observation.Memory]:
    """Read what Nova has of this service, and of instances beside it."""
    nova, mine = this.world.nova, begun.mine
    places = {uuid: place for uuid, place in memory.pooled.places.items()
              if uuid in mine}
    unknown = nova.instances(mine - places.keys()) if (
        mine - places.keys()) else {}
    # A build may come back to another pool of this service.
    settled = places | {uuid: instance.node for uuid, instance
                        in unknown.items() if instance.is_idle}
    free = _free(this, memory, nodes) - begun.narrowed
    here = _of_others_here(this, memory, nodes, mine)
    of_others = _of_others(this, memory, here)
    this.happened.extend(others.elsewhere(
        memory.instances, {uuid: node.instance for uuid, node in nodes.items()
                           if node.instance in here}, of_others, ()))
    # One that is disabled is in no ring, and may have died with builds.
    services, memory = look.at_all_services(this, memory)
    members = memory.standing.membership.joined(services.membership)
    own = nova.rows_of(this.current.host)
    looked_for = sorted(node for node in (
        free | {
            uuid for uuid, node in nodes.items() if node.instance in mine})
        if node not in own)
    records = pool_records.Records(
        own, nova.rows(looked_for) if looked_for else {}, services)
    seen = _SeenRecords(nodes, mine, places | {
        uuid: instance.node for uuid, instance in unknown.items()},
        frozenset(pools.recorded(own)), of_others, members,
        records=records, narrowed=begun.narrowed, free=free, here=here,
        unasked=begun.unasked)
    return seen, pool_missing.begun(this, dataclasses.replace(
        memory, instances=of_others, pooled=dataclasses.replace(
            memory.pooled, places=settled)), own)


def _free(this: look.Pass, memory: observation.Memory, nodes: _Nodes
          ) -> frozenset[str]:
    """Name the free nodes that are for this service."""
    owner = memory.standing.ring.owner
    return frozenset(uuid for uuid, node in nodes.items()
                     if node.instance is None
                     and owner(uuid) == this.current.me)


def _of_others_here(this: look.Pass, memory: observation.Memory,
                    nodes: _Nodes, mine: frozenset[str]) -> frozenset[str]:
    """Name the instances of others on nodes that are for this service."""
    owner = memory.standing.ring.owner
    return frozenset(
        node.instance for uuid, node in nodes.items()
        if node.instance is not None and node.instance not in mine
        and owner(uuid) == this.current.me)


def _of_others(this: look.Pass, memory: observation.Memory,
               found: frozenset[str]) -> dict[str, model.Instance]:
    """Find out whether instances have a service.

    They are read once, and those without one until that has changed. An
    operator, or another service, may have given one to a third: so it is asked
    which instances their services have.
    """
    nova = this.world.nova
    known = {uuid: instance for uuid, instance in memory.instances.items()
             if uuid in found and instance.host is not None}
    there = {host: nova.instances_of(host) for host in sorted({
        str(instance.host) for instance in known.values()})}
    known = {uuid: instance for uuid, instance in known.items()
             if uuid in there[str(instance.host)]}
    unknown = found - known.keys()
    return known | (this.world.nova.instances(unknown) if unknown else {})


def _pools(this: look.Pass, memory: observation.Memory, seen: _SeenRecords,
           consumers: pool_takeover.Consumers) -> pool_limit.Limited:
    """Put the nodes that count for this service into its pools."""
    host = this.current.host
    share = _share(this, memory, seen)
    named = {place for place in seen.places.values()
             if place is not None and pools.is_of(host, place)}
    is_hidden = memory.vanished.has_too_many or not seen.nodes
    found = pools.group(host, seen.nodes, share, named)
    for pool in sorted(seen.recorded - found.keys()):
        # A build may be on its way to it.
        if is_hidden or consumers.of(pool):
            found[pool] = pools.Pool(pool)
    if not found and this.current.follows:
        found = _first_pool(this, memory, seen)
    most, used = this.current.pools_limit, _used(found, share, named)
    if pool_limit.is_exceeded(found, most):
        # A build may be on its way to one that has nodes, too.
        used |= {pool for pool in seen.recorded & found.keys() - used
                 if consumers.of(pool) != frozenset()}
    limited = pool_limit.limit(found, most, used, seen.recorded)
    return dataclasses.replace(limited, kept=pool_missing.with_missing({
        name: _completed(pool, memory, consumers, is_hidden)
        for name, pool in sorted(limited.kept.items())},
        memory, seen, consumers))


def _used(found: Mapping[str, pools.Pool], share: pools.Share,
          named: Iterable[str]) -> frozenset[str]:
    """Name the pools that are made whatever their number.

    :param found: all pools, by name
    :param share: the nodes that count for this service
    :param named: the names of those that Nova has instances of this service in
    """
    # Those without a node are there because something is on its way to them.
    return frozenset(named) | {
        name for name, pool in found.items() if not pool.nodes
        or not pool.nodes.keys().isdisjoint(share.held)
        or not pool.nodes.keys().isdisjoint(share.coming)}


def _first_pool(this: look.Pass, memory: observation.Memory, seen: _SeenRecords
                ) -> dict[str, pools.Pool]:
    """Make a pool without nodes of a service that has none.

    Where all nodes that are for it have instances of others, these give it
    none of them before they see it, which takes a record.
    """
    kinds = [node.kind for uuid, node in sorted(seen.nodes.items())
             if node.kind is not None and node.instance is not None
             and memory.standing.ring.owner(uuid) == this.current.me]
    return {name: pools.Pool(name, kind) for kind in kinds[:1] for name in (
        pools.name(this.current.host, kind),)}


def _completed(pool: pools.Pool, memory: observation.Memory,
               consumers: pool_takeover.Consumers, is_hidden: bool
               ) -> pools.Pool:
    """Say of a pool what its nodes do not tell."""
    before = memory.pooled.pools.get(pool.name)
    used = frozenset(uuid for uuid, node in pool.nodes.items()
                     if node.instance is not None)
    if used:
        having = consumers.of(pool.name)
        used = frozenset(
            uuid for uuid in used
            if having is None or pool.nodes[uuid].instance in having)
    return dataclasses.replace(
        pool, kind=pool.kind or (before.kind if before else None), used=used,
        is_hidden=is_hidden and not pool.nodes)


def _share(this: look.Pass, memory: observation.Memory, seen: _SeenRecords
           ) -> pools.Share:
    """Say which nodes count for this service.

    A node with an instance counts for the service that has the instance; if
    nobody has it, for the one that the ring maps the node to, and so it does
    before that one takes the instance over, also while it may take nothing: a
    pool without nodes would go.
    """
    memory = dataclasses.replace(memory, standing=dataclasses.replace(
        memory.standing, trust=trust.Trust.FULL, is_ending=False))
    host, owner = this.current.host, memory.standing.ring.owner
    free, held, left, coming = set(), {}, set(), set()
    for uuid, node in seen.nodes.items():
        instance = node.instance
        if instance in seen.mine:
            place = seen.places.get(str(instance))
            if place is not None and pools.is_of(host, place):
                held[uuid] = place
            elif place == uuid and node.kind is not None:
                # It has its own record yet, and comes into a pool.
                held[uuid] = pools.name(host, node.kind)
        elif owner(uuid) != this.current.me:
            continue
        elif instance is None:
            if uuid not in seen.claimed.left and uuid not in seen.narrowed:
                free.add(uuid)
        elif (known := seen.of_others.get(instance)) is None or (
                known.host is None):
            if uuid not in seen.narrowed:
                left.add(uuid)
        elif pool_failover.decide(this, memory, seen, uuid).takes_instance:
            coming.add(uuid)
    return pools.Share(frozenset(free), held, frozenset(left),
                       frozenset(coming))


def _reclaim(this: look.Pass, seen: _SeenRecords,
             found: Mapping[str, pools.Pool],
             released: pool_failover.Released) -> None:
    """Take back what another has half taken over from this service."""
    missing = {name: held for name, pool in found.items() if (
        held := {uuid: str(node.instance)
                 for uuid, node in pool.nodes.items()
                 if node.instance in seen.mine and uuid not in pool.used
                 and seen.places.get(str(node.instance)) == name})}
    if not missing:
        return
    try:
        sources = frozenset(
            pools.uuid_of(name) for host, state in sorted(
                seen.others.states.items()) if state.is_lost
            for name in this.world.nova.pools_of(host))
        in_pools = frozenset[str]().union(*map(
            this.world.placement.consumers, sorted(sources)))
    except Exception as error:
        this.happened.append(events.AllocationsUnknown(min(missing), error))
        return
    for name, held in missing.items():
        # Or it rests on the node, for this service was about to have the ring
        # driver. There are instances that have none at all.
        try:
            allocated = in_pools | {
                instance for uuid, instance in held.items()
                if instance in this.world.placement.consumers(uuid)}
        except Exception as error:
            this.happened.append(events.AllocationsUnknown(name, error))
            continue
        instances = [each for each in held.values() if each in allocated]
        if instances:
            this.happened.extend(pool_takeover.reclaim(
                this.world,
                (found[name], found[name].inventory(released(name))),
                instances, sources | held.keys()))


def _replaced(seen: _SeenRecords, outcome: pool_takeover.TakenIntoPools
              ) -> dict[str, model.Row]:
    """Name the records of nodes that count in pools.

    :returns: without those on which Nova has an instance of this service
    """
    records = seen.records
    instances = {each.instance for each in outcome.taken} | outcome.moved | {
        uuid for uuid, place in seen.places.items()
        if place is not None and pools.is_pool(place)}
    rows = {node: row for node, row in records.others.items()
            if node in seen.claimed.taken
            or seen.nodes[node].instance in instances}
    used = {place for uuid, place in seen.places.items()
            if uuid not in instances}
    own = {node: row for node, row
           in pools.rows_of_nodes(records.own).items() if node not in used}
    if not seen.recorded and len(own) == len(records.own):
        # Without any record this service would not be in the ring.
        own.pop(min(own, default=''), None)
    return rows | own


def _settle(this: look.Pass, memory: observation.Memory, seen: _SeenRecords
            ) -> tuple[takeover.Takeover, ...]:
    """Settle what lost services have left that is on no node of Ironic.

    Of each pool of those, one service does so: that which the ring maps the
    pool to. It reserves the pools of those that do not work as well: their
    free nodes count for others. An error here does not fail the pass.

    :returns: what has become this service's by it
    """
    taken: list[takeover.Takeover] = []
    deployed = frozenset(node.instance for node in seen.nodes.values()
                         if node.instance is not None)
    current = this.current
    for host, state in sorted(seen.others.states.items()):
        if not (state.is_lost or state is membership.State.NOT_WORKING):
            continue
        try:
            for name in sorted(this.world.nova.pools_of(host)):
                if memory.standing.ring.owner(
                        pools.uuid_of(name)) != current.me:
                    continue
                if not state.is_lost:
                    this.world.placement.reserve_all(name)
                    continue
                outcome = pool_takeover.settle(
                    this.world, pool_takeover.Left(
                        name, host, seen.others.fails_over(host, current),
                        min(seen.recorded, default=None)), deployed)
                taken += outcome.taken
                this.happened.extend(outcome.happened)
        except Exception as error:
            this.happened.append(
                events.RecordNotRemoved(None, host, error))
    return tuple(taken)


def _count(pooled: observation.Pooled, limited: pool_limit.Limited,
           most: int) -> Iterable[events.Event]:
    before, now = pooled.pools, limited.kept
    nodes = sum(len(pool.nodes) for pool in now.values())
    if limited.left_out and not pooled.left_out:
        yield events.PoolsLeftOut(most, len(now), len(
            limited.left_out), sorted(
                node for pool in limited.left_out.values()
                for node in pool.nodes))
    elif pooled.left_out and not limited.left_out:
        yield events.PoolsWithinLimit(len(now))
    if _is_too_small(now) and not _is_too_small(before):
        yield events.PoolsTooSmall(len(now), nodes)
    yield events.PoolsCounted(
        len(now), nodes, sum(len(pool.free) for pool in now.values()),
        {name: pool.nodes.keys() for name, pool in before.items()}
        != {name: pool.nodes.keys() for name, pool in now.items()})


def _is_too_small(found: Mapping[str, pools.Pool]) -> bool:
    nodes = sum(len(pool.nodes) for pool in found.values())
    return len(found) > _MANY_POOLS and 2 * len(found) > nodes
