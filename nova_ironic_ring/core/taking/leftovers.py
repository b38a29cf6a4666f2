# SPDX-License-Identifier: Apache-2.0

"""Removes records of dead services' nodes that Ironic no longer has.

For its own nodes, each service does so in Nova's resource tracker. This module
also settles what dead services have left in pools, because a service with the
ring driver has no other use for pools. And it settles tasks of dead services
with instances that Ironic has on no node, and that have no allocation.
"""

from collections.abc import Mapping
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import vanished
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.taking import pool_return
from nova_ironic_ring.core.taking import pool_takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports

# Passes between two looks: each look reads the rows of all lost services, and
# leftovers do no harm for some minutes.
_PASSES = 10


def clean(this: one_pass.Pass, own: pool_return.Own) -> None:
    """Remove the records, if it is time to look for them.

    An error here does not fail the pass.

    :param this: the pass
    :param own: what this service knows of its nodes, and the nodes that Ironic
        was seen to have
    """
    cleaning, current = this.memory.cleaning, this.current
    at = this.world.process.now()
    if not current.cooperative or not this.view.is_trusted or (
            cleaning.looked_at is not None
            and at - cleaning.looked_at < _PASSES * current.pass_interval):
        return
    cleaning.looked_at = at
    before, there = cleaning.guards, _There(this, own.nodes)
    cleaning.guards = {
        service.host: before.get(service.host, vanished.Guard())
        for service in this.view.services.values()
        if this.view.is_lost(service.host)}
    for host in cleaning.guards:
        # Records of others that were removed stay removed.
        with this.going_on(events.RecordNotRemoved, None, host):
            # The search for what the one before has left may have taken long.
            look.renew(this)
            if not this.is_valid or not this.view.is_lost(host):
                continue
            lost = _Lost(host, _rows(this, host),
                         this.view.fails_over(host, current))
            _clean_of(this, lost, there)
            _settle_pools(this, lost, own)
            _end_reserved(this, lost, own.nodes)
            if lost.fails_over:
                _take_unfinished(this, host, own.nodes)


class _There:
    """What Ironic has, for all lost services.

    If nodes are divided by their shards, no service lists all of them.
    """

    def __init__(self, this: one_pass.Pass, nodes: model.Nodes) -> None:
        self._this = this
        self._nodes = nodes
        self._uuids: frozenset[str] | None = None

    def rows(self, lost: '_Lost') -> dict[str, model.Row]:
        """Return the records of the nodes to look for."""
        rows, ring = pools.rows_of_nodes(lost.rows), self._this.view.ring
        if ring.deal is None:
            return rows
        return {node: row for node, row in rows.items()
                if ring.by_name(node) == self._this.current.me}

    def missing(self, rows: Mapping[str, model.Row]) -> dict[str, model.Row]:
        """Return the records whose nodes were not listed by Ironic.

        If they are many, all nodes are listed once.
        """
        this, found = self._this, {
            node: row for node, row in rows.items()
            if node not in self._nodes}
        if this.view.ring.deal is None or len(found) <= listing.FEW:
            return found
        if self._uuids is None:
            self._uuids = this.world.ironic.uuids(this.current.scope)
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


def _rows(this: one_pass.Pass, host: str) -> dict[str, model.Row]:
    """Read the records of a lost service, if it was a peer.

    It may have had another driver; then its rows are not of Ironic's nodes.
    Its member record shows whether it was a peer.
    """
    service = this.view.services[model.canonical(host)]
    if not service.is_ironic or not this.current.shares(service.scope):
        return {}
    return this.world.nova.rows_of(host)


def _settle_pools(this: one_pass.Pass, lost: _Lost, own: pool_return.Own
                  ) -> None:
    """Settle what is in the pools of one lost service, and on no node.

    For each pool, the service that the ring maps the pool to does so.
    """
    found = pools.recorded(lost.rows)
    pool_return.take_back(this, own, found)
    deployed = frozenset(uuid for uuid in own.nodes.values() if uuid)
    for pool in found:
        if this.view.ring.owner(pools.uuid_of(pool)) == this.current.me:
            # What was taken out of others has to be recovered nevertheless.
            with this.going_on(events.RecordNotRemoved, pool, lost.host):
                pool_takeover.settle(this, pool_takeover.Left(
                    pool, model.canonical(lost.host), lost.fails_over, None),
                    deployed)


def _end_reserved(this: one_pass.Pass, lost: _Lost, nodes: model.Nodes
                  ) -> None:
    """End the unshelvings for which a lost service had reserved a node.

    In Nova they have no service before the claim of the node, and in Ironic
    the node is not free: nobody takes it.
    """
    nova, owner = this.world.nova, this.view.ring.owner
    reserved = {
        uuid: node for node in lost.rows
        if (uuid := nodes.get(node)) is not None
        and owner(node) == this.current.me}
    for uuid, instance in this.while_lost(
            (nova.instances(reserved) if reserved else {}).items(),
            lambda each: lost.host):
        node = reserved[uuid]
        if instance.host is not None or not instance.is_offloaded:
            continue
        with this.going_on(events.BuildNotEnded, node, uuid, lost.host):
            if instance.task is None:
                # It has ended except for that.
                builds.free(this, uuid, instance)
            # Otherwise the owner of the node may have written it there.
            elif instance.is_unshelving and (
                    uuid in this.world.placement.consumers(node)):
                builds.end(this, observation.LeftBuild(
                    node, lost.host, frozenset({uuid})), uuid, instance)


