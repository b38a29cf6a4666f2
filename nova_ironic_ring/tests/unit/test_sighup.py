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

import os
import signal
import threading

import fixtures
from oslo_config import cfg
from oslotest import base

from nova_ironic_ring import sighup


class SighupTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self._on_threads(True)
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, before)

        self.path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        self.conf = cfg.ConfigOpts()
        self.conf.register_opt(cfg.IntOpt('number', mutable=True))
        self._write('number = 1')
        self.conf([], default_config_files=[self.path])
        self.reloaded = threading.Event()
        self.conf.register_mutate_hook(lambda *_: self.reloaded.set())

    def _on_threads(self, answer: bool) -> None:
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring.upstream.runs_on_threads', lambda: answer))

    def _write(self, line: str) -> None:
        with open(self.path, 'w') as file:
            file.write(f'[DEFAULT]\n{line}\n')

    def test_changes_the_options(self):
        sighup.install(self.conf)
        self._write('number = 2')
        os.kill(os.getpid(), signal.SIGHUP)
        self.assertTrue(self.reloaded.wait(10))
        self.assertEqual(2, self.conf.number)

    def test_file_that_cannot_be_read(self):
        self._write('number')
        sighup._mutate(self.conf)
        self.assertIn('stays in force', self.log.output)
        self.assertEqual(1, self.conf.number)

    def test_eventlet_is_left_alone(self):
        self._on_threads(False)
        sighup.install(self.conf)
        self.assertIs(signal.SIG_IGN, signal.getsignal(signal.SIGHUP))

    def test_not_in_the_main_thread(self):
        thread = threading.Thread(target=sighup.install, args=(self.conf,))
        thread.start()
        thread.join()
        self.assertIs(signal.SIG_IGN, signal.getsignal(signal.SIGHUP))
