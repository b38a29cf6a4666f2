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

"""Placement behind the port, asked with the client of the resource tracker."""

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler.client import report

from nova_ironic_ring.adapters import upstream


class Placement:
    """What Placement has.

    See :class:`nova_ironic_ring.core.ports.Placement`.
    """

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        """Choose the client.

        :param driver: the driver whose manager has it
        """
        self._driver = driver

    @property
    def _client(self) -> report.SchedulerReportClient:
        return upstream.placement(self._driver)

    def consumers(self, node: str) -> frozenset[str]:
        try:
            return frozenset(
                self._client.get_allocations_for_resource_provider(
                    nova_context.get_admin_context(), node).allocations)
        except exception.ResourceProviderAllocationRetrievalFailed as error:
            if '"status": 404' in str(error):
                return frozenset()
            raise

    def free(self, instance: str) -> None:
        self._client.delete_allocation_for_instance(
            nova_context.get_admin_context(), instance, force=True)

    def forget_provider(self, node: str) -> None:
        self._client.invalidate_resource_provider(node)

    def delete_provider(self, node: str) -> None:
        for consumer in self.consumers(node):
            self.free(consumer)
        # Without cascade: with it, Nova deletes the allocations of all
        # instances that it has on this host and node.
        self._client.delete_resource_provider(
            nova_context.get_admin_context(), objects.ComputeNode(
                uuid=node, hypervisor_hostname=node, host=''))
