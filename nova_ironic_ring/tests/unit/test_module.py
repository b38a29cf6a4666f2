# SPDX-License-Identifier: Apache-2.0

"""Tests of the command that writes a module into nova/virt."""

import contextlib
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
from unittest import mock

import fixtures
import nova
from oslotest import base

from nova_ironic_ring.compute import driver
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring import module


class ModuleTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.virt = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.virt / 'driver.py').touch()
        self.path = self.virt / 'ironic_ring.py'

    def _run(self, *arguments: str, status: int = module.DONE) -> str:
        """Run the command.

        :returns: what it has printed, to the right stream
        """
        with (contextlib.redirect_stdout(io.StringIO()) as out,
              contextlib.redirect_stderr(io.StringIO()) as err):
            self.assertEqual(status, module.main(arguments))
        said, nothing = (err, out) if status else (out, err)
        self.assertEqual('', nothing.getvalue())
        return said.getvalue()

    def _install(self, status: int = module.DONE) -> str:
        return self._run('install', '--to', str(self.virt), status=status)

    def _remove(self, status: int = module.DONE) -> str:
        return self._run('remove', '--to', str(self.virt), status=status)

    def test_installed_module_has_the_drivers(self):
        self.assertEqual(f'{self.path} is written.\n', self._install())
        self.assertEqual(0o644, self.path.stat().st_mode & 0o777)
        self.assertEqual({'driver.py', 'ironic_ring.py'},
                         {each.name for each in self.virt.iterdir()})
        spec = importlib.util.spec_from_file_location('found', self.path)
        assert spec is not None and spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        self.assertIs(driver.IronicRingDriver, found.IronicRingDriver)
        self.assertIs(driver.RingMixin, found.RingMixin)
        self.assertIs(pool_driver.IronicPoolDriver, found.IronicPoolDriver)
        self.assertIs(pool_driver.PoolMixin, found.PoolMixin)

    def test_installed_twice(self):
        self._install()
        before = self.path.stat()
        self.assertEqual(f'{self.path} is there already.\n', self._install())
        self.assertEqual(before.st_ino, self.path.stat().st_ino)

    def test_installed_over_that_of_another_release(self):
        self._install()
        content = self.path.read_text()
        self.path.write_text(content.splitlines()[0] + '\nold = True\n')
        self._install()
        self.assertEqual(content, self.path.read_text())

    def test_removed(self):
        self._install()
        compiled = self.virt / '__pycache__'
        compiled.mkdir()
        for name in ('ironic_ring.cpython-311.pyc', 'driver.cpython-311.pyc'):
            (compiled / name).touch()
        self.assertEqual(f'{self.path} is deleted.\n', self._remove())
        self.assertFalse(self.path.exists())
        self.assertEqual(['driver.cpython-311.pyc'],
                         [each.name for each in compiled.iterdir()])
        self.assertEqual(f'There is no {self.path}.\n', self._remove())

    def test_what_somebody_else_wrote_stays(self):
        def refused() -> None:
            for act in (self._install, self._remove):
                self.assertEqual(
                    f'{self.path} was not written by this command: move it '
                    'away, if nothing needs it.\n', act(status=module.FAILED))

        for content in (b'', b'mine = True\n', b'\xff\xfe'):
            self.path.write_bytes(content)
            refused()
            self.assertEqual(content, self.path.read_bytes())
        self.path.unlink()

        other = self.virt / 'other.py'
        self._install()
        self.path.rename(other)
        self.path.symlink_to(other)
        refused()
        self.assertTrue(self.path.is_symlink())

    def test_something_that_is_no_file(self):
        for target in (None, self.virt / 'nowhere'):
            if target:
                self.path.rmdir()
                self.path.symlink_to(target)
            else:
                self.path.mkdir()
            for act in (self._install, self._remove):
                self.assertIn(f'{self.path} cannot be read (',
                              act(status=module.FAILED))

    def test_another_directory(self):
        (self.virt / 'driver.py').unlink()
        for act in (self._install, self._remove):
            self.assertEqual(
                f'{self.virt} has no driver.py, so it is not the directory '
                'nova/virt of a Nova: name that with --to.\n',
                act(status=module.FAILED))

    def test_what_may_not_be_written(self):
        with mock.patch.object(
                os, 'replace', side_effect=PermissionError(13, 'No, no')):
            self.assertEqual(
                f'{self.path} cannot be written (No, no): run this as the '
                'owner of the directory.\n',
                self._install(status=module.FAILED))
        self.assertEqual(['driver.py'],
                         [each.name for each in self.virt.iterdir()])
        self._install()
        with mock.patch.object(pathlib.Path, 'unlink',
                               side_effect=PermissionError(13, 'No, no')):
            self.assertEqual(
                f'{self.path} cannot be deleted (No, no): run this as the '
                'owner of the directory.\n',
                self._remove(status=module.FAILED))

    def test_where_nova_is(self):
        self.assertEqual(pathlib.Path(nova.__file__).parent / 'virt',
                         module.find())
        with mock.patch.object(module, 'find', return_value=self.virt):
            self._run('install')
        self.assertTrue(self.path.exists())

    def test_no_nova(self):
        with mock.patch.object(importlib.util, 'find_spec',
                               return_value=None):
            self.assertEqual(
                f'{sys.executable} finds no Nova: run this with the Python of '
                'nova-compute, or name the directory nova/virt with --to.\n',
                self._run('install', status=module.FAILED))

    def test_run_as_the_page_has_it(self):
        done = subprocess.run(
            [sys.executable, '-m', 'nova_ironic_ring.module', 'install',
             '--to', str(self.virt)], cwd=pathlib.Path(__file__).parents[3],
            stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(f'{self.path} is written.\n', done.stdout)
