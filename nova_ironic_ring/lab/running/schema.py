# SPDX-License-Identifier: Apache-2.0

"""The databases' schemas: from the services' own migrations, or from a file.

Migrations take most of the time of a lab's first start. Their result depends
on the versions of the services only. So it is kept in a file for the next lab:
in the virtual environment of the services, or in the directory that
NOVA_IRONIC_RING_SCHEMAS names, for the labs of several environments.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import concurrent.futures
import contextlib
import fcntl
import hashlib
from importlib import metadata
import os
import pathlib
import subprocess
import sys
from typing import IO

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import backends
from nova_ironic_ring.lab.running import process

DATABASES = ('keystone', 'glance', 'neutron', 'placement', 'ironic',
             'nova_api', 'nova_cell0', 'nova')
# Their versions make the schemas.
PACKAGES = ('keystone', 'glance', 'neutron', 'openstack-placement', 'ironic',
            'nova', 'nova-ironic-ring')


def run(directory: pathlib.Path, *commands: Sequence[str],
        env: Mapping[str, str] | None = None) -> None:
    """Run commands of the lab one after the other.

    :param directory: the lab's directory
    :param commands: programs of this virtual environment, with arguments
    :param env: variables to add to their environment
    :raises LabError: if one fails
    """
    log = directory / 'log' / 'setup.log'
    log.parent.mkdir(parents=True, exist_ok=True)
    for program, *arguments in commands:
        path = pathlib.Path(sys.prefix, 'bin', program)
        done = subprocess.run(
            [str(path), *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=process.environment(directory, env))
        with open(log, 'a') as file:
            file.write(f'$ {program} {" ".join(arguments)}\n{done.stdout}\n')
        if done.returncode:
            last = '\n'.join(f'    {line}' for line
                             in done.stdout.splitlines()[-5:])
            raise errors.LabError(
                f'"{program} {" ".join(arguments)}" has failed; its output is '
                f'in {log}, and the last lines are:\n{last}')


class Schema:
    """The schemas of databases of a lab."""

    def __init__(self, directory: pathlib.Path, database: backends.MariaDB,
                 commands: Sequence[Sequence[Sequence[str]]],
                 names: Sequence[str] = DATABASES,
                 packages: Sequence[str] = PACKAGES) -> None:
        """Set how the schemas are made.

        :param directory: the lab's directory
        :param database: a server that is ready
        :param commands: for each service, the commands to run in this order
        :param names: the databases
        :param packages: the packages that make them
        """
        self.names = names
        self.directory = directory
        self.database = database
        self.commands = commands
        versions = ' '.join(f'{name}={metadata.version(name)}'
                            for name in packages)
        versions += repr(commands).replace(str(directory), '')
        self._dump = pathlib.Path(
            os.environ.get('NOVA_IRONIC_RING_SCHEMAS') or os.path.join(
                sys.prefix, 'share', 'nova-ironic-ring-lab'),
            'schema-%s.sql' % hashlib.sha256(versions.encode()).hexdigest())

    def make(self, progress: Callable[[str], None]) -> None:
        """Load the schemas from the file, or make them and write the file.

        :param progress: is called with a line of text before the long step
        :raises LabError: if a migration fails, or the server refuses them
        """
        with self._alone():
            if not self._dump.exists():
                progress('Creating the database schemas (first start only)')
                self._migrate()
                return
        progress('Loading the database schemas')
        self._recall()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let only one of the labs that come up at once make the schemas.

        The others wait for the file that it writes.
        """
        self._dump.parent.mkdir(parents=True, exist_ok=True)
        with open(self._dump.with_suffix('.lock'), 'w') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _recall(self) -> None:
        with open(self._dump, 'rb') as dump:
            self._client('mysql', stdin=dump)

    def _migrate(self) -> None:
        # As many at once as there are processors.
        with self.database.connect() as connection:
            with connection.cursor() as cursor:
                for name in self.names:
                    cursor.execute(f'CREATE DATABASE {name} '
                                   'DEFAULT CHARACTER SET utf8mb4')
        pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        try:
            for done in [pool.submit(run, self.directory, *group)
                         for group in self.commands]:
                done.result()
        finally:
            # After a failure or Ctrl-C, start no more of them.
            pool.shutdown(cancel_futures=True)
        new = self._dump.with_suffix(f'.{os.getpid()}')
        with open(new, 'wb') as dump:
            self._client('mysqldump', '--skip-lock-tables', '--databases',
                         *self.names, stdout=dump)
        new.replace(self._dump)

    def _client(self, program: str, *arguments: str,
                **streams: IO[bytes]) -> None:
        done = subprocess.run(  # type: ignore[call-overload]
            [program, '--no-defaults', '--user=root',
             f'--socket={self.database.socket}', *arguments],
            stderr=subprocess.PIPE, **streams)
        if done.returncode:
            raise errors.LabError(
                f'{program} has failed on the schemas: '
                f'{done.stderr.decode().strip()}')
