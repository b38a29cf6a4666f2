# SPDX-License-Identifier: Apache-2.0

"""A pass where a compute node is a pool of nodes, as with the pool driver.

A free node needs no record of its owner: it counts for the service that the
ring maps it to. While two services see different rings, it counts twice or not
at all; but Ironic gives it to one instance only.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import pool_plan
from nova_ironic_ring.core.looking import consumers
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.looking import pool_look
from nova_ironic_ring.core.looking import pool_missing
from nova_ironic_ring.core.passing import counting
from nova_ironic_ring.core.passing import places
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.taking.building import unclaimed
from nova_ironic_ring.core.taking import pool_records
from nova_ironic_ring.core.taking import pool_takeover
from nova_ironic_ring.core.taking import rereads
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports


@dataclasses.dataclass(frozen=True)
class PassResult(places.PassResult):
    """The result of a pass.

    :ivar found: the pools of this service, by name
    :ivar listed: how many nodes Ironic has listed, with those that are hidden
    :ivar asked: a fingerprint of what Ironic was asked for
    :ivar left_out: the pools that are too many, by name, which this service
        does not make
    """

    found: Mapping[str, pools.Pool] = dataclasses.field(default_factory=dict)
    listed: int = 0
    asked: str = ''
    left_out: Mapping[str, pools.Pool] = dataclasses.field(
        default_factory=dict)

    def joined(self, taken: frozenset[str], memory: observation.Memory
               ) -> 'PassResult':
        """Return the result with what looks have done meanwhile.

        :param taken: UUIDs of the instances that they have taken over since
            the pass began
        :param memory: what is remembered after the pass and the looks
        """
        return dataclasses.replace(
            self, memory=memory, found=memory.pooled.pools,
            orphans=self.orphans - taken)

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
class ReactionResult(places.ReactionResult):
    """The result of a look between two passes.

    :ivar found: the pools of this service, by name
    """

    found: Mapping[str, pools.Pool] = dataclasses.field(default_factory=dict)


def _none_released(pool: str) -> frozenset[str]:
    return frozenset()


class Pools(places.Places[pool_plan.Seen, pool_plan.Plan, PassResult,
                          ReactionResult]):
    """The steps of a pass in which pools of nodes are places."""

    def __init__(self, released: pool_takeover.Released = _none_released
                 ) -> None:
        """Choose the source of what builds and deletes have done since.

        :param released: names the nodes of a pool that have lost their
            instance, as some may since they were listed
        """
        self._released = released

    def look(self, this: one_pass.Pass, begun: listing.Beginning
             ) -> pool_plan.Seen:
        return pool_look.observe(this, begun)

    def decide(self, this: one_pass.Pass, seen: pool_plan.Seen
               ) -> pool_plan.Plan:
        return pool_plan.decide(seen, this.memory, this.current)

    def take(self, this: one_pass.Pass, seen: pool_plan.Seen,
             plan: pool_plan.Plan) -> PassResult:
        pooled, having = this.memory.pooled, consumers.Consumers(this)
        listed, orphans = seen.nodes, pool_look.of_others_here(this, seen)
        seen, plan = _with_kept(this, seen, plan)
        plan, claimed = _claim(this, seen, plan)
        limited = counting.count(this, seen, plan, having)
        own = pool_takeover.Own(limited.kept, self._released)
        rereads.notice(this)
        rereads.reread(this, own.found)
        came = pool_takeover.Came()
        if this.view.may_take:
            with this.asking(one_pass.Port.NOVA):
                came = pool_takeover.take_over(this, seen, own, plan.wanted)
                own = own.having(came.allocated)
                pool_takeover.give_back(this, own.found, having, seen.mine | {
                    each.instance for batch in plan.wanted.values()
                    for each in batch})
                pool_takeover.reclaim(this, seen, own)
                _settle(this, seen)
        builds.release_ended(this, {
            uuid: node.instance for uuid, node in listed.items()})
        unclaimed.settle(this, lambda: {
            pool.uuid: pool.name for pool in own.found.values()})
        pool_records.remove(
            this, _replaced(seen, claimed, came.instances))
        said = own_work.say(this, has_pools=True)
        this.happened.extend(counting.tell(
            pooled, limited, this.current.pools_limit))
        pooled.pools, pooled.left_out = own.found, frozenset(limited.left_out)
        pooled.occupied = {uuid: node for uuid, node in listed.items()
                           if node.instance is not None}
        return PassResult(
            this.memory, this.taken, this.happened, orphans, said, own.found,
            len(seen.nodes) + pool_missing.unseen(this, seen.nodes),
            pool_missing.asked(this), limited.left_out)

    def react(self, this: one_pass.Pass,
              seen: observation.Observation | None) -> ReactionResult:
        pooled = this.memory.pooled
        rereads.notice(this)
        if seen is not None and this.view.may_take:
            known = _as_pass_says(this, seen)
            plan = pool_plan.Plan(pool_plan.steps(
                known, this.view, this.current))
            own = _with_nodes(pool_takeover.Own(
                pooled.pools, self._released), known, plan)
            with this.asking(one_pass.Port.NOVA):
                came = pool_takeover.take_over(this, known, own, plan.wanted)
            pooled.pools = own.having(came.allocated).found
        return ReactionResult(
            this.memory, this.taken, this.happened, found=pooled.pools)

    def change(self, this: one_pass.Pass, nodes: Sequence[str]
               ) -> places.ChangeResult:
        pooled = this.memory.pooled
        counts = {node: name for name, pool in pooled.pools.items()
                  for node in pool.nodes}
        found: dict[str, pools.Pool] = {}
        told = this.world.ironic.glances(
            node for node in nodes if node in counts)
        known = []
        for node, glance in told.items():
            name = counts[node]
            pool = found.get(name, pooled.pools[name])
            now = _changed(this, pool, node, glance)
            # One that was built on and cleaned since the pass is as it was.
            is_back = glance.instance is None and glance.is_ready and (
                node in self._released(name))
            if now is not pool or is_back:
                found[name] = now
                known.append(node)
        pooled.pools = {**pooled.pools, **found}
        return places.ChangeResult(
            this.memory, happened=this.happened, places=sorted(found),
            nodes=known)


def _changed(this: one_pass.Pass, pool: pools.Pool, node: str,
             glance: ports.Glance) -> pools.Pool:
    """Count a node of a pool anew that has changed between two passes.

    An instance that has come to it may belong to this pool, and then has its
    allocation: the pass does that, and a node that is free now and for another
    service.
    """
    before = pool.nodes[node]
    if glance.instance is not None or (
            before.instance is not None
            and this.view.ring.owner(node) != this.current.me):
        return pool
    after = dataclasses.replace(
        before, instance=None, is_ready=glance.is_ready)
    return pool if after == before else dataclasses.replace(
        pool, nodes={**pool.nodes, node: after}, used=pool.used - {node})


def _with_kept(this: one_pass.Pass, seen: pool_plan.Seen,
               plan: pool_plan.Plan
               ) -> tuple[pool_plan.Seen, pool_plan.Plan]:
    """Let nodes that Ironic does not show now still count."""
    claims = plan.claims.steps if plan.claims else {}
    with this.asking(one_pass.Port.IRONIC):
        kept = pool_missing.guard(
            this, seen, plan.counts.keys() | claims.keys())
    steps = pool_plan.steps(
        dataclasses.replace(seen, nodes=kept), this.view, this.current)
    return dataclasses.replace(
        seen, nodes={**kept, **seen.nodes}), plan.having(steps)


def _claim(this: one_pass.Pass, seen: pool_plan.Seen, plan: pool_plan.Plan
           ) -> tuple[pool_plan.Plan, frozenset[str]]:
    """Take free nodes from the services that have their records.

    :returns: the plan, corrected if one could not be taken; and the nodes that
        this service has now
    """
    if plan.claims is None:
        return plan, frozenset()
    with this.asking(one_pass.Port.NOVA):
        taken = pool_records.claim(this, seen.other_rows, plan.claims)
    return plan.having(dict.fromkeys(
        plan.claims.steps.keys() - taken, pool_plan.Step())), taken


def _replaced(seen: pool_plan.Seen, claimed: frozenset[str],
              came: frozenset[str]) -> dict[str, model.Row]:
    """Return the records of nodes that count in pools.

    :param claimed: the free nodes that were taken from others
    :param came: UUIDs of the instances that have come into pools
    :returns: without those on which Nova has an instance of this service
    """
    instances = came | {
        uuid for uuid, place in seen.places.items()
        if place is not None and pools.is_pool(place)}
    rows = {node: row for node, row in seen.other_rows.items()
            if node in claimed or seen.nodes[node].instance in instances}
    used = {place for uuid, place in seen.places.items()
            if uuid not in instances}
    own = {node: row for node, row
           in pools.rows_of_nodes(seen.rows).items() if node not in used}
    return rows | own


def _settle(this: one_pass.Pass, seen: pool_plan.Seen) -> None:
    """Settle what lost services have left that is on no node in Ironic.

    For each of their pools, one service does so: the one that the ring maps
    the pool to. It also reserves the pools of services that do not work,
    because their free nodes count for others. An error here does not fail the
    pass.
    """
    deployed = frozenset(node.instance for node in seen.nodes.values()
                         if node.instance is not None)
    current, owner = this.current, this.view.ring.owner
    for host, state in sorted(this.view.states.items()):
        if not (state.is_lost or state is membership.State.NOT_WORKING):
            continue
        with this.going_on(events.RecordNotRemoved, None, host):
            found = [name for name in sorted(this.world.nova.pools_of(host))
                     if owner(pools.uuid_of(name)) == current.me]
            if found:
                # Much may have been taken over since, and one may be back.
                look.again(this)
            for name in found:
                if not state.is_lost:
                    if this.is_valid:
                        this.world.placement.reserve_all(name)
                    continue
                pool_takeover.settle(this, pool_takeover.Left(
                    name, host, this.view.fails_over(host, current),
                    min(seen.recorded, default=None)), deployed)


def _as_pass_says(this: one_pass.Pass, seen: observation.Observation
                  ) -> pool_plan.Seen:
    """Convert what was seen between two passes to the form of a pass."""
    known = this.memory.pooled.occupied
    return pool_plan.Seen(
        {node: known[node] for node, instance in seen.nodes.items()
         if node in known and known[node].instance == instance},
        seen.instances.mine, {}, seen.instances.of_others, rows=seen.rows)


def _with_nodes(own: pool_takeover.Own, seen: pool_plan.Seen,
                plan: pool_plan.Plan) -> pool_takeover.Own:
    """Count the nodes of the instances that are to be taken over."""
    found = dict(own.found)
    for name, batch in plan.wanted.items():
        nodes = {each.node: seen.nodes[each.node] for each in batch}
        pool = found.get(name, pools.Pool(name))
        found[name] = dataclasses.replace(
            pool, nodes={**pool.nodes, **nodes},
            kind=pool.kind or next(iter(nodes.values())).kind,
            is_hidden=False)
    return dataclasses.replace(own, found=found)


def close_unlisted(world: ports.Ports, memory: observation.Memory,
                   names: Iterable[str]) -> frozenset[str]:
    """Reserve the pools that are not listed, and name those that can go.

    After that, Nova deletes their records, their providers, and the
    allocations of all instances that it has on them. A name that is not a
    pool's is that of a node that this service had with another driver: it goes
    in a pass. Nova is asked only once for all of them.

    :param world: the ports
    :param memory: what this service remembers of the pass that has not listed
        them
    :param names: the names of the compute nodes
    :returns: the names of those that contain nothing, and will get nothing
    """
    current, pooled = memory.settings, memory.pooled
    if current is None or memory.vanished.is_closed:
        return frozenset()
    host = current.host
    left = [name for name in names
            if pools.is_of(host, name) and name not in pooled.pools]
    return pool_takeover.reserve_unused(
        world, left, lambda: _in_use(world, host))


def _in_use(world: ports.Ports, host: str) -> frozenset[str | None]:
    """Return the compute nodes with instances of this service in Nova.

    With a pool, Nova deletes only the allocations of these instances.
    """
    mine = world.nova.instances_of(host)
    # All are read: one may have been unshelved in another pool since the pass.
    return frozenset(instance.node for instance in (
        world.nova.instances(mine) if mine else {}).values())
