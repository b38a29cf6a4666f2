# SPDX-License-Identifier: Apache-2.0

"""Both drivers below Nova's own resource tracker, with several threads.

From Nova 34 on the tracker updates as many nodes at a time as ``[compute]
update_resources_max_workers`` says.
"""

from collections.abc import Callable
import logging
import threading

import fixtures
import nova.conf

from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import nova_tracker
from nova_ironic_ring.tests.unit.compute import base

CONF = nova.conf.CONF
_WORKERS = 4
_SECONDS = 60


class _Crowd:
    """Two threads that begin something at once, and a third with them."""

    def __init__(self, third) -> None:
        self._meet = threading.Barrier(3, timeout=_SECONDS)
        self._lock = threading.Lock()
        self._left = 2
        self._failed: Exception | None = None
        self._third = threading.Thread(target=self._run, args=[third])
        self._third.start()

    def enter(self) -> None:
        """Wait for the others, as one of the first two."""
        with self._lock:
            self._left -= 1
            is_one = self._left >= 0
        if is_one:
            self._meet.wait()

    def end(self) -> None:
        """Wait for the third, and raise what it has failed with."""
        self._third.join(_SECONDS)
        assert not self._third.is_alive()
        if self._failed is not None:
            raise self._failed

    def _run(self, third) -> None:
        try:
            self._meet.wait()
            third()
        except Exception as error:
            self._failed = error


class _TrackerTestCase(base.DriverTestCase):
    """Nova's own resource tracker for the service me."""

    #: Those who have to meet in Nova's driver, if somebody has.
    _crowd: _Crowd | None = None

    def setUp(self):
        super().setUp()
        if 'update_resources_max_workers' not in CONF.compute:
            self.skipTest('This Nova updates one node after the other.')
        from nova import thread_pool_factory
        factory = thread_pool_factory.ThreadPoolFactory()
        self.useFixture(fixtures.MockPatchObject(
            thread_pool_factory, 'FACTORY', factory))
        self.addCleanup(factory.shutdown_all)
        self.configure('compute', update_resources_max_workers=_WORKERS)
        self.recovery = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.instances.recovery.Recovery.start')).mock
        self.errors = [
            self.useFixture(fixtures.FakeLogger(name, level))
            for name, level in (
                ('nova.compute.manager', logging.ERROR),
                ('nova_ironic_ring.compute.reactions', logging.WARNING))]

    def track(self) -> None:
        """Have Nova's manager have its own tracker, for self.me."""
        self.tracked = self.useFixture(
            nova_tracker.NovaTracker(self.nova, self.me))
        self.inventories = self.tracked.inventories
        describe = self.driver.get_available_resource

        def crowded(nodename):
            if self._crowd is not None:
                self._crowd.enter()
            return describe(nodename)
        self.useFixture(fixtures.MockPatchObject(
            self.driver, 'get_available_resource', crowded))

    def run_pass(self) -> None:
        self.nova.advance()
        self.tracked.run_pass()

    def run_crowded_pass(self, before: Callable[[], None] = lambda: None
                         ) -> None:
        """Run a pass, and look as soon as two threads ask for nodes.

        :param before: what happens before the look
        """
        def look():
            before()
            self.driver.ring_reactions.look()
            self.driver.ring_takes.take()
        crowd = self._crowd = _Crowd(look)
        for errors in self.errors:
            errors.reset_output()
        self.run_pass()
        self._crowd = None
        crowd.end()
        for errors in self.errors:
            self.assertEqual('', errors.output[:100])


class LogTestCase(_TrackerTestCase):
    """With one thread, for which nearly all nodes of a pass wait."""

    def setUp(self):
        super().setUp()
        # As nova-compute of Nova 34 runs; with greenlets none has to wait.
        self.useFixture(fixtures.MockPatch(
            'nova.utils.concurrency_mode_threading', return_value=True))
        self.configure('compute', update_resources_max_workers=1)
        self.configure(full_update_interval=0)
        self.track()
        self.pool_log = self.useFixture(fixtures.FakeLogger(
            upstream._POOL_LOGGER, logging.WARNING))

    def _spawn(self, kind) -> str:
        """Have a pool do more than it has threads for, and return the log."""
        from nova import thread_pool_factory
        begun, done = threading.Event(), threading.Event()

        def work():
            begun.set()
            done.wait(_SECONDS)
        futures = [thread_pool_factory.spawn_on(kind, work)]
        begun.wait(_SECONDS)
        futures += [thread_pool_factory.spawn_on(kind, work)
                    for _ in range(3)]
        done.set()
        for future in futures:
            future.result()
        return self.pool_log.output

    def test_no_line_for_each_node(self):
        from nova import thread_pool_factory
        kinds = thread_pool_factory.ExecutorType
        self.run_pass()
        self.assertEqual('', self._spawn(kinds.UPDATE_RESOURCES))
        # Nova says so of every other pool, and without this driver of all.
        CONF.set_override('sync_power_state_pool_size', 1)
        self.addCleanup(CONF.clear_override, 'sync_power_state_pool_size')
        self.assertIn('does not have free threads', self._spawn(
            kinds.SYNC_POWER))
        logger = logging.getLogger(upstream._POOL_LOGGER)
        logger.removeFilter(upstream._is_of_no_queue)
        self.addCleanup(logger.addFilter, upstream._is_of_no_queue)
        self.pool_log.reset_output()
        self.assertIn('does not have free threads', self._spawn(
            kinds.UPDATE_RESOURCES))


