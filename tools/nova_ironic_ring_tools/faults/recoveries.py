# SPDX-License-Identifier: Apache-2.0

"""Whether the work of a service is finished after its death."""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import functools
import time

from openstack import connection

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import servers
from nova_ironic_ring_tools.faults import deployments
from nova_ironic_ring_tools.faults import operators

_HOST = 'compute-2'
_DEPLOYMENTS = 4
#: The titles of the columns.
COLUMNS = ('finished', 'after')
# Seconds: far more than the work takes.
_PATIENCE = 120

# Returns whether the work with a server is finished.
_Check = Callable[[], bool]


@dataclasses.dataclass(frozen=True)
class Work:
    """Work that a service has begun.

    :ivar name: its name in the table
    :ivar begin: begins the work, and returns a check for each server; it
        restores the lab when the work is over
    """

    name: str
    begin: Callable[
        [cloud.Lab], contextlib.AbstractContextManager[list[_Check]]]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How the work with servers has ended.

    :ivar count: how many servers there were
    :ivar well: with how many of them the work is finished
    :ivar after: seconds from the death until the last one was finished
    """

    count: int
    well: int
    after: float

    @property
    def passed(self) -> bool:
        """Whether the work with all servers is finished."""
        return self.well == self.count

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        return [f'{self.well} of {self.count}',
                f'{self.after:.0f} s' if self.passed else 'never']


def measure(lab: cloud.Lab, work: Work) -> Outcome:
    """Kill a service at work, and measure when the work is finished.

    :param lab: the lab
    :param work: the work of the service
    """
    link = lab.connect()
    nodes = sum(1 for _ in link.baremetal.nodes())
    lab.wait_settled(nodes)
    known = {server.id for server in link.compute.servers()}
    with work.begin(lab) as checks:
        lab.compute(_HOST).kill()
        start = time.monotonic()
        operators.force_down(lab, _HOST, True)
        operators.wait(lambda: all(check() for check in checks), _PATIENCE)
        after = time.monotonic() - start
        well = sum(check() for check in checks)
    operators.force_down(lab, _HOST, False)
    lab.start_compute(_HOST)
    servers.delete(link, [server for server in link.compute.servers()
                          if server.id not in known])
    lab.wait_settled(nodes)
    return Outcome(len(checks), well, after)


@contextlib.contextmanager
def _tasks(lab: cloud.Lab) -> Iterator[list[_Check]]:
    link = lab.connect()
    compute = link.compute
    booted = [servers.boot(link, f'under-way-{number}', _HOST)
              for number in range(4)]
    rebooting, stopping, rescuing, deleted = [
        servers.wait_active(link, server).id for server in booted]
    # From here on, the service does nothing of what is asked of it.
    lab.compute(_HOST).pause()
    compute.reboot_server(rebooting, 'HARD')
    compute.stop_server(stopping)
    compute.rescue_server(rescuing)
    compute.delete_server(deleted)
    building = servers.boot(link, 'under-way', _HOST).id
    lab.wait('An allocation', lambda: _has_allocation(link, building))
    yield [
        lambda: _is(link, rebooting, 'ACTIVE'),
        lambda: _is(link, stopping, 'SHUTOFF'),
        lambda: _is(link, rescuing, 'ACTIVE'),
        lambda: compute.find_server(deleted) is None,
        # Ironic was not told of this server.
        lambda: _is(link, building, 'ERROR') and not _has_allocation(
            link, building)]


@contextlib.contextmanager
def _deployments(lab: cloud.Lab) -> Iterator[list[_Check]]:
    with deployments.slow(lab):
        link = lab.connect()
        booted = [servers.boot(link, f'deploying-{number}', _HOST).id
                  for number in range(_DEPLOYMENTS)]
        deployments.wait(lab, booted)
        yield [functools.partial(_is, link, server, 'ACTIVE')
               for server in booted]


def _is(link: connection.Connection, server: str, status: str) -> bool:
    """Return whether a server is in a state, and has no task."""
    found = link.compute.find_server(server)
    return (found is not None and found.task_state is None
            and found.status == status)


def _has_allocation(link: connection.Connection, server: str) -> bool:
    return bool(link.placement.get(
        f'/allocations/{server}').json()['allocations'])


WORKS = [
    Work('reboot, stop, rescue, delete and build asked for', _tasks),
    Work(f'{_DEPLOYMENTS} nodes being deployed', _deployments),
]
