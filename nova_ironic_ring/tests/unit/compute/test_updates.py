# SPDX-License-Identifier: Apache-2.0

"""Tests of the driver that updates what has changed, and not what is there."""

import contextlib
import datetime
import time
import types
from unittest import mock

from nova.compute import manager
from nova.compute import task_states
from nova.compute import vm_states
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler import host_manager
import oslo_messaging
from oslo_utils import uuidutils

from nova_ironic_ring.adapters.nova import stats as stats_adapter
from nova_ironic_ring.adapters import placement
from nova_ironic_ring.adapters import several
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.values import member
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import nova_tracker
from nova_ironic_ring.tests.unit.compute import base


class WatchedTestCase(base.DriverTestCase):
    """Notes which nodes the tracker of the service updates."""

    def setUp(self):
        super().setUp()
        # No node has its turn unless the test says so.
        self.configure(full_update_interval=10 ** 9)
        self.driver.init_host('me')
        self.settle()
        self.me.run_pass()
        self.own = sorted(self.nova.owned('me'))
        self.updated: list[str] = []
        self.watch(self.me)

    def watch(self, compute) -> None:
        """Note which nodes a service's tracker updates."""
        describe = compute.driver.get_available_resource

        def described(node):
            self.updated.append(node)
            return describe(node)
        self.useFixture(base.fixtures.MockPatchObject(
            compute.driver, 'get_available_resource', described))

    def run_pass(self) -> set[str]:
        """Run a pass, and name the nodes that were updated in it."""
        self.updated.clear()
        self.nova.advance()
        self.me.run_pass()
        return set(self.updated)


