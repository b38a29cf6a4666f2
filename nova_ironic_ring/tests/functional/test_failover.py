# SPDX-License-Identifier: Apache-2.0

"""A service that dies leaves nothing behind."""

from collections.abc import Iterator
import contextlib
import uuid

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.lab.inside import lost
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab import servers
from nova_ironic_ring.tests.functional import base

# Seconds: an answer that is lost is waited for, with the rpc_response_timeout
# of a minute, in a pass and in the look after it.
_LONG = 300


class _FailoverTestCase(base.LabTestCase):
    """One of the services is to die."""

    def setUp(self) -> None:
        super().setUp()
        # The last one has the most nodes for the usual flavor.
        *self.takers, self.dead = self.lab.state.computes
        self.addCleanup(self._bring_back)

    def _bring_back(self) -> None:
        self.force_down(self.dead, False)
        self.lab.compute(self.dead).resume()
        if self.lab.compute(self.dead).state == 'stopped':
            self.lab.start_compute(self.dead)
        self.lab.wait_settled(self.nodes)

    def _die(self) -> None:
        self.lab.compute(self.dead).kill()
        self.force_down(self.dead)

    def _boot(self, name: str) -> sdk_server.Server:
        return self.boot(name, self.dead)

    def _boot_active(self, *names: str) -> list[sdk_server.Server]:
        asked = [self._boot(name) for name in names]
        return [servers.wait_active(self.cloud, server) for server in asked]

    def _node(self, server: sdk_server.Server) -> str:
        """Return the node that a server is on, also if Ironic is frozen."""
        ((node,),) = self._ask_ironic(server, 'uuid')
        return node

    def _ask_ironic(self, server: sdk_server.Server, column: str
                    ) -> tuple[tuple[str, ...], ...]:
        """Read of the nodes that a server is on, without Ironic's API."""
        with self.lab.database.connect('ironic') as connected, \
                connected.cursor() as cursor:
            cursor.execute(f'SELECT {column} FROM nodes '
                           'WHERE instance_uuid = %s', (server.id,))
            return cursor.fetchall()

    def _wait_taken_over(self, *wanted: sdk_server.Server) -> None:
        """Wait until servers are with those whom the ring maps them to."""
        nodes = {server.id: self._node(server) for server in wanted}
        takers = base.divide(set(nodes.values()), *self.takers)
        self.lab.wait('Other services for the servers', lambda: all(
            self.show(server).compute_host == takers[nodes[server.id]]
            for server in wanted))
        self._wait_places(*wanted)

    def _wait_places(self, *wanted: sdk_server.Server) -> None:
        """Wait until records and allocations are where their servers are."""
        self.lab.wait('The compute nodes of the servers', lambda: all(
            self.has_place(self.show(server)) for server in wanted))

    def _wait_for_task(self, server: sdk_server.Server, task: str) -> None:
        """Wait until its service is at something, or has been."""
        def is_at() -> bool:
            seen = self.show(server)
            # A server that is being built has none for a moment, before it
            # gets its networks.
            return seen.task_state == task or (
                seen.task_state is None and seen.status != 'BUILD')
        self.lab.wait(f'{server.name} {task}', is_at, poll=0.05)

    def _wait_logged(self, host: str, what: str) -> None:
        self.lab.wait(f'"{what}" in the log of {host}', lambda: (
            what in self.lab.compute(host).log.read_text()))


