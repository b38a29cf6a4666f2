# SPDX-License-Identifier: Apache-2.0

import os
import signal
import threading

import fixtures
from oslo_config import cfg
from oslotest import base

from nova_ironic_ring.process import sighup


class SighupTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, before)

        self.path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        self.conf = cfg.ConfigOpts()
        self.conf.register_opt(cfg.IntOpt('number', mutable=True))
        self._write('number = 1')
        self.conf([], default_config_files=[self.path])
        self.reloader = sighup.Reloader(self.conf)

    def _write(self, line: str) -> None:
        with open(self.path, 'w') as file:
            file.write(f'[DEFAULT]\n{line}\n')

    def _hang_up(self) -> None:
        os.kill(os.getpid(), signal.SIGHUP)

    def test_changes_the_options(self):
        self.reloader.install()
        for number in 2, 3:
            self._write(f'number = {number}')
            self._hang_up()
            self.assertEqual(number - 1, self.conf.number)
            self.assertTrue(self.reloader.reload())
            self.assertEqual(number, self.conf.number)
            self.assertFalse(self.reloader.reload())

    def test_file_that_cannot_be_read(self):
        self.reloader.install()
        self._write('number')
        self._hang_up()
        self.assertFalse(self.reloader.reload())
        self.assertIn('stays in force', self.log.output)
        self.assertEqual(1, self.conf.number)

    def test_not_in_the_main_thread(self):
        thread = threading.Thread(target=self.reloader.install)
        thread.start()
        thread.join()
        self.assertIs(signal.SIG_IGN, signal.getsignal(signal.SIGHUP))
        self.assertIn('in the main thread only', self.log.output)
