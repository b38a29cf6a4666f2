# SPDX-License-Identifier: Apache-2.0

"""Looks at the other services between two passes.

It has a thread of its own, because Nova runs the resource tracker and all
other periodic tasks one after the other.
"""

from collections.abc import Callable, Iterable
import threading
import time

from oslo_log import log as logging

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import service

LOG = logging.getLogger(__name__)


class Reactions:
    """Looks at the other services as often as they send heartbeats."""

    def __init__(self, source: upstream.NovaIronicDriver,
                 ring: service.Service,
                 look: Callable[[], Iterable[str]]) -> None:
        """Begin with nothing.

        :param source: the driver that the manager has
        :param ring: what decides for this service
        :param look: looks once, and names the compute nodes that the resource
            tracker is to track by it
        """
        self._source = source
        self._ring = ring
        self._look = look
        #: The compute nodes that the resource tracker is to track.
        self._nodes: list[str] = []
        self._is_failing = False

    def start(self) -> None:
        """Begin to look, and return at once."""
        threading.Thread(
            target=self._run, name='ironic_ring', daemon=True).start()

    def _run(self) -> None:
        """Look until this service is about to end."""
        process = self._ring.process
        while not process.is_ending():
            begin = time.monotonic()
            self.look()
            due = begin + self._ring.pause()
            # One at a time: the next look does not wait for them.
            while (self._nodes and time.monotonic() < due
                   and not process.is_ending()):
                self.track(self._nodes.pop(0))
            time.sleep(max(0.0, due - time.monotonic()))

    def look(self) -> None:
        """Look once."""
        try:
            # Instances before nodes that were offered in an earlier look.
            self._nodes[:0] = self._look()
            self._is_failing = False
        except Exception as error:
            # Log it once, because the look is repeated.
            if not self._is_failing:
                LOG.warning('Cannot look at the other services between two '
                            'passes: %s', error)
            self._is_failing = True

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
