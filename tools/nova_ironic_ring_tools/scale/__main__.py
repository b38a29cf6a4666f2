# SPDX-License-Identifier: Apache-2.0
"""Measures what thousands of nodes cost, with each driver.

``python -m nova_ironic_ring_tools.scale``
"""

import argparse
from collections.abc import Sequence
import dataclasses
import sys

import prettytable

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring_tools.scale import changes
from nova_ironic_ring_tools.scale import commands
from nova_ironic_ring_tools.scale import costs
from nova_ironic_ring_tools.scale import listing
from nova_ironic_ring_tools.scale import rpc
from nova_ironic_ring_tools.scale import seed
from nova_ironic_ring_tools.scale import stages


@dataclasses.dataclass(frozen=True)
class Kind:
    """A way to divide the nodes among the services.

    :ivar driver: the value of ``compute_driver`` in nova.conf
    :ivar shards: how many shards the nodes are in; 0 for no shards
    :ivar each_pass: whether each node is updated in each pass
    """

    driver: str
    shards: int = 0
    each_pass: bool = False

    @property
    def overrides(self) -> services.Sections:
        """The further options for nova.conf, by section."""
        options: dict[str, object] = {}
        if self.shards:
            options['listing'] = 'shards'
        if self.each_pass:
            options['full_update_interval'] = 0
        return {'ironic_ring': options} if options else {}


_KINDS = {'nova': Kind(lab_state.STOCK_DRIVER),
          'ring': Kind(lab_state.RING_DRIVER),
          'each-pass': Kind(lab_state.RING_DRIVER, each_pass=True),
          'shards': Kind(lab_state.RING_DRIVER, 40),
          'pool': Kind(lab_state.POOL_DRIVER)}


# Nova's default. The lab's own value is shorter than a restart.
_PATIENT: services.Sections = {'DEFAULT': {'service_down_time': 60}}


@dataclasses.dataclass(frozen=True)
class Run:
    """The results of a driver with a number of nodes.

    :ivar kind: the name of the way to divide the nodes
    :ivar count: how many nodes there were
    :ivar stages: the results of each stage
    :ivar memory: the memory of each service at the end, in MiB
    """

    kind: str
    count: int
    stages: Sequence[stages.Stage]
    memory: dict[str, int]


def measure(name: str, count: int, window: float, restarts: bool) -> Run:
    """Bring a lab up, and measure a driver.

    :param name: the name of the way to divide the nodes
    :param count: how many nodes there are to be
    :param window: for how long to measure the steady passes, in seconds
    :param restarts: whether to end with a restart, which is shorter than the
        time after which a silent service counts as dead
    :raises LabError: if the lab does not come up, or a stage does not end
    """
    kind = _KINDS[name]
    fixture = cloud.Cloud(
        place.directory(f'scale-{name}'), driver=kind.driver,
        computes=0, node_count=1, progress=print)
    with fixture:
        lab = fixture.lab
        _enroll(lab, count, kind.shards)
        with rpc.Counter(lab.state.temporary) as sent:
            course = stages.Course(lab, count, sent)
            options = {**kind.overrides, **sent.options}
            done = (course.run_until_restart(window, {**options, **_PATIENT})
                    if restarts else course.run(window, options))
        return Run(name, count, done, costs.memory(lab))


def _enroll(lab: cloud.Lab, count: int, shards: int) -> None:
    """Add nodes to a lab that has one, and spread all evenly over shards."""
    with lab.database.connect('ironic') as opened:
        seed.seed(seed.Databases(opened), seed.Size(count, (), 1))
        if shards:
            with opened.cursor() as cursor:
                cursor.execute("UPDATE nodes SET shard = "
                               "CONCAT('shard-', MOD(id, %s))", (shards,))


def table(runs: Sequence[Run]) -> prettytable.PrettyTable:
    """Make a table of the results.

    :param runs: the results
    """
    printed = prettytable.PrettyTable(
        ['driver', 'nodes', 'stage', 'seconds', 'first after',
         *(f'{name} s' for name in costs.SERVICES), 'queries',
         'Placement requests', 'RPC', 'rows', 'taken', 'forced'])
    printed.align = 'r'
    printed.align['driver'] = printed.align['stage'] = 'l'
    for run in runs:
        for stage in run.stages:
            printed.add_row([
                run.kind, run.count, stage.name, f'{stage.used.at:.0f}',
                '-' if stage.first is None else f'{stage.first:.0f}',
                *(f'{stage.used.processor(name):.0f}'
                  for name in costs.SERVICES),
                stage.used.queries, stage.used.requests, stage.used.calls,
                stage.used.rows, stage.used.taken, stage.used.forced])
        printed.add_row([
            run.kind, run.count, 'memory, MiB', '', '',
            *(run.memory[name] for name in costs.SERVICES), *[''] * 6])
    return printed


