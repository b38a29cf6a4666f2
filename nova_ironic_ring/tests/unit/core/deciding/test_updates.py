# SPDX-License-Identifier: Apache-2.0

"""Tests of which nodes are updated in a pass."""

import dataclasses
import uuid

import ddt
from hypothesis import given
from hypothesis import strategies
from oslotest import base

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds

NODE = '00000000-0000-0000-0000-000000000001'
INTERVAL = 600


class UnchangedTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.step = planner.Step(decisions.Decision.KEEP, 'so')
        self.row = model.Row('me', made_of=updates.made_of(
            'answer', self.step.decision, 'said'))
        self.seen = updates.Circumstances(
            {NODE: 'answer'}, 'said', None, frozenset())

    def unchanged(self, **rows: model.Row) -> frozenset[str]:
        return updates.find(
            {NODE: self.step}, {NODE: rows.get('row', self.row)},
            self.seen).unchanged

    def test_row_that_says_all(self):
        self.assertEqual({NODE}, self.unchanged())

    def test_row_of_another(self):
        self.assertEqual(updates.Changes(), updates.find(
            {NODE: self.step}, {}, self.seen))

    def test_node_that_is_updated_in_each_pass(self):
        self.seen = dataclasses.replace(self.seen, busy={NODE})
        self.assertEqual(updates.Changes(), updates.find(
            {NODE: self.step}, {NODE: self.row}, self.seen))

    def test_node_that_has_changed(self):
        self.assertEqual(
            updates.Changes(frozenset({NODE})), updates.find(
                {NODE: self.step}, {NODE: model.Row('me')}, self.seen))

    def test_row_that_differs(self):
        for name, value in (('made_of', None), ('made_of', 'else'),
                            ('taker', 'a'), ('taker', ''),
                            ('held', frozenset({'code'}))):
            self.assertEqual(frozenset(), self.unchanged(
                row=dataclasses.replace(self.row, **{name: value})), name)

    def test_offer_that_stands(self):
        self.step = planner.Step(decisions.Decision.OFFER, 'so', 'a')
        self.assertEqual({NODE}, self.unchanged(
            row=dataclasses.replace(self.row, taker='a')))

    def test_what_is_made_otherwise(self):
        for seen in (dataclasses.replace(self.seen, answers={NODE: 'else'}),
                     dataclasses.replace(self.seen, answers={}),
                     dataclasses.replace(self.seen, said='else'),
                     dataclasses.replace(self.seen, busy={NODE}),
                     dataclasses.replace(self.seen, held=frozenset('x'))):
            self.seen = seen
            self.assertEqual(frozenset(), self.unchanged(), seen)

    def test_node_that_is_not_listed(self):
        self.step = planner.Step(decisions.Decision.LEAVE, 'so')
        self.assertEqual(frozenset(), self.unchanged())

    def test_node_with_an_instance_that_is_taken_over(self):
        for decision in decisions.Decision:
            if decision.takes or decision.takes_instance:
                self.step = planner.Step(decision, 'so')
                self.assertEqual(frozenset(), self.unchanged(), decision)

    def test_node_that_was_recorded_first(self):
        self.step = planner.Step(decisions.Decision.RECORD_FIRST, 'so')
        self.assertEqual(frozenset(), self.unchanged())
        made_of = updates.made_of('answer', self.step.decision, 'said')
        self.step = planner.Step(decisions.Decision.KEEP_INSTANCE, 'so')
        self.assertEqual(frozenset(), self.unchanged(
            row=dataclasses.replace(self.row, made_of=made_of)))


class SettingsTestCase(base.BaseTestCase):

    def test_what_rows_say_of_the_service(self):
        process = clouds.Process(clouds.Cloud())
        first = updates.of_settings(settings.Settings('me'), process)
        self.assertEqual(first, updates.of_settings(
            settings.Settings('me', full_update_interval=0), process))
        self.assertNotEqual(first, updates.of_settings(
            settings.Settings('me', partitions=8), process))
        process.makes_with = lambda: 'another provider.yaml'
        self.assertNotEqual(first, updates.of_settings(
            settings.Settings('me'), process))


