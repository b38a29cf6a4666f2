# SPDX-License-Identifier: Apache-2.0

"""What others write stays within one line of the log."""

import logging
from typing import Any

import fixtures
from oslo_log import log as oslo_logging
from oslotest import base

from nova_ironic_ring.adapters import lines
from nova_ironic_ring.adapters.trail import audit

FORGED = ('Agent returned error: x\n2026-11-28 17:10:00.000 1 INFO '
          'nova_ironic_ring.compute.recording.log [-] Instance 1 is lost.')


class LinesTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        before = logging.getLogRecordFactory()
        self.addCleanup(logging.setLogRecordFactory, before)
        logging.setLogRecordFactory(logging.LogRecord)
        lines.install()
        lines.install()
        self.log = self.useFixture(fixtures.FakeLogger(
            level=logging.DEBUG, format='%(levelname)s %(message)s'))

    def logged(self, message: str, *args: object,
               name: str = 'nova_ironic_ring.some') -> list[str]:
        oslo_logging.getLogger(name).warning(message, *args)
        return self.log.output.splitlines()

    def test_text_of_others_begins_no_line(self):
        (said,) = self.logged('Node %s: %s', 'n', FORGED)
        self.assertIn('error: x\\n2026-11-28', said)

    def test_error_of_others(self):
        (said,) = self.logged('%(error)s', {'error': ValueError(FORGED)})
        self.assertIn('\\n', said)

    def test_message_without_arguments(self):
        (said,) = self.logged(FORGED + '\r\x1b[2K 100%s')
        self.assertIn('\\r\\x1b[2K 100%s', said)

    def test_long_text(self):
        (said,) = self.logged('%s', 'x' * 100_000)
        self.assertLess(len(said), 9_000)

    def test_other_letters_stay(self):
        self.assertEqual(['WARNING Zürich, 東京, 5 s'],
                         self.logged('%s, %d s', 'Zürich, 東京', 5))

    def test_audit_line_stays_whole(self):
        (said,) = self.logged('%s', 'x' * 100_000, name=audit.LOGGER)
        self.assertEqual(100_000, said.count('x'))

    def test_lines_of_others_are_theirs(self):
        self.assertEqual(2, len(self.logged('%s', FORGED, name='nova.some')))

    def test_message_that_cannot_be_made(self):
        # As the handler says it of a message of others.
        self.assertRaises(TypeError, self.logged, '%d', 'no number')

    def test_factory_of_others(self):
        made = []

        def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
            made.append(logging.LogRecord(*args, **kwargs))
            return made[-1]
        logging.setLogRecordFactory(factory)
        lines.install()
        self.assertEqual(1, len(self.logged('%s', FORGED)))
        self.assertEqual(1, len(made))
