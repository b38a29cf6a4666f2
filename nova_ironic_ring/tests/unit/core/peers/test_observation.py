# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

from oslotest import base

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def _standing(*members: str, names: str = '', **places: str
              ) -> observation.Standing:
    deal = shards.Deal(frozenset(names)) if names else None
    return observation.Standing(
        membership.Membership(frozenset(members)), trust.Trust.FULL,
        ring.Ring(members, 32, deal, places))


class MergedTestCase(base.BaseTestCase):
    """What passes and looks that run at the same time leave behind."""

    def setUp(self):
        super().setUp()
        self.before = observation.Memory(
            watch=membership.Watch(10), standing=_standing('a', 'b'))

    def _after(self, at: float, *members: str, **changes: object
               ) -> observation.Memory:
        """Return a copy after a look at the services."""
        return dataclasses.replace(
            self.before.copied(), watch=membership.Watch(at),
            standing=_standing(*members), **changes)

    def test_nothing_else_has_changed(self):
        after = self._after(20, 'a')
        self.assertIs(after, self.before.merged(self.before, after))

    def test_peers_are_those_of_the_newest_look(self):
        older = self._after(20, 'a', 'b', 'c', nowhere=frozenset({'i'}))
        newer = self._after(30, 'a', kept={'k'})
        for first, last in (older, newer), (newer, older):
            found = first.merged(self.before, last)
            self.assertEqual(30, found.watch.at)
            self.assertEqual({'a'}, found.standing.membership.members)
            self.assertEqual({'a'}, found.standing.ring.members)
            # What each has found besides stays.
            self.assertEqual({'i'}, found.nowhere)
            self.assertEqual({'k'}, found.kept)

    def test_who_has_not_looked_changes_nothing_of_the_peers(self):
        now = dataclasses.replace(
            self.before.copied(), standing=_standing('a'))
        found = now.merged(self.before, self.before.copied())
        self.assertEqual({'a'}, found.standing.membership.members)

    def test_nova_that_did_not_answer(self):
        failed = self.before.copied()
        failed.fail(25)
        # Nobody has got an answer since.
        found = self.before.copied().merged(self.before, failed)
        self.assertIs(trust.Trust.BLACKOUT, found.standing.trust)
        # A look has.
        found = self._after(30, 'a').merged(self.before, failed)
        self.assertIs(trust.Trust.FULL, found.standing.trust)
        self.assertEqual({'a'}, found.standing.membership.members)
        self.assertTrue(found.own_work.is_failing)

    def test_services_that_only_a_pass_has_read(self):
        service = model.Service('elsewhere', NOW)
        older = dataclasses.replace(
            self._after(20, 'a'), watch=membership.Watch(20).look(
                [service], 20))
        found = self._after(30, 'a').merged(self.before, older)
        self.assertEqual(30, found.watch.at)
        self.assertEqual(10, found.watch.silence('elsewhere'))

    def test_shards_that_a_pass_has_listed(self):
        self.before.standing = _standing('a', names='xy', gone='x', n='x')
        older = dataclasses.replace(
            self.before.copied(), watch=membership.Watch(20),
            standing=_standing('a', names='xz', n='z', new='x'))
        newer = dataclasses.replace(
            self.before.copied(), watch=membership.Watch(30),
            standing=_standing('a', 'b', names='xy', gone='x', n='x'))
        found = newer.merged(self.before, older).standing.ring
        self.assertEqual({'a', 'b'}, found.members)
        self.assertEqual({'n': 'z', 'new': 'x'}, found.places)
        assert found.deal is not None
        self.assertEqual({'x', 'z'}, found.deal.names)
