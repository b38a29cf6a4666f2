# SPDX-License-Identifier: Apache-2.0

"""Runs jobs in a thread of their own, one after the other.

It is for what a pass must not wait for, such as a notification. What the jobs
are is not said here.
"""

import collections
from collections.abc import Callable
import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_POLL = 0.01


class Background:
    """A thread, for as long as there is something to do."""

    def __init__(self, what: str = 'jobs', most: int | None = None) -> None:
        """Begin with nothing to do.

        :param what: what the jobs are, in the plural, for the log
        :param most: how many may wait; those beyond are dropped, and the log
            says how many. None for no limit
        """
        self._lock = threading.Lock()
        self._what = what
        self._most = most
        self._calls: collections.deque[Callable[[], object]] = (
            collections.deque())
        self._dropped = 0
        self._is_busy = False

    def do(self, call: Callable[[], object]) -> None:
        """Have something done, and return at once.

        :param call: does it; an error is logged
        """
        with self._lock:
            if self._most is None or len(self._calls) < self._most:
                self._calls.append(call)
            else:
                if not self._dropped:
                    # When those that wait are done.
                    self._calls.append(self._tell_dropped)
                self._dropped += 1
            is_idle, self._is_busy = not self._is_busy, True
        if not is_idle:
            return
        try:
            # It does not keep the process from ending.
            threading.Thread(target=self._run, daemon=True).start()
        except RuntimeError as error:
            # The next call has all of them done.
            self._is_busy = False
            LOG.error('Cannot start a background thread; its work is done '
                      'later: %s', error)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is left to do.

        :param seconds: how long at most
        :returns: whether nothing is left
        """
        deadline = time.monotonic() + seconds
        while self._is_busy and time.monotonic() < deadline:
            time.sleep(_POLL)
        return not self._is_busy

    def _run(self) -> None:
        """Do all that is left."""
        while True:
            with self._lock:
                if not self._calls:
                    self._is_busy = False
                    return
                call = self._calls.popleft()
            try:
                call()
            except Exception:
                LOG.exception('Work in the background has failed.')

    def _tell_dropped(self) -> None:
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        LOG.warning('%(count)d %(what)s were dropped, because %(most)d '
                    'waited in the background.', {
                        'count': dropped, 'what': self._what,
                        'most': self._most})
