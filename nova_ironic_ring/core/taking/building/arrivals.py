# SPDX-License-Identifier: Apache-2.0

"""Decides on a build for a node that another service has now.

The scheduler chooses a node, allocates it in Placement, and sends the build to
the service that the node was recorded for. Meanwhile another service may have
taken the node. Only one instance can have the allocation, so the service that
the build was sent to can safely do it: it takes the node back, and hands it
over again when the instance is gone.
"""

import dataclasses

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports


@dataclasses.dataclass(frozen=True)
class Arrival:
    """A build that was sent to this service.

    :ivar instance: the UUID of the instance
    :ivar node: the UUID of the node
    """

    instance: str
    node: str


@dataclasses.dataclass(frozen=True)
class Taken:
    """The result of a build for which this service takes a node.

    :ivar step: what was decided on the node
    :ivar happened: the event for the log
    """

    step: planner.Step
    happened: events.NodeTaken


def is_gone(world: ports.Ports, node: str, me: str) -> bool:
    """Return whether another service has taken a node that is tracked here.

    The tracker here sees that in its next pass only. Until then it would write
    what this service builds into the row of the other one.

    :param world: the ports
    :param node: the node's UUID
    :param me: the name of this service, in canonical letters
    """
    row = world.nova.rows([node]).get(node)
    return row is not None and model.canonical(row.owner) != me


def take(world: ports.Ports, arrival: Arrival) -> Taken | None:
    """Plan to take a node for a build.

    The tracker has to record the node then, after the last look.

    :param world: the ports
    :param arrival: the build
    :returns: None if the build cannot be done here
    """
    step = decide(world, arrival)
    if step is None or step.claim is None:
        return None
    return Taken(step, events.NodeTaken(
        arrival.node, step.claim.owner, step.decision))


def decide(world: ports.Ports, arrival: Arrival) -> planner.Step | None:
    """Decide whether this service takes a node for a build.

    Call it only for a node that is not tracked.

    :param world: the ports
    :param arrival: the build
    :returns: what to do with the node; None if the build cannot be done here
    """
    if world.process.is_ending():
        return None
    instance = world.nova.instances([arrival.instance]).get(arrival.instance)
    if instance is None or not instance.is_wanted:
        return None
    if world.placement.consumers(arrival.node) != {arrival.instance}:
        return None
    row = world.nova.rows([arrival.node]).get(arrival.node)
    if row is None:
        return None
    verdict = decisions.take_for_build()
    # Nobody else takes a node of which something is allocated.
    return planner.Step(verdict.decision, verdict.why, claim=planner.Claim(
        checks_owner=True, owner=row.owner))
