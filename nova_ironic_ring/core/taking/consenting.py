# SPDX-License-Identifier: Apache-2.0

"""Sees whether owners still let nodes go that are to be taken."""

from collections.abc import Mapping

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.values import model


def may_take(this: one_pass.Pass) -> bool:
    """Return whether this service may still take nodes, as was decided.

    :param this: the last look at the nodes
    :returns: False if it is about to end, its view of the others is not valid
        any more, or an operator has disabled it or forced it down since: then
        the next pass decides anew
    """
    if this.world.process.is_ending() or not this.is_valid:
        return False
    record = this.world.nova.service(this.current.host)
    return record is not None and not (record.disabled or record.forced_down)


class Rows:
    """The rows of nodes that are to be taken, as they are now."""

    def __init__(self, this: one_pass.Pass, steps: Mapping[str, planner.Step]
                 ) -> None:
        """Read the rows, and what the owners say that consent.

        :param this: the last look at the nodes
        :param steps: what was decided on each, by its UUID
        """
        nova = this.world.nova
        self._this = this
        self._rows = nova.rows(sorted(steps))
        owners = sorted({
            str(step.claim.owner) for step in steps.values()
            if step.claim is not None and step.claim.ring is not None})
        self._members = nova.members(owners) if owners else {}

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
        row = self._rows.get(node)
        if (row.owner if row else None) != claim.owner:
            return False
        if claim.is_abandoned and row is not None and (
                not self._this.view.is_lost(row.owner)):
            # It has come back, and builds on its nodes.
            return False
        if claim.ring is None:
            return True
        return row is not None and self._members.get(
            row.owner_name, model.Member()).consents(
                claim.ring, self._this.current.scope)
