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
