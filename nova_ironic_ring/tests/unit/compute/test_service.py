# SPDX-License-Identifier: Apache-2.0

"""The service: its settings, its memory, its heartbeat and its signals."""

import signal
import threading
from unittest import mock

import fixtures
import nova.conf
from nova import exception
from nova import objects
from openstack import exceptions as sdk_exceptions

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.unit.compute import base

CONF = nova.conf.CONF
Trust = trust.Trust

_SECONDS = 10


class InitHostTestCase(base.DriverTestCase):

    def _handlers(self) -> dict[int, object]:
        return {call.args[0]: call.args[1] for call in self.signal.mock_calls}

    def test_good_configuration(self):
        self.driver.init_host('me')
        self.assertEqual('me', self.me.ring.settings.host)
        self.assertIn(signal.SIGHUP, self._handlers())

    def test_bad_peer_list(self):
        self.configure('ironic', conductor_group='rack1', peer_list=['a'])
        error = self.assertRaises(exception.InvalidConfiguration,
                                  self.driver.init_host, 'me')
        self.assertIn('does not name this service (me)', str(error))
        self.assertFalse(self.me.ring.has_settings)

    def _release(self, release: str) -> None:
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.names.release', return_value=release))

    def test_nova_that_lacks_names(self):
        self._release('36.0.0')
        init = self.me.manager._init_instance
        for name in 'reset', 'power_update':
            self.useFixture(fixtures.MonkeyPatch(
                f'nova.compute.manager.ComputeManager.{name}', None))
        error = self.assertRaises(exception.NovaException,
                                  self.driver.init_host, 'me')
        self.assertEqual(
            'Nova 36.0.0 lacks ComputeManager.reset() and '
            'ComputeManager.power_update(instance), which this driver needs: '
            'use Nova 31 to 34, or a release of the driver that is made for '
            'this Nova.', str(error))
        # Nothing was done before, and nothing of Nova replaced.
        self.assertFalse(self.me.ring.has_settings)
        self.assertIs(init, self.me.manager._init_instance)
        self.assertEqual([], self.signal.mock_calls)

    def test_nova_that_is_newer_than_those_tested(self):
        self._release('35.0.0')
        self.driver.init_host('me')
        self.assertEqual(1, self.log.output.count('Nova 35.0.0 is none of'))
        self.assertTrue(self.me.ring.has_settings)

    def test_nova_that_is_tested(self):
        self._release('34.0.1')
        self.driver.init_host('me')
        self.assertNotIn('is none of', self.log.output)

    def test_sigterm_ends_the_heartbeat(self):
        self.useFixture(fixtures.MockPatch(
            'signal.getsignal', return_value=lambda *_: None))
        self.driver.init_host('me')
        self.settle()
        before = self.cloud.services['me'].last_seen
        self.nova.silent.add('me')
        self._handlers()[signal.SIGTERM](signal.SIGTERM, None)
        self.cloud.now += 10
        self.me.beat()
        self.assertEqual(before, self.cloud.services['me'].last_seen)
        self._assert_takes_nothing()

    def _assert_takes_nothing(self) -> None:
        """See that the service keeps what it has, and takes nothing more."""
        self.cloud.services.pop('b')
        self.assertEqual(self.desired('me', 'a', 'b'), self.nodes_after_pass())

    def test_sighup_takes_effect_in_the_next_pass(self):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')

        def write(peers: str) -> None:
            with open(path, 'w') as file:
                file.write('[ironic]\nconductor_group = \n'
                           f'peer_list = {peers}\n')

        def peers() -> set[str] | None:
            self.me.begin_pass()
            return self.me.ring.memory.settings.peers

        write('me, a')
        self.nova.conf.set_config_files([path])
        CONF.reload_config_files()
        self.driver.init_host('me')
        self.assertEqual({'me', 'a'}, peers())
        write('me, b')
        self.assertEqual({'me', 'a'}, peers())
        self.me.manager.reset.assert_not_called()

        self._handlers()[signal.SIGHUP](signal.SIGHUP, None)
        self.assertEqual({'me', 'b'}, peers())
        self.assertTrue(self.me.ring.resets.wait(_SECONDS))
        self.me.manager.reset.assert_called_once_with()

    def test_sighup_during_a_claim(self):
        """The tracker has the lock, and waits for the pass of the SIGHUP."""
        self.me.begin_pass()
        self.me.ring.reloader.reload = mock.Mock(side_effect=[True, False])
        found = []

        def claim():
            passing = threading.Thread(target=self.me.begin_pass)
            passing.start()
            passing.join(_SECONDS)
            found.append(passing.is_alive())
            found.append(self.me.manager.reset.called)
        upstream.in_turn_with_tracker(claim)
        self.assertEqual([False, False], found)
        self.assertTrue(self.me.ring.resets.wait(_SECONDS))
        self.me.manager.reset.assert_called_once_with()


