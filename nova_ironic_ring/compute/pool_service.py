# SPDX-License-Identifier: Apache-2.0

"""One service with pools: what it has counted, and what it builds on."""

from collections.abc import Mapping, Sequence

from nova.compute import provider_tree
import nova.conf
from nova import objects
from openstack.baremetal.v1 import node as sdk_node
from oslo_log import log as logging

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters import placement
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute.pools import failed_builds
from nova_ironic_ring.compute.pools import recent_nodes
from nova_ironic_ring.compute.recording import counters
from nova_ironic_ring.compute import service
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.taking.building import reservation
from nova_ironic_ring.core.values import bounds
from nova_ironic_ring.core.values import pools

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

# Nova's driver makes the architecture's name of it; the others, and one that
# hides it, are capabilities.
_ARCHITECTURE = 'cpu_arch'


class PoolService(service.Service):
    """Counts nodes for one nova-compute, and reserves them."""

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        super().__init__(driver)
        self._recent = recent_nodes.RecentNodes()
        self._pools = pool_places.Pools(self._recent.released)
        self._failed = failed_builds.FailedBuilds(self.process.wall_time)
        #: The sizes of the flavors of this service's instances.
        self._sizes: Mapping[str, pools.Size] = {}
        #: The result of the last pass: replaced as a whole, because threads
        #: read it.
        self.result = pool_places.PassResult()
        #: The instances that looks have taken over since that pass began.
        self._came: frozenset[str] = frozenset()
        #: Whether compute nodes that the last pass has not listed can be
        #: deleted.
        self._gone: Mapping[str, bool] = {}
        self.nova.failures_to_say = self._failures_to_say

    @property
    def orphans(self) -> frozenset[str]:
        return self.result.orphans

    def summary(self) -> dict[str, object]:
        return {'pools': {name: {
            'nodes': len(pool.nodes), 'free': len(pool.free),
            'instances': len(pool.used)}
            for name, pool in self.result.found.items()},
            'pools left out': {name: {'nodes': len(pool.nodes)}
                               for name, pool in self.result.left_out.items()}}

    def run_pass(self) -> pool_places.PassResult:
        """Run a pass, and log what happens in it.

        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: if there is no good
            configuration
        """
        self._recent.begin()
        self._gone = {}
        with self.lock:
            self._came = frozenset()
        result = self._run(self._pools)
        self._failed.go_on(self.nova.own_failures)
        # Before the lock, because each new node takes a millisecond.
        self.ironic.for_nova(
            node for pool in result.found.values() for node in pool.nodes)
        with self.lock:
            self.result = result.joined(self._came, self.memory)
            self._replace(self._made())
        self._read_sizes()
        self._recent.end()
        return self.result

    def _made(self) -> Mapping[str, sdk_node.Node]:
        """Return the nodes of all pools, as Nova's driver wants them."""
        return self.ironic.for_nova(
            node for pool in self.result.found.values() for node in pool.nodes)

    def react(self) -> Sequence[str]:
        before = self.result.found
        result = self._look(self._pools)
        if not result.taken and result.found is before:
            return ()
        with self.lock:
            self._came |= {each.instance for each in result.taken}
            self.result = self.result.joined(self._came, self.memory)
            self._add(self._made())
        self._read_sizes()
        return sorted(self.result.found.keys() - before.keys())

    def ask_for_changes(self) -> list[str]:
        """Ask Ironic which nodes have changed since they were listed.

        It includes the nodes that have lost an instance since: Ironic may
        have shown such a node free before Nova's delete ended, and then there
        is no news of the node.

        :returns: their UUIDs
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        """
        found = super().ask_for_changes()
        released = sorted(self._recent.all_released() - set(found))
        try:
            self.ironic.named(
                self.settings.scope, released[:changes.PAGE])
        except Exception:
            # What Ironic has told first is told only once.
            return found
        return found + released[:changes.PAGE]

    def change(self, nodes: Sequence[str]) -> Sequence[str]:
        result = self._change(self._pools, nodes)
        if not result.places:
            return ()
        self._recent.forget(
            node for node in result.nodes
            if self.ironic.glances([node])[node].is_ready)
        with self.lock:
            self.result = self.result.joined(self._came, self.memory)
            self._add(self.ironic.for_nova(result.nodes))
        return result.places

    def lists(self, place: str) -> bool:
        return place in self.result.found

    def describe(self, name: str) -> dict[str, object] | None:
        """Describe a pool as Nova's resource tracker wants a node.

        :param name: its name
        :returns: None if this service does not have it
        """
        pool = self.result.found.get(name)
        if pool is None:
            return None
        described = upstream.describe(self._driver, _example(pool))
        described['stats'] = stats.cleaned(
            described['stats']) | self._count(pool)
        # The resource tracker takes off what the flavors of instances say, so
        # that the free nodes are left: the weighers compare these.
        free, flavors = pool.room, sum(
            (self._sizes.get(str(pool.nodes[node].instance), pools.Size())
             for node in pool.used), pools.Size())
        # The scheduler multiplies processors before it takes them off.
        ratio = (CONF.cpu_allocation_ratio
                 or CONF.initial_cpu_allocation_ratio or 1.0)
        sizes = {'memory_mb': free.memory + flavors.memory,
                 'local_gb': free.disk + flavors.disk,
                 'vcpus': free.cpus + round(flavors.cpus / ratio)}
        if not upstream.tracks(self._driver, name):
            # The resource tracker creates its record with these very numbers.
            # Later ones are bounded where it saves them.
            sizes = {what: bounds.number(size)
                     for what, size in sizes.items()}
        return described | sizes | {
            'hypervisor_hostname': name, 'disk_available_least': None}

    def _failures_to_say(self) -> failures.Failures:
        """Return what the peers are to know of builds that have failed."""
        # After a restart, the record is not to lose what it says.
        self._failed.go_on(self.nova.own_failures)
        return failures.latest(
            self._failed.known, self.process.wall_time(),
            self.settings.failed_node_wait)

    def _count(self, pool: pools.Pool) -> dict[str, str]:
        """Return what this service needs to know of a pool after a restart."""
        counted = self.result.counted(pool)
        return stats.count(self.settings.host, counted) if counted else {}

    def update_tree(self, tree: provider_tree.ProviderTree, name: str
                    ) -> None:
        """Write the inventory of a pool into a tree of providers.

        :param tree: the tree
        :param name: the name of the pool
        """
        pool = self.result.found.get(name, pools.Pool(name))
        tree.update_inventory(name, placement.inventory(
            pool, pool.inventory(self._recent.released(name)),
            tree.data(name).inventory))
        if pool.kind is not None:
            tree.update_traits(name, sorted(pool.kind.traits))

    def known_aggregates(self, found: frozenset[str]) -> frozenset[str]:
        first = self.nova.first
        known = None if first is None else upstream.aggregates(
            self._driver, first)
        if first is None or known is None:
            return found
        return self._aggregates.as_first(found, first, frozenset(known))

    def reserve(self, instance: objects.Instance,
                avoid: frozenset[str] = frozenset(),
                named: str | None = None) -> reservation.Reserved:
        """Reserve a node of the instance's pool for it.

        :param instance: the instance, with the pool as its node
        :param avoid: nodes on which its deployment has failed
        :param named: the one node that will do; None if each of the kind will
        :returns: the node, or why there is none
        """
        pool = self.result.found.get(instance.node, pools.Pool(instance.node))
        count, result = counters.COUNTERS.reserved, counters.Reservation
        failing = self.failing()
        good = [node for node in pool.free if node not in failing]
        try:
            found = reservation.reserve(self.ironic, reservation.Wanted(
                instance.uuid, pool.kind, self._recent.untried(
                    reservation.in_turn(good, instance.uuid)), avoid, named,
                failing, self.settings.kind_rule), self.settings.scope)
        except Exception:
            count(result.FAILED)
            raise
        count(result.RESERVED if found.node else result.NO_NODE,
              found.conflicts)
        return found

    def failing(self) -> failures.Failures:
        """Return the nodes that builds try after all others."""
        return failures.waiting(
            failures.Known(self._failed.known, self.nova.failures).all,
            self.process.wall_time(), self.settings.failed_node_wait)

    def note_failure(self, node: str, instance: str, error: Exception
                     ) -> None:
        """Remember that a deployment has failed.

        :param node: the UUID of the node
        :param instance: the UUID of the instance
        :param error: the error
        """
        wait = self.settings.failed_node_wait
        failure = self._failed.note(node, wait, self.nova.failures)
        self._tell([events.DeploymentFailed(
            node, instance, failure.count, failure.until(wait), error)])

    def note_success(self, node: str) -> None:
        """Forget the failures on a node on which a deployment has succeeded.

        :param node: the UUID of the node
        """
        self._failed.note(node, self.settings.failed_node_wait,
                          self.nova.failures, is_good=True)

    def release(self, node: str, name: str) -> None:
        """Keep builds off a node until Ironic says that the node is ready.

        Nova deletes the allocation of an instance as soon as the instance is
        destroyed, and Ironic cleans the node for a long time.

        :param node: the UUID of the node
        :param name: the name of the pool that the instance was in
        """
        self._recent.release(node, name)
        pool = self.result.found.get(name)
        if pool is None:
            return
        try:
            self.world.placement.write(
                pool, pool.inventory(self._recent.released(name)))
        except Exception as error:
            # The resource tracker writes it as well, a little later.
            LOG.warning('Cannot write to Placement yet that node %(node)s of '
                        'pool %(pool)s is not ready: %(error)s', {
                            'node': node, 'pool': name, 'error': error})

    def is_deleted(self, node: str) -> bool:
        self.go_on()
        if node in self.result.found:
            return False
        gone = self._gone
        if node not in gone:
            self._gone = gone = {**gone, **self._look_at_gone(node)}
        return gone[node]

    def _look_at_gone(self, node: str) -> Mapping[str, bool]:
        """Find out which compute nodes that are not listed can be deleted.

        Nova asks for one after the other: the first question answers all.

        :param node: the name of one of them
        """
        names = {node}
        try:
            names |= self.world.nova.pools_of(self.settings.host)
            names -= self.result.found.keys()
            found = pool_places.close_unlisted(self.world, self.memory, names)
        except Exception as error:
            # Otherwise Nova would give up the rest of its pass.
            LOG.error('Cannot find out whether pool %(pool)s is still used: '
                      '%(error)s', {'pool': node, 'error': error})
            found = frozenset()
        return {name: name in found for name in names}

    def _read_sizes(self) -> None:
        """Read the flavors of instances that are not known yet."""
        wanted = {str(pool.nodes[node].instance)
                  for pool in self.result.found.values() for node in pool.used}
        known = {uuid: size for uuid, size in self._sizes.items()
                 if uuid in wanted}
        try:
            self._sizes = known | self.nova.sizes(wanted - known.keys())
        except Exception as error:
            LOG.warning('Cannot read the flavors of instances from Nova, so '
                        'builds are not spread evenly: %s', error)
            self._sizes = known


def _example(pool: pools.Pool) -> sdk_node.Node:
    """Return an example of the nodes of a pool."""
    kind = pool.kind or pools.Kind('')
    architecture, hidden = kind.architecture, kind.architecture is not None
    if not hidden:
        architecture = dict(kind.properties).get(_ARCHITECTURE)
    capabilities = ','.join(
        f'{name}:{value}' for name, value in sorted(kind.properties)
        if hidden or name != _ARCHITECTURE)
    return sdk_node.Node(
        id=pool.uuid, resource_class=kind.resource_class or None,
        properties={_ARCHITECTURE: architecture or None,
                    'capabilities': capabilities})
