# SPDX-License-Identifier: Apache-2.0

"""Tests of what has changed in Ironic since the nodes were listed."""

from unittest import mock

from oslotest import base

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

Decision = decisions.Decision
FREE = ports.Glance(None, True)
BUSY = ports.Glance(None, False)


class DueTestCase(base.BaseTestCase):

    def test_not_before_the_first_pass(self):
        self.assertIsNone(changes.due(None, 100, 10))

    def test_never(self):
        self.assertIsNone(changes.due(0, 100, 0))

    def test_later(self):
        self.assertEqual(7, changes.due(97, 100, 10))

    def test_now(self):
        self.assertEqual(0, changes.due(90, 100, 10))
        self.assertEqual(0, changes.due(0, 100, 10))


class AskTestCase(base.BaseTestCase):

    def _ask(self, *pages):
        self.ironic = mock.Mock()
        self.ironic.latest.side_effect = pages
        return changes.ask(self.ironic, settings.Scope('rack'))

    def _markers(self):
        return [call.args for call in self.ironic.latest.call_args_list]

    def test_nothing_is_new(self):
        self.assertEqual([], self._ask([ports.Latest('a')]))
        self.assertEqual([(settings.Scope('rack'), None)], self._markers())

    def test_a_node_has_changed(self):
        found = self._ask([ports.Latest('a', FREE, BUSY), ports.Latest('b')],
                          [ports.Latest('c')])
        self.assertEqual(['a'], found)
        # There may be more, where there was one.
        self.assertEqual([None, 'b'], [
            marker for _, marker in self._markers()])

    def test_what_is_of_no_concern(self):
        found = self._ask([ports.Latest('a', FREE, FREE)],
                          [ports.Latest('b', BUSY, FREE)], [])
        self.assertEqual(['b'], found)

    def test_page_that_cannot_be_had(self):
        self.assertEqual(['a'], self._ask(
            [ports.Latest('a', FREE, BUSY)], ConnectionError))
        self.assertRaises(ConnectionError, self._ask, ConnectionError)
        self.assertRaises(ConnectionError, self._ask, [
            ports.Latest('a', FREE, FREE)], ConnectionError)

    def test_no_node_at_all(self):
        self.assertEqual([], self._ask([]))

    def test_not_without_end(self):
        page = [ports.Latest('a', FREE, BUSY)]
        self.assertEqual(['a'] * 10, self._ask(*[page] * 11))
        self.assertEqual(10, self.ironic.latest.call_count)


class WatchedTestCase(base.BaseTestCase):

    def _is_watched(self, decision, is_tracked=False):
        return changes.is_watched(
            planner.Step(decision, '', None), is_tracked)

    def test_node_that_was_not_there(self):
        self.assertFalse(changes.is_watched(None, False))

    def test_own(self):
        self.assertTrue(self._is_watched(Decision.KEEP))

    def test_of_another(self):
        self.assertFalse(self._is_watched(Decision.LEAVE_INSTANCE))

    def test_one_that_is_still_to_come(self):
        self.assertFalse(self._is_watched(Decision.TAKE_OFFERED))
        self.assertTrue(self._is_watched(Decision.TAKE_OFFERED, True))


class QueueTestCase(base.BaseTestCase):

    def test_one_that_changes_all_the_time(self):
        self.assertEqual(('b', 'a', 'c'),
                         changes.queue(('b', 'a'), ['a', 'c']))
