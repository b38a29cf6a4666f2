# SPDX-License-Identifier: Apache-2.0

"""Looks at a listed node again when Nova's resource tracker reaches it.

The tracker goes from node to node, which may take long: the decisions of the
pass may no longer hold. The pass is in
:mod:`nova_ironic_ring.core.passing.passes`.
"""

import dataclasses

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import look as looking
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.taking import consenting
from nova_ironic_ring.core.taking import new_nodes
from nova_ironic_ring.core.taking import rows
from nova_ironic_ring.core.values import model


class NodeLostError(Exception):
    """Another service has taken a node since it was decided to list it.

    Or its owner goes by another ring now, or is to build on it.
    """


@dataclasses.dataclass(frozen=True)
class Listed:
    """A node that a pass has listed, and to which the tracker comes.

    :ivar node: the node's UUID
    :ivar step: what was decided
    :ivar is_tracked: whether the tracker tracks the node already
    :ivar new: the nodes that are new in the pass
    """

    node: str
    step: planner.Step
    is_tracked: bool
    new: new_nodes.NewNodes = new_nodes.FEW


def look(this: one_pass.Pass, listed: Listed) -> bool:
    """Look at a node once more before Nova's tracker records it.

    For a node that is tracked already, it looks for builds that the service
    which handed over the node may still get.

    :param this: the last look
    :param listed: the node
    :returns: False if the tracker must not record the node: another service
        has taken it meanwhile
    """
    node, memory = listed.node, this.memory
    if listed.is_tracked:
        builds.look_at_handover(this, node)
        return True
    try:
        memory.left_builds += tuple(
            claim(this, node, listed.step, listed.new))
    except NodeLostError:
        return False
    claimed = listed.step.claim
    if claimed is not None and claimed.is_handed_over and (
            claimed.owner is not None):
        memory.handovers.givers[node] = claimed.owner
    return True


def claim(this: one_pass.Pass, node: str, step: planner.Step,
          new: new_nodes.NewNodes = new_nodes.FEW
          ) -> list[observation.LeftBuild]:
    """Look at a node once more before Nova's tracker takes it.

    The tracker takes every listed node, whoever has it. Call this only for a
    node that is not tracked yet.

    :param this: the pass, or the last look
    :param node: the node's UUID
    :param step: what was decided
    :param new: the nodes that are new in the pass
    :returns: the builds that a dead owner has left behind, and that have to be
        looked at again
    :raises NodeLostError: if another service has taken the node meanwhile, its
        owner goes by another ring, has come back or lives and is to build on
        the node, or this service is about to end or was disabled or enabled
    """
    world, claimed = this.world, step.claim
    if claimed is None or (world.process.is_ending() and (
            step.decision.takes or step.decision.takes_instance)):
        raise NodeLostError(node)
    seen = consenting.Rows(this, {node: step}) if (
        claimed.checks_owner and claimed.instance is None) else None
    row = seen.of(node) if seen else None
    if row is not None and row.owner_name == this.current.me:
        # Another thread has recorded it meanwhile, after a last look.
        world.placement.forget_provider(node)
        return []
    if rows.can_move(step) and not consenting.may_take(this) or (
            seen is not None and row is None and this.is_late):
        raise NodeLostError(node)
    if claimed.instance is not None:
        found = world.nova.instances([claimed.instance]).get(claimed.instance)
        host = model.canonical(claimed.host or this.current.host)
        if found is None or found.host_name != host:
            raise NodeLostError(node)
    elif seen is not None and not seen.allow(node, claimed):
        raise NodeLostError(node)
    if claimed.is_handed_over and world.placement.consumers(node):
        # Its owner is to build on it.
        raise NodeLostError(node)
    if claimed.is_abandoned and row is not None and _may_have_builds(
            this, node):
        # Its owner may have come back since, and build on it.
        looking.again(this)
        if not this.view.is_lost(row.owner):
            raise NodeLostError(node)
    if rows.can_move(step) and not this.is_valid:
        # All that was asked may have taken long.
        raise NodeLostError(node)
    # If the former owner's record was deleted, so was the provider. Nova's
    # cache would not show that for minutes.
    world.placement.forget_provider(node)
    if claimed.is_abandoned and (
            claimed.owner is not None or new.may_have_builds(world, node)):
        return builds.look(this, node, claimed.owner)
    return []


def _may_have_builds(this: one_pass.Pass, node: str) -> bool:
    """Return whether a node has allocations, or nobody tells."""
    try:
        return bool(this.world.placement.consumers(node))
    except Exception:
        return True
