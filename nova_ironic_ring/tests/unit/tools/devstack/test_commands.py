# SPDX-License-Identifier: Apache-2.0

"""Tests of running programs."""

import pathlib

import fixtures
from oslotest import base

from nova_ironic_ring_tools.devstack import commands
from nova_ironic_ring_tools.devstack import errors


class CommandsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'log')

    def test_output(self):
        self.assertEqual('one\n', commands.run(
            'sh', '-c', 'echo $SAID; echo two >&2',
            environment={'PATH': '/bin:/usr/bin', 'SAID': 'one'}))

    def test_failure(self):
        error = self.assertRaises(errors.DevstackError, commands.run,
                                  'sh', '-c', 'seq 30; exit 3')
        self.assertEqual(
            ["sh -c 'seq 30; exit 3' has failed:",
             *(str(number) for number in range(11, 31))],
            str(error).splitlines())

    def test_what_is_not_installed(self):
        for arguments in ((commands.run,), (commands.log, self.file)):
            error = self.assertRaises(errors.DevstackError, *arguments,
                                      '/no/such/program')
            self.assertEqual('/no/such/program cannot be run: No such file '
                             'or directory; install it.', str(error))

    def test_log(self):
        commands.log(self.file, 'sh', '-c', 'echo one; echo two >&2')
        self.assertEqual('one\ntwo\n', self.file.read_text())

    def test_log_of_a_failure(self):
        error = self.assertRaises(errors.DevstackError, commands.log,
                                  self.file, 'sh', '-c', 'echo one; exit 1')
        self.assertEqual(
            ["sh -c 'echo one; exit 1' has failed:", 'one',
             f'More is in {self.file}.'], str(error).splitlines())
