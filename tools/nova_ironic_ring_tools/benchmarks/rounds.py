# SPDX-License-Identifier: Apache-2.0

"""What the measured processes have in common.

This is the only module here that runs with the project's first stage as well
as with this revision.
"""

from collections.abc import Callable, Mapping
import dataclasses
import json
import sys
import time
import uuid

PARTITIONS = 32
NEWCOMER = 'newcomer'

_NODES = 10_000
_MEMBERS = 100


@dataclasses.dataclass(frozen=True)
class Situation:
    """What one service of many sees.

    :ivar members: the names of the services
    :ivar me: the name of the service that decides
    :ivar nodes: the instance on each node, by the node's UUID; None for a free
        node
    :ivar mine: the UUIDs of the nodes of that service
    :ivar instances: the names of its instances
    """

    members: list[str]
    me: str
    nodes: Mapping[str, str | None]
    mine: frozenset[str]
    instances: frozenset[str]

    @property
    def members_after_join(self) -> list[str]:
        """The names of the services when one more has come."""
        return [*self.members, NEWCOMER]


def situation(make_ring: Callable[[list[str]], Callable[[str], str | None]]
              ) -> Situation:
    """Return a situation in which every second node has an instance.

    :param make_ring: takes the names of the members, and returns a function
        that returns the desired owner of a node
    """
    members = [f'compute-{number:03}' for number in range(_MEMBERS)]
    owner = make_ring(members)
    after_join = make_ring([*members, NEWCOMER])
    nodes = {str(uuid.UUID(int=number * 7919)):
             f'instance-{number}' if number % 2 else None
             for number in range(_NODES)}
    # A service that has nodes to offer after the join.
    me = next(str(owner(node)) for node, instance in nodes.items()
              if instance is None and after_join(node) == NEWCOMER)
    mine = frozenset(node for node in nodes if owner(node) == me)
    return Situation(members, me, nodes, mine, frozenset(
        instance for node in mine if (instance := nodes[node])))


def serve(prepare: Mapping[str, Callable[[], Callable[[], int]]]) -> None:
    """Measure the scenes that the lines of standard input name.

    For each, print a line with the CPU seconds and the number of offers.

    :param prepare: for each scene, by its name, a function that prepares it;
        it returns the function to measure, which returns the number of offers
    """
    for line in sys.stdin:
        run = prepare[line.strip()]()
        start = time.process_time()
        offers = run()
        seconds = time.process_time() - start
        print(json.dumps([seconds, offers]), flush=True)
