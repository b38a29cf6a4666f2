# SPDX-License-Identifier: Apache-2.0

"""Shows how often passes call a port, with both drivers.

Everything is in memory: two services divide the nodes, and half of the nodes
have an instance. In the scenes of a death, the other service has died. The
column "process" has the calls that leave the process alone, such as for the
time. A second table shows how many rows are written when free nodes change
hands, in four passes of each of two services; in each pass, one row says when
the last good pass was.

``python -m nova_ironic_ring_tools.benchmarks.calls``
"""

import argparse
import collections
from collections.abc import Callable, Sequence
import dataclasses
import sys
from typing import Any

import prettytable

from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring_tools.benchmarks import growth_core

_NODES = 200
_PORTS = ('nova', 'ironic', 'placement', 'process')


class _Counted:
    """A port that counts its calls."""

    def __init__(self, port: Any, count: Callable[[], None]) -> None:
        self._port = port
        self._count = count

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._count()
            return method(*args, **kwargs)
        return call


def _calls(service: growth_core.Service, do: Callable[[], object]
           ) -> collections.Counter[str]:
    """Count the calls of each port while something is done."""
    found: collections.Counter[str] = collections.Counter()
    world = service.tracker.world

    def counting(name: str) -> Any:
        return _Counted(getattr(world, name),
                        lambda: found.update([name]))
    service.tracker.world = ports.Ports(*map(counting, _PORTS))
    do()
    service.tracker.world = world
    return found


def _steady(count: int) -> collections.Counter[str]:
    service = growth_core.settled(growth_core.made(count))
    return _calls(service, service.decide)


def _look(count: int) -> collections.Counter[str]:
    service = growth_core.settled(growth_core.made(count))
    return _calls(service, service.look)


def _offered(count: int) -> collections.Counter[str]:
    service = growth_core.offered(count)
    return _calls(service, service.decide)


def _death(count: int) -> collections.Counter[str]:
    service = growth_core.bereft(growth_core.made(count))
    return _calls(service, service.decide)


def _look_at_death(count: int) -> collections.Counter[str]:
    service = growth_core.bereft(growth_core.made(count))
    return _calls(service, service.look)


def _walk(count: int) -> collections.Counter[str]:
    service = growth_core.bereft(growth_core.made(count))
    service.decide()
    return _calls(service, service.walk)


def _pool_first(count: int) -> collections.Counter[str]:
    service = growth_core.Service(growth_core.pooled(count))
    return _calls(service, service.count)


def _pool(count: int) -> collections.Counter[str]:
    service = growth_core.counted(count)
    return _calls(service, service.count)


def _pool_look(count: int) -> collections.Counter[str]:
    service = growth_core.counted(count)
    return _calls(service, service.look_at_pools)


def _pool_death(count: int) -> collections.Counter[str]:
    service = growth_core.counted(count)
    service.lose_other()
    return _calls(service, service.count)


def _after_pool_death(count: int) -> collections.Counter[str]:
    service = growth_core.counted(count)
    service.lose_other()
    service.count()
    service.wait()
    return _calls(service, service.count)


def _pool_look_at_death(count: int) -> collections.Counter[str]:
    service = growth_core.counted(count)
    service.lose_other()
    return _calls(service, service.look_at_pools)


class _Pair:
    """Two services; one of them gives free nodes to the other."""

    def __init__(self, count: int, members: Sequence[str]) -> None:
        """Let the services that have the nodes run some passes.

        :param count: how many nodes there are
        :param members: the names of these services
        """
        self.cloud = growth_core.made(count, members, are_free=True)
        self.services = [growth_core.Service(self.cloud, host)
                         for host in members]
        self.run()

    def join(self) -> None:
        """Let the taker join, which has its first node already."""
        host = growth_core.BOTH[0]
        self.cloud.beat(host)
        first = min(node for node in self.cloud.nodes
                    if growth_core.desired(node) == host)
        self.cloud.rows[first] = clouds.Row(host)
        service = growth_core.Service(self.cloud, host)
        self.services.append(service)

    def drain(self) -> None:
        """Disable the giver."""
        host = growth_core.BOTH[1]
        self.cloud.services[host] = dataclasses.replace(
            self.cloud.services[host], disabled=True)

    def run(self) -> dict[str, int]:
        """Run four passes of each, one after the other.

        :returns: how many rows each has written
        """
        written = {host: 0 for host in growth_core.BOTH}
        for _ in range(4):
            for service in self.services:
                before = self._rows()
                service.decide()
                service.walk()
                written[service.current.host] += sum(
                    before.get(node) != row
                    for node, row in self._rows().items())
                service.wait()
        return written

    def _rows(self) -> dict[str, str]:
        return {node: repr(row) for node, row in self.cloud.rows.items()}


def _drained(count: int) -> collections.Counter[str]:
    pair = _Pair(count, growth_core.BOTH)
    pair.drain()
    giver = pair.services[1]
    return _calls(giver, giver.decide)


def _written(count: int, is_join: bool) -> tuple[int, int]:
    """Count the rows that are written when nodes change hands.

    :param count: how many nodes there are
    :param is_join: whether a service joins, or the other one is drained
    :returns: the number that the giver writes, and that the taker writes
    """
    pair = _Pair(
        count, growth_core.BOTH[1:] if is_join else growth_core.BOTH)
    if is_join:
        pair.join()
    else:
        pair.drain()
    taker, giver = pair.run().values()
    return giver, taker


#: Each takes the number of nodes, and returns the calls of each port.
SCENES = {
    'ring: a steady pass': _steady,
    'ring: a look between passes': _look,
    'ring: half is offered to it': _offered,
    'ring: a drain': _drained,
    'ring: a death': _death,
    'ring: a look at a death': _look_at_death,
    "ring: the tracker's way after a death": _walk,
    'pool: the first pass': _pool_first,
    'pool: a steady pass': _pool,
    'pool: a look between passes': _pool_look,
    'pool: a death': _pool_death,
    'pool: the pass after a death': _after_pool_death,
    'pool: a look at a death': _pool_look_at_death}


def main(arguments: Sequence[str]) -> None:
    """Count, and print a table.

    :param arguments: of the command line
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.benchmarks.calls',
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--nodes', type=int, metavar='N', default=_NODES,
                        help=f'how many (default: {_NODES})')
    count = parser.parse_args(arguments).nodes
    table = prettytable.PrettyTable(
        [f'Calls of a port, {count} nodes', *_PORTS])
    table.align = 'r'
    table.align[f'Calls of a port, {count} nodes'] = 'l'
    for name, scene in SCENES.items():
        found = scene(count)
        table.add_row([name, *(found[port] for port in _PORTS)])
    print(table)
    written = prettytable.PrettyTable(
        [f'Rows written, {count} free nodes', 'giver', 'taker'])
    written.align = 'r'
    for is_join in True, False:
        written.add_row(['a join or a return' if is_join else 'a drain',
                         *_written(count, is_join)])
    print(written)


if __name__ == '__main__':
    main(sys.argv[1:])
