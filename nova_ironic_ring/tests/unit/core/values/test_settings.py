# SPDX-License-Identifier: Apache-2.0

import ddt
from oslotest import base

from nova_ironic_ring.core.values import settings

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

    @ddt.data((Scope(), Scope('rack1', 'one'), True),
              (Scope('Rack1'), Scope('rack1', 'one'), True),
              (Scope(None, 'one'), Scope('rack1', 'one'), True),
              (Scope('rack1'), Scope(None, 'one'), False),
              (Scope(''), Scope(), False),
              (Scope(''), Scope('rack1'), False),
              (Scope(shard='one'), Scope(shard='One'), False),
              (Scope(shard='one'), Scope(), False))
    @ddt.unpack
    def test_covers(self, scope, other, expected):
        self.assertIs(expected, scope.covers(other))
        self.assertEqual(scope == other, expected and other.covers(scope))
        self.assertFalse(scope.is_same(None))


@ddt.ddt
class PeersTestCase(base.BaseTestCase):

    @ddt.data(
        # Without a group every host may be a member.
        (Scope(), ['a', 'b'], None),
        (Scope('rack1'), [' ME ', 'A', ''], {'me', 'a'}),
        (Scope(''), ['me'], {'me'}),
        # Without a list, what the services say of themselves decides.
        (Scope('rack1'), [], None),
        (Scope('rack1'), [' '], None),
        # The list may be of those of other shards of the group.
        (Scope(shard='one'), ['a', 'b'], None),
        (Scope('rack1', 'one'), ['a', 'b'], None))
    @ddt.unpack
    def test_who_may_be_a_member(self, scope, peer_list, expected):
        self.assertEqual(expected, settings.peers('Me', scope, peer_list))

    def test_list_without_this_service(self):
        error = self.assertRaises(
            ValueError, settings.peers, 'Me', Scope('rack1'), ['a', 'b'])
        self.assertIn('[ironic] peer_list does not name this service (Me)',
                      str(error))

    @ddt.data(
        # scope, peers, what another says, expected
        (Scope(), None, None, True),
        (Scope(), None, Scope(None, ''), True),
        (Scope(), None, Scope(''), False),
        (Scope('rack1'), None, Scope('RACK1'), True),
        (Scope('rack1'), None, Scope('rack2'), False),
        (Scope('rack1'), None, Scope('rack1', 'one'), False),
        (Scope('rack1', 'one'), None, Scope('rack1', 'one'), True),
        (Scope(None, 'one'), None, Scope(None, 'two'), False),
        (Scope(None, 'one'), None, Scope(), False),
        # Nova's own driver says nothing.
        (Scope('rack1'), None, None, False),
        # The list decides.
        (Scope('rack1'), frozenset({'me'}), Scope('rack2'), True))
    @ddt.unpack
    def test_who_shares_the_nodes(self, scope, peers, said, expected):
        self.assertIs(expected, settings.Settings(
            'me', scope=scope, peers=peers).shares(said))
