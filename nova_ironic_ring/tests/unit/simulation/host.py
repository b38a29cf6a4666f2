# SPDX-License-Identifier: Apache-2.0

"""A nova-compute with our driver: it runs real passes, and decides nothing.

Its passes run in a greenlet, and what it does between them in another. Each
call of a port is a point at which one stops and lets others go on.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import datetime
import functools
import typing

import greenlet

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import orphans
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import arrivals
from nova_ironic_ring.core.taking import leftovers
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.process import heartbeats
from nova_ironic_ring.tests.unit.simulation import builds
from nova_ironic_ring.tests.unit.simulation import times
from nova_ironic_ring.tests.unit.simulation import writes

if typing.TYPE_CHECKING:
    from nova_ironic_ring.tests.unit.simulation import world as worlds


PLACES = node_places.Nodes()
Unreachable = writes.Unreachable


class Port:
    """A port that lets others go on at each call."""

    def __init__(self, host: Host, target: object, needs_nova: bool,
                 delay: float) -> None:
        """Choose the port.

        :param host: the service that calls
        :param target: what answers
        :param needs_nova: whether Nova's database answers
        :param delay: how long the way there may take, in seconds
        """
        self._host = host
        self._target = target
        self._needs_nova = needs_nova
        self._delay = delay

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = functools.partial(
            self._host.call, name, getattr(self._target, name),
            self._needs_nova, self._delay)
        setattr(self, name, method)
        return method


class Nova(clouds.Nova):
    """Nova's records, where all that a service changes is looked at."""

    def __init__(self, host: Host) -> None:
        """Choose the service.

        :param host: the service
        """
        super().__init__(host.world.cloud, host.name)
        self._service = host

    def rows(self, nodes: Iterable[str]) -> dict[str, model.Row]:
        self._service.activity.read_at = self._service.world.now
        return super().rows(list(nodes))

    def instances(self, uuids: Iterable[str]) -> dict[str, model.Instance]:
        self._service.activity.read_at = self._service.world.now
        return super().instances(uuids)

    def delete_row(self, node: str, owner: str) -> bool:
        rules = self._service.world.rules
        row = self.cloud.rows.get(node)
        if row is not None and row.owner == owner:
            rules.check_deletion(self._service, node, row)
        if not super().delete_row(node, owner):
            return False
        rules.row_deleted(self._service, node, owner)
        return True

    def make_member(self, said: ports.Saying) -> None:
        super().make_member(said)
        self._service.world.rules.said(self._service, said.ring)

    def take_row(self, node: str, owner: str) -> bool:
        service = self._service
        rules = service.world.rules
        row = self.cloud.rows.get(node)
        if row is not None and row.owner == owner:
            rules.check_taking(service, node, service.activity.read_at)
        if not super().take_row(node, owner):
            return False
        rules.row_taken(service, node, owner)
        return True

    def set_instance_host(self, instance: str, expected: ports.Expected
                          ) -> bool:
        if not super().set_instance_host(instance, expected):
            return False
        self._service.world.rules.instance_taken(
            self._service, instance, expected)
        return True

    def end_build(self, instance: str, host: str | None,
                  is_claimed: bool = True) -> bool:
        if not super().end_build(instance, host, is_claimed):
            return False
        self._service.world.rules.build_ended(self._service, instance)
        return True


