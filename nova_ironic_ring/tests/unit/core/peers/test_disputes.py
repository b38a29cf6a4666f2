# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from nova_ironic_ring.core.peers import disputes
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model

Reason, State = disputes.Reason, membership.State
TIMEOUT = 3


class DisputesTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.known = disputes.Disputes()
        self.states = {'a': State.MEMBER, 'b': State.MEMBER}
        #: Who owns the free nodes that this service desires and has not.
        self.rows: dict[str, str] = {}
        self.mine: set[str] = set()
        self.tracked = {'1', '2', '3'}
        #: What has ended by the last look.
        self.ended: list[disputes.Ended] = []

    def _look(self, at: float = 0) -> list[disputes.Dispute]:
        looked = disputes.look(self.known, disputes.Evidence(
            {node: model.Row(owner) for node, owner in self.rows.items()},
            self.mine, self.tracked,
            membership.Membership(frozenset(), self.states)), at, TIMEOUT)
        self.known, self.ended = looked.known, list(looked.ended)
        return list(looked.new)

    def _take(self, **owners: str) -> None:
        """Take nodes, whose names begin with a letter here, from owners."""
        self.known = self.known.noted(
            {node.lstrip('n'): owner for node, owner in owners.items()},
            {'1', '2', '3'})

    def _have_taken_back(self, at: float) -> list[disputes.Dispute]:
        """Take a node of a's, and have a take it back."""
        self._take(n1='a')
        self.rows['1'] = 'A'
        return self._look(at)

    def test_nothing_was_taken(self):
        self.rows['1'] = 'a'
        self.assertEqual([], self._look())
        self.assertFalse(self.known.is_with('a', 0))

    def test_node_that_stays(self):
        self._take(n1='a')
        self.mine.add('1')
        self.assertEqual([], self._look())
        self.assertEqual({'1': 'a'}, self.known.taken)

    def test_node_that_is_taken_back(self):
        self._take(n1='a', n2='a', n3='b')
        self.mine.add('3')
        self.rows |= {'2': 'a', '1': 'A'}
        self.assertEqual(
            [disputes.Dispute('a', ['1', '2'])], self._look(100))
        self.assertEqual(['a'], self.known.hosts)
        for host, at, expected in (('a', 129.5, True), ('a', 130, False),
                                   ('b', 100, False)):
            self.assertIs(expected, self.known.is_with(host, at))
        self.assertEqual({'3': 'b'}, self.known.taken)

    def test_twice_as_long_each_further_time(self):
        for at, end in ((0, 30), (40, 100), (159, 279)):
            self.assertEqual(at == 0, bool(self._have_taken_back(at)))
            self.assertEqual([], self.ended)
            self.assertTrue(self.known.is_with('a', end - 1))
            self.assertFalse(self.known.is_with('a', end))

    def test_nothing_more_is_taken_back(self):
        self._have_taken_back(0)
        # It takes what it has waited for, and that stays with it.
        self._take(n2='a')
        self.mine.add('2')
        for at in 1, 30, 59:
            self._look(at)
            self.assertEqual([], self.ended)
            self.assertEqual(['a'], self.known.hosts)
        self._look(60)
        self.assertEqual(
            [disputes.Ended('a', Reason.QUIET, State.MEMBER)], self.ended)
        self.assertEqual([], self.known.hosts)
        # Of a new one it is said again, and it lasts no longer.
        self.assertEqual([disputes.Dispute('a', ['1'])],
                         self._have_taken_back(100))
        self.assertFalse(self.known.is_with('a', 130))

    def test_node_that_goes_to_nobody_who_is_known(self):
        self._take(n1='a')
        self.assertEqual([], self._look())
        self.assertEqual({}, self.known.taken)

    def test_node_that_the_tracker_did_not_take(self):
        self.tracked.clear()
        self.assertEqual([], self._have_taken_back(0))
        self.assertFalse(self.known.is_with('a', 0))

    def test_third_service_once(self):
        self._take(n1='a')
        self.rows['1'] = 'b'
        self.assertEqual([], self._look())
        self._take(n1='b')
        self.rows['1'] = 'a'
        self.assertEqual([disputes.Dispute('a', ['1'])], self._look(0))
        # With both of those that have had it.
        self.assertEqual(['a', 'b'], self.known.hosts)
        self.assertTrue(self.known.is_with('b', 29))
        # One of them has taken nothing back, until it does.
        self._take(n2='b')
        self.rows['2'] = 'b'
        self.assertEqual([disputes.Dispute('b', ['2'])], self._look(1))
        self.assertTrue(self.known.is_with('b', 60))

    def test_service_that_is_back_once(self):
        # It has its nodes from before its first heartbeat.
        self.states['a'] = State.ABSENT
        self.assertEqual([], self._have_taken_back(0))
        self.assertFalse(self.known.is_with('a', 0))
        self.assertEqual(
            [disputes.Dispute('a', ['1'])], self._have_taken_back(1))

    def test_service_that_is_back_once_and_once_again_long_after(self):
        self.states['a'] = State.ABSENT
        for at in 0, 60 * 86400:
            self.assertEqual([], self._have_taken_back(at))
        self.rows.clear()
        self._look(120 * 86400)
        self.assertEqual(disputes.Disputes(), self.known)

    def test_end_of_what_was_not_said(self):
        self._take(n1='a')
        self.rows['1'] = 'b'
        self._look()
        self._take(n1='b')
        self.rows['1'] = 'a'
        self._look()
        self._look(60)
        self.assertEqual([], self.known.hosts)
        self.assertEqual(['a'], [each.host for each in self.ended])

    def test_service_that_was_restarted(self):
        self._have_taken_back(0)
        self.states['a'] = State.ABSENT
        self.assertEqual([], self._look(1))
        self.assertEqual(
            [disputes.Ended('a', Reason.STATE_CHANGED, State.ABSENT)],
            self.ended)
        self.assertFalse(self.known.is_with('a', 2))
        self._look(2)
        self.assertEqual([], self.ended)
        # From the beginning.
        self.states['a'] = State.MEMBER
        self.assertEqual([disputes.Dispute('a', ['1'])],
                         self._have_taken_back(10))
        self.assertFalse(self.known.is_with('a', 40))

    def test_stays_where_nothing_is_taken_any_more(self):
        self._have_taken_back(0)
        self._look(1)
        self.assertTrue(self.known.is_with('a', 29))

    def test_forgotten(self):
        self._have_taken_back(0)
        self._take(n2='a')
        self.known = self.known.forgotten()
        self.rows['2'] = 'a'
        self.assertEqual([], self._look(1))
        # But not what came of it before.
        self.assertTrue(self.known.is_with('a', 1))

    def test_third_service_is_forgotten_as_well(self):
        self._take(n1='a')
        self.rows['1'] = 'b'
        self._look()
        self.known = self.known.forgotten()
        self._take(n1='b')
        self.rows['1'] = 'a'
        self.assertEqual([], self._look())

    def test_offered_nodes_may_go_to_anybody(self):
        self._take(n1='a')
        self.known = self.known.noted({}, {'3'})
        self.rows['1'] = 'a'
        self.assertEqual([], self._look())

    def test_end_and_another_one_at_once(self):
        self._have_taken_back(0)
        self.states['a'] = State.DISABLED
        self.assertEqual([disputes.Dispute('a', ['1'])],
                         self._have_taken_back(1))
        self.assertEqual(['a'], [each.host for each in self.ended])
        self.assertFalse(self.known.is_with('a', 31))

    def test_all_have_ended(self):
        self._have_taken_back(0)
        self.assertEqual(
            [disputes.Ended('a', Reason.OPTIONS_CHANGED, State.MEMBER)],
            self.known.ended(Reason.OPTIONS_CHANGED, membership.Membership(
                frozenset(), self.states)))

    def test_nothing_to_note(self):
        self.assertIs(self.known, self.known.noted({}, ['1']))
