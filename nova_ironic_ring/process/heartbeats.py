# SPDX-License-Identifier: Apache-2.0

"""The heartbeats of this service, timed where they are written."""

import collections
from collections.abc import Callable
import time

# So many long gaps, each shorter than the one before, are enough.
_GAPS = 100


class OwnHeartbeats:
    """Knows when heartbeats succeeded, and can end them.

    The database cannot tell: it has the last one alone, and counts those that
    failed along with the next that did not.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic,
                 written: Callable[[], object] = lambda: None) -> None:
        """Begin without a heartbeat.

        :param clock: returns the time, in seconds, from any beginning
        :param written: called after each heartbeat that has succeeded
        """
        self._clock = clock
        self._written = written
        self._last: float | None = None
        #: When each gap has ended, and how long it was, in seconds; none that
        #: is not longer than a later one.
        self._gaps: collections.deque[tuple[float, float]] = (
            collections.deque(maxlen=_GAPS))
        #: Whether heartbeats have ended.
        self.is_ended = False

    def end(self) -> None:
        """End the heartbeats, without waiting or locking."""
        self.is_ended = True

    def beat(self, write: Callable[[], object]) -> None:
        """Write a heartbeat, unless they have ended.

        :param write: writes it; its exceptions are passed on
        """
        if self.is_ended:
            return
        write()
        now = self._clock()
        if self._last is not None:
            gap = now - self._last
            while self._gaps and self._gaps[-1][1] <= gap:
                self._gaps.pop()
            self._gaps.append((now, gap))
        self._last = now
        self._written()

    def age(self) -> float | None:
        """Return how long ago the last heartbeat succeeded.

        :returns: seconds; None before the first one
        """
        return None if self._last is None else self._clock() - self._last

    def longest_gap(self, since: float) -> float:
        """Return the longest time without a heartbeat, as far as is known.

        :param since: the time from which on, in seconds: the gap counts that
            had begun before
        :returns: seconds; 0 before the first heartbeat
        """
        if self._last is None:
            return 0.0
        return max([self._clock() - self._last, *(
            gap for ended, gap in self._gaps.copy() if ended > since)])
