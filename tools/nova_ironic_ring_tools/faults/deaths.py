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

_HOST = 'compute-2'
_SERVERS = 3
#: The titles of the columns.
COLUMNS = ('rebooted after (wanted)', 'lost', 'refused')
# Seconds of silence after which a service is dead, unless it is forced down.
_SILENCE = 12
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
        """The seconds until the service is absent and dead, and two passes."""
        return services.DOWN_TIME + 2 * services.PASS_INTERVAL + (
            0 if self.forced else _SILENCE)


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
    compute = link.compute
    with _silence(lab, 0 if death.forced else _SILENCE):
        # So that all servers have room on its nodes.
        lab.wait(f'Nodes of {_HOST}', lambda: (
            list(lab.owners().values()).count(_HOST) > _SERVERS))
        booted = [servers.wait_active(link, servers.boot(
            link, f'server-of-dead-{number}', _HOST)).id
            for number in range(_SERVERS)]
        lab.compute(_HOST).kill()
        start = time.monotonic()
        if death.forced:
            operators.force_down(lab, _HOST, True)
        for server in booted:
            compute.reboot_server(server, 'HARD')
        over = operators.wait(lambda: all(
            _is_well(link, each) for each in booted), _PATIENCE)
        rebooted = time.monotonic() - start if over else None
        refused = sum(not _reboot(link, each) for each in booted)
        lost = sum(not _is_well(link, each) for each in booted)
        if death.forced:
            operators.force_down(lab, _HOST, False)
        lab.start_compute(_HOST)
        servers.delete(link, [compute.get_server(each) for each in booted])
    return Outcome(death.wanted, rebooted, lost, refused)


@contextlib.contextmanager
def _silence(lab: cloud.Lab, seconds: int) -> Iterator[None]:
    """Set the seconds of silence after which a service counts as dead."""
    if lab.state.driver == lab_state.STOCK_DRIVER or not seconds:
        yield
        return
    for name in lab.state.computes:
        lab.reconfigure(name, {'ironic_ring': {'failover_after': seconds}})
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


def _reboot(link: connection.Connection, server: str) -> bool:
    """Reboot a server, and return whether that was done."""
    try:
        link.compute.reboot_server(server, 'HARD')
    except exceptions.HttpException:
        return False
    return operators.wait(lambda: _is_well(link, server), _PATIENCE)
