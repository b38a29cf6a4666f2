# SPDX-License-Identifier: Apache-2.0

"""Counts the messages that services send by RPC, as oslo.messaging reports."""

import json
import pathlib
import socket
import threading
from typing import Self

from nova_ironic_ring.lab.running import services

# oslo.messaging sends this metric at the start of each call and each cast.
_SENT = 'rpc_client_invocation_start_total'
# The longest message, in bytes; a metric has some hundreds.
_LONGEST = 65536


class Counter:
    """Receives the metrics of services, and counts their calls and casts."""

    def __init__(self, directory: pathlib.Path) -> None:
        """Choose the socket to which the services send metrics.

        :param directory: the directory for the socket
        """
        self._path = directory / 'rpc-metrics.sock'
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._thread = threading.Thread(target=self._receive, daemon=True)
        #: How many calls and casts there were until now.
        self.count = 0

    def __enter__(self) -> Self:
        self._path.unlink(missing_ok=True)
        self._socket.bind(str(self._path))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # An empty message ends the thread.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(b'', str(self._path))
        self._thread.join()
        self._socket.close()
        self._path.unlink(missing_ok=True)

    @property
    def options(self) -> services.Sections:
        """The options of a service whose messages are to be counted."""
        return {'oslo_messaging_metrics': {
            'metrics_enabled': True,
            'metrics_buffer_size': 100_000,
            'metrics_socket_file': self._path}}

    def _receive(self) -> None:
        while message := self._socket.recv(_LONGEST):
            self.count += json.loads(message)['name'] == _SENT
