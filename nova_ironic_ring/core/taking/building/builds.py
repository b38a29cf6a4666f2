# SPDX-License-Identifier: Apache-2.0

"""Settles the builds of a node whose service has died.

Builds and unshelvings that no service had yet end here. An instance that had a
service, and no longer or not yet needs a machine, is taken over by this
service, whose recovery continues with it.
"""

from collections.abc import Container, Sequence
import dataclasses
import functools

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look as looking
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports


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
    try:
        consumers = this.world.placement.consumers(node)
    except Exception as error:
        this.happened.append(events.BuildNotEnded(node, None, host, error))
        return [observation.LeftBuild(
            node, host, frozenset(), is_unread=True)]
    return _settle(this, observation.LeftBuild(
        node, host, consumers)) if consumers else []


def look_again(this: one_pass.Pass) -> None:
    """Look again for consumers that Nova did not know as instances yet.

    :param this: the pass
    """
    left: list[observation.LeftBuild] = []
    for each in this.memory.left_builds:
        if not each.is_unread:
            each = dataclasses.replace(each, looks=each.looks - 1)
        kept = [each] if each.looks > 0 or each.is_unread else []
        # What was taken for the others has to be recovered.
        with this.going_on(
                events.BuildNotEnded, each.node, None, each.host):
            kept = _settle(this, _read_late(this.world, each)
                           if each.is_unread else each)
        left += kept
    this.memory.left_builds = tuple(left)


def _read_late(world: ports.Ports, left: observation.LeftBuild
               ) -> observation.LeftBuild:
    """Read the consumers of a node that this service has recorded already.

    Builds without a service may have been sent to this one by now: those that
    none claims are found by :mod:`.unclaimed`.
    """
    found = world.nova.instances(world.placement.consumers(left.node))
    return dataclasses.replace(left, is_unread=False, consumers=frozenset(
        uuid for uuid, instance in found.items()
        if instance.host is not None or instance.needs_no_node))


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
    if not found or not memory.view.is_trusted:
        return
    with this.going_on(events.HandoversUnknown):
        looking.again(this)
        lost = [each for each in found if this.view.is_lost(str(each.host))]
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
    nova, memory = this.world.nova, this.memory
    # Before the write: its answer may be lost.
    memory.unfreed |= {uuid}
    if not (nova.end_unshelve(uuid) if instance.is_offloaded
            else nova.end_build(
                uuid, left.host, instance.host is not None)):
        memory.unfreed -= {uuid}
        return False
    this.happened.append((
        events.UnshelveEnded if instance.is_offloaded else events.BuildEnded
    )(left.node, uuid, left.host))
    free(this, uuid, instance)
    return True


def free(this: one_pass.Pass, uuid: str, instance: model.Instance) -> None:
    """Free what an instance has whose build, or unshelving, was ended.

    :param this: the pass, or the last look at a node
    :param uuid: the UUID of the instance
    :param instance: what was read of it
    :raises Exception: if that fails; then a pass does it later
    """
    this.memory.unfreed |= {uuid}
    if instance.is_offloaded:
        # A node is reserved for it before the service claims one.
        ironic = this.world.ironic
        for node in ironic.nodes_of([uuid]):
            ironic.release(node, uuid)
    this.world.placement.free(uuid)
    this.memory.unfreed -= {uuid}


def free_again(this: one_pass.Pass) -> None:
    """Free what could not be freed before.

    :param this: the pass
    """
    left = this.memory.unfreed
    if not left:
        return
    with this.going_on(events.HandoversUnknown):
        found = this.world.nova.instances(sorted(left))
        # The user may have it unshelved again.
        this.memory.unfreed = frozenset(
            uuid for uuid, each in found.items() if each.host is None)
        for uuid in sorted(this.memory.unfreed):
            if found[uuid].needs_no_node:
                with this.going_on(
                        events.BuildNotEnded, 'none', uuid, None):
                    free(this, uuid, found[uuid])


def release_ended(this: one_pass.Pass, nodes: model.Nodes) -> None:
    """Take instances whose builds were ended off nodes reserved for them.

    A service that stood still after it had claimed a node reserves the node in
    Ironic when it goes on, and may die before it sees that the build has
    ended.

    :param this: the pass
    :param nodes: the nodes that Ironic shows, and the instance on each
    """
    known, owner = this.memory.instances, this.view.ring.owner
    if not this.view.is_trusted:
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
    def is_lost(host: str) -> bool:
        if this.view.is_trusted:
            looking.again(this)
        return this.view.is_trusted and this.view.is_lost(host)

    for uuid, instance in world.nova.instances(sorted(consumers)).items():
        with this.going_on(
                events.BuildNotEnded, left.node, uuid, left.host):
            if instance.host_name == this.current.me:
                consumers.discard(uuid)
                continue
            if instance.host is not None and not this.view.is_trusted:
                # It cannot be known now whether anybody builds it.
                continue
            host = instance.host or left.host
            # The owner that has died may have had the node of another that
            # had, and have had no time to settle this.
            is_anothers = host != left.host and not (
                left.host is not None and instance.node == left.node
                and is_lost(str(host)))
            # Without a host it has not arrived anywhere, or waits here.
            if is_anothers or (instance.host is None and uuid in here):
                pass  # It belongs to another service by now.
            elif instance.host is not None and instance.is_to_be_finished:
                if not is_lost(instance.host):
                    # It may be back, and finish that itself.
                    continue
                this.take(model.Takeover(
                    left.node, uuid, instance.host, instance.task, True))
            elif instance.is_to_be_built:
                if instance.host is not None and not is_lost(instance.host):
                    # It may be back, and build that.
                    continue
                # Its service may have begun it again since the nodes were
                # listed. If it is on another node, that node's owner may have
                # written it.
                if any(node == left.node or pools.has(instance, node)
                       for node in world.ironic.nodes_of([uuid])) or (
                           not this.is_valid) or (
                           not end(this, dataclasses.replace(
                               left, host=host), uuid, instance)):
                    continue
            elif instance.needs_no_node:
                free(this, uuid, instance)
            consumers.discard(uuid)
    return [dataclasses.replace(left, consumers=frozenset(consumers))] if (
        consumers and left.looks > 0) else []
