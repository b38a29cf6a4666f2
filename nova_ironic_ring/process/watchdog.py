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

"""Tells systemd that this process is well, where a unit has WatchdogSec=.

systemd kills a service that has not told it so for that long. Here it is told
with each heartbeat that has reached Nova's database: a service that hangs, or
that its peers cannot hear, is then over before they take over its instances.
"""

from collections.abc import Mapping
import os
import socket

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# Of the libraries below Nova, those for native threads never say READY; saying
# it again does no harm.
_WELL = b'READY=1\nWATCHDOG=1'


class Watchdog:
    """The watchdog that systemd has on this process, if it has one."""

    def __init__(self, environment: Mapping[str, str] = os.environ,
                 pid: int | None = None) -> None:
        """Find the watchdog.

        :param environment: the environment of this process, as it was at its
            start: Nova's libraries drop the socket later
        :param pid: the number of this process, as systemd knows it; None for
            what the operating system says
        """
        is_meant = environment.get('WATCHDOG_PID', '') in (
            '', str(os.getpid() if pid is None else pid))
        self._socket = environment.get('NOTIFY_SOCKET', '') if (
            is_meant and environment.get('WATCHDOG_USEC')) else ''

    def tell(self) -> None:
        """Say that the process is well, if anybody wants to know.

        A failure is logged, and is no error of what the process is at.
        """
        if not self._socket:
            return
        # A name without a file.
        address = ('\0' + self._socket[1:] if self._socket.startswith('@')
                   else self._socket)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
                to.connect(address)
                to.sendall(_WELL)
        except OSError as error:
            LOG.warning('systemd cannot be told that this service is well, '
                        'and will end it: %s', error)
