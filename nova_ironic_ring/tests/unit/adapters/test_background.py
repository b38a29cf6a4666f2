# SPDX-License-Identifier: Apache-2.0

"""Tests of what is done in the background."""

import threading

import fixtures
from oslotest import base

from nova_ironic_ring.adapters import background


class BackgroundTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.background = background.Background()

    def test_nothing_waits_and_the_order_stays(self):
        go, done = threading.Event(), []
        self.background.do(lambda: go.wait(30))
        for number in range(9):
            self.background.do(lambda number=number: done.append(number))
        self.assertEqual([], done)
        self.assertFalse(self.background.wait(0))
        go.set()
        self.assertTrue(self.background.wait(30))
        self.assertEqual(list(range(9)), done)
        # It begins anew.
        self.background.do(lambda: done.append(9))
        self.assertTrue(self.background.wait(30))
        self.assertEqual(9, done[-1])

    def test_thread_that_cannot_be_started(self):
        done = []
        with fixtures.MockPatch('threading.Thread.start', side_effect=(
                RuntimeError("can't start new thread"))):
            self.background.do(lambda: done.append(1))
        self.assertIn("can't start new thread", self.log.output)
        # What comes next has it done as well.
        self.background.do(lambda: done.append(2))
        self.assertTrue(self.background.wait(30))
        self.assertEqual([1, 2], done)

    def test_error_does_not_keep_the_others(self):
        done = []
        self.background.do(lambda: 1 // 0)
        self.background.do(lambda: done.append(True))
        self.assertTrue(self.background.wait(30))
        self.assertEqual([True], done)
        self.assertIn('ZeroDivisionError', self.log.output)

    def test_too_many_are_dropped_and_counted(self):
        go, begun, done = threading.Event(), threading.Event(), []
        few = background.Background('cards', 3)
        few.do(lambda: (begun.set(), go.wait(30)))
        self.assertTrue(begun.wait(30))
        for number in range(10):
            few.do(lambda number=number: done.append(number))
        go.set()
        self.assertTrue(few.wait(30))
        self.assertEqual([0, 1, 2], done)
        few.do(lambda: done.append(3))
        self.assertTrue(few.wait(30))
        self.assertEqual([0, 1, 2, 3], done)
        self.assertEqual(1, self.log.output.count('7 cards were dropped'))
