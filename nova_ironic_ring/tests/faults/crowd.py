# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What it costs to take over very many instances in one pass."""

import concurrent.futures
import dataclasses
import threading
import time

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import view

_DEAD, _TAKER = 'compute-2', 'compute-1'
# Seconds.
_PATIENCE = 3600
_POLL = 0.5


@dataclasses.dataclass(frozen=True)
class Crowd:
    """How long it has taken, and what it has cost the other services.

    :ivar servers: how many there were
    :ivar found: seconds from the death to the first that was taken over
    :ivar instances: seconds from the first to the last instance
    :ivar rows: seconds from the first instance to the last row
    :ivar silence: the longest that the taker's heartbeat was late, in seconds
    :ivar conductor: seconds of processor time that nova-conductor took
    """

    servers: int
    found: float
    instances: float
    rows: float
    silence: float
    conductor: float

    def __str__(self) -> str:
        return (f'{self.servers} servers: the first one taken over '
                f'{self.found:.1f} s after the death, the last one '
                f'{self.instances:.1f} s later, the last row after '
                f'{self.rows:.1f} s; heartbeat no older than '
                f'{self.silence:.1f} s; {self.conductor:.1f} s of '
                f"nova-conductor's time")


def measure(count: int) -> Crowd:
    """Have one service take over all the servers of another.

    :param count: how many servers
    """
    with cloud.Cloud(place.directory('faults-crowd'), computes=2,
                     node_count=count + 10, progress=print) as fixture:
        lab = fixture.lab
        link = lab.connect()
        # So that all nodes are with the one that is to die.
        (service,) = link.compute.services(host=_TAKER, binary='nova-compute')
        link.compute.disable_service(service)
        lab.wait('All nodes with one service', lambda: (
            set(lab.owners().values()) == {_DEAD}), _PATIENCE)
        print(f'Booting {count} servers')
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            # Each on a node of its own: else they would race for the same.
            list(pool.map(
                lambda node: servers.wait_active(link, servers.boot(
                    link, f'server-on-{node}', node=node), _PATIENCE),
                sorted(lab.owners())[:count]))
        return _measure(lab, count)


def _measure(lab: cloud.Lab, count: int) -> Crowd:
    link = lab.connect()
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
    first = last = rows = 0.0
    while not rows:
        with lab.cell() as opened, opened.cursor() as cursor:
            cursor.execute('SELECT COUNT(*) FROM instances '
                           'WHERE deleted = 0 AND host = %s', (_TAKER,))
            ((taken,),) = cursor.fetchall()
        now = time.monotonic() - start
        first = first or (now if taken else 0.0)
        last = last or (now if taken == count else 0.0)
        if last and set(lab.owners().values()) == {_TAKER}:
            rows = now
        lab.check()
        if now > _PATIENCE:
            raise TimeoutError(f'{taken} of {count} taken over')
        time.sleep(_POLL)
    watch.stop()
    return Crowd(count, first, last - first, rows - first, watch.longest,
                 conductor.processor_time() - before)


class _Heartbeat(threading.Thread):
    """Watches how late the heartbeat of the taker gets."""

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
