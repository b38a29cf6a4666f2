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

from collections.abc import Callable, Collection, Mapping
import contextlib
from typing import Any
from typing import TypeAlias

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler.client import report

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core import pools


# Passes of the resource tracker write the same inventory.
_ATTEMPTS = 4
#: An inventory, as Placement has it.
_Known: TypeAlias = Mapping[str, Mapping[str, Any]]


class Placement:
    """What Placement has.

    See :class:`nova_ironic_ring.core.ports.Placement`.
    """

    def __init__(self, driver: upstream.NovaIronicDriver | None = None
                 ) -> None:
        """Choose the client.

        :param driver: the driver whose manager has it; None outside of a
            nova-compute
        """
        self._driver = driver

    @property
    def _client(self) -> report.SchedulerReportClient:
        if self._driver is None:
            return report.report_client_singleton()
        return upstream.placement(self._driver)

    def consumers(self, node: str) -> frozenset[str]:
        try:
            return frozenset(
                self._client.get_allocations_for_resource_provider(
                    nova_context.get_admin_context(), node).allocations)
        except exception.ResourceProviderAllocationRetrievalFailed as error:
            if upstream.is_missing_provider(error):
                return frozenset()
            raise

    def free(self, instance: str) -> None:
        self._client.delete_allocation_for_instance(
            nova_context.get_admin_context(), instance, force=True)

    def forget_provider(self, node: str) -> None:
        self._client.invalidate_resource_provider(node)

    def move(self, instance: str, sources: Collection[str],
             target: str) -> bool:
        context = nova_context.get_admin_context()
        found = self._client.get_allocs_for_consumer(context, instance)
        having = found['allocations']
        if not having or set(having) == {target}:
            return True
        if len(having) != 1 or not set(having) <= set(sources):
            return False
        ((_, allocation),) = having.items()
        try:
            # With the consumer's generation: of two that have read the same,
            # one is refused.
            return bool(self._client.put_allocations(context, instance, {
                **found, 'allocations': {
                    target: {'resources': allocation['resources']}}}))
        except exception.AllocationUpdateFailed:
            return False

    def write(self, pool: pools.Pool, found: pools.Inventory) -> None:
        upstream.in_turn_with_tracker(lambda: self._write(
            pool.name, lambda known: inventory(pool, found, known)))

    def reserve_all(self, pool: str) -> None:
        # Its service may have written it since this one has.
        self.reread(pool)
        upstream.in_turn_with_tracker(lambda: self._write(
            pool, lambda known: inventory(
                pools.Pool(pool, is_hidden=True), pools.Inventory(), known)))

    def reread(self, place: str) -> None:
        upstream.in_turn_with_tracker(
            lambda: self.forget_provider(pools.provider(place)))

    def make_room(self, place: str) -> None:
        self.reread(place)
        used = len(self.consumers(pools.provider(place)))
        upstream.in_turn_with_tracker(lambda: self._write(
            place, lambda known: {
                name: _with_room(said, used)
                for name, said in known.items()}))

    def drop_provider(self, node: str) -> bool:
        if self.consumers(node):
            return False
        upstream.in_turn_with_tracker(lambda: self._delete(node))
        # Placement deletes none that something rests on by now, and Nova's
        # client says nothing of what it could not delete.
        return not self._client.get_providers_in_tree(
            nova_context.get_admin_context(), node)

    def _write(self, pool: str, make: Callable[[_Known], _Known]) -> None:
        """Write an inventory, though the resource tracker may do so as well.

        :param pool: the name of the pool, or the UUID of the node
        :param make: makes it of what Placement has
        :raises nova.exception.ResourceProviderUpdateConflict: if others write
            it all the time
        """
        context, uuid = nova_context.get_admin_context(), pools.provider(pool)
        for left in reversed(range(_ATTEMPTS)):
            tree = self._client.get_provider_tree_and_ensure_root(
                context, uuid, name=pool)
            try:
                self._client.set_inventory_for_provider(
                    context, uuid, make(tree.data(uuid).inventory))
                return
            except exception.ResourceProviderUpdateConflict:
                if not left:
                    raise
                self._client.invalidate_resource_provider(uuid)

    def delete_provider(self, node: str) -> None:
        for consumer in self.consumers(node):
            self.free(consumer)
        self._delete(node)

    def _delete(self, node: str) -> None:
        # Nova's client does not find one that is gone.
        with contextlib.suppress(ValueError):
            # Without cascade: with it, Nova deletes the allocations of all
            # instances that it has on this host and node.
            self._client.delete_resource_provider(
                nova_context.get_admin_context(), objects.ComputeNode(
                    uuid=node, hypervisor_hostname=node, host=''))


def _with_room(said: Mapping[str, Any], used: int) -> Mapping[str, Any]:
    """Return an inventory that has room for one more.

    :param said: what Placement has
    :param used: how much of it is allocated
    """
    found = pools.Inventory(
        said['total'], said.get('reserved', 0)).with_room(used)
    return {**said, 'total': found.total, 'reserved': found.reserved}


def inventory(pool: pools.Pool, counted: pools.Inventory,
              known: _Known) -> _Known:
    """Return the inventory of a pool as Placement wants it.

    :param pool: the pool
    :param counted: what is counted
    :param known: the inventory that Placement has of it; where nodes are
        hidden, what it says of their number is all that is known
    """
    if pool.is_hidden and known:
        return {name: {**said, 'reserved': said['total']}
                for name, said in known.items()}
    if pool.kind is None:
        names = list(known)
    else:
        names = [pool.kind.resource_class]
    return {name: {
        'total': counted.total, 'reserved': counted.reserved, 'min_unit': 1,
        'max_unit': 1, 'step_size': 1, 'allocation_ratio': 1.0}
        for name in names}
