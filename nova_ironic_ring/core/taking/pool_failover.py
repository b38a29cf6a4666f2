# SPDX-License-Identifier: Apache-2.0

"""The instances of other services on the nodes of this one, with pools.

Which of them come into which pool is decided here, and that they do: those of
dead services in a pass and in a look between passes, those of services that
consent in a pass. How that is done, step by step, is in
:mod:`nova_ironic_ring.core.taking.pool_takeover`.
"""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
from typing import TypeVar

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.taking import pool_takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings

_REREADS = 2
# Each inventory is read anew in one of so many passes in any case.
_TURNS = 5

Nodes = Mapping[str, pools.Node]
#: What is to be taken over, by the name of the pool that it comes into.
Wanted = dict[str, list[pool_takeover.Wanted]]
#: Pools, by name, with what Placement is told of them.
Counted = Mapping[str, tuple[pools.Pool, pools.Inventory]]
#: Names the nodes of a pool that have lost their instance since the last pass.
Released = Callable[[str], frozenset[str]]


@dataclasses.dataclass(frozen=True)
class SeenInstances:
    """What was read of instances and their services.

    :ivar nodes: what Ironic says of its nodes, by UUID
    :ivar mine: the UUIDs of this service's instances
    :ivar places: their compute nodes
    :ivar recorded: the names of the pools that Nova has for this service
    :ivar of_others: the instances of others on nodes that are for this
        service, by UUID
    :ivar others: what all services are
    :ivar consenting: the names of the services that live, and that let this
        one take their instances
    """

    nodes: Nodes
    mine: frozenset[str]
    places: Mapping[str, str | None]
    recorded: frozenset[str]
    of_others: Mapping[str, model.Instance]
    others: membership.Membership = membership.Membership()
    consenting: frozenset[str] = frozenset()


def noticed(before: observation.Memory, memory: observation.Memory,
            current: settings.Settings) -> observation.Memory:
    """Have inventories read anew where others may have written them.

    The others reserve all pools of a service that they take for lost, or whose
    passes fail, or come as late as if they did. One of them may be in a pass
    that began before this one was back: so it is read in two passes.

    :param before: what was remembered before the services were looked at
    :param memory: what is remembered now
    :param current: this service's settings
    """
    was, now = before.standing, memory.standing
    is_back = now.trust is trust.Trust.FULL and (
        was.trust is not trust.Trust.FULL or before.own_work.is_failing
        or before.work_watch.is_late(memory.watch.at)
        or was.membership.state(current.host).is_lost
        and not now.membership.state(current.host).is_lost)
    return dataclasses.replace(memory, pooled=dataclasses.replace(
        memory.pooled, rereads=_REREADS)) if is_back else memory


def to_be_reread(memory: observation.Memory, names: Iterable[str]
                 ) -> list[str]:
    """Name the pools whose inventories are to be read anew in this pass.

    One of the others may have taken this service for lost alone, which this
    one does not notice: so each inventory has its turn every few passes.

    :param memory: what is remembered
    :param names: the names of this service's pools
    """
    return [name for name in names if memory.pooled.rereads
            or int(pools.uuid_of(name)[-8:], 16) % _TURNS == (
                memory.pooled.turn)]


def next_turn(memory: observation.Memory) -> observation.Memory:
    """Note that what was to be read anew in a pass has been.

    :param memory: what is remembered
    """
    return dataclasses.replace(memory, pooled=dataclasses.replace(
        memory.pooled, rereads=max(0, memory.pooled.rereads - 1),
        turn=(memory.pooled.turn + 1) % _TURNS))


def consent(memory: observation.Memory, current: settings.Settings
            ) -> str | None:
    """Say by which ring others may take this service's instances.

    With the ring driver an offer names the taker of each node. Here all rows
    of a service say by which ring it goes, which names one taker for each node
    as well: who sees the same ring.

    :param memory: what is remembered
    :param current: this service's settings
    :returns: its fingerprint; None if nobody may
    """
    standing = memory.standing
    return standing.ring.fingerprint if (
        current.cooperative and current.follows and not standing.is_ending
        and standing.trust is trust.Trust.FULL) else None


_AnySeen = TypeVar('_AnySeen', bound=SeenInstances)


def ask_consent(this: look.Pass, memory: observation.Memory, seen: _AnySeen
                ) -> _AnySeen:
    """Find out which instances of services that live may be taken from them.

    These are read once more: nothing may be under way with them.

    :param this: what shares the ports
    :param memory: what is remembered
    :param seen: what was read
    :returns: that, and who consents
    """
    mine, nova = consent(memory, this.current), this.world.nova
    if mine is None:
        return seen
    consenting = frozenset(
        host for host in sorted({
            instance.host for instance in seen.of_others.values()
            if instance.host is not None
            and seen.others.state(instance.host).gives
            and pools.is_of(instance.host, instance.node)})
        if any(row.pool and row.ring == mine
               for row in nova.rows_of(host).values()))
    again = [uuid for uuid, instance in seen.of_others.items()
             if instance.host in consenting]
    if not again:
        return seen
    found = nova.instances(again)
    return dataclasses.replace(seen, consenting=consenting, of_others={
        uuid: found.get(uuid, instance)
        for uuid, instance in seen.of_others.items()})


