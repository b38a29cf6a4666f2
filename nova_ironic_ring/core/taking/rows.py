# SPDX-License-Identifier: Apache-2.0

"""Takes free nodes of whose records only the owner changes.

Nova's resource tracker makes some twenty requests for a node that comes to a
service. If the node in Ironic has not changed since its record was made, and
both services make records in the same way, only the owner has to change: the
last look and one write are enough, for many nodes at a time. The tracker
tracks the node when its turn comes, or when something is built on it.
"""

from collections.abc import Mapping
import dataclasses

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.taking import consenting
from nova_ironic_ring.core.values import ports

Decision = decisions.Decision

# The most nodes to take by one last look.
_BATCH = 100
# The first node of a newcomer is recorded in full, and so is one that a build
# waits for.
_DECISIONS = frozenset((Decision.TAKE_OFFERED, Decision.TAKE_ABANDONED,
                        Decision.TAKE_SILENT))


def can_move(step: planner.Step | None) -> bool:
    """Return whether this service may take a node without the tracker.

    :param step: what was decided on it, if anything
    """
    return step is not None and step.decision in _DECISIONS and (
        step.claim is not None and step.claim.owner is not None)


@dataclasses.dataclass(frozen=True)
class Moved:
    """The result for nodes that this service is to take.

    The tracker is to take nodes that are in neither field.

    :ivar taken: those that are this service's now
    :ivar lost: those that another service has taken meanwhile, or whose owner
        does not let go of them any more; all if this service is about to end,
        was disabled or enabled, or has no valid view of the others any more
    """

    taken: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()

    def corrected(self, plan: planner.Plan, host: str) -> planner.Plan:
        """Return the plan by which the nodes were to be taken, as it is now.

        :param plan: the plan
        :param host: the name of this service
        """
        verdict = decisions.wait()
        return plan.having({
            node: dataclasses.replace(
                plan.steps[node], claim=planner.Claim(None, True, host))
            for node in self.taken} | {
            node: planner.Step(verdict.decision, verdict.why)
            for node in self.lost})


def take(this: one_pass.Pass, steps: Mapping[str, planner.Step]) -> Moved:
    """Look at nodes once more, and record for this service what it may take.

    :param this: the pass, or the look between two
    :param steps: what was decided on nodes, by UUID
    :returns: what was taken until Nova or Placement did not answer, if so
    :raises Exception: if they did not from the first
    """
    wanted = sorted(node for node, step in steps.items() if can_move(step))
    moved = Moved()
    if not this.current.full_update_interval:
        # Each pass updates each node, so the tracker has them at once.
        return moved
    while wanted:
        if this.is_late:
            return Moved(moved.taken, moved.lost.union(wanted))
        if not this.is_valid:
            # The tracker looks again, when a look has renewed the view.
            return moved
        batch, wanted = wanted[:_BATCH], wanted[_BATCH:]
        try:
            found = _take(this, {node: steps[node] for node in batch})
        except Exception:
            if moved == Moved():
                raise
            # The next pass meets it again, and knows what was taken.
            return moved
        moved = Moved(moved.taken | found.taken, moved.lost | found.lost)
    return moved


def _take(this: one_pass.Pass, steps: Mapping[str, planner.Step]) -> Moved:
    world = this.world
    if not consenting.may_take(this):
        return Moved(lost=frozenset(steps))
    if any(step.claim is not None and step.claim.is_abandoned
           for step in steps.values()):
        # The owner may have come back, and build on its nodes.
        look.again(this)
    rows = consenting.Rows(this, steps)
    said = updates.of_process(world.process)
    answers = world.ironic.fingerprints(steps)
    lost = {node for node, step in steps.items() if step.claim is None
            or rows.of(node) is None or not rows.allow(node, step.claim)}
    allowed = sorted(steps.keys() - lost)
    unused = world.placement.unused(allowed) if allowed else frozenset()
    # The tracker would not get those either.
    lost |= {node for node in allowed if node not in unused
             and (claim := steps[node].claim) is not None
             and claim.is_handed_over and world.placement.consumers(node)}
    chosen = dict[str, ports.Taking]()
    for node in sorted(unused):
        step, row = steps[node], rows.of(node)
        assert step.claim is not None and row is not None
        if node in answers and row.made_of == (made_of := updates.made_of(
                answers[node], step.decision, said)):
            # With the record of a lost service Nova deletes its providers, one
            # by one, perhaps only now: such a node has its turn next.
            chosen[node] = ports.Taking(
                row.owner, made_of,
                None if step.claim.is_abandoned else row.made_at)
    if not chosen:
        return Moved(lost=frozenset(lost))
    kept_away = world.placement.disabled() & chosen.keys()
    if not this.is_valid:
        # All that was asked may have taken long.
        return Moved(lost=frozenset(steps))
    for node in chosen:
        # Its former owner may have changed the provider since Nova cached it.
        world.placement.forget_provider(node)
    for node in sorted(chosen):
        claim = steps[node].claim
        if claim is not None and claim.is_handed_over and claim.owner:
            # Look later for builds that it may still get for the node. Noted
            # before: a write that seems to fail may have succeeded.
            this.memory.handovers.givers[node] = claim.owner
    taken = world.nova.take_rows(chosen)
    # Otherwise the scheduler would leave out nodes of a disabled service.
    world.placement.tell_status(sorted(taken & kept_away), True)
    return Moved(taken, frozenset(lost | (chosen.keys() - taken)))
