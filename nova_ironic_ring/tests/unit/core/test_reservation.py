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

from nova_ironic_ring.core import cloud as clouds
from nova_ironic_ring.core import pools
from nova_ironic_ring.core import reservation
from nova_ironic_ring.core import settings

KIND = pools.Kind('CUSTOM_BAREMETAL')


class ReserveTestCase(base.BaseTestCase):
    """Who gets which node."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud(nodes={
            name: clouds.Node() for name in 'abcd'})
        self.ironic = clouds.Ironic(self.cloud)

    def reserve(self, own='', kind=KIND, instance='i'):
        self.found = reservation.reserve(
            self.ironic, reservation.Wanted(instance, kind, own),
            settings.Scope())
        return self.found.node

    def test_own_share_first(self):
        self.assertEqual('c', self.reserve('cd'))
        self.assertEqual('i', self.cloud.nodes['c'].instance)
        self.assertEqual(0, self.found.conflicts)

    def test_next_one_where_another_was_faster(self):
        self.cloud.nodes['c'].instance = 'other'
        self.cloud.nodes['d'].is_ready = False
        self.assertEqual('b', self.reserve('cdb'))
        self.assertEqual('other', self.cloud.nodes['c'].instance)
        self.assertEqual(2, self.found.conflicts)

    def test_others_of_the_same_kind_then(self):
        for name in 'cd':
            self.cloud.nodes[name].instance = 'other'
        self.cloud.nodes['a'].kind = pools.Kind('CUSTOM_GOLD')
        self.assertEqual('b', self.reserve('cd'))

    def test_not_where_the_deployment_has_failed(self):
        self.assertEqual('d', reservation.reserve(
            self.ironic, reservation.Wanted(
                'i', KIND, 'cd', frozenset('c')), settings.Scope()).node)
        for name in 'ab':
            self.cloud.nodes[name].instance = 'other'
        self.assertIsNone(reservation.reserve(
            self.ironic, reservation.Wanted(
                'j', KIND, '', frozenset('c')), settings.Scope()).node)

    def test_answer_that_was_lost(self):
        give = self.ironic.reserve

        def lose(node, instance):
            give(node, instance)
            return False
        self.ironic.reserve = lose
        self.assertEqual('c', self.reserve('cd'))

    def test_instance_that_has_another_node_gets_no_second_one(self):
        self.cloud.nodes['a'].instance = 'i'
        self.assertIsNone(self.reserve('cd'))
        self.assertEqual([None] * 3, [
            self.cloud.nodes[name].instance for name in 'bcd'])

    def test_none_left(self):
        for name in 'abcd':
            self.cloud.nodes[name].instance = 'other'
        self.assertIsNone(self.reserve('ab'))

    def test_not_beyond_the_scope(self):
        for name in 'abcd':
            self.cloud.nodes[name].group = 'other'
        found = reservation.reserve(
            self.ironic, reservation.Wanted('i', KIND),
            settings.Scope('mine'))
        self.assertIsNone(found.node)

    def test_kind_that_is_not_known(self):
        self.assertIsNone(self.reserve(kind=None))

    def test_each_node_once(self):
        got = [self.reserve('ab', instance=str(number))
               for number in range(5)]
        self.assertEqual({'a', 'b', 'c', 'd', None}, set(got))

    def test_what_is_tried_is_not_tried_again(self):
        asked = []
        self.ironic.reserve = lambda node, _: asked.append(node)
        self.assertIsNone(self.reserve('ab'))
        self.assertEqual(['a', 'b'], asked[:2])
        self.assertEqual(['a', 'b', 'c', 'd'], sorted(asked))

    def test_another_order_for_each_instance(self):
        orders = {tuple(reservation.in_turn('abcd', str(number)))
                  for number in range(50)}
        self.assertGreater(len(orders), 10)
        self.assertEqual({tuple('abcd')}, {
            tuple(sorted(order)) for order in orders})
