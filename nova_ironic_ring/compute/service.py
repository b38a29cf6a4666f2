# SPDX-License-Identifier: Apache-2.0

"""One service of the ring: its settings, its memory and its passes."""

from collections.abc import Callable, Collection, Container, Iterable
from collections.abc import Iterator, Mapping, Sequence
import collections
import contextlib
import dataclasses
import datetime
import itertools
import time

from nova.compute import provider_tree
import nova.conf
from nova import exception
from openstack.baremetal.v1 import node as sdk_node
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ironic_ring.adapters import background
from nova_ironic_ring.adapters import conf
from nova_ironic_ring.adapters.ironic import nodes
from nova_ironic_ring.adapters.nova import aggregates
from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters import placement
from nova_ironic_ring.adapters import settings
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import providers
from nova_ironic_ring.compute.recording import history
from nova_ironic_ring.compute.recording import log
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import orphans
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import places
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import arrivals
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.taking import leftovers
from nova_ironic_ring.core.taking import new_nodes
from nova_ironic_ring.core.taking import rows
from nova_ironic_ring.core.taking import tracking
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.core.values import settings as core_settings
from nova_ironic_ring.process import heartbeats
from nova_ironic_ring.process import sighup
from nova_ironic_ring.process import watchdog

LOG = logging.getLogger(__name__)

# The most nodes to take in addition at a time: the look at the services
# between two passes waits for them.
_MOST_MOVED = 99

CONF = nova.conf.CONF
_NODES = node_places.Nodes()
conf.register_opts(CONF)
if not upstream.make_peer_list_mutable():
    conf.register_peer_list(CONF)


class Process:
    """This process behind the port.

    See :class:`nova_ironic_ring.core.values.ports.Process`.
    """

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        """Choose the process.

        :param driver: the driver that its manager has
        """
        self._driver = driver
        self._watchdog = watchdog.Watchdog()
        self.heartbeats = heartbeats.OwnHeartbeats(
            self.now, self._watchdog.tell)
        #: The instances whose build waits for its turn here.
        self.builds: set[str] = set()
        #: Names the aggregates of its host.
        self.aggregates: Callable[[], Sequence[str] | None] = lambda: None
        #: The nodes of this service that the tracker need not track, by UUID.
        self.untracked: frozenset[str] = frozenset()

    def now(self) -> float:
        return time.monotonic()

    def wall_time(self) -> datetime.datetime:
        return timeutils.utcnow(with_timezone=True)

    def longest_gap(self) -> float:
        if records.has_heartbeats_in_database():
            upstream.watch_heartbeats(self._driver, self.heartbeats.beat)
        else:
            self._watchdog.do_without()
        return self.heartbeats.longest_gap()

    def is_ending(self) -> bool:
        return self.heartbeats.is_ended

    def tracked(self) -> frozenset[str]:
        return upstream.tracked_nodes(self._driver) | self.untracked

    def tracks(self, node: str) -> bool:
        """Return whether Nova's resource tracker tracks a node now.

        :param node: the node's UUID
        """
        return upstream.tracks(self._driver, node)

    def makes_with(self) -> str:
        # An upgrade may change how nodes are described.
        return repr((upstream.releases(), self.aggregates(),
                     upstream.provider_configs(self._driver),
                     upstream.describes_with(self._driver)))

    def waiting_builds(self) -> Container[str]:
        return self.builds


@dataclasses.dataclass(frozen=True)
class Ended:
    """The end of a pass.

    :ivar at: when it was, with time zone
    :ivar seconds: how long the pass took
    :ivar now: when it was by the clock of the process, in seconds
    """

    at: datetime.datetime
    seconds: float
    now: float


@dataclasses.dataclass(frozen=True)
class Reacted:
    """What a service has done between two passes.

    :ivar taken: the instances that have become this service's
    :ivar nodes: their nodes, and those that were offered, as Nova's driver
        wants them, by UUID
    :ivar places: the compute nodes that the resource tracker is to track by
        it: UUIDs of nodes, or names of pools
    """

    taken: Sequence[model.Takeover] = ()
    nodes: Mapping[str, sdk_node.Node] = dataclasses.field(
        default_factory=dict)
    places: Sequence[str] = ()


