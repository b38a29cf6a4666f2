# SPDX-License-Identifier: Apache-2.0

"""Tests of what a devstack in a container is told."""

import pathlib

from oslotest import base

from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import settings


class SourcesTestCase(base.BaseTestCase):

    def test_without_anything_in_the_environment(self):
        found = settings.sources({'HOME': '/root', 'GIT_BASE': ''})
        self.assertEqual(settings.Sources(), found)
        self.assertIsNone(found.folder)

    def test_environment(self):
        found = settings.sources({
            'GIT_BASE': '/srv/git', 'DEVSTACK_BRANCH': 'master',
            'DEBIAN_MIRROR': 'http://mirror/debian',
            'PIP_INDEX_URL': 'http://mirror/pypi', 'PIP_USER': '1'})
        self.assertEqual(settings.Sources(
            '/srv/git', 'master', 'http://mirror/debian',
            {'PIP_INDEX_URL': 'http://mirror/pypi'}), found)
        self.assertEqual(pathlib.Path('/srv/git'), found.folder)


class GroupsTestCase(base.BaseTestCase):

    def test_none(self):
        self.assertEqual({}, settings.groups(' '))

    def test_groups(self):
        self.assertEqual({'': 2, 'rack-b': 1}, settings.groups(':2 rack-b:1'))

    def test_wrong(self):
        for text, word in (('rack-a', 'rack-a'), ('a:1 a:2', 'a:2'),
                           ('a:0', 'a:0'), ('a:2 b/c:1', 'b/c:1')):
            error = self.assertRaises(
                errors.DevstackError, settings.groups, text)
            self.assertEqual(
                f'The groups "{text}" are wrong at "{word}": give each group '
                'once, with a number of services, such as ":2 rack-b:1".',
                str(error))
