# SPDX-License-Identifier: Apache-2.0

"""A pass where each node is a compute node, as with the ring driver."""

import collections
from collections.abc import Iterable, Mapping, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.looking import consumers
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import others
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.passing import places
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.taking.building import unclaimed
from nova_ironic_ring.core.taking import leftovers
from nova_ironic_ring.core.taking import pool_return
from nova_ironic_ring.core.taking import pool_takeover
from nova_ironic_ring.core.taking import rows as rows_of_nodes
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

# The most rows of nodes that are waited for to read in a look.
_ROWS = 500
# The most free nodes to record between two passes: the tracker needs a good
# part of a second for each, and does one after the other.
_NODES = 20


@dataclasses.dataclass(frozen=True)
class PassResult(places.PassResult):
    """The result of a pass.

    :ivar plan: what was decided, and corrected where a takeover failed
    :ivar listed: the nodes that are this service's now, and the instance on
        each
    :ivar changes: which of them Nova's resource tracker is to update
    """

    plan: planner.Plan = planner.Plan()
    listed: model.Nodes = dataclasses.field(default_factory=dict)
    changes: updates.Changes = updates.Changes()

    def joined(self, steps: Mapping[str, planner.Step],
               memory: observation.Memory,
               moved: frozenset[str] = frozenset()) -> 'PassResult':
        """Return the result with the nodes that have come meanwhile.

        Looks and builds take nodes while the pass asks.

        :param steps: what they have decided since the pass began, by the UUID
            of the node
        :param memory: what is remembered after the pass and the looks
        :param moved: those of the nodes that the tracker need not update
        """
        listed = {node: memory.nodes.get(node) for node in steps}
        return dataclasses.replace(
            self, memory=memory, plan=self.plan.having(steps),
            changes=dataclasses.replace(
                self.changes, unchanged=self.changes.unchanged | moved),
            listed={**listed, **self.listed},
            orphans=self.orphans.difference(
                instance for instance in listed.values() if instance))


@dataclasses.dataclass(frozen=True)
class ReactionResult(places.ReactionResult):
    """The result of a look between two passes.

    :ivar steps: what was decided on nodes that have become this service's, or
        that the tracker is to record for it, by UUID
    :ivar moved: those of them that are recorded already
    """

    steps: Mapping[str, planner.Step] = dataclasses.field(
        default_factory=dict)
    moved: frozenset[str] = frozenset()


class Nodes(places.Places[observation.Observation, planner.Plan, PassResult,
                          ReactionResult]):
    """The steps of a pass in which each node is a place."""

    def look(self, this: one_pass.Pass, begun: listing.Beginning
             ) -> observation.Observation:
        world, memory = this.world, this.memory
        with this.asking(one_pass.Port.NOVA):
            rows = world.nova.rows_of(this.current.host)
        with this.asking(one_pass.Port.IRONIC):
            look.at_missing_nodes(
                this, look.Had(pools.rows_of_nodes(rows)), begun.nodes)
        memory.kept &= rows.keys() - begun.nodes.keys()
        with this.asking(one_pass.Port.NOVA):
            seen = _observe(this, observation.Observation(
                world.process.now(), memory.view, begun.nodes, rows,
                observation.Instances(begun.mine),
                narrowed=begun.narrowed))
        this.happened.extend(others.elsewhere(
            memory.instances, seen.nodes, seen.instances.of_others,
            seen.instances.other_drivers))
        return seen

    def decide(self, this: one_pass.Pass, seen: observation.Observation
               ) -> planner.Plan:
        memory = this.memory
        plan = planner.decide(dataclasses.replace(
            seen, view=this.view), memory, this.current)
        plan.note_in(memory)
        this.happened.extend(plan.happened)
        memory.instances = seen.instances.of_others
        memory.other_drivers = seen.instances.other_drivers
        return plan

    def take(self, this: one_pass.Pass, seen: observation.Observation,
             plan: planner.Plan) -> PassResult:
        rows = {node: row for node, row in seen.rows.items()
                if row.owner_name == this.current.me}
        expected = seen.instances.mine.union(
            each.instance for each in takeover.wanted(plan, seen))
        with this.asking(one_pass.Port.NOVA):
            plan = takeover.take_over(this, plan, seen)
            plan = pool_return.take_over(this, plan, seen)
        listed = _listed(plan, seen)
        _empty_pools(this, pool_return.Own(seen.nodes, rows), expected)
        builds.look_at_givers(this, seen.nodes, listed)
        unclaimed.settle(this, lambda: {
            node: node for node in this.world.placement.in_use([
                node for node in rows if seen.nodes.get(node) is None])})
        builds.look_again(this)
        builds.release_ended(this, seen.nodes)
        leftovers.clean(this, pool_return.Own(seen.nodes, rows))
        # Nothing that fails after it makes the pass forget the former owners.
        plan, moved = _take_at_once(this, plan)
        listed = _listed(plan, seen)
        busy = _kept_away(this, listed) | _without_provider(this, rows)
        said = own_work.say(this)
        this.happened.append(_count(plan))
        found = updates.find(plan.steps, rows, updates.Circumstances(
            this.world.ironic.fingerprints(listed),
            updates.of_process(this.world.process), busy, listed,
            this.world.process.wall_time().timestamp(),
            this.current.full_update_interval))
        return PassResult(
            this.memory, this.taken, this.happened,
            _orphans(this, seen, plan), said, plan, listed,
            dataclasses.replace(
                found, unchanged=found.unchanged | moved.taken))

    def react(self, this: one_pass.Pass,
              seen: observation.Observation | None) -> ReactionResult:
        steps: dict[str, planner.Step] = {}
        if seen is not None:
            # The memory is only for plans with all nodes and all rows.
            plan = planner.decide(seen, this.memory, this.current)
            with this.asking(one_pass.Port.NOVA):
                plan = takeover.take_over(this, plan, seen)
            taken = {each.node for each in this.taken}
            steps = {node: step for node, step in plan.steps.items()
                     if node in taken}
        return ReactionResult(
            this.memory, this.taken, this.happened, steps=steps)

    def change(self, this: one_pass.Pass, nodes: Sequence[str]
               ) -> places.ChangeResult:
        # If it fails, the next time tries them again.
        memory = this.memory
        memory.changed = waiting = changes.queue(memory.changed, nodes)
        if not waiting:
            return places.ChangeResult(memory)
        chosen = waiting[:_NODES]
        with this.asking(one_pass.Port.NOVA):
            rows = this.world.nova.rows(chosen)
        memory.changed = waiting[_NODES:]
        # Otherwise the tracker would write into the row of a peer that has
        # taken the node since.
        mine = [node for node in chosen if node in rows
                and rows[node].owner_name == this.current.me]
        return places.ChangeResult(
            memory, happened=this.happened, places=mine, nodes=mine)


