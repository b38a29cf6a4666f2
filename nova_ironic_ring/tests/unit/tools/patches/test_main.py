# SPDX-License-Identifier: Apache-2.0

"""Patches are tried on a small Nova, by the programs that try them."""

import contextlib
import io
import os
import pathlib
import shutil
import subprocess
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring.tests.unit.tools.patches import test_patch
from nova_ironic_ring_tools.patches import __main__ as program
from nova_ironic_ring_tools.patches import patch

_FILES = {
    'nova/__init__.py': '',
    'nova/host.py': 'def name():\n    return None\n',
    'nova/tests/__init__.py': '',
    'nova/tests/unit/__init__.py': '',
    'nova/tests/unit/test_host.py': (
        '# Tests.\nimport unittest\n\nfrom nova import host\n\n\n'
        'class HostTestCase(unittest.TestCase):\n    pass\n'),
}
_TEST = "        self.assertEqual('me', host.name())\n"


class TryTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.nova = self.root / 'nova-1'
        for name, text in _FILES.items():
            path = self.nova / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.patches = self.root / 'nova' / 'patches'
        self.patches.mkdir(parents=True)
        self.installed = []
        run = program._run

        def runs(argv, where, **more):
            if 'pip' in argv:
                self.installed.append((argv, where))
                return ''
            return run(argv, where, **more)
        self.useFixture(fixtures.MockPatchObject(program, '_run', runs))
        self.useFixture(fixtures.EnvironmentVariable(
            'NOVA_SOURCE', str(self.nova)))
        self.useFixture(fixtures.MockPatchObject(patch, 'PROJECTS', ('nova',)))

    def _patch(self, number: int = 1, old: str = '', new: str = '') -> None:
        text = test_patch.GOOD
        self.assertIn(old, text)
        (self.patches / f'{number:04}-host.patch').write_text(
            text.replace(old, new) if old else text)

    def _main(self, *arguments: str) -> tuple[int, str]:
        """Run the program, and return how it ends and what it has printed."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), \
                contextlib.redirect_stderr(output), \
                mock.patch.object(
                    patch, 'read_all',
                    side_effect=lambda name, real=patch.read_all: real(
                        name, self.root)):
            status = program.main(arguments)
        return status, output.getvalue()

    def test_patch_that_does_what_it_is_for(self):
        self._patch()
        status, output = self._main()
        self.assertEqual(0, status, output)
        self.assertEqual([
            'nova 0001: HostTestCase.test_name fails without it',
            'nova 0001: HostTestCase.test_name passes with it',
            'nova is installed with these patches.'], output.splitlines())
        ((argv, where),) = self.installed
        self.assertEqual(['install', str(where)], [argv[3], argv[-1]])
        # What it was made of is as it was.
        self.assertEqual(_FILES['nova/host.py'],
                         (self.nova / 'nova/host.py').read_text())

    def test_patch_that_leaves_size_and_second_of_a_file(self):
        self._patch()
        apply = program.apply

        def applies(patch, tree, only):
            apply(patch, tree, only)
            for path in tree.rglob('*.py'):
                os.utime(path, (0, 0))
        with mock.patch.object(program, 'apply', applies):
            status, output = self._main()
        self.assertEqual(0, status, output)

    def test_copy_below_another_repository(self):
        self._patch()
        subprocess.run(['git', 'init', '--quiet', str(self.root)], check=True)
        self.useFixture(fixtures.MonkeyPatch(
            'tempfile.tempdir', str(self.root)))
        status, output = self._main()
        self.assertEqual(0, status, output)

    def test_nothing_is_installed(self):
        self._patch()
        self.assertEqual(0, self._main('--no-install')[0])
        self.assertEqual([], self.installed)

    def test_patch_that_does_not_apply(self):
        self._patch(old='-    return None', new='-    return 1')
        status, output = self._main()
        self.assertEqual(1, status)
        self.assertIn('0001-host.patch does not apply', output)
        self.assertEqual([], self.installed)

    def test_second_patch_is_applied_to_the_first(self):
        self._patch()
        self._patch(2)
        status, output = self._main()
        self.assertEqual(1, status)
        self.assertIn('0002-host.patch does not apply', output)

    def test_test_that_passes_without_the_patch(self):
        self._patch(old=_TEST, new='        self.assertTrue(True)\n')
        status, output = self._main()
        self.assertEqual(1, status)
        self.assertIn('test_name passes without the patch', output)

    def test_test_that_fails_with_the_patch(self):
        self._patch(old="+    return 'me'", new="+    return 'you'")
        status, output = self._main()
        self.assertEqual(1, status)
        self.assertIn('test_name fails with the patch', output)

    def test_test_that_is_skipped(self):
        self._patch(old=_TEST, new="        self.skipTest('no')\n")
        status, output = self._main()
        self.assertEqual(1, status)
        self.assertIn('test_name fails with the patch', output)

    def test_test_that_nothing_runs(self):
        self._patch(old='class HostTestCase(unittest.TestCase)',
                    new='class HostTestCase(object)')
        test = self.nova / 'nova/tests/unit/test_host.py'
        test.write_text(test.read_text().replace(
            'unittest.TestCase', 'object'))
        status, output = self._main()
        self.assertEqual(1, status)
        self.assertIn('nova.tests.unit.test_host has no test_name', output)

    def test_archive(self):
        self._patch()
        archive = shutil.make_archive(
            str(self.root / 'nova-1'), 'gztar', self.root, 'nova-1')
        self.useFixture(fixtures.EnvironmentVariable('NOVA_SOURCE', archive))
        status, output = self._main('--no-install')
        self.assertEqual(0, status, output)

    def test_file_that_is_no_archive(self):
        path = self.root / 'nova.txt'
        path.write_text('no')
        self.useFixture(fixtures.EnvironmentVariable('NOVA_SOURCE', str(path)))
        status, output = self._main()
        self.assertEqual(1, status)
        self.assertIn('nova.txt is no archive', output)

    def test_release_is_downloaded(self):
        def download(argv, where, **more):
            self.installed.append(argv)
            shutil.make_archive(
                str(where / 'nova-34.0.0'), 'gztar', self.root, 'nova-1')
            return ''
        self.useFixture(fixtures.MockPatchObject(program, '_run', download))
        self.useFixture(fixtures.EnvironmentVariable('NOVA_SOURCE'))
        status, output = self._main('--no-install')
        self.assertEqual(0, status, output)
        self.assertEqual(
            ['download', 'nova==34.*'],
            [self.installed[0][3], self.installed[0][-1]])
