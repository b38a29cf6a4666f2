# SPDX-License-Identifier: Apache-2.0

"""A service for whose nodes and peers others come, again and again.

It looks at all that the service remembers, whatever that is: a new field that
only grows fails here.
"""

import collections
from collections.abc import Iterator, Mapping
import dataclasses
import functools
import os
import pathlib
import random
import re
import sys
import time
import types
import unittest

import fixtures

from nova_ironic_ring.compute import metrics
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.compute import base

_PAGE = pathlib.Path(__file__).parents[4] / 'doc/source/contributor/design.rst'
_OURS = 'nova_ironic_ring.'
_CONTAINERS = (Mapping, set, frozenset, list, tuple, collections.deque)
# So often nodes and hosts come, and how many nodes each time: with the rounds
# of "tox -e simulation", ten thousand of both.
_ROUNDS = int(os.environ.get('TURNOVER_ROUNDS', '60'))
_NODES = 10
_LASTING = 3


def _parts(each: object) -> Iterator[tuple[str, object]]:
    """Go through what an object has, with names for the path."""
    if isinstance(each, Mapping):
        yield from (('[]', part) for item in list(each.items())
                    for part in item)
    elif isinstance(each, _CONTAINERS):
        yield from (('[]', part) for part in list(each))
    elif isinstance(each, types.MethodType):
        yield '', each.__self__
    elif isinstance(each, functools.partial):
        yield '()', [each.func, each.args, each.keywords]
    elif isinstance(each, types.FunctionType):
        yield from (('()', cell.cell_contents)
                    for cell in each.__closure__ or ())
    elif type(each).__module__.startswith(_OURS) and (
            '.tests.' not in type(each).__module__):
        yield from (('.' + name, getattr(each, name))
                    for kind in type(each).__mro__
                    for name in vars(kind).get('__slots__', ()))
        yield from (('.' + name, part)
                    for name, part in list(getattr(
                        each, '__dict__', {}).items()))


def sizes(first: object) -> collections.Counter[str]:
    """Count what is in all containers that can be reached from an object.

    :param first: the object
    :returns: by the path to the containers
    """
    found: collections.Counter[str] = collections.Counter()
    # Kept, so that no other object gets the same number.
    seen = {id(first): first}
    todo = collections.deque([('', first)])
    while todo:
        path, each = todo.popleft()
        if isinstance(each, _CONTAINERS):
            found[path] += len(each)
        for name, part in _parts(each):
            if not isinstance(part, (str, int, float, type(None))) and (
                    id(part) not in seen):
                seen[id(part)] = part
                todo.append((path + name, part))
    return found


def _globals() -> dict[str, object]:
    """Return what modules have, beside functions and classes."""
    return {f'{name}.{key}': value
            for name, module in sorted(sys.modules.items())
            if name.startswith(_OURS) and '.tests.' not in name
            for key, value in vars(module).items()
            if not isinstance(value, (type, types.ModuleType,
                                      types.FunctionType))}


class SizesTestCase(unittest.TestCase):

    def test_everything_is_found(self):
        hidden = [1, 2, 3]
        self.assertEqual(3, sizes(model.LastPass(
            60, [functools.partial(lambda: hidden)]))['.at[]()[]()'])


class TableTestCase(unittest.TestCase):

    def test_each_field_of_the_memory_is_on_the_design_page(self):
        _, _, rest = _PAGE.read_text().partition('and until when\n---')
        table, _, _ = rest.partition('\n====')
        said = set(re.findall(r'``(?:Memory\.)?(\w+)``', table))
        self.assertEqual(set(), {
            field.name for kind in (observation.Memory, observation.Pooled)
            for field in dataclasses.fields(kind)} - said)


