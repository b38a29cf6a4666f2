# SPDX-License-Identifier: Apache-2.0

"""The command, as an operator uses it on a real cloud."""

import collections
import json
from typing import ClassVar
import uuid

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.lab import servers
from nova_ironic_ring.tests.functional import base


class _CommandTestCase(base.LabTestCase):

    def _ring(self) -> dict[str, tuple[int, int]]:
        """Return what each has and is to have, without the command."""
        return {member.host: (member.owned, member.desired)
                for member in self.lab.ring()}

    def _shown(self) -> dict[str, tuple[int, int]]:
        """Return what the command says of the same."""
        return {line['Host']: (line['Nodes'], line['Desired'])
                for line in self.read('show')}


class AllocationsTestCase(base.LabTestCase):
    """What "check" says of allocations, and what it advises."""

    def setUp(self):
        super().setUp()
        # Nodes come into their aggregates a pass later.
        self.lab.wait('Nothing to find', lambda: not self._run(
            *self.lab.nova.ring, 'check').returncode)

    def assertFinds(self, *expected: tuple[str, str]) -> None:
        """See what is found: codes and subjects."""
        self.assertEqual(list(expected), [
            (found['Code'], found['Subject']) for found in self.read(
                'check', status=int(bool(expected)))])

    def _inventory(self, node: str) -> dict:
        (found,) = self.cloud.placement.get(
            f'/resource_providers/{node}/inventories'
        ).json()['inventories'].items()
        return {'class': found[0], **found[1]}

    def test_server_without_an_allocation(self):
        server = self.boot_active('without-allocation')
        node = self.node_of(server).id
        self.wait_idle(server)
        self.lab.wait('A node that is reserved', lambda: (
            self._inventory(node)['reserved'] == 1))
        self.assertFinds()
        held = self.allocations(server)
        self.cloud.placement.delete(f'/allocations/{server.id}')
        self.assertFinds(('INSTANCE_WITHOUT_ALLOCATION', server.id))
        heal = (*self.lab.nova.manage, 'placement', 'heal_allocations',
                '--instance', server.id)
        self.assertIn('Failed to update allocations', self._run(*heal).stdout)
        self.assertEqual({}, self.allocations(server))
        now = self._inventory(node)
        provider = self.cloud.placement.get(
            f'/resource_providers/{node}').json()
        self.cloud.placement.put(
            f'/resource_providers/{node}/inventories/{now.pop("class")}',
            json={**now, 'reserved': 0, 'resource_provider_generation':
                  provider['generation']}).raise_for_status()
        self.run_program(*heal)
        self.assertEqual(held, self.allocations(server))
        self.assertFinds()
        servers.delete(self.cloud, [server])

    def test_allocation_that_is_left(self):
        node, consumer = min(self.lab.owners()), str(uuid.uuid4())
        url = f'/allocations/{consumer}'
        self.addCleanup(self.cloud.placement.delete, url)
        self.cloud.placement.put(url, microversion='1.28', json={
            'allocations': {node: {'resources': {
                self._inventory(node)['class']: 1}}},
            'project_id': uuid.uuid4().hex, 'user_id': uuid.uuid4().hex,
            'consumer_generation': None}).raise_for_status()
        self.assertFinds(('ALLOCATION_LEFT', node))
        self.cloud.placement.delete(url)
        self.assertFinds()

    def test_node_without_a_resource_class(self):
        node, owner = min(self.lab.owners().items())
        baremetal = self.lab.connect('lab-system').baremetal
        usual = baremetal.get_node(node).resource_class
        log = self.lab.compute(owner).log
        before = len(log.read_text())
        self.addCleanup(baremetal.update_node, node, resource_class=usual)
        baremetal.update_node(node, resource_class=None)
        self.lab.wait('No inventory', lambda: not self.cloud.placement.get(
            f'/resource_providers/{node}/inventories').json()['inventories'])
        self.wait_for_passes(owner)
        self.assertFinds(('NODE_WITHOUT_CLASS', node))
        said = log.read_text()[before:]
        self.assertEqual(1, said.count('has no resource class in Ironic'))
        self.assertNotIn('Error updating resources for node', said)
        baremetal.update_node(node, resource_class=usual)
        self.lab.wait('Its inventory', lambda: self.cloud.placement.get(
            f'/resource_providers/{node}/inventories').json()['inventories'])


