# SPDX-License-Identifier: Apache-2.0

"""Tests of what is said of tests that end differently."""

from oslotest import base

from nova_ironic_ring_tools.tempest import comparison
from nova_ironic_ring_tools.tempest import explained
from nova_ironic_ring_tools.tempest import outcomes

_PASSED = outcomes.Result(outcomes.Outcome.PASSED)
_FAILED = outcomes.Result(outcomes.Outcome.FAILED, 'Conflict')
_SKIPPED = outcomes.Result(outcomes.Outcome.SKIPPED, 'one node')
_MISSING = outcomes.Result(outcomes.Outcome.MISSING)


def _compare(*explanations: explained.Explanation, **results: outcomes.Result
             ) -> list[comparison.Difference]:
    """Compare what has come of one test, by driver."""
    return comparison.compare(
        {driver: {'a.B.test_x': result}
         for driver, result in results.items()}, explanations)


class CompareTestCase(base.BaseTestCase):

    def test_what_ends_alike(self):
        for result in _PASSED, _FAILED, _SKIPPED:
            self.assertEqual([], _compare(
                nova=result, ring=result, pool=result))

    def test_what_ends_worse_with_ours(self):
        for nova, ring in ((_PASSED, _FAILED), (_PASSED, _SKIPPED),
                           (_SKIPPED, _FAILED), (_PASSED, _MISSING)):
            (found,) = _compare(nova=nova, ring=ring, pool=nova)
            self.assertTrue(found.wrong)
            self.assertEqual(['ring'], found.worse)

    def test_what_ends_better_with_ours(self):
        (found,) = _compare(nova=_SKIPPED, ring=_PASSED, pool=_PASSED)
        self.assertFalse(found.wrong)
        self.assertEqual([
            'a.B.test_x: nova skipped, ring passed, pool passed',
            '    nova: one node'], list(found.lines()))

    def test_without_the_one_to_compare_with(self):
        self.assertEqual([], _compare(ring=_SKIPPED, pool=_SKIPPED))
        (found,) = _compare(ring=_FAILED, pool=_FAILED)
        self.assertTrue(found.wrong)
        self.assertEqual([
            'WRONG: a.B.test_x: ring failed, pool failed',
            '    ring: Conflict', '    pool: Conflict'],
            list(found.lines()))

    def test_what_is_explained(self):
        known = explained.Explanation(r'a\.B\.', 'So it is.', differs=True)
        (found,) = _compare(known, nova=_PASSED, ring=_FAILED)
        self.assertFalse(found.wrong)
        self.assertEqual(['a.B.test_x: nova passed, ring failed',
                          '    So it is.'], list(found.lines()))

    def test_what_fails_with_novas_driver_too(self):
        known = explained.Explanation(r'a\.B\.', 'So it is.')
        (found,) = _compare(known, ring=_FAILED)
        self.assertFalse(found.wrong)
        # Where it does not, that it does is no explanation.
        (found,) = _compare(known, nova=_PASSED, ring=_FAILED)
        self.assertTrue(found.wrong)

    def test_class_that_is_not_torn_down(self):
        (found,) = comparison.compare(
            {'nova': {}, 'ring': {'tearDownClass (a.B)': _FAILED}}, [])
        self.assertTrue(found.wrong)
        self.assertEqual(outcomes.Outcome.PASSED,
                         found.results['nova'].outcome)


class ListsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self._results = {
            'nova': {'a': _FAILED, 'b': _FAILED, 'c': _PASSED},
            'ring': {'a': _FAILED, 'b': outcomes.second(_PASSED),
                     'c': _PASSED}}

    def test_failing(self):
        self.assertEqual(
            ['a', '    not explained: Conflict'],
            comparison.failing(self._results, []))
        self.assertEqual(
            ['a', '    So it is.'],
            comparison.failing(self._results, [
                explained.Explanation('b', 'So it is not.'),
                explained.Explanation('a', 'So it is.')]))

    def test_unsteady(self):
        self.assertEqual(['ring: b'], comparison.unsteady(self._results))

    def test_table(self):
        rows = comparison.table(self._results).rows
        self.assertEqual([['nova', 1, 2, 0, 0], ['ring', 2, 1, 0, 0]], rows)
