# SPDX-License-Identifier: Apache-2.0

"""Updates nodes that have changed in Ironic between two passes.

It has a thread of its own: if Ironic does not answer, nothing else waits,
least of all the takeover of instances of dead services.
"""

import time

from oslo_log import log as logging

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import looks

LOG = logging.getLogger(__name__)

# Seconds between two checks of whether the configuration has changed, or the
# service is about to end.
_LONGEST = 1.0
# The shortest pause, in seconds, so that no loop runs without one.
_SHORTEST = 0.2


class Changes(looks.Looks):
    """Asks Ironic what has changed, as often as the configuration says."""

    NAME = 'ironic_ring_changes'

    def _run(self) -> None:
        while not self._ring.process.is_ending():
            due = self._ring.changes_due()
            if due == 0:
                self.look()
                due = _SHORTEST
            time.sleep(_LONGEST if due is None else min(
                _LONGEST, max(_SHORTEST, due)))

    def look(self) -> None:
        """Look once, and update what has changed."""
        for place in self._found():
            self._update(place)

    def _log(self, error: Exception) -> None:
        LOG.warning('Cannot look for changes in Ironic before the next pass: '
                    '%s', error)

    def _update(self, place: str) -> None:
        """Let the resource tracker update a compute node.

        :param place: the UUID of the node, or the name of the pool
        """
        # A pass may have come to another decision since.
        if self._ring.process.is_ending() or not self._ring.lists(place):
            return
        try:
            upstream.track(self._source, place)
        except Exception as error:
            LOG.warning('Node %(node)s has changed in Ironic. Cannot update '
                        'it before the next pass: %(error)s', {
                            'node': place, 'error': error})
