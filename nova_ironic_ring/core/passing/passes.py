# SPDX-License-Identifier: Apache-2.0

"""A pass: look, decide, take over, and say which nodes to list.

This is a pass from top to bottom, which the driver, the simulation and the
forecast of the command run alike. What a service does between two passes is in
:mod:`~nova_ironic_ring.core.passing.reaction`, and the last look at each node
in :mod:`~nova_ironic_ring.core.taking.tracking`. What is read, is read in the
order that correctness needs:

1. the services, of which the members and the ring are made;
2. Ironic's nodes;
3. this service's instances, *after* the nodes: the listing takes seconds, and
   an instance that appears meanwhile is then known to be this service's;
4. the rows of this service's nodes;
5. what the decisions depend on beyond that, which in a quiet pass is nothing;
6. once more this service's own heartbeat: where it stood still meanwhile, the
   services are not what they were.
"""

import collections
from collections.abc import Sequence
import dataclasses

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import others
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.taking import builds
from nova_ironic_ring.core.taking import leftovers
from nova_ironic_ring.core.taking import pool_return
from nova_ironic_ring.core.taking import pool_takeover
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import parted
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

#: Raised by :func:`run`.
UnansweredError = look.UnansweredError


@dataclasses.dataclass(frozen=True)
class PassResult:
    """What has come of a pass.

    :ivar plan: what was decided, and corrected where a takeover failed
    :ivar memory: what is to be remembered
    :ivar listed: the nodes that are this service's now, and the instance on
        each
    :ivar taken: the instances that this service has taken over
    :ivar orphans: instances of others, or of nobody, on nodes that are for
        this service
    :ivar happened: the events for the log
    :ivar work: what this service says of its passes
    """

    plan: planner.Plan = planner.Plan()
    memory: observation.Memory = observation.Memory()
    listed: model.Nodes = dataclasses.field(default_factory=dict)
    taken: Sequence[takeover.Takeover] = ()
    orphans: frozenset[str] = frozenset()
    happened: Sequence[events.Event] = ()
    work: own_work.Work = own_work.Work()


def run(world: ports.Ports, before: observation.Memory,
        current: settings.Settings) -> PassResult:
    """Run a pass.

    :param world: the ports
    :param before: what this service remembers
    :param current: its settings
    :raises UnansweredError: if Nova or Ironic could not be asked
    """
    this = look.Pass(world, current)
    begun = listing.begin(this, before)
    memory, nodes = begun.memory, begun.nodes
    with look.asking(this, look.Port.NOVA, memory):
        rows = world.nova.rows_of(current.host)
    own = pool_return.Own(current.me, nodes, rows)
    with look.asking(this, look.Port.IRONIC, memory):
        memory = look.at_missing_nodes(
            this, memory, look.Had(pools.rows_of_nodes(rows)), nodes)
    memory = dataclasses.replace(memory, kept=parted.Parted(dict.fromkeys(
        node for node in memory.kept if node not in nodes)))
    with look.asking(this, look.Port.NOVA, memory):
        seen, memory = _observe(this, memory, observation.Observation(
            world.process.now(), memory.standing, nodes, rows,
            observation.Instances(begun.mine),
            tracked=world.process.tracked(), narrowed=begun.narrowed))
    memory = look.at_silent_owners(this, memory, seen.rows)
    this.happened.extend(others.elsewhere(
        memory.instances, seen.nodes, seen.instances.of_others,
        seen.instances.other_drivers))
    memory = look.at_own_heartbeat(this, memory)
    seen = dataclasses.replace(seen, standing=memory.standing)
    plan, memory = planner.decide(seen, memory, current)
    this.happened.extend(plan.happened)
    memory = dataclasses.replace(
        memory, instances=seen.instances.of_others,
        other_drivers=seen.instances.other_drivers)

    with look.asking(this, look.Port.NOVA, memory):
        request = takeover.DecidedTakeovers(
            {node: step.decision for node, step in plan.steps.items()
             if step.decision.takes_instance},
            nodes, seen.instances.of_others, current.handover_timeout)
        outcome = takeover.take_over(world, request, memory.without_row)
        this.happened.extend(outcome.happened)
        plan, memory = takeover.corrected(plan, memory, outcome)
        plan, memory, from_pools = _take_out_of_pools(
            this, plan, memory, _FromPools(request, pools.recorded(rows)))
    this.happened.extend(pool_return.close(world, own))
    if memory.standing.trust is trust.Trust.FULL:
        this.happened.extend(pool_return.take_back(
            world, own, pools.recorded(rows)))
        this.happened.extend(pool_takeover.give_back(
            world, pools.recorded(rows),
            pool_takeover.Consumers(world, this.happened), begun.mine | {
                str(nodes[node]) for node in request.decisions}))
    memory = _look_at_givers(this, memory, plan, nodes)
    memory = _look_at_unclaimed(this, memory)
    memory, settled = _clean_up_after_dead_services(this, memory, own)
    listed = {node: nodes[node] for node, step in plan.steps.items()
              if step.decision.lists}
    own_work.say_scope(this, rows, listed, memory)
    said, memory = own_work.say(this, {
        node: plan.steps[node].decision is decisions.Decision.KEEP_INSTANCE
        for node in listed}, memory, rows)
    this.happened.append(_count(plan))
    return PassResult(
        plan, memory, listed, (*outcome.taken, *from_pools, *settled),
        # Nova refuses to start a new service that names instances.
        _orphans(plan, seen, current) if begun.is_recorded else frozenset(),
        this.happened, said)


