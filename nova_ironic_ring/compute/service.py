# SPDX-License-Identifier: Apache-2.0

"""One service of the ring: its settings, its memory and its passes.

What its compute nodes are, single nodes or pools, is said by its subclasses.
"""

from collections.abc import Callable, Container, Iterable
from collections.abc import Iterator, Mapping, Sequence
import contextlib
import dataclasses
import datetime
import threading
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
from nova_ironic_ring.adapters import limits
from nova_ironic_ring.adapters.nova import aggregates
from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.adapters import placement
from nova_ironic_ring.adapters import settings
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import providers
from nova_ironic_ring.compute.recording import history
from nova_ironic_ring.compute.recording import log
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import orphans
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import places
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import unclaimed
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings as core_settings
from nova_ironic_ring.process import heartbeats
from nova_ironic_ring.process import sighup
from nova_ironic_ring.process import watchdog

LOG = logging.getLogger(__name__)

CONF = nova.conf.CONF
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
        #: Begins to recover instances.
        self.recover: Callable[[Sequence[model.Takeover]], None] = (
            lambda taken: None)

    def now(self) -> float:
        return time.monotonic()

    def wall_time(self) -> datetime.datetime:
        return timeutils.utcnow(with_timezone=True)

    def longest_gap(self, since: float) -> float:
        if records.has_heartbeats_in_database():
            upstream.watch_heartbeats(self._driver, self.heartbeats.beat)
        else:
            self._watchdog.do_without()
        return self.heartbeats.longest_gap(since)

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

    def took(self, taken: model.Takeover) -> None:
        self.recover([taken])


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
        #: Held while what passes, looks and builds have found is put in
        #: place, and never while anybody is asked.
        self.lock = threading.RLock()
        #: Held by a pass, and while changes in Ironic are looked at: each has
        #: the listing for itself. Nobody else waits for them.
        self.turn = threading.RLock()
        #: The nodes of this service, by UUID, as Nova's driver wants them.
        self.nodes: Mapping[str, sdk_node.Node] = {}
        #: How many passes have ended well, and the last of them.
        self.passes = 0
        self.ended: Ended | None = None
        self._settings: core_settings.Settings | None = None
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
        with self.lock:
            self._work = dataclasses.replace(self._work, is_good=False)
        if self.reloader.reload():
            # Not here: the tracker may wait for this pass.
            self.resets.do(lambda: upstream.reset_manager(self._driver))
        current = self.read_settings()
        with self.lock:
            self.memory = self.memory.begun(start, current)
        with self._raising_cause():
            result = passes.run(self.world, self, current, place)
        self.keep(result.before, result.memory)
        with self.lock:
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
            self.keep(error.before, error.memory)
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
        self.history.write(happened, self.settings.host, self.memory.view)

    def _look(self, place: places.Places[places.Seen, places.Plan,
                                         places.Passed, places.Reacted]
              ) -> places.Reacted:
        """Look at the services between two passes, and log the events.

        :param place: what a place is
        """
        result = self._between_passes(lambda before: reaction.run(
            self.world, before, self.settings, place))
        with self.lock:
            if result.said is not None and self._work.said is not None:
                # For what is said while a pass takes long.
                self._work = dataclasses.replace(
                    self._work, said=dataclasses.replace(
                        self._work.said, ring=result.said.ring))
        return result

    def _between_passes(self, act: Callable[[observation.Memory],
                                            places.Reacted]
                        ) -> places.Reacted:
        """Do something between two passes, keep and log what comes of it."""
        before = self.memory
        with self._raising_cause():
            result = act(before)
        self.keep(before, result.memory)
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
        with limits.haste():
            return changes.ask(self.ironic, self.settings.scope)

    def change(self, nodes: Sequence[str]) -> Sequence[str]:
        """Return what to update, because nodes have changed in Ironic.

        :param nodes: their UUIDs
        :returns: the compute nodes that the resource tracker is to update:
            UUIDs of nodes, or names of pools
        """
        raise NotImplementedError()

    def _change(self, place: places.Places[places.Seen, places.Plan,
                                           places.Passed, places.Reacted],
                nodes: Sequence[str]) -> places.ChangeResult:
        """Return what to update, and remember it.

        :param place: what a place is
        :param nodes: the UUIDs of the nodes that have changed
        """
        before = self.memory
        with self._raising_cause():
            result = reaction.change(
                self.world, before, self.settings, place, nodes)
        self.keep(before, result.memory)
        self._tell(result.happened)
        return result

    @contextlib.contextmanager
    def _between(self) -> Iterator[one_pass.Pass]:
        """Give the pass object for work at a node between passes.

        What it remembers is kept, and its events are told, even if the work
        fails.
        """
        before = self.memory
        this = one_pass.Pass(
            self.world, self.settings, before.copied(), before)
        try:
            yield this
        finally:
            self.keep(before, this.memory)
            self._tell(this.happened)

    def pause(self) -> float:
        """Return how long to wait until the next look, in seconds."""
        return reaction.pause(self.memory, self.settings)

    def keep(self, before: observation.Memory, after: observation.Memory
             ) -> None:
        """Remember what was changed in a copy of the memory.

        :param before: the memory that was copied
        :param after: the copy, with the changes
        """
        with self.lock:
            self.memory = self.memory.merged(before, after)

    def to_say(self) -> dict[str, str] | None:
        """Return the statistics of the member record; None before a pass."""
        said = self._work.said
        return None if said is None else self.nova.member_stats(said)

    def is_record_to_be_made(self) -> bool:
        """Return whether Nova's tracker is to make the member record anew.

        An operator may have deleted the record, or its provider, without which
        Nova cannot delete a service.
        """
        host = self.settings.host
        if self._work.to_record is None:
            return False
        # The tracker may still know what is gone.
        upstream.forget(self._driver, member.name(host))
        self.placement.forget_provider(member.uuid_of(host))
        return True

    def go_on(self) -> None:
        """Say that a good pass takes long.

        Nova's tracker goes from node to node, and deletes the records of nodes
        that are gone, which takes seconds for each.
        """
        now = self.process.now()
        if not self._work.is_good or (
                now - self._said_at < self.settings.pass_interval / 2):
            return
        with self.lock:
            self._said_at = now
            self._work = self._work.renewed(self.process.wall_time())
        assert self._work.said is not None
        with self._between() as this, this.going_on(events.LastPassNotSaid):
            self.world.nova.say_member(self._work.said)

    def put_in_aggregates(self, tree: provider_tree.ProviderTree, name: str
                          ) -> None:
        """Put a provider into the aggregates of this service's host.

        :param tree: the tree of providers
        :param name: the name of the compute node
        """
        found = frozenset(tree.data(name).aggregates)
        wanted = self._aggregates.wanted(
            self.settings, found, self.memory.view.peers)
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
        # With pools, an orphan is on a node of this service as well.
        strange = self.orphans
        found = orphans.believe(self.world, orphans.Named(
            {uuid: nodes.get(uuid) for uuid in own if uuid not in strange},
            {uuid: node for node, uuid in self.memory.nodes.items()
             if uuid is not None and uuid in strange},
            self.memory, self.settings), self._asked)
        self._asked += 1
        if found.strays.keys() - self._strays.keys():
            uuid, node = min(found.strays.items())
            LOG.warning(
                'Ironic has %(count)d instances on nodes, such as '
                '%(instance)s on %(node)s, that Nova has deleted and did not '
                'have there: nothing is done with them.', {
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

    def take_free(self) -> Sequence[str]:
        """Take free nodes between two passes, by the last look.

        A pass or a look may run at the same time.

        :returns: the compute nodes that no pass has listed yet, and that the
            resource tracker is to track
        """
        return ()

    def react(self) -> Sequence[str]:
        """Look at the services between two passes.

        A pass may run at the same time.

        :returns: the compute nodes that no pass has listed yet, and that the
            resource tracker is to track: UUIDs of nodes, or names of pools
        """
        raise NotImplementedError()

    def _replace(self, nodes: Mapping[str, sdk_node.Node]) -> None:
        """Have Nova's driver know the nodes of a pass, and no others."""
        self.nodes = nodes
        upstream.fill_cache(self._driver, nodes)

    def _add(self, nodes: Mapping[str, sdk_node.Node]) -> None:
        """Have Nova's driver know nodes as well."""
        with self.lock:
            self.nodes = {**self.nodes, **nodes}
            upstream.add_to_cache(self._driver, nodes)

    def free_later(self, instance: str) -> None:
        """Have the next pass free the allocation of an instance.

        :param instance: the UUID of the instance
        """
        with self._between() as this:
            this.memory.unfreed |= {instance}

    def is_interrupted(self, instance: str, node: str) -> bool:
        """Return whether this service was to do a build, before its start.

        :param instance: the UUID of the instance
        :param node: the UUID of the compute node that it has an allocation of
        """
        # No other service has ever had a pool of this one.
        return True

    def end_own(self) -> None:
        """End what had come to this service before it was started."""
        with self._between() as this:
            unclaimed.end_own(this)

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
