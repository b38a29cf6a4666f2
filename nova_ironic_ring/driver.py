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

"""The compute driver: reads, asks the keeper, and leaves the rest to Nova."""

import collections
from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import time

import nova.conf
from nova import context as nova_context
from nova import exception
from nova import objects
from openstack.baremetal.v1 import node as sdk_node
from oslo_log import log as logging
from oslo_reports import guru_meditation_report as gmr
from oslo_utils import timeutils

from nova_ironic_ring import builds
from nova_ironic_ring import conf
from nova_ironic_ring import failover
from nova_ironic_ring import inventory
from nova_ironic_ring import keeper
from nova_ironic_ring import leftovers
from nova_ironic_ring import membership
from nova_ironic_ring import ownership
from nova_ironic_ring import possession
from nova_ironic_ring import profile
from nova_ironic_ring import pulse
from nova_ironic_ring import records
from nova_ironic_ring import recovery
from nova_ironic_ring import report
from nova_ironic_ring import settings
from nova_ironic_ring import sighup
from nova_ironic_ring import sigterm
from nova_ironic_ring import upstream
from nova_ironic_ring import vanished

LOG = logging.getLogger(__name__)

CONF = nova.conf.CONF
conf.register_opts(CONF)
if not upstream.make_peer_list_mutable():
    conf.register_peer_list(CONF)


# Passes between two looks for what is left of nodes of dead services.
_CLEANING = 10


