# SPDX-License-Identifier: Apache-2.0

"""What a service does between two passes.

With thousands of nodes the resource tracker takes minutes from one pass to the
next. So the services are looked at more often, the instances of those that are
dead are taken over at once, and nodes that the last pass waits for are taken
when they are offered. Ironic has listed its nodes in the last pass, and is
asked for no more than shards that were another's then. All else is left to the
passes.
"""

from collections.abc import Mapping, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import others
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

# So many rows of nodes that are waited for are read in a look.
_ROWS = 500
# Seconds: the clocks of the look and of who waits for it are not one.
_SHORTEST = 0.2
# So many free nodes at most are recorded beside the pass: the tracker needs a
# good part of a second for each, and does one after the other.
_NODES = 20


@dataclasses.dataclass(frozen=True)
class ReactionResult:
    """What has come of a look between two passes.

    :ivar memory: what is to be remembered
    :ivar steps: what was decided, by the node that the tracker is to record:
        its instance has become this service's, or it is free and offered to it
    :ivar taken: these instances
    :ivar happened: the events for the log
    """

    memory: observation.Memory
    steps: Mapping[str, planner.Step] = dataclasses.field(
        default_factory=dict)
    taken: Sequence[takeover.Takeover] = ()
    happened: Sequence[events.Event] = ()


def run(world: ports.Ports, before: observation.Memory,
        current: settings.Settings) -> ReactionResult:
    """Look at the services, take over from dead ones, take what is offered.

    No pass may run at the same time.

    :param world: the ports
    :param before: what this service remembers
    :param current: its settings
    :raises UnansweredError: if Nova could not be asked
    """
    if not current.cooperative:
        return ReactionResult(before)
    this = look.Pass(world, current)
    seen, memory = observe(this, before)
    if seen is not None:
        done = _take_over(this, seen, memory)
        if done.taken:
            # What could fail now would hide it. Offers are there later, too.
            return done
        memory = done.memory
    steps, memory = _offered(this, memory)
    return ReactionResult(memory, steps, happened=this.happened)


def pause(memory: observation.Memory, current: settings.Settings) -> float:
    """Say how long to wait after a look, before the next one.

    It comes sooner where a service would be found absent, or dead, just after
    it: a takeover does not wait for a whole interval more.

    :param memory: what the look has left
    :param current: this service's settings
    :returns: seconds
    """
    limits = {*membership.patiences(current.down_time)}
    if current.failover_after:
        limits.add(current.failover_after)
    silences = [memory.watch.silence(host)
                for host in memory.standing.membership.states
                if host != current.me]
    left = min((limit - silence for limit in limits for silence in silences
                if limit > silence), default=current.report_interval)
    return max(_SHORTEST, min(current.report_interval, left))


def _take_over(this: look.Pass, seen: observation.Observation,
               memory: observation.Memory) -> ReactionResult:
    """Take over the instances of dead services that are for this one."""
    world, current = this.world, this.current
    # What is to be remembered of a plan is for all nodes, and all rows.
    plan, _ = planner.decide(seen, memory, current)
    with look.asking(this, look.Port.NOVA, memory):
        outcome = takeover.take_over(world, takeover.DecidedTakeovers(
            {node: step.decision for node, step in plan.steps.items()
             if step.decision.takes_instance},
            seen.nodes, seen.instances.of_others, current.handover_timeout),
            memory.without_row)
    this.happened.extend(outcome.happened)
    plan, memory = takeover.corrected(plan, memory, outcome)
    return ReactionResult(
        memory, {each.node: plan.steps[each.node] for each in outcome.taken},
        outcome.taken, this.happened)