class FailoverTestCase(_FailoverTestCase):

    def _wait_recorded(self, server: sdk_server.Server) -> None:
        """Wait until Nova tells who has a server, and why, to the end."""
        self.lab.wait(f'The action of {server.name}',
                      lambda: bool(self.ring_actions(server)))
        taker = self.show(server).compute_host
        self.assertEqual([{
            'action': 'ironic_ring_failover', 'ironic_ring_failover': {
                'host': taker, 'from': self.dead, 'to': taker,
                'node': server.hypervisor_hostname, 'reason': 'FORCED_DOWN',
                'by': None}}], self.ring_actions(server))

    def test_servers_of_a_service_that_is_forced_down(self):
        network = self.network()
        wanted = self._boot_active('stays-0', 'stays-1')
        before = [self.allocations(server) for server in wanted]
        self.lab.compute(self.dead).kill()
        self.wait_down(self.dead)
        # That alone is reason enough for its free nodes, but not for them.
        self.lab.wait_settled(self.nodes)
        self.wait_for_passes(*self.takers)
        for server in wanted:
            self.assertEqual(self.dead, self.show(server).compute_host)
            self.assertEqual(
                self.dead, self.lab.owners()[server.hypervisor_hostname])

        self.run_program('openstack', 'compute', 'service', 'set', '--down',
                         self.dead, 'nova-compute')
        self._wait_taken_over(*wanted)
        for server in wanted:
            self._wait_recorded(server)
        self.assertEqual(
            before, [self.allocations(server) for server in wanted])
        # Also as an operator sees it.
        self.assertIn('ACTIVE', self.run_program(
            'openstack', 'server', 'show', wanted[0].id))
        self.assertIn(wanted[0].hypervisor_hostname, self.run_program(
            'openstack', 'resource', 'provider', 'allocation', 'show',
            wanted[0].id))
        manage = (*self.lab.nova.manage, 'placement')
        self.run_program(*manage, 'audit', '--verbose')
        # Nothing to do:
        # https://docs.openstack.org/nova/latest/cli/nova-manage.html
        self.run_program(*manage, 'heal_allocations', '--dry-run', status=4)
        self.assertWorks(wanted[0], network)
        self.lab.wait('No node of the dead one', lambda: (
            self.dead not in self.lab.owners().values()))

        # It comes back, and finds itself without them.
        hosts = {server.id: self.show(server).compute_host
                 for server in wanted}
        self._bring_back()
        for server in wanted:
            self.assertEqual(hosts[server.id],
                             self.show(server).compute_host)
            self.assertEqual('ACTIVE', self.show(server).status)
        self.assertIn(self.dead, self.lab.owners().values())
        servers.delete(self.cloud, wanted)
        for server in wanted:
            self.wait_unallocated(server)

    def test_service_that_returns_in_the_middle(self):
        own = [node for node, owner in self.lab.owners().items()
               if owner == self.dead]
        takers = base.divide(own, *self.takers)
        # Two for each of the takers.
        asked = [
            self.boot(f'for-{taker}-{number}', self.dead, node)
            for taker in self.takers
            for number, node in enumerate(
                [node for node in own if takers[node] == taker][:2])]
        self.assertEqual(4, len(asked))
        wanted = [servers.wait_active(self.cloud, server) for server in asked]
        first, second = self.takers
        with self.frozen(second):
            self._die()
            self._wait_taken_over(*wanted[:2])
            # In the middle: the others wait for a taker that is frozen.
            self.force_down(self.dead, False)
            self.lab.start_compute(self.dead)
        self._wait_places(*wanted)
        self.assertEqual(
            [first] * 2 + [self.dead] * 2,
            [self.show(server).compute_host for server in wanted])
        for server in wanted:
            self.assertReboots(server)

    def test_what_was_deleted_when_it_had_died(self):
        (server,) = self._boot_active('forgotten')
        node = server.hypervisor_hostname
        victim = next(
            new for new in iter(lambda: str(uuid.uuid4()), None)
            if base.divide([new], *self.lab.state.computes)[new] == self.dead)
        self.lab.enroll(1, id=victim)
        self.lab.wait_settled(self.nodes + 1)
        self.assertEqual(self.dead, self.lab.owners()[victim])
        self.lab.compute(self.dead).kill()
        self.wait_down(self.dead)
        servers.delete(self.cloud, [server])
        self.lab.wait('The node free', lambda: (
            self.cloud.baremetal.get_node(node).instance_id is None))
        self.lab.wait('A living service for the node', lambda: (
            self.lab.owners().get(node) not in (self.dead, None)))

        self.cloud.baremetal.delete_node(victim)
        self.lab.wait('Neither row nor provider', lambda: (
            victim not in self.lab.owners()
            and victim not in self.providers()))

    def test_what_was_deleted_before_it_was_deployed(self):
        """The service only stands still, and goes on when it wakes."""
        own = {node for node, owner in self.lab.owners().items()
               if owner == self.dead}
        takers = base.divide(own, *self.takers)
        # One service is to find both, as Nova looks for them one by one.
        first, second = next(
            pair for taker in self.takers
            if len(pair := sorted(
                node for node in own if takers[node] == taker)[:2]) == 2)
        forgotten = servers.wait_active(
            self.cloud, self.boot('forgotten', self.dead, first))
        asked = self._stand_still_before_a_deployment(second)
        self.wait_down(self.dead)
        servers.delete(self.cloud, [forgotten, asked])
        self.lab.wait('The node of the deployed one free', lambda: (
            self.cloud.baremetal.get_node(first).instance_id is None))
        self.assertEqual(
            ('available', asked.id), self._state_and_instance(second))

        # It finds that nobody wants the server any more.
        self.lab.compute(self.dead).resume()
        self.lab.wait('The other node free', lambda: (
            self._state_and_instance(second) == ('available', None)))
        self.wait_for_passes(*self.lab.state.computes)
        self.assertEqual(
            ('available', None), self._state_and_instance(second))

    def _state_and_instance(self, node: str) -> tuple[str, str | None]:
        seen = self.cloud.baremetal.get_node(node)
        return seen.provision_state, seen.instance_id

    def _stand_still_before_a_deployment(self, node: str
                                         ) -> sdk_server.Server:
        """Pause the service when a node has an instance, and no more."""
        for number in range(9):
            server = self.boot(f'asked-{number}', self.dead, node)
            self.lab.wait('An instance on the node', lambda: bool(
                self._ask_ironic(server, 'uuid')), poll=0.02)
            self.lab.compute(self.dead).pause()
            if self._state_and_instance(node) == ('available', server.id):
                return server
            self.lab.compute(self.dead).resume()
            servers.delete(self.cloud, [server])
        self.fail('The service was always faster.')


