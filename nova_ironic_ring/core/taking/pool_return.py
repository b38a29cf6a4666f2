# SPDX-License-Identifier: Apache-2.0

"""Brings instances out of pools, back to records of their nodes.

A service with the ring driver finds instances in pools where it has had the
pool driver before, or where another service that has it is dead. First the
node is recorded for this service: Nova's resource tracker makes record and
provider, and reserves the provider, because there is an instance on the node.
Then the instance is transferred
(:mod:`nova_ironic_ring.core.taking.transfer`).
"""

from collections.abc import Collection, Mapping
import dataclasses
import itertools

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.taking import transfer
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports


@dataclasses.dataclass(frozen=True)
class Own:
    """What a service knows of its nodes.

    :ivar me: its canonical name
    :ivar nodes: the instance on each node
    :ivar rows: its records, of nodes and of pools, by UUID
    """

    me: str
    nodes: model.Nodes
    rows: Mapping[str, model.Row]


def close(world: ports.Ports, own: Own) -> list[events.Event]:
    """Keep builds out of pools that this service has had.

    A build that is sent to one would not arrive. An error here does not fail
    the pass.

    :param world: the ports
    :param own: what this service knows of its nodes
    """
    happened: list[events.Event] = []
    for pool in pools.recorded(own.rows):
        try:
            world.placement.reserve_all(pool)
        except Exception as error:
            happened.append(events.AllocationsUnknown(pool, error))
    return happened


def take_back(world: ports.Ports, own: Own, left: Collection[str]
              ) -> list[events.Event]:
    """Bring this service's own instances back to its nodes.

    Those with a task are left until it is done. An error here does not fail
    the pass.

    :param world: the ports
    :param own: what this service knows of its nodes
    :param left: the names of pools in which its instances, or their
        allocations, may be: its own, and those of lost services that were
        about to take them over
    """
    node_of = {instance: node for node, instance in own.nodes.items()
               if instance is not None}
    happened: list[events.Event] = []
    for pool in left:
        try:
            waiting = world.nova.instances_on(
                pool) | world.placement.consumers(pools.uuid_of(pool))
            found = world.nova.instances(waiting) if waiting else {}
        except Exception as error:
            happened.append(events.AllocationsUnknown(pool, error))
            continue
        for uuid, instance in found.items():
            node = node_of.get(uuid)
            if instance.host_name != own.me or not instance.is_idle or (
                    node is None or node not in own.rows):
                continue
            try:
                outcome = transfer.transfer(
                    world.nova, world.placement, transfer.Transfer(
                        uuid, instance, {pools.uuid_of(pool)}, node, pool))
                if outcome is transfer.Outcome.NOT_MOVED:
                    happened.append(events.AllocationNotMoved(uuid, node))
                elif outcome is transfer.Outcome.DONE:
                    happened.append(events.InstanceMoved(uuid, pool, node))
            except Exception as error:
                # The next pass sees how far it has come.
                happened.append(events.InstanceNotTaken(
                    uuid, str(instance.host), error))
    return happened


@dataclasses.dataclass(frozen=True)
class TakenFromPools:
    """What has come of the takeovers from pools of dead services.

    :ivar taken: what was taken over
    :ivar prepared: the nodes that are to be recorded for this service first
    :ivar happened: the events for the log
    """

    taken: tuple[takeover.Takeover, ...] = ()
    prepared: frozenset[str] = frozenset()
    happened: tuple[events.Event, ...] = ()


def take_over(world: ports.Ports, wanted: Collection[takeover.Takeover],
              me: str, sources: Collection[str]) -> TakenFromPools:
    """Take over instances that are in pools of dead services.

    The record of a node is what two takers cannot both have.

    :param world: the ports
    :param wanted: the instances; those beyond the limit of a pass are left to
        the next one
    :param me: the canonical name of this service
    :param sources: the names of pools in which their allocations may be:
        those of lost services, and those that this service has had with the
        pool driver
    """
    wanted = list(itertools.islice(wanted, takeover.MOST))
    rows = world.nova.rows(sorted(each.node for each in wanted))
    found = world.nova.instances(each.instance for each in wanted)
    taken, prepared, happened = [], set(), list[events.Event]()
    for each in wanted:
        row, instance = rows.get(each.node), found.get(each.instance)
        if instance is None or instance.host != each.host or (
                not pools.is_of(each.host, instance.node)):
            continue
        try:
            if row is None or row.owner_name != me:
                if row is None or world.nova.delete_row(each.node, row.owner):
                    prepared.add(each.node)
                continue
            pool = str(instance.node)
            outcome = transfer.transfer(
                world.nova, world.placement, transfer.Transfer(
                    each.instance, instance,
                    frozenset(map(pools.uuid_of, {pool, *sources})),
                    each.node, pool))
            if outcome is transfer.Outcome.NOT_MOVED:
                happened.append(
                    events.AllocationNotMoved(each.instance, each.node))
            elif outcome is transfer.Outcome.DONE:
                taken.append(dataclasses.replace(each, task=instance.task))
                happened.append(events.InstanceTaken(
                    each.node, each.instance, each.host, True))
        except Exception as error:
            happened.append(events.InstanceNotTaken(
                each.instance, each.host, error))
    return TakenFromPools(tuple(taken), frozenset(prepared), tuple(happened))