class UpdatesTestCase(WatchedTestCase):

    def test_nothing_has_changed(self):
        self.assertEqual(set(), self.run_pass())
        self.assertEqual(set(self.own), self.nova.owned('me'))
        self.assertLess(0, self.me.ring.skipped)

    def test_each_pass(self):
        self.configure(full_update_interval=0)
        self.assertEqual(set(self.own), self.run_pass())

    def test_what_ironic_says_has_changed(self):
        node = self.own[0]
        self.nova.properties[node] = {'memory_mb': 4096}
        self.assertEqual({node}, self.run_pass())
        self.assertEqual(set(), self.run_pass())

    def test_instance_that_came(self):
        node = self.own[0]
        self.nova.put('instance', node, 'me')
        self.assertIn(node, self.run_pass())
        self.assertEqual(set(), self.run_pass())

    def test_settings_that_have_changed(self):
        """The peers see it, and no row is made anew for it."""
        self.configure(partitions=16)
        self.assertEqual(set(), self.run_pass())
        self.assertEqual(16, stats_adapter.read_profile(self.nova.row(
            member.uuid_of('me')).stats, 'me').partitions)

    def test_options_of_nova_that_have_changed(self):
        # Those are read at the start, when the rows are there already.
        for group, options in (
                ('workarounds', {'skip_reserve_in_use_ironic_nodes': True}),
                (None, {'ram_allocation_ratio': 2.0}),
                (None, {'reserved_host_memory_mb': 7})):
            self.configure(group, **options)
            self.assertEqual(set(self.own), self.run_pass())
            self.assertEqual(set(), self.run_pass())

    def test_provider_that_the_scheduler_is_wrongly_kept_away_from(self):
        node = self.own[0]
        fake_nova.list_providers(self.me.placement, lambda url: [
            each for each in self.cloud.rows
            if 'required' not in url or each in (node, *self.theirs())])
        forget = self.me.placement.invalidate_resource_provider
        forget.reset_mock()
        self.assertEqual({node}, self.run_pass())
        # Nova's client has the provider as it was before.
        forget.assert_called_once_with(node)

    def theirs(self) -> set[str]:
        """Name the nodes of the other services."""
        return self.nova.owned('a') | self.nova.owned('b')

    def test_update_that_fails_is_made_again(self):
        node = self.own[0]
        self.nova.properties[node] = {'memory_mb': 4096}
        update = self.me.manager.rt.update_available_resource.always
        fail = mock.Mock(side_effect=ValueError)
        with mock.patch.object(self.driver, 'get_available_resource', fail):
            self.me.begin_pass()
            self.assertRaises(ValueError, update, None, node)
        self.assertEqual({node}, self.run_pass())
        self.assertEqual(set(), self.run_pass())

    def test_row_that_another_has_overwritten(self):
        node = self.own[0]
        row = self.cloud.rows[node]
        row.made_of = None
        forget = mock.Mock()
        self.me.manager.rt.remove_node = forget
        self.assertEqual({node}, self.run_pass())
        # It would write nothing else than it has written before.
        forget.assert_called_once_with(node)
        self.assertIsNotNone(self.cloud.rows[node].made_of)

    def test_restart(self):
        self.start_again()
        self.assertEqual(set(), self.run_pass())
        self.assertEqual(set(self.own), self.nova.owned('me'))
        self.assertEqual(set(), set(self.me.tracked))
        self.assertEqual(set(self.own), self.me.ring.process.tracked())
        self.assertEqual(set(self.own), self.me.ring.untracked())

    def start_again(self) -> None:
        """Start the service anew, before its first pass."""
        self.me = self.nova.compute('me')
        self.driver = self.me.driver
        self.driver.init_host('me')
        self.watch(self.me)

    def restart(self) -> str:
        """Start the service anew, and name a node that it does not track."""
        self.start_again()
        self.run_pass()
        node = self.own[0]
        self.assertNotIn(node, self.me.tracked)
        return node

    def test_provider_that_is_gone_at_a_restart(self):
        node = self.own[0]
        self.start_again()
        placed = [each for each in self.cloud.rows if each != node]
        fake_nova.list_providers(self.me.placement, lambda url: [
            each for each in placed if 'required' not in url])
        self.assertEqual({node}, self.run_pass())

    def test_service_that_was_enabled_while_it_was_down(self):
        node = self.own[0]
        self.start_again()
        fake_nova.list_providers(self.me.placement, lambda url: [
            each for each in self.cloud.rows
            if 'required' not in url or each == node])
        self.assertEqual({node}, self.run_pass())

    def test_turns_wait_for_the_end_of_the_start(self):
        self.configure(full_update_interval=600)
        self.start_again()
        # So long that each node has its turn.
        self.nova.advance(1200)
        self.updated.clear()
        self.me.run_pass(startup=True)
        self.assertEqual([], self.updated)
        self.assertEqual(set(self.own), self.run_pass())

    def test_claim_of_a_node_that_is_not_tracked(self):
        node = self.restart()
        self.nova.put('instance', None, None, is_building=True)
        with self.nova.being('me'):
            self.me.manager.rt.instance_claim(
                None, self.nova.instance('instance'), node, {})
        self.assertIn(node, self.me.tracked)
        self.assertEqual('me', self.nova.host_of('instance'))

    def test_node_that_another_has_taken_meanwhile(self):
        node = self.restart()
        self.nova.record(node, 'a', {})
        self.assertFalse(self.driver._track_own(node))
        self.assertNotIn(node, self.me.tracked)
        self.assertEqual('a', self.cloud.rows[node].owner)

    def test_rebuild_on_a_node_that_is_not_tracked(self):
        node = self.restart()
        instance = mock.Mock(uuid='instance', host='me', node=node)
        self.nova.put('instance', node, 'me')
        self.me.manager.rt.finish_evacuation(instance, node, None)
        self.assertIn(node, self.me.tracked)

    def tell(self, enabled: bool) -> dict[str, bool]:
        """Have the service be disabled or enabled.

        :returns: what Placement is told from now on without the tracker
        """
        told: dict[str, bool] = {}
        self.useFixture(base.fixtures.MockPatchObject(
            placement.Placement, '_change_status',
            lambda port, node, enabled: told.update({node: enabled}) or True))
        # As it was prepared when the service started.
        self.me.manager._update_compute_provider_status('context', enabled)
        return told

    def test_offer_of_a_node_that_is_not_tracked(self):
        node = self.restart()
        self.nova.change_service('me', disabled=True)
        self.run_pass()
        self.assertIn(node, self.me.offers())
        self.assertNotIn(node, self.me.tracked)
        # A claim has the tracker track it.
        self.assertIn(node, self.me.ring.untracked())

    def test_service_that_is_disabled(self):
        """Placement is told of nodes that stay, and the tracker of none."""
        self.restart()
        stay = self.own[:2]
        for node in stay:
            self.nova.put(f'instance-{node}', node, 'me')
        self.run_pass()
        self.run_pass()
        # Nova tells of those that the tracker has.
        self.me.tracked.clear()
        told = self.tell(False)
        self.assertEqual(dict.fromkeys(stay, False), told)
        self.nova.change_service('me', disabled=True)
        self.assertEqual(set(), self.run_pass())
        self.assertEqual(set(self.own) - set(stay), self.me.offers().keys())

    def test_service_that_tracks_nothing_is_enabled(self):
        node = self.restart()
        self.me.tracked.clear()
        self.assertTrue(self.tell(True)[node])


