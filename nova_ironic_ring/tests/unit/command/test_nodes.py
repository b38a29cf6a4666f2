# SPDX-License-Identifier: Apache-2.0

"""Tests of the list of nodes, on a deployment that only answers."""

import dataclasses
import json

import fixtures

from nova_ironic_ring.command import prospect
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class NodeListTestCase(base.CommandTestCase):

    def _list(self, *arguments: str) -> list[dict]:
        return json.loads(self.run_command(
            'node', 'list', *arguments, '-f', 'json'))

    def _names(self, *arguments: str) -> list[str]:
        return [line['Name'] for line in self._list(*arguments)]

    def _give(self, owner: str, *numbers: int) -> None:
        """Have nodes recorded for another service."""
        seen = self.source.seen
        self.source.seen = dataclasses.replace(seen, rows={
            **seen.rows, **{NODES[number]: dataclasses.replace(
                seen.rows[NODES[number]], owner=owner)
                for number in numbers}})

    def _displaced(self) -> str:
        """Return who owns a node that the ring has for another."""
        desired = self.source.seen.rows[NODES[0]].owner
        other = 'a' if desired != 'a' else 'b'
        self._give(other, 0)
        return other

    def test_all(self):
        lines = self._list()
        self.assertEqual(sorted(f'node-{number}' for number in range(30)),
                         [line['Name'] for line in lines])
        for line in lines:
            self.assertEqual(line['Owner'], line['Desired owner'])
            self.assertEqual('MEMBER', line['Owner state code'])
            self.assertEqual('KEEP', line['Decision code'])
            self.assertEqual(line['Owner'], line['Decided by'])
            self.assertIs(False, line['To move'])

    def test_as_node_show_has_it(self):
        self.source.seen = make(instances={1: 'b', 2: 'a'}, services=[
            service('a'), service('b', 61), service('c')])
        lines = self._list()
        for line in lines[:12]:
            story = json.loads(self.run_command(
                'node', 'show', line['Node'], '-f', 'json'))
            story['Instance'] = story['Instance'].partition(' ')[0]
            self.assertEqual(line, {name: story[name] for name in line})

    def test_for_people(self):
        table = self.run_command('node', 'list', '--owner', 'a')
        self.assertIn('| Owner is |', table)
        self.assertNotIn('Decided by', table)

    def test_one_pass_of_each_service_for_all_nodes(self):
        of = self.useFixture(fixtures.MockPatchObject(
            prospect, 'of', wraps=prospect.of)).mock
        self._list()
        self.assertEqual(1, of.call_count)

    def test_owner(self):
        names = self._names('--owner', 'A')
        self.assertEqual(names, [
            line['Name'] for line in self._list() if line['Owner'] == 'a'])
        self.assertNotEqual([], names)
        self._give('gone', 3)
        self.assertEqual(['node-3'], self._names('--owner', 'gone'))

    def test_state(self):
        self._give('gone', 3)
        self.assertEqual(['node-3'], self._names('--state', 'gone'))
        self.assertEqual(29, len(self._names('--state', 'MEMBER')))
        self.assertEqual([], self._names('--state', 'DOWN'))

    def test_what_is_to_move(self):
        self.assertEqual([], self._names('--to-move'))
        other = self._displaced()
        (line,) = self._list('--to-move')
        self.assertEqual(('node-0', f'{other}: OFFER', True),
                         (line['Name'], line['Decision'], line['To move']))
        self.assertEqual(['node-0'], self._names('--decision', 'offer'))
        self.assertEqual([], self._names(
            '--decision', 'offer', '--owner', line['Desired owner']))

    def test_node_that_is_new_does_not_move(self):
        rows = dict(self.source.seen.rows)
        del rows[NODES[0]]
        self.source.seen = dataclasses.replace(self.source.seen, rows=rows)
        self.assertEqual(['node-0'], self._names('--decision', 'CREATE'))
        self.assertEqual([], self._names('--to-move'))

    def test_group_and_shard(self):
        seen = make(said=profile.Profile(conductor_group='rack'))
        self.source.seen = dataclasses.replace(seen, nodes={
            uuid: dataclasses.replace(node, group='', shard='east')
            if node.name == 'node-5' else node
            for uuid, node in seen.nodes.items()})
        self.assertEqual(29, len(self._names('--group', 'Rack')))
        self.assertEqual(['node-5'], self._names('--group', ''))
        self.assertEqual(['node-5'], self._names('--shard', 'east'))
        self.assertEqual(29, len(self._names('--shard', '')))
        (line,) = self._list('--shard', 'east')
        self.assertEqual('none serves it', line['Ring'])

    def test_shard_in_another_case(self):
        # To Ironic that is another one.
        self.source.seen = make(said=profile.Profile(shard='East'))
        self.run_command('node', 'list', '--shard', 'east', status=2)
        self.assertEqual(
            'Ironic has no node in shard "east": there are East.\n', self.err)

    def test_no_node_is_in_none(self):
        seen = self.source.seen
        self.source.seen = dataclasses.replace(seen, nodes={
            uuid: dataclasses.replace(node, group='rack', shard='east')
            for uuid, node in seen.nodes.items()})
        for option in '--group', '--shard':
            self.assertEqual([], self._list(option, ''))

    def test_one_cell(self):
        seen = self.source.seen
        self.source.seen = dataclasses.replace(seen, cell='cell2')
        self.assertEqual([], self._names())

    def test_what_there_is_not(self):
        for arguments, message in (
                (('--owner', 'x'), 'There is no nova-compute on "x": the '
                 'hosts are a, b, c.\n'),
                (('--group', 'x'), 'Ironic has no node in conductor group '
                 '"x": there are nodes in none.\n'),
                (('--shard', 'x'), 'Ironic has no node in shard "x": there '
                 'are nodes in none.\n')):
            self.assertEqual('', self.run_command(
                'node', 'list', *arguments, status=2))
            self.assertEqual(message, self.err)

    def test_codes_that_there_are_not(self):
        for what in 'state', 'decision':
            self.run_command('node', 'list', f'--{what}', 'x', status=2)
            self.assertRegex(
                self.err, f'^There is no {what} "x": there are [A-Z_, ]+\\.$')
