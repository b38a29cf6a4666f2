# SPDX-License-Identifier: Apache-2.0

"""The base class of what looks for something between two passes."""

from collections.abc import Callable, Iterable
import threading

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import service


class Looks:
    """Looks again and again, in a thread of its own.

    :cvar NAME: the name of the thread
    """

    NAME: str

    def __init__(self, source: upstream.NovaIronicDriver,
                 ring: service.Service,
                 look: Callable[[], Iterable[str]]) -> None:
        """Begin with nothing.

        :param source: the driver that the manager has
        :param ring: what decides for this service
        :param look: looks once, and names the compute nodes that the resource
            tracker is to update because of what was found: UUIDs of nodes, or
            names of pools
        """
        self._source = source
        self._ring = ring
        self._look = look
        self._is_failing = False

    def start(self) -> None:
        """Begin to look, and return at once."""
        threading.Thread(
            target=self._run, name=self.NAME, daemon=True).start()

    def _run(self) -> None:
        """Look until this service is about to end."""
        raise NotImplementedError()

    def _found(self) -> list[str]:
        """Look once.

        :returns: the compute nodes to update; none if the look fails, which is
            logged
        """
        try:
            found = list(self._look())
        except Exception as error:
            # Log it once, because the look is repeated.
            if not self._is_failing:
                self._log(error)
            self._is_failing = True
            return []
        self._is_failing = False
        return found

    def _log(self, error: Exception) -> None:
        """Log why a look has failed."""
        raise NotImplementedError()
