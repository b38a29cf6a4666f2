# SPDX-License-Identifier: Apache-2.0

"""Tests of the commands of tools/devstack, without a container."""

import contextlib
import io
import os
import pathlib
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring_tools.devstack import __main__ as program
from nova_ironic_ring_tools.devstack import checks
from nova_ironic_ring_tools.devstack import conductors
from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import furniture
from nova_ironic_ring_tools.devstack import leftovers
from nova_ironic_ring_tools.devstack import repositories
from nova_ironic_ring_tools.devstack import settings


class MainTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'devstack')
        self.useFixture(fixtures.MockPatchObject(os, 'geteuid', lambda: 0))
        self.useFixture(fixtures.MockPatchObject(
            os, 'environ', {'GIT_BASE': '/srv/git'}))
        self.did: list[str] = []
        self.code = 0
        box = container.Container
        for owner, name, answer in (
                (box, 'make', None), (box, 'boot', None),
                (box, 'leader', None), (box, 'shell', 3),
                (repositories, 'give', '/opt/git'),
                (repositories, 'give_own', None),
                (repositories, 'uncommitted', False),
                (conductors, 'start', None), (conductors, 'stop', None),
                (leftovers, 'watch', None), (leftovers, 'found', [])):
            self._patch(owner, name, answer)
        self.useFixture(fixtures.MockPatchObject(
            box, 'serve',
            lambda box, *arguments: self._serve(box, *arguments)))
        self.useFixture(fixtures.MockPatchObject(
            box, 'remove', lambda box: self.did.append('remove')))
        self.furnished = self.useFixture(
            fixtures.MockPatchObject(furniture, 'furnish')).mock
        self.useFixture(fixtures.MockPatchObject(
            checks.Checks, '__init__',
            lambda each, cloud, wanted: self._checks(wanted)))
        self.useFixture(fixtures.MockPatchObject(
            checks.Checks, 'run', lambda each: self.did.append('check')))

    def _patch(self, owner: object, name: str, answer: object) -> None:
        def call(*arguments: object) -> object:
            if name in ('start', 'stop'):
                self.did.append(' '.join([name, *map(str, arguments[1:])]))
            return answer
        self.useFixture(fixtures.MockPatchObject(owner, name, call))

    def _serve(self, box: container.Container, script: str, unit: str,
               output: pathlib.Path, shown: object = None) -> int:
        self.did.append(unit)
        box.directory.mkdir(exist_ok=True)
        return self.code

    def _checks(self, wanted: settings.Cloud) -> None:
        self.checked = wanted

    def _run(self, *words: str) -> int:
        self.directory.mkdir(exist_ok=True)
        self.output = io.StringIO()
        self.errors = io.StringIO()
        with contextlib.redirect_stdout(self.output), (
                contextlib.redirect_stderr(self.errors)):
            return program.main(['--directory', str(self.directory), *words])

    def _fails(self, *words: str) -> str:
        self.assertEqual(2, self._run(*words))
        return self.errors.getvalue()

    def test_up(self):
        self.assertEqual(0, self._run('up'))
        self.assertEqual(['stack', 'check'], self.did)
        _, wanted, git_base, sources = self.furnished.call_args.args
        self.assertEqual(settings.Cloud(nodes=9), wanted)
        self.assertEqual(wanted, self.checked)
        self.assertEqual('/opt/git', git_base)
        self.assertEqual('/srv/git', sources.git_base)

    def test_up_with_options(self):
        self.assertEqual(0, self._run(
            'up', '--driver', 'pool', '--nodes', '4',
            '--groups', ':2 rack-b:2'))
        self.assertEqual(settings.Cloud(
            'pool', 4, 4, {'': 2, 'rack-b': 2}), self.checked)
        self.assertEqual(['stack', "start ['', 'rack-b']", 'check'], self.did)

    def test_up_of_what_is_up(self):
        self._run('up')
        # After a restart of the machine.
        self.assertEqual(
            f'There is a devstack in {self.directory}: it does not run any '
            'more, so remove it with "down --only-remove".\n',
            self._fails('up'))
        self._patch(container.Container, 'leader', 1)
        self.assertEqual(
            f'There is a devstack in {self.directory}: end it with "down", '
            'or look at it with "check".\n', self._fails('up'))

    def test_up_after_stack_has_failed(self):
        self.code = 1
        self.assertEqual(
            f'stack.sh has failed: see {self.directory}/root/opt/stack/logs/'
            'stack.sh.log.\n', self._fails('up'))
        self.assertEqual(['stack'], self.did)
        self.code = 0
        self.assertEqual(0, self._run('up'))

    def test_changes_that_are_left_out(self):
        self.useFixture(fixtures.MockPatchObject(
            repositories, 'uncommitted', lambda checkout: True))
        self._run('up')
        self.assertIn('This checkout has changes that are not committed: they '
                      'are left out.\n', self.output.getvalue())

    def test_check(self):
        self._run('up', '--computes', '5')
        self.assertEqual(0, self._run('check'))
        self.assertEqual(settings.Cloud(computes=5, nodes=9), self.checked)

    def test_without_one(self):
        self.assertEqual(
            f'There is no devstack in {self.directory}: start one with '
            '"up".\n', self._fails('check'))
        self.assertEqual([], self.did)

    def test_down(self):
        self._run('up', '--groups', 'a:1 b:2')
        del self.did[:]
        self.assertEqual(0, self._run('down'))
        self.assertEqual(['stop', 'clean', 'remove'], self.did)

    def test_down_for_another(self):
        self._run('up')
        self.assertEqual(0, self._run('down', '--keep'))
        self.assertNotIn('remove', self.did)
        self.assertEqual(0, self._run('up', '--driver', 'pool'))

    def test_down_that_leaves_something(self):
        self._run('up')
        del self.did[:]
        self.useFixture(fixtures.MockPatchObject(
            leftovers, 'found', lambda box: ['etc/nova/nova-cpu-2.conf']))
        self.assertEqual(
            'After unstack.sh and clean.sh there is still '
            f'etc/nova/nova-cpu-2.conf: see {self.directory}/clean.log; "down '
            '--only-remove" removes everything.\n', self._fails('down'))
        self.assertEqual(['clean'], self.did)
        self.assertEqual(0, self._run('down', '--only-remove'))
        self.assertEqual(['remove'], self.did[1:])

    def test_clean_that_fails(self):
        self._run('up')
        self.code = 1
        self.assertEqual(
            f'unstack.sh or clean.sh has failed: see {self.directory}/'
            'clean.log; "down --only-remove" removes everything.\n',
            self._fails('down'))

    def test_shell(self):
        self.assertEqual(3, self._run('shell', 'true'))

    def test_status(self):
        self.assertEqual(0, self._run('status'))
        self.assertEqual(f'{self.directory}: the container does not run\n',
                         self.output.getvalue())
        self.useFixture(fixtures.MockPatchObject(
            container.Container, 'leader', lambda box: 7))
        self._run('status')
        self.assertIn('runs, without a devstack that is complete',
                      self.output.getvalue())
        self._run('up')
        self._run('status')
        self.assertIn('runs, with a devstack\n', self.output.getvalue())

    def test_only_root(self):
        with mock.patch.object(os, 'geteuid', lambda: 1000):
            self.assertEqual(
                'Only root may make a container and its network: run '
                'tools/devstack as root.\n', self._fails('up'))
            self.assertEqual(0, self._run('status'))

    def test_wrong_groups(self):
        self.assertIn('The groups "a" are wrong', self._fails(
            'up', '--groups', 'a'))
        self.assertEqual([], self.did)

    def test_wrong_number(self):
        self.assertRaises(SystemExit, self._run, 'up', '--nodes', '0')
