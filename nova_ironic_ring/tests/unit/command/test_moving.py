# SPDX-License-Identifier: Apache-2.0

"""Tests of what is moved, on a deployment that only answers."""

import dataclasses

import fixtures
from nova import exception
from nova import objects

from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES

INSTANCE = '11111111-1111-1111-1111-111111111111'


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
        self.busy: set[str] = set()

    def _instance(self, context, uuid, expected_attrs):
        found = self.source.seen.instances[uuid]
        return objects.Instance(
            uuid=INSTANCE, host=found.host, node=found.node,
            display_name=uuid)

    def _save(self, instance, expected_task_state):
        # It is moved only where nothing is being done with it.
        self.assertEqual([None], expected_task_state)
        if instance.display_name in self.busy:
            raise exception.UnexpectedTaskStateError(
                instance_uuid=instance.uuid, expected=[None],
                actual='rebooting')
        seen = self.give(
            self.source.seen, instance.display_name, instance.host)
        self.source.seen = dataclasses.replace(seen, rows={
            **seen.rows, instance.node: dataclasses.replace(
                seen.rows[instance.node], owner=instance.host)})

    def test_move(self):
        self.assertEqual(
            [('GIVE_INSTANCE', NODES[1], 'DONE'),
             ('WAIT_FOR_NODE', NODES[1], 'DONE')],
            self.run_steps('move', 'node-1', 'C', '--yes'))
        self.assertEqual('c', self.source.seen.rows[NODES[1]].owner)
        # The node alone is asked for, and what is written is what was read.
        self.assertEqual(['nova', NODES[1], 'nova', 'write', 'nova'],
                         self.source.asked)
        self.assertEqual(
            [('COMMAND_BEGUN',), ('INSTANCE_MOVED', NODES[1], 'b', 'c'),
             ('COMMAND_ENDED', 'DONE')], self.written())
        self.assertEqual([audit.Entry(
            audit.Code.INSTANCE_MOVED, 'controller', node=NODES[1],
            instance='instance-1', source='b', target='c',
            author=dataclasses.replace(
                self.author, arguments='move node-1 C --yes -f json'))],
            self.actions)
        self.run_command('move', 'node-1', 'c', '--yes')
        self.assertIn('There is nothing to do', self.err)
        self.assertEqual(3, len(self.written()))

    def test_move_goes_on_where_it_cannot_be_recorded(self):
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.trail.actions.record',
            side_effect=ValueError('no table')))
        self.run_command('move', 'node-1', 'c', '--yes')
        self.assertEqual('c', self.source.seen.rows[NODES[1]].owner)
        self.assertIn('The history of instance instance-1 in Nova lacks this: '
                      'no table\n', self.err)

    def test_move_of_many(self):
        self.source.seen = make(instances={1: 'b', 2: 'a', 3: 'c', 4: 'a'})
        done = [(action, NODES[number], 'DONE') for number in (1, 2)
                for action in ('GIVE_INSTANCE', 'WAIT_FOR_NODE')]
        # By name and by server; one of them twice, and one that is there.
        self.assertEqual(done, self.run_steps(
            'move', 'node-1', 'instance-2', NODES[1], 'node-3', 'c', '--yes'))
        self.assertEqual(
            {NODES[1]: 'c', NODES[2]: 'c', NODES[3]: 'c', NODES[4]: 'a'},
            {node: self.source.seen.rows[node].owner for node in NODES[1:5]})

    def test_move_of_many_of_which_one_cannot_be_moved(self):
        self.run_command('move', 'node-1', 'node-5', 'c', '--yes', status=2)
        self.assertEqual(f'Node {NODES[5]} has no instance: free nodes are '
                         'where the ring maps them, and would go back.\n',
                         self.err)
        self.assertEqual('b', self.source.seen.rows[NODES[1]].owner)

    def test_move_of_many_of_which_one_is_busy_by_now(self):
        self.busy = {'instance-1'}
        self.assertEqual(
            [('GIVE_INSTANCE', NODES[1], 'FAILED'),
             ('WAIT_FOR_NODE', NODES[1], 'NOT_DONE'),
             ('GIVE_INSTANCE', NODES[2], 'DONE'),
             ('WAIT_FOR_NODE', NODES[2], 'DONE')],
            self.run_steps('move', 'node-1', 'node-2', 'c', '--yes',
                           status=2))

    def test_busy_by_now(self):
        self.busy = {'instance-1'}
        self.assertEqual(
            [('GIVE_INSTANCE', NODES[1], 'FAILED'),
             ('WAIT_FOR_NODE', NODES[1], 'NOT_DONE')],
            self.run_steps('move', 'node-1', 'c', '--yes', status=2))
        self.assertIn('Something is being done with instance', self.err)
        self.assertEqual([('COMMAND_BEGUN',), ('COMMAND_ENDED', 'FAILED')],
                         self.written())

    def test_service_that_dies_before_the_answer(self):
        def die(seen):
            self.source.step = lambda seen: seen
            return dataclasses.replace(seen, services=[
                service('a'), service('b'), service('c', 61)])
        self.source.step = die
        table = self.run_command(
            'move', 'node-1', 'c', status=2, answer='y\n')
        self.assertIn('| failed', table)
        self.assertIn('The nova-compute on c is down', self.err)
        self.assertEqual('b', self.source.seen.instances['instance-1'].host)

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
                (('node-99', 'c'), 'Ironic has no node "node-99", and '
                 'none with such a server: give'),
                ((INSTANCE, 'c'), f'Ironic has no node "{INSTANCE}", and none '
                 'with such a server: give')):
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