class CommandTestCase(_CommandTestCase):

    def test_what_it_shows(self):
        self.assertEqual(self._ring(), self._shown())
        # One node of each.
        by_owner = {owner: node for node, owner in self.lab.owners().items()}
        self.assertEqual({'compute-1', 'compute-2', 'compute-3'},
                         set(by_owner))
        for owner, node in by_owner.items():
            story = self.read('node', 'show', node)
            self.assertEqual(owner, story['Owner'])
            self.assertEqual(f'{owner}: KEEP', story['Decision'])
        self.assertEqual(self.lab.owners(), {
            line['Node']: line['Owner'] for line in self.read('node', 'list')})
        plan = self.read('plan', '--remove', 'compute-1')
        self.assertEqual(
            {member.host: member.desired for member in self.lab.ring()},
            {line['Host']: line['Nodes'] for line in plan})
        after = collections.Counter(base.divide(
            set(self.lab.owners()), 'compute-2', 'compute-3').values())
        self.assertEqual({'compute-1': 0, **after}, {
            line['Host']: line['Nodes after'] for line in plan})
        self.assertEqual('', self.ring('check').strip())
        self.assertIn('Result: Success', self.ring('upgrade', 'check'))

    def _shards(self) -> dict[str | None, int]:
        """Count the nodes of each shard."""
        return dict(collections.Counter(
            node.shard for node in self.system.nodes(
                details=True)))

    def test_shards(self):
        self.system = self.lab.connect('lab-system').baremetal
        shards = [f'ironic-ring-00{number}' for number in (1, 2, 3, 4)]
        owners = self.lab.owners()
        plan = self.read('plan', '--listing', 'shards', '--shards', '4')
        self.assertEqual([15] * 3, [line['Listed'] for line in plan])
        self.assertEqual(15, sum(line['Listed after'] for line in plan))
        self.assertRefuses('2 shards are fewer than the 3 services',
                           *self.lab.nova.ring, 'shard', '--shards', '2',
                           '--yes')
        # The lab's Nova has an account as any other Nova.
        self.assertRefuses("Ironic does not let Nova's account set",
                           *self.lab.nova.ring, 'shard', '--shards', '4',
                           '--yes')
        self.assertEqual({None: 15}, self._shards())

        change = ('shard', '--os-cloud', 'lab-system', '--yes')
        self.addCleanup(self.ring, *change, '--clear')
        done = self.read(*change, '--shards', '4')
        self.assertEqual(
            [('SET_SHARD', shard, 'DONE') for shard in shards],
            [(step['Action'], step['Subject'], step['Result code'])
             for step in done])
        self.assertEqual(dict(zip(shards, (4, 4, 4, 3))), self._shards())
        self.assertEqual([], self.read(*change))
        # As after a new one was enrolled; and one is for something else.
        first, second = sorted(owners)[:2]
        self.system.update_node(first, shard=None)
        self.system.update_node(second, shard='rack-1')
        self.addCleanup(self.system.update_node, second, shard=None)
        (step,) = self.read(*change)
        self.assertEqual('SET_SHARD', step['Action'])
        self.assertEqual({'rack-1': 1}.items(), self._shards().items() & {
            'rack-1': 1}.items())
        self.assertNotIn(None, self._shards())
        self.ring(*change, '--clear')
        self.assertEqual({None: 14, 'rack-1': 1}, self._shards())
        # Nobody divides nodes by their shards.
        self.assertEqual(owners, self.lab.owners())

    def test_leftovers(self):
        provider = str(uuid.uuid4())
        self.cloud.placement.post('/resource_providers', json={
            'uuid': provider, 'name': provider}, microversion='1.20')
        (found,) = json.loads(self.ring('check', '-f', 'json', status=1))
        self.assertEqual(('providers', provider),
                         (found['Check'], found['Subject']))
        self.ring('clean', 'providers', '--yes')
        self.assertEqual('', self.ring('check').strip())

        (node,) = self.lab.enroll(1)
        self.lab.wait_settled(self.nodes + 1)
        owner = self.lab.owners()[node]
        self.lab.compute(owner).stop()
        self.addCleanup(self.lab.start_compute, owner)
        # The others would clean up as well, in time.
        with self.frozen(*set(self.lab.state.computes) - {owner}):
            self.cloud.baremetal.delete_node(node)
            kinds = {(line['Check'], line['Subject']) for line in json.loads(
                self.ring('check', '-f', 'json', status=1))}
            self.assertIn(('rows', node), kinds)
            self.ring('clean', 'rows', '--yes')
            self.assertNotIn(node, self.lab.owners())
            self.assertNotIn(node, self.providers())

    def test_what_cannot_be_reached(self):
        common = str(self.lab.nova.common)
        self.assertRefuses('nova.conf cannot be read', 'nova-ironic-ring',
                           '--config-file', '/nowhere', 'show')
        self.assertRefuses('see [api_database] connection',
                           'nova-ironic-ring', '--config-file', common, 'show')
        self.assertRefuses('nowhere', *self.lab.nova.ring, 'node', 'show',
                           'nowhere')


