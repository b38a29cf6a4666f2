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

"""The compute driver: what it overrides of Nova's, and nothing more."""

from collections.abc import Collection
import threading

from nova import exception
from oslo_log import log as logging
from oslo_reports import guru_meditation_report as gmr

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import guards
from nova_ironic_ring.compute import recovery
from nova_ironic_ring.compute import report
from nova_ironic_ring.compute import service
from nova_ironic_ring.core import passes
from nova_ironic_ring.process import sigterm

LOG = logging.getLogger(__name__)


@guards.guarded(guards.build_once, 'spawn')
@guards.guarded(guards.destroy_if_mine, 'destroy')
@guards.guarded(guards.require_mine, 'power_on power_off reboot rebuild '
                'rescue unrescue attach_interface detach_interface '
                'trigger_crash_dump get_serial_console get_vnc_console')
class RingMixin(upstream.NodeCache):
    """Lets several services share one Ironic.

    To be mixed in before Nova's ironic driver, or before a site's own subclass
    of that driver::

        class SiteRingDriver(RingMixin, SiteIronicDriver):
            pass
    """

    node_cache: Collection[str]

    def __init__(self, virtapi: object, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)  # type: ignore[call-arg]
        #: What decides for this service.
        self.ring_service = service.RingService(self)
        #: Finishes what dead services were doing with their instances.
        self.ring_recovery = recovery.Recovery(self)
        # Nova's driver asks in many threads at once where it has no node.
        self.ring_lock = threading.RLock()

    def init_host(self, host: str) -> None:
        """Refuse to start with a configuration that no ring can come of.

        :param host: the name of this service
        :raises nova.exception.InvalidConfiguration: if there is one, such as a
            conductor group without a peer list that names this service
        """
        # Not Nova's own init_host, which does nothing but build its own ring.
        ring = self.ring_service
        ring.read_settings()
        ring.reloader.install()
        gmr.TextGuruMeditation.register_section(
            'Ironic ring', lambda: report.make(ring))
        sigterm.install(ring.process.pulse.end)
        upstream.guard_cleanup(self, guards.clean_up_if_mine)

    def get_available_nodes(self, refresh: bool = False) -> list[str]:
        """Run a pass, and list the nodes that are this service's now.

        The pass begins here: Nova's resource tracker asks for the nodes, and
        then updates each node that is listed.

        :param refresh: ignored, as by Nova's own driver: each call runs a pass
        :returns: UUIDs
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: as :meth:`init_host`
        """
        ring = self.ring_service
        before = ring.passes
        with self.ring_lock:
            # Unless another thread has run one meanwhile.
            if ring.passes == before:
                result = ring.run_pass()
                upstream.fill_cache(self, ring.nodes)
                self.ring_recovery.start(result.taken)
            return list(ring.nodes)

    def get_available_resource(self, nodename: str) -> dict[str, object]:
        """Describe a node, and say who may take it from this service.

        :param nodename: the node's UUID
        :returns: as Nova's own driver has it; its ``stats`` are saved with
            the node's record, where the other services read them
        :raises nova.exception.ComputeHostNotFound: if another service has
            taken the node since it was decided to list it
        """
        if not self.node_cache:
            # Before the last look: Nova's driver would do so after it.
            self._refresh_cache()
        with self.ring_lock:
            try:
                taken = self.ring_service.claim(nodename)
            except passes.NodeLostError as error:
                raise exception.ComputeHostNotFound(
                    host=self.ring_service.settings.host) from error
        self.ring_recovery.start(taken)
        resources = super().get_available_resource(  # type: ignore[misc]
            nodename)
        resources['stats'] = self.ring_service.stats(
            nodename, resources['stats'])
        return resources

    def is_node_deleted(self, nodename: str) -> bool:
        """Say whether a node is no more, so that its record can go.

        :param nodename: the node's UUID
        :returns: False for all nodes while too many of them have vanished,
            and for a node that Nova has an instance on
        """
        with self.ring_lock:
            return self.ring_service.is_deleted(nodename)

    def list_instance_uuids(self) -> list[str]:
        """List the instances on the nodes that this service looks after.

        Those among them that another service has are of no concern to it; but
        one that Nova has deleted while its service was down belongs to nobody,
        and this is where Nova's periodic task looks for such.

        :returns: the UUIDs of this service's instances, and of those that
            others have on nodes that the ring maps to this service
        """
        own = super().list_instance_uuids()  # type: ignore[misc]
        orphans = self.ring_service.result.orphans
        return own + sorted(orphans.difference(own))

    def get_num_instances(self) -> int:
        """Count the instances of this service."""
        orphans = self.ring_service.result.orphans
        return sum(instance not in orphans
                   for instance in self.list_instance_uuids())


class IronicRingDriver(RingMixin, upstream.NovaIronicDriver):
    """Nova's ironic driver, for several services that share one Ironic."""