def decide(this: look.Pass, memory: observation.Memory, seen: SeenInstances,
           node: str) -> decisions.Decision:
    """Decide on the instance of another on a node, by the table for nodes.

    :param this: what shares the ports
    :param memory: what is remembered
    :param seen: what was read
    :param node: the UUID of the node
    """
    current, standing = this.current, memory.standing
    instance = seen.of_others.get(str(seen.nodes[node].instance))
    host = instance.host_name if instance is not None else None
    if instance is None or host is None or not current.cooperative:
        return decisions.Decision.LEAVE_INSTANCE
    return decisions.decide_on_instance(current.me, decisions.Occupied(
        standing.ring.owner(node), False, host,
        # A service that consents says of all nodes what an offer says of one.
        model.Row(host, current.me)
        if instance.host in seen.consenting else None,
        seen.others.fails_over(host, current),
        current.follows and instance.is_idle,
        not pools.has(instance, node), standing.trust, standing.is_ending
    )).decision


def wanted(this: look.Pass, memory: observation.Memory, seen: SeenInstances
           ) -> Wanted:
    """Name the instances to be taken over, by the pool of their nodes.

    Among them are this service's own that are not in a pool yet.

    :param this: what shares the ports
    :param memory: what is remembered
    :param seen: what was read
    """
    host = this.current.host
    found: Wanted = {}
    for uuid, node in seen.nodes.items():
        if node.instance is None or node.kind is None:
            continue
        if node.instance in seen.mine:
            if seen.places.get(node.instance) != uuid:
                continue
            each = pool_takeover.Wanted(node.instance, uuid, host, True)
        else:
            decision = decide(this, memory, seen, uuid)
            if not decision.takes_instance:
                continue
            each = pool_takeover.Wanted(
                node.instance, uuid,
                str(seen.of_others[node.instance].host),
                consents=decision is decisions.Decision.TAKE_INSTANCE)
        found.setdefault(pools.name(host, node.kind), []).append(each)
    return found


def take_over(this: look.Pass, seen: SeenInstances, counted: Counted,
              named: Wanted) -> pool_takeover.TakenIntoPools:
    """Take over what is to be taken over.

    An error does not fail the pass, here and in what follows: instances may
    have been taken over.

    :param this: what shares the ports
    :param seen: what was read
    :param counted: the pools of this service, with their inventories
    :param named: what is to be taken over
    """
    if not named:
        return pool_takeover.TakenIntoPools()
    hosts = {each.host for batch in named.values() for each in batch
             if not each.is_own}
    try:
        named = _without(this, named, this.world.nova.other_drivers(
            sorted(hosts)) if hosts else frozenset())
        providers = _providers(this, seen, hosts)
    except Exception as error:
        first = next(each for batch in named.values() for each in batch)
        this.happened.append(events.InstanceNotTaken(
            first.instance, first.host, error))
        return pool_takeover.TakenIntoPools()
    outcome = pool_takeover.take_over(
        this.world, pool_takeover.WantedTakeovers(
            named, counted, seen.recorded, providers))
    this.happened.extend(outcome.happened)
    return outcome


def _without(this: look.Pass, named: Wanted, other_drivers: frozenset[str]
             ) -> Wanted:
    """Leave instances to services that run another driver."""
    for batch in named.values():
        this.happened.extend(
            events.InstanceElsewhere(each.node, each.instance, each.host)
            for each in batch
            if model.canonical(each.host) in other_drivers and not each.is_own)
    left = {pool: [each for each in batch if each.is_own
                   or model.canonical(each.host) not in other_drivers]
            for pool, batch in named.items()}
    return {pool: batch for pool, batch in left.items() if batch}


def _providers(this: look.Pass, seen: SeenInstances, hosts: Iterable[str]
               ) -> frozenset[str]:
    """Name the providers of the pools that something is taken over from.

    A service that has died in a takeover has allocations of instances that are
    another's still.
    """
    dead = set(hosts) | {
        host for host in seen.others.states
        if seen.others.is_dead(host, this.current.failover_after)}
    return frozenset(
        pools.uuid_of(name) for host in sorted(dead)
        for name in this.world.nova.pools_of(host)) | {
            pools.uuid_of(str(instance.node))
            for instance in seen.of_others.values()
            if instance.host in dead and pools.is_pool(instance.node)}


def forget(memory: observation.Memory, named: Wanted) -> observation.Memory:
    """Forget whose instances are that were to be taken over.

    They are this service's now, or another was faster.

    :param memory: what is remembered
    :param named: what was to be taken over
    """
    gone = {each.instance for batch in named.values() for each in batch}
    return dataclasses.replace(
        memory.without_instances(gone), pooled=dataclasses.replace(
            memory.pooled, places={
                uuid: place for uuid, place in memory.pooled.places.items()
                if uuid not in gone}))


def with_taken(found: Mapping[str, pools.Pool],
               outcome: pool_takeover.TakenIntoPools) -> dict[str, pools.Pool]:
    """Count the nodes of instances that were taken over as used.

    Those of instances without an allocation stay reserved.

    :param found: the pools of this service, by name
    :param outcome: what was taken over
    """
    instances = outcome.allocated & (
        {each.instance for each in outcome.taken} | outcome.moved)
    return {name: dataclasses.replace(pool, used=pool.used | {
        uuid for uuid, node in pool.nodes.items()
        if node.instance in instances}) for name, pool in found.items()}
