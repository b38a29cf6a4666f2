# SPDX-License-Identifier: Apache-2.0

"""Tests of what is looked at when a soak ends."""

import collections
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring_tools.soak import end


class EndTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.servers = [mock.Mock(id='a', task_state=None)]
        self.world = mock.Mock(servers=lambda: list(self.servers))
        self.ironic = self.world.system.baremetal
        self.ironic.nodes.return_value = []
        self.cinder = self.world.link.block_storage
        self.cinder.volumes.return_value = []
        self.cinder.attachments.return_value = []
        self.delete = self.world.link.compute.delete_server
        self.refused = collections.Counter()
        for name in '_servers', '_records':
            self.useFixture(fixtures.MockPatchObject(
                end, name, lambda world: iter(())))
        self.useFixture(fixtures.MockPatchObject(
            end, '_emptiness', lambda world: (
                f'{each.id} is left' for each in world.servers())))
        self.useFixture(fixtures.MockPatchObject(
            end.operators, 'wait',
            lambda done, patience: any(done() for _ in range(9))))

    def test_delete(self):
        self.delete.side_effect = self.servers.remove
        self.assertEqual([], end.complaints(self.world, self.refused))
        self.assertEqual(collections.Counter(), self.refused)

    def test_delete_that_is_under_way(self):
        def begin(server):
            server.task_state = 'deleting'
        self.delete.side_effect = begin
        self.assertEqual(['a is left'],
                         end.complaints(self.world, self.refused))
        self.delete.assert_called_once()

    def test_delete_that_fails(self):
        self.assertEqual(['a is left'],
                         end.complaints(self.world, self.refused))
        self.assertEqual(3, self.delete.call_count)
        self.assertEqual({'last delete': 2}, self.refused)

    def test_nodes_that_ironic_could_not_undeploy(self):
        self.servers.clear()
        self.ironic.nodes.side_effect = [
            [mock.Mock(id='used', instance_id='a'),
             mock.Mock(id='left', instance_id=None)], []]
        self.ironic.volume_targets.return_value = ['target']
        self.assertEqual([], end.complaints(self.world, self.refused))
        self.ironic.delete_volume_target.assert_called_once_with('target')
        self.ironic.set_node_provision_state.assert_called_once_with(
            'left', 'deleted')
        self.assertEqual({'undeploy': 1}, self.refused)

    def test_volumes_that_deletes_have_left(self):
        kept = self.servers[0]
        kept.task_state = 'deleting'
        self.cinder.volumes.return_value = [
            mock.Mock(id=name, status=status) for name, status in (
                ('used', 'in-use'), ('kept', 'attaching'),
                ('left', 'attaching'), ('again', 'reserved'))]
        left = mock.Mock(volume_id='left', instance='gone')
        again = mock.Mock(volume_id='again', instance='gone')
        attachments = [
            mock.Mock(volume_id='used', instance='gone'),
            mock.Mock(volume_id='kept', instance=kept.id), left, again]
        self.cinder.attachments.return_value = attachments
        self.cinder.delete_attachment.side_effect = attachments.remove
        end.complaints(self.world, self.refused)
        self.assertEqual(
            [mock.call(left), mock.call(again)],
            self.cinder.delete_attachment.call_args_list)
        self.assertEqual({'free volume': 2}, self.refused)


class UsableTestCase(base.BaseTestCase):

    def test_nodes_that_can_have_a_server(self):
        states = ['available', 'error', 'available', 'active', 'available']
        nodes = [mock.Mock(conductor_group='rack-a', provision_state=state,
                           instance_id='a' if state == 'active' else None)
                 for state in states]
        nodes[0].conductor_group = 'rack-b'
        world = mock.Mock(servers=lambda: [
            mock.Mock(status='ACTIVE', compute_host='compute-1'),
            mock.Mock(status='ERROR', compute_host='compute-1'),
            mock.Mock(status='ACTIVE', compute_host='compute-3')])
        self.assertEqual(3, end._usable(world, 'rack-a', nodes))
        self.assertEqual(2, end._usable(world, 'rack-b', nodes))
