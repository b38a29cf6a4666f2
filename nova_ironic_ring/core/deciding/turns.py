# SPDX-License-Identifier: Apache-2.0

"""When the resource tracker updates the nodes that have not changed.

Each node has its turn once in ``[ironic_ring] full_update_interval``. The
turns are spread by the UUIDs of the nodes, so that no pass has a peak.
"""

from collections.abc import Collection
import hashlib

# The fraction of its time that a service spends on updates of nodes that have
# only their turn: with thousands of nodes, others would wait for these.
_SHARE = 0.25
# The weight of one update in the mean of how long they take.
_WEIGHT = 0.02


class Turns:
    """The turns of nodes to be updated, and the updates that have failed."""

    def __init__(self, now: float) -> None:
        """Begin without an update.

        :param now: the present time of a monotonic clock, in seconds
        """
        #: When the process began, in seconds.
        self.began = now
        #: When each node was updated last, in seconds.
        self._at: dict[str, float] = {}
        #: The nodes whose last update has failed.
        self._failed: set[str] = set()
        #: How long such an update takes on average, in seconds.
        self._cost = 0.0
        #: How many times longer than configured the interval is: a power of
        #: two, so that each turn of a longer interval is one of a shorter.
        self._factor = 1
        #: When the interval has become shorter, in seconds: turns before that
        #: have not been missed.
        self._shortened = now

    def updated(self, node: str, now: float) -> None:
        """Note that the tracker has updated a node.

        :param node: the node's UUID
        :param now: when, in seconds
        """
        self._at[node] = now
        self._failed.discard(node)

    def took(self, seconds: float) -> None:
        """Note how long the update of a node took that had only its turn.

        :param seconds: how much longer the pass takes for it
        """
        self._cost += _WEIGHT * (seconds - self._cost)

    def pace(self, count: int, interval: float, now: float) -> None:
        """Choose how much longer the interval has to be for all nodes.

        :param count: how many nodes have turns
        :param interval: how often each node is to be updated, in seconds
        :param now: the present time, in seconds
        """
        needed = count * self._cost / (_SHARE * interval) if interval else 1
        while needed > self._factor:
            self._factor *= 2
        while self._factor > 1 and needed < self._factor / 4:
            self._factor //= 2
            self._shortened = now

    def failed(self, *nodes: str) -> None:
        """Note that the tracker could not update nodes, or has to do so again.

        :param nodes: their UUIDs
        """
        self._failed.update(nodes)

    def keep(self, nodes: Collection[str]) -> None:
        """Forget all nodes but some.

        :param nodes: the UUIDs of those
        """
        # Others may add to them meanwhile.
        kept = set(nodes)
        for node in self._at.copy().keys() - kept:
            self._at.pop(node, None)
        for node in self._failed - kept:
            self._failed.discard(node)

    def has(self, node: str, now: float, interval: float) -> bool:
        """Return whether a node is to be updated, changed or not.

        The turns of the nodes are spread over the interval by their UUIDs. The
        interval is longer if all updates take too much time.

        :param node: the node's UUID
        :param now: until when turns count, in seconds
        :param interval: how often each node is updated, in seconds; 0 for in
            each pass
        """
        if interval <= 0 or node in self._failed:
            return True
        last = max(self._at.get(node, self.began), self._shortened)
        return self._turn(node, last / interval) < self._turn(
            node, now / interval)

    def _turn(self, node: str, intervals: float) -> int:
        """Count the turns of a node.

        :param node: the node's UUID
        :param intervals: the time, in intervals as configured
        """
        share, phase = _places(node)
        # A monotonic clock may be negative: int() alone would count two
        # intervals as one around zero.
        return (int((intervals + share) // 1) + phase) // self._factor

    def oldest(self, nodes: Collection[str], now: float) -> float:
        """Return how long ago the oldest update of a node was.

        :param nodes: the UUIDs of the nodes
        :param now: the present time, in seconds
        :returns: seconds; since the start of those that were not updated yet
        """
        return now - min((self._at.get(node, self.began) for node in nodes),
                         default=now)


def _places(node: str) -> tuple[float, int]:
    """Return where a node's turn is.

    :returns: in which part of an interval, from 0 to 1, and a number of
        intervals by which longer ones are spread
    """
    digest = hashlib.md5(node.encode(), usedforsecurity=False).digest()
    return (int.from_bytes(digest[:4], 'big') / 2 ** 32,
            int.from_bytes(digest[4:8], 'big'))
