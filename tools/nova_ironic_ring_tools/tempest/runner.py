# SPDX-License-Identifier: Apache-2.0

"""Runs Tempest on a cloud."""

from collections.abc import Callable, Collection, Sequence
import contextlib
import pathlib
import subprocess

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import services
from nova_ironic_ring_tools.tempest import configuration
from nova_ironic_ring_tools.tempest import outcomes
from nova_ironic_ring_tools.tempest import places

#: The tests of Nova's API without one class: its test shelves a server with an
#: image, although Tempest is told that this is not possible with Nova's ironic
#: driver, and then waits for minutes.
ALL = (r'^tempest\.api\.compute\.'
       r'(?!admin\.test_servers_on_multinodes\.UnshelveToHostMultiNodesTest)')
#: The file with the beginnings of the names of the tests in the short set.
SHORT = pathlib.Path(__file__).with_name('short.txt')

# What the IDs of tests begin with: Tempest's own, and those of its plugin for
# Ironic.
_NAMES = ('tempest.', 'ironic_tempest_plugin.')
_BAD = (outcomes.Outcome.FAILED, outcomes.Outcome.MISSING)

Tell = Callable[[str, outcomes.Result], None]


class Tempest:
    """Tempest's tests of a cloud."""

    def __init__(self, place: places.Place, workers: int) -> None:
        """Prepare a cloud, and write Tempest's configuration.

        :param place: a cloud that is up
        :param workers: how many tests are to run at a time
        """
        self._place = place
        self._workers = workers
        self._directory = place.directory
        self._directory.mkdir()
        self._config = services.write_config(
            self._directory / 'tempest.conf', configuration.sections(
                place, configuration.prepare(place)))
        # Tempest lists no tests before stestr has a place for results.
        self._call(services.program('stestr'), 'init')

    def tests(self, chosen: Sequence[str]) -> list[str]:
        """Return the IDs of tests.

        :param chosen: the options of ``tempest run`` that choose them
        :raises LabError: if there are none, or Tempest fails
        """
        found = [line for line in self._call(*self._command(
            '--list-tests', *chosen)).splitlines()
            if line.startswith(_NAMES)]
        if not found:
            raise errors.LabError(
                f'Tempest has no tests for {" ".join(chosen)}: choose others.')
        return found

    def run(self, tests: Sequence[str], tell: Tell) -> dict[
            str, outcomes.Result]:
        """Run tests, and those that have failed once more, each by itself.

        :param tests: their IDs
        :param tell: is called with the ID and result of each test that ends
        :returns: the results by the names of the tests
        :raises LabError: if Tempest does not run, or a service dies
        """
        results = self._run(tests, tell, self._workers)
        failed = [test for test in tests if results[outcomes.name(
            test)].outcome in _BAD]
        if failed:
            again = self._run(failed, tell, 1)
            results |= {test: outcomes.second(result)
                        for test, result in again.items()}
        return results

    def _run(self, tests: Collection[str], tell: Tell, workers: int) -> dict[
            str, outcomes.Result]:
        chosen = self._directory / 'tests.txt'
        chosen.write_text('\n'.join(tests) + '\n')
        with open(self._directory / 'output', 'ab') as output, (
                contextlib.ExitStack()) as stack:
            running = stack.enter_context(subprocess.Popen(
                self._command('--load-list', str(chosen), '--subunit',
                              '--concurrency', str(workers)),
                cwd=self._directory, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=output,
                env=self._place.environment))
            stack.callback(running.terminate)
            assert running.stdout is not None
            results = outcomes.read(running.stdout, tests, tell)
            running.wait()
        self._place.check()
        if running.returncode not in (0, 1):
            last = (self._directory / 'output').read_text()[-500:]
            raise errors.LabError(
                f'Tempest ends with {running.returncode}: {last}')
        return results

    def _call(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self._directory, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, env=self._place.environment)
        if done.returncode:
            raise errors.LabError(
                f'{" ".join(command)} ends with {done.returncode}: '
                f'{(done.stderr or done.stdout).strip()[-500:]}')
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        return [services.program('tempest'), 'run', '--config-file',
                str(self._config), *arguments]
