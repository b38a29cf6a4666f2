# SPDX-License-Identifier: Apache-2.0

"""Which free nodes are of no use, by what the database says."""

import datetime

from oslotest import base

from nova_ironic_ring.lab import view
from nova_ironic_ring_tools.faults import setups


def _seen(**more):
    return view.Snapshot(
        datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), (),
        instances={}, **{'rows': (), **more})


class UnusableTestCase(base.BaseTestCase):

    def test_records_of_nodes(self):
        seen = _seen(rows=[view.Row('n1', 'a'), view.Row('n2', 'b'),
                           view.Row('n3', 'b', free=False)])
        self.assertEqual(0, setups.unusable(seen, {'a', 'b'}))
        # The node with an instance is not free.
        self.assertEqual(1, setups.unusable(seen, {'a'}))
        self.assertEqual(2, setups.unusable(seen, set()))

    def test_pools(self):
        nodes = {'n1': None, 'n2': None, 'n3': None, 'n4': 'a', 'n5': 'b'}
        # The pool of b has a node that cannot be built on.
        seen = _seen(nodes=nodes, pools=[view.Pool('a', 3, 0),
                                         view.Pool('b', 3, 1)])
        self.assertEqual(0, setups.unusable(seen, {'a', 'b'}))
        # The other free nodes are in the pool of a.
        self.assertEqual(1, setups.unusable(seen, {'a'}))
        self.assertEqual(3, setups.unusable(seen, set()))
        # The pool of a has taken all nodes.
        seen = _seen(nodes=nodes, pools=[view.Pool('a', 4, 0),
                                         view.Pool('b', 3, 1)])
        self.assertEqual(0, setups.unusable(seen, {'a'}))
