# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
