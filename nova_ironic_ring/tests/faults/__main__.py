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

"""Measures what a fault costs: ``python -m nova_ironic_ring.tests.faults``."""

import argparse
from collections.abc import Mapping, Sequence
import dataclasses
import re
import sys
import time

import prettytable

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import services
from nova_ironic_ring.lab import state as lab_state
from nova_ironic_ring.tests.faults import crowd
from nova_ironic_ring.tests.faults import deaths
from nova_ironic_ring.tests.faults import events
from nova_ironic_ring.tests.faults import watch

_DRIVERS = {'ring': lab_state.RING_DRIVER, 'stock': lab_state.STOCK_DRIVER}
_COMPUTES = 3
_NODES = 30
_SERVERS = 6
# Seconds: how long nothing may change until all is over, which is longer than
# it takes to find a service absent; and how long to wait for that.
_QUIET = 20
_PATIENCE = 75


@dataclasses.dataclass(frozen=True)
class Result:
    """What an event has cost.

    :ivar changes: how often nodes changed hands
    :ivar needed: how often would have been enough
    :ivar most: how often that node changed hands that did so most often
    :ivar settled: seconds from the beginning to the last change; None if
        nodes went on to change hands, or are not where they belong
    :ivar deleted: records that were deleted
    :ivar providers: resource providers that were deleted
    :ivar passed: whether it has cost no more than it may
    """

    changes: int
    needed: int
    most: int
    settled: float | None
    deleted: int
    providers: int
    passed: bool

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        settled = 'never' if self.settled is None else f'{self.settled:.0f} s'
        return [f'{self.changes} ({self.needed})', str(self.most), settled,
                f'{self.deleted}/{self.providers}']


def _errors(lab: cloud.Lab, text: str) -> dict[str, int]:
    """Count the ERRORs of each nova-compute that say something."""
    return {name: sum(
        ' ERROR ' in line and text in line
        for line in lab.compute(name).log.read_text().splitlines())
        for name in lab.state.computes} if text else {}


def measure(lab: cloud.Lab, observer: watch.Watch,
            event: events.Event) -> Result:
    """Let something happen, and say what it has cost.

    :param lab: the lab
    :param observer: watches its nodes' records
    :param event: what is to happen
    """
    before, providers = lab.owners(), observer.lost_providers()
    errors_before = _errors(lab, event.error)
    observer.restart()
    start = observer.now()
    event.happen(lab)
    over = observer.now()

    deadline = time.monotonic() + _PATIENCE
    settled = False
    while not settled and time.monotonic() < deadline:
        time.sleep(1)
        last = max([over, *(change.at for change in observer.changes())])
        settled = ((observer.now() - last).total_seconds() > _QUIET
                   and (not event.settles or lab.is_settled(_NODES)))
    changes = observer.changes()
    moved = [change for change in changes if change.new is not None]
    needed = watch.needed(before, lab.owners())
    most = watch.most_for_one_node(changes)
    deleted = len(changes) - len(moved)
    lost = observer.lost_providers() - providers
    last = max([change.at for change in changes], default=start)
    errors_after = _errors(lab, event.error)
    return Result(
        len(changes), needed, most,
        (last - start).total_seconds() if settled else None, deleted, lost,
        # What is needed, or what the event allows each node.
        settled and not deleted and not lost
        # Somebody has said so, and nobody more than once.
        and all(count <= errors_before[name] + 1
                for name, count in errors_after.items())
        and (not event.error or errors_after != errors_before)
        and (most <= event.allowance if event.allowance
             else len(changes) == needed))


@dataclasses.dataclass
class Results:
    """What has been measured with a driver.

    :ivar results: of the events, in their order; shorter if one has failed
    :ivar outcomes: of the deaths, likewise
    """

    results: list[Result] = dataclasses.field(default_factory=list)
    outcomes: list[deaths.Outcome] = dataclasses.field(default_factory=list)


