# SPDX-License-Identifier: Apache-2.0

"""What a silence may delay, and how long it lasts."""

import time
from unittest import mock

from oslotest import base

from nova_ironic_ring_tools.faults import deaths
from nova_ironic_ring_tools.faults import silences

_SOON = deaths.WANTED - 1


class SilencesTestCase(base.BaseTestCase):

    def _result(self, servers=_SOON, free=_SOON, refused=0, findings=(),
                delays=()):
        return silences.Outcome(
            silences.Silence('it', 'it', delays), {
                what: after for what, after in (
                    ('servers', servers), ('free nodes', free))
                if after is not None}, 60.0, refused, findings)

    def test_passed(self):
        late = _SOON + 60
        for passed, fields in (
                (True, {}), (False, {'servers': None}),
                (False, {'free': None}), (False, {'refused': 1}),
                (False, {'findings': ['me: ill']}), (False, {'free': late}),
                (True, {'free': late, 'delays': ['free nodes']}),
                (False, {'servers': late, 'delays': ['free nodes']}),
                (False, {'free': late + 2, 'delays': silences.TAKEN})):
            self.assertEqual(passed, self._result(**fields).passed, fields)

    def test_cells(self):
        self.assertEqual(
            ['17 s', '4 s after the silence', '60 s', '1/2'], self._result(
                17.0, 64.0, refused=1, findings=['a', 'b']).cells())
        self.assertEqual('never', self._result(free=None).cells()[1])

    def test_end(self):
        lab = mock.Mock()
        resume = lab.state.process.return_value.resume
        silence = silences.Silence('it', 'it')
        for longest in (60, 0.05):
            resume.reset_mock()
            begun = time.monotonic()
            with silences._silent(lab, silence, longest) as thawed:
                if longest < 1:
                    time.sleep(0.2)
                self.assertEqual(longest < 1, resume.called)
            resume.assert_called_with()
            self.assertLess(thawed[0], begun + 60)
