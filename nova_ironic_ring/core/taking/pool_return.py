# SPDX-License-Identifier: Apache-2.0

"""Brings instances out of pools, back to records of their nodes.

A service with the ring driver finds instances in pools if it had the pool
driver before, or if another service that has it is dead. First the node is
recorded for this service: Nova's resource tracker makes record and provider,
and reserves the provider, because there is an instance on the node. Then the
instance is transferred (:mod:`nova_ironic_ring.core.taking.transfer`).
"""

from collections.abc import Collection, Mapping
import dataclasses

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.taking import transfer
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools


@dataclasses.dataclass(frozen=True)
class Own:
    """What a service knows of its nodes.

    :ivar nodes: the instance on each node
    :ivar rows: its records, of nodes and of pools, by UUID
    """

    nodes: model.Nodes
    rows: Mapping[str, model.Row]


def close(this: one_pass.Pass, own: Own) -> None:
    """Keep builds out of pools that this service has had.

    A build that is sent to such a pool would not arrive. An error here does
    not fail the pass.

    :param this: the pass
    :param own: what this service knows of its nodes
    """
    for pool in pools.recorded(own.rows):
        with this.going_on(events.AllocationsUnknown, pool):
            this.world.placement.reserve_all(pool)


def take_back(this: one_pass.Pass, own: Own, left: Collection[str]) -> None:
    """Bring this service's own instances back to its nodes.

    Those with a task are left until it is done. An error here does not fail
    the pass.

    :param this: the pass
    :param own: what this service knows of its nodes
    :param left: the names of pools in which its instances, or their
        allocations, may be: its own, and those of lost services that were
        about to take them over
    """
    world, node_of = this.world, {
        instance: node for node, instance in own.nodes.items()
        if instance is not None}
    for pool in left:
        found: Mapping[str, model.Instance] = {}
        with this.going_on(events.AllocationsUnknown, pool):
            waiting = world.nova.instances_on(
                pool) | world.placement.consumers(pools.uuid_of(pool))
            found = world.nova.instances(waiting) if waiting else {}
        for uuid, instance in found.items():
            node = node_of.get(uuid)
            if instance.host_name != this.current.me or (
                    not instance.is_idle or node is None
                    or node not in own.rows):
                continue
            # If it fails, the next pass sees how far it has come.
            with this.going_on(
                    events.InstanceNotTaken, uuid, str(instance.host)):
                if transfer.make(this, transfer.Transfer(
                        uuid, instance, {pools.uuid_of(pool)}, node, pool)):
                    this.happened.append(
                        events.InstanceMoved(uuid, pool, node))


def take_over(this: one_pass.Pass, plan: planner.Plan,
              seen: observation.Observation) -> planner.Plan:
    """Take over, as decided, instances in pools of dead services.

    Two takers cannot both have the record of a node. An error here does not
    fail the pass: others may have been taken over.

    :param this: the pass
    :param plan: what was decided
    :param seen: what it was decided from
    :returns: the plan, corrected if a takeover has failed, or if a node is to
        be recorded for this service first
    """
    tried = takeover.in_pools(takeover.wanted(plan, seen), seen)
    if not tried:
        return plan
    prepared: set[str] = set()
    with this.going_on(events.InstanceNotTaken,
                       tried[0].instance, tried[0].host):
        look.again(this)
        sources = {
            pool for host, state in sorted(this.view.states.items())
            if state.is_lost for pool in this.world.nova.pools_of(host)}
        # Those beyond the limit of a pass are left to the next one.
        _take_out(this, [
            each for each in tried
            if this.view.fails_over(each.host, this.current)
        ][:takeover.MOST], sources.union(
            pools.recorded(seen.rows)), prepared)
    this.memory.forget_instances({each.instance for each in tried})
    taken = {each.node for each in this.taken}
    first, lost = decisions.record_first(), decisions.not_taken()
    return plan.having({
        each.node: planner.Step(
            first.decision, first.why,
            claim=planner.Claim(each.instance, host=each.host))
        if each.node in prepared else planner.Step(lost.decision, lost.why)
        for each in tried if each.node not in taken})


def _take_out(this: one_pass.Pass, tried: Collection[model.Takeover],
              sources: Collection[str], prepared: set[str]) -> None:
    """Take over instances that are in pools of dead services.

    :param sources: the names of pools in which their allocations may be:
        those of lost services, and those that this service has had with the
        pool driver
    :param prepared: the nodes that are to be recorded for this service first,
        to which this adds
    """
    nova = this.world.nova
    rows = nova.rows(sorted(each.node for each in tried))
    found = nova.instances(each.instance for each in tried)
    look.renew(this)
    for each in this.while_lost(tried, lambda each: each.host):
        row, instance = rows.get(each.node), found.get(each.instance)
        if instance is None or instance.host != each.host or (
                not pools.is_of(each.host, instance.node)):
            continue
        with this.going_on(
                events.InstanceNotTaken, each.instance, each.host):
            if row is None or row.owner_name != this.current.me:
                if row is None or nova.delete_row(each.node, row.owner):
                    prepared.add(each.node)
                continue
            pool = str(instance.node)
            transfer.take(this, transfer.Transfer(
                each.instance, instance,
                frozenset(map(pools.uuid_of, {pool, *sources})),
                each.node, pool), each.node, each.is_dead)
