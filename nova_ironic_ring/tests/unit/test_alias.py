# SPDX-License-Identifier: Apache-2.0

import importlib.util
import subprocess
import sys

from nova.virt import driver
from oslotest import base

from nova_ironic_ring import alias

_LOAD = """
import importlib.util, sys
from nova.compute import manager
from nova import exception, objects, utils, version
from nova_ironic_ring import alias
version.version_string = lambda: '36.0.0'
objects.register_all()
%s
spec = alias.spec('nova.virt.ironic_ring')
try:
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
except Exception as error:
    print(f'{type(error).__name__}: {error}')
"""


class AliasTestCase(base.BaseTestCase):

    def test_what_nova_finds(self):
        spec = alias.spec('nova.virt.ironic_ring')
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name in 'Ring', 'Pool':
            made = getattr(module, f'Ironic{name}Driver')
            self.assertTrue(issubclass(made, driver.ComputeDriver))
            self.assertTrue(issubclass(
                made, getattr(module, f'{name}Mixin')))

    def _load(self, before: str) -> str:
        """Load the driver in a new process.

        :param before: what is done to Nova before
        :returns: the type of the error, and what it says
        """
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', _LOAD % before],
            stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.strip()

    def test_nova_without_names_that_are_wanted_at_once(self):
        self.assertEqual(
            'ImportError: Nova 36.0.0 lacks nova.utils.synchronized(name, '
            'fair) and nova.exception.ServiceUnavailable, which this driver '
            'needs: use Nova 31 to 34, or a release of the driver that is '
            'made for this Nova.', self._load(
                'del exception.ServiceUnavailable, utils.synchronized'))

    def test_driver_that_does_not_load_for_another_reason(self):
        said = self._load('sys.modules["tooz"] = None')
        self.assertIn('tooz', said)
        self.assertNotIn('Nova 36', said)
