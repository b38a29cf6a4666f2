# SPDX-License-Identifier: Apache-2.0

"""MariaDB and RabbitMQ, started by pifpaf.

pifpaf's fixtures end their servers when the process that uses them ends, and a
lab runs on after the command that starts it. So for each server, a process of
its own runs: pifpaf's command line, which keeps the server running.
"""

from collections.abc import Sequence
import os
import pathlib
import sys
import time

import fixtures
import pymysql

from nova_ironic_ring.lab.running import process
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import waiting

# Seconds.
_START_TIMEOUT = 180
_POLL = 0.05


class _Backend(fixtures.Fixture):
    """A server that ``pifpaf run`` keeps running."""

    name: str
    #: The names that the system may have for the server's own process.
    programs: Sequence[str]

    def __init__(self, state: lab_state.State) -> None:
        """Choose the lab.

        :param state: its settings
        """
        super().__init__()
        self.state = state
        self.process = state.process(self.name)
        # The server, once it was restarted: pifpaf starts it only once.
        self._again = state.process(f'{self.name}-again')
        self._ready = state.directory / 'run' / f'{self.name}.ready'

    def _setUp(self) -> None:
        # pifpaf runs the command once the server is ready, and ends the server
        # when the command has ended.
        hold = f'echo "$PIFPAF_DATA" >"{self._ready}"; exec sleep infinity'
        self._ready.unlink(missing_ok=True)
        self.process.define(
            [str(pathlib.Path(sys.prefix, 'bin', 'pifpaf')),
             'run', *self.arguments(), '--', 'sh', '-c', hold],
            {'TMPDIR': str(self.state.temporary), **self.variables()})
        self.addCleanup(self.process.stop)
        self.addCleanup(self._again.kill)
        self.process.start()

    def arguments(self) -> list[str]:
        """Return pifpaf's arguments."""
        raise NotImplementedError

    def variables(self) -> dict[str, str]:
        """Return the variables that the server needs in its environment."""
        return {}

    def wait(self) -> None:
        """Wait until the server can be used.

        :raises LabError: if it dies or takes too long
        """
        def is_ready() -> bool:
            if self._ready.exists() and self._ready.read_text():
                return True
            self.process.check()
            return False

        if not waiting.until(is_ready, _START_TIMEOUT, _POLL):
            raise self.process.trouble(
                f'is not ready after {_START_TIMEOUT} s')

    def restart(self, outage: float = 0.0, is_killed: bool = False) -> None:
        """End the server, and start it again where its files are.

        :param outage: how long it is away, in seconds
        :param is_killed: whether it is to end as by a crash
        :raises LabError: if it does not come back
        """
        if self._again.exists:
            if is_killed:
                self._again.kill()
            else:
                self._again.stop()
        else:
            server = self.process.child(self.programs)
            self._again.define(server.cmdline(), server.environ())
            if is_killed:
                server.kill()
            else:
                server.terminate()
            # pifpaf does not ask how its server has ended.
            if not waiting.until(lambda: process.has_ended(server),
                                 _START_TIMEOUT, _POLL):
                raise self.process.trouble(
                    f'has not ended after {_START_TIMEOUT} s')
        time.sleep(outage)
        self._again.start()
        if not waiting.until(self._answers, _START_TIMEOUT, _POLL):
            raise self._again.trouble(
                f'is not ready after {_START_TIMEOUT} s')

    def _answers(self) -> bool:
        """Return whether a restarted server can be used."""
        raise NotImplementedError


class MariaDB(_Backend):
    """A database server on a socket, with no network and no passwords."""

    name = 'mariadb'
    programs = ('mariadbd', 'mysqld')

    def arguments(self) -> list[str]:
        return ['mysql']

    def variables(self) -> dict[str, str]:
        return {'PATH': os.pathsep.join(
            [os.environ.get('PATH', os.defpath), '/usr/sbin'])}

    def _answers(self) -> bool:
        self._again.check()
        try:
            self.connect().close()
        except pymysql.OperationalError:
            return False
        return True

    @property
    def socket(self) -> str:
        """The path of the server's socket."""
        return os.path.join(
            self._ready.read_text().strip(), 'mysql.socket')

    def url(self, database: str) -> str:
        """Return a database's URL for SQLAlchemy."""
        return (f'mysql+pymysql://root@localhost/{database}'
                f'?unix_socket={self.socket}&charset=utf8mb4')

    def connect(self, database: str | None = None) -> pymysql.Connection:
        """Open a connection that sees each change at once.

        :param database: the database to use
        """
        return pymysql.connect(unix_socket=self.socket, user='root',
                               database=database, autocommit=True)


class RabbitMQ(_Backend):
    """A message broker, all of whose ports are on loopback."""

    name = 'rabbitmq'
    programs = ('beam.smp',)

    def arguments(self) -> list[str]:
        return ['rabbitmq', '--port', str(self.state.ports['rabbitmq']),
                # Every user of the machine can read these in the process list.
                '--username', 'openstack',
                '--password', self.state.broker_secret]

    def variables(self) -> dict[str, str]:
        loopback = '-kernel inet_dist_use_interface {127,0,0,1}'
        return {
            'ERL_EPMD_ADDRESS': '127.0.0.1',
            'ERL_EPMD_PORT': str(self.state.ports['epmd']),
            'RABBITMQ_DIST_PORT': str(self.state.ports['rabbitmq-dist']),
            # By default it keeps a processor busy while it waits for work.
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
                f'{loopback} +sbwt none +sbwtdcpu none +sbwtdio none',
            'RABBITMQ_CTL_ERL_ARGS': loopback,
        }

    def _answers(self) -> bool:
        self._again.check()
        return self._again.listens(self.state.ports['rabbitmq'])

    @property
    def url(self) -> str:
        """The transport URL for oslo.messaging."""
        return (f'rabbit://openstack:{self.state.broker_secret}@127.0.0.1:'
                f'{self.state.ports["rabbitmq"]}/')
