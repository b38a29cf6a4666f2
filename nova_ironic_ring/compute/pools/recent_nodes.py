# SPDX-License-Identifier: Apache-2.0

"""Remembers which nodes were tried or released since the last pass.

This is for the pool driver. A pass counts the nodes that Ironic listed when it
began; builds and deletes go on meanwhile.
"""

from collections.abc import Iterable, Iterator
import threading


class RecentNodes:
    """Remembers which nodes were tried and released, for all threads.

    A pass may not have read what happens while it runs. So such a node is
    remembered until the next pass has ended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pass = 0
        #: In which pass a node was tried, and released, by the node's UUID.
        self._tried: dict[str, int] = {}
        self._released: dict[str, tuple[str, int]] = {}

    def begin(self) -> None:
        """Begin a pass, before anything is read."""
        with self._lock:
            self._pass += 1

    def end(self) -> None:
        """End a pass: forget what its reads have shown."""
        with self._lock:
            self._tried = {node: then for node, then in self._tried.items()
                           if then >= self._pass}
            self._released = {
                node: (pool, then) for node, (pool, then)
                in self._released.items() if then >= self._pass}

    def untried(self, nodes: Iterable[str]) -> Iterator[str]:
        """Iterate over nodes; each goes to one thread only.

        :param nodes: UUIDs, in the order to try them
        """
        for node in nodes:
            with self._lock:
                if node in self._tried:
                    continue
                self._tried[node] = self._pass
            yield node

    def release(self, node: str, pool: str) -> None:
        """Note that a node has lost its instance.

        :param node: the node's UUID
        :param pool: the name of the pool that the instance was in
        """
        with self._lock:
            self._released[node] = (pool, self._pass)

    def forget(self, nodes: Iterable[str]) -> None:
        """Forget nodes that Ironic has shown to be free since.

        :param nodes: their UUIDs
        """
        with self._lock:
            for node in nodes:
                self._tried.pop(node, None)
                self._released.pop(node, None)

    def all_released(self) -> frozenset[str]:
        """Return the UUIDs of the nodes that have lost an instance."""
        with self._lock:
            return frozenset(self._released)

    def released(self, pool: str) -> frozenset[str]:
        """Name the nodes that have lost an instance of a pool.

        :param pool: the name of the pool
        """
        with self._lock:
            return frozenset(node for node, (of, _) in self._released.items()
                             if of == pool)
