# SPDX-License-Identifier: Apache-2.0

"""Pools whose nodes Ironic does not show, on a cloud in memory."""

import dataclasses
import datetime

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.unit.core import pool_base

NODES, KIND, OTHER = pool_base.NODES, pool_base.KIND, pool_base.OTHER


class HidingTestCase(pool_base.PoolPassTestCase):

    def hide(self, nodes):
        """Have Ironic not show some nodes."""
        return {node: self.cloud.nodes.pop(node) for node in list(nodes)
                if node in self.cloud.nodes}


class HiddenTestCase(HidingTestCase):
    """Nodes that Ironic does not show."""

    def test_all_nodes_are_reserved(self):
        self.build('a', 'i')
        self.run_passes()
        before = {host: service.total()
                  for host, service in self.services.items()}
        hidden = self.hide(NODES)
        self.run_passes(3)
        self.assertEqual(before, {
            host: service.total() for host, service in self.services.items()})
        found = self.services['a'].pool.inventory()
        # But for the one with an allocation.
        self.assertEqual(found.total - 1, found.reserved)
        self.assertFalse(pool_places.close_unlisted(
            self.services['a'].world, self.services['a'].memory,
            ['a.CUSTOM_BAREMETAL.01234567']))
        self.cloud.nodes.update(hidden)
        self.run_passes()
        self.assertEqual(0, self.services['a'].pool.inventory().reserved)
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())

    def test_it_is_said_once_and_when_it_is_over(self):
        hidden = self.hide(NODES)
        self.run_passes()
        (said,) = self.services['a'].happened(events.NodesVanished)
        self.assertTrue(said.in_pools)
        self.run_passes()
        self.assertEqual([], self.services['a'].happened(events.NodesVanished))
        self.cloud.nodes.update(hidden)
        self.run_passes()
        self.assertEqual([events.NodesBack()],
                         self.services['a'].happened(events.NodesBack))

    def test_some_nodes_are_believed_deleted(self):
        gone = sorted(self.services['a'].pool.free)[:2]
        self.hide(gone)
        total = self.services['a'].total()
        self.run_passes()
        self.assertEqual(total - 2, self.services['a'].total())

    def test_one_by_one_is_like_all_at_once(self):
        service = self.services['a']
        for node in sorted(service.pool.free):
            self.hide([node])
            self.run_passes(seconds=1)
        self.assertTrue(service.memory.vanished.has_too_many)
        self.assertGreater(len(service.nodes()), 2)

    def test_node_goes_after_its_instance(self):
        node = self.build('a', 'i')
        self.run_passes()
        self.hide([node])
        self.run_passes()
        self.assertIn(node, self.services['a'].pool.used)
        del self.cloud.instances['i']
        self.run_passes(2)
        self.assertNotIn(node, self.services['a'].nodes())

    def test_start_while_all_are_hidden(self):
        name = self.services['a'].pool.name
        self.build('a', 'i')
        self.hide(NODES)
        self.services['a'].memory = observation.Memory()
        self.run_passes(2)
        pool = self.services['a'].result.found[name]
        self.assertTrue(pool.is_hidden)
        self.assertIsNone(pool.kind)


class _RestartTestCase(HidingTestCase):
    """The service a is started again."""

    def setUp(self):
        super().setUp()
        self.service = self.services['a']

    def restart(self, count=3, **options):
        """Start it again, and have it run passes.

        :returns: what it tells of vanished nodes
        """
        self.service.memory = observation.Memory()
        self.service.current = dataclasses.replace(
            self.service.current, **options)
        told = []
        for _ in range(count):
            self.run_passes()
            told += self.service.happened(events.NodesVanished)
        return told

    def assertCounts(self, total, reserved):
        self.assertEqual(pools.Inventory(total, reserved),
                         self.service.pool.inventory())
        self.assertEqual(pools.Inventory(total, reserved),
                         self.cloud.inventories[self.service.pool.uuid])


