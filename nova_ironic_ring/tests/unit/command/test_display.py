# SPDX-License-Identifier: Apache-2.0

"""Tests of what a terminal shows, and what a pipe does."""

import argparse
import dataclasses
import io
import json
import re

import fixtures

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import display
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment


_HOSTS = ('controller-1', 'controller-2')


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

    def test_total_of_a_bar_is_what_there_was_before_the_first_look(self):
        def update(context, record):
            self._update(context, record)
            for _ in range(6):
                self.source.seen = self.divide(self.source.seen)
        self.update.side_effect = update
        self.source.step = self.divide
        self.run_command('drain', 'a', '--yes', stream=base.Terminal)
        self.assertIn('12/14', self.err)
        self.assertIn('14/14', self.err)
        self.assertNotIn('/2', self.err)

    def test_what_others_write_does_nothing_to_a_terminal(self):
        stream = base.Terminal()
        display.make_console(stream).print('a\x1b[2K\nb', 'c')
        self.assertEqual('a\\x1b[2K\\nb c\n', stream.getvalue())
        cells = [('a\nb', display.Styled('c\x1b', 'red'), 5)]
        for name, made in ('value', 'a\\nb c\\x1b'), ('json', 'a\nb c\x1b'):
            ((first, second, number),) = display.printable(
                cells, argparse.Namespace(formatter=name))
            self.assertEqual(made, f'{first} {second.human_readable()}')
            self.assertEqual(5, number)

    def test_bar_whose_total_is_not_known_yet(self):
        self._undrain(base.Terminal)
        self.assertIn('0/?', self.err)
        self.assertIn('14/14', self.err)

    def test_line_of_what_is_not_known_yet(self):
        self._undrain(io.StringIO)
        self.assertRegex(
            self.err, r'free nodes: how much is left is not known yet\n'
            r'\[ *\d+ s\] wait until it has its share of free nodes: 14 left')
        self.assertNotIn(': 1 left', self.err.partition('14 left')[0])

    def _undrain(self, stream) -> None:
        """Have a service come back that has no node at first."""
        services = [deployment.service('a', disabled=True),
                    deployment.service('b'), deployment.service('c')]
        seen = deployment.make('b', 'c', services=services)
        self.source.seen = seen
        looks = []

        def look(seen):
            looks.append(seen)
            if len(looks) < 3:
                return seen
            node, row = next(iter(seen.rows.items()))
            if len(looks) == 3:
                return dataclasses.replace(seen, rows={
                    **seen.rows, deployment.NODES[0]: dataclasses.replace(
                        row, node=deployment.NODES[0], owner='a')})
            return self.divide(seen)
        self.source.step = look
        self.run_command('undrain', 'a', '--yes', stream=stream)

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

    def _watched(self, width: int) -> list[str]:
        """Return the lines of the last table of a terminal.

        :param width: that of the terminal, in characters
        """
        services = [deployment.service(_HOSTS[0], 61),
                    deployment.service(_HOSTS[1])]
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', str(width)))
        seen = deployment.make(*_HOSTS, services=services)
        self._interrupt(seen, seen)
        out = self.run_command('show', '--watch', stream=base.Terminal)
        plain = re.sub(r'\x1b\[[^A-Za-z]*[A-Za-z]', '', out)
        lines = plain.replace('\r', '\n').splitlines()
        start = max(index for index, line in enumerate(lines)
                    if line.startswith('┏'))
        return [line for line in lines[start:] if line.startswith(tuple(
            '┏┃┡│└'))]

    def test_watch_on_a_narrow_terminal(self):
        for width in 81, 100, 120:
            lines = self._watched(width)
            self.assertEqual({width}, set(map(len, lines)))
            table = '\n'.join(lines)
            for words in (*_HOSTS, '2026-01-01', 'Desired', 'hand',
                          'Instances'):
                self.assertIn(f' {words} ', table)
            self.assertNotIn('…', table)

    def test_host_is_whole_where_words_are_not(self):
        for width in 80, 66:
            lines = self._watched(width)
            self.assertEqual({width}, set(map(len, lines)))
            for host in _HOSTS:
                self.assertIn(f'│ {host} │', '\n'.join(lines))

    def test_state_is_folded_before_all_else(self):
        lines = self._watched(110)
        self.assertIn(' To hand over ', lines[1])
        self.assertIn('│ down since', lines[3])
        self.assertNotIn('UTC', lines[3])

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
