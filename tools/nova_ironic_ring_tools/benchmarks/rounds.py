# SPDX-License-Identifier: Apache-2.0

"""What the measured processes have in common.

This is the only module here that runs beside the first stage of the project
as well as beside the present one.
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
    :ivar me: the one that decides
    :ivar nodes: the instance on each node, None for a free one
    :ivar mine: the nodes of that service
    :ivar instances: its instances
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
    """Return the situation, in which every second node has an instance.

    :param make_ring: says of members who the desired owner of a node is
    """
    members = [f'compute-{number:03}' for number in range(_MEMBERS)]
    owner = make_ring(members)
    after_join = make_ring([*members, NEWCOMER])
    nodes = {str(uuid.UUID(int=number * 7919)):
             f'instance-{number}' if number % 2 else None
             for number in range(_NODES)}
    # One that has something to offer then.
    me = next(str(owner(node)) for node, instance in nodes.items()
              if instance is None and after_join(node) == NEWCOMER)
    mine = frozenset(node for node in nodes if owner(node) == me)
    return Situation(members, me, nodes, mine, frozenset(
        instance for node in mine if (instance := nodes[node])))


def serve(prepare: Mapping[str, Callable[[], Callable[[], int]]]) -> None:
    """Measure what the lines of standard input name, one after the other.

    A line with the CPU seconds and the number of offers comes for each.

    :param prepare: by name, what returns that which is to be measured
    """
    for line in sys.stdin:
        run = prepare[line.strip()]()
        start = time.process_time()
        offers = run()
        seconds = time.process_time() - start
        print(json.dumps([seconds, offers]), flush=True)
