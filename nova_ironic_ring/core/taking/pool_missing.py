# SPDX-License-Identifier: Apache-2.0

"""The nodes that count in pools, and that Ironic does not show now.

Their pools keep their size, with these nodes reserved, until the guard takes
them for deleted: in the passes after the one that had them, and after a start
by what the rows of the pools say.
"""

from collections.abc import Collection, Mapping
import dataclasses
import datetime
import hashlib

from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.taking import pool_failover
from nova_ironic_ring.core.taking import pool_takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings

# A service that has worked within this time goes by its rows after a start.
_BELIEVED = datetime.timedelta(hours=1)


@dataclasses.dataclass(frozen=True)
class SeenNodes(pool_failover.SeenInstances):
    """What was read, and which nodes are not looked for.

    :ivar unasked: the nodes that Ironic was not asked for any more
    """

    unasked: frozenset[str] = frozenset()


def asked(current: settings.Settings, memory: observation.Memory) -> str:
    """Return a fingerprint of what this service asks Ironic for.

    :param current: its settings
    :param memory: what is remembered
    """
    scope = current.scope
    group = scope.conductor_group
    deal = memory.standing.ring.deal
    # Until it is trusted, it says what it held before.
    of_others = {
        shards.code(shard) for shard, owner in deal.owners.items()
        if owner != current.me} if deal else set()
    return hashlib.sha256(repr((
        None if group is None else group.lower(), scope.shard,
        current.by_shards, sorted((memory.held or frozenset()) - of_others)
    )).encode()).hexdigest()[:16]


def begun(this: look.Pass, memory: observation.Memory,
          own: Mapping[str, model.Row]) -> observation.Memory:
    """Go on from what the rows say, where this service has only started.

    :param this: the pass
    :param memory: what is remembered
    :param own: the rows of this service, by UUID
    """
    if memory.pooled.started is None:
        memory = _with_gone(this, memory, own)
    return dataclasses.replace(memory, pooled=dataclasses.replace(
        memory.pooled, started=_started(this, memory, own)))


def _with_gone(this: look.Pass, memory: observation.Memory,
               own: Mapping[str, model.Row]) -> observation.Memory:
    """Remember how many nodes were believed deleted before the start.

    Several restarts in a row let no more go than one that runs on does.
    """
    said = max(((row.counted.gone_at, row.counted.gone)
                for row in own.values()
                if row.counted and row.counted.gone_at), default=None)
    if said is None:
        return memory
    gone_at, gone = said
    process = this.world.process
    # Not later than now, where the clock has gone back.
    age = max(0.0, (process.wall_time() - gone_at).total_seconds())
    return dataclasses.replace(
        memory,
        vanished=memory.vanished.noted_unnamed(gone, process.now() - age),
        pooled=dataclasses.replace(memory.pooled, gone_at=gone_at))


def _started(this: look.Pass, memory: observation.Memory,
             own: Mapping[str, model.Row]) -> Mapping[str, model.Counted]:
    """Say how many nodes there were when this service was started.

    Its rows say so as long as it asks Ironic for the same, if it has worked
    not long ago: much may be deleted while a service is down.

    :returns: by the name of the pool
    """
    found = memory.pooled.started
    if found is None:
        found = {row.pool: row.counted for row in own.values()
                 if row.pool and row.counted}
        said = model.latest(row.last_pass for row in own.values())
        if said is None or said.at is None or (
                this.world.process.wall_time() - said.at > _BELIEVED):
            found = {}
    wanted = asked(this.current, memory)
    return {name: counted for name, counted in found.items()
            if counted.asked == wanted}


def guard(this: look.Pass, memory: observation.Memory, seen: SeenNodes,
          share: pools.Share
          ) -> tuple[dict[str, pools.Node], observation.Memory]:
    """Find out which of the nodes that counted and are missing count still.

    :param this: the pass
    :param memory: what is remembered
    :param seen: what was read
    :param share: the nodes that count for this service, of those that are
        listed
    :returns: these, by UUID, on which nothing can be built; and what is to be
        remembered
    """
    before = {uuid: node for pool in memory.pooled.pools.values()
              for uuid, node in pool.nodes.items()
              if uuid not in seen.unasked}
    now = this.world.process.now()
    had = _had(memory, seen, before, share)
    memory = look.at_missing_nodes(this, memory, had, seen.nodes)
    found, kept = memory.vanished, {}
    if had.unnamed and not found.has_too_many:
        found = found.noted_unnamed(had.unnamed, now)
    for uuid in sorted(before.keys() - seen.nodes.keys()):
        # A node goes after its instance: the allocation is there still.
        if found.has_too_many or before[uuid].instance in seen.mine:
            kept[uuid] = dataclasses.replace(before[uuid], is_ready=False)
        else:
            found = found.noted(uuid, now)
    pooled = memory.pooled
    return kept, dataclasses.replace(
        memory, vanished=found, pooled=dataclasses.replace(
            pooled, started=pooled.started if found.has_too_many else {},
            gone_at=this.world.process.wall_time()
            if found.deleted.keys() - memory.vanished.deleted.keys()
            else pooled.gone_at))


def with_missing(found: Mapping[str, pools.Pool], memory: observation.Memory,
                 seen: SeenNodes, consumers: pool_takeover.Consumers
                 ) -> dict[str, pools.Pool]:
    """Count the nodes that pools had when this service was started.

    They count for as long as those of a service that was not would: until the
    guard takes what is missing for deleted.

    :param found: the pools of this service, by name
    :param memory: what is remembered
    :param seen: what was read
    :param consumers: names the consumers of pools
    """
    shown = {node.instance for node in seen.nodes.values()}
    left = unseen(memory, seen.nodes)
    whole = dict(found)
    for name, counted in sorted((memory.pooled.started or {}).items()):
        pool = found.get(name, pools.Pool(name, is_hidden=True))
        missing = min(left, counted.nodes - len(pool.nodes))
        if missing <= 0:
            continue
        left -= missing
        used = sum(
            memory.pooled.places.get(uuid) == name
            for uuid in (consumers.of(name) or frozenset()) - shown)
        whole[name] = dataclasses.replace(
            pool, missing=missing, missing_used=min(missing, used))
    return whole


def _had(memory: observation.Memory, seen: SeenNodes, before: Collection[str],
         share: pools.Share) -> look.Had:
    """Say which nodes this service has had.

    Of those that it had when it was started, its rows say how many they were.
    Where there are as many in Ironic as there were, they count for others.

    :param before: those that it has had since
    """
    had = sum(each.nodes for each in (memory.pooled.started or {}).values())
    if not had:
        return look.Had(before, in_pools=True)
    own = share.nodes.union(before)
    return look.Had(own, max(0, min(had - len(own), unseen(
        memory, seen.nodes.keys() | before))), in_pools=True)


def unseen(memory: observation.Memory, nodes: Collection[str]) -> int:
    """Say how many nodes more there were when this service was started.

    :param memory: what is remembered
    :param nodes: those that are known now
    """
    return max(0, max((each.listed for each in (
        memory.pooled.started or {}).values()), default=0) - len(nodes))
