# SPDX-License-Identifier: Apache-2.0

"""Measures how long an operator waits for nova-ironic-ring with many nodes.

No nova-compute runs: this writes the records of nodes, services and instances
into the databases of a real cloud, and lets the services look alive. The
command line is that of ``__main__``, with ``--commands``.
"""

from collections.abc import Sequence
import dataclasses
import subprocess
import sys
import time

import nova.conf
import prettytable

from nova_ironic_ring.command.access import source
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import process
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import tenant
from nova_ironic_ring_tools.scale import seed

CONF = nova.conf.CONF

# The service that records the first node.
_FIRST = 'compute-0'
# The fraction of the nodes that have an instance.
_INSTANCES = 0.3
# A command exits with 1 if it finds something wrong, as it does here: no
# service runs.
_DONE = (0, 1)


@dataclasses.dataclass(frozen=True)
class Timing:
    """How long a command took, or the listing of Ironic's nodes.

    :ivar name: its name in the table
    :ivar elapsed: seconds by the clock
    :ivar ironic: seconds of processor time that Ironic took meanwhile
    """

    name: str
    elapsed: float
    ironic: float


def measure(nodes: int, hosts: int, rounds: int = 3) -> list[Timing]:
    """Bring a lab up, and measure each command.

    :param nodes: how many nodes there are to be
    :param hosts: how many services have them
    :param rounds: how often each command is run; the median counts
    :returns: the listing of Ironic's nodes, and then the commands
    :raises LabError: if a lab does not come up, or a command fails
    """
    names = [f'compute-{number}' for number in range(hosts)]
    fixture = cloud.Cloud(
        place.directory('scale-commands'), driver=lab_state.RING_DRIVER,
        computes=0, node_count=1, progress=print)
    with fixture:
        lab = fixture.lab
        lab.add_compute(_FIRST)
        lab.wait_settled(1)
        lab.compute(_FIRST).stop()
        with (lab.database.connect('ironic') as ironic, lab.cell() as cell,
              lab.database.connect('placement') as placement):
            seed.seed(seed.Databases(ironic, cell, placement), seed.Size(
                nodes, names, cloud.PARTITIONS, _INSTANCES))
        # Ironic would look at the power of all nodes meanwhile. An operator's
        # conductors do that on other machines.
        services.Ironic(lab.context, overrides={
            'conductor': {'sync_power_state_interval': 0}}).restart()
        CONF([], project='nova', default_config_files=[
            str(lab.nova.common)])
        return _measure(lab, names, rounds)


def _measure(lab: cloud.Lab, names: Sequence[str], rounds: int
             ) -> list[Timing]:
    _let_live(lab)
    node = min(lab.owners())
    asked = [
        ('--version',), ('show', '--no-ironic'), ('show',), ('plan',),
        ('plan', '--remove', names[-1]), ('check',), ('node', 'show', node),
        ('node', 'list', '--owner', names[0]), ('history', node),
        ('drain', names[-1], '--dry-run'),
        ('failover', names[-1], '--alive', '--dry-run')]
    return [_median([_listing(lab) for _ in range(rounds)]), *(
        _median([_run(lab, command) for _ in range(rounds)])
        for command in asked), _forced_down(lab, names[-1])]


def _median(timings: Sequence[Timing]) -> Timing:
    """Return the median of timings."""
    timings = sorted(timings, key=lambda timing: timing.elapsed)
    middle = timings[len(timings) // 2]
    print(f'{middle.name}: {middle.elapsed:.1f} s', flush=True)
    return middle


def _listing(lab: cloud.Lab) -> Timing:
    """List Ironic's nodes as the command does, and nothing else."""
    asking = source.Source()
    before, begun = _ironic(lab), time.monotonic()
    asking.nodes()
    return Timing("Ironic's listing", time.monotonic() - begun,
                  _ironic(lab) - before)


def _run(lab: cloud.Lab, command: Sequence[str]) -> Timing:
    """Run a command to its end.

    :raises LabError: if it fails
    """
    before, begun = _ironic(lab), time.monotonic()
    done = subprocess.run(
        _program(lab, command), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, env=_environment(lab))
    elapsed = time.monotonic() - begun
    if done.returncode not in _DONE:
        raise errors.LabError(
            f'{" ".join(command)} exits with {done.returncode}: '
            f'{done.stderr.strip()[-500:]}')
    return Timing(' '.join(command), elapsed, _ironic(lab) - before)


def _forced_down(lab: cloud.Lab, host: str) -> Timing:
    """Fail a service over, and measure when it is forced down.

    Then the command is ended, because no service here takes anything over.
    """
    before, begun = _ironic(lab), time.monotonic()
    with subprocess.Popen(
            _program(lab, ('failover', host, '--alive', '--yes')),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=_environment(lab)) as running:
        try:
            lab.wait(f'{host} forced down',
                     lambda: _is_forced_down(lab, host), poll=0.05)
            elapsed = time.monotonic() - begun
        finally:
            running.terminate()
    timing = Timing('failover, until the service is forced down', elapsed,
                    _ironic(lab) - before)
    return _median([timing])


def _is_forced_down(lab: cloud.Lab, host: str) -> bool:
    with lab.cell() as opened, opened.cursor() as cursor:
        cursor.execute('SELECT forced_down FROM services WHERE host = %s',
                       (host,))
        return any(forced for forced, in cursor.fetchall())


def _let_live(lab: cloud.Lab) -> None:
    """Let all services look alive to the command from now on."""
    with lab.nova.operator.open('a') as opened:
        opened.write('\n[DEFAULT]\nservice_down_time = 86400\n')
    with lab.cell() as connected, connected.cursor() as cursor:
        cursor.execute('UPDATE services SET last_seen_up = UTC_TIMESTAMP()')


def _program(lab: cloud.Lab, command: Sequence[str]) -> list[str]:
    program, *options = lab.nova.ring
    return [f'{sys.prefix}/bin/{program}', *options, *command]


def _environment(lab: cloud.Lab) -> dict[str, str]:
    return process.environment(
        lab.state.directory, tenant.variables(lab.state))


def _ironic(lab: cloud.Lab) -> float:
    return lab.state.process('ironic').processor_time()


def table(timings: Sequence[Timing]) -> prettytable.PrettyTable:
    """Make a table of what has been measured.

    :param timings: the listing of Ironic's nodes, and then the commands
    """
    listing = timings[0]
    printed = prettytable.PrettyTable(
        ['command', 'seconds', "Ironic's processor time, s",
         "seconds less Ironic's listing"])
    printed.align = 'r'
    printed.align['command'] = 'l'
    for each in timings:
        printed.add_row([
            each.name, f'{each.elapsed:.1f}', f'{each.ironic:.1f}',
            f'{each.elapsed - listing.elapsed:.1f}'])
    return printed
