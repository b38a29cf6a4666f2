# SPDX-License-Identifier: Apache-2.0

"""Requests to services that close connections."""

import http.server
import threading

from oslotest import base
import requests

from nova_ironic_ring.lab import tenant


class _Closing(http.server.BaseHTTPRequestHandler):
    """Closes the connection of the first request without an answer."""

    asked: list[str] = []

    def _answer(self) -> None:
        self.asked.append(self.command)
        if len(self.asked) == 1:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    do_GET = do_POST = _answer

    def log_message(self, *args: object) -> None:
        """Print nothing."""


class ClosedConnectionTestCase(base.BaseTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.asked: list[str] = []
        server = http.server.HTTPServer(
            ('127.0.0.1', 0), type('Handler', (_Closing,), {
                'asked': self.asked}))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f'http://127.0.0.1:{server.server_port}/'

    def test_question(self) -> None:
        with tenant.http_session() as session:
            self.assertEqual(200, session.get(self.url).status_code)
        self.assertEqual(['GET', 'GET'], self.asked)

    def test_change(self) -> None:
        # It may have been made.
        with tenant.http_session() as session:
            self.assertRaises(
                requests.ConnectionError, session.post, self.url)
        self.assertEqual(['POST'], self.asked)
