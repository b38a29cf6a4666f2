# SPDX-License-Identifier: Apache-2.0

"""The driver, with the real adapters, on one Nova in memory.

What is decided is tested in tests/unit/core; here is what reaches Nova.
"""

import importlib
import threading
import types
from unittest import mock

import ddt
import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
import nova.conf
from nova import exception
from nova import objects
from nova.virt import driver as virt_driver
from nova.virt.ironic import driver as nova_driver
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
import oslo_messaging

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import driver
from nova_ironic_ring.compute.instances import guards
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import orphans
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.taking import new_nodes
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.unit.compute import base

CONF = nova.conf.CONF
Decision = decisions.Decision
NODES = base.NODES
NEW = base.NEW


class PassTestCase(base.DriverTestCase):
    """Which nodes a pass lists."""

    def test_nodes_by_the_ring(self):
        desired = self.desired('me', 'a', 'b')
        self.assertGreater(len(desired), 0)
        self.assertLess(len(desired), len(NODES))
        self.assertEqual(desired, self.me.begin_pass())

    def test_own_instances_always(self):
        theirs = min(set(NODES) - self.desired('me', 'a', 'b'))
        self.nova.put('mine', theirs, 'me')
        self.assertIn(theirs, self.me.begin_pass())

    def test_instances_of_others_never(self):
        own = min(self.desired('me', 'a', 'b'))
        self.nova.put('theirs', own, 'a')
        self.assertNotIn(own, self.me.begin_pass())

    def test_host_names_in_any_case(self):
        for host in 'me', 'a':
            del self.cloud.services[host]
        self.nova.add_service('Me', 'A')
        self.nova.conf.config(host='ME')
        me = self.nova.compute('ME')
        self.assertEqual(self.desired('me', 'a', 'b'), me.begin_pass())

    def test_members_change(self):
        self.settle()
        self.nova.change_service('b', forced_down=True)
        self.assertEqual(self.desired('me', 'a'), self.me.run_pass())

    def test_heartbeats_in_memcached(self):
        self.nova.conf.config(servicegroup_driver='mc')
        # What the database says does not count.
        self.useFixture(fixtures.MockPatch(
            'nova.servicegroup.API')).mock().service_is_up = (
                lambda service: service.host != 'a')
        self.nova.silent |= {'me', 'a', 'b'}
        me = self.nova.compute('me')
        me.run_pass()
        self.nova.advance(2 * CONF.service_down_time)
        self.assertEqual(self.desired('me', 'b'), me.begin_pass())

    def test_systemd_does_without_heartbeats_in_memcached(self):
        made = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.process.watchdog.Watchdog')).mock
        self.nova.compute('me').begin_pass()
        made().do_without.assert_not_called()
        self.nova.conf.config(servicegroup_driver='mc')
        self.useFixture(fixtures.MockPatch('nova.servicegroup.API'))
        me = self.nova.compute('me')
        me.begin_pass()
        made().do_without.assert_called()
        # Another save of the record is no heartbeat.
        me.beat()
        self.assertIsNone(me.ring.process.heartbeats.age())


class _MeetingLock:
    """A lock that so many threads wait for before one has it."""

    def __init__(self, threads: int) -> None:
        self._together = threading.Barrier(threads, timeout=60)
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._together.wait()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class CacheTestCase(base.DriverTestCase):
    """What Nova's driver answers from."""

    def setUp(self):
        super().setUp()
        self.settle()
        self.own = self.desired('me', 'a', 'b')
        self.nova.asked.clear()

    def test_a_pass_fills_it(self):
        node = min(self.own)
        self.nova.properties[node] = {'vendor': 'new'}
        self.me.begin_pass()
        self.assertEqual(self.own, set(self.driver.node_cache))
        cached = self.driver.node_cache[node]
        self.assertIsInstance(cached, sdk_node.Node)
        self.assertEqual('new', cached.properties['vendor'])

    def test_it_is_a_copy(self):
        # Nova's driver changes it.
        self.driver.node_cache.clear()
        self.assertEqual(self.own, set(self.me.ring.nodes))

    def test_answers_come_from_it(self):
        own = min(self.own)
        self.assertTrue(self.driver.node_is_available(own))
        self.assertEqual(own, self.driver.get_available_resource(own)['uuid'])
        self.assertEqual([], self.nova.asked)

    def _break_listing(self) -> None:
        first = self.nova.ironic.get.side_effect

        def half_a_listing(url, params, **kwargs):
            if 'marker' in params:
                raise sdk_exceptions.SDKException('gone')
            return first(url, params, **kwargs)
        self.nova.page = 3
        self.nova.ironic.get.side_effect = half_a_listing

    def test_pass_that_fails_keeps_it(self):
        self._break_listing()
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        self.assertEqual(self.own, set(self.driver.node_cache))

    def test_many_threads_that_find_it_empty_run_one_pass(self):
        me = self.nova.compute('me')
        me.ring.turn = _MeetingLock(8)
        answers = []

        def ask():
            answers.append(me.driver.node_is_available(min(self.own)))
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual([True] * 8, answers)
        self.assertEqual(1, self.nova.asked.count('nodes'))

    def test_a_thread_that_asks_later_runs_another_pass(self):
        self.me.begin_pass()
        self.nova.advance()
        self.me.begin_pass()
        self.assertEqual(2, self.nova.asked.count('nodes'))

    def test_empty_one_is_filled_before_the_last_look(self):
        me = self.nova.compute('me')
        node = min(self.own)
        with fixtures.MockPatchObject(
                me.ring, 'look_at', wraps=me.ring.look_at) as look_at:
            self.assertTrue(me.update(node))
            self.assertIn(node, me.ring.result.plan.steps)
        look_at.mock.assert_called_once_with(node)
        me.placement.invalidate_resource_provider.assert_called_once_with(node)


