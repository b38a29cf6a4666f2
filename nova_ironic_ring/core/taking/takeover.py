# SPDX-License-Identifier: Apache-2.0

"""Makes instances of other services, and their nodes, this service's.

Each step is safe to be the last one: whoever looks next sees how far the
takeover has come, and finishes it.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import itertools

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports

#: At most so many in a pass: all go by one look at the services, which grows
#: old, and each takes some calls.
MOST = 500


@dataclasses.dataclass(frozen=True)
class Takeover:
    """An instance that is to become, or has become, this service's.

    :ivar node: the UUID of its node
    :ivar instance: its UUID
    :ivar host: the name of the service that it belonged to
    :ivar task: what was being done with it, as Nova names it
    :ivar is_dead: whether that service is dead; it has consented otherwise
    """

    node: str
    instance: str
    host: str
    task: str | None
    is_dead: bool


@dataclasses.dataclass(frozen=True)
class DecidedTakeovers:
    """What is to be taken over in a pass.

    :ivar decisions: by the node's UUID; the nodes where it is another decision
        are left out of account, and so are instances in pools
    :ivar nodes: the instance on each node
    :ivar instances: what was read of the instances, by UUID
    :ivar patience: seconds that another service may take from one step of a
        takeover to the next
    """

    decisions: Mapping[str, decisions.Decision]
    nodes: model.Nodes
    instances: Mapping[str, model.Instance]
    patience: float


@dataclasses.dataclass(frozen=True)
class TakenOver:
    """What has come of the takeovers of a pass.

    :ivar taken: what was taken over
    :ivar lost: the nodes of what was not
    :ivar without_row: since when nodes to be taken over have had no row
    :ivar happened: the events for the log
    """

    taken: tuple[Takeover, ...] = ()
    lost: frozenset[str] = frozenset()
    without_row: Mapping[str, float] = dataclasses.field(default_factory=dict)
    happened: tuple[events.Event, ...] = ()


def take_over(world: ports.Ports, request: DecidedTakeovers,
              without_row: Mapping[str, float]) -> TakenOver:
    """Take over what was decided on.

    :param world: the ports
    :param request: what was decided
    :param without_row: since when nodes to be taken over have had no row, by
        what was seen before, in seconds
    """
    wanted = list(_wanted(request))
    apart = {each.node for each in in_pools(request)}
    dead = [each for each in wanted
            if each.is_dead and each.node not in apart]
    failed_over = _fail_over(world, dead, request.patience, without_row)
    followed, happened = _follow(
        world, [each for each in wanted if not each.is_dead])
    taken = (*failed_over.taken, *followed)
    return TakenOver(
        taken,
        frozenset(each.node for each in wanted)
        - {each.node for each in taken} - apart,
        failed_over.without_row, (*failed_over.happened, *happened))


def in_pools(request: DecidedTakeovers) -> list[Takeover]:
    """Name what was decided on that is in pools of dead services.

    :param request: what was decided
    """
    return [each for each in _wanted(request)
            if each.is_dead and _is_in_pool(request, each)]


def _wanted(request: DecidedTakeovers) -> Iterator[Takeover]:
    for node, decision in request.decisions.items():
        instance = request.nodes[node]
        if not decision.takes_instance or instance is None:
            continue
        record = request.instances[instance]
        if record.host is not None:
            yield Takeover(node, instance, record.host, record.task,
                           decision is decisions.Decision.FAIL_OVER)


def _is_in_pool(request: DecidedTakeovers, each: Takeover) -> bool:
    return pools.is_pool(request.instances[each.instance].node)


def _follow(world: ports.Ports, wanted: list[Takeover]
            ) -> tuple[list[Takeover], list[events.Event]]:
    """Take over the instances of services that consent.

    A consent names one taker, so there is no other. The row follows in the
    resource tracker, as that of a free node does.
    """
    taken, happened = [], list[events.Event]()
    for each in wanted:
        try:
            if not world.nova.set_instance_host(each.instance, ports.Expected(
                    each.host, each.node)):
                continue
        except Exception as error:
            # What was taken before it has to be looked after all the same.
            happened.append(events.InstanceNotTaken(
                each.instance, each.host, error))
            continue
        taken.append(each)
        happened.append(events.InstanceTaken(
            each.node, each.instance, each.host, False))
    return taken, happened


def _fail_over(world: ports.Ports, wanted: list[Takeover], patience: float,
               before: Mapping[str, float]) -> TakenOver:
    """Take over the instances of dead services.

    Two services cannot both do so with one: the first step is to delete the
    node's row on condition that it still has the owner that was read. The
    resource tracker brings the very row back in the same pass.
    """
    if not wanted:
        return TakenOver()
    # Another taker deletes the row, and then changes the instance: so the rows
    # are read first.
    rows = world.nova.rows(sorted(each.node for each in wanted))
    now = world.process.now()
    # Without a row, another taker is between its two steps, or has died there:
    # wait, then go on.
    without_row = {each.node: before.get(each.node, now)
                   for each in wanted if each.node not in rows}
    batch = [each for each in wanted if each.node in rows
             or now - without_row[each.node] >= patience]
    batch = list(itertools.islice(batch, MOST))
    found = world.nova.instances(each.instance for each in batch)
    taken, happened = [], list[events.Event]()
    for each in batch:
        try:
            instance = _take(world, each, rows.get(each.node),
                             found.get(each.instance))
            if instance is not None:
                taken.append(dataclasses.replace(each, task=instance.task))
                happened.append(events.InstanceTaken(
                    each.node, each.instance, each.host, True))
        except Exception as error:
            # The next pass sees how far it has come.
            happened.append(events.InstanceNotTaken(
                each.instance, each.host, error))
    return TakenOver(tuple(taken), frozenset(), without_row, tuple(happened))


def _take(world: ports.Ports, wanted: Takeover, row: model.Row | None,
          instance: model.Instance | None) -> model.Instance | None:
    """Delete a row and change an instance, unless another was faster.

    :returns: the instance as it was taken; None if it was not
    """
    # Before the row is deleted: Ironic's word alone is not enough.
    if not _is_as_wanted(wanted, instance):
        return None
    if row is not None and not world.nova.delete_row(wanted.node, row.owner):
        return None
    if _change(world, wanted, instance):
        return instance
    # A user has asked for something meanwhile. The row is gone: with the next
    # look, this service would wait for itself.
    instance = world.nova.instances([wanted.instance]).get(wanted.instance)
    return instance if _change(world, wanted, instance) else None


def _change(world: ports.Ports, wanted: Takeover,
            instance: model.Instance | None) -> bool:
    """Change an instance, if it still is as it was read."""
    return instance is not None and _is_as_wanted(wanted, instance) and (
        world.nova.set_instance_host(wanted.instance, ports.Expected(
            wanted.host, wanted.node, instance.task)))


def _is_as_wanted(wanted: Takeover, instance: model.Instance | None) -> bool:
    """Say whether Nova has an instance where this service takes it from."""
    return instance is not None and (instance.host, instance.node) == (
        wanted.host, wanted.node)


def corrected(plan: planner.Plan, memory: observation.Memory,
              outcome: TakenOver) -> tuple[planner.Plan, observation.Memory]:
    """Return plan and memory corrected where a takeover failed.

    :param plan: what was decided
    :param memory: what is remembered
    :param outcome: what has come of it
    """
    tried = {each.instance for each in outcome.taken}
    lost = decisions.not_taken()
    steps = dict(plan.steps)
    for node in outcome.lost:
        claimed = steps[node].claim
        if claimed is not None and claimed.instance is not None:
            tried.add(claimed.instance)
        steps[node] = planner.Step(lost.decision, lost.why)
    return dataclasses.replace(plan, steps=steps), dataclasses.replace(
        memory, without_row=outcome.without_row).without_instances(tried)
