# SPDX-License-Identifier: Apache-2.0

"""The methods that the ring driver and the pool driver share.

They run the pass, the look between passes and the report. A module for each
driver has what only that driver does.
"""

from collections.abc import Collection, Iterator, Sequence
import contextlib
import functools
from typing import Any

from nova.compute import provider_tree as nova_provider_tree
from nova.compute import task_states
from nova.compute import vm_states
import nova.conf
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging
from oslo_reports import guru_meditation_report as gmr
from oslo_utils import excutils

from nova_ironic_ring.adapters import limits
from nova_ironic_ring.adapters import lines
from nova_ironic_ring.adapters import names
from nova_ironic_ring.adapters.nova import arrivals
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import certificates
from nova_ironic_ring.compute import changes
from nova_ironic_ring.compute.instances import evacuations
from nova_ironic_ring.compute.instances import guards
from nova_ironic_ring.compute.instances import recovery
from nova_ironic_ring.compute import metrics
from nova_ironic_ring.compute.pools import named_nodes
from nova_ironic_ring.compute.pools import on_node
from nova_ironic_ring.compute import reactions
from nova_ironic_ring.compute import report
from nova_ironic_ring.compute import service
from nova_ironic_ring.compute import takes
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.process import sigterm

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

_NODE_LEFT = ('undeploy the node that "openstack baremetal node show '
              '--instance" names, if there is one.')
_NOT_CLEANED_UP = ('Cannot clean up after the failed unshelving of instance '
                   '%s: its next unshelving does. If it is deleted before '
                   f'that, {_NODE_LEFT}')
_NOT_FREED = ('Cannot clean up after the failed build of instance %s: its '
              f'delete does, if it has a service by then. Otherwise, '
              f'{_NODE_LEFT}')
_POWER_OFF = upstream.signature('power_off')
# Tasks of servers that may no longer have a machine.
_WITHOUT_MACHINE = frozenset({
    task_states.SHELVING, task_states.SHELVING_OFFLOADING,
    task_states.SOFT_DELETING})


def _look_at_nova() -> None:
    """Refuse a Nova that lacks a name, and doubt one that was not tested."""
    lacking = names.missing()
    if lacking:
        raise exception.NovaException(
            names.refusal(names.release(), lacking))
    if not names.is_tested(names.release()):
        LOG.warning('%s', names.doubt(names.release()))


