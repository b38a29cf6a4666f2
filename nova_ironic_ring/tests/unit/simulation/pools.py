# SPDX-License-Identifier: Apache-2.0

"""Services with pools, and a scheduler, on a cloud in memory.

Each pass, each build and each delete runs in a greenlet of its own. Each call
of a port is a point at which it stops and lets others go on, or at which its
service may die.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import heapq
import itertools
import random
import typing
from typing import Any

import greenlet

from nova_ironic_ring.compute.pools import recent_nodes
from nova_ironic_ring.core.deciding import orphans
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import reservation
from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.process import heartbeats
from nova_ironic_ring.tests.unit.simulation import adversary
from nova_ironic_ring.tests.unit.simulation import times
from nova_ironic_ring.tests.unit.simulation import writes

_KINDS = (pools.Kind('CUSTOM_GOLD'), pools.Kind('CUSTOM_SILVER'))
_CLEANING = 6.0
_TRIES = 3


class World:
    """The cloud, its services, and the time.

    :ivar cloud: what Nova, Ironic and Placement have
    :ivar services: the processes that live, by name
    :ivar is_hidden: whether Ironic's policy hides all nodes
    :ivar by_shards: the names of the services that divide nodes by their
        shards
    :ivar follows: whether instances go with the ring from live services
    :ivar of_the_dead: instances whose nodes were given back when their service
        was to count as dead
    :ivar steps: how many calls of a port there were
    :ivar adversary: the owner of some nodes, who writes what it likes; of none
        until it is given one
    :ivar writes: what they write, of which answers may be lost
    """

    def __init__(self, seed: int) -> None:
        """Make an empty cloud.

        :param seed: what all that happens comes from
        """
        self.random = random.Random(seed)
        self.cloud = clouds.Cloud()
        self.services: dict[str, Service] = {}
        #: Builds that nobody has received, by the name of the service.
        self.messages: dict[str, list[tuple[str, str, int]]] = {}
        self.is_hidden = False
        self.by_shards: set[str] = set()
        self.follows = self.random.random() < 0.5
        self.of_the_dead: set[str] = set()
        self.steps = 0
        self.timeline: list[str] = []
        self.adversary = adversary.Adversary(self.cloud, self.log, seed)
        self.writes = writes.Writes(self.log, seed)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._failure: AssertionError | None = None

    def log(self, what: str) -> None:
        """Add a line to the timeline."""
        self.timeline.append(f'{self.cloud.now:8.2f}  {what}')

    def check(self, is_so: bool, what: str) -> None:
        """Fail with the timeline if something is not so."""
        if not is_so:
            self._failure = AssertionError('\n'.join([what, *self.timeline]))
            raise self._failure

    def at(self, seconds: float, what: Callable[[], None]) -> None:
        """Have something done after some time."""
        heapq.heappush(self._due, (
            self.cloud.now + seconds, next(self._order), what))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.cloud.now + seconds
        while self._due and self._due[0][0] <= end:
            when, _, what = heapq.heappop(self._due)
            self.cloud.now = max(self.cloud.now, when)
            what()
            if self._failure is not None:
                raise self._failure
            self._each_instance_on_one_node()
        self.cloud.now = end

    def _each_instance_on_one_node(self) -> None:
        held = [node.instance for node in self.cloud.nodes.values()
                if node.instance is not None]
        self.check(len(held) == len(set(held)), 'an instance has two nodes')

    # What operators and users do

    def enroll(self, shard: str | None = None) -> None:
        """Add a node.

        :param shard: its shard, if it has one
        """
        number = len(self.cloud.nodes)
        self.cloud.nodes[f'{number:08d}-0000-0000-0000-000000000000'] = (
            clouds.Node(kind=self.random.choice(_KINDS), shard=shard))

    def start(self, name: str) -> None:
        """Start a service, for the first time or again."""
        self.log(f'{name} starts')
        self.services[name] = Service(self, name)

    def give_up(self) -> None:
        """Delete the builds that have arrived nowhere, as users do.

        A nova-compute that dies between a message and the claim takes the
        build with it, whatever its driver.
        """
        for uuid, known in list(self.cloud.instances.items()):
            if known.host is None and known.is_building:
                self.forget(uuid)
                for consumers in self.cloud.allocations.values():
                    consumers.discard(uuid)

    def forget(self, uuid: str) -> None:
        """Delete the record of an instance."""
        known = self.cloud.instances.pop(uuid, None)
        if known is not None:
            self.cloud.deleted[uuid] = known

    def check_reaped(self, host: str, uuid: str) -> None:
        """See whether Nova may be told to clean up after an instance.

        Nova shuts one that is deleted down, and deletes volumes of it.

        :param host: the name of the service
        :param uuid: the UUID of the instance
        """
        known = self.cloud.deleted.get(uuid)
        name = str(known and known.host)
        service = self.services.get(name)
        record = self.cloud.services.get(name)
        if service is None or record is None or record.forced_down or (
                service.silence >= times.FAILOVER_AFTER):
            self.of_the_dead.add(uuid)
        self.check(
            known is None or pools.is_pool(known.node),
            f'{host} has {uuid} cleaned up, which Nova had on '
            f'{known and known.node}')

    def change(self, name: str, **fields: Any) -> None:
        """Change the record of a service."""
        self.log(f'{name}: {fields}')
        self.cloud.services[name] = dataclasses.replace(
            self.cloud.services[name], **fields)

    def boot(self, tries: int = _TRIES, uuid: str | None = None) -> None:
        """Have an instance built by a service that seems to live."""
        uuid = uuid or f'instance-{next(self._order)}'
        able = []
        for provider, found in self.cloud.inventories.items():
            row = self.cloud.rows.get(provider)
            service = self.cloud.services.get(row.owner) if row else None
            if row is None or service is None or service.disabled or (
                    times.is_down(service, self.cloud.now)):
                continue
            used = self.cloud.allocations.setdefault(provider, set())
            if found.total - found.reserved - len(used) > 0:
                able.append((provider, row))
        if not able or not tries:
            self.log(f'{uuid}: no valid host')
            known = self.cloud.instances.get(uuid)
            if known is not None:
                self.cloud.instances[uuid] = model.Instance(None, None)
            return
        provider, row = self.random.choice(able)
        self.cloud.allocations[provider].add(uuid)
        self.cloud.instances[uuid] = model.Instance(
            None, None, is_building=True)
        self.log(f'{uuid} is to be built by {row.owner}')
        self.at(self.random.uniform(0, 1), functools.partial(
            self._deliver, uuid, str(row.pool), row.owner, tries))

    def _deliver(self, uuid: str, pool: str, host: str, tries: int) -> None:
        service = self.services.get(host)
        if service is not None and service.is_receiving:
            service.do(functools.partial(service.build, uuid, pool, tries))
        else:
            # In the service's queue.
            self.messages.setdefault(host, []).append((uuid, pool, tries))

    def delete(self, uuid: str) -> None:
        """Delete an instance, if its service is down or it is idle."""
        known = self.cloud.instances[uuid]
        service = self.services.get(known.host or '')
        record = self.cloud.services.get(known.host or '')
        if record is not None and uuid not in adversary.ELSEWHERE and (
                times.is_down(record, self.cloud.now)):
            # Nova's API deletes it itself, and tells nobody.
            self.log(f'{uuid} is deleted, without its service')
            self.forget(uuid)
            for consumers in self.cloud.allocations.values():
                consumers.discard(uuid)
        elif service is not None and known.is_idle:
            self.cloud.instances[uuid] = dataclasses.replace(
                known, task='deleting')
            service.do(functools.partial(service.destroy, uuid))


class _Port:
    """A port that lets others go on at each call."""

    def __init__(self, service: Service, target: object) -> None:
        self._service = service
        self._target = target

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            self._service.pause()
            answer = getattr(self._target, name)(*args, **kwargs)
            self._service.pause()
            self._service.world.writes.answer(
                self._service, name, args, answer)
            return answer
        return call


class _Ironic(clouds.Ironic):
    """What Ironic shows."""

    def __init__(self, world: World) -> None:
        super().__init__(world.cloud)
        self._world = world
        #: What the last listing has said, which the service goes by.
        self._said: dict[str, pools.Node] = {}

    def nodes(self, scope: settings.Scope,
              shards: Collection[str] | None = None
              ) -> dict[str, str | None]:
        self._said = {}
        return self._remember({} if self._world.is_hidden
                              else super().nodes(scope, shards))

    def latest(self, scope: settings.Scope, after: str | None = None
               ) -> Sequence[ports.Latest]:
        return () if self._world.is_hidden else super().latest(scope, after)

    def more(self, scope: settings.Scope, shards: Collection[str]
             ) -> dict[str, str | None]:
        return self._remember({} if self._world.is_hidden
                              else super().more(scope, shards))

    def named(self, scope: settings.Scope, nodes: Collection[str]
              ) -> dict[str, str | None]:
        return self._remember({} if self._world.is_hidden
                              else super().named(scope, nodes))

    def nodes_of(self, instances: Iterable[str]) -> dict[str, str | None]:
        return self._remember(super().nodes_of(instances))

    def describe(self, nodes: Iterable[str]) -> dict[str, pools.Node]:
        return {node: self._said[node] for node in nodes}

    def _remember(self, found: dict[str, str | None]
                  ) -> dict[str, str | None]:
        self._said |= super().describe(found)
        return found

    def free_nodes(self, scope: settings.Scope) -> dict[str, pools.Node]:
        # It is no listing that the service goes by later.
        return {} if self._world.is_hidden else clouds.Ironic(
            self.cloud).free_nodes(scope)

    def reserve(self, node: str, instance: str, kind: pools.Kind,
                rule: kinds.Rule = kinds.Rule()) -> bool:
        # Ironic gives an instance to one node.
        return not self._world.adversary.hides(instance) and (
            super().reserve(node, instance, kind, rule))

    def is_deleted(self, node: str) -> bool:
        return self._world.is_hidden or super().is_deleted(node)


class Service:
    """A nova-compute with the pool driver.

    :ivar memory: what it remembers
    :ivar result: what has come of its last pass
    :ivar lives: whether its process lives
    :ivar is_receiving: whether it receives messages
    :ivar frozen_until: until when it stands still
    :ivar dies_in: after how many calls of a port it dies, if it is to die
    """

    def __init__(self, world: World, name: str) -> None:
        """Start it."""
        self.world = world
        self.name = name
        self.current = settings.Settings(
            name, times.DOWN_TIME, pass_interval=times.PASS_INTERVAL,
            report_interval=times.REPORT_INTERVAL,
            follows=world.follows,
            failover_after=times.FAILOVER_AFTER)
        self.memory = observation.Memory()
        self.result = pool_places.PassResult()
        self.recent = recent_nodes.RecentNodes()
        self.places = pool_places.Pools(self.recent.released)
        self.lives = True
        self.is_receiving = False
        self.frozen_until = 0.0
        self.dies_in: int | None = None
        self._beaten: float | None = None
        process = clouds.Process(world.cloud)
        self._heartbeats = heartbeats.OwnHeartbeats(process.now)
        setattr(process, 'longest_gap', self._heartbeats.longest_gap)
        setattr(process, 'took', self._took)
        self.ports = ports.Ports(*(
            typing.cast(typing.Any, _Port(self, target)) for target in (
                clouds.Nova(world.cloud, name), _Ironic(world),
                clouds.Placement(world.cloud), process)))
        self._greenlets: list[greenlet.greenlet] = []
        self._is_locked = False
        self._came: frozenset[str] = frozenset()
        self.do(self._live)
        self._beat()

    # Time

    def do(self, what: Callable[[], object]) -> None:
        """Do something in a thread of its own."""
        thread = greenlet.greenlet(what)
        self._greenlets.append(thread)
        self.world.at(self.world.random.uniform(0.001, 0.1),
                      functools.partial(self._resume, thread))

    def _resume(self, thread: greenlet.greenlet) -> None:
        if not self.lives or thread.dead:
            return
        now = self.world.cloud.now
        if now < self.frozen_until:
            self.world.at(
                self.frozen_until - now + self.world.random.uniform(0, 1),
                functools.partial(self._resume, thread))
            return
        thread.parent = greenlet.getcurrent()
        thread.switch()

    def wait(self, seconds: float) -> None:
        """Let others go on for some time."""
        thread = greenlet.getcurrent()
        assert thread.parent is not None
        self.world.at(seconds, functools.partial(self._resume, thread))
        thread.parent.switch()

    def pause(self) -> None:
        """Let others go on for a moment, or die."""
        self.world.steps += 1
        self.world.adversary.act()
        if self.dies_in is not None:
            self.dies_in -= 1
            if self.dies_in <= 0:
                self.crash()
        self.wait(self.world.random.uniform(0.001, 0.2))

    def crash(self) -> None:
        """End the process at once."""
        self.world.log(f'{self.name} dies')
        self.lives = self.is_receiving = False
        self.world.services.pop(self.name, None)
        own = greenlet.getcurrent()
        for thread in self._greenlets:
            if thread is not own and not thread.dead:
                thread.throw()
        if own in self._greenlets:
            raise greenlet.GreenletExit()

    def _beat(self) -> None:
        if not self.lives:
            return
        now = self.world.cloud.now
        if now < self.frozen_until:
            self.world.at(self.frozen_until - now + 0.5, self._beat)
            return
        self.world.cloud.beat(self.name)
        self._beaten = now
        self._heartbeats.beat(lambda: None)
        self.world.at(times.REPORT_INTERVAL, self._beat)

    @property
    def silence(self) -> float:
        """The seconds since the last heartbeat."""
        return (float('inf') if self._beaten is None
                else self.world.cloud.now - self._beaten)

    # What Nova does

    def _live(self) -> None:
        for uuid, known in list(self.world.cloud.instances.items()):
            if known.host == self.name and not known.is_idle:
                self.do(functools.partial(self._recover, uuid))
        self._pass()
        self.is_receiving = True
        for message in self.world.messages.pop(self.name, ()):
            self.do(functools.partial(self.build, *message))
        self.do(self._react_on)
        self.do(self._look_on)
        while True:
            self.wait(times.PASS_INTERVAL)
            self._pass()

    @contextlib.contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Run a pass, or look what has changed in Ironic."""
        while self._is_locked:
            self.wait(0.05)
        self._is_locked = True
        try:
            yield
        finally:
            self._is_locked = False

    def _react_on(self) -> None:
        while True:
            self.wait(reaction.pause(self.memory, self.current))
            self._react()

    def _react(self) -> None:
        """Look at the other services between two passes."""
        before = self.memory
        try:
            result = reaction.run(
                self.ports, before, self.current, self.places)
        except one_pass.UnansweredError as error:
            self._fail(error)
            return
        self._keep(before, result.memory)
        self._came |= {each.instance for each in result.taken}
        self.result = self.result.joined(self._came, self.memory)
        self.world.writes.told(self, result.happened)

    def _keep(self, before: observation.Memory, after: observation.Memory
              ) -> None:
        """Remember what was changed in a copy of the memory."""
        self.memory = self.memory.merged(before, after)

    def _fail(self, error: one_pass.UnansweredError) -> None:
        """Keep what is known of a pass, or a look, that has failed."""
        self.world.check(
            isinstance(error.__cause__, writes.Unreachable),
            f'{error.__cause__!r}')
        self._keep(error.before, error.memory)
        self.world.writes.told(self, error.happened)

    def _took(self, taken: model.Takeover) -> None:
        """Recover an instance that was taken over."""
        self.world.log(f'{self.name} takes {taken.instance} over')
        self.world.writes.recovered(self, taken.instance)
        self.do(functools.partial(self._recover, taken.instance))

    def _look_on(self) -> None:
        while True:
            self.wait(times.CHANGES_INTERVAL)
            self._look()

    def _look(self) -> None:
        """Look what has changed in Ironic since the last pass."""
        nodes = changes.ask(self.ports.ironic, self.current.scope)
        self.pause()
        with self._in_turn():
            before = self.memory
            result = reaction.change(
                self.ports, before, self.current, self.places, nodes)
            self.recent.forget(
                node for node, glance in self.ports.ironic.glances(
                    result.nodes).items() if glance.is_ready)
            self._keep(before, result.memory)
            self.result = self.result.joined(self._came, self.memory)
        for name in result.places:
            if name in self.result.found:
                self._update(name, self.result.found[name])

    def _pass(self) -> None:
        with self._in_turn():
            self._came = frozenset()
            self.memory = self.memory.begun(
                self.world.cloud.now, self.current)
            self.recent.begin()
            self.current = dataclasses.replace(
                self.current, by_shards=self.name in self.world.by_shards)
            try:
                result = passes.run(
                    self.ports, self, self.current, self.places)
            except one_pass.UnansweredError as error:
                self._fail(error)
                return
            self._keep(result.before, result.memory)
            self.result = result.joined(self._came, self.memory)
            self.recent.end()
        self.world.writes.told(self, self.result.happened)
        for uuid in orphans.believe(self.ports, orphans.Named(
                {}, {str(uuid): node for node, uuid
                     in self.memory.nodes.items()
                     if uuid in self.result.orphans},
                self.memory, self.current), 0).instances:
            if uuid not in self.world.cloud.instances:
                self.world.check_reaped(self.name, uuid)
                self._release(uuid)
        self._track()

    def _track(self) -> None:
        """Do what the resource tracker does with the pools."""
        gone: frozenset[str] = frozenset()
        with contextlib.suppress(writes.Unreachable):
            gone = pool_places.close_unlisted(
                self.ports, self.memory, self.ports.nova.pools_of(self.name))
        for name in sorted(gone):
            cloud, uuid = self.world.cloud, pools.uuid_of(name)
            cloud.rows.pop(uuid, None)
            if not cloud.allocations.get(uuid):
                cloud.inventories.pop(uuid, None)
        said = self.result.work.to_record
        if said is not None:
            self.pause()
            clouds.Nova(self.world.cloud, self.name).make_member(said)
        for name, pool in self.result.found.items():
            self._update(name, pool)

    def _update(self, name: str, pool: pools.Pool) -> None:
        """Do what the resource tracker does with a pool."""
        cloud = self.world.cloud
        self.pause()
        row = cloud.rows.setdefault(
            pool.uuid, clouds.Row(self.name, pool=name))
        row.say_as(self.name)
        row.counted = self.result.counted(pool)
        # What an interrupted delete has left.
        for uuid in cloud.allocations.get(
                pool.uuid, set()) - cloud.instances.keys():
            cloud.allocations[pool.uuid].discard(uuid)
        before = cloud.inventories.get(pool.uuid)
        cloud.inventories[pool.uuid] = (
            dataclasses.replace(before, reserved=before.total)
            if pool.is_hidden and before else
            pool.inventory(self.recent.released(name)))

    def build(self, uuid: str, pool: str, tries: int) -> None:
        """Build an instance, or have another service do so."""
        cloud = self.world.cloud
        self.pause()
        if self._is_ended(uuid):
            return
        if pool not in self.result.found:
            self._reschedule(uuid, tries)
            return
        cloud.instances[uuid] = model.Instance(
            self.name, pool, is_building=True, task='spawning')
        found = self.result.found[pool]
        node = None
        try:
            node = reservation.reserve(self.ports.ironic, reservation.Wanted(
                uuid, found.kind, self.recent.untried(
                    reservation.in_turn(found.free, uuid)),
                rule=self.current.kind_rule), self.current.scope).node
        except writes.Unreachable:
            # As Nova does after a build that has failed.
            self._release(uuid)
        if self._is_ended(uuid):
            self._release(uuid)
            return
        if cloud.instances[uuid].host != self.name:
            # The service that has it now looks after the node as well.
            return
        if node is None:
            self._reschedule(uuid, tries)
            return
        # Ports and a config drive come first.
        self.wait(self.world.random.uniform(0.2, 1))
        held = cloud.nodes.get(node)
        if held is not None and held.instance == uuid:
            held.is_deployed = True
        self.world.log(f'{self.name} deploys {uuid}')
        self.world.check(
            held is None or held.instance == uuid
            or uuid in self.world.of_the_dead
            or self.world.adversary.spoils(node, uuid),
            f'{self.name} deploys {node} without {uuid}')
        self.wait(self.world.random.uniform(0.5, 4))
        known = cloud.instances.get(uuid)
        if known is None or known.is_given_up:
            self._release(uuid)
        elif known.host == self.name and known.is_building:
            cloud.instances[uuid] = dataclasses.replace(
                known, is_building=False, task=None)

    def _is_ended(self, uuid: str) -> bool:
        known = self.world.cloud.instances.get(uuid)
        return known is None or known.is_given_up

    def _reschedule(self, uuid: str, tries: int) -> None:
        self.pause()
        if self._is_ended(uuid):
            return
        self.world.cloud.instances[uuid] = model.Instance(
            None, None, is_building=True)
        self._free(uuid)
        self.world.boot(tries - 1, uuid)

    def _free(self, uuid: str) -> None:
        """Free an allocation, as Nova does, which does not ask again."""
        with contextlib.suppress(writes.Unreachable):
            self.ports.placement.free(uuid)

    def _recover(self, uuid: str) -> None:
        """Bring to order what a dead service has left."""
        self.pause()
        known = self.world.cloud.instances.get(uuid)
        if known is None or known.host != self.name:
            return
        has_node = any(node.instance == uuid
                       for node in self.world.cloud.nodes.values())
        if known.task == 'deleting' or not has_node:
            # A build that had not reached Ironic is in ERROR, and deleted.
            self.destroy(uuid)
        else:
            self.world.cloud.instances[uuid] = dataclasses.replace(
                known, is_building=False, task=None)

    def _release(self, uuid: str) -> str | None:
        for name, node in self.world.cloud.nodes.items():
            if node.instance == uuid:
                node.instance, node.is_ready = None, False
                self.world.at(_CLEANING, functools.partial(
                    setattr, node, 'is_ready', True))
                return name
        return None

    def destroy(self, uuid: str) -> None:
        """Destroy an instance, unless another service has it."""
        cloud = self.world.cloud
        self.pause()
        known = cloud.instances.get(uuid)
        if known is None or known.host != self.name:
            return
        node, pool = self._release(uuid), str(known.node)
        if node is not None:
            self.recent.release(node, pool)
            found = self.result.found.get(pool)
            if found is not None:
                with contextlib.suppress(writes.Unreachable):
                    self.ports.placement.write(
                        found, found.inventory(self.recent.released(pool)))
        self.world.forget(uuid)
        self._free(uuid)
