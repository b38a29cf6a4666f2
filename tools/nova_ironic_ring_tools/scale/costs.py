# SPDX-License-Identifier: Apache-2.0
"""What the services of a lab have used: processor time, memory, queries."""

import collections
from collections.abc import Mapping
import dataclasses
import re
import time

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.lab import cloud

#: The services whose cost is shown; nova-computes are summed up.
SERVICES = ('nova-compute', 'nova-conductor', 'placement', 'ironic',
            'mariadb')
# A line of its log for each request.
_REQUEST = 'placement.requestlog'
# A line of the log of a nova-compute for each node that it takes.
_MOVE = re.compile(r'Node \S+ of \S+ is ([^.\n]+)\.')


@dataclasses.dataclass(frozen=True)
class Used:
    """What has been used until a moment, or between two.

    :ivar at: seconds
    :ivar processor: seconds of processor time of each service
    :ivar queries: statements that the database has been sent
    :ivar requests: requests to Placement
    :ivar taken: nodes that services with the ring driver took from others
    :ivar forced: those of them whose owners lived and did not answer
    """

    at: float
    processor: Mapping[str, float]
    queries: int
    requests: int
    taken: int
    forced: int

    def since(self, before: 'Used') -> 'Used':
        """Return what has been used since an earlier moment.

        :param before: what had been used until then
        """
        return Used(
            self.at - before.at,
            {name: max(0.0, seconds - before.processor.get(name, 0.0))
             for name, seconds in self.processor.items()},
            self.queries - before.queries, self.requests - before.requests,
            self.taken - before.taken, self.forced - before.forced)


def used(lab: cloud.Lab) -> Used:
    """Return what the services of a lab have used until now.

    :param lab: the lab; of a nova-compute that was killed, nothing counts
    """
    with lab.database.connect() as opened, opened.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
        ((_, questions),) = cursor.fetchall()
    placement = lab.state.process('placement').log
    moves = collections.Counter(
        why for name in lab.state.computes for why in _MOVE.findall(
            lab.compute(name).log.read_text(errors='replace')))
    return Used(
        time.monotonic(),
        {name: sum(lab.state.process(each).processor_time()
                   for each in _processes(lab, name)) for name in SERVICES},
        int(questions),
        placement.read_text(errors='replace').count(_REQUEST),
        sum(moves[each.value] for each in decisions.Decision if each.takes),
        moves[decisions.Decision.TAKE_SILENT.value])


def memory(lab: cloud.Lab) -> dict[str, int]:
    """Return how much memory each service has, in MiB.

    :param lab: the lab; of the nova-computes the largest counts
    """
    return {name: max((lab.state.process(each).memory()
                       for each in _processes(lab, name)), default=0) >> 20
            for name in SERVICES}


def _processes(lab: cloud.Lab, service: str) -> list[str]:
    return (list(lab.state.computes) if service == 'nova-compute'
            else [service])
