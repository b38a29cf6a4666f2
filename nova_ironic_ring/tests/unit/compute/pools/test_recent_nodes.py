# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from nova_ironic_ring.compute.pools import recent_nodes


class RecentNodesTestCase(base.BaseTestCase):
    """What has happened since nodes were last counted."""

    def setUp(self):
        super().setUp()
        self.recent = recent_nodes.RecentNodes()

    def run_pass(self):
        self.recent.begin()
        self.recent.end()

    def test_node_is_tried_once(self):
        first = self.recent.untried('abc')
        second = self.recent.untried('abc')
        self.assertEqual(['a', 'b', 'c'],
                         [next(first), next(second), next(first)])
        self.assertEqual([], list(second))

    def test_tried_again_after_a_pass(self):
        self.assertEqual(['a'], list(self.recent.untried('a')))
        self.run_pass()
        self.assertEqual(['a'], list(self.recent.untried('a')))

    def test_release(self):
        self.recent.release('a', 'gold')
        self.recent.release('b', 'silver')
        self.assertEqual({'a'}, self.recent.released('gold'))
        self.run_pass()
        self.assertEqual(set(), self.recent.released('gold'))

    def test_what_happens_in_a_pass_stays_until_the_next(self):
        # The pass may have read the nodes before.
        self.recent.begin()
        self.recent.release('a', 'gold')
        self.assertEqual(['b'], list(self.recent.untried('b')))
        self.recent.end()
        self.assertEqual({'a'}, self.recent.released('gold'))
        self.assertEqual([], list(self.recent.untried('b')))
        self.run_pass()
        self.assertEqual(set(), self.recent.released('gold'))