def _observe(this: look.Pass, memory: observation.Memory,
             seen: observation.Observation
             ) -> tuple[observation.Observation, observation.Memory]:
    """Read what the decisions depend on beyond what every pass reads."""
    nova = this.world.nova
    needs = planner.needs(seen, this.current)
    building = _building(this, seen, needs)
    rows = nova.rows(needs.rows) if needs.rows else {}
    of_others, other_drivers = others.instances(
        this, memory, needs.of_others, rows)
    idle = frozenset(
        uuid for uuid, instance in nova.instances(needs.misplaced).items()
        if instance.is_idle) if needs.misplaced else frozenset()
    all_services, memory = others.services(
        this, memory, {row.owner for row in rows.values()} | {
            str(instance.host) for instance in of_others.values()
            if instance.host}, bool(needs.rows and not seen.rows))
    instances = observation.Instances(
        seen.instances.mine, idle, building, of_others, other_drivers)
    return dataclasses.replace(
        seen, rows={**seen.rows, **rows}, others=all_services,
        instances=instances), memory


def _building(this: look.Pass, seen: observation.Observation,
              needs: planner.Needs) -> frozenset[str]:
    """Name the nodes to be offered that something is to be built on here.

    A build waits inside nova-compute for its turn, and has by then nothing but
    an allocation of its node in Placement.
    """
    if not needs.offered:
        return frozenset()
    # Without trust, nothing is offered anyway.
    asked = (needs.offered if seen.standing.trust is trust.Trust.FULL else ())
    try:
        found = {node for node in asked
                 if this.world.placement.consumers(node)}
    except Exception as error:
        # Nova has answered: this is no outage of Nova.
        this.happened.append(events.NodesNotOffered(needs.offered, error))
        return frozenset(needs.offered)
    without_node = seen.instances.mine - set(seen.nodes.values())
    if without_node:
        found |= {instance.node for instance in this.world.nova.instances(
            without_node).values() if instance.node}
    return frozenset(found)


@dataclasses.dataclass(frozen=True)
class _FromPools:
    """What is to be taken out of pools.

    :ivar request: what was decided
    :ivar own: the names of the pools that this service has had, with what it
        has half taken over
    """

    request: takeover.DecidedTakeovers
    own: Sequence[str]


def _take_out_of_pools(
    this: look.Pass, plan: planner.Plan, memory: observation.Memory,
    asked: _FromPools
) -> tuple[planner.Plan, observation.Memory, tuple[takeover.Takeover, ...]]:
    """Take over the instances of dead services that are in pools.

    An error here does not fail the pass: others may have been taken over.
    """
    wanted = takeover.in_pools(asked.request)
    if not wanted:
        return plan, memory, ()
    outcome = pool_return.TakenFromPools()
    try:
        known, memory = look.at_all_services(this, memory)
        sources = {
            pool for host, state in sorted(known.membership.states.items())
            if state.is_lost for pool in this.world.nova.pools_of(host)}
        outcome = pool_return.take_over(
            this.world, wanted, this.current.me, sources.union(asked.own))
        this.happened.extend(outcome.happened)
    except Exception as error:
        this.happened.append(events.InstanceNotTaken(
            wanted[0].instance, wanted[0].host, error))
    taken = {each.node for each in outcome.taken}
    first, lost = decisions.record_first(), decisions.not_taken()
    steps = dict(plan.steps)
    for each in wanted:
        if each.node in outcome.prepared:
            steps[each.node] = planner.Step(
                first.decision, first.why,
                claim=planner.Claim(each.instance, host=each.host))
        elif each.node not in taken:
            steps[each.node] = planner.Step(lost.decision, lost.why)
    return (dataclasses.replace(plan, steps=steps), memory.without_instances(
        {each.instance for each in wanted}), outcome.taken)


