# SPDX-License-Identifier: Apache-2.0

"""Services with pools that run real passes, whatever befalls them.

Told at random from a seed; a failing story shows its timeline. ``tox -e
simulation`` tells as many as SIMULATION_EXAMPLES says.
"""

import collections
from collections.abc import Callable
import itertools
import os

import ddt
from oslotest import base

from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.unit.simulation import adversary
from nova_ironic_ring.tests.unit.simulation import pools as simulation
from nova_ironic_ring.tests.unit.simulation import times

_HOSTS = ('a', 'b', 'c', 'd')
_STORIES = int(os.environ.get('SIMULATION_EXAMPLES', '40'))
_EVENTS = 30
# A test of all stories takes a minute on a busy machine.
_AT_ONCE = 10


class Story:
    """What befalls some services, and what must be so in the end."""

    def __init__(self, seed: int) -> None:
        self.world = simulation.World(seed)
        self.random = self.world.random
        self.cloud = self.world.cloud
        for _ in range(self.random.randint(4, 20)):
            self.enroll()
        for name in _HOSTS[:self.random.randint(1, 4)]:
            self.world.start(name)

    def enroll(self) -> None:
        """Add a node."""
        self.world.enroll()

    def events(self) -> list[Callable[[], None]]:
        """Name what may befall the services."""
        return [
            self.boot, self.boot, self.boot, self.delete, self.delete,
            self.die, self.die_at_a_call, self.start, self.freeze,
            self.disable, self.force_down, self.hide, self.lose_answers]

    def play(self) -> None:
        """Tell it."""
        for _ in range(_EVENTS):
            self.world.run(self.random.choice((0.1, 0.5, 2, 6, 12)))
            self.random.choice(self.events())()
        self.heal()
        # Who is gone by now is found out, and may have begun to take over.
        self.world.run(2 * times.QUIET)
        self.world.give_up()
        self.world.run(times.QUIET)
        self.check()

    # What befalls them

    def _service(self) -> simulation.Service | None:
        names = sorted(self.world.services)
        return self.world.services[
            self.random.choice(names)] if names else None

    def boot(self) -> None:
        for _ in range(self.random.randint(1, 6)):
            self.world.boot()

    def delete(self) -> None:
        for uuid in sorted(self.cloud.instances)[:2]:
            self.world.log(f'{uuid} is to be deleted')
            self.world.delete(uuid)

    def die(self) -> None:
        service = self._service()
        if service is not None:
            service.crash()

    def die_at_a_call(self) -> None:
        service = self._service()
        if service is not None:
            service.dies_in = self.random.randint(1, 60)

    def start(self) -> None:
        name = self.random.choice(_HOSTS)
        if name not in self.world.services:
            self.world.start(name)

    def freeze(self) -> None:
        service = self._service()
        if service is not None:
            seconds = self.random.uniform(1, 40)
            self.world.log(f'{service.name} freezes for {seconds:.0f} s')
            service.frozen_until = self.cloud.now + seconds

    def _bar(self, field: str) -> None:
        known = sorted(self.cloud.services)
        if known:
            name = self.random.choice(known)
            self.world.change(name, **{
                field: not getattr(self.cloud.services[name], field)})

    def disable(self) -> None:
        self._bar('disabled')

    def force_down(self) -> None:
        self._bar('forced_down')

    def hide(self) -> None:
        self.world.is_hidden = not self.world.is_hidden
        self.world.log(f'nodes are hidden: {self.world.is_hidden}')

    def lose_answers(self) -> None:
        self.world.writes.lose(self.random.choice((0, 0.05, 0.2)))

    def heal(self) -> None:
        """Bring all back to order, and have one service at least."""
        self.world.log('all is well')
        self.world.writes.lose(0)
        self.world.adversary.rest()
        self.world.is_hidden = False
        for service in self.world.services.values():
            service.dies_in = None
            service.frozen_until = min(
                service.frozen_until, self.cloud.now)
        for name in sorted(self.world.services):
            self.world.change(name, disabled=False, forced_down=False)
        if not self.world.services:
            self.world.start('a')
            self.world.change('a', disabled=False, forced_down=False)

    # What must be so

    def check(self) -> None:
        """Look at all when it is quiet."""
        for wrong in (self.world.adversary.has_harmed(),
                      self.world.writes.left(self.cloud.instances)):
            self.world.check(wrong is None, str(wrong))
        self._no_instance_is_lost()
        self._each_node_counts_once()
        self._placement_has_what_ironic_has()

    def _no_instance_is_lost(self) -> None:
        world = self.world
        nodes = {node.instance: name for name, node
                 in self.cloud.nodes.items() if node.instance}
        for uuid, known in self.cloud.instances.items():
            if uuid in adversary.ELSEWHERE or world.adversary.spoils(
                    nodes.get(uuid), uuid):
                continue
            if known.host is None:
                world.check(uuid not in nodes, f'{uuid} has a node for ever')
                continue
            world.check(uuid in nodes, f'{uuid} has no node')
            world.check(known.host in world.services,
                        f'{uuid} stays with {known.host}, which is dead')
            world.check(known.is_idle, f'{uuid} is not settled')
            world.check(pools.is_of(known.host, known.node),
                        f'{uuid} is in a pool of another service')
            providers = {
                provider for provider, consumers
                in self.cloud.allocations.items() if uuid in consumers}
            if world.follows:
                world.check(self._desired(nodes[uuid]) == known.host, (
                    f'{uuid} stays with {known.host}, and its node is for '
                    f'{self._desired(nodes[uuid])}'))
            world.check(providers == {pools.uuid_of(str(known.node))},
                        f'the allocation of {uuid} is elsewhere')
        for name, node in self.cloud.nodes.items():
            world.check(node.instance is None or world.adversary.has(name) or (
                node.instance in self.cloud.instances),
                f'a node holds {node.instance}, which is deleted')

    def _desired(self, node: str) -> str | None:
        """Return the service that a node is for, as the services see it."""
        service = min(self.world.services.values(),
                      key=lambda each: each.name)
        # A service knows the shards of those nodes alone that it lists.
        return service.memory.view.ring.placed({
            name: found.shard for name, found in self.cloud.nodes.items()
            if found.shard is not None}).owner(node)

    def _each_node_counts_once(self) -> None:
        counts = collections.Counter(
            node for service in self.world.services.values()
            for pool in service.result.found.values() for node in pool.nodes)
        wrong = {node: counts[node] for node in self.cloud.nodes
                 if counts[node] != 1 and not self.world.adversary.has(node)}
        self.world.check(
            not wrong, f'nodes count otherwise than once: {wrong}')

    def _placement_has_what_ironic_has(self) -> None:
        """What can be built in Placement can be built in Ironic."""
        free = 0
        on_nodes = {node.instance for node in self.cloud.nodes.values()}
        for service in self.world.services.values():
            for name, pool in service.result.found.items():
                found = self.cloud.inventories[pools.uuid_of(name)]
                # The adversary may have taken the node of one that it named.
                used = self.cloud.allocations.get(
                    pools.uuid_of(name), set()) - (
                        self.world.adversary.named - on_nodes)
                self.world.check(
                    not pool.nodes or found.total == len(pool.nodes),
                    f'{name} has {found}')
                free += found.total - found.reserved - len(used)
        self.world.check(free == sum(
            node.said().is_free and node.kind is not None
            for node in self.cloud.nodes.values()),
            f'{free} nodes are free to Placement')