class PooledInitHostTestCase(base.PeersWithPools, InitHostTestCase):

    def _assert_takes_nothing(self) -> None:
        # Free nodes are counted, and nobody's: there are instances to take.
        node, pool = self.first_of_b(), pools.name('b', base.KIND)
        self.nova.put('theirs', pool, 'b')
        self.cloud.nodes[node].instance = 'theirs'
        self.cloud.allocations[pools.uuid_of(pool)] = {'theirs'}
        self.cloud.services.pop('b')
        self.nodes_after_pass()
        self.assertEqual('b', self.nova.host_of('theirs'))


class SettingsTestCase(base.DriverTestCase):

    def test_configuration_that_goes_bad(self):
        self.configure('ironic', conductor_group='', peer_list=['me', 'a'])
        self.settle()
        before = self.me.ring.settings
        listed = self.nodes_after_pass()
        self.configure('ironic', peer_list=['a'])
        self.assertEqual(listed, self.nodes_after_pass())
        self.assertEqual(before, self.me.ring.settings)
        self.configure('ironic', peer_list=['me'])
        self.nodes_after_pass()
        self.assertEqual(frozenset({'me'}), self.me.ring.settings.peers)

    def test_each_complaint_is_written_once(self):
        self.configure('ironic', conductor_group='', peer_list=['me', 'a'])
        self.settle()
        with fixtures.FakeLogger('nova_ironic_ring.compute.service') as log:
            for peers in ['a'], ['a'], ['me'], ['a']:
                self.configure('ironic', peer_list=peers)
                self.nodes_after_pass()
            self.assertEqual(2, log.output.count(
                'peer_list does not name'))
        self.assertEqual(2, log.output.count('. Until you correct it, '))
        self.assertNotIn('.. ', log.output)

    def test_shards_within_a_shard(self):
        self.configure('ironic', shard='x')
        self.configure(listing='shards')
        error = self.assertRaises(exception.InvalidConfiguration,
                                  self.me.begin_pass)
        self.assertIn('listing = shards divides the shards of Ironic, and '
                      '[ironic] shard limits this service to x', str(error))

    def test_no_passes(self):
        self.nova.conf.config(update_resources_interval=-1)
        error = self.assertRaises(exception.InvalidConfiguration,
                                  self.me.begin_pass)
        self.assertIn('update_resources_interval is -1, so Nova runs no pass',
                      str(error))

    def test_failover_during_a_shutdown_without_end(self):
        # A release of Nova may leave the option to oslo.service.
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.settings._graceful', return_value=0))
        self.me.begin_pass()
        self.configure(failover_after=30)
        with fixtures.FakeLogger('nova_ironic_ring.compute.service') as log:
            self.me.begin_pass()
        self.assertIn('graceful_shutdown_timeout is 0, so a service that',
                      log.output)
        self.assertEqual(0, self.me.ring.settings.failover_after)

    def test_without_a_good_one(self):
        self.configure('ironic', conductor_group='rack1', peer_list=['a'])
        self.assertRaises(exception.InvalidConfiguration, self.me.begin_pass)
        self.assertFalse(self.me.ring.has_settings)

    def test_what_changed_is_in_force_in_the_next_pass(self):
        self.settle()
        self.configure(failover_after=777)
        self.nodes_after_pass()
        self.assertEqual(777, self.me.ring.settings.failover_after)
        # No earlier than a service that ends in order has finished.
        self.configure(failover_after=1)
        self.nodes_after_pass()
        # A release of Nova may leave this to oslo.service.
        self.assertEqual(getattr(CONF, 'graceful_shutdown_timeout', 60),
                         self.me.ring.settings.failover_after)
        self.assertIsInstance(self.me.ring.memory.settings, settings.Settings)

    def test_failover_after_that_is_raised_is_said_once(self):
        graceful = getattr(CONF, 'graceful_shutdown_timeout', 60)
        with fixtures.FakeLogger('nova_ironic_ring.compute.service') as log:
            for wanted in 0, graceful, 10, 10, graceful + 1, 10, 11:
                self.configure(failover_after=wanted)
                self.nodes_after_pass()
        self.assertEqual(2, log.output.count(
            '[ironic_ring] failover_after is 10 s, and a service may take '
            f'{graceful} s to shut down'))
        self.assertEqual(3, log.output.count('failover_after is 1'))
        self.assertEqual(3, len(log.output.splitlines()))
        # What the others read of it says both.
        said = stats.read_profile(
            self.me.ring.to_say(), self.me.ring.settings.host)
        assert said is not None
        self.assertEqual((11, graceful), (
            said.failover_configured, said.failover_after))


