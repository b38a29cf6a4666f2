# SPDX-License-Identifier: Apache-2.0

"""Takeovers while Ironic or Placement accepts connections and is silent."""

import threading
import time

import fixtures
from keystoneauth1 import session
import nova.conf

from nova_ironic_ring.adapters import limits
from nova_ironic_ring.tests.fixtures import silence
from nova_ironic_ring.tests.unit.compute import base

CONF = nova.conf.CONF
_LIMIT = 1


class SilenceTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.configure(request_timeout=_LIMIT)
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.instances.recovery.Recovery.start'))
        self.driver.init_host('me')
        self.nova.put('theirs', self.first_of_b(), 'b')
        self.settle()
        self.service = self.useFixture(silence.Silence())

    def ask(self, *args, **kwargs):
        """Ask what is silent, with a session that has the limits."""
        return self.session.get(self.service.url, authenticated=False)

    def freeze(self, client: object) -> None:
        self.session = session.Session()
        limits.limit(self.session, CONF)
        self.useFixture(fixtures.MockPatchObject(client, 'get', self.ask))

    def take_over_during_passes(self, threads: int) -> float:
        """Have passes run, and b die meanwhile.

        :returns: after how many seconds its instance is this service's
        """
        passes = [threading.Thread(target=self._pass) for _ in range(threads)]
        for each in passes:
            each.start()
        deadline = time.monotonic() + 30
        while not self.service.requests:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.nova.change_service('b', forced_down=True)
        begun = time.monotonic()
        self.driver.ring_reactions.look()
        taken = time.monotonic() - begun
        self.assertEqual('me', self.nova.host_of('theirs'))
        for each in passes:
            each.join(30)
        return taken

    def _pass(self) -> None:
        try:
            self.driver.get_available_nodes()
        except Exception:
            # What a pass does then is tested elsewhere.
            return

    def test_ironic_is_silent(self):
        self.freeze(self.driver.ironic_connection)
        # As those of Nova that ask for power states, all at once.
        self.assertLess(self.take_over_during_passes(8), 3 * _LIMIT)

    def test_placement_is_silent(self):
        self.freeze(self.me.placement)
        self.assertLess(self.take_over_during_passes(1), 3 * _LIMIT)