class SilenceTestCase(_FailoverTestCase):
    """A service is silent for long, and nobody says that it is dead."""

    def setUp(self) -> None:
        super().setUp()
        for name in self.lab.state.computes:
            self.lab.reconfigure(name, {'ironic_ring': {'failover_after': 12}})
            self.addCleanup(self.lab.reconfigure, name, {})
        (self.server,) = self._boot_active('silent')

    def _wait_taken(self) -> None:
        self.lab.wait('Another service for the server', lambda: (
            self.show(self.server).compute_host != self.dead))

    def test_silence(self):
        self.lab.compute(self.dead).kill()
        self._wait_taken_over(self.server)
        self.assertReboots(self.server)

    def test_silence_of_ironic_as_well(self):
        ironic = self.lab.state.process('ironic')
        self.addCleanup(ironic.resume)
        ironic.pause()
        self.lab.compute(self.dead).kill()
        self._wait_taken()
        ironic.resume()
        self._wait_taken_over(self.server)
        self.assertReboots(self.server)


class LostAnswersTestCase(_FailoverTestCase):
    """The takers are not told that what they write was written."""

    def test_work_that_was_under_way(self):
        rebooting, stopping = self._boot_active('rebooting', 'stopping')
        # Conductor and Placement answer nothing that a taker writes.
        directory = self.lab.state.directory
        self.addCleanup(lost.lose, directory, 0)
        with self.frozen(self.dead):
            self.cloud.compute.reboot_server(rebooting, 'HARD')
            self.cloud.compute.stop_server(stopping)
            lost.lose(directory, 1)
            self._die()
        for server in rebooting, stopping:
            self.lab.wait('Another service for the server', lambda: (
                self.show(server).compute_host != self.dead),
                timeout=_LONG)
        lost.lose(directory, 0)
        for server, status in ((rebooting, 'ACTIVE'), (stopping, 'SHUTOFF')):
            self.lab.wait('The end of its task', lambda: (
                self.show(server).task_state is None), timeout=_LONG)
            self.assertEqual(status, self.show(server).status)
            self.lab.wait('The action', lambda: any(
                action['action'] == 'ironic_ring_failover'
                for action in self.ring_actions(server)), timeout=_LONG)
        self._wait_taken_over(rebooting, stopping)


