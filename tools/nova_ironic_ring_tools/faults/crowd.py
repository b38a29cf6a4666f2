# SPDX-License-Identifier: Apache-2.0

"""Measures the takeover of very many instances in one pass."""

import collections
from collections.abc import Sequence
import concurrent.futures
import dataclasses
import threading
import time

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import view
from nova_ironic_ring_tools import updates

_DEAD, _TAKER = 'compute-2', 'compute-1'
# Seconds.
_PATIENCE = 3600
_POLL = 0.5


@dataclasses.dataclass(frozen=True)
class Crowd:
    """How long the takeover took, and what it cost the other services.

    :ivar servers: how many servers there were
    :ivar found: seconds from the death until the first instance was taken over
    :ivar instances: seconds from the first instance to the last one
    :ivar rows: seconds from the first instance to the last row; with pools,
        until all nodes counted in the taker's pools
    :ivar reboot: seconds from the last instance to the end of a reboot, which
        was asked for as soon as that instance was taken over
    :ivar silence: the longest time between two heartbeats of the taker, in
        seconds
    :ivar conductor: seconds of processor time that nova-conductor took
    """

    servers: int
    found: float
    instances: float
    rows: float
    reboot: float
    silence: float
    conductor: float

    def __str__(self) -> str:
        return (f'{self.servers} servers: the first one taken over '
                f'{self.found:.1f} s after the death, the last one '
                f'{self.instances:.1f} s later, the last row after '
                f'{self.rows:.1f} s; a reboot that was asked for then over '
                f'after {self.reboot:.1f} s; heartbeat no older than '
                f'{self.silence:.1f} s; {self.conductor:.1f} s of '
                f"nova-conductor's time")


def measure(count: int, driver: str, interval: int) -> Crowd:
    """Let one service take over all the servers of another.

    :param count: how many servers
    :param driver: the value of ``compute_driver`` in nova.conf
    :param interval: seconds after which an unchanged node is updated
    """
    nodes = count + 10
    with cloud.Cloud(place.directory('faults-crowd'), driver=driver,
                     computes=2, node_count=nodes, alike=True,
                     options=updates.options(interval),
                     progress=print) as fixture:
        lab = fixture.lab
        link = lab.connect()
        # So that the service that is to die has all nodes.
        (service,) = link.compute.services(host=_TAKER, binary='nova-compute')
        link.compute.disable_service(service)
        lab.wait('All nodes with one service',
                 lambda: _has_all(lab, _DEAD, nodes), _PATIENCE)
        print(f'Booting {count} servers')
        # Each on a node that is chosen here: else several would ask for the
        # same node at once.
        places: list[str | None] = [*sorted(lab.owners())[:count]]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            booted = list(pool.map(
                lambda node: servers.wait_active(link, servers.boot(
                    link, 'one-of-many', node=node), _PATIENCE),
                # A service with pools chooses a node itself.
                places or [None] * count))
        return _measure(lab, booted, nodes)


def _has_all(lab: cloud.Lab, host: str, nodes: int) -> bool:
    """Return whether a service has all nodes, and no other has one."""
    with lab.cell() as opened:
        seen = view.read(opened)
    found = collections.Counter(row.owner for row in seen.rows)
    for pool in seen.pools:
        # The pools of a service that has none are reserved as a whole.
        if pool.total > pool.reserved:
            found[pool.owner] += pool.total
    return +found == {host: nodes}


def _measure(lab: cloud.Lab, booted: Sequence[sdk_server.Server], nodes: int
             ) -> Crowd:
    link = lab.connect()
    count = len(booted)
    conductor = lab.state.process('nova-conductor')
    before = conductor.processor_time()
    watch = _Heartbeat(lab)
    watch.start()
    lab.compute(_DEAD).kill()
    (dead,) = link.compute.services(host=_DEAD, binary='nova-compute')
    link.compute.update_service_forced_down(
        dead, _DEAD, 'nova-compute', True)
    (taker,) = link.compute.services(host=_TAKER, binary='nova-compute')
    link.compute.enable_service(taker)
    start = time.monotonic()
    first = last = rows = reboot = 0.0
    while not (rows and reboot):
        with lab.cell() as opened, opened.cursor() as cursor:
            cursor.execute('SELECT COUNT(*) FROM instances '
                           'WHERE deleted = 0 AND host = %s', (_TAKER,))
            ((taken,),) = cursor.fetchall()
        now = time.monotonic() - start
        first = first or (now if taken else 0.0)
        if taken == count and not last:
            last = now
            link.compute.reboot_server(booted[-1], 'HARD')
        elif last and not reboot and link.compute.get_server(
                booted[-1].id).task_state is None:
            reboot = now
        if last and not rows and _has_all(lab, _TAKER, nodes):
            rows = now
        lab.check()
        if now > _PATIENCE:
            raise TimeoutError(f'{taken} of {count} taken over')
        time.sleep(_POLL)
    watch.stop()
    return Crowd(count, first, last - first, rows - first, reboot - last,
                 watch.longest, conductor.processor_time() - before)


class _Heartbeat(threading.Thread):
    """Measures the longest time between two heartbeats of the taker."""

    def __init__(self, lab: cloud.Lab) -> None:
        super().__init__(daemon=True)
        self.longest = 0.0
        self._lab = lab
        self._done = threading.Event()

    def run(self) -> None:
        """Read the last heartbeat again and again."""
        seen, since = None, time.monotonic()
        with self._lab.cell() as opened:
            while not self._done.wait(_POLL / 2):
                opened.rollback()
                now = view.heartbeat(opened, _TAKER)
                if now != seen:
                    seen, since = now, time.monotonic()
                self.longest = max(self.longest, time.monotonic() - since)

    def stop(self) -> None:
        """End the thread."""
        self._done.set()
        self.join()