def run(driver: str, chosen: Sequence[events.Event],
        dying: Sequence[deaths.Death]) -> Results:
    """Bring a lab up and let it all happen.

    :param driver: ``ring`` or ``stock``
    :param chosen: what is to happen
    :param dying: how a service is to die after that
    """
    found = Results()
    fixture = cloud.Cloud(
        place.directory(f'faults-{driver}'), driver=_DRIVERS[driver],
        computes=_COMPUTES, node_count=_NODES, progress=print)
    with fixture:
        lab = fixture.lab
        connection = lab.connect()
        for number in range(_SERVERS):
            servers.wait_active(connection, servers.boot(
                connection, f'server-{number}',
                f'compute-{number % _COMPUTES + 1}'))
        observer = watch.Watch(lab)
        name = ''
        try:
            for event in chosen:
                name = event.name
                result = measure(lab, observer, event)
                print(f'{driver}: {name}: {", ".join(result.cells())}'
                      f'{"" if result.passed else " (too many)"}', flush=True)
                found.results.append(result)
            for death in dying:
                name = death.name
                outcome = deaths.measure(lab, death)
                print(f'{driver}: {name}: {", ".join(outcome.cells())}',
                      flush=True)
                found.outcomes.append(outcome)
        except errors.LabError as error:
            # What has been measured is worth its table all the same.
            print(f'{driver}: {name}: {error}', file=sys.stderr)
    return found


def main(arguments: Sequence[str]) -> int:
    """Let it all happen, and print what it has cost.

    :param arguments: of the command line
    :returns: 1 if our driver does more than it may
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--driver', choices=[*_DRIVERS, 'both'],
                        default='ring', help='whose table to print')
    parser.add_argument('--only', default='', metavar='REGEX',
                        help='the events whose names match; each takes the '
                             'lab as the one before has left it')
    parser.add_argument('--crowd', type=int, metavar='N',
                        help='instead of all that, measure how N servers are '
                             'taken over in one pass')
    chosen = parser.parse_args(arguments)
    if chosen.crowd:
        print(crowd.measure(chosen.crowd))
        return 0
    wanted = [event for event in events.EVENTS
              if re.search(chosen.only, event.name)]
    dying = [death for death in deaths.DEATHS
             if re.search(chosen.only, death.name)]
    drivers = (list(_DRIVERS) if chosen.driver == 'both'
               else [chosen.driver])
    try:
        results = {driver: run(driver, wanted, dying) for driver in drivers}
    except errors.LabError as error:
        print(error, file=sys.stderr)
        return 2

    table = prettytable.PrettyTable(
        ['event'] + [f'{driver}: {column}' for driver in drivers
                     for column in ('changes (needed)', 'most for a node',
                                    'settled after', 'rows/providers lost')])
    table.align['event'] = 'l'
    for number, event in enumerate(wanted):
        table.add_row([event.name] + [
            cell for driver in drivers
            for cell in _cells(results[driver].results, number, 4)])
    if wanted:
        print(table)
    if dying:
        print(_table_of_deaths(dying, results))
    failed = []
    if 'ring' in drivers:
        failed = _failed([event.name for event in wanted],
                         results['ring'].results) + _failed(
            [death.name for death in dying], results['ring'].outcomes)
    if failed:
        print(f'More than is allowed: {", ".join(failed)}.')
    count = len(wanted) + len(dying)
    print(f'{count - len(failed)} passed, {len(failed)} failed')
    return 1 if failed else 0


def _table_of_deaths(
        dying: Sequence[deaths.Death],
        results: Mapping[str, Results]) -> prettytable.PrettyTable:
    table = prettytable.PrettyTable(
        ['event', 'wanted'] + [f'{driver}: {column}' for driver in results
                               for column in ('rebooted after', 'lost',
                                              'refused')])
    table.align['event'] = 'l'
    for number, death in enumerate(dying):
        # Until the service is absent, and dead, and two passes more.
        wanted = services.DOWN_TIME + 2 * services.PASS_INTERVAL + (
            0 if death.forced else deaths.SILENCE)
        table.add_row([death.name, f'{wanted:.0f} s'] + [
            cell for found in results.values()
            for cell in _cells(found.outcomes, number, 3)])
    return table


def _cells(results: Sequence[Result] | Sequence[deaths.Outcome], number: int,
           count: int) -> list[str]:
    """Return the cells of an event, which may not have been measured."""
    return results[number].cells() if number < len(results) else ['-'] * count


def _failed(names: Sequence[str],
            results: Sequence[Result] | Sequence[deaths.Outcome]) -> list[str]:
    """Name those that cost more than they may, or were not measured."""
    return [name for number, name in enumerate(names)
            if not (number < len(results) and results[number].passed)]


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
