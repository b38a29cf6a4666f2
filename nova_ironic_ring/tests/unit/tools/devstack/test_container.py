# SPDX-License-Identifier: Apache-2.0

"""Tests of the container, with stand-ins for the programs that make it."""

import contextlib
import io
import os
import pathlib
import re
import signal
import subprocess
import sys

import fixtures
from oslotest import base

from nova_ironic_ring.lab import waiting
from nova_ironic_ring_tools.devstack import commands
from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import network

# What systemd-nspawn is: a process with the directory among its arguments, and
# one child. It ends its child when it is told to end, if it may.
_OUTER = '''
import signal, subprocess, sys
child = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL)
signal.signal(signal.SIGTERM, lambda *_: child.kill())
if 'stubborn' in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(child.pid, flush=True)
child.wait()
'''


class ContainerTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'devstack')
        self.box = container.Container(self.directory)
        self.networks: list[str] = []
        for name in 'up', 'down':
            self.useFixture(fixtures.MockPatchObject(
                network, name,
                lambda before, name=name: self.networks.append(name)))

    def _outer(self, *arguments: str) -> tuple[int, int]:
        """Start what stands for systemd-nspawn: its number, its child's."""
        self.directory.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, '-c', _OUTER, f'--directory={self.box.root}',
             *arguments], stdout=subprocess.PIPE, text=True)

        assert process.stdout is not None
        with process.stdout:
            child = int(process.stdout.readline())

        def end() -> None:
            process.kill()
            process.wait()
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

        self.addCleanup(end)
        (self.directory / 'pid').write_text(f'{process.pid}\n')
        return process.pid, child


class MakingTestCase(ContainerTestCase):

    def setUp(self):
        super().setUp()
        self.calls: list[tuple[str, ...]] = []
        self.useFixture(fixtures.MockPatchObject(commands, 'log', self._log))
        self.fails = False

    def _log(self, path: pathlib.Path, *argv: str) -> None:
        self.calls.append(argv)
        if self.fails:
            raise errors.DevstackError('No.')
        if argv[0] == 'debootstrap':
            (self.box.root / 'etc').mkdir(parents=True)

    def test_make(self):
        self.box.make('http://mirror/debian/')
        debootstrap, prepare = self.calls
        self.assertEqual(
            ('bookworm', str(self.box.root), 'http://mirror/debian/'),
            debootstrap[-3:])
        self.assertEqual(('chroot', str(self.box.root)), prepare[:2])
        self.assertEqual(
            ['deb http://mirror/debian bookworm main',
             'deb http://mirror/debian bookworm-updates main',
             'deb http://mirror/debian-security bookworm-security main'],
            (self.box.root / 'etc/apt/sources.list').read_text().splitlines())
        self.assertIn('10.255.77.2 devstack',
                      (self.box.root / 'etc/hosts').read_text())

    def test_directory_of_something_else(self):
        self.directory.mkdir()
        kept = self.directory / 'root'
        kept.mkdir()
        for method in lambda: self.box.make('http://mirror'), self.box.remove:
            self.assertEqual(
                f'{self.directory} has other files, and no devstack: name an '
                'empty directory, or one that is not there, with '
                '--directory.', str(self.assertRaises(
                    errors.DevstackError, method)))
        self.assertEqual([], self.calls)
        kept.rmdir()
        self.box.make('http://mirror')

    def test_make_once_more(self):
        self.box.make('http://mirror/debian')
        del self.calls[:]
        self.box.make('http://mirror/debian')
        self.assertEqual([], self.calls)

    def test_password(self):
        self.directory.mkdir()
        password = self.box.password()
        # The database keeps the first one that it is given.
        self.assertEqual(password, self.box.password())
        self.assertEqual(
            0o600, (self.directory / 'password').stat().st_mode & 0o777)
        other = container.Container(self.directory / 'other')
        other.directory.mkdir()
        self.assertNotEqual(password, other.password())

    def test_make_after_a_failure(self):
        self.fails = True
        self.assertRaises(errors.DevstackError, self.box.make, 'http://m')
        self.box.write('etc/remains', '')
        self.fails = False
        self.box.make('http://m')
        self.assertFalse((self.box.root / 'etc/remains').exists())


