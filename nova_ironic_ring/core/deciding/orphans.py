# SPDX-License-Identifier: Apache-2.0

"""Chooses the instances to name to Nova, which reaps those it has deleted.

Ironic has them on nodes of this service, or on nodes that are for it. But the
owner of a node in Ironic can write any UUID there, and to reap a server again
may delete volumes that were detached from it long ago.
"""

from collections.abc import Mapping
import dataclasses

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
    """

    own: Mapping[str, str | None]
    orphans: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Believed:
    """The instances to name to Nova.

    :ivar instances: their UUIDs
    :ivar strays: instances that Nova has deleted, and had elsewhere, each with
        the UUID of the node that Ironic has it on
    """

    instances: frozenset[str]
    strays: Mapping[str, str | None]


def believe(nova: ports.Nova, named: Named, turn: int) -> Believed:
    """Leave out instances that Nova has deleted and had on another node.

    Instances that Nova has not deleted do no harm: it reaps none of them.

    :param nova: the port
    :param named: what Ironic says
    :param turn: how often this was asked before
    """
    first = sorted(named.orphans)
    start = turn * MOST % max(len(first), 1)
    chosen = (first[start:] + first[:start])[:MOST]
    nodes: dict[str, str | None] = {
        **{uuid: named.orphans[uuid] for uuid in chosen}, **named.own}
    deleted = nova.deleted_instances(nodes) if nodes else {}
    strays = {uuid: node for uuid, node in nodes.items()
              if uuid in deleted and (
                  node is None or not pools.has(deleted[uuid], node))}
    return Believed(frozenset(nodes.keys() - strays.keys()), strays)
