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

"""The whole cloud, put together and brought up."""

from collections.abc import Callable, Iterator
import concurrent.futures
import contextlib
import datetime
import pathlib
import time

import fixtures
from openstack import connection
import pymysql

from nova_ironic_ring.lab import backends
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import nodes
from nova_ironic_ring.lab import process
from nova_ironic_ring.lab import schema
from nova_ironic_ring.lab import services
from nova_ironic_ring.lab import state as lab_state
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.lab import view

#: As in the nova.conf of the lab, in seconds.
DOWN_TIME = 8
#: The default of ``[ironic_ring] partitions``.
PARTITIONS = 32

_SETTLE_TIMEOUT = 120
_POLL = 0.5


class Lab:
    """A lab that is up, or was."""

    def __init__(self, state: lab_state.State) -> None:
        """Take up a lab by its settings.

        :param state: the settings
        """
        self.state = state
        self.database = backends.MariaDB(state)
        self.broker = backends.RabbitMQ(state)
        self.context = services.Context(state, self.database, self.broker)
        self.nova = services.NovaConfig(self.context)

    @classmethod
    def load(cls, directory: pathlib.Path) -> 'Lab':
        """Take up the lab in a directory.

        :param directory: where it lives
        :raises LabError: if none is up there
        """
        lab = cls(lab_state.State.load(directory))
        if not lab.state.ready or lab.database.process.state == 'stopped':
            raise errors.LabError(
                f'The lab in {directory} is not up: start it with "up".')
        return lab

    def connect(self, cloud: str = tenant.CLOUD) -> connection.Connection:
        """Log in to the cloud.

        :param cloud: the entry of its clouds.yaml
        """
        return tenant.connect(self.state, cloud)

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
                    overrides: services.Sections | None = None
                    ) -> services.NovaCompute:
        """Start a new nova-compute.

        :param name: its host name
        :param overrides: options by section, for it alone
        :returns: its fixture, set up
        :raises LabError: if the name is taken or not one for a host
        """
        name = name or self.next_name()
        if name in self.state.computes:
            raise errors.LabError(
                f'There is a nova-compute {name} in this lab already: choose '
                'another name, or start it if it is stopped.')
        if not name.replace('-', '').replace('.', '').isalnum():
            raise errors.LabError(
                f'"{name}" is no host name: use letters, digits, "-" and ".".')
        compute = services.NovaCompute(self.nova, name, overrides)
        if compute.process.exists:
            raise errors.LabError(
                f'"{name}" is the name of another service of this lab: choose '
                'another.')
        compute.setUp()
        self.state.computes.append(name)
        self.state.save()
        return compute

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
        process = self.compute(name)
        started = datetime.datetime.now(datetime.timezone.utc)

        def alive() -> bool:
            process.check()
            with self.cell() as opened:
                return any(service.host == name and service.last_seen > started
                           for service in view.services(opened))
        self.wait(f'A heartbeat of {name}', alive)

    def discover_hosts(self) -> None:
        """Let Nova schedule to the nova-computes that are new.

        :raises LabError: if Nova refuses
        """
        # By service: a new one may have no node yet.
        schema.run(self.state.directory, (
            *self.nova.manage, 'cell_v2', 'discover_hosts', '--by-service'))

    def enroll(self, count: int, **attributes: object) -> list[str]:
        """Add nodes to Ironic.

        :param count: how many
        :param attributes: of each node, as Ironic names them
        :returns: their UUIDs
        """
        return nodes.enroll(self.state, count, **attributes)

    @contextlib.contextmanager
    def cell(self) -> Iterator[pymysql.Connection]:
        """Open Nova's cell database."""
        with self.database.connect('nova') as opened:
            yield opened

    def ring(self) -> list[view.Member]:
        """Return the ring as the database shows it."""
        with self.cell() as opened:
            return view.table(opened, DOWN_TIME, PARTITIONS)

    def owners(self) -> dict[str, str]:
        """Return the record owner of each node."""
        with self.cell() as opened:
            return {row.node: row.owner for row in view.rows(opened)}

    def wait(self, what: str, done: Callable[[], bool],
             timeout: float = _SETTLE_TIMEOUT) -> None:
        """Wait for something to become true, while all services live.

        :param what: what is waited for, for the error message
        :param done: says whether it is true
        :param timeout: seconds
        :raises LabError: if it takes longer
        """
        deadline = time.monotonic() + timeout
        while not done():
            if time.monotonic() > deadline:
                raise errors.LabError(
                    f'{what} has not come about after {timeout:g} s: see the '
                    f'logs in {self.state.directory / "log"}.')
            time.sleep(_POLL)

    def wait_settled(self, count: int,
                     timeout: float = _SETTLE_TIMEOUT) -> None:
        """Wait until each node without an instance is where the ring wants it.

        :param count: how many nodes there are to be
        :param timeout: seconds
        :raises LabError: if it takes longer
        """
        def settled() -> bool:
            table = self.ring()
            return (sum(member.owned for member in table) == count
                    and all(member.owned == member.desired
                            for member in table))
        self.wait(f'A ring in which all {count} nodes are with their owners',
                  settled, timeout)

    def down(self, keep_files: bool = False) -> None:
        """End all processes and remove all files of this lab.

        At once, for nothing of it is to be kept.

        :param keep_files: leave the files, for a look at the logs
        """
        process.sweep(self.state.directory)
        if not keep_files:
            lab_state.remove(self.state.directory)


