# SPDX-License-Identifier: Apache-2.0

"""Asks Ironic again while a number of nodes stands still."""

from collections.abc import Callable
import dataclasses
from typing import TYPE_CHECKING

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command.telling import snapshot

if TYPE_CHECKING:
    from nova_ironic_ring.command.access import source

#: Looks at Nova, with the same number each, after which Ironic is asked.
LOOKS = 5


class Standstill:
    """Counts nodes that are waited for, with what Ironic has said last.

    While a command waits, it reads Nova and Placement. Meanwhile a node may
    have got a server in a pool, may have changed its kind, or may be gone: the
    command would wait for it in vain.
    """

    def __init__(self, where: 'source.Source') -> None:
        """Begin.

        :param where: what Ironic is asked with
        """
        self._source = where
        #: With what Ironic has said last, and Nova since then.
        self._known: snapshot.Snapshot | None = None
        self._before, self._looks = 0, 0

    def ask(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Ask Ironic now.

        :param seen: what Nova says now
        :returns: the same, with what Ironic says
        :raises nova_ironic_ring.command.access.errors.CommandError: if Ironic
            does not answer
        """
        self._known = seen = self._source.with_nodes(seen)
        return seen

    def count(self, seen: snapshot.Snapshot,
              count: Callable[[snapshot.Snapshot], int]) -> int:
        """Count nodes, and count again with Ironic's word if need be.

        :param seen: what Nova says now
        :param count: counts the nodes that are still waited for
        :returns: their number
        """
        if (known := self._known) is not None:
            seen = snapshot.renewed(known, seen)
            # A record may stay for longer than its node.
            self._known = seen = dataclasses.replace(seen, nodes={
                uuid: node for uuid, node in seen.nodes.items()
                if uuid in known.nodes or uuid not in known.rows})
        left = count(seen)
        self._looks = self._looks + 1 if left and left == self._before else 1
        self._before = left
        if not left or self._looks < LOOKS:
            return left
        self._looks = 0
        try:
            return count(self.ask(seen))
        except errors.CommandError:
            # The next standstill asks again.
            return left
