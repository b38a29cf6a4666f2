# SPDX-License-Identifier: Apache-2.0

"""The plan of a pass with pools: which nodes count, and what is taken.

:func:`decide` has no state: the same observation, memory and settings give the
same plan. Each node is decided once. A node counts whatever the trust, because
a pool without nodes would be deleted; nothing is taken without full trust.
"""

from collections.abc import Mapping
import dataclasses
import functools

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings


@dataclasses.dataclass(frozen=True)
class Seen:
    """What was read.

    :ivar nodes: what Ironic says of its nodes, by UUID
    :ivar mine: the UUIDs of this service's instances
    :ivar places: their compute nodes
    :ivar of_others: the instances of others on nodes that are for this
        service, by UUID
    :ivar consenting: the names of the services that live, and that let this
        one take their instances
    :ivar rows: the rows of this service, of nodes and of pools, by UUID
    :ivar other_rows: those that other services have of free nodes that are for
        this service, and of nodes with its instances, by the node's UUID
    :ivar narrowed: the nodes that count for services which are limited to some
        of this one's
    :ivar unasked: the nodes that Ironic is no longer asked for
    """

    nodes: Mapping[str, pools.Node]
    mine: frozenset[str]
    places: Mapping[str, str | None]
    of_others: Mapping[str, model.Instance]
    consenting: frozenset[str] = frozenset()
    rows: Mapping[str, model.Row] = dataclasses.field(default_factory=dict)
    other_rows: Mapping[str, model.Row] = dataclasses.field(
        default_factory=dict)
    narrowed: frozenset[str] = frozenset()
    unasked: frozenset[str] = frozenset()

    @property
    def recorded(self) -> frozenset[str]:
        """The names of the pools that Nova has for this service."""
        return frozenset(pools.recorded(self.rows))


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """An instance that is to come into a pool of this service.

    :ivar instance: its UUID
    :ivar node: the UUID of the node that it is on
    :ivar host: the name of the service that it belongs to: a dead one, one
        that consents, or this one
    :ivar is_own: whether it is this one
    :ivar consents: whether it is one that lives and consents
    """

    instance: str
    node: str
    host: str
    is_own: bool = False
    consents: bool = False

    @property
    def has_to_be_idle(self) -> bool:
        """Whether the instance is left alone while it has a task.

        The task continues with the service and the node that it has read.
        """
        return self.is_own or self.consents


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """What to do with one node.

    :ivar counts: the name of the pool of this service in which it counts; None
        if it counts in none
    :ivar is_used: whether an instance of this service is there, or comes
    :ivar takes: the instance on it, if it is to come into that pool
    """

    counts: str | None = None
    is_used: bool = False
    takes: Wanted | None = None


_NOTHING = Step()


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to do in a pass.

    :ivar steps: by the node's UUID
    :ivar claims: what was decided on the free nodes that are for this service,
        and of which others have a record; None if that is left to a later pass
    """

    steps: Mapping[str, Step]
    claims: planner.Plan | None = None

    @property
    def counts(self) -> dict[str, str]:
        """The pool of each node that counts, by the node's UUID."""
        return {node: step.counts for node, step in self.steps.items()
                if step.counts is not None}

    @property
    def wanted(self) -> dict[str, list[Wanted]]:
        """What is to be taken over, by the name of the pool."""
        found: dict[str, list[Wanted]] = {}
        for step in self.steps.values():
            if step.counts is not None and step.takes is not None:
                found.setdefault(step.counts, []).append(step.takes)
        return found

    def having(self, steps: Mapping[str, Step]) -> 'Plan':
        """Return the plan with other steps for some nodes.

        :param steps: these steps, by the node's UUID
        """
        return dataclasses.replace(self, steps={**self.steps, **steps})


def decide(seen: Seen, before: observation.Memory,
           current: settings.Settings) -> Plan:
    """Plan a pass.

    :param seen: what this service sees
    :param before: what it remembers
    :param current: its settings
    """
    found = steps(seen, before.view, current)
    owner = before.view.ring.owner
    free = [node for node, said in seen.nodes.items()
            if said.instance is None and node not in seen.narrowed
            and owner(node) == current.me]
    recorded: model.Nodes = {
        node: None for node in free if node in seen.other_rows}
    claims = planner.decide(observation.Observation(
        before.watch.at, before.view, recorded,
        {**seen.rows, **seen.other_rows}), before, current)
    return Plan({**found, **{
        node: _NOTHING for node, step in claims.steps.items()
        if not step.decision.lists}}, claims)


def steps(seen: Seen, known: view.View, current: settings.Settings
          ) -> dict[str, Step]:
    """Return the step for each node.

    :param seen: what this service sees
    :param known: what it knows of all services
    :param current: its settings
    """
    planner = _Planner(seen, known, current)
    return {uuid: planner.step(uuid, node)
            for uuid, node in seen.nodes.items()}


class _Planner:
    """One call of :func:`steps`: what its parts share, and nothing more."""

    def __init__(self, seen: Seen, known: view.View,
                 current: settings.Settings) -> None:
        self.seen = seen
        self.known = known
        self.owner = known.ring.owner
        self.current = current
        self._name = functools.cache(
            functools.partial(pools.name, current.host))

    def step(self, uuid: str, node: pools.Node) -> Step:
        """Return the step for a node.

        A node with an instance counts for the service that has the instance.
        If no service has it, the node counts for the service that the ring
        maps it to, even before that service takes the instance over.
        """
        pool = None if node.kind is None else self._name(node.kind)
        if node.instance in self.seen.mine:
            return self._own(uuid, str(node.instance), pool)
        if pool is None or self.owner(uuid) != self.current.me:
            return _NOTHING
        known = self.seen.of_others.get(str(node.instance))
        if known is None or known.host is None:
            return _NOTHING if uuid in self.seen.narrowed else Step(pool)
        decision = self._decide(uuid, known)
        return Step(pool, True, Wanted(
            str(node.instance), uuid, known.host,
            consents=decision is decisions.Decision.TAKE_INSTANCE)
        ) if decision.takes_instance else _NOTHING

    def _own(self, uuid: str, instance: str, pool: str | None) -> Step:
        """Return the step for a node with an instance of this service."""
        place = self.seen.places.get(instance)
        if place is not None and pools.is_of(self.current.host, place):
            return Step(place, True)
        if place != uuid or pool is None:
            return _NOTHING
        # The node still has its own record, and comes into a pool.
        return Step(pool, True, Wanted(
            instance, uuid, self.current.host, True))

    def _decide(self, uuid: str, known: model.Instance) -> decisions.Decision:
        """Decide on the instance of another, by the table for nodes."""
        host = str(known.host_name)
        return decisions.decide_on_instance(
            self.current.me, decisions.Occupied(
                self.owner(uuid), False, host, None,
                self.known.fails_over(host, self.current),
                known.host in self.seen.consenting and known.is_idle,
                not pools.has(known, uuid))).decision
