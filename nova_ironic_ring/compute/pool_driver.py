# SPDX-License-Identifier: Apache-2.0

"""The pool driver: one compute node for all nodes of a kind."""

from collections.abc import Callable
import contextlib
import functools
from typing import Any

from nova.compute import provider_tree as nova_provider_tree
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging

from nova_ironic_ring.adapters import limits
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute.instances import guards
from nova_ironic_ring.compute import member_record
from nova_ironic_ring.compute import pool_service
from nova_ironic_ring.compute.pools import named_nodes
from nova_ironic_ring.compute.pools import refusals
from nova_ironic_ring.compute import shared
from nova_ironic_ring.core.values import bounds
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import pools

LOG = logging.getLogger(__name__)

_SPAWN = upstream.signature('spawn')


class _CountingMixin(shared.OnNodeMixin):
    """Makes Nova see pools instead of nodes."""

    ring_service: pool_service.PoolService
    _SERVICE = pool_service.PoolService

    def __init__(self, virtapi: object, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)
        #: Whether builds were refused.
        self.ring_refusals = refusals.Refusals()

    def init_host(self, host: str) -> None:
        """Refuse to start if the configuration allows no ring.

        :param host: the name of this service
        :raises nova.exception.InvalidConfiguration: as
            :meth:`nova_ironic_ring.compute.driver.RingMixin.init_host`
        """
        super().init_host(host)
        upstream.skip_allocations(self)
        upstream.watch_requests(self, self._begin_build, lambda instance: None)
        upstream.excuse_builds(self, lambda: self.ring_refusals.is_refused)
        # The sum of the flavors in a pool can exceed what a column takes.
        upstream.bound_records(self, bounds.number)
        ring = self.ring_service
        upstream.update_when_needed(
            self, ring.settings.me, self._is_to_update,
            contextlib.nullcontext)

    def _is_to_update(self, node: str) -> bool:
        """Return whether the tracker is to update a compute node.

        :param node: its name; each pool is updated in each pass
        """
        return not member.is_member(node) or (
            self.ring_service.is_record_to_be_made())

    def get_available_nodes(self, refresh: bool = False) -> list[str]:
        """Run a pass, and list the pools of this service.

        :param refresh: ignored, as by Nova's own driver: each call runs a pass
        :returns: their names
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: as :meth:`init_host`
        """
        with self._one_pass():
            return list(self.ring_service.result.found)

    def get_nodenames_by_uuid(self, refresh: bool = False) -> dict[str, str]:
        """Run a pass, and name the pools of this service.

        :param refresh: ignored
        :returns: their names, by UUID
        """
        self.get_available_nodes(refresh)
        return {pools.uuid_of(name): name
                for name in self.ring_service.result.found}

    def node_is_available(self, nodename: str) -> bool:
        """Return whether this service has a pool.

        :param nodename: its name
        """
        if not pools.is_pool(nodename):
            return super().node_is_available(  # type: ignore[misc]
                nodename)
        self._count_first()
        return nodename in self.ring_service.result.found

    def is_node_deleted(self, nodename: str) -> bool:
        """Return whether a pool is gone, so that its record can be deleted.

        :param nodename: its name
        :returns: False for a pool that has nodes, or that Nova has an instance
            or an allocation of
        """
        with limits.haste():
            return self.ring_service.is_deleted(nodename)

    def get_available_resource(self, nodename: str) -> dict[str, object]:
        """Describe a pool.

        :param nodename: its name
        :returns: as Nova's own driver has it for a node
        :raises nova.exception.ComputeHostNotFound: if this service does not
            have the pool
        """
        if not pools.is_pool(nodename):
            return super().get_available_resource(  # type: ignore[misc]
                nodename)
        self._count_first()
        described = self.ring_service.describe(nodename)
        if described is None:
            raise exception.ComputeHostNotFound(host=nodename)
        return described

    def update_provider_tree(
            self, provider_tree: nova_provider_tree.ProviderTree,
            nodename: str, allocations: object = None) -> None:
        """Write the number of a pool's nodes into a tree of providers.

        :param provider_tree: the tree
        :param nodename: the name of the pool
        :param allocations: ignored: nothing is moved
        """
        if not pools.is_pool(nodename):
            return super().update_provider_tree(
                provider_tree, nodename, allocations)
        with self._completing(provider_tree, nodename):
            self.ring_service.update_tree(provider_tree, nodename)
        return None

    def prepare_for_spawn(self, instance: objects.Instance) -> None:
        """Reserve a node for an instance that is to be built.

        :param instance: the instance, with its pool as its node
        :raises nova.exception.ComputeResourcesUnavailable: if there is none,
            whereupon Nova tries another service
        :raises nova.exception.InstanceUnacceptable: if the one that the
            request names cannot be had, whereupon Nova ends the build
        """
        name = instance.get('node')
        if not pools.is_pool(name):
            return super().prepare_for_spawn(instance)
        # Unless Ironic fails.
        self.ring_refusals.is_refused = True
        named = self.ring_named_nodes.node_for(instance)
        try:
            found = self.ring_service.reserve(instance, named=named)
        except Exception as error:
            self.ring_refusals.is_refused = False
            LOG.exception('No node of pool %(pool)s could be reserved.',
                          {'pool': name}, instance=instance)
            raise exception.ComputeResourcesUnavailable(
                reason=str(error)) from error
        if named and found.refused:
            raise named_nodes.refuse(instance, named, found.refused)
        if found.node is None:
            raise exception.ComputeResourcesUnavailable(
                reason=f'pool {name} has no free node' if found.had is None
                else f'the instance still has node {found.had}, which is to '
                'be cleaned up first')
        self.ring_refusals.is_refused = False
        LOG.info('Node %(node)s of pool %(pool)s is reserved.',
                 {'node': found.node, 'pool': name}, instance=instance)
        return None

    def spawn(self, context: nova_context.RequestContext,
              instance: objects.Instance, *args: Any, **kwargs: Any) -> None:
        """Deploy an instance, if need be on another node of its pool.

        One bad node does not make a build fail. There is no second try if
        volumes are attached, because they are attached to the reserved node,
        or if the request names the node.

        :param context: the context of the build
        :param instance: the instance
        :param args: as Nova's own driver has them
        :param kwargs: as Nova's own driver has them
        :raises nova.exception.BuildAbortException: if the deployment on the
            node that the request names fails; otherwise Nova would try again
            with each other service
        """
        deploy = functools.partial(
            super().spawn, context, instance,  # type: ignore[misc]
            *args, **kwargs)
        if not pools.is_pool(instance.get('node')):
            return deploy()
        given = _SPAWN.bind(
            self, context, instance, *args, **kwargs).arguments
        node = None
        with contextlib.suppress(exception.InstanceNotFound):
            node = upstream.node_of(self, instance)
        try:
            return self._try(deploy, instance, node)
        except Exception as error:
            if node is None or not guards.is_to_be_built(instance, error):
                raise
            if self.ring_named_nodes.node_for(instance):
                raise exception.BuildAbortException(
                    instance_uuid=instance.uuid, reason=(
                        f'the deployment on node {node}, which was asked for, '
                        f'has failed: {error}')) from error
            if upstream.has_volumes(given.get('block_device_info')):
                raise
            network_info = given.get('network_info')
            self.destroy(context, instance, network_info)
            # That may have taken minutes.
            if not guards.is_to_be_built(instance, error):
                raise
            node = self.ring_service.reserve(instance, frozenset({node})).node
            if node is None:
                raise
            LOG.info('Node %s is tried instead.', node, instance=instance)
            # Through the guard, because another service may have it now.
            whole: Any = self
            whole.prepare_networks_before_block_device_mapping(
                instance, network_info)
        return self._try(deploy, instance, node)

    def _try(self, deploy: Callable[[], None], instance: objects.Instance,
             node: str | None) -> None:
        """Deploy an instance, and remember the result for its node."""
        try:
            deploy()
        except Exception as error:
            if node is not None and guards.is_to_be_built(instance, error):
                self.ring_service.note_failure(node, instance.uuid, error)
            raise
        if node is not None:
            self.ring_service.note_success(node)

    def _begin_build(self, request: upstream.Request) -> None:
        """Note that this thread begins another build."""
        self.ring_refusals.is_refused = False

    def destroy(self, context: nova_context.RequestContext,
                instance: objects.Instance, *args: Any, **kwargs: Any) -> None:
        """Destroy an instance, and keep builds off its node for now.

        :param context: with the rights of an administrator
        :param instance: the instance
        :param args: as Nova's own driver has them
        :param kwargs: as Nova's own driver has them
        """
        name, node = instance.node, None
        if pools.is_pool(name):
            with contextlib.suppress(exception.InstanceNotFound):
                node = upstream.node_of(self, instance)
        super().destroy(  # type: ignore[misc]
            context, instance, *args, **kwargs)
        if node is not None:
            self.ring_service.release(node, name)

    def _count_first(self) -> None:
        """Run a pass, if there was none."""
        if not self.ring_service.passes:
            self.get_available_nodes()


@guards.protected
class PoolMixin(member_record.MemberMixin, _CountingMixin):
    """Lets several services share one Ironic, by pools of nodes.

    To be mixed in before Nova's ironic driver, or before a site's own subclass
    of that driver, as :class:`nova_ironic_ring.compute.driver.RingMixin`.
    """


class IronicPoolDriver(PoolMixin, upstream.NovaIronicDriver):
    """Nova's ironic driver, with a compute node for each kind of node."""
