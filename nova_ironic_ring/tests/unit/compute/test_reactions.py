# SPDX-License-Identifier: Apache-2.0

"""Tests of looking at the other services between two passes."""

import contextlib
import dataclasses
import threading
import time
from unittest import mock

import ddt
import fixtures
import nova.conf
from nova import exception

from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.compute import reactions
from nova_ironic_ring.compute import takes
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.unit.compute import base

CONF = nova.conf.CONF
NODES = fake_nova.NODES
_SECONDS = 30


def _threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate()
            if each.name in ('ironic_ring', 'ironic_ring_takes')]


def _end(me: fake_nova.Compute) -> None:
    """Do what SIGTERM does."""
    me.ring.process.heartbeats.end()
    for thread in _threads():
        thread.join(_SECONDS)


@ddt.ddt
class ReactionsTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.recovery = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.instances.recovery.Recovery.start')).mock
        self.driver.init_host('me')
        self.node = self.first_of_b()
        self.nova.put('theirs', self.node, 'b')
        self.settle()
        self.reactions = self.driver.ring_reactions
        self.takes = self.driver.ring_takes
        self.nova.asked.clear()

    def _die(self) -> None:
        self.nova.change_service('b', forced_down=True)

    def _look(self) -> None:
        self.reactions.look()

    def test_what_is_asked(self):
        self.say_members('a', 'b')
        self._look()
        self.assertEqual(
            ['all services', 'rows', 'instances of host'], self.nova.asked)

    def test_takeover(self):
        self._die()
        self._look()
        self.assertEqual('me', self.nova.host_of('theirs'))
        self.assertNotIn('nodes', self.nova.asked)
        self.assertIn('is taken over from b', self.log.output)
        (taken,) = self.recovery.call_args.args[0]
        self.assertEqual('theirs', taken.instance)

    def test_nova_s_driver_has_the_node_at_once(self):
        self._die()
        self._look()
        self.nova.asked.clear()
        self.assertEqual('theirs', self.driver.node_cache[
            self.node].instance_id)
        self.assertTrue(self.driver.node_is_available(self.node))
        self.assertEqual([], self.nova.asked)
        # What it had is there still.
        self.assertLess(self.desired('me', 'a', 'b'),
                        set(self.driver.node_cache))

    def test_node_that_the_last_listing_lacks(self):
        self.me.ring.ironic.found.clear()
        self._die()
        self._look()
        self.assertEqual('me', self.nova.host_of('theirs'))
        self.takes.track(self.node)
        self.assertIn(self.node, self.nova.owned('me'))

    def test_it_counts_as_an_own_instance_at_once(self):
        self._die()
        # It is on a node for this service, but not its own yet.
        self.nova.change_instance('theirs', host='a')
        self.me.begin_pass()
        self.assertEqual({'theirs'}, self.me.ring.orphans)
        self.nova.advance()
        self.nova.change_instance('theirs', host='b')
        self.me.ring.memory = dataclasses.replace(
            self.me.ring.memory, instances={})
        self._look()
        self.assertEqual(frozenset(), self.me.ring.orphans)
        self.assertEqual(['theirs'], self.driver.list_instance_uuids())
        self.assertEqual(1, self.driver.get_num_instances())

    def test_the_tracker_records_the_node(self):
        self._die()
        self._look()
        self.assertNotIn(self.node, self.cloud.rows)
        self.takes.track(self.node)
        self.assertIn(self.node, self.nova.owned('me'))
        self.assertIn(self.node, self.me.tracked)
        self.assertIs(
            decisions.Decision.FAIL_OVER,
            self.me.ring.result.plan.steps[self.node].decision)

    def test_the_tracker_does_it_once(self):
        self._die()
        self._look()
        self.assertTrue(self.me.update(self.node))
        self.nova.asked.clear()
        self.takes.track(self.node)
        self.assertEqual([], self.nova.asked)

    def test_the_tracker_looks_once_more(self):
        self._die()
        self._look()
        self.nova.change_instance('theirs', host='a')
        self.takes.track(self.node)
        self.assertNotIn(self.node, self.me.tracked)
        self.assertNotIn('is free and taken', self.log.output)

    def test_a_pass_has_come_to_another_decision(self):
        self._die()
        self._look()
        self.nova.advance()
        self.nova.change_instance('theirs', host='a')
        self.me.begin_pass()
        self.nova.asked.clear()
        self.takes.track(self.node)
        self.assertNotIn(self.node, self.me.tracked)
        self.assertEqual([], self.nova.asked)

    def test_the_next_pass_keeps_it(self):
        self._die()
        self._look()
        self.nova.advance()
        self.assertIn(self.node, self.me.run_pass())

    def test_while_the_tracker_goes_from_node_to_node(self):
        listed = sorted(self.me.begin_pass())
        self.assertTrue(self.me.update(listed[0]))
        self._die()
        self._look()
        self.takes.track(self.node)
        for node in listed[1:]:
            self.assertTrue(self.me.update(node))
        self.assertIn(self.node, self.nova.owned('me'))

    @contextlib.contextmanager
    def _during_a_pass(self, port: object, call: str):
        """Do something while a pass waits for the answer to a call."""
        real, waits, answers = getattr(port, call), *(
            threading.Event() for _ in range(2))

        def ask(*args, **kwargs):
            if threading.current_thread() is pass_:
                waits.set()
                answers.wait(_SECONDS)
            return real(*args, **kwargs)
        pass_ = threading.Thread(target=self.driver.get_available_nodes)
        with mock.patch.object(port, call, ask):
            pass_.start()
            self.assertTrue(waits.wait(_SECONDS))
            try:
                yield
            finally:
                answers.set()
                pass_.join(_SECONDS)

    @ddt.data(('ironic', 'nodes'), ('nova', 'rows_of'),
              ('placement', 'disabled'), ('placement', 'has_provider'))
    @ddt.unpack
    def test_while_a_pass_waits_for_an_answer(self, port, call):
        with self._during_a_pass(getattr(self.me.ring.world, port), call):
            self._die()
            self._look()
            self.assertEqual('me', self.nova.host_of('theirs'))
        # The pass, which has begun before, keeps it.
        self.assertIn(self.node, self.me.ring.nodes)
        self.assertIn(self.node, self.driver.node_cache)
        self.takes.track(self.node)
        self.assertIn(self.node, self.nova.owned('me'))

    def test_a_build_waits_for_no_pass(self):
        node = min(set(NODES) - self.desired('me', 'a', 'b') - {self.node})
        self.nova.cloud.instances['new'] = model.Instance(
            None, None, is_building=True)
        self.cloud.allocations[node] = {'new'}
        with self._during_a_pass(self.me.ring.world.ironic, 'nodes'):
            self.driver._before_build('new', node)
            self.assertIn(node, self.nova.owned('me'))
        self.assertIn(node, self.me.ring.nodes)

    def test_nova_does_not_answer(self):
        with fixtures.MockPatch(
                'nova.objects.ServiceList.get_by_binary',
                side_effect=exception.CellTimeout):
            self._look()
            self._look()
        self.assertEqual(
            1, self.log.output.count('Cannot look at the other services'))
        self.assertIs(trust.Trust.BLACKOUT,
                      self.me.ring.memory.view.trust)
        self._die()
        self._look()
        self.assertEqual('me', self.nova.host_of('theirs'))


