# SPDX-License-Identifier: Apache-2.0

"""What a service with pools does between two passes.

As with the ring driver, the services are looked at more often than Nova's
resource tracker looks for nodes, and the instances of those that are dead are
taken over at once. The free nodes of a dead service count in the next pass,
which lists the nodes.
"""

from collections.abc import Mapping, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.taking import pool_failover
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings


@dataclasses.dataclass(frozen=True)
class PoolReactionResult:
    """What has come of a look between two passes.

    :ivar memory: what is to be remembered
    :ivar found: the pools of this service, by name
    :ivar taken: the instances that this service has taken over
    :ivar happened: the events for the log
    """

    memory: observation.Memory
    found: Mapping[str, pools.Pool]
    taken: Sequence[takeover.Takeover] = ()
    happened: Sequence[events.Event] = ()


def run(world: ports.Ports, before: observation.Memory,
        current: settings.Settings, released: pool_failover.Released
        ) -> PoolReactionResult:
    """Look at the services, and take over the instances of dead ones.

    No pass may run at the same time.

    :param world: the ports
    :param before: what this service remembers
    :param current: its settings
    :param released: names the nodes that have lost their instance
    :raises UnansweredError: if Nova could not be asked
    """
    found = before.pooled.pools
    if not current.cooperative:
        return PoolReactionResult(before, found)
    this = look.Pass(world, current)
    observed, memory = reaction.observe(this, before)
    memory = pool_failover.noticed(before, memory, current)
    if observed is None or memory.standing.is_ending or (
            memory.standing.trust is not trust.Trust.FULL):
        return PoolReactionResult(memory, found, happened=this.happened)
    seen = _seen(memory, observed)
    with look.asking(this, look.Port.NOVA, memory):
        wanted = pool_failover.wanted(this, memory, seen)
        found = _with_nodes(found, seen, wanted)
        outcome = pool_failover.take_over(this, seen, {
            name: (pool, pool.inventory(released(name)))
            for name, pool in found.items()}, wanted)
    found = pool_failover.with_taken(found, outcome)
    memory = pool_failover.forget(memory, wanted)
    return PoolReactionResult(
        dataclasses.replace(memory, pooled=dataclasses.replace(
            memory.pooled, pools=found)), found, outcome.taken, this.happened)


def _seen(memory: observation.Memory, observed: observation.Observation
          ) -> pool_failover.SeenInstances:
    """Say what was seen as a pass says it."""
    known = memory.pooled.occupied
    return pool_failover.SeenInstances(
        {node: known[node] for node, instance in observed.nodes.items()
         if node in known and known[node].instance == instance},
        observed.instances.mine, {}, frozenset(pools.recorded(observed.rows)),
        observed.instances.of_others,
        memory.standing.membership.joined(observed.others.membership))


def _with_nodes(found: Mapping[str, pools.Pool],
                seen: pool_failover.SeenInstances,
                wanted: pool_failover.Wanted) -> dict[str, pools.Pool]:
    """Count the nodes of the instances that are to be taken over."""
    more = {}
    for name, batch in wanted.items():
        nodes = {each.node: seen.nodes[each.node] for each in batch}
        pool = found.get(name, pools.Pool(name))
        more[name] = dataclasses.replace(
            pool, nodes={**pool.nodes, **nodes},
            kind=pool.kind or next(iter(nodes.values())).kind,
            is_hidden=False)
    return {**found, **more}
