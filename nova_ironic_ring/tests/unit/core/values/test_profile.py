# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from nova_ironic_ring.core.values import profile


class UnderstandingTestCase(base.BaseTestCase):

    def test_older_is_understood_and_later_is_not(self):
        for reader, protocol, expected in (
                (1, 1, True), (1, 2, True), (2, 1, True), (2, 2, True),
                (1, 3, True), (2, 3, True), (3, 2, True), (3, 4, False),
                (2, 4, False)):
            self.assertEqual(expected, profile.understands(reader, protocol),
                             (reader, protocol))
