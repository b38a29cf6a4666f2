# SPDX-License-Identifier: Apache-2.0

"""Services with pools: builds, a takeover, and the change of drivers."""

import collections
import concurrent.futures
import json
import re

from openstack.compute.v2 import server as sdk_server
from openstack import connection

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import shapes
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.lab import view
from nova_ironic_ring.tests.functional import base
from nova_ironic_ring.tests.functional import test_builds
from nova_ironic_ring.tests.functional import test_command
from nova_ironic_ring.tests.functional import test_failover
from nova_ironic_ring.tests.functional import test_partitioning
from nova_ironic_ring.tests.functional import test_plan
from nova_ironic_ring.tests.functional import test_start

_SERVERS = 5
_TRAIT = 'CUSTOM_LEFT_BAY'
_CAPABILITY = '/properties/capabilities'
_FAILS = f'/driver_info/{shapes.FAILS}'

_KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=12)


class PoolTestCase(base.LabTestCase):

    KIND = _KIND

    def _pools(self) -> list[view.Pool]:
        with self.lab.cell() as connected:
            return list(view.read(connected).pools)

    def _node(self, server: sdk_server.Server) -> str:
        """Return the node that a server is on."""
        (node,) = self.cloud.baremetal.nodes(instance_id=server.id)
        return node.id

    def _wait_free(self) -> None:
        """Wait until Ironic has no instance, and all nodes can be built on."""
        self._wait_available()
        self.lab.wait_settled(self.nodes)

    def _wait_available(self) -> None:
        """Wait until Ironic has no instance, and no node to clean."""
        self.lab.wait('All nodes free', lambda: all(
            node.instance_id is None and node.provision_state == 'available'
            for node in self.cloud.baremetal.nodes(details=True)))

    def assertWhole(self, *wanted: sdk_server.Server) -> None:
        """See that servers are with one service each, on one node."""
        for server in wanted:
            now = self.show(server)
            self.assertEqual('ACTIVE', now.status)
            place, node = now.hypervisor_hostname, self._node(server)
            self.assertTrue(self.has_place(now), (
                place, now.compute_host, self.allocations(server)))
            if not pools.is_pool(place):
                self.assertEqual(node, place)

    def assertHasConfigDrive(self, server: sdk_server.Server) -> None:
        """See that Ironic was given a config drive for a server."""
        self.assertTrue(self.show(server).has_config_drive)
        (node,) = self.cloud.baremetal.nodes(
            details=True, instance_id=server.id)
        self.assertIn('configdrive', node.instance_info)

    def test_builds_and_totals(self):
        with concurrent.futures.ThreadPoolExecutor(_SERVERS) as threads:
            asked = list(threads.map(
                lambda number: self.boot(f'pooled-{number}'),
                range(_SERVERS)))
        built = [servers.wait_active(self.cloud, server) for server in asked]
        self.assertEqual(_SERVERS, len({
            self._node(server) for server in built}))
        self.assertWhole(*built)
        # Nodes are counted, never instances.
        self.lab.wait_settled(self.nodes)
        self.assertEqual(self.nodes, sum(
            pool.total for pool in self._pools()))
        servers.delete(self.cloud, built)
        self._wait_free()

    def _usual(self) -> set[str]:
        """Name nodes for the usual flavor that are all of one kind."""
        return {node.id for node in self.cloud.baremetal.nodes(
            details=True, resource_class=tenant.FLAVOR) if not node.traits}

    def _mark(self, node: str) -> None:
        """Give a node a trait and a capability for the time of the test."""
        system = self.lab.connect('lab-system').baremetal
        before = system.get_node(node)
        system.set_node_traits(node, [*before.traits, _TRAIT])
        self.addCleanup(system.set_node_traits, node, before.traits)
        said = before.properties['capabilities']
        system.patch_node(node, [{'op': 'replace', 'path': _CAPABILITY,
                                  'value': f'{said},bay:left'}])
        self.addCleanup(system.patch_node, node, [
            {'op': 'replace', 'path': _CAPABILITY, 'value': said}])

    def _has_trait(self, pool: view.Pool) -> bool:
        """Say whether Placement has the trait for a pool."""
        said = self.cloud.placement.get(
            f'/resource_providers/{pool.uuid}/traits', microversion='1.6')
        return _TRAIT in said.json().get('traits', ())

    def _offered(self, name: str) -> list[int]:
        """Count the nodes of a service's pools with the trait that are ready.

        Those with a server are among them.
        """
        return [pool.total - pool.reserved for pool in self._pools()
                if pool.owner == name and self._has_trait(pool)]

    def _mark_some(self) -> list[str]:
        """Give nodes of the first service a pool of their own.

        :returns: the nodes, which are three
        """
        one, two = self.lab.state.computes
        share = sorted(node for node, owner in base.divide(
            {node.id for node in self.cloud.baremetal.nodes()}, one, two
        ).items() if owner == one)
        usual = self._usual()
        marked = [node for node in share if node in usual][:3]
        for node in marked:
            self._mark(node)
        # Ironic changes no node that is being cleaned.
        self.addCleanup(self._wait_free)
        self.lab.wait('A pool of the nodes with the trait', lambda: (
            [len(marked)] == self._offered(one)
            and self._total(one) == len(share)))
        self.lab.wait_settled(self.nodes)
        return marked

    def test_flavors_that_ask_for_a_trait_or_a_capability(self):
        one, _ = self.lab.state.computes
        marked = self._mark_some()
        for flavor in (
                self._flavor('by-trait', **{f'trait:{_TRAIT}': 'required'}),
                self._flavor('by-capability', **{'capabilities:bay': 'left'})):
            server = servers.wait_active(
                self.cloud, self.boot(flavor, flavor=flavor))
            self.assertIn(self._node(server), marked, flavor)
            self.assertEqual(one, server.compute_host)
            self.assertWhole(server)

    def _spoil(self, node: str) -> None:
        """Have deployments on a node fail for the time of the test."""
        system = self.lab.connect('lab-system').baremetal
        before = system.get_node(node).deploy_interface
        system.patch_node(node, [
            {'op': 'replace', 'path': '/deploy_interface',
             'value': services.DEPLOY_INTERFACE},
            {'op': 'add', 'path': _FAILS, 'value': True}])

        def restore() -> None:
            system.patch_node(node, [
                {'op': 'remove', 'path': _FAILS},
                {'op': 'replace', 'path': '/deploy_interface',
                 'value': before}])
            # That deployment has switched it off.
            system.set_node_power_state(node, 'power on', wait=True)
        self.addCleanup(restore)
        # Ironic changes no node that is being cleaned.
        self.addCleanup(self._wait_free)

    def _failed(self, node: str) -> str:
        """Return what the command says of deployments on a node."""
        found: str = self.read('node', 'show', node)['Failed deployments']
        return found

    def test_node_that_fails_to_deploy(self):
        one, _ = self.lab.state.computes
        bad, *good = marked = self._mark_some()
        self._spoil(bad)
        flavor = self._flavor('fails', **{f'trait:{_TRAIT}': 'required'})
        self.assertRefused(self.boot(
            'on-it', flavor=flavor, scheduler_hints={'ironic_node': bad}),
            f'the deployment on node {bad}')
        self.lab.wait('A node known to have failed', lambda: (
            self._failed(bad).startswith('1 in a row')))
        self._wait_available()
        self.lab.wait('The node free again', lambda: (
            [len(marked)] == self._offered(one)))

        # Others come first.
        built = [servers.wait_active(self.cloud, self.boot(
            f'beside-it-{number}', flavor=flavor))
            for number in range(len(good))]
        self.assertEqual({*good}, {self._node(server) for server in built})

        # It is the last one, and a success ends it.
        self.lab.connect('lab-system').baremetal.patch_node(
            bad, [{'op': 'replace', 'path': _FAILS, 'value': False}])
        server = servers.wait_active(
            self.cloud, self.boot('after-all', flavor=flavor))
        self.assertEqual(bad, self._node(server))
        self.lab.wait('The failure forgotten', lambda: not self._failed(bad))

    def _connect_as_member(self) -> connection.Connection:
        """Log in as a user who may force no host."""
        identity = self.cloud.identity
        project = identity.create_project(
            name=base.unique_name(), domain_id='default')
        self.addCleanup(identity.delete_project, project)
        user = identity.create_user(
            name=project.name, password=self.lab.state.secret,
            domain_id='default', default_project_id=project.id)
        self.addCleanup(identity.delete_user, user)
        identity.assign_project_role_to_user(
            project, user, identity.find_role('member'))
        return self.lab.connect(
            username=user.name, project_name=project.name)

    def assertRefused(self, server: sdk_server.Server, reason: str) -> None:
        """See that a build has ended for a reason, and has left nothing."""
        self.lab.wait('An end of the build', lambda: (
            self.show(server).status == 'ERROR'))
        now = self.show(server)
        self.assertIn(reason, now.fault['message'])
        self.assertIsNone(now.compute_host)
        self.assertEqual({}, self.allocations(server))
        self.assertEqual([], list(
            self.cloud.baremetal.nodes(instance_id=server.id)))

    def test_one_node_that_is_named(self):
        free = sorted(node.id for node in self.cloud.baremetal.nodes())
        self._mark(free[2])
        self.addCleanup(self._wait_free)
        for node in free[:2]:
            server = servers.wait_active(self.cloud, self.boot(
                'named', scheduler_hints={'ironic_node': node}))
            self.assertEqual(node, self._node(server))
            self.assertWhole(server)

        # As an administrator, and no other node instead.
        self.assertRefused(self.boot(
            'again', scheduler_hints={'ironic_node': free[0]}),
            f'node {free[0]} has an instance')
        self.assertRefused(self.boot(
            'other-kind', scheduler_hints={'ironic_node': free[2]}),
            f'node {free[2]} is not of the kind of pool')

        member = self._connect_as_member()
        asked = servers.boot(
            member, 'of-a-member', scheduler_hints={'ironic_node': free[3]})
        self.addCleanup(servers.delete, member, [asked])
        self.assertRefused(asked, 'is for those who may force a host')

    def test_pool_that_nova_names(self):
        usual = self._usual()
        self.addCleanup(self._wait_free)
        # One node of each service.
        for host, (node, pool) in {
                line['Owner']: (line['Node'], line['Pool'])
                for line in self.read('node', 'list')
                if line['Node'] in usual}.items():
            server = servers.wait_active(self.cloud, self.boot(
                'in-a-pool', host, hypervisor_hostname=pool,
                scheduler_hints={'ironic_node': node}))
            self.assertEqual((pool, node), (
                self.show(server).hypervisor_hostname, self._node(server)))
            servers.rebuild(self.cloud, server)
            self.wait_idle(server)
            self.assertEqual(node, self._node(server))
            self.assertWhole(server)

    def test_service_that_dies(self):
        first, network = self.network(), self.network()
        server = servers.wait_active(self.cloud, self.boot(
            'orphan', network=first.id, config_drive=True))
        self.assertHasConfigDrive(server)
        self.assertWorks(server, network)
        node, dead = self._node(server), self.show(server).compute_host
        ports = [each.port_id for each in
                 self.cloud.compute.server_interfaces(server)]
        self.fail_over(server)
        self.wait_idle(server)
        self.assertEqual(node, self._node(server))
        self.assertWhole(server)
        self.assertEqual(ports, [each.port_id for each in
                         self.cloud.compute.server_interfaces(server)])
        self.assertWorks(server, network)
        # It has been rebuilt, by the taker.
        self.assertHasConfigDrive(server)
        servers.delete(self.cloud, [server])
        # The others count what the dead one had.
        self._wait_free()
        self.assertEqual(set(), {
            pool.owner for pool in self._pools()
            if pool.owner == dead and pool.reserved < pool.total})

    def _write(self, node: str, capability: str) -> None:
        """Add a capability to a node for the time of the test."""
        system = self.lab.connect('lab-system').baremetal
        said = system.get_node(node).properties['capabilities']
        for value in f'{said},{capability}', said:
            change = [{'op': 'replace', 'path': _CAPABILITY, 'value': value}]
            if value == said:
                self.addCleanup(system.patch_node, node, change)
            else:
                system.patch_node(node, change)

    def test_stranger_who_writes_capabilities(self):
        computes = self.lab.state.computes
        self.addCleanup(self.lab.wait_settled, self.nodes)
        known = {pool.uuid: pool.owner for pool in self._pools()}
        limit = 1 + max(collections.Counter(known.values()).values())
        for name in computes:
            self.addCleanup(self.lab.reconfigure, name, {})
            self.lab.reconfigure(name, {'ironic_ring': {
                'pools_limit': limit}})
        self.wait_for_passes(*computes)

        found = list(self.cloud.baremetal.nodes(details=True))
        owners = base.divide({node.id for node in found}, *computes)
        # Of each pool one node is left as it is.
        left = {(owners[node.id], node.resource_class, tuple(node.traits),
                 node.properties['capabilities']): node.id for node in found}
        strange = sorted(owners.keys() - set(left.values()))
        for number, node in enumerate(strange):
            self._write(node, f'mine:{number}')
        # Not all of them count yet.
        self.addCleanup(self._wait_available)
        made = collections.Counter(known.values())
        most = {name: min(limit, made[name] + sum(
            owners[node] == name for node in strange)) for name in computes}
        self.assertLess(sum(most.values()), len(known) + len(strange))
        counted = {name: sum(owners[node] == name for node in left.values())
                   + most[name] - made[name] for name in computes}

        def is_so() -> bool:
            return {name: self._total(name) for name in computes} == counted

        self.lab.wait('Nodes of new kinds left out', is_so)
        self.wait_for_passes(*computes)
        self.assertTrue(is_so())
        now = {pool.uuid: pool.owner for pool in self._pools()}
        self.assertEqual(known.items(), known.items() & now.items())
        self.assertEqual(most, dict(collections.Counter(now.values())))
        self.assertIn('NODES_LEFT_OUT', [
            each['Code'] for each in json.loads(
                self.ring('check', '-f', 'json', status=1))])
        self.assertWhole(self.boot_active('beside-a-stranger'))

    def _restart(self, name: str, overrides: services.Sections) -> None:
        self.lab.configure_compute(name, overrides)
        self.lab.compute(name).kill()
        self.lab.start_compute(name)

    def test_node_deleted_in_ironic(self):
        before = self._shares()
        (extra,) = self.lab.enroll(1)
        self.lab.wait_settled(self.nodes + 1)
        self.cloud.baremetal.delete_node(extra)
        self.lab.wait('All as before', lambda: self._shares() == before)
        self.lab.wait_settled(self.nodes)
        self.assertEqual(self.nodes, sum(
            pool.total for pool in self._pools()))

    def test_takeover_between_two_passes(self):
        taker, dead = self.lab.state.computes
        # With this one, the taker stays in the ring while it is restarted.
        self.boot_active('of-the-taker', taker)
        server = self.boot_active('manageable', dead)
        self.addCleanup(self._restart, taker, {})
        self._restart(taker, {'DEFAULT': {'update_resources_interval': 3600}})
        before = self._total(taker)
        self.addCleanup(self.lab.start_compute, dead)
        self.addCleanup(self.force_down, dead, False)
        self.lab.compute(dead).kill()
        self.force_down(dead)
        self.lab.wait('The other service for the server', lambda: (
            self.show(server).compute_host == taker))
        self.wait_idle(server)
        self.assertWhole(server)
        self.assertReboots(server)
        # The free nodes of the dead one wait for a pass.
        self.assertEqual(before + 1, self._total(taker))

    def test_nodes_that_ironic_hides(self):
        one, _ = self.lab.state.computes
        server = self.boot_active('hidden', one)
        self.lab.wait_settled(self.nodes)
        before, total = self._shares(), self._total(one)
        allocations = self.allocations(server)
        nodes = {node.id for node in self.cloud.baremetal.nodes()}
        # More than can be believed deleted.
        hidden = {node for node, owner in base.divide(
            nodes, *self.lab.state.computes).items() if owner == one}
        with services.Ironic(self.lab.context).hidden(
                hidden | {self._node(server)}):
            self.lab.wait('Free nodes that are reserved', lambda: (
                self._shares().get(one, 0) <= 1))
            self._wait_pass()
            self.assertLessEqual(self._shares().get(one, 0), 1)
            self.assertEqual(total, self._total(one))
            self.assertEqual(allocations, self.allocations(server))
            self.assertEqual(one, self.show(server).compute_host)
        self.lab.wait('All as before', lambda: self._shares() == before)
        self.assertWhole(server)
        self.assertReboots(server)

    def test_few_nodes_that_ironic_hides(self):
        wanted = [self.boot_active(f'hidden-{name}', name)
                  for name in self.lab.state.computes]
        self.lab.wait_settled(self.nodes)
        before = self._shares()
        allocations = [self.allocations(server) for server in wanted]
        held = {self._node(server) for server in wanted}
        free = min({node.id for node in self.cloud.baremetal.nodes()} - held)
        with services.Ironic(self.lab.context).hidden({*held, free}):
            # Few enough to be believed deleted.
            self.lab.wait('The loss of the free node', lambda: (
                sum(pool.total for pool in self._pools()) == self.nodes - 1))
            self._wait_pass()
            # Those with servers go on to count.
            self.assertEqual(self.nodes - 1, sum(self._shares().values()))
            self.assertEqual(allocations, [
                self.allocations(server) for server in wanted])
            self.assertEqual(self.lab.state.computes, [
                self.show(server).compute_host for server in wanted])
        self.lab.wait('All as before', lambda: self._shares() == before)
        self.assertWhole(*wanted)
        for server in wanted:
            self.assertReboots(server)

    def _wait_pass(self) -> None:
        """Wait until each service has been through one pass more."""
        passes = self._last_passes()
        self.lab.wait('One pass more of each', lambda: all(
            at > passes[host] for host, at in self._last_passes().items()))

    def _last_passes(self) -> dict[str, str]:
        """Return when the last pass of each service was, as it says."""
        with self.lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute(
                'SELECT host, stats FROM compute_nodes WHERE deleted = 0 '
                f"AND hypervisor_hostname LIKE '%{member.SUFFIX}'")
            return {
                host: json.loads(json.loads(written)['ironic_ring:member'])
                .get('at', '') for host, written in cursor.fetchall()}

    def test_service_whose_passes_fail(self):
        failing, other = self.lab.state.computes
        before = self._shares()
        self.addCleanup(self._restart, failing, {})
        self.cut_off_ironic(failing, self._restart)
        self.lab.wait('All nodes with the other', lambda: (
            self._shares() == {other: self.nodes}))

        self._restart(failing, {})
        self.lab.wait('All as before', lambda: self._shares() == before)

    def _total(self, name: str) -> int:
        """Count the nodes in the pools of a service."""
        return sum(pool.total for pool in self._pools() if pool.owner == name)

    def _shares(self) -> dict[str, int]:
        """Count the nodes that can be built on or are, of each service."""
        return self.lab.shares()

    def _divided(self, *members: str) -> dict[str, int]:
        """Say how many nodes are for each, when these are the members."""
        return collections.Counter(base.divide(
            {node.id for node in self.cloud.baremetal.nodes()}, *members
        ).values())

    def assertDivided(self, *members: str) -> None:
        """See that the free nodes come to be divided among these."""
        expected = self._divided(*members)
        self.lab.wait(f'A ring of {", ".join(members)}: {expected}',
                      lambda: self._shares() == expected)

    def test_join_and_leave(self):
        two = list(self.lab.state.computes)
        newcomer = self.lab.next_name()
        self.lab.add_compute(newcomer)
        self.addCleanup(self.remove_compute, newcomer)
        self.lab.wait_alive(newcomer)
        self.lab.discover_hosts()
        self.assertDivided(*two, newcomer)
        server = self.boot_active('on-the-newcomer', newcomer)
        self.assertEqual(newcomer, server.compute_host)
        self.assertWhole(server)
        servers.delete(self.cloud, [server])
        self._wait_free()
        self.lab.compute(newcomer).stop()
        self.assertDivided(*two)

    def test_killed_and_started_again(self):
        one, two = self.lab.state.computes
        kept, forgotten = (
            self.boot_active(name, two) for name in ('kept', 'forgotten'))
        self.lab.compute(two).kill()
        self.addCleanup(self._start_if_down, two)
        self.lab.wait('All free nodes with the other', lambda: (
            self._shares().get(one) == self.nodes - 2))
        servers.delete(self.cloud, [forgotten])
        self.cloud.baremetal.set_node_power_state(
            self._node(kept), 'power off', wait=True)
        self.lab.start_compute(two)
        # It sees both as soon as it is there.
        self.lab.wait('The server that was switched off', lambda: (
            self.show(kept).status == 'SHUTOFF'))
        self.lab.wait('The node free', lambda: not list(
            self.cloud.baremetal.nodes(instance_id=forgotten.id)))
        self.assertReboots(kept)
        servers.delete(self.cloud, [kept])
        self._wait_free()
        self.assertDivided(one, two)

    def _start_if_down(self, name: str) -> None:
        if self.lab.compute(name).state == 'stopped':
            self.lab.start_compute(name)

    def test_builds_while_one_joins_and_another_is_disabled(self):
        one, second = self.lab.state.computes
        (service,) = self.cloud.compute.services(
            host=second, binary='nova-compute')
        started: list[sdk_server.Server] = []

        self.boot_more(started, 2)
        self.cloud.compute.disable_service(service)
        self.addCleanup(self.cloud.compute.enable_service, service)
        self.boot_more(started, 2)
        newcomer = self.lab.next_name()
        self.lab.add_compute(newcomer)
        self.addCleanup(self.remove_compute, newcomer)
        self.boot_more(started, 2)
        self.lab.wait_alive(newcomer)
        self.lab.discover_hosts()
        self.boot_more(started, 2)
        self.lab.wait('Nodes of the newcomer', lambda: (
            self._shares().get(newcomer)))
        self.boot_more(started, 2)
        built = [servers.wait_active(self.cloud, server)
                 for server in started]
        self.assertWhole(*built)
        self.assertEqual(10, len({self._node(server) for server in built}))
        self.assertLessEqual(
            {self.show(server).compute_host for server in built[4:]},
            {one, newcomer})
        servers.delete(self.cloud, built)

    def _follow(self) -> None:
        for name in self.lab.state.computes:
            self.lab.reconfigure(
                name, {'ironic_ring': {'instance_mobility': 'follow'}})
            self.addCleanup(self.lab.reconfigure, name, {})
        # It is in their records with their next passes.
        self.lab.wait('Services that say so', lambda: all(
            re.search(r'mobility\W+follow\b', stats)
            for stats in self._stats()))

    def _stats(self) -> list[str]:
        with self.lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute(
                'SELECT stats FROM compute_nodes WHERE deleted = 0 '
                f"AND hypervisor_hostname LIKE '%{member.SUFFIX}'")
            return [stats for stats, in cursor.fetchall()]

    def test_instances_that_follow(self):
        one, two = self.lab.state.computes
        # It builds on nodes of its own share first.
        server = self.boot_active('follows', two)
        self._follow()
        self.addCleanup(self.ring, 'undrain', two, '--yes')
        self.ring('drain', two, '--instances', '--yes')
        self.assertEqual(one, self.show(server).compute_host)
        self.assertWhole(server)
        self.assertReboots(server)
        self.ring('undrain', two, '--yes')
        self.lab.wait('The server back', lambda: (
            self.show(server).compute_host == two))
        self.assertWhole(server)
        self.assertReboots(server)
        self.lab.wait_settled(self.nodes)

    def test_command(self):
        one, two = self.lab.state.computes
        server = self.boot_active('moved', one)
        self.lab.wait_settled(self.nodes)
        node = self._node(server)
        shown = {line['Host']: line for line in self.read('show')}
        self.assertEqual(self._shares(), {
            host: line['Nodes'] for host, line in shown.items()})
        story = self.read('node', 'show', server.id)
        self.assertEqual(
            (node, one, self.show(server).hypervisor_hostname),
            (story['Node'], story['Owner'], story['Pool']))
        self.assertIn(server.id, story['Instance'])
        self.assertIn(server.id, {
            line['Server'] for line in self.read('history', node)})
        plan = {line['Host']: line['Nodes after']
                for line in self.read('plan', '--remove', one)}
        # The server fails over, and is no free node.
        self.assertEqual((0, self.nodes - 1), (plan[one], plan[two]))
        self.assertEqual('', self.ring('check').strip())

        self.ring('move', server.id, two, '--yes')
        self.assertEqual(two, self.show(server).compute_host)
        self.assertEqual(node, self._node(server))
        self.assertWhole(server)
        self.assertReboots(server)
        self.lab.wait('All well', lambda: not self.ring(
            'check').strip())
        servers.delete(self.cloud, [server])
        self._wait_free()

    def _change(self, driver: str, *kept: sdk_server.Server
                ) -> list[sdk_server.Server]:
        """Have all services change the driver, one after the other.

        :param driver: what nova.conf is to say as ``compute_driver``
        :param kept: servers that have to be whole after each change
        :returns: what was built while services of both kinds were there
        """
        built: list[sdk_server.Server] = []
        for name in self.lab.state.computes:
            self.lab.compute(name).stop()
            self.lab.configure_compute(
                name, {'DEFAULT': {'compute_driver': driver}})
            self.lab.start_compute(name)
            # It arrives while nodes and servers are on their way.
            arriving = self.boot(f'while-{name}-changes')
            self.lab.wait(f'All nodes with {name} changed', lambda: (
                self._has_changed(name, driver, (*kept, *built))))
            built.append(servers.wait_active(self.cloud, arriving))
            # Until the last one has changed, there are both drivers.
            built.append(self.boot_active(f'after-{name}-has-changed'))
            self.assertWhole(*kept, *built)
        return built

    def _has_changed(self, name: str, driver: str,
                     kept: tuple[sdk_server.Server, ...]) -> bool:
        """Say whether nothing is with a service as it was before."""
        for server in kept:
            now = self.show(server)
            self.assertEqual('ACTIVE', now.status)
            if now.compute_host == name and (
                    pools.is_pool(now.hypervisor_hostname)
                    != (driver == lab_state.POOL_DRIVER)):
                return False
        found = self._find()
        left = (found.owners.values() if driver == lab_state.POOL_DRIVER
                else [owner for owner, *_ in found.pools.values()])
        return name not in left and (
            found.providers == {*found.owners, *found.pools}
        ) and self.lab.is_settled(self.nodes)

    def test_change_of_drivers_and_back(self):
        kept, other = (self.boot_active(name) for name in ('kept', 'other'))
        before = self._node(kept)
        built = self._change(lab_state.RING_DRIVER, kept, other)
        self.assertEqual([], self._pools())
        self.assertEqual(self.nodes, len(self.lab.owners()))
        self.assertReboots(kept)
        servers.delete(self.cloud, [other, *built])

        new = self.boot_active('new')
        built = self._change(lab_state.POOL_DRIVER, kept, new)
        self.assertEqual({}, self.lab.owners())
        for server in kept, new, built[0]:
            self.assertReboots(server)
        self.assertEqual(before, self._node(kept))
        servers.delete(self.cloud, [kept, new, *built])
        self._wait_free()