class Service:
    """What the services of both drivers have: settings, memory, passes."""

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        """Begin without a pass.

        :param driver: the driver of the nova-compute
        """
        self._driver = driver
        self.process = Process(driver)
        self.ironic = nodes.Ironic(driver)
        self.nova = records.Nova()
        self.placement = placement.Placement(driver)
        self.world = ports.Ports(
            self.nova, self.ironic, self.placement, self.process)
        self.reloader = sighup.Reloader(CONF)
        self.resets = background.Background()
        self.history = history.History()
        self.providers = providers.Providers(driver)
        self._aggregates = aggregates.Aggregates(
            records.Nova(), self.process.now)
        self.process.aggregates = self._own_aggregates
        self.memory = observation.Memory()
        #: The nodes of this service, by UUID, as Nova's driver wants them.
        self.nodes: Mapping[str, sdk_node.Node] = {}
        #: How many passes have ended well, and the last of them.
        self.passes = 0
        self.ended: Ended | None = None
        self._settings: core_settings.Settings | None = None
        #: What the others read of this service in its nodes' rows.
        self.published: dict[str, str] = {}
        self._complaint = ''
        #: The value of failover_after that was logged as too low.
        self._raised = 0.0
        #: What this service reports of its passes.
        self._work = own_work.Work()
        self._said_at = 0.0
        #: When Ironic was last asked for all nodes, or for those that have
        #: changed, in seconds; None before the first pass.
        self._asked_ironic: float | None = None
        #: How often Nova has asked for instances, and those of which it was
        #: not told then.
        self._asked = 0
        self._strays: Mapping[str, str | None] = {}

    @property
    def settings(self) -> core_settings.Settings:
        """The last good configuration."""
        return self._settings or self.read_settings()

    @property
    def has_settings(self) -> bool:
        """Whether there has been a good configuration."""
        return self._settings is not None

    def read_settings(self) -> core_settings.Settings:
        """Read the configuration, or keep the last good one.

        :raises nova.exception.InvalidConfiguration: if there is no good one
        """
        try:
            self._settings = settings.read(CONF)
            # For the row of each node: made once, not once a node.
            self.published = stats.publish(
                self._settings.host, profile.of(self._settings))
            self._complaint = ''
            self._say_what_is_raised(self._settings)
        except ValueError as error:
            if self._settings is None:
                LOG.error('%s', error)
                raise exception.InvalidConfiguration(str(error)) from error
            if str(error) != self._complaint:
                self._complaint = str(error)
                # What oslo.config says ends without a full stop.
                LOG.error('%s. Until you correct it, the former configuration '
                          'stays in force.', str(error).rstrip('.'))
        return self._settings

    def _say_what_is_raised(self, current: core_settings.Settings) -> None:
        """Log once that the value of failover_after is too low."""
        wanted = current.failover_configured
        raised = wanted if wanted < current.failover_after else 0
        if raised and raised != self._raised:
            LOG.warning(
                '[ironic_ring] failover_after is %(wanted)d s, and a service '
                'may take %(raised)d s to shut down ([DEFAULT] '
                'graceful_shutdown_timeout): its instances are taken over '
                'after %(raised)d s. Set failover_after to %(raised)d or '
                'more, or lower graceful_shutdown_timeout on all services.',
                {'wanted': wanted, 'raised': current.failover_after})
        self._raised = raised

    def _run(self, place: places.Places[places.Seen, places.Plan,
                                        places.Passed, places.Reacted]
             ) -> places.Passed:
        """Run a pass, and log what happens in it.

        :param place: what a place is
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: if there is no good
            configuration
        """
        start = self._asked_ironic = self.process.now()
        # If the pass fails, Nova's tracker may ask for a node nevertheless.
        self._work = dataclasses.replace(self._work, is_good=False)
        if self.reloader.reload():
            # Not here: the tracker may wait for this pass.
            self.resets.do(lambda: upstream.reset_manager(self._driver))
        current = self.read_settings()
        with self._raising_cause():
            result = passes.run(self.world, self.memory, current, place)
        self._keep(result.memory)
        self._work, self._said_at = result.work, self.process.now()
        self.passes += 1
        now = self.process.now()
        self.ended = Ended(
            timeutils.utcnow(with_timezone=True), now - start, now)
        self._tell(result.happened, self.ended.seconds)
        return result

    @contextlib.contextmanager
    def _raising_cause(self) -> Iterator[None]:
        """Raise the error of Nova or Ironic itself, if one does not answer.

        What is to be remembered of the failure is kept, and the events until
        then are logged.
        """
        try:
            yield
        except one_pass.UnansweredError as error:
            self._keep(error.memory)
            self._tell(error.happened)
            assert error.__cause__ is not None
            raise error.__cause__

    def _tell(self, happened: Iterable[events.Event], seconds: float = 0.0
              ) -> None:
        """Write events to the log, the audit log and the metrics.

        :param happened: the events
        :param seconds: how long the pass took, if it is one
        """
        happened = list(happened)
        log.write(happened, seconds)
        self.history.write(happened, audit.View(
            self.settings.host, self.memory.standing.membership))

    def _look(self, place: places.Places[places.Seen, places.Plan,
                                         places.Passed, places.Reacted]
              ) -> places.Reacted:
        """Look at the services between two passes, and log the events.

        :param place: what a place is
        """
        with self._raising_cause():
            result = reaction.run(
                self.world, self.memory, self.settings, place)
        self._keep(result.memory)
        self._tell(result.happened)
        return result

    def changes_due(self) -> float | None:
        """Return when to ask Ironic for what has changed.

        :returns: in how many seconds; None if not for now
        """
        return changes.due(
            self._asked_ironic if self.passes else None, self.process.now(),
            self.settings.changes_interval)

    def ask_for_changes(self) -> list[str]:
        """Ask Ironic which nodes have changed since they were listed.

        A pass may run at the same time.

        :returns: their UUIDs
        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        """
        self._asked_ironic = self.process.now()
        return changes.ask(self.ironic, self.settings.scope)

    def change(self, nodes: Sequence[str]) -> Reacted:
        """Return what to update, because nodes have changed in Ironic.

        :param nodes: their UUIDs
        """
        raise NotImplementedError()

    def _change(self, place: places.Places[places.Seen, places.Plan,
                                           places.Passed, places.Reacted],
                nodes: Sequence[str]) -> places.ChangeResult:
        """Return what to update, and remember it.

        :param place: what a place is
        :param nodes: the UUIDs of the nodes that have changed
        """
        with self._raising_cause():
            result = reaction.change(
                self.world, self.memory, self.settings, place, nodes)
        self._keep(result.memory)
        self._tell(result.happened)
        return result

    def _between(self) -> one_pass.Pass:
        """Return the pass object for work at a node between passes."""
        return one_pass.Pass(self.world, self.settings, self.memory)

    def pause(self) -> float:
        """Return how long to wait until the next look, in seconds."""
        return reaction.pause(self.memory, self.settings)

    def _keep(self, memory: observation.Memory) -> None:
        """Keep a memory, with the gaps between heartbeats."""
        self.memory = memory
        self.process.heartbeats.forget_reported()

    def said_of_itself(self, node: str) -> dict[str, str]:
        """Return what to write about this service into the row of a node.

        :param node: the UUID of the node, or of the pool
        """
        host = self.settings.host
        return self.published | stats.hold(
            host, self.memory.held) | stats.say_last_pass(
                host, self._last_pass(node))

    def _last_pass(self, node: str) -> model.LastPass:
        """Return what to write about the passes into the row of a node.

        Nova's tracker goes from node to node, which may take long. Meanwhile,
        other rows contain the time of the pass as well.
        """
        current, now = self.settings, self.process.now()
        if self._work.is_good and (
                now - self._said_at >= current.pass_interval / 2):
            self._said_at = now
            self._work = self._work.renewed(node, self.process.wall_time())
        return self._work.of(node, current)

    def put_in_aggregates(self, tree: provider_tree.ProviderTree, name: str
                          ) -> None:
        """Put a provider into the aggregates of this service's host.

        :param tree: the tree of providers
        :param name: the name of the compute node
        """
        found = frozenset(tree.data(name).aggregates)
        wanted = self._aggregates.wanted(
            self.settings, found, self.memory.standing.membership.states)
        if wanted is None:
            wanted = self.known_aggregates(found)
        if wanted != found:
            tree.update_aggregates(name, wanted)

    def _own_aggregates(self) -> Sequence[str] | None:
        """Name the aggregates of this service's host; None if not known."""
        found = self._aggregates.own(self.settings)
        return None if found is None else sorted(found)

    def known_aggregates(self, found: frozenset[str]) -> frozenset[str]:
        """Return the aggregates of a provider if Nova does not answer.

        :param found: the UUIDs of those that it is in
        """
        return found

    @property
    def orphans(self) -> frozenset[str]:
        """Instances of others, or of nobody, on nodes for this service."""
        raise NotImplementedError()

    def believed(self, own: Iterable[str], nodes: Mapping[str, str]
                 ) -> frozenset[str]:
        """Return the instances to name to Nova, for it to reap deleted ones.

        Call it only to answer Nova: if there are very many, each call returns
        others of them.

        :param own: UUIDs of those on nodes of this service
        :param nodes: the UUIDs of their nodes
        :returns: UUIDs, with those of orphans
        """
        strange = self.orphans.difference(own)
        found = orphans.believe(self.world.nova, orphans.Named(
            {uuid: nodes.get(uuid) for uuid in own},
            {uuid: node for node, uuid in self.memory.nodes.items()
             if uuid is not None and uuid in strange}), self._asked)
        self._asked += 1
        if found.strays.keys() - self._strays.keys():
            uuid, node = min(found.strays.items())
            LOG.warning(
                'Ironic has %(count)d instances on nodes, such as '
                '%(instance)s on %(node)s, that Nova has deleted and did not '
                'had there: nothing is done with them.', {
                    'count': len(found.strays), 'instance': uuid,
                    'node': node})
        self._strays = found.strays
        return found.instances

    @contextlib.contextmanager
    def in_same_turn(self) -> Iterator[None]:
        """Let :meth:`believed` return what it returns when called again."""
        asked = self._asked
        try:
            yield
        finally:
            self._asked = asked

    def run_pass(self) -> places.PassResult:
        """Run a pass."""
        raise NotImplementedError()

    def react(self) -> Reacted:
        """Look at the services between two passes."""
        raise NotImplementedError()

    def is_interrupted(self, instance: str, node: str) -> bool:
        """Return whether this service was to do a build, before its start.

        :param instance: the UUID of the instance
        :param node: the UUID of the compute node that it has an allocation of
        """
        # No other service has ever had a pool of this one.
        return True

    def end_own(self) -> None:
        """End what had come to this service before it was started."""
        this = self._between()
        builds.end_own(this)
        self._tell(this.happened)

    def lists(self, place: str) -> bool:
        """Return whether a compute node is this service's, as decided last.

        :param place: the UUID of the node, or the name of the pool
        """
        raise NotImplementedError()

    def summary(self) -> dict[str, object]:
        """Return the results of the last pass, for the report."""
        raise NotImplementedError()

    def is_deleted(self, node: str) -> bool:
        """Return whether the record of a node that is not listed can go.

        :param node: the name of the compute node
        """
        raise NotImplementedError()


