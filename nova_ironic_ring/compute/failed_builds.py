# SPDX-License-Identifier: Apache-2.0

"""Remembers on which nodes builds have failed, for all threads.

This is for the pool driver, in this process; the rows of its pools tell the
others, and the command.
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

    def note(self, node: str, wait: float) -> failures.Failure:
        """Note that a deployment has failed.

        :param node: the UUID of the node
        :param wait: seconds for which it comes last after the first failure
        :returns: what is known of the node now
        """
        now = self._time()
        with self._lock:
            self.known = failures.noted(self.known, node, now, wait)
            return self.known.get(node, failures.Failure(1, now))

    def forget(self, node: str) -> None:
        """Forget a node, for a deployment has succeeded there.

        :param node: the UUID of the node
        """
        with self._lock:
            self.known = {each: failure for each, failure
                          in self.known.items() if each != node}
