# SPDX-License-Identifier: Apache-2.0

"""Tests of what is counted."""

import collections
import threading
import time

from oslotest import base

from nova_ironic_ring.compute.recording import counters
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events

_Decision = decisions.Decision


class CountersTestCase(base.BaseTestCase):

    def test_count(self):
        counted = counters.Counters()
        happened = [
            events.NodeTaken('n1', 'b', _Decision.TAKE_SILENT),
            events.NodeTaken('n2', 'b', _Decision.TAKE_SILENT),
            events.NodeTaken('n3', 'b', _Decision.TAKE_OFFERED),
            events.NodeOffered('n4', 'b'),
            events.InstanceTaken('n5', 'i5', 'b', True),
            events.InstanceTaken('n6', 'i6', 'b', False),
            events.InstanceNotTaken('i7', 'b', ValueError())]
        counted.count(happened)
        counted.count(happened[:1])
        self.assertEqual(
            counters.Counters(
                {_Decision.TAKE_SILENT: 3, _Decision.TAKE_OFFERED: 1},
                {True: 1, False: 1}, 1), counted)

    def test_count_in_several_threads(self):
        # Builds take nodes at the same time, and in the middle of a pass.
        counted = counters.Counters(nodes_taken=_Slow())
        taken = events.NodeTaken('n1', 'b', _Decision.TAKE_FOR_BUILD)
        threads = [threading.Thread(target=counted.count, args=([taken],))
                   for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({_Decision.TAKE_FOR_BUILD: 5}, counted.nodes_taken)


class _Slow(collections.Counter):
    """Lets other threads go on between a look and a change."""

    def __getitem__(self, name):
        found = super().__getitem__(name)
        time.sleep(0.01)
        return found
