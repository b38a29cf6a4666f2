# SPDX-License-Identifier: Apache-2.0

"""Asks Ironic again while a number of nodes stands still."""

from collections.abc import Callable, Mapping
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
        self._nodes: Mapping[str, snapshot.Node] | None = None
        self._before, self._looks = 0, 0

    def count(self, seen: snapshot.Snapshot,
              count: Callable[[snapshot.Snapshot], int]) -> int:
        """Count nodes, and count again with Ironic's word if need be.

        :param seen: what Nova says now
        :param count: counts the nodes that are still waited for
        :returns: their number
        """
        if self._nodes is not None:
            seen = dataclasses.replace(seen, nodes=self._nodes)
        left = count(seen)
        self._looks = self._looks + 1 if left and left == self._before else 1
        self._before = left
        if not left or self._looks < LOOKS:
            return left
        self._looks = 0
        try:
            seen = self._source.with_nodes(seen)
        except errors.CommandError:
            # The next standstill asks again.
            return left
        self._nodes = seen.nodes
        return count(seen)
