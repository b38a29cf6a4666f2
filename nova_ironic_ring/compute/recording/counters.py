# SPDX-License-Identifier: Apache-2.0

"""Counts the events of passes, for the metrics.

How these are served is in :mod:`nova_ironic_ring.compute.metrics`.
"""

import collections
from collections.abc import Iterable
import dataclasses
import enum
import threading

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events


class Reservation(enum.Enum):
    """The results of the reservation of a node for a build."""

    RESERVED = 'reserved'
    NO_NODE = 'no_node'
    FAILED = 'failed'


@dataclasses.dataclass
class Counters:
    """How often something has happened since this process started.

    :ivar nodes_taken: by what was decided on the node
    :ivar instances_taken: by whether the service that had the instance is dead
    :ivar instances_not_taken: takeovers that have failed
    :ivar reservations: those of nodes for builds, by what has come of them
    :ivar conflicts: nodes that others had when they were to be reserved
    :ivar recoveries_given_up: instances that were taken over, and whose
        recovery this process has given up
    """

    nodes_taken: collections.Counter[decisions.Decision] = dataclasses.field(
        default_factory=collections.Counter)
    instances_taken: collections.Counter[bool] = dataclasses.field(
        default_factory=collections.Counter)
    instances_not_taken: int = 0
    reservations: collections.Counter[Reservation] = dataclasses.field(
        default_factory=collections.Counter)
    conflicts: int = 0
    recoveries_given_up: int = 0
    # Builds run at the same time, and take nodes in the middle of a pass.
    _lock: threading.Lock = dataclasses.field(
        default_factory=threading.Lock, repr=False, compare=False)

    def reserved(self, result: Reservation, conflicts: int = 0) -> None:
        """Count a reservation of a node.

        :param result: what has come of it
        :param conflicts: how many nodes others had by then
        """
        with self._lock:
            self.reservations[result] += 1
            self.conflicts += conflicts

    def gave_up(self) -> None:
        """Count an instance whose recovery was given up."""
        with self._lock:
            self.recoveries_given_up += 1

    def count(self, happened: Iterable[events.Event]) -> None:
        """Count events.

        :param happened: the events
        """
        with self._lock:
            for event in happened:
                match event:
                    case events.NodeTaken():
                        self.nodes_taken[event.decision] += 1
                    case events.InstanceTaken():
                        self.instances_taken[event.is_dead] += 1
                    case events.InstanceNotTaken():
                        self.instances_not_taken += 1


#: Those of this process, which is one service.
COUNTERS = Counters()
