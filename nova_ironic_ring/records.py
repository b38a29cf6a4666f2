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

"""What Nova's database says, through conductor and as records of our own."""

from collections.abc import Callable, Iterable, Mapping
import dataclasses

from nova.compute import vm_states
import nova.conf
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import fields
from nova import servicegroup

from nova_ironic_ring import membership
from nova_ironic_ring import ownership

CONF = nova.conf.CONF

# The keys of compute_nodes.stats that a consent is made of. It names its giver
# as well: a former owner's last writing may come after another has the node.
# Nova puts the capabilities of a node there as well, which whoever owns it in
# Ironic may set: no name of theirs can have a colon.
_GIVER = 'ironic_ring:from'
_TAKER = 'ironic_ring:to'

# What only this driver may say, whatever follows.
_PREFIX = 'ironic_ring'


def consent(giver: str, taker: str) -> dict[str, str]:
    """Return what lets a service take a node, for the node's statistics.

    :param giver: the name of the owner
    :param taker: the name of the service that may take the node; empty if none
        may just now
    """
    return {_GIVER: membership.canonical(giver),
            _TAKER: membership.canonical(taker)}


def without_forged(stats: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the statistics of a node without what others say in our name.

    :param stats: the statistics as Nova's own driver has them
    """
    return {key: value for key, value in stats.items()
            if not key.strip().lower().startswith(_PREFIX)}


@dataclasses.dataclass(frozen=True)
class Place:
    """Where Nova has an instance.

    :ivar host: the name of its service
    :ivar node: the node, as its service names it
    """

    host: str
    node: str | None


class Records:
    """Asks Nova."""

    def __init__(self, is_up: Callable[[objects.Service], bool] | None
                 ) -> None:
        """Say how to know that a service is alive.

        :param is_up: asked of each service; None where the heartbeats in the
            database tell
        """
        self._is_up = is_up

    def ring_services(self, context: nova_context.RequestContext
                      ) -> list[membership.Service]:
        """Read the enabled services that have nodes of Ironic.

        :param context: with the rights of an administrator
        """
        return list(map(
            self._service, objects.ServiceList.get_all_computes_by_hv_type(
                context, fields.HVType.IRONIC)))

    def all_services(self, context: nova_context.RequestContext
                     ) -> list[membership.Service]:
        """Read all nova-compute services, whatever their driver.

        :param context: with the rights of an administrator
        """
        return list(map(self._service, objects.ServiceList.get_by_binary(
            context, 'nova-compute', include_disabled=True)))

    def service(self, context: nova_context.RequestContext, host: str
                ) -> membership.Service | None:
        """Read the record of one nova-compute service.

        :param context: with the rights of an administrator
        :param host: its name
        :returns: None if there is none
        """
        try:
            return self._service(
                objects.Service.get_by_compute_host(context, host))
        except exception.NotFound:
            return None

    def rows_of_host(self, context: nova_context.RequestContext, host: str
                     ) -> dict[str, ownership.Row]:
        """Read the rows of the nodes that a service owns.

        :param context: with the rights of an administrator
        :param host: its name
        :returns: by the node's UUID
        """
        try:
            found = objects.ComputeNodeList.get_all_by_host(context, host)
        except exception.NotFound:
            return {}
        return _rows(found)

    def rows_of_nodes(self, context: nova_context.RequestContext,
                      nodes: list[str]) -> dict[str, ownership.Row]:
        """Read the rows of nodes.

        :param context: with the rights of an administrator
        :param nodes: their UUIDs
        :returns: by the node's UUID, of those that have one
        """
        return _rows(objects.ComputeNodeList.get_all_by_uuids(context, nodes))

    def instances(self, context: nova_context.RequestContext, host: str
                  ) -> frozenset[str]:
        """Read the UUIDs of the instances that belong to a service.

        :param context: with the rights of an administrator
        :param host: its name
        """
        return frozenset(
            objects.InstanceList.get_uuids_by_host(context, host))

    def hosts_of(self, context: nova_context.RequestContext,
                 instances: Iterable[str]) -> dict[str, str]:
        """Read which services instances belong to.

        :param context: with the rights of an administrator
        :param instances: UUIDs of instances
        :returns: the services' names, by UUID, of those that have one
        """
        found = find_instances(context, instances)
        return {instance.uuid: instance.host
                for instance in found if instance.host}

    def places_of(self, context: nova_context.RequestContext,
                  instances: Iterable[str]) -> dict[str, Place]:
        """Read where instances are, by Nova's own records.

        :param context: with the rights of an administrator
        :param instances: UUIDs of instances
        :returns: by UUID, of those that have a service
        """
        found = find_instances(context, instances)
        return {instance.uuid: Place(instance.host, instance.node)
                for instance in found if instance.host}

    def idle(self, context: nova_context.RequestContext,
             instances: Iterable[str]) -> frozenset[str]:
        """Tell the instances that nothing is being done with.

        :param context: with the rights of an administrator
        :param instances: UUIDs of instances
        :returns: those among them that are built, and have no task
        """
        found = find_instances(context, instances)
        return frozenset(
            instance.uuid for instance in found if instance.task_state is None
            and instance.vm_state != vm_states.BUILDING)

    def nodes_of(self, context: nova_context.RequestContext,
                 instances: Iterable[str]) -> frozenset[str]:
        """Read which nodes instances are meant for.

        :param context: with the rights of an administrator
        :param instances: UUIDs of instances
        :returns: UUIDs of nodes
        """
        found = objects.InstanceList.get_by_filters(
            context, {'uuid': sorted(instances), 'deleted': False},
            expected_attrs=[])
        return frozenset(instance.node for instance in found if instance.node)

    def _service(self, service: objects.Service) -> membership.Service:
        return service_of(
            service, self._is_up(service) if self._is_up else None)


def find_instances(context: nova_context.RequestContext,
                   instances: Iterable[str], attributes: Iterable[str] = ()
                   ) -> objects.InstanceList:
    """Read the instances that are not deleted, or can be restored.

    :param context: with the rights of an administrator
    :param instances: their UUIDs
    :param attributes: what to read beside their records, as Nova names it
    """
    return objects.InstanceList.get_by_filters(
        context, {'uuid': sorted(instances), 'deleted': False,
                  'soft_deleted': True}, expected_attrs=list(attributes))


def strangers(context: nova_context.RequestContext, hosts: Iterable[str]
              ) -> frozenset[str]:
    """Tell the services that have nodes of another hypervisor than Ironic.

    :param context: with the rights of an administrator
    :param hosts: the names of services
    :returns: those among them; one without a node is none, for all that it had
        may have been taken over
    """
    found = set()
    for host in frozenset(hosts):
        try:
            rows = objects.ComputeNodeList.get_all_by_host(context, host)
        except exception.NotFound:
            continue
        if any(row.hypervisor_type != fields.HVType.IRONIC for row in rows):
            found.add(host)
    return frozenset(found)


def liveness() -> Callable[[objects.Service], bool] | None:
    """Say how to know that a service is alive, if not by the database.

    :returns: what is asked of each service; None where the database tells
    """
    # With memcached the database has no heartbeats, and memcached no more than
    # those that are not too old.
    if CONF.servicegroup_driver != 'mc':
        return None
    return servicegroup.API().service_is_up


def service_of(service: objects.Service, alive: bool | None = None
               ) -> membership.Service:
    """Return what a record says of a service.

    :param service: the record
    :param alive: as :class:`nova_ironic_ring.membership.Service` has it
    """
    return membership.Service(
        service.host, service.last_seen_up or service.created_at,
        forced_down=service.forced_down, disabled=service.disabled,
        alive=alive)


def _rows(found: Iterable[objects.ComputeNode]) -> dict[str, ownership.Row]:
    return {row.uuid: ownership.Row(row.host, taker_of(row)) for row in found}


def taker_of(row: objects.ComputeNode) -> str | None:
    """Return who may take a node, by its row.

    :param row: the row
    :returns: as :class:`nova_ironic_ring.ownership.Row` has it
    """
    stats = row.stats or {}
    if stats.get(_GIVER) != membership.canonical(row.host):
        return None
    return stats.get(_TAKER)
