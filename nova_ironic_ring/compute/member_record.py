# SPDX-License-Identifier: Apache-2.0

"""The member record of a service among its compute nodes.

Nova's resource tracker makes the record and its provider, once; a pass writes
what the record says.
"""

from typing import Any

from nova.compute import provider_tree as nova_provider_tree
from nova import exception
from openstack.baremetal.v1 import node as sdk_node

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.values import member

# Without a size, no instance fits.
_SIZES = ('vcpus', 'vcpus_used', 'memory_mb', 'memory_mb_used', 'local_gb',
          'local_gb_used')


class MemberMixin:
    """Lists the member record to Nova, beside what a driver lists.

    To be mixed in before the driver that is to be completed.
    """

    # A service of the driver that is completed.
    ring_service: Any

    def get_available_nodes(self, refresh: bool = False) -> list[str]:
        """Run a pass, and list the compute nodes of this service.

        :param refresh: ignored: each call runs a pass
        :returns: their names, that of the member record first: the peers are
            to know a new service soon
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: if there is no good
            configuration
        """
        found = super().get_available_nodes(refresh)  # type: ignore[misc]
        return [self._member, *found]

    def get_nodenames_by_uuid(self, refresh: bool = False) -> dict[str, str]:
        """Run a pass, and name the compute nodes of this service.

        :param refresh: ignored
        :returns: their names, by UUID
        """
        found = super().get_nodenames_by_uuid(refresh)  # type: ignore[misc]
        return {member.uuid_of(self.ring_service.settings.me): self._member,
                **{uuid: name for uuid, name in found.items()
                   if not member.is_member(name)}}

    def node_is_available(self, nodename: str) -> bool:
        """Return whether a compute node is this service's.

        :param nodename: its name
        """
        if member.is_member(nodename):
            return nodename == self._member
        return bool(super().node_is_available(  # type: ignore[misc]
            nodename))

    def is_node_deleted(self, nodename: str) -> bool:
        """Return whether a compute node is gone, with its record.

        :param nodename: its name
        """
        return not member.is_member(nodename) and bool(
            super().is_node_deleted(nodename))  # type: ignore[misc]

    def get_available_resource(self, nodename: str) -> dict[str, Any]:
        """Describe a compute node.

        :param nodename: its name
        :returns: as Nova's own driver has it
        :raises nova.exception.ComputeHostNotFound: if it is not this service's
        """
        ring = self.ring_service
        if not member.is_member(nodename):
            ring.go_on()
            found: dict[str, Any]
            found = super().get_available_resource(  # type: ignore[misc]
                nodename)
            return found
        said = ring.to_say()
        if nodename != self._member or said is None:
            raise exception.ComputeHostNotFound(host=nodename)
        mixed: Any = self
        # Nova's driver would warn of a node without an architecture.
        described = upstream.describe(mixed, sdk_node.Node(
            id=member.uuid_of(ring.settings.me),
            properties={'cpu_arch': 'x86_64'}))
        return described | dict.fromkeys(_SIZES, 0) | {
            'hypervisor_hostname': nodename, 'disk_available_least': None,
            'supported_instances': [], 'stats': said}

    def update_provider_tree(
            self, provider_tree: nova_provider_tree.ProviderTree,
            nodename: str, allocations: object = None) -> None:
        """Write what a compute node has into a tree of providers.

        :param provider_tree: the tree
        :param nodename: the name of the compute node; a member record has
            nothing, so that no scheduler chooses it
        :param allocations: as Nova's own driver has it
        """
        if not member.is_member(nodename):
            super().update_provider_tree(  # type: ignore[misc]
                provider_tree, nodename, allocations)

    @property
    def _member(self) -> str:
        """The name of the member record."""
        return member.name(self.ring_service.settings.me)
