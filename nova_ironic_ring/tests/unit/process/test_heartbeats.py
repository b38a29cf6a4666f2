# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from oslotest import base

from nova_ironic_ring.process import heartbeats


class OwnHeartbeatsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.now = 100.0
        self.heartbeats = heartbeats.OwnHeartbeats(lambda: self.now)
        self.write = mock.Mock()

    def _beat_at(self, now: float) -> None:
        self.now = now
        self.heartbeats.beat(self.write)

    def test_before_the_first(self):
        self.assertEqual(0, self.heartbeats.longest_gap(0))
        self.now = 200
        self.assertEqual(0, self.heartbeats.longest_gap(0))

    def test_longest_gap_since(self):
        for now in 110, 120, 150, 160, 175:
            self._beat_at(now)
        self.now = 180
        for gap, since in (
                (30, 0), (30, 120), (30, 149), (15, 150), (15, 174),
                (5, 175), (5, 180)):
            with self.subTest(since=since):
                self.assertEqual(gap, self.heartbeats.longest_gap(since))

    def test_gap_that_is_not_over(self):
        self._beat_at(110)
        self.now = 150
        self.assertEqual(40, self.heartbeats.longest_gap(149))
        self._beat_at(160)
        self.assertEqual(50, self.heartbeats.longest_gap(150))

    def test_gaps_that_do_not_matter_are_forgotten(self):
        # Each is shorter than the one before, and then one is long.
        for number in range(1000):
            self._beat_at(self.now + 20 - number / 100)
        self.assertEqual(100, len(self.heartbeats._gaps))
        self._beat_at(self.now + 20)
        self.assertEqual(1, len(self.heartbeats._gaps))

    def test_those_that_fail_do_not_count(self):
        self._beat_at(110)
        self.write.side_effect = ValueError
        for now in 120, 130:
            self.assertRaises(ValueError, self._beat_at, now)
        self.write.side_effect = None
        self._beat_at(140)
        self.assertEqual(30, self.heartbeats.longest_gap(0))

    def test_age(self):
        self.now = 107
        self.assertIsNone(self.heartbeats.age())
        self._beat_at(110)
        self.now = 125
        self.assertEqual(15, self.heartbeats.age())
        self.write.side_effect = ValueError
        self.assertRaises(ValueError, self._beat_at, 130)
        self.assertEqual(20, self.heartbeats.age())

    def test_somebody_is_told_of_those_that_succeed(self):
        told = mock.Mock()
        self.heartbeats = heartbeats.OwnHeartbeats(lambda: self.now, told)
        self.write.side_effect = lambda: told.assert_not_called()
        self._beat_at(110)
        told.assert_called_once_with()
        self.write.side_effect = ValueError
        self.assertRaises(ValueError, self._beat_at, 120)
        self.heartbeats.end()
        self._beat_at(130)
        told.assert_called_once_with()

    def test_ended(self):
        self._beat_at(110)
        self.assertFalse(self.heartbeats.is_ended)
        self.heartbeats.end()
        self.assertTrue(self.heartbeats.is_ended)
        self._beat_at(120)
        self.write.assert_called_once_with()
