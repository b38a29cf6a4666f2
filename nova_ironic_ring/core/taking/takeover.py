# SPDX-License-Identifier: Apache-2.0

"""Takes over instances of other services, and their nodes.

Each step is safe to be the last one: whoever looks next sees how far the
takeover has come, and finishes it.
"""

from collections.abc import Iterable
import dataclasses
import itertools

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools

#: The most takeovers in a pass: all rely on one look at the services, which
#: grows old, and each takes some calls.
MOST = 500


def wanted(plan: planner.Plan, seen: observation.Observation
           ) -> list[model.Takeover]:
    """Return the instances that are to be taken over.

    :param plan: what was decided
    :param seen: what it was decided from
    """
    found = []
    for node, step in plan.steps.items():
        instance = seen.nodes[node]
        if not step.decision.takes_instance or instance is None:
            continue
        known = seen.instances.of_others[instance]
        if known.host is not None:
            found.append(model.Takeover(
                node, instance, known.host, known.task,
                step.decision is decisions.Decision.FAIL_OVER))
    return found


def in_pools(found: Iterable[model.Takeover], seen: observation.Observation
             ) -> list[model.Takeover]:
    """Return those of some takeovers that are from pools of dead services.

    :param found: the takeovers
    :param seen: what they were decided from
    """
    return [each for each in found if each.is_dead and pools.is_pool(
        seen.instances.of_others[each.instance].node)]


def take_over(this: one_pass.Pass, plan: planner.Plan,
              seen: observation.Observation) -> planner.Plan:
    """Take over instances as decided, except for those in pools.

    :param this: the pass
    :param plan: what was decided
    :param seen: what it was decided from
    :returns: the plan, corrected if a takeover has failed
    """
    every = wanted(plan, seen)
    apart = in_pools(every, seen)
    tried = [each for each in every if each not in apart]
    _fail_over(this, [each for each in tried if each.is_dead])
    _follow(this, [each for each in tried if not each.is_dead])
    taken = {each.node for each in this.taken}
    this.memory.forget_instances({each.instance for each in tried})
    verdict = decisions.not_taken()
    return plan.having({
        each.node: planner.Step(verdict.decision, verdict.why)
        for each in tried if each.node not in taken})


def _follow(this: one_pass.Pass, tried: list[model.Takeover]) -> None:
    """Take over the idle instances of services that consent.

    The ring that both go by names one taker. Of a disabled service, another
    with another ring may take one at the same time: who writes last has it.
    The resource tracker moves the row, as it does for a free node.
    """
    nova, current = this.world.nova, this.current
    if not tried:
        return
    found = nova.instances(each.instance for each in tried)
    said = nova.members(sorted({each.host for each in tried}))
    ring = this.view.ring.fingerprint(current.scope)
    look.renew(this)
    for each in this.while_current(tried):
        instance = found.get(each.instance)
        owner = said.get(model.canonical(each.host), model.Member())
        if instance is None or not instance.is_idle or (
                not _is_as_wanted(each, instance)
                or not owner.follows
                or not owner.consents(ring, current.scope)):
            continue
        with this.going_on(
                events.InstanceNotTaken, each.instance, each.host):
            # Nothing is being done with it, or the instance stays.
            this.take(dataclasses.replace(each, task=None))


def _fail_over(this: one_pass.Pass, tried: list[model.Takeover]) -> None:
    """Take over the instances of dead services.

    Two services cannot both take one instance: the first step is to delete the
    node's row, on the condition that it still has the owner that was read. The
    resource tracker restores the same row in the same pass.
    """
    nova, before = this.world.nova, this.memory.without_row
    this.memory.without_row = {}
    if not tried:
        return
    # Another taker deletes the row, and then changes the instance: so the rows
    # are read first.
    rows = nova.rows(sorted(each.node for each in tried))
    now = this.world.process.now()
    # Without a row, another taker is between its two steps, or has died there:
    # wait, then go on.
    without_row = {each.node: before.get(each.node, now)
                   for each in tried if each.node not in rows}
    batch = list(itertools.islice((
        each for each in tried if each.node in rows
        or now - without_row[each.node] >= this.current.handover_timeout
    ), MOST))
    found = nova.instances(each.instance for each in batch)
    this.memory.without_row = without_row
    look.renew(this)
    for each in this.while_lost(batch, lambda each: each.host):
        # If it fails, the next pass sees how far it has come.
        with this.going_on(
                events.InstanceNotTaken, each.instance, each.host):
            _take(this, each, rows.get(each.node), found.get(each.instance))


def _take(this: one_pass.Pass, each: model.Takeover, row: model.Row | None,
          instance: model.Instance | None) -> None:
    """Delete a row and change an instance, unless another was faster.

    If Nova does not say whether the row is deleted, another taker may have
    deleted it: the next look sees no row, and waits for that one.
    """
    nova = this.world.nova
    # Before the row is deleted: Ironic's word alone is not enough.
    if not _is_as_wanted(each, instance) or (
            row is not None and not nova.delete_row(each.node, row.owner)):
        return
    if not _change(this, each, instance):
        # A user has asked for something meanwhile. The row is gone: with the
        # next look, this service would wait for itself.
        _change(this, each, nova.instances([each.instance]).get(each.instance))


def _change(this: one_pass.Pass, each: model.Takeover,
            instance: model.Instance | None) -> bool:
    """Change an instance, if it still is as it was read."""
    return instance is not None and _is_as_wanted(each, instance) and (
        this.take(dataclasses.replace(each, task=instance.task)))


def _is_as_wanted(each: model.Takeover, instance: model.Instance | None
                  ) -> bool:
    """Return whether an instance in Nova is still as it was planned."""
    return instance is not None and (instance.host, instance.node) == (
        each.host, each.node)
