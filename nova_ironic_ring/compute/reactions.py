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
from nova_ironic_ring.compute import takes

LOG = logging.getLogger(__name__)


class Reactions(looks.Looks):
    """Looks at the other services as often as they send heartbeats."""

    NAME = 'ironic_ring'

    def __init__(self, source: upstream.NovaIronicDriver,
                 ring: service.Service,
                 look: Callable[[], Iterable[str]],
                 then: takes.Takes) -> None:
        super().__init__(source, ring, look)
        self._then = then

    def _run(self) -> None:
        while not self._ring.process.is_ending():
            self.look()
            # A look may take longer than the pause.
            time.sleep(self._ring.pause())

    def look(self) -> None:
        """Look once."""
        self._then.begin(self._found())

    def _log(self, error: Exception) -> None:
        LOG.warning('Cannot look at the other services between two passes: '
                    '%s', error)