class RunningTestCase(ContainerTestCase):

    def test_none(self):
        self.assertIsNone(self.box.leader())
        error = self.assertRaises(errors.DevstackError, self.box.enter)
        self.assertEqual(f'No devstack runs in {self.directory}: start one '
                         'with "up", or remove what is left of one with "down '
                         '--only-remove".', str(error))

    def test_leader(self):
        _, child = self._outer()
        self.assertEqual(child, self.box.leader())
        self.assertEqual(f'--target={child}', self.box.enter()[1])

    def test_number_that_another_process_has(self):
        outer, _ = self._outer()
        other = container.Container(self.directory / 'other')
        other.directory.mkdir()
        (other.directory / 'pid').write_text(f'{outer}\n')
        self.assertIsNone(other.leader())

    def test_halt(self):
        self._outer()
        self.box.halt()
        self.assertIsNone(self.box.leader())
        self.assertEqual(['down'], self.networks)
        self.assertFalse((self.directory / 'pid').exists())

    def test_halt_of_what_does_not_end(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring_tools.devstack.container._HALT', 0.1))
        _, child = self._outer('stubborn')
        self.box.halt()
        self.assertTrue(waiting.until(
            lambda: not _runs(child), timeout=30, poll=0.1))
        self.assertEqual(['down'], self.networks)

    def test_remove(self):
        self._outer()
        (self.directory / 'debootstrap.log').touch()
        self.box.remove()
        self.assertFalse(self.directory.exists())
        self.assertEqual(['down'], self.networks)

    def test_boot_that_fails(self):
        self.directory.mkdir()
        self.box.root.joinpath('etc').mkdir(parents=True)
        self.useFixture(fixtures.MockPatchObject(
            container.Container, '_nspawn',
            lambda box: ['sh', '-c', 'echo no; exit 1']))
        error = self.assertRaises(errors.DevstackError, self.box.boot)
        self.assertEqual('The container does not come up: see '
                         f'{self.directory}/console.log.', str(error))
        self.assertEqual('no\n',
                         (self.directory / 'console.log').read_text())
        self.assertEqual(['up', 'down'], self.networks)

    def test_boot_without_the_program(self):
        self.box.root.joinpath('etc').mkdir(parents=True)
        self.useFixture(fixtures.MockPatchObject(
            container.Container, '_nspawn', lambda box: ['/no/such/program']))
        self.assertRaises(errors.DevstackError, self.box.boot)
        self.assertEqual(['up', 'down'], self.networks)

    def test_boot_of_what_runs(self):
        self._outer()
        self.box.boot()
        self.assertEqual([], self.networks)


class EnteredTestCase(ContainerTestCase):
    """Commands in the container, which here is this machine."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            container.Container, 'enter', lambda box: ['env', 'FROM=box']))
        self.useFixture(fixtures.MockPatchObject(
            container.Container, '_user', lambda box: ['sh', '-c']))

    def test_root_run(self):
        self.assertEqual('box\n', self.box.root_run('sh', '-c', 'echo $FROM'))

    def test_user_run_has_nothing_of_this_machine(self):
        self.useFixture(fixtures.EnvironmentVariable('OS_CLOUD', 'mine'))
        self.assertEqual('none\n',
                         self.box.user_run('echo ${OS_CLOUD:-none}'))

    def test_shell(self):
        self.assertEqual(3, self.box.shell('exit 3'))

    def test_serve(self):
        self.directory.mkdir()
        output = self.directory / 'log'
        self.useFixture(fixtures.MockPatchObject(
            container.Container, 'enter', lambda box: ['echo']))
        self.assertEqual(0, self.box.serve('exit 1', 'stack', output))
        self.assertIn('--unit=stack --uid=stack', output.read_text())
        self.assertIn(f'--nice={os.nice(0)} ', output.read_text())
        self.assertIn('bash -c exit 1', output.read_text())

    def test_what_is_shown(self):
        self.directory.mkdir()
        output = self.directory / 'log'
        self.useFixture(fixtures.MockPatchObject(
            container.Container, 'enter', lambda box: [
                'sh', '-c', 'echo + one; echo two; echo three >&2; exit 4']))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(4, self.box.serve(
                '', 'stack', output, re.compile('t')))
        self.assertEqual('two\nthree\n', printed.getvalue())
        self.assertEqual('+ one\ntwo\nthree\n', output.read_text())


def _runs(number: int) -> bool:
    """Say whether a process runs, and is not only remembered."""
    try:
        status = pathlib.Path('/proc', str(number), 'stat').read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(')')[2].split()[0] != 'Z'
