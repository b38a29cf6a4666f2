# SPDX-License-Identifier: Apache-2.0

"""Runs Tempest's tests of Nova's API with each driver, and compares.

``python -m nova_ironic_ring_tools.tempest``
"""

import argparse
from collections.abc import Sequence
import pathlib
import sys
import tempfile

from nova_ironic_ring.core.values import plural
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring_tools.devstack import __main__ as devstack
from nova_ironic_ring_tools.devstack import errors as devstack_errors
from nova_ironic_ring_tools.devstack import settings
from nova_ironic_ring_tools.tempest import comparison
from nova_ironic_ring_tools.tempest import explained
from nova_ironic_ring_tools.tempest import outcomes
from nova_ironic_ring_tools.tempest import places
from nova_ironic_ring_tools.tempest import runner

_DRIVERS = {'nova': lab_state.STOCK_DRIVER, 'ring': lab_state.RING_DRIVER,
            'pool': lab_state.POOL_DRIVER}
# One with Nova's own driver: with several, nodes would change their owners.
_COMPUTES = {'nova': 1, 'ring': 3, 'pool': 3}
_NODES = 30


def run(driver: str, chosen: Sequence[str], workers: int) -> outcomes.Results:
    """Bring a lab up, and run tests on it.

    :param driver: ``nova``, ``ring`` or ``pool``
    :param chosen: the options of ``tempest run`` that choose the tests
    :param workers: how many tests are to run at a time
    :raises LabError: if the lab does not come up, a service dies, or Tempest
        does not run
    """
    fixture = cloud.Cloud(
        place.directory(f'tempest-{driver}'), driver=_DRIVERS[driver],
        computes=_COMPUTES[driver], node_count=_NODES, progress=print)
    with fixture:
        try:
            results = _run(runner.Tempest(
                places.of_lab(fixture.lab), workers), driver, chosen)
        except Exception:
            print(f'The logs are in {fixture.lab.keep_logs()}.', flush=True)
            raise
        if outcomes.counts(results)[outcomes.Outcome.FAILED]:
            print(f'The logs are in {fixture.lab.keep_logs()}.', flush=True)
        return results


def run_on_devstack(where: pathlib.Path, chosen: Sequence[str], workers: int
                    ) -> dict[str, outcomes.Results]:
    """Run tests on the devstack that is up.

    :param where: the directory of the devstack
    :param chosen: the options of ``tempest run`` that choose the tests
    :param workers: how many tests are to run at a time
    :returns: the results by the name of its driver
    :raises LabError: if there is none, or Tempest does not run
    """
    found = devstack.Devstack(where)
    try:
        wanted = found.wanted()
    except devstack_errors.DevstackError as error:
        raise errors.LabError(str(error)) from error
    directory = pathlib.Path(tempfile.mkdtemp())
    print(f'What Tempest writes is in {directory}.', flush=True)
    tempest = runner.Tempest(
        places.of_devstack(found.box, wanted, directory), workers)
    return {wanted.driver: _run(tempest, wanted.driver, chosen)}


def _run(tempest: runner.Tempest, driver: str, chosen: Sequence[str]
         ) -> outcomes.Results:
    """As :func:`run`, on a cloud that is up."""
    tests = tempest.tests(chosen)
    ended = 0

    def tell(test: str, result: outcomes.Result) -> None:
        nonlocal ended
        ended += 1
        print(f'{driver}: {ended} of {len(tests)}: {result.outcome.value} '
              f'after {result.seconds:.0f} s: {outcomes.name(test)}',
              flush=True)
    return tempest.run(tests, tell)


def main(arguments: Sequence[str]) -> int:
    """Run the tests with each driver, and print what differs.

    :param arguments: of the command line
    :returns: the exit status: 1 if a test ends worse than allowed with a
        driver of this project, 2 if a lab has failed
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.tempest', description=__doc__)
    parser.add_argument('--driver', nargs='+', choices=list(_DRIVERS),
                        default=list(_DRIVERS),
                        help='which ones, one after the other')
    parser.add_argument('--devstack', nargs='?', type=pathlib.Path,
                        const=settings.DIRECTORY, metavar='DIRECTORY',
                        help='on the devstack of "tools/devstack up", with '
                             'the driver that it has (default for DIRECTORY: '
                             '%(const)s)')
    parser.add_argument('--short', action='store_true',
                        help='only a few tests, which a driver affects most')
    parser.add_argument('--only', metavar='REGEX', default=runner.ALL,
                        help='the tests whose names match')
    parser.add_argument('--workers', type=int, metavar='N', default=3,
                        help='how many tests at a time (default: 3)')
    chosen = parser.parse_args(arguments)
    options = (['--include-list', str(runner.SHORT)] if chosen.short
               else ['--regex', chosen.only])
    results: dict[str, outcomes.Results] = {}
    drivers = ['devstack'] if chosen.devstack else chosen.driver
    for driver in drivers:
        try:
            if chosen.devstack:
                results |= run_on_devstack(
                    chosen.devstack, options, chosen.workers)
            else:
                results[driver] = run(driver, options, chosen.workers)
        except errors.LabError as error:
            # The table of the other results is printed all the same.
            print(f'{driver}: {error}', file=sys.stderr)
    if not results:
        return 2
    explanations = explained.EXPLANATIONS + (
        explained.ON_DEVSTACK if chosen.devstack else [])
    differences = comparison.compare(results, explanations)
    print(comparison.table(results))
    _print('These fail with each driver:',
           comparison.failing(results, explanations))
    _print('These failed, and passed when they ran once more:',
           comparison.unsteady(results))
    _print('These end differently, or worse than allowed:',
           [line for each in differences for line in each.lines()])
    wrong = [each for each in differences if each.wrong]
    print(f'{plural.of(len(wrong), "test ends", "tests end")} worse than '
          'allowed.')
    if len(results) < len(drivers):
        return 2
    return 1 if wrong else 0


def _print(title: str, lines: Sequence[str]) -> None:
    """Print lines below a title, if there are any."""
    if lines:
        print(title, *(f'  {line}' for line in lines), sep='\n')


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