class TurnoverTestCase(base.DriverTestCase):

    #: The hosts that come each time.
    HOSTS = 'opqrstuvwx'

    def setUp(self):
        super().setUp()
        self.random = random.Random(7)
        for node in base.NODES[6:]:
            del self.cloud.nodes[node]
            self.cloud.rows.pop(node, None)
        # The SDK needs milliseconds for each node.
        answer = self.nova.node(base.NODES[0]).to_dict(
            computed=False, original_names=True)

        def plain(nova, uuid, fields):
            node = self.cloud.nodes[uuid]
            said = {**answer, 'uuid': uuid, 'instance_uuid': node.instance,
                    'provision_state': 'active' if node.instance
                    else 'available', 'properties': {
                        'cpu_arch': 'x86_64', **nova.properties.get(uuid, {})}}
            return {name: said[name] for name in fields}
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring.tests.fixtures.fake_nova.FakeNova._plain',
            plain))
        # And threads end a second after their work.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring.adapters.several.run',
            lambda call, given: list(map(call, given))))
        # Of a node that has gone, a recovery waits half an hour, by a real
        # clock, for the tracker to record it.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring.compute.instances.recovery._PATIENCE', 1))
        self.metrics = metrics.Collector(self.me.ring, lambda: 0)
        #: What came in each round: the hosts, the nodes, the aggregate.
        self.rounds: collections.deque[
            tuple[list[str], list[str], str]] = collections.deque()

    def _come(self, number: int) -> None:
        """Have hosts and nodes come."""
        hosts = [f'host-{number}-{each}' for each in self.HOSTS]
        aggregate = f'00000000-0000-4000-a000-{number:012}'
        self.nova.aggregates[aggregate] = {'me', *hosts}
        self.nova.add_service(*hosts)
        nodes = [f'{number:08}-0000-4000-8000-{each:012}'
                 for each in range(_NODES)]
        for node in nodes:
            self.cloud.nodes[node] = clouds.Node(kind=base.KIND)
            self.nova.properties[node] = self.random.choice([
                {}, {'memory_mb': 'x' * 30}, {'cpus': node}])
            owner = self.random.choice(['me', 'a', 'b', *hosts, None])
            if owner is not None:
                self._record(node, owner)
            if self.random.random() < 0.4:
                self._place(node, owner or 'gone')
        self.rounds.append((hosts, nodes, aggregate))

    def _record(self, node: str, owner: str) -> None:
        self.nova.own(node, owner)
        if owner != 'me':
            self.cloud.members[owner] = model.Member(model.LastPass(
                60, self.me.ring.process.wall_time()), model.Scope())

    def _place(self, node: str, host: str) -> None:
        """Have an instance on a node, or a build on its way to it."""
        uuid = f'{node[:8]}-0000-4000-9000-{node[-12:]}'
        how = self.random.randrange(5)
        if how == 0:
            self.nova.put(uuid, None, None, is_building=True,
                          task='scheduling')
            self.cloud.allocations[node] = {uuid}
        elif how == 1:
            self.cloud.nodes[node].instance = uuid
        else:
            self.nova.put(uuid, node, host)

    def _change(self) -> None:
        """Change what there is."""
        for hosts, nodes, _ in self.rounds:
            for node in self.random.sample(nodes, 3):
                self._record(node, self.random.choice(
                    ['me', 'a', 'b', *hosts]))
            for node in self.random.sample(nodes, 2):
                self.cloud.nodes[node].instance = None
        for host in self.rounds[0][0]:
            self.nova.change_service(
                host, disabled=self.random.random() < 0.5,
                forced_down=self.random.random() < 0.5)
            self.nova.silent.add(host)

    def _go(self) -> None:
        """Have what came first go."""
        hosts, nodes, aggregate = self.rounds.popleft()
        del self.nova.aggregates[aggregate]
        for node in nodes:
            del self.cloud.nodes[node], self.nova.properties[node]
            self.cloud.allocations.pop(node, None)
        # Of some the record stays until the service removes it.
        for node in self.random.sample(nodes, 7):
            self.cloud.rows.pop(node, None)
        for uuid in [uuid for uuid in self.cloud.instances
                     if uuid[:8] == nodes[0][:8]]:
            del self.cloud.instances[uuid]
        for host in hosts:
            del self.cloud.services[host]
            self.cloud.members.pop(host, None)
            self.nova.silent.discard(host)
            for node in self.nova.owned(host):
                del self.cloud.rows[node]

    def _work(self) -> None:
        """Have the service do what it does between two changes."""
        self.nova.advance(600)
        self.me.run_pass()
        for node in self.nova.owned('me') - self.cloud.nodes.keys():
            if self.me.ring.is_deleted(node):
                del self.cloud.rows[node]
        self.driver.ring_reactions.look()
        self.driver.ring_takes.take()
        self.driver.ring_changes.look()
        self.driver.list_instance_uuids()
        list(self.metrics.collect())

    def _rest(self) -> None:
        """Let recoveries, whose threads take seconds, keep up."""
        deadline = time.monotonic() + 30
        while self.driver.ring_recovery.pending > _LASTING:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def test_memory_is_flat(self):
        self.settle()
        found: list[Mapping[str, int]] = []
        for number in range(_ROUNDS):
            self._come(number)
            self._work()
            self._change()
            self._work()
            if len(self.rounds) > _LASTING:
                self._go()
            if number % 3 == 0:
                self._rest()
                found.append(sizes([self.driver, self.metrics, _globals()]))
        half, last = found[:len(found) // 2], found[-len(found) // 4:]
        self.assertEqual({}, {
            path: (most, least) for path in found[-1]
            if (least := min(each.get(path, 0) for each in last))
            > (most := max(each.get(path, 0) for each in half)) + 3})
        self.assertEqual(2 + 2 * _ROUNDS, self.me.ring.passes)


class NodesTurnoverTestCase(TurnoverTestCase):
    """The peers stay the same."""

    HOSTS = ''


class PoolTurnoverTestCase(base.PeersWithPools, TurnoverTestCase):
    pass
