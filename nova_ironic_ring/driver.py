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
from openstack.baremetal.v1 import node as sdk_node
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ironic_ring import conf
from nova_ironic_ring import inventory
from nova_ironic_ring import membership
from nova_ironic_ring import ownership
from nova_ironic_ring import ring
from nova_ironic_ring import upstream

LOG = logging.getLogger(__name__)

CONF = nova.conf.CONF
conf.register_opts(CONF)


class IronicRingDriver(upstream.NovaIronicDriver):
    """Nova's ironic driver, for several services that share one Ironic."""

    # Tells the resource tracker that a row may move between services. Said
    # here too, because Nova's own driver may stop saying it.
    rebalances_nodes = True

    def __init__(self, virtapi: object, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)
        self._members: frozenset[str] = frozenset()

    def init_host(self, host: str) -> None:
        """Refuse to start with a configuration that no ring can come of.

        :param host: the name of this service
        :raises nova.exception.InvalidPeerList: if a conductor group is
            configured without a peer list that names this service
        """
        # Not Nova's own init_host, which does nothing but build its own ring.
        self._view()

    def nodes_to_manage(self) -> dict[str, sdk_node.Node]:
        """Decide which nodes are this service's in this pass.

        :returns: the nodes by UUID
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidPeerList: as :meth:`init_host`
        """
        context = nova_context.get_admin_context()
        current = self._ring(context)

        nodes = inventory.list_nodes(
            self, CONF.ironic.conductor_group, CONF.ironic.shard)
        # After the listing, which takes seconds: an instance that appeared in
        # between is then known to be ours, and its node is not dropped.
        instances = frozenset(
            objects.InstanceList.get_uuids_by_host(context, CONF.host))

        managed = {}
        counts: collections.Counter[ownership.Decision] = collections.Counter()
        for node in nodes:
            decision = ownership.decide(
                CONF.host, node.id, node.instance_id, instances, current)
            counts[decision] += 1
            if decision.lists:
                managed[node.id] = node
        LOG.debug('Of %(total)d nodes: %(counts)s.', {
            'total': len(nodes),
            'counts': ', '.join('%d %s' % (count, decision.value)
                                for decision, count in counts.items())})
        return managed

    def _ring(self, context: nova_context.RequestContext) -> ring.Ring:
        """Build the ring of the present members."""
        services = objects.ServiceList.get_all_computes_by_hv_type(
            context, self._get_hypervisor_type())
        members = self._view().members(
            map(self._record, services), timeutils.utcnow(with_timezone=True))
        if members != self._members:
            LOG.info('Members of the ring: %(now)s (before: %(before)s).', {
                'now': ', '.join(sorted(members)),
                'before': ', '.join(sorted(self._members)) or 'none'})
            self._members = members
        return ring.Ring(members, CONF.ironic_ring.partitions)

    def _view(self) -> membership.View:
        """Read the configuration that decides who may be a member."""
        try:
            peers = membership.peers(
                CONF.host, CONF.ironic.conductor_group, CONF.ironic.shard,
                CONF.ironic.peer_list)
        except ValueError as error:
            LOG.error('%s', error)
            raise exception.InvalidPeerList(host=CONF.host) from error
        return membership.View(CONF.host, CONF.service_down_time, peers)

    def _record(self, service: objects.Service) -> membership.Service:
        """Take from Nova's object what membership is judged by."""
        if CONF.servicegroup_driver == 'mc':
            # Heartbeats are in memcached then, not in the database.
            last_seen = self.servicegroup_api.get_updated_time(service)
        else:
            last_seen = service.last_seen_up
        return membership.Service(
            service.host, last_seen or service.created_at,
            service.forced_down)