class OffersTestCase(base.DriverTestCase):
    """A node that this service waits for is offered between two passes."""

    def setUp(self):
        super().setUp()
        self.driver.init_host('me')
        self.settle()
        self.reactions = self.driver.ring_reactions
        self.takes = self.driver.ring_takes
        self.node = min(self.desired('me', 'a', 'b'))
        self.nova.own(self.node, 'a')
        self.me.tracked.pop(self.node, None)
        self.nova.advance()
        self.me.run_pass()
        self.nova.asked.clear()

    def _acknowledge(self) -> None:
        """Have its owner acknowledge the ring of this service."""
        self.nova.acknowledge('a', 'me', 'a', 'b')

    def _look(self) -> None:
        """Look, and take what is free."""
        self.reactions.look()
        self.takes.take()

    def test_what_is_asked(self):
        self.say_members('a', 'b')
        self._look()
        # Which ring its owner acknowledges was read with the services.
        self.assertEqual(
            ['all services', 'rows', 'instances of host', 'rows'],
            self.nova.asked)

    def test_owner_that_acknowledges_another_ring(self):
        self.nova.acknowledge('a', 'me', 'a')
        self._look()
        self.assertEqual([], self.takes.nodes)
        self.assertEqual('a', self.cloud.rows[self.node].owner)

    def test_it_is_taken(self):
        self._acknowledge()
        self._look()
        self.assertEqual('a', self.cloud.rows[self.node].owner)
        self.assertTrue(self.driver.node_is_available(self.node))
        self.takes.track(self.node)
        self.assertIn(self.node, self.nova.owned('me'))
        self.assertIn(self.node, self.me.tracked)
        self.assertNotIn('nodes', self.nova.asked)
        self.assertEqual(1, self.log.output.count(
            f'Node {self.node} of a is free and taken with consent'))

    def test_the_owner_builds_on_it(self):
        self._acknowledge()
        self.cloud.allocations[self.node] = {'build'}
        self._look()
        self.takes.track(self.node)
        self.assertEqual('a', self.cloud.rows[self.node].owner)
        self.assertNotIn(self.node, self.me.tracked)
        self.assertNotIn('is free and taken', self.log.output)

    def test_while_the_tracker_goes_from_node_to_node(self):
        listed = sorted(self.me.begin_pass())
        self.assertNotIn(self.node, listed)
        self.assertTrue(self.me.update(listed[0]))
        self._acknowledge()
        self._look()
        self.takes.track(self.node)
        for node in listed[1:]:
            self.assertTrue(self.me.update(node))
        self.assertIn(self.node, self.nova.owned('me'))
        self.nova.advance()
        self.assertIn(self.node, self.me.run_pass())

    def test_instances_come_first(self):
        theirs = self.first_of_b()
        self.nova.put('theirs', theirs, 'b')
        self.nova.advance()
        self.me.run_pass()
        self._acknowledge()
        self._look()
        self.nova.change_service('b', forced_down=True)
        with fixtures.MockPatch(
                'nova_ironic_ring.compute.instances.recovery.Recovery.start'):
            self._look()
        self.assertEqual([theirs, self.node], self.takes.nodes)


