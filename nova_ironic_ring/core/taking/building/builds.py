# SPDX-License-Identifier: Apache-2.0

"""Settles the builds of a node whose service has died.

Builds and unshelvings that no service had yet end here. An instance that had a
service, and no longer or not yet needs a machine, is taken over by this
service, whose recovery continues with it.
"""

from collections.abc import Container, Mapping, Sequence
import dataclasses
import functools

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look as looking
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports


#: Seconds in which a build comes to a service, or to its turn at one with
#: Nova's own driver.
PATIENCE = 1800.0
#: Seconds in which a build that has come to a service has its turn there.
#: After a restart, a service with Nova's own driver no longer builds it.
LONGEST = 86400.0


def look(this: one_pass.Pass, node: str, host: str | None
         ) -> list[observation.LeftBuild]:
    """End the builds that were under way for a free node when its owner died.

    Call this before this service records the node as its own: from then on
    builds for the node come here.

    :param this: the pass, or the last look at the node
    :param node: the node's UUID
    :param host: the name of its owner; None if it is not known any more
    :returns: the builds to look at again
    """
    consumers: frozenset[str] = frozenset()
    with this.going_on(events.BuildNotEnded, node, None, host):
        consumers = this.world.placement.consumers(node)
    return _settle(this, observation.LeftBuild(
        node, host, consumers)) if consumers else []


def look_again(this: one_pass.Pass) -> None:
    """Look again for consumers that Nova did not know as instances yet.

    :param this: the pass
    """
    left: list[observation.LeftBuild] = []
    for each in this.memory.left_builds:
        each = dataclasses.replace(each, looks=each.looks - 1)
        kept = [each] if each.looks > 0 else []
        # What was taken for the others has to be recovered.
        with this.going_on(
                events.BuildNotEnded, each.node, None, each.host):
            kept = _settle(this, each)
        left += kept
    this.memory.left_builds = tuple(left)


def look_at_handover(this: one_pass.Pass, node: str) -> None:
    """Look for builds of the service that has handed over a node.

    The scheduler may have chosen that service before the node's record
    changed. Call it some time after that, once for each node.

    :param this: the last look at the node
    :param node: the node's UUID
    """
    handovers = this.memory.handovers
    giver = handovers.givers.get(node)
    # If Placement has not answered, the next pass looks for them, instead of
    # each node again.
    if giver is None or handovers.is_unanswered:
        return
    handovers.is_unanswered = True
    with this.going_on(events.HandoversUnknown):
        consumers = this.world.placement.consumers(node)
        handovers.is_unanswered = False
        del handovers.givers[node]
        if consumers:
            handovers.builds += (
                observation.LeftBuild(node, giver, consumers),)


def _look_at_handovers(this: one_pass.Pass, listed: Container[str]) -> None:
    """Look for builds of all services that have handed over nodes.

    Most nodes need no update by the tracker, which looks at one node.
    """
    givers = this.memory.handovers.givers
    handed = [node for node in sorted(givers) if node in listed]
    if not handed:
        return
    with this.going_on(events.HandoversUnknown):
        for node in this.world.placement.unused(handed):
            del givers[node]
        for node in handed:
            look_at_handover(this, node)


def not_deployed(builds: tuple[observation.LeftBuild, ...],
                 nodes: model.Nodes) -> tuple[observation.LeftBuild, ...]:
    """Return the builds that Ironic does not have on their nodes now.

    :param builds: the builds
    :param nodes: the instance that Ironic has on each node
    """
    left = [dataclasses.replace(each, consumers=each.consumers - {
        nodes.get(each.node)}) for each in builds]
    return tuple(each for each in left if each.consumers)


def look_at_givers(this: one_pass.Pass, nodes: model.Nodes,
                   listed: Container[str]) -> None:
    """Find the builds of services that have died since they gave a node.

    An error here does not fail the pass: instances may have been taken over.

    :param this: the pass
    :param nodes: the instance that Ironic has on each node
    :param listed: the nodes that are this service's
    """
    memory = this.memory
    _look_at_handovers(this, listed)
    found = not_deployed(memory.handovers.builds, nodes)
    memory.handovers = observation.Handovers({
        node: giver for node, giver in memory.handovers.givers.items()
        if node in listed}, found)
    if not found or not memory.standing.is_trusted:
        return
    with this.going_on(events.HandoversUnknown):
        members = looking.at_all_services(this).membership
        lost = [each for each in found if members.is_lost(str(each.host))]
        memory.handovers.builds = of_live_givers(this.world.nova, [
            each for each in found if each not in lost])
        memory.left_builds += tuple(
            dataclasses.replace(each, looks=observation.LOOKS)
            for each in lost)


def of_live_givers(nova: ports.Nova, builds: Sequence[observation.LeftBuild]
                   ) -> tuple[observation.LeftBuild, ...]:
    """Return the builds that live services still have to send to Ironic.

    :param nova: the port
    :param builds: those that they had, on nodes that they have handed over
    """
    found = nova.instances(sorted(
        uuid for each in builds for uuid in each.consumers))
    kept = []
    for each in builds:
        unknown = each.consumers - found.keys()
        waiting = {uuid for uuid in each.consumers & found.keys()
                   if found[uuid].host in (None, each.host)
                   and found[uuid].is_to_be_built}
        # Nova may not know a new one yet.
        if unknown and each.looks <= 0:
            unknown = frozenset()
        if waiting or unknown:
            kept.append(dataclasses.replace(
                each, consumers=frozenset(waiting | unknown),
                looks=each.looks - 1 if unknown else each.looks))
    return tuple(kept)


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
    at = nova.arrived_at(found.instance)
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
        at = nova.arrived_at(uuid)
        if at is None or model.canonical(at) != current.me:
            continue
        node = min(this.world.placement.providers_of(uuid), default='none')
        with this.going_on(events.BuildNotEnded, node, uuid, current.host):
            end(this, observation.LeftBuild(
                node, current.host, frozenset({uuid})), uuid, instance)


