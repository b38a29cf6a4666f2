# SPDX-License-Identifier: Apache-2.0

"""Measures effects of faults: ``python -m nova_ironic_ring_tools.faults``."""

import argparse
from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
import functools
import re
import sys
from typing import Any
from typing import Protocol

import prettytable

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring_tools.faults import builds
from nova_ironic_ring_tools.faults import crowd
from nova_ironic_ring_tools.faults import deaths
from nova_ironic_ring_tools.faults import events
from nova_ironic_ring_tools.faults import handovers
from nova_ironic_ring_tools.faults import parallel
from nova_ironic_ring_tools.faults import recoveries
from nova_ironic_ring_tools.faults import setups
from nova_ironic_ring_tools.faults import silences
from nova_ironic_ring_tools import updates

_DRIVERS = {'ring': lab_state.RING_DRIVER, 'nova': lab_state.STOCK_DRIVER,
            'pool': lab_state.POOL_DRIVER}
#: The drivers whose records are of nodes, not of pools.
_OF_NODES = ('ring', 'nova')
_COMPUTES = 3
_NODES = 30
_SERVERS = 6


class _Row(Protocol):
    """An event, in a row of a table."""

    @property
    def name(self) -> str:
        """Its name in the table."""


class _Outcome(Protocol):
    """The effects of an event."""

    @property
    def passed(self) -> bool:
        """Whether there are no more effects than are allowed."""

    def cells(self) -> list[str]:
        """Return the cells of the table."""


@dataclasses.dataclass(frozen=True)
class _Table:
    """Events that are measured in the same way.

    :ivar columns: the titles of the columns
    :ivar rows: the events
    :ivar measure: makes an event happen, and measures its effects
    :ivar around: prepares the lab for the events, and restores it after them
    :ivar drivers: the names of the drivers that it is for
    """

    columns: Sequence[str]
    rows: Sequence[_Row]
    measure: Callable[[cloud.Lab, Any], _Outcome]
    around: Callable[[cloud.Lab], contextlib.AbstractContextManager[Any]] = (
        contextlib.nullcontext)
    drivers: Sequence[str] = _OF_NODES


def _tables(silent: int) -> list[_Table]:
    """Return all tables.

    :param silent: for how many seconds something is silent at most
    """
    return [
        _Table(handovers.COLUMNS, events.EVENTS, handovers.measure),
        _Table(deaths.COLUMNS, deaths.DEATHS, deaths.measure),
        *(_Table(silences.COLUMNS, rows, functools.partial(
            silences.measure, longest=silent), drivers=(driver,))
            for driver, rows in (('ring', silences.SILENCES),
                                 ('pool', silences.WITH_POOLS))),
        _Table(recoveries.COLUMNS, recoveries.WORKS, recoveries.measure),
        _Table(builds.COLUMNS, builds.FAULTS, builds.measure,
               builds.one_at_a_time, tuple(_DRIVERS)),
        _Table(parallel.COLUMNS, parallel.FLOODS, parallel.measure,
               parallel.with_nodes, ('pool',)),
    ]


#: For each table, the outcomes of its rows in order; there are fewer if the
#: measurement of a row has failed.
_Results = list[list[_Outcome]]


def run(driver: str, tables: Sequence[_Table], interval: int) -> _Results:
    """Bring a lab up, and measure all events of some tables.

    :param driver: ``ring``, ``nova`` or ``pool``
    :param tables: the tables
    :param interval: seconds after which an unchanged node is updated
    :returns: the outcomes
    :raises LabError: if the lab does not come up
    """
    results: _Results = [[] for _ in tables]
    fixture = cloud.Cloud(
        place.directory(f'faults-{driver}'), driver=_DRIVERS[driver],
        computes=_COMPUTES, node_count=_NODES, alike=True,
        options=updates.options(interval), progress=print)
    with fixture:
        lab = fixture.lab
        connection = lab.connect()
        for number in range(_SERVERS):
            servers.wait_active(connection, servers.boot(
                connection, f'server-{number}',
                f'compute-{number % _COMPUTES + 1}'))
        name = ''
        try:
            for table, outcomes in zip(tables, results):
                with table.around(lab):
                    for row in table.rows:
                        name = row.name
                        outcome = table.measure(lab, row)
                        print(f'{driver}: {name}: '
                              f'{", ".join(outcome.cells())}'
                              f'{"" if outcome.passed else " (too much)"}',
                              flush=True)
                        outcomes.append(outcome)
        except errors.LabError as error:
            # The table of the results until now is printed all the same.
            print(f'{driver}: {name}: {error}', file=sys.stderr)
        if any(_failed(table, outcomes)
               for table, outcomes in zip(tables, results)):
            print(f'The logs are in {lab.keep_logs()}.', flush=True)
    return results


