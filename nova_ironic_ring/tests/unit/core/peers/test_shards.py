# SPDX-License-Identifier: Apache-2.0

"""Which member each shard is for."""

import collections
import random

from oslotest import base

from nova_ironic_ring.core.peers import shards


def _names(number):
    return [f'shard-{each}' for each in range(number)]


def _hold(dealt, members):
    """Have members hold what is for them."""
    hands = {member: set() for member in members}
    for name, owner in dealt.items():
        hands[owner].add(name)
    return {member: frozenset(hand) for member, hand in hands.items()}


class DealTestCase(base.BaseTestCase):
    """Joins and leaves, from what the members hold."""

    def _check(self, names, held, dealt):
        """See that everything is dealt, and as evenly as can be."""
        self.assertEqual(set(names), set(dealt))
        counts = collections.Counter(dealt.values())
        self.assertLessEqual(counts.keys(), held.keys())
        self.assertLessEqual(max(counts.values()), -(-len(names) // len(held)))
        self.assertGreaterEqual(
            min(counts[member] for member in held), len(names) // len(held))

    def _moves(self, names, before, now):
        return sum(before[name] != now[name] for name in names)

    def test_joins_and_leaves_move_what_they_must(self):
        chosen = random.Random(1)
        for number in range(3, 101):
            members = [f'host-{each}' for each in range(number)]
            for names in (_names(20 * number), _names(20 * number + 7),
                          _names(331)):
                held = {member: frozenset(names[each::number])
                        for each, member in enumerate(members)}
                first = shards.deal(names, held)
                self._check(names, held, first)
                self.assertEqual(held, _hold(first, members))

                joined = {**held, 'new': frozenset()}
                dealt = shards.deal(names, joined)
                self._check(names, joined, dealt)
                # The new one must get the even share, rounded down.
                self.assertEqual(len(names) // (number + 1),
                                 self._moves(names, first, dealt))

                gone = chosen.choice(members)
                left = {member: hand for member, hand in held.items()
                        if member != gone}
                dealt = shards.deal(names, left)
                self._check(names, left, dealt)
                # What the other had must go to others.
                self.assertEqual(len(held[gone]),
                                 self._moves(names, first, dealt))

    def test_many_changes_one_after_the_other(self):
        chosen, names = random.Random(2), _names(200)
        held = {'host-0': frozenset(), 'host-1': frozenset()}
        before = shards.deal(names, held)
        held = _hold(before, held)
        for number in range(2, 300):
            if len(held) < 3 or chosen.random() < 0.55:
                held = {**held, f'host-{number}': frozenset()}
                must = len(names) // len(held)
            else:
                gone = chosen.choice(sorted(held))
                must = len(held[gone])
                held = {member: hand for member, hand in held.items()
                        if member != gone}
            dealt = shards.deal(names, held)
            self._check(names, held, dealt)
            self.assertEqual(must, self._moves(names, before, dealt))
            before, held = dealt, _hold(dealt, held)

    def test_return_of_one_that_says_what_it_held_before(self):
        names, members = _names(60), ['a', 'b', 'c']
        held = _hold(shards.deal(names, dict.fromkeys(members, ())), members)
        others = {'a': held['a'], 'b': held['b']}
        without = shards.deal(names, others)
        back = {**_hold(without, others), 'c': held['c']}
        dealt = shards.deal(names, back)
        self._check(names, back, dealt)
        self.assertEqual(20, self._moves(names, without, dealt))

    def test_what_is_held_by_others_or_is_no_more(self):
        self.assertEqual({'x': 'a'}, shards.deal(
            ['x'], {'a': ['gone', 'x']}))
        self.assertEqual({'x': 'a'}, shards.deal(['x'], {'a': ()}))

    def test_first_deal(self):
        for number in (1, 3, 10, 30):
            held = dict.fromkeys(map(str, range(number)), ())
            names = _names(20 * number + 3)
            self._check(names, held, shards.deal(names, held))

    def test_nobody(self):
        self.assertEqual({}, shards.deal(['x'], {}))

    def test_order_makes_no_difference(self):
        names = _names(50)
        held = {'a': {'shard-1', 'shard-2'}, 'b': {'shard-2'}, 'c': set()}
        self.assertEqual(shards.deal(names, held), shards.deal(
            list(reversed(names)), dict(reversed(held.items()))))


class SayTestCase(base.BaseTestCase):
    """What the members say that they hold, one after the other."""

    def _converge(self, deal, chosen):
        """Have members look and say, in any order, until nothing changes.

        :returns: the deals on the way
        """
        found = [deal]
        for _ in range(10):
            before = deal
            members = sorted(deal.held)
            chosen.shuffle(members)
            for member in members:
                deal = shards.Deal(deal.names, {
                    **deal.held, member: deal.to_say(member)})
                found.append(deal)
            if deal == before:
                return found
        self.fail('They do not agree.')

    def _changed(self, chosen, stale):
        """Have members agree, and then come and go."""
        number = chosen.randint(2, 8)
        names = frozenset(_names(chosen.choice((9, 16, 37, 64))))
        deal = self._converge(shards.Deal(names, {
            f'host-{each}': frozenset() for each in range(number)}),
            chosen)[-1]
        held = dict(deal.held)
        for each in range(chosen.randint(1, 3)):
            if chosen.random() < 0.5 or len(held) < 2:
                held[f'new-{each}'] = frozenset(
                    chosen.sample(sorted(map(shards.code, names)), 4)
                    if stale else ())
            else:
                del held[chosen.choice(sorted(held))]
        return shards.Deal(names, held)

    def _assert_all_said(self, deal):
        for member, held in deal.held.items():
            self.assertEqual(
                held, frozenset(map(shards.code, deal.of(member))))

    def test_a_join_or_a_death_changes_the_owners_once(self):
        """Who has said something already is dealt the same as before."""
        for seed in range(200):
            chosen = random.Random(seed)
            deal = self._changed(chosen, stale=False)
            found = self._converge(deal, chosen)
            self._assert_all_said(found[-1])
            # With several changes at once, a shard may go another way.
            moved = sum(each.owners != deal.owners for each in found)
            self.assertLessEqual(moved, len(found) // 2)

    def test_members_that_say_what_others_hold(self):
        for seed in range(200):
            chosen = random.Random(seed)
            self._assert_all_said(self._converge(
                self._changed(chosen, stale=True), chosen)[-1])

    def test_giver_lets_go_before_taker_holds(self):
        names = frozenset(_names(4))
        codes = frozenset(map(shards.code, names))
        deal = shards.Deal(names, {'a': codes, 'b': frozenset()})
        self.assertEqual(2, len(deal.of('b')))
        self.assertEqual(frozenset(), deal.to_say('b'))
        let_go = shards.Deal(names, {'a': deal.to_say('a'), 'b': frozenset()})
        self.assertEqual(deal.owners, let_go.owners)
        self.assertEqual(frozenset(map(shards.code, deal.of('b'))),
                         let_go.to_say('b'))

    def test_among(self):
        names = frozenset(_names(4))
        deal = shards.Deal(names, {'a': frozenset(map(shards.code, names))})
        self.assertEqual(names, deal.among(['b']).of('b'))
        self.assertEqual(deal, deal.among(['a']))
