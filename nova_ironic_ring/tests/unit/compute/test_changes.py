# SPDX-License-Identifier: Apache-2.0

"""Tests of seeing between two passes what has changed in Ironic."""

import threading
import time
from unittest import mock

import fixtures
from nova import exception

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.unit.compute import base
from nova_ironic_ring.tests.unit.compute import test_updates

_SECONDS = 30


def _threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate()
            if each.name == 'ironic_ring_changes']


class ChangesTestCase(test_updates.WatchedTestCase):

    def setUp(self):
        super().setUp()
        self.node = self.own[0]
        self.nova.asked.clear()

    def look(self) -> list[str]:
        """Look once, and name the nodes that were updated by it."""
        self.updated.clear()
        self.driver.ring_changes.look()
        return self.updated

    def change(self, node: str, **fields: object) -> None:
        for name, value in fields.items():
            setattr(self.cloud.nodes[node], name, value)

    def test_nothing_has_changed(self):
        self.assertEqual([], self.look())
        self.assertEqual(['latest nodes'], self.nova.asked)

    def test_maintenance(self):
        self.change(self.node, is_ready=False)
        self.assertEqual([self.node], self.look())
        self.assertTrue(self.driver.node_cache[self.node].is_maintenance)
        self.assertEqual([], self.look())
        self.change(self.node, is_ready=True)
        self.assertEqual([self.node], self.look())
        self.assertFalse(self.driver.node_cache[self.node].is_maintenance)

    def test_the_next_pass_updates_it_no_more(self):
        self.change(self.node, is_ready=False)
        self.look()
        self.assertEqual(set(), self.run_pass())
        self.assertEqual([], self.look())

    def test_another_change_in_the_next_pass(self):
        self.change(self.node, is_ready=False)
        self.look()
        self.change(self.node, is_ready=True)
        self.assertEqual({self.node}, self.run_pass())

    def test_row_that_another_writes_after_it(self):
        self.change(self.node, is_ready=False)
        self.look()
        self.cloud.rows[self.node].made_of = 'else'
        with mock.patch.object(upstream, 'forget') as forget:
            self.assertEqual({self.node}, self.run_pass())
        # The tracker would go by what it has written last.
        forget.assert_called_once_with(self.driver, self.node)

    def test_node_of_a_peer(self):
        theirs = min(set(base.NODES) - set(self.own))
        self.change(theirs, is_ready=False)
        self.assertEqual([], self.look())

    def test_node_that_a_peer_has_taken(self):
        self.change(self.node, is_ready=False)
        self.nova.own(self.node, 'a')
        self.assertEqual([], self.look())
        # A second page, after one with something new.
        self.assertEqual(
            ['latest nodes', 'latest nodes', 'rows'], self.nova.asked)

    def test_node_that_a_pass_has_given_up_meanwhile(self):
        self.change(self.node, is_ready=False)
        changes = self.driver.ring_changes
        ask = changes._look

        def look():
            found = ask()
            self.me.ring.result = type(self.me.ring.result)()
            return found
        with mock.patch.object(changes, '_look', look):
            self.assertEqual([], self.look())

    def test_untracked_node(self):
        self.me = self.start_again()
        self.assertNotIn(self.node, self.me.tracked)
        self.change(self.node, is_ready=False)
        self.assertEqual([self.node], self.look())
        self.assertIn(self.node, self.me.tracked)

    def start_again(self):
        self.nova.computes.clear()
        compute = self.nova.compute('me')
        self.driver = compute.driver
        self.driver.init_host('me')
        compute.run_pass()
        self.watch(compute)
        return compute

    def test_update_that_fails(self):
        self.change(self.node, is_ready=False)
        with mock.patch.object(
                self.driver, 'get_available_resource', side_effect=ValueError):
            self.look()
        self.assertIn('Cannot update it before the next pass',
                      self.log.output)
        self.assertEqual({self.node}, self.run_pass())

    def test_ironic_does_not_answer(self):
        with fixtures.MockPatchObject(
                self.me.ring, 'ask_for_changes',
                side_effect=exception.VirtDriverNotReady):
            self.look()
            self.look()
        self.assertEqual(1, self.log.output.count('look for changes'))
        self.assertTrue(self.me.ring.memory.view.is_trusted)

    def test_no_turn_while_ironic_is_asked(self):
        found: list[bool] = []

        def lock():
            found.append(self.me.ring.turn.acquire(blocking=False))
            if found[-1]:
                self.me.ring.turn.release()

        def ask():
            other = threading.Thread(target=lock)
            other.start()
            other.join()
            return []
        with mock.patch.object(self.me.ring, 'ask_for_changes', ask):
            self.driver._look_for_changes()
        self.assertEqual([True], found)

    def test_nova_does_not_answer(self):
        self.change(self.node, is_ready=False)
        with fixtures.MockPatch(
                'nova.objects.ComputeNodeList.get_all_by_uuids',
                side_effect=exception.CellTimeout):
            self.assertEqual([], self.look())
        self.assertEqual([self.node], self.look())

    def test_while_the_tracker_goes_from_node_to_node(self):
        self.nova.advance()
        self.me.begin_pass()
        self.change(self.node, is_ready=False)
        self.assertEqual([self.node], self.look())
        self.assertFalse(self.me.ring.is_to_update(self.node))

    def test_when_it_is_due(self):
        ring = self.me.ring
        self.nova.conf.config(group='ironic_ring', changes_interval=10)
        with mock.patch.object(ring.process, 'now', return_value=1000.0):
            ring.ask_for_changes()
        for now, due in (1004.0, 6.0), (1010.0, 0.0):
            with mock.patch.object(ring.process, 'now', return_value=now):
                self.assertEqual(due, ring.changes_due())

    def test_a_pass_has_listed_all(self):
        ring = self.me.ring
        now = ring.process.now() + 100
        with mock.patch.object(ring.process, 'now', return_value=now):
            self.assertEqual(0, ring.changes_due())
            self.me.begin_pass()
            self.assertEqual(10, ring.changes_due())

    def test_never(self):
        self.configure(changes_interval=0)
        self.me.run_pass()
        self.assertIsNone(self.me.ring.changes_due())


