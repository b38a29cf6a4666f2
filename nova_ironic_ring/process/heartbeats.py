# SPDX-License-Identifier: Apache-2.0

"""The heartbeats of this service, timed where they are written."""

from collections.abc import Callable
import time


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
        self._longest = 0.0
        self._reported = 0.0
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
            self._longest = max(self._longest, now - self._last)
        self._last = now
        self._written()

    def age(self) -> float | None:
        """Return how long ago the last heartbeat succeeded.

        :returns: seconds; None before the first one
        """
        return None if self._last is None else self._clock() - self._last

    def longest_gap(self) -> float:
        """Return the longest time without a heartbeat.

        Of the gaps that were not reported yet, and of those that were since
        the last :meth:`forget_reported`.

        :returns: seconds; 0 before the first heartbeat
        """
        if self._last is None:
            return 0.0
        self._reported = max(
            self._reported, self._longest, self._clock() - self._last)
        self._longest = 0.0
        return self._reported

    def forget_reported(self) -> None:
        """Forget the gaps that were reported: whoever asked remembers them."""
        self._reported = 0.0
