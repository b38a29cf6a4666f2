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

"""The compute driver: reads, asks the ring, and leaves the rest to Nova."""

import collections

import nova.conf
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import fields
from nova import servicegroup
from openstack.baremetal.v1 import node as sdk_node
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ironic_ring import conf
from nova_ironic_ring import inventory
from nova_ironic_ring import membership
from nova_ironic_ring import ownership
from nova_ironic_ring import ring
from nova_ironic_ring import settings
from nova_ironic_ring import sighup
from nova_ironic_ring import upstream

LOG = logging.getLogger(__name__)

CONF = nova.conf.CONF
conf.register_opts(CONF)
if not upstream.make_peer_list_mutable():
    conf.register_peer_list(CONF)


class IronicRingDriver(upstream.NovaIronicDriver):
    """Nova's ironic driver, for several services that share one Ironic."""

    def __init__(self, virtapi: object, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)
        # Nova's own driver has one for its ring alone.
        self._service_group = servicegroup.API()
        self._settings: settings.Settings | None = None
        self._complaint = ''
        self._reloader = sighup.Reloader(CONF)
        self._members: frozenset[str] = frozenset()
        #: Whether Nova has a record of this service with a node.
        self._is_known = False
        #: Instances of others, or of nobody, on nodes for this service.
        self._orphans: frozenset[str] = frozenset()

    def init_host(self, host: str) -> None:
        """Refuse to start with a configuration that no ring can come of.

        :param host: the name of this service
        :raises nova.exception.InvalidConfiguration: if there is one, such as a
            conductor group without a peer list that names this service
        """
        # Not Nova's own init_host, which does nothing but build its own ring.
        self._read_settings()
        self._reloader.install()

    def list_instance_uuids(self) -> list[str]:
        """List the instances on the nodes that this service looks after.

        Those among them that another service has are of no concern to it; but
        one that Nova has deleted while its service was down belongs to nobody,
        and this is where Nova's periodic task looks for such.

        :returns: the UUIDs of this service's instances, and of those that
            others have on nodes that the ring maps to this service
        """
        own = super().list_instance_uuids()
        return own + sorted(self._orphans.difference(own))

    def get_num_instances(self) -> int:
        """Count the instances of this service."""
        return sum(instance not in self._orphans
                   for instance in self.list_instance_uuids())

    def _read_settings(self) -> settings.Settings:
        """Read the configuration, or keep the last good one.

        :raises nova.exception.InvalidConfiguration: if there is no good one
        """
        try:
            self._settings = settings.read(CONF)
            self._complaint = ''
        except ValueError as error:
            if self._settings is None:
                LOG.error('%s', error)
                raise exception.InvalidConfiguration(str(error)) from error
            if str(error) != self._complaint:
                self._complaint = str(error)
                LOG.error('%s Until then, what was configured before stays in '
                          'force.', error)
        return self._settings

    def _nodes_to_manage(self) -> dict[str, sdk_node.Node]:
        """Say which nodes are this service's in this pass.

        :returns: the nodes by UUID
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: as :meth:`init_host`
        """
        context = nova_context.get_admin_context()
        if self._reloader.reload():
            upstream.reset_manager(self)
        current = self._read_settings()
        me = membership.canonical(current.host)
        members = self._find_members(context, current)
        points = ring.Ring(members, current.partitions)

        nodes = inventory.list_nodes(
            self, current.conductor_group, current.shard)
        # After the listing, which takes seconds: an instance that appeared in
        # between is then known to be ours, and its node is not dropped.
        instances = frozenset(
            objects.InstanceList.get_uuids_by_host(context, current.host))
        if current.is_filtered:
            # A node that has left the group stays with its instance.
            nodes += inventory.nodes_of(
                self, instances - {node.instance_id for node in nodes})

        managed = {}
        orphans = set()
        counts: collections.Counter[ownership.Decision] = collections.Counter()
        for node in nodes:
            decision = ownership.decide(
                current.host, node.id, node.instance_id, instances, points)
            counts[decision] += 1
            if decision.lists:
                managed[node.id] = node
            elif decision is ownership.Decision.LEAVE_INSTANCE and (
                    points.owner(node.id) == me):
                orphans.add(node.instance_id)
        # A service that is new is refused where it knows of instances.
        self._orphans = frozenset(orphans if self._is_known else ())
        LOG.debug('Of %(total)d nodes, %(counts)s.', {
            'total': len(nodes),
            'counts': ', '.join(f'{count} {decision.value}'
                                for decision, count in counts.items())})
        return managed

    def _find_members(self, context: nova_context.RequestContext,
                      current: settings.Settings) -> frozenset[str]:
        """Name the present members, and log when they have changed."""
        services = objects.ServiceList.get_all_computes_by_hv_type(
            context, fields.HVType.IRONIC)
        self._is_known = any(
            membership.canonical(service.host)
            == membership.canonical(current.host) for service in services)
        members = current.view.members(
            map(self._record, services), timeutils.utcnow(with_timezone=True))
        if members != self._members:
            LOG.info('Members of the ring: %(now)s (before: %(before)s).', {
                'now': ', '.join(sorted(members)),
                'before': ', '.join(sorted(self._members)) or 'none'})
            self._members = members
        return members

    def _record(self, service: objects.Service) -> membership.Service:
        """Take from Nova's object what membership is judged by."""
        # With memcached the database has no heartbeats, and memcached no more
        # than those that are not too old.
        alive = (self._service_group.service_is_up(service)
                 if CONF.servicegroup_driver == 'mc' else None)
        return membership.Service(
            service.host, service.last_seen_up or service.created_at,
            forced_down=service.forced_down, disabled=service.disabled,
            alive=alive)
