# SPDX-License-Identifier: Apache-2.0

"""The plan of a pass: a step for each node, from what a service sees.

Only :func:`decide` uses the decision tables. It has no state: the same
observation, memory and settings give the same plan.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings

Decision = decisions.Decision


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """What must still be true when Nova's tracker takes a listed node.

    :ivar instance: the UUID of the instance that has to belong to this
        service; None for a free node
    :ivar host: the name of the dead service that the instance has to belong to
        instead, before it is taken over; None for this service
    :ivar checks_owner: whether the owner of a free node matters
    :ivar owner: the name of the owner that it has to have; None for no row
    :ivar is_abandoned: whether that owner is lost, so that builds on their way
        to it have to be ended
    :ivar is_handed_over: whether that owner is alive, so that no build may be
        on its way to it
    :ivar ring: the fingerprint of the ring that the owner must still
        acknowledge; None if the node is not taken with its consent
    """

    instance: str | None = None
    checks_owner: bool = False
    owner: str | None = None
    is_abandoned: bool = False
    is_handed_over: bool = False
    host: str | None = None
    ring: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """What to do with one node.

    :ivar decision: the decision
    :ivar why: the reason, as the end of the sentence "the node is ..."
    :ivar offer: the canonical name of the service that may take the node; None
        if nobody may
    :ivar claim: what must still be true when the tracker takes the node; None
        if the node is not listed
    """

    decision: Decision
    why: str
    offer: str | None = None
    claim: Claim | None = None


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to do in a pass.

    :ivar steps: by the node's UUID
    :ivar happened: the events for the log
    :ivar waits: the nodes that are waited for
    """

    steps: Mapping[str, Step] = dataclasses.field(default_factory=dict)
    happened: Sequence[events.Event] = ()
    waits: Mapping[str, observation.Wait] = dataclasses.field(
        default_factory=dict)

    def having(self, steps: Mapping[str, Step]) -> 'Plan':
        """Return the plan with other steps for some nodes.

        :param steps: these steps, by the node's UUID
        """
        return dataclasses.replace(self, steps={**self.steps, **steps})

    def note_in(self, memory: observation.Memory) -> None:
        """Store the results of a plan in the memory.

        :param memory: what is remembered, which is changed
        """
        memory.waits, memory.taking = self.waits, frozenset()
        if memory.view.is_trusted:
            memory.offered = {
                node: step.offer for node, step in self.steps.items()
                if step.offer}


@dataclasses.dataclass(frozen=True)
class Needs:
    """What the decisions depend on beyond what every pass reads.

    :ivar rows: the nodes whose rows are to be read: those that this service
        should own and does not
    :ivar of_others: the node of each instance of others that is on a node for
        this service
    """

    rows: Sequence[str] = ()
    of_others: Mapping[str, str] = dataclasses.field(default_factory=dict)


def needs(seen: observation.Observation, current: settings.Settings) -> Needs:
    """Return what to read beyond what every pass reads.

    :param seen: what was read so far
    :param current: this service's settings
    """
    if not current.cooperative:
        return Needs()
    me, owner = current.me, seen.view.ring.owner
    mine, rows = seen.instances.mine, seen.rows
    wanted, of_others = [], {}
    for node, instance in seen.nodes.items():
        if owner(node) != me:
            continue
        if instance is not None and instance not in mine:
            of_others[instance] = node
        if node not in rows and (
                node not in seen.narrowed if instance is None
                else current.follows):
            wanted.append(node)
    return Needs(wanted, of_others)


def decide(seen: observation.Observation, before: observation.Memory,
           current: settings.Settings) -> Plan:
    """Plan a pass.

    :param seen: what this service sees
    :param before: what it remembers
    :param current: its settings
    """
    if not current.cooperative:
        return _decide_at_once(seen, current)
    return _Planner(seen, before, current).decide()


