# SPDX-License-Identifier: Apache-2.0

"""What the owner of a node writes changes nothing for anybody else.

A story is told twice: once the owner of one node writes into it whatever
Ironic takes, between any two calls of a port, and once that owner is silent.
All other nodes and all servers have to end in the same way. Nothing else is
left to chance: the services run their passes in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import os
import random
import typing

from oslotest import base

from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.simulation import adversary
from nova_ironic_ring.tests.unit.simulation import times

_HOSTS = ('a', 'b', 'c')
_STORIES = int(os.environ.get('SIMULATION_EXAMPLES', '8'))
_EVENTS = 5
#: After an event, until nothing moves any more.
_ROUNDS = 30


class _Port:
    """A port at each call of which the adversary may write something."""

    def __init__(self, target: object, act: Callable[[], None]) -> None:
        self._target = target
        self._act = act

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            self._act()
            return getattr(self._target, name)(*args, **kwargs)
        return call


class _Ironic(clouds.Ironic):
    """Describes nodes as they were when they were last listed."""

    def __init__(self, cloud: clouds.Cloud) -> None:
        super().__init__(cloud)
        self._said: dict[str, pools.Node] = {}

    def nodes(self, *args: typing.Any) -> dict[str, str | None]:
        found = super().nodes(*args)
        self._said = super().describe(found)
        return found

    def nodes_of(self, *args: typing.Any) -> dict[str, str | None]:
        found = super().nodes_of(*args)
        self._said |= super().describe(found)
        return found

    def describe(self, nodes: typing.Iterable[str]) -> dict[str, pools.Node]:
        return {node: self._said[node] for node in nodes}


class _Service:
    """A service whose passes run one after the other."""

    def __init__(self, story: _Story, name: str) -> None:
        cloud = story.cloud
        self._has_pools = story.has_pools
        self.current = settings.Settings(
            name, times.DOWN_TIME, partitions=times.PARTITIONS,
            pass_interval=times.PASS_INTERVAL,
            report_interval=times.REPORT_INTERVAL,
            handover_timeout=times.HANDOVER_TIMEOUT,
            failover_after=times.FAILOVER_AFTER)
        process = clouds.Process(cloud)
        self.tracker = clouds.Tracker(
            cloud, process, ports.Ports(*(
                typing.cast(typing.Any, _Port(target, story.adversary.act))
                for target in (clouds.Nova(cloud, name), _Ironic(cloud),
                               clouds.Placement(cloud), process))),
            self.current)
        #: The pool of each node that counts for the service.
        self.counted: dict[str, str] = {}

    def run(self) -> None:
        """Run a pass, and what the resource tracker makes of it."""
        tracker = self.tracker
        try:
            if self._has_pools:
                counted = passes.run(
                    tracker.world, tracker.memory, self.current,
                    pool_places.Pools())
                tracker.memory = counted.memory
                tracker.count(counted)
                self.counted = {node: pool.name
                                for pool in counted.found.values()
                                for node in pool.nodes}
            else:
                result = passes.run(
                    tracker.world, tracker.memory, self.current,
                    node_places.Nodes())
                tracker.memory = result.memory
                tracker.track(result)
        except one_pass.UnansweredError as error:
            raise AssertionError(f'{self.current.host}: a pass fails: '
                                 f'{error.__cause__!r}') from error


class _Story:
    """Some services, and what befalls them."""

    def __init__(self, seed: int, has_pools: bool, is_hostile: bool) -> None:
        """Make a settled cloud.

        :param seed: what all that happens comes from
        :param has_pools: whether the services have the pool driver
        :param is_hostile: whether the adversary writes anything
        """
        self.random = random.Random(seed)
        self.has_pools = has_pools
        self.cloud = clouds.Cloud()
        self.timeline: list[str] = []
        self.adversary = adversary.Adversary(
            self.cloud, self.timeline.append, seed)
        self.adversary.rests = True
        for number in range(self.random.randint(5, 12)):
            self.cloud.nodes[f'{number:08d}-0000-0000-0000-000000000000'] = (
                clouds.Node())
        self.adversary.own(min(self.cloud.nodes))
        self.services = {name: _Service(self, name) for name in _HOSTS}
        self._settle()
        self.adversary.rests = not is_hostile

    def play(self) -> Mapping[str, object]:
        """Tell it, and return what has become of all that is not hostile."""
        for number in range(_EVENTS):
            what = self.random.choice((
                self._boot, self._boot, self._delete, self._die, self._start,
                self._disable))
            self.timeline.append(f'{self.cloud.now}: {what.__name__}')
            what(self.random.random())
            self._settle()
        self.adversary.rest()
        self._settle()
        return self._state()

    def _settle(self) -> None:
        for _ in range(_ROUNDS):
            for name in sorted(self.services):
                self.cloud.beat(name)
            for name in sorted(self.services):
                self.services[name].run()
            self.cloud.now += times.PASS_INTERVAL

    def _state(self) -> Mapping[str, object]:
        others = self.cloud.nodes.keys() - self.adversary.nodes
        return {
            'nodes': {node: self.cloud.nodes[node] for node in others},
            'owners': {node: self._owner(node) for node in others},
            'instances': self.cloud.instances,
            'allocations': {uuid: self._allocated(uuid)
                            for uuid in self.cloud.instances}}

    def _allocated(self, uuid: str) -> set[str]:
        return clouds.Placement(self.cloud).providers_of(uuid)

    def _owner(self, node: str) -> str | None:
        if self.has_pools:
            return next((name for name in sorted(self.services)
                         if node in self.services[name].counted), None)
        row = self.cloud.rows.get(node)
        return None if row is None else row.owner

    # What befalls them: all are given the same number from 0 to 1

    def _boot(self, chance: float) -> None:
        """A server comes to a node of somebody else, and is built."""
        free = [node for node in sorted(self.cloud.nodes)
                if self.cloud.nodes[node].instance is None
                and node not in self.adversary.nodes]
        if not free:
            return
        node = free[int(chance * len(free))]
        host = self._owner(node)
        if host not in self.services:
            return
        place = (self.services[str(host)].counted[node] if self.has_pools
                 else node)
        uuid = f'instance-{chance}'
        self.cloud.nodes[node].instance = uuid
        self.cloud.instances[uuid] = model.Instance(host, place)
        if self.has_pools:
            self.cloud.allocations.setdefault(
                pools.provider(place), set()).add(uuid)

    def _delete(self, chance: float) -> None:
        known = sorted(self.cloud.instances.keys() - adversary.ELSEWHERE)
        if not known:
            return
        uuid = known[int(chance * len(known))]
        self.cloud.deleted[uuid] = self.cloud.instances.pop(uuid)
        for node in self.cloud.nodes.values():
            if node.instance == uuid:
                node.instance = None
        for consumers in self.cloud.allocations.values():
            consumers.discard(uuid)

    def _die(self, chance: float) -> None:
        if len(self.services) > 1:
            names = sorted(self.services)
            del self.services[names[int(chance * len(names))]]

    def _start(self, chance: float) -> None:
        gone = sorted({*_HOSTS} - self.services.keys())
        if gone:
            name = gone[int(chance * len(gone))]
            self.services[name] = _Service(self, name)

    def _disable(self, chance: float) -> None:
        name = _HOSTS[int(chance * len(_HOSTS))]
        service = self.cloud.services[name]
        self.cloud.services[name] = dataclasses.replace(
            service, disabled=not service.disabled)


class StrangersTestCase(base.BaseTestCase):

    def _check(self, has_pools: bool) -> None:
        for seed in range(_STORIES):
            with self.subTest(seed=seed):
                hostile = _Story(seed, has_pools, True)
                found = hostile.play()
                self.assertEqual(
                    _Story(seed, has_pools, False).play(), found,
                    '\n'.join(hostile.timeline))

    def test_nodes(self):
        self._check(has_pools=False)

    def test_pools(self):
        self._check(has_pools=True)
