# SPDX-License-Identifier: Apache-2.0

"""Runs jobs in a thread of their own, one after the other.

It is for what a pass must not wait for, such as a notification. What the jobs
are is not said here.
"""

from collections.abc import Callable
import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_POLL = 0.01


class Background:
    """A thread, for as long as there is something to do."""

    def __init__(self) -> None:
        """Begin with nothing to do."""
        self._lock = threading.Lock()
        self._calls: list[Callable[[], object]] = []
        self._is_busy = False

    def do(self, call: Callable[[], object]) -> None:
        """Have something done, and return at once.

        :param call: does it; an error is logged
        """
        with self._lock:
            self._calls.append(call)
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
                calls, self._calls = self._calls, []
            for call in calls:
                try:
                    call()
                except Exception:
                    LOG.exception('Work in the background has failed.')
