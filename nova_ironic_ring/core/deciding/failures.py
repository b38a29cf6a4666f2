# SPDX-License-Identifier: Apache-2.0

"""The nodes on which deployments have failed, and how long they come last.

A node that has failed is cleaned, and free again: as a cloud fills, the free
nodes are those that fail. So builds try such a node after all others for a
while, which is longer after each failure in a row. Each service reports what
it knows to its peers. So a success is recorded as well: it ends what they
report of the node.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import datetime

# The longest wait, as a multiple of the first one.
_LONGEST = 16
# The most nodes to remember: those with the latest results.
_MOST = 1000
# Entries that are further in the future come from a wrong clock.
_SKEW = datetime.timedelta(minutes=5)
# Of two notes, the later one counts.
_LATER = datetime.timedelta(seconds=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """The results of the last deployments on a node.

    :ivar count: the number of failures in a row; 0 after a success
    :ivar at: when the last of them has ended, with time zone
    """

    count: int
    at: datetime.datetime

    def until(self, wait: float) -> datetime.datetime:
        """Return the time until which builds try a node after all others.

        :param wait: seconds after the first failure
        """
        times = min(2 ** min(self.count - 1, _LONGEST), _LONGEST)
        return self.at + datetime.timedelta(seconds=wait * times)

    def is_remembered(self, now: datetime.datetime, wait: float) -> bool:
        """Return whether it still matters.

        :param now: the time, with time zone
        :param wait: seconds after the first failure
        """
        return wait > 0 and -_SKEW < now - self.at < datetime.timedelta(
            seconds=wait * _LONGEST)


#: By the UUID of the node.
Failures = Mapping[str, Failure]


@dataclasses.dataclass(frozen=True)
class Known:
    """What one service knows.

    :ivar own: what has become of its own deployments
    :ivar of_peers: what its peers tell
    """

    own: Failures = dataclasses.field(default_factory=dict)
    of_peers: Failures = dataclasses.field(default_factory=dict)

    @property
    def all(self) -> Failures:
        """What this service uses: the latest of both."""
        return merged(self.own, self.of_peers)


def noted(known: Known, node: str, now: datetime.datetime, wait: float,
          is_good: bool = False) -> dict[str, Failure]:
    """Note that a deployment on a node has failed, or has succeeded.

    :param known: what was known before
    :param node: the node's UUID
    :param now: the time, with time zone
    :param wait: seconds for which the node comes last after the first failure
    :param is_good: whether it has succeeded
    :returns: what is known of this service's deployments now
    """
    before = known.all.get(node)
    if before is not None and not before.is_remembered(now, wait):
        before = None
    own = {**known.own}
    if is_good and (before is None or not before.count):
        own.pop(node, None)
    else:
        own[node] = Failure(
            0 if is_good else 1 + (before.count if before else 0),
            max(now, before.at + _LATER) if before else now)
    return latest(own, now, wait)


def latest(known: Failures, now: datetime.datetime, wait: float
           ) -> dict[str, Failure]:
    """Return what is still remembered, for a bounded number of nodes.

    :param known: what is known
    :param now: the time, with time zone
    :param wait: seconds after the first failure
    """
    kept = sorted(
        ((node, failure) for node, failure in known.items()
         if failure.is_remembered(now, wait)),
        key=lambda item: item[1].at, reverse=True)
    return dict(kept[:_MOST])


def merged(*said: Failures) -> dict[str, Failure]:
    """Merge what several services know: the latest entry of each node.

    :param said: what each knows
    """
    found: dict[str, Failure] = {}
    for known in said:
        for node, failure in known.items():
            if node not in found or found[node].at < failure.at:
                found[node] = failure
    return found


def waiting(known: Failures, now: datetime.datetime, wait: float
            ) -> dict[str, Failure]:
    """Return the nodes that builds are to try after all others.

    :param known: what is known
    :param now: the time, with time zone
    :param wait: seconds after the first failure
    """
    return {node: failure for node, failure in known.items()
            if failure.count and failure.is_remembered(now, wait)
            and failure.until(wait) > now}


def in_turn(nodes: Iterable[str], known: Failures) -> list[str]:
    """Put nodes that have failed into the order in which to try them.

    :param nodes: their UUIDs
    :param known: what is known of each
    :returns: those first that have failed least often, and longest ago
    """
    return sorted(nodes, key=lambda node: (
        known[node].count, known[node].at, node))
