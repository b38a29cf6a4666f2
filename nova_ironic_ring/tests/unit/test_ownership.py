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

from nova_ironic_ring import ownership
from nova_ironic_ring import ring

NODE = '1be26c0b-03f2-4d2e-ae87-c02d7f33c123'
MINE = ring.Ring({'me'}, 32)
OTHERS = ring.Ring({'other'}, 32)


class DecideTestCase(base.BaseTestCase):

    def _check(self, expected: ownership.Decision, lists: bool,
               instance: str | None, current: ring.Ring) -> None:
        decision = ownership.decide('Me', NODE, instance, {'mine'}, current)
        self.assertIs(expected, decision)
        self.assertEqual(lists, decision.lists)

    def test_own_instance_wherever_the_ring_has_the_node(self):
        for current in MINE, OTHERS:
            self._check(ownership.Decision.LIST_INSTANCE, True, 'mine',
                        current)

    def test_instance_of_another_wherever_the_ring_has_the_node(self):
        for current in MINE, OTHERS:
            self._check(ownership.Decision.LEAVE_INSTANCE, False, 'theirs',
                        current)

    def test_free_by_the_ring(self):
        self._check(ownership.Decision.LIST_FREE, True, None, MINE)
        self._check(ownership.Decision.LEAVE_FREE, False, None, OTHERS)
