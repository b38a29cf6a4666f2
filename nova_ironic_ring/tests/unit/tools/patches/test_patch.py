# SPDX-License-Identifier: Apache-2.0

"""The patches are ones that could be proposed."""

import pathlib
from typing import Any

import fixtures
from oslotest import base
import yaml

from nova_ironic_ring.tests.unit.tools import TOOLS
from nova_ironic_ring_tools.patches import patch

# A line that is empty, and is not changed.
_SAME = ' '

GOOD = f"""From {'0' * 40} Mon Sep 17 00:00:00 2001
From: Developers <developers@example.org>
Date: Wed, 25 Nov 2026 00:58:41 +0000
Subject: [PATCH] Say which host this is

Nobody knows it.

Related to: hosts
---
 nova/host.py | 2 +-

diff --git a/nova/host.py b/nova/host.py
index 1111111..2222222 100644
--- a/nova/host.py
+++ b/nova/host.py
@@ -1,2 +1,2 @@
 def name():
-    return None
+    return 'me'
diff --git a/nova/tests/unit/test_host.py b/nova/tests/unit/test_host.py
index 1111111..2222222 100644
--- a/nova/tests/unit/test_host.py
+++ b/nova/tests/unit/test_host.py
@@ -3,5 +3,8 @@ import unittest
 from nova import host
{_SAME}
{_SAME}
 class HostTestCase(unittest.TestCase):
-    pass
+
+    def test_name(self):
+        self.assertEqual('me', host.name())
+
diff --git a/releasenotes/notes/host-1.yaml b/releasenotes/notes/host-1.yaml
new file mode 100644
index 0000000..2222222
--- /dev/null
+++ b/releasenotes/notes/host-1.yaml
@@ -0,0 +1,3 @@
+---
+fixes:
+  - The host has a name.
"""


class FilesTestCase(base.BaseTestCase):
    """Those that are in contrib."""

    def test_each_is_well_formed(self):
        self.assertEqual(sorted(patch.PROJECTS), sorted(
            each.parent.name for each in patch.CONTRIB.glob('*/patches')))
        for project in patch.PROJECTS:
            found = patch.read_all(project)
            self.assertTrue(found)
            for each in found:
                for name in each.files:
                    self.assertRegex(
                        name, rf'^({project}|releasenotes/notes)/')
                # What is mended is not in the tests alone.
                self.assertTrue([
                    name for name in each.files
                    if name.startswith(f'{project}/')
                    and not name.startswith(f'{project}/tests/')],
                    each.path.name)

    def test_each_names_its_tests(self):
        for project in patch.PROJECTS:
            for each in patch.read_all(project):
                for module, names in each.tests.items():
                    self.assertTrue(
                        module.startswith(f'{project}.tests.'), module)
                    for name in names:
                        self.assertIn(f'def {name}(', each.path.read_text())

    def test_nova_that_they_are_for_is_in_tox(self):
        text = (TOOLS.parent / 'tox.ini').read_text()
        section = text.partition('[testenv:nova-patched]')[2].partition(
            '\n[')[0]
        self.assertIn('-m nova_ironic_ring_tools.patches\n', section)

    def test_their_job_does_not_vote(self):
        jobs = yaml.safe_load((TOOLS.parent / '.zuul.yaml').read_text())
        (project,) = [each['project'] for each in jobs if 'project' in each]
        name = 'nova-ironic-ring-tox-nova-patched'
        self.assertIn({name: {'voting': False}}, project['check']['jobs'])
        self.assertNotIn(name, project['gate']['jobs'])
        # A patch that changes is tried.
        (job,) = [each['job'] for each in jobs
                  if each.get('job', {}).get('name') == name]
        self.assertFalse([each for each in job['irrelevant-files']
                          if 'contrib' in each])


class ReadTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)

    def _read(self, text: str) -> patch.Patch:
        path = self.directory / '0001-host.patch'
        path.write_text(text)
        return patch.read('nova', path)

    def _refused(self, *changes: Any, text: str = GOOD) -> str:
        """Return why a patch is refused in which something is replaced."""
        for old, new in zip(changes[::2], changes[1::2]):
            self.assertIn(old, text)
            text = text.replace(old, new)
        return str(self.assertRaises(patch.PatchError, self._read, text))

    def test_good(self):
        found = self._read(GOOD)
        self.assertEqual('Say which host this is', found.subject)
        self.assertEqual((
            'nova/host.py', 'nova/tests/unit/test_host.py',
            'releasenotes/notes/host-1.yaml'), found.files)
        self.assertEqual(
            {'nova.tests.unit.test_host': ('test_name',)}, found.tests)

    def test_subject_on_two_lines(self):
        self.assertEqual(
            'Say which host this is', self._read(GOOD.replace(
                'which host', 'which\n host')).subject)

    def test_headers(self):
        for name in 'From', 'Date':
            self.assertIn(
                'no header', self._refused(f'\n{name}: ', f'\nX-{name}: '))
        for subject in 'Say it.', 'Say ' * 20, '':
            self.assertIn('its subject', self._refused(
                'Say which host this is', subject))

    def test_message(self):
        self.assertIn('does not say why', self._refused('\n---\n', '\n'))
        self.assertIn('more than 72 characters', self._refused(
            'Nobody knows it.', 'Nobody ' * 11))
        self.assertIn('ASCII', self._refused('Nobody', 'Nobody\u2026'))
        self.assertIn('"Related to:"', self._refused(
            'Related to: hosts', 'It is so.'))

    def test_nothing_is_invented(self):
        for line in ('Closes-Bug: #1234567', 'Related-Bug: #1',
                     'Change-Id: I0', 'Signed-off-by: A <a@example.org>',
                     'See https://bugs.launchpad.net/nova.',
                     'This is bug 1234567.', 'Implements: blueprint a'):
            self.assertIn('has to add', self._refused(
                'Nobody knows it.', line))

    def test_what_it_needs(self):
        self.assertIn('it adds no test', self._refused(
            '+    def test_name', '     def test_name'))
        self.assertIn('it adds no test', self._refused(
            'nova/tests/unit', 'nova/unit'))
        self.assertIn('it adds no release note', self._refused(
            'releasenotes/notes', 'notes'))
        self.assertIn('it renames nova/host.py', self._refused(
            'b/nova/host.py\nindex', 'b/nova/name.py\nindex'))

    def test_numbers(self):
        patches = self.directory / 'nova' / 'patches'
        patches.mkdir(parents=True)
        for number in 1, 2:
            (patches / f'000{number}-host.patch').write_text(GOOD)
        self.assertEqual(
            ['0001-host.patch', '0002-host.patch'],
            [each.path.name for each in patch.read_all(
                'nova', self.directory)])
        (patches / '0004-host.patch').write_text(GOOD)
        self.assertIn('0003-', str(self.assertRaises(
            patch.PatchError, patch.read_all, 'nova', self.directory)))
