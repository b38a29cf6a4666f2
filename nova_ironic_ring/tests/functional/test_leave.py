# SPDX-License-Identifier: Apache-2.0

"""What doc/source/leave.rst has an operator do, step by step.

The way back to Nova's driver with several services is in test_ring.
"""

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.tests.functional import base

_STOCK: dict[str, object] = {'compute_driver': lab_state.STOCK_DRIVER}


class LeaveTestCase(base.LabTestCase):
    """A server is active all the time, and does what it is told to."""

    def setUp(self):
        super().setUp()
        # No more than this: what a test changes besides is its own to undo.
        self.addCleanup(self._start_anew)

    def _start_anew(self) -> None:
        """Have the lab's nova-computes again, and as they came up.

        All of them stand still meanwhile: with Nova's driver, and a shard
        each, they are no peers of each other.
        """
        names = [f'compute-{number + 1}'
                 for number in range(self.KIND.computes)]
        known = set(self.lab.state.computes)
        for name in known:
            self.lab.compute(name).stop()
        self._wait_available()
        system = self.lab.connect('lab-system').baremetal
        for node in system.nodes(details=True):
            if node.shard is not None:
                system.update_node(node, shard=None)
        for name in names:
            if name in known:
                self.lab.configure_compute(name, {})
                self.lab.compute(name).start()
            else:
                self.lab.add_compute(name)
        for name in names:
            self.lab.wait_alive(name)
        self.lab.discover_hosts()
        self.lab.wait_settled(self.nodes)

    def _wait_available(self) -> None:
        """Wait until Ironic has no server, and is at nothing."""
        self.lab.wait('All nodes available', lambda: all(
            node.instance_id is None and node.provision_state == 'available'
            for node in self.cloud.baremetal.nodes(details=True)))

    def _set_on_all(self, overrides: services.Sections) -> None:
        """Change all services by SIGHUP, and wait until they say so."""
        for name in self.lab.state.computes:
            self.lab.reconfigure(name, overrides)
        self.wait_for_passes(*self.lab.state.computes)

    def _restart(self, name: str, overrides: services.Sections) -> None:
        self.lab.compute(name).stop()
        self.lab.configure_compute(name, overrides)
        self.lab.start_compute(name)

    def assertIsWith(self, host: str, server: sdk_server.Server) -> None:
        """See that a server is active with a service, which tends it."""
        now = self.show(server)
        self.assertEqual(('ACTIVE', host), (now.status, now.compute_host))
        self.assertReboots(server)
        now = self.show(server)
        self.assertEqual(host, now.compute_host)
        self.assertTrue(self.has_place(now), (
            now.hypervisor_hostname, self.allocations(server)))

    def assertDeletes(self, server: sdk_server.Server) -> None:
        """See that nothing is left of a server that is deleted."""
        servers.delete(self.cloud, [server])
        self.wait_unallocated(server)
        self._wait_available()

    def test_to_one_service(self):
        stays, *others = self.lab.state.computes
        self.assertEqual([], self.read('check'))
        # Nova neither deletes the record of a service in an aggregate that
        # has no node, nor takes such a service out of the aggregate.
        for leaving in others:
            tenant.leave_aggregates(self.cloud, leaving)
        owners = self.lab.owners()
        # It has to move twice.
        after = base.divide(set(owners), stays, others[1])
        node = next(node for node, owner in owners.items()
                    if (owner, after[node]) == tuple(others))
        server = self.boot_active('moves-twice', others[0], node)
        # The one that stays has the zone still, and is the only one.
        self.assertEqual({'aggregates'}, {
            found['Check'] for found in self.read('check', status=1)})

        following = {'ironic_ring': {'instance_mobility': 'follow'}}
        self._set_on_all(following)
        for leaving, taker in zip(others, (others[1], stays)):
            self.ring('drain', leaving, '--instances', '--yes')
            self.assertNotIn(leaving, self.lab.owners().values())
            self.assertIsWith(taker, server)
            self.remove_compute(leaving)
            self.assertIsWith(taker, server)
        (line,) = self.read('show')
        self.assertEqual(
            (stays, 'MEMBER', self.nodes, self.nodes, 0, 1),
            tuple(line[name] for name in (
                'Host', 'State code', 'Nodes', 'Desired', 'To hand over',
                'Instances')))
        self.assertEqual([], self.read('check'))

        self._restart(stays, {'DEFAULT': _STOCK, **following})
        self._wait_stock(stays)
        self.assertEqual(dict.fromkeys(owners, stays), self.lab.owners())
        self.assertIsWith(stays, server)
        self.assertDeletes(server)
        self.assertIsWith(stays, self.boot_active('built-by-stock', stays))

    def _wait_stock(self, name: str) -> None:
        """Wait until a service has reported its nodes with Nova's driver."""
        self.lab.wait(f'A pass of {name} with Nova\'s driver', lambda: any(
            (line['Host'], line['State code'])
            == (name, 'MEMBER_THAT_SAYS_NOTHING')
            for line in self.read('show')), poll=2)

    def test_to_one_service_for_each_shard(self):
        computes = list(self.lab.state.computes)
        shards = {name: f'shard-{number + 1}'
                  for number, name in enumerate(computes)}
        owners = self.lab.owners()
        given = dict(zip(sorted(owners), self.nodes * tuple(shards.values())))
        # Of a service that is not to have its node.
        host, service = computes[1], computes[0]
        node = next(node for node, shard in given.items()
                    if shard == shards[service] and owners[node] == host)
        server = self.boot_active('changes-its-shard', host, node)
        self.assertEqual('', self.ring('check').strip())

        for shard in shards.values():
            self.run_program(
                'openstack', '--os-cloud', 'lab-system', 'baremetal', 'node',
                'set', '--shard', shard,
                *(node for node in given if given[node] == shard))
        mobility = {'ironic_ring': {'instance_mobility': 'failover'}}
        self._set_on_all(mobility)

        expected = {node: name for node, shard in given.items()
                    for name in computes if shards[name] == shard}
        done: set[str] = set()
        for name, shard in shards.items():
            self._restart(name, {'ironic': {'shard': shard}, **mobility})
            done.add(name)
            wanted = {each: name for each, name in expected.items()
                      if name in done and each != node}
            self.lab.wait(f'The free nodes of {shard} with {name}', lambda: (
                wanted.items() <= self.lab.owners().items()))
            self.assertIsWith(host, server)
        for name, shard in shards.items():
            for other in set(computes) - {name}:
                found = self.ring(
                    'node', 'list', '--shard', shard, '--owner', other, '-f',
                    'value', '-c', 'Node').split()
                self.assertEqual(
                    [node] if (name, other) == (service, host) else [], found)
                if found:
                    self.ring('move', '--yes', *found, name)
        self.assertIsWith(service, server)
        self.assertEqual(expected, self.lab.owners())
        lines = self.read('show')
        self.assertEqual(3, len({line['Ring'] for line in lines}))
        self.assertEqual([(name, 'MEMBER', 5, 0) for name in computes], [
            tuple(line[title] for title in (
                'Host', 'State code', 'Nodes', 'To hand over'))
            for line in sorted(lines, key=lambda line: line['Host'])])
        self.assertEqual([], self.read('node', 'list', '--shard', ''))
        self.assertEqual([], self.read('check'))

        for name, shard in shards.items():
            self._restart(name, {
                'DEFAULT': _STOCK, 'ironic': {'shard': shard}, **mobility})
            self._wait_stock(name)
            self.assertEqual(expected, self.lab.owners())
            self.assertIsWith(service, server)
        self.assertDeletes(server)
        self.assertIsWith(host, self.boot_active('built-by-stock', host))
