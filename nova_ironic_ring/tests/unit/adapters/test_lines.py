# SPDX-License-Identifier: Apache-2.0

"""What others write stays within one line of the log."""

import io
import logging
from typing import Any

import fixtures
from oslo_config import cfg
from oslo_log import formatters
from oslo_log import log as oslo_logging
from oslotest import base

from nova_ironic_ring.adapters import lines
from nova_ironic_ring.adapters.trail import audit

FORGED = ('Agent returned: x\n2026-11-28 17:10:00.000 1 INFO '
          'nova_ironic_ring.compute.recording.log [-] Instance 1 is lost.')


def _conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    oslo_logging.register_options(conf)
    conf.set_override('logging_exception_prefix', 'PREFIX ')
    for name in ('logging_context_format_string',
                 'logging_default_format_string'):
        conf.set_override(name, '%(levelname)s %(message)s')
    conf([])
    return conf


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
        self.assertIn('returned: x\\n2026-11-28', said)

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

    def test_what_oslo_log_adds(self):
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatters.ContextFormatter(
            fmt='%(levelname)s %(message)s', datefmt='', config=_conf()))
        logger = oslo_logging.getLogger('nova_ironic_ring.some')
        logger.logger.addHandler(handler)
        self.addCleanup(logger.logger.removeHandler, handler)
        try:
            raise RuntimeError(FORGED + '\x1b[2K')
        except RuntimeError:
            logger.exception('It failed.')
            logger.warning('So it is left.')
        said = stream.getvalue()
        self.assertNotIn('\x1b', said)
        lines_said = said.splitlines()
        self.assertIn('It failed.: RuntimeError: Agent returned: x\\n2026',
                      lines_said[0])
        for line in lines_said[1:-1]:
            self.assertRegex(line, '^PREFIX ')
        self.assertIn('So it is left.: RuntimeError: Agent', lines_said[-1])

    def test_record_without_a_name(self):
        # As the daemon of oslo.privsep makes them.
        self.assertEqual('x', logging.makeLogRecord({'msg': 'x'}).getMessage())

    def test_factory_of_others(self):
        made = []

        def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
            made.append(logging.LogRecord(*args, **kwargs))
            return made[-1]
        logging.setLogRecordFactory(factory)
        lines.install()
        self.assertEqual(1, len(self.logged('%s', FORGED)))
        self.assertEqual(1, len(made))