class RingService(Service):
    """Decides for one nova-compute which nodes are its own."""

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        super().__init__(driver)
        #: The result of the last pass.
        self.result = node_places.PassResult()
        #: The turns of the nodes to be updated.
        self.turns = updates.Turns(self.process.now())
        self._new = new_nodes.FEW
        # When the update of a node began that had only its turn, in seconds.
        self._in_turn: dict[str, float] = {}
        #: The results for nodes that were to move without the tracker; False
        #: if the tracker is to take them.
        self._moved: dict[str, bool] = {}
        #: How often nodes were updated, and how often that was not needed.
        self.updated = self.skipped = 0
        #: What this service writes into all its rows: the shards that it
        #: holds, and a fingerprint of all else.
        self._brings: tuple[frozenset[str] | None, str] = (None, '')
        #: What the tracker has written last, by the node's UUID.
        self._wrote: dict[str, tuple[object, ...] | None] = {}

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
        self.result = self._run(_NODES)
        nodes = self.ironic.for_nova(self.result.listed)
        # The tracker deletes the record of a node that is left out.
        self.nodes = {node: nodes[node] for node in self.result.listed}
        self.turns.keep(self.result.listed.keys())
        self.turns.pace(
            len(self.result.listed), self.settings.full_update_interval,
            self.process.now())
        self._in_turn = {}
        self._wrote = {node: said for node, said in self._wrote.copy().items()
                       if node in self.result.listed}
        self._new = new_nodes.NewNodes(self.result.plan.steps.values())
        self._check_providers()
        # Whether the tracker tracks them or not: it may still drop some, if
        # Nova reads from a database that lags behind.
        changes = self.result.changes
        self.process.untracked = changes.unchanged | changes.offers
        self._brings = self.memory.held, updates.of_settings(
            self.settings, self.process)
        self._moved = {}
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

    def _check_providers(self) -> None:
        """Check that the nodes that are not updated are in order."""
        seen = updates.Moment(
            self.process.now(), self.memory.standing, self.settings.me)
        if self.turns.is_checked(seen.standing, seen.now):
            return
        placement = self.world.placement
        try:
            wrong = self.turns.check(
                self.result.changes, placement.providers(), seen)
            if wrong:
                self._tell_status(wrong, seen.standing.is_disabled(seen.me))
        except Exception as error:
            # Nothing can be corrected then either: the next pass looks again.
            LOG.debug('Cannot list the resource providers in Placement: %s',
                      error)

    def _tell_status(self, nodes: Collection[str], is_disabled: bool) -> None:
        """Tell Placement whether nodes may be chosen.

        :param nodes: their UUIDs
        :param is_disabled: whether this service was disabled when the pass
            began
        """
        record = self.nova.service(self.settings.host)
        if record is None or record.disabled is not is_disabled:
            # Nova has told the opposite since then, or is about to.
            self.turns.doubt_told()
            return
        for node in nodes:
            # Nova may have cached it.
            self.world.placement.forget_provider(node)
        self.world.placement.tell_status(nodes, not is_disabled)

    def is_to_update(self, node: str, is_start: bool = False) -> bool:
        """Return whether the resource tracker is to update a listed node.

        :param node: the node's UUID
        :param is_start: whether nova-compute is just starting
        """
        is_unchanged = node in self.result.changes.unchanged
        if not is_unchanged or self._has_turn(node, is_start):
            if is_unchanged:
                self._in_turn[node] = self.process.now()
            if node in self.result.changes.changed and (
                    self._wrote.get(node) == self._to_write(node)):
                # Another service has written the row since; the tracker does
                # not see that.
                upstream.forget(self._driver, node)
            return True
        self.skipped += 1
        return False

    def offer(self, node: str, is_start: bool = False
              ) -> Mapping[str, str] | None:
        """Return the content of a row of which only the offer has changed.

        :param node: the node's UUID
        :param is_start: whether nova-compute is just starting
        :returns: its statistics; None if the tracker has to update the node
        """
        step = self.result.plan.steps.get(node)
        if node not in self.result.changes.offers or step is None or (
                self._has_turn(node, is_start)):
            return None
        said = self._said(node, step)
        # As the row says already. Ironic may have been asked since.
        was_made_of = updates.made_of(
            self.result.answers[node], step.decision, self._brings[1])
        return said if stats.read_made(
            said, self.settings.host) == was_made_of else None

    def write_offer(self, node: str, said: Mapping[str, str]) -> bool:
        """Write an offer into a row, or take it back, without the tracker.

        :param node: the node's UUID
        :param said: what the row is to say
        :returns: whether there is nothing left to do
        """
        def change(before: Mapping[str, str]) -> dict[str, str]:
            return {**stats.cleaned(before), **said}
        try:
            return upstream.say(self._driver, node, change) or (
                self.nova.say(node, change))
        except Exception as error:
            LOG.warning('Cannot write the offer of node %(node)s; the '
                        'resource tracker writes it later: %(error)s',
                        {'node': node, 'error': error})
            return False

    def move(self, node: str) -> bool:
        """Take a node without the resource tracker, if that is enough.

        It takes other nodes of the pass at the same time.

        :param node: the node's UUID
        :returns: whether there is nothing left to do: the node is this
            service's, or another's
        """
        steps = self.result.plan.steps
        if node in self._moved or not rows.can_move(steps.get(node)) or (
                not self.settings.full_update_interval):
            return self._moved.get(node, False)
        chosen = [node, *itertools.islice((
            each for each, step in steps.items()
            if rows.can_move(step) and each not in self._moved
            and each != node), _MOST_MOVED)]
        try:
            moved = rows.take(self._between(), rows.Wanted(
                {each: steps[each] for each in chosen},
                self._to_be_made_of(chosen)))
        except Exception as error:
            LOG.warning('Cannot take %(count)d nodes directly; the resource '
                        'tracker takes them, which is slower: %(error)s',
                        {'count': len(chosen), 'error': error})
            self._moved |= dict.fromkeys(chosen, False)
            return False
        self._note_moved(moved.taken)
        self._moved |= {each: each in moved.taken | moved.lost
                        for each in chosen}
        return self._moved[node]

    def _note_moved(self, nodes: Collection[str]) -> None:
        """Note that nodes have become this service's without the tracker."""
        now, steps = self.process.now(), self.result.plan.steps
        self.turns.came(
            filter(None, (steps[node].claim for node in nodes)),
            updates.Moment(now, self.memory.standing, self.settings.me),
            self.settings.full_update_interval)
        for node in nodes:
            # Their former owner has updated them, so each waits for its turn.
            self.turns.updated(node, now)
        self.process.untracked = self.process.untracked.union(nodes)
        # For a build on one, the tracker reads it from here.
        self.result = dataclasses.replace(
            self.result, plan=self.result.plan.having({
                node: dataclasses.replace(steps[node], claim=planner.Claim(
                    None, True, self.settings.host)) for node in nodes}))

    def _to_be_made_of(self, nodes: Iterable[str]) -> dict[str, str]:
        """Return what the rows of nodes are to say that they were made of."""
        steps = self.result.plan.steps
        said = updates.of_settings(self.settings, self.process)
        answers = self.ironic.fingerprints(
            node for node in nodes if node in self.ironic.found)
        return {node: updates.made_of(answer, steps[node].decision, said)
                for node, answer in answers.items()}

    def _has_turn(self, node: str, is_start: bool = False) -> bool:
        """Return whether a node is to be updated, changed or not.

        The turns that come while the tracker goes from node to node wait for
        the next pass: otherwise a service that cannot keep up would update all
        its nodes in one pass. And nova-compute answers no message before its
        first pass has ended, so all turns wait for the second one.

        :param node: the node's UUID
        :param is_start: whether nova-compute is just starting
        """
        until = (self.turns.began if is_start or self.ended is None
                 else self.ended.now)
        return self.turns.has(node, until, self.settings.full_update_interval)

    def note_update(self, node: str, is_good: bool) -> None:
        """Note that the resource tracker has updated a node.

        :param node: the node's UUID
        :param is_good: whether the update has succeeded
        """
        self.updated += 1
        at_once = len(self._in_turn)
        begun = self._in_turn.pop(node, None)
        if is_good:
            # Each pass tries a failed one again, whatever that takes.
            if begun is not None:
                self.turns.took((self.process.now() - begun) / at_once)
            self.turns.updated(node, self.process.now())
            self._wrote[node] = self._to_write(node)
        # Nova deletes an instance after Ironic has let go of it, and begins to
        # build one before: what was counted does not stay.
        if not is_good or (
                self.result.listed.get(node) is None
                and upstream.counts_instances(self._driver, node)):
            self.turns.failed(node)

    def _to_write(self, node: str) -> tuple[object, ...] | None:
        """Return the part of a row that shows that the row is complete."""
        step = self.result.plan.steps.get(node)
        return None if step is None else (
            self.result.answers.get(node), step.in_row, self._brings)

    def untracked(self) -> frozenset[str]:
        """Name the nodes of this service that the tracker does not track."""
        return self.process.untracked - upstream.tracked_nodes(self._driver)

    def to_be_told(self, is_enabled: bool) -> frozenset[str]:
        """Name the untracked nodes that Placement is told the status of now.

        If the service is disabled, these are those with an instance. The free
        ones go to other services, who would have to take that back; a pass
        tells of those that stay.

        :param is_enabled: whether the service is enabled
        """
        listed = self.result.listed
        return frozenset(node for node in self.untracked()
                         if is_enabled or listed.get(node) is not None)

    def oldest_update(self) -> float:
        """Return how long ago, in seconds, the oldest update of a node was."""
        return self.turns.oldest(self.result.listed, self.process.now())

    def react(self) -> Reacted:
        result = self._look(_NODES)
        if result.steps:
            # What was to move in the pass may have belonged to another service
            # then.
            for node in result.steps:
                self._moved.pop(node, None)
            self.result = dataclasses.replace(
                self.result, plan=self.result.plan.having(result.steps),
                orphans=self.result.orphans.difference(
                    each.instance for each in result.taken))
        nodes = self.ironic.for_nova(result.steps)
        self.nodes = {**self.nodes, **nodes}
        return Reacted(result.taken, nodes, list(result.steps))

    def change(self, nodes: Sequence[str]) -> Reacted:
        # What has come without the tracker is this service's as well.
        steps, own = self.result.plan.steps, self.process.tracked()
        result = self._change(_NODES, [
            node for node in nodes if changes.is_watched(
                steps.get(node), node in own)])
        made = self.ironic.for_nova(result.nodes)
        self.nodes = {**self.nodes, **made}
        # What the tracker is to write by it. A row that is to say another
        # offer is not to say, before that, that this is written.
        before = self.result.changes
        self.result = dataclasses.replace(self.result, answers={
            **self.result.answers, **self.ironic.fingerprints(made)
        }, changes=dataclasses.replace(
            before, offers=before.offers - made.keys()))
        return Reacted(nodes=made, places=[
            node for node in result.places if node in made])

    def is_interrupted(self, instance: str, node: str) -> bool:
        if builds.is_interrupted(self._between(), observation.Unclaimed(
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

    def look_at(self, node: str) -> Sequence[model.Takeover] | None:
        """Look at a node once more before the resource tracker records it.

        :param node: the node's UUID
        :returns: instances that have become this service's by it; None if
            another service has taken the node meanwhile
        """
        step = self.result.plan.steps.get(node)
        if step is None:
            return ()
        this = self._between()
        is_mine = tracking.look(this, tracking.Listed(
            node, step, self.process.tracks(node), self._new))
        self._tell(this.happened)
        return this.taken if is_mine else None

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
            {} if step is None else self._said(node, step))

    def _said(self, node: str, step: planner.Step) -> dict[str, str]:
        """Return what the row of a node is to say of what was decided."""
        said = self.said_of_itself(node) | self._made_of(node, step)
        if step.in_row is not None:
            said |= stats.offer(self.settings.host, step.in_row)
        return said

    def _made_of(self, node: str, step: planner.Step) -> dict[str, str]:
        """Return the fingerprint of what the row of a node is made of."""
        # Nova's driver may just have read the node itself.
        said = self._driver.node_cache.get(node)
        answer = None if said is None else self.ironic.fingerprint_of(said)
        return {} if answer is None else stats.make(
            self.settings.host, updates.made_of(
                answer, step.decision, updates.of_settings(
                    self.settings, self.process)))

    def is_deleted(self, node: str) -> bool:
        this = self._between()
        try:
            is_gone = leftovers.is_deleted(this, node)
        except Exception as error:
            # Nova would give up the rest of its pass.
            LOG.error('Cannot find out whether node %(node)s is deleted: '
                      '%(error)s', {'node': node, 'error': error})
            return False
        self._tell(this.happened)
        return is_gone
