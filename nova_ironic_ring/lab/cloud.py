# SPDX-License-Identifier: Apache-2.0

"""The whole cloud, put together and brought up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import concurrent.futures
import contextlib
import datetime
import os
import pathlib
import time
from typing import TYPE_CHECKING

import fixtures
import pymysql

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import backends
from nova_ironic_ring.lab.running import process
from nova_ironic_ring.lab.running import schema
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import shapes as lab_shapes
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.lab import view
from nova_ironic_ring.lab import waiting

if TYPE_CHECKING:
    from openstack import connection

#: The points on the ring for each member: the lab does not set this option.
PARTITIONS: int = conf.partitions_opt.default

_SETTLE_TIMEOUT = 300
_POLL = 0.5


class Lab:
    """A lab that is up, or has been up."""

    def __init__(self, state: lab_state.State) -> None:
        """Choose a lab by its settings.

        :param state: the settings
        """
        self.state = state
        self.database = backends.MariaDB(state)
        self.broker = backends.RabbitMQ(state)
        self.context = services.Context(state, self.database, self.broker)
        self.nova = services.NovaConfig(self.context)

    @classmethod
    def load(cls, directory: pathlib.Path) -> 'Lab':
        """Find the lab in a directory.

        :param directory: the directory
        :raises LabError: if no lab is up there
        """
        lab = cls(lab_state.State.load(directory))
        if not lab.state.ready or lab.database.process.state == 'stopped':
            raise errors.LabError(
                f'The lab in {directory} is not up: start it with "up".')
        return lab

    def connect(self, cloud: str = tenant.CLOUD,
                **account: str) -> 'connection.Connection':
        """Log in to the cloud.

        :param cloud: the entry of its clouds.yaml
        :param account: what differs from the account of that entry, such as
            ``username``
        """
        return tenant.connect(self.state, cloud, **account)

    def compute(self, name: str) -> process.Process:
        """Return a nova-compute by name.

        :param name: its host name
        :raises LabError: if there is none of that name
        """
        if name not in self.state.computes:
            raise errors.LabError(
                f'There is no nova-compute {name} in this lab: it has '
                f'{", ".join(self.state.computes) or "none"}.')
        return self.state.process(name)

    def next_name(self) -> str:
        """Return a name that no nova-compute has yet."""
        number = 1
        while f'compute-{number}' in self.state.computes:
            number += 1
        return f'compute-{number}'

    def add_compute(self, name: str | None = None,
                    overrides: services.Sections | None = None,
                    env: Mapping[str, str] | None = None) -> None:
        """Start a new nova-compute.

        :param name: its host name; the next free one if it is None
        :param overrides: options by section, for it alone
        :param env: variables to add to its environment
        :raises LabError: if the name is taken, or no name for a host
        """
        name = name or self.next_name()
        if name in self.state.computes:
            raise errors.LabError(
                f'There is a nova-compute {name} in this lab already: choose '
                'another name, or start it if it is stopped.')
        if not name.replace('-', '').replace('.', '').isalnum():
            raise errors.LabError(
                f'"{name}" is no host name: use letters, digits, "-" and ".".')
        compute = services.NovaCompute(self.nova, name, overrides, env)
        if compute.process.exists:
            raise errors.LabError(
                f'"{name}" is the name of another service of this lab: choose '
                'another.')
        compute.configure()
        compute.process.start()
        self.state.computes.append(name)
        self.state.save()

    def forget_compute(self, name: str) -> None:
        """End a nova-compute for good, and remove it from the lab's settings.

        Another nova-compute can have its name then. Nova's record of it stays.

        :param name: its host name
        :raises LabError: if there is none
        """
        self.compute(name).forget()
        self.state.computes.remove(name)
        self.state.save()

    def reconfigure(self, name: str, overrides: services.Sections) -> None:
        """Change the configuration of a nova-compute that runs, by SIGHUP.

        :param name: its host name
        :param overrides: options by section, for it alone
        :raises LabError: if there is none
        """
        self.configure_compute(name, overrides)
        self.compute(name).reload()

    def configure_compute(self, name: str,
                          overrides: services.Sections) -> None:
        """Write the configuration of a nova-compute, for its next start.

        :param name: its host name
        :param overrides: options by section, for it alone
        :raises LabError: if there is none
        """
        self.compute(name)
        services.NovaCompute(self.nova, name, overrides).write()

    def start_compute(self, name: str) -> None:
        """Start a nova-compute that was stopped, and wait until it is alive.

        :param name: its host name
        :raises LabError: if there is none, or it dies
        """
        self.compute(name).start()
        self.wait_alive(name)

    def wait_alive(self, name: str) -> None:
        """Wait for the first heartbeat of a nova-compute that was started.

        :param name: its host name
        :raises LabError: if it dies
        """
        started = datetime.datetime.now(datetime.timezone.utc)

        def alive() -> bool:
            with self.cell() as opened:
                seen = view.heartbeat(opened, name)
            return seen is not None and seen > started
        self.wait(f'A heartbeat of {name}', alive)

    def discover_hosts(self) -> None:
        """Make new nova-computes known to Nova, and put them into a zone.

        :raises LabError: if Nova refuses
        """
        # By service: a new one may have no node yet.
        schema.run(self.state.directory, (
            *self.nova.manage, 'cell_v2', 'discover_hosts', '--by-service'))
        # Nova's API does not answer before the lab is nearly up.
        if self.state.ready:
            self.wait('A node of each service',
                      lambda: tenant.settle(self.state))

    def enroll(self, count: int,
               shapes: Sequence[lab_shapes.Shape] = lab_shapes.MIXED,
               **attributes: object) -> list[str]:
        """Add nodes to Ironic.

        :param count: how many
        :param shapes: the nodes have these in turn, by their numbers
        :param attributes: attributes for each node, as Ironic names them,
            which replace those of its shape
        :returns: their UUIDs
        """
        # The SDK takes long to import, and few commands need it.
        from nova_ironic_ring.lab import nodes
        return nodes.enroll(self.state, count, shapes, **attributes)

    @contextlib.contextmanager
    def cell(self) -> Iterator[pymysql.Connection]:
        """Open Nova's cell database."""
        with self.database.connect('nova') as opened:
            yield opened

    def ring(self) -> list[view.Member]:
        """Return the ring as the database shows it."""
        with self.cell() as opened:
            return view.read(opened).table(services.DOWN_TIME, PARTITIONS)

    def owners(self) -> dict[str, str]:
        """Return the record owner of each node."""
        with self.cell() as opened:
            return {row.node: row.owner for row in view.read(opened).rows}

    def shares(self) -> dict[str, int]:
        """Count the nodes of each service, also of one with pools."""
        with self.cell() as opened:
            return view.read(opened).shares()

    def wait(self, what: str, done: Callable[[], bool],
             timeout: float = _SETTLE_TIMEOUT, poll: float = _POLL) -> None:
        """Wait until something is true, while all services run.

        :param what: what is waited for, for the error message
        :param done: returns whether it is true
        :param timeout: seconds
        :param poll: seconds between two looks
        :raises LabError: if it takes longer, or a service dies
        """
        def is_over() -> bool:
            if done():
                return True
            self.check()
            return False

        if not waiting.until(is_over, timeout, poll):
            raise errors.LabError(
                f'Waited {timeout:g} s in vain for this: {what}. See the '
                f'logs in {self.state.directory / "log"}.')

    def check(self) -> None:
        """Check that all services run, except those that were told to end.

        :raises LabError: if one has died
        """
        for path in (self.state.directory / 'run').glob('*.json'):
            self.state.process(path.stem).check()

    def wait_settled(self, count: int,
                     timeout: float = _SETTLE_TIMEOUT) -> None:
        """Wait until each free node is with the member that the ring wants.

        :param count: how many nodes there are to be
        :param timeout: seconds
        :raises LabError: if it takes longer, or a service dies
        """
        self.wait(f'A ring in which all {count} nodes are with their owners',
                  lambda: self.is_settled(count), timeout)

    def is_settled(self, count: int) -> bool:
        """Return whether each free node is with its desired owner.

        :param count: how many nodes there are to be
        """
        with self.cell() as opened:
            return view.read(opened).is_settled(
                services.DOWN_TIME, PARTITIONS, count)

    def keep_logs(self) -> pathlib.Path:
        """Move the logs out of the lab's directory, to keep them.

        :returns: their new directory
        """
        kept = self.state.directory.with_name(
            f'{self.state.directory.name}-logs-{time.strftime("%H%M%S")}')
        (self.state.directory / 'log').rename(kept)
        return kept

    def down(self, keep_files: bool = False) -> None:
        """End all processes and remove all files of this lab.

        :param keep_files: leave the files, for a look at the logs
        :raises LabError: if something cannot be killed
        """
        down(self.state.directory, keep_files)


