# SPDX-License-Identifier: Apache-2.0

"""Tests of the repositories that a container is given, with git."""

import pathlib
import subprocess

import fixtures
from oslotest import base

from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import repositories
from nova_ironic_ring_tools.devstack import settings

_WHO = ('-c', 'user.name=somebody', '-c', 'user.email=somebody@example.org')


def _git(where: pathlib.Path, *argv: str) -> str:
    return subprocess.check_output(
        ['git', '-C', str(where), *_WHO, *argv], text=True,
        stderr=subprocess.STDOUT)


class RepositoriesTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.folder = self.root / 'mirrors'
        self.box = container.Container(self.root / 'container')
        self.sources = settings.Sources(str(self.folder), 'stable/1')

    def _make(self, path: pathlib.Path, *options: str) -> pathlib.Path:
        """Make a repository with a commit."""
        path.mkdir(parents=True)
        _git(path, 'init', '--quiet', '--initial-branch', 'stable/1')
        (path / 'file').write_text('text')
        _git(path, 'add', 'file')
        _git(path, 'commit', '--quiet', '--message', 'One')
        _git(path, 'tag', '7.0.0')
        return path

    def _mirror(self) -> None:
        """Make a directory with all of them, bare or not."""
        first = self._make(self.root / 'first')
        for number, project in enumerate(repositories.PROJECTS):
            target = self.folder / 'openstack' / project
            if number % 2:
                _git(self.root, 'clone', '--quiet', '--bare', str(first),
                     f'{target}.git')
            else:
                _git(self.root, 'clone', '--quiet', str(first), str(target))

    def test_address(self):
        self.assertEqual('https://opendev.org', repositories.give(
            self.box, settings.Sources()))
        self.assertFalse(self.box.root.exists())

    def test_directory(self):
        self._mirror()
        self.assertEqual(
            '/opt/git', repositories.give(self.box, self.sources))
        for project in repositories.PROJECTS:
            given = self.box.root / f'opt/git/openstack/{project}.git'
            self.assertEqual('text', _git(given, 'show', 'stable/1:file'))
            self.assertEqual(set(), {
                path for path in given.rglob('*')
                if not path.stat().st_mode & 0o004})

    def test_repository_that_is_missing(self):
        self._mirror()
        found = self.folder / 'openstack/nova'
        found.rename(self.root / 'elsewhere')
        error = self.assertRaises(errors.DevstackError, repositories.give,
                                  self.box, self.sources)
        self.assertEqual(
            f'GIT_BASE has no repository {found}.git: clone it, or set '
            'GIT_BASE to another directory or an address.', str(error))

    def test_branch_that_is_missing(self):
        self._mirror()
        error = self.assertRaises(
            errors.DevstackError, repositories.give, self.box,
            settings.Sources(str(self.folder), 'stable/2'))
        self.assertEqual(
            f'{self.folder}/openstack/devstack/.git has no branch stable/2: '
            'fetch it, or set DEVSTACK_BRANCH to one that all repositories '
            'have.', str(error))

    def test_own(self):
        checkout = self._make(self.root / 'checkout')
        self.assertFalse(repositories.uncommitted(checkout))
        (checkout / 'file').write_text('later')
        self.assertTrue(repositories.uncommitted(checkout))
        repositories.give_own(self.box, checkout)
        given = self.box.root / repositories.own().lstrip('/')
        self.assertEqual('text', _git(given, 'show', 'checkout:file'))
        self.assertEqual('7.0.0\n', _git(given, 'tag'))
        _git(checkout, 'commit', '--quiet', '--all', '--message', 'Two')
        repositories.give_own(self.box, checkout)
        self.assertEqual('later', _git(given, 'show', 'checkout:file'))
