# SPDX-License-Identifier: Apache-2.0

"""Compares ways to run nova-compute, by what the death of a service costs.

In each set-up, a service dies that has a free share of the nodes, a server,
and a build under way. Nobody starts it again for 90 seconds.
"""

from collections.abc import Collection
import dataclasses
import time

from openstack.compute.v2 import server as sdk_server
from openstack import connection
import prettytable

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import view
from nova_ironic_ring_tools.faults import deployments
from nova_ironic_ring_tools.faults import watch

_COMPUTES = 3
_NODES = 30
_DEAD = 'compute-1'
# Seconds of silence after which the drivers of this project move instances.
_SILENCE = 12
# Seconds from the death to the request for another build.
_LATER = 30
# Seconds for which the service is dead, and for which it is watched when it
# has come back.
_OUTAGE = 90
_PATIENCE = 180
# Seconds without a change of owner after which none is expected any more.
_QUIET = 20
_POLL = 0.5


@dataclasses.dataclass(frozen=True)
class SetUp:
    """A way to run nova-compute for Ironic.

    :ivar name: its name in the table
    :ivar driver: the value of ``compute_driver`` in nova.conf
    :ivar computes: how many nova-computes
    :ivar sharded: whether each has one of Ironic's shards for itself
    """

    name: str
    driver: str
    computes: int = _COMPUTES
    sharded: bool = False


SETUPS = (
    SetUp("Nova's driver, one service", lab_state.STOCK_DRIVER, computes=1),
    SetUp("Nova's driver, one service a shard", lab_state.STOCK_DRIVER,
          sharded=True),
    SetUp("Nova's driver, three services", lab_state.STOCK_DRIVER),
    SetUp('Ring driver, three services', lab_state.RING_DRIVER),
    SetUp('Pool driver, three services', lab_state.POOL_DRIVER),
)


@dataclasses.dataclass
class Outage:
    """What the death of a service has cost.

    Times are None if that did not happen while the service was dead.

    :ivar share: how many free nodes were with the service
    :ivar usable: seconds until a service that is up has each free node
    :ivar rebooted: seconds until the server of the service was rebooted
    :ivar begun: the status of the server that was being built, at the end;
        and after the return of the service, if that has changed it
    :ivar asked: the status of a server that was asked for later, at the end
    :ivar healed: seconds from the start of the service until all that is done
    :ivar changes: how many changes of owner the death and the return made
    """

    share: int
    usable: float | None = None
    rebooted: float | None = None
    begun: str = ''
    asked: str = ''
    healed: float | None = None
    changes: int = 0


#: The titles of the columns.
COLUMNS = ('set-up', 'free nodes of the dead', 'usable after',
           'server rebooted after', 'build under way', 'build asked for later',
           'all well after its start', 'changes of owner')


def unusable(seen: view.Snapshot, up: Collection[str]) -> int:
    """Count the free nodes that no service that is up has.

    :param seen: what the database says
    :param up: the services that are up
    """
    if not seen.pools:
        return sum(row.free and row.owner not in up for row in seen.rows)
    free = sum(user is None for user in seen.nodes.values())
    return free - sum(
        pool.total - pool.reserved for pool in seen.pools if pool.owner in up
    ) + sum(user in up for user in seen.nodes.values() if user is not None)


def compare() -> prettytable.PrettyTable:
    """Measure all set-ups, one lab after the other.

    :returns: a row for each
    :raises LabError: if a lab does not come up
    """
    printed = prettytable.PrettyTable(COLUMNS)
    printed.align[COLUMNS[0]] = 'l'
    for setup in SETUPS:
        row = [setup.name, *_cells(_measure(setup))]
        print(', '.join(row), flush=True)
        printed.add_row(row)
    return printed


def _cells(outage: Outage) -> list[str]:
    """Return the cells of the table."""
    def seconds(time: float | None) -> str:
        return 'never' if time is None else f'{time:.0f} s'

    return [str(outage.share), seconds(outage.usable),
            seconds(outage.rebooted), outage.begun, outage.asked,
            seconds(outage.healed), str(outage.changes)]


def _measure(setup: SetUp) -> Outage:
    """Bring a lab up, and let a service die in it."""
    fixture = cloud.Cloud(
        place.directory('faults-setups'), driver=setup.driver,
        computes=setup.computes, node_count=_NODES, alike=True,
        options={'ironic_ring': {'failover_after': _SILENCE}}, progress=print)
    with fixture:
        if setup.sharded:
            _shard(fixture.lab)
        with deployments.slow(fixture.lab):
            return _Experiment(fixture.lab).run()


def _shard(lab: cloud.Lab) -> None:
    """Give each service one of Ironic's shards, with as many nodes."""
    ironic = lab.connect('lab-system').baremetal
    names = list(lab.state.computes)
    for name in names:
        lab.compute(name).kill()
        lab.configure_compute(name, {'ironic': {'shard': f'of-{name}'}})
    for number, node in enumerate(ironic.nodes()):
        ironic.patch_node(node, [{
            'op': 'add', 'path': '/shard',
            'value': f'of-{names[number % len(names)]}'}])
    for name in names:
        lab.start_compute(name)
    lab.wait('As many nodes for each service', lambda: (
        set(lab.shares().values()) == {_NODES // len(names)}))


class _Experiment:
    """A service that dies and comes back, and what is seen of that."""

    def __init__(self, lab: cloud.Lab) -> None:
        self._lab = lab
        self._link: connection.Connection = lab.connect()
        self._watch = watch.Watch(lab)
        self._start = 0.0

    def run(self) -> Outage:
        """Measure it all."""
        kept = servers.wait_active(
            self._link, servers.boot(self._link, 'kept', _DEAD))
        begun = servers.boot(self._link, 'begun', _DEAD)
        deployments.wait(self._lab, [begun.id])
        self._watch.restart()
        self._lab.compute(_DEAD).kill()
        self._start = time.monotonic()
        outage = Outage(self._unusable())
        self._link.compute.reboot_server(kept, 'HARD')
        asked: sdk_server.Server | None = None
        while (now := self._elapsed()) < _OUTAGE:
            if outage.usable is None and not self._unusable():
                outage.usable = now
            if outage.rebooted is None and self._is_well(kept):
                outage.rebooted = now
            if asked is None and now > _LATER:
                asked = servers.boot(self._link, 'asked')
            time.sleep(_POLL)
        assert asked is not None
        outage.begun, outage.asked = self._status(begun), self._status(asked)

        self._start = time.monotonic()
        self._lab.start_compute(_DEAD)
        while (now := self._elapsed()) < _PATIENCE:
            if not self._unusable() and self._is_well(kept) and (
                    self._status(begun) != 'BUILD'):
                outage.healed = now
                break
            time.sleep(_POLL)
        if (status := self._status(begun)) != outage.begun:
            outage.begun += f', then {status}'
        self._wait_quiet()
        outage.changes = len(self._watch.changes())
        return outage

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _wait_quiet(self) -> None:
        """Wait until no node has changed hands for a while."""
        count = -1
        while count != (count := len(self._watch.changes())):
            time.sleep(_QUIET)

    def _unusable(self) -> int:
        """Count the free nodes that no service that is up has."""
        up = [name for name in self._lab.state.computes
              if self._lab.compute(name).state == 'running']
        with self._lab.cell() as opened:
            return unusable(view.read(opened), up)

    def _is_well(self, server: sdk_server.Server) -> bool:
        found = self._link.compute.get_server(server.id)
        return found.task_state is None and found.status == 'ACTIVE'

    def _status(self, server: sdk_server.Server) -> str:
        return str(self._link.compute.get_server(server.id).status)
