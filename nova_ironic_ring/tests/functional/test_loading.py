# SPDX-License-Identifier: Apache-2.0

"""Nova finds the driver by its name in every layout of an installation.

Each test builds the layout with real packages and asks Nova's own loader.
"""

from importlib import metadata
import json
import os
import pathlib
import shutil
import sys
import sysconfig
import tarfile
import tomllib
from typing import ClassVar
import zipfile

import fixtures
from oslotest import base

from nova_ironic_ring.tests.fixtures import programs

PROJECT = pathlib.Path(__file__).resolve().parents[3]
UV = str(pathlib.Path(sys.prefix, 'bin', 'uv'))

# Relative to the root of an installation.
SITE = pathlib.Path(sysconfig.get_path(
    'purelib', vars={'base': '', 'platbase': ''})).relative_to('/')

LOAD = """
import json, sys
def finders():
    return [getattr(each, '__name__', '') for each in sys.meta_path].count(
        'NovaIronicRingFinder')
before = finders()
if sys.argv[1:]:
    # The rule of PEP 829, for a Python that does not know it.
    import pkgutil
    for line in open(sys.argv[1]):
        pkgutil.resolve_name(line.strip())()
import nova.conf
from nova.virt import driver
nova.conf.CONF([], project='nova', default_config_files=[])
nova.conf.CONF.set_override('compute_driver', 'ironic_ring.IronicRingDriver')
loaded = driver.load_compute_driver(None)
import nova, nova_ironic_ring
print(json.dumps({
    'finders': (before, finders()),
    'class': type(loaded).__module__ + '.' + type(loaded).__name__,
    'known as': sys.modules['nova.virt.ironic_ring'].__name__,
    'nova': nova.__file__,
    'nova.__path__': list(nova.__path__),
    'nova.virt.__path__': list(sys.modules['nova.virt'].__path__),
    'ours': nova_ironic_ring.__file__,
}))
"""


_run = programs.run


def _pip(*arguments: str) -> str:
    return _run(UV, 'pip', *arguments)


def _named(name: str) -> list[str]:
    """Return what a file of requirements names.

    :param name: the file
    """
    return sorted(
        line.partition('#')[0].strip()
        for line in (PROJECT / name).read_text().splitlines()
        if line.partition('#')[0].strip())


def _files(path: pathlib.Path) -> set[str]:
    """Return the files in a source distribution."""
    with tarfile.open(path) as source:
        return {member.name.partition('/')[2] for member in source}


class InstallationTestCase(base.BaseTestCase):
    """Has a wheel of this checkout, and room for virtual environments."""

    wheel: ClassVar[str]
    _directory: ClassVar[fixtures.TempDir]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._directory = fixtures.TempDir()
        cls._directory.setUp()
        # The source distribution first, and the wheel from that, as where
        # there is no git.
        _run(UV, 'build', '--quiet', '--sdist', '--out-dir',
             cls._directory.path, str(PROJECT))
        (source,) = pathlib.Path(cls._directory.path).glob('*.tar.gz')
        _run(UV, 'build', '--quiet', '--wheel', '--python', sys.executable,
             '--out-dir', cls._directory.path, str(source), PATH='/nowhere')
        (wheel,) = pathlib.Path(cls._directory.path).glob('*.whl')
        cls.wheel = str(wheel)

    @classmethod
    def tearDownClass(cls):
        cls._directory.cleanUp()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.venv = self.directory / 'venv'
        self.python = str(self.venv / 'bin' / 'python')

    def _make_venv(self, *options: str) -> None:
        _run(UV, 'venv', '--quiet', '--python', sys.executable, *options,
             str(self.venv))

    def _install(self, *arguments: str) -> None:
        _pip('install', '--quiet', '--python', self.python, *arguments)

    def _install_nova(self, *arguments: str) -> None:
        # The very versions that the other tests run with.
        frozen = self.directory / 'constraints.txt'
        frozen.write_text(''.join(
            line + '\n' for line in _pip(
                'freeze', '--quiet', '--python', sys.executable).splitlines()
            if '==' in line))
        self._install('--constraint', str(frozen), *arguments, 'nova')


