# SPDX-License-Identifier: Apache-2.0

"""The only tests that read log lines."""

import logging

import fixtures
from oslotest import base

from nova_ironic_ring.compute.recording import log
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.tests.unit.core.deciding import test_events

ERROR = ValueError('no')


class LogTestCase(base.BaseTestCase):

    def _write(self, *happened: events.Event) -> list[str]:
        with fixtures.FakeLogger(
                log.__name__, logging.DEBUG,
                format='%(levelname)s %(message)s') as written:
            log.write(happened, 1.5)
            return written.output.splitlines()

    def test_each_event_is_a_line_at_its_level_in_its_order(self):
        happened = [event for event, *_ in
                    test_events.LINES + test_events.MORE]
        for line, event in zip(self._write(*happened), happened, strict=True):
            self.assertTrue(line.startswith(
                f'{event.level().name} {event.text()}'), line)

    def test_what_a_pass_took(self):
        (line,) = self._write(events.PassDone({}, False))
        self.assertEqual('DEBUG Of 0 nodes, none. This took 1.50 s.', line)

    def test_what_is_no_news_is_no_line(self):
        self.assertEqual([], self._write(events.TrustChanged(
            trust.Trust.STARTING, trust.Trust.FULL, 60.0)))

    def test_percent_in_the_error_of_another(self):
        self.assertEqual(
            ['ERROR Instance i1 of b cannot be taken over: 100 %s'],
            self._write(events.InstanceNotTaken(
                'i1', 'b', ValueError('100 %s'))))

    def _assert_one_line(self, happened: list[events.Event], line: str
                         ) -> None:
        lines = self._write(*happened)
        self.assertEqual(len(happened), sum(
            each.startswith('DEBUG ') for each in lines))
        self.assertEqual([f'INFO {line}'], [
            each for each in lines if each.startswith('INFO ')])

    def test_many_moves_are_one_line(self):
        for make, line in (
                (lambda n: events.NodeTaken(
                    n, 'b', decisions.Decision.TAKE_OFFERED),
                 '21 nodes of b are free and taken with consent of its '
                 'owner.'),
                (lambda n: events.NodeOffered(n, 'b'),
                 '21 nodes are offered to b.'),
                (lambda n: events.InstanceTaken(n, f'i{n}', 'b', True),
                 '21 instances are taken over from b, which is dead.'),
                (lambda n: events.InstanceTaken(n, f'i{n}', 'b', False),
                 '21 instances are taken over from b with its consent.')):
            self._assert_one_line([make(f'n{n}') for n in range(21)], line)

    def test_no_more_than_twenty_are_written_each(self):
        lines = self._write(*(
            events.NodeOffered(f'n{n}', 'b') for n in range(20)))
        self.assertEqual(20, len(lines))
        self.assertEqual({'INFO'}, {line.split()[0] for line in lines})

    def test_each_kind_is_counted_by_itself(self):
        lines = self._write(*(
            events.NodeOffered(f'n{n}', taker)
            for n in range(15) for taker in 'bc'))
        self.assertEqual(30, len(lines))
        self.assertEqual({'INFO'}, {line.split()[0] for line in lines})

    def test_errors_are_written_each(self):
        lines = self._write(*(
            events.InstanceNotTaken(f'i{n}', 'b', ERROR) for n in range(50)))
        self.assertEqual(50, len(lines))
        self.assertEqual({'ERROR'}, {line.split()[0] for line in lines})
