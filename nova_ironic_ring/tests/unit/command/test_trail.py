# SPDX-License-Identifier: Apache-2.0

"""Tests of what a command writes down, and where."""

import io
import json
import logging
import sys
import threading
from unittest import mock

import fixtures
import nova.conf
from oslo_config import fixture as config_fixture
from oslo_log import log as oslo_logging
from oslotest import base

from nova_ironic_ring.adapters.trail import actions
from nova_ironic_ring.adapters.trail import audit
from nova_ironic_ring.command import trail
from nova_ironic_ring.core.deciding import audit as core_audit

CONF = nova.conf.CONF


class TrailTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        oslo_logging.register_options(CONF)
        self.conf = self.useFixture(config_fixture.Config(CONF))
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.said: list[str] = []
        self.sent = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.trail.audit.notify')).mock
        lines = logging.getLogger(audit.LOGGER)
        self.addCleanup(setattr, lines, 'propagate', lines.propagate)
        self.addCleanup(setattr, lines, 'handlers', list(lines.handlers))
        self.trail = trail.Trail(
            core_audit.Author('alice', 'controller', None, 'drain a'),
            'a fan', self.said.append)

    def _lines(self, name: str) -> list[str]:
        with open(f'{self.directory}/{name}', encoding='utf-8') as file:
            return file.read().splitlines()

    def test_lines_go_where_nova_has_its_logs(self):
        root = logging.getLogger()
        before = list(root.handlers), root.level, sys.excepthook
        self.conf.config(log_dir=self.directory, log_file='ring.log')
        self.trail.begin()
        self.trail.write(trail.Code.SERVICE_DISABLED, service='a')
        self.trail.end('DONE')
        self.assertEqual([], self.said)
        lines = self._lines('ring.log')
        self.assertEqual(
            ['COMMAND_BEGUN', 'SERVICE_DISABLED', 'COMMAND_ENDED'],
            [json.loads(line[line.index('{'):])['event'] for line in lines])
        for line in lines:
            self.assertIn(' INFO nova_ironic_ring.audit [', line)
        # What goes wrong is for the terminal still.
        self.assertEqual(
            before, (list(root.handlers), root.level, sys.excepthook))
        self.assertEqual(3, self.sent.call_count)

    def test_log_of_its_own(self):
        path = f'{self.directory}/logging.conf'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'''
[loggers]
keys = root, audit
[handlers]
keys = null, audit
[formatters]
keys = bare
[formatter_bare]
format = %(message)s
[handler_null]
class = NullHandler
args = ()
[handler_audit]
class = FileHandler
args = ('{self.directory}/audit.json',)
formatter = bare
[logger_root]
handlers = null
[logger_audit]
qualname = nova_ironic_ring.audit
handlers = audit
propagate = 0
''')
        self.useFixture(fixtures.MockPatch(
            'oslo_log.log._iter_loggers', return_value=[]))
        self.conf.config(log_config_append=path)
        self.trail.begin()
        self.trail.end('DONE')
        self.assertEqual(
            [('COMMAND_BEGUN', None), ('COMMAND_ENDED', 'DONE')],
            [(said['event'], said['to'])
             for said in map(json.loads, self._lines('audit.json'))])

    def test_log_that_cannot_be_written(self):
        self.conf.config(log_file=f'{self.directory}/no/such/ring.log')
        terminal = self.useFixture(fixtures.StringStream('stderr')).stream
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', terminal))
        self.trail.begin()
        (line,) = self.said
        self.assertIn('cannot be logged where nova.conf has logs go', line)
        self.assertIn('it is logged here', line)
        terminal.seek(0)
        self.assertEqual(
            'COMMAND_BEGUN', json.loads(terminal.read())['event'])

    def test_nova_without_a_place_for_logs(self):
        for is_terminal, use_stderr, count in (
                (False, False, 2), (True, False, 0), (True, True, 2)):
            # As in a new process.
            lines = logging.getLogger(audit.LOGGER)
            lines.handlers, lines.propagate = [], True
            self.conf.config(use_stderr=use_stderr)
            out, err = io.StringIO(), io.StringIO()
            with mock.patch.object(err, 'isatty', return_value=is_terminal), (
                    mock.patch.multiple(sys, stdout=out, stderr=err)):
                self.trail.begin()
                self.trail.end('DONE')
            self.assertEqual(count, err.getvalue().count('COMMAND_'))
            # That is for the result.
            self.assertEqual('', out.getvalue())

    def test_end_does_not_wait_for_a_bus_that_hangs(self):
        self.useFixture(fixtures.MockPatchObject(trail, 'PATIENCE', 0))
        hung = fixtures.MockPatch(
            'nova_ironic_ring.adapters.trail.audit.notify',
            side_effect=lambda *_: self.go.wait(30))
        self.go = threading.Event()
        self.addCleanup(self.go.set)
        self.useFixture(hung)
        self.trail.write(trail.Code.COMMAND_BEGUN)
        self.trail.end('DONE')
        self.assertFalse(self.go.is_set())

    def test_reason_is_signed_in_the_length_that_nova_takes(self):
        self.assertEqual('a fan (by alice on controller)',
                         self.trail.signed('a fan'))
        signed = self.trail.signed('x' * 300)
        self.assertEqual(255, len(signed))
        self.assertTrue(signed.endswith('x (by alice on controller)'))


class AuthorTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.user = self.useFixture(fixtures.MockPatch(
            'getpass.getuser', return_value='root')).mock
        self.useFixture(fixtures.MockPatch(
            'socket.gethostname', return_value='controller'))

    def test_arguments_are_as_they_were_typed(self):
        found = trail.find_author(['drain', 'a', '--reason', 'a fan'], {})
        self.assertEqual("drain a --reason 'a fan'", found.arguments)
        self.assertEqual('root on controller', str(found))

    def test_very_many_arguments(self):
        found = trail.find_author(
            ['move', *['\N{SNOWMAN}' * 36] * 2000, 'a'], {})
        self.assertRegex(found.arguments, r'^move .* \.\.\.$')
        # What a column of MySQL's type TEXT has room for.
        entry = core_audit.Entry(
            core_audit.Code.INSTANCE_MOVED, 'controller', author=found)
        self.assertLess(len(actions.details(entry)), 1 << 16)

    def test_who_has_become_root(self):
        for environment, user in (
                ({'SUDO_USER': 'alice'}, 'alice as root'),
                ({'SUDO_USER': 'root'}, 'root')):
            self.assertEqual(user, trail.find_author([], environment).user)

    def test_user_without_a_name(self):
        self.user.side_effect = KeyError('uid not found')
        self.useFixture(fixtures.MockPatch('os.getuid', return_value=42436))
        self.assertEqual('42436', trail.find_author([], {}).user)

    def test_user_of_openstack(self):
        for environment, user in (
                ({}, None), ({'OS_USERNAME': 'bob'}, 'bob'),
                ({'OS_CLOUD': 'prod'}, 'cloud prod'),
                ({'OS_USERNAME': 'bob', 'OS_CLOUD': 'prod'}, 'bob')):
            self.assertEqual(
                user, trail.find_author([], environment).openstack_user)
