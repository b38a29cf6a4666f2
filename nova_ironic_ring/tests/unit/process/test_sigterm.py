# SPDX-License-Identifier: Apache-2.0

import os
import signal
import threading

import fixtures
from oslotest import base

from nova_ironic_ring.process import sigterm


class SigtermTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        #: What was called, in turn.
        self.called: list[str] = []
        self.before = signal.signal(
            signal.SIGTERM, lambda *_: self.called.append('before'))
        self.addCleanup(signal.signal, signal.SIGTERM, self.before)

    def _install(self) -> None:
        sigterm.install(lambda: self.called.append('silence'))

    def test_first_the_heartbeat_and_then_what_nova_does(self):
        self._install()
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(['silence', 'before'], self.called)

    def test_where_nova_does_nothing(self):
        for handler in signal.SIG_DFL, signal.SIG_IGN:
            signal.signal(signal.SIGTERM, handler)
            self._install()
            self.assertIs(handler, signal.getsignal(signal.SIGTERM))

    def test_not_in_the_main_thread(self):
        thread = threading.Thread(target=self._install)
        thread.start()
        thread.join()
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(['before'], self.called)
        self.assertIn('in the main thread only', self.log.output)
