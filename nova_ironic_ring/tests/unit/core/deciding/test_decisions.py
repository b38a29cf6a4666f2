# SPDX-License-Identifier: Apache-2.0

import itertools

import ddt
from oslotest import base

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.values import model

State = membership.State
MINE = model.Row('Me')
THEIRS = model.Row('other')
BLACKOUT, STARTING = Trust.BLACKOUT, Trust.STARTING


@ddt.ddt
class FreeTestCase(base.BaseTestCase):
    """The decision table of a free node, a line for each rule."""

    def _decide(self, desired, row, circumstances) -> decisions.Verdict:
        return decisions.decide(
            'me', decisions.Free(desired, row, **circumstances))

    @ddt.data(
        # The node is this service's.
        ('me', MINE, {}, Decision.KEEP),
        ('me', MINE, {'trust': BLACKOUT}, Decision.KEEP),
        ('me', MINE, {'trust': STARTING}, Decision.KEEP),
        ('me', MINE, {'is_ending': True}, Decision.KEEP),
        (None, MINE, {}, Decision.KEEP),
        ('other', MINE, {}, Decision.OFFER),
        ('other', MINE, {'is_ending': True}, Decision.OFFER),
        ('other', MINE, {'trust': BLACKOUT}, Decision.OFFER),
        ('other', MINE, {'trust': STARTING}, Decision.OFFER),
        # It is for another service.
        ('third', None, {}, Decision.LEAVE),
        ('third', THEIRS, {}, Decision.LEAVE),
        ('third', THEIRS, {'lets': True}, Decision.LEAVE),
        (None, None, {}, Decision.LEAVE),
        (None, THEIRS, {'lets': True}, Decision.LEAVE),
        # It is for services with a narrower scope, whoever has it.
        ('me', None, {'is_narrowed': True}, Decision.LEAVE),
        ('me', THEIRS, {'is_narrowed': True, 'lets': True}, Decision.LEAVE),
        ('me', THEIRS, {'is_narrowed': True, 'owner': State.ABSENT},
         Decision.LEAVE),
        ('me', MINE, {'is_narrowed': True}, Decision.KEEP),
        ('other', MINE, {'is_narrowed': True}, Decision.OFFER),
        # Nobody has it.
        ('me', None, {}, Decision.CREATE),
        ('me', None, {'trust': BLACKOUT}, Decision.CREATE),
        ('me', None, {'trust': STARTING}, Decision.WAIT),
        ('me', None, {'is_ending': True}, Decision.WAIT),
        # Another has it, and acknowledges the ring of this service.
        ('me', THEIRS, {'lets': True, 'owner': State.MEMBER},
         Decision.TAKE_OFFERED),
        ('me', THEIRS, {'lets': True, 'trust': BLACKOUT},
         Decision.TAKE_OFFERED),
        ('me', THEIRS, {'lets': True, 'owner': State.ABSENT},
         Decision.TAKE_OFFERED),
        ('me', THEIRS, {'lets': True, 'trust': STARTING}, Decision.WAIT),
        ('me', THEIRS, {'lets': True, 'is_ending': True}, Decision.WAIT),
        # It has no member record, and the handover timeout has passed.
        ('me', THEIRS, {'owner': State.MEMBER, 'is_overdue': True},
         Decision.TAKE_SILENT),
        ('me', THEIRS, {'owner': State.DISABLED, 'is_overdue': True},
         Decision.TAKE_SILENT),
        ('me', THEIRS, {'owner': State.NOT_A_PEER, 'is_overdue': True},
         Decision.TAKE_SILENT),
        ('me', THEIRS, {'owner': State.MEMBER, 'is_overdue': True,
                        'trust': BLACKOUT}, Decision.WAIT),
        ('me', THEIRS, {'owner': State.MEMBER, 'is_overdue': True,
                        'is_ending': True}, Decision.WAIT))
    @ddt.unpack
    def test_rule(self, desired, row, circumstances, expected):
        self.assertIs(expected, self._decide(
            desired, row, circumstances).decision)

    def test_live_one_without_a_record_and_another_scope(self):
        for is_overdue, expected in ((False, Decision.WAIT),
                                     (True, Decision.TAKE_SILENT)):
            self.assertIs(expected, self._decide('me', THEIRS, {
                'owner': State.OTHER_SCOPE, 'is_overdue': is_overdue}
            ).decision)

    @ddt.data(*itertools.product(
        (State.ABSENT, State.FORCED_DOWN, State.GONE), (None, False)),
        (State.OTHER_SCOPE, False), (State.NARROWER_SCOPE, False))
    @ddt.unpack
    def test_of_one_that_gives_nothing(self, owner, lets):
        for circumstances, expected in (
                ({}, Decision.TAKE_ABANDONED),
                ({'is_ending': True}, Decision.WAIT),
                ({'trust': BLACKOUT}, Decision.WAIT),
                ({'trust': STARTING}, Decision.WAIT)):
            self.assertIs(expected, self._decide('me', THEIRS, {
                'owner': owner, 'lets': lets, **circumstances}).decision)

    @ddt.data(None, False)
    def test_of_one_whose_passes_fail(self, lets):
        for circumstances, expected in (
                ({}, Decision.TAKE_SILENT),
                ({'trust': BLACKOUT}, Decision.WAIT)):
            self.assertIs(expected, self._decide('me', THEIRS, {
                'owner': State.NOT_WORKING, 'lets': lets, **circumstances
            }).decision)

    @ddt.data(*itertools.product(
        (State.MEMBER, State.DISABLED, State.NOT_A_PEER),
        # However long it acknowledges another ring, or none.
        ((None, False), (False, False), (False, True))))
    @ddt.unpack
    def test_of_one_that_lives(self, owner, said):
        lets, is_overdue = said
        self.assertIs(Decision.WAIT, self._decide('me', THEIRS, {
            'owner': owner, 'lets': lets, 'is_overdue': is_overdue}).decision)

    def test_nothing_is_taken_while_starting_or_ending(self):
        for owner, row, lets, trust, is_ending in itertools.product(
                State, (None, THEIRS), (None, False, True), Trust,
                (False, True)):
            if trust is STARTING or is_ending:
                self.assertIs(Decision.WAIT, self._decide('me', row, {
                    'owner': owner, 'lets': lets, 'trust': trust,
                    'is_overdue': True, 'is_ending': is_ending}).decision)

    @ddt.data(
        ('me', THEIRS, {'trust': STARTING}, 'only started'),
        ('me', THEIRS, {'is_ending': True}, 'about to end'),
        ('me', THEIRS, {'trust': BLACKOUT}, 'not known who is alive'),
        ('me', THEIRS, {'owner': State.MEMBER, 'lets': False},
         'until its owner acknowledges the same ring'),
        ('me', THEIRS, {'owner': State.NOT_WORKING},
         'passes of its owner fail'),
        ('me', THEIRS, {'owner': State.MEMBER}, 'and waited for'))
    @ddt.unpack
    def test_reason(self, desired, row, circumstances, expected):
        self.assertIn(expected, self._decide(
            desired, row, circumstances).why)


