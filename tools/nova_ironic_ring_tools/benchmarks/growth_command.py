# SPDX-License-Identifier: Apache-2.0

"""The time that the command takes with a deployment that was read."""

from collections.abc import Callable, Mapping
import functools
from unittest import mock

from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command.telling import nodes
from nova_ironic_ring.command.telling import overview
from nova_ironic_ring.command.telling import planning
from nova_ironic_ring.command.telling import prospect
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.tests.unit.command import deployment
from nova_ironic_ring_tools.benchmarks import growth_core

_HOSTS = ('compute-1', 'compute-2', 'compute-3')
_PARTITIONS = 32


def _ring(count: int) -> snapshot.Snapshot:
    return _made(count, deployment.make)


def _pool(count: int) -> snapshot.Snapshot:
    return _made(count, deployment.make_pooled)


def _made(count: int, make: Callable[..., snapshot.Snapshot]
          ) -> snapshot.Snapshot:
    """Make a deployment, with instances on half of its nodes."""
    there = growth_core.names(count)
    owner = ring.Ring(_HOSTS, _PARTITIONS).owner
    with mock.patch.object(deployment, 'NODES', there):
        return make(*_HOSTS, instances={
            number: str(owner(there[number]))
            for number in range(0, count, 2)})


def _show(seen: snapshot.Snapshot) -> object:
    return overview.lines(seen)


def _list(seen: snapshot.Snapshot) -> object:
    return nodes.choose(seen, nodes.Filter())


def _show_node(seen: snapshot.Snapshot) -> object:
    return nodes.explain(seen, next(iter(seen.nodes.values())))


def _check(seen: snapshot.Snapshot) -> object:
    return table.find(seen)


def _plan(seen: snapshot.Snapshot) -> object:
    (key,) = seen.keys()
    return planning.plan(seen, key, prospect.Change(
        remove=frozenset(_HOSTS[:1])))


def _cost(make: Callable[[int], snapshot.Snapshot],
          do: Callable[[snapshot.Snapshot], object], count: int) -> float:
    seen = make(count)
    return growth_core.timed(lambda: do(seen))


#: Each takes the number of nodes, and returns the seconds that it takes.
SCENES: Mapping[str, Callable[[int], float]] = {
    f'{driver}: {name}': functools.partial(_cost, make, do)
    for driver, make in (('ring', _ring), ('pool', _pool))
    for name, do in (
        ('show', _show), ('node list', _list), ('node show', _show_node),
        ('check', _check), ('plan --remove', _plan))}
