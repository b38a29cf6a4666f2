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

    def _trusts(self, now: float, seen: float, gap: float = INTERVAL,
                alive: bool | None = None) -> bool:
        own = membership.Service('me', _at(seen), alive=alive)
        return self.blackout.trusts(own, _at(now), DOWN_TIME, INTERVAL, gap)

    def _start(self) -> None:
        self._trusts(-5, -500, 0)
        self.assertTrue(self._trusts(1, 0, 0))

    def test_not_before_the_first_heartbeat(self):
        self.assertFalse(self.blackout.trusts(
            None, _at(0), DOWN_TIME, INTERVAL, 0))
        # Of an earlier life, and be it of just now.
        for now in 0, 5, 10:
            self.assertFalse(self._trusts(now, -1, 0))
        self.assertFalse(self.blackout.started)
        self.assertTrue(self._trusts(15, 12, 0))
        self.assertTrue(self.blackout.started)

    def test_record_that_is_deleted(self):
        self._start()
        self.assertFalse(self.blackout.trusts(
            None, _at(5), DOWN_TIME, INTERVAL, 0))

    def test_regular_heartbeats(self):
        self._start()
        for now in range(60, 600, 60):
            self.assertTrue(self._trusts(now + 9, now))

    def test_heartbeat_that_is_old(self):
        self._start()
        self.assertTrue(self._trusts(35, 0))
        self.assertFalse(self._trusts(36, 0))
        # All has to be well for some time.
        self.assertFalse(self._trusts(40, 40))
        self.assertFalse(self._trusts(95, 90))
        self.assertTrue(self._trusts(96, 90))

    def test_heartbeats_that_were_missing_meanwhile(self):
        self._start()
        self.assertTrue(self._trusts(100, 99, 35))
        self.assertFalse(self._trusts(200, 199, 36))
        self.assertFalse(self._trusts(259, 258))
        self.assertTrue(self._trusts(260, 258))

    def test_long_intervals(self):
        # Nova allows them to be as long as this.
        own = membership.Service('me', _at(-500))
        self.blackout.trusts(own, _at(-5), 60, 40, 0)
        own = membership.Service('me', _at(0))
        for gap, trusted in ((49, True), (51, False)):
            self.assertEqual(trusted, self.blackout.trusts(
                own, _at(45), 60, 40, gap))

    def test_clock_that_is_wrong(self):
        self._start()
        self.assertFalse(self._trusts(10, 46))

    def test_database_that_could_not_be_asked(self):
        self._start()
        self.blackout.fail(_at(10))
        self.assertFalse(self._trusts(20, 20))
        self.assertTrue(self._trusts(70, 70))

    def test_heartbeats_elsewhere(self):
        self.assertFalse(self._trusts(0, -500, alive=False))
        self.assertTrue(self._trusts(1, -500, alive=True))
        self.assertFalse(self._trusts(2, -500, alive=False))
        self.assertFalse(self._trusts(61, -500, alive=True))
        self.assertTrue(self._trusts(62, -500, alive=True))
