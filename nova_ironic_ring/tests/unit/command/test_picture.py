# SPDX-License-Identifier: Apache-2.0

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
