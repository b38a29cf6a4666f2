# SPDX-License-Identifier: Apache-2.0

"""Tests of what a command imports before it has anything to say."""

import json
import subprocess
import sys

from oslotest import base

_DEAR = ('nova.objects', 'nova.db.main.api', 'nova.virt.ironic.driver',
         'openstack', 'oslo_messaging')


class ImportsTestCase(base.BaseTestCase):

    def _dear(self, *modules: str) -> list[str]:
        """Return what importing modules in a new process has imported."""
        words = ', '.join(f'nova_ironic_ring.{module}' for module in modules)
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c',
             f'import json, sys, {words}\n'
             f'print(json.dumps([*sys.modules]))'],
            stdout=subprocess.PIPE, check=True)
        known = set(json.loads(done.stdout))
        return sorted(known & {*_DEAR, 'nova.conf', 'sqlalchemy'})

    def test_help(self):
        # The help loads all commands.
        self.assertEqual([], self._dear(
            'command.app', 'command.reading', 'command.changing',
            'command.looking_back'))

    def test_what_reads(self):
        self.assertEqual(
            ['nova.conf', 'sqlalchemy'],
            self._dear('command.access.source', 'command.access.settings'))

    def test_what_writes(self):
        self.assertIn('nova.objects', self._dear('command.access.writing'))
