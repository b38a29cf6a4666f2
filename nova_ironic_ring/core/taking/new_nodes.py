# SPDX-License-Identifier: Apache-2.0

"""Knows of new nodes whether something can be allocated of them.

A new node may have belonged to a service that was deleted with the node's
record, so builds may be left on it. When nova-computes start for the first
time, all nodes are new: one request to Placement shows that there is no
provider of them, and so no build.
"""

from collections.abc import Container, Iterable
from typing import Final

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.values import ports

#: The number of new nodes in a pass for which all providers are listed: for
#: fewer of them, it is less to ask for each.
MANY = 20
#: Seconds for which a listing of the providers is used.
LONGEST = 60.0


class NewNodes:
    """The new nodes that a pass is to record."""

    def __init__(self, steps: Iterable[planner.Step] = ()) -> None:
        """Count them.

        :param steps: what the pass has decided
        """
        self._are_many = MANY <= sum(
            step.decision is decisions.Decision.CREATE for step in steps)
        # None if it is not known.
        self._providers: Container[str] | None = None
        self._next = float('-inf')

    def may_have_builds(self, world: ports.Ports, node: str) -> bool:
        """Return whether something may be allocated of a node without record.

        Call it after it is known that the node has no record. A service that
        was faster would have made a record before a provider.

        :param world: the ports
        :param node: the node's UUID
        """
        if not self._are_many:
            return True
        now = world.process.now()
        # Nova may have several threads that update nodes.
        known = self._providers
        if now >= self._next:
            self._next = now + LONGEST
            try:
                known = world.placement.known()
            except Exception:
                # Each node is asked for, which also tells of the failure.
                self._are_many, known = False, None
            self._providers = known
        return known is None or node in known


#: So few of them that Placement is asked for each.
FEW: Final = NewNodes()
