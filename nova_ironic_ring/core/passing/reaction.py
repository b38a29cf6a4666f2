# SPDX-License-Identifier: Apache-2.0

"""What a service does between two passes, the same with both drivers.

With thousands of nodes the resource tracker takes minutes from one pass to the
next. So this looks at the services more often, says by which ring this one
goes, and takes over the instances of dead ones at once. It uses the last
pass's listing of nodes, and asks Ironic only for shards that another service
had then. Passes do all the rest.
"""

from collections.abc import Sequence
import dataclasses

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import others
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.passing import places
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

# In seconds, because the look and the waiting thread read the clock at
# different times.
_SHORTEST = 0.2


def run(world: ports.Ports, before: observation.Memory,
        current: settings.Settings,
        place: places.Places[places.Seen, places.Plan, places.Passed,
                             places.Reacted]) -> places.Reacted:
    """Look at the services, and do what does not wait for the next pass.

    A pass may run at the same time.

    :param world: the ports
    :param before: what this service remembers, which is not changed
    :param current: its settings
    :param place: what a place is
    :raises one_pass.UnansweredError: if Nova did not answer
    """
    this = one_pass.Pass(world, current, before.copied(), before)
    seen = said = None
    with this.asking():
        this.see_what_was_taken()
        if current.cooperative:
            look.between_passes(this)
            said = own_work.acknowledge(this)
            listing.at_gained_shards(this)
            seen = _observe(this)
        return dataclasses.replace(place.react(this, seen), said=said)


def change(world: ports.Ports, before: observation.Memory,
           current: settings.Settings,
           place: places.Places[places.Seen, places.Plan, places.Passed,
                                places.Reacted],
           nodes: Sequence[str]) -> places.ChangeResult:
    """Return what Nova's tracker is to update after changes in Ironic.

    No pass may run at the same time.

    :param world: the ports
    :param before: what this service remembers, which is not changed
    :param current: its settings
    :param place: what a place is
    :param nodes: the UUIDs of nodes that have changed, as
        :func:`nova_ironic_ring.core.looking.changes.ask` returns
    :raises one_pass.UnansweredError: if Nova did not answer
    """
    return place.change(
        one_pass.Pass(world, current, before.copied(), before), nodes)


def pause(memory: observation.Memory, current: settings.Settings) -> float:
    """Return how long to wait between a look and the next one.

    The next look comes sooner if a service would become absent, or dead, just
    after it: so a takeover does not wait for another interval.

    :param memory: the memory after the look
    :param current: this service's settings
    :returns: seconds
    """
    limits = {*membership.patiences(current.down_time)}
    if current.failover_after:
        limits.add(current.failover_after)
    silences = [memory.watch.silence(host)
                for host in memory.view.peers
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
            not this.view.is_trusted):
        return None
    with this.asking(one_pass.Port.NOVA):
        seen = _of_dead_services(this)
    return seen and dataclasses.replace(seen, view=this.view)


def _of_dead_services(this: one_pass.Pass
                      ) -> observation.Observation | None:
    """Read what the decisions on instances of dead services depend on.

    :returns: None if there is no such instance
    """
    nova, current, memory = this.world.nova, this.current, this.memory
    seen = observation.Observation(
        memory.watch.at, memory.view,
        {node: instance for node, instance in memory.nodes.items()
         if instance is not None}, {},
        observation.Instances(nova.instances_of(current.host)))
    # Users of Ironic without Nova may have many: passes look for these.
    nowhere = memory.nowhere - memory.instances.keys()
    wanted = {uuid: node for uuid, node in planner.needs(
        seen, current).of_others.items() if uuid not in nowhere}
    of_others, other_drivers = others.instances(this, wanted, {})
    look.at_new_services(this, {
        str(instance.host) for instance in of_others.values()
        if instance.host})
    this.happened.extend(others.elsewhere(
        memory.instances, seen.nodes, of_others, other_drivers))
    memory.instances, memory.other_drivers = of_others, other_drivers
    memory.nowhere = frozenset(nowhere.intersection(seen.nodes.values())) | (
        wanted.keys() - of_others.keys())
    nodes = {
        node: uuid for uuid, node in wanted.items()
        if (instance := of_others.get(uuid)) is not None and instance.host
        and memory.view.fails_over(instance.host, current)}
    if not nodes or not memory.own_work.is_known:
        return None
    own = {*nodes, *(pool.uuid for pool in memory.pooled.pools.values())}
    rows = {place: row for place, row in nova.rows(sorted(own)).items()
            if row.owner_name == current.me}
    return dataclasses.replace(
        seen, nodes=nodes, rows=rows, instances=dataclasses.replace(
            seen.instances, of_others=of_others,
            other_drivers=other_drivers))
