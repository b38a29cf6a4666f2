# SPDX-License-Identifier: Apache-2.0

"""Which pools a service makes, and with which nodes."""

from collections.abc import Iterator, Mapping
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import pool_limit
from nova_ironic_ring.core.deciding import pool_plan
from nova_ironic_ring.core.looking import consumers
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import pool_missing
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import pools

# The number of pools that is worth a warning if they have hardly more nodes.
_MANY_POOLS = 20


def count(this: one_pass.Pass, seen: pool_plan.Seen, plan: pool_plan.Plan,
          having: consumers.Consumers) -> pool_limit.Limited:
    """Count the nodes of this service into its pools.

    :param this: the pass
    :param seen: what was read, with the nodes that Ironic does not show and
        that still count
    :param plan: the plan
    :param having: names the consumers of pools
    """
    host = this.current.host
    named = {place for place in seen.places.values()
             if place is not None and pools.is_of(host, place)}
    is_hidden = this.memory.vanished.has_too_many or not seen.nodes
    found = pools.group(host, seen.nodes, plan.counts, named,
                        this.memory.pooled.pools)
    for pool in sorted(seen.recorded - found.keys()):
        # A build may be on its way to it.
        if is_hidden or having.of(pool):
            found[pool] = pools.Pool(pool)
    used = named | {
        str(step.counts) for step in plan.steps.values() if step.is_used}
    # Pools without a node exist because something is on its way to them.
    awaited = {name for name, pool in found.items() if not pool.nodes}
    most = this.current.pools_limit
    if pool_limit.is_exceeded(found, most):
        # A build may be on its way to one that has nodes, too.
        awaited |= {pool for pool in seen.recorded & found.keys() - used
                    if having.of(pool) != frozenset()}
    limited = pool_limit.limit(found, most, used, awaited, seen.recorded)
    kept = pool_missing.with_missing(this, {
        name: _completed(this, pool, having, is_hidden)
        for name, pool in sorted(limited.kept.items())}, seen.nodes, having)
    return dataclasses.replace(limited, kept=kept)


def _completed(this: one_pass.Pass, pool: pools.Pool,
               having: consumers.Consumers, is_hidden: bool) -> pools.Pool:
    """Complete a pool with what its nodes do not show."""
    before = this.memory.pooled.pools.get(pool.name)
    used = frozenset(uuid for uuid, node in pool.nodes.items()
                     if node.instance is not None)
    if used and (known := having.of(pool.name)) is not None:
        used = frozenset(
            uuid for uuid in used if pool.nodes[uuid].instance in known)
    return dataclasses.replace(
        pool, kind=pool.kind or (before.kind if before else None), used=used,
        is_hidden=is_hidden and not pool.nodes)


def tell(pooled: observation.Pooled, limited: pool_limit.Limited,
         most: int) -> Iterator[events.Event]:
    """Return the events about the pools.

    :param pooled: what was remembered of the pass before
    :param limited: the pools of this pass
    :param most: how many pools without instances a service makes
    """
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