def _measure_listing(sizes: Sequence[listing.Size]) -> int:
    """Measure only the listing of nodes.

    :param sizes: the sizes of the clouds
    :returns: as :func:`main`
    """
    for size in sizes:
        try:
            run = listing.measure(size)
        except errors.LabError as error:
            print(f'{size.nodes} nodes: {error}', file=sys.stderr)
            return 2
        print(listing.table(run))
        print(listing.summary(run), flush=True)
    return 0


def _measure_commands(counts: Sequence[int], hosts: int) -> int:
    """Measure only the operator's command.

    :param counts: how many nodes the clouds are to have
    :param hosts: how many services have them
    :returns: as :func:`main`
    """
    for count in counts:
        try:
            print(commands.table(commands.measure(count, hosts)), flush=True)
        except errors.LabError as error:
            print(f'{count} nodes: {error}', file=sys.stderr)
            return 2
    return 0


def _measure_changes(names: Sequence[str], counts: Sequence[int]) -> int:
    """Measure only how soon a change in Ironic is in Placement.

    :param names: the names of the drivers
    :param counts: how many nodes the service is to have
    :returns: as :func:`main`
    """
    for name in names:
        for count in counts:
            try:
                run = changes.measure(changes.DRIVERS[name], count)
            except errors.LabError as error:
                print(f'{name}, {count} nodes: {error}', file=sys.stderr)
                return 2
            print(changes.table(run), flush=True)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Measure each driver with each number of nodes, and print a table.

    :param arguments: of the command line
    :returns: the exit status: 2 if a lab does not come up, or a stage does not
        end
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.scale', description=__doc__)
    parser.add_argument('--driver', nargs='+', choices=list(_KINDS),
                        default=list(_KINDS), help='which ones')
    parser.add_argument('--nodes', nargs='+', type=int, metavar='N',
                        help='how many (default: 2000; 10000 with --listing '
                        'or --commands; 200, 1000 and 4000 with --changes)')
    parser.add_argument('--window', type=float, default=60,
                        metavar='SECONDS', help='how long to measure the '
                        'steady passes (default: 60)')
    parser.add_argument('--restart', action='store_true',
                        help="measure no more than a restart, with Nova's "
                        'default of service_down_time, in which the nodes '
                        'stay')
    parser.add_argument('--listing', action='store_true',
                        help='measure only the listing of nodes, which needs '
                        'no nova-compute')
    parser.add_argument('--commands', action='store_true',
                        help='measure only how long nova-ironic-ring takes')
    parser.add_argument('--changes', action='store_true',
                        help='measure only how soon the ring driver and the '
                        'pool driver tell Placement of a change in Ironic if '
                        'the next pass is an hour away')
    parser.add_argument('--services', type=int, default=10, metavar='N',
                        help='with --listing, how many services list the '
                        'nodes, one after the other; with --commands, how '
                        'many services have the nodes (default: 10)')
    parser.add_argument('--shards', type=int, default=64, metavar='N',
                        help='with --listing, how many shards the nodes are '
                        'in (default: 64)')
    chosen = parser.parse_args(arguments)
    if chosen.listing:
        return _measure_listing([
            listing.Size(count, chosen.services, chosen.shards)
            for count in chosen.nodes or [10_000]])
    if chosen.changes:
        return _measure_changes(
            [name for name in chosen.driver if name in changes.DRIVERS],
            chosen.nodes or [200, 1000, 4000])
    if chosen.commands:
        return _measure_commands(chosen.nodes or [10_000], chosen.services)
    runs = []
    status = 0
    for count in chosen.nodes or [2000]:
        for driver in chosen.driver:
            try:
                runs.append(measure(
                    driver, count, chosen.window, chosen.restart))
            except errors.LabError as error:
                # The table of the other results is printed all the same.
                print(f'{driver}, {count} nodes: {error}', file=sys.stderr)
                status = 2
            else:
                print(table(runs[-1:]), flush=True)
    if len(runs) > 1:
        print(table(runs))
    return status


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
