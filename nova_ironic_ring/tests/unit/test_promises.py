# SPDX-License-Identifier: Apache-2.0

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
