# SPDX-License-Identifier: Apache-2.0

"""Ends the builds that no service has claimed a node for, and none will.

A build waits for its turn inside a service, which may end meanwhile. Or its
message waits for a service that has died: after a build has failed, Nova sends
it to the next host that the scheduler chose, minutes later and whether or not
that host lives. Its node has another service by then, and stays allocated.
"""

from collections.abc import Container, Mapping
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look as looking
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports

#: Seconds in which a build comes to a service, or to its turn at one with
#: Nova's own driver.
PATIENCE = 1800.0
#: Seconds in which a build that has come to a service has its turn there.
#: After a restart, a service with Nova's own driver no longer builds it.
LONGEST = 86400.0
#: Seconds between two searches for such builds.
SEARCH_INTERVAL = 600.0


def is_interrupted(this: one_pass.Pass, found: observation.Unclaimed) -> bool:
    """Decide on a build that was under way when a service starts.

    Nova believes that this service had each build on a node of this service
    before its start. But a peer may have it: one that handed over the node
    after the scheduler had chosen it. Such a build is remembered, and looked
    at again; and so is one that has come to no service yet.

    :param this: what is remembered, and the ports
    :param found: the build
    :returns: whether it has ended with this service's former process
    """
    nova, me, memory = this.world.nova, this.current.me, this.memory
    instance = nova.instances([found.instance]).get(found.instance)
    if instance is None or instance.host_name == me:
        return True
    if instance.host is not None:
        memory.handovers.builds += (observation.LeftBuild(
            found.node, instance.host, frozenset({found.instance})),)
        return False
    at = _waits_at(nova, found.instance)
    if at is not None and model.canonical(at) == me:
        return True
    others = [service.host for service in nova.all_services()
              if service.name != me and not service.forced_down]
    if not nova.scopes(others):
        return True
    memory.unclaimed += (dataclasses.replace(found, host=at),)
    return False


def end_own(this: one_pass.Pass) -> None:
    """End what had come to this service before it was started.

    Nova finds only builds on nodes that the service lists, and no unshelvings.
    Call it before anything can come to the service.

    :param this: what is remembered, and the ports
    """
    nova, current = this.world.nova, this.current
    for uuid, instance in sorted(nova.unclaimed().items()):
        at = _waits_at(nova, uuid)
        if at is None or model.canonical(at) != current.me:
            continue
        node = min(this.world.placement.providers_of(uuid), default='none')
        with this.going_on(events.BuildNotEnded, node, uuid, current.host):
            builds.end(this, observation.LeftBuild(
                node, current.host, frozenset({uuid})), uuid, instance)


def look_at_unclaimed(this: one_pass.Pass) -> None:
    """End the builds that no service will claim.

    A build that has come to a peer waits for its turn there: at most a day,
    and as long as the peer is alive. An error here does not fail the pass:
    instances may have been taken over.

    :param this: the pass
    """
    world, left = this.world, this.memory.unclaimed
    if not left or not this.standing.is_trusted:
        return
    found: Mapping[str, model.Instance] | None = None
    with this.going_on(events.HandoversUnknown):
        found = world.nova.instances(each.instance for each in left)
    if found is None:
        return
    here = world.process.waiting_builds()
    kept = list[observation.Unclaimed]()
    for each in left:
        instance = found.get(each.instance)
        if instance is None or instance.host is not None or (
                not instance.is_building or each.instance in here):
            continue
        kept.append(each)
        with this.going_on(
                events.BuildNotEnded, each.node, each.instance, each.host):
            if not _is_over(this, each):
                continue
            if world.nova.end_build(each.instance, each.host, False):
                this.happened.append(events.BuildEnded(
                    each.node, each.instance, each.host))
                world.placement.free(each.instance)
            kept.remove(each)
    this.memory.unclaimed = tuple(kept)


def search(this: one_pass.Pass, places: Container[str]) -> None:
    """Remember the builds without a service that have a node of this service.

    They end later, unless a service claims them. An error here does not fail
    the pass: instances may have been taken over.

    :param this: the pass
    :param places: the UUIDs of the resource providers of this service's nodes
        or pools
    """
    world, memory, now = this.world, this.memory, this.world.process.now()
    if memory.searched is None:
        # What was there at the start is known.
        memory.searched = now
    if now - memory.searched < SEARCH_INTERVAL or not (
            this.standing.is_trusted):
        return
    known = {each.instance for each in memory.unclaimed}
    here = world.process.waiting_builds()
    with this.going_on(events.HandoversUnknown):
        found = [
            observation.Unclaimed(uuid, min(chosen), now)
            for uuid, instance in sorted(world.nova.unclaimed().items())
            if instance.is_building and uuid not in known
            and uuid not in here and (chosen := [
                place for place in world.placement.providers_of(uuid)
                if place in places])]
        memory.unclaimed += tuple(found)
        memory.searched = now


def _waits_at(nova: ports.Nova, instance: str) -> str | None:
    """Return the service that a build, or an unshelving, waits at.

    What was given to the next service, and has not come there after long, has
    been lost.

    :returns: None if it has come to none yet, or is on its way to the next
    """
    arrival = nova.arrived_at(instance)
    return None if arrival is None or (
        arrival.given_up is not None and arrival.given_up < PATIENCE
    ) else arrival.host


def _is_over(this: one_pass.Pass, each: observation.Unclaimed) -> bool:
    """Return whether no service will build what none has claimed."""
    host, waits = each.host, this.world.process.now() - each.since
    if waits >= LONGEST:
        return True
    if waits >= PATIENCE:
        arrival = this.world.nova.arrived_at(each.instance)
        if arrival is None:
            return True
        if arrival.given_up is not None:
            return arrival.given_up >= PATIENCE
        host = arrival.host
    elif host is None:
        return False
    return model.canonical(host) == this.current.me or (
        looking.at_all_services(this).membership.is_lost(host))
