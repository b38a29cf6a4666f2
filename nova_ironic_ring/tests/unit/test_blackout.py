# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


import datetime

from oslotest import base

from nova_ironic_ring import blackout
from nova_ironic_ring import membership

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
DOWN_TIME = 60
INTERVAL = 10


def _at(seconds: float) -> datetime.datetime:
    return START + datetime.timedelta(seconds=seconds)


class BlackoutTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.blackout = blackout.Blackout()

    def _trusts(self, now: float, seen: float, beats: int | None = None,
                alive: bool | None = None) -> bool:
        own = membership.Service(
            'me', _at(seen), alive=alive,
            beats=int(seen // INTERVAL) if beats is None else beats)
        return self.blackout.trusts(own, _at(now), DOWN_TIME, INTERVAL)

    def _start(self) -> None:
        self._trusts(-5, -500)
        self.assertTrue(self._trusts(1, 0))

    def test_not_before_the_first_heartbeat(self):
        self.assertFalse(self.blackout.trusts(
            None, _at(0), DOWN_TIME, INTERVAL))
        # Of an earlier life, and be it of just now.
        for now in 0, 5, 10:
            self.assertFalse(self._trusts(now, -1))
        self.assertFalse(self.blackout.started)
        self.assertTrue(self._trusts(15, 12))
        self.assertTrue(self.blackout.started)

    def test_record_that_is_deleted(self):
        self._start()
        self.assertFalse(self.blackout.trusts(
            None, _at(5), DOWN_TIME, INTERVAL))

    def test_regular_heartbeats(self):
        self._start()
        for now in range(60, 600, 60):
            self.assertTrue(self._trusts(now + 9, now))

    def test_late_heartbeat(self):
        self._start()
        self.assertTrue(self._trusts(30, 0))
        self.assertFalse(self._trusts(31, 0))
        # All has to be well for some time.
        self.assertFalse(self._trusts(40, 40, 4))
        self.assertFalse(self._trusts(90, 90, 9))
        self.assertTrue(self._trusts(91, 90, 9))

    def test_heartbeats_that_were_missing_meanwhile(self):
        self._start()
        self.assertFalse(self._trusts(100, 99, 6))
        self.assertFalse(self._trusts(159, 158, 12))
        self.assertTrue(self._trusts(160, 158, 12))

    def test_some_delay_is_nothing(self):
        self._start()
        self.assertTrue(self._trusts(100, 99, 7))

    def test_clock_that_is_wrong(self):
        self._start()
        self.assertFalse(self._trusts(10, 41, 1))

    def test_database_that_could_not_be_asked(self):
        self._start()
        self.blackout.fail(_at(10))
        self.assertFalse(self._trusts(20, 20, 2))
        self.assertTrue(self._trusts(70, 70, 7))

    def test_heartbeats_elsewhere(self):
        self.assertFalse(self._trusts(0, -500, alive=False))
        self.assertTrue(self._trusts(1, -500, alive=True))
        self.assertFalse(self._trusts(2, -500, alive=False))
        self.assertFalse(self._trusts(61, -500, alive=True))
        self.assertTrue(self._trusts(62, -500, alive=True))