def main(arguments: Sequence[str]) -> int:
    """Measure all events, and print their effects.

    :param arguments: of the command line
    :returns: the exit status: 1 if a driver of this project has more effects
        than are allowed, 2 if a lab does not come up
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.faults', description=__doc__)
    parser.add_argument('--driver', choices=[*_DRIVERS, 'both'],
                        default='ring', help='whose tables to print')
    parser.add_argument('--only', default='', metavar='REGEX',
                        help='the rows whose names match; each begins with '
                             'the lab as the row before has left it')
    parser.add_argument('--crowd', type=int, metavar='N',
                        help='print no tables, but measure how N servers are '
                             'taken over in one pass')
    parser.add_argument('--silent', type=int, default=silences.LONGEST,
                        metavar='N', help='for how many seconds something is '
                        'silent, if not all is taken over before (default: '
                        '%(default)s)')
    parser.add_argument('--setups', action='store_true',
                        help='print no tables, but compare ways to run '
                             'nova-compute by what a death costs')
    updates.add_argument(parser)
    chosen = parser.parse_args(arguments)
    interval = chosen.full_update_interval
    if chosen.crowd and chosen.driver == 'both':
        parser.error('--crowd takes one driver at a time')
    if chosen.setups:
        print(setups.compare())
        return 0
    print(f'{chosen.driver}, {updates.headline(interval)}', flush=True)
    if chosen.crowd:
        print(crowd.measure(chosen.crowd, _DRIVERS[chosen.driver], interval))
        return 0
    drivers = (list(_OF_NODES) if chosen.driver == 'both'
               else [chosen.driver])
    tables = [dataclasses.replace(table, rows=rows)
              for table in _tables(chosen.silent)
              if set(drivers) <= set(table.drivers) and (
                  rows := [row for row in table.rows
                           if re.search(chosen.only, row.name)])]
    try:
        results = {driver: run(driver, tables, interval)
                   for driver in drivers}
    except errors.LabError as error:
        print(error, file=sys.stderr)
        return 2

    for number, table in enumerate(tables):
        print(_print(table, {driver: found[number]
                             for driver, found in results.items()}))
    # Nova's own driver is there for comparison only.
    failed = [row.name for driver, found in results.items()
              if driver != 'nova' for table, outcomes in zip(tables, found)
              for row in _failed(table, outcomes)]
    if failed:
        print(f'More than is allowed: {", ".join(failed)}.')
    count = sum(len(table.rows) for table in tables)
    print(f'{count - len(failed)} passed, {len(failed)} failed')
    return 1 if failed else 0


def _print(table: _Table, results: Mapping[str, Sequence[_Outcome]]
           ) -> prettytable.PrettyTable:
    """Make the table to print, with columns for each driver."""
    printed = prettytable.PrettyTable(
        ['event'] + [f'{driver}: {column}' for driver in results
                     for column in table.columns])
    printed.align['event'] = 'l'
    for number, row in enumerate(table.rows):
        printed.add_row([row.name] + [
            cell for outcomes in results.values() for cell in (
                outcomes[number].cells() if number < len(outcomes)
                else ['-'] * len(table.columns))])
    return printed


def _failed(table: _Table, outcomes: Sequence[_Outcome]) -> list[_Row]:
    """Return the rows that have failed, or were not measured."""
    return [row for number, row in enumerate(table.rows)
            if not (number < len(outcomes) and outcomes[number].passed)]


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
