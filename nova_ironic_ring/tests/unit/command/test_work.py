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

"""Tests of what the command changes, on a deployment that only answers."""

import dataclasses

import fixtures
from nova import exception
from nova import objects

from nova_ironic_ring.command import errors
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core import profile
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES

INSTANCE = '11111111-1111-1111-1111-111111111111'


class DrainTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.source.step = self.divide

    def test_drain_and_undrain(self):
        self.run_command('drain', 'a', '--yes', '--reason', 'a fan')
        self.assertEqual([{'host': 'a', 'disabled': True,
                           'disabled_reason': 'a fan'}], self.saved)
        self.assertRegex(self.err, r'\[#{30}\] +\d+ s, 0 nodes of a to wait')
        self.assertNotIn('a', {row.owner
                               for row in self.source.seen.rows.values()})
        self.run_command('drain', 'a', '--yes')
        self.assertIn('There is nothing to do', self.err)

        self.source.step = self._let_join
        self.run_command('undrain', 'A', '--yes')
        self.assertIn('a', {row.owner
                            for row in self.source.seen.rows.values()})

    def _let_join(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Have a newcomer claim a node, by which its peers see it."""
        if not seen.service('a').record.disabled and not any(
                row.owner == 'a' for row in seen.rows.values()):
            return dataclasses.replace(seen, rows={
                **seen.rows, NODES[0]: dataclasses.replace(
                    seen.rows[NODES[0]], owner='a')})
        return self.divide(seen)

    def test_takes_too_long(self):
        self.source.step = lambda seen: seen
        self.run_command('drain', 'a', '--yes', '--timeout', '0', status=1)
        self.assertIn('This has not come about in 0 s', self.err)

    def test_nobody_would_take_them(self):
        self.source.seen = make(services=[
            service('a'), service('b', 61), service('c', disabled=True)])
        self.run_command('drain', 'a', '--yes', status=2)
        self.assertIn('nobody could take', self.err)

    def test_instances(self):
        self.source.seen = make(instances={1: 'a'})
        self.run_command('drain', 'a', '--instances', '--yes', status=2)
        self.assertIn('set [ironic_ring] instance_mobility = follow',
                      self.err)
        self.source.seen = make(instances={1: 'a'}, said=profile.Profile(
            mobility='follow'))
        self.run_command('drain', 'a', '--instances', '--dry-run')
        self.assertIn('* wait until its 1 instances are with others',
                      self.err)

    def test_one_that_somebody_has_disabled(self):
        self.source.seen = make(services=[
            service('a', disabled=True, reason='bad RAM'), service('b'),
            service('c')])
        self.run_command('drain', 'a', '--yes')
        self.assertEqual([], self.saved)
        self.assertNotIn('a', {row.owner
                               for row in self.source.seen.rows.values()})

    def test_what_cannot_be_reached_meanwhile(self):
        looks = []

        def look(seen):
            looks.append(seen)
            if len(looks) == 4:
                raise errors.CommandError('Ironic is away.')
            return self.divide(seen)
        self.source.step = look
        self.run_command('drain', 'a', '--yes')
        self.assertIn('Ironic is away.', self.err)
        self.assertGreater(len(looks), 4)

    def test_undrain_of_the_dead(self):
        self.source.seen = make(services=[
            service('a', 61, disabled=True), service('b')])
        self.run_command('undrain', 'a', '--yes', status=2)
        self.assertIn('The nova-compute on a is down: start it', self.err)


class FailoverTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.source.step = self.divide
        self.source.seen = make(instances={1: 'b', 2: 'b'}, services=[
            service('a'), service('b', 61), service('c')])

    def test_failover(self):
        self.run_command('failover', 'b', '--yes')
        self.assertEqual([{'host': 'b', 'forced_down': True}], self.saved)
        self.assertNotIn('ALIVE', self.err)
        self.assertEqual({'a', 'c'}, {
            each.host for each in self.source.seen.instances.values()}
            | {'a', 'c'})
        self.assertIn('openstack compute service set --up b', self.err)

    def test_of_one_that_lives(self):
        self.source.seen = make()
        self.run_command('failover', 'b', '--yes', status=2)
        self.assertIn('The nova-compute on b is alive', self.err)
        self.assertEqual([], self.saved)
        self.run_command('failover', 'b', '--alive', '--yes')
        self.assertEqual(1, len(self.saved))

    def test_nobody_would_take_over(self):
        self.source.seen = make(instances={1: 'b'}, services=[
            service('a'), service('b', 61), service('c')],
            said=profile.Profile(mobility='pinned'))
        self.run_command('failover', 'b', '--yes', status=2)
        self.assertIn('a, c would not take over instances', self.err)
        self.source.seen = make('a', 'b', services=[
            service('a', 61), service('b', 61)])
        self.run_command('failover', 'b', '--yes', status=2)
        self.assertIn('nobody could take over from it', self.err)


class MoveTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.source.seen = make(instances={1: 'b', 2: 'a'})
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'get_by_uuid', side_effect=self._instance))
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'save', autospec=True, side_effect=self._save))
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all_by_host',
            side_effect=lambda context, host: [objects.ComputeNode(
                host=host, hypervisor_type=self.hypervisor)]))
        self.hypervisor = 'ironic'
        self.is_busy = False

    def _instance(self, context, uuid, expected_attrs):
        found = self.source.seen.instances[uuid]
        return objects.Instance(
            uuid=INSTANCE, host=found.host, node=found.node,
            display_name=uuid)

    def _save(self, instance, expected_task_state):
        # It is moved only where nothing is being done with it.
        self.assertEqual([None], expected_task_state)
        if self.is_busy:
            raise exception.UnexpectedTaskStateError(
                instance_uuid=instance.uuid, expected=[None],
                actual='rebooting')
        seen = self.give(
            self.source.seen, instance.display_name, instance.host)
        self.source.seen = dataclasses.replace(seen, rows={
            **seen.rows, instance.node: dataclasses.replace(
                seen.rows[instance.node], owner=instance.host)})

    def test_move(self):
        self.run_command('move', 'node-1', 'C', '--yes')
        self.assertEqual('c', self.source.seen.rows[NODES[1]].owner)
        self.run_command('move', 'node-1', 'c', '--yes')
        self.assertIn('There is nothing to do', self.err)

    def test_busy_by_now(self):
        self.is_busy = True
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('Something is being done with instance', self.err)

    def test_what_cannot_be_moved(self):
        busy = dataclasses.replace(
            self.source.seen.instances['instance-2'], task='rebooting')
        self.source.seen = dataclasses.replace(
            self.source.seen, instances={
                **self.source.seen.instances, 'instance-2': busy})
        for arguments, message in (
                (('node-3', 'c'), 'has no instance: free nodes are where'),
                (('node-2', 'c'), 'Something is being done with instance'),
                (('node-1', 'x'), 'There is no nova-compute on "x"'),
                (('node-99', 'c'), 'Ironic has no node "node-99"')):
            self.run_command('move', *arguments, '--yes', status=2)
            self.assertIn(message, self.err)

    def test_what_nova_has_elsewhere(self):
        seen = self.source.seen
        self.source.seen = dataclasses.replace(seen, instances={
            **seen.instances, 'instance-1': dataclasses.replace(
                seen.instances['instance-1'], node='kvm-1')})
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('and Nova has it on kvm-1', self.err)

    def test_what_is_of_a_host_with_another_hypervisor(self):
        self.hypervisor = 'QEMU'
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('b has nodes that are not of Ironic', self.err)

    def test_where_it_cannot_go(self):
        self.source.seen = dataclasses.replace(self.source.seen, services=[
            service('a'), service('b'), service('c', 61)])
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('The nova-compute on c is down', self.err)
        self.source.seen = make(instances={1: 'b'}, said=profile.Profile(
            mobility='follow'))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('and would go back', self.err)


class CleanTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        nodes = dict(self.source.seen.nodes)
        del nodes[NODES[3]]
        self.source.seen = dataclasses.replace(self.source.seen, nodes=nodes)
        self.rows: list[str] = []
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all_by_uuids',
            side_effect=lambda context, uuids: [
                objects.ComputeNode(uuid=uuid) for uuid in uuids]))
        self.destroy = self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNode, 'destroy', autospec=True,
            side_effect=lambda row: self.rows.append(row.uuid))).mock

    def test_rows(self):
        self.run_command('clean', 'rows', '--dry-run')
        self.assertEqual([], self.rows)
        self.assertIn(f'* delete the row of node {NODES[3]}', self.err)
        self.run_command('clean', 'rows', '--yes')
        self.assertEqual([NODES[3]], self.rows)
        self.assertEqual([NODES[3]], self.source.deleted)

    def test_providers(self):
        self.run_command('clean', 'providers', '--yes')
        self.assertIn('There is nothing to do', self.err)
        rows = dict(self.source.seen.rows)
        del rows[NODES[3]]
        self.source.seen = dataclasses.replace(self.source.seen, rows=rows)
        self.run_command('clean', 'providers', '--yes')
        self.assertEqual([NODES[3]], self.source.deleted)
        self.assertEqual([], self.rows)

    def test_node_that_is_back(self):
        self.source.enrolled = {NODES[3]}
        self.run_command('clean', 'rows', '--yes', status=1)
        self.assertEqual([], self.rows)
        self.assertIn('is in Ironic: nothing of it is removed', self.err)

    def test_too_many(self):
        self.source.seen = dataclasses.replace(self.source.seen, nodes={})
        for kind in 'rows', 'providers':
            self.run_command('clean', kind, '--yes', status=2)
            self.assertIn('may see all nodes', self.err)
            self.source.seen = dataclasses.replace(self.source.seen, rows={})
        self.assertEqual([], self.source.deleted + self.rows)

    def test_row_that_its_service_has_removed(self):
        looks = []

        def look(seen):
            looks.append(seen)
            return dataclasses.replace(seen, rows={}) if (
                len(looks) == 1) else seen
        self.source.step = look
        self.run_command('clean', 'rows', '--yes')
        self.assertEqual([], self.rows)

    def test_row_that_another_has_by_now(self):
        self.destroy.side_effect = exception.ObjectActionError(
            action='destroy', reason='host changed')
        self.run_command('clean', 'rows', '--yes', status=1)
        self.assertIn('host changed', self.err)