class SharedMixin(upstream.NodeCache, upstream.OwnNodes):
    """What both mixins do before Nova's ironic driver."""

    node_cache: Collection[str]
    #: The class of what decides for this service.
    _SERVICE: type[service.Service]

    def __init__(self, virtapi: object, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)  # type: ignore[call-arg]
        #: What decides for this service.
        self.ring_service = self._SERVICE(self)
        #: Finishes what dead services were doing with their instances.
        self.ring_recovery = recovery.Recovery(
            self, self.ring_service.process.builds, self._track_own)
        self.ring_service.process.recover = (
            lambda taken: self.ring_recovery.start(taken))
        #: The builds that are for one node.
        self.ring_named_nodes = named_nodes.NamedNodes()
        #: Take free nodes, and look at the other services, between two
        #: passes.
        self.ring_takes = takes.Takes(
            self, self.ring_service, self._take_free)
        self.ring_reactions = reactions.Reactions(
            self, self.ring_service, self._look_between_passes,
            self.ring_takes)
        #: The instances that are being unshelved, by UUID, each on the node
        #: that is reserved for it.
        self._unshelved: dict[str, on_node.OnNode] = {}
        #: Looks for nodes that have changed in Ironic between two passes.
        self.ring_changes = changes.Changes(
            self, self.ring_service, self._look_for_changes)

    def init_host(self, host: str) -> None:
        """Refuse to start if the configuration allows no ring.

        :param host: the name of this service
        :raises nova.exception.InvalidConfiguration: if there is one, such as a
            peer list that does not name this service, or
            metrics on no address, or with a key and no certificate
        :raises nova.exception.NovaException: if Nova lacks a name that this
            driver uses
        """
        lines.install()
        # Before any of them is used.
        _look_at_nova()
        # Not Nova's own init_host, which does nothing but build its own ring.
        ring = self.ring_service
        ring.read_settings()
        upstream.limit_sessions(self)
        ring.reloader.install()
        gmr.TextGuruMeditation.register_section(
            'Ironic ring',
            lambda: report.make(ring, self.ring_recovery.pending))
        metrics.start(
            ring, lambda: self.ring_recovery.pending,
            CONF.ironic_ring.metrics_listen, certificates.Paths(
                CONF.ironic_ring.metrics_cert_file,
                CONF.ironic_ring.metrics_key_file,
                CONF.ironic_ring.metrics_client_ca_file))
        sigterm.install(ring.process.heartbeats.end)
        upstream.watch_builds(
            self, ring.process.builds, functools.partial(
                arrivals.note, host=CONF.host))
        upstream.watch_requests(
            self, self.ring_named_nodes.begin, self.ring_named_nodes.end)
        upstream.destroy_no_evacuated(self)
        upstream.guard_claims(self, guards.claim_once, self._let_go)
        upstream.guard_unshelving(self, self._is_to_unshelve)
        upstream.prepare_unshelving(self, self._reserved)
        upstream.guard_cleanup(self, guards.clean_up_if_mine)
        upstream.keep_detached(self)
        upstream.bear_missing_providers(self)
        upstream.guard_writes(self, guards.write_if_mine)
        upstream.guard_interrupted(
            self, self._is_interrupted, self._end_own)
        upstream.guard_rebuilt(self, guards.is_where_it_was)
        upstream.guard_failed_rebuild(self, guards.is_kept_there)
        upstream.guard_evacuations(self, evacuations.refuse)
        upstream.before_each_start(self, self._settle_at_start)
        upstream.update_in_turn(self)
        upstream.when_started(self, self.ring_takes.start)
        upstream.when_started(self, self.ring_reactions.start)
        upstream.when_started(self, self.ring_changes.start)

    def _track_own(self, node: str) -> bool:
        """Let the tracker track a node that has not needed an update yet.

        :param node: the node's UUID, or the name of the pool
        :returns: whether it does by it; with pools there is no such
        """
        return False

    def _is_interrupted(self, instance: objects.Instance, node: str) -> bool:
        """Return whether this service was to do a build, before its start."""
        return self.ring_service.is_interrupted(instance.uuid, node)

    def _settle_at_start(self, context: nova_context.RequestContext,
                         instance: objects.Instance) -> bool:
        """Do what Nova's own start does not do for an instance.

        :returns: whether Nova is to leave the instance alone
        """
        evacuations.settle_at_start(self, context, instance)
        return self.ring_recovery.resume(context, instance)

    def _end_own(self) -> None:
        """End what had come to this service before it was started."""
        try:
            self.ring_service.end_own()
        except Exception:
            LOG.exception('Cannot end yet the builds and unshelvings that '
                          'this service had before its start, and that had no '
                          'node: a later pass does.')

    def _is_to_unshelve(self, instance: objects.Instance, node: str) -> bool:
        """Return whether this service is still to unshelve an instance.

        :param instance: the instance as it was when that was asked for
        :param node: the UUID of the node, or the name of the pool
        """
        placement = self.ring_service.world.placement
        return guards.is_to_be_unshelved(
            instance, lambda: instance.uuid in placement.consumers(
                pools.provider(node)))

    @contextlib.contextmanager
    def _reserved(self, instance: objects.Instance, node: str
                  ) -> Iterator[None]:
        """Reserve a node for an instance while it is being unshelved.

        :param instance: the instance
        :param node: the UUID of the node, or the name of the pool
        :raises nova.exception.ComputeResourcesUnavailable: if there is none
        """
        mixed: Any = self
        placed = on_node.OnNode(mixed, instance, node)
        here = self.ring_service.process.builds
        here.add(instance.uuid)
        try:
            self._give_back_earlier(instance, placed)
            mixed.prepare_for_spawn(placed)
            self._unshelved[instance.uuid] = placed
            # Nova's manager does this when it builds an instance, and not when
            # it unshelves one: Ironic would find no port of the instance.
            mixed.prepare_networks_before_block_device_mapping(
                placed, instance.get_network_info())
            yield
        except Exception:
            with excutils.save_and_reraise_exception():
                # Nova has it active once it is deployed, and saves that even
                # if it has failed to save it before.
                if instance.vm_state != vm_states.ACTIVE:
                    self._let_go(instance)
                    self._free(instance)
        finally:
            here.discard(instance.uuid)
            self._unshelved.pop(instance.uuid, None)

    def _give_back_earlier(self, instance: objects.Instance, placed: Any
                           ) -> None:
        """Take a shelved instance off the node that it still has.

        An instance that could not be cleaned up stays there, for instance if
        Ironic did not answer; and Ironic gives no instance a second node.

        :param placed: the instance, with a node
        """
        mixed: Any = self
        try:
            node = upstream.node_of(mixed, instance)
        except exception.InstanceNotFound:
            return
        if not guards.is_shelved(instance):
            # It was unshelved while this waited for its turn.
            return
        LOG.warning('Instance %(instance)s is to be unshelved and still has '
                    'node %(node)s: that node is cleaned up first.', {
                        'instance': instance.uuid, 'node': node})
        # Nova's driver looks for volume targets on the node of the instance.
        mixed.destroy(
            nova_context.get_admin_context(),
            placed if pools.is_pool(placed.node)
            else on_node.OnNode(mixed, instance, node),
            instance.get_network_info())

    def _let_go(self, instance: objects.Instance) -> None:
        """Free the node of an instance that could not be unshelved.

        Nova leaves the node. After a claim, this is done while the instance
        still belongs to this service in Nova, and may take minutes: if this
        service dies meanwhile, another one continues.

        :param instance: the instance
        """
        mixed: Any = self
        placed = self._unshelved.get(instance.uuid)
        if placed is None:
            return
        # What fails here keeps Nova from nothing, such as the claim's end.
        try:
            if guards.is_shelved(instance):
                mixed.destroy(nova_context.get_admin_context(), placed,
                              instance.get_network_info())
                del self._unshelved[instance.uuid]
        except Exception:
            LOG.exception(_NOT_CLEANED_UP, instance.uuid)

    def _free(self, instance: objects.Instance) -> None:
        """Free the allocation of an instance that could not be unshelved.

        Nova leaves the allocation if the claim was not reached.

        :param instance: the instance
        """
        try:
            if guards.is_shelved(instance):
                self.ring_service.world.placement.free(instance.uuid)
        except Exception as error:
            LOG.warning('Cannot free the allocation of instance %(instance)s, '
                        'which could not be unshelved; the next pass tries '
                        'again: %(error)s',
                        {'instance': instance.uuid, 'error': error})
            self.ring_service.free_later(instance.uuid)

    def _look_between_passes(self) -> Sequence[str]:
        """Take over the instances of services that are dead now.

        :returns: the compute nodes that no pass has listed yet
        """
        with limits.haste():
            return self.ring_service.react()

    def _take_free(self) -> Sequence[str]:
        """Take free nodes that were found to be for this service.

        :returns: the compute nodes that no pass has listed yet
        """
        with limits.haste():
            return self.ring_service.take_free()

    def _look_for_changes(self) -> Sequence[str]:
        """Look which nodes have changed in Ironic since they were listed.

        :returns: the compute nodes that are to be updated by it
        """
        # A pass need not wait for Ironic's answer.
        nodes = self.ring_service.ask_for_changes()
        with self.ring_service.turn, limits.haste():
            return self.ring_service.change(nodes)

    @contextlib.contextmanager
    def _one_pass(self) -> Iterator[None]:
        """Run a pass, and no other one until what it has found is read.

        If it lacks a node, Nova's driver asks in many threads at once.
        """
        ring = self.ring_service
        before = ring.passes
        with ring.turn, limits.haste():
            # Unless another thread has run one meanwhile.
            if ring.passes == before:
                ring.run_pass()
                # Those for which no thread could be started until now.
                self.ring_recovery.start(())
            yield

    def update_provider_tree(
            self, provider_tree: nova_provider_tree.ProviderTree,
            nodename: str, allocations: object = None) -> None:
        """Write the inventory of a node into a tree of providers.

        :param provider_tree: the tree
        :param nodename: the node's UUID
        :param allocations: as Nova's own driver has it
        """
        with self._completing(provider_tree, nodename):
            providers = self.ring_service.providers
            with contextlib.suppress(exception.NoResourceClass):
                super().update_provider_tree(  # type: ignore[misc]
                    provider_tree, nodename, allocations)
                providers.without_class.discard(nodename)
                return
            providers.offer_nothing(
                provider_tree, nodename, self.ring_service.nodes)

    @contextlib.contextmanager
    def _completing(self, tree: nova_provider_tree.ProviderTree, name: str
                    ) -> Iterator[None]:
        """Complete the description of a provider, for both drivers.

        :param tree: the tree of providers
        :param name: the name of the compute node
        :raises nova.exception.ResourceProviderUpdateConflict: if Nova's
            tracker is to read the provider again, and then to ask again
        """
        before = tree.data(name).inventory
        yield
        self.ring_service.providers.keep_used(tree, name, before)
        self.ring_service.put_in_aggregates(tree, name)
        self.ring_service.providers.require_current(tree, name, before)

    def prepare_for_spawn(self, instance: objects.Instance) -> Any:
        """Reserve the node that an instance is to be built on.

        :param instance: the instance, with the node as its node
        :raises nova.exception.InstanceUnacceptable: if the request names
            another node
        """
        self.ring_named_nodes.require(instance)
        return super().prepare_for_spawn(  # type: ignore[misc]
            instance=instance)

    def power_off(self, *args: Any, **kwargs: Any) -> Any:
        """Switch a machine off.

        A shelved instance may no longer have a machine if the service that
        shelved it is dead, even if it is being deleted meanwhile.

        :param args: as Nova's own driver has them
        :param kwargs: as Nova's own driver has them
        """
        try:
            return super().power_off(*args, **kwargs)  # type: ignore[misc]
        except exception.InstanceNotFound:
            instance = _POWER_OFF.bind(
                self, *args, **kwargs).arguments['instance']
            if instance.task_state not in _WITHOUT_MACHINE:
                raise
            return None

    def failed_spawn_cleanup(self, instance: objects.Instance) -> None:
        """Clean up after a build that failed before its node was deployed.

        Another service may have deployed the node meanwhile: one that was
        silent for so long that this one has taken the build over. Nova's own
        method would have Ironic forget the instance, and leave the node as it
        was deployed.

        :param instance: the instance; one that was ever active is left alone
        """
        if guards.was_active(instance):
            LOG.warning('Instance %(instance)s is not built here, because it '
                        'was built before: its node is left alone.',
                        {'instance': instance.uuid})
            return
        try:
            self.destroy(  # type: ignore[attr-defined]
                nova_context.get_admin_context(), instance, None)
        except Exception:
            # Nova decides by the build's own error whether to build again.
            LOG.exception(_NOT_FREED, instance.uuid)

    def list_instance_uuids(self) -> list[str]:
        """List the instances on the nodes that this service looks after.

        Instances of other services among them do not matter. But an instance
        that Nova deleted while its service was down belongs to nobody, and
        Nova's periodic task looks for such instances in this list.

        :returns: the UUIDs of this service's instances, and of those that Nova
            has deleted on other nodes that the ring maps to this service; none
            that Nova has deleted, and had on another node
        """
        own = super().list_instance_uuids()  # type: ignore[misc]
        believed = self.ring_service.believed(
            own, upstream.cached_instances(self))
        return [uuid for uuid in own if uuid in believed] + sorted(
            believed.difference(own))

    def get_num_instances(self) -> int:
        """Count the instances of this service.

        Nova counts several times for each time that it reaps.
        """
        with self.ring_service.in_same_turn():
            listed = self.list_instance_uuids()
        orphans = self.ring_service.orphans
        return sum(instance not in orphans for instance in listed)


@on_node.found
class OnNodeMixin(SharedMixin):
    """Lets Nova's driver work on the node of an instance in a pool.

    With the ring driver these exist while a service changes to that driver.
    """