def _decide_at_once(seen: observation.Observation,
                    current: settings.Settings) -> Plan:
    """Plan a pass by the rule of Nova's own driver."""
    me, owner = current.me, seen.view.ring.owner
    steps = {}
    for node, instance in seen.nodes.items():
        verdict = (
            decisions.decide_at_once(me, owner(node)) if instance is None
            else decisions.decide_on_instance(me, decisions.Occupied(
                None, instance in seen.instances.mine)))
        steps[node] = Step(
            verdict.decision, verdict.why,
            claim=Claim(instance) if verdict.decision.lists else None)
    return Plan(steps)


def _unlisted(verdict: decisions.Verdict) -> Step:
    return Step(verdict.decision, verdict.why)


class _Planner:
    """One call of :func:`decide`: what its parts share, and nothing more."""

    def __init__(self, seen: observation.Observation,
                 before: observation.Memory,
                 current: settings.Settings) -> None:
        self.seen = seen
        self.before = before
        self.current = current
        self.me = current.me
        self.mine = frozenset(node for node, row in seen.rows.items()
                              if row.owner_name == self.me)
        self.ring = seen.view.ring.fingerprint(current.scope)
        self.is_known = before.own_work.is_known
        self.known = seen.view
        self.is_alone = seen.view.is_alone(current.me)
        self.waits: dict[str, observation.Wait] = {}
        # Most nodes are in the same circumstances as many others.
        self._without_row = functools.cache(self._decide_without_row)
        self._unknown = functools.cache(self._decide_on_unknown)
        self._unlisted = functools.cache(_unlisted)

    def decide(self) -> Plan:
        """Plan the pass."""
        verdicts = {
            node: self._free(node) if instance is None
            else self._occupied(node, instance)
            for node, instance in self.seen.nodes.items()}
        if not self.is_known and not self.is_alone:
            verdicts = self._newcomer(verdicts)
        steps = {node: self._step(node, verdict)
                 for node, verdict in verdicts.items()}
        return Plan(steps, self._events(steps), self.waits)

    # The circumstances of a node, for the tables

    def _free(self, node: str) -> decisions.Verdict:
        row = self.seen.rows.get(node)
        desired = self.known.ring.owner(node)
        is_narrowed = node in self.seen.narrowed
        if row is None:
            return self._without_row(desired, is_narrowed)
        is_of_another = node not in self.mine
        wait = self._wait(node, row) if is_of_another else None
        said = self._said(row.owner)
        verdict = decisions.decide(self.me, decisions.Free(
            desired, row, self._state(row.owner, said),
            self._trust_in_free_nodes, None if said is None
            else said.consents(self.ring, self.current.scope),
            wait is not None and node in self.before.waits and (
                self.seen.at - wait.since >= self.current.handover_timeout),
            self.known.is_ending, is_narrowed))
        # Waits count only while the peers know this service, and trust is
        # full.
        if wait is not None and verdict.decision is Decision.WAIT and (
                self.is_known and self.known.trust is trust.Trust.FULL):
            self.waits[node] = wait
        return verdict

    def _said(self, host: str) -> model.Member | None:
        """Return what a service says; a lost one consents to nothing."""
        return None if self.known.is_lost(host) else self.known.said(host)

    def _state(self, owner: str, said: model.Member | None
               ) -> membership.State:
        """Return what the owner of a node is to the ring of that node."""
        found = self.known.state(owner)
        scope = None if said is None else said.scope
        if scope is not None and found.gives and (
                not self.current.scope.covers(scope)
                or found is membership.State.DISABLED
                and not self.current.scope.is_same(scope)):
            # A list of peers may name it all the same.
            return membership.State.OTHER_SCOPE
        return found

    @property
    def _trust_in_free_nodes(self) -> trust.Trust:
        # There is no other service to disturb.
        return trust.Trust.FULL if self.is_alone else self.known.trust

    def _decide_without_row(self, desired: str | None, is_narrowed: bool
                            ) -> decisions.Verdict:
        return decisions.decide(self.me, decisions.Free(
            desired, trust=self._trust_in_free_nodes,
            is_ending=self.known.is_ending, is_narrowed=is_narrowed))

    def _occupied(self, node: str, instance: str) -> decisions.Verdict:
        known = self.seen.instances
        desired = self.known.ring.owner(node)
        is_mine = instance in known.mine
        record = None if is_mine else known.of_others.get(instance)
        if not is_mine and record is None:
            return self._unknown(desired)
        host = record.host_name if record is not None else None
        return decisions.decide_on_instance(self.me, decisions.Occupied(
            desired, is_mine, host, self.seen.rows.get(node),
            host is not None
            and self.known.fails_over(host, self.current),
            self._follows(node, host),
            record is not None and (
                not pools.has(record, node) or host in known.other_drivers),
            self.known.trust, self.known.is_ending))

    def _follows(self, node: str, host: str | None) -> bool:
        """Return whether an instance goes with the ring, once it is idle.

        :param node: its node
        :param host: the service that lets this one take it; None if it is this
            service's
        """
        if not self.current.follows or host is None:
            return self.current.follows
        row, said = self.seen.rows.get(node), self._said(host)
        return row is not None and said is not None and said.follows and (
            row.owner_name == host
            and said.consents(self.ring, self.current.scope))

    def _decide_on_unknown(self, desired: str | None) -> decisions.Verdict:
        """Decide on a node whose instance nobody had to read."""
        return decisions.decide_on_instance(self.me, decisions.Occupied(
            desired, False, trust=self.known.trust,
            is_ending=self.known.is_ending))

    def _wait(self, node: str, row: model.Row) -> observation.Wait:
        """Return since when this service waits for a node."""
        before = self.before.waits.get(node)
        # Its owner may have gone without this service.
        if before is None or before.owner != row.owner or (
                self.before.own_work.is_failing):
            return observation.Wait(row.owner, self.seen.at)
        return before

    # A newcomer

    def _newcomer(self, verdicts: dict[str, decisions.Verdict]
                  ) -> dict[str, decisions.Verdict]:
        """Let a newcomer take nothing.

        Without a member record, its peers do not see it, and neither do other
        newcomers, which would take the same nodes. A newcomer from another
        scope first says its new scope.
        """
        if self.known.trust is not trust.Trust.FULL or (
                self.known.is_ending) or (
                self.known.state(self.me)
                is not membership.State.MEMBER):
            return verdicts
        return {node: decisions.hold_back(verdict)
                for node, verdict in verdicts.items()}

    # The steps

    def _step(self, node: str, verdict: decisions.Verdict) -> Step:
        decision = verdict.decision
        if not decision.lists:
            return self._unlisted(verdict)
        return Step(decision, verdict.why, self.known.ring.owner(node)
                    if decision.offers else None, self._claim(node, decision))

    def _claim(self, node: str, decision: Decision) -> Claim:
        instance = self.seen.nodes[node]
        if instance is not None:
            return Claim(instance)
        row = self.seen.rows.get(node)
        # A node without a row may have belonged to a service that was deleted
        # with the row.
        is_abandoned = decision.takes and (
            row is None or self.known.is_lost(row.owner))
        return Claim(None, True, row.owner if row else None, is_abandoned,
                     decision.takes and not is_abandoned,
                     ring=self.ring if decision is Decision.TAKE_OFFERED
                     else None)

    def _events(self, steps: Mapping[str, Step]) -> list[events.Event]:
        found: list[events.Event] = []
        for node, step in steps.items():
            row = self.seen.rows.get(node)
            if step.decision.takes and row is not None:
                if step.decision is not Decision.TAKE_OFFERED or (
                        node not in self.before.taking):
                    found.append(events.NodeTaken(
                        node, row.owner, step.decision))
            elif step.offer and row is not None and (
                    self.known.trust is trust.Trust.FULL
                    and step.offer != self.before.offered.get(node)):
                found.append(events.NodeOffered(node, step.offer))
        return found
