# SPDX-License-Identifier: Apache-2.0
"""What the services of a lab have used: processor time, queries and others."""

import collections
from collections.abc import Mapping
import dataclasses
import re
import time

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.lab import cloud
from nova_ironic_ring_tools.scale import rpc

#: The services whose cost is shown; nova-compute stands for all of them.
SERVICES = ('nova-compute', 'nova-conductor', 'placement', 'ironic',
            'mariadb')
# In each line of Placement's log that is for a request.
_REQUEST = 'placement.requestlog'
# The line in the log of a nova-compute for each node that it takes.
_MOVE = re.compile(r'Node \S+ of \S+ is ([^.\n]+)\.')


@dataclasses.dataclass(frozen=True)
class Used:
    """What the services have used until a moment, or between two moments.

    :ivar at: the moment, or the time between both, in seconds
    :ivar processes: seconds of processor time of each process, by service and
        process
    :ivar queries: statements that were sent to the database
    :ivar requests: requests to Placement
    :ivar calls: calls and casts that nova-computes have sent by RPC
    :ivar rows: how often a row of compute_nodes was written
    :ivar taken: nodes that services with the ring driver took from others
    :ivar forced: how many of these nodes had owners that were alive and did
        not answer
    """

    at: float
    processes: Mapping[str, Mapping[str, float]]
    queries: int
    requests: int
    calls: int
    rows: int
    taken: int
    forced: int

    def since(self, before: 'Used') -> 'Used':
        """Return what has been used since an earlier moment.

        :param before: what had been used until then
        """
        return Used(
            self.at - before.at,
            # A process that was killed meanwhile has used less than before.
            {name: {
                each: max(0.0, seconds - before.processes[name].get(each, 0))
                for each, seconds in processes.items()}
             for name, processes in self.processes.items()},
            self.queries - before.queries, self.requests - before.requests,
            self.calls - before.calls, self.rows - before.rows,
            self.taken - before.taken, self.forced - before.forced)

    def processor(self, service: str) -> float:
        """Return the processor time of all processes of a service, in seconds.

        :param service: its name
        """
        return sum(self.processes[service].values())


def count_rows(lab: cloud.Lab) -> None:
    """Let the database count the rows that are written, from now on.

    :param lab: the lab
    """
    with lab.database.connect() as opened, opened.cursor() as cursor:
        cursor.execute('SET GLOBAL userstat = 1')


def used(lab: cloud.Lab, sent: rpc.Counter) -> Used:
    """Return what the services of a lab have used until now.

    :param lab: the lab; the processor time of a nova-compute that was killed
        does not count
    :param sent: counts the messages that the nova-computes send
    """
    with lab.cell() as opened, opened.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
        ((_, questions),) = cursor.fetchall()
        cursor.execute(
            'SELECT SUM(rows_changed) FROM information_schema.table_statistics'
            " WHERE table_schema = DATABASE() AND table_name = "
            "'compute_nodes'")
        ((rows,),) = cursor.fetchall()
    placement = lab.state.process('placement').log
    moves = collections.Counter(
        why for name in lab.state.computes for why in _MOVE.findall(
            lab.compute(name).log.read_text(errors='replace')))
    return Used(
        time.monotonic(),
        {name: {each: lab.state.process(each).processor_time()
                for each in _processes(lab, name)} for name in SERVICES},
        int(questions),
        placement.read_text(errors='replace').count(_REQUEST),
        sent.count, int(rows or 0),
        sum(moves[each.value] for each in decisions.Decision if each.takes),
        moves[decisions.Decision.TAKE_SILENT.value])


def memory(lab: cloud.Lab) -> dict[str, int]:
    """Return the memory of each service, in MiB.

    :param lab: the lab; only the largest of its nova-computes counts
    """
    return {name: max((lab.state.process(each).memory()
                       for each in _processes(lab, name)), default=0) >> 20
            for name in SERVICES}


def _processes(lab: cloud.Lab, service: str) -> list[str]:
    return (list(lab.state.computes) if service == 'nova-compute'
            else [service])
