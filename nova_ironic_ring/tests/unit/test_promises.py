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

import importlib
import pathlib
import re

from oslotest import base

PAGE = (pathlib.Path(__file__).resolve().parents[3]
        / 'doc' / 'source' / 'promises.rst')


class PromisesTestCase(base.BaseTestCase):

    def test_every_test_that_the_page_names_is_there(self):
        named = re.findall(
            r'``((?:unit|functional)\.([a-z_.]+)\.(\w+TestCase)'
            r'(?:\.(\w+))?)``',
            PAGE.read_text())
        self.assertGreater(len(named), 20)
        for name, module, case, test in named:
            found = importlib.import_module(
                f'nova_ironic_ring.tests.{name.partition(".")[0]}.{module}')
            found = getattr(found, case)
            if test:
                self.assertTrue(callable(getattr(found, test)), name)
