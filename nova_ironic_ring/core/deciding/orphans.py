# SPDX-License-Identifier: Apache-2.0

"""Chooses the instances to name to Nova, which reaps those it has deleted.

Ironic has them on nodes of this service, or on nodes that are for it. But the
owner of a node in Ironic can write any UUID there, and to reap a server again
may delete volumes that were detached from it long ago. And a service that
stands still in the middle of a build goes on when it wakes: if its node was
given back meanwhile, it deploys a machine there that belongs to no server.
"""

from collections.abc import Mapping
import dataclasses

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

#: The most instances of nobody to look at when Nova asks. If there are more,
#: the others have their turn when it asks again.
MOST = 1000


@dataclasses.dataclass(frozen=True)
class Named:
    """Instances that Ironic has on nodes, each with the UUID of its node.

    :ivar own: those on nodes of this service
    :ivar orphans: those of others, or of nobody, on nodes that are for it
    :ivar memory: what this service remembers
    :ivar current: its settings
    """

    own: Mapping[str, str | None]
    orphans: Mapping[str, str]
    memory: observation.Memory
    current: settings.Settings


@dataclasses.dataclass(frozen=True)
class Believed:
    """The instances to name to Nova.

    :ivar instances: their UUIDs
    :ivar strays: instances that Nova has deleted, and had elsewhere, each with
        the UUID of the node that Ironic has it on
    """

    instances: frozenset[str]
    strays: Mapping[str, str | None]


def believe(world: ports.Ports, named: Named, turn: int) -> Believed:
    """Leave out instances that Nova has deleted and had on another node.

    Those are left out as well that a silent service may still begin to deploy,
    and orphans that Nova has not deleted: it would reap what is deleted while
    this looks.

    :param world: the ports
    :param named: what Ironic says
    :param turn: how often this was asked before
    """
    first = sorted(named.orphans)
    start = turn * MOST % max(len(first), 1)
    chosen = (first[start:] + first[:start])[:MOST]
    nodes: dict[str, str | None] = {
        **{uuid: named.orphans[uuid] for uuid in chosen}, **named.own}
    deleted = world.nova.deleted_instances(nodes) if nodes else {}
    strays = {uuid: node for uuid, node in nodes.items()
              if uuid in deleted and (
                  node is None or not pools.has(deleted[uuid], node))}
    hosts = {uuid: host for uuid in named.orphans.keys() & deleted.keys()
             if uuid not in named.own and uuid not in strays
             and (host := deleted[uuid].host) is not None}
    # One that is alive has begun to deploy, or has given up.
    waking = {host for host in set(hosts.values())
              if _may_wake(world, named, host)}
    waiting = {uuid for uuid, host in hosts.items() if host in waking
               and world.ironic.is_available(named.orphans[uuid])}
    there = named.orphans.keys() - named.own.keys() - deleted.keys()
    return Believed(
        frozenset(nodes.keys() - strays.keys() - waiting - there), strays)


def _may_wake(world: ports.Ports, named: Named, host: str) -> bool:
    """Return whether a service is silent, and not dead."""
    record, known = world.nova.service(host), named.memory.view
    if record is None or record.forced_down:
        return False
    # Nova's API deletes an instance as soon as it sees the service as down,
    # which may be before this service does.
    is_silent = known.state(host) is membership.State.ABSENT or (
        membership.is_late(record, world.process.wall_time(),
                           named.current.down_time))
    was = known.services.get(record.name)
    return is_silent and not (
        was is not None and was.last_seen == record.last_seen
        and known.is_trusted
        and known.is_dead(host, named.current.failover_after))
