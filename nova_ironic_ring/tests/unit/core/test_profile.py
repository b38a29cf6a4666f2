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

from nova_ironic_ring.core import profile


class UnderstandingTestCase(base.BaseTestCase):

    def test_older_is_understood_and_later_is_not(self):
        for reader, protocol, expected in (
                (1, 1, True), (1, 2, True), (2, 1, True), (2, 2, True),
                (1, 3, False), (2, 3, False), (3, 2, True), (3, 4, False)):
            self.assertEqual(expected, profile.understands(reader, protocol),
                             (reader, protocol))
