# SPDX-License-Identifier: Apache-2.0

"""Tests of what is removed, on a deployment that only answers."""

import dataclasses
import json

import fixtures
from nova import exception
from nova import objects

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

NODES = deployment.NODES


class CleanTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        nodes = dict(self.source.seen.nodes)
        del nodes[NODES[3]]
        self.source.seen = dataclasses.replace(self.source.seen, nodes=nodes)
        self.owner = self.source.seen.rows[NODES[3]].owner
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
        self.assertEqual(
            [('COMMAND_BEGUN',), ('RECORD_REMOVED', NODES[3], self.owner),
             ('COMMAND_ENDED', 'DONE')], self.written())

    def test_row_of_a_node_with_a_server(self):
        self.source.seen = dataclasses.replace(
            self.source.seen, instances=deployment.make(
                instances={3: 'a'}).instances)
        self.run_command('clean', 'rows', '--yes', status=2)
        self.assertEqual([], self.rows + self.source.deleted)
        self.assertIn('delete the server', self.err)
        said = self.run_command('check', status=1)
        self.assertNotIn('clean rows', said + self.err)

    def test_cell_with_an_ironic_of_its_own(self):
        seen = self.source.seen
        self.source.seen = dataclasses.replace(seen, rows={
            **seen.rows, NODES[3]: dataclasses.replace(
                seen.rows[NODES[3]], cell='cell2')})
        self.run_command('clean', 'rows', '--yes', status=2)
        self.assertEqual([], self.rows + self.source.deleted)
        self.assertIn('none of the nodes that cell cell2 has', self.err)

    def test_what_is_not_known(self):
        for unread, message in (
                ({'cell2': 'Cell cell2 is away.'}, 'Cell cell2 is away.'),
                ({'cell2': ''}, 'Leave out --cell')):
            self.source.seen = dataclasses.replace(
                self.source.seen, unread=unread)
            self.run_command('clean', 'rows', '--yes', status=2)
            self.assertIn(message, self.err)
        self.assertEqual([], self.rows)

    def test_providers(self):
        self.run_command('clean', 'providers', '--yes')
        self.assertIn('There is nothing to do', self.err)
        rows = dict(self.source.seen.rows)
        del rows[NODES[3]]
        self.source.seen = dataclasses.replace(self.source.seen, rows=rows)
        self.assertEqual(
            [('DELETE_PROVIDER', NODES[3], 'DONE')],
            self.run_steps('clean', 'providers', '--yes'))
        self.assertEqual([NODES[3]], self.source.deleted)
        self.assertEqual([], self.rows)
        self.assertIn(('PROVIDER_REMOVED', NODES[3]), self.written())

    def test_node_that_is_back(self):
        self.source.enrolled = {NODES[3]}
        (step,) = json.loads(self.run_command(
            'clean', 'rows', '--yes', '-f', 'json', status=2))
        self.assertEqual(
            ('DELETE_RECORD', NODES[3], 'FAILED', f'Node {NODES[3]} is in '
             'Ironic: its records are not removed.'),
            (step['Action'], step['Subject'], step['Result code'],
             step['Error']))
        self.assertEqual([], self.rows)
        self.assertIn('is in Ironic: its records are not removed', self.err)

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
        self.run_command('clean', 'rows', '--yes', status=2)
        self.assertIn('host changed', self.err)


class CleanPoolsTestCase(base.CommandTestCase):
    """What is left of pools."""

    NAME = pools.name('b', deployment.KIND)

    def setUp(self):
        super().setUp()
        self.rows: list[str] = []
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all_by_uuids',
            side_effect=lambda context, uuids: [
                objects.ComputeNode(uuid=uuid) for uuid in uuids]))
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNode, 'destroy', autospec=True,
            side_effect=lambda row: self.rows.append(row.uuid)))

    def use(self, *services, **changes):
        self.source.seen = deployment.make_pooled(
            services=[deployment.service(*each) for each in services],
            **changes)

    def test_of_one_that_is_gone(self):
        self.use(('a',), ('c',))
        self.assertEqual([('DELETE_RECORD', self.NAME, 'DONE')],
                         self.run_steps('clean', 'rows', '--yes'))
        self.assertIn(f'delete the row of pool {self.NAME}', self.err)
        self.assertEqual([pools.uuid_of(self.NAME)], self.rows)
        self.assertEqual(self.rows, self.source.deleted)

    def test_of_one_that_nova_has(self):
        for silent in 0, 61:
            self.use(('a',), ('b', silent), ('c',))
            for kind in 'rows', 'providers':
                self.assertEqual([], self.run_steps('clean', kind, '--yes'))
        self.assertEqual([], self.rows + self.source.deleted)

    def test_of_one_that_is_gone_and_has_instances(self):
        self.use(('a',), ('c',), instances={1: 'b'})
        self.assertEqual([], self.run_steps('clean', 'rows', '--yes'))

    def test_one_that_comes_back_meanwhile(self):
        self.use(('a',), ('c',))

        def come_back(seen):
            return dataclasses.replace(seen, services=[
                deployment.service(host) for host in 'abc'])
        self.source.step = come_back
        self.assertEqual([('DELETE_RECORD', self.NAME, 'FAILED')],
                         self.run_steps('clean', 'rows', '--yes', status=2))
        self.assertIn('has instances, or a service', self.err)
        self.assertEqual([], self.rows + self.source.deleted)

    def test_one_that_is_removed_meanwhile(self):
        self.use(('a',), ('c',))
        self.source.step = lambda seen: dataclasses.replace(seen, pools={})
        self.assertEqual([('DELETE_RECORD', self.NAME, 'DONE')],
                         self.run_steps('clean', 'rows', '--yes'))
        self.assertEqual([], self.rows + self.source.deleted)

    def test_one_that_something_is_allocated_of(self):
        self.use(('a',), ('c',))

        def refuse(provider):
            raise errors.CommandError('Placement refuses.')
        self.source.delete_provider = refuse
        self.assertEqual([('DELETE_RECORD', self.NAME, 'FAILED')],
                         self.run_steps('clean', 'rows', '--yes', status=2))
        self.assertEqual([], self.rows)

    def test_provider_of_which_nova_has_no_pool(self):
        self.use(('a',), ('b',), ('c',))
        left = 'b.CUSTOM_GONE.0123abcd'
        self.source.seen = dataclasses.replace(
            self.source.seen,
            pool_providers=frozenset([left, *self.source.seen.pools]))
        self.assertEqual([('DELETE_PROVIDER', left, 'DONE')],
                         self.run_steps('clean', 'providers', '--yes'))
        self.assertIn(f'delete the provider of pool {left}', self.err)
        self.assertEqual([pools.uuid_of(left)], self.source.deleted)
        self.assertIn(('PROVIDER_REMOVED', left), self.written())
        self.assertEqual([], self.rows)

        def come_back(seen):
            return dataclasses.replace(seen, pools={
                **seen.pools, left: seen.pools[self.NAME]})
        self.source.step = come_back
        self.assertEqual([('DELETE_PROVIDER', left, 'FAILED')], self.run_steps(
            'clean', 'providers', '--yes', status=2))
        self.assertIn(f'Nova has pool {left} again', self.err)
        self.assertEqual([pools.uuid_of(left)], self.source.deleted)