class LoadingTestCase(InstallationTestCase):

    def _load(self, *start: str, **env: str) -> dict:
        """Let Nova load the driver.

        :param start: the .start file that Python is to read
        :param env: variables to add to the environment
        :returns: what Nova has loaded
        """
        loaded = json.loads(
            _run(self.python, '-W', 'ignore', '-c', LOAD, *start, **env))
        # Python runs a .pth file of a virtual environment twice.
        before, after = loaded['finders']
        self.assertEqual(max(before, len(start)), after)
        self.assertEqual('nova_ironic_ring.compute.driver.IronicRingDriver',
                         loaded['class'])
        self.assertEqual('nova.virt.ironic_ring', loaded['known as'])
        # It is Nova's alone.
        directory = os.path.dirname(loaded['nova'])
        self.assertEqual([directory], loaded['nova.__path__'])
        self.assertEqual([os.path.join(directory, 'virt')],
                         loaded['nova.virt.__path__'])
        return loaded

    def test_wheel_beside_nova(self):
        self._make_venv()
        self._install_nova(self.wheel)
        loaded = self._load()
        self.assertIn(str(self.venv), loaded['ours'])

    def test_editable(self):
        self._make_venv()
        self._install_nova('--editable', str(PROJECT))
        loaded = self._load()
        self.assertIn(str(PROJECT), loaded['ours'])

    def test_without_the_pth_file(self):
        self._make_venv()
        self._install_nova(self.wheel)
        site = self.venv / SITE
        pth, start = (site / f'nova_ironic_ring.{kind}'
                      for kind in ('pth', 'start'))
        # A Python that runs both.
        self.assertGreater(self._load(str(start))['finders'][0], 0)
        # One that takes the second alone.
        pth.unlink()
        self.assertEqual([0, 1], self._load(str(start))['finders'])
        # One that may have neither.
        start.unlink()
        self.assertRaises(AssertionError, self._load)
        module = (self.python, '-m', 'nova_ironic_ring.module')
        _run(*module, 'install')
        loaded = self._load()
        self.assertEqual([0, 0], loaded['finders'])
        self.assertIn(str(site), loaded['ours'])
        _run(*module, 'remove')
        self.assertRaises(AssertionError, self._load)
        # pip does not miss them.
        _pip('uninstall', '--quiet', '--python', self.python,
             'nova-ironic-ring')
        self.assertEqual([], [
            path.name for path in site.iterdir()
            if path.name.startswith('nova_ironic_ring')])

    def test_wheel_in_another_site_packages_than_nova(self):
        # As with a distribution's Nova and pip's own directory.
        self._make_venv('--system-site-packages')
        self._install_nova()
        other = self.directory / 'other' / SITE
        self._install('--no-deps', '--target', str(other), self.wheel)
        loaded = self._load(PYTHONUSERBASE=str(self.directory / 'other'))
        self.assertIn(str(other), loaded['ours'])
        self.assertIn(str(self.venv), loaded['nova'])

    def test_wheel_in_a_virtual_environment_over_novas(self):
        # As with a distribution's Nova and --system-site-packages.
        self._make_venv('--system-site-packages')
        other = self.directory / 'other' / SITE
        self._install_nova('--target', str(other))
        self._install('--no-deps', self.wheel)
        loaded = self._load(PYTHONUSERBASE=str(self.directory / 'other'))
        self.assertIn(str(self.venv), loaded['ours'])
        self.assertIn(str(other), loaded['nova'])


