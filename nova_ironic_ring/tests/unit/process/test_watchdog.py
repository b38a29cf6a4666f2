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
import pathlib
import socket
import tempfile

import fixtures
from oslotest import base

from nova_ironic_ring.process import watchdog


class WatchdogTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        # The names of sockets are short, and those of test folders long.
        folder = tempfile.TemporaryDirectory(dir='/tmp')
        self.addCleanup(folder.cleanup)
        self.path = str(pathlib.Path(folder.name, 'notify'))

    def _listen(self, address: str) -> socket.socket:
        """Return the socket that systemd would listen on."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(listener.close)
        listener.bind(address)
        listener.setblocking(False)
        return listener

    def _make(self, **changes: str) -> watchdog.Watchdog:
        return watchdog.Watchdog({
            'NOTIFY_SOCKET': self.path, 'WATCHDOG_USEC': '90000000',
            **changes})

    def test_systemd_is_told(self):
        listener, found = self._listen(self.path), self._make()
        for _ in range(2):
            found.tell()
            self.assertEqual(b'READY=1\nWATCHDOG=1', listener.recv(100))

    def test_socket_without_a_file(self):
        name = f'ironic-ring-{os.getpid()}'
        listener = self._listen('\0' + name)
        self._make(NOTIFY_SOCKET='@' + name).tell()
        self.assertIn(b'WATCHDOG=1', listener.recv(100))

    def test_socket_is_known_after_nova_has_forgotten_it(self):
        listener = self._listen(self.path)
        environment = {'NOTIFY_SOCKET': self.path, 'WATCHDOG_USEC': '1'}
        found = watchdog.Watchdog(environment)
        # As oslo.service does once it has said that the service is ready.
        del environment['NOTIFY_SOCKET']
        found.tell()
        self.assertIn(b'WATCHDOG=1', listener.recv(100))

    def test_nobody_is_told_where_nobody_waits(self):
        listener = self._listen(self.path)
        for changes in ({'WATCHDOG_USEC': ''}, {'NOTIFY_SOCKET': ''},
                        {'WATCHDOG_PID': str(os.getpid() + 1)}):
            self._make(**changes).tell()
            self.assertRaises(BlockingIOError, listener.recv, 100)
        self._make(WATCHDOG_PID=str(os.getpid())).tell()
        self.assertIn(b'WATCHDOG=1', listener.recv(100))
        self.assertEqual('', self.log.output)

    def test_systemd_that_does_not_listen(self):
        self._make().tell()
        self.assertIn('systemd cannot be told', self.log.output)
