# SPDX-License-Identifier: Apache-2.0

"""Tests of which nodes are updated in a pass."""

import dataclasses

from oslotest import base

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.world import cloud as clouds

NODE = '00000000-0000-0000-0000-000000000001'


class UnchangedTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.step = planner.Step(decisions.Decision.KEEP, 'so')
        self.row = model.Row('me', made_of=updates.made_of(
            'answer', self.step.decision, 'said'), made_at=900)
        self.seen = updates.Circumstances(
            {NODE: 'answer'}, 'said', frozenset(), {NODE: None}, 1000, 10 ** 9)

    def unchanged(self, **rows: model.Row) -> frozenset[str]:
        return updates.find(
            {NODE: self.step}, {NODE: rows.get('row', self.row)},
            self.seen).unchanged

    def find(self, **values: object) -> updates.Changes:
        """Say which nodes need an update, if the row says something else."""
        return updates.find({NODE: self.step}, {NODE: dataclasses.replace(
            self.row, **values)}, self.seen)

    def test_row_that_says_all(self):
        self.assertEqual({NODE}, self.unchanged())
        self.assertFalse(self.find().needs_update(NODE))

    def test_turn(self):
        self.assertEqual({}, self.find().turns)
        self.seen = dataclasses.replace(self.seen, interval=10)
        changes = self.find()
        self.assertEqual({NODE: 900}, changes.turns)
        self.assertTrue(changes.needs_update(NODE))
        # It has to wait.
        self.assertFalse(changes.limited(0).needs_update(NODE))

    def test_oldest_first(self):
        nodes = {f'node-{number}': number for number in (2, 1, 3)}
        changes = updates.find(
            dict.fromkeys(nodes, self.step),
            {node: dataclasses.replace(self.row, made_at=at)
             for node, at in nodes.items()}, dataclasses.replace(
                 self.seen, answers=dict.fromkeys(nodes, 'answer'),
                 interval=0))
        self.assertEqual(1, changes.oldest)
        self.assertEqual({'node-1', 'node-2'}, {
            *changes.limited(2).turns})

    def test_instance_that_is_counted_and_gone(self):
        self.assertTrue(self.find(counts=True).needs_update(NODE))
        self.seen = dataclasses.replace(self.seen, listed={NODE: 'instance'})
        self.assertFalse(self.find(counts=True).needs_update(NODE))

    def test_row_that_says_nothing(self):
        changes = self.find(made_of=None, made_at=None)
        self.assertEqual({NODE: None}, changes.changed)
        self.assertIsNone(changes.oldest)

    def test_row_of_another(self):
        self.assertEqual(updates.Changes(), updates.find(
            {NODE: self.step}, {}, self.seen))

    def test_node_that_is_updated_in_each_pass(self):
        self.seen = dataclasses.replace(self.seen, busy={NODE})
        self.assertEqual(updates.Changes(oldest=900), self.find())

    def test_node_that_has_changed(self):
        self.assertEqual(
            updates.Changes(changed={NODE: None}), updates.find(
                {NODE: self.step}, {NODE: model.Row('me')}, self.seen))

    def test_row_that_differs(self):
        for made_of in None, 'else':
            self.assertEqual(frozenset(), self.unchanged(
                row=dataclasses.replace(self.row, made_of=made_of)))

    def test_offer_changes_nothing(self):
        self.step = planner.Step(decisions.Decision.OFFER, 'so', 'a')
        self.assertEqual({NODE}, self.unchanged())

    def test_what_is_made_otherwise(self):
        for seen in (dataclasses.replace(self.seen, answers={NODE: 'else'}),
                     dataclasses.replace(self.seen, answers={}),
                     dataclasses.replace(self.seen, said='else'),
                     dataclasses.replace(self.seen, busy={NODE})):
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


class ProcessTestCase(base.BaseTestCase):

    def test_what_rows_are_made_with(self):
        process = clouds.Process(clouds.Cloud())
        first = updates.of_process(process)
        self.assertEqual(first, updates.of_process(process))
        process.makes_with = lambda: 'another provider.yaml'
        self.assertNotEqual(first, updates.of_process(process))
