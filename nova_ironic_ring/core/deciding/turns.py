# SPDX-License-Identifier: Apache-2.0

"""When the resource tracker updates the nodes that have not changed.

Each node has its turn once in ``[ironic_ring] full_update_interval``. The
turns are spread by the UUIDs of the nodes, so that no pass has a peak. The row
of a node says when it was last updated: neither a restart nor another service
loses a turn.
"""

import hashlib

from nova_ironic_ring.core.values import settings

# The fraction of its time that a service spends on updates of nodes that have
# only their turn: with thousands of nodes, others would wait for these.
_SHARE = 0.25
# The weight of one update in the mean of how long they take.
_WEIGHT = 0.02
# How long an update is taken to last before some were measured, in seconds.
_GUESS = 0.5


def is_due(node: str, at: float, now: float, interval: float) -> bool:
    """Return whether a node has had its turn since it was last updated.

    If somebody sets the clock, the node is updated once more, or once later.

    :param node: the node's UUID
    :param at: when it was updated, in seconds of the wall clock
    :param now: the present time, likewise
    :param interval: how often each node is updated, in seconds; 0 for in each
        pass
    """
    if interval <= 0:
        return True
    digest = hashlib.md5(node.encode(), usedforsecurity=False).digest()
    phase = int.from_bytes(digest[:4], 'big') / 2 ** 32
    return (at / interval + phase) // 1 != (now / interval + phase) // 1


class Pace:
    """How many nodes can be updated in a pass that have only their turn."""

    def __init__(self) -> None:
        #: How long an update takes on average, in seconds.
        self._cost = _GUESS
        #: When the last one ended, in seconds.
        self._ended = 0.0

    def took(self, began: float, ended: float) -> None:
        """Note the time of an update; several at a time share their time.

        :param began: when it began, in seconds of a monotonic clock
        :param ended: when it ended, likewise
        """
        seconds = max(0.0, ended - max(began, self._ended))
        self._cost += _WEIGHT * (seconds - self._cost)
        self._ended = ended

    def room(self, current: settings.Settings, is_first: bool) -> int | None:
        """Return the number of nodes that can be updated in a pass.

        :param current: the service's settings
        :param is_first: whether this is the first pass of the process:
            nova-compute answers no message before that has ended
        :returns: None for all nodes
        """
        if not current.full_update_interval:
            return None
        if is_first:
            return 0
        return max(1, int(
            _SHARE * current.pass_interval / max(self._cost, 0.001)))