class Ironic(clouds.Ironic):
    """What Ironic has, or shows."""

    def __init__(self, host: Host) -> None:
        """Choose the service.

        :param host: the service
        """
        super().__init__(host.world.cloud)
        self._service = host

    def nodes(self, scope: settings.Scope,
              shards: Collection[str] | None = None
              ) -> dict[str, str | None]:
        # The listing takes long.
        self._service.pause(1)
        self._service.reach_ironic()
        found = ({} if self._service.world.is_hidden
                 else super().nodes(scope, shards))
        self._service.world.rules.listed(self._service, found)
        self._service.pause(0.5)
        return found

    def latest(self, scope: settings.Scope, after: str | None = None
               ) -> Sequence[ports.Latest]:
        self._service.reach_ironic()
        if self._service.world.is_hidden:
            return ()
        found = super().latest(scope, after)
        # What is told is older by then.
        self._service.pause(1)
        return found

    def nodes_of(self, instances: Iterable[str]) -> dict[str, str | None]:
        self._service.reach_ironic()
        if self._service.world.is_hidden:
            return {}
        return super().nodes_of(instances)

    def more(self, scope: settings.Scope, shards: Collection[str]
             ) -> dict[str, str | None]:
        self._service.reach_ironic()
        if self._service.world.is_hidden:
            return {}
        return super().more(scope, shards)

    def named(self, scope: settings.Scope, nodes: Collection[str]
              ) -> dict[str, str | None]:
        self._service.reach_ironic()
        if self._service.world.is_hidden:
            return {}
        return super().named(scope, nodes)

    def shards(self, scope: settings.Scope) -> frozenset[str]:
        self._service.reach_ironic()
        return super().shards(scope)

    def is_available(self, node: str) -> bool:
        self._service.reach_ironic()
        return super().is_available(node)

    def is_deleted(self, node: str) -> bool:
        self._service.reach_ironic()
        return self._service.world.is_hidden or super().is_deleted(node)


class Placement(clouds.Placement):
    """What Placement has, or answers."""

    def __init__(self, host: Host) -> None:
        """Choose the service.

        :param host: the service
        """
        super().__init__(host.world.cloud)
        self._service = host

    def in_use(self, nodes: Collection[str]) -> frozenset[str]:
        found = super().in_use(nodes)
        # Four at a time.
        self._service.pause(0.05 * len(nodes))
        return found

    def consumers(self, node: str) -> frozenset[str]:
        self._service.reach_placement()
        return super().consumers(node)

    def has_provider(self, provider: str) -> bool:
        self._service.reach_placement()
        return super().has_provider(provider)


class Process(clouds.Process):
    """What a service knows of itself."""

    def __init__(self, host: Host) -> None:
        """Choose the service.

        :param host: the service
        """
        super().__init__(host.world.cloud)
        self._service = host
        #: Whether it was told to end.
        self.ending = False
        # A monotonic clock begins anywhere.
        self._began = host.world.random.uniform(-1000, 1000)
        self._beaten: float | None = None
        self._heartbeats = heartbeats.OwnHeartbeats(self.now)

    def now(self) -> float:
        return self.cloud.now + self._began

    def since_start(self, at: float) -> float:
        """Return a time of this process's clock as a time of the world."""
        return at - self._began

    def wall_time(self) -> datetime.datetime:
        return super().wall_time() + datetime.timedelta(
            seconds=self._service.world.skews.get(self._service.me, 0))

    @property
    def has_beaten(self) -> bool:
        """Whether a heartbeat has succeeded."""
        return self._beaten is not None

    @property
    def silence(self) -> float:
        """The seconds since the last heartbeat that has succeeded."""
        return (float('inf') if self._beaten is None
                else self.cloud.now - self._beaten)

    def beaten(self) -> None:
        """Note that a heartbeat has succeeded."""
        self._beaten = self.cloud.now
        self._heartbeats.beat(lambda: None)

    def longest_gap(self, since: float) -> float:
        return self._heartbeats.longest_gap(since)

    def is_ending(self) -> bool:
        return self.ending

    def tracked(self) -> frozenset[str]:
        return self.untracked.union(self.tracked_nodes)

    def took(self, taken: model.Takeover) -> None:
        self._service.world.writes.recovered(self._service, taken.instance)
        self._service.recover(taken.instance)


