# SPDX-License-Identifier: Apache-2.0

"""Tests of waiting."""

from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import waiting


class WaitingTestCase(base.BaseTestCase):

    def test_what_comes_about(self):
        answers = iter([False, '', True])
        self.assertTrue(waiting.until(lambda: next(answers), 60, 0))
        self.assertEqual([], list(answers))

    def test_what_does_not(self):
        self.assertFalse(waiting.until(lambda: False, 0.05, 0.01))

    def test_it_looks_once_where_there_is_no_time(self):
        self.assertTrue(waiting.until(lambda: True, 0, 0))

    def test_what_fails(self):
        def fail() -> bool:
            raise errors.LabError('It has died.')
        self.assertRaises(errors.LabError, waiting.until, fail, 60, 0)
