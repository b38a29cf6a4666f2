# SPDX-License-Identifier: Apache-2.0

"""Tests of the look at what the plugin leaves, with bash."""

import pathlib
import subprocess

import fixtures
from oslotest import base

from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import leftovers

_HOOK = 'opt/stack/devstack/extras.d/99-nova-ironic-ring-leftovers.sh'


class LeftoversTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.box = container.Container(pathlib.Path(
            self.useFixture(fixtures.TempDir()).path))
        self.processes = 'systemd\nbash\n'
        self.useFixture(fixtures.MockPatchObject(
            container.Container, 'root_run', lambda *argv: self.processes))
        self.box.write('etc/nova/nova.conf', '')
        self.box.write('etc/systemd/system/devstack@g-api.service', '')
        leftovers.watch(self.box)

    def _clean(self, phase: str = 'clean') -> None:
        """Run the hook as devstack does, in the container's directory."""
        script = (self.box.root / _HOOK).read_text()
        for name in 'etc', 'opt':
            script = script.replace(f'/{name}/', f'{self.box.root}/{name}/')
        subprocess.run(['bash', '-euc', script, 'bash', phase], check=True)

    def test_nothing(self):
        self._clean()
        self.assertEqual([], leftovers.found(self.box))

    def test_everything(self):
        for name in ('etc/nova/nova-cpu-2.conf',
                     'etc/systemd/system/devstack@n-cpu-2.service',
                     'etc/systemd/system/multi-user.target.wants/'
                     'devstack@n-cpu-3.service'):
            self.box.write(name, '')
        self.processes = 'systemd\npython /bin/nova-compute --flag\n'
        self._clean()
        self.assertEqual(
            [f'{self.box.root}/etc/nova/nova-cpu-2.conf',
             '/etc/systemd/system/devstack@n-cpu-2.service',
             '/etc/systemd/system/multi-user.target.wants/'
             'devstack@n-cpu-3.service',
             'python /bin/nova-compute --flag'], leftovers.found(self.box))

    def test_clean_that_does_not_come_so_far(self):
        self._clean('unstack')
        error = self.assertRaises(errors.DevstackError, leftovers.found,
                                  self.box)
        self.assertEqual('clean.sh has not cleaned the plugins.', str(error))