class QuietPassTestCase(base.DriverTestCase):
    """What is read where nothing moves, and in which order."""

    #: The first rows are the member records, the last one is that of this
    #: service, which is written.
    QUIET = ['nodes', 'all services', 'rows', 'instances of host',
             'rows of host', 'rows']

    def setUp(self):
        super().setUp()
        self.say_members('a', 'b')

    def _asked(self) -> list[str]:
        self.nova.advance()
        return self.me.asked_in_a_pass()

    def test_nothing_else(self):
        self.settle()
        # Now and then it looks for what is left of dead services.
        self.assertEqual(self.QUIET, self._asked())
        self.assertEqual(self.QUIET, self._asked())

    def test_instances_of_others_are_read_once(self):
        self.nova.put('theirs', min(self.desired('me', 'a', 'b')), 'b')
        self.nova.put('mine', max(self.desired('me', 'a', 'b')), 'me')
        self.settle()
        # Whose they are may change.
        self.assertEqual([*self.QUIET[:-1], 'instances of host', 'rows'],
                         self._asked())

    def test_instance_on_its_way_is_read_in_each_pass(self):
        node = min(self.desired('me', 'a', 'b'))
        for fields in {'host': None, 'node': node}, {
                'host': 'b', 'node': NEW}:
            self.nova.put('theirs', **fields)
            self.cloud.nodes[node].instance = 'theirs'
            self.settle()
            self.assertIn('instances', self._asked())

    def test_rows_of_others_where_they_are_for_this_service(self):
        self.settle()
        self.nova.own(min(self.desired('me', 'a', 'b')), 'b')
        self._asked()
        # Which ring their owner acknowledges was read with the services.
        self.assertEqual([*self.QUIET, 'rows'], self._asked())


class StatsTestCase(base.DriverTestCase):
    """What is written into the rows."""

    def setUp(self):
        super().setUp()
        self.configure(partitions=64)
        self.nova.divide('me', 'a', 'b')
        self.settle()

    def test_profile(self):
        said = stats.read_profile(
            self.nova.row(member.uuid_of('me')).stats, 'me')
        self.assertIsNotNone(said)
        self.assertEqual(64, said.partitions)
        row = self.nova.row(min(self.nova.owned('me')))
        self.assertEqual('x86_64', row.stats['cpu_arch'])

    def test_offer(self):
        self.join('e')
        self.me.run_pass()
        plan = self.me.ring.result.plan
        self.assertEqual({'e'}, {
            step.offer for step in plan.steps.values()
            if step.decision is Decision.OFFER})
        said = stats.read_member(
            self.nova.row(member.uuid_of('me')).stats, 'me')
        self.assertEqual(
            self.me.ring.memory.view.ring.fingerprint(model.Scope()),
            said.ring)

    def test_node_that_was_not_decided_on(self):
        # As when a build asks for one that is not listed any more.
        theirs = min(self.nova.owned('a'))
        self.cloud.nodes[NEW] = clouds.Node()
        said = self.driver.get_available_resource(NEW)['stats']
        self.assertEqual({'cpu_arch': 'x86_64'}, said)
        self.assertRaises(exception.ComputeHostNotFound,
                          self.driver.get_available_resource, theirs)


class HandoverTestCase(base.DriverTestCase):
    """Two drivers on one Nova."""

    def setUp(self):
        super().setUp()
        self.nova.divide('me', 'a')
        del self.cloud.services['b']
        self.peer = self.nova.compute('a')
        for _ in range(2):
            self._round()

    def _round(self) -> None:
        self.me.run_pass()
        self.peer.run_pass()
        self.nova.advance(CONF.update_resources_interval or 60)

    def test_drain(self):
        own = self.nova.owned('me')
        self.nova.change_service('me', disabled=True)
        self.me.run_pass()
        self.assertEqual(own, self.me.offers().keys())
        # Its record says so, by whatever ring.
        self.assertEqual(model.EVERY_RING, self.cloud.members['me'].ring)
        # Builds go on working until it is taken.
        self.assertEqual(own, self.nova.owned('me'))
        self.peer.run_pass()
        self.assertEqual(set(NODES), self.nova.owned('a'))
        self.assertEqual(set(), self.me.run_pass())
        self.assertEqual({member.name('me')}, self.me.tracked.keys())

    def test_there_and_back(self):
        before = self._owners()
        self.nova.change_service('me', disabled=True)
        for _ in range(2):
            self._round()
        self.assertEqual(set(), self.nova.owned('me'))
        self.nova.change_service('me', disabled=False)
        for _ in range(4):
            self._round()
        self.assertEqual(before, self._owners())
        self.assertEqual({}, self.me.offers() | self.peer.offers())

    def _owners(self) -> dict[str, str]:
        return {node: row.owner for node, row in self.cloud.rows.items()}

    def test_peer_whose_passes_fail(self):
        for _ in range(3):
            self._round()
        before = self._owners()
        held = min(self.nova.owned('a'))
        self.nova.put('instance', held, 'a')
        for number in range(9):
            self.nova.advance(60)
            self.me.run_pass()
            if number == 2:
                self.assertEqual(before, self._owners())
        # It heartbeats, and all that is free is another's.
        self.assertEqual({held}, self.nova.owned('a'))
        self.assertEqual('a', self.nova.host_of('instance'))
        self.assertIn('a is alive, and its passes have failed for',
                      self.log.output)
        for _ in range(4):
            self._round()
        self.assertEqual(before, self._owners())
        self.assertIn('The passes of a work again', self.log.output)

    def test_pass_that_goes_on_for_long(self):
        for _ in range(3):
            self._round()
        before = self._owners()
        listed = sorted(self.peer.begin_pass())
        for node in listed[:8]:
            # The tracker of the peer needs a minute for each node.
            self.nova.advance(60)
            self.peer.update(node)
            self.me.run_pass()
        self.assertEqual(before, self._owners())
        self.assertNotIn('its passes have failed', self.log.output)

    def test_quiet_pass_asks_for_no_more_and_writes_its_record(self):
        self.configure(full_update_interval=0)
        for _ in range(4):
            self._round()
        rows = [*NODES, *map(member.uuid_of, ('me', 'a'))]
        before = {node: self.nova.row(node).stats for node in rows}
        self.assertEqual(
            ['nodes', 'all services', 'rows', 'instances of host',
             'rows of host', 'rows', 'aggregates of host'],
            self.me.asked_in_a_pass())
        self.assertEqual([member.uuid_of('me')], [
            node for node in rows
            if self.nova.row(node).stats != before[node]])

    def test_instance_that_follows(self):
        self.configure(instance_mobility='follow')
        node = min(self.nova.owned('me'))
        self.nova.put('instance', node, 'me')
        self.nova.change_service('me', disabled=True)
        self._round()
        self.assertEqual('a', self.nova.host_of('instance'))
        self._round()
        self.assertEqual('a', self.cloud.rows[node].owner)
        self.assertEqual(set(NODES), self.nova.owned('a'))

    def test_busy_instance_stays(self):
        self.configure(instance_mobility='follow')
        node = min(self.nova.owned('me'))
        self.nova.put('instance', node, 'me')
        self.nova.change_service('me', disabled=True)
        self.me.run_pass()
        self.assertEqual('a', self.me.offers()[node])
        # Just now, before the other takes it.
        self.nova.change_instance('instance', task='rebooting')
        self._round()
        self.assertEqual('me', self.nova.host_of('instance'))
        self.assertEqual('me', self.cloud.rows[node].owner)
        self.nova.change_instance('instance', task=None)
        for _ in range(2):
            self._round()
        self.assertEqual('a', self.nova.host_of('instance'))

    def test_former_owner_that_writes_last(self):
        node = min(self.nova.owned('me'))
        self.nova.change_service('me', disabled=True)
        self.me.run_pass()
        row = self.nova.row(node)
        self.peer.run_pass()
        # What it had read before, for a row that is another's.
        self.nova.record(node, 'a', row.stats)
        self.assertNotEqual((None, None), stats.read_made(row.stats, 'me'))
        self.assertEqual((None, None), stats.read_made(
            self.nova.row(node).stats, 'a'))