class Tracker(clouds.Tracker):
    """Nova's resource tracker, between the steps of which time passes."""

    def __init__(self, host: Host) -> None:
        """Choose the service.

        :param host: the service
        """
        self._service = host
        super().__init__(host.world.cloud, host.process, host.ports,
                         host.settings)

    def clean(self) -> dict[str, model.Row]:
        """Let go of the nodes that another service has by now.

        :returns: the rows of those that are left
        """
        rows = self.world.nova.rows_of(self.current.host)
        self.process.tracked_nodes &= rows.keys()
        return rows

    @property
    def memory(self) -> observation.Memory:
        """What the service remembers."""
        return self._service.memory

    @memory.setter
    def memory(self, memory: observation.Memory) -> None:
        self._service.memory = memory

    def keep(self, before: observation.Memory, after: observation.Memory
             ) -> None:
        self._service.keep(before, after)

    def make_member(self, work: own_work.Work) -> None:
        if work.to_record is not None:
            self._service.pause()
            self._service.reach()
            self._service.reach_placement()
            Nova(self._service).make_member(work.to_record)

    def tell(self, happened: Sequence[events.Event]) -> None:
        self._service.world.writes.told(self._service, happened)

    def take(self, node: str, result: node_places.PassResult,
             is_sure: bool = False) -> None:
        """Record a listed node for the service, and write what it says there.

        :param node: the node's UUID
        :param result: what has come of the pass
        :param is_sure: whether it is to do so even if nothing has changed
        """
        if not (is_sure or result.changes.needs_update(node)):
            return
        self._service.pause()
        self._service.reach()
        # Nova's tracker writes to Placement first.
        self._service.reach_placement()
        self._service.activity.looked_at = self.cloud.now
        # Another pass may end meanwhile that does not know the node.
        activity = self._service.activity
        before = activity.steps
        activity.steps = {**before, node: result.plan.steps[node]}
        try:
            super().take(node, result, is_sure)
        finally:
            activity.steps = before

    def take_for_build(self, arrival: arrivals.Arrival) -> bool:
        """Take the node of a build, if another service has it by now.

        :param arrival: the build
        :returns: whether the service has the node
        """
        host, own = self._service, self.process.tracked_nodes
        if arrival.node in own:
            if not arrivals.is_gone(
                    self._at_once(), arrival.node, self.current.me):
                return True
            own.discard(arrival.node)
        if arrival.node in self.process.untracked:
            # It has not needed an update yet.
            self._take_at_once(arrival.node)
            if arrival.node in self.process.tracked_nodes:
                return True
        taken = arrivals.take(self._at_once(), arrival)
        if taken is None or arrival.node not in self.cloud.nodes:
            return False
        host.came_here({arrival.node: taken.step})
        self._take_at_once(arrival.node)
        host.world.rules.row_taken(host, arrival.node, taken.happened.owner)
        return True

    def _at_once(self) -> ports.Ports:
        """Return ports that let no time pass.

        What asks with them is not the greenlet of the passes.
        """
        return dataclasses.replace(
            clouds.connect(self.cloud, self.current).world,
            process=self.process)

    def _take_at_once(self, node: str) -> None:
        """Have the tracker track a node, changed or not."""
        tracker = clouds.Tracker(
            self.cloud, self.process, self._at_once(), self.current)
        tracker.take(node, self._service.result, is_sure=True)

    def record(self, node: str) -> None:
        # After the last look, and before it has come to anything.
        self._service.meet('record', 'before')
        self._service.pause()
        self._service.reach()
        rules = self._service.world.rules
        rules.check_taking(
            self._service, node, self._service.activity.looked_at)
        before = self.cloud.rows.get(node)
        owner = before.owner if before else None
        super().record(node)
        rules.row_taken(self._service, node, owner)
        self._service.meet('record', 'after')
        self._service.world.writes.answer(self._service, 'record')
        self._service.recorded_at[node] = self._service.world.now


@dataclasses.dataclass
class Activity:
    """What a service is at: a pass, or what it does between two passes.

    :ivar greenlet: where it runs
    :ivar began_at: when it began
    :ivar read_at: when it last read rows or instances
    :ivar looked_at: when it began to look at a node that the tracker takes
    :ivar services_at: when it asked for the services whose answer it goes by
    :ivar takes: the nodes whose instances it has decided to take over
    :ivar ring: the fingerprint of the ring by which it has decided
    :ivar steps: what it has decided on, by the node, if it is no pass
    """

    greenlet: greenlet.greenlet
    began_at: float
    read_at: float
    looked_at: float = 0.0
    services_at: float = 0.0
    takes: frozenset[str] = frozenset()
    ring: str = ''
    steps: Mapping[str, planner.Step] = dataclasses.field(
        default_factory=dict)


