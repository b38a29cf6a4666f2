# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import sys

import fixtures
from oslotest import base
import psutil

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import process

# Says that it has set itself up, and stays.
STUBBORN = '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('ready', flush=True)
time.sleep(60)
'''
# Leaves a child behind that knows nothing of it.
PARENT = '''
import subprocess, sys
subprocess.Popen(['sleep', '60'], start_new_session=True)
'''


class ProcessTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.addCleanup(process.sweep, self.directory)

    def _process(self, *argv: str, name: str = 'it') -> process.Process:
        return process.Process(self.directory, name).define(argv)

    def _started(self, *argv: str) -> process.Process:
        started = self._process(*argv)
        started.start()
        self.assertEqual('running', started.state)
        return started

    def _wait_for(self, done) -> None:
        self.assertTrue(process._wait(done, 10))

    def test_stop(self):
        started = self._started('sleep', '60')
        started.stop()
        self.assertEqual('stopped', started.state)
        started.check()  # it was told to
        started.start()
        self.assertEqual('running', started.state)

    def test_forget(self):
        started = self._started('sleep', '60')
        started.forget()
        self.assertEqual('stopped', started.state)
        self.assertFalse(started.exists)
        # As if there had never been one.
        again = self._process('sleep', '60')
        self.assertEqual('stopped', again.state)
        self.assertEqual('    (none)', again.last_lines())

    def test_stop_of_a_paused_one(self):
        started = self._started('sleep', '60')
        started.pause()
        self._wait_for(lambda: started.state == 'paused')
        started.stop()
        self.assertEqual('stopped', started.state)

    def test_stop_of_one_that_will_not(self):
        started = self._started(sys.executable, '-c', STUBBORN)
        self._wait_for(lambda: 'ready' in started.last_lines())
        started.stop(timeout=0.1)
        self.assertEqual('stopped', started.state)

    def test_pause_and_resume(self):
        started = self._started('sleep', '60')
        started.pause()
        self._wait_for(lambda: started.state == 'paused')
        started.resume()
        self._wait_for(lambda: started.state == 'running')

    def test_known_to_another_command(self):
        self._started('sleep', '60')
        again = process.Process(self.directory, 'it')
        self.assertEqual('running', again.state)
        again.kill()
        self.assertEqual('stopped', again.state)
        again.start()
        self.assertEqual('running', again.state)

    def test_process_id_of_another(self):
        started = self._started('sleep', '60')
        record = started._read()
        started._write(record | {'started': record['started'] - 1})
        self.assertEqual('stopped', started.state)
        started.kill()
        os.kill(record['pid'], 0)
        started._write(record)
        self.assertEqual('running', started.state)

    def test_death_is_noticed(self):
        started = self._process('sh', '-c', 'echo no room; exit 1')
        started.start()
        self._wait_for(lambda: started.state == 'stopped')
        error = self.assertRaises(errors.LabError, started.check)
        self.assertEqual(
            f'it has died; its log is {started.log}, and its last lines are:\n'
            '    no room', str(error))

    def test_program_that_is_not_there(self):
        missing = self._process('/no/such/program')
        error = self.assertRaises(errors.LabError, missing.start)
        self.assertIn('it cannot be started', str(error))

    def test_not_defined(self):
        unknown = process.Process(self.directory, 'unknown')
        self.assertFalse(unknown.exists)
        self.assertEqual('stopped', unknown.state)
        error = self.assertRaises(errors.LabError, unknown.start)
        self.assertIn('no process unknown', str(error))

    def test_sweep_finds_the_children_of_the_dead(self):
        started = self._process(sys.executable, '-c', PARENT)
        started.start()
        self._wait_for(lambda: started.state == 'stopped')
        (child,) = process.leftovers(self.directory)
        process.sweep(self.directory)
        self.assertEqual([], list(process.leftovers(self.directory)))
        self._wait_for(lambda: not psutil.pid_exists(child.pid)
                       or child.status() == psutil.STATUS_ZOMBIE)

    def test_sweep_spares_other_labs(self):
        started = self._started('sleep', '60')
        process.sweep(self.directory.with_name('another'))
        self.assertEqual('running', started.state)

    def test_environment(self):
        for name in 'OS_CLOUD', 'http_proxy', 'HTTPS_PROXY':
            self.useFixture(fixtures.EnvironmentVariable(name, 'elsewhere'))
        self.assertNotIn('elsewhere',
                         process.environment(self.directory).values())

    def test_listens(self):
        port = '''
import socket, time
s = socket.create_server(('127.0.0.1', 0))
print(s.getsockname()[1], flush=True)
time.sleep(60)
'''
        started = self._started(sys.executable, '-c', port)
        self._wait_for(lambda: started.last_lines().strip().isdigit())
        number = int(started.last_lines())
        self.assertTrue(started.listens(number))
        self.assertFalse(started.listens(number + 1))
        started.kill()
        self.assertFalse(started.listens(number))

    def test_signals_reach_the_workers(self):
        started = self._started(
            'sh', '-c', 'sleep 60 & echo $!; wait')
        self._wait_for(lambda: started.last_lines().strip().isdigit())
        worker = psutil.Process(int(started.last_lines()))
        self.assertTrue(worker.is_running())
        started.kill()
        self._wait_for(lambda: not worker.is_running()
                       or worker.status() == psutil.STATUS_ZOMBIE)
