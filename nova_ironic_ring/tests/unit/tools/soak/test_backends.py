# SPDX-License-Identifier: Apache-2.0

"""When MariaDB and RabbitMQ may restart."""

from collections.abc import Callable
import functools
import random
from types import SimpleNamespace
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring_tools.faults import operators
from nova_ironic_ring_tools.soak import backends
from nova_ironic_ring_tools.soak import world as worlds


class QuietTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.lab = mock.Mock()
        self.lab.state.computes = ['compute-1', 'compute-2']
        self.world = worlds.World(self.lab, random.Random(1), 'network')
        self.server = SimpleNamespace(
            id='s', name='soak-1', status='ACTIVE', task_state=None)
        self.node = SimpleNamespace(
            id='n', provision_state='active', reservation=None,
            target_power_state=None)
        self.volume = SimpleNamespace(id='v', status='in-use')
        link = self.world.link
        link.compute.servers.return_value = [self.server]
        link.baremetal.nodes.return_value = [self.node]
        link.block_storage.volumes.return_value = [self.volume]
        self.later: Callable[[], None] = lambda: None
        self.useFixture(fixtures.MockPatchObject(
            operators, 'wait', self._wait))

    def _wait(self, done: Callable[[], bool], seconds: float) -> bool:
        if done():
            return True
        self.later()
        return done()

    def _restart(self) -> str | None:
        return backends.restart_database(self.world)

    def test_at_rest(self):
        self.assertIn('MariaDB has restarted', self._restart())

    def test_service_that_starts(self):
        self.world.away['compute-2'] = worlds.ABSENCES[0], 9
        self.lab.database.restart.side_effect = lambda outage: (
            self.lab.wait_alive.assert_called_once_with('compute-1'))
        self._restart()
        self.lab.database.restart.assert_called_once()

    def test_what_is_under_way(self):
        for owner, name, now, then in (
                (self.server, 'task_state', 'rebooting', 'deleting'),
                (self.node, 'reservation', 'conductor-1', 'conductor-2'),
                (self.node, 'target_power_state', 'power on', 'power off'),
                (self.node, 'provision_state', 'deploying', 'wait call-back'),
                (self.volume, 'status', 'creating', 'attaching')):
            before = getattr(owner, name)
            setattr(owner, name, now)
            self.later = functools.partial(setattr, owner, name, then)
            self.assertIsNone(self._restart(), name)
            self.later = functools.partial(setattr, owner, name, before)
            self.assertIsNotNone(self._restart(), name)

    def test_server_that_is_built(self):
        self.server.status = 'BUILD'
        self.later = functools.partial(
            setattr, self.server, 'task_state', 'spawning')
        self.assertIsNone(self._restart())

    def test_build_that_may_wait_for_a_service_that_is_away(self):
        self.server.status, self.server.task_state = 'BUILD', 'scheduling'
        self.world.away['compute-2'] = worlds.ABSENCES[0], 9
        self.assertIsNone(self._restart())
        self.world.away.clear()
        # Nobody gets it any more.
        self.assertIsNotNone(self._restart())

    def test_what_is_stuck(self):
        self.volume.status = 'attaching'
        self.assertIsNotNone(self._restart())
        # It is not waited for again.
        self.later = lambda: self.fail('It was waited for.')
        self.assertIsNotNone(self._restart())
        self.node.provision_state = 'cleaning'
        self.later = lambda: setattr(
            self.node, 'provision_state', 'clean wait')
        self.assertIsNone(self._restart())