class GoodNeighbourTestCase(InstallationTestCase):
    """What an installation does to the rest of Python."""

    def setUp(self):
        super().setUp()
        self._make_venv()

    def _modules(self) -> set[str]:
        return set(json.loads(_run(
            self.python, '-c',
            'import json, sys; print(json.dumps(list(sys.modules)))')))

    def test_nothing_is_imported_when_python_starts(self):
        before = self._modules()
        self._install('--no-deps', self.wheel)
        self.assertEqual(before, self._modules())

    def test_wheel_has_neither_tests_nor_plugins_of_the_lab(self):
        self._install('--no-deps', self.wheel)
        self.assertEqual([], [
            path.name for path in (self.venv / SITE).rglob('tests')])
        # What other programs would find of this project.
        found = json.loads(_run(
            self.python, '-c',
            'import json; from importlib import metadata; print(json.dumps('
            'sorted({each.group for each in metadata.distribution('
            '"nova-ironic-ring").entry_points})))'))
        self.assertEqual(
            ['console_scripts', 'nova_ironic_ring.command',
             'oslo.config.opts'], found)

    def test_source_distribution_without_git(self):
        copy = self.directory / 'copy'
        shutil.copytree(PROJECT, copy, ignore=lambda folder, _: [
            '.git', '.tox', '.tools', '.lab', '.venv', 'build', 'dist',
            *(path.name for path in pathlib.Path(folder).glob('*.egg-info'))])
        _run(UV, 'build', '--quiet', '--sdist', '--out-dir',
             str(self.directory), str(copy), PBR_VERSION='1.0.0')
        (source,) = pathlib.Path(self.wheel).parent.glob('*.tar.gz')
        (found,) = self.directory.glob('*.tar.gz')
        # What is left out is made of the commits.
        self.assertEqual(set(), {
            path for path in _files(source) - _files(found)
            if not path.endswith(('AUTHORS', 'ChangeLog', '/pbr.json'))})

    def test_what_the_wheel_needs(self):
        (place,) = [path for path in zipfile.Path(self.wheel).iterdir()
                    if path.name.endswith('.dist-info')]
        said = metadata.PathDistribution(place)
        needed = {extra: sorted(
            line.partition(';')[0] for line in said.requires or ()
            if line.endswith('"lab"') == bool(extra))
            for extra in ('', 'lab')}
        # The lab's own are for those alone who ask for them.
        self.assertEqual(
            {'': _named('requirements.txt'),
             'lab': _named('lab-requirements.txt')}, needed)
        self.assertEqual(['lab'], said.metadata.get_all('Provides-Extra'))
        # It says where the project is if its owner has said so, and only then.
        project = tomllib.loads(
            (PROJECT / 'pyproject.toml').read_text())['project']
        self.assertEqual(
            project.get('urls', {}),
            dict(line.split(', ', 1)
                 for line in said.metadata.get_all('Project-URL') or ()))

    def test_nothing_of_nova_is_touched(self):
        self._install('--no-deps', self.wheel)
        self.assertEqual(
            set(), {path.name for path in (self.venv / SITE).iterdir()
                    if path.name.startswith('nova')
                    and not path.name.startswith('nova_ironic_ring')})

    def test_a_module_of_novas_own_comes_first(self):
        self._install('--no-deps', self.wheel)
        virt = self.venv / SITE / 'nova' / 'virt'
        virt.mkdir(parents=True)
        for name in ('../__init__.py', '__init__.py', 'ironic_ring.py'):
            (virt / name).touch()
        found = _run(self.python, '-c', 'import nova.virt.ironic_ring as found'
                                        '; print(found.__file__)')
        self.assertEqual(str(virt / 'ironic_ring.py'), found.strip())

    def test_uninstalled(self):
        before = {path.name for path in (self.venv / SITE).iterdir()}
        self._install('--no-deps', self.wheel)
        _pip('uninstall', '--quiet', '--python', self.python,
             'nova-ironic-ring')
        self.assertEqual(
            before, {path.name for path in (self.venv / SITE).iterdir()})
        finders = _run(self.python, '-c', 'import sys; print(sys.meta_path)')
        self.assertNotIn('NovaIronicRing', finders)

    def test_uninstalled_by_pip_after_an_editable_install(self):
        self._install('pip')
        before = {path.name for path in (self.venv / SITE).iterdir()}
        pip = (self.python, '-m', 'pip', '--quiet',
               '--disable-pip-version-check')
        _run(*pip, 'install', '--no-deps', '--editable', str(PROJECT))
        self.assertLessEqual(
            {'nova_ironic_ring.pth', 'nova_ironic_ring.start'},
            {path.name for path in (self.venv / SITE).iterdir()})
        _run(*pip, 'uninstall', '--yes', 'nova-ironic-ring')
        self.assertEqual(
            before, {path.name for path in (self.venv / SITE).iterdir()})