class Cloud(fixtures.Fixture):
    """A fixture that brings a lab up, and down at its end."""

    def __init__(self, directory: pathlib.Path, *,
                 driver: str = lab_state.RING_DRIVER, computes: int = 3,
                 node_count: int = 30,
                 progress: Callable[[str], None] = lambda line: None) -> None:
        """Describe the lab.

        :param directory: where it is to live
        :param driver: what nova.conf says as ``compute_driver``
        :param computes: how many nova-computes
        :param node_count: how many nodes
        :param progress: is given a line at each long step
        """
        super().__init__()
        self.directory = directory
        self.driver = driver
        self.computes = computes
        self.node_count = node_count
        self.progress = progress
        self.lab: Lab

    def _setUp(self) -> None:
        self._remove_old()
        state = lab_state.State.create(self.directory, self.driver)
        self.lab = Lab(state)
        # One that did not come up leaves its logs for the error message.
        self.addCleanup(lambda: self.lab.down(keep_files=not state.ready))
        context = self.lab.context

        self.progress('Starting MariaDB and RabbitMQ')
        self.lab.broker.setUp()
        self.lab.database.setUp()
        self.lab.database.wait()

        nova = self.lab.nova
        nova.write()
        keystone = services.Keystone(context)
        ironic = services.Ironic(context)
        placement = services.Placement(context)
        later: list[services.Api] = [
            services.NovaApi(nova), services.Glance(context),
            services.Neutron(context)]
        apis = [keystone, ironic, placement, *later]
        for api in apis:
            api.configure()

        tables = schema.Schema(self.directory, self.lab.database)
        if tables.remembered:
            self.progress('Loading the database schemas')
            tables.recall()
        else:
            self.progress('Creating the database schemas (first start only)')
            tables.migrate(
                [nova.migrations()] + [api.migrations() for api in apis])

        # In the order of their need: two processors are busy for nearly all
        # of this time with importing Python modules.
        self.progress('Starting Keystone, Ironic and Placement')
        keystone.make_keys()
        for api in keystone, ironic, placement:
            api.setUp()
        keystone.bootstrap()
        keystone.wait()
        tenant.write_clouds(state)
        tenant.register(state)

        self.progress(f'Enrolling {self.node_count} nodes, and starting Nova')
        self.lab.broker.wait()
        ironic.wait()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            enrolled = pool.submit(self.lab.enroll, self.node_count)
            # Nova's processes look for Placement when they start.
            placement.wait()
            for name in 'nova-conductor', 'nova-scheduler':
                services.NovaController(nova, name).setUp()
            # A nova-compute without a conductor waits before it asks again.
            self.lab.wait('A record for nova-conductor', self._conductor_known)
            enrolled.result()
        if self.computes:
            self.progress(f'Starting {self.computes} nova-computes')
            self.lab.add_compute()
        for api in later:
            api.setUp()
        if self.computes:
            self._settle()
        for api in later:
            api.wait()
        tenant.furnish(state)
        state.ready = True
        state.save()

    def _settle(self) -> None:
        """Start the other nova-computes and wait for the ring to settle."""
        # The first is alone until it has taken all nodes: on an empty table
        # each of several would take each of them.
        self.lab.wait(
            'An owner for every node',
            lambda: self._alive() and len(self.lab.owners())
            == self.node_count)
        for _ in range(1, self.computes):
            self.lab.add_compute()
        self.lab.wait('A record for every nova-compute', self._all_known)
        self.lab.discover_hosts()
        self.progress('Waiting until the ring has settled')
        self.lab.wait_settled(self.node_count)

    def _remove_old(self) -> None:
        """Clean up after a lab that was killed.

        :raises LabError: if one is up and well
        """
        try:
            Lab.load(self.directory)
        except errors.LabError:
            pass
        else:
            raise errors.LabError(
                f'A lab is up in {self.directory}: end it with "down", or '
                'give this one another --name.')
        process.sweep(self.directory)
        lab_state.remove(self.directory)

    def _conductor_known(self) -> bool:
        """Say whether nova-conductor has told Nova of itself."""
        self.lab.state.process('nova-conductor').check()
        with self.lab.cell() as opened:
            return bool(view.services(opened, 'nova-conductor'))

    def _all_known(self) -> bool:
        """Say whether all nova-computes have told Nova of themselves."""
        self._alive()
        with self.lab.cell() as opened:
            return len(view.services(opened)) == self.computes

    def _alive(self) -> bool:
        """See that no nova-compute has died.

        :raises LabError: if one has
        """
        for name in self.lab.state.computes:
            self.lab.compute(name).check()
        return True
