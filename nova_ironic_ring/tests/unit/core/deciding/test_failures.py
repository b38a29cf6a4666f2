# SPDX-License-Identifier: Apache-2.0

"""Nodes on which deployments have failed."""

import datetime

import ddt
from oslotest import base

from nova_ironic_ring.core.deciding import failures

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def at(seconds):
    return NOW + datetime.timedelta(seconds=seconds)


@ddt.ddt
class FailuresTestCase(base.BaseTestCase):

    def fail(self, *seconds, wait=100):
        known = {}
        for each in seconds:
            known = failures.noted(known, 'n', at(each), wait)
        return known

    @ddt.data((1, 100), (2, 200), (3, 400), (5, 1600), (6, 1600), (99, 1600))
    @ddt.unpack
    def test_wait_is_twice_as_long_each_time(self, count, wait):
        known = {'n': failures.Failure(count, NOW)}
        self.assertEqual(at(wait), known['n'].until(100))
        self.assertEqual(known, failures.waiting(known, at(wait - 1), 100))
        self.assertEqual({}, failures.waiting(known, at(wait), 100))

    def test_failures_in_a_row(self):
        self.assertEqual({'n': failures.Failure(3, at(700))},
                         self.fail(0, 150, 700))

    def test_failure_that_is_forgotten(self):
        self.assertEqual({'n': failures.Failure(1, at(1800))},
                         self.fail(0, 200, 1800))

    def test_others_are_forgotten_when_something_is_noted(self):
        known = failures.noted(self.fail(0), 'o', at(1600), 100)
        self.assertEqual({'o'}, known.keys())

    def test_no_wait(self):
        self.assertEqual({}, self.fail(0, wait=0))

    def test_bounds(self):
        known = {}
        for number in range(1002):
            known = failures.noted(known, str(number), at(number), 900)
        self.assertEqual({str(number) for number in range(2, 1002)},
                         known.keys())

    def test_what_several_know(self):
        early, late = (failures.Failure(2, NOW), failures.Failure(1, at(1)))
        for said in ({'n': early}, {'n': late}), ({'n': late}, {'n': early}):
            self.assertEqual({'n': late, 'o': early},
                             failures.merged(*said, {'o': early}))

    def test_in_turn(self):
        known = {name: failures.Failure(count, at(seconds))
                 for name, count, seconds in (
                     ('a', 2, 0), ('b', 1, 9), ('c', 1, 3), ('d', 1, 0))}
        self.assertEqual(['c', 'b', 'a'], failures.in_turn('abc', known))
