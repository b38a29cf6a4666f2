# SPDX-License-Identifier: Apache-2.0

"""What a service does between two passes, the same with both drivers.

With thousands of nodes the resource tracker takes minutes from one pass to the
next. So the services are looked at more often, and the instances of those that
are dead are taken over at once; with records of nodes, so are nodes that the
last pass waits for when they are offered. Ironic has listed its nodes in the
last pass, and is asked for no more than shards that were another's then. All
else is left to the passes.
"""

from collections.abc import Sequence
import dataclasses

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import others
from nova_ironic_ring.core.passing import places
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

# Seconds: the clocks of the look and of who waits for it are not one.
_SHORTEST = 0.2


def run(world: ports.Ports, before: observation.Memory,
        current: settings.Settings,
        place: places.Places[places.Seen, places.Plan, places.Passed,
                             places.Reacted]) -> places.Reacted:
    """Look at the services, and do what does not wait for the next pass.

    No pass may run at the same time.

    :param world: the ports
    :param before: what this service remembers, which is not changed
    :param current: its settings
    :param place: what a place is
    :raises one_pass.UnansweredError: if Nova could not be asked
    """
    this = one_pass.Pass(world, current, before.copied(), before)
    seen = None
    if current.cooperative:
        look.between_passes(this)
        listing.at_gained_shards(this)
        seen = _observe(this)
    return place.react(this, seen)


def change(world: ports.Ports, before: observation.Memory,
           current: settings.Settings,
           place: places.Places[places.Seen, places.Plan, places.Passed,
                                places.Reacted],
           nodes: Sequence[str]) -> places.ChangeResult:
    """Say what Nova's tracker is to update, as nodes have changed in Ironic.

    No pass may run at the same time.

    :param world: the ports
    :param before: what this service remembers, which is not changed
    :param current: its settings
    :param place: what a place is
    :param nodes: the UUIDs of nodes that have changed, as
        :func:`nova_ironic_ring.core.looking.changes.ask` tells
    :raises one_pass.UnansweredError: if Nova could not be asked
    """
    return place.change(
        one_pass.Pass(world, current, before.copied(), before), nodes)


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


def _observe(this: one_pass.Pass) -> observation.Observation | None:
    """Read what is known of the instances of dead services.

    :returns: what was seen, with the nodes of those instances of dead services
        that are for this one; None if there is none, or if nothing is to be
        taken over
    """
    if not this.current.fails_over or not this.memory.nodes or (
            not this.standing.is_trusted):
        return None
    with this.asking(one_pass.Port.NOVA):
        seen = _of_dead_services(this)
    if seen is None:
        return None
    look.at_own_heartbeat(this)
    return dataclasses.replace(seen, standing=this.standing)


def _of_dead_services(this: one_pass.Pass
                      ) -> observation.Observation | None:
    """Read what the decisions on instances of dead services depend on.

    :returns: None if there is no such instance
    """
    nova, current, memory = this.world.nova, this.current, this.memory
    seen = observation.Observation(
        memory.watch.at, memory.standing,
        {node: instance for node, instance in memory.nodes.items()
         if instance is not None}, {},
        observation.Instances(nova.instances_of(current.host)))
    # Whoever uses Ironic without Nova may have many: passes look for these.
    nowhere = memory.nowhere - memory.instances.keys()
    wanted = {uuid: node for uuid, node in planner.needs(
        seen, current).of_others.items() if uuid not in nowhere}
    of_others, other_drivers = others.instances(this, wanted, {})
    known = others.services(this, {
        str(instance.host) for instance in of_others.values()
        if instance.host})
    this.happened.extend(others.elsewhere(
        memory.instances, seen.nodes, of_others, other_drivers))
    memory.instances, memory.other_drivers = of_others, other_drivers
    memory.nowhere = nowhere.intersection(seen.nodes.values()) | (
        wanted.keys() - of_others.keys())
    members = memory.standing.membership.joined(known.membership)
    nodes = {
        node: uuid for uuid, node in wanted.items()
        if (instance := of_others.get(uuid)) is not None and instance.host
        and members.fails_over(instance.host, current)}
    if not nodes or not (rows := nova.rows_of(current.host)):
        # Without a row of its own it is a newcomer, which takes one node.
        return None
    return dataclasses.replace(
        seen, nodes=nodes, rows=rows, others=known,
        instances=dataclasses.replace(
            seen.instances, of_others=of_others,
            other_drivers=other_drivers))
