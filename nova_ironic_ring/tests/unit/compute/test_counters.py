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

"""Tests of what is counted."""

from oslotest import base

from nova_ironic_ring.compute import counters
from nova_ironic_ring.core import decisions
from nova_ironic_ring.core import events

_Decision = decisions.Decision


class CountersTestCase(base.BaseTestCase):

    def test_count(self):
        counted = counters.Counters()
        happened = [
            events.NodeTaken('n1', 'b', _Decision.TAKE_SILENT),
            events.NodeTaken('n2', 'b', _Decision.TAKE_SILENT),
            events.NodeTaken('n3', 'b', _Decision.TAKE_OFFERED),
            events.NodeOffered('n4', 'b'),
            events.InstanceTaken('n5', 'i5', 'b', True),
            events.InstanceTaken('n6', 'i6', 'b', False),
            events.InstanceNotTaken('i7', 'b', ValueError()),
            events.DisputeFound('b', ['n8'])]
        counted.count(happened)
        counted.count(happened[:1])
        self.assertEqual(
            counters.Counters(
                {_Decision.TAKE_SILENT: 3, _Decision.TAKE_OFFERED: 1},
                {True: 1, False: 1}, 1, 1), counted)
