# SPDX-License-Identifier: Apache-2.0

"""Takes what has been found for this service between two passes.

It has a thread of its own: free nodes are taken with Placement's word, and the
takeover of instances waits for Placement no longer than it has to.
"""

from collections.abc import Callable, Iterable
import threading
import time

from oslo_log import log as logging

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import looks
from nova_ironic_ring.compute import service

LOG = logging.getLogger(__name__)

# Seconds between two checks of whether the service is about to end.
_LONGEST = 1.0


class Takes(looks.Looks):
    """Takes free nodes after each look at the other services."""

    NAME = 'ironic_ring_takes'

    def __init__(self, source: upstream.NovaIronicDriver,
                 ring: service.Service,
                 look: Callable[[], Iterable[str]]) -> None:
        super().__init__(source, ring, look)
        #: The compute nodes that the resource tracker is to track.
        self.nodes: list[str] = []
        self._is_due = threading.Event()
        self._lock = threading.Lock()

    def begin(self, nodes: Iterable[str]) -> None:
        """Take what the last look has found, and return at once.

        :param nodes: the compute nodes that the resource tracker is to track
            because of that look, which come before all others
        """
        with self._lock:
            self.nodes = [*nodes, *self.nodes]
        self._is_due.set()

    def _run(self) -> None:
        process = self._ring.process
        while not process.is_ending():
            if self._is_due.wait(0 if self.nodes else _LONGEST):
                self._is_due.clear()
                self.take()
            # However long that took, some time is left for these.
            due = time.monotonic() + self._ring.pause()
            while (self.nodes and time.monotonic() < due
                   and not process.is_ending()):
                with self._lock:
                    node = self.nodes.pop(0)
                self.track(node)

    def take(self) -> None:
        """Take free nodes once."""
        found = self._found()
        with self._lock:
            self.nodes = [*self.nodes, *found]

    def _log(self, error: Exception) -> None:
        LOG.warning('Cannot take free nodes between two passes: %s', error)

    def track(self, node: str) -> None:
        """Let the resource tracker track a compute node before its next pass.

        :param node: the UUID of the node, or the name of the pool
        """
        # A pass may have come to another decision since.
        if self._ring.process.tracks(node) or not self._ring.lists(node):
            return
        try:
            upstream.update(self._source, node)
        except Exception as error:
            LOG.warning('Cannot record node %(node)s for this service before '
                        'the next pass: %(error)s', {
                            'node': node, 'error': error})