class PooledSettingsTestCase(base.PeersWithPools, SettingsTestCase):
    pass


class OutageTestCase(base.DriverTestCase):
    """What is needed to have a pass fail."""

    def setUp(self):
        super().setUp()
        self.settle()
        self.written = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.recording.log.write')).mock

    def _happened(self) -> list[type[events.Event]]:
        return [type(event) for call in self.written.call_args_list
                for event in call.args[0]]

    def _trust(self) -> Trust:
        return self.me.ring.memory.view.trust

    def _break(self, name: str) -> None:
        """Have Nova not answer in the middle of a pass."""
        with fixtures.MockPatchObject(
                objects.InstanceList, name,
                side_effect=exception.ServiceUnavailable):
            self.assertRaises(
                exception.ServiceUnavailable, self.me.begin_pass)


class MemoryTestCase(OutageTestCase):
    """What is remembered after a pass that has failed."""

    def test_nova_does_not_answer(self):
        self._break('get_uuids_by_host')
        # The next look tells whether heartbeats were lost as well.
        self.assertIs(Trust.BLACKOUT, self._trust())
        self.nova.change_service('b', forced_down=True)
        self.assertEqual(self.desired('me', 'a'), self.nodes_after_pass())
        self.assertIs(Trust.FULL, self._trust())

    def test_what_happened_until_then_is_written(self):
        self.nova.change_service('b', forced_down=True)
        self._break('get_uuids_by_host')
        self.assertEqual([events.MembersChanged], self._happened())

    def test_ironic_does_not_answer(self):
        before = self.me.ring.memory
        self.nova.ironic.get.side_effect = sdk_exceptions.SDKException('no')
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        # It says nothing of the heartbeats.
        self.assertEqual(before.watch, self.me.ring.memory.watch)
        self.assertIs(Trust.FULL, self._trust())

    def test_ironic_does_not_tell_of_missing_nodes(self):
        nodes = dict(self.cloud.nodes)
        self.cloud.nodes.clear()
        tell = self.nova.ironic.get_node.side_effect
        self.nova.ironic.get_node.side_effect = sdk_exceptions.SDKException
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        self.nova.ironic.get_node.side_effect = tell
        self.cloud.nodes |= nodes
        self.nodes_after_pass()
        self.assertIs(Trust.FULL, self._trust())

    def _miss_heartbeats(self) -> None:
        self.nova.silent.add('me')
        self.nova.advance(50)
        self.nova.silent.remove('me')
        self.nova.advance(1)

    def test_missing_heartbeats(self):
        self._miss_heartbeats()
        self.nodes_after_pass()
        self.assertIs(Trust.BLACKOUT, self._trust())
        self.nova.advance(CONF.service_down_time)
        self.nodes_after_pass()
        self.assertIs(Trust.FULL, self._trust())

    def test_missing_heartbeats_while_ironic_does_not_answer(self):
        # A pass that fails must not take the evidence with it.
        self._miss_heartbeats()
        nodes = self.nova.ironic.get.side_effect
        self.nova.ironic.get.side_effect = sdk_exceptions.SDKException('no')
        self.assertRaises(exception.VirtDriverNotReady, self.me.begin_pass)
        self.nova.ironic.get.side_effect = nodes
        self.nodes_after_pass()
        self.assertIs(Trust.BLACKOUT, self._trust())

    def test_start(self):
        # Until its own heartbeat is seen to move, it takes nothing.
        self.cloud.rows.clear()
        me = self.nova.compute('me')
        self.assertEqual(set(), me.run_pass())
        self.assertIs(Trust.STARTING, me.ring.memory.view.trust)
        self.nova.advance()
        # It is alone by now: the others have neither record nor node.
        self.assertEqual(set(base.NODES), me.run_pass())

    def test_start_of_a_newcomer(self):
        for node in self.nova.owned('me'):
            del self.cloud.rows[node]
        del self.cloud.members['me']
        me = self.me = self.start_newcomer()
        for _ in range(2):
            # Until the others can see it, it takes nothing.
            self.assertEqual(set(), me.run_pass())
            del self.cloud.members['me']
            self.nova.advance()
        self.assertIs(Trust.FULL, me.ring.memory.view.trust)
        self.assertEqual(set(), me.run_pass())
        self.nova.advance()
        self.assertEqual(self.desired('me', 'a', 'b'), me.run_pass())

    def start_newcomer(self):
        return self.nova.compute('me')


