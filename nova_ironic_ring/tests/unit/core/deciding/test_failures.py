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
            known = self.note(at(each), known, wait=wait)
        return known

    def note(self, now, own, of_peers=None, node='n', wait=100, **more):
        return failures.noted(
            failures.Known(own, of_peers or {}), node, now, wait, **more)

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
        known = self.note(at(1600), self.fail(0), node='o')
        self.assertEqual({'o'}, known.keys())

    def test_no_wait(self):
        self.assertEqual({}, self.fail(0, wait=0))
        # Nor where a peer's clock is ahead.
        said = {'n': failures.Failure(1, at(9))}
        self.assertEqual({}, failures.waiting(said, NOW, 0))

    def test_failures_with_several_services(self):
        known = self.note(at(9), {}, {'n': failures.Failure(2, NOW)})
        self.assertEqual({'n': failures.Failure(3, at(9))}, known)

    def test_success(self):
        # Nothing is to be told of nodes that have not failed.
        self.assertEqual({}, self.note(NOW, {}, is_good=True))
        for own, of_peers in (self.fail(0), {}), ({}, self.fail(0)):
            known = self.note(at(9), own, of_peers, is_good=True)
            self.assertEqual({'n': failures.Failure(0, at(9))}, known)
            told = failures.merged(of_peers, known)
            self.assertEqual({}, failures.waiting(told, at(9), 100))
            # It begins anew.
            self.assertEqual({'n': failures.Failure(1, at(10))},
                             self.note(at(10), {}, told))
            self.assertEqual({}, self.note(at(10), {}, told, is_good=True))

    def test_clock_of_a_peer_that_is_ahead(self):
        said = {'n': failures.Failure(1, at(200))}
        known = self.note(NOW, {}, said, is_good=True)
        told = failures.merged(said, known)
        self.assertEqual(0, told['n'].count)
        self.assertEqual({}, failures.waiting(told, NOW, 100))
        failed = failures.merged(told, self.note(NOW, {}, told))
        self.assertEqual({'n'}, failures.waiting(failed, NOW, 100).keys())

    def test_clock_of_a_peer_that_is_wrong(self):
        said = {'n': failures.Failure(1, datetime.datetime.max.replace(
            tzinfo=datetime.timezone.utc))}
        self.assertEqual({}, failures.waiting(said, NOW, 100))
        self.assertEqual({'n': failures.Failure(1, NOW)},
                         self.note(NOW, {}, said))

    def test_bounds(self):
        known = {}
        for number in range(1002):
            known = self.note(at(number), known, node=str(number), wait=900)
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