class MovesTestCase(WatchedTestCase):
    """Free nodes come to the service, and go from it."""

    def setUp(self):
        super().setUp()
        self.theirs = self.nova.owned('a')
        self.say_made(self.theirs)

    def say_made(self, nodes: set[str], owner: str = 'a') -> None:
        """Have rows of another say that they were made as here."""
        ring = self.me.ring
        said = updates.of_process(ring.process)
        for node, answer in ring.ironic.fingerprints(nodes).items():
            row = self.cloud.rows[node]
            row.sayer = owner
            row.made_of = updates.made_of(
                answer, decisions.Decision.KEEP, said)
            row.made_at = ring.process.wall_time().timestamp()
            self.cloud.providers.add(node)

    def kill(self) -> set[str]:
        """Have a die, and name its nodes that come to the service."""
        self.nova.change_service('a', forced_down=True)
        before = self.nova.owned('me')
        updated = self.run_pass()
        came = self.nova.owned('me') - before
        self.assertLess(3, len(came))
        self.assertEqual(self.theirs & came, came)
        self.tracked = updated & came
        return came

    def test_nodes_of_a_dead_service(self):
        came = self.kill()
        self.assertEqual(set(), self.tracked)
        for node in came:
            row = self.nova.row(node)
            self.assertEqual('me', row.host)
            self.assertIsNotNone(stats_adapter.read_made(row.stats, 'me')[0])
            self.assertNotIn(node, self.me.tracked)
        self.assertLessEqual(came, self.me.ring.process.tracked())
        # Nova's API may delete their providers with the record of the dead.
        self.assertEqual(came, self.run_pass())
        self.assertEqual(set(), self.run_pass())
        self.assertEqual(came, came & self.nova.owned('me'))

    def test_node_that_changes_after_it_has_come(self):
        node = min(self.kill())
        self.cloud.nodes[node].is_ready = False
        self.updated.clear()
        self.driver.ring_changes.look()
        self.assertEqual([node], self.updated)

    def test_each_node_in_each_pass(self):
        self.configure(full_update_interval=0)
        self.assertEqual(self.kill(), self.tracked)

    def test_node_that_was_made_otherwise(self):
        changed = max(self.theirs)
        self.nova.properties[changed] = {'memory_mb': 4096}
        came = self.kill()
        self.assertEqual({changed} & came, self.tracked)

    def test_nodes_that_say_nothing(self):
        for node in self.theirs:
            self.cloud.rows[node].made_of = None
        self.assertEqual(self.kill(), self.tracked)

    def test_node_with_an_allocation(self):
        for node in self.theirs:
            self.cloud.allocations[node] = {'a-build'}
        self.assertEqual(self.kill(), self.tracked)

    def test_node_without_a_provider(self):
        fake_nova.interpose(self.me.placement.get, '/allocations',
                            lambda url: fake_nova.answer(404))
        self.assertEqual(self.kill(), self.tracked)

    def test_placement_that_does_not_answer(self):
        ask = self.me.placement.get
        ask.side_effect = ValueError('no answer')
        self.assertEqual(self.kill(), self.tracked)
        self.assertIn('nodes directly; the resource tracker takes them',
                      self.log.output)

    def test_node_that_another_takes_meanwhile(self):
        taken = set()
        look = self.me.ring.world.nova.rows

        def lose(nodes):
            found = look(nodes)
            if len(nodes) > 3 and self.me.ring.result.plan.steps and (
                    all(node in self.theirs for node in nodes)):
                node = min(nodes)
                self.nova.own(node, 'b')
                taken.add(node)
            return found
        self.useFixture(base.fixtures.MockPatchObject(
            self.me.ring.world.nova, 'rows', lose))
        self.nova.change_service('a', forced_down=True)
        self.run_pass()
        self.assertLess(0, len(taken))
        self.assertEqual(set(), taken & self.nova.owned('me'))

    def test_row_that_cannot_be_saved(self):
        with mock.patch.object(objects.ComputeNode, 'save',
                               side_effect=ValueError('no conductor')):
            self.nova.change_service('a', forced_down=True)
            self.me.begin_pass()
        self.assertIn('Cannot record node', self.log.output)
        self.assertEqual(self.theirs, self.nova.owned('a'))
        self.assertLess(3, len(self.kill()))

    def test_conductor_that_does_not_answer(self):
        saved = []

        def save(row):
            saved.append(row.uuid)
            time.sleep(0.1)
            raise oslo_messaging.MessagingTimeout()
        self.nova.change_service('a', forced_down=True)
        with (mock.patch.object(objects.ComputeNode, 'save', save),
              mock.patch.object(several, '_THREADS', 2),
              mock.patch.object(self.me.ring.world.nova, 'say_member')):
            self.me.begin_pass()
        # Those that were being saved at the same time.
        self.assertEqual(2, len(saved))
        self.assertLess(2, len(self.kill()))

    def test_service_that_is_about_to_end(self):
        self.nova.change_service('a', forced_down=True)
        self.useFixture(base.fixtures.MockPatchObject(
            self.me.ring.process, 'is_ending', lambda: True))
        self.run_pass()
        self.assertEqual(self.theirs, self.nova.owned('a'))

    def test_turns_that_come_in_a_pass_wait_for_the_next(self):
        self.configure(full_update_interval=600)
        describe = self.driver.get_available_resource

        def described(node):
            # So long that all others have their turns.
            self.cloud.now += 1200
            return describe(node)
        self.nova.properties[self.own[0]] = {'memory_mb': 4096}
        with mock.patch.object(
                self.driver, 'get_available_resource', described):
            self.assertGreater(len(self.own), len(self.run_pass()))
        # Otherwise most would wait, since updates take so long.
        self.me.ring._pace._cost = 0
        self.assertEqual(set(self.own[1:]), self.run_pass())

    def test_turn_whose_update_fails(self):
        self.configure(full_update_interval=600)
        node = self.own[0]
        describe = self.driver.get_available_resource

        def described(each):
            if each == node:
                raise exception.ComputeHostNotFound(host='me')
            return describe(each)
        self.nova.advance(1200)
        with mock.patch.object(
                self.driver, 'get_available_resource', described):
            self.assertEqual(set(self.own) - {node}, self.run_pass())
        self.assertEqual({node}, self.run_pass())

    def test_turns_take_a_part_of_the_time(self):
        self.configure(full_update_interval=600)
        describe = self.driver.get_available_resource

        def described(node):
            self.cloud.now += 100
            return describe(node)
        self.nova.advance(1200)
        with mock.patch.object(
                self.driver, 'get_available_resource', described):
            self.assertEqual(set(self.own), self.run_pass())
        self.nova.advance(1200)
        # The others wait: these updates take too long.
        first = self.run_pass()
        self.assertEqual(1, len(first))
        oldest = self.me.ring.oldest_update()
        self.assertLess(1200, oldest)
        self.assertEqual(set(), first & self.run_pass())

    def test_clock_that_is_set(self):
        self.configure(full_update_interval=600)
        self.run_pass()
        for seconds in (86400, -86400):
            self.useFixture(base.fixtures.MockPatchObject(
                self.me.ring.process, 'wall_time',
                lambda seconds=seconds, now=self.me.ring.process.wall_time: (
                    now() + datetime.timedelta(seconds=seconds))))
            self.assertEqual(set(self.own), self.run_pass())
            self.assertGreater(len(self.own) / 2, len(self.run_pass()))
            self.assertGreater(200, self.me.ring.oldest_update())

    def test_claim_of_a_node_that_has_come(self):
        node = min(self.kill())
        said = self.log.output
        self.nova.put('instance', None, None, is_building=True)
        self.cloud.allocations[node] = {'instance'}
        with self.nova.being('me'):
            self.me.manager.rt.instance_claim(
                None, self.nova.instance('instance'), node, {})
        self.assertIn(node, self.me.tracked)
        self.assertEqual('me', self.nova.host_of('instance'))
        # It was this service's.
        self.assertEqual(said, self.log.output)

    def test_claim_of_a_node_that_has_gone(self):
        node = self.own[0]
        self.assertIn(node, self.me.tracked)
        # The tracker sees that in its next pass only.
        self.nova.own(node, 'a')
        self.nova.put('instance', None, None, is_building=True)
        self.cloud.allocations[node] = {'instance'}
        with self.nova.being('me'):
            self.me.manager.rt.instance_claim(
                None, self.nova.instance('instance'), node, {})
        self.assertEqual('me', self.nova.host_of('instance'))
        self.assertEqual('me', self.cloud.rows[node].owner)
        self.assertIn(node, self.me.tracked)

    def test_nodes_that_come_between_two_passes(self):
        self.nova.change_service('a', forced_down=True)
        self.driver.ring_reactions.look()
        self.driver.ring_takes.take()
        came = self.nova.owned('me') & self.theirs
        self.assertLess(3, len(came))
        self.assertLessEqual(came, self.me.ring.process.tracked())
        # The tracker has not been asked.
        self.assertEqual(set(), came & self.me.tracked.keys())
        self.assertLessEqual(came, self.me.ring.nodes.keys())

    def test_nodes_of_a_service_that_was_disabled(self):
        told = []
        self.useFixture(base.fixtures.MockPatchObject(
            placement.Placement, '_change_status',
            lambda port, node, enabled: told.append((node, enabled)) or True))
        fake_nova.list_providers(
            self.me.placement, lambda url: self.theirs)
        came = self.kill()
        self.assertEqual({(node, True) for node in came}, set(told))

    def test_offers_are_written_into_no_row(self):
        self.nova.change_service('me', disabled=True)
        self.assertEqual(set(), self.run_pass())
        self.assertEqual(set(self.own), self.me.offers().keys())
        # They are withdrawn in the same way.
        self.nova.change_service('me', disabled=False)
        self.assertEqual(set(), self.run_pass())
        self.assertEqual({}, self.me.offers())