class PoolReactionsTestCase(base.DriverTestCase):
    """The same with the pool driver, where b has a pool."""

    def setUp(self):
        super().setUp()
        self.recovery = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.instances.recovery.Recovery.start')).mock
        self.nova.conf.config(report_interval=1)
        self.cloud.rows.clear()
        del self.cloud.services['a']
        self.nova.computes.clear()
        kind = pools.Kind('CUSTOM_BAREMETAL', frozenset(), frozenset({
            ('cpu_arch', 'x86_64')}))
        self.of_b, self.pool = (pools.name(host, kind) for host in ('b', 'me'))
        self.cloud.rows[pools.uuid_of(self.of_b)] = clouds.Row(
            'b', pool=self.of_b)
        self.cloud.inventories[pools.uuid_of(self.of_b)] = pools.Inventory(
            30, 0)
        self.me = self.nova.compute('me', pool_driver.IronicPoolDriver)
        self.driver = self.me.driver
        self.driver.init_host('me')
        self.settle()
        self.node = min(set(NODES) - set(self.me.ring.nodes))
        self.nova.put('theirs', self.node, 'b')
        self.nova.change_instance('theirs', node=self.of_b)
        self.cloud.allocations[pools.uuid_of(self.of_b)] = {'theirs'}
        self.me.run_pass()
        self.nova.asked.clear()

    def _die(self) -> None:
        self.nova.change_service('b', forced_down=True)

    def _allocated(self) -> set[str]:
        return {provider for provider, consumers
                in self.cloud.allocations.items() if 'theirs' in consumers}

    def test_what_is_asked(self):
        self.say_members('b')
        self.driver.ring_reactions.look()
        self.assertEqual(
            ['all services', 'rows', 'instances of host'], self.nova.asked)

    def test_takeover(self):
        self._die()
        self.driver.ring_reactions.look()
        self.assertEqual('me', self.nova.host_of('theirs'))
        self.assertEqual(
            self.pool, self.cloud.instances['theirs'].node)
        self.assertEqual({pools.uuid_of(self.pool)}, self._allocated())
        self.assertNotIn('nodes', self.nova.asked)
        (taken,) = self.recovery.call_args.args[0]
        self.assertEqual(('theirs', self.pool), (taken.instance, taken.node))

    def test_nova_s_driver_has_the_node_at_once(self):
        self._die()
        self.driver.ring_reactions.look()
        self.nova.asked.clear()
        self.assertEqual('theirs', self.driver.node_cache[
            self.node].instance_id)
        self.assertEqual(['theirs'], self.driver.list_instance_uuids())
        self.assertEqual(1, self.driver.get_num_instances())
        # Ironic is not asked. Nova is, for deleted instances.
        self.assertEqual(['instances', 'instances'], self.nova.asked)

    def test_it_counts_at_once(self):
        before = self.me.ring.summary()['pools'][self.pool]
        self._die()
        self.driver.ring_reactions.look()
        after = self.me.ring.summary()['pools'][self.pool]
        self.assertEqual(before['nodes'] + 1, after['nodes'])
        self.assertEqual(1, after['instances'])

    def test_the_tracker_makes_the_first_pool_of_a_kind(self):
        self.nova.properties[self.node] = {'capabilities': 'boot:uefi'}
        self.me.run_pass()
        self._die()
        self.driver.ring_reactions.look()
        self.assertEqual('b', self.nova.host_of('theirs'))
        (name,) = set(self.me.ring.result.found) - {self.pool}
        self.driver.ring_takes.track(name)
        self.assertIn(pools.uuid_of(name), self.cloud.rows)
        self.driver.ring_reactions.look()
        self.assertEqual('me', self.nova.host_of('theirs'))
        self.assertEqual({pools.uuid_of(name)}, self._allocated())

    def test_the_next_pass_keeps_it(self):
        self._die()
        self.driver.ring_reactions.look()
        self.nova.advance()
        self.me.run_pass()
        self.assertIn(self.node, self.me.ring.nodes)
        self.assertEqual('me', self.nova.host_of('theirs'))

    def test_nova_does_not_answer(self):
        with fixtures.MockPatch(
                'nova.objects.ServiceList.get_by_binary',
                side_effect=exception.CellTimeout):
            self.driver.ring_reactions.look()
        self.assertIs(trust.Trust.BLACKOUT,
                      self.me.ring.memory.view.trust)

    def test_a_thread_does_it(self):
        self.addCleanup(_end, self.me)
        self._die()
        self.me.manager.post_start_hook()
        deadline = time.monotonic() + _SECONDS
        while self.nova.host_of('theirs') != 'me' and (
                time.monotonic() < deadline):
            time.sleep(0.01)
        self.assertEqual('me', self.nova.host_of('theirs'))


