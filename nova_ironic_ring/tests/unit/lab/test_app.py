# SPDX-License-Identifier: Apache-2.0

from importlib import metadata
import io
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring.lab import app
from nova_ironic_ring.lab import view
from nova_ironic_ring.tests.fixtures import pages


class CommandLineTestCase(base.BaseTestCase):
    """What the command line does with no lab at all."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable(
            'TMPDIR', self.useFixture(fixtures.TempDir()).path))
        self.errors = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.errors))
        self.output = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.output))

    def _run(self, *words: str) -> int:
        self.useFixture(fixtures.MonkeyPatch('sys.argv', ['lab', *words]))
        try:
            return app.main()
        except SystemExit as end:
            return int(end.code or 0)

    def test_watch(self):
        ring = mock.Mock(side_effect=[
            [view.Member('compute-1', 'member', 3, 3)],
            [view.Member('compute-1', 'absent', 2)], KeyboardInterrupt()])
        self.useFixture(fixtures.MockPatchObject(
            app.cloud.Lab, 'load', lambda directory: mock.Mock(ring=ring)))
        self.useFixture(fixtures.MockPatch('time.sleep'))
        self.assertEqual(0, self._run('show', '--watch'))
        shown = self.output.getvalue()
        # No terminal: one table after the other.
        self.assertEqual(2, shown.count('| Member    |'))
        self.assertIn('| compute-1 | absent |           2 |', shown)
        self.assertNotIn('\x1b', shown)

    def test_command_lines_of_the_documentation(self):
        found = list(pages.typed('tools/lab'))
        self.assertGreater(len(found), 40)
        for each in found:
            # The others are in tests/unit/command/test_docs.py.
            if 'ring' not in each.words and each.words[0] != 'help':
                try:
                    pages.check(self, app.LabApp(), each)
                except (SystemExit, ValueError) as error:
                    self.fail(f'{each}: {error} {self.errors.getvalue()}')

    def test_help_names_every_command(self):
        self.assertEqual(0, self._run())
        for command in ('add', 'boot', 'delete', 'down', 'enroll', 'kill',
                        'logs', 'pause', 'reload', 'report', 'resume',
                        'shell', 'show', 'start', 'stop', 'up'):
            self.assertIn(f'\n  {command} ', self.output.getvalue())

    def test_help_says_how_it_is_run(self):
        for words in (), ('help',), ('--help',):
            self.assertEqual(0, self._run(*words))
        self.assertEqual(3, self.output.getvalue().count('usage: tools/lab '))
        self.assertNotIn('__main__', self.output.getvalue())

    def test_version_is_that_of_the_package(self):
        self.assertEqual(0, self._run('--version'))
        self.assertEqual(metadata.version('nova-ironic-ring'),
                         self.output.getvalue().split()[-1])

    def test_help_of_the_ring_needs_no_lab(self):
        run = self.useFixture(fixtures.MockPatch('os.execvpe')).mock
        self.assertEqual(0, self._run('ring', '--help'))
        self.assertIn('usage: tools/lab ring', self.output.getvalue())
        run.assert_not_called()
        for words, expected in (((), ('--help',)),
                                (('help', 'show'), ('help', 'show')),
                                (('clean', '--help'), ('clean', '--help'))):
            # What replaces the process does not come back.
            run.side_effect = SystemExit(0)
            self.assertEqual(0, self._run('ring', *words))
            self.assertEqual(['nova-ironic-ring', *expected],
                             run.call_args.args[1])

    def test_drivers(self):
        made = self.useFixture(fixtures.MockPatchObject(
            app.cloud, 'Cloud')).mock
        made().lab.ring.return_value = []
        for name, driver in (('nova', 'ironic.IronicDriver'),
                             ('pool', 'ironic_ring.IronicPoolDriver'),
                             ('ring', 'ironic_ring.IronicRingDriver')):
            self.assertEqual(0, self._run('up', '--driver', name))
            self.assertEqual(driver, made.call_args.kwargs['driver'])
            self.assertEqual([], made.call_args.kwargs['groups'])

    def test_conductor_groups(self):
        made = self.useFixture(fixtures.MockPatchObject(
            app.cloud, 'Cloud')).mock
        made().lab.ring.return_value = []
        self.assertEqual(
            0, self._run('up', '--group', 'rack1', '--group', 'Rack-2'))
        self.assertEqual(['rack1', 'rack-2'],
                         made.call_args.kwargs['groups'])

    def test_options_of_the_ring_are_its_own(self):
        run = self.useFixture(fixtures.MockPatch(
            'os.execvpe', side_effect=SystemExit(0))).mock
        lab = mock.Mock(nova=mock.Mock(ring=('nova-ironic-ring',)))
        self.useFixture(fixtures.MockPatchObject(
            app.cloud.Lab, 'load', lambda directory: lab))
        self.useFixture(fixtures.MockPatchObject(
            app.tenant, 'variables', lambda state: {}))
        # A lab may have the name of the command.
        self.assertEqual(
            0, self._run('--name', 'ring', 'ring', 'show', '--debug'))
        self.assertEqual(['nova-ironic-ring', 'show', '--debug'],
                         run.call_args.args[1])
        # It has some that go before its command.
        self.assertEqual(0, self._run('ring', '--cell', 'cell1', 'show'))
        self.assertEqual(['nova-ironic-ring', '--cell', 'cell1', 'show'],
                         run.call_args.args[1])

    def test_signals(self):
        compute = mock.Mock(state='running', log='/log/compute-1.log')
        self.useFixture(fixtures.MockPatchObject(
            app.cloud.Lab, 'load', lambda directory: mock.Mock(
                compute=lambda name: compute)))
        self.assertEqual(0, self._run('reload', 'compute-1'))
        compute.reload.assert_called_once_with()
        self.assertEqual(0, self._run('report', 'compute-1'))
        compute.report.assert_called_once_with()
        self.assertIn('/log/compute-1.log', self.output.getvalue())
        compute.state = 'stopped'
        self.assertEqual(1, self._run('reload', 'compute-1'))
        compute.reload.assert_called_once_with()

    def test_bad_arguments(self):
        for words in (['--name', '../x', 'show'], ['up', '--nodes', '-1'],
                      ['up', '--nodes', 'many'], ['up', '--driver', 'stock'],
                      ['up', '--group', 'rack/1'], ['up', '--group', ''],
                      ['enroll', '0'], ['enroll'], ['start'], ['show', '-x'],
                      ['show', '--watch', '0'], ['nothing']):
            self.assertEqual(2, self._run(*words), words)
            self.assertNotIn('Traceback', self.errors.getvalue())
