# SPDX-License-Identifier: Apache-2.0

"""What a lab is made of, kept on disk for the commands that follow."""

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

# Below the range that the kernel takes ports for outgoing connections from,
# which would collide with ours between choosing and using them.
_FIRST_PORT = 20000
_LAST_PORT = 30000

# Of the name that files have while they are removed.
_DIGITS = 8


def free_ports(count: int, taken: Collection[int] = ()) -> list[int]:
    """Choose ports of the loopback interface that nobody uses.

    :param count: how many
    :param taken: ports that are meant for something else
    :raises LabError: if there are not so many
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
    """Read which ports are meant for the labs in a directory."""
    ports: set[int] = set()
    for path in directory.glob('*/lab.json'):
        # It may be going, or be of another version.
        with contextlib.suppress(OSError, LookupError, TypeError, ValueError):
            ports.update(json.loads(path.read_text())['ports'].values())
    return ports


@dataclasses.dataclass
class State:
    """A lab's settings.

    :ivar directory: where its files are
    :ivar driver: what nova.conf says as ``compute_driver``
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
        """Write down the settings of a new lab.

        :param directory: where it lives
        :param driver: as the attribute
        :param volumes: as the attribute
        :raises LabError: if there are no ports for it
        """
        # A lab that comes up beside this one does not listen on all of its
        # ports yet.
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

        :param directory: where it lives
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
        """Write the settings down."""
        record = dataclasses.asdict(self)
        del record['directory']
        new = self.directory / 'lab.json.new'
        new.write_text(json.dumps(record, indent=1))
        new.replace(self.directory / 'lab.json')

    def process(self, name: str) -> process.Process:
        """Return one of the lab's processes by name."""
        return process.Process(self.directory, name)

    def url(self, service: str) -> str:
        """Return where an API is."""
        return f'http://127.0.0.1:{self.ports[service]}'

    @property
    def temporary(self) -> pathlib.Path:
        """The directory for the data of the database and the broker."""
        path = self.directory / 'tmp'
        path.mkdir(exist_ok=True)
        return path


def remove(directory: pathlib.Path) -> None:
    """Remove a lab's files, and what is left of those before it.

    :param directory: where it lives
    """
    # Renamed first, so that what is half removed is not taken for a lab.
    with contextlib.suppress(FileNotFoundError):
        directory.rename(directory.with_name(
            f'.{directory.name}-{uuid.uuid4().hex[:_DIGITS]}'))
    for doomed in directory.parent.glob(
            f'.{directory.name}-{"?" * _DIGITS}'):
        shutil.rmtree(doomed, ignore_errors=True)
    with contextlib.suppress(OSError):  # another lab may be there
        directory.parent.rmdir()