class ThreadTestCase(base.DriverTestCase):
    """The thread in which it is looked."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.instances.recovery.Recovery.start'))
        self.nova.conf.config(report_interval=1)
        self.driver.init_host('me')
        self.node = self.first_of_b()
        self.nova.put('theirs', self.node, 'b')
        self.addCleanup(_end, self.me)

    def test_it_begins_after_the_start_of_the_service(self):
        self.settle()
        self.assertEqual([], _threads())
        self.me.manager.post_start_hook()
        self.assertEqual(2, len(_threads()))

    def test_it_takes_over(self):
        self.settle()
        self.nova.change_service('b', forced_down=True)
        self.me.manager.post_start_hook()
        deadline = time.monotonic() + _SECONDS
        while self.node not in self.nova.owned('me') and (
                time.monotonic() < deadline):
            time.sleep(0.01)
        self.assertIn(self.node, self.nova.owned('me'))
        self.assertEqual('me', self.nova.host_of('theirs'))

    def test_look_that_takes_longer_than_the_pause(self):
        """The pause begins with its end, and what it has found is told."""
        slept = list[float]()
        ring = mock.Mock(pause=lambda: 2.0)
        ring.process.is_ending = lambda: bool(slept)
        then = mock.Mock(spec=takes.Takes)
        with mock.patch.object(reactions, 'time', mock.Mock(
                sleep=slept.append)):
            reactions.Reactions(
                mock.Mock(), ring, lambda: ['node'], then)._run()
        then.begin.assert_called_once_with(['node'])
        self.assertEqual([2.0], slept)

    def test_takes(self):
        """What looks have found is tracked, that of the last one first."""
        done = list[str]()
        ring = mock.Mock(pause=lambda: 10.0)
        ring.process.is_ending = lambda: len(done) > 5

        def take() -> list[str]:
            done.append('take')
            if done.count('take') == 1:
                # A look ends meanwhile.
                found.begin(['b'])
            return [f'free-{done.count("take")}']
        found = takes.Takes(mock.Mock(), ring, take)
        self.useFixture(fixtures.MockPatchObject(
            found, 'track', done.append))
        found.begin(['a'])
        found._run()
        self.assertEqual(['take', 'b', 'a', 'free-1', 'take', 'free-2'], done)

    def test_take_that_waits_for_placement(self):
        """A look waits for none of it."""
        self.settle()
        ended = threading.Event()
        self.useFixture(fixtures.MockPatchObject(
            self.driver.ring_takes, '_look',
            lambda: ended.wait(_SECONDS) and []))
        self.addCleanup(ended.set)
        self.me.manager.post_start_hook()
        time.sleep(0.1)
        self.nova.change_service('b', forced_down=True)
        deadline = time.monotonic() + _SECONDS
        while self.nova.host_of('theirs') != 'me' and (
                time.monotonic() < deadline):
            time.sleep(0.01)
        self.assertEqual('me', self.nova.host_of('theirs'))
        self.assertFalse(ended.is_set())

    def test_it_looks_sooner_where_a_service_is_silent(self):
        self.nova.conf.config(report_interval=1000, service_down_time=2500)
        self.settle()
        self.nova.advance(3)
        self.nova.silent.add('b')
        self.me.run_pass()
        self.assertEqual(1000, self.me.ring.pause())
        self.nova.advance(2499)
        self.me.run_pass()
        self.assertEqual(1, self.me.ring.pause())

    def test_it_ends_on_sigterm(self):
        self.me.manager.post_start_hook()
        _end(self.me)
        self.assertEqual([], _threads())
