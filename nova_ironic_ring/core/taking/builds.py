# SPDX-License-Identifier: Apache-2.0

"""Settles what was on its way to a node when the node's service died.

What had no service yet ends here, a build or an unshelving. What had one, and
needs no machine any more, or none yet, becomes this service's, whose recovery
goes on with it.
"""

import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports


#: Seconds in which a build comes to its turn at a service that lives.
PATIENCE = 1800.0


@dataclasses.dataclass(frozen=True)
class Settled:
    """What has come of the builds that a dead service has left behind.

    :ivar left: what is to be looked at again
    :ivar taken: instances of the dead service that are this one's now, and
        that Ironic has no node for: they were being deleted, shelved or
        unshelved
    :ivar happened: the events for the log
    """

    left: tuple[observation.LeftBuild, ...] = ()
    taken: tuple[takeover.Takeover, ...] = ()
    happened: tuple[events.Event, ...] = ()


def look(world: ports.Ports, node: str, host: str | None) -> Settled:
    """End the builds that were under way for a free node when its owner died.

    Call this before this service records the node as its own: from then on
    builds for the node come here.

    :param world: the ports
    :param node: the node's UUID
    :param host: the name of its owner; None if it is not known any more
    """
    try:
        consumers = world.placement.consumers(node)
    except Exception as error:
        return Settled(happened=(
            events.BuildNotEnded(node, None, host, error),))
    if not consumers:
        return Settled()
    return _settle(world, observation.LeftBuild(node, host, consumers))


def look_again(world: ports.Ports, left: tuple[observation.LeftBuild, ...]
               ) -> Settled:
    """Look again for consumers that Nova did not know as instances yet.

    :param world: the ports
    :param left: what was left
    """
    settled = []
    for each in left:
        each = dataclasses.replace(each, looks=each.looks - 1)
        try:
            settled.append(_settle(world, each))
        except Exception as error:
            # What was taken for the others has to be looked after.
            settled.append(Settled((each,) if each.looks > 0 else (), (), (
                events.BuildNotEnded(each.node, None, each.host, error),)))
    return Settled(
        tuple(kept for each in settled for kept in each.left),
        tuple(taken for each in settled for taken in each.taken),
        tuple(event for each in settled for event in each.happened))


def look_at_handover(world: ports.Ports, before: observation.Handovers,
                     node: str) -> observation.Handovers:
    """Look for builds of the service that has handed over a node.

    The scheduler may have chosen that service before the node's record
    changed. To be called some time after that, once for each node.

    :param world: the ports
    :param before: what is remembered of handovers
    :param node: the node's UUID
    """
    giver = before.givers.get(node)
    if giver is None:
        return before
    consumers = world.placement.consumers(node)
    return observation.Handovers(before.givers.without(node), before.builds + (
        (observation.LeftBuild(node, giver, consumers),) if consumers else ()))


def not_deployed(builds: tuple[observation.LeftBuild, ...],
                 nodes: model.Nodes) -> tuple[observation.LeftBuild, ...]:
    """Return builds without those that Ironic has on their nodes by now.

    :param builds: the builds
    :param nodes: the instance that Ironic has on each node
    """
    left = [dataclasses.replace(each, consumers=each.consumers - {
        nodes.get(each.node)}) for each in builds]
    return tuple(each for each in left if each.consumers)