def _take_at_once(this: one_pass.Pass, plan: planner.Plan
                  ) -> tuple[planner.Plan, rows_of_nodes.Moved]:
    """Take the free nodes that need no tracker.

    The tracker takes the others.

    :returns: the plan, corrected if a node could not be taken
    """
    moved = rows_of_nodes.Moved()
    wanted = {node for node, step in plan.steps.items()
              if rows_of_nodes.can_move(step)}
    with this.going_on(events.NodesNotTaken, len(wanted)):
        moved = rows_of_nodes.take(this, plan.steps)
    this.happened[:] = [
        each for each in this.happened
        if not isinstance(each, events.NodeTaken)
        or each.node not in moved.lost]
    this.memory.taking = frozenset(wanted - moved.taken - moved.lost)
    return moved.corrected(plan, this.current.host), moved


def _listed(plan: planner.Plan, seen: observation.Observation) -> model.Nodes:
    """Return the nodes that are this service's, and the instance on each."""
    return {node: seen.nodes[node] for node, step in plan.steps.items()
            if step.decision.lists}


def _observe(this: one_pass.Pass, seen: observation.Observation
             ) -> observation.Observation:
    """Read what the decisions depend on beyond what every pass reads.

    In a quiet pass, that is nothing.
    """
    nova = this.world.nova
    needs = planner.needs(seen, this.current)
    rows = nova.rows(needs.rows) if needs.rows else {}
    of_others, other_drivers = others.instances(this, needs.of_others, rows)
    look.at_new_services(this, {row.owner for row in rows.values()} | {
        str(instance.host) for instance in of_others.values()
        if instance.host})
    return dataclasses.replace(
        seen, rows={**seen.rows, **rows}, instances=observation.Instances(
            seen.instances.mine, of_others, other_drivers))


def _empty_pools(this: one_pass.Pass, own: pool_return.Own,
                 expected: frozenset[str]) -> None:
    """Empty the pools that this service had with the pool driver.

    :param expected: UUIDs of this service's instances, and of those that it
        is to take over
    """
    left = pools.recorded(own.rows)
    pool_return.close(this, own)
    if this.view.is_trusted:
        pool_return.take_back(this, own, left)
        pool_takeover.give_back(
            this, left, consumers.Consumers(this), expected)


def _kept_away(this: one_pass.Pass, listed: Iterable[str]
               ) -> frozenset[str]:
    """Return providers that the scheduler is wrongly kept away from.

    Nova marks the providers of a disabled service, perhaps after another one
    has taken the node.

    :param listed: the nodes that are this service's
    """
    if this.view.state(this.current.me) is membership.State.DISABLED:
        return frozenset()
    try:
        found = this.world.placement.disabled().intersection(listed)
    except Exception:
        # Nothing gets worse, and the next pass asks again.
        return frozenset()
    for node in found:
        # Otherwise Nova's client would use what it read before.
        this.world.placement.forget_provider(node)
    return found


