# SPDX-License-Identifier: Apache-2.0

"""Takes free nodes of whose records only the owner changes.

Nova's resource tracker makes some twenty requests for a node that comes to a
service. If the node in Ironic has not changed since its record was made, and
both services make records in the same way, only the owner has to change: the
last look and one write are enough. The tracker tracks the node when its turn
comes, or when something is built on it.
"""

from collections.abc import Mapping
import dataclasses

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.taking import consenting
from nova_ironic_ring.core.values import ports

Decision = decisions.Decision

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
class Wanted:
    """Nodes that this service is to take.

    :ivar steps: what was decided, by the node's UUID
    :ivar made_of: what the record of each is to say that it was made of
    """

    steps: Mapping[str, planner.Step]
    made_of: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Moved:
    """The result for these nodes.

    The tracker is to take nodes that are in neither field.

    :ivar taken: those that are this service's now
    :ivar lost: those that another service has taken meanwhile, or whose owner
        does not let go of them any more; all if this service is about to end,
        or was disabled or enabled
    """

    taken: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


def take(this: one_pass.Pass, wanted: Wanted) -> Moved:
    """Look at nodes once more, and record them for this service.

    :param this: the last look at them
    :param wanted: the nodes
    """
    world = this.world
    if not consenting.may_take(this):
        return Moved(lost=frozenset(wanted.steps))
    rows = consenting.Rows(this, wanted.steps)
    lost, chosen = set(), dict[str, ports.Taking]()
    for node, step in sorted(wanted.steps.items()):
        row = rows.of(node)
        assert step.claim is not None
        if row is None or not rows.allow(node, step.claim):
            lost.add(node)
        elif (made_of := wanted.made_of.get(node)) == row.made_of is not None:
            # With the record of a lost service Nova deletes its providers, one
            # by one, perhaps only now: such a node has its turn next.
            chosen[node] = ports.Taking(
                row.owner, str(made_of),
                None if step.claim.is_abandoned else row.made_at)
    if not chosen:
        return Moved(lost=frozenset(lost))
    unused = world.placement.unused(sorted(chosen))
    chosen = {node: each for node, each in chosen.items() if node in unused}
    kept_away = world.placement.disabled() & chosen.keys()
    for node in chosen:
        # Its former owner may have changed the provider since Nova cached it.
        world.placement.forget_provider(node)
    for node in sorted(chosen):
        claim = wanted.steps[node].claim
        if claim is not None and claim.is_handed_over and claim.owner:
            # Look later for builds that it may still get for the node. Noted
            # before: a write that seems to fail may have succeeded.
            this.memory.handovers.givers[node] = claim.owner
    taken = world.nova.take_rows(chosen)
    # Otherwise the scheduler would leave out nodes of a disabled service.
    world.placement.tell_status(sorted(taken & kept_away), True)
    return Moved(taken, frozenset(lost | (chosen.keys() - taken)))