class WorkUnderWayTestCase(_FailoverTestCase):
    """What a service was doing when it died."""

    def test_what_was_under_way(self):
        rebooting, deleted, stopping, rescuing = self._boot_active(
            'rebooting', 'deleted', 'stopping', 'rescuing')
        compute = self.cloud.compute
        with self.frozen(self.dead):
            compute.reboot_server(rebooting, 'HARD')
            compute.delete_server(deleted)
            compute.stop_server(stopping)
            compute.rescue_server(rescuing)
            building = self._boot('building')
            self.lab.wait('An allocation', lambda: self.allocations(building))
            self._die()

        self._wait_taken_over(rebooting, stopping, rescuing)
        for server, status in ((rebooting, 'ACTIVE'), (stopping, 'SHUTOFF'),
                               (rescuing, 'ACTIVE')):
            self.wait_idle(server)
            self.assertEqual(status, self.show(server).status)
        self.lab.wait('The end of the delete', lambda: (
            compute.find_server(deleted.id) is None))
        self.lab.wait('The node free', lambda: self.node_of(deleted) is None)
        self.lab.wait('The end of the build', lambda: (
            self.show(building).status == 'ERROR'))
        self.assertIn(f'{self.dead} has died',
                      self.show(building).fault['message'])
        self.lab.wait('No allocation',
                      lambda: not self.allocations(building))

        # It comes back to all that in its queue.
        compute.start_server(stopping)
        self.wait_idle(stopping)
        self._bring_back()
        self._wait_logged(self.dead, f'Instance {stopping.id} was taken over')
        self._wait_logged(self.dead, f'Instance {rescuing.id} was taken over')
        for server in rebooting, stopping, rescuing:
            self.assertEqual('ACTIVE', self.show(server).status)
            self.assertIsNone(self.show(server).task_state)
            self.assertEqual('active',
                             self.node_of(server).provision_state)
            self.assertEqual('power on', self.node_of(server).power_state)
        self.lab.wait('The build refused again', lambda: (
            self.show(building).status == 'ERROR'
            and not self.allocations(building)))
        self.assertIsNone(self.node_of(building))

    @contextlib.contextmanager
    def _configured_ironic(self, **sections: dict[str, int]
                           ) -> Iterator[None]:
        """Have Ironic use other options for a while.

        :param sections: the options by section
        """
        services.Ironic(self.lab.context, overrides=sections).restart()
        try:
            yield
        finally:
            services.Ironic(self.lab.context).restart()

    def test_deployment_that_outlives_its_service(self):
        network = self.network()
        (idle,) = self._boot_active('idle')
        with self._configured_ironic(fake={'deploy_delay': 4}):
            server = self.boot('deploying', self.dead, network=network.id)
            self.lab.wait('A deployment', lambda: (
                self._provision_state(server) == 'deploying'), poll=0.05)
            self.lab.compute(self.dead).pause()
            self.force_down(self.dead)

            # A user is quicker than the recovery.
            self.lab.wait('A service for the idle server', lambda: (
                self._host_of(idle) != self.dead), poll=0.02)
            with self.frozen(self._host_of(idle)):
                servers.rebuild(self.cloud, self.show(idle))
            server = servers.wait_active(self.cloud, server)
            self._wait_taken_over(server, idle)
            (port,) = self.cloud.network.ports(device_id=server.id)
            self.wait_idle(idle)
            self.assertEqual('ACTIVE', self.show(idle).status)

            servers.rebuild(self.cloud, server)
            self._wait_for_task(server, 'rebuild_spawning')
            self.lab.compute(self.dead).resume()
            # It finds the node deployed, and that this is not its work.
            self._wait_logged(
                self.dead, f'Instance {server.id} was taken over by')
            self.wait_idle(server)
        self.force_down(self.dead, False)
        self.lab.wait_settled(self.nodes)
        self.wait_for_passes(self.dead)
        self._wait_taken_over(server, idle)
        self.assertEqual(
            [(port.id, port.fixed_ips)],
            [(each.id, each.fixed_ips)
             for each in self.cloud.network.ports(device_id=server.id)])
        self.assertEqual([port.id], [
            each.port_id
            for each in self.cloud.compute.server_interfaces(server)])
        self.assertReboots(server)

    def test_taker_that_is_restarted_in_the_middle(self):
        with self._configured_ironic(fake={'deploy_delay': 15}):
            server = self.boot('deploying', self.dead)
            self.lab.wait('A deployment', lambda: (
                self._provision_state(server) == 'deploying'), poll=0.05)
            self._die()
            # That is recorded in the background.
            self.lab.wait('The action of the failover', lambda: bool(
                self.ring_actions(server)), poll=0.05)
            taker = self._host_of(server)
            self.lab.compute(taker).kill()
            self.lab.start_compute(taker)
            # Nova's own start would set it to ERROR.
            server = servers.wait_active(self.cloud, server)
        self.assertEqual(taker, server.compute_host)
        self._wait_places(server)
        self._bring_back()
        self.assertReboots(server)

    def _host_of(self, server: sdk_server.Server) -> str:
        """Read which service has a server, as soon as that changes."""
        with self.lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute('SELECT host FROM instances WHERE uuid = %s',
                           (server.id,))
            ((host,),) = cursor.fetchall()
        return host

    def test_service_that_is_frozen_and_wakes(self):
        rebooting, deleted = self._boot_active('rebooting', 'deleted')
        frozen = self.lab.compute(self.dead)
        # A reboot takes as long as a build needs to come to its machine. The
        # look at the power of all nodes would take longer.
        with self._configured_ironic(
                fake={'power_delay': 5},
                conductor={'sync_power_state_interval': 0}):
            ironic = self.lab.state.process('ironic')
            self.addCleanup(ironic.resume)
            building = self._freeze_ironic_in_a_build(rebooting)
            # Without Ironic this does not come to an end either.
            self.cloud.compute.delete_server(deleted)
            self._wait_logged(
                self.dead, f'[instance: {deleted.id}] Terminating instance')
            frozen.pause()
            ironic.resume()
            self.assertEqual('deleting', self.show(deleted).task_state)
            self.assertEqual('spawning', self.show(building).task_state)
            self.assertEqual('reboot_started_hard',
                             self.show(rebooting).task_state)
            self.force_down(self.dead)
            self._wait_taken_over(rebooting)
            self.wait_idle(rebooting)
            self.lab.wait('The end of the delete', lambda: (
                self.cloud.compute.find_server(deleted.id) is None))
            self.lab.wait('The end of the build', lambda: (
                self.show(building).status != 'BUILD'))
        # The request to deploy may have been on its way to the frozen Ironic.
        status = ('ACTIVE' if self._provision_state(building) == 'active'
                  else 'ERROR')
        building = self.show(building)
        self.assertEqual(status, building.status)
        if status == 'ERROR':
            self.assertIn(f'{self.dead} has died', building.fault['message'])

        frozen.resume()
        self.force_down(self.dead, False)
        self.lab.wait_settled(self.nodes)
        self.wait_for_passes(self.dead)
        self.assertEqual('ACTIVE', self.show(rebooting).status)
        self.assertEqual('active', self.node_of(rebooting).provision_state)
        self._wait_places(rebooting)
        self.assertIsNone(self.node_of(deleted))
        self.assertEqual(status, self.show(building).status)
        self.assertIsNone(self.show(building).task_state)
        servers.delete(self.cloud, [building])
        self.lab.wait('Its node free', lambda: (
            self.node_of(building) is None))
        self.wait_unallocated(building)

    def _freeze_ironic_in_a_build(self, rebooting: sdk_server.Server
                                  ) -> sdk_server.Server:
        """Freeze Ironic while the service that is to die waits for it.

        :param rebooting: is rebooted
        :returns: a server that is being built
        """
        ironic = self.lab.state.process('ironic')
        while True:
            building = self._boot('building')
            self.cloud.compute.reboot_server(rebooting, 'HARD')
            self._wait_for_task(rebooting, 'reboot_started_hard')
            self._wait_for_task(building, 'spawning')
            ironic.pause()
            # Reserved, and not deployed yet: what Ironic is at is carried on.
            if (self._provision_state(building) == 'available'
                    and self.show(rebooting).task_state):
                return building
            ironic.resume()
            self.wait_idle(rebooting)
            servers.delete(self.cloud, [building])

    def _provision_state(self, server: sdk_server.Server) -> str | None:
        """Read what Ironic does with a server's node, also if it is frozen."""
        found = self._ask_ironic(server, 'provision_state')
        return found[0][0] if found else None


