# SPDX-License-Identifier: Apache-2.0

"""Tests of how nodes get shards, on a deployment that only answers."""

import collections
import dataclasses
import json

from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

NODES = deployment.NODES


class ShardTestCase(base.CommandTestCase):

    def shards(self) -> dict[str | None, int]:
        """Count the nodes of each shard."""
        return dict(collections.Counter(
            node.shard for node in self.source.seen.nodes.values()))

    def change(self, **nodes: str | None) -> None:
        """Have nodes be in other shards, by their numbers."""
        self.source.seen = dataclasses.replace(self.source.seen, nodes={
            uuid: dataclasses.replace(
                node, shard=nodes.get(f'n{number}', node.shard))
            for number, (uuid, node) in enumerate(
                self.source.seen.nodes.items())})

    def refuse(self, *arguments: str) -> str:
        """See that a command changes nothing, and return what it says."""
        before = self.source.seen
        self.run_command('shard', *arguments, '--yes', status=2)
        self.assertEqual(before, self.source.seen)
        self.assertEqual(1, self.err.count('\n'), self.err)
        self.assertEqual([], self.written())
        return self.err

    def test_divide(self):
        done = self.run_steps('shard', '--shards', '4', '--yes')
        self.assertEqual(
            [('SET_SHARD', f'ironic-ring-00{number}', 'DONE')
             for number in range(1, 5)], done)
        self.assertEqual(
            {'ironic-ring-001': 8, 'ironic-ring-002': 8, 'ironic-ring-003': 7,
             'ironic-ring-004': 7}, self.shards())
        self.assertIn('30 nodes have no shard. 4 shards "ironic-ring-..." '
                      'will have 7 to 8 nodes each.\n', self.err)
        self.assertIn('* put 8 nodes into shard "ironic-ring-001"\n',
                      self.err)
        self.assertIn('nodes: 30 left', self.err)
        self.assertIn('nodes: 0 left', self.err)

    def test_dry_run(self):
        self.run_command('shard', '--shards', '4', '--dry-run')
        self.assertIn('* put 8 nodes into shard "ironic-ring-001"', self.err)
        self.assertEqual({None: 30}, self.shards())

    def test_who_has_run_it(self):
        self.run_command('shard', '--shards', '3', '--yes',
                         '--reason', 'less to list')
        lines = [json.loads(line)
                 for line in self.lines.output.splitlines()]
        self.assertEqual(
            ['COMMAND_BEGUN', *['SHARD_SET'] * 30, 'COMMAND_ENDED'],
            [line['event'] for line in lines])
        self.assertEqual({'alice'}, {line['by']['user'] for line in lines})
        self.assertEqual({'less to list'}, {line['reason'] for line in lines})
        self.assertEqual(
            {(uuid, None, node.shard)
             for uuid, node in self.source.seen.nodes.items()},
            {(line['node'], line['from'], line['to'])
             for line in lines[1:-1]})

    def test_again_after_nodes_were_enrolled(self):
        self.run_command('shard', '--shards', '3', '--yes')
        self.assertEqual([], self.run_steps('shard', '--yes'))
        self.assertIn('0 nodes have no shard.', self.err)
        before = dict(self.source.seen.nodes)
        more = {f'new-{number}': snapshot.Node(None, uuid=f'new-{number}')
                for number in range(7)}
        self.source.seen = dataclasses.replace(
            self.source.seen, nodes={**before, **more})
        self.run_command('shard', '--yes')
        self.assertEqual([12, 12, 13], sorted(self.shards().values()))
        for uuid, node in before.items():
            self.assertEqual(node, self.source.seen.nodes[uuid])

    def test_clear(self):
        self.change(n0='rack-1', n1='ironic-ring-1')
        self.run_command('shard', '--shards', '3', '--yes')
        self.assertEqual([
            ('CLEAR_SHARD', f'ironic-ring-00{number}', 'DONE')
            for number in (1, 2, 3)],
            self.run_steps('shard', '--clear', '--yes'))
        self.assertEqual({'rack-1': 1, 'ironic-ring-1': 1, None: 28},
                         self.shards())
        (said,) = {(line['from'], line['to'])
                   for line in map(json.loads, self.lines.output.splitlines())
                   if line['node'] == NODES[2]
                   and line['from'] is not None}
        self.assertEqual(('ironic-ring-001', None), said)
        self.assertEqual([], self.run_steps('shard', '--clear', '--yes'))
        self.assertIn('No node is in a shard "ironic-ring-...".\n', self.err)

    def test_prefix(self):
        self.run_command('shard', '--shards', '3', '--prefix', 'x-', '--yes')
        self.assertEqual({'x-001': 10, 'x-002': 10, 'x-003': 10},
                         self.shards())
        # They are of other names.
        self.run_command('shard', '--clear', '--yes')
        self.assertEqual(3, len(self.shards()))

    def test_group(self):
        self.source.seen = dataclasses.replace(self.source.seen, nodes={
            uuid: dataclasses.replace(node, group='Rack' if number < 9 else '')
            for number, (uuid, node) in enumerate(
                self.source.seen.nodes.items())})
        self.run_command('shard', '--shards', '3', '--group', 'rack', '--yes')
        self.assertEqual(21, self.shards()[None])
        self.run_command('shard', '--group', '', '--shards', '7', '--yes')
        self.assertEqual(
            {'ironic-ring-001': 6, 'ironic-ring-007': 3}.items(),
            self.shards().items() & {
                'ironic-ring-001': 6, 'ironic-ring-007': 3}.items())
        self.run_command('shard', '--clear', '--group', 'RACK', '--yes')
        self.assertEqual(9, self.shards()[None])

    def test_warnings(self):
        self.change(n0='rack-1')
        self.source.seen = deployment.say(
            self.source.seen, 'c', shard='rack-1')
        self.run_command('shard', '--shards', '3', '--dry-run')
        self.assertIn('1 node is in 1 shard of other names, such as '
                      '"rack-1": they stay there.', self.err)
        self.assertIn('[ironic] shard limits 1 service, such as c to shard '
                      '"rack-1"', self.err)
        self.assertIn('29 nodes have no shard', self.err)

    def test_services_that_divide_by_shards(self):
        said = profile.Profile(listing='shards')
        self.source.seen = deployment.make(said=said)
        self.run_command('shard', '--shards', '3', '--dry-run')
        self.assertIn('free nodes move to the services of their shards',
                      self.err)
        self.run_command('shard', '--shards', '3', '--yes')
        self.run_command('shard', '--clear', '--dry-run')
        self.assertIn('all of them list the nodes that have no shard',
                      self.err)

    def test_shards_that_are_not_even(self):
        self.change(**{f'n{number}': 'ironic-ring-001'
                       for number in range(25)})
        self.run_command('shard', '--shards', '3', '--dry-run')
        self.assertIn('The sizes differ, because nodes that have a shard stay '
                      'in it', self.err)

    def test_bad_numbers(self):
        for arguments, words in (
                ((), 'say with --shards how many to make; 20 for each service '
                 'are 60.'),
                (('--shards', '0'), '--shards has to be 1 at least.'),
                (('--shards', '2'), '2 shards are fewer than the 3 services'),
                (('--shards', '31'), '31 shards are more than there '
                 'are nodes for them (30)'),
                (('--shards', '3', '--prefix', 'Bad'),
                 '--prefix cannot be "Bad"'),
                (('--shards', '3', '--clear'), 'leave out --shards.')):
            self.assertIn(words, self.refuse(*arguments))
        self.change(n0='ironic-ring-005')
        self.assertIn('There are 5 shards "ironic-ring-..." already',
                      self.refuse('--shards', '4'))

    def test_shard_that_a_service_is_limited_to(self):
        self.change(n0='ironic-ring-002')
        self.source.seen = deployment.say(
            self.source.seen, 'c', shard='ironic-ring-002')
        for arguments in ('--shards', '3'), ('--clear',):
            self.assertIn('[ironic] shard limits c to shard "ironic-ring-002"',
                          self.refuse(*arguments))

    def test_old_ironic(self):
        self.source.away = 'This Ironic has no shards.'
        self.assertIn('no shards', self.refuse('--shards', '3'))

    def test_account_that_may_not(self):
        self.source.may_set_shards = {'system'}
        steps = self.run_steps('shard', '--shards', '3', '--yes', status=2)
        self.assertEqual(
            ['FAILED', 'NOT_DONE', 'NOT_DONE'], [step[2] for step in steps])
        self.assertIn('Ironic does not let None. 0 nodes were changed before '
                      'that.\n', self.err)
        self.assertEqual({None: 30}, self.shards())
        self.run_command('shard', '--shards', '3', '--yes',
                         '--os-cloud', 'system')
        self.assertEqual(3, len(self.shards()))

    def test_account_that_may_not_any_more(self):
        before = self.source.set_shard

        def change(node, shard, cloud=None):
            if len(self.source.set) == 12:
                self.source.may_set_shards.clear()
            before(node, shard, cloud)
        self.source.set_shard = change
        steps = self.run_steps('shard', '--shards', '3', '--yes', status=2)
        self.assertEqual(
            ['DONE', 'FAILED', 'NOT_DONE'], [step[2] for step in steps])
        self.assertIn('12 nodes were changed before that', self.err)
        # What is left is done then.
        self.source.set_shard = before
        self.source.may_set_shards.add(None)
        self.run_command('shard', '--shards', '3', '--yes')
        self.assertEqual([10, 10, 10], list(self.shards().values()))

    def test_nodes_that_change_meanwhile(self):
        self.change(n29='ironic-ring-001')
        put = self.source.set_shard

        def set_shard(node, shard, cloud=None):
            put(node, shard, cloud)
            if self.source.set != [node]:
                return
            # After the first node, long before the last ones.
            self.change(n27='rack-1')
            self.source.busy[NODES[14]] = 'Node 14 is busy.'
            nodes = dict(self.source.seen.nodes)
            del nodes[NODES[28]]
            self.source.seen = dataclasses.replace(
                self.source.seen, nodes=nodes)
        self.source.set_shard = set_shard
        steps = json.loads(self.run_command(
            'shard', '--shards', '3', '--yes', '-f', 'json', status=2))
        self.assertEqual(['FAILED', 'FAILED', 'DONE'], sorted(
            (step['Result code'] for step in steps), reverse=True))
        wrong = ' '.join(step['Error'] for step in steps)
        self.assertIn(f'Node {NODES[27]} is in shard "rack-1" now: it '
                      'stays there.', wrong)
        self.assertIn('Node 14 is busy.', wrong)
        self.assertEqual({'rack-1': 1, None: 1},
                         {shard: count for shard, count
                          in self.shards().items() if count < 3})
        self.source.busy.clear()
        self.run_command('shard', '--yes')
        self.assertNotIn(None, self.shards())

    def test_ironic_that_does_not_tell_any_more(self):
        put = self.source.set_shard

        def set_shard(node, shard, cloud=None):
            put(node, shard, cloud)
            if len(self.source.set) == 12:
                self.source.away = 'Ironic does not tell.'
        self.source.set_shard = set_shard
        steps = self.run_steps('shard', '--shards', '3', '--yes', status=2)
        self.assertEqual(
            ['DONE', 'FAILED', 'NOT_DONE'], [step[2] for step in steps])
        self.assertIn('Ironic does not tell. 12 nodes were changed before',
                      self.err)
