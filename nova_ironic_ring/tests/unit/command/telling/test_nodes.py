# SPDX-License-Identifier: Apache-2.0

"""Tests of what is said of nodes, on a deployment that only answers."""

import dataclasses
import json
from typing import Any

import fixtures
from oslotest import base as oslotest_base

from nova_ironic_ring.command.telling import nodes
from nova_ironic_ring.command.telling import prospect
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class DecisionTestCase(oslotest_base.BaseTestCase):

    def _explain(self, seen: snapshot.Snapshot, number: int) -> Any:
        return nodes.explain(seen, seen.nodes[NODES[number]])

    def _codes(self, story: Any) -> tuple[str, str, bool]:
        return story['Decided by'], story['Decision code'], story['To move']

    def _of(self, number: int, *hosts: str) -> str:
        return str(ring.Ring(hosts, 32).owner(NODES[number]))

    def test_free_and_well(self):
        story = self._explain(make(), 0)
        owner = self._of(0, 'a', 'b', 'c')
        self.assertEqual(owner, story['Owner'])
        self.assertEqual(owner, story['Desired owner'])
        self.assertEqual(2, len(story['Successors'].split(', ')))
        self.assertEqual(f'{owner}: KEEP', story['Decision'])
        self.assertEqual('the node is free and for this service',
                         story['Reason'])

    def test_in_a_ring_with_some_of_the_nodes_of_another(self):
        seen = deployment.with_a_rack(make())
        story = self._explain(seen, 0)
        self.assertEqual('cell cell1, group "rack"', story['Ring'])
        self.assertEqual(('c', 'c: KEEP', ''), (
            story['Desired owner'], story['Decision'], story['Successors']))
        self.assertEqual('cell cell1', self._explain(seen, 12)['Ring'])

    def _with_row(self, number: int, owner: str, **changes
                  ) -> snapshot.Snapshot:
        seen = make(**changes)
        row = dataclasses.replace(seen.rows[NODES[number]], owner=owner)
        return dataclasses.replace(
            seen, rows={**seen.rows, NODES[number]: row})

    def test_free_and_with_another(self):
        desired = self._of(0, 'a', 'b', 'c')
        other = 'a' if desired != 'a' else 'b'
        seen = self._with_row(0, other)
        # It acknowledges none; another one; that which the command sees.
        for said in None, 'another':
            story = self._explain(
                deployment.record(seen, other, ring=said), 0)
            self.assertEqual(f'{other}: OFFER', story['Decision'])
            self.assertEqual((other, 'OFFER', True), self._codes(story))
            self.assertEqual('', story['Offered to'])
        story = self._explain(seen, 0)
        self.assertEqual(f'{desired}: TAKE_OFFERED', story['Decision'])
        self.assertEqual(desired, story['Offered to'])
        # Nova's own driver says nothing.
        story = self._explain(deployment.stock(seen, other), 0)
        self.assertEqual(f'{desired}: WAIT', story['Decision'])
        self.assertEqual('', story['Offered to'])
        story = self._explain(self._with_row(0, other, services=[
            service(host, 61 if host == other else 0) for host in 'abc']), 0)
        self.assertEqual(
            f'{story["Desired owner"]}: TAKE_ABANDONED', story['Decision'])

    def test_new(self):
        seen = make()
        rows = dict(seen.rows)
        del rows[NODES[0]]
        story = self._explain(dataclasses.replace(seen, rows=rows), 0)
        self.assertIn('CREATE', story['Decision'])
        self.assertFalse(story['To move'])
        self.assertEqual('', story['Owner'])

    def test_shards(self):
        seen = deployment.by_shards(make(), *'uvwxyz')
        node = NODES[0]
        owner = seen.rows[node].owner
        story = self._explain(seen, 0)
        self.assertEqual(('u', owner, owner), (
            story['Shard'], story['Owner'], story['Desired owner']))
        self.assertEqual(f'{owner}: KEEP', story['Decision'])
        self.assertEqual({'a', 'b', 'c'} - {owner},
                         {*story['Successors'].split(', ')})
        # Who has it lists it, though the shard is for another.
        other = min({'a', 'b', 'c'} - {owner})
        story = self._explain(dataclasses.replace(seen, rows={
            **seen.rows, node: dataclasses.replace(
                seen.rows[node], owner=other)}), 0)
        self.assertEqual((owner, 'TAKE_OFFERED', True), self._codes(story))
        self.assertEqual(owner, story['Desired owner'])

    def test_nobody(self):
        story = self._explain(make(services=[
            service(host, 61) for host in 'abc']), 0)
        self.assertEqual('none', story['Decision'])
        self.assertEqual(('', 'NONE', False), self._codes(story))
        self.assertEqual('DOWN', story['Owner state code'])
        self.assertEqual('no member lives that could decide',
                         story['Reason'])
        # Those that are disabled keep what nobody else may have.
        story = self._explain(make(services=[
            service(host, disabled=True) for host in 'abc']), 0)
        self.assertEqual(f'{story["Owner"]}: KEEP', story['Decision'])

    def test_instance(self):
        story = self._explain(make(instances={0: 'a'}), 0)
        self.assertEqual('a: KEEP_INSTANCE', story['Decision'])
        self.assertEqual('instance-0 (server-0)', story['Instance'])
        self.assertEqual('a', story['Instance belongs to'])

    def test_instance_that_follows(self):
        desired = self._of(0, 'a', 'b', 'c')
        other = 'a' if desired != 'a' else 'b'
        seen = make(
            instances={0: other}, said=profile.Profile(mobility='follow'))
        story = self._explain(
            deployment.record(seen, other, ring='another'), 0)
        self.assertEqual(f'{other}: OFFER_INSTANCE', story['Decision'])
        story = self._explain(seen, 0)
        self.assertEqual(f'{desired}: TAKE_INSTANCE', story['Decision'])
        # That is what free nodes are.
        self.assertEqual('', story['Offered to'])
        story = self._explain(
            deployment.say(seen, other, mobility='failover'), 0)
        self.assertEqual(f'{other}: KEEP_INSTANCE', story['Decision'])

    def test_instance_of_the_dead(self):
        services = [service('a', 61), service('b'), service('c')]
        desired = self._of(0, 'b', 'c')
        story = self._explain(
            make(instances={0: 'a'}, services=services), 0)
        self.assertEqual(f'{desired}: LEAVE_INSTANCE', story['Decision'])
        self.assertIn('nobody has said that it is dead', story['Reason'])
        self.assertEqual((desired, 'LEAVE_INSTANCE', False),
                         self._codes(story))
        services[0] = service('a', 61, forced_down=True)
        story = self._explain(
            make(instances={0: 'a'}, services=services), 0)
        self.assertEqual(f'{desired}: FAIL_OVER', story['Decision'])
        self.assertEqual((desired, 'FAIL_OVER', True), self._codes(story))
        story = self._explain(make(
            instances={0: 'a'}, services=services,
            said=profile.Profile(mobility='pinned')), 0)
        self.assertEqual(f'{desired}: LEAVE_INSTANCE', story['Decision'])

    def test_instance_of_one_that_is_down_where_nobody_takes_it(self):
        story = self._explain(make(
            instances={0: 'a'}, said=profile.Profile(mobility='pinned'),
            services=[service('a', 61), service('b'), service('c')]), 0)
        self.assertEqual('the node is with an instance of another service',
                         story['Reason'])

    def test_fields(self):
        self.assertEqual([
            'Node', 'Name', 'Conductor group', 'Shard', 'Ring', 'Owner',
            'Owner is', 'Desired owner', 'Pool', 'Successors', 'Instance',
            'Instance belongs to', 'Offered to', 'Decision', 'Reason',
            'Failed deployments', 'Owner state code', 'Decided by',
            'Decision code', 'To move'],
            list(self._explain(make(), 0)))

    def test_instance_that_nova_has_elsewhere(self):
        story = self._explain(
            deployment.elsewhere(make(instances={1: 'a'})), 1)
        self.assertEqual('LEAVE_INSTANCE', story['Decision'])
        self.assertIn('Nova has the instance on kvm-1', story['Reason'])
        self.assertEqual(('', 'LEAVE_INSTANCE', False), self._codes(story))

    def test_instance_that_nova_does_not_have(self):
        story = self._explain(dataclasses.replace(
            make(instances={0: 'a'}), instances={}), 0)
        self.assertEqual('LEAVE_INSTANCE', story['Decision'])


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
        self.assertEqual(
            ('node-0', f"{line['Desired owner']}: TAKE_OFFERED", True),
            (line['Name'], line['Decision'], line['To move']))
        self.source.seen = deployment.record(
            self.source.seen, other, ring=None)
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
