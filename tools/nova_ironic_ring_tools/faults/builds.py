# SPDX-License-Identifier: Apache-2.0

"""The effects of events on builds that wait inside nova-compute."""

from collections.abc import Callable, Iterator, Mapping
import concurrent.futures
import contextlib
import dataclasses
import time

from openstack import connection

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import servers
from nova_ironic_ring_tools.faults import operators

_HOST = 'compute-2'
_SERVERS = 12
#: The titles of the columns.
COLUMNS = ('ACTIVE', 'ERROR', 'BUILD', 'other', 'allocations left',
           'over after')
# Seconds from the boots to the first event, and from that to the second.
_SOON = 0.5
_LATER = 9
# Seconds: far more than the builds take.
_PATIENCE = 120


@dataclasses.dataclass(frozen=True)
class Fault:
    """An event while builds wait.

    :ivar name: its name in the table
    :ivar happen: makes it happen, and restores the lab when the builds are
        over
    :ivar may_fail: whether builds that have not reached Ironic may fail
    """

    name: str
    happen: Callable[[cloud.Lab], contextlib.AbstractContextManager[None]]
    may_fail: bool = False


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How the builds have ended.

    :ivar active: how many servers are active
    :ivar reasons: the fault of each server in ERROR; empty if it has none
    :ivar building: how many servers are still being built
    :ivar others: the statuses of all other servers
    :ivar left: the number of allocations of servers that are not active
    :ivar over: seconds from the boots to the end of the last build
    :ivar may_fail: whether builds may have failed
    """

    active: int
    reasons: list[str]
    building: int
    others: list[str]
    left: int
    over: float
    may_fail: bool

    @property
    def passed(self) -> bool:
        """Whether no build hangs, and none has failed without a reason."""
        return not self.building + self.left + len(self.others) and (
            all(self.reasons)
            and (self.may_fail or self.active == _SERVERS))

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        return [str(self.active), str(len(self.reasons)), str(self.building),
                ' '.join(self.others) or '0', str(self.left),
                f'{self.over:.0f} s']


@contextlib.contextmanager
def one_at_a_time(lab: cloud.Lab) -> Iterator[None]:
    """Let each nova-compute build one server at a time.

    :param lab: the lab
    """
    # A service that an earlier event has killed is not started.
    names = [name for name in lab.state.computes
             if lab.compute(name).state == 'running']
    _restart(lab, names, {'DEFAULT': {'max_concurrent_builds': 1}})
    try:
        yield
    finally:
        _restart(lab, names, {})


def _restart(lab: cloud.Lab, names: list[str],
             sections: Mapping[str, Mapping[str, object]]) -> None:
    for name in names:
        lab.compute(name).kill()
        lab.configure_compute(name, sections)
        lab.compute(name).start()
    for name in names:
        lab.wait_alive(name)


def measure(lab: cloud.Lab, fault: Fault) -> Outcome:
    """Boot servers at once, make an event happen, and wait for the builds.

    :param lab: the lab
    :param fault: the event
    """
    nodes = sum(1 for _ in lab.connect().baremetal.nodes())
    lab.wait_settled(nodes)
    link = lab.connect()
    with concurrent.futures.ThreadPoolExecutor(_SERVERS) as pool:
        asked = [server.id for server in pool.map(
            lambda number: servers.boot(link, f'waits-{number}'),
            range(_SERVERS))]
    start = time.monotonic()
    time.sleep(_SOON)
    with fault.happen(lab):
        operators.wait(lambda: all(
            server.status != 'BUILD' for server in _shown(link, asked)),
            _PATIENCE)
        over = time.monotonic() - start
        # The allocation of a failed build is freed soon after its end.
        operators.wait(lambda: not _left(link, asked), _PATIENCE)
        found = _shown(link, asked)
        left = _left(link, asked)
    # From what was read before: the servers are deleted next.
    outcome = Outcome(
        sum(server.status == 'ACTIVE' for server in found),
        [(server.fault or {}).get('message', '') for server in found
         if server.status == 'ERROR'],
        sum(server.status == 'BUILD' for server in found),
        [server.status for server in found
         if server.status not in ('ACTIVE', 'ERROR', 'BUILD')],
        left, over, fault.may_fail)
    servers.delete(link, found)
    lab.wait_settled(nodes)
    return outcome


def _shown(link: connection.Connection, asked: list[str]) -> list:
    return [link.compute.get_server(each) for each in asked]


def _left(link: connection.Connection, asked: list[str]) -> int:
    """Count allocations of servers that are not active."""
    return sum(
        len(link.placement.get(f'/allocations/{server.id}').json()[
            'allocations'])
        for server in _shown(link, asked) if server.status != 'ACTIVE')


@contextlib.contextmanager
def _disabled(lab: cloud.Lab) -> Iterator[None]:
    operators.set_enabled(lab, _HOST, False)
    try:
        yield
    finally:
        operators.set_enabled(lab, _HOST, True)


@contextlib.contextmanager
def _killed(lab: cloud.Lab) -> Iterator[None]:
    with _disabled(lab):
        time.sleep(_LATER)
        lab.compute(_HOST).kill()
        operators.force_down(lab, _HOST, True)
        try:
            yield
        finally:
            operators.force_down(lab, _HOST, False)
            lab.start_compute(_HOST)


@contextlib.contextmanager
def _joined(lab: cloud.Lab) -> Iterator[None]:
    newcomer = lab.next_name()
    with _disabled(lab):
        lab.add_compute(newcomer)
        lab.wait_alive(newcomer)
        lab.discover_hosts()
        try:
            yield
        finally:
            lab.compute(newcomer).kill()


FAULTS = [
    Fault('12 boots, one disabled', _disabled),
    Fault('12 boots, one disabled, a fourth joins', _joined),
    Fault('12 boots, one disabled, and killed and forced down after '
          f'{_LATER} s', _killed, may_fail=True),
]