def of_live_givers(world: ports.Ports,
                   builds: tuple[observation.LeftBuild, ...]
                   ) -> tuple[observation.LeftBuild, ...]:
    """Return the builds that live services have still to hand to Ironic.

    :param world: the ports
    :param builds: those that they had, on nodes that they have handed over
    """
    found = world.nova.instances(sorted(
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


def at_start(world: ports.Ports, before: observation.Memory,
             found: observation.Unclaimed) -> observation.Memory | None:
    """Say what becomes of a build that was under way when a service starts.

    Nova takes each on a node of this service for one that this very service
    was to build before it ended. But it may be a peer's: one that handed over
    the node when the scheduler had chosen it already.

    :param world: the ports
    :param before: what this service remembers
    :param found: the build
    :returns: None if the build has ended with this service's former process;
        otherwise what to remember, so that it is looked at again
    """
    current = before.settings
    assert current is not None
    instance = world.nova.instances([found.instance]).get(found.instance)
    if instance is None or instance.host_name == current.me:
        return None
    if instance.host is not None:
        return dataclasses.replace(before, handovers=dataclasses.replace(
            before.handovers, builds=before.handovers.builds + (
                observation.LeftBuild(found.node, instance.host, frozenset({
                    found.instance})),)))
    others = [service.host for service in world.nova.all_services()
              if service.name != current.me and not service.forced_down]
    if not world.nova.scopes(others):
        return None
    return dataclasses.replace(before, unclaimed=before.unclaimed + (found,))


def look_at_unclaimed(world: ports.Ports, host: str,
                      left: tuple[observation.Unclaimed, ...]
                      ) -> tuple[tuple[observation.Unclaimed, ...],
                                 list[events.Event]]:
    """End the builds that no service has claimed for a long time.

    Nothing tells whether one still waits for its turn at a peer. What waits
    there after that long, its service does not build any more.

    :param world: the ports
    :param host: the name of this service
    :param left: the builds that were left at its start
    :returns: those that are left still, and the events for the log
    """
    if not left:
        return (), []
    found = world.nova.instances(each.instance for each in left)
    here, now = world.process.waiting_builds(), world.process.now()
    kept, happened = list[observation.Unclaimed](), list[events.Event]()
    for each in left:
        instance = found.get(each.instance)
        if instance is None or instance.host is not None or (
                not instance.is_building or each.instance in here):
            continue
        if now - each.since < PATIENCE:
            kept.append(each)
            continue
        try:
            if world.nova.end_build(each.instance, host):
                happened.append(events.BuildEnded(
                    each.node, each.instance, host))
                world.placement.free(each.instance)
        except Exception as error:
            kept.append(each)
            happened.append(events.BuildNotEnded(
                each.node, each.instance, host, error))
    return tuple(kept), happened


def end(world: ports.Ports, instance: model.Instance, uuid: str,
        host: str | None) -> bool:
    """End the build of an instance, or have it be shelved as before.

    :param world: the ports
    :param instance: what was read of the instance, which is to be built
    :param uuid: its UUID
    :param host: the name of the service that has died; None if it is not known
        any more
    :returns: False if that is not so any more
    """
    return (world.nova.end_unshelve(uuid) if instance.is_offloaded
            else world.nova.end_build(uuid, host))


def ended(instance: model.Instance, node: str, uuid: str, host: str | None
          ) -> events.Event:
    """Say that a build has ended, or that an instance is shelved as before.

    :param instance: what was read of the instance before
    :param node: the UUID of the node that it was for, or the name of the pool
    :param uuid: the UUID of the instance
    :param host: as for :func:`end`
    """
    return (events.UnshelveEnded if instance.is_offloaded
            else events.BuildEnded)(node, uuid, host)


def _settle(world: ports.Ports, left: observation.LeftBuild) -> Settled:
    consumers = set(left.consumers)
    taken, happened = [], list[events.Event]()
    here = world.process.waiting_builds()
    for uuid, instance in world.nova.instances(sorted(consumers)).items():
        try:
            # Without a host it has not arrived anywhere, or waits here.
            if instance.host not in (None, left.host) or (
                    instance.host is None and uuid in here):
                pass  # It belongs to another service by now.
            elif instance.host is not None and instance.is_to_be_finished:
                if world.nova.set_instance_host(
                        uuid, ports.Expected(
                            instance.host, left.node, instance.task)):
                    taken.append(takeover.Takeover(
                        left.node, uuid, instance.host, instance.task, True))
            elif instance.is_to_be_built:
                # Its service may be at it again since the nodes were listed.
                # On another node, its owner may have written that there.
                if any(node == left.node or pools.has(instance, node)
                       for node in world.ironic.nodes_of([uuid])) or (
                           not end(world, instance, uuid, left.host)):
                    continue
                happened.append(ended(instance, left.node, uuid, left.host))
                world.placement.free(uuid)
            elif instance.needs_no_node:
                world.placement.free(uuid)
        except Exception as error:
            happened.append(events.BuildNotEnded(
                left.node, uuid, left.host, error))
            continue
        consumers.discard(uuid)
    kept = dataclasses.replace(left, consumers=frozenset(consumers))
    return Settled((kept,) if consumers and left.looks > 0 else (),
                   tuple(taken), tuple(happened))