class LastLookTestCase(base.DriverTestCase):
    """What was decided is seen to before the resource tracker acts on it."""

    def setUp(self):
        super().setUp()
        self.settle()
        self.node = min(self.nova.owned('me'))

    def test_node_that_was_taken_meanwhile_is_not_taken_back(self):
        self.me.begin_pass()
        self.nova.own(self.node, 'b')
        # As the resource tracker does with what another service has.
        del self.me.tracked[self.node]
        self.assertRaises(exception.ComputeHostNotFound,
                          self.driver.get_available_resource, self.node)
        self.assertEqual('b', self.cloud.rows[self.node].owner)

    def test_new_node_that_another_service_was_faster_with(self):
        self.cloud.nodes[NEW] = clouds.Node()
        for host in 'a', 'b':
            self.nova.change_service(host, disabled=True)
        self.assertIn(NEW, self.me.begin_pass())
        self.nova.own(NEW, 'a')
        self.assertRaises(exception.ComputeHostNotFound,
                          self.driver.get_available_resource, NEW)

    def test_placement_is_asked_once_for_many_new_nodes(self):
        added = {f'33333333-3333-3333-3333-{number:012}'
                 for number in range(new_nodes.MANY)}
        for node in added:
            self.cloud.nodes[node] = clouds.Node()
        for host in 'a', 'b':
            self.nova.change_service(host, disabled=True)
        self.me.placement.get.reset_mock()
        self.assertLessEqual(added, self.me.run_pass())
        self.assertEqual([], fake_nova.allocations_read(self.me.placement))

    def test_instance_that_was_taken_over_meanwhile(self):
        self.nova.put('mine', self.node, 'me')
        self.me.begin_pass()
        del self.me.tracked[self.node]
        self.assertEqual(self.node, self.driver.get_available_resource(
            self.node)['uuid'])
        # In any case, as when it was decided on.
        self.nova.change_instance('mine', host='ME')
        self.driver.get_available_resource(self.node)
        self.nova.change_instance('mine', host='a')
        self.assertRaises(exception.ComputeHostNotFound,
                          self.driver.get_available_resource, self.node)

    def test_tracked_node_is_not_looked_at_again(self):
        self.me.begin_pass()
        self.nova.asked.clear()
        self.driver.get_available_resource(self.node)
        self.assertEqual([], self.nova.asked)

    def test_nova_reads_the_provider_of_a_taken_node_anew(self):
        forget = self.me.placement.invalidate_resource_provider
        self.assertEqual(
            {(node,) for node in self.nova.owned('me')},
            {call.args for call in forget.call_args_list})
        forget.reset_mock()
        self.me.run_pass()
        forget.assert_not_called()


