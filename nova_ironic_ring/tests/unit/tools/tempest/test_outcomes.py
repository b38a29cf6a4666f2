# SPDX-License-Identifier: Apache-2.0

"""Tests of how Tempest's results are read."""

import io

from oslotest import base
import subunit

from nova_ironic_ring_tools.tempest import outcomes

_FAILED = (b'Traceback (most recent call last):\n  File "x", line 1\n'
           b'tempest.lib.exceptions.ServerFault: Got server fault\n')


class ReadTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self._stream = io.BytesIO()
        self._result = subunit.StreamResultToBytes(self._stream)

    def _end(self, test: str, status: str, **files: bytes) -> None:
        self._result.status(test_id=test, test_status='inprogress')
        for name, said in files.items():
            self._result.status(
                test_id=test, file_name=name, file_bytes=said,
                mime_type='text/plain; charset=utf8', eof=True)
        self._result.status(test_id=test, test_status=status)

    def _read(self, *tests: str) -> dict[str, outcomes.Result]:
        self._stream.seek(0)
        self.told: list[str] = []
        return outcomes.read(
            self._stream, tests,
            lambda test, result: self.told.append(test))

    def test_results(self):
        self._end('a.B.test_good[id-1,smoke]', 'success')
        self._end('a.B.test_bad[id-2]', 'fail', traceback=_FAILED)
        self._end('a.B.test_not[id-3]', 'skip', reason=b'cinder is required')
        self.assertEqual({
            'a.B.test_good': outcomes.Result(outcomes.Outcome.PASSED),
            'a.B.test_bad': outcomes.Result(
                outcomes.Outcome.FAILED,
                'tempest.lib.exceptions.ServerFault: Got server fault'),
            'a.B.test_not': outcomes.Result(
                outcomes.Outcome.SKIPPED, 'cinder is required'),
        }, self._read('a.B.test_good[id-1,smoke]', 'a.B.test_bad[id-2]',
                      'a.B.test_not[id-3]'))
        self.assertEqual(['a.B.test_good[id-1,smoke]', 'a.B.test_bad[id-2]',
                          'a.B.test_not[id-3]'], self.told)

    def test_class_as_a_whole(self):
        self._end('setUpClass (a.Off)', 'skip', reason=b'no volumes here')
        self._end('setUpClass (a.Broken)', 'fail', traceback=_FAILED)
        results = self._read('a.Off.test_one[id-1]', 'a.Broken.test_two',
                             'a.OffOther.test_three')
        self.assertEqual(
            [outcomes.Outcome.SKIPPED, outcomes.Outcome.FAILED,
             outcomes.Outcome.MISSING],
            [results[test].outcome for test in (
                'a.Off.test_one', 'a.Broken.test_two',
                'a.OffOther.test_three')])
        self.assertEqual('no volumes here', results['a.Off.test_one'].why)
        self.assertEqual(3, len(results))

    def test_class_that_is_not_torn_down(self):
        self._end('a.B.test_good', 'success')
        self._end('tearDownClass (a.B)', 'fail', traceback=_FAILED)
        results = self._read('a.B.test_good')
        self.assertEqual({
            'a.B.test_good': outcomes.Outcome.PASSED,
            'tearDownClass (a.B)': outcomes.Outcome.FAILED,
        }, {test: result.outcome for test, result in results.items()})
        self.assertEqual(
            {outcomes.Outcome.PASSED: 1, outcomes.Outcome.FAILED: 1,
             outcomes.Outcome.SKIPPED: 0, outcomes.Outcome.MISSING: 0},
            outcomes.counts(results))

    def test_worker_that_dies(self):
        """A test that began and did not end has not run."""
        self._result.status(test_id='a.B.test_x', test_status='inprogress')
        self.assertEqual(
            {'a.B.test_x': outcomes.Outcome.MISSING},
            {test: result.outcome for test, result in self._read(
                'a.B.test_x').items()})
