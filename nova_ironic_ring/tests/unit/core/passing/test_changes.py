# SPDX-License-Identifier: Apache-2.0

"""Tests of what is updated when nodes have changed between two passes."""

import dataclasses

import fixtures

from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.unit.core import base
from nova_ironic_ring.tests.unit.core import pool_base


def _fail(*_):
    raise ConnectionError('no answer')


class NodesTestCase(base.PassTestCase):

    def setUp(self):
        super().setUp()
        self.own = sorted(self.owned())

    def look(self):
        """Look what has changed, and name what is to be updated."""
        world, steps = self.tracker.world, self.result.plan.steps
        nodes = [node for node in changes.ask(
            world.ironic, self.current.scope) if changes.is_watched(
                steps.get(node), True)]
        self.asked.clear()
        result = reaction.change(
            world, self.memory, self.current, base.PLACES, nodes)
        self.memory = result.memory
        return list(result.places)

    def change_all(self, nodes):
        for node in nodes:
            self.cloud.nodes[node].is_ready ^= True

    def test_nothing(self):
        self.assertEqual([], self.look())
        self.assertEqual([], self.asked)

    def test_maintenance(self):
        self.change_all(self.own[:1])
        self.assertEqual(self.own[:1], self.look())
        self.assertEqual(['rows'], self.asked)
        self.assertEqual([], self.look())
        self.change_all(self.own[:1])
        self.assertEqual(self.own[:1], self.look())

    def test_instance(self):
        self.cloud.nodes[self.own[0]].instance = 'a stranger'
        self.assertEqual(self.own[:1], self.look())
        self.cloud.nodes[self.own[0]].instance = None
        self.assertEqual(self.own[:1], self.look())

    def test_resource_class(self):
        self.cloud.nodes[self.own[0]].kind = pools.Kind('CUSTOM_OTHER')
        self.assertEqual(self.own[:1], self.look())

    def test_node_of_a_peer(self):
        self.change_all(set(base.NODES) - set(self.own))
        self.assertEqual([], self.look())
        self.assertEqual([], self.asked)

    def test_node_that_a_peer_has_taken_since(self):
        self.change_all(self.own[:2])
        self.cloud.rows[self.own[0]].owner = 'a'
        self.assertEqual(self.own[1:2], self.look())

    def test_node_without_a_row_by_now(self):
        self.change_all(self.own[:1])
        del self.cloud.rows[self.own[0]]
        self.assertEqual([], self.look())

    def test_new_node_and_deleted_one(self):
        del self.cloud.nodes[self.own[0]]
        self.cloud.nodes['new'] = dataclasses.replace(
            self.cloud.nodes[self.own[1]])
        self.assertEqual([], self.look())

    def test_nova_does_not_answer(self):
        self.change_all(self.own[:1])
        with fixtures.MockPatchObject(self.tracker.world.nova, 'rows', _fail):
            error = self.assertRaises(one_pass.UnansweredError, self.look)
        self.memory = error.memory
        self.assertFalse(self.memory.view.is_trusted)
        self.assertEqual(self.own[:1], self.look())

    def test_the_pass_sees_it_all(self):
        self.change_all(self.own[:1])
        with fixtures.MockPatchObject(self.tracker.world.nova, 'rows', _fail):
            error = self.assertRaises(one_pass.UnansweredError, self.look)
        self.memory = error.memory
        self.run_pass()
        self.assertEqual([], self.look())

    def test_many(self):
        self.give_all_to('me')
        self.run_pass()
        self.own = sorted(self.owned())
        self.assertEqual(30, len(self.own))
        self.change_all(self.own)
        self.assertEqual(self.own[:20], self.look())
        # It had its turn.
        self.change_all(self.own[:1])
        self.assertEqual(self.own[20:] + self.own[:1], self.look())
        self.assertEqual([], self.look())


class PoolsTestCase(pool_base.PoolPassTestCase):

    def setUp(self):
        super().setUp()
        self.service = self.services['a']
        self.node = min(self.service.nodes())
        self.name = self.service.pool.name

    def look(self, released=()):
        """Look what has changed, and name what is to be updated.

        :param released: the nodes that have lost their instance since
        """
        service = self.service
        result = reaction.change(
            service.world, service.memory, service.current,
            pool_places.Pools(lambda pool: frozenset(released)), changes.ask(
                service.world.ironic, service.current.scope))
        service.memory = result.memory
        self.nodes = list(result.nodes)
        return list(result.places)

    @property
    def pool(self):
        return self.service.memory.pooled.pools[self.name]

    def test_nothing(self):
        self.assertEqual([], self.look())

    def test_maintenance(self):
        before = self.pool.inventory()
        self.cloud.nodes[self.node].is_ready = False
        self.assertEqual([self.name], self.look())
        self.assertEqual([self.node], self.nodes)
        self.assertEqual(
            pools.Inventory(before.total, before.reserved + 1),
            self.pool.inventory())
        self.cloud.nodes[self.node].is_ready = True
        self.assertEqual([self.name], self.look())
        self.assertEqual(before, self.pool.inventory())

    def test_node_of_another(self):
        other = min(self.cloud.nodes.keys() - self.service.nodes())
        self.cloud.nodes[other].is_ready = False
        self.assertEqual([], self.look())

    def test_instance_that_came(self):
        before = self.pool.inventory()
        self.cloud.nodes[self.node].instance = 'it'
        self.assertEqual([], self.look())
        self.assertEqual(before, self.pool.inventory())

    def test_instance_that_came_and_has_gone(self):
        # What the delete has reserved is free again.
        self.cloud.nodes[self.node].instance = 'it'
        self.assertEqual([], self.look())
        self.cloud.nodes[self.node].instance = None
        self.assertEqual([self.name], self.look([self.node]))
        self.assertEqual([self.node], self.nodes)

    def test_instance_that_has_gone(self):
        before = self.pool.inventory()
        self.build('a', 'it', self.node)
        self.run_passes()
        self.assertEqual({self.node}, set(self.pool.used))
        del self.cloud.instances['it']
        self.cloud.nodes[self.node].instance = None
        self.cloud.nodes[self.node].is_ready = False
        self.assertEqual([self.name], self.look())
        self.assertEqual(
            pools.Inventory(before.total, before.reserved + 1),
            self.pool.inventory())
        self.cloud.nodes[self.node].is_ready = True
        self.assertEqual([self.name], self.look())
        self.assertEqual(before, self.pool.inventory())

    def test_instance_that_has_gone_from_a_node_for_another(self):
        other = min(self.cloud.nodes.keys() - self.service.nodes())
        self.build('a', 'it', other)
        self.run_passes()
        self.assertIn(other, self.pool.nodes)
        before = self.pool
        del self.cloud.instances['it']
        self.cloud.nodes[other].instance = None
        self.assertEqual([], self.look())
        self.assertEqual(before, self.pool)

    def test_many_at_once(self):
        for node in self.service.nodes():
            self.cloud.nodes[node].is_ready = False
        self.assertEqual([self.name], self.look())
        self.assertEqual([], self.pool.free)
