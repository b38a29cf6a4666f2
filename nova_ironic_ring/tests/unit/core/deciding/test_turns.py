# SPDX-License-Identifier: Apache-2.0

"""Tests of when nodes that have not changed are updated."""

import uuid

import ddt
from hypothesis import example
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies
from oslotest import base

from nova_ironic_ring.core.deciding import turns

NODE = '00000000-0000-0000-0000-000000000001'
INTERVAL = 600


@ddt.ddt
class TurnsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.turns = turns.Turns(0)

    @settings(deadline=None)
    @example(uuid.UUID('e3e70682-c209-4cac-629f-6fbed82c07cd'), -5885.0, 14.0)
    @given(strategies.uuids(), strategies.floats(-1e6, 1e6),
           strategies.floats(0, 100))
    def test_each_node_has_one_turn_in_an_interval(self, node, began, pause):
        node, now = str(node), began
        found = turns.Turns(began)
        updated = 0
        while now < began + 10 * INTERVAL:
            if found.has(node, now, INTERVAL):
                found.updated(node, now)
                updated += 1
            now += 1 + pause
        self.assertIn(updated, (9, 10, 11))

    def test_turns_are_spread(self):
        nodes = [str(uuid.UUID(int=number)) for number in range(1000)]
        counts = []
        for now in range(0, INTERVAL, 60):
            counts.append(sum(
                turns.Turns(now).has(node, now + 60, INTERVAL)
                for node in nodes))
        self.assertEqual(1000, sum(counts))
        self.assertLess(max(counts), 150)
        self.assertGreater(min(counts), 60)

    @ddt.data(0.001, 0.5)
    def test_part_of_the_time(self, seconds):
        nodes = [str(uuid.UUID(int=number)) for number in range(1000)]
        now, updated, began = 0.0, 0, 4000
        while now < 3 * began:
            self.turns.pace(len(nodes), 100, now)
            for node in nodes:
                if self.turns.has(node, now, 100):
                    now += seconds
                    self.turns.updated(node, now)
                    self.turns.took(seconds)
                    updated += now > began
            now += 5
        used = seconds * updated / (now - began)
        self.assertGreater(0.3, used)
        # None is forgotten.
        oldest = self.turns.oldest(nodes, now)
        if seconds < 0.01:
            self.assertGreater(120, oldest)
        else:
            self.assertLess(0.1, used)
            self.assertGreater(5000, oldest)

    def test_faster_again(self):
        self.turns.took(1000)
        self.turns.pace(1000, 100, 0)
        self.assertFalse(self.turns.has(NODE, 200, 100))
        for _ in range(1000):
            self.turns.took(0)
        self.turns.pace(1000, 100, 0)
        self.assertTrue(self.turns.has(NODE, 200, 100))

    def test_other_interval_makes_no_peak(self):
        nodes = [str(uuid.UUID(int=number)) for number in range(1000)]
        interval, now, counts = 100, 0, []
        for factor in (1, 4, 2, 8, 1):
            needed = factor * (0.8 if factor > self.turns._factor else 0.4)
            self.turns._cost = needed * 0.25 * interval / len(nodes)
            self.turns.pace(len(nodes), interval, now)
            self.assertEqual(factor, self.turns._factor)
            for _ in range(20):
                now += 10
                due = [node for node in nodes
                       if self.turns.has(node, now, interval)]
                counts.append(len(due) * factor)
                for node in due:
                    self.turns.updated(node, now)
        # A tenth of all in a tenth of the interval.
        self.assertGreater(200, max(counts))
        self.assertLess(40, min(counts))

    def test_every_pass(self):
        self.turns.updated(NODE, 0)
        self.assertTrue(self.turns.has(NODE, 0, 0))

    def test_update_that_has_failed(self):
        self.turns.updated(NODE, 0)
        self.turns.failed(NODE, 'other')
        self.assertTrue(self.turns.has(NODE, 1, 1e9))
        self.assertTrue(self.turns.has('other', 1, 1e9))
        self.turns.updated(NODE, 1)
        self.assertFalse(self.turns.has(NODE, 2, 1e9))

    def test_nodes_that_are_gone(self):
        self.turns.updated(NODE, 100)
        self.turns.failed(NODE)
        self.turns.keep([])
        self.assertFalse(self.turns.has(NODE, 101, 1e9))
        self.assertEqual(101, self.turns.oldest([NODE], 101))

    def test_update_that_fails_meanwhile(self):
        turns_of = self.turns

        class Listed(list):
            def __iter__(self):
                turns_of.failed(NODE)
                return super().__iter__()
        self.turns.keep(Listed([NODE]))
        self.assertTrue(self.turns.has(NODE, 1, 1e9))

    def test_oldest(self):
        self.turns.updated(NODE, 100)
        self.assertEqual(20, self.turns.oldest([NODE], 120))
        self.assertEqual(120, self.turns.oldest([NODE, 'other'], 120))
        self.assertEqual(0, self.turns.oldest([], 120))