@ddt.ddt
class TakeoverTestCase(base.DriverTestCase):
    """What a dead service has left behind, through Nova's objects."""

    def setUp(self):
        super().setUp()
        self.recovery = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.instances.recovery.Recovery.start')).mock
        self.node = self.first_of_b()
        self.nova.put('theirs', self.node, 'b')
        self.settle()

    def _die(self) -> None:
        self.nova.change_service('b', forced_down=True)

    def _recovered(self) -> list[tuple[str, str]]:
        return [(each.node, each.instance) for call
                in self.recovery.call_args_list for each in call.args[0]]

    def test_row_and_instance(self):
        self._die()
        self.assertIn(self.node, self.me.run_pass())
        self.assertEqual([self.node], self.nova.destroyed)
        self.assertEqual('me', self.nova.host_of('theirs'))
        self.assertEqual('me', self.cloud.rows[self.node].owner)
        self.assertEqual([(self.node, 'theirs')], self._recovered())
        # Once.
        self.assertIn(self.node, self.me.run_pass())
        self.assertEqual([(self.node, 'theirs')], self._recovered())

    @ddt.data(0, 1)
    def test_answer_is_lost(self, unread):
        """The instance is recovered, and told of, all the same.

        :param unread: how often the instance cannot be read again
        """
        save, read = objects.Instance.save, objects.Instance.get_by_uuid
        failing: list[Exception] = []

        def commit_and_lose(instance, *args, **kwargs):
            save(instance, *args, **kwargs)
            failing.extend([oslo_messaging.MessagingTimeout()] * unread)
            raise oslo_messaging.MessagingTimeout()

        def read_again(*args, **kwargs):
            if failing:
                raise failing.pop()
            return read(*args, **kwargs)
        self._die()
        with fixtures.MockPatchObject(
                objects.Instance, 'save', commit_and_lose), (
                fixtures.MockPatchObject(
                    objects.Instance, 'get_by_uuid', read_again)):
            self.me.run_pass()
        self.assertEqual('me', self.nova.host_of('theirs'))
        for _ in range(2):
            self.driver._look_between_passes()
            self.assertEqual([(self.node, 'theirs')], self._recovered())
            self.assertEqual(1, self.log.output.count(
                f'Instance theirs on node {self.node} is taken over from b'))
        self.assertIn(self.node, self.me.run_pass())

    def test_recovery_comes_before_all_that_may_fail(self):
        self._die()
        with fixtures.MockPatchObject(
                self.driver.ring_service, '_tell', side_effect=ValueError()):
            self.assertRaises(ValueError, self.me.run_pass)
        self.assertEqual([(self.node, 'theirs')], self._recovered())

    def test_another_service_is_faster_with_the_row(self):
        self._die()
        read = self.nova.row

        def row(node):
            found = read(node)
            if node == self.node and self.nova.asked[-2:] == [
                    'instances', 'rows']:
                # Between the reading and the deleting.
                self.cloud.rows[node].owner = 'a'
            return found
        with fixtures.MockPatchObject(self.nova, 'row', side_effect=row):
            self.assertNotIn(self.node, self.me.run_pass())
        self.assertEqual('b', self.nova.host_of('theirs'))
        self.assertEqual('a', self.cloud.rows[self.node].owner)

    def test_instance_that_is_deleted_meanwhile(self):
        self._die()
        with fixtures.MockPatchObject(
                objects.Instance, 'get_by_uuid',
                side_effect=exception.InstanceNotFound(instance_id='')):
            self.assertNotIn(self.node, self.me.run_pass())
        self.assertEqual([], self._recovered())

    def test_one_failure_does_not_stop_the_others(self):
        second = sorted(self.desired('me', 'a')
                        - self.desired('me', 'a', 'b'))[1]
        self.nova.put('more', second, 'b')
        self._die()
        self.nova.unsaveable['theirs'] = exception.CellTimeout()
        listed = self.me.run_pass()
        self.assertNotIn(self.node, listed)
        self.assertIn(second, listed)
        self.assertEqual([(second, 'more')], self._recovered())
        # The next pass sees how far it has come.
        self.nova.unsaveable.clear()
        self.assertNotIn(self.node, self.me.run_pass())
        # Its row is deleted: another one might be at it.
        self.nova.advance(300)
        self.assertIn(self.node, self.me.run_pass())
        self.assertEqual('me', self.nova.host_of('theirs'))

    def test_failure_to_follow_does_not_stop_the_recovery(self):
        self.configure(instance_mobility='follow')
        own = min(self.nova.owned('me'))
        self.nova.put('idle', own, 'a')
        self.nova.own(own, 'a')
        self.nova.acknowledge('a', 'me', 'a', follows=True)
        self._die()
        self.nova.unsaveable['idle'] = exception.CellTimeout()
        self.assertNotIn(own, self.me.run_pass())
        self.assertEqual([(self.node, 'theirs')], self._recovered())
        self.assertEqual('a', self.nova.host_of('idle'))

    def test_instance_that_nova_has_elsewhere(self):
        self.nova.change_instance('theirs', node=NODES[0])
        self._die()
        for _ in range(2):
            self.assertNotIn(self.node, self.me.run_pass())
            self.nova.advance()
        self.assertEqual('b', self.cloud.rows[self.node].owner)
        self.assertEqual('b', self.nova.host_of('theirs'))
        # If that was but for a moment.
        self.nova.change_instance('theirs', node=self.node)
        self.assertIn(self.node, self.me.run_pass())
        self.assertEqual('me', self.nova.host_of('theirs'))

    def _move_after(self, what: str) -> None:
        """Have Nova move the instance after it was read in some way."""
        read = self.nova.instance

        def instance(uuid):
            found = read(uuid)
            if uuid == 'theirs' and self.nova.asked[-1] == what:
                self.nova.change_instance(uuid, node='kvm-1')
            return found
        self.useFixture(fixtures.MockPatchObject(
            self.nova, 'instance', side_effect=instance))

    def test_instance_that_turns_out_to_be_elsewhere(self):
        # After the decision, but before the row is deleted.
        self._die()
        self._move_after('instances')
        self.assertNotIn(self.node, self.me.run_pass())
        self.assertEqual('b', self.nova.host_of('theirs'))
        self.assertEqual('b', self.cloud.rows[self.node].owner)

    def test_host_with_another_driver(self):
        self.nova.change_instance('theirs', host='kvm')
        self.nova.add_service('kvm')
        self.nova.change_service('kvm', forced_down=True)
        self.cloud.other_drivers = frozenset({'kvm'})
        self.nova.own(NEW, 'kvm')
        self._die()
        for _ in range(2):
            self.assertNotIn(self.node, self.me.run_pass())
            self.nova.advance()
        self.assertEqual('kvm', self.nova.host_of('theirs'))

    def test_service_that_is_about_to_end_takes_nothing(self):
        self._die()
        self.me.ring.process.heartbeats.end()
        self.assertNotIn(self.node, self.me.run_pass())

    def test_silence_of_a_service_in_memcached_begins_when_it_is_seen(self):
        self.configure(failover_after=300)
        self.nova.conf.config(servicegroup_driver='mc')
        self.useFixture(fixtures.MockPatch(
            'nova.servicegroup.API')).mock().service_is_up = (
                lambda service: service.host != 'b')
        self.nova.silent |= {'me', 'a', 'b'}
        me = self.nova.compute('me')
        me.run_pass()
        self.nova.advance(299)
        self.assertNotIn(self.node, me.run_pass())
        self.nova.advance(1)
        self.assertIn(self.node, me.run_pass())


class BuildsTestCase(base.DriverTestCase):
    """Builds that were on their way to a service that has died."""

    def setUp(self):
        super().setUp()
        self.recovery = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.instances.recovery.Recovery.start')).mock
        self.node = self.first_of_b()
        self.settle()

    def _allocate(self, uuid: str) -> None:
        self.cloud.allocations[self.node] = {uuid}

    def _die(self) -> None:
        self.nova.change_service('b', forced_down=True)
        self.assertIn(self.node, self.me.run_pass())

    def test_it_is_ended_and_its_node_is_free(self):
        self.nova.put('build', self.node, None, is_building=True,
                      task='spawning')
        self._allocate('build')
        self._die()
        ended = self.nova.instance('build')
        self.assertEqual(
            ('error', None, None, None),
            (ended.vm_state, ended.task_state, ended.host, ended.node))
        self.assertIn('the nova-compute b has died',
                      str(self.nova.faults['build']))
        self.assertEqual(set(), self.cloud.allocations[self.node])

        # If b comes back and finds that it was to build it.
        b = self.nova.compute('b')
        self.assertRaises(
            exception.BuildAbortException, b.driver.spawn,
            mock.sentinel.context, objects.Instance(uuid='build'),
            mock.sentinel.image, [], None, {})
        self.nova.ironic.update_node.assert_not_called()

    def test_delete_that_ironic_has_done(self):
        self.nova.put('gone', None, 'b', task='deleting')
        self.nova.change_instance('gone', node=self.node)
        self._allocate('gone')
        self._die()
        self.assertEqual('me', self.nova.host_of('gone'))
        (taken,) = [each for call in self.recovery.call_args_list
                    for each in call.args[0]]
        self.assertEqual((self.node, 'gone', 'b', True), (
            taken.node, taken.instance, taken.host, taken.is_dead))

    def test_what_is_no_instance_yet_is_looked_for_again(self):
        self._allocate('later')
        self._die()
        self.nova.put('later', self.node, None, is_building=True)
        self.nova.advance()
        self.me.run_pass()
        self.assertTrue(self.cloud.instances['later'].is_given_up)

    def test_build_that_has_arrived_at_another_service(self):
        self.nova.put('build', self.node, 'a', is_building=True)
        self._allocate('build')
        self._die()
        self.assertTrue(self.cloud.instances['build'].is_building)

    def test_placement_does_not_answer(self):
        fake_nova.interpose(
            self.me.placement.get, '/allocations', mock.Mock(
                side_effect=keystone_exceptions.ConnectFailure))
        self._die()
        self.assertIn(self.node, self.nova.owned('me'))


