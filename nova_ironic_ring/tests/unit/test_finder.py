# SPDX-License-Identifier: Apache-2.0

"""Tests of what Python runs at its start, so that Nova finds the driver."""

import pathlib
import pkgutil
import subprocess
import sys

from oslotest import base

from nova_ironic_ring import alias
from nova_ironic_ring import finder

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_STARTERS = _ROOT / 'build_backend'

# Prints what the module that a .start file names imports, and itself.
_IMPORTED = """
import sys
sys.path.append(sys.argv[1])
before = set(sys.modules)
import nova_ironic_ring.finder
print(*sorted(set(sys.modules) - before))
"""


def _start_line() -> str:
    (line,) = (
        _STARTERS / 'nova_ironic_ring.start').read_text().splitlines()
    return line


def _import_line() -> str:
    (line,) = [line for line in (
        _STARTERS / 'nova_ironic_ring.pth').read_text().splitlines()
        if not line.startswith('#')]
    return line


class FinderTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        before = list(sys.meta_path)
        self.addCleanup(sys.meta_path.__setitem__, slice(None), before)
        sys.meta_path[:] = [each for each in before if getattr(
            each, '__name__', '') != 'NovaIronicRingFinder']
        self.others = list(sys.meta_path)

    def _by_pth(self) -> None:
        line = _import_line()
        # The rule of Python's site module, which runs such lines.
        self.assertTrue(line.startswith('import '))
        exec(line)

    def _by_start(self) -> None:
        pkgutil.resolve_name(_start_line())()

    def _added(self) -> list:
        self.assertEqual(self.others, sys.meta_path[:len(self.others)])
        return sys.meta_path[len(self.others):]

    def test_both_files_have_the_same_effect(self):
        for start in (self._by_pth, self._by_start):
            sys.meta_path[:] = self.others
            start()
            (added,) = self._added()
            self.assertEqual('NovaIronicRingFinder', added.__name__)
            spec = added.find_spec('nova.virt.ironic_ring')
            self.assertEqual(alias.__file__, spec.origin)
            self.assertIsNone(added.find_spec('nova.virt.ironic'))
            self.assertIsNone(added.find_spec('nova', None, None))

    def test_both_files_in_one_python(self):
        for first, second in ((self._by_pth, self._by_start),
                              (self._by_start, self._by_start)):
            sys.meta_path[:] = self.others
            first()
            second()
            self.assertEqual(1, len(self._added()))

    def test_start_file(self):
        # Only the strict form with a callable is allowed, and neither comment
        # nor anything else that an implementation could read otherwise.
        self.assertEqual('nova_ironic_ring.finder:install\n', (
            _STARTERS / 'nova_ironic_ring.start').read_text())
        self.assertIs(finder.install, pkgutil.resolve_name(_start_line()))

    def test_start_imports_nothing_else(self):
        done = subprocess.run(
            [sys.executable, '-I', '-S', '-c', _IMPORTED, str(_ROOT)],
            stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual('nova_ironic_ring nova_ironic_ring.finder\n',
                         done.stdout)
