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

"""Placement, by way of Nova's own client."""

import types
from unittest import mock

from keystoneauth1 import exceptions as keystone_exceptions
from nova import exception
from nova.scheduler.client import report
from oslotest import base

from nova_ironic_ring.adapters import placement

NODE = '00000000-0000-0000-0000-000000000000'


class PlacementTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.client = mock.create_autospec(
            report.SchedulerReportClient, instance=True)
        self.placement = placement.Placement(
            mock.Mock(virtapi=mock.Mock(reportclient=self.client)))

    def _have(self, *consumers: str) -> None:
        self.client.get_allocations_for_resource_provider.return_value = (
            types.SimpleNamespace(allocations=dict.fromkeys(consumers, {})))

    def test_consumers(self):
        self._have('one', 'two')
        self.assertEqual({'one', 'two'}, self.placement.consumers(NODE))

    def test_node_without_a_provider(self):
        self.client.get_allocations_for_resource_provider.side_effect = (
            exception.ResourceProviderAllocationRetrievalFailed(
                rp_uuid=NODE, error='{"errors": [{"status": 404}]}'))
        self.assertEqual(frozenset(), self.placement.consumers(NODE))

    def test_no_answer(self):
        for error in (exception.ResourceProviderAllocationRetrievalFailed(
                rp_uuid=NODE, error='{"errors": [{"status": 500}]}'),
                keystone_exceptions.ConnectFailure()):
            read = self.client.get_allocations_for_resource_provider
            read.side_effect = error
            self.assertRaises(type(error), self.placement.consumers, NODE)

    def test_free(self):
        self.placement.free('one')
        self.client.delete_allocation_for_instance.assert_called_once_with(
            mock.ANY, 'one', force=True)

    def test_forget_provider(self):
        self.placement.forget_provider(NODE)
        self.client.invalidate_resource_provider.assert_called_once_with(NODE)

    def test_delete_provider(self):
        self._have('one', 'two')
        self.placement.delete_provider(NODE)
        # Nova deletes no provider that has allocations.
        self.assertEqual({'one', 'two'}, {
            call.args[1] for call in
            self.client.delete_allocation_for_instance.call_args_list})
        (call,) = self.client.delete_resource_provider.call_args_list
        self.assertEqual(NODE, call.args[1].uuid)
        # Nova would delete the allocations of all instances of the host.
        self.assertEqual({}, call.kwargs)
