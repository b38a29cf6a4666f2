# SPDX-License-Identifier: Apache-2.0

"""Removes the records of dead services' nodes that Ironic has no more.

Of its own nodes each service does so in Nova's resource tracker. What dead
services have left in pools is settled here as well, for a service with the
ring driver has no other use for pools; and so is what they have to finish
with instances that Ironic has on no node, and Placement has freed.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import vanished
from nova_ironic_ring.core.taking import pool_return
from nova_ironic_ring.core.taking import pool_takeover
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

# Passes between two looks: each reads the rows of all lost services, and what
# they have left does no harm for some minutes.
_PASSES = 10


@dataclasses.dataclass(frozen=True)
class Circumstances:
    """What the search needs.

    :ivar standing: how this service stands with the others
    :ivar own: what this service knows of its nodes, and the nodes that Ironic
        was seen to have
    :ivar settings: this service's settings
    """

    standing: observation.Standing
    own: pool_return.Own
    settings: settings.Settings

    @property
    def nodes(self) -> model.Nodes:
        """The nodes that Ironic was seen to have."""
        return self.own.nodes


@dataclasses.dataclass(frozen=True)
class Cleaned:
    """What has come of a search.

    :ivar cleaning: what is to be remembered of it
    :ivar watch: how long the heartbeats of all services have stood still
    :ivar happened: the events for the log
    :ivar taken: instances that were being deleted, shelved or unshelved, and
        are this service's now
    """

    cleaning: observation.Cleaning
    watch: membership.Watch
    happened: Sequence[events.Event] = ()
    taken: tuple[takeover.Takeover, ...] = ()


def is_due(before: observation.Cleaning, at: float, seen: Circumstances
           ) -> bool:
    """Say whether it is time to look.

    :param before: what is remembered
    :param at: the present time, in seconds
    :param seen: what was seen
    """
    current = seen.settings
    return (current.cooperative and seen.standing.trust is trust.Trust.FULL
            and (before.looked_at is None
                 or at - before.looked_at >= _PASSES * current.pass_interval))


def clean(world: ports.Ports, before: observation.Cleaning,
          watch: membership.Watch, seen: Circumstances) -> Cleaned:
    """Remove the records.

    :param world: the ports
    :param before: what is remembered
    :param watch: how long the heartbeats have stood still; those of services
        that are not in the ring are watched from search to search
    :param seen: what was seen
    """
    at = world.process.now()
    guards: dict[str, vanished.Guard] = {}
    happened: list[events.Event] = []
    taken: list[takeover.Takeover] = []
    services = world.nova.all_services()
    watch = watch.look(services, watch.at)
    members = membership.assess(services, seen.settings, watch)
    there = _There(world, seen)
    for service in services:
        state = membership.state(service, seen.settings, watch)
        if not state.is_lost:
            continue
        host = service.host
        guards[host] = before.guards.get(host, vanished.Guard())
        try:
            lost = _Lost(host, _rows(world, host, seen), members.fails_over(
                host, seen.settings))
            guards[host], found = _clean_of(world, lost, guards[host], there)
            for settle in _settle_pools, _take_unfinished:
                outcome = settle(world, lost, seen)
                taken += outcome.taken
                found += outcome.happened
        except Exception as error:
            # What was removed of others counts all the same.
            found = [events.RecordNotRemoved(None, host, error)]
        happened += found
    return Cleaned(observation.Cleaning(at, guards), watch, happened,
                   tuple(taken))


class _There:
    """What Ironic has, for all lost services.

    Where nodes are divided by their shards, nobody lists all of them.
    """

    def __init__(self, world: ports.Ports, seen: Circumstances) -> None:
        self._world = world
        self.seen = seen
        self._uuids: frozenset[str] | None = None

    def rows(self, lost: '_Lost') -> dict[str, model.Row]:
        """Return the records of nodes that are looked for here."""
        rows, ring = pools.rows_of_nodes(lost.rows), self.seen.standing.ring
        if ring.deal is None:
            return rows
        return {node: row for node, row in rows.items()
                if ring.by_name(node) == self.seen.settings.me}

    def missing(self, rows: Mapping[str, model.Row]) -> dict[str, model.Row]:
        """Return those of records whose nodes Ironic was not seen to have.

        Where they are many, all nodes are named once.
        """
        found = {node: row for node, row in rows.items()
                 if node not in self.seen.nodes}
        if self.seen.standing.ring.deal is None or len(found) <= listing.FEW:
            return found
        if self._uuids is None:
            self._uuids = self._world.ironic.uuids(self.seen.settings.scope)
        return {node: row for node, row in found.items()
                if node not in self._uuids}


@dataclasses.dataclass(frozen=True)
class _Lost:
    """A service that is absent or dead.

    :ivar host: its name
    :ivar rows: its records, of nodes and of pools, by UUID
    :ivar fails_over: whether its instances are to be taken over
    """

    host: str
    rows: Mapping[str, model.Row]
    fails_over: bool


def _rows(world: ports.Ports, host: str, seen: Circumstances
          ) -> dict[str, model.Row]:
    """Read the records of a lost service, if it was a peer.

    It may as well have had another driver, and its rows are not of Ironic's
    nodes then. What it has said in them tells whether it was a peer.
    """
    return {node: row for node, row in world.nova.rows_of(host).items()
            if seen.settings.shares(row.scope)}


def _settle_pools(world: ports.Ports, lost: _Lost, seen: Circumstances
                  ) -> pool_takeover.TakenIntoPools:
    """Settle what is in the pools of one lost service, and on no node.

    Of each pool, the service does so that the ring maps the pool to.
    """
    found = pools.recorded(lost.rows)
    happened = pool_return.take_back(world, seen.own, found)
    taken: list[takeover.Takeover] = []
    deployed = frozenset(uuid for uuid in seen.nodes.values() if uuid)
    for pool in found:
        if seen.standing.ring.owner(
                pools.uuid_of(pool)) != seen.settings.me:
            continue
        try:
            outcome = pool_takeover.settle(world, pool_takeover.Left(
                pool, model.canonical(lost.host), lost.fails_over, None),
                deployed)
        except Exception as error:
            # What was taken out of others has to be looked after all the same.
            happened.append(events.RecordNotRemoved(pool, lost.host, error))
            continue
        taken += outcome.taken
        happened += outcome.happened
    return pool_takeover.TakenIntoPools(tuple(taken), tuple(happened))


def _take_unfinished(world: ports.Ports, lost: _Lost, seen: Circumstances
                     ) -> pool_takeover.TakenIntoPools:
    """Take over what a dead service has to finish without a machine.

    Whoever takes its node does so by the allocation; there may be none. Of
    each, the service does so that the ring maps the node to.
    """
    if not lost.fails_over:
        return pool_takeover.TakenIntoPools()
    instances = world.nova.instances_of(lost.host)
    found = {
        uuid: instance for uuid, instance
        in (world.nova.instances(instances) if instances else {}).items()
        # On other hypervisors services die as well.
        if instance.is_to_be_finished
        and seen.nodes.get(str(instance.node), uuid) != uuid
        and seen.standing.ring.owner(str(instance.node)) == seen.settings.me}
    if not found:
        return pool_takeover.TakenIntoPools()
    # On another node, its owner may have written that there.
    deployed = {uuid for node, uuid in world.ironic.nodes_of(found).items()
                if uuid in found and pools.has(found[uuid], node)}
    taken: list[takeover.Takeover] = []
    happened: list[events.Event] = []
    for uuid, instance in found.items():
        node, host = str(instance.node), str(instance.host)
        try:
            if uuid in deployed or not world.nova.set_instance_host(
                    uuid, ports.Expected(host, node, instance.task)):
                continue
        except Exception as error:
            # What was taken before it has to be looked after all the same.
            happened.append(events.InstanceNotTaken(uuid, host, error))
            continue
        taken.append(takeover.Takeover(
            node, uuid, host, instance.task, True))
        happened.append(events.InstanceTaken(node, uuid, host, True))
    return pool_takeover.TakenIntoPools(tuple(taken), tuple(happened))


def _clean_of(world: ports.Ports, lost: _Lost, before: vanished.Guard,
              there: _There) -> tuple[vanished.Guard, list[events.Event]]:
    """Remove the records of the nodes of one lost service."""
    at, seen = world.process.now(), there.seen
    rows, ring = there.rows(lost), seen.standing.ring
    missing = there.missing(rows)
    guard = vanished.look(
        before, vanished.Missing(missing, len(rows), world.ironic.is_deleted),
        vanished.Limits(seen.settings.vanished_nodes_limit,
                        2 * _PASSES * seen.settings.pass_interval), at)
    happened: list[events.Event] = []
    if guard.has_too_many and not before.has_too_many:
        happened.append(events.NodesVanished(
            lost.host, False, sorted(missing), len(rows)))
    if guard.is_closed:
        return guard, happened
    mine = {node: row for node, row in missing.items()
            if ring.by_name(node) == seen.settings.me}
    for node, event in _remove_all(world, mine):
        happened.append(event)
        if isinstance(event, events.RecordRemoved):
            guard = guard.noted(node, at)
        if guard.is_closed:
            break
    return guard, happened


def look_at_missing(world: ports.Ports, memory: observation.Memory, node: str
                    ) -> tuple[bool, observation.Memory, list[events.Event]]:
    """Say whether the record of a node that is not listed can go.

    A node that Nova has an instance on never goes, whatever Ironic says: a
    slip of its policy hides nodes as well.

    :param world: the ports
    :param memory: what this service remembers
    :param node: the node's UUID, or the name of a pool that this service has
        had with the pool driver
    :returns: whether it can go, what is to be remembered, and the events for
        the log
    """
    if pools.is_pool(node):
        return pool_takeover.reserve_if_unused(world, node), memory, []
    if memory.vanished.is_closed or not world.ironic.is_deleted(node):
        return False, memory, []
    instances = _instances_of(world, node)
    if not instances:
        return True, dataclasses.replace(
            memory, kept=memory.kept.without(node),
            vanished=memory.vanished.noted(node, world.process.now())), []
    if node in memory.kept:
        return False, memory, []
    return False, dataclasses.replace(
        memory, kept=memory.kept.having(node, None)), [
            events.NodeKept(node, min(instances))]


def _instances_of(world: ports.Ports, node: str) -> frozenset[str]:
    """Name the instances that Nova has on a node, or is to build there."""
    return world.nova.instances_on(node) | world.nova.instances(
        world.placement.consumers(node)).keys()


def _remove_all(world: ports.Ports, rows: Mapping[str, model.Row]
                ) -> Iterator[tuple[str, events.Event]]:
    """Remove the rows of nodes that Ironic really does not have."""
    for node, row in rows.items():
        try:
            if not world.ironic.is_deleted(node):
                continue
            live = _instances_of(world, node)
            if live:
                yield node, events.NodeKept(node, min(live))
                continue
            # Without the record, nobody would look for the provider again.
            world.placement.delete_provider(node)
            if world.nova.delete_row(node, row.owner):
                yield node, events.RecordRemoved(node, row.owner)
        except Exception as error:
            yield node, events.RecordNotRemoved(node, row.owner, error)
