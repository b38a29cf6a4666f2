# SPDX-License-Identifier: Apache-2.0

"""Tells systemd that this process is ready, and that it is well.

That it is ready is told with the first heartbeat that has reached Nova's
database, where a unit has Type=notify; and that it is well with each, where a
unit has WatchdogSec=. systemd kills a service that has not told it so for that
long: a service that hangs, or that its peers cannot hear, is then over before
they take over its instances.
"""

from collections.abc import MutableMapping, Sequence
import os
import socket

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Seconds that a heartbeat waits for systemd to accept a message.
_PATIENCE = 1.0


class Watchdog:
    """Notifies systemd about this process, if there is a systemd."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ,
                 pid: int | None = None) -> None:
        """Take over the notifications of systemd.

        :param environment: the environment of this process, which loses the
            name of systemd's socket
        :param pid: the number of this process, as systemd knows it; None for
            what the operating system says
        """
        # Of the libraries below Nova, that for eventlet would say READY before
        # the service starts. The watchdog would begin then, and end a service
        # whose start takes long. That for native threads never says READY.
        self._socket = environment.pop('NOTIFY_SOCKET', '')
        self._is_watched = bool(environment.get('WATCHDOG_USEC')) and (
            environment.get('WATCHDOG_PID', '') in (
                '', str(os.getpid() if pid is None else pid)))
        self._is_ready = False

    def tell(self) -> None:
        """Notify systemd that the process is alive, if systemd expects that.

        A failure is logged, and does not disturb the process.
        """
        self._send(['WATCHDOG=1'] if self._is_watched else [])

    def do_without(self) -> None:
        """Notify systemd that the process is ready, and turn the watchdog off.

        For heartbeats that are not visible here: systemd would kill a healthy
        service. A second call retries after a failure.
        """
        if not self._is_watched:
            self._send([])
        elif self._send(['WATCHDOG_USEC=0']):
            self._is_watched = False
            LOG.warning('WatchdogSec= in the systemd unit of this service has '
                        'no effect, because with [DEFAULT] '
                        'servicegroup_driver = mc the heartbeats are not in '
                        "Nova's database: remove it from the unit.")

    def _send(self, words: Sequence[str]) -> bool:
        """Send something to systemd, with READY until that has arrived.

        :param words: the assignments
        :returns: whether systemd has received anything
        """
        if not self._is_ready:
            words = ['READY=1', *words]
        if not self._socket or not words:
            return False
        # A name without a file.
        address = ('\0' + self._socket[1:] if self._socket.startswith('@')
                   else self._socket)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
                # A systemd that does not read holds up no heartbeat.
                to.settimeout(_PATIENCE)
                to.connect(address)
                to.sendall('\n'.join(words).encode())
        except OSError as error:
            LOG.warning('Cannot tell systemd that this service is well, so '
                        'systemd may end it: %s', error)
            return False
        self._is_ready = True
        return True
