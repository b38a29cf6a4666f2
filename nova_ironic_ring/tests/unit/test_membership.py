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

import datetime

from oslotest import base

from nova_ironic_ring import membership

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def _service(host: str, silent: float = 0,
             **flags: bool) -> membership.Service:
    """Return the record of a service that was heard of some seconds ago."""
    return membership.Service(
        host, NOW - datetime.timedelta(seconds=silent), **flags)


class StateTestCase(base.BaseTestCase):

    view = membership.View('me', 60)

    def _state(self, *args, **kwargs) -> membership.State:
        return self.view.state(_service(*args, **kwargs), NOW)

    def test_heartbeat_within_down_time(self):
        self.assertIs(membership.State.MEMBER, self._state('a', 60))

    def test_heartbeat_too_old(self):
        self.assertIs(membership.State.DOWN, self._state('a', 60.5))

    def test_heartbeat_from_the_future(self):
        # Nova's own judgement is as strict in this direction.
        self.assertIs(membership.State.MEMBER, self._state('a', -60))
        self.assertIs(membership.State.DOWN, self._state('a', -60.5))

    def test_forced_down(self):
        self.assertIs(membership.State.FORCED_DOWN,
                      self._state('a', forced_down=True))

    def test_disabled(self):
        self.assertIs(membership.State.DISABLED,
                      self._state('a', disabled=True))

    def test_disabled_and_dead(self):
        self.assertIs(membership.State.DOWN,
                      self._state('a', 61, disabled=True))

    def test_own_heartbeat_is_not_asked(self):
        self.assertIs(membership.State.MEMBER, self._state('Me', 1000))

    def test_disabled_or_forced_down_for_itself_as_well(self):
        self.assertIs(membership.State.DISABLED,
                      self._state('Me', 1000, disabled=True))
        self.assertIs(membership.State.FORCED_DOWN,
                      self._state('Me', forced_down=True))

    def test_who_lives_to_give(self):
        self.assertEqual(
            {membership.State.MEMBER, membership.State.DISABLED},
            {state for state in membership.State if state.gives})

    def test_stranger_whether_alive_or_not(self):
        view = membership.View('me', 60, frozenset({'me', 'a'}))
        for silent in 0, 1000:
            self.assertIs(membership.State.STRANGER,
                          view.state(_service('b', silent), NOW))
        self.assertIs(membership.State.MEMBER, view.state(_service('A'), NOW))


class PictureTestCase(base.BaseTestCase):

    def _members(self, view: membership.View, *services: membership.Service
                 ) -> frozenset[str]:
        return view.picture(services, (), NOW).members

    def test_only_the_living(self):
        self.assertEqual(
            {'a', 'b'}, self._members(
                membership.View('a', 60), _service('a'), _service('b'),
                _service('c', 61), _service('d', forced_down=True),
                _service('e', disabled=True)))

    def test_newcomer_without_a_record(self):
        self.assertEqual({'me'}, self._members(membership.View('Me', 60)))

    def test_disabled_service_is_no_member_for_itself(self):
        self.assertEqual(
            {'a'}, self._members(membership.View('me', 60), _service('a'),
                                 _service('me', disabled=True)))

    def test_case_does_not_matter(self):
        self.assertEqual(
            {'me', 'other'},
            self._members(membership.View('ME', 60), _service('me'),
                          _service('Other')))

    def test_peers_that_are_alive(self):
        view = membership.View('a', 60, frozenset({'a', 'b', 'c', 'nowhere'}))
        self.assertEqual(
            {'a', 'b'},
            self._members(view, _service('a'), _service('B'),
                          _service('c', 61), _service('stranger')))

    def test_states(self):
        picture = membership.View('me', 60).picture(
            [_service('me'), _service('a', 61)],
            [_service('b', disabled=True), _service('c')], NOW)
        self.assertEqual({'me'}, picture.members)
        for host, state in (('a', membership.State.DOWN),
                            ('B', membership.State.DISABLED),
                            ('c', membership.State.MEMBER),
                            ('nowhere', membership.State.GONE)):
            self.assertIs(state, picture.state(host))


class PeersTestCase(base.BaseTestCase):

    def test_no_group(self):
        self.assertIsNone(membership.peers('me', None, None, ['a', 'b']))

    def test_group(self):
        self.assertEqual(
            {'me', 'a'},
            membership.peers('Me', 'rack1', None, [' ME ', 'A', '']))

    def test_default_group_is_a_group(self):
        self.assertEqual({'me'}, membership.peers('me', '', None, ['me']))

    def test_shard_has_one_service(self):
        self.assertEqual(
            {'me'}, membership.peers('Me', 'rack1', 'shard1', ['a', 'b']))

    def test_empty_list(self):
        error = self.assertRaises(
            ValueError, membership.peers, 'me', 'rack1', None, [' '])
        self.assertIn('[ironic] peer_list is empty', str(error))
        self.assertIn('(me)', str(error))

    def test_without_this_service(self):
        error = self.assertRaises(
            ValueError, membership.peers, 'me', '', None, ['a', 'b'])
        self.assertIn('[ironic] peer_list does not name this service (me)',
                      str(error))
