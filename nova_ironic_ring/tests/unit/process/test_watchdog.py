# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable
import contextlib
import os
import pathlib
import socket
import tempfile

import fixtures
from oslo_service import systemd
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

    def _until_it_would_block(self, call: Callable[[], object]) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                call()

    def test_systemd_is_told(self):
        listener, found = self._listen(self.path), self._make()
        found.tell()
        self.assertEqual(b'READY=1\nWATCHDOG=1', listener.recv(100))
        for _ in range(2):
            found.tell()
            self.assertEqual(b'WATCHDOG=1', listener.recv(100))

    def test_socket_without_a_file(self):
        name = f'ironic-ring-{os.getpid()}'
        listener = self._listen('\0' + name)
        self._make(NOTIFY_SOCKET='@' + name).tell()
        self.assertIn(b'WATCHDOG=1', listener.recv(100))

    def test_nobody_else_says_ready(self):
        # oslo.service does so at once on eventlet, before Nova's service
        # starts, where it finds the socket.
        listener = self._listen(self.path)
        self.useFixture(
            fixtures.EnvironmentVariable('NOTIFY_SOCKET', self.path))
        found = watchdog.Watchdog()
        systemd.notify_once()
        self.assertRaises(BlockingIOError, listener.recv, 100)
        found.tell()
        self.assertIn(b'READY=1', listener.recv(100))

    def test_unit_without_a_watchdog_becomes_ready(self):
        listener = self._listen(self.path)
        for changes in ({'WATCHDOG_USEC': ''},
                        {'WATCHDOG_PID': str(os.getpid() + 1)}):
            found = self._make(**changes)
            found.tell()
            self.assertEqual(b'READY=1', listener.recv(100))
            found.tell()
            self.assertRaises(BlockingIOError, listener.recv, 100)
        self._make(WATCHDOG_PID=str(os.getpid())).tell()
        self.assertIn(b'WATCHDOG=1', listener.recv(100))

    def test_nobody_is_told_where_nobody_listens(self):
        listener = self._listen(self.path)
        self._make(NOTIFY_SOCKET='').tell()
        self.assertRaises(BlockingIOError, listener.recv, 100)
        self.assertEqual('', self.log.output)

    def test_heartbeats_that_are_not_seen(self):
        found = self._make()
        # systemd does not listen yet.
        found.do_without()
        listener = self._listen(self.path)
        found.do_without()
        self.assertEqual(b'READY=1\nWATCHDOG_USEC=0', listener.recv(100))
        found.do_without()
        self.assertRaises(BlockingIOError, listener.recv, 100)
        self.assertEqual(1, self.log.output.count('has no effect'))

    def test_heartbeats_that_are_not_seen_without_a_watchdog(self):
        listener, found = self._listen(self.path), self._make(WATCHDOG_USEC='')
        for _ in range(2):
            found.do_without()
        self.assertEqual(b'READY=1', listener.recv(100))
        self.assertRaises(BlockingIOError, listener.recv, 100)
        self._make(NOTIFY_SOCKET='').do_without()
        self.assertEqual('', self.log.output)

    def test_systemd_that_does_not_listen(self):
        self._make().tell()
        self.assertIn('Cannot tell systemd', self.log.output)

    def test_systemd_that_does_not_read(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring.process.watchdog._PATIENCE', 0.01))
        listener, found = self._listen(self.path), self._make()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            self._until_it_would_block(
                lambda: other.sendto(b'1', self.path))
        found.tell()
        self.assertIn('Cannot tell systemd', self.log.output)
        # It has not heard READY yet.
        self._until_it_would_block(lambda: listener.recv(100))
        found.tell()
        self.assertEqual(b'READY=1\nWATCHDOG=1', listener.recv(100))
