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
"""Tests of how a deployment is read."""

import fixtures
from nova import objects
from oslotest import base

from nova_ironic_ring.adapters import stats
from nova_ironic_ring.command import source
from nova_ironic_ring.core import profile


class RowsTestCase(base.BaseTestCase):

    def _read(self, *rows: tuple[str, str, str, dict]):
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all', side_effect=lambda context: [
                objects.ComputeNode(
                    hypervisor_hostname=node, host=host, hypervisor_type=kind,
                    stats=said) for node, host, kind, said in rows]))
        return source._rows('context', 'cell1')

    def test_what_services_say(self):
        said = profile.Profile(conductor_group='rack', names=('a', 'b'))
        rows, _ = self._read(
            ('n1', 'A', 'ironic', stats.publish(said) | stats.offer('A', 'b')),
            ('n2', 'B', 'ironic', {}))
        self.assertEqual(said, rows['n1'].profile)
        self.assertEqual(('A', 'b', 'cell1'),
                         (rows['n1'].owner, rows['n1'].taker, rows['n1'].cell))
        self.assertIsNone(rows['n2'].profile)
        self.assertIsNone(rows['n2'].taker)

    def test_hosts_with_nodes_of_another_kind(self):
        rows, others = self._read(
            ('n1', 'a', 'ironic', {}), ('kvm-1', 'KVM', 'QEMU', {}),
            ('a', 'a', 'QEMU', {}))
        self.assertEqual(['n1'], list(rows))
        self.assertEqual({'kvm', 'a'}, others)


class AggregatesTestCase(base.BaseTestCase):

    def test_by_host(self):
        self.useFixture(fixtures.MockPatchObject(
            objects.AggregateList, 'get_all', return_value=[
                objects.Aggregate(
                    name='rack-1', hosts=['A', 'b'],
                    metadata={'availability_zone': 'east'}),
                objects.Aggregate(name='fast', hosts=['A'], metadata={})]))
        self.assertEqual({
            'A': {'fast', 'rack-1 (availability zone east)'},
            'b': {'rack-1 (availability zone east)'}}, source._aggregates())
