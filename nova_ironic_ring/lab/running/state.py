# SPDX-License-Identifier: Apache-2.0

"""A lab's settings, kept in a file for later commands."""

from collections.abc import Collection, Iterator
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import random
import secrets
import shutil
import socket
import sys
import uuid

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import process

RING_DRIVER = 'ironic_ring.IronicRingDriver'
POOL_DRIVER = 'ironic_ring.IronicPoolDriver'
STOCK_DRIVER = 'ironic.IronicDriver'

#: Services that listen on a port of their own.
APIS = ('keystone', 'glance', 'neutron', 'placement', 'nova', 'ironic',
        'cinder')
_PORTS = APIS + ('rabbitmq', 'rabbitmq-dist', 'epmd')

# Below the range from which the kernel takes ports for outgoing connections:
# such a connection could take a port after it was chosen here.
_FIRST_PORT = 20000
_LAST_PORT = 30000

# The number of digits at the end of the name of a directory to remove.
_DIGITS = 8


def free_ports(count: int, taken: Collection[int] = ()) -> list[int]:
    """Choose ports of the loopback interface that are free.

    :param count: how many
    :param taken: ports that are reserved for something else
    :raises LabError: if there are not enough
    """
    candidates = sorted(set(range(_FIRST_PORT, _LAST_PORT)).difference(taken))
    random.shuffle(candidates)
    free: list[int] = []
    for port in candidates:
        with socket.socket() as probe:
            try:
                probe.bind(('127.0.0.1', port))
            except OSError:
                continue
        free.append(port)
        if len(free) == count:
            return free
    raise errors.LabError(
        f'Fewer than {count} ports between {_FIRST_PORT} and {_LAST_PORT} '
        'are free on 127.0.0.1: end what uses them.')


@contextlib.contextmanager
def _locked(directory: pathlib.Path) -> Iterator[None]:
    """Wait until no other process has locked a directory, and lock it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _ports_of_labs(directory: pathlib.Path) -> set[int]:
    """Read which ports are reserved for the labs in a directory."""
    ports: set[int] = set()
    for path in directory.glob('*/lab.json'):
        # It may be removed meanwhile, or be of another version.
        with contextlib.suppress(OSError, LookupError, TypeError, ValueError):
            ports.update(json.loads(path.read_text())['ports'].values())
    return ports


@dataclasses.dataclass
class State:
    """A lab's settings.

    :ivar directory: where its files are
    :ivar driver: the value of ``compute_driver`` in nova.conf
    :ivar ports: the port of each service by its name
    :ivar secret: the password of all accounts of the cloud
    :ivar broker_secret: the password of the broker's one account
    :ivar python: the interpreter of the virtual environment that it runs in
    :ivar computes: the names of its nova-computes
    :ivar ready: whether it has come up
    :ivar volumes: whether it has Cinder
    """

    directory: pathlib.Path
    driver: str = RING_DRIVER
    ports: dict[str, int] = dataclasses.field(default_factory=dict)
    secret: str = ''
    broker_secret: str = ''
    python: str = sys.executable
    computes: list[str] = dataclasses.field(default_factory=list)
    ready: bool = False
    volumes: bool = False

    @classmethod
    def create(cls, directory: pathlib.Path, driver: str,
               volumes: bool = False) -> 'State':
        """Write the settings of a new lab into its file.

        :param directory: the lab's directory
        :param driver: as the attribute
        :param volumes: as the attribute
        :raises LabError: if there are no ports for it
        """
        # Another lab that comes up at the same time does not listen on all of
        # its ports yet.
        with _locked(directory.parent):
            ports = free_ports(len(_PORTS), _ports_of_labs(directory.parent))
            state = cls(directory, driver, dict(zip(_PORTS, ports)),
                        secrets.token_hex(16), secrets.token_hex(16),
                        volumes=volumes)
            state.save()
        return state

    @classmethod
    def load(cls, directory: pathlib.Path) -> 'State':
        """Read a lab's settings.

        :param directory: the lab's directory
        :raises LabError: if there is none
        """
        try:
            record = json.loads((directory / 'lab.json').read_text())
            return cls(directory, **record)
        except FileNotFoundError:
            raise errors.LabError(
                f'There is no lab in {directory}: start one with "up".'
            ) from None
        except (TypeError, ValueError):
            raise errors.LabError(
                f'The lab in {directory} was made by another version of this '
                'program: end it with "down".') from None

    def save(self) -> None:
        """Write the settings into their file."""
        record = dataclasses.asdict(self)
        del record['directory']
        new = self.directory / 'lab.json.new'
        new.write_text(json.dumps(record, indent=1))
        new.replace(self.directory / 'lab.json')

    def process(self, name: str) -> process.Process:
        """Return one of the lab's processes by name."""
        return process.Process(self.directory, name)

    def url(self, service: str) -> str:
        """Return the URL of an API.

        :param service: the name of the service
        """
        return f'http://127.0.0.1:{self.ports[service]}'

    @property
    def temporary(self) -> pathlib.Path:
        """The directory for the data of the database and the broker."""
        path = self.directory / 'tmp'
        path.mkdir(exist_ok=True)
        return path


def remove(directory: pathlib.Path) -> None:
    """Remove a lab's files, and what is left of earlier labs there.

    :param directory: the lab's directory
    """
    # Rename it first, so that no command finds half of a lab.
    with contextlib.suppress(FileNotFoundError):
        directory.rename(directory.with_name(
            f'.{directory.name}-{uuid.uuid4().hex[:_DIGITS]}'))
    for doomed in directory.parent.glob(
            f'.{directory.name}-{"?" * _DIGITS}'):
        shutil.rmtree(doomed, ignore_errors=True)
    with contextlib.suppress(OSError):  # another lab may be there
        directory.parent.rmdir()
