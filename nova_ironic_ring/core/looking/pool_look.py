# SPDX-License-Identifier: Apache-2.0

"""What a service with pools reads of its nodes, instances and records."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses

from nova_ironic_ring.core.deciding import pool_plan
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import others
from nova_ironic_ring.core.looking import pool_missing
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools


def observe(this: one_pass.Pass, begun: listing.Beginning) -> pool_plan.Seen:
    """Read all that the plan of a pass with pools depends on.

    :param this: the pass
    :param begun: what was read already
    :raises one_pass.UnansweredError: if Nova or Ironic did not answer
    """
    with this.asking(one_pass.Port.IRONIC):
        nodes = this.current.kind_rule.nodes(
            this.world.ironic.describe(begun.nodes))
    with this.asking(one_pass.Port.NOVA):
        seen = _with_consent(this, _observe(this, pool_plan.Seen(
            nodes, begun.mine, {}, {}, narrowed=begun.narrowed,
            unasked=begun.unasked)))
    return seen


def _observe(this: one_pass.Pass, seen: pool_plan.Seen) -> pool_plan.Seen:
    """Read this service's records in Nova, and other instances."""
    nova, memory, mine = this.world.nova, this.memory, seen.mine
    was, is_on = _nodes_of(memory.pooled.occupied), _nodes_of(seen.nodes)
    # An instance may have been shelved and unshelved since the last pass.
    places = {uuid: place for uuid, place in memory.pooled.places.items()
              if uuid in mine and was.get(uuid) == is_on.get(uuid)}
    unknown = nova.instances(mine - places.keys()) if (
        mine - places.keys()) else {}
    # A build may come back to another pool of this service.
    memory.pooled.places = places | {
        uuid: instance.node for uuid, instance in unknown.items()
        if instance.is_idle}
    here = of_others_here(this, seen)
    of_others = _of_others(this, here)
    this.happened.extend(others.elsewhere(
        memory.instances, {
            uuid: node.instance for uuid, node in seen.nodes.items()
            if node.instance in here}, of_others, ()))
    memory.instances = of_others
    own = nova.rows_of(this.current.host)
    owner, me = this.view.ring.owner, this.current.me
    looked_for = sorted(
        uuid for uuid, node in seen.nodes.items() if uuid not in own and (
            node.instance in mine or node.instance is None
            and uuid not in seen.narrowed and owner(uuid) == me))
    pool_missing.begin(this, own)
    other_rows = nova.rows(looked_for) if looked_for else {}
    look.at_new_services(this, {row.owner for row in other_rows.values()} | {
        str(instance.host) for instance in of_others.values()
        if instance.host})
    return dataclasses.replace(
        seen, places=places | {
            uuid: instance.node for uuid, instance in unknown.items()},
        of_others=of_others, rows=own, other_rows=other_rows)


def _nodes_of(nodes: Mapping[str, pools.Node]) -> dict[str | None, str]:
    """Return the node that each instance is on, by the instance's UUID."""
    return {node.instance: uuid for uuid, node in nodes.items()}


def of_others_here(this: one_pass.Pass, seen: pool_plan.Seen
                   ) -> frozenset[str]:
    """Return the instances of others on nodes that are for this service.

    :param this: the pass
    :param seen: what was read
    """
    owner = this.view.ring.owner
    return frozenset(
        node.instance for uuid, node in seen.nodes.items()
        if node.instance is not None and node.instance not in seen.mine
        and owner(uuid) == this.current.me)


def _of_others(this: one_pass.Pass, found: Collection[str]
               ) -> dict[str, model.Instance]:
    """Find out whether instances have a service.

    They are read once, and those without a service until that has changed. An
    operator, or another service, may have given one to a third service: so the
    instances of their services are read.
    """
    nova = this.world.nova
    known = {uuid: instance for uuid, instance in this.memory.instances.items()
             if uuid in found and instance.host is not None}
    there = {host: nova.instances_of(host) for host in sorted({
        str(instance.host) for instance in known.values()})}
    known = {uuid: instance for uuid, instance in known.items()
             if uuid in there[str(instance.host)]}
    unknown = frozenset(found) - known.keys()
    return known | (nova.instances(unknown) if unknown else {})


def _with_consent(this: one_pass.Pass, seen: pool_plan.Seen
                  ) -> pool_plan.Seen:
    """Find out which instances may be taken from live services.

    These are read again, because they may have no task.
    """
    nova, current = this.world.nova, this.current
    if not current.follows or not this.view.may_take:
        return seen
    mine = this.view.ring.fingerprint(current.scope)
    owners = sorted({
        instance.host for instance in seen.of_others.values()
        if instance.host is not None
        and this.view.state(instance.host).gives
        and pools.is_of(instance.host, instance.node)})
    said = nova.members(owners) if owners else {}
    consenting = frozenset(
        host for host in owners
        if (found := said.get(model.canonical(host))) is not None
        and found.follows and found.consents(mine, current.scope))
    again = [uuid for uuid, instance in seen.of_others.items()
             if instance.host in consenting]
    if not again:
        return seen
    now = nova.instances(again)
    return dataclasses.replace(seen, consenting=consenting, of_others={
        uuid: now.get(uuid, instance)
        for uuid, instance in seen.of_others.items()})