def _without_provider(this: one_pass.Pass, own: Mapping[str, model.Row]
                      ) -> frozenset[str]:
    """Return nodes without a resource provider, when the process starts.

    Somebody may have deleted it while the process was down, or the process was
    down before it had been made.

    :param own: the rows of this service
    """
    if not own or this.memory.own_work.is_said:
        return frozenset()
    try:
        return frozenset(own.keys() - this.world.placement.known())
    except Exception as error:
        this.happened.append(events.ProvidersUnknown(error))
        return frozenset()


def _orphans(this: one_pass.Pass, seen: observation.Observation,
             plan: planner.Plan) -> frozenset[str]:
    """Return instances of others, or of nobody, on nodes for this service."""
    return frozenset(
        instance for node, instance in seen.nodes.items()
        if instance is not None and plan.steps[node].decision
        is decisions.Decision.LEAVE_INSTANCE
        and this.view.ring.owner(node) == this.current.me)


def _count(plan: planner.Plan) -> events.PassDone:
    counts = collections.Counter(
        step.decision for step in plan.steps.values())
    return events.PassDone(dict(counts), any(
        decision.takes or decision.takes_instance for decision in counts
    ) or any(isinstance(each, events.NodeOffered) for each in plan.happened))


def take_free(world: ports.Ports, before: observation.Memory,
              current: settings.Settings) -> ReactionResult:
    """Take free nodes between two passes, by the last look at the services.

    A pass, or a look, may run at the same time.

    :param world: the ports
    :param before: what this service remembers, which is not changed
    :param current: its settings
    :raises one_pass.UnansweredError: if Nova did not answer
    """
    this = one_pass.Pass(world, current, before.copied(), before)
    with this.asking():
        steps, moved = _take_free(this) if current.cooperative else (
            {}, frozenset())
    return ReactionResult(
        this.memory, (), this.happened, steps=steps, moved=moved)


def _take_free(this: one_pass.Pass
               ) -> tuple[dict[str, planner.Step], frozenset[str]]:
    """Take free nodes that their owners have let go of, or have lost.

    :returns: what was decided on nodes that are this service's now, or that
        the tracker is to record; and which of them are recorded already
    """
    nova, current, memory = this.world.nova, this.current, this.memory
    wanted = _in_turn(this) if memory.view.is_trusted else []
    if not wanted:
        return {}, frozenset()
    with this.asking(one_pass.Port.NOVA):
        rows = {node: row for node, row in nova.rows(wanted).items()
                if row.owner_name != current.me}
        look.at_new_services(this, {row.owner for row in rows.values()})
    if not rows:
        return {}, frozenset()
    plan = planner.decide(observation.Observation(
        memory.watch.at, memory.view, dict.fromkeys(sorted(rows)), rows),
        memory, current)
    # Which nodes live services of a narrower scope keep, only a pass knows.
    is_sure = not memory.view.narrower
    steps = {node: step for node, step in plan.steps.items()
             if rows_of_nodes.can_move(step) and (
                 is_sure or step.decision is decisions.Decision.TAKE_OFFERED)}
    try:
        moved = rows_of_nodes.take(this, steps)
    except Exception:
        # The pass says so.
        return {}, frozenset()
    room = _NODES - (len(memory.taking - this.world.process.tracked())
                     if memory.taking else 0)
    # What a lost service was to build on its nodes, a pass finds, which sees
    # what it has built meanwhile.
    left = [node for node, step in steps.items()
            if node not in moved.taken | moved.lost
            and step.claim is not None and not step.claim.is_abandoned
            ][:max(0, room)]
    this.happened.extend(
        each for each in plan.happened if isinstance(each, events.NodeTaken)
        and (each.node in moved.taken or each.node in left))
    memory.taking = memory.taking.union(left)
    memory.waits = {node: wait for node, wait in memory.waits.items()
                    if node not in moved.taken}
    plan = moved.corrected(plan, current.host)
    return {node: plan.steps[node]
            for node in [*sorted(moved.taken), *left]}, moved.taken


def _turn(this: one_pass.Pass) -> int:
    return int(this.memory.watch.at / this.current.report_interval)


def _in_turn(this: one_pass.Pass) -> list[str]:
    """Return free nodes that are to come here; each look takes the next ones.

    Which of them are left to services of a narrower scope, only a pass knows.
    """
    memory, ring = this.memory, this.view.ring
    if this.view.narrower:
        found = set(memory.waits)
    else:
        found = {node for node, instance in memory.nodes.items()
                 if instance is None and ring.owner(node) == this.current.me
                 } - this.world.process.tracked()
    nodes = sorted(found - memory.taking)
    if len(nodes) <= _ROWS:
        return nodes
    first = _turn(this) * _ROWS % len(nodes)
    return (nodes + nodes)[first:first + _ROWS]