@ddt.ddt
class AtOnceTestCase(base.BaseTestCase):
    """The rule of Nova's own driver."""

    @ddt.data(('me', Decision.KEEP), ('other', Decision.LEAVE),
              (None, Decision.KEEP))
    @ddt.unpack
    def test_rule(self, desired, expected):
        self.assertIs(expected, decisions.decide_at_once(
            'me', desired).decision)


@ddt.ddt
class OccupiedTestCase(base.BaseTestCase):
    """The decision table of a node with an instance."""

    def _decide(self, desired, is_mine, circumstances) -> decisions.Verdict:
        return decisions.decide_on_instance(
            'me', decisions.Occupied(desired, is_mine, **circumstances))

    @ddt.data(
        # This service's stay, unless they may go with the ring.
        ('me', {}, Decision.KEEP_INSTANCE),
        ('other', {}, Decision.KEEP_INSTANCE),
        ('other', {'row': MINE}, Decision.KEEP_INSTANCE),
        ('other', {'row': MINE, 'may_follow': True},
         Decision.OFFER_INSTANCE),
        ('me', {'row': MINE, 'may_follow': True}, Decision.KEEP_INSTANCE),
        (None, {'row': MINE, 'may_follow': True}, Decision.KEEP_INSTANCE),
        ('other', {'row': MINE, 'may_follow': True, 'trust': BLACKOUT},
         Decision.KEEP_INSTANCE),
        ('other', {'row': MINE, 'may_follow': True, 'trust': STARTING},
         Decision.KEEP_INSTANCE),
        # Its row has not come here yet.
        ('other', {'row': THEIRS, 'may_follow': True},
         Decision.KEEP_INSTANCE),
        ('other', {'row': None, 'may_follow': True},
         Decision.KEEP_INSTANCE))
    @ddt.unpack
    def test_mine(self, desired, circumstances, expected):
        self.assertIs(expected, self._decide(
            desired, True, circumstances).decision)

    @ddt.data(
        ('other', {}, Decision.LEAVE_INSTANCE),
        ('me', {}, Decision.LEAVE_INSTANCE),
        # Of a dead service.
        ('me', {'is_dead': True}, Decision.FAIL_OVER),
        ('me', {'is_dead': True, 'row': THEIRS}, Decision.FAIL_OVER),
        ('other', {'is_dead': True}, Decision.LEAVE_INSTANCE),
        (None, {'is_dead': True}, Decision.LEAVE_INSTANCE),
        ('me', {'is_dead': True, 'host': None}, Decision.LEAVE_INSTANCE),
        ('me', {'is_dead': True, 'is_elsewhere': True},
         Decision.LEAVE_INSTANCE),
        ('me', {'is_dead': True, 'is_ending': True},
         Decision.LEAVE_INSTANCE),
        ('me', {'is_dead': True, 'trust': BLACKOUT},
         Decision.LEAVE_INSTANCE),
        ('me', {'is_dead': True, 'trust': STARTING},
         Decision.LEAVE_INSTANCE),
        # Of one that lets this service have it.
        ('me', {'may_follow': True, 'row': THEIRS}, Decision.TAKE_INSTANCE),
        ('me', {'row': THEIRS}, Decision.LEAVE_INSTANCE),
        ('other', {'may_follow': True}, Decision.LEAVE_INSTANCE),
        (None, {'may_follow': True}, Decision.LEAVE_INSTANCE),
        ('me', {'may_follow': True, 'host': None}, Decision.LEAVE_INSTANCE),
        ('me', {'may_follow': True, 'is_elsewhere': True},
         Decision.LEAVE_INSTANCE),
        ('me', {'may_follow': True, 'is_ending': True},
         Decision.LEAVE_INSTANCE),
        ('me', {'may_follow': True, 'trust': BLACKOUT},
         Decision.LEAVE_INSTANCE),
        ('me', {'may_follow': True, 'trust': STARTING},
         Decision.LEAVE_INSTANCE),
        ('me', {'may_follow': True, 'is_dead': True}, Decision.FAIL_OVER))
    @ddt.unpack
    def test_of_another(self, desired, circumstances, expected):
        self.assertIs(expected, self._decide(
            desired, False, {'host': 'other', **circumstances}).decision)

    @ddt.data(
        ({'is_elsewhere': True}, 'does not have on this node'),
        ({'trust': BLACKOUT}, 'not known who is alive'),
        ({'is_ending': True}, 'about to end'),
        ({'is_dead': False}, 'of another service'))
    @ddt.unpack
    def test_reason(self, circumstances, expected):
        self.assertIn(expected, self._decide('me', False, {
            'host': 'other', 'is_dead': True, **circumstances}).why)


