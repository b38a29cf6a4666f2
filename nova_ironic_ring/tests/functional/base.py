# SPDX-License-Identifier: Apache-2.0

"""What the functional tests on a real cloud share."""

import atexit
import collections
from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import datetime
import json
import re
import subprocess
import sys
import threading
from typing import Any
from typing import ClassVar
import uuid

import fixtures
from openstack.compute.v2 import server as sdk_server
from openstack import connection
from openstack import exceptions
from openstack.network.v2 import network as sdk_network
from oslotest import base
from testtools import content
from testtools import content_type

from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import process
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.lab import view

_BEAT = 0.5

# What a service with either driver logs of each pass.
_PASS = re.compile(r'Of \d+ nodes?, |\d+ nodes? (is|are) in \d+ pools?')

# What a failure of a test shows: of so many lines of each log, the last ones
# that warn of something, of which a traceback has some fifty.
_LINES = 5000
_PROBLEMS = 60
_PROBLEM = re.compile(r' (WARNING|ERROR|CRITICAL) (?!neutronclient)')

# Events have details from this version on.
_OPENSTACK = ('openstack', '--os-compute-api-version', '2.84')


def unique_name() -> str:
    """Return a name for a lab that no other has."""
    return f'test-{uuid.uuid4().hex[:8]}'