class WithoutNodesTestCase(base.DriverTestCase):
    """Ironic shows no node, and Nova asks for the power of each instance."""

    def test_no_pass_for_each(self):
        self.settle()
        self.nova.put('i', NODES[0], 'me')
        self.cloud.nodes.clear()
        self.me.run_pass()
        passes = self.me.ring.passes
        for _ in range(5):
            self.driver.get_info(self.nova.instance('i'))
        self.assertEqual(passes, self.me.ring.passes)
        # What was listed long ago may be wrong.
        self.driver.node_cache_time -= 60
        self.driver.get_info(self.nova.instance('i'))
        self.assertEqual(passes + 1, self.me.ring.passes)

    def test_before_the_first_pass(self):
        self.driver.get_info(self.nova.instance(self._put()))
        self.assertEqual(1, self.me.ring.passes)

    def _put(self) -> str:
        self.nova.put('i', NODES[0], 'me')
        return 'i'


class WithoutNodesInPoolsTestCase(base.PeersWithPools, WithoutNodesTestCase):
    pass


class ArrivingBuildTestCase(base.DriverTestCase):
    """A build comes for a node that another service has taken meanwhile."""

    def setUp(self):
        super().setUp()
        self.driver.init_host('me')
        self.settle()
        self.node = min(self.nova.owned('a'))
        self.nova.put('new', None, None, is_building=True)
        self.cloud.allocations[self.node] = {'new'}

    def _claim(self) -> None:
        with self.nova.being('me'):
            self.me.manager.rt.instance_claim(
                'context', objects.Instance(uuid='new'), self.node, {})

    def test_service_takes_the_node_back(self):
        self._claim()
        self.assertEqual('me', self.nova.host_of('new'))
        self.assertIn(self.node, self.nova.owned('me'))
        self.assertNotIn(self.node, self.me.offers())
        self.assertIn(self.node, self.driver.node_cache)
        self.assertIn('taken for a build', self.log.output)
        # And keeps it until Ironic has the instance on it, and then.
        self.assertIn(self.node, self.me.run_pass())
        self.cloud.nodes[self.node].instance = 'new'
        self.assertIn(self.node, self.me.run_pass())

    def test_node_that_goes_to_another_in_the_meantime(self):
        steal = self.driver.get_available_resource

        def lose(node: str) -> object:
            self.nova.own(node, 'b')
            return steal(node)
        with mock.patch.object(self.driver, 'get_available_resource', lose):
            self.assertRaises(
                exception.ComputeResourcesUnavailable, self._claim)
        self.assertIn('Cannot take node', self.log.output)
        self.assertIsNone(self.nova.host_of('new'))

    def test_node_that_is_allocated_to_another_as_well(self):
        self.cloud.allocations[self.node] = {'new', 'another'}
        self.assertRaises(exception.ComputeResourcesUnavailable, self._claim)
        self.assertIn(self.node, self.nova.owned('a'))

    def test_placement_that_does_not_answer(self):
        fake_nova.interpose(
            self.me.placement.get, '/allocations', mock.Mock(
                side_effect=keystone_exceptions.ConnectFailure))
        self.assertRaises(exception.ComputeResourcesUnavailable, self._claim)
        self.assertIn('Cannot take node', self.log.output)

    def test_instance_that_is_unshelved(self):
        # As Nova says that it is being done before it claims a node.
        self.nova.put('new', None, None, task='spawning', is_offloaded=True)
        self._claim()
        self.assertEqual('me', self.nova.host_of('new'))

    def test_node_that_this_service_does_not_see(self):
        del self.cloud.nodes[self.node]
        self.me.run_pass()
        self.assertRaises(exception.ComputeResourcesUnavailable, self._claim)
        self.assertIn(self.node, self.nova.owned('a'))

    def test_pass_that_has_failed(self):
        answer = self.nova.ironic.get.side_effect
        self.nova.ironic.get.side_effect = sdk_exceptions.SDKException('503')
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        self.nova.ironic.get.side_effect = answer
        self._claim()
        self.assertEqual('me', self.nova.host_of('new'))

    def test_own_node_is_not_looked_at(self):
        self.node = min(self.nova.owned('me'))
        before = self.nova.cloud.rows[self.node]
        self._claim()
        self.assertIs(before, self.nova.cloud.rows[self.node])
        self.assertNotIn('taken for a build', self.log.output)

    def test_build_waits_for_its_turn_until_it_begins(self):
        here = self.me.ring.process.waiting_builds

        def come(context, instance, *args, **kwargs):
            self.assertIn('new', here())

        def build(context, instance, *args, **kwargs):
            self._claim()
            self.assertIn('new', here())
            raise ValueError('it fails')
        compute = self.me.manager
        compute.build_and_run_instance = come
        compute._do_build_and_run_instance = build
        upstream.watch_builds(
            self.driver, self.me.ring.process.builds, mock.Mock())
        instance = objects.Instance(uuid='new')
        compute.build_and_run_instance('context', instance, 'image')
        self.assertIn('new', here())
        self.assertRaises(ValueError, compute._do_build_and_run_instance,
                          'context', instance, 'image')
        self.assertNotIn('new', here())


class OrphansTestCase(base.DriverTestCase):
    """Instances that Nova may have deleted while its service was down."""

    def test_on_nodes_for_this_service(self):
        own, second = sorted(self.desired('me', 'a', 'b'))[:2]
        self.nova.put('mine', own, 'me')
        self.cloud.nodes[second].instance = 'deleted'
        self.cloud.deleted['deleted'] = model.Instance('gone', second)
        theirs = min(set(NODES) - self.desired('me', 'a', 'b'))
        self.cloud.nodes[theirs].instance = 'theirs'
        self.me.begin_pass()
        self.assertEqual(['mine', 'deleted'],
                         self.driver.list_instance_uuids())
        self.assertEqual(1, self.driver.get_num_instances())

    def test_newcomer_lists_none(self):
        # Nova refuses to start a new service that lists any.
        del self.cloud.services['me']
        self.nova.divide('a', 'b')
        self.nova.put('theirs', min(self.desired('me', 'a', 'b')), 'a')
        self.me.begin_pass()
        self.assertEqual([], self.driver.list_instance_uuids())

    def test_each_of_very_many_has_its_turn(self):
        self.useFixture(fixtures.MockPatchObject(orphans, 'MOST', 1))
        for number, node in enumerate(sorted(
                self.desired('me', 'a', 'b'))[:2]):
            self.cloud.nodes[node].instance = f'{number}'
            self.cloud.deleted[f'{number}'] = model.Instance('gone', node)
        self.me.begin_pass()
        found = []
        for _ in range(2):
            # Nova counts more often than it reaps.
            for _ in range(3):
                self.assertEqual(0, self.driver.get_num_instances())
            found += self.driver.list_instance_uuids()
        self.assertEqual(['0', '1'], sorted(found))


