# SPDX-License-Identifier: Apache-2.0

"""Nodes on which deployments have failed, and how long they come last.

A node that has failed is cleaned, and free again: as a cloud fills, the free
nodes are those that fail. So builds try such a node after all others for a
while, which is longer after each failure in a row.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import datetime

# The longest wait is so many times the first one.
_LONGEST = 16
# So many nodes are remembered; those that failed last.
_MOST = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """What has become of the last deployments on a node.

    :ivar count: how many have failed, one after the other; 1 or more
    :ivar at: when the last of them has, with time zone
    """

    count: int
    at: datetime.datetime

    def until(self, wait: float) -> datetime.datetime:
        """Say until when builds try the node after all others.

        :param wait: seconds after the first failure
        """
        times = min(2 ** min(self.count - 1, _LONGEST), _LONGEST)
        return self.at + datetime.timedelta(seconds=wait * times)

    def is_remembered(self, now: datetime.datetime, wait: float) -> bool:
        """Say whether one more failure is one more in a row.

        :param now: the time, with time zone
        :param wait: seconds after the first failure
        """
        return now - self.at < datetime.timedelta(seconds=wait * _LONGEST)


#: By the UUID of the node.
Failures = Mapping[str, Failure]


def noted(known: Failures, node: str, now: datetime.datetime, wait: float
          ) -> dict[str, Failure]:
    """Note that a deployment on a node has failed.

    :param known: what was known before
    :param node: the node's UUID
    :param now: the time, with time zone
    :param wait: seconds for which the node comes last after the first failure
    """
    before = known.get(node)
    count = 1 + (before.count if before is not None
                 and before.is_remembered(now, wait) else 0)
    return latest({**known, node: Failure(count, now)}, now, wait, _MOST)


def latest(known: Failures, now: datetime.datetime, wait: float, most: int
           ) -> dict[str, Failure]:
    """Return what is not forgotten yet, and was last.

    :param known: what is known
    :param now: the time, with time zone
    :param wait: seconds after the first failure
    :param most: how many nodes to return at most
    """
    kept = sorted(
        ((node, failure) for node, failure in known.items()
         if failure.is_remembered(now, wait)),
        key=lambda item: item[1].at, reverse=True)
    return dict(kept[:most])


def merged(*said: Failures) -> dict[str, Failure]:
    """Put together what several services know, the latest of each node.

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
            if failure.until(wait) > now}


def in_turn(nodes: Iterable[str], known: Failures) -> list[str]:
    """Put nodes that have failed into the order in which to try them.

    :param nodes: their UUIDs
    :param known: what is known of each
    :returns: those first that have failed least often, and longest ago
    """
    return sorted(nodes, key=lambda node: (
        known[node].count, known[node].at, node))