@ddt.ddt
class TurnsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.turns = updates.Turns(0)

    @given(strategies.uuids(), strategies.floats(-1e6, 1e6),
           strategies.floats(0, 100))
    def test_each_node_has_one_turn_in_an_interval(self, node, began, pause):
        node, now = str(node), began
        turns = updates.Turns(began)
        updated = 0
        while now < began + 10 * INTERVAL:
            if turns.has(node, now, INTERVAL):
                turns.updated(node, now)
                updated += 1
            now += 1 + pause
        self.assertIn(updated, (9, 10, 11))

    def test_turns_are_spread(self):
        nodes = [str(uuid.UUID(int=number)) for number in range(1000)]
        counts = []
        for now in range(0, INTERVAL, 60):
            counts.append(sum(
                updates.Turns(now).has(node, now + 60, INTERVAL)
                for node in nodes))
        self.assertEqual(1000, sum(counts))
        self.assertLess(max(counts), 150)
        self.assertGreater(min(counts), 60)

    @ddt.data(0.001, 0.5)
    def test_part_of_the_time(self, seconds):
        nodes = [str(uuid.UUID(int=number)) for number in range(1000)]
        now, updated, began = 0.0, 0, 4000
        while now < 3 * began:
            self.turns.pace(len(nodes), 100, now)
            for node in nodes:
                if self.turns.has(node, now, 100):
                    now += seconds
                    self.turns.updated(node, now)
                    self.turns.took(seconds)
                    updated += now > began
            now += 5
        used = seconds * updated / (now - began)
        self.assertGreater(0.3, used)
        # None is forgotten.
        oldest = self.turns.oldest(nodes, now)
        if seconds < 0.01:
            self.assertGreater(120, oldest)
        else:
            self.assertLess(0.1, used)
            self.assertGreater(5000, oldest)

    def test_faster_again(self):
        self.turns.took(1000)
        self.turns.pace(1000, 100, 0)
        self.assertFalse(self.turns.has(NODE, 200, 100))
        for _ in range(1000):
            self.turns.took(0)
        self.turns.pace(1000, 100, 0)
        self.assertTrue(self.turns.has(NODE, 200, 100))

    def test_other_interval_makes_no_peak(self):
        nodes = [str(uuid.UUID(int=number)) for number in range(1000)]
        interval, now, counts = 100, 0, []
        for factor in (1, 4, 2, 8, 1):
            needed = factor * (0.8 if factor > self.turns._factor else 0.4)
            self.turns._cost = needed * 0.25 * interval / len(nodes)
            self.turns.pace(len(nodes), interval, now)
            self.assertEqual(factor, self.turns._factor)
            for _ in range(20):
                now += 10
                due = [node for node in nodes
                       if self.turns.has(node, now, interval)]
                counts.append(len(due) * factor)
                for node in due:
                    self.turns.updated(node, now)
        # A tenth of all in a tenth of the interval.
        self.assertGreater(200, max(counts))
        self.assertLess(40, min(counts))

    def test_every_pass(self):
        self.turns.updated(NODE, 0)
        self.assertTrue(self.turns.has(NODE, 0, 0))

    def test_update_that_has_failed(self):
        self.turns.updated(NODE, 0)
        self.turns.failed(NODE)
        self.assertTrue(self.turns.has(NODE, 1, 1e9))
        self.turns.updated(NODE, 1)
        self.assertFalse(self.turns.has(NODE, 2, 1e9))

    def test_nodes_that_are_gone(self):
        self.turns.updated(NODE, 100)
        self.turns.failed(NODE)
        self.turns.keep([])
        self.assertFalse(self.turns.has(NODE, 101, 1e9))
        self.assertEqual(101, self.turns.oldest([NODE], 101))

    def test_oldest(self):
        self.turns.updated(NODE, 100)
        self.assertEqual(20, self.turns.oldest([NODE], 120))
        self.assertEqual(120, self.turns.oldest([NODE, 'other'], 120))
        self.assertEqual(0, self.turns.oldest([], 120))

    def seen(self, now: float = 1, trusted: bool = True,
             **states: membership.State) -> updates.Moment:
        return updates.Moment(now, observation.Standing(
            membership.Membership(states=states),
            trust.Trust.FULL if trusted else trust.Trust.STARTING), 'me')

    def is_checked(self, seen: updates.Moment) -> bool:
        return self.turns.is_checked(seen.standing, seen.now)

    def failed(self, *nodes: str) -> list[str]:
        """Return those of some nodes that are to be updated."""
        return [node for node in nodes if self.turns.has(node, 1, 1e9)]

    def unchanged(self, *nodes: str, given: tuple[str, ...] = ()
                  ) -> updates.Changes:
        return updates.Changes(unchanged=frozenset(nodes + given),
                               given=frozenset(given))

    def test_providers_of_nodes_that_are_offered(self):
        self.turns.check(
            updates.Changes(offers=frozenset(('disabled', 'gone'))),
            {'disabled': True}, self.seen(me=membership.State.MEMBER))
        self.assertEqual(['gone'], self.failed('disabled', 'gone'))

    def test_providers_after_a_start(self):
        now = self.seen(me=membership.State.MEMBER)
        self.assertFalse(self.is_checked(now))
        unchanged = self.unchanged('good', 'disabled', 'gone')
        self.assertEqual({'disabled'}, self.turns.check(
            unchanged, {'good': False, 'disabled': True}, now))
        # Placement may not have been told.
        self.assertFalse(self.is_checked(now))
        self.assertEqual(frozenset(), self.turns.check(
            unchanged, {'good': False, 'disabled': False}, now))
        self.assertTrue(self.is_checked(now))
        self.assertEqual(['gone'], self.failed('good', 'disabled', 'gone'))

    def test_providers_of_which_placement_is_told_in_vain(self):
        now = self.seen(me=membership.State.MEMBER)
        unchanged, providers = self.unchanged('disabled'), {'disabled': True}
        self.assertEqual({'disabled'}, self.turns.check(
            unchanged, providers, now))
        self.turns.doubt_told()
        self.assertEqual({'disabled'}, self.turns.check(
            unchanged, providers, now))
        self.assertEqual([], self.failed('disabled'))
        self.assertEqual(frozenset(), self.turns.check(
            unchanged, providers, now))
        self.assertEqual(['disabled'], self.failed('disabled'))
        self.assertTrue(self.is_checked(now))

    def test_providers_that_are_many(self):
        now = self.seen(me=membership.State.MEMBER)
        nodes = [f'node-{number:03}' for number in range(150)]
        providers = dict.fromkeys(nodes, True)
        told = self.turns.check(self.unchanged(*nodes), providers, now)
        self.assertEqual(100, len(told))
        providers |= dict.fromkeys(told, False)
        self.assertEqual(set(nodes) - told, self.turns.check(
            self.unchanged(*nodes), providers, now))
        self.assertEqual([], self.failed(*nodes))

    def test_providers_when_a_service_is_deleted(self):
        self.turns.check(updates.Changes(), {}, self.seen(
            me=membership.State.MEMBER, a=membership.State.ABSENT))
        self.assertFalse(self.is_checked(
            self.seen(me=membership.State.MEMBER)))

    def test_providers_that_may_just_be_deleted(self):
        self.turns.doubt(100)
        self.turns.doubt(50)
        for now, is_checked in ((99, False), (100, True)):
            seen = self.seen(now, me=membership.State.MEMBER)
            self.turns.check(updates.Changes(), {}, seen)
            self.assertIs(is_checked, self.is_checked(seen))

    def test_providers_of_nodes_that_came(self):
        seen = self.seen(me=membership.State.MEMBER,
                         a=membership.State.MEMBER)
        self.turns.check(updates.Changes(), {}, seen)
        self.turns.came([planner.Claim(owner='A')], seen, 100)
        self.assertTrue(self.is_checked(seen))
        # One that is disabled is in no ring, and its record may be deleted
        # before it is drained.
        self.turns.came([planner.Claim(owner='b')], seen, 100)
        self.assertFalse(self.is_checked(seen))

    def test_providers_of_a_disabled_service(self):
        providers = {'good': True, 'enabled': False, 'given': False}
        changes = self.unchanged('good', 'enabled', given=('given', 'gone'))
        now = self.seen(me=membership.State.DISABLED)
        self.assertEqual({'enabled'}, self.turns.check(
            changes, providers, now))
        self.assertEqual(['gone'], self.failed(
            'good', 'enabled', 'given', 'gone'))
        # Nobody has taken it for two minutes.
        providers['enabled'] = True
        self.assertEqual(frozenset(), self.turns.check(
            changes, providers, self.seen(120, me=membership.State.DISABLED)))
        self.assertFalse(self.is_checked(now))
        self.assertEqual({'given'}, self.turns.check(
            changes, providers, self.seen(121, me=membership.State.DISABLED)))

    def test_disabled_service_that_gives_nothing_away_yet(self):
        now = self.seen(trusted=False, me=membership.State.DISABLED)
        self.assertEqual(frozenset(), self.turns.check(
            self.unchanged('enabled'), {'enabled': False}, now))
        self.assertFalse(self.is_checked(now))