class RestartTestCase(_RestartTestCase):
    """A service is started again while Ironic hides some of its nodes."""

    def setUp(self):
        super().setUp()
        self.used, spare = (
            self.build('a', f'i{number}', node) for number, node
            in enumerate(sorted(self.service.pool.free)[:2]))
        self.run_passes()
        self.before = self.service.total()
        self.hidden = [self.used, *sorted(
            self.service.nodes() - {self.used, spare})[:6]]

    def test_what_is_hidden_is_reserved(self):
        hidden = self.hide(self.hidden)
        # And when it is started once more.
        for _ in range(2):
            (told,) = self.restart()
            self.assertEqual(((), 7, self.before),
                             (tuple(told.nodes), told.unnamed, told.total))
            # But for the one with an instance, which has its allocation.
            self.assertCounts(self.before, 6)
        self.cloud.nodes.update(hidden)
        self.run_passes()
        self.assertEqual([events.NodesBack()],
                         self.service.happened(events.NodesBack))
        self.assertCounts(self.before, 0)
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())

    def test_all_are_hidden(self):
        hidden = self.hide(NODES)
        self.assertEqual(1, len(self.restart()))
        self.assertEqual(self.before, self.service.pool.inventory().total)
        self.cloud.nodes.update(hidden)
        self.run_passes()
        self.assertCounts(self.before, 0)

    def test_more_are_hidden_later(self):
        hidden = self.hide(self.hidden)
        self.restart()
        more = self.hide(sorted(self.service.pool.free))
        self.run_passes()
        self.assertCounts(self.before, self.before - 2)
        self.cloud.nodes.update({**hidden, **more})
        self.run_passes()
        self.assertCounts(self.before, 0)

    def test_operator_says_that_they_are_deleted(self):
        self.hide(self.hidden)
        self.restart()
        self.service.current = dataclasses.replace(
            self.service.current, vanished_nodes_limit=100)
        self.run_passes()
        self.assertCounts(self.before - 7, 0)
        self.service.current = dataclasses.replace(
            self.service.current, vanished_nodes_limit=20)
        self.assertEqual([], self.restart())
        self.assertCounts(self.before - 7, 0)

    def test_few_are_believed_deleted(self):
        self.hide(self.hidden[1:5])
        self.assertEqual([], self.restart())
        self.assertCounts(self.before - 4, 0)

    def test_restarts_in_a_row_pass_no_limit(self):
        self.hide(self.hidden[1:6])
        self.assertEqual([], self.restart())
        self.assertCounts(self.before - 5, 0)
        # As many more would be as many as may vanish, but for those before.
        more = self.hide(sorted(self.service.pool.free)[:3])
        for _ in range(3):
            (told,) = self.restart(2)
            self.assertEqual((3, self.before - 5),
                             (told.unnamed, told.total))
            self.assertCounts(self.before - 5, 3)
        # As without a restart, ten passes after the first ones.
        self.run_passes(60)
        self.assertCounts(self.before - 8, 0)
        self.cloud.nodes.update(more)
        self.run_passes()
        self.assertCounts(self.before - 5, 0)

    def test_some_before_the_restart_and_some_after_it(self):
        gone = self.hidden[1:4]
        self.hide(gone[:2])
        self.run_passes()
        self.hide(gone[2:])
        self.assertEqual([], self.restart())
        self.assertCounts(self.before - 3, 0)
        self.hide(sorted(self.service.pool.free)[:3])
        self.run_passes()
        self.assertCounts(self.before - 3, 3)
        self.assertEqual(1, len(self.restart()))
        self.assertCounts(self.before - 3, 3)

    def test_restart_long_after_some_have_gone(self):
        self.hide(self.hidden[1:6])
        self.run_passes(61)
        self.hide(sorted(self.service.pool.free)[:3])
        self.assertEqual([], self.restart())
        self.assertCounts(self.before - 8, 0)

    def test_clock_that_went_back_meanwhile(self):
        self.hide(self.hidden[1:6])
        self.run_passes()
        row = self.cloud.rows[self.service.pool.uuid]
        row.counted = dataclasses.replace(
            row.counted, gone_at=row.counted.gone_at
            + datetime.timedelta(minutes=5))
        self.hide(sorted(self.service.pool.free)[:3])
        self.assertEqual(1, len(self.restart()))

    def test_nodes_that_count_for_others(self):
        for host in 'def':
            self.start(host)
        self.run_passes(3, silent=('a',))
        self.assertEqual([], self.restart())
        self.assertLess(self.service.total(), self.before - 5)
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())

    def test_it_asks_for_other_nodes_than_before(self):
        for node in self.cloud.nodes.values():
            node.group = 'rack'
        for node in self.hidden[1:]:
            self.cloud.nodes[node].group = ''
        self.assertEqual([], self.restart(scope=settings.Scope('rack')))

    def test_nodes_with_instances_of_others_do_not_make_up_for_them(self):
        for number, node in enumerate(self.hidden[1:]):
            self.build('b', f'of b {number}', node)
        self.run_passes()
        self.before = self.service.total()
        hidden = self.hide(sorted(self.service.nodes()))
        (told,) = self.restart()
        self.assertEqual(self.before, told.unnamed)
        # But for the two with instances.
        self.assertCounts(self.before, self.before - 2)
        self.cloud.nodes.update(hidden)
        self.run_passes()
        self.assertCounts(self.before, 0)

    def test_it_asks_for_other_nodes_later(self):
        hidden = self.hide(self.hidden)
        self.restart()
        self.cloud.nodes.update(hidden)
        for node in self.service.pool.nodes:
            self.cloud.nodes[node].group = 'rack'
        del self.services['b'], self.services['c']
        scope = settings.Scope('rack')
        self.service.current = self.service.tracker.current = (
            dataclasses.replace(self.service.current, scope=scope))
        self.run_passes(10)
        # With the one outside that has an instance of this service.
        found = 1 + sum(
            node.group == 'rack' for node in self.cloud.nodes.values())
        self.assertCounts(found, 0)
        self.assertEqual([], self.restart())
        self.assertCounts(found, 0)

    def test_service_that_was_down_for_long(self):
        self.hide(self.hidden)
        self.run_passes(361, silent=('a',), failing=('b', 'c'))
        self.assertEqual([], self.restart())
        self.assertCounts(self.before - 7, 0)

    def test_row_that_says_nothing(self):
        # As that of an earlier release.
        self.hide(self.hidden)
        self.cloud.rows[self.service.pool.uuid].counted = None
        self.assertEqual([], self.restart())
        self.assertEqual(
            self.before - 7, self.service.pool.inventory().total)


