# SPDX-License-Identifier: Apache-2.0

"""What is made of the operator's command."""

import pathlib
import subprocess
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring_tools.faults import operators


class FindingsTestCase(base.BaseTestCase):

    def _findings(self, code: int, said: str) -> list[str]:
        self.useFixture(fixtures.MockPatchObject(
            subprocess, 'run', return_value=subprocess.CompletedProcess(
                [], code, said, 'It broke.')))
        lab = mock.Mock()
        lab.nova.ring = ['nova-ironic-ring']
        lab.state.directory = pathlib.Path('/none')
        return operators.findings(lab)

    def test_findings(self):
        self.assertEqual([], self._findings(0, '[]'))
        self.assertEqual(['me: ill'], self._findings(
            1, '[{"Subject": "me", "Found": "ill"}]'))

    def test_command_that_fails(self):
        for code, said in ((2, ''), (1, ''), (-9, '[]')):
            error = self.assertRaises(
                errors.LabError, self._findings, code, said)
            self.assertEqual(
                f'nova-ironic-ring check ends with {code}: It broke.',
                str(error))
