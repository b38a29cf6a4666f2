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
        #: What looks and builds have decided since the last pass began, by
        #: the UUID of the node, and the nodes that they have recorded.
        self._came: dict[str, planner.Step] = {}
        self._moved: frozenset[str] = frozenset()
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
        with self.lock:
            self._came, self._moved = {}, frozenset()
        result = self._run(_NODES)
        result = dataclasses.replace(
            result, changes=result.changes.limited(
                self._pace.room(self.settings, is_first)))
        made = self.ironic.for_nova(result.listed)
        with self.lock:
            self.result = result.joined(
                self._came, self.memory, self._moved)
            # The tracker deletes the record of a node that is left out.
            self._replace({
                node: known for node, known in self.nodes.items()
                if node in self._came} | {
                node: made[node] for node in result.listed})
            self._new = new_nodes.NewNodes(self.result.plan.steps.values())
            # Whether the tracker tracks them or not: it may still drop some,
            # if Nova reads from a database that lags behind.
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

    def react(self) -> Sequence[str]:
        result = self._look(_NODES)
        self._came_here(result.steps)
        return list(result.steps)

    def take_free(self) -> Sequence[str]:
        result = self._between_passes(lambda before: node_places.take_free(
            self.world, before, self.settings))
        self._came_here(result.steps, result.moved)
        return [node for node in result.steps if node not in result.moved]

    def _came_here(self, steps: Mapping[str, planner.Step],
                   moved: frozenset[str] = frozenset()) -> None:
        """Note that nodes have come, for now and for a pass that runs.

        :param steps: what was decided on them, by UUID
        :param moved: those that are recorded already
        """
        if not steps:
            return
        made = self.ironic.for_nova(steps)
        with self.lock:
            self._came.update(steps)
            self._moved |= moved
            self.process.untracked |= moved
            self.result = self.result.joined(steps, self.memory)
            self._add(made)

    def change(self, nodes: Sequence[str]) -> Sequence[str]:
        # What has come without the tracker is this service's as well.
        steps, own = self.result.plan.steps, self.process.tracked()
        result = self._change(_NODES, [
            node for node in nodes if changes.is_watched(
                steps.get(node), node in own)])
        made = self.ironic.for_nova(result.nodes)
        self._add(made)
        return [node for node in result.places if node in made]

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
        taken = (arrivals.take(self.world, arrival)
                 if self.ironic.for_nova([arrival.node]) else None)
        if taken is None:
            return False
        self._came_here({arrival.node: taken.step})
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