class RestartByShardsTestCase(_RestartTestCase):
    """Services divide the nodes by their shards."""

    def divide(self, count):
        """Put the nodes into shards, and have the services know these."""
        for number, node in enumerate(self.cloud.nodes.values()):
            node.shard = f'shard-{number % count}'
        for service in self.services.values():
            service.current = service.tracker.current = dataclasses.replace(
                service.current, by_shards=True)
        self.run_passes(5)
        self.before = self.service.total()

    def test_nodes_of_its_shards_are_hidden(self):
        self.divide(6)
        # Of each shard some are left.
        hidden = self.hide(sorted(self.service.nodes())[:7])
        for _ in range(2):
            (told,) = self.restart()
            self.assertEqual(7, told.unnamed)
            self.assertCounts(self.before, 7)
        self.cloud.nodes.update(hidden)
        self.run_passes()
        self.assertCounts(self.before, 0)

    def test_others_have_got_its_shards_meanwhile(self):
        self.divide(30)
        for host in 'defgh':
            self.start(host, by_shards=True)
        self.run_passes(5, silent=('a',))
        self.assertEqual([], self.restart(1))
        self.assertLess(self.service.total(), self.before - 5)
        self.assertEqual(0, self.service.pool.inventory().reserved)
        self.run_passes(2)
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())