class NovaTrackerTestCase(base.DriverTestCase):
    """What rows say without the tracker is what Nova's own makes of them."""

    def setUp(self):
        super().setUp()
        self.configure(full_update_interval=10 ** 9)
        self.tracked = self.useFixture(
            nova_tracker.NovaTracker(self.nova, self.me))
        for _ in range(3):
            self.tracked.run_pass()
            self.nova.advance()
        self.node = min(self.nova.owned('me'))

    def test_what_changes_when_a_node_moves(self):
        said = self.driver.get_available_resource(self.node)
        self.nova.own(self.node, 'a')
        tracker = self.tracked.tracker
        tracker.remove_node(self.node)
        changes = []
        with mock.patch.object(
                tracker, '_update', lambda context, row: changes.append(
                    row.obj_what_changed())):
            tracker._init_compute_node(nova_context.get_admin_context(), {
                **said, 'host_ip': '192.0.2.1'})
        # What take_rows writes as well, with the address, which comes later.
        # Ironic's nodes have no PCI devices.
        self.assertEqual([{'host', 'service_id'}], [
            each - {'pci_device_pools'} for each in changes])

    def test_service_of_a_node_that_another_has_taken(self):
        """The tracker does not write its own service into the row."""
        row = {'host': 'me', 'service_id': 1}

        def save(node: objects.ComputeNode) -> None:
            changed = node.obj_get_changes()
            if node.hypervisor_hostname == self.node:
                row.update({name: changed[name]
                            for name in row.keys() & changed.keys()})
                # As Nova does with what the database has.
                node.host, node.service_id = row['host'], row['service_id']
            node.obj_reset_changes()
        self.useFixture(base.fixtures.MockPatchObject(
            objects.ComputeNode, 'save', save))
        row |= {'host': 'b', 'service_id': 2}
        self.nova.own(self.node, 'b')
        for new in 'one', 'two':
            self.nova.properties[self.node] = {'capabilities': f'new:{new}'}
            upstream.add_to_cache(
                self.driver, {self.node: self.nova.node(self.node)})
            with contextlib.suppress(exception.ComputeHostNotFound):
                upstream.track(self.driver, self.node)
        self.assertEqual({'host': 'b', 'service_id': 2}, row)
        self.assertNotIn(self.node, self.tracked.tracker.compute_nodes)

    def test_node_that_is_tracked_while_the_service_is_disabled(self):
        names = self.nova.owned('me') | {member.uuid_of('me')}
        told = list[str]()
        upstream.forget(self.driver, self.node)

        def tell(context, uuid, enabled):
            told.append(uuid)
            if len(told) == 1:
                # As in another thread.
                upstream.track(self.driver, self.node)
        compute = types.SimpleNamespace(
            rt=self.tracked.tracker, host='me', virtapi=types.SimpleNamespace(
                update_compute_provider_status=tell))
        compute._update_compute_provider_status = types.MethodType(
            manager.ComputeManager._update_compute_provider_status, compute)
        more = {}
        upstream.tell_status(
            types.SimpleNamespace(
                virtapi=types.SimpleNamespace(_compute=compute)),
            lambda enabled: {'untracked'},
            lambda nodes, enabled: more.update(dict.fromkeys(nodes, enabled)))
        compute._update_compute_provider_status('context', False)
        self.assertGreater(len(names), len(told))
        self.assertEqual(dict.fromkeys({*names, 'untracked'}, False), more)

    def test_what_its_former_owner_writes(self):
        self.nova.own(self.node, 'a')
        self.nova.properties[self.node] = {'capabilities': 'new:one'}
        changes = []

        def save(row):
            changes.append(row.obj_what_changed())
            row.obj_reset_changes()
        upstream.add_to_cache(self.driver, {
            self.node: self.nova.node(self.node)})
        with mock.patch.object(objects.ComputeNode, 'save', save):
            self.tracked.tracker.update_available_resource.always(
                nova_context.get_admin_context(), self.node)
        # The row stays with a.
        self.assertEqual([set()], [
            each & {'host', 'service_id'} for each in changes])

    def test_placement_is_written_first(self):
        happened = []
        write = self.me.placement.update_from_provider_tree
        write.side_effect = lambda *_, **__: happened.append('placement')
        self.useFixture(base.fixtures.MockPatchObject(
            objects.ComputeNode, 'save', lambda row: happened.extend(
                ['row'] if row.uuid == self.node else [])))
        self.nova.properties[self.node] = {'capabilities': 'new:one'}
        self.nova.advance()
        self.tracked.run_pass()
        self.assertEqual(['placement', 'row'], happened)
        happened.clear()
        write.side_effect = ValueError('no answer')
        self.nova.properties[self.node] = {'capabilities': 'new:two'}
        self.nova.advance()
        self.tracked.run_pass()
        self.assertEqual([], happened)

    def test_steady_pass(self):
        with mock.patch.object(
                self.tracked.tracker, '_update') as update:
            self.tracked.run_pass()
        update.assert_not_called()

    def test_rows_are_read_once(self):
        read = self.useFixture(base.fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all_by_host',
            side_effect=objects.ComputeNodeList.get_all_by_host)).mock
        for _ in range(2):
            self.nova.advance()
            self.tracked.run_pass()
        self.assertEqual(2, read.call_count)
        self.assertIn(self.node, self.tracked.tracker.compute_nodes)

    def test_build_that_takes_a_node_during_a_pass(self):
        """The manager does not have the tracker forget it."""
        begin = self.driver.get_available_nodes
        taken = min(self.nova.owned('b'))

        def begin_and_take():
            listed = begin()
            # As a claim does.
            self.nova.record(taken, 'me', {})
            self.nova.own(taken, 'me')
            self.tracked.tracker.compute_nodes[taken] = mock.Mock()
            return listed
        self.nova.advance()
        with mock.patch.object(
                self.driver, 'get_available_nodes', begin_and_take):
            self.tracked.run_pass()
        self.assertIn(taken, self.tracked.tracker.compute_nodes)

    def test_database_that_lags_behind(self):
        self.nova.advance()
        read = objects.ComputeNodeList.get_all_by_host
        # So that the manager reads rows, which it does from a replica.
        self.tracked.tracker.compute_nodes['taken'] = mock.Mock()
        with mock.patch.object(
                objects.ComputeNodeList, 'get_all_by_host',
                lambda context, host, use_slave=False: (
                    [] if use_slave else read(context, host))):
            self.tracked.run_pass()
        self.assertNotIn(self.node, self.tracked.tracker.compute_nodes)
        # A claim has the tracker track it.
        self.assertIn(self.node, self.me.ring.untracked())
        self.assertTrue(self.driver._track_own(self.node))
        self.assertIn(self.node, self.tracked.tracker.compute_nodes)

    def test_capabilities_that_nova_counts_itself(self):
        names = 'io_workload', 'num_instances', 'failed_builds'
        self.nova.properties[self.node] = {'capabilities': ','.join(
            f'{name}:none' for name in names)}
        self.nova.advance()
        self.tracked.run_pass()
        row = self.tracked.tracker.compute_nodes[self.node]
        # As Nova's scheduler does with the statistics of each node.
        state = host_manager.HostState('me', self.node, None)
        for name in ('cpu', 'ram', 'disk'):
            setattr(row, f'{name}_allocation_ratio', 1.0)
        row.updated_at = None
        state.update(compute=row)
        self.assertEqual(
            (0, 0, 0),
            (state.num_io_ops, state.num_instances, state.failed_builds))

    def test_failed_build_is_written_by_the_next_pass(self):
        tracker = self.tracked.tracker
        tracker.build_failed(self.node)
        self.nova.advance()
        self.tracked.run_pass()
        self.assertEqual(
            '1', str(tracker.compute_nodes[self.node].stats.get(
                'failed_builds')))

    def test_options_of_nova_that_have_changed(self):
        tracker = self.tracked.tracker
        tracker.build_failed(self.node)
        before = self.cloud.rows[self.node].made_of
        self.configure(None, ram_allocation_ratio=2.0)
        self.nova.advance()
        self.tracked.run_pass()
        self.assertNotEqual(before, self.cloud.rows[self.node].made_of)
        # Nobody else has written the row: the tracker goes on with its own.
        self.assertEqual(1, tracker.stats[self.node]['failed_builds'])

    def test_row_that_another_has_overwritten(self):
        before = self.cloud.rows[self.node].made_of
        self.cloud.rows[self.node].made_of = None
        self.nova.advance()
        self.tracked.run_pass()
        self.assertEqual(before, self.cloud.rows[self.node].made_of)
        self.assertIn(self.node, self.tracked.tracker.compute_nodes)

    def test_instance_that_nova_deletes_after_ironic(self):
        # Ironic has let go of it, and Nova is about to delete its record.
        left = [objects.Instance(
            uuid=uuidutils.generate_uuid(), host='me', node=self.node,
            vm_state=vm_states.ACTIVE, task_state=task_states.DELETING,
            os_type=None, project_id=None, compute_id=1, numa_topology=None,
            resources=None, migration_context=None, old_flavor=None,
            flavor=objects.Flavor(
                memory_mb=4096, root_gb=10, ephemeral_gb=0, swap=0, vcpus=4,
                extra_specs={}))]
        self.tracked.tracker.is_bfv[left[0].uuid] = False
        self.useFixture(base.fixtures.MockPatchObject(
            objects.InstanceList, 'get_by_host_and_node',
            lambda context, host, node, **_: objects.InstanceList(
                objects=left if node == self.node else [])))
        row = self.tracked.tracker.compute_nodes[self.node]
        self.nova.properties[self.node] = {'memory_mb': 4096}
        for expected in 4, 4, 0, 0:
            if not expected:
                left.clear()
            self.nova.advance()
            self.tracked.run_pass()
            self.assertEqual(expected, row.vcpus_used)
            self.assertEqual(bool(expected), row.running_vms)
        self.assertFalse(self.driver._is_to_update(self.node))
