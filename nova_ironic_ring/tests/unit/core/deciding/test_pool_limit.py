# SPDX-License-Identifier: Apache-2.0

"""How many pools a service makes."""

from oslotest import base

from nova_ironic_ring.core.deciding import pool_limit
from nova_ironic_ring.core.values import pools


class LimitTestCase(base.BaseTestCase):

    def limit(self, most, used=(), recorded=()):
        """Return the kept pools of a (3 nodes), b (2), c (2) and d (0)."""
        found = {name: pools.Pool(name, nodes={
            f'{name}{number}': pools.Node(None) for number in range(count)})
            for name, count in zip('dcba', (0, 2, 2, 3))}
        limited = pool_limit.limit(found, most, used, recorded)
        self.assertEqual(found, {**limited.kept, **limited.left_out})
        self.assertEqual(set(), limited.kept.keys() & limited.left_out)
        return ''.join(sorted(limited.kept))

    def test_within_the_limit(self):
        self.assertEqual('abcd', self.limit(4))

    def test_no_limit(self):
        self.assertEqual('abcd', self.limit(0))

    def test_most_nodes_first_then_by_name(self):
        self.assertEqual('a', self.limit(1))
        self.assertEqual('ab', self.limit(2))
        self.assertEqual('abc', self.limit(3))

    def test_recorded_before_larger_ones(self):
        self.assertEqual('d', self.limit(1, recorded='d'))
        self.assertEqual('ad', self.limit(2, recorded='d'))

    def test_in_use_before_recorded(self):
        self.assertEqual('c', self.limit(1, 'c', 'd'))
        self.assertEqual('cd', self.limit(2, 'c', 'd'))

    def test_in_use_in_any_case(self):
        self.assertEqual('bcd', self.limit(1, 'bcd', 'a'))