def is_up(directory: pathlib.Path) -> bool:
    """Return whether a lab has come up and its database still runs.

    :param directory: the lab's directory
    """
    try:
        Lab.load(directory)
    except errors.LabError:
        return False
    return True


def down(directory: pathlib.Path, keep_files: bool = False) -> None:
    """End all processes and remove all files of a lab, whatever its state.

    The processes are killed, because nothing of the lab is to be kept.

    :param directory: the lab's directory
    :param keep_files: leave the files, for a look at the logs
    :raises LabError: if something cannot be killed
    """
    process.sweep(directory)
    if not keep_files:
        lab_state.remove(directory)


class Cloud(fixtures.Fixture):
    """A fixture that brings a lab up, and takes it down at the end."""

    def __init__(self, directory: pathlib.Path, *,
                 driver: str = lab_state.RING_DRIVER, computes: int = 3,
                 node_count: int = 30,
                 groups: Sequence[str] = (), alike: bool = False,
                 volumes: bool = False,
                 options: services.Sections | None = None,
                 progress: Callable[[str], None] = lambda line: None) -> None:
        """Describe the lab.

        :param directory: the directory to make for it
        :param driver: the value of ``compute_driver`` in nova.conf
        :param computes: how many nova-computes
        :param node_count: how many nodes
        :param groups: Ironic's conductor groups, beside the default one
        :param alike: whether all nodes and all services are alike, for
            measurements, and for as many servers as there are nodes
        :param volumes: whether it is to have Cinder
        :param options: further options for nova.conf, by section
        :param progress: is called with a line of text before each long step
        """
        super().__init__()
        self.directory = directory
        self.driver = driver
        self.computes = computes
        self.node_count = node_count
        self.alike = alike
        self.volumes = volumes
        self.options = options
        self.groups = groups
        self.progress = progress
        self.lab: Lab

    def _setUp(self) -> None:
        self._remove_old()
        held = place.make(self.directory)
        try:
            state = lab_state.State.create(
                self.directory, self.driver, self.volumes)
            self.lab = Lab(state)
            # The logs of a lab that does not come up stay: its error names
            # them.
            self.addCleanup(lambda: self.lab.down(keep_files=not state.ready))
            self._bring_up(state)
            state.ready = True
            state.save()
        finally:
            os.close(held)

    def _bring_up(self, state: lab_state.State) -> None:
        """Start everything, each service as soon as what it needs is there.

        Nearly all of the time is spent importing Python modules, which keeps
        two processors busy.
        """
        context = self.lab.context
        nova = self.lab.nova
        self.progress('Starting MariaDB and RabbitMQ')
        self.useFixture(self.lab.broker)
        self.useFixture(self.lab.database)
        self.lab.database.wait()

        nova.write(self.options)
        keystone = services.Keystone(context)
        ironic = services.Ironic(context, alone=not self.groups)
        placement = services.Placement(context)
        later: list[services.Api] = [
            services.NovaApi(nova), services.Glance(context),
            services.Neutron(context)]
        self._make_schemas(nova, [keystone, ironic, placement, *later])
        cinder = services.Cinder(context)
        if self.volumes:
            self._make_schema_of(cinder)
            later.append(cinder)

        self.progress('Starting Keystone, Ironic and Placement')
        self.lab.broker.wait()
        keystone.make_keys()
        for api in keystone, ironic, placement:
            self.useFixture(api)
        keystone.bootstrap()
        keystone.wait()
        tenant.write_clouds(state)
        tenant.register(state)

        self.progress(f'Enrolling {plural.of(self.node_count, "node")}, '
                      'and starting Nova')
        ironic.wait()
        for group in self.groups:
            self.useFixture(services.IronicConductor(ironic, group))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            enrolled = pool.submit(
                self.lab.enroll, self.node_count,
                lab_shapes.ALIKE if self.alike else lab_shapes.MIXED)
            # Nova's processes look for Placement when they start.
            placement.wait()
            for name in 'nova-conductor', 'nova-scheduler':
                self.useFixture(services.NovaController(nova, name))
            # A nova-compute that finds no conductor waits before it asks
            # again.
            self.lab.wait('A record of nova-conductor',
                          lambda: self._known('nova-conductor') == 1)
            enrolled.result()
        if self.computes:
            self.progress(f'Starting {self.computes} nova-computes')
            self._add_computes()
        for api in later:
            self.useFixture(api)
        if self.volumes:
            for name in 'cinder-scheduler', 'cinder-volume':
                self.useFixture(services.CinderWorker(cinder, name))
        if self.computes:
            self._settle()
        for api in later:
            api.wait()
        if self.volumes:
            # Without a backend, Cinder sets each new volume to error.
            self.lab.wait('A backend of Cinder', lambda: (
                tenant.has_backend(state)))
        tenant.furnish(state)
        if not self.alike:
            tenant.aggregate(state)
        self.lab.check()

    def _make_schemas(self, nova: services.NovaConfig,
                      apis: list[services.Api]) -> None:
        for api in apis:
            api.configure()
        schema.Schema(
            self.directory, self.lab.database,
            [nova.migrations()] + [api.migrations() for api in apis],
        ).make(self.progress)

    def _make_schema_of(self, cinder: services.Cinder) -> None:
        """Make Cinder's schema separately: most labs have no Cinder."""
        cinder.configure()
        schema.Schema(
            self.directory, self.lab.database, [cinder.migrations()],
            ('cinder',), ('cinder',)).make(self.progress)

    def _add_computes(self) -> None:
        """Start the nova-computes."""
        if not self.alike:
            self.lab.nova.provide(self.lab.next_name())
        self.lab.add_compute()
        if self.driver == lab_state.STOCK_DRIVER:
            # With Nova's own driver, the first has to be alone until it has
            # taken all nodes: of several that start on an empty table, some
            # end with an error.
            self.lab.wait('An owner for every node',
                          lambda: len(self.lab.owners()) == self.node_count)
        for _ in range(1, self.computes):
            self.lab.add_compute()

    def _settle(self) -> None:
        """Make the nova-computes known and wait for the ring to settle."""
        self.lab.wait('A record of every nova-compute',
                      lambda: self._known('nova-compute') == self.computes)
        self.lab.discover_hosts()
        self.progress('Waiting until the ring has settled')
        self.lab.wait_settled(self.node_count)

    def _known(self, binary: str) -> int:
        """Count the services of a kind that Nova has records of."""
        with self.lab.cell() as opened:
            return len(view.services(opened, binary))

    def _remove_old(self) -> None:
        """Clean up after a lab that was killed.

        :raises LabError: if a lab is up there, or coming up
        """
        if not self.directory.exists():
            return
        held = place.lock(self.directory)
        if held is None:
            raise errors.LabError(
                f'A lab is coming up in {self.directory} just now: give this '
                'one another --name.')
        try:
            if is_up(self.directory):
                raise errors.LabError(
                    f'A lab is up in {self.directory}: end it with "down", '
                    'or give this one another --name.')
            down(self.directory)
        finally:
            os.close(held)