class LongPassesTestCase(_FailoverTestCase):
    """The next pass of those that take over is an hour away."""

    def setUp(self) -> None:
        super().setUp()
        # With these, the two stay in the ring while they are restarted.
        for name in self.takers:
            self.boot_active(f'of-{name}', name)
        (self.server,) = self._boot_active('manageable')
        for name in self.takers:
            self.addCleanup(self._restart, name, {})
            self._restart(name, {'DEFAULT': {
                'update_resources_interval': 3600}})
        self.passes = self._count()

    def _restart(self, name: str, overrides: services.Sections) -> None:
        self.lab.configure_compute(name, overrides)
        self.lab.compute(name).kill()
        self.lab.start_compute(name)

    def _count(self) -> dict[str, int]:
        """Count the passes of those that take over."""
        return {name: self._passes(name) for name in self.takers}

    def test_forced_down(self):
        self._die()
        taker = base.divide(
            [self.server.hypervisor_hostname], *self.takers)[
                self.server.hypervisor_hostname]
        self.lab.wait('Another service for the server', lambda: (
            self.show(self.server).compute_host == taker))
        self.assertReboots(self.server)
        # The resource tracker does its part as well.
        self._wait_places(self.server)
        self.assertEqual(self.passes, self._count())


class FollowTestCase(_FailoverTestCase):
    """Instances go with the ring."""

    def setUp(self) -> None:
        super().setUp()
        for name in self.lab.state.computes:
            self.lab.reconfigure(
                name, {'ironic_ring': {'instance_mobility': 'follow'}})
            self.addCleanup(self.lab.reconfigure, name, {})

    def test_service_that_is_disabled(self):
        (server,) = self._boot_active('follows')
        allocations = self.allocations(server)
        (service,) = self.cloud.compute.services(
            host=self.dead, binary='nova-compute')
        self.cloud.compute.disable_service(service)
        self.addCleanup(self.cloud.compute.enable_service, service)
        self.lab.wait('No node of the disabled one', lambda: (
            self.dead not in self.lab.owners().values()))
        self._wait_taken_over(server)
        self.assertEqual(allocations, self.allocations(server))
        self.assertReboots(server)

        self.cloud.compute.enable_service(service)
        self.lab.wait('The server back', lambda: (
            self.show(server).compute_host == self.dead
            == self.lab.owners()[server.hypervisor_hostname]))
        self.assertReboots(server)
