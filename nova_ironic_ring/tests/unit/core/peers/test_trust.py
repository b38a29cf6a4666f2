# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

from oslotest import base

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
Trust = trust.Trust


class TrustTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.current = settings.Settings(
            'Me', down_time=60, report_interval=10)
        self.watch = membership.Watch()

    def _look(self, at: float, beat: float | None, gap: float = 10,
              alive: bool | None = None) -> Trust:
        own = None if beat is None else model.Service(
            'me', START + datetime.timedelta(seconds=beat), alive=alive)
        self.watch = self.watch.look([own] if own else [], at, but={'me'})
        return trust.look(
            own is not None and self.watch.has_moved('me'), trust.is_late(
                own, gap, self.watch, self.current))

    def _start(self) -> None:
        self._look(-5, -500, 0)
        self.assertIs(Trust.FULL, self._look(0, 0, 0))

    def test_not_before_the_first_heartbeat(self):
        self.assertIs(Trust.STARTING, self._look(0, None, 0))
        # Of an earlier process, and be it of just now.
        for at in 0, 5, 10:
            self.assertIs(Trust.STARTING, self._look(at, -1, 0))
        self.assertIs(Trust.FULL, self._look(15, 12, 0))

    def test_record_that_is_deleted(self):
        self._start()
        self.assertIs(Trust.STARTING, self._look(5, None))
        self.assertIs(Trust.FULL, self._look(10, 10))

    def test_regular_heartbeats(self):
        self._start()
        for at in range(60, 600, 60):
            self.assertIs(Trust.FULL, self._look(at, at - 9))

    def test_heartbeat_that_stands_still(self):
        self._start()
        self.assertIs(Trust.FULL, self._look(35, 0))
        self.assertIs(Trust.BLACKOUT, self._look(36, 0))
        self.assertIs(Trust.BLACKOUT, self._look(50, 0))
        self.assertIs(Trust.FULL, self._look(60, 60))

    def test_heartbeats_that_were_missing_meanwhile(self):
        self._start()
        self.assertIs(Trust.FULL, self._look(100, 99, 35))
        self.assertIs(Trust.BLACKOUT, self._look(200, 199, 36))
        self.assertIs(Trust.FULL, self._look(210, 208))

    def test_long_intervals(self):
        # Nova allows them to be as long as this.
        self.current = dataclasses.replace(self.current, report_interval=40)
        self._start()
        self.assertIs(Trust.FULL, self._look(45, 45, 49))
        self.assertIs(Trust.BLACKOUT, self._look(45, 45, 51))

    def test_wall_clocks_do_not_matter(self):
        self._start()
        for at, beat in ((10, 9e8), (20, -9e8), (30, -9e8 + 10)):
            self.assertIs(Trust.FULL, self._look(at, beat))

    def test_heartbeats_elsewhere(self):
        self.assertIs(Trust.STARTING, self._look(0, -500, alive=False))
        self.assertIs(Trust.FULL, self._look(1, -500, alive=True))
        self.assertIs(Trust.BLACKOUT, self._look(2, -500, alive=False))
        self.assertIs(Trust.FULL, self._look(61, -500, alive=True))