class Host:
    """A nova-compute.

    :ivar world: the world
    :ivar name: the name of the service
    :ivar me: its canonical name
    :ivar group: its conductor group; None for the nodes of all groups
    :ivar peers: the names of its peers
    :ivar memory: what it remembers
    :ivar result: what has come of its last pass
    :ivar lives: whether its process lives
    :ivar is_receiving: whether it receives messages
    :ivar is_cut_off: whether it cannot reach Nova's database
    :ivar has_ironic: whether it can reach Ironic
    :ivar works_from: since when it can
    :ivar frozen_until: until when it stands still
    :ivar ends_at: when it ends, if it is to end
    :ivar disturbed_at: until when something last befell it
    :ivar cleaned_at: when it last saw which rows are its own
    :ivar traps: what befalls it before or after its next call of a port, by
        the name of the call and the moment; of the call after "takeover: "
        for one that belongs to a takeover
    """

    #: Whether it has our driver.
    IS_OURS = True
    NOVA = Nova
    TRACKER = Tracker

    def __init__(self, world: worlds.World, name: str,
                 group: str | None = None, peers: tuple[str, ...] = ()
                 ) -> None:
        """Start it.

        :param world: the world
        :param name: the name of the service
        :param group: its conductor group; None for the nodes of all groups
        :param peers: the names of its peers
        """
        self.world = world
        self.name = name
        self.me = model.canonical(name)
        self.group = group
        self.peers = peers
        self.memory = observation.Memory()
        self.result = node_places.PassResult()
        self.lives = True
        self.is_receiving = False
        self.is_cut_off = False
        self.has_ironic = True
        self.works_from = world.now
        self.frozen_until = 0.0
        self.ends_at = 0.0
        self.disturbed_at = world.now
        self.cleaned_at = world.now
        self.traps: dict[tuple[str, str], Callable[[], None]] = {}
        self.process = Process(self)
        self.ports = typing.cast(ports.Ports, ports.Ports(
            *(typing.cast(typing.Any, Port(self, target, needs_nova, delay))
              for target, needs_nova, delay in (
                  (self.NOVA(self), True, 0.2), (Ironic(self), False, 0.5),
                  (Placement(self), False, 0.2),
                  (self.process, False, 0.01)))))
        self.tracker = self.TRACKER(self)
        self._pass_activity, self._reaction, self._takes, self._changes = (
            Activity(greenlet.greenlet(run), world.now, world.now)
            for run in (self._live, self._react_on, self._take_on,
                        self._look_on))
        #: Whether a look has ended since it last took free nodes.
        self._is_due = False
        #: What was decided on nodes that the tracker is to track, by UUID.
        self._to_track: dict[str, planner.Step] = {}
        #: When it last asked Ironic, in seconds.
        self._asked: float | None = None
        #: When its tracker began to track each node, in seconds.
        self.recorded_at: dict[str, float] = {}
        #: What looks and builds have decided since the last pass began, by
        #: the UUID of the node, and the nodes that they have recorded.
        self._came: dict[str, planner.Step] = {}
        self._moved: frozenset[str] = frozenset()
        self._is_locked = False
        self._waiting: list[greenlet.greenlet] = []
        self._start(self._pass_activity)

    @property
    def activity(self) -> Activity:
        """What it is at just now."""
        current = greenlet.getcurrent()
        others = self._reaction, self._takes, self._changes
        return next((each for each in others if each.greenlet is current),
                    self._pass_activity)

    def step(self, node: str) -> planner.Step:
        """Return what was decided on a node.

        :param node: its UUID
        """
        return self.activity.steps.get(node) or self.result.plan.steps[node]

    @property
    def ring(self) -> tuple[object, ...]:
        """What its ring is made by, besides who lives."""
        return self.group, frozenset(self.peers), self.driver

    @property
    def driver(self) -> type[Host]:
        """Stands for its driver, whatever the release."""
        return type(self)

    @property
    def settings(self) -> settings.Settings:
        """What its nova.conf says."""
        scope = settings.Scope(self.group)
        return settings.Settings(
            host=self.name, down_time=times.DOWN_TIME, scope=scope,
            peers=settings.peers(self.name, scope, self.peers),
            partitions=times.PARTITIONS, pass_interval=times.PASS_INTERVAL,
            report_interval=times.REPORT_INTERVAL,
            handover_timeout=times.HANDOVER_TIMEOUT,
            follows=self.world.follows,
            failover_after=times.FAILOVER_AFTER,
            full_update_interval=self.world.full_update_interval,
            changes_interval=times.CHANGES_INTERVAL,
            by_shards=self.me in self.world.by_shards)

    # Time

    def end(self) -> None:
        """End the process at once."""
        self.lives = self.is_receiving = False
        current = greenlet.getcurrent()
        greenlets = [each.greenlet for each in (
            self._pass_activity, self._reaction, self._takes,
            self._changes)]
        for each in greenlets:
            if each is not current and not each.dead:
                # So that it comes back to here.
                each.parent = current
                each.throw()
        if current in greenlets:
            raise greenlet.GreenletExit()

    def pause(self, most: float = 0.2) -> None:
        """Let others go on for a moment.

        :param most: for how long, in seconds
        """
        self._wait(self.world.soon(most))

    def _start(self, activity: Activity) -> None:
        self.world.at(self.world.now + self.world.soon(),
                      lambda: self._resume(activity.greenlet))

    def _wait(self, seconds: float) -> None:
        current = greenlet.getcurrent()
        self.world.at(self.world.now + seconds, lambda: self._resume(current))
        current.parent.switch()

    def _resume(self, stopped: greenlet.greenlet) -> None:
        if not self.lives:
            return
        if self.world.now < self.frozen_until:
            # All at once, and in any order.
            self.world.at(self.frozen_until + self.world.soon(1),
                          lambda: self._resume(stopped))
            return
        stopped.switch()

    @contextlib.contextmanager
    def in_turn(self) -> Iterator[None]:
        """Run a pass, or look what has changed in Ironic."""
        while self._is_locked:
            current = greenlet.getcurrent()
            self._waiting.append(current)
            current.parent.switch()
        self._is_locked = True
        try:
            yield
        finally:
            self._is_locked = False
            for each in self._waiting:
                self.world.at(self.world.now + self.world.soon(0.01),
                              functools.partial(self._resume, each))
            self._waiting = []

    def later(self, most: float, what: Callable[[], None]) -> None:
        """Do something beside the passes, if the process lives so long.

        :param most: the time that it may take until then, in seconds
        :param what: does it
        """
        self.world.at(self.world.now + self.world.soon(most),
                      lambda: self._do(what))

    def _do(self, what: Callable[[], None]) -> None:
        until = max(self.frozen_until, self.world.stalled_until)
        if not self.lives:
            return
        if self.is_cut_off or self.world.now < until:
            self.world.at(max(until, self.world.now) + self.world.soon(1),
                          lambda: self._do(what))
            return
        what()

    # The ports

    def call(self, name: str, method: Callable[..., object], needs_nova: bool,
             delay: float, *args: object, **kwargs: object) -> object:
        """Call a port.

        :param name: the name of the call
        :param method: what answers
        :param needs_nova: whether Nova's database answers
        :param delay: how long the way there may take, in seconds
        :param args: what is passed on
        :param kwargs: likewise
        :returns: the answer
        """
        self.world.steps += 1
        asked, activity = self.world.now, self.activity
        self.world.rules.check_lease(self, name, args)
        self.pause(delay)
        self.world.adversary.act()
        self.meet(name, 'before')
        if needs_nova:
            self.reach()
        answer = method(*args, **kwargs)
        if name == 'services':
            activity.services_at = asked
        self.meet(name, 'after')
        if self.world.writes.answer(self, name, args, answer):
            self.world.work_changed_at = self.world.now
        if needs_nova and self.world.random.random() < 0.2:
            # What was asked for is done, and the answer is on its way.
            self.pause()
            self.reach()
        return answer

    def reach(self) -> None:
        """Wait until Nova's database answers.

        :raises Unreachable: if this service is cut off from it
        """
        while self.world.now < self.world.stalled_until:
            self._wait(self.world.stalled_until - self.world.now
                       + self.world.soon(1))
        if self.is_cut_off:
            raise Unreachable()

    def reach_ironic(self) -> None:
        """Reach Ironic.

        :raises Unreachable: if this service is cut off from it
        """
        if not self.has_ironic:
            raise Unreachable()

    def reach_placement(self) -> None:
        """Reach Placement.

        :raises Unreachable: if nobody does
        """
        if self.world.is_placement_down:
            raise Unreachable()

    def meet(self, name: str, moment: str) -> None:
        """Have befall this service what is to befall it at a call.

        :param name: the name of the call
        :param moment: before or after
        """
        trap = self.traps.pop((name, moment), None)
        if trap is None and self.activity.takes:
            trap = self.traps.pop((f'takeover: {name}', moment), None)
        if trap is None:
            return
        self.world.log(f'{self.name} is at {name}, {moment} it')
        trap()
        if self.world.now < self.frozen_until:
            self.pause()

    # What Nova does, and in its order

    def _live(self) -> None:
        # Nova asks for the nodes once before the service has a record.
        self._pass(is_tracking=False)
        if self.me not in self.world.cloud.services:
            self.world.beat(self.name)
        for uuid, instance in list(self.world.cloud.instances.items()):
            if instance.host_name == self.me:
                builds.recover(self, uuid)
        builds.end_interrupted(self)
        self._pass()
        if self.IS_OURS:
            self._start(self._reaction)
            self._start(self._takes)
            self._start(self._changes)
        self._beat(is_first=True)
        self.is_receiving = True
        for build in self.world.messages.pop(self.me, ()):
            build.receive(self)
        while True:
            self._wait(times.PASS_INTERVAL)
            self._pass()

    def _beat(self, is_first: bool = False) -> None:
        if not self.lives or self.process.ending:
            return
        until = max(self.frozen_until, self.world.stalled_until)
        if self.world.now < until:
            # It has to connect again.
            self.world.at(until + self.world.soon(4), self._beat)
            return
        self.world.at(self.world.now + (
            self.world.soon() if is_first else times.REPORT_INTERVAL),
            self._beat)
        if not is_first and not self.is_cut_off:
            if not self.process.has_beaten:
                # Until now nobody could see that it lives.
                self.world.disturb(self, self.world.now)
            self.world.beat(self.name)
            self.process.beaten()

    def _pass(self, is_tracking: bool = True) -> None:
        self.tracker.current = current = self.settings
        with self.in_turn():
            self._begin()
            self._asked = self.process.now()
            self._came, self._moved = {}, frozenset()
            self.memory = self.memory.begun(self.process.now(), current)
            try:
                result = passes.run(self.ports, self, current, PLACES)
            except passes.UnansweredError as error:
                self._fail(error)
                return
            self.keep(result.before, result.memory)
            self.result = result.joined(
                self._came, self.memory, self._moved)
            self.activity.steps = {}
        self.world.writes.told(self, self.result.happened)
        self.world.rules.planned(self, result)
        if result.work.said is not None:
            self.world.rules.went_by(
                self, result.work.said.ring, result.memory.view)
        for uuid in self._reaped():
            self.world.rules.check_reaped(self, uuid)
            self.later(1, functools.partial(self._reap, uuid))
        if not is_tracking:
            return
        try:
            self._track()
        except Unreachable:
            return
        self.world.rules.pass_done(self)

    def _begin(self) -> None:
        activity = self.activity
        activity.began_at = self.world.now
        activity.takes = frozenset()
        activity.steps = {}

    def _react_on(self) -> None:
        while not self.process.ending:
            self._wait(reaction.pause(self.memory, self.settings))
            self._react()

    def _react(self) -> None:
        """Look at the other services between two passes."""
        self._begin()
        before = self.memory
        try:
            result = reaction.run(
                self.ports, before, self.settings, PLACES)
        except passes.UnansweredError as error:
            self._fail(error)
            return
        self._keep_what_came(before, result)
        if result.said is not None:
            self.world.rules.acknowledged(
                str(result.said.ring), self.memory.view.ring)
        self._is_due = True

    def _keep_what_came(self, before: observation.Memory,
                        result: node_places.ReactionResult) -> None:
        self.keep(before, result.memory)
        self.came_here(result.steps, result.moved)
        self.world.writes.told(self, result.happened)
        self._to_track.update({
            node: step for node, step in result.steps.items()
            if node not in result.moved})

    def _take_on(self) -> None:
        while not self.process.ending:
            self._wait(0.2)
            if self._is_due:
                self._is_due = False
                self._take_free()
            while self._to_track and not (
                    self._is_due or self.process.ending):
                self._track_next()

    def _take_free(self) -> None:
        """Take free nodes by the last look."""
        self._begin()
        before = self.memory
        self.activity.services_at = self.process.since_start(before.watch.at)
        try:
            result = node_places.take_free(self.ports, before, self.settings)
        except passes.UnansweredError as error:
            self._fail(error)
            return
        self._keep_what_came(before, result)

    def _track_next(self) -> None:
        """Have the tracker track a node that has come between two passes."""
        self._begin()
        node = min(self._to_track)
        steps = {node: self._to_track.pop(node)}
        self.activity.steps = steps
        with contextlib.suppress(Unreachable):
            self.tracker.take(node, dataclasses.replace(
                self.result, plan=planner.Plan(steps)))

    def _look_on(self) -> None:
        while not self.process.ending:
            due = changes.due(self._asked, self.process.now(),
                              self.settings.changes_interval)
            if due == 0:
                self._look()
            self._wait(max(0.2, due or 0.0))

    def _look(self) -> None:
        """Look what has changed in Ironic since the last pass."""
        self._asked = self.process.now()
        current = self.settings
        try:
            nodes = changes.ask(self.ports.ironic, current.scope)
        except Unreachable:
            return
        with self.in_turn():
            self._begin()
            steps, before = self.result.plan.steps, self.memory
            try:
                result = reaction.change(
                    self.ports, before, current, PLACES, [
                        node for node in nodes if changes.is_watched(
                            steps.get(node),
                            node in self.process.tracked())])
            except passes.UnansweredError as error:
                self._fail(error)
                return
            self.keep(before, result.memory)
        for node in result.places:
            with contextlib.suppress(Unreachable):
                self.tracker.change(node, self.result)

    def keep(self, before: observation.Memory, after: observation.Memory
             ) -> None:
        """Remember what was changed in a copy of the memory.

        :param before: the memory that was copied
        :param after: the copy, with the changes
        """
        self.memory = self.memory.merged(before, after)

    def came_here(self, steps: Mapping[str, planner.Step],
                  moved: frozenset[str] = frozenset()) -> None:
        """Note that nodes have come, for now and for a pass that runs.

        :param steps: what was decided on them, by UUID
        :param moved: those that are recorded already
        """
        self._came.update(steps)
        self._moved |= moved
        self.process.untracked |= moved
        self.result = self.result.joined(steps, self.memory)

    def _fail(self, error: passes.UnansweredError) -> None:
        """Keep what is known of a pass, or a look, that has failed."""
        self.keep(error.before, error.memory)
        self.world.writes.told(self, error.happened)

    def recover(self, uuid: str) -> None:
        """Begin to recover an instance.

        :param uuid: its UUID
        """
        self.later(1, lambda: builds.recover(self, uuid))

    def _reaped(self) -> frozenset[str]:
        """Name the instances that Nova's periodic task cleans up after."""
        try:
            found = orphans.believe(self.ports, orphans.Named({}, {
                str(uuid): node for node, uuid in self.memory.nodes.items()
                if uuid in self.result.orphans},
                self.memory, self.settings), 0)
        except Unreachable:
            return frozenset()
        return found.instances - self.world.cloud.instances.keys()

    def _reap(self, uuid: str) -> None:
        """Free the node of an instance that Nova has deleted."""
        for node in self.world.cloud.nodes.values():
            if node.instance == uuid and (
                    uuid not in self.world.cloud.instances):
                node.instance = None

    def _track(self) -> None:
        self.cleaned_at = self.world.now
        rows = self.tracker.clean()
        self.tracker.check(self.result)
        with contextlib.suppress(Unreachable):
            self.tracker.make_member(self.result.work)
        for node in sorted(rows.keys() - self.result.listed.keys()):
            self._remove(node)
        for node in self.result.listed:
            with contextlib.suppress(Unreachable):
                self.tracker.take(node, self.result)

    def _remove(self, node: str) -> None:
        """Delete the row of a node that Ironic does not have any more."""
        try:
            before = self.memory
            this = one_pass.Pass(
                self.ports, self.settings, before.copied(), before)
            is_gone = leftovers.is_deleted(this, node)
            self.keep(before, this.memory)
        except Unreachable:
            return
        if not is_gone:
            return
        with contextlib.suppress(Unreachable):
            if self.ports.nova.delete_row(node, self.name):
                self.process.tracked_nodes.discard(node)
                self.ports.placement.delete_provider(node)