class PooledMemoryTestCase(base.PeersWithPools, MemoryTestCase):

    def test_start(self):
        # Its nodes count at once; an instance is not taken over.
        node, pool = self.first_of_b(), pools.name('b', base.KIND)
        self.nova.put('theirs', pool, 'b')
        self.cloud.nodes[node].instance = 'theirs'
        self.cloud.allocations[pools.uuid_of(pool)] = {'theirs'}
        self.nova.change_service('b', forced_down=True)
        me = self.me = self.start()
        self.assertEqual(self.desired('me', 'a'), self.nodes_after_pass())
        self.assertIs(Trust.STARTING, me.ring.memory.view.trust)
        (counted,) = me.ring.result.found.values()
        self.assertEqual(1, counted.inventory().reserved)
        self.assertEqual('b', self.nova.host_of('theirs'))
        self.nova.advance()
        self.assertEqual(self.desired('me', 'a'), self.nodes_after_pass())
        self.assertEqual('me', self.nova.host_of('theirs'))


class VanishedTestCase(OutageTestCase):

    def test_vanished_nodes_are_told_of_although_nova_fails_then(self):
        node = self.first_of_b()
        self.nova.change_service('b', forced_down=True)
        self.cloud.nodes = {node: self.cloud.nodes[node]}
        self.nova.put('theirs', node, 'b')
        self._break('get_by_filters')
        self.assertIn(events.NodesVanished, self._happened())


class ClaimTestCase(base.DriverTestCase):

    def test_builds_that_are_left_are_remembered(self):
        self.settle()
        node = self.first_of_b()
        self.cloud.allocations[node] = {'later'}
        self.nova.change_service('b', forced_down=True)
        self.nodes_after_pass()
        (left,) = self.me.ring.memory.left_builds
        self.assertEqual((node, 'b', {'later'}),
                         (left.node, left.host, left.consumers))

    def test_deletes_are_finished_here(self):
        recovery = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.instances.recovery.Recovery.start')).mock
        self.settle()
        node = self.first_of_b()
        self.nova.put('gone', node, 'b', is_building=True, task='deleting')
        self.cloud.allocations[node] = {'gone'}
        self.nova.change_service('b', forced_down=True)
        self.me.begin_pass()
        recovery.reset_mock()
        self.me.update(node)
        recovery.assert_called_once_with(mock.ANY)
        (taken,) = recovery.call_args.args[0]
        self.assertEqual('gone', taken.instance)


class ListedTestCase(base.DriverTestCase):

    def test_no_node_is_left_out_of_a_pass(self):
        self.settle()
        listed = self.me.begin_pass()
        run = passes.run

        def lose(*arguments):
            result = run(*arguments)
            del self.me.ring.ironic.found[min(listed)]
            return result
        # Nova's tracker would delete its record.
        with mock.patch.object(passes, 'run', lose):
            self.assertRaises(KeyError, self.me.begin_pass)
        self.assertEqual(listed, self.me.begin_pass())


class MissingTestCase(base.DriverTestCase):

    def test_ironic_does_not_tell(self):
        self.settle()
        node = min(self.nova.owned('me'))
        self.nova.ironic.get_node.side_effect = sdk_exceptions.SDKException
        # Nova's tracker would give up the rest of its pass.
        self.assertFalse(self.driver.is_node_deleted(node))