class WorkUnderWayTestCase(test_failover.WorkUnderWayTestCase):

    KIND = _KIND


class WaitingBuildsTestCase(test_builds.WaitingBuildsTestCase):

    KIND = _KIND
    # Some nodes are left over, as with records of nodes.
    SERVERS = 9


class SilenceTestCase(test_failover.SilenceTestCase):

    KIND = _KIND


class StartTestCase(test_start.RingTestCase):

    KIND = _KIND


class AloneTestCase(test_start.AloneTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=1, nodes=4)


class PlanTestCase(test_plan.PlanTestCase):

    KIND = _KIND
    DECISIONS = 'COUNT', 'COUNT'

    def _free(self, instances: collections.Counter[str]
              ) -> collections.Counter[str]:
        return collections.Counter(self.lab.shares()) - instances

    def _owners(self) -> dict[str, str]:
        return base.divide({node.id for node in self.cloud.baremetal.nodes()},
                           *self.lab.state.computes)


class ServicesTestCase(test_command.ServicesTestCase):

    KIND = _KIND
    REPORTED = '      free = '


class PartitioningTestCase(test_partitioning.PartitioningTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=0, nodes=0,
                     groups=test_partitioning.PartitioningTestCase.KIND.groups)

    def _without_service(self, group: str, owners: dict[str, str]
                         ) -> dict[str, str]:
        # They have no records, and nobody counts them.
        return {node: owner for node, owner in owners.items()
                if node not in self.by_group[group]}


