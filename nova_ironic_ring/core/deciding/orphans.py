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
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports

#: The most instances of nobody to look at when Nova asks. If there are more,
#: the others have their turn when it asks again.
MOST = 1000


@dataclasses.dataclass(frozen=True)
class Named:
    """Instances that Ironic has on nodes, each with the UUID of its node.

    :ivar own: those on nodes of this service
    :ivar orphans: those of others, or of nobody, on nodes that are for it
    :ivar members: the services, as they were seen last
    :ivar failover_after: seconds of silence after which an absent service is
        dead; 0 if only an operator's word makes it so
    """

    own: Mapping[str, str | None]
    orphans: Mapping[str, str]
    members: membership.Membership
    failover_after: float


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

    Those are left out as well whose service may still begin to deploy them.
    Instances that Nova has not deleted do no harm: it reaps none of them.

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
    waiting = {uuid for uuid in named.orphans.keys() & deleted.keys()
               if uuid not in named.own and uuid not in strays
               and _may_deploy(world, named, deleted[uuid], uuid)}
    return Believed(frozenset(nodes.keys() - strays.keys() - waiting), strays)


def _may_deploy(world: ports.Ports, named: Named, deleted: model.Instance,
                uuid: str) -> bool:
    """Return whether the service of an instance may still deploy it.

    :param deleted: the record that Nova keeps of the instance
    :param uuid: the instance's UUID
    """
    return deleted.host is not None and (
        world.ironic.is_available(named.orphans[uuid])
        and not _is_dead(world, named, deleted.host))


def _is_dead(world: ports.Ports, named: Named, host: str) -> bool:
    record = world.nova.service(host)
    if record is None or record.forced_down:
        return True
    # One that is disabled is in no ring.
    return model.canonical(host) in named.members.states and (
        named.members.is_dead(host, named.failover_after))
