# SPDX-License-Identifier: Apache-2.0

"""The consumers of pools, as read from Placement."""

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.values import pools


class Consumers:
    """Reads the consumers of pools from Placement, once for each in a pass."""

    def __init__(self, this: one_pass.Pass) -> None:
        """Begin without an answer.

        :param this: the pass
        """
        self._this = this
        self._known: dict[str, frozenset[str] | None] = {}

    def of(self, pool: str) -> frozenset[str] | None:
        """Return the consumers of a pool.

        :param pool: its name
        :returns: their UUIDs; None if Placement does not answer
        """
        if pool not in self._known:
            self._known[pool] = None
            # Nova and Ironic have answered: the pass goes on.
            with self._this.going_on(events.AllocationsUnknown, pool):
                self._known[pool] = self._this.world.placement.consumers(
                    pools.uuid_of(pool))
        return self._known[pool]
