# SPDX-License-Identifier: Apache-2.0

"""Tests of what the build adds to a wheel, and what is said of it."""

import base64
import csv
import hashlib
import importlib.util
import io
import pathlib
import zipfile

import fixtures
from oslotest import base

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_INFO = 'nova_ironic_ring-1.dist-info/RECORD'


class BuildBackendTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        spec = importlib.util.spec_from_file_location(
            'pth_backend', _ROOT / 'build_backend/pth_backend.py')
        assert spec is not None and spec.loader is not None
        self.backend = importlib.util.module_from_spec(spec)
        # Nothing is to lie beside the files that are shipped.
        with fixtures.MonkeyPatch('sys.dont_write_bytecode', True):
            spec.loader.exec_module(self.backend)
        self.useFixture(fixtures.MonkeyPatch(
            f'{self.backend._pbr.__name__}.build_wheel', self._build))
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        name = self.backend.build_wheel(str(self.directory))
        with zipfile.ZipFile(self.directory / name) as wheel:
            self.infos = {each.filename: each for each in wheel.infolist()}
            self.files = {name: wheel.read(name) for name in self.infos}

    def _build(self, directory: str, *_: object) -> str:
        """Write a wheel as setuptools would."""
        name = 'nova_ironic_ring-1-py3-none-any.whl'
        files = {'nova_ironic_ring/a.py': 'a = 1\n',
                 'nova_ironic_ring/tests/b.py': 'b = 2\n'}
        with zipfile.ZipFile(pathlib.Path(directory, name), 'w') as wheel:
            for path, content in files.items():
                wheel.writestr(path, content)
            wheel.writestr(_INFO, ''.join(
                f'{path},sha256=x,6\n' for path in files) + f'{_INFO},,\n')
        return name

    def test_files(self):
        self.assertEqual({
            'nova_ironic_ring.pth', 'nova_ironic_ring.start',
            'nova_ironic_ring/a.py', _INFO}, set(self.files))

    def test_record(self):
        recorded = list(csv.reader(io.StringIO(self.files[_INFO].decode())))
        self.assertEqual(set(self.files), {path for path, _, _ in recorded})
        for path, digest, size in recorded:
            if path.startswith('nova_ironic_ring.') and path != _INFO:
                content = self.files[path]
                self.assertEqual(str(len(content)), size)
                self.assertEqual('sha256=' + base64.urlsafe_b64encode(
                    hashlib.sha256(content).digest()).decode().rstrip('='),
                    digest)

    def test_all_may_read_them(self):
        for kind in ('pth', 'start'):
            self.assertEqual(
                0o100644,
                self.infos[f'nova_ironic_ring.{kind}'].external_attr >> 16)

    def test_the_page_has_their_hashes_and_lines(self):
        page = (_ROOT / 'doc/source/install.rst').read_text()
        for kind in ('pth', 'start'):
            content = self.files[f'nova_ironic_ring.{kind}']
            self.assertIn(
                f'- ``nova_ironic_ring.{kind}``:\n'
                f'  ``{hashlib.sha256(content).hexdigest()}``\n', page)
            for line in content.decode().splitlines():
                if not line.startswith('#'):
                    # The page breaks long lines.
                    self.assertIn(''.join(line.split()),
                                  ''.join(page.split()))
