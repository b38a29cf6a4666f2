# SPDX-License-Identifier: Apache-2.0

import importlib.util

from nova.virt import driver
from oslotest import base

from nova_ironic_ring import alias


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
