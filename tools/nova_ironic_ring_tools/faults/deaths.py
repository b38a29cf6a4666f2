# SPDX-License-Identifier: Apache-2.0

"""The effects of the death of a service on its servers."""

from collections.abc import Iterator
import contextlib
import dataclasses
import time

from openstack import connection
from openstack import exceptions

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring_tools.faults import operators

#: The service that dies.
HOST = 'compute-2'
_SERVERS = 3
#: The titles of the columns.
COLUMNS = ('rebooted after (wanted)', 'lost', 'refused')
# Seconds of silence after which a service is dead, unless it is forced down.
_SILENCE = 12
#: Seconds until the service is absent and dead, and two passes.
WANTED = services.DOWN_TIME + 2 * services.PASS_INTERVAL + _SILENCE
# Seconds: far more than the takeover takes.
_PATIENCE = 90


@dataclasses.dataclass(frozen=True)
class Death:
    """A way in which a service dies.

    :ivar name: its name in the table
    :ivar forced: whether an operator forces the service down at once
    """

    name: str
    forced: bool

    @property
    def wanted(self) -> float:
        """The seconds that the takeover may take."""
        return WANTED - (_SILENCE if self.forced else 0)


DEATHS = [
    Death(f'kill -9, dead after {_SILENCE} s of silence', False),
    Death('kill -9, and forced down at once', True),
]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The state of the servers of a service that has died.

    :ivar wanted: seconds that the takeover may take
    :ivar rebooted: seconds from the death until each server was rebooted; None
        if that did not happen in time
    :ivar lost: how many servers are not active in the end
    :ivar refused: how many later reboots were refused, or never done
    """

    wanted: float
    rebooted: float | None
    lost: int
    refused: int

    @property
    def passed(self) -> bool:
        """Whether all servers were taken over, and work."""
        return self.rebooted is not None and not self.lost + self.refused

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        rebooted = ('never' if self.rebooted is None
                    else f'{self.rebooted:.0f} s')
        return [f'{rebooted} ({self.wanted:.0f} s)', str(self.lost),
                str(self.refused)]


def measure(lab: cloud.Lab, death: Death) -> Outcome:
    """Kill a service, and measure when its servers are rebooted.

    :param lab: the lab
    :param death: how the service is to die
    """
    link = lab.connect()
    is_silent = contextlib.nullcontext(lab) if death.forced else (
        dead_after_silence(lab))
    with is_silent, booted(lab) as found:
        lab.compute(HOST).kill()
        start = time.monotonic()
        if death.forced:
            operators.force_down(lab, HOST, True)
        for server in found:
            link.compute.reboot_server(server, 'HARD')
        over = operators.wait(lambda: all(
            _is_well(link, each) for each in found), _PATIENCE)
        rebooted = time.monotonic() - start if over else None
        refused = sum(not reboot(link, each) for each in found)
        lost = sum(not _is_well(link, each) for each in found)
        if death.forced:
            operators.force_down(lab, HOST, False)
        lab.start_compute(HOST)
    return Outcome(death.wanted, rebooted, lost, refused)


@contextlib.contextmanager
def booted(lab: cloud.Lab) -> Iterator[list[str]]:
    """Boot servers on the service that is to die, and delete them in the end.

    :param lab: the lab
    :returns: their UUIDs
    """
    link = lab.connect()
    # So that all servers have room on its nodes.
    lab.wait(f'Nodes of {HOST}', lambda: (
        lab.shares().get(HOST, 0) > _SERVERS))
    found = [servers.wait_active(link, servers.boot(
        link, f'server-of-dead-{number}', HOST)) for number in range(_SERVERS)]
    yield [server.id for server in found]
    servers.delete(link, found)


@contextlib.contextmanager
def dead_after_silence(lab: cloud.Lab) -> Iterator[None]:
    """Let a service count as dead after some seconds of silence.

    :param lab: the lab
    """
    if lab.state.driver == lab_state.STOCK_DRIVER:
        yield
        return
    for name in lab.state.computes:
        lab.reconfigure(name, {'ironic_ring': {'failover_after': _SILENCE}})
    try:
        yield
    finally:
        for name in lab.state.computes:
            lab.reconfigure(name, {})


def _is_well(link: connection.Connection, server: str) -> bool:
    """Return whether a server is active, and nothing is being done with it."""
    found = link.compute.find_server(server)
    return (found is not None and found.task_state is None
            and found.status == 'ACTIVE')


def reboot(link: connection.Connection, server: str) -> bool:
    """Reboot a server, and return whether that was done.

    :param link: the cloud
    :param server: its UUID
    """
    try:
        link.compute.reboot_server(server, 'HARD')
    except exceptions.HttpException:
        return False
    return operators.wait(lambda: _is_well(link, server), _PATIENCE)