def _offered(this: look.Pass, memory: observation.Memory
             ) -> tuple[dict[str, planner.Step], observation.Memory]:
    """Find nodes that the last pass waits for, and that are offered by now."""
    nova, current = this.world.nova, this.current
    wanted = [node for node in _in_turn(this, memory)
              if memory.nodes.get(node, '') is None]
    room = _NODES - (len(memory.taking - this.world.process.tracked())
                     if memory.taking else 0)
    if not wanted or room <= 0 or (
            memory.standing.trust is not trust.Trust.FULL):
        return {}, memory
    with look.asking(this, look.Port.NOVA, memory):
        rows = {node: row for node, row in nova.rows(wanted).items()
                if row.taker == current.me}
        if not rows:
            return {}, memory
        own = nova.rows_of(current.host)
        known, memory = others.services(
            this, memory, {row.owner for row in rows.values()})
    memory = look.at_own_heartbeat(this, memory)
    if memory.standing.trust is not trust.Trust.FULL:
        return {}, memory
    plan, _ = planner.decide(observation.Observation(
        memory.watch.at, memory.standing, dict.fromkeys(sorted(rows)),
        {**own, **rows}, others=known), memory, current)
    offered = [node for node, step in plan.steps.items()
               if step.decision is decisions.Decision.TAKE_OFFERED][:room]
    this.happened.extend(
        each for each in plan.happened
        if isinstance(each, events.NodeTaken) and each.node in offered)
    return {node: plan.steps[node] for node in offered}, dataclasses.replace(
        memory, taking=memory.taking.union(offered))


def _in_turn(this: look.Pass, memory: observation.Memory) -> list[str]:
    """Name nodes that are waited for, in each look those that come next."""
    waits = sorted(memory.waits.keys() - memory.taking)
    if len(waits) <= _ROWS:
        return waits
    turn = int(memory.watch.at / this.current.report_interval)
    first = turn * _ROWS % len(waits)
    return (waits + waits)[first:first + _ROWS]


def observe(this: look.Pass, before: observation.Memory
            ) -> tuple[observation.Observation | None, observation.Memory]:
    """Look at the services, and read what is known of dead ones' instances.

    :param this: what shares the ports
    :param before: what this service remembers
    :returns: what was seen, with the nodes of those instances of dead services
        that are for this one; None if there is none, or if nothing is to be
        taken over; and what is to be remembered
    :raises UnansweredError: if Nova could not be asked
    """
    memory = listing.at_gained_shards(this, look.between_passes(this, before))
    if not this.current.fails_over or not memory.nodes or (
            memory.standing.trust is not trust.Trust.FULL):
        return None, memory
    with look.asking(this, look.Port.NOVA, memory):
        seen, memory = _observe(this, memory)
    if seen is None:
        return None, memory
    memory = look.at_own_heartbeat(this, memory)
    return dataclasses.replace(seen, standing=memory.standing), memory


def _observe(this: look.Pass, memory: observation.Memory
             ) -> tuple[observation.Observation | None, observation.Memory]:
    """Read what the decisions on instances of dead services depend on.

    :returns: None if there is no such instance
    """
    nova, current = this.world.nova, this.current
    seen = observation.Observation(
        memory.watch.at, memory.standing,
        {node: instance for node, instance in memory.nodes.items()
         if instance is not None}, {},
        observation.Instances(nova.instances_of(current.host)))
    # Whoever uses Ironic without Nova may have many: passes look for these.
    nowhere = memory.nowhere - memory.instances.keys()
    wanted = {uuid: node for uuid, node in planner.needs(
        seen, current).of_others.items() if uuid not in nowhere}
    of_others, other_drivers = others.instances(this, memory, wanted, {})
    known, memory = others.services(
        this, memory, {str(instance.host) for instance in of_others.values()
                       if instance.host})
    seen = dataclasses.replace(
        seen, others=known, instances=dataclasses.replace(
            seen.instances, of_others=of_others,
            other_drivers=other_drivers))
    this.happened.extend(others.elsewhere(
        memory.instances, seen.nodes, of_others, other_drivers))
    memory = dataclasses.replace(
        memory, instances=of_others, other_drivers=other_drivers,
        nowhere=nowhere.intersection(seen.nodes.values())
        | wanted.keys() - of_others.keys())
    members = memory.standing.membership.joined(known.membership)
    nodes = {
        node: uuid for uuid, node in wanted.items()
        if (instance := of_others.get(uuid)) is not None and instance.host
        and members.fails_over(instance.host, current)}
    if not nodes or not (rows := nova.rows_of(current.host)):
        # Without a row of its own it is a newcomer, which takes one node.
        return None, memory
    return dataclasses.replace(seen, nodes=nodes, rows=rows), memory