class IronicRingDriver(upstream.NovaIronicDriver):
    """Nova's ironic driver, for several services that share one Ironic."""

    def __init__(self, virtapi: object, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)
        self._records = records.Records(records.liveness())
        self._keeper = keeper.Keeper()
        self._settings: settings.Settings | None = None
        #: What this service says of itself in its nodes' rows.
        self._profile: dict[str, str] = {}
        self._complaint = ''
        self._reloader = sighup.Reloader(CONF)
        self._members: frozenset[str] = frozenset()
        self._trust = ownership.Trust.STARTING
        #: What was decided in the last pass.
        self._plan = keeper.Plan({})
        self._vanished = vanished.Guard()
        self._pulse = pulse.Pulse()
        #: The service of each foreign instance, as last heard of.
        self._hosts: dict[str, str] = {}
        #: Instances that are not on the nodes that Ironic has them on, with
        #: these, that it was said of.
        self._doubted: set[tuple[str, str]] = set()
        #: Whether anything moves because of it, and when it was made.
        self._moves = False
        self._pass: report.Pass | None = None
        self._heir = failover.Heir()
        self._ender = builds.Ender()
        self._cleaner = leftovers.Cleaner()
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
        gmr.TextGuruMeditation.register_section('Ironic ring', self._report)
        sigterm.install(self._pulse.end)

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
            self._profile = profile.publish(profile.of(self._settings))
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

    def get_available_resource(self, nodename: str) -> dict[str, object]:
        """Describe a node, and say who may take it from this service.

        :param nodename: the node's UUID
        :returns: as Nova's own driver has it; its ``stats`` are saved with
            the node's record, where the other services read them
        :raises nova.exception.ComputeHostNotFound: if another service has
            taken the node since it was decided to list it
        """
        if nodename in self._plan.decisions and (
                nodename not in upstream.tracked_nodes(self)):
            # The resource tracker takes every node that is listed.
            self._require_unchanged(nodename)
            # A service that was deleted meanwhile took the provider with it,
            # which Nova would not notice for minutes.
            upstream.placement(self).invalidate_resource_provider(nodename)
            if nodename in self._plan.abandoned:
                self._end_builds(nodename, self._plan.abandoned[nodename])
        resources = super().get_available_resource(nodename)
        stats = records.without_forged(resources['stats'])
        if nodename in self._plan.decisions:
            stats |= self._profile
        taker = self._plan.offers.get(nodename)
        if taker is not None:
            stats |= records.consent(CONF.host, taker)
        resources['stats'] = stats
        return resources

    def _end_builds(self, node: str, dead: str | None) -> None:
        """End what a dead service was to do with a node that is free."""
        context = nova_context.get_admin_context()
        for instance in self._ender.end_all(
                context, upstream.placement(self), node, dead):
            self._finish(context, node, dead, instance)

    def _finish(self, context: nova_context.RequestContext, node: str,
                dead: str | None, instance: objects.Instance) -> None:
        """Finish the delete of an instance that has no node any more."""
        if failover.rename(instance, CONF.host):
            recovery.start(self, context, CONF.host, {node: instance},
                           {node: str(dead)})

    spawn = builds.for_good(upstream.NovaIronicDriver.spawn)
    destroy = possession.spared(upstream.NovaIronicDriver.destroy)
    power_on = possession.required(upstream.NovaIronicDriver.power_on)
    power_off = possession.required(upstream.NovaIronicDriver.power_off)
    reboot = possession.required(upstream.NovaIronicDriver.reboot)
    rebuild = possession.required(upstream.NovaIronicDriver.rebuild)
    rescue = possession.required(upstream.NovaIronicDriver.rescue)
    unrescue = possession.required(upstream.NovaIronicDriver.unrescue)
    attach_interface = possession.required(
        upstream.NovaIronicDriver.attach_interface)
    detach_interface = possession.required(
        upstream.NovaIronicDriver.detach_interface)

    def is_node_deleted(self, nodename: str) -> bool:
        """Say whether a node is no more, so that its record can go.

        :param nodename: the node's UUID
        :returns: False for all nodes while too many of them have vanished
        """
        if self._vanished.closed or not super().is_node_deleted(nodename):
            return False
        self._vanished.note(nodename, timeutils.utcnow(with_timezone=True))
        return True

    def _require_unchanged(self, node: str) -> None:
        """See that a node is still as it was when it was decided to list it.

        :raises nova.exception.ComputeHostNotFound: if it is not
        """
        context = nova_context.get_admin_context()
        instance = self.node_cache[node].instance_id
        if instance is not None:
            host = self._records.hosts_of(context, [instance]).get(instance)
            unchanged = host is not None and (
                membership.canonical(host) == self._keeper.me)
        elif node in self._plan.owners:
            row = self._records.rows_of_nodes(context, [node]).get(node)
            unchanged = (row.owner if row else None) == self._plan.owners[node]
        else:
            return
        if not unchanged:
            raise exception.ComputeHostNotFound(host=CONF.host)

    def _nodes_to_manage(self) -> dict[str, sdk_node.Node]:
        """Say which nodes are this service's in this pass.

        :returns: the nodes by UUID
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: as :meth:`init_host`
        """
        start = time.monotonic()
        self._moves = False
        context = nova_context.get_admin_context()
        if self._reloader.reload():
            upstream.reset_manager(self)
        current = self._read_settings()
        own = self._look(context, current)

        nodes = inventory.list_nodes(
            self, current.conductor_group, current.shard)
        # After the listing, which takes seconds: an instance that appeared in
        # between is then known to be ours, and its node is not dropped.
        with self._asking_nova():
            instances = self._records.instances(context, current.host)
        if current.is_filtered:
            # A node that has left the group stays with its instance.
            nodes += inventory.nodes_of(
                self, instances - {node.instance_id for node in nodes})
        found = {node.id: node for node in nodes}

        found_on = {node.id: node.instance_id for node in nodes}
        plan = self._decide(context, current, found_on, instances)
        with self._asking_nova():
            self._plan = self._take_instances(
                context, current, found_on, plan)
        self._look_after_the_dead(context, current, found_on)
        plan = self._plan
        self._pass = report.Pass(timeutils.utcnow(with_timezone=True),
                                 time.monotonic() - start)
        self._log_pass(self._pass.seconds)
        # A service that is new is refused where it knows of instances.
        self._orphans = frozenset(
            found[node].instance_id
            for node, decision in plan.decisions.items()
            if decision is ownership.Decision.LEAVE_INSTANCE
            and self._keeper.desired(node) == self._keeper.me
        ) if own is not None else frozenset()
        return {node: found[node]
                for node, decision in plan.decisions.items()
                if decision.lists}

    def _look(self, context: nova_context.RequestContext,
              current: settings.Settings) -> membership.Service | None:
        """Look at the services, and log what has changed.

        :returns: this service's record; None before its first start
        """
        me = membership.canonical(current.host)
        with self._asking_nova():
            services = self._records.ring_services(context)
            own = next((service for service in services
                        if membership.canonical(service.host) == me), None)
            # It is not in the ring while it is disabled or has no node.
            own = own or self._records.service(context, current.host)
        self._pulse.watch(upstream.service_record(self))
        self._keeper.leaving = self._pulse.ended
        self._keeper.look(current, services, own, self._pulse.longest_gap(),
                          timeutils.utcnow(with_timezone=True))
        self._log_picture(current)
        return own

    def _decide(self, context: nova_context.RequestContext,
                current: settings.Settings,
                nodes: Mapping[str, str | None],
                instances: frozenset[str]) -> keeper.Plan:
        """Read what the decisions hang on, and have them made.

        :param nodes: the instance on each node, None for a free one
        :param instances: the instances of this service
        """
        with self._asking_nova():
            rows = self._records.rows_of_host(context, current.host)
        self._guard(current, nodes, rows)
        if not current.cooperative:
            return self._keeper.plan_at_once(nodes, instances)

        with self._asking_nova():
            building: frozenset[str] = frozenset()
            without_node = instances - set(nodes.values())
            if without_node and self._keeper.unwanted(nodes, rows):
                building = self._records.nodes_of(context, without_node)
            candidates = self._keeper.wanted(nodes, rows)
            wanted = (self._records.rows_of_nodes(context, candidates)
                      if candidates else {})
            foreign = set(self._keeper.foreign(nodes, instances))
            self._find_hosts(context, {
                instance: node for node, instance in nodes.items()
                if instance is not None and instance in foreign}, {
                nodes[node]: row.owner for node, row in wanted.items()})
            misplaced = self._keeper.misplaced(nodes, instances)
            idle = (self._records.idle(context, misplaced)
                    if misplaced else frozenset())
            others: list[membership.Service] = []
            if (candidates and not rows) or not self._keeper.knows([
                    *(row.owner for row in wanted.values()),
                    *self._hosts.values()]):
                others = self._records.all_services(context)
            rows = {**rows, **wanted}
        plan = self._keeper.plan(
            nodes, instances, building, rows, self._hosts, idle, others,
            upstream.tracked_nodes(self),
            timeutils.utcnow(with_timezone=True))
        self._log_plan(current, plan, rows)
        return plan

    def _find_hosts(self, context: nova_context.RequestContext,
                    instances: Mapping[str, str],
                    owners: Mapping[str | None, str]) -> None:
        """Find out which services instances belong to.

        One that Nova does not have on the node that Ironic has it on belongs
        to nobody here: whoever owns the node may say so.

        :param instances: those that this service has to know of, each with its
            node by Ironic's word
        :param owners: the owners of nodes, as far as they are known, by the
            instance on each: one that has changed says that the instance may
            have another service as well
        """
        unknown = {instance for instance in instances
                   if owners.get(instance, self._hosts.get(instance))
                   != self._hosts.get(instance)
                   or instance not in self._hosts}
        places = (self._records.places_of(context, unknown)
                  if unknown else {})
        # A member has said itself that it is one of the ring.
        strangers = records.strangers(context, {
            place.host for place in places.values()
            if membership.canonical(place.host)
            not in self._keeper.picture.members})
        self._doubted.intersection_update(instances.items())
        for instance, place in places.items():
            if place.node != instances[instance]:
                self._doubt(instance, instances[instance], place.host,
                            f'has it on {place.node}')
            elif place.host in strangers:
                self._doubt_stranger(instance, place.node, place.host)
        self._hosts = {
            **{instance: host for instance, host in self._hosts.items()
               if instance in instances and instance not in unknown},
            **{instance: place.host for instance, place in places.items()
               if place.node == instances[instance]
               and place.host not in strangers}}

    def _doubt(self, instance: str, node: str, host: str, reason: str) -> None:
        """Say once that an instance is not where Ironic has it."""
        if (instance, node) in self._doubted:
            return
        self._doubted.add((instance, node))
        LOG.warning(
            'Ironic has instance %(instance)s of %(host)s on node %(node)s, '
            'but Nova %(reason)s: it is not taken over. See who has set the '
            'instance_uuid of the node.', {
                'instance': instance, 'host': host, 'node': node,
                'reason': reason})

    def _doubt_stranger(self, instance: str, node: str, host: str) -> None:
        self._doubt(instance, node, host,
                    f'has nodes of {host} that are not of Ironic')

    def _take_instances(self, context: nova_context.RequestContext,
                        current: settings.Settings,
                        nodes: Mapping[str, str | None],
                        plan: keeper.Plan) -> keeper.Plan:
        """Take over the instances that it was decided on.

        :param nodes: the instance on each node, None for a free one
        :param plan: what was decided
        :returns: the same without those that could not be had
        """
        wanted = {
            node: failover.Estate(uuid := str(nodes[node]), self._hosts[uuid])
            for node, decision in plan.decisions.items()
            if decision.takes_instance}
        strangers = records.strangers(
            context, {estate.host for estate in wanted.values()})
        for node, estate in wanted.items():
            if estate.host in strangers:
                self._doubt_stranger(estate.instance, node, estate.host)
        taken = self._heir.take_over(context, current.host, {
            node: estate for node, estate in wanted.items()
            if plan.decisions[node] is ownership.Decision.FAIL_OVER},
            timeutils.utcnow(with_timezone=True), current.handover_timeout,
            strangers)
        recovery.start(self, context, current.host, taken, {
            node: wanted[node].host for node in taken})
        decisions = dict(plan.decisions)
        for node, estate in wanted.items():
            # Whoever has it now, it is not the one that had it.
            self._hosts.pop(estate.instance, None)
            if node not in taken and (
                    decisions[node] is ownership.Decision.FAIL_OVER
                    or not failover.take_offered(
                        context, current.host, node, estate, strangers)):
                decisions[node] = ownership.Decision.LEAVE_INSTANCE
        return dataclasses.replace(plan, decisions=decisions)

    def _look_after_the_dead(self, context: nova_context.RequestContext,
                             current: settings.Settings,
                             nodes: Mapping[str, str | None]) -> None:
        """Do what can wait, and must not stand in the way of a pass."""
        try:
            for found in self._ender.look_again(
                    context, upstream.placement(self)):
                self._finish(context, *found)
            self._clean(context, current, nodes)
        except Exception as error:
            LOG.error('What dead services have left behind cannot be looked '
                      'for: %s', error)

    def _clean(self, context: nova_context.RequestContext,
               current: settings.Settings,
               nodes: Mapping[str, str | None]) -> None:
        """Now and then, remove what is left of nodes of dead services."""
        now = timeutils.utcnow(with_timezone=True)
        window = _CLEANING * current.pass_interval
        if not current.cooperative or (
                self._keeper.trust is not ownership.Trust.FULL
                or not self._cleaner.is_due(now, window)):
            return
        dead = [service.host
                for service in self._records.all_services(context)
                if current.view.state(service, now).is_silent]
        self._cleaner.clean(
            context, upstream.placement(self), dead,
            lambda node: self._keeper.desired(node) == self._keeper.me,
            nodes, lambda node: upstream.is_deleted(self, node),
            current.vanished_nodes_limit, now, 2 * window)

    def _guard(self, current: settings.Settings,
               nodes: Mapping[str, str | None],
               rows: Mapping[str, ownership.Row]) -> None:
        """Find out whether too many nodes have vanished to believe it."""
        missing = rows.keys() - nodes.keys()
        before = self._vanished.closed
        self._vanished.look(
            missing, len(rows), current.vanished_nodes_limit,
            lambda node: upstream.is_deleted(self, node),
            timeutils.utcnow(with_timezone=True), 10 * current.pass_interval)
        if self._vanished.closed and not before:
            LOG.error(
                'Ironic does not show %(missing)d of the %(total)d nodes of '
                'this service any more, such as %(node)s: none of their '
                "records is deleted. See whether Nova's account in [ironic] "
                'may still see all nodes; if they were deleted on purpose, '
                'set [ironic_ring] vanished_nodes_limit to 100 and send '
                'SIGHUP.', {'missing': len(missing), 'total': len(rows),
                            'node': min(missing)})
        elif before and not self._vanished.closed:
            LOG.info('The nodes of this service that had vanished are there '
                     'again, or believed deleted.')

    def _log_picture(self, current: settings.Settings) -> None:
        members, trust = self._keeper.picture.members, self._keeper.trust
        if members != self._members:
            # Others may have taken instances over.
            self._hosts.clear()
            changes = [f'{host} has come' for host in sorted(
                members - self._members)] + [
                f'{host} is {self._keeper.picture.state(host).value}'
                for host in sorted(self._members - members)]
            LOG.info('Members of the ring: %(now)s (before: %(before)s): '
                     '%(changes)s.', {
                         'now': ', '.join(sorted(members)) or 'none',
                         'before': ', '.join(sorted(self._members)) or 'none',
                         'changes': ', '.join(changes)})
            self._members = members
        if trust is not self._trust:
            if trust is ownership.Trust.BLACKOUT:
                LOG.warning(
                    'Heartbeats of this service have been late, or Nova '
                    'could not be asked, so those of the others may be late '
                    'as well: until all has been in time for %g s, the '
                    'members of the ring stay as they are and no node is '
                    'taken from a service that looks dead.',
                    current.down_time)
            elif self._trust is ownership.Trust.BLACKOUT:
                LOG.info('All has been in time for %g s: services that look '
                         'dead are believed dead again.', current.down_time)
            self._trust = trust

    def _log_plan(self, current: settings.Settings, plan: keeper.Plan,
                  rows: Mapping[str, ownership.Row]) -> None:
        for dispute in plan.disputes:
            LOG.error(
                '%(host)s takes back nodes that %(me)s has taken, such as '
                '%(node)s (%(count)d in all): the two see different rings. '
                'Make [ironic] peer_list, conductor_group and shard and '
                '[ironic_ring] partitions agree on both (a shard is for one '
                'service alone), and enable %(host)s '
                "if it runs Nova's own driver and is disabled. Until then "
                '%(me)s hardly ever takes a node of %(host)s without its '
                'consent.',
                {'host': dispute.host, 'me': current.host,
                 'count': len(dispute.nodes), 'node': dispute.nodes[0]})
        for node, decision in plan.decisions.items():
            if decision.takes and node in rows:
                LOG.info('Node %(node)s of %(owner)s is %(why)s.', {
                    'node': node, 'owner': rows[node].owner,
                    'why': decision.value})
        for node, taker in plan.offers.items():
            if taker and rows[node].taker != taker:
                LOG.info('Node %(node)s is offered to %(taker)s.',
                         {'node': node, 'taker': taker})
        self._moves = any(
            decision.takes or decision.takes_instance
            for decision in plan.decisions.values()) or any(
            taker and rows[node].taker != taker
            for node, taker in plan.offers.items())

    def _log_pass(self, seconds: float) -> None:
        """Say what has been decided, aloud if anything moves."""
        log = LOG.info if self._moves else LOG.debug
        log('Of %(total)d nodes, %(counts)s. This took %(seconds).2f s.', {
            'total': len(self._plan.decisions),
            'counts': ', '.join(
                f'{count} {decision.value}' for decision, count
                in self._counts().items()) or 'none',
            'seconds': seconds})

    def _counts(self) -> collections.Counter[ownership.Decision]:
        return collections.Counter(self._plan.decisions.values())

    def _report(self) -> report.Report:
        """Say how this service is, for Nova's Guru Meditation Report."""
        return report.make(
            self._keeper, self._settings, self._counts(), self._pass,
            self._vanished.closed)

    @contextlib.contextmanager
    def _asking_nova(self) -> Iterator[None]:
        """Remember when Nova could not be asked."""
        try:
            yield
        except Exception:
            self._keeper.fail(timeutils.utcnow(with_timezone=True))
            raise
