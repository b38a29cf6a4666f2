# SPDX-License-Identifier: Apache-2.0

"""Sees whether owners still let nodes go that are to be taken."""

from collections.abc import Iterable, Mapping
import dataclasses

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import look as looking
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model


def may_take(this: one_pass.Pass) -> bool:
    """Return whether this service may still take nodes, as was decided.

    :param this: the last look at the nodes
    :returns: False if it is about to end, or if an operator has disabled it
        or forced it down since: then the next pass decides anew
    """
    if this.world.process.is_ending():
        return False
    record = this.world.nova.service(this.current.host)
    return record is not None and not (record.disabled or record.forced_down)


class Rows:
    """The rows of nodes that are to be taken, as they are now."""

    def __init__(self, this: one_pass.Pass, steps: Mapping[str, planner.Step]
                 ) -> None:
        """Read the rows.

        :param this: the last look at the nodes
        :param steps: what was decided on each, by its UUID
        """
        self._nova = this.world.nova
        self._this = this
        self._steps = steps
        self._all: membership.Membership | None = None
        self._newest = this.memory.newest
        reports = [str(said.node) for said in self._newest.values()]
        self._rows = self._nova.rows(sorted(
            {*steps, *_consents(steps.values()), *reports}))
        # By the owner's name.
        self._said: dict[str, model.LastPass | None] = {}

    def of(self, node: str) -> model.Row | None:
        """Return the row of a node, if it has one.

        :param node: the node's UUID
        """
        return self._rows.get(node)

    def allow(self, node: str, claim: planner.Claim) -> bool:
        """Return whether a node may be taken as was decided.

        :param node: the node's UUID
        :param claim: with which claim
        """
        row, basis = self._rows.get(node), claim.basis
        if (row.owner if row else None) != claim.owner:
            return False
        if self._steps[node].decision.forces and (
                self._this.standing.trust is trust.Trust.BLACKOUT):
            # Nobody has learnt since then whether the owner is back.
            return False
        if claim.is_abandoned and row is not None and (
                not self._is_lost(row.owner)):
            # It has come back, and builds on its nodes.
            return False
        if basis is None or basis.holds(node, self._rows):
            return True
        # The owner may have consented anew since, in the row of another node.
        return row is not None and row.taker is None and basis.is_said_in(
            node, self._latest(row.owner))

    def _is_lost(self, owner: str) -> bool:
        """Return whether the owner of a node is lost by now.

        :param owner: its name
        """
        members = self._this.standing.membership
        if model.canonical(owner) not in members.states:
            # One that is disabled is in no ring, and may build on its nodes.
            if self._all is None:
                self._all = looking.at_all_services(self._this).membership
            members = self._all
        return members.is_lost(owner)

    def _latest(self, owner: str) -> model.LastPass | None:
        """Return what an owner says of its passes now.

        All its rows are read only if it has said something since they were
        read last.

        :param owner: its name
        """
        name = model.canonical(owner)
        known = self._newest.get(name)
        if owner not in self._said and (known is None or not self._is_still(
                owner, known)):
            self._newest.pop(name, None)
            known = self._nova.last_passes([owner]).get(name)
            if known is not None:
                self._newest[name] = known
        return self._said.setdefault(owner, known)

    def _is_still(self, owner: str, known: model.LastPass) -> bool:
        """Return whether the row of a report still has it."""
        row = self._rows.get(str(known.node))
        return row is not None and row.owner == owner and (
            row.last_pass is not None
            and dataclasses.replace(row.last_pass, node=known.node) == known)


def _consents(steps: Iterable[planner.Step]) -> Iterable[str]:
    """Return the nodes in whose rows the owners consent."""
    return (step.claim.basis.node for step in steps
            if step.claim is not None and step.claim.basis is not None)
