# SPDX-License-Identifier: Apache-2.0

"""Tests of when nodes that have not changed are updated."""

import dataclasses
import uuid

import ddt
from hypothesis import example
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies
from oslotest import base

from nova_ironic_ring.core.deciding import turns
from nova_ironic_ring.core.values import settings as core_settings

NODE = '00000000-0000-0000-0000-000000000001'
NODES = [str(uuid.UUID(int=number)) for number in range(1000)]
INTERVAL = 600
CURRENT = core_settings.Settings('me', pass_interval=60)


@ddt.ddt
class TurnsTestCase(base.BaseTestCase):

    @settings(deadline=None)
    @example(uuid.UUID('e3e70682-c209-4cac-629f-6fbed82c07cd'), -5885.0, 14.0)
    @given(strategies.uuids(), strategies.floats(-1e6, 2e9),
           strategies.floats(0, 100))
    def test_each_node_has_one_turn_in_an_interval(self, node, began, pause):
        node, at, now = str(node), began, began
        updated = 0
        while now < began + 10 * INTERVAL:
            if turns.is_due(node, at, now, INTERVAL):
                at = now
                updated += 1
            now += 1 + pause
        self.assertIn(updated, (9, 10, 11))

    def test_turns_are_spread(self):
        counts = [sum(turns.is_due(node, now, now + 60, INTERVAL)
                      for node in NODES) for now in range(0, INTERVAL, 60)]
        self.assertEqual(1000, sum(counts))
        self.assertLess(max(counts), 150)
        self.assertGreater(min(counts), 60)

    @ddt.data(86400, -86400, 1e9)
    def test_clock_that_is_set(self, seconds):
        now = 1e9 + seconds
        self.assertTrue(turns.is_due(NODE, 1e9, now, INTERVAL))
        self.assertFalse(turns.is_due(NODE, now, now + 1, INTERVAL))

    def test_every_pass(self):
        self.assertTrue(turns.is_due(NODE, 100, 100, 0))


@ddt.ddt
class PaceTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.pace = turns.Pace()

    @ddt.data(0.001, 0.02, 0.5)
    def test_part_of_the_time(self, seconds):
        """A service that is started, long after all updates."""
        at, now = dict.fromkeys(NODES, 0.0), 100000.0
        began, used, most = now + 10000, 0.0, 0
        while now < began + 10000:
            due = [node for node in sorted(NODES, key=lambda node: at[node])
                   if turns.is_due(node, at[node], now, INTERVAL)]
            done = due[:self.pace.room(CURRENT, False)]
            most = max(most, len(done) * seconds)
            for node in done:
                self.pace.took(now, now + seconds)
                now += seconds
                at[node] = now
                used += seconds * (now > began)
            now += 60
        # No pass waits for all.
        self.assertGreater(16, most)
        self.assertGreater(0.25, used / (now - began))
        # None is forgotten.
        self.assertGreater(INTERVAL + 120 if seconds < 0.1 else 3000,
                           now - min(at.values()))

    def test_several_at_a_time(self):
        for _ in range(500):
            for number in range(4):
                self.pace.took(0, 4 + number)
            self.pace = self._again()
        self.assertAlmostEqual(1.75, self.pace._cost, 1)

    def _again(self) -> turns.Pace:
        """Return the same pace, long after the last update."""
        self.pace._ended = 0
        return self.pace

    def test_one_that_is_slow(self):
        self.pace.took(0, 10 ** 6)
        self.assertEqual(1, self.pace.room(CURRENT, False))

    def test_first_pass(self):
        self.assertEqual(0, self.pace.room(CURRENT, True))

    def test_every_pass(self):
        current = dataclasses.replace(CURRENT, full_update_interval=0)
        for is_first in False, True:
            self.assertIsNone(self.pace.room(current, is_first))
