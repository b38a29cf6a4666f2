# SPDX-License-Identifier: Apache-2.0

"""Counts nodes in pools, as the services do in their next passes."""

import collections
from collections.abc import Collection, Mapping
import dataclasses

from nova_ironic_ring.command.telling import prospect
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.values import model


@dataclasses.dataclass(frozen=True)
class Count:
    """Where a node counts.

    :ivar host: the canonical name of the service
    :ivar pool: the name of the service's pool
    :ivar cell: the name of the cell of both
    :ivar taker: the canonical name of another service that takes the instance
        on the node over in its next pass; None if none does
    """

    host: str
    pool: str
    cell: str
    taker: str | None = None


@dataclasses.dataclass(frozen=True)
class Counts:
    """Which nodes count where.

    :ivar counted: where each node counts that is in a pool, by its UUID
    :ivar left_out: the canonical names of the services that make no pool of
        their kinds, by the UUIDs of the other nodes
    """

    counted: Mapping[str, Count]
    left_out: Mapping[str, str]


def of(seen: snapshot.Snapshot) -> Mapping[str, Count]:
    """Return the pool in which each node counts.

    A node with an instance counts where Nova has the instance, even while the
    instance's service runs no passes.

    :param seen: what was read
    :returns: by the node's UUID; of the nodes that are in a pool
    """
    return look(seen).counted


def look(seen: snapshot.Snapshot) -> Counts:
    """Say in which pool each node counts, and which nodes are left out.

    :param seen: what was read
    """
    found: dict[str, Count] = {}
    left_out: dict[str, str] = {}
    if not seen.pools:
        return Counts(found, left_out)
    for node in seen.nodes.values():
        instance = seen.instance_on(node)
        if instance is not None and instance.pool is not None:
            found[node.uuid] = Count(
                model.canonical(str(instance.host)), instance.pool,
                instance.cell)
    for cell in sorted({row.cell for row in seen.pools.values()}):
        key = next((key for key in seen.keys() if key.cell == cell), None)
        if key is None:
            continue
        for host, counted in prospect.of(seen, key).counts.items():
            left_out |= {uuid: host for pool in counted.left_out.values()
                         for uuid in pool.nodes}
            for pool in counted.kept.values():
                for uuid in pool.nodes:
                    having = found.get(uuid, Count(
                        host, pool.name, cell))
                    found[uuid] = having if having.host == host else (
                        dataclasses.replace(having, taker=host))
    return Counts(found, {uuid: host for uuid, host in left_out.items()
                          if uuid not in found})


def left(seen: snapshot.Snapshot, host: str,
         inventories: Mapping[str, snapshot.Inventory]) -> int:
    """Count the free nodes and builds of a service that leaves.

    These are the nodes that Placement still counts for it, and builds that are
    on their way to it.

    :param seen: what was read
    :param host: the canonical name of the service
    :param inventories: what Placement has of pools, by name
    """
    held = collections.Counter(
        instance.pool for instance in seen.instances.values())
    is_lost = seen.state(host).is_lost
    count = 0
    for name, row in seen.pools.items():
        found = inventories.get(name)
        if found is None or model.canonical(row.owner) != host:
            continue
        # An empty pool has one node in Placement, which is reserved. The peers
        # of a lost service reserve its pools, which keep their size.
        more = 0 if is_lost else found.total - max(1, held[name])
        count += max(found.free, more) + max(0, found.used - held[name])
    return count


def missing(seen: snapshot.Snapshot, hosts: Collection[str],
            inventories: Mapping[str, snapshot.Inventory]) -> int:
    """Count the nodes that count for services and Placement does not have.

    :param seen: what was read
    :param hosts: the canonical names of the services
    :param inventories: as :func:`left` has it
    """
    counted = collections.Counter(
        count.pool for count in of(seen).values() if count.host in hosts)
    return sum(
        max(0, number - (inventories[name].total if name in inventories
                         else 0)) for name, number in counted.items())
