# SPDX-License-Identifier: Apache-2.0

"""The nodes that count in pools and that Ironic does not show now.

Their pools keep their size, with these nodes reserved, until the guard
believes them deleted. After a pass that had them, the memory knows them; after
a start, the rows of the pools have their number.
"""

from collections.abc import Collection, Mapping
import dataclasses
import datetime
import hashlib

from nova_ironic_ring.core.deciding import pool_plan
from nova_ironic_ring.core.looking import consumers
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools

# A service that has worked within this time trusts its rows after a start.
_BELIEVED = datetime.timedelta(hours=1)


def asked(this: one_pass.Pass) -> str:
    """Return a fingerprint of this service's requests to Ironic.

    :param this: the pass
    """
    current, scope = this.current, this.current.scope
    group, deal = scope.conductor_group, this.view.ring.deal
    # Without trust, it reports what it held before.
    of_others = {
        shards.code(shard) for shard, owner in deal.owners.items()
        if owner != current.me} if deal else set()
    return hashlib.sha256(repr((
        None if group is None else group.lower(), scope.shard,
        current.by_shards,
        sorted((this.memory.held or frozenset()) - of_others)
    )).encode()).hexdigest()[:16]


def begin(this: one_pass.Pass, own: Mapping[str, model.Row]) -> None:
    """Continue from the content of the rows after a start.

    The numbers of nodes in its rows count as long as it asks Ironic for the
    same, and only if it has worked not long ago: many nodes may be deleted
    while a service is down.

    :param this: the pass
    :param own: the rows of this service, by UUID
    """
    pooled = this.memory.pooled
    found = pooled.started
    if found is None:
        _note_gone(this, own)
        said = this.said.last_pass if this.said else None
        is_old = said is None or said.at is None or (
            this.world.process.wall_time() - said.at > _BELIEVED)
        found = {} if is_old else {
            row.pool: row.counted for row in own.values()
            if row.pool and row.counted}
    wanted = asked(this)
    pooled.started = {name: counted for name, counted in found.items()
                      if counted.asked == wanted}


def _note_gone(this: one_pass.Pass, own: Mapping[str, model.Row]) -> None:
    """Remember how many nodes were believed deleted before the start.

    So several restarts in a row release no more nodes than one long run.
    """
    said = max(((row.counted.gone_at, row.counted.gone)
                for row in own.values()
                if row.counted and row.counted.gone_at), default=None)
    if said is None:
        return
    gone_at, gone = said
    process, memory = this.world.process, this.memory
    # Not later than now, if the clock has gone back.
    age = max(0.0, (process.wall_time() - gone_at).total_seconds())
    memory.vanished = memory.vanished.copied()
    memory.vanished.note_unnamed(gone, process.now() - age)
    memory.pooled.gone_at = gone_at


def guard(this: one_pass.Pass, seen: pool_plan.Seen,
          counted: Collection[str]) -> dict[str, pools.Node]:
    """Find out which of the missing nodes still count.

    :param this: the pass
    :param seen: what was read
    :param counted: the nodes that count for this service, of those that are
        listed
    :returns: the missing nodes that count, by UUID; they cannot be built on
    """
    memory, process = this.memory, this.world.process
    before = {uuid: node for pool in memory.pooled.pools.values()
              for uuid, node in pool.nodes.items()
              if uuid not in seen.unasked}
    now, had = process.now(), _had(this, seen, before, counted)
    look.at_missing_nodes(this, had, seen.nodes)
    found, kept = memory.vanished, {}
    known = set(found.deleted)
    if had.unnamed and not found.has_too_many:
        found.note_unnamed(had.unnamed, now)
    for uuid in sorted(before.keys() - seen.nodes.keys()):
        # A node goes after its instance, because the allocation is still
        # there.
        if found.has_too_many or before[uuid].instance in seen.mine:
            kept[uuid] = dataclasses.replace(before[uuid], is_ready=False)
        else:
            found.note(uuid, now)
    if not found.has_too_many:
        memory.pooled.started = {}
    if found.deleted.keys() - known:
        memory.pooled.gone_at = process.wall_time()
    return kept


def with_missing(this: one_pass.Pass, found: Mapping[str, pools.Pool],
                 nodes: Mapping[str, pools.Node],
                 having: consumers.Consumers) -> dict[str, pools.Pool]:
    """Count the nodes that pools had when this service was started.

    They count as long as they would without a restart: until the guard
    believes the missing ones deleted.

    :param this: the pass
    :param found: the pools of this service, by name
    :param nodes: what Ironic says of its nodes, with those that are kept
    :param having: names the consumers of pools
    """
    pooled = this.memory.pooled
    shown = {node.instance for node in nodes.values()}
    left = unseen(this, nodes)
    whole = dict(found)
    for name, counted in sorted((pooled.started or {}).items()):
        pool = found.get(name, pools.Pool(name, is_hidden=True))
        missing = min(left, counted.nodes - len(pool.nodes))
        if missing <= 0:
            continue
        left -= missing
        used = sum(
            pooled.places.get(uuid) == name
            for uuid in (having.of(name) or frozenset()) - shown)
        whole[name] = dataclasses.replace(
            pool, missing=missing, missing_used=min(missing, used))
    return whole


def _had(this: one_pass.Pass, seen: pool_plan.Seen, before: Collection[str],
         counted: Collection[str]) -> look.Had:
    """Return the nodes that this service had before.

    For the nodes that it had at its start, its rows have only their number. If
    Ironic has as many as there were, they count for other services.

    :param before: those that it has had since
    """
    had = sum(each.nodes
              for each in (this.memory.pooled.started or {}).values())
    if not had:
        return look.Had(before, in_pools=True)
    own = frozenset(counted).union(before)
    return look.Had(own, max(0, min(had - len(own), unseen(
        this, seen.nodes.keys() | before))), in_pools=True)


def unseen(this: one_pass.Pass, nodes: Collection[str]) -> int:
    """Return how many more nodes there were when this service was started.

    :param this: the pass
    :param nodes: the nodes that are known now
    """
    return max(0, max((each.listed for each in (
        this.memory.pooled.started or {}).values()), default=0) - len(nodes))
