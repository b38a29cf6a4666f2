# SPDX-License-Identifier: Apache-2.0

"""What the measurement of many boots takes for good."""

import collections
from unittest import mock

from oslotest import base

from nova_ironic_ring.adapters.nova import marks
from nova_ironic_ring_tools.faults import parallel


def outcome(active=parallel.SERVERS, reasons=(), **fields):
    """Return what has become of servers, and nothing else left."""
    given = dict.fromkeys(
        ('deployed', 'held', 'building', 'twice', 'left'), 0)
    return parallel.Outcome(
        collections.Counter({'compute-1': active}), list(reasons),
        over=1.0, **given | fields)


class OutcomeTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.died = str(marks.error(mock.Mock(uuid='i'), 'compute-2'))

    def _with(self, reason):
        return outcome(parallel.SERVERS - 1, [reason])

    def test_all_are_active(self):
        self.assertTrue(outcome().passed)

    def test_service_has_died(self):
        self.assertTrue(self._with(self.died).passed)
        self.assertTrue(self._with(
            str(marks.error(mock.Mock(uuid='i'), None))).passed)

    def test_another_reason(self):
        for reason in '', 'No valid host was found.':
            found = self._with(reason)
            self.assertFalse(found.passed)
            self.assertEqual(['59', '0', '1'], found.cells()[:3])

    def test_server_that_is_missing(self):
        self.assertFalse(outcome(parallel.SERVERS - 1).passed)

    def test_what_must_not_be(self):
        for field in 'building', 'twice', 'left', 'deployed':
            self.assertFalse(outcome(
                parallel.SERVERS - 1, [self.died], **{field: 1}).passed)

    def test_each_column_has_a_cell(self):
        self.assertEqual(len(parallel.COLUMNS), len(outcome().cells()))
