# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

from oslotest import base

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def _view(*members: str, names: str = '', **places: str) -> view.View:
    deal = shards.Deal(frozenset(names)) if names else None
    return view.View(
        trust=trust.Trust.FULL, ring=ring.Ring(members, 32, deal, places))


class MergedTestCase(base.BaseTestCase):
    """What passes and looks that run at the same time leave behind."""

    def setUp(self):
        super().setUp()
        self.before = observation.Memory(
            watch=membership.Watch(10), view=_view('a', 'b'))

    def _after(self, at: float, *members: str, **changes: object
               ) -> observation.Memory:
        """Return a copy after a look at the services."""
        return dataclasses.replace(
            self.before.copied(), watch=membership.Watch(at),
            view=_view(*members), **changes)

    def test_nothing_else_has_changed(self):
        after = self._after(20, 'a')
        self.assertIs(after, self.before.merged(self.before, after))

    def test_peers_are_those_of_the_newest_look(self):
        older = self._after(20, 'a', 'b', 'c', nowhere=frozenset({'i'}))
        newer = self._after(30, 'a', kept={'k'})
        for first, last in (older, newer), (newer, older):
            found = first.merged(self.before, last)
            self.assertEqual(30, found.watch.at)
            self.assertEqual({'a'}, found.view.members)
            self.assertEqual({'a'}, found.view.ring.members)
            # What each has found besides stays.
            self.assertEqual({'i'}, found.nowhere)
            self.assertEqual({'k'}, found.kept)

    def test_who_has_not_looked_changes_nothing_of_the_peers(self):
        now = dataclasses.replace(
            self.before.copied(), view=_view('a'))
        found = now.merged(self.before, self.before.copied())
        self.assertEqual({'a'}, found.view.members)

    def test_nova_that_did_not_answer(self):
        failed = self.before.copied()
        failed.fail(25)
        # Nobody has got an answer since.
        found = self.before.copied().merged(self.before, failed)
        self.assertIs(trust.Trust.BLACKOUT, found.view.trust)
        # A look has.
        found = self._after(30, 'a').merged(self.before, failed)
        self.assertIs(trust.Trust.FULL, found.view.trust)
        self.assertEqual({'a'}, found.view.members)
        self.assertTrue(found.own_work.is_failing)

    def test_heartbeats_that_were_lost(self):
        """A look that ends after a failure does not count the time before."""
        services = [model.Service(host, NOW) for host in ('a', 'b')]
        self.before = dataclasses.replace(
            self.before, settings=settings.Settings('me'),
            watch=membership.Watch().look(services, 10))
        failed = self.before.copied()
        failed.fail(25)
        heard = dataclasses.replace(
            services[1], last_seen=NOW + datetime.timedelta(seconds=20))
        looked = dataclasses.replace(
            self.before.copied(), view=_view('a', 'b'),
            watch=self.before.watch.look([services[0], heard], 30))
        for first, last in (looked, failed), (failed, looked):
            found = first.merged(self.before, last)
            self.assertEqual(30, found.watch.at)
            self.assertEqual(5, found.watch.silence('a'))
            self.assertEqual(0, found.watch.silence('b'))
        # Who is absent by the newer look stays so.
        looked.view = dataclasses.replace(
            looked.view, states={'a': membership.State.ABSENT})
        for first, last in (looked, failed), (failed, looked):
            found = first.merged(self.before, last)
            self.assertEqual(20, found.watch.silence('a'))

    def test_shards_that_a_pass_has_listed(self):
        self.before.view = _view('a', names='xy', gone='x', n='x')
        older = dataclasses.replace(
            self.before.copied(), watch=membership.Watch(20),
            view=_view('a', names='xz', n='z', new='x'))
        newer = dataclasses.replace(
            self.before.copied(), watch=membership.Watch(30),
            view=_view('a', 'b', names='xy', gone='x', n='x'))
        found = newer.merged(self.before, older).view.ring
        self.assertEqual({'a', 'b'}, found.members)
        self.assertEqual({'n': 'z', 'new': 'x'}, found.places)
        assert found.deal is not None
        self.assertEqual({'x', 'z'}, found.deal.names)
