# SPDX-License-Identifier: Apache-2.0

import pathlib
import re

from oslotest import base

from nova_ironic_ring import tests

# The first import of Nova's tests makes all threads of the process eventlet's.
_NOVAS_TESTS = re.compile(
    r'^(from|import) nova\.tests\b|^from nova import test$', re.MULTILINE)


class ThreadsTestCase(base.BaseTestCase):
    def test_unit_tests_have_native_threads(self):
        root = pathlib.Path(str(tests.__file__)).parent
        modules = [*root.glob('unit/**/*.py'), *root.glob('fixtures/*.py')]
        self.assertLess(100, len(modules))
        self.assertEqual([], [
            str(module.relative_to(root)) for module in modules
            if _NOVAS_TESTS.search(module.read_text())])
