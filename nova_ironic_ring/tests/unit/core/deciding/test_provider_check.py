# SPDX-License-Identifier: Apache-2.0

"""Tests of the check of the providers of unchanged nodes."""

from collections.abc import Collection, Mapping

from oslotest import base

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import provider_check
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust


class ProviderCheckTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.check = provider_check.ProviderCheck(0)

    def seen(self, now: float = 1, trusted: bool = True,
             **states: membership.State) -> provider_check.Moment:
        return provider_check.Moment(now, observation.Standing(
            membership.Membership(states=states),
            trust.Trust.FULL if trusted else trust.Trust.STARTING), 'me')

    def assertWrong(self, changes: updates.Changes,
                    providers: Mapping[str, bool],
                    seen: provider_check.Moment, to_tell: Collection[str] = (),
                    to_update: Collection[str] = ()) -> None:
        """See what a check finds."""
        self.assertEqual(
            provider_check.Wrong(frozenset(to_tell), frozenset(to_update)),
            self.check.find(changes, providers, seen))

    def unchanged(self, *nodes: str, given: tuple[str, ...] = ()
                  ) -> updates.Changes:
        return updates.Changes(unchanged=frozenset(nodes + given),
                               given=frozenset(given))

    def test_offered_node_without_provider(self):
        self.assertWrong(
            updates.Changes(offers=frozenset(('disabled', 'gone'))),
            {'disabled': True}, self.seen(me=membership.State.MEMBER),
            to_update=['gone'])

    def test_after_a_start(self):
        now = self.seen(me=membership.State.MEMBER)
        self.assertTrue(self.check.is_due(now))
        unchanged = self.unchanged('good', 'disabled', 'gone')
        self.assertWrong(
            unchanged, {'good': False, 'disabled': True}, now,
            to_tell=['disabled'], to_update=['gone'])
        # Placement may not have been told.
        self.assertTrue(self.check.is_due(now))
        self.assertWrong(
            unchanged, {'good': False, 'disabled': False}, now,
            to_update=['gone'])
        self.assertFalse(self.check.is_due(now))

    def test_placement_is_told_in_vain(self):
        now = self.seen(me=membership.State.MEMBER)
        unchanged, providers = self.unchanged('disabled'), {'disabled': True}
        self.assertWrong(unchanged, providers, now, to_tell=['disabled'])
        self.check.doubt_told()
        self.assertWrong(unchanged, providers, now, to_tell=['disabled'])
        self.assertWrong(unchanged, providers, now, to_update=['disabled'])
        self.assertFalse(self.check.is_due(now))

    def test_many(self):
        now = self.seen(me=membership.State.MEMBER)
        nodes = [f'node-{number:03}' for number in range(150)]
        providers = dict.fromkeys(nodes, True)
        told = self.check.find(
            self.unchanged(*nodes), providers, now).to_tell
        self.assertEqual(100, len(told))
        providers |= dict.fromkeys(told, False)
        self.assertWrong(self.unchanged(*nodes), providers, now,
                         to_tell=set(nodes) - told)

    def test_service_that_is_deleted(self):
        self.assertWrong(updates.Changes(), {}, self.seen(
            me=membership.State.MEMBER, a=membership.State.ABSENT))
        self.assertTrue(self.check.is_due(
            self.seen(me=membership.State.MEMBER)))

    def test_providers_that_may_just_be_deleted(self):
        self.check.doubt(100)
        self.check.doubt(50)
        for now, is_due in ((99, True), (100, False)):
            seen = self.seen(now, me=membership.State.MEMBER)
            self.assertWrong(updates.Changes(), {}, seen)
            self.assertIs(is_due, self.check.is_due(seen))

    def test_nodes_that_came(self):
        seen = self.seen(me=membership.State.MEMBER,
                         a=membership.State.MEMBER)
        self.assertWrong(updates.Changes(), {}, seen)
        self.check.came([planner.Claim(owner='A')], seen, 100)
        self.assertFalse(self.check.is_due(seen))
        # One that is disabled is in no ring, and its record may be deleted
        # before it is drained.
        self.check.came([planner.Claim(owner='b')], seen, 100)
        self.assertTrue(self.check.is_due(seen))

    def test_disabled_service(self):
        providers = {'good': True, 'enabled': False, 'given': False}
        changes = self.unchanged('good', 'enabled', given=('given', 'gone'))
        now = self.seen(me=membership.State.DISABLED)
        self.assertWrong(changes, providers, now,
                         to_tell=['enabled'], to_update=['gone'])
        # Nobody has taken it for two minutes.
        providers['enabled'] = True
        later = self.seen(120, me=membership.State.DISABLED)
        self.assertWrong(changes, providers, later, to_update=['gone'])
        self.assertTrue(self.check.is_due(later))
        self.assertWrong(
            changes, providers, self.seen(
                121, me=membership.State.DISABLED),
            to_tell=['given'], to_update=['gone'])

    def test_disabled_service_that_gives_nothing_away_yet(self):
        now = self.seen(trusted=False, me=membership.State.DISABLED)
        self.assertWrong(self.unchanged('enabled'), {'enabled': False}, now)
        self.assertTrue(self.check.is_due(now))
