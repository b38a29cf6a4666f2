# SPDX-License-Identifier: Apache-2.0

"""Draw the pictures of the documentation, from a real run.

On a lab, services join, die, come back and are drained, and a Prometheus
scrapes their metrics. Meanwhile this draws what an operator's terminal shows,
and in the end the panels of the dashboard.
"""

import argparse
from collections.abc import Sequence
import pathlib
import sys
import time

import fixtures

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring_tools.faults import operators
from nova_ironic_ring_tools.pictures import dashboard
from nova_ironic_ring_tools.pictures import terminal
from nova_ironic_ring_tools import prometheus

_IMAGES = pathlib.Path(__file__).resolve().parents[3] / 'doc/source/images'
_HOSTS = ('compute-1', 'compute-2', 'compute-3', 'compute-4')
_NODES = 30
_NAME = 'pictures'
_COLUMNS = 100
# Seconds between two events.
_PAUSE = 30


class Story:
    """The events on the lab, and the pictures of a terminal."""

    def __init__(self, lab: cloud.Lab, ports: dict[str, int],
                 images: pathlib.Path | None) -> None:
        """Choose the lab.

        :param lab: a lab without a nova-compute
        :param ports: the port of each service's metrics
        :param images: the directory for the pictures of a terminal; None to
            draw none
        """
        self._lab = lab
        self._ports = ports
        self._images = images

    def tell(self) -> None:
        """Make all events happen, and draw the pictures of a terminal.

        :raises LabError: if an event does not have its effect in time
        """
        *first, last = _HOSTS
        for host in first:
            self._start(host)
        self._lab.discover_hosts()
        self._settle()
        connected = self._lab.connect()
        for number in range(4):
            servers.wait_active(connected, servers.boot(
                connected, f'server-{number + 1}', first[number % 2]))
        time.sleep(_PAUSE)
        self._start(last)
        self._lab.discover_hosts()
        self._settle()
        time.sleep(_PAUSE)

        dead, drained, *_ = first
        self._lab.compute(dead).kill()
        self._lab.wait(f'{dead} down', lambda: any(
            member.host == dead and member.state == 'absent'
            for member in self._lab.ring()))
        if self._images is None:
            # Before the failover, the ring does not settle: the pools of the
            # dead service are reserved for its servers.
            time.sleep(_PAUSE)
        else:
            self._settle()
        self._picture('watch', 'show --watch', until=last)
        self._picture('failover', f'failover {dead} --yes')
        time.sleep(_PAUSE)
        self._lab.start_compute(dead)
        operators.force_down(self._lab, dead, False)
        self._settle()
        time.sleep(_PAUSE)
        # A drain takes some seconds more, so it still waits.
        self._picture('drain', f'drain {drained} --yes', until='0:00:02')
        time.sleep(_PAUSE)

    def _start(self, host: str) -> None:
        self._lab.add_compute(host, {'ironic_ring': {
            'metrics_listen': f'127.0.0.1:{self._ports[host]}'}})
        self._lab.wait_alive(host)

    def _settle(self) -> None:
        self._lab.wait_settled(_NODES)

    def _picture(self, name: str, command: str, until: str | None = None
                 ) -> None:
        """Run a command, and draw what the terminal shows."""
        shown = terminal.Terminal(_COLUMNS)
        shown.run(
            f'nova-ironic-ring {command}',
            [sys.executable, '-W', 'ignore', '-m', 'nova_ironic_ring.lab',
             '--name', _NAME, 'ring', *command.split()], until=until)
        if self._images is not None:
            shown.draw(f'nova-ironic-ring {command.split()[0]}',
                       self._images / f'terminal-{name}.svg')


def main(arguments: Sequence[str]) -> int:
    """Draw all pictures.

    :param arguments: of the command line
    :returns: the exit status: 2 if a picture cannot be drawn
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.pictures', description=__doc__)
    parser.add_argument('directory', nargs='?', type=pathlib.Path,
                        default=_IMAGES, help='where the pictures are '
                        'written (default: those of the documentation)')
    parser.add_argument('--driver', choices=('ring', 'pool'), default='ring',
                        help='the driver; with "pool", the dashboard alone is '
                        'drawn (default: ring)')
    parsed = parser.parse_args(arguments)
    has_pools = parsed.driver == 'pool'
    try:
        prometheus.find_program()
        with cloud.Cloud(place.directory(_NAME), computes=0,
                         node_count=_NODES, progress=print,
                         driver=lab_state.POOL_DRIVER if has_pools
                         else lab_state.RING_DRIVER) as fixture:
            _draw(fixture.lab, parsed.directory, has_pools)
    except fixtures.MultipleExceptions as failed:
        print(failed.args[0][1], file=sys.stderr)
        return 2
    except (errors.LabError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _draw(lab: cloud.Lab, images: pathlib.Path, has_pools: bool) -> None:
    web, *ports = lab_state.free_ports(
        1 + len(_HOSTS), lab.state.ports.values())
    targets = dict(zip(_HOSTS, ports))
    jobs = [{'job_name': 'nova-ironic-ring', 'static_configs': [
        # The name that it would have on a machine of its own.
        {'targets': [f'127.0.0.1:{port}'], 'labels': {'instance': host}}
        for host, port in targets.items()]}]
    with prometheus.Prometheus(web, jobs) as watching:
        started = time.monotonic()
        Story(lab, targets, None if has_pools else images).tell()
        dashboard.draw(
            watching, time.monotonic() - started, images / (
                'dashboard-pools.svg' if has_pools else 'dashboard.svg'))


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
