# SPDX-License-Identifier: Apache-2.0

"""One service with single nodes: which are its own, and which it updates."""

import collections
from collections.abc import Collection, Iterator
from collections.abc import Mapping, Sequence
import contextlib
import dataclasses

from oslo_log import log as logging

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import service
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import turns
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import arrivals
from nova_ironic_ring.core.taking.building import unclaimed
from nova_ironic_ring.core.taking import leftovers
from nova_ironic_ring.core.taking import new_nodes
from nova_ironic_ring.core.taking import tracking

LOG = logging.getLogger(__name__)

_NODES = node_places.Nodes()


class RingService(service.Service):
    """Decides for one nova-compute which nodes are its own."""

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        super().__init__(driver)
        #: The result of the last pass.
        self.result = node_places.PassResult()
        self._pace = turns.Pace()
        self._new = new_nodes.FEW
        #: How often nodes were updated, and how often that was not needed.
        self.updated = self.skipped = 0

    @property
    def orphans(self) -> frozenset[str]:
        return self.result.orphans

    def summary(self) -> dict[str, object]:
        counts = collections.Counter(
            step.decision for step in self.result.plan.steps.values())
        return {'decisions': {decision.name: count
                              for decision, count in counts.items()}}

    def run_pass(self) -> node_places.PassResult:
        """Run a pass, and log what happens in it.

        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: if there is no good
            configuration
        """
        is_first = self.ended is None
        result = self._run(_NODES)
        self.result = dataclasses.replace(
            result, changes=result.changes.limited(
                self._pace.room(self.settings, is_first)))
        nodes = self.ironic.for_nova(self.result.listed)
        # The tracker deletes the record of a node that is left out.
        self.nodes = {node: nodes[node] for node in self.result.listed}
        self._new = new_nodes.NewNodes(self.result.plan.steps.values())
        # Whether the tracker tracks them or not: it may still drop some, if
        # Nova reads from a database that lags behind.
        self.process.untracked = self.result.changes.unchanged
        return self.result

    def nodes_of_builds(self, nodes: Collection[str]) -> Collection[str]:
        """Return the nodes that builds have allocations of.

        :param nodes: the UUIDs of the nodes to look for
        :returns: all of them if there are more builds than nodes: then it is
            less to ask for each node
        """
        building = self.nova.building()
        if len(building) > len(nodes):
            return nodes
        return self.placement.providers_of_all(building).intersection(nodes)

    def is_to_update(self, node: str) -> bool:
        """Return whether the resource tracker is to update a listed node.

        :param node: the node's UUID
        """
        changes = self.result.changes
        if not changes.needs_update(node) and (
                not upstream.has_failed_builds(self._driver, node)):
            self.skipped += 1
            return False
        made_of, _ = stats.read_made(
            upstream.stats_of(self._driver, node), self.settings.host)
        if made_of is not None and changes.changed.get(
                node, made_of) != made_of:
            # Another service has written the row since; the tracker does not
            # see that.
            upstream.forget(self._driver, node)
        return True

    @contextlib.contextmanager
    def updating(self) -> Iterator[None]:
        """Count an update of a node, and measure it if it succeeds."""
        self.updated += 1
        began = self.process.now()
        yield
        # What fails for good says nothing of how long updates take.
        self._pace.took(began, self.process.now())

    def untracked(self) -> frozenset[str]:
        """Name the nodes of this service that the tracker does not track."""
        return self.process.untracked - upstream.tracked_nodes(self._driver)

    def to_be_told(self, is_enabled: bool) -> frozenset[str]:
        """Name the untracked nodes that Placement is told the status of now.

        If the service is disabled, these are those with an instance. The free
        ones go to other services, who would have to take that back; it is
        told of those that stay when they have their turn.

        :param is_enabled: whether the service is enabled
        """
        listed = self.result.listed
        return frozenset(node for node in self.untracked()
                         if is_enabled or listed.get(node) is not None)

    def oldest_update(self) -> float:
        """Return how long ago, in seconds, the oldest update of a node was.

        As the last pass has read it.
        """
        oldest, now = self.result.changes.oldest, self.process.wall_time()
        return 0.0 if oldest is None else max(0.0, now.timestamp() - oldest)

    def react(self) -> service.Reacted:
        result = self._look(_NODES)
        if result.steps:
            self.process.untracked |= result.moved
            self.result = dataclasses.replace(
                self.result, plan=self.result.plan.having(result.steps),
                orphans=self.result.orphans.difference(
                    each.instance for each in result.taken))
        nodes = self.ironic.for_nova(result.steps)
        self.nodes = {**self.nodes, **nodes}
        return service.Reacted(nodes, [
            node for node in result.steps if node not in result.moved])

    def change(self, nodes: Sequence[str]) -> service.Reacted:
        # What has come without the tracker is this service's as well.
        steps, own = self.result.plan.steps, self.process.tracked()
        result = self._change(_NODES, [
            node for node in nodes if changes.is_watched(
                steps.get(node), node in own)])
        made = self.ironic.for_nova(result.nodes)
        self.nodes = {**self.nodes, **made}
        return service.Reacted(nodes=made, places=[
            node for node in result.places if node in made])

    def is_interrupted(self, instance: str, node: str) -> bool:
        with self._between() as this:
            if unclaimed.is_interrupted(this, observation.Unclaimed(
                    instance, node, self.process.now())):
                return True
        LOG.info('Instance %(instance)s is to be built on node %(node)s of '
                 'this service, by this service or by a peer that had the '
                 'node before: this service does not touch it.',
                 {'instance': instance, 'node': node})
        return False

    def lists(self, place: str) -> bool:
        step = self.result.plan.steps.get(place)
        return step is not None and step.decision.lists

    def look_at(self, node: str) -> bool:
        """Look at a node once more before the resource tracker records it.

        :param node: the node's UUID
        :returns: False if another service has taken the node meanwhile
        """
        step = self.result.plan.steps.get(node)
        if step is None:
            return True
        with self._between() as this:
            return tracking.look(this, tracking.Listed(
                node, step, self.process.tracks(node), self._new))

    def is_gone(self, node: str) -> bool:
        """Return whether another service has taken a node that is tracked.

        :param node: the node's UUID
        """
        return arrivals.is_gone(self.world, node, self.settings.me)

    def take_for_build(self, arrival: arrivals.Arrival) -> bool:
        """Take a node for a build that was sent here for it.

        The resource tracker has to record the node then.

        :param arrival: the build
        :returns: False if the build cannot be done here
        """
        if arrival.node not in self.ironic.found and (
                self.memory.held is not None):
            # Its shard may be another's now.
            self.ironic.named(self.settings.scope, [arrival.node])
        nodes = self.ironic.for_nova([arrival.node])
        taken = (arrivals.take(self.world, arrival, self.result.plan)
                 if nodes else None)
        if taken is None:
            return False
        self.result = dataclasses.replace(self.result, plan=taken.plan)
        self.nodes = {**self.nodes, **nodes}
        if taken.happened.owner != self.settings.host:
            # Otherwise it has come since, and only the tracker lacks it.
            self._tell([taken.happened])
        return True

    def stats(self, node: str, found: Mapping[str, str]) -> dict[str, str]:
        """Return what the others are to read in the row of a node.

        :param node: the node's UUID
        :param found: the statistics that Nova's driver has made of the node
        """
        step = self.result.plan.steps.get(node)
        return stats.cleaned(found) | (
            {} if step is None else self._made_of(node, step))

    def _made_of(self, node: str, step: planner.Step) -> dict[str, str]:
        """Return the fingerprint of what the row of a node is made of now."""
        # If each pass updates each node, it writes only what differs.
        at = (self.process.wall_time().timestamp()
              if self.settings.full_update_interval else 0)
        # Nova's driver may just have read the node itself.
        said = self._driver.node_cache.get(node)
        answer = None if said is None else self.ironic.fingerprint_of(said)
        return {} if answer is None else stats.make(
            self.settings.host, updates.made_of(
                answer, step.decision, updates.of_process(self.process)), at)

    def is_deleted(self, node: str) -> bool:
        self.go_on()
        try:
            with self._between() as this:
                return leftovers.is_deleted(this, node)
        except Exception as error:
            # Nova would give up the rest of its pass.
            LOG.error('Cannot find out whether node %(node)s is deleted: '
                      '%(error)s', {'node': node, 'error': error})
            return False