class ShardsTestCase(test_partitioning.ShardsTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=0, nodes=0)


class ListingTestCase(test_partitioning.ListingTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=3, nodes=16)
    # Its record has stayed, and says what it held when it died.
    RETURNED = 5, 6

    def _said(self) -> dict[str, dict[str, str]]:
        """Return what the member record of each service says."""
        with self.lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute(
                'SELECT host, stats FROM compute_nodes WHERE deleted = 0 '
                f"AND hypervisor_hostname LIKE '%{member.SUFFIX}'")
            return {host: json.loads(said)
                    for host, said in cursor.fetchall()}

    def _owners(self) -> dict[str, str]:
        # What one says that is dead counts for nobody.
        living = self.lab.shares()
        codes = {shards.code(shard): node
                 for shard, node in self.by_shard.items()}
        return {codes[code]: host for host, said in self._said().items()
                if host in living
                for code in stats.read_member(said, host).held}

    def assertWith(self, node: str, other: str) -> None:
        # The records of pools do not name a free node.
        self.lab.wait('All nodes in the pools', lambda: (
            sum(self._counts(self.lab)) == len(self.by_shard)))

    def assertListed(self, name: str, count: int) -> None:
        found = stats.read_count(self._said()[name], name)
        self.assertEqual(count, found and found.listed)
