# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

from oslotest import base

from nova_ironic_ring.compute import ledger


class LedgerTestCase(base.BaseTestCase):
    """What has happened since nodes were last counted."""

    def setUp(self):
        super().setUp()
        self.ledger = ledger.Ledger()

    def run_pass(self):
        self.ledger.begin()
        self.ledger.end()

    def test_node_is_tried_once(self):
        first = self.ledger.untried('abc')
        second = self.ledger.untried('abc')
        self.assertEqual(['a', 'b', 'c'],
                         [next(first), next(second), next(first)])
        self.assertEqual([], list(second))

    def test_tried_again_after_a_pass(self):
        self.assertEqual(['a'], list(self.ledger.untried('a')))
        self.run_pass()
        self.assertEqual(['a'], list(self.ledger.untried('a')))

    def test_release(self):
        self.ledger.release('a', 'gold')
        self.ledger.release('b', 'silver')
        self.assertEqual({'a'}, self.ledger.released('gold'))
        self.run_pass()
        self.assertEqual(set(), self.ledger.released('gold'))

    def test_what_happens_in_a_pass_stays_until_the_next(self):
        # The pass may have read the nodes before.
        self.ledger.begin()
        self.ledger.release('a', 'gold')
        self.assertEqual(['b'], list(self.ledger.untried('b')))
        self.ledger.end()
        self.assertEqual({'a'}, self.ledger.released('gold'))
        self.assertEqual([], list(self.ledger.untried('b')))
        self.run_pass()
        self.assertEqual(set(), self.ledger.released('gold'))