class ServicesTestCase(_CommandTestCase):
    """What it does with services, and with what they have."""

    #: Stands in the report, and tells what has come of the last pass.
    REPORTED: ClassVar[str] = '    KEEP = '

    def test_drain_and_undrain(self):
        before = self._ring()
        drained = self.lab.state.computes[1]

        def service():
            (found,) = self.cloud.compute.services(
                host=drained, binary='nova-compute')
            return found

        self.addCleanup(lambda: self.cloud.compute.enable_service(service()))
        self.ring('drain', drained, '--yes')
        self.assertEqual((0, 0), self._shown()[drained])
        self.assertNotIn(drained, self.lab.shares())
        # As Nova's API does, so that nothing is scheduled to it.
        self.assertEqual('disabled', service().status)
        self.ring('undrain', drained, '--yes')
        self.assertEqual('enabled', service().status)
        # Not between what the command shows.
        log = self.lab.state.directory / 'log' / 'nova-ironic-ring.log'
        for begun in f' drain {drained} --yes', f' undrain {drained} --yes':
            self.assertTrue(any('COMMAND_BEGUN' in line and begun in line
                                for line in log.read_text().splitlines()))
        self.lab.wait('All as before', lambda: self._ring() == before)

    def assertIsWith(self, host: str, server: sdk_server.Server) -> None:
        """See that a service has a server, with all that belongs to it."""
        now = self.show(server)
        self.assertEqual(host, now.compute_host)
        self.assertTrue(self.has_place(now), (
            now.hypervisor_hostname, self.allocations(now)))

    def test_move_and_failover(self):
        first, *_, last = self.lab.state.computes
        server = self.boot_active('moved', first)
        node = self.node_of(server).id
        self.ring('move', node[:13], last, '--yes', '--reason', 'a new rack')
        self.assertIsWith(last, server)
        self.assertReboots(server)
        (moved,) = self.ring_actions(server)
        self.assertEqual(
            ('ironic_ring_move', first, last, 'a new rack'),
            (moved['action'], *(moved['ironic_ring_move'][name]
                                for name in ('from', 'to', 'reason'))))
        self.assertIn(
            '--reason', moved['ironic_ring_move']['by']['arguments'])
        self.assertEqual(
            [('SERVER_CREATED', '', ''),
             ('INSTANCE_MOVED', first, last)],
            self._history(server.id))

        self.addCleanup(self.lab.start_compute, last)
        self.addCleanup(self.force_down, last, False)
        self.lab.compute(last).kill()
        self.ring('failover', last, '--alive', '--yes', '--reason', 'smoke')
        # The node goes to whom the ring maps it now.
        taker = base.divide([node], *self.lab.state.computes[:-1])[node]
        self.assertIsWith(taker, server)
        self.assertNotIn(last, self.lab.shares())

        # The service that takes it says so where it was asked for.
        self.lab.wait('The action of the failover', lambda: (
            'ironic_ring_failover' in self.ring_actions(server)[-1]))
        _, failover = self.ring_actions(server)
        self.assertEqual('smoke', failover['ironic_ring_asked']['reason'])
        self.assertEqual(
            (taker, last, 'FORCED_DOWN'),
            tuple(failover['ironic_ring_failover'][name]
                  for name in ('host', 'from', 'reason')))
        self.assertEqual(
            [('INSTANCE_MOVED', first, last),
             ('SERVICE_FORCED_DOWN', last, ''),
             ('INSTANCE_FAILED_OVER', last, taker)],
            [line for line in self._history(node)
             if line[0] not in ('SERVER_CREATED', 'RECORD_CREATED')][-3:])
        self.assertIn(('INSTANCE_FAILED_OVER', last, taker),
                      self._history(last))

        # It stays without nodes until somebody says that it is well.
        self.lab.start_compute(last)
        self.assertIn(('FORCED_DOWN_AND_ALIVE', last), [
            (line['Code'], line['Subject'])
            for line in self.read('check', status=1)])
        self.force_down(last, False)
        self.lab.wait_settled(self.nodes)
        self.assertEqual([], self.read('check'))

    def _history(self, name: str) -> list[tuple[str, str, str]]:
        """Return what has happened to what has a name, and from whom to whom.

        :param name: that of a node, a server or a service
        """
        return [(line['Event'], line['From'], line['To'])
                for line in self.read('history', name)]

    def test_guru_meditation_report(self):
        compute = self.lab.compute(self.lab.state.computes[1])
        wanted = (f'  {self.lab.state.computes[0]} = member',
                  '  trust = full', '  partitions = 32', self.REPORTED,
                  'another ring on = no service')

        def reported() -> bool:
            section = compute.log.read_text().rpartition('Ironic ring')[2]
            if all(line in section for line in wanted):
                return True
            # Once more: a machine that is busy makes a service trust less.
            compute.report()
            return False
        self.lab.wait(f'A report with {wanted}', reported, poll=2)

    def test_one_cell(self):
        self.assertEqual(self._ring(), {
            line['Host']: (line['Nodes'], line['Desired'])
            for line in self.read('--cell', 'cell1', 'show')})
        self.assertRefuses('There is no cell "elsewhere"', *self.lab.nova.ring,
                           '--cell', 'elsewhere', 'show')
