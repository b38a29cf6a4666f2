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

"""Tests of the picture of a plan."""

from xml.etree import ElementTree

from oslotest import base

from nova_ironic_ring.command import picture
from nova_ironic_ring.command import planning
from nova_ironic_ring.command import prospect
from nova_ironic_ring.tests.unit.command import deployment


class PictureTestCase(base.BaseTestCase):

    def test_picture(self):
        seen = deployment.make('a', '<b>', instances={1: 'a'})
        plan = planning.plan(seen, seen.keys()[0], prospect.Change(
            add=frozenset({'d'})))
        root = ElementTree.fromstring(picture.svg(plan))
        texts = [each.text for each in root.iter(
            '{http://www.w3.org/2000/svg}text')]
        self.assertIn('<b>', texts)
        self.assertIn(f'{plan.moved_nodes} free nodes and 0 instances change '
                      'hands', texts[0])
        bars = list(root.iter('{http://www.w3.org/2000/svg}rect'))
        # Two in the legend, and four a service.
        self.assertEqual(2 + 4 * 3, len(bars))
