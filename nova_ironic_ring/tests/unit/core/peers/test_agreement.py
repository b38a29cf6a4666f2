# SPDX-License-Identifier: Apache-2.0

"""Tests of who lastingly acknowledges another ring."""

import dataclasses
import datetime
from typing import Any

import ddt
from oslotest import base

from nova_ironic_ring.core.peers import agreement
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings

State = membership.State
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
ME = settings.Settings('Me', handover_timeout=120)
RACK = model.Scope('rack')
#: Seconds after which a service that differs does so lastingly: four passes.
LONG = 240


class _TestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.current = ME
        self.cycle = 60.0
        self.state = State.MEMBER
        self.agreement = agreement.Agreement()

    def look(self, at: float, ring: str | None = 'other', **fields: Any
             ) -> tuple[float | None, bool]:
        """Look at the service a, while this one acknowledges ``mine``.

        :param at: when it is looked
        :param ring: the ring that the service acknowledges
        :returns: since when it is known to differ, and whether for too long
        """
        known = view.View(states={'a': self.state})
        service = model.Service('A', NOW, said=model.Member(**{
            'last_pass': model.LastPass(60, NOW), 'scope': model.Scope(),
            'ring': known.ring.fingerprint(self.current.scope)
            if ring == 'mine' else ring, **fields}))
        self.agreement = self.agreement.look(
            dataclasses.replace(known, services={'a': service}), at,
            self.cycle, self.current)
        self.assertLessEqual(self.agreement.lasting,
                             self.agreement.since.keys())
        return (self.agreement.since.get(service.name),
                service.name in self.agreement.lasting)


@ddt.ddt
class LookTestCase(_TestCase):

    @ddt.data(
        # Each look: when, what ring, since when it differs, whether for long
        [(0, 'other', 0, False), (239, 'other', 0, False),
         (240, 'other', 0, True), (999, 'other', 0, True)],
        # Whatever other ring it is.
        [(0, 'other', 0, False), (120, 'third', 0, False),
         (240, 'fourth', 0, True)],
        [(0, 'mine', None, False), (240, 'mine', None, False)],
        # It agrees again, and each time anew.
        [(0, 'other', 0, False), (239, 'mine', None, False),
         (240, 'other', 240, False), (479, 'other', 240, False),
         (480, 'other', 240, True), (481, 'mine', None, False)],
        # One that acknowledges none stays as it was.
        [(0, None, None, False), (240, None, None, False),
         (241, 'other', 241, False)],
        [(0, 'other', 0, False), (60, None, 0, False), (240, None, 0, True),
         (300, 'other', 0, True), (360, None, 0, True),
         (420, 'mine', None, False), (480, None, None, False)])
    def test_rings(self, looks):
        self.assertEqual(
            [tuple(found) for _, _, *found in looks],
            [self.look(at, ring) for at, ring, *_ in looks])

    @ddt.data(State.MEMBER, State.NOT_A_PEER)
    def test_who_divides_the_same_nodes(self, state):
        self.state = state
        self.look(0)
        self.assertEqual((0, True), self.look(LONG))

    @ddt.data(*(each for each in State if each not in (
        State.MEMBER, State.NOT_A_PEER)))
    def test_who_does_not(self, state):
        self.look(0)
        self.look(LONG)
        self.state = state
        self.assertEqual((None, False), self.look(LONG + 1))

    @ddt.data(
        {'scope': RACK}, {'scope': model.Scope(None, 'shard')},
        # It runs Nova's own driver by now.
        {'scope': None, 'last_pass': None, 'ring': None})
    def test_other_scope(self, fields):
        for self.state in State.MEMBER, State.NOT_A_PEER:
            self.look(0)
            self.assertEqual((0, True), self.look(LONG))
            self.assertEqual((None, False), self.look(LONG + 1, **fields))

    def test_same_scope(self):
        self.current = dataclasses.replace(ME, scope=RACK)
        scope = model.Scope('Rack', '')
        self.look(0, scope=scope)
        self.assertEqual((0, True), self.look(LONG, scope=scope))

    def test_service_that_is_gone(self):
        self.look(0)
        self.look(LONG)
        self.agreement = self.agreement.look(
            view.View(), LONG, 60, self.current)
        self.assertEqual(agreement.Agreement(), self.agreement)

    def test_this_one(self):
        self.current = dataclasses.replace(ME, host='a')
        self.assertEqual((None, False), self.look(0))

    def test_each_for_itself(self):
        mine = view.View().ring.fingerprint(ME.scope)
        known = view.View({
            host.lower(): model.Service(host, NOW, said=model.Member(
                model.LastPass(60, NOW), model.Scope(), ring=ring))
            for host, ring in (('a', 'other'), ('b', mine), ('C', 'other'))},
            dict.fromkeys('abc', State.MEMBER))
        found = agreement.Agreement({'a': 0.0}, frozenset('a')).look(
            known, 9, 60, ME)
        self.assertEqual(agreement.Agreement(
            {'a': 0.0, 'c': 9}, frozenset('a')), found)


@ddt.ddt
class LongTestCase(_TestCase):
    """For how long services may differ."""

    @ddt.data(
        # handover timeout, passes of this one, of the other, seconds
        (120, 60, 60, 240), (120, 10, 10, 120), (300, 60, 60, 300),
        (120, 100, 60, 400), (120, 60, 200, 800))
    @ddt.unpack
    def test_seconds(self, timeout, own, other, seconds):
        self.current = dataclasses.replace(ME, handover_timeout=timeout)
        self.cycle = own
        said = model.LastPass(other, NOW)
        self.look(0, last_pass=said)
        self.assertEqual((0, False), self.look(seconds - 1, last_pass=said))
        self.assertEqual((0, True), self.look(seconds, last_pass=said))

    def test_passes_that_take_longer_later(self):
        self.look(0)
        self.look(LONG)
        self.cycle = 999
        self.assertEqual((0, True), self.look(LONG + 1))


class RestartedTestCase(_TestCase):
    """After what was seen or said was out of date."""

    def test_one_that_differs(self):
        self.look(0)
        self.agreement = self.agreement.restarted()
        self.assertEqual((239, False), self.look(239))
        self.assertEqual((239, False), self.look(478))
        self.assertEqual((239, True), self.look(479))

    def test_one_that_has_lastingly_differed(self):
        self.look(0)
        self.look(LONG)
        self.agreement = self.agreement.restarted()
        self.assertEqual({'a'}, self.agreement.lasting)
        # It is not told again, nor that it agrees, while it says nothing.
        self.assertEqual((290, True), self.look(290, None))
        self.assertEqual((290, True), self.look(300))
        self.assertEqual((None, False), self.look(301, 'mine'))
