# SPDX-License-Identifier: Apache-2.0

"""Looks at a listed node once more when Nova's resource tracker comes to it.

The tracker goes from node to node, which may take long: what a pass has
decided may not hold any more. The pass is in
:mod:`nova_ironic_ring.core.passing.passes`.
"""

import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking import builds
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports


class NodeLostError(Exception):
    """Another service has taken a node since it was decided to list it."""


class NodeInUseError(NodeLostError):
    """The owner of a node is to build on it, and does not give it away."""


@dataclasses.dataclass(frozen=True)
class Listed:
    """A node that a pass has listed, and to which the tracker comes.

    :ivar node: the node's UUID
    :ivar step: what was decided
    :ivar is_tracked: whether the tracker tracks the node already
    """

    node: str
    step: planner.Step
    is_tracked: bool


@dataclasses.dataclass(frozen=True)
class LastLook:
    """What has come of the last look at a node.

    :ivar memory: what is to be remembered
    :ivar is_lost: whether the tracker must not record the node
    :ivar taken: instances that have become this service's by the look
    :ivar happened: the events for the log
    """

    memory: observation.Memory
    is_lost: bool = False
    taken: tuple[takeover.Takeover, ...] = ()
    happened: tuple[events.Event, ...] = ()


def look(world: ports.Ports, before: observation.Memory, listed: Listed,
         me: str) -> LastLook:
    """Look at a node once more before Nova's tracker records it.

    Of a node that is tracked already, the builds are looked for that the
    service is still to get which has handed over the node.

    :param world: the ports
    :param before: what this service remembers
    :param listed: the node
    :param me: the canonical name of this service
    """
    node = listed.node
    if listed.is_tracked:
        return _look_at_handover(world, before, node)
    try:
        settled = claim(world, node, listed.step, me)
    except NodeInUseError:
        return LastLook(before.with_node_in_use(node), is_lost=True)
    except NodeLostError:
        return LastLook(before, is_lost=True)
    handovers, claimed = before.handovers, listed.step.claim
    if claimed is not None and claimed.is_handed_over and (
            claimed.owner is not None):
        handovers = dataclasses.replace(
            handovers, givers=handovers.givers.having(node, claimed.owner))
    return LastLook(
        dataclasses.replace(
            before, left_builds=(*before.left_builds, *settled.left),
            handovers=handovers),
        taken=settled.taken, happened=settled.happened)


def claim(world: ports.Ports, node: str, step: planner.Step,
          me: str) -> builds.Settled:
    """Look at a node once more before Nova's tracker takes it.

    The tracker takes every node that is listed, whoever has it. To be asked
    for a node that is not tracked yet.

    :param world: the ports
    :param node: the node's UUID
    :param step: what was decided
    :param me: the canonical name of this service
    :returns: what has come of builds that a dead owner has left behind
    :raises NodeInUseError: if something is to be built on the node by its
        owner, which lives
    :raises NodeLostError: if another service has taken the node meanwhile
    """
    claimed = step.claim
    if claimed is None:
        raise NodeLostError(node)
    if claimed.instance is not None:
        found = world.nova.instances([claimed.instance]).get(claimed.instance)
        host = me if claimed.host is None else model.canonical(claimed.host)
        if found is None or found.host_name != host:
            raise NodeLostError(node)
    elif claimed.checks_owner:
        row = world.nova.rows([node]).get(node)
        if (row.owner if row else None) != claimed.owner:
            raise NodeLostError(node)
    if claimed.is_handed_over and world.placement.consumers(node):
        # Its owner is to build on it, and to withdraw its offer.
        raise NodeInUseError(node)
    # If the former owner's record was deleted, so was the provider. Nova's
    # cache would not show that for minutes.
    world.placement.forget_provider(node)
    if claimed.is_abandoned:
        return builds.look(world, node, claimed.owner)
    return builds.Settled()


def _look_at_handover(world: ports.Ports, before: observation.Memory,
                      node: str) -> LastLook:
    handovers = before.handovers
    if handovers.is_unanswered:
        # The next pass looks for them, not each node again.
        return LastLook(before)
    try:
        handovers = builds.look_at_handover(world, handovers, node)
    except Exception as error:
        return LastLook(
            dataclasses.replace(before, handovers=dataclasses.replace(
                handovers, is_unanswered=True)),
            happened=(events.HandoversUnknown(error),))
    if handovers is before.handovers:
        return LastLook(before)
    return LastLook(dataclasses.replace(before, handovers=handovers))
