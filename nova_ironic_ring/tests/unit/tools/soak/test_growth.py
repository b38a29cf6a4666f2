# SPDX-License-Identifier: Apache-2.0

"""Tests of what the soak says of services that grow."""

import collections
import os
import pathlib
import subprocess
import sys

import fixtures
from oslotest import base

from nova_ironic_ring_tools.soak import growth
from nova_ironic_ring_tools.soak import threads


class GrowthTestCase(base.BaseTestCase):

    def _complaints(self, memory: int, busy: int, idle: int = 2
                    ) -> list[str]:
        return list(growth.complaints(
            {'compute-1': self._size(100, 50, 2)},
            {'compute-1': self._size(memory, busy, idle)}))

    def _size(self, memory: int, busy: int, idle: int) -> growth.Size:
        return growth.Size(memory, busy + idle, collections.Counter(
            {threads.IDLE: idle, 'busy': busy}))

    def test_bounds(self):
        self.assertEqual([], self._complaints(130, 60))
        self.assertEqual(['compute-1 has grown from 100 to 131 MiB'],
                         self._complaints(131, 60))
        self.assertEqual(
            ['compute-1 has 61 threads and had 50, without idle ones'],
            self._complaints(130, 61))

    def test_pools_that_fill(self):
        self.assertEqual([], self._complaints(100, 50, 20))
        self.assertEqual(['compute-1 has 21 idle threads'],
                         self._complaints(100, 50, 21))

    def test_pools_of_conductor(self):
        before = self._size(300, 10, 70)
        for idle, said in (80, 0), (81, 1):
            self.assertEqual(said, len(list(growth.complaints(
                {'nova-conductor': before},
                {'nova-conductor': self._size(300, 10, idle)}))))

    def test_table(self):
        warm = growth.Size(100, 2, collections.Counter({'idle': 2}))
        last = growth.Size(90, 4, collections.Counter({'idle': 4}))
        self.assertEqual([
            'compute-1: 100 MiB and 2 threads when warm, 90 MiB and 4 threads '
            'in the end',
            '    2 more: idle',
            'compute-3: 90 MiB and 4 threads when warm, 100 MiB and 2 threads '
            'in the end',
        ], list(growth.table({'compute-1': warm, 'compute-3': last},
                             {'compute-1': last, 'compute-3': warm})))

    def test_environment_of_those_that_are_compared(self):
        root = str(pathlib.Path(growth.__file__).parents[3])
        self.useFixture(fixtures.EnvironmentVariable('PYTHONPATH', root))
        self.assertEqual({}, growth.environment('compute-2'))
        said = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c',
             'import threading; '
             'print(*(each.name for each in threading.enumerate())); '
             'import nova_ironic_ring; print(nova_ironic_ring.__file__)'],
            env={**os.environ, **growth.environment('compute-1')},
            capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertIn('collect', said[0])
        self.assertTrue(said[1].startswith(root), said)