def _look_at_givers(this: look.Pass, memory: observation.Memory,
                    plan: planner.Plan, nodes: model.Nodes
                    ) -> observation.Memory:
    """Find the builds of services that have died since they gave a node.

    An error here does not fail the pass: instances may have been taken over.
    """
    found = builds.not_deployed(memory.handovers.builds, nodes)
    memory = dataclasses.replace(memory, handovers=observation.Handovers(
        parted.Parted({
            node: giver for node, giver in memory.handovers.givers.items()
            if node in plan.steps and plan.steps[node].decision.lists}),
        found))
    if not found or memory.standing.trust is not trust.Trust.FULL:
        return memory
    try:
        known, later = look.at_all_services(this, memory)
        lost = {each.host for each in found
                if known.membership.is_lost(str(each.host))}
        waiting = builds.of_live_givers(this.world, tuple(
            each for each in found if each.host not in lost))
    except Exception as error:
        this.happened.append(events.HandoversUnknown(error))
        return memory
    return dataclasses.replace(
        later, left_builds=later.left_builds + tuple(
            dataclasses.replace(each, looks=observation.LOOKS)
            for each in found if each.host in lost),
        handovers=dataclasses.replace(later.handovers, builds=waiting))


def _look_at_unclaimed(this: look.Pass, memory: observation.Memory
                       ) -> observation.Memory:
    """End the builds that no service has claimed since this one started.

    An error here does not fail the pass: instances may have been taken over.
    """
    if memory.standing.trust is not trust.Trust.FULL:
        return memory
    try:
        left, happened = builds.look_at_unclaimed(
            this.world, this.current.host, memory.unclaimed)
    except Exception as error:
        this.happened.append(events.HandoversUnknown(error))
        return memory
    this.happened.extend(happened)
    return dataclasses.replace(memory, unclaimed=left)


def _clean_up_after_dead_services(
    this: look.Pass, memory: observation.Memory, own: pool_return.Own
) -> tuple[observation.Memory, tuple[takeover.Takeover, ...]]:
    """End builds and remove records that dead services have left.

    An error here does not fail the pass.
    """
    world, at = this.world, this.world.process.now()
    settled = builds.Settled(memory.left_builds)
    taken: tuple[takeover.Takeover, ...] = ()
    try:
        settled = builds.look_again(world, memory.left_builds)
        this.happened.extend(settled.happened)
        memory = dataclasses.replace(memory, left_builds=settled.left)
        seen = leftovers.Circumstances(memory.standing, own, this.current)
        if leftovers.is_due(memory.cleaning, at, seen):
            memory = dataclasses.replace(
                memory, cleaning=dataclasses.replace(
                    memory.cleaning, looked_at=at))
            cleaned = leftovers.clean(
                world, memory.cleaning, memory.watch, seen)
            this.happened.extend(cleaned.happened)
            taken = cleaned.taken
            memory = dataclasses.replace(
                memory, cleaning=cleaned.cleaning, watch=cleaned.watch)
    except Exception as error:
        this.happened.append(events.RecordNotRemoved(None, None, error))
    return memory, settled.taken + taken


def _orphans(plan: planner.Plan, seen: observation.Observation,
             current: settings.Settings) -> frozenset[str]:
    """Name instances of others, or of nobody, on nodes for this service."""
    return frozenset(
        instance for node, instance in seen.nodes.items()
        if instance is not None and plan.steps[node].decision
        is decisions.Decision.LEAVE_INSTANCE
        and seen.standing.ring.owner(node) == current.me)


def _count(plan: planner.Plan) -> events.PassDone:
    counts = collections.Counter(
        step.decision for step in plan.steps.values())
    return events.PassDone(dict(counts), any(
        decision.takes or decision.takes_instance for decision in counts
    ) or any(isinstance(each, events.NodeOffered) for each in plan.happened))