def run_lab(name: str, *arguments: str) -> subprocess.CompletedProcess:
    """Run the lab's command line as a user does.

    :param name: the lab's name
    :param arguments: what comes after
    """
    return subprocess.run(
        [sys.executable, '-W', 'ignore', '-m', 'nova_ironic_ring.lab',
         '--name', name, *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)


def divide(nodes: list[str] | set[str], *members: str,
           partitions: int = cloud.PARTITIONS) -> dict[str, str]:
    """Return who owns each node when these are the ring's members.

    :param nodes: the nodes' UUIDs
    :param members: the services
    :param partitions: points on the ring for each of them
    """
    expected = ring.Ring(members, partitions)
    return {node: str(expected.owner(node)) for node in nodes}


def compared(lab: cloud.Lab, expected: Mapping[str, str]
             ) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Say whose nodes are to be, and whose they are, in the same way.

    Which nodes count in a pool is written nowhere: there, it is how many each
    service has.

    :param lab: the lab
    :param expected: the service that is to have each node, by its UUID
    """
    owners = lab.owners()
    if owners:
        return expected, owners
    return dict(collections.Counter(expected.values())), lab.shares()


def is_divided(lab: cloud.Lab, expected: Mapping[str, str]) -> bool:
    """Say whether all nodes are with those that are to have them.

    :param lab: the lab
    :param expected: as :func:`compared` has it
    """
    wanted, found = compared(lab, expected)
    return wanted == found


@dataclasses.dataclass(frozen=True)
class Kind:
    """What one lab differs in from another.

    :ivar driver: what nova.conf says as ``compute_driver``
    :ivar computes: how many nova-computes it comes up with
    :ivar nodes: how many nodes it comes up with
    :ivar groups: Ironic's conductor groups, beside the default one
    :ivar volumes: whether it has Cinder
    """

    driver: str = lab_state.RING_DRIVER
    computes: int = 3
    nodes: int = 15
    groups: tuple[str, ...] = ()
    volumes: bool = False


class _Shared:
    """The lab that is up for the tests, of which there is one at a time."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._kind: Kind | None = None
        self._lab: cloud.Lab | None = None
        # Also where the tests are interrupted.
        atexit.register(self.close)

    def get(self, kind: Kind,
            furnish: Callable[[cloud.Lab], None]) -> cloud.Lab:
        """Return a lab, which is brought up if the last one is another.

        :param kind: which one
        :param furnish: adds to a lab that has come up
        """
        if self._lab is None or self._kind != kind:
            self.close()
            fixture = cloud.Cloud(
                place.directory(unique_name()), driver=kind.driver,
                computes=kind.computes, node_count=kind.nodes,
                groups=kind.groups, volumes=kind.volumes, progress=print)
            fixture.setUp()
            self._stack.callback(fixture.cleanUp)
            furnish(fixture.lab)
            self._kind, self._lab = kind, fixture.lab
        return self._lab

    def spoil(self) -> None:
        """Have the next test get a new lab."""
        self._kind = None

    def close(self) -> None:
        """Take the lab down, if one is up."""
        self._kind = self._lab = None
        self._stack.close()


_shared = _Shared()


class Heartbeats(fixtures.Fixture):
    """The heartbeats of nova-computes that are frozen.

    A service that is frozen looks alive for as long as this is in use, however
    long the test takes.
    """

    def __init__(self, lab: cloud.Lab, *names: str) -> None:
        """Name the services.

        :param lab: the lab that they are in
        :param names: their host names
        """
        super().__init__()
        self._lab = lab
        self._names = names
        self._ended = threading.Event()

    def _setUp(self) -> None:
        # Here, so that an error is not lost.
        self._beat()
        thread = threading.Thread(target=self._go_on, daemon=True)
        self.addCleanup(thread.join)
        self.addCleanup(self._ended.set)
        thread.start()

    def _go_on(self) -> None:
        while not self._ended.wait(_BEAT):
            self._beat()

    def _beat(self) -> None:
        with self._lab.cell() as connected, connected.cursor() as cursor:
            for name in self._names:
                cursor.execute(
                    'UPDATE services SET last_seen_up = UTC_TIMESTAMP(), '
                    'report_count = report_count + 1 WHERE deleted = 0 AND '
                    "`binary` = 'nova-compute' AND host = %s", (name,))


@dataclasses.dataclass
class _Found:
    """What a test has to leave as it was.

    :ivar processes: the state of each nova-compute's process
    :ivar services: what each nova-compute is to the ring
    :ivar owners: the record owner of each node
    :ivar pools: owner, total and reserved of each pool, by its UUID
    :ivar providers: the resource providers
    :ivar instances: how many instances each service has
    """

    processes: dict[str, str]
    services: dict[str, str]
    owners: dict[str, str]
    pools: dict[str, tuple[str, int, int]]
    providers: set[str]
    instances: dict[str, int]


class LabTestCase(base.BaseTestCase):
    """Tests that share a cloud: each leaves it as it found it."""

    KIND: ClassVar[Kind] = Kind()

    @classmethod
    def furnish(cls, lab: cloud.Lab) -> None:
        """Add to a lab that has come up, before any test.

        :param lab: the lab
        """

    def setUp(self) -> None:
        super().setUp()
        self.lab = _shared.get(self.KIND, self.furnish)
        self.name = self.lab.state.directory.name
        self.cloud: connection.Connection = self.lab.connect()
        self.addDetail('lab', self._logs())
        self.addDetail('lab-problems', self._problems(datetime.datetime.now()))
        # The last one of the cleanups.
        self.addCleanup(self._see_restored, self._wait_well())

    def providers(self) -> set[str]:
        """Return the resource providers of nodes and pools, by UUID."""
        return {each.id for each in self.cloud.placement.resource_providers()
                if not member.is_member(each.name)}

    @property
    def nodes(self) -> int:
        """How many nodes there are before and after each test."""
        return self.KIND.nodes

    def _find(self) -> _Found:
        with self.lab.cell() as connected:
            seen = view.read(connected)
        return _Found(
            {name: self.lab.compute(name).state
             for name in self.lab.state.computes},
            {member.host: member.state for member in self.lab.ring()},
            {row.node: row.owner for row in seen.rows},
            {pool.uuid: (pool.owner, pool.total, pool.reserved)
             for pool in seen.pools},
            self.providers(),
            seen.instances)

    def _wait_well(self) -> _Found:
        """Wait until the lab is as a test wants it, and say how it is."""
        found: _Found

        def is_well() -> bool:
            nonlocal found
            found = self._find()
            # The last to come is the resource provider of a node.
            return found.providers == {*found.owners, *found.pools} and all(
                state == 'member' for state in found.services.values()) and (
                    # It may have become so since.
                    self.is_settled() and found == self._find())
        self.lab.wait('A lab in which all is well', is_well)
        return found

    def is_settled(self) -> bool:
        """Say whether each node is with the service that is to have it."""
        return self.lab.is_settled(self.nodes)

    def assertIsDivided(self, expected: Mapping[str, str]) -> None:
        """See that all nodes are with those that are to have them, now.

        :param expected: as :func:`compared` has it
        """
        self.assertEqual(*compared(self.lab, expected))

    def lasting(self, found: _Found) -> _Found:
        """Return what has to be after a test as it was before.

        :param found: all that was found
        """
        return found

    def _see_restored(self, before: _Found) -> None:
        """See that the lab is as it was, or becomes so."""
        expected = self.lasting(before)
        try:
            self.lab.wait('The lab as it was before the test',
                          lambda: self.lasting(self._find()) == expected)
        except Exception:
            _shared.spoil()
            self.assertEqual(expected, self.lasting(self._find()))
            raise

    def _logs(self) -> content.Content:
        """Attach the ends of the nova-computes' logs to a failure."""
        return self._of_each(lambda compute: compute.last_lines(10))

    def _problems(self, start: datetime.datetime) -> content.Content:
        """Attach what the nova-computes warned of during a test that fails.

        :param start: when the test began, in local time as the logs have it
        """
        def read(compute: process.Process) -> str:
            lines = compute.last_lines(_LINES).splitlines()
            return '\n'.join([
                line for line in lines if _PROBLEM.search(line)
                and line.strip() >= str(start)][-_PROBLEMS:])
        return self._of_each(read)

    def _of_each(self, read: Callable[[process.Process], str]
                 ) -> content.Content:
        """Attach something of each nova-compute to a failure.

        :param read: returns it, when the failure is told
        """
        return content.Content(
            content_type.UTF8_TEXT,
            lambda: [''.join(
                f'== {name}\n{read(self.lab.compute(name))}\n'
                for name in self.lab.state.computes).encode()])

    def remove_compute(self, name: str) -> None:
        """Take a nova-compute away for good, as an operator would."""
        tenant.leave_aggregates(self.cloud, name)
        self.lab.compute(name).stop()
        for service in self.cloud.compute.services(host=name):
            try:
                self.cloud.compute.delete_service(service)
            except exceptions.HttpException as error:
                # Nova cannot delete a record that has no resource provider, as
                # when the service was stopped between the two: failover.rst.
                if 'ValueError' not in str(error):
                    raise
                self.lab.start_compute(name)
                self.lab.compute(name).stop()
                self.cloud.compute.delete_service(service)
        self.lab.forget_compute(name)

    def force_down(self, name: str, forced: bool = True) -> None:
        """Force a nova-compute down, or let it be up again.

        :param name: its host name
        :param forced: whether it is to be down
        """
        # As it is now: what does not change is not sent.
        (service,) = self.cloud.compute.services(
            host=name, binary='nova-compute')
        self.cloud.compute.update_service_forced_down(
            service, name, 'nova-compute', forced)

    def fail_over(self, server: sdk_server.Server) -> None:
        """Kill the service of a server until the end of the test.

        It is forced down, and another one has the server then.

        :param server: the server
        """
        dead = self.show(server).compute_host
        self.addCleanup(self.force_down, dead, False)
        self.addCleanup(self.lab.start_compute, dead)
        self.lab.compute(dead).kill()
        self.force_down(dead)
        self.lab.wait('A living service for the server', lambda: (
            self.show(server).compute_host != dead))

    @contextlib.contextmanager
    def frozen(self, *names: str):
        """Freeze nova-computes that go on looking alive.

        What is sent to them waits, and nobody takes them for dead.

        :param names: their host names
        """
        with Heartbeats(self.lab, *names):
            try:
                for name in names:
                    self.lab.compute(name).pause()
                yield
            finally:
                for name in names:
                    self.lab.compute(name).resume()

    def boot(self, name: str, host: str | None = None,
             node: str | None = None,
             network: str | None = None, flavor: str | None = None,
             **more: object) -> sdk_server.Server:
        """Ask for a server, which is gone after the test.

        :param name: its name
        :param host: the nova-compute that is to have it
        :param node: the node that it is to be on
        :param network: the network that it is to have a port on
        :param flavor: the name of its flavor; if it is None, the usual one, or
            that of the node
        :param more: what else Nova's API takes, such as ``config_drive``
        """
        if node is not None:
            self.wait_free(node)
        server = servers.boot(
            self.cloud, name, host, node, network, flavor, **more)
        self.addCleanup(self._delete, server)
        return server

    def _flavor(self, name: str, **specs: str) -> str:
        """Make a flavor as the usual one, which asks for more."""
        compute = self.cloud.compute
        usual = compute.find_flavor(
            tenant.FLAVOR, ignore_missing=False, get_extra_specs=True)
        made = compute.create_flavor(
            name=name, ram=usual.ram, vcpus=usual.vcpus, disk=usual.disk)
        self.addCleanup(compute.delete_flavor, made)
        compute.create_flavor_extra_specs(made, {**usual.extra_specs, **specs})
        return name

    def wait_free(self, node: str) -> None:
        """Wait until Placement offers a node.

        That of a server that was deleted is cleaned first, and is free in
        Placement after the next pass of its service. Nova deletes the
        allocation after the server.

        :param node: its UUID
        """
        asked = tenant.placement_class(
            self.cloud.baremetal.get_node(node).resource_class)

        def read(what: str) -> dict[str, Any]:
            return self.cloud.placement.get(
                f'/resource_providers/{node}/{what}').json()[what]

        def is_free() -> bool:
            own = read('inventories').get(asked)
            return own is not None and (
                own['reserved'] + read('usages').get(asked, 0) < own['total'])
        self.lab.wait(f'Node {node} free in Placement', is_free)

    def boot_active(self, name: str, host: str | None = None,
                    node: str | None = None) -> sdk_server.Server:
        """Boot a server without a network, which is gone after the test.

        The parameters are those of :meth:`boot`.
        """
        return servers.wait_active(self.cloud, self.boot(name, host, node))

    def boot_more(self, started: list[sdk_server.Server], count: int) -> None:
        """Boot servers, each when the one before it has a service.

        :param started: what was booted before, to which these are added
        :param count: how many
        """
        for _ in range(count):
            started.append(self.boot(f'moving-{len(started)}'))
            self.lab.wait('A service for the build', lambda: (
                self.show(started[-1]).compute_host
                or self.show(started[-1]).status == 'ERROR'))

    def _delete(self, server: sdk_server.Server) -> None:
        if self.cloud.compute.find_server(server.id):
            servers.delete(self.cloud, [server])

    def show(self, server: sdk_server.Server) -> sdk_server.Server:
        """Return a server as it is now."""
        return self.cloud.compute.get_server(server.id)

    def wait_idle(self, server: sdk_server.Server) -> None:
        """Wait until nothing is being done with a server."""
        self.lab.wait('The end of the task',
                      lambda: self.show(server).task_state is None)

    def assertReboots(self, server: sdk_server.Server) -> None:
        """See that a server is there, and that its service tends it."""
        self.cloud.compute.reboot_server(server, 'HARD')
        self.wait_idle(server)
        self.assertEqual('ACTIVE', self.show(server).status)

    def node_of(self, server: sdk_server.Server):
        """Return the node that holds a server; None if none does."""
        return next(self.cloud.baremetal.nodes(
            details=True, instance_id=server.id), None)

    def has_place(self, server: sdk_server.Server) -> bool:
        """Say whether a server's compute node and allocation are in order.

        The compute node is with the server's service, and the allocation is of
        that one alone.

        :param server: the server, as it is now
        """
        place, host = server.hypervisor_hostname, server.compute_host
        is_there = (pools.is_of(host, place) if pools.is_pool(place)
                    else self.lab.owners().get(place) == host)
        return is_there and [pools.provider(place)] == list(
            self.allocations(server))

    def network(self) -> sdk_network.Network:
        """Make a network, which is gone after the test."""
        network = self.cloud.network.create_network(name='wire')
        self.addCleanup(self.cloud.network.delete_network, network)
        self.cloud.network.create_subnet(
            network_id=network.id, ip_version=4, cidr='192.0.2.0/24')
        return network

    def assertBecomes(self, status: str, server: sdk_server.Server,
                      what: Callable[[], object]) -> None:
        """See what becomes of a server.

        :param status: its status in the end
        :param server: the server
        :param what: asks for something to be done with it
        """
        what()
        self.wait_idle(server)
        self.assertEqual(status, self.show(server).status)

    def assertWorks(self, server: sdk_server.Server,
                    network: sdk_network.Network) -> None:
        """See that a server does what it is told to.

        :param server: the server, which is active
        :param network: a network that it has no port on
        """
        compute = self.cloud.compute
        for what, status in (
                (lambda: compute.reboot_server(server, 'HARD'), 'ACTIVE'),
                (lambda: compute.reboot_server(server, 'SOFT'), 'ACTIVE'),
                (lambda: compute.stop_server(server), 'SHUTOFF'),
                (lambda: compute.start_server(server), 'ACTIVE'),
                (lambda: compute.rescue_server(server), 'RESCUE'),
                (lambda: compute.unrescue_server(server), 'ACTIVE'),
                (lambda: servers.rebuild(self.cloud, server), 'ACTIVE')):
            self.assertBecomes(status, server, what)
        for change, locked in ((compute.lock_server, True),
                               (compute.unlock_server, False)):
            change(server)
            self.assertEqual(locked, self.show(server).is_locked)
        before = {each.port_id for each in compute.server_interfaces(server)}
        attached = compute.create_server_interface(
            server, net_id=network.id)
        self.lab.wait('The interface', lambda: {attached.port_id} == {
            each.port_id for each in compute.server_interfaces(server)
        } - before)
        compute.delete_server_interface(attached, server)
        self.lab.wait('No interface', lambda: before == {
            each.port_id for each in compute.server_interfaces(server)})
        # The lab has none, and the service says so.
        error = self.assertRaises(
            exceptions.BadRequestException,
            compute.create_server_remote_console, server, protocol='serial',
            type='serial')
        self.assertIn('console', str(error))
        # Ironic has no images of machines: Nova has switched it off by then.
        compute.shelve_server(server)
        self.wait_idle(server)
        self.assertReboots(server)

    def build_while_one_starts(
            self, driver: str | None = None,
    ) -> tuple[str, sdk_server.Server]:
        """Start a nova-compute while a build is on its way to another.

        The node of the build is for the one that starts. A build in a pool has
        no node yet.

        :param driver: its driver, if it is not that of the lab
        :returns: the server's status once the one that starts has looked at
            interrupted builds, and the server when the build is over
        """
        newcomer = self.lab.next_name()
        recorded = self.lab.owners()
        owners = recorded or divide(
            {node.id for node in self.cloud.baremetal.nodes()},
            *self.lab.state.computes)
        joined = divide(set(owners), *self.lab.state.computes, newcomer)
        node, owner = next((node, owner) for node, owner in owners.items()
                           if joined[node] == newcomer)
        if recorded:
            self.wait_free(node)
        with self.frozen(owner):
            server = self.boot(
                'on-its-way', owner, node if recorded else None)
            self.lab.wait('An allocation',
                          lambda: bool(self.allocations(server)))
            self.assertEqual('BUILD', self.show(server).status)

            # However long this takes, it does no more than what a service
            # does when it starts: it takes no node before the build goes on.
            self.lab.add_compute(newcomer, {'DEFAULT': {
                'compute_driver': driver or self.KIND.driver,
                'update_resources_interval': 3600}})
            self.addCleanup(self._remove_if_there, newcomer)
            log = self.lab.compute(newcomer).log
            self.lab.wait('The look at interrupted builds', lambda: (
                'Looking for unclaimed instances' in log.read_text()))
            self.lab.wait_alive(newcomer)
            status = self.show(server).status
        self.lab.wait('The end of the build', lambda: (
            self.show(server).status != 'BUILD'))
        return status, self.show(server)

    def _remove_if_there(self, name: str) -> None:
        if name in self.lab.state.computes:
            self.remove_compute(name)

    def allocations(self, server: sdk_server.Server) -> dict[str, dict]:
        """Return what a server holds, by resource provider."""
        found = self.cloud.placement.get(f'/allocations/{server.id}').json()
        return {provider: each['resources']
                for provider, each in found['allocations'].items()}

    def cut_off_ironic(
            self, name: str,
            restart: Callable[[str, services.Sections], None]) -> None:
        """Restart a nova-compute so that it cannot reach Ironic.

        :param name: its host name
        :param restart: restarts one with options by section, for it alone
        """
        # Nobody takes it for dead, however long the restart takes.
        with Heartbeats(self.lab, name):
            restart(name, {'ironic': {
                'endpoint_override': 'http://127.0.0.1:1'}})
            # They begin along with its own heartbeats.
            self.lab.wait('Periodic tasks that cannot reach Ironic', lambda: (
                'periodic task due to: Virt driver is not ready'
                in self.lab.compute(name).log.read_text()))

    def wait_unallocated(self, server: sdk_server.Server) -> None:
        """Wait until a deleted server holds nothing.

        Nova's API shows no server any more before Nova gives its allocation
        back.
        """
        self.lab.wait('Nothing allocated',
                      lambda: self.allocations(server) == {})

    def wait_for_passes(self, *names: str) -> None:
        """Wait until each of these has been through two passes more."""
        before = {name: self._passes(name) for name in names}
        self.lab.wait('Two passes', lambda: all(
            self._passes(name) > before[name] + 2 for name in names))

    def _passes(self, name: str) -> int:
        return len(_PASS.findall(self.lab.compute(name).log.read_text()))

    def wait_down(self, name: str) -> None:
        """Wait until a nova-compute looks down."""
        self.lab.wait(f'{name} down', lambda: any(
            member.host == name and member.state == 'absent'
            for member in self.lab.ring()))

    def command(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run the lab's command line on this cloud."""
        return run_lab(self.name, *arguments)

    def run_program(self, *command: str, status: int = 0) -> str:
        """Run a program with the lab's clouds.yaml.

        :param command: a program of this virtual environment
        :param status: the exit status that it is to have
        :returns: its output
        """
        done = self._run(*command)
        self.assertEqual(
            status, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def ring(self, *command: str, status: int = 0) -> str:
        """Run the operator's command with the lab's nova.conf.

        :param command: what it is to do
        :param status: the exit status that it is to have
        :returns: its output
        """
        return self.run_program(*self.lab.nova.ring, *command, status=status)

    def read(self, *command: str, status: int = 0) -> Any:
        """Return what the operator's command says as JSON.

        The parameters are those of :meth:`ring`.
        """
        return json.loads(self.ring(*command, '-f', 'json', status=status))

    def ring_actions(self, server: sdk_server.Server) -> list[dict[str, Any]]:
        """Return what Nova tells of takeovers of a server.

        :param server: the server
        :returns: the actions, the first one first, each with its name as
            ``action``, and the events of it by their names; of an event, who
            has written it as ``host``, and what it says
        """
        found = []
        for action in json.loads(self.run_program(
                *_OPENSTACK, 'server', 'event', 'list', server.id, '-f',
                'json')):
            if not action['Action'].startswith('ironic_ring_'):
                continue
            shown = json.loads(self.run_program(
                *_OPENSTACK, 'server', 'event', 'show', server.id,
                action['Request ID'], '-f', 'json'))
            found.append({'action': action['Action'], **{
                event['event']: {'host': event['host'],
                                 **json.loads(event['details'])}
                for event in shown['events']}})
        return found[::-1]

    def assertRefuses(self, sentence: str, *command: str) -> None:
        """See that a program fails and says so in a sentence.

        :param sentence: what the sentence has in it
        :param command: a program of this virtual environment
        """
        done = self._run(*command)
        self.assertEqual(2, done.returncode, done.stdout + done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertNotIn('Traceback', done.stderr)

    def _run(self, *command: str, **env: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [f'{sys.prefix}/bin/{command[0]}', *command[1:]],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=process.environment(self.lab.state.directory,
                                    tenant.variables(self.lab.state) | env))

    def assertNothingLeft(self, name: str) -> None:
        """See that a lab has left no process and no file."""
        directory = place.directory(name)
        self.assertEqual([], list(process.leftovers(directory)))
        self.assertFalse(directory.exists())
