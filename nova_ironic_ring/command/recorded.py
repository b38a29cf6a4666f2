# SPDX-License-Identifier: Apache-2.0

"""Makes nodes of Nova's records, for commands that do not ask Ironic."""

from collections.abc import Iterator
import dataclasses

from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core.values import model


def nodes(seen: snapshot.Snapshot) -> dict[str, snapshot.Node]:
    """Return the nodes that Nova has records of, as far as these tell.

    A node is in the conductor group and the shard that its owner is limited
    to. Those of pools are not known here.

    :param seen: what was read of Nova
    :returns: by UUID
    """
    held = _held(seen)
    found = {}
    for uuid, row in seen.rows.items():
        said = seen.profiles.get(model.canonical(row.owner))
        found[uuid] = snapshot.Node(
            uuid, None, (said.conductor_group or '') if said else '',
            said.shard if said else None, held.get(uuid))
    return found


def renewed(before: snapshot.Snapshot, now: snapshot.Snapshot
            ) -> snapshot.Snapshot:
    """Return what is known when Nova was asked anew, and nobody else.

    :param before: what was known
    :param now: what Nova says by now
    """
    return dataclasses.replace(
        before, now=now.now, services=now.services, rows=now.rows,
        pools=now.pools, instances=now.instances, others=now.others,
        other_rows=now.other_rows,
        nodes={**{uuid: node for uuid, node in nodes(now).items()
                  if uuid not in before.nodes},
               **{node.uuid: node for node in _kept(before, now)}})


def _kept(before: snapshot.Snapshot, now: snapshot.Snapshot
          ) -> Iterator[snapshot.Node]:
    """Return the nodes that were known and are there still."""
    held = _held(now)
    for uuid, node in before.nodes.items():
        # A service deletes its record when Ironic has the node no longer.
        if uuid in before.rows and uuid not in now.rows:
            continue
        instance = node.instance
        if instance in before.instances and instance not in now.instances:
            instance = None
        yield dataclasses.replace(node, instance=held.get(uuid, instance))


def _held(seen: snapshot.Snapshot) -> dict[str, str]:
    """Say which instance Nova has on which node, by the node's UUID."""
    return {instance.node: instance.uuid
            for instance in seen.instances.values()
            if instance.node is not None and instance.host is not None}
