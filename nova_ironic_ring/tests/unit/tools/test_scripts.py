# SPDX-License-Identifier: Apache-2.0

"""What tools/lab and tools/tox do before anything is installed.

And what the programs say of themselves.
"""

import contextlib
import importlib.machinery
import io
import os
import pathlib
import sys
import types
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring.tests.unit.tools import TOOLS
from nova_ironic_ring_tools.benchmarks import growth
from nova_ironic_ring_tools.benchmarks import large
from nova_ironic_ring_tools.faults import __main__ as faults
from nova_ironic_ring_tools.patches import __main__ as patches
from nova_ironic_ring_tools.scale import __main__ as scale
from nova_ironic_ring_tools.soak import __main__ as soak
from nova_ironic_ring_tools.tempest import __main__ as tempest


def _load(name: str):
    """Import a file of tools, whose name need not end in .py."""
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = types.ModuleType(name)
    module.__file__ = loader.path
    loader.exec_module(module)
    return module


class ToolsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'sys.path', [str(TOOLS), *sys.path]))
        self.useFixture(fixtures.MonkeyPatch('sys.dont_write_bytecode', True))
        self.errors = self.useFixture(
            fixtures.MonkeyPatch('sys.stderr', io.StringIO())).new_value
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', io.StringIO()))

    def _fails(self, function, *arguments) -> str:
        """Call what is to end the program with a sentence."""
        failure = self.assertRaises(SystemExit, function, *arguments)
        self.assertEqual(2, failure.code)
        return self.errors.getvalue()


class BootstrapTestCase(ToolsTestCase):

    def setUp(self):
        super().setUp()
        self.bootstrap = _load('bootstrap.py')
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(
            fixtures.EnvironmentVariable('PATH', str(self.path)))
        self.calls: list[tuple[str, ...]] = []
        self.bootstrap.run = lambda *argv: self.calls.append(argv)

    def _program(self, name: str, script: str = 'exit 0') -> None:
        program = self.path / name
        program.write_text(f'#!/bin/sh\n{script}\n')
        program.chmod(0o755)

    def _user(self, number: int) -> None:
        self.useFixture(
            fixtures.MonkeyPatch('os.geteuid', lambda: number))

    def _missing(self, *packages: str) -> None:
        """Have a dpkg-query that lacks these."""
        self._program('dpkg-query', f'''
case " {' '.join(packages)} " in
    *" $4 "*) exit 1 ;;
    *) printf "install ok installed" ;;
esac''')

    def test_nothing_is_missing(self):
        self._missing()
        self.bootstrap.debian_packages()
        self.assertEqual([], self.calls)

    def test_root_installs(self):
        self._missing('rabbitmq-server', 'git')
        self._user(0)
        self.bootstrap.debian_packages()
        ((program, *_, first, second),) = self.calls
        self.assertEqual(('sh', 'git', 'rabbitmq-server'),
                         (program, first, second))

    def test_what_another_program_needs(self):
        self._missing('debootstrap', 'git', 'rabbitmq-server')
        self._user(0)
        self.bootstrap.debian_packages('devstack')
        self.assertEqual(('debootstrap', 'git'), self.calls[0][-2:])

    def test_sudo_installs(self):
        self._missing('rabbitmq-server')
        self._user(1000)
        self._program('sudo')
        self.bootstrap.debian_packages()
        self.assertEqual('sudo', self.calls[0][0])

    def test_others_are_told_how_to(self):
        self._missing('mariadb-server-core', 'rabbitmq-server')
        self._user(1000)
        message = self._fails(self.bootstrap.debian_packages)
        self.assertIn(
            'apt-get update && apt-get install --yes --no-install-recommends '
            'mariadb-server-core rabbitmq-server\n', message)
        self.assertEqual([], self.calls)

    def test_no_debian(self):
        self.assertIn('this is no Debian',
                      self._fails(self.bootstrap.debian_packages))
        for name in 'mysqld', 'rabbitmq-server':
            self._program(name)
        self.bootstrap.debian_packages()

    def test_no_debian_for_a_container(self):
        self.bootstrap.debian_packages('devstack')
        self.assertEqual([], self.calls)

    def test_python_too_old(self):
        with mock.patch.object(sys, 'version_info', (3, 9)):
            self.assertIn('3.11 or newer is needed',
                          self._fails(self.bootstrap.tools))


class ProgramsTestCase(base.BaseTestCase):
    """What is run with ``python3 -m`` says so in its help."""

    def test_names_in_the_help(self):
        for name, program in (
                ('soak', soak), ('faults', faults), ('scale', scale),
                ('tempest', tempest), ('benchmarks.growth', growth),
                ('benchmarks.large', large), ('patches', patches)):
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                self.assertRaises(SystemExit, program.main, ['--help'])
            self.assertTrue(output.getvalue().startswith(
                f'usage: python3 -m nova_ironic_ring_tools.{name} '), name)


class LabTestCase(ToolsTestCase):

    def setUp(self):
        super().setUp()
        self.lab = _load('lab')
        self.root = self.useFixture(fixtures.TempDir()).path
        self.useFixture(fixtures.EnvironmentVariable('TMPDIR', self.root))

    def test_command_line(self):
        for words, command, values in (
                ([], None, {}),
                (['up'], 'up', {}),
                (['--name', 'up', 'show'], 'show', {'--name': 'up'}),
                (['--name=a', 'up', '--nova', '33'], 'up',
                 {'--name': 'a', '--nova': '33'}),
                (['-v', 'delete', 'up'], 'delete', {}),
                (['shell', '--', 'a', '--name', 'b'], 'shell', {}),
                (['up', '--nova'], 'up', {'--nova': ''})):
            self.assertEqual((command, values), self.lab.parse(words))

    def test_help_needs_no_lab(self):
        for words in (['ring', '--help'], ['ring'], ['ring', 'help', 'show'],
                      ['ring', 'show', '-h'], ['shell', '--help'], ['up'],
                      ['help', 'ring'], []):
            self.assertFalse(self.lab.needs_lab(words), words)
        for words in (['ring', 'show'], ['shell', '--', 'openstack', '--help'],
                      ['show'], ['down']):
            self.assertTrue(self.lab.needs_lab(words), words)

    def test_help_without_a_lab(self):
        self.lab.installed = lambda version: 'python'
        run = self.useFixture(fixtures.MockPatch('os.execv')).mock
        self.useFixture(fixtures.MonkeyPatch(
            'sys.argv', ['tools/lab', 'ring', '--help']))
        self.lab.main()
        self.assertEqual(['ring', '--help'], run.call_args.args[1][-2:])

    def test_python_of_a_lab(self):
        directory = self.lab.place.directory('a')
        os.close(self.lab.place.make(directory))
        self.assertIsNone(self.lab.running('a'))
        settings = directory / 'lab.json'
        settings.write_text('{"python": "/no/such/python"}')
        self.assertIsNone(self.lab.running('a'))
        settings.write_text('{"python": "%s"}' % sys.executable)
        self.assertEqual(sys.executable, self.lab.running('a'))

    def test_lab_of_somebody_else_runs_nothing(self):
        directory = self.lab.place.directory('a')
        os.close(self.lab.place.make(directory))
        (directory / 'lab.json').write_text(
            '{"python": "%s"}' % sys.executable)
        directory.parent.chmod(0o777)
        self.assertRaises(self.lab.errors.LabError, self.lab.running, 'a')

    def test_no_release_of_nova(self):
        self.assertIn('is no release of Nova',
                      self._fails(self.lab.installed, 'train'))