class NotYetTestCase(base.DriverTestCase):

    def test_before_the_first_pass(self):
        self.driver.init_host('me')
        self.assertIsNone(self.me.ring.changes_due())


class PoolChangesTestCase(base.PeersWithPools):

    def setUp(self):
        super().setUp()
        self.driver.init_host('me')
        self.settle()
        self.me.run_pass()
        self.name = pools.name('me', base.KIND)
        self.node = min(self.me.ring.nodes)
        self.nova.asked.clear()

    def look(self) -> list[str]:
        """Look once, and name the pools that were updated by it."""
        updated = []
        with mock.patch.object(
                upstream, 'track', lambda source, name: updated.append(name)):
            self.driver.ring_changes.look()
        return updated

    def free(self) -> int:
        found = self.me.ring.result.found[self.name]
        inventory = found.inventory(self.me.ring._recent.released(self.name))
        return inventory.total - inventory.reserved

    def test_nothing_has_changed(self):
        self.assertEqual([], self.look())
        self.assertEqual(['latest nodes'], self.nova.asked)

    def test_maintenance(self):
        before = self.free()
        self.cloud.nodes[self.node].is_ready = False
        self.assertEqual([self.name], self.look())
        self.assertEqual(before - 1, self.free())
        self.assertTrue(self.driver.node_cache[self.node].is_maintenance)
        self.cloud.nodes[self.node].is_ready = True
        self.assertEqual([self.name], self.look())
        self.assertEqual(before, self.free())

    def test_the_tracker_writes_it(self):
        before = self.me.ring.describe(self.name)
        self.cloud.nodes[self.node].is_ready = False
        self.driver.ring_changes.look()
        self.assertIn(self.name, self.me.tracked)
        self.assertLessEqual(
            self.me.ring.describe(self.name)['vcpus'], before['vcpus'])

    def test_node_that_was_free_before_its_delete_had_ended(self):
        before = self.free()
        self.cloud.nodes[self.node].instance = 'mine'
        self.assertEqual([], self.look())
        self.cloud.nodes[self.node].instance = None
        self.assertEqual([], self.look())
        self.me.ring.release(self.node, self.name)
        self.assertEqual(before - 1, self.free())
        self.assertEqual([self.name], self.look())
        self.assertEqual(before, self.free())
        self.assertEqual([], self.look())

    def test_node_that_has_been_cleaned(self):
        before = self.free()
        self.nova.put('mine', self.node, 'me')
        self.nova.change_instance('mine', node=self.name)
        self.cloud.allocations[pools.uuid_of(self.name)] = {'mine'}
        self.nova.advance()
        self.me.run_pass()
        self.me.ring.release(self.node, self.name)
        self.cloud.nodes[self.node].instance = None
        self.cloud.nodes[self.node].is_ready = False
        del self.cloud.instances['mine']
        self.assertEqual([self.name], self.look())
        self.assertEqual(before - 1, self.free())
        self.cloud.nodes[self.node].is_ready = True
        self.assertEqual([self.name], self.look())
        # It counts, and builds may have it.
        self.assertEqual(before, self.free())
        self.assertEqual([self.node], list(
            self.me.ring._recent.untried([self.node])))


class ThreadTestCase(base.DriverTestCase):
    """The thread in which it is looked."""

    def setUp(self):
        super().setUp()
        self.driver.init_host('me')
        self.addCleanup(self._end)
        self.configure(changes_interval=1)

    def _end(self) -> None:
        self.me.ring.process.heartbeats.end()
        for thread in threading.enumerate():
            if thread.name.startswith('ironic_ring'):
                thread.join(_SECONDS)

    def test_it_begins_after_the_start_of_the_service(self):
        self.settle()
        self.assertEqual([], _threads())
        self.me.manager.post_start_hook()
        self.assertEqual(1, len(_threads()))
        self._end()
        self.assertEqual([], _threads())

    def test_it_looks(self):
        self.settle()
        self.me.run_pass()
        node = min(self.nova.owned('me'))
        self.cloud.nodes[node].is_ready = False
        self.me.manager.post_start_hook()
        self.nova.advance(2)
        deadline = time.monotonic() + _SECONDS
        while not self.driver.node_cache[node].is_maintenance and (
                time.monotonic() < deadline):
            time.sleep(0.01)
        self.assertTrue(self.driver.node_cache[node].is_maintenance)