def look_at_unclaimed(this: one_pass.Pass) -> None:
    """End the builds that no service will claim.

    A build that has come to a peer waits for its turn there: at most a day,
    and as long as the peer is alive. An error here does not fail the pass:
    instances may have been taken over.

    :param this: the pass
    """
    world, host, left = this.world, this.current.host, this.memory.unclaimed
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
                events.BuildNotEnded, each.node, each.instance, host):
            if not _is_over(this, each):
                continue
            if world.nova.end_build(each.instance, host, False):
                this.happened.append(events.BuildEnded(
                    each.node, each.instance, host))
                world.placement.free(each.instance)
            kept.remove(each)
    this.memory.unclaimed = tuple(kept)


def _is_over(this: one_pass.Pass, each: observation.Unclaimed) -> bool:
    """Return whether no service will build what none has claimed."""
    host, waits = each.host, this.world.process.now() - each.since
    if waits >= LONGEST:
        return True
    if host is None:
        if waits < PATIENCE:
            return False
        host = this.world.nova.arrived_at(each.instance)
    return host is None or model.canonical(host) == this.current.me or (
        looking.at_all_services(this).membership.is_lost(host))


def end(this: one_pass.Pass, left: observation.LeftBuild, uuid: str,
        instance: model.Instance) -> bool:
    """End the build of an instance, or return it to its shelved state.

    That deletes its allocation, and the reservation of a node in Ironic.

    :param this: the pass, or the last look at a node
    :param left: what the service that has died was to build, and where: on a
        node, or in a pool
    :param uuid: the UUID of the instance
    :param instance: what was read of it: it is to be built
    :returns: False if that is no longer so
    """
    nova = this.world.nova
    if not (nova.end_unshelve(uuid) if instance.is_offloaded
            else nova.end_build(
                uuid, left.host, instance.host is not None)):
        return False
    this.happened.append((
        events.UnshelveEnded if instance.is_offloaded else events.BuildEnded
    )(left.node, uuid, left.host))
    if instance.is_offloaded:
        # A node is reserved for it before the service claims one.
        ironic = this.world.ironic
        for node in ironic.nodes_of([uuid]):
            ironic.release(node, uuid)
    this.world.placement.free(uuid)
    return True


def release_ended(this: one_pass.Pass, nodes: model.Nodes) -> None:
    """Take instances whose builds were ended off nodes reserved for them.

    A service that stood still after it had claimed a node reserves the node in
    Ironic when it goes on, and may die before it sees that the build has
    ended.

    :param this: the pass
    :param nodes: the nodes that Ironic shows, and the instance on each
    """
    known, owner = this.memory.instances, this.standing.ring.owner
    if not this.standing.is_trusted:
        return
    for node, uuid in nodes.items():
        instance = None if uuid is None else known.get(uuid)
        if uuid is not None and instance is not None and (
                instance.host is None and instance.is_given_up
                and owner(node) == this.current.me):
            with this.going_on(
                    events.BuildNotEnded, node, uuid, this.current.host):
                this.world.ironic.release(node, uuid)


def _settle(this: one_pass.Pass, left: observation.LeftBuild
            ) -> list[observation.LeftBuild]:
    """Settle the allocations of a node when its service died.

    :returns: the builds to look at again
    """
    world, consumers = this.world, set(left.consumers)
    here = world.process.waiting_builds()

    @functools.cache
    def is_lost() -> bool:
        return this.standing.is_trusted and (
            looking.at_all_services(this).membership.is_lost(str(left.host)))

    for uuid, instance in world.nova.instances(sorted(consumers)).items():
        with this.going_on(
                events.BuildNotEnded, left.node, uuid, left.host):
            # Without a host it has not arrived anywhere, or waits here.
            if instance.host not in (None, left.host) or (
                    instance.host is None and uuid in here):
                pass  # It belongs to another service by now.
            elif instance.host is not None and instance.is_to_be_finished:
                if not is_lost():
                    # It may be back, and finish that itself.
                    continue
                if world.nova.set_instance_host(
                        uuid, ports.Expected(
                            instance.host, left.node, instance.task)):
                    this.taken.append(model.Takeover(
                        left.node, uuid, instance.host, instance.task, True))
            elif instance.is_to_be_built:
                if instance.host is not None and not is_lost():
                    # It may be back, and build that.
                    continue
                # Its service may have begun it again since the nodes were
                # listed. If it is on another node, that node's owner may have
                # written it.
                if any(node == left.node or pools.has(instance, node)
                       for node in world.ironic.nodes_of([uuid])) or (
                           not end(this, left, uuid, instance)):
                    continue
            elif instance.needs_no_node:
                world.placement.free(uuid)
            consumers.discard(uuid)
    return [dataclasses.replace(left, consumers=frozenset(consumers))] if (
        consumers and left.looks > 0) else []
