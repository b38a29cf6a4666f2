# SPDX-License-Identifier: Apache-2.0

"""Tests of who is said to run the command."""

import fixtures
from oslotest import base

from nova_ironic_ring.adapters import actions
from nova_ironic_ring.command import author
from nova_ironic_ring.core.deciding import audit


class AuthorTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.user = self.useFixture(fixtures.MockPatch(
            'getpass.getuser', return_value='root')).mock
        self.useFixture(fixtures.MockPatch(
            'socket.gethostname', return_value='controller'))

    def test_arguments_are_as_they_were_typed(self):
        found = author.find(['drain', 'a', '--reason', 'a fan'], {})
        self.assertEqual("drain a --reason 'a fan'", found.arguments)
        self.assertEqual('root on controller', str(found))

    def test_very_many_arguments(self):
        found = author.find(['move', *['\N{SNOWMAN}' * 36] * 2000, 'a'], {})
        self.assertRegex(found.arguments, r'^move .* \.\.\.$')
        # What a column of MySQL's type TEXT has room for.
        self.assertLess(len(actions.details(audit.Entry(
            audit.Code.INSTANCE_MOVED, 'controller', author=found))), 1 << 16)

    def test_who_has_become_root(self):
        for environment, user in (
                ({'SUDO_USER': 'alice'}, 'alice as root'),
                ({'SUDO_USER': 'root'}, 'root')):
            self.assertEqual(user, author.find([], environment).user)

    def test_user_without_a_name(self):
        self.user.side_effect = KeyError('uid not found')
        self.useFixture(fixtures.MockPatch('os.getuid', return_value=42436))
        self.assertEqual('42436', author.find([], {}).user)

    def test_user_of_openstack(self):
        for environment, user in (
                ({}, None), ({'OS_USERNAME': 'bob'}, 'bob'),
                ({'OS_CLOUD': 'prod'}, 'cloud prod'),
                ({'OS_USERNAME': 'bob', 'OS_CLOUD': 'prod'}, 'bob')):
            self.assertEqual(user, author.find([], environment).openstack_user)
