# SPDX-License-Identifier: Apache-2.0

"""The compute driver: what it overrides of Nova's, and nothing more."""

from nova import exception
from oslo_log import log as logging

from nova_ironic_ring.adapters import limits
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute.instances import guards
from nova_ironic_ring.compute import member_record
from nova_ironic_ring.compute import node_service
from nova_ironic_ring.compute import shared
from nova_ironic_ring.core.taking.building import arrivals
from nova_ironic_ring.core.values import member

LOG = logging.getLogger(__name__)


class _NodesMixin(shared.OnNodeMixin):
    """Makes Nova see the nodes of this service."""

    ring_service: node_service.RingService
    _SERVICE = node_service.RingService

    def init_host(self, host: str) -> None:
        """Refuse to start if the configuration allows no ring.

        :param host: the name of this service
        :raises nova.exception.InvalidConfiguration: if there is one, such as a
            peer list that does not name this service, or
            metrics on no address
        """
        super().init_host(host)
        upstream.watch_claims(self, self._before_build)
        upstream.restore_providers(self)
        ring = self.ring_service
        upstream.update_when_needed(
            self, ring.settings.me, self._is_to_update, ring.updating)
        upstream.read_rows_once(self, ring.nova.give_own_rows)
        upstream.look_where_builds_are(self, ring.nodes_of_builds)
        upstream.tell_status(
            self, ring.to_be_told, ring.placement.tell_status)
        upstream.before_rebuilt(self, self._track_own)

    def _before_build(self, instance: str, node: str) -> None:
        """Take the node of a build, if another service has it now.

        :param instance: the UUID of the instance
        :param node: the UUID of the node
        """
        ring = self.ring_service
        try:
            if ring.process.tracks(node):
                if not ring.is_gone(node):
                    return
                upstream.forget(self, node)
            if self._track_own(node):
                return
            with limits.haste():
                if not ring.take_for_build(arrivals.Arrival(instance, node)):
                    return
            upstream.track(self, node)
        except Exception as error:
            # If the resource tracker does not track the node, it refuses the
            # build now, and Nova tries another node.
            LOG.warning('Cannot take node %(node)s for the build of '
                        'instance %(instance)s: %(error)s', {
                            'node': node, 'instance': instance,
                            'error': error})

    def _is_to_update(self, node: str) -> bool:
        """Return whether the tracker is to update a node that was listed.

        :param node: the node's UUID
        """
        ring = self.ring_service
        if member.is_member(node):
            return ring.is_record_to_be_made()
        return ring.is_to_update(node)

    def _track_own(self, node: str) -> bool:
        """Have the tracker track a node that has not needed an update yet.

        :param node: the node's UUID
        :returns: False if the node is not this service's
        """
        if node not in self.ring_service.untracked():
            return False
        try:
            upstream.track(self, node)
        except exception.ComputeHostNotFound:
            # Another service has it now.
            return False
        return True

    def get_available_nodes(self, refresh: bool = False) -> list[str]:
        """Run a pass, and list the nodes that are this service's now.

        The pass begins here: Nova's resource tracker asks for the nodes, and
        then updates each node that is listed.

        :param refresh: ignored, as by Nova's own driver: each call runs a pass
        :returns: UUIDs
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: as :meth:`init_host`
        """
        with self._one_pass():
            return list(self.ring_service.nodes)

    def get_available_resource(self, nodename: str) -> dict[str, object]:
        """Describe a node.

        :param nodename: the node's UUID
        :returns: as Nova's own driver has it; its ``stats`` are saved with the
            node's record, where the other services read them
        :raises nova.exception.ComputeHostNotFound: if another service has
            taken the node since it was decided to list it
        """
        if not self.node_cache:
            # Before the last look: Nova's driver would do so after it.
            self.get_available_nodes()
        with limits.haste():
            is_mine = self.ring_service.look_at(nodename)
        if not is_mine:
            raise exception.ComputeHostNotFound(
                host=self.ring_service.settings.host)
        resources = super().get_available_resource(  # type: ignore[misc]
            nodename)
        resources['stats'] = self.ring_service.stats(
            nodename, resources['stats'])
        return resources

    def is_node_deleted(self, nodename: str) -> bool:
        """Return whether a node is gone, so that its record can be deleted.

        :param nodename: the node's UUID
        :returns: False for all nodes while too many of them have vanished,
            and for a node that Nova has an instance on
        """
        with limits.haste():
            return self.ring_service.is_deleted(nodename)


@guards.protected
class RingMixin(member_record.MemberMixin, _NodesMixin):
    """Lets several services share one Ironic.

    To be mixed in before Nova's ironic driver, or before a site's own subclass
    of that driver::

        class SiteRingDriver(RingMixin, SiteIronicDriver):
            pass
    """


class IronicRingDriver(RingMixin, upstream.NovaIronicDriver):
    """Nova's ironic driver, for several services that share one Ironic."""
