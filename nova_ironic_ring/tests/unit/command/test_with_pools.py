# SPDX-License-Identifier: Apache-2.0

"""Tests of the command on services with pools."""

import collections
import dataclasses
import json

import fixtures
from nova import exception
from nova import objects

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command.telling import counting
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.taking import pool_gift
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = (
    deployment.make_pooled, deployment.service, deployment.NODES)
KIND, POOLS = deployment.KIND, deployment.POOLS
change, owner = deployment.change, deployment.owner


class CommandTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.use(make(instances={1: 'a', 2: 'b'}))
        self.source.step = self.pass_

    def use(self, seen):
        self.source.seen, self.source.pools = seen, dict(seen.inventories)

    def pass_(self, seen):
        """Have a service that lives write its inventory, or be reserved."""
        # By their last passes, they all know what the command knows.
        seen = deployment.agree(seen)
        counts = counting.of(seen)
        sizes = collections.Counter(each.pool for each in counts.values())
        used = collections.Counter(
            each.pool for each in seen.instances.values())
        for name, row in seen.pools.items():
            wanted = snapshot.Inventory(
                max(1, sizes[name]), int(not sizes[name]), used[name])
            if seen.state(row.owner).is_lost:
                was = self.source.pools[name]
                wanted = snapshot.Inventory(was.total, was.total, used[name])
            if self.source.pools.get(name) != wanted:
                self.source.pools[name] = wanted
                return seen
        return self.take_over(seen)

    def take_over(self, seen):
        for node, count in counting.of(seen).items():
            if count.taker is not None:
                uuid = str(seen.nodes[node].instance)
                return dataclasses.replace(seen, instances={
                    **seen.instances, uuid: dataclasses.replace(
                        seen.instances[uuid], host=count.taker,
                        node=POOLS[count.taker])})
        return seen

    def test_drain_and_undrain(self):
        steps = self.run_steps('drain', 'a', '--yes')
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'),
             ('WAIT_FOR_NODES', 'a', 'DONE')], steps)
        self.assertIn('free nodes are with others', self.err)
        # Its instance stays, and its node is with it.
        self.assertEqual(snapshot.Inventory(1, 0, 1),
                         self.source.pools[POOLS['a']])
        self.assertEqual(30, sum(
            each.total for each in self.source.pools.values()))
        self.assertEqual([], self.run_steps('drain', 'a', '--yes'))
        self.assertEqual(
            [('ENABLE_SERVICE', 'a', 'DONE'), ('WAIT_FOR_SHARE', 'a', 'DONE')],
            self.run_steps('undrain', 'a', '--yes'))
        self.assertGreater(self.source.pools[POOLS['a']].total, 1)

    def test_drain_waits_for_builds(self):
        self.source.step = lambda seen: seen
        self.source.pools[POOLS['a']] = snapshot.Inventory(1, 0, 3)
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'),
             ('WAIT_FOR_NODES', 'a', 'NOT_YET')],
            self.run_steps('drain', 'a', '--yes', '--timeout', '0', status=1))

    def test_drain_while_a_peer_builds(self):
        # It takes a node that the command has seen free, for its pool.
        built = make(instances={1: 'a', 2: 'b', 3: 'b'})

        def step(seen):
            return self.pass_(dataclasses.replace(
                seen, nodes=built.nodes, instances=built.instances))
        self.source.step = step
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'),
             ('WAIT_FOR_NODES', 'a', 'DONE')],
            self.run_steps('drain', 'a', '--yes'))

    def test_drain_waits_for_its_peers(self):
        size = self.source.pools[POOLS['a']].total

        def step(seen):
            if seen.service('a').record.disabled:
                self.source.pools[POOLS['a']] = snapshot.Inventory(1, 0, 1)
            return seen
        self.source.step = step
        self.run_steps('drain', 'a', '--yes', '--timeout', '0', status=1)
        self.assertIn(f': {size - 1} left', self.err)

    def test_drain_while_placement_is_away_for_a_moment(self):
        read, calls = self.source.inventories, []

        def inventories(names):
            calls.append(names)
            if len(calls) == 2:
                raise errors.CommandError('Placement is away.')
            return read(names)
        self.source.inventories = inventories
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'),
             ('WAIT_FOR_NODES', 'a', 'DONE')],
            self.run_steps('drain', 'a', '--yes'))
        self.assertIn('Placement is away.', self.err)

    def test_drain_of_instances(self):
        self.run_command('drain', 'a', '--instances', '--yes', status=2)
        self.assertIn('set [ironic_ring] instance_mobility = follow',
                      self.err)
        self.assertEqual([], self.saved)
        self.use(make(instances={1: 'a', 2: 'a'}, said=profile.Profile(
            mobility='follow')))
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'), ('WAIT_FOR_NODES', 'a', 'DONE'),
             ('WAIT_FOR_INSTANCES', 'a', 'DONE')],
            self.run_steps('drain', 'a', '--instances', '--yes'))
        self.assertNotIn('a', {
            each.host for each in self.source.seen.instances.values()})

    def test_failover(self):
        seen = make(instances={1: 'a', 2: 'b'}, services=[
            service('a'), service('b', 61), service('c')])
        self.use(seen)
        self.assertEqual(
            [('FORCE_SERVICE_DOWN', 'b', 'DONE'),
             ('WAIT_FOR_NODES', 'b', 'DONE'),
             ('WAIT_FOR_INSTANCES', 'b', 'DONE')],
            self.run_steps('failover', 'b', '--yes'))
        self.assertIn(self.source.seen.instances['instance-2'].host,
                      ('a', 'c'))

    def test_failover_while_ironic_is_away(self):
        self.use(make(services=[service('a'), service('b', 61), service('c')]))

        def step(seen):
            # The peers have reserved the pool, and do not count its nodes.
            if seen.service('b').record.forced_down:
                self.source.pools[POOLS['b']] = snapshot.Inventory(1, 1, 0)
            return seen
        self.source.step = step
        self.source.away = 'Ironic does not answer.'
        self.assertIn(
            ('WAIT_FOR_NODES', 'b', 'NOT_YET'), self.run_steps(
                'failover', 'b', '--yes', '--timeout', '0', status=1))
        self.assertIn('Ironic does not answer.', self.err)

    def test_node_whose_instance_is_about_to_follow(self):
        self.use(make(instances={1: 'a'}, said=profile.Profile(
            mobility='follow'), services=[
                service('a', disabled=True), service('b'), service('c')]))
        told = json.loads(self.run_command(
            'node', 'show', 'node-1', '-f', 'json'))
        self.assertIn(told['Decision'], {
            'b: TAKE_INSTANCE', 'c: TAKE_INSTANCE'})

    def _give(self, given=True):
        """Have instances be given away as they are asked for."""
        def give(nova, placement, gift):
            self.given.append(gift)
            if given is not True:
                raise given
            host = next(host for host, pool in POOLS.items()
                        if pool == gift.target)
            self.source.seen = dataclasses.replace(
                self.source.seen, instances={
                    **self.source.seen.instances,
                    gift.instance: dataclasses.replace(
                        self.source.seen.instances[gift.instance], host=host,
                        node=gift.target)})
            return True
        self.given = []
        self.useFixture(fixtures.MockPatchObject(pool_gift, 'give', give))
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all_by_host', return_value=[]))

    def test_move(self):
        self._give()
        self.assertEqual(
            [('GIVE_INSTANCE', NODES[1], 'DONE'),
             ('WAIT_FOR_NODE', NODES[1], 'DONE')],
            self.run_steps('move', 'instance-1', 'c', '--yes'))
        self.assertEqual([pool_gift.Gift(
            'instance-1', 'a', POOLS['a'], POOLS['c'])], self.given)
        # Its new service has counted it.
        self.assertEqual(
            1, self.source.pools[POOLS['c']].used)
        self.run_command('move', 'node-1', 'c', '--yes')
        self.assertIn('There is nothing to do', self.err)

    def test_move_of_many_asks_once_a_look(self):
        self.use(make(instances={number: 'a' for number in range(6)}))
        self._give()
        asked, looks = [], []
        inventories, step = self.source.inventories, self.source.step

        def look(seen):
            looks.append(seen)
            return step(seen)

        def ask(names):
            asked.append(sorted(names))
            return inventories(asked[-1])
        self.source.step, self.source.inventories = look, ask
        self.run_command('move', *(f'node-{number}' for number in range(6)),
                         'c', '--yes')
        # One look to plan, and one before the first is given.
        self.assertLessEqual(len(asked), len(looks) - 2)

    def test_move_that_placement_refuses(self):
        self._give(exception.ResourceProviderUpdateConflict(
            uuid='u', generation=1, error='409'))
        self.assertEqual(
            [('GIVE_INSTANCE', NODES[1], 'FAILED'),
             ('WAIT_FOR_NODE', NODES[1], 'NOT_DONE')],
            self.run_steps('move', 'node-1', 'c', '--yes', status=2))
        self.assertIn('Placement does not move', self.err)

    def test_move_to_one_without_such_a_pool_is_refused(self):
        seen = self.source.seen
        self.use(dataclasses.replace(seen, nodes={
            uuid: dataclasses.replace(node, kind=pools.Kind('CUSTOM_OTHER'))
            for uuid, node in seen.nodes.items()}))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('has no pool of nodes such as', self.err)

    def test_move_of_what_follows_is_refused(self):
        self.use(make(instances={1: 'a'}, said=profile.Profile(
            mobility='follow')))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('and would go back', self.err)

    def test_move_to_one_with_the_ring_driver_is_refused(self):
        nodes = deployment.make(instances={1: 'a'})
        seen = deployment.record(self.source.seen, 'c', has_pools=False)
        self.use(dataclasses.replace(
            seen, pools={name: row for name, row in seen.pools.items()
                         if row.owner != 'c'},
            rows={node: row for node, row in nodes.rows.items()
                  if row.owner == 'c'}))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('does not have the pool driver', self.err)

    def test_move_to_one_with_pools_is_refused(self):
        nodes = deployment.record(
            deployment.make(instances={1: 'a'}), 'c', has_pools=True)
        self.use(dataclasses.replace(
            nodes, pools={POOLS['c']: make().pools[POOLS['c']]}, rows={
                node: row for node, row in nodes.rows.items()
                if row.owner != 'c'}))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('has the pool driver', self.err)

    def test_node_list(self):
        lines = json.loads(self.run_command(
            'node', 'list', '--decision', 'count', '-f', 'json'))
        self.assertEqual(30, len(lines))
        for line in lines:
            self.assertEqual(POOLS[line['Owner']], line['Pool'])
        self.assertNotIn('Pool', self.run_command('node', 'list'))
        names = json.loads(self.run_command(
            'node', 'list', '--owner', 'A', '-f', 'json'))
        self.assertEqual({'a'}, {line['Owner'] for line in names})

    def test_node_show_of_a_server(self):
        told = json.loads(self.run_command(
            'node', 'show', 'instance-1', '-f', 'json'))
        self.assertEqual((NODES[1], POOLS['a']), (told['Node'], told['Pool']))
        self.assertEqual('instance-1 (server-1)', told['Instance'])

    def test_check_and_show(self):
        self.run_command('check')
        self.assertIn('All is well', self.err)
        lines = json.loads(self.run_command('show', '-f', 'json'))
        self.assertEqual(30, sum(line['Nodes'] for line in lines))
