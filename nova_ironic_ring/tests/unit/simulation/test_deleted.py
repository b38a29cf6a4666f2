# SPDX-License-Identifier: Apache-2.0

"""A server is deleted between the claim of its node and the deployment."""

import functools
import itertools

import ddt
import fixtures
from oslotest import base

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.simulation import builds
from nova_ironic_ring.tests.unit.simulation import invariants
from nova_ironic_ring.tests.unit.simulation import pools
from nova_ironic_ring.tests.unit.simulation import times
from nova_ironic_ring.tests.unit.simulation import world as worlds

# How long a service stands still, and others wait until it counts as dead.
_SILENCE = 4 * times.DOWN_TIME
_PATIENCE = 2 * _SILENCE


@ddt.ddt
class DeletedTestCase(base.BaseTestCase):

    def _build(self, seed: int) -> builds.Build:
        """Have a ring at rest, but for a node that is about to be deployed."""
        self.world = worlds.World(seed)
        self.useFixture(fixtures.MockPatchObject(
            planner, 'decide', functools.partial(
                invariants.decide, self.world)))
        for _ in range(9):
            self.world.enroll()
        for name in 'abc':
            self.world.start(name)
            self.addCleanup(self._end, name)
        self.world.run(times.QUIET)
        self.world.boot(min(self.world.cloud.nodes))
        (build,) = self.world.builds.values()
        while build.between is None:
            self.world.run(0.01)
        return build

    def _end(self, name: str) -> None:
        if name in self.world.services:
            self.world.services[name].end()

    def _delete(self, build: builds.Build) -> None:
        """Delete the server as soon as Nova's API can do so itself."""
        self.world.run(times.DOWN_TIME + times.REPORT_INTERVAL)
        self.world.delete(build.instance)
        self.assertNotIn(build.instance, self.world.cloud.instances)
        self.assertEqual(
            build.instance, self.world.cloud.nodes[build.node].instance)

    @ddt.data(*itertools.product((1, 2, 3, 4), (False, True)))
    @ddt.unpack
    def test_service_that_wakes(self, seed, is_disabled):
        """The invariants see what it deploys then."""
        self.useFixture(fixtures.MockPatchObject(
            times, 'FAILOVER_AFTER', _PATIENCE))
        build = self._build(seed)
        # One that is disabled is in no ring.
        self.world.bar(build.host, disabled=is_disabled)
        self.world.freeze(self.world.services[build.host], _SILENCE)
        self._delete(build)
        self.world.run(_SILENCE + times.QUIET)
        self.world.rules.check_settled([None], True)
        self.assertIsNone(self.world.cloud.nodes[build.node].instance)

    @ddt.data(False, True)
    def test_service_that_is_dead(self, is_disabled):
        build = self._build(1)
        self.world.bar(build.host, disabled=is_disabled)
        self.world.crash(self.world.services[build.host])
        self._delete(build)
        self.world.run(times.FAILOVER_AFTER + times.QUIET)
        self.world.rules.check_settled([None], True)
        self.assertIsNone(self.world.cloud.nodes[build.node].instance)


@ddt.ddt
class PoolDeletedTestCase(base.BaseTestCase):
    """The same with pools."""

    def _build(self, seed: int) -> tuple[str, clouds.Node]:
        """Have pools at rest, but for a node that is about to be deployed."""
        self.world = pools.World(seed)
        for _ in range(9):
            self.world.enroll()
        for name in 'abc':
            self.world.start(name)
        self.world.run(times.QUIET)
        self.world.boot()
        while not (found := [
                node for node in self.world.cloud.nodes.values()
                if node.instance is not None and not node.is_deployed]):
            self.world.run(0.01)
        (node,) = found
        # The service has its answer by then.
        self.world.run(0.2)
        self.assertFalse(node.is_deployed)
        return str(node.instance), node

    def _delete(self, uuid: str, node: clouds.Node) -> None:
        """Delete the server as soon as Nova's API can do so itself."""
        self.world.run(times.DOWN_TIME + times.REPORT_INTERVAL)
        self.world.delete(uuid)
        self.assertNotIn(uuid, self.world.cloud.instances)
        self.assertEqual(uuid, node.instance)

    @ddt.data(*itertools.product((1, 2, 3, 4), (False, True)))
    @ddt.unpack
    def test_service_that_wakes(self, seed, is_disabled):
        """The simulation sees what it deploys then."""
        self.useFixture(fixtures.MockPatchObject(
            times, 'FAILOVER_AFTER', _PATIENCE))
        uuid, node = self._build(seed)
        host = self.world.cloud.instances[uuid].host
        self.world.change(host, disabled=is_disabled)
        self.world.services[host].frozen_until = (
            self.world.cloud.now + _SILENCE)
        self._delete(uuid, node)
        self.world.run(_SILENCE + times.QUIET)
        self.assertIsNone(node.instance)

    @ddt.data(False, True)
    def test_service_that_is_dead(self, is_disabled):
        uuid, node = self._build(1)
        host = self.world.cloud.instances[uuid].host
        self.world.change(host, disabled=is_disabled)
        self.world.services[host].crash()
        self._delete(uuid, node)
        self.world.run(times.FAILOVER_AFTER + times.QUIET)
        self.assertIsNone(node.instance)
