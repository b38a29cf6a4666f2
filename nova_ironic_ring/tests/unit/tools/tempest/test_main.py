# SPDX-License-Identifier: Apache-2.0

"""Tests of what the program prints, and of its exit status."""

import contextlib
import io

import fixtures
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring_tools.devstack import settings
from nova_ironic_ring_tools.tempest import __main__ as tempest
from nova_ironic_ring_tools.tempest import outcomes
from nova_ironic_ring_tools.tempest import runner

_PASSED = {'a.B.test_x': outcomes.Result(outcomes.Outcome.PASSED)}
_FAILED = {'a.B.test_x': outcomes.Result(outcomes.Outcome.FAILED, 'Conflict')}


class MainTestCase(base.BaseTestCase):

    def _main(self, *arguments: str, **results) -> tuple[int, str]:
        """Run the program, with these results of the drivers."""
        def run(driver, chosen, workers):
            self.chosen = chosen
            if isinstance(results[driver], errors.LabError):
                raise results[driver]
            return results[driver]

        self.useFixture(fixtures.MockPatchObject(tempest, 'run', run))
        printed = io.StringIO()
        with (contextlib.redirect_stdout(printed),
              contextlib.redirect_stderr(printed)):
            status = tempest.main(['--driver', *results, *arguments])
        return status, printed.getvalue()

    def test_all_is_well(self):
        status, printed = self._main(nova=_PASSED, ring=_PASSED, pool=_PASSED)
        self.assertEqual(0, status)
        self.assertIn('\n0 tests end worse than allowed.\n', printed)
        self.assertEqual(['--regex', runner.ALL], self.chosen)

    def test_something_is_wrong(self):
        status, printed = self._main(nova=_PASSED, ring=_FAILED, pool=_PASSED)
        self.assertEqual(1, status)
        self.assertTrue(printed.endswith(
            'These end differently, or worse than allowed:\n'
            '  WRONG: a.B.test_x: nova passed, ring failed, pool passed\n'
            '      ring: Conflict\n'
            '1 test ends worse than allowed.\n'), printed)

    def test_what_fails_with_each(self):
        status, printed = self._main(nova=_FAILED, ring=_FAILED)
        self.assertEqual(0, status)
        self.assertIn('These fail with each driver:\n  a.B.test_x\n'
                      '      not explained: Conflict\n', printed)

    def test_lab_that_fails(self):
        """What has ended with the others is printed all the same."""
        status, printed = self._main(
            nova=errors.LabError('compute-1 has died'), ring=_FAILED)
        self.assertEqual(2, status)
        self.assertIn('nova: compute-1 has died\n', printed)
        self.assertIn('WRONG: a.B.test_x: ring failed\n', printed)

    def test_no_lab_comes_up(self):
        self.assertEqual((2, 'ring: no ports\n'), self._main(
            ring=errors.LabError('no ports')))

    def test_short(self):
        self.assertEqual(0, self._main('--short', ring=_PASSED)[0])
        self.assertEqual(['--include-list', str(runner.SHORT)], self.chosen)
        self.assertTrue(runner.SHORT.read_text())

    def test_devstack(self):
        run = self.useFixture(fixtures.MockPatchObject(
            tempest, 'run_on_devstack', return_value={'pool': _PASSED})).mock
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertEqual(0, tempest.main(['--devstack', '--only', 'x']))
        run.assert_called_once_with(settings.DIRECTORY, ['--regex', 'x'], 3)
        self.assertIn('| pool ', printed.getvalue())

    def test_no_devstack(self):
        directory = self.useFixture(fixtures.TempDir()).path
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed):
            self.assertEqual(2, tempest.main(['--devstack', directory]))
        self.assertIn(f'There is no devstack in {directory}:',
                      printed.getvalue())