class DecisionTestCase(base.BaseTestCase):
    """What the decisions mean."""

    def test_what_is_not_listed(self):
        self.assertEqual(
            {Decision.WAIT, Decision.LEAVE, Decision.LEAVE_INSTANCE},
            {decision for decision in Decision if not decision.lists})

    def test_what_takes_a_free_node(self):
        self.assertEqual(
            {Decision.CREATE, Decision.TAKE_OFFERED, Decision.TAKE_ABANDONED,
             Decision.TAKE_SILENT, Decision.TAKE_FOR_BUILD},
            {decision for decision in Decision if decision.takes})

    def test_what_takes_it_without_consent(self):
        self.assertEqual(
            {Decision.TAKE_ABANDONED, Decision.TAKE_SILENT},
            {decision for decision in Decision if decision.forces})

    def test_what_takes_an_instance(self):
        self.assertEqual(
            {Decision.FAIL_OVER, Decision.TAKE_INSTANCE},
            {decision for decision in Decision if decision.takes_instance})

    def test_what_offers(self):
        self.assertEqual(
            {Decision.OFFER, Decision.OFFER_INSTANCE},
            {decision for decision in Decision if decision.offers})


@ddt.ddt
class NewcomerTestCase(base.BaseTestCase):
    """What a newcomer does with all nodes but the first one."""

    @ddt.data(*Decision)
    def test_held_back(self, decision):
        verdict = decisions.Verdict(decision, 'so')
        held = decisions.hold_back(verdict)
        if decision.takes:
            self.assertIs(Decision.WAIT, held.decision)
        elif decision.takes_instance:
            self.assertIs(Decision.LEAVE_INSTANCE, held.decision)
        else:
            self.assertIs(verdict, held)

    def test_lost(self):
        self.assertIs(Decision.LEAVE_INSTANCE, decisions.not_taken().decision)
