# SPDX-License-Identifier: Apache-2.0

"""Which words of a node make its kind."""

from oslotest import base

from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import pools

WHOLE = pools.Kind(
    'CUSTOM_BAREMETAL', frozenset({'CUSTOM_FAST', 'CUSTOM_MINE'}),
    frozenset({('cpu_arch', 'x86_64'), ('raid', '1'), ('mine', 'x')}))


class RuleTestCase(base.BaseTestCase):

    def test_all_make_a_kind(self):
        self.assertIs(WHOLE, kinds.Rule().kind(WHOLE))
        nodes = {'n': pools.Node(WHOLE)}
        self.assertEqual(nodes, kinds.Rule().nodes(nodes))

    def test_those_that_are_named(self):
        rule = kinds.Rule(frozenset({'raid', 'boot'}), frozenset({
            'CUSTOM_FAST'}))
        self.assertEqual(
            pools.Kind('CUSTOM_BAREMETAL', frozenset({'CUSTOM_FAST'}),
                       frozenset({('cpu_arch', 'x86_64'), ('raid', '1')})),
            rule.kind(WHOLE))

    def test_each_list_for_itself(self):
        self.assertEqual(
            (WHOLE.traits, {('cpu_arch', 'x86_64')}), (
                (kind := kinds.Rule(frozenset()).kind(WHOLE)).traits,
                kind.properties))
        self.assertEqual(
            (frozenset(), WHOLE.properties), (
                (kind := kinds.Rule(traits=frozenset()).kind(WHOLE)).traits,
                kind.properties))

    def test_architecture_that_a_capability_hides(self):
        kind = pools.Kind('CUSTOM_BAREMETAL', properties=frozenset({
            ('cpu_arch', 'fast')}), architecture='x86_64')
        self.assertEqual(kind, kinds.Rule(frozenset()).kind(kind))

    def test_without_resource_class(self):
        self.assertIsNone(kinds.Rule(frozenset()).kind(None))

    def test_nodes_that_differ_in_what_is_not_named(self):
        other = pools.Kind('CUSTOM_BAREMETAL', WHOLE.traits, frozenset({
            ('cpu_arch', 'x86_64'), ('raid', '1'), ('mine', 'y')}))
        found = kinds.Rule(frozenset({'raid'})).nodes({
            'n': pools.Node(WHOLE, 'i'), 'm': pools.Node(other, 'i'),
            'o': pools.Node(None, 'i')})
        self.assertEqual(found['n'], found['m'])
        self.assertEqual('i', found['n'].instance)
        self.assertIsNone(found['o'].kind)