class WithoutMachineTestCase(base.DriverTestCase):
    """A server that Ironic has on no node is switched off."""

    def _switch_off(self, task):
        node = min(self.desired('me', 'a', 'b'))
        self.nova.put('mine', node, 'me', task=task)
        self.cloud.nodes[node].instance = None
        self.me.begin_pass()
        self.driver.power_off(self.nova.instance('mine'))

    def test_what_a_dead_service_has_shelved(self):
        for task in 'shelving', 'shelving_offloading', 'soft-deleting':
            self._switch_off(task)

    def test_what_should_have_one(self):
        self.assertRaises(exception.InstanceNotFound,
                          self._switch_off, 'powering-off')


class DeletedElsewhereTestCase(base.DriverTestCase):
    """The owner of a node has written a deleted server there."""

    def test_deleted_elsewhere(self):
        own, second = sorted(self.desired('me', 'a', 'b'))[:2]
        self.nova.put('mine', own, 'me')
        self.cloud.nodes[second].instance = 'vm'
        self.cloud.deleted['vm'] = model.Instance('kvm-7', 'kvm-7')
        self.me.begin_pass()
        for _ in range(2):
            self.assertEqual(['mine'], self.driver.list_instance_uuids())
        self.assertEqual(1, self.log.output.count(
            f'1 instances on nodes, such as vm on {second},'))
        # One that was deleted there while its service was down.
        self.cloud.deleted['vm'] = model.Instance('b', second)
        self.assertEqual(['mine', 'vm'], self.driver.list_instance_uuids())

    def test_what_is_deleted_elsewhere_does_not_count(self):
        own, second = sorted(self.desired('me', 'a', 'b'))[:2]
        self.nova.put('mine', own, 'me')
        self.me.begin_pass()
        self.cloud.deleted['vm'] = model.Instance('kvm-7', 'kvm-7')
        self.cloud.nodes[second].instance = 'vm'
        self.driver.node_cache[second] = self.nova.node(second)
        self.assertEqual(['mine'], self.driver.list_instance_uuids())
        self.assertEqual(1, self.driver.get_num_instances())

    def test_deleted_elsewhere_and_written_after_the_pass(self):
        node = min(self.desired('me', 'a', 'b'))
        self.me.begin_pass()
        self.cloud.deleted['vm'] = model.Instance('kvm-7', 'kvm-7')
        self.cloud.nodes[node].instance = 'vm'
        # As Nova's driver refreshes it.
        self.driver.node_cache[node] = self.nova.node(node)
        self.assertEqual([], self.driver.list_instance_uuids())


class DeletedElsewhereInPoolsTestCase(base.PeersWithPools,
                                      DeletedElsewhereTestCase):
    """The same, with pools."""


class LastPassTestCase(base.DriverTestCase):
    """What the driver says of its own passes."""

    def setUp(self):
        super().setUp()
        self.settle()

    def _said(self) -> model.LastPass:
        found = stats.read_member(
            self.nova.row(member.uuid_of('me')).stats, 'me').last_pass
        assert found is not None
        return found

    def test_it_goes_on_with_each_good_pass(self):
        for _ in range(2):
            before = self._said()
            self.nova.advance(60)
            self.me.run_pass()
            self.assertGreater(self._said().at, before.at)

    def test_it_stands_still_while_passes_fail(self):
        before = self._said()
        self.nova.ironic.get.side_effect = sdk_exceptions.SDKException
        self.nova.advance(60)
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        # As after an instance was deleted.
        self.me.update(min(self.nova.owned('me')))
        self.assertEqual(before, self._said())

    def _stand_still(self) -> None:
        """Have heartbeats of the service be late."""
        self.useFixture(fixtures.MockPatchObject(
            self.me.ring.process, 'longest_gap', return_value=1000.0))

    def test_it_stands_still_in_a_blackout(self):
        before = self._said()
        self.nova.advance(5)
        self._stand_still()
        self.me.run_pass()
        self.assertEqual(before, self._said())

    def test_it_goes_on_while_records_are_deleted(self):
        before = self._said()
        # Less than half of the interval between two passes.
        self.nova.advance(20)
        self.driver.is_node_deleted('gone-1')
        self.assertEqual(before, self._said())
        for _ in range(2):
            before = self._said()
            self.nova.advance(30)
            self.driver.is_node_deleted('gone-2')
            self.assertGreater(self._said().at, before.at)
        # What the tracker writes at the end is no older.
        before = self._said()
        self.me.update(min(self.nova.owned('me')))
        self.assertEqual(before, self._said())

    def test_it_stands_still_while_records_are_deleted_in_a_blackout(self):
        self._stand_still()
        self.me.run_pass()
        before = self._said()
        self.nova.advance(60)
        self.driver.is_node_deleted('gone')
        self.assertEqual(before, self._said())

    def test_deleting_goes_on_if_nova_does_not_answer(self):
        self.nova.advance(60)
        with mock.patch.object(type(self.me.ring.world.nova), 'say_member',
                               side_effect=exception.ServiceUnavailable):
            self.driver.is_node_deleted('gone')
        self.assertIn('Cannot report to the other services that the passes of '
                      'this one work', self.log.output)

    def test_it_survives_a_restart(self):
        before = self._said()
        self.me = self.nova.compute('me')
        self.me.run_pass()
        self.assertEqual(before, self._said())

    def test_nodes_that_ironic_hides(self):
        before = self._said()
        self.cloud.nodes.clear()
        self.nova.advance(60)
        self.assertEqual(set(), self.me.begin_pass())
        self.assertGreater(self._said().at, before.at)


class VanishedTestCase(base.DriverTestCase):
    """Nodes that are missing from Ironic."""

    def setUp(self):
        super().setUp()
        self.settle()
        self.own = self.nova.owned('me')
        self.assertGreater(len(self.own), 5)

    def test_none_is_believed_deleted_if_too_many_are_missing(self):
        before = dict(self.cloud.nodes)
        self.cloud.nodes.clear()
        self.me.begin_pass()
        for node in self.own:
            self.assertFalse(self.driver.is_node_deleted(node))
        self.cloud.nodes |= before
        self.assertEqual(self.own, self.me.run_pass())

    def test_few_are(self):
        gone = sorted(self.own)[:5]
        for node in gone:
            del self.cloud.nodes[node]
            self.me.begin_pass()
            self.assertTrue(self.driver.is_node_deleted(node))
            del self.cloud.rows[node]
        self.assertFalse(self.driver.is_node_deleted(max(self.own)))
        # Those that went before count.
        del self.cloud.nodes[max(self.own)]
        self.me.begin_pass()
        self.assertFalse(self.driver.is_node_deleted(max(self.own)))

    def test_records_of_dead_services(self):
        node = self.first_of_b()
        self.nova.change_service('b', forced_down=True)
        del self.cloud.nodes[node]
        self.nova.advance(11 * 60)
        self.me.run_pass()
        self.assertNotIn(node, self.cloud.rows)
        self.assertNotIn(node, self.cloud.providers)


