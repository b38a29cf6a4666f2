# SPDX-License-Identifier: Apache-2.0

"""Tests for the schemas that labs remember."""

import concurrent.futures
import os
import pathlib
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import schema


class SchemaTestCase(base.BaseTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.EnvironmentVariable(
            'NOVA_IRONIC_RING_SCHEMAS', str(self.root / 'remembered')))
        # In place of MariaDB's clients.
        self._client('mysqldump', 'sleep 0.2; echo tables')
        self._client('mysql', f'cat > {self.root}/loaded')
        self.useFixture(fixtures.EnvironmentVariable(
            'PATH', f'{self.root}:{os.environ["PATH"]}'))
        self.commands = [['python', '-c', 'pass']]

    def _client(self, name: str, script: str) -> None:
        path = self.root / name
        path.write_text(f'#!/bin/sh\n{script}\n')
        path.chmod(0o755)

    def _make(self, name: str) -> list[str]:
        """Make the schemas of a lab, and return its progress."""
        lines: list[str] = []
        schema.Schema(self.root / name, mock.MagicMock(), [self.commands]
                      ).make(lines.append)
        return lines

    def test_of_labs_that_come_up_together_one_migrates(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            lines = [line for made in pool.map(self._make, 'abc')
                     for line in made]
        self.assertEqual(
            ['Creating the database schemas (first start only)',
             'Loading the database schemas', 'Loading the database schemas'],
            sorted(lines))
        self.assertEqual('tables\n', (self.root / 'loaded').read_text())

    def test_failure_is_not_remembered(self):
        self.commands = [['python', '-c', 'raise SystemExit("no disk")']]
        for _ in range(2):
            error = self.assertRaises(errors.LabError, self._make, 'a')
            self.assertIn('no disk', str(error))
