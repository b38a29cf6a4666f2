# SPDX-License-Identifier: Apache-2.0

"""Remembers on which nodes builds have failed, for all threads.

This is for the pool driver. The rows of its pools pass it on to the other
services, the command, and this service after a restart.
"""

from collections.abc import Callable
import datetime
import threading

from nova_ironic_ring.core.deciding import failures


class FailedBuilds:
    """Remembers where deployments have failed.

    :ivar known: what is known, by the UUID of the node; replaced as a whole
    """

    def __init__(self, time: Callable[[], datetime.datetime]) -> None:
        """Begin without any.

        :param time: tells the time, with time zone
        """
        self.known: failures.Failures = {}
        self._time = time
        self._lock = threading.Lock()

    def go_on(self, said: failures.Failures) -> None:
        """Continue with what this service recorded before it was started.

        :param said: what its rows say
        """
        if said:
            with self._lock:
                self.known = failures.merged(self.known, said)

    def note(self, node: str, wait: float, of_peers: failures.Failures,
             is_good: bool = False) -> failures.Failure:
        """Note that a deployment has failed, or has succeeded.

        :param node: the UUID of the node
        :param wait: seconds for which it comes last after the first failure
        :param of_peers: what the peers tell
        :param is_good: whether it has succeeded
        :returns: what is known of the node now
        """
        now = self._time()
        with self._lock:
            self.known = failures.noted(failures.Known(
                self.known, of_peers), node, now, wait, is_good)
            return self.known.get(
                node, failures.Failure(0 if is_good else 1, now))