class PartitioningTestCase(base.DriverTestCase):
    """What Ironic is asked for."""

    def test_no_filter(self):
        self.me.begin_pass()
        self.assertEqual({}, self.nova.filters)

    def _regroup(self, **fields: str) -> None:
        for node in self.cloud.nodes.values():
            for name, value in fields.items():
                setattr(node, name, value)

    def _settle_with_strangers(self) -> None:
        """Wait for the nodes of live services that say nothing."""
        self.settle()
        self.nova.advance(120)

    def test_conductor_group(self):
        self._regroup(group='rack1')
        self.cloud.nodes[NODES[0]].group = 'rack2'
        self.configure('ironic', conductor_group='rack1',
                       peer_list=['Me', ' A'])
        self._settle_with_strangers()
        self.assertEqual(self.desired('me', 'a') - {NODES[0]},
                         self.me.begin_pass())
        self.assertEqual({'conductor_group': 'rack1'}, self.nova.filters)

    def test_own_instance_on_a_node_that_has_left_the_group(self):
        self._regroup(group='rack1')
        self.configure('ironic', conductor_group='rack1',
                       peer_list=['me', 'a'])
        self.cloud.nodes[NEW] = clouds.Node(group='rack2')
        self.nova.put('mine', NEW, 'me')
        self.nova.put('nowhere', None, 'me')
        self._settle_with_strangers()
        self.nova.asked.clear()
        self.assertEqual(self.desired('me', 'a') | {NEW},
                         self.me.begin_pass())
        self.assertEqual(2, self.nova.asked.count('nodes of instances'))

        # Without a limit, nobody is asked.
        self.nova.asked.clear()
        self.configure('ironic', conductor_group=None)
        self.me.begin_pass()
        self.assertNotIn('nodes of instances', self.nova.asked)

    def test_many_such_nodes(self):
        self._regroup(group='rack1')
        self.configure('ironic', conductor_group='rack1',
                       peer_list=['me', 'a'])
        outside = {f'33333333-0000-0000-0000-{number:012}'
                   for number in range(400)}
        for node in outside:
            self.cloud.nodes[node] = clouds.Node(group='rack2')
            self.nova.put(f'on-{node}', node, 'me')
        self.settle()
        asked = self.me.asked_in_a_pass()
        self.assertEqual(2, asked.count('nodes'))
        self.assertNotIn('nodes of instances', asked)
        self.assertLessEqual(outside, self.me.tracked.keys())

    def test_ironic_fails_to_tell_of_such_a_node(self):
        # It is not Nova that did not answer.
        self.settle()
        self._regroup(group='rack1')
        self.configure('ironic', conductor_group='rack1',
                       peer_list=['me', 'a'])
        self.nova.put('nowhere', None, 'me')
        tell = self.nova.ironic.get.side_effect

        def get(url, params, **kwargs):
            if 'instance_uuid' in params:
                raise sdk_exceptions.SDKException('gone')
            return tell(url, params, **kwargs)
        self.nova.ironic.get.side_effect = get
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        self.nova.ironic.get.side_effect = tell
        self.nova.advance()
        self.me.begin_pass()
        self.assertIs(trust.Trust.FULL, self.me.ring.memory.view.trust)

    def test_partition_key_is_the_old_name(self):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(path, 'w') as file:
            file.write('[ironic]\npartition_key = rack1\npeer_list = me\n')
        self.nova.conf.set_config_files([path])
        self.nova.conf.conf.reload_config_files()
        self.me.begin_pass()
        self.assertEqual({'conductor_group': 'rack1'}, self.nova.filters)

    def test_default_conductor_group(self):
        self.configure('ironic', conductor_group='', peer_list=['me'])
        self._settle_with_strangers()
        self.assertEqual(set(NODES), self.me.begin_pass())
        self.assertEqual({'conductor_group': ''}, self.nova.filters)

    def test_shard(self):
        self._regroup(shard='one')
        self.configure('ironic', shard='one')
        self._settle_with_strangers()
        self.assertEqual(set(NODES), self.me.begin_pass())
        self.assertEqual({'shard': 'one'}, self.nova.filters)

    def test_shard_of_a_group(self):
        # The list may be of those of other shards of the group.
        self._regroup(shard='one', group='rack1')
        self.configure('ironic', shard='one', conductor_group='rack1',
                       peer_list=['me', 'a'])
        self._settle_with_strangers()
        self.assertEqual(set(NODES), self.me.begin_pass())
        self.assertEqual({'shard': 'one', 'conductor_group': 'rack1'},
                         self.nova.filters)

    def test_ironic_too_old_for_groups(self):
        self.nova.lacking.add('1.46')
        self.configure('ironic', conductor_group='rack1', peer_list=['me'])
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        self.nova.ironic.get.assert_not_called()

    def test_ironic_too_old_for_shards(self):
        self.nova.lacking.add('1.82')
        self.configure('ironic', shard='one', conductor_group='rack1')
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        self.nova.ironic.get.assert_not_called()


class SiteIronicDriver(nova_driver.IronicDriver):
    """What a site may have made of Nova's driver."""

    def get_available_resource(self, nodename):
        resources = super().get_available_resource(nodename)
        resources['stats'] |= {'room': '7', 'ironic_ring:to': 'me'}
        return resources

    def spawn(self, context, instance, image_meta, injected_files,
              admin_password, allocations, network_info=None,
              block_device_info=None, power_on=True):
        return f'built {instance.uuid}'

    def power_off(self, instance, timeout=0, retry_interval=0):
        return 'off'


class SiteRingDriver(driver.RingMixin, SiteIronicDriver):
    pass


class HidingIronicDriver(nova_driver.IronicDriver):
    """What a site may have made of the listing of nodes."""

    HIDDEN: set[str] = set()

    def _get_node_list(self, **kwargs):
        return [node for node in super()._get_node_list(**kwargs)
                if node.id not in self.HIDDEN]


class HidingRingDriver(driver.RingMixin, HidingIronicDriver):
    pass


