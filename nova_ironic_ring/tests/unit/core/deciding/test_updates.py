# SPDX-License-Identifier: Apache-2.0

"""Tests of which nodes are updated in a pass."""

import dataclasses

from oslotest import base

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds

NODE = '00000000-0000-0000-0000-000000000001'


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
