# SPDX-License-Identifier: Apache-2.0

"""The lab's command line, on a lab."""

import collections
import dataclasses
import errno
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import fixtures
import psutil

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import process
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.tests.functional import base


def _heed_interrupts() -> None:
    """Undo what a shell does to a job in its background, as tests may be."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class CommandTestCase(base.LabTestCase):

    def _ok(self, *arguments: str) -> str:
        """Run a command that is to succeed."""
        done = self.command(*arguments)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def _refused(self, *arguments: str) -> str:
        """Run a command that is to fail with a sentence."""
        done = self.command(*arguments)
        self.assertNotEqual(0, done.returncode, done.stdout)
        self.assertNotIn('Traceback', done.stderr)
        return done.stderr

    def _table(self) -> dict[str, dict]:
        return {line['Member']: line
                for line in json.loads(self._ok('show', '-f', 'json'))}

    def test_show(self):
        owned = collections.Counter(self.lab.owners().values())
        self.assertEqual({'compute-1', 'compute-2', 'compute-3'}, set(owned))
        self.assertEqual(
            {host: {'Member': host, 'State': 'member', 'Nodes owned': count,
                    'Nodes desired': count, 'Instances': 0}
             for host, count in owned.items()}, self._table())

    def test_watch(self):
        watching = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m', 'nova_ironic_ring.lab',
             '--name', self.name, 'show', '--watch', '1'],
            stdout=subprocess.PIPE, text=True, preexec_fn=_heed_interrupts)
        self.addCleanup(watching.kill)
        for _ in range(2):
            self.assertTrue(any('compute-1' in line
                                for line in watching.stdout))
        watching.send_signal(signal.SIGINT)
        watching.communicate()
        self.assertEqual(0, watching.returncode)

    def test_pause_and_resume(self):
        self._ok('pause', 'compute-1')
        self.addCleanup(self.lab.compute('compute-1').resume)
        self.lab.wait('A paused compute-1', lambda: (
            self.lab.compute('compute-1').state == 'paused'))
        self.wait_down('compute-1')
        self.assertEqual('absent', self._table()['compute-1']['State'])
        self._ok('resume', 'compute-1')
        self.lab.wait('compute-1 running', lambda: (
            self.lab.compute('compute-1').state == 'running'))

    def test_kill_start_and_stop(self):
        for end in 'kill', 'stop':
            self._ok(end, 'compute-2')
            self.assertEqual('stopped', self.lab.compute('compute-2').state)
            self._ok('start', 'compute-2')
            self.assertEqual('running', self.lab.compute('compute-2').state)
        self.assertIn('compute-2 is running already',
                      self._refused('start', 'compute-2'))
        self.assertIn('compute-2 is running already',
                      self._refused('resume', 'compute-2'))

    def test_name_that_is_not_there(self):
        for command in ('start', 'stop', 'kill', 'pause', 'reload', 'report',
                        'resume'):
            self.assertEqual(
                'There is no nova-compute compute-9 in this lab: it has '
                'compute-1, compute-2, compute-3.\n',
                self._refused(command, 'compute-1', 'compute-9'))
        # Not even to the one that is.
        self.assertEqual('running', self.lab.compute('compute-1').state)
        self.assertIn('There is no log of nothing', self._refused(
            'logs', 'nothing'))

    def test_names_that_cannot_be_added(self):
        self.assertIn('compute-1 in this lab already',
                      self._refused('add', 'compute-1'))
        self.assertIn('is no host name', self._refused('add', 'a b'))
        self.assertIn('is the name of another service',
                      self._refused('add', 'mariadb'))

    def test_driver_that_does_not_load(self):
        self.lab.add_compute(
            'broken', {'DEFAULT': {'compute_driver': 'no.Driver'}})
        self.addCleanup(self.lab.forget_compute, 'broken')
        error = self.assertRaises(
            errors.LabError, self.lab.wait_alive, 'broken')
        log = self.lab.state.directory / 'log' / 'broken.log'
        self.assertIn(f'broken has died; its log is {log}', str(error))
        self.assertIn('no.Driver', log.read_text())

    def test_boot_and_delete(self):
        out = self._ok('boot', '2', '--host', 'compute-1', '-f', 'json')
        booted = json.loads(out[out.index('['):])
        self.addCleanup(self._ok, 'delete', '--all')
        self.assertEqual(
            [('ACTIVE', 'compute-1')] * 2,
            [(line['Status'], line['Host']) for line in booted])
        self.assertEqual(2, self._table()['compute-1']['Instances'])

        listed = json.loads(self._ok(
            'shell', '--', 'openstack', 'server', 'list', '-f', 'json'))
        self.assertEqual({line['Server'] for line in booted},
                         {line['Name'] for line in listed})

        self.assertIn('There is no server nothing', self._refused(
            'delete', 'nothing', booted[0]['Server']))
        self.assertIn('Nothing is deleted', self._refused('delete'))
        self._ok('delete', booted[0]['Server'])
        self.assertEqual(1, self._table()['compute-1']['Instances'])

    def test_shell(self):
        for command, more in ('baremetal node list', 0), (
                'hypervisor list', len(self.lab.state.computes)):
            listed = json.loads(self._ok(
                'shell', '--', 'openstack', *command.split(), '-f', 'json'))
            self.assertEqual(self.nodes + more, len(listed))
        # The exit status is the command's own.
        self.assertEqual(
            3, self.command('shell', '--', 'sh', '-c', 'exit 3').returncode)
        self.assertIn('cannot be run', self._refused('shell', '--',
                                                     'no-such-program'))

    def test_logs(self):
        out = self._ok('logs', '--lines', '2')
        self.assertIn('compute-1.log', out)
        self.assertIn('compute-2.log', out)
        last = self.lab.state.process('nova-conductor').last_lines(1)
        out = self._ok('logs', '--lines', '1000', 'nova-conductor')
        self.assertIn(last.strip(), out)
        self.assertNotIn('compute-1.log', out)

    def test_up_again(self):
        self.assertIn('end it with "down"', self._refused('up'))
        self.assertEqual('running', self.lab.compute('compute-1').state)

    def test_only_loopback_is_bound(self):
        ours = {process.pid
                for process in process.leftovers(self.lab.state.directory)}
        listening = {
            connection.laddr.ip
            for connection in psutil.net_connections('inet')
            if connection.status == psutil.CONN_LISTEN
            and connection.pid in ours}
        self.assertNotEqual(set(), listening)
        self.assertEqual(set(), listening - {'127.0.0.1', '::1'})

    def test_passwords_are_not_for_others(self):
        self.assertEqual(
            0, self.lab.state.directory.stat().st_mode & 0o077)
        lines = [' '.join(each.cmdline()) for each
                 in process.leftovers(self.lab.state.directory)]
        self.assertNotEqual([], lines)
        for line in lines:
            self.assertNotIn(self.lab.state.secret, line)

    def test_port_that_was_taken_meanwhile(self):
        keystone = services.Keystone(self.lab.context)
        with socket.create_server(('127.0.0.1', 0)) as taken:
            state = dataclasses.replace(
                self.lab.state, ports=self.lab.state.ports | {
                    'second': taken.getsockname()[1]})
            keystone.context = services.Context(
                state, self.lab.database, self.lab.broker)
            keystone.name = 'second'
            keystone.process = state.process('second')
            self.addCleanup(keystone.cleanUp)
            keystone.setUp()
            error = self.assertRaises(errors.LabError, keystone.wait)
        self.assertIn('second has died; its log is '
                      f'{state.directory}/log/second.log', str(error))
        self.assertIn('in use', str(error))
        keystone.process.forget()

    def test_another_beside_it_killed_and_cleaned_up(self):
        name = base.unique_name()
        directory = place.directory(name)
        self.addCleanup(base.run_lab, name, 'down')
        arguments = [sys.executable, '-W', 'ignore', '-m',
                     'nova_ironic_ring.lab', '--name', name, 'up', '--nodes',
                     '2', '--computes', '1', '--driver', 'nova']
        first = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        self.assertTrue(any('Placement' in line for line in first.stdout))
        first.kill()
        first.communicate()
        orphans = {process.pid for process in process.leftovers(directory)}
        self.assertNotEqual(set(), orphans)
        self.assertIn('is not up', base.run_lab(name, 'show').stderr)

        second = subprocess.run(arguments, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        self.assertEqual(0, second.returncode, second.stderr)
        self.assertIn('| compute-1 | member |           2 |', second.stdout)
        self.assertEqual(set(), orphans & set(psutil.pids()))
        log = (directory / 'log' / 'compute-1.log').read_text()
        self.assertIn("Loading compute driver 'ironic.IronicDriver'", log)
        # And the other one is as it was.
        self.assertEqual({'compute-1', 'compute-2', 'compute-3'},
                         set(self._table()))

        ports = lab_state.State.load(directory).ports.values()
        self.assertEqual(
            set(), set(ports) & set(self.lab.state.ports.values()))
        self.assertEqual(0, base.run_lab(name, 'down').returncode)
        self.assertNothingLeft(name)
        for port in ports:
            with socket.socket() as probe:
                self.assertEqual(errno.ECONNREFUSED,
                                 probe.connect_ex(('127.0.0.1', port)))

    def test_add_and_enroll(self):
        self._ok('add')
        self.addCleanup(self.remove_compute, 'compute-4')
        # What the command has written is not known here yet.
        self.lab.state.computes.append('compute-4')
        self.lab.wait_settled(self.nodes)
        self.assertIn('compute-4', self.lab.owners().values())
        self._ok('enroll', '3')
        self.addCleanup(self._delete_nodes, self.nodes)
        self.lab.wait_settled(self.nodes + 3)

    def _delete_nodes(self, keep: int) -> None:
        nodes = sorted(self.cloud.baremetal.nodes(),
                       key=lambda node: int(node.name.rpartition('-')[2]))
        for node in nodes[keep:]:
            self.cloud.baremetal.delete_node(node)
        self.lab.wait('The nodes gone', lambda: (
            len(self.lab.owners()) == keep))


class FailureTestCase(base.base.BaseTestCase):
    """What a lab that cannot come up says."""

    def setUp(self):
        super().setUp()
        self.name = base.unique_name()
        self.directory = place.directory(self.name)
        self.addCleanup(lab_state.remove, self.directory)
        self.addCleanup(process.sweep, self.directory)

    def test_no_lab(self):
        for command in 'show', 'down', 'boot', 'add', 'logs':
            done = base.run_lab(self.name, command)
            self.assertEqual(1, done.returncode)
            self.assertIn(f'There is no lab in {self.directory}: ',
                          done.stderr)
            self.assertEqual(1, done.stderr.count('\n'))

    def test_program_that_dies(self):
        # A directory on the PATH with a server that says why it does not run.
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        server = path / 'mysqld'
        server.write_text('#!/bin/sh\nexit 1\n')
        server.chmod(0o755)
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m', 'nova_ironic_ring.lab',
             '--name', self.name, 'up'],
            env={**os.environ, 'PATH': f'{path}:{os.environ["PATH"]}'},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertNotEqual(0, done.returncode)
        self.assertNotIn('Traceback', done.stderr)
        self.assertIn('mariadb has died; its log is '
                      f'{self.directory}/log/mariadb.log', done.stderr)
        self.assertEqual([], list(process.leftovers(self.directory)))

    def test_coming_up(self):
        self.addCleanup(os.close, place.make(self.directory))
        done = base.run_lab(self.name, 'up')
        self.assertNotEqual(0, done.returncode)
        self.assertIn('is coming up', done.stderr)

    def test_interrupted(self):
        for number in signal.SIGINT, signal.SIGTERM:
            started = subprocess.Popen(
                [sys.executable, '-W', 'ignore', '-m', 'nova_ironic_ring.lab',
                 '--name', self.name, 'up'],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                preexec_fn=_heed_interrupts)
            self.assertTrue(any('schemas' in line
                                for line in started.stdout))
            started.send_signal(number)
            _, message = started.communicate()
            self.assertNotEqual(0, started.returncode)
            self.assertNotIn('Traceback', message)
            self.assertEqual([], list(process.leftovers(self.directory)))


class ToolTestCase(base.base.BaseTestCase):
    """tools/lab as a user runs it, with what it installs."""

    def setUp(self):
        super().setUp()
        self.name = base.unique_name()
        self.addCleanup(self._lab, 'down')

    def _lab(self, *arguments: str) -> subprocess.CompletedProcess:
        tool = pathlib.Path(__file__).resolve().parents[3] / 'tools' / 'lab'
        return subprocess.run(
            [str(tool), '--name', self.name, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

    def test_release_of_nova(self):
        done = self._lab('up', '--nova', '33', '--nodes', '2',
                         '--computes', '1')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('| compute-1 | member |           2 |', done.stdout)
        logs = self._lab('logs', '-n', '1000', 'compute-1').stdout
        self.assertIn('Starting compute node (version 33.', logs)
        self.assertIn("Loading compute driver 'ironic_ring.IronicRingDriver'",
                      logs)
        booted = self._lab('boot')
        self.assertEqual(0, booted.returncode, booted.stderr)
        self.assertIn('| ACTIVE | compute-1 |', booted.stdout)

    def test_nothing_is_installed_for_a_lab_that_is_not_there(self):
        done = self._lab('show')
        self.assertEqual(2, done.returncode)
        self.assertEqual('', done.stdout)
        self.assertIn('There is no lab in', done.stderr)
