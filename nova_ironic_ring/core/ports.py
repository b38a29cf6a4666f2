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

"""What a pass asks of Nova, Ironic, Placement and its own process.

The driver has real services behind them, the simulation and the forecast a
world in memory. A port raises what its service raises when it does not answer.
"""

from collections.abc import Collection, Container, Iterable
import dataclasses
from typing import Protocol

from nova_ironic_ring.core import model
from nova_ironic_ring.core import settings


@dataclasses.dataclass(frozen=True)
class Expected:
    """What has to be true of an instance before its service is changed.

    :ivar host: the name of the service that it belongs to
    :ivar node: the UUID of the node that Nova has it on
    :ivar is_idle: whether nothing may be under way with it
    """

    host: str
    node: str
    is_idle: bool = False


class Nova(Protocol):
    """Nova's records, read and written through conductor."""

    def ring_services(self) -> list[model.Service]:
        """Read the enabled services that have nodes of Ironic."""

    def all_services(self) -> list[model.Service]:
        """Read all nova-compute services, whatever their driver."""

    def service(self, host: str) -> model.Service | None:
        """Read the record of one nova-compute service.

        :param host: its name
        """

    def rows_of(self, host: str) -> dict[str, model.Row]:
        """Read the rows of the nodes of Ironic that a service owns.

        :param host: its name
        :returns: by the node's UUID
        """

    def rows(self, nodes: Collection[str]) -> dict[str, model.Row]:
        """Read the rows of nodes.

        :param nodes: their UUIDs
        :returns: by the node's UUID, of those that have one
        """

    def instances_of(self, host: str) -> frozenset[str]:
        """Read the UUIDs of the instances that belong to a service.

        :param host: its name
        """

    def instances(self, uuids: Iterable[str]) -> dict[str, model.Instance]:
        """Read instances.

        :param uuids: their UUIDs
        :returns: by UUID, of those that Nova has not deleted
        """

    def instances_on(self, node: str) -> frozenset[str]:
        """Read the UUIDs of the instances that Nova has on a node.

        :param node: the node's UUID
        """

    def other_drivers(self, hosts: Iterable[str]) -> frozenset[str]:
        """Name the services that run another driver.

        :param hosts: names of services
        :returns: canonical names of those with rows that are not of Ironic's
            nodes
        """

    def delete_row(self, node: str, owner: str) -> bool:
        """Delete the row of a node, if it still has the owner that was read.

        This is the only change of a row that Nova makes on a condition, and so
        the one by which of two services only one can win.

        :param node: the node's UUID
        :param owner: the name of the owner
        :returns: False if the row has another owner by now, or is gone
        """

    def set_instance_host(self, instance: str, expected: Expected) -> bool:
        """Give an instance to this service.

        :param instance: its UUID
        :param expected: what it has to be like
        :returns: False if it is not, or is deleted
        """

    def end_build(self, instance: str, host: str | None) -> bool:
        """Set an instance that is being built to ERROR, with the reason.

        :param instance: its UUID
        :param host: the name of the service that has died; None if it is not
            known any more
        :returns: False if the instance is deleted, or built after all
        """


class Ironic(Protocol):
    """What Ironic has."""

    def nodes(self, scope: settings.Scope) -> dict[str, str | None]:
        """List the nodes that this service and its peers divide.

        :param scope: which nodes these are
        :returns: the instance on each node, None for a free one
        """

    def nodes_of(self, instances: Iterable[str]) -> dict[str, str | None]:
        """Find the nodes of instances, whatever group or shard they are in.

        :param instances: UUIDs of instances
        :returns: the instance on each node
        """

    def is_deleted(self, node: str) -> bool:
        """Say whether Ironic does not have a node.

        :param node: the node's UUID
        """


class Placement(Protocol):
    """What Placement has."""

    def consumers(self, node: str) -> frozenset[str]:
        """Read who has allocations of a node.

        :param node: the node's UUID
        """

    def free(self, instance: str) -> None:
        """Delete the allocation of an instance.

        :param instance: its UUID
        """

    def forget_provider(self, node: str) -> None:
        """Drop the provider of a node that Nova has in its cache.

        :param node: the node's UUID
        """

    def delete_provider(self, node: str) -> None:
        """Delete the provider of a node.

        :param node: the node's UUID
        """


class Process(Protocol):
    """What this process knows of itself."""

    def now(self) -> float:
        """Return the time of the monotonic clock, in seconds."""

    def longest_gap(self) -> float:
        """Return the longest time without a heartbeat.

        Since the last pass of which the memory was kept.

        :returns: seconds
        """

    def is_ending(self) -> bool:
        """Say whether this service is about to end."""

    def tracked(self) -> Container[str]:
        """Name the nodes that Nova's resource tracker has in hand."""


@dataclasses.dataclass(frozen=True)
class Ports:
    """All ports of a service.

    :ivar nova: Nova's records
    :ivar ironic: what Ironic has
    :ivar placement: what Placement has
    :ivar process: what this process knows of itself
    """

    nova: Nova
    ironic: Ironic
    placement: Placement
    process: Process
