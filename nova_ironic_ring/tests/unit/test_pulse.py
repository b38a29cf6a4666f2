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


from unittest import mock

from oslotest import base

from nova_ironic_ring import pulse


class PulseTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.now = 100.0
        self.pulse = pulse.Pulse(lambda: self.now)
        self.record = mock.Mock()
        self.save = self.record.save
        self.pulse.watch(self.record)

    def _beat_at(self, now: float) -> None:
        self.now = now
        self.record.save()

    def test_before_the_first(self):
        self.assertEqual(0, self.pulse.longest_gap())

    def test_longest_gap_since_the_last_look(self):
        for now in 110, 120, 150, 160:
            self._beat_at(now)
        self.now = 165
        self.assertEqual(30, self.pulse.longest_gap())
        self.assertEqual(5, self.pulse.longest_gap())
        self._beat_at(170)
        self.assertEqual(10, self.pulse.longest_gap())

    def test_gap_that_is_not_over(self):
        self._beat_at(110)
        self.now = 150
        self.assertEqual(40, self.pulse.longest_gap())
        self._beat_at(160)
        self.assertEqual(50, self.pulse.longest_gap())

    def test_those_that_fail_do_not_count(self):
        self._beat_at(110)
        self.save.side_effect = ValueError
        for now in 120, 130:
            self.assertRaises(ValueError, self._beat_at, now)
        self.save.side_effect = None
        self._beat_at(140)
        self.assertEqual(30, self.pulse.longest_gap())

    def test_ended(self):
        self._beat_at(110)
        self.pulse.end()
        self._beat_at(120)
        self.save.assert_called_once_with()

    def test_watched_twice(self):
        for record in (self.record, None, self.record):
            self.pulse.watch(record)
        self._beat_at(110)
        self.save.assert_called_once_with()
