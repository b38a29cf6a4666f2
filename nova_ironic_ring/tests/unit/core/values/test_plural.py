# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from nova_ironic_ring.core.values import plural


class PluralTestCase(base.BaseTestCase):

    def test_only_one_is_singular(self):
        self.assertEqual(['0 nodes', '1 node', '2 nodes'],
                         [plural.of(count, 'node') for count in range(3)])
        self.assertEqual(
            ['1 entry is', '2 entries are'],
            [plural.of(count, 'entry is', 'entries are') for count in (1, 2)])