def _take_unfinished(this: one_pass.Pass, host: str, nodes: model.Nodes
                     ) -> None:
    """Take over what a dead service has to finish without a machine.

    Whoever takes its node finds the instance by its allocation, but there may
    be none. For each instance, the service that the ring maps its node to does
    so.
    """
    nova, owner = this.world.nova, this.view.ring.owner
    instances = nova.instances_of(host)
    found = {
        uuid: instance for uuid, instance
        in (nova.instances(instances) if instances else {}).items()
        # Services with other hypervisors die as well.
        if instance.is_to_be_finished
        and nodes.get(str(instance.node), uuid) != uuid
        and owner(str(instance.node)) == this.current.me}
    # What comes before it in a search may take long.
    if found:
        look.again(this)
    if not found or not this.view.fails_over(host, this.current):
        return
    # On another node, its owner may have written that there.
    deployed = {uuid for node, uuid
                in this.world.ironic.nodes_of(found).items()
                if uuid in found and pools.has(found[uuid], node)}
    for uuid, instance in this.while_lost(
            found.items(), lambda each: str(each[1].host)):
        node, host = str(instance.node), str(instance.host)
        # What was taken before has to be recovered nevertheless.
        with this.going_on(events.InstanceNotTaken, uuid, host):
            if uuid not in deployed:
                this.take(model.Takeover(
                    node, uuid, host, instance.task, True))


def _clean_of(this: one_pass.Pass, lost: _Lost, there: _There) -> None:
    """Remove the records of the nodes of one lost service."""
    current, guards = this.current, this.memory.cleaning.guards
    at, before = this.world.process.now(), guards[lost.host]
    rows = there.rows(lost)
    missing = there.missing(rows)
    guard = guards[lost.host] = vanished.look(
        before, vanished.Missing(
            missing, len(rows), this.world.ironic.is_deleted),
        vanished.Limits(current.vanished_nodes_limit,
                        2 * _PASSES * current.pass_interval), at)
    if guard.has_too_many and not before.has_too_many:
        this.happened.append(events.NodesVanished(
            lost.host, False, sorted(missing), len(rows)))
    for node, row in this.while_lost(missing.items(), lambda _: lost.host):
        if guard.is_closed:
            break
        if this.view.ring.by_name(node) == current.me and (
                _remove(this, node, row)):
            guard.note(node, at)


def _remove(this: one_pass.Pass, node: str, row: model.Row) -> bool:
    """Remove the row of a node, if Ironic really does not have the node.

    :returns: whether it is removed
    """
    world = this.world
    with this.going_on(events.RecordNotRemoved, node, row.owner):
        if not world.ironic.is_deleted(node):
            return False
        live = _instances_of(world, node)
        if live:
            this.happened.append(events.NodeKept(node, min(live)))
            return False
        # Without the record, no service would look for the provider again.
        world.placement.delete_provider(node)
        if world.nova.delete_row(node, row.owner):
            this.happened.append(events.RecordRemoved(node, row.owner))
            return True
    return False


def is_deleted(this: one_pass.Pass, node: str) -> bool:
    """Return whether the record of a node that is not listed can go.

    Its provider has gone then: without the record, nobody would look for it
    again. The record of a node with an instance in Nova is never deleted,
    whatever Ironic says: a mistake in its policy hides nodes as well. The
    memory notes whether a record can go or is kept.

    :param this: what is remembered, and the ports
    :param node: the node's UUID, or the name of a pool that this service has
        had with the pool driver
    """
    world, memory = this.world, this.memory
    if pools.is_pool(node):
        return not world.nova.instances_on(node) and (
            node in pool_takeover.reserve_unused(
                world, [node],
                lambda: [node] if world.nova.instances_on(node) else ()))
    if memory.vanished.is_closed or not world.ironic.is_deleted(node):
        return False
    instances = _instances_of(world, node)
    if not instances:
        # Nova does not say, and forgets, that it could not delete it.
        world.placement.delete_provider(node)
        memory.kept.discard(node)
        memory.vanished.note(node, world.process.now())
        return True
    if node not in memory.kept:
        memory.kept.add(node)
        this.happened.append(events.NodeKept(node, min(instances)))
    return False


def _instances_of(world: ports.Ports, node: str) -> frozenset[str]:
    """Return the instances that Nova has on a node, or is to build there."""
    return world.nova.instances_on(node) | world.nova.instances(
        world.placement.consumers(node)).keys()
