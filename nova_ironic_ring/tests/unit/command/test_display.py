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

"""Tests of what a terminal shows, and what a pipe does."""

import json
import re

import fixtures

from nova_ironic_ring.command import errors
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment


class DisplayTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        for name, value in (('TERM', 'xterm-256color'), ('COLUMNS', '120'),
                            ('NO_COLOR', None), ('FORCE_COLOR', None),
                            ('TTY_COMPATIBLE', None),
                            ('TTY_INTERACTIVE', None)):
            self.useFixture(fixtures.EnvironmentVariable(name, value))

    def _interrupt(self, *looks) -> None:
        """Have the command see this, and then Ctrl-C."""
        steps = iter(looks)

        def look(seen):
            step = next(steps, KeyboardInterrupt())
            if isinstance(step, BaseException):
                raise step
            return step
        self.source.step = look

    def test_bars(self):
        self.source.step = self.divide
        out = self.run_command('drain', 'a', '--yes', stream=base.Terminal)
        # Each look is drawn over the one before.
        self.assertIn('\r\x1b[2K', self.err)
        self.assertIn(' 0/14', self.err)
        self.assertIn('14/14', self.err)
        self.assertNotIn(' left', self.err)
        self.assertIn('| done   |', out)

    def test_error_above_the_bars(self):
        looks = []

        def look(seen):
            looks.append(seen)
            if len(looks) == 4:
                raise errors.CommandError('Ironic is [bold] away.')
            return self.divide(seen)
        self.source.step = look
        self.run_command('drain', 'a', '--yes', stream=base.Terminal)
        self.assertIn('Ironic is [bold] away.\n', self.err)
        self.assertIn('14/14', self.err)

    def test_lines_only_of_what_is_new(self):
        self.source.step = lambda seen: seen
        self.run_command('drain', 'a', '--yes', '--timeout', '0', status=1)
        self.assertEqual(1, self.err.count('14 left'))
        self.assertNotIn('\x1b', self.err)

    def test_watch_on_a_terminal(self):
        down = deployment.make(services=[
            deployment.service('a', 61), deployment.service('b'),
            deployment.service('c')])
        self._interrupt(down, errors.CommandError('Ironic is away.'), down)
        out = self.run_command('show', '--watch', stream=base.Terminal)
        self.assertIn('\x1b[1A', out)
        plain = re.sub(r'\x1b\[[^A-Za-z]*[A-Za-z]', '', out)
        self.assertIn('down since 2026-01-01', plain)
        self.assertIn('Ironic is away.', plain)
        self.assertNotIn('State code', plain)
        self.assertIn('\x1b[32mmember', out)
        self.assertIn('\x1b[1;31mdown since', out)

    def test_columns_that_are_watched(self):
        self._interrupt(self.source.seen)
        out = self.run_command('show', '--watch', '-c', 'Host',
                               stream=base.Terminal)
        self.assertIn('Host', out)
        self.assertNotIn('Ring', out)

    def test_watch_into_a_pipe(self):
        self._interrupt(self.source.seen,
                        errors.CommandError('Ironic is away.'))
        out = self.run_command('show', '--watch', '-f', 'json')
        decoder, tables = json.JSONDecoder(), []
        while out.strip():
            table, end = decoder.raw_decode(out.strip())
            tables.append(table)
            out = out.strip()[end:]
        self.assertEqual(1, len(tables))
        self.assertEqual('member', tables[0][0]['State'])
        self.assertEqual('Ironic is away.\n', self.err)

    def test_watch_of_what_cannot_be_read_at_all(self):
        self._interrupt(errors.CommandError('Ironic is away.'))
        self.run_command('show', '--watch', status=2)
        self.assertEqual('Ironic is away.\n', self.err)
