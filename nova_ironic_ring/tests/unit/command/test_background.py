# SPDX-License-Identifier: Apache-2.0

"""Tests of calls that are made at the same time."""

import threading

from oslotest import base

from nova_ironic_ring.command import background


class CallTestCase(base.BaseTestCase):

    def test_at_the_same_time(self):
        met = threading.Barrier(2)
        calls = [background.Call(lambda: met.wait(30)) for _ in range(2)]
        self.assertEqual({0, 1}, {call.result() for call in calls})

    def test_error(self):
        call = background.Call(lambda: {}['x'])
        self.assertRaises(KeyError, call.result)

    def test_no_answer(self):
        ended = threading.Event()
        self.addCleanup(ended.set)
        call = background.Call(ended.wait)
        self.assertRaises(TimeoutError, call.result, 0)
        ended.set()
        self.assertTrue(call.result())
