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

from nova_ironic_ring.core import plural


class PluralTestCase(base.BaseTestCase):

    def test_only_one_is_singular(self):
        self.assertEqual(['0 nodes', '1 node', '2 nodes'],
                         [plural.of(count, 'node') for count in range(3)])
        self.assertEqual(
            ['1 entry is', '2 entries are'],
            [plural.of(count, 'entry is', 'entries are') for count in (1, 2)])
