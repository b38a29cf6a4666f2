# SPDX-License-Identifier: Apache-2.0

"""What the program prints, and its exit status."""

import contextlib
import dataclasses
import io

import fixtures
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring_tools.rolling import __main__ as rolling
from nova_ironic_ring_tools.rolling import releases
from nova_ironic_ring_tools.rolling import upgrade

_STEP = upgrade.Step('compute-1 runs it', 8, 2, 3, 3, 'ACTIVE', [], [])


class MainTestCase(base.BaseTestCase):

    def _main(self, *arguments: str, steps=(_STEP,)) -> tuple[int, str]:
        """Run the program, whose lab shows some steps."""
        self.run_ = self.useFixture(fixtures.MockPatchObject(
            rolling, 'run', side_effect=[steps])).mock
        printed = io.StringIO()
        with (contextlib.redirect_stdout(printed),
              contextlib.redirect_stderr(printed)):
            status = rolling.main(arguments)
        return status, printed.getvalue()

    def test_all_is_well(self):
        status, printed = self._main('--nova', '33', '--driver', 'pool')
        self.assertEqual(0, status)
        self.assertIn('| compute-1 runs it |', printed)
        self.assertTrue(printed.endswith(
            '\n0 steps of 1 are not as they should be.\n'), printed)
        self.run_.assert_called_once_with('pool', releases.Release('33'))

    def test_something_is_wrong(self):
        for wrong in ({'most': 3}, {'active': 2},
                      {'build': 'ERROR: No valid host was found.'},
                      {'findings': ['compute-1: it is ill']},
                      {'errors': ['An ERROR line.']}):
            status, printed = self._main(
                '--commit', 'abc', steps=[
                    _STEP, dataclasses.replace(_STEP, **wrong)])
            self.assertEqual(1, status)
            self.assertIn('\n1 step of 2 is not as it should be.\n', printed)

    def test_lab_that_fails(self):
        status, printed = self._main(
            '--nova', '33', steps=errors.LabError('It has failed.'))
        self.assertEqual((2, 'It has failed.\n'), (status, printed))

    def test_nothing_to_upgrade_from(self):
        self.assertRaises(SystemExit, self._main)


class ReleaseTestCase(base.BaseTestCase):

    def test_words(self):
        for release, words in (
                (releases.Release('33'), 'Nova 33, the driver of here'),
                (releases.Release('', 'abc'),
                 'the Nova of here, the driver of abc')):
            self.assertEqual(words, str(release))

    def test_here(self):
        program = releases.Release().install(self.useFixture(
            fixtures.TempDir()).path)
        self.assertTrue(program.endswith('/bin/nova-compute'))
