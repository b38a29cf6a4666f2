# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import ddt
from oslotest import base

from nova_ironic_ring.core import settings

Scope = settings.Scope


class SettingsTestCase(base.BaseTestCase):

    def test_me_in_any_case(self):
        self.assertEqual('compute', settings.Settings(' Compute').me)

    def test_equal_where_nothing_has_changed(self):
        self.assertEqual(settings.Settings('me'), settings.Settings('me'))
        self.assertNotEqual(settings.Settings('me'),
                            settings.Settings('me', partitions=7))


@ddt.ddt
class ScopeTestCase(base.BaseTestCase):

    @ddt.data((None, None, False),
              (None, '', False),
              # Ironic's default group is a group.
              ('', None, True),
              ('rack1', None, True),
              (None, 'one', True))
    @ddt.unpack
    def test_limited(self, conductor_group, shard, expected):
        self.assertIs(expected, Scope(conductor_group, shard).is_limited)


@ddt.ddt
class PeersTestCase(base.BaseTestCase):

    @ddt.data(
        # Without a group every host may be a member.
        (Scope(), ['a', 'b'], None),
        (Scope('rack1'), [' ME ', 'A', ''], {'me', 'a'}),
        (Scope(''), ['me'], {'me'}),
        # A shard is for one service alone.
        (Scope(shard='one'), ['a', 'b'], {'me'}),
        (Scope('rack1', 'one'), ['a', 'b'], {'me'}))
    @ddt.unpack
    def test_who_may_be_a_member(self, scope, peer_list, expected):
        self.assertEqual(expected, settings.peers('Me', scope, peer_list))

    @ddt.data(
        ([], '[ironic] peer_list is empty'),
        ([' '], '[ironic] peer_list is empty'),
        (['a', 'b'], '[ironic] peer_list does not name this service'))
    @ddt.unpack
    def test_list_without_this_service(self, peer_list, message):
        error = self.assertRaises(
            ValueError, settings.peers, 'Me', Scope('rack1'), peer_list)
        self.assertIn(message, str(error))
        self.assertIn('(Me)', str(error))
