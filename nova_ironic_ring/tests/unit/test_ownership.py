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


from oslotest import base

from nova_ironic_ring import membership
from nova_ironic_ring import ownership
from nova_ironic_ring.ownership import Decision
from nova_ironic_ring.ownership import Trust

State = membership.State
MINE = ownership.Row('Me')
THEIRS = ownership.Row('other')
OFFERED = ownership.Row('other', 'me')
OFFERED_TO_ANOTHER = ownership.Row('other', 'third')


def _decide(desired: str | None, row: ownership.Row | None = None,
            **circumstances) -> Decision:
    return ownership.decide(
        'me', ownership.Free(desired, row, **circumstances))


class DecideTestCase(base.BaseTestCase):
    """The decision table of a free node."""

    def test_mine_and_for_me(self):
        for trust in Trust:
            self.assertIs(Decision.KEEP, _decide('me', MINE, trust=trust))

    def test_mine_and_nobody_to_give_it_to(self):
        self.assertIs(Decision.KEEP, _decide(None, MINE))

    def test_mine_and_for_another(self):
        self.assertIs(Decision.OFFER, _decide('other', MINE))

    def test_no_consent_while_a_build_is_under_way(self):
        self.assertIs(Decision.HOLD, _decide('other', MINE, building=True))

    def test_no_consent_to_one_that_may_be_dead(self):
        for trust in Trust.STARTING, Trust.BLACKOUT:
            self.assertIs(Decision.HOLD, _decide('other', MINE, trust=trust))

    def test_new(self):
        self.assertIs(Decision.CREATE, _decide('me'))
        self.assertIs(Decision.CREATE, _decide('me', trust=Trust.BLACKOUT))

    def test_for_another(self):
        for row in (None, THEIRS, OFFERED):
            self.assertIs(Decision.LEAVE, _decide('third', row))
            self.assertIs(Decision.LEAVE, _decide(None, row))

    def test_nothing_is_taken_while_starting(self):
        for row in (None, THEIRS, OFFERED):
            for owner in State:
                self.assertIs(Decision.WAIT, _decide(
                    'me', row, owner=owner, trust=Trust.STARTING,
                    overdue=True))

    def test_with_consent(self):
        for trust in Trust.BLACKOUT, Trust.FULL:
            self.assertIs(Decision.TAKE_OFFERED, _decide(
                'me', OFFERED, owner=State.MEMBER, trust=trust))

    def test_from_the_dead_and_from_strangers(self):
        for owner in (State.DOWN, State.FORCED_DOWN, State.GONE,
                      State.STRANGER):
            for row in THEIRS, OFFERED_TO_ANOTHER:
                self.assertIs(Decision.TAKE_ABANDONED,
                              _decide('me', row, owner=owner))
                self.assertIs(Decision.WAIT, _decide(
                    'me', row, owner=owner, trust=Trust.BLACKOUT))

    def test_from_the_living(self):
        for owner in State.MEMBER, State.DISABLED:
            for row in THEIRS, OFFERED_TO_ANOTHER:
                self.assertIs(Decision.WAIT, _decide('me', row, owner=owner))

    def test_from_the_silent(self):
        for owner in State.MEMBER, State.DISABLED:
            self.assertIs(Decision.TAKE_SILENT, _decide(
                'me', THEIRS, owner=owner, overdue=True))
            self.assertIs(Decision.WAIT, _decide(
                'me', THEIRS, owner=owner, overdue=True,
                trust=Trust.BLACKOUT))


class DecideAtOnceTestCase(base.BaseTestCase):
    """The stock rule."""

    def test_by_the_ring(self):
        self.assertIs(Decision.KEEP, ownership.decide_at_once('me', 'me'))
        self.assertIs(Decision.LEAVE, ownership.decide_at_once('me', 'other'))

    def test_nobody_else(self):
        self.assertIs(Decision.KEEP, ownership.decide_at_once('me', None))


class DecideOnInstanceTestCase(base.BaseTestCase):

    def _decide(self, desired: str | None, is_mine: bool = False,
                **circumstances) -> Decision:
        return ownership.decide_on_instance('me', ownership.Occupied(
            desired, is_mine, **circumstances))

    def test_mine(self):
        self.assertIs(Decision.KEEP_INSTANCE, self._decide('me', True))
        self.assertIs(Decision.KEEP_INSTANCE, self._decide('other', True))

    def test_of_another(self):
        self.assertIs(Decision.LEAVE_INSTANCE, self._decide('other'))
        self.assertIs(Decision.LEAVE_INSTANCE, self._decide('me'))

    def test_of_a_dead_one(self):
        self.assertIs(Decision.FAIL_OVER, self._decide('me', is_dead=True))
        self.assertIs(Decision.LEAVE_INSTANCE,
                      self._decide('other', is_dead=True))
        for trust in ownership.Trust.STARTING, ownership.Trust.BLACKOUT:
            self.assertIs(Decision.LEAVE_INSTANCE, self._decide(
                'me', is_dead=True, trust=trust))

    def test_mine_that_may_follow(self):
        row = ownership.Row('Me')
        self.assertIs(Decision.OFFER_INSTANCE, self._decide(
            'other', True, row=row, may_follow=True))
        for desired in 'me', None:
            self.assertIs(Decision.KEEP_INSTANCE, self._decide(
                desired, True, row=row, may_follow=True))
        self.assertIs(Decision.KEEP_INSTANCE, self._decide(
            'other', True, row=row, may_follow=True,
            trust=ownership.Trust.BLACKOUT))
        # Its row has not come here yet.
        self.assertIs(Decision.KEEP_INSTANCE, self._decide(
            'other', True, row=ownership.Row('other'), may_follow=True))

    def test_offered(self):
        offered = {'host': 'other', 'row': ownership.Row('Other', 'me')}
        self.assertIs(Decision.TAKE_INSTANCE, self._decide(
            'me', may_follow=True, **offered))
        self.assertIs(Decision.LEAVE_INSTANCE, self._decide('me', **offered))
        self.assertIs(Decision.LEAVE_INSTANCE, self._decide(
            'other', may_follow=True, **offered))
        self.assertIs(Decision.LEAVE_INSTANCE, self._decide(
            'me', may_follow=True, trust=ownership.Trust.BLACKOUT, **offered))
        # By one that it is not with any more.
        self.assertIs(Decision.LEAVE_INSTANCE, self._decide(
            'me', may_follow=True, host='third', row=offered['row']))
        for taker in None, '', 'third':
            self.assertIs(Decision.LEAVE_INSTANCE, self._decide(
                'me', may_follow=True, host='other',
                row=ownership.Row('other', taker)))


class DecisionTestCase(base.BaseTestCase):

    def test_what_is_taken_is_listed(self):
        for decision in Decision:
            if decision.takes or decision.takes_instance or decision.offers:
                self.assertTrue(decision.lists)

    def test_what_is_left_is_not_listed(self):
        self.assertEqual(
            {Decision.WAIT, Decision.LEAVE, Decision.LEAVE_INSTANCE},
            {decision for decision in Decision if not decision.lists})