class SubclassTestCase(base.DriverTestCase):
    """The mixin under a site's own subclass of Nova's driver."""

    def setUp(self):
        super().setUp()
        self.me = self.nova.compute('me', SiteRingDriver)
        self.driver = self.me.driver

    def test_nova_loads_it(self):
        module = types.ModuleType('nova.virt.site')
        setattr(module, 'SiteRingDriver', SiteRingDriver)
        with mock.patch.dict('sys.modules', {module.__name__: module}):
            loaded = virt_driver.load_compute_driver(
                self.driver.virtapi, 'site.SiteRingDriver')
        self.assertIsInstance(loaded, SiteRingDriver)

    def test_mixin_is_where_the_driver_is(self):
        alias = importlib.import_module('nova.virt.ironic_ring')
        self.assertIs(driver.RingMixin, alias.RingMixin)
        self.assertIs(driver.IronicRingDriver, alias.IronicRingDriver)

    def test_pass(self):
        self.settle()
        self.assertEqual(self.nova.owned('me'), self.me.run_pass())
        row = self.nova.row(min(self.nova.owned('me')))
        # What is the site's, but not in this driver's name.
        self.assertEqual('7', row.stats['room'])
        self.assertNotEqual((None, None), stats.read_made(row.stats, 'me'))

    def test_guards_are_before_what_the_site_does(self):
        self.nova.put('mine', NODES[0], 'me')
        mine = self.nova.instance('mine')
        self.assertEqual('built mine', self.driver.spawn(
            None, mine, None, [], None, {}))
        self.assertEqual('off', self.driver.power_off(mine, timeout=1))
        self.nova.change_instance('mine', host='a')
        self.assertRaises(guards.NotMineError, self.driver.power_off, mine)

    def test_listing_of_the_site(self):
        self.settle()
        self.me.run_pass()
        first, second = sorted(self.nova.owned('me'))[:2]
        HidingIronicDriver.HIDDEN.add(first)
        self.addCleanup(HidingIronicDriver.HIDDEN.clear)
        self.me = self.nova.compute('me', HidingRingDriver)
        listed = self.me.begin_pass()
        self.assertNotIn(first, listed)
        self.assertIn(second, listed)
        self.assertEqual('x86_64', self.me.driver.get_available_resource(
            second)['supported_instances'][0][0])


class WithoutTheRingOfNovaTestCase(base.DriverTestCase):
    """Everything works when Nova has lost its ring and what is for it."""

    def setUp(self):
        for name in ('virt.ironic.driver.IronicDriver._refresh_hash_ring',
                     'virt.ironic.driver._check_peer_list',
                     'virt.ironic.driver._HASH_RING_PARTITIONS',
                     'virt.ironic.driver.hash_ring',
                     'exception.InvalidPeerList'):
            self.useFixture(fixtures.MonkeyPatch(
                f'nova.{name}', fixtures.MonkeyPatch.delete))
        # Its constructor makes one.
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.ironic.driver.servicegroup',
            types.SimpleNamespace(API=lambda: None)))
        super().setUp()
        del self.driver.servicegroup_api

    def test_they_are_gone(self):
        self.assertFalse(hasattr(nova_driver, 'hash_ring'))
        self.assertFalse(
            hasattr(nova_driver.IronicDriver, '_refresh_hash_ring'))

    def test_pass(self):
        self.driver.init_host('me')
        self.assertEqual(self.desired('me', 'a', 'b'), self.me.begin_pass())
        self.assertFalse(hasattr(self.driver, 'hash_ring'))

    def test_bad_peer_list(self):
        self.configure('ironic', conductor_group='rack1', peer_list=['a'])
        self.assertRaises(exception.InvalidConfiguration,
                          self.driver.init_host, 'me')

    def test_cache_is_filled_when_it_is_needed(self):
        own = min(self.desired('me', 'a', 'b'))
        self.assertEqual(own, self.driver.get_available_resource(own)['uuid'])


class ShardsTestCase(base.DriverTestCase):
    """Two services that divide the nodes by shards."""

    def setUp(self):
        super().setUp()
        self.configure(listing='shards')
        for number, node in enumerate(sorted(NODES)):
            self.cloud.nodes[node].shard = (
                None if number < 2 else f'shard-{number % 6}')
        for host in 'a', 'b':
            del self.cloud.services[host]
        self.cloud.rows.clear()
        self.computes = [self.me]
        self.driver.init_host('me')
        self.run_passes(4)

    def run_passes(self, count):
        for _ in range(count):
            for compute in self.computes:
                compute.run_pass()
            self.nova.advance(60)

    def join(self, host):
        self.nova.add_service(host)
        self.computes.append(self.nova.compute(host))
        self.run_passes(8)

    def shards_of(self, compute):
        return compute.ring.memory.view.ring.shards(compute.host)

    def test_handover(self):
        self.assertEqual(set(NODES), self.nova.owned('me'))
        before = self.shards_of(self.me)
        self.join('a')
        mine, others = map(self.shards_of, self.computes)
        self.assertEqual((before, 3), (mine | others, len(others)))
        for compute in self.computes:
            self.assertLessEqual(
                {self.cloud.nodes[node].shard
                 for node in self.nova.owned(compute.host)},
                {None, *self.shards_of(compute)})
        self.assertEqual(set(NODES),
                         self.nova.owned('me') | self.nova.owned('a'))
        # Each says it in its member record.
        for compute in self.computes:
            self.assertEqual(
                frozenset(map(shards.code, self.shards_of(compute))),
                stats.read_member(self.nova.row(member.uuid_of(
                    compute.host)).stats, compute.host).held)

    def test_what_a_pass_asks_ironic(self):
        self.join('a')
        self.me.run_pass()
        self.nova.asked.clear()
        self.me.run_pass()
        self.assertEqual(
            ['/shards', '/nodes', 'nodes'],
            [each for each in self.nova.asked
             if each.startswith('/') or each.startswith('node')])
        self.assertEqual({'None', *self.shards_of(self.me)},
                         {*self.nova.filters['shard'].split(',')})

    def test_build_for_a_node_in_a_shard_of_another(self):
        self.join('a')
        node = min(node for node in self.nova.owned('a')
                   if self.cloud.nodes[node].shard)
        self.assertNotIn(node, self.me.ring.ironic.found)
        self.nova.put('i', None, None, is_building=True)
        self.cloud.allocations[node] = {'i'}
        with self.nova.being('me'):
            self.me.manager.rt.instance_claim(
                None, self.nova.instance('i'), node, {})
        self.assertEqual('me', self.nova.host_of('i'))
        self.assertIn(node, self.nova.owned('me'))
