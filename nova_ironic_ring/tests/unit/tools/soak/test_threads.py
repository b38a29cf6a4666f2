# SPDX-License-Identifier: Apache-2.0

"""Tests of the counting of a service's threads."""

import collections
from collections.abc import Callable
import threading
from unittest import mock

import futurist
from oslo_reports import guru_meditation_report
from oslotest import base

from nova_ironic_ring_tools.soak import threads


class ThreadsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.ended = threading.Event()
        self.begun = threading.Semaphore(0)
        self.addCleanup(self.ended.set)

    def _job(self) -> None:
        self.begun.release()
        self.ended.wait()

    def _report(self) -> str:
        """Return what a service that is asked for its report writes."""
        kind = guru_meditation_report.TextGuruMeditation
        # Each driver that another test has started adds a section.
        with mock.patch.object(kind, 'persistent_sections', [], create=True), \
                mock.patch.object(guru_meditation_report, 'cgen'), \
                mock.patch.object(guru_meditation_report, 'prgen'):
            made = kind(mock.Mock())
            return f'a line of a log\n{made.run()}\nand one more\n'

    def _news(self, count: int, begin: Callable[[], object]) -> list[str]:
        """Say which threads are new when so many jobs have begun."""
        before = threads.count(self._report())
        begin()
        for _ in range(count):
            self.begun.acquire()
        return list(threads.news(before, threads.count(self._report())))

    def test_threads_of_a_pool(self):
        pool = futurist.ThreadPoolExecutor(10)
        self.addCleanup(pool.shutdown)
        self.addCleanup(self.ended.set)
        self.assertIn(
            '3 more: run (futurist/_thread.py) > _job (soak/test_threads.py)',
            self._news(3, lambda: [pool.submit(self._job) for _ in range(3)]))

    def test_thread_of_this_project(self):
        thread = threading.Thread(target=self._job, daemon=True)
        self.assertIn('1 more: _job (soak/test_threads.py)',
                      self._news(1, thread.start))

    def test_several_processes(self):
        report = self._report()
        self.assertEqual(2 * threads.count(report).total(),
                         threads.count(report * 2).total())

    def test_no_report(self):
        self.assertEqual(collections.Counter(), threads.count('nothing\n'))
