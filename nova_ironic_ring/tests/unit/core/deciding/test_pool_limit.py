# SPDX-License-Identifier: Apache-2.0

"""How many pools a service makes."""

from oslotest import base

from nova_ironic_ring.core.deciding import pool_limit
from nova_ironic_ring.core.values import pools


class LimitTestCase(base.BaseTestCase):

    def limit(self, most, used='', recorded='', awaited=''):
        """Return the kept pools of a (3 nodes), b (2), c (2) and d (0)."""
        found = {name: pools.Pool(name, nodes={
            f'{name}{number}': pools.Node(None) for number in range(count)})
            for name, count in zip('dcba', (0, 2, 2, 3))}
        limited = pool_limit.limit(
            found, most, set(used), set(awaited), set(recorded))
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

    def test_in_use_beside_the_limit(self):
        self.assertEqual('cd', self.limit(1, 'c', 'd'))
        # However many are in use, there is room for free nodes.
        self.assertEqual('abcd', self.limit(1, 'bcd'))

    def test_awaited_in_any_case(self):
        self.assertEqual('bcd', self.limit(1, '', 'a', 'bcd'))
        self.assertEqual('bc', self.limit(2, '', 'd', 'bc'))
        self.assertEqual('abc', self.limit(2, 'a', 'd', 'bc'))
