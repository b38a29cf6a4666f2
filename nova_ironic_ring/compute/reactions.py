# SPDX-License-Identifier: Apache-2.0

"""Looks at the other services between two passes.

It has a thread of its own, because Nova runs the resource tracker and all
other periodic tasks one after the other.
"""

from collections.abc import Callable, Iterable
import time

from oslo_log import log as logging

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import looks
from nova_ironic_ring.compute import service

LOG = logging.getLogger(__name__)


class Reactions(looks.Looks):
    """Looks at the other services as often as they send heartbeats."""

    NAME = 'ironic_ring'

    def __init__(self, source: upstream.NovaIronicDriver,
                 ring: service.Service,
                 look: Callable[[], Iterable[str]]) -> None:
        super().__init__(source, ring, look)
        #: The compute nodes that the resource tracker is to track.
        self._nodes: list[str] = []

    def _run(self) -> None:
        process = self._ring.process
        while not process.is_ending():
            self.look()
            # From its end on: a look may take longer than the pause.
            due = time.monotonic() + self._ring.pause()
            # One at a time: the next look does not wait for them.
            while (self._nodes and time.monotonic() < due
                   and not process.is_ending()):
                self.track(self._nodes.pop(0))
            time.sleep(max(0.0, due - time.monotonic()))

    def look(self) -> None:
        """Look once."""
        # Instances before nodes that were offered in an earlier look.
        self._nodes[:0] = self._found()

    def _log(self, error: Exception) -> None:
        LOG.warning('Cannot look at the other services between two passes: '
                    '%s', error)

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