class RingTestCase(_TrackerTestCase):
    """With the ring driver, each of whose nodes is one of the tracker's."""

    def setUp(self):
        super().setUp()
        # Every node is updated in every pass.
        self.configure(full_update_interval=0)
        self.track()
        self.run_pass()
        self.run_pass()

    def assert_whole(self, *members: str) -> None:
        """See that all nodes of this service are recorded and offered."""
        own = self.desired('me', *members)
        self.assertLessEqual(own, self.nova.owned('me'))
        # The member record's provider has nothing.
        self.assertEqual({}, self.inventories.pop(member.uuid_of('me'), {}))
        self.assertEqual(self.nova.owned('me'), self.inventories.keys())
        self.assertEqual(own, set(self.driver.node_cache))
        for node in own:
            self.assertIsNotNone(records.row_of(self.nova.row(node)).made_of)

    def test_steady_pass(self):
        self.run_crowded_pass()
        self.assert_whole('a', 'b')

    def test_nodes_of_a_dead_service(self):
        self.nova.change_service('b', forced_down=True)
        self.run_crowded_pass()
        self.assert_whole('a')

    def test_instance_of_a_service_that_dies_meanwhile(self):
        node = self.first_of_b()
        self.nova.put('theirs', node, 'b')
        self.run_pass()
        self.run_crowded_pass(
            lambda: self.nova.change_service('b', forced_down=True))
        self.assertEqual('me', self.nova.host_of('theirs'))
        self.assertEqual(['theirs'], [
            each.instance for call in self.recovery.call_args_list
            for each in call.args[0]])
        self.run_pass()
        self.assert_whole('a')

    def test_node_that_another_service_takes_meanwhile(self):
        self.nova.change_service('b', forced_down=True)
        node = self.first_of_b()
        begin = self.driver.get_available_nodes

        def begin_and_lose():
            listed = begin()
            self.assertIn(node, listed)
            self.nova.own(node, 'a')
            return listed
        self.useFixture(fixtures.MockPatchObject(
            self.driver, 'get_available_nodes', begin_and_lose))
        self.run_crowded_pass()
        self.assertEqual('a', self.cloud.rows[node].owner)
        self.assertEqual(self.desired('me', 'a') - {node},
                         self.nova.owned('me'))


class ChangesTestCase(_TrackerTestCase):
    """With the ring driver, which has the tracker update what has changed."""

    def setUp(self):
        super().setUp()
        self.configure(full_update_interval=10 ** 9)
        self.track()
        for _ in range(3):
            self.run_pass()
        self.updated = []
        describe = self.driver.get_available_resource
        self.useFixture(fixtures.MockPatchObject(
            self.driver, 'get_available_resource',
            lambda node: self.updated.append(node) or describe(node)))

    def test_steady_pass(self):
        self.run_pass()
        self.assertEqual([], self.updated)

    def test_nodes_that_move(self):
        # As a service says it that makes rows in the same way.
        theirs = self.nova.owned('b')
        ring = self.me.ring
        said = updates.of_process(ring.process)
        for node, answer in ring.ironic.fingerprints(theirs).items():
            row = self.cloud.rows[node]
            row.sayer = 'b'
            row.made_of = updates.made_of(
                answer, decisions.Decision.KEEP, said)
            row.made_at = ring.process.wall_time().timestamp()
            self.cloud.providers.add(node)
        self.nova.change_service('b', forced_down=True)
        self.run_pass()
        own = self.desired('me', 'a')
        self.assertLess(1, len(own & theirs))
        self.assertEqual(own, self.nova.owned('me'))
        self.assertEqual([], self.updated)
        for errors in self.errors:
            self.assertEqual('', errors.output[:100])
        # And each once, as they are then.
        self.updated.clear()
        self.configure(full_update_interval=0)
        self.run_pass()
        self.assertEqual(sorted(own), sorted(self.updated))


class PoolTestCase(_TrackerTestCase):
    """With the pool driver, and five pools."""

    def setUp(self):
        super().setUp()
        for number, node in enumerate(fake_nova.NODES):
            self.cloud.nodes[node].kind = pools.Kind(f'CUSTOM_{number % 5}')
        self.cloud.rows.clear()
        for host in 'a', 'b':
            del self.cloud.services[host]
        self.nova.computes.clear()
        self.me = self.nova.compute('me', pool_driver.IronicPoolDriver)
        self.driver = self.me.driver
        self.track()
        self.run_pass()
        self.run_pass()

    def test_steady_pass(self):
        self.run_crowded_pass()
        self.assertEqual({}, self.inventories.pop(member.uuid_of('me')))
        self.assertEqual(5, len(self.inventories))
        self.assertEqual(self.inventories.keys(), self.nova.owned('me'))
        self.assertEqual([6] * 5, [
            next(iter(found.values()))['total']
            for found in self.inventories.values()])