class ShardsStory(Story):
    """The same where the nodes are divided by their shards."""

    SHARDS = ('p', 'q', 'r', 's', 't', None)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.world.by_shards = {*_HOSTS}

    def enroll(self) -> None:
        self.world.enroll(self.random.choice(self.SHARDS))

    def events(self) -> list[Callable[[], None]]:
        return [*super().events(), self.reshard, self.reshard,
                self.change_listing]

    def heal(self) -> None:
        super().heal()
        # A service that has no node is not seen, and so neither is its
        # listing: where there are few nodes, the rings change with who is.
        if self.world.by_shards and len(self.cloud.nodes) < 4 * len(_HOSTS):
            self.world.by_shards = {*_HOSTS}

    def reshard(self) -> None:
        node = self.random.choice(sorted(self.cloud.nodes))
        shard = self.random.choice(self.SHARDS)
        self.world.log(f'{node} is now in shard {shard}')
        self.cloud.nodes[node].shard = shard

    def change_listing(self) -> None:
        # Mostly they are to agree.
        self.world.by_shards = {*_HOSTS} if len(
            self.world.by_shards) < len(_HOSTS) else {
                *_HOSTS} - {self.random.choice(_HOSTS)}
        self.world.log(f'by shards: {sorted(self.world.by_shards)}')


class AdversaryStory(Story):
    """The same where somebody writes what he likes into some of the nodes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for node in sorted(self.cloud.nodes)[::3]:
            self.world.adversary.own(node)


@ddt.ddt
class PoolsTestCase(base.BaseTestCase):

    @ddt.idata(itertools.product(
        (Story, AdversaryStory, ShardsStory), range(0, _STORIES, _AT_ONCE)))
    @ddt.unpack
    def test_stories(self, kind, first):
        for seed in range(first, min(first + _AT_ONCE, _STORIES)):
            with self.subTest(seed=seed):
                kind(seed).play()
