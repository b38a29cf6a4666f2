# SPDX-License-Identifier: Apache-2.0

"""Shows how the CPU time of this project's code grows with the nodes.

Everything is in memory: two services divide N nodes, and one of them does
something. The last column divides the time for a node with the most nodes by
the time for a node with the fewest. It is 1 if the time grows as the number of
nodes does. If the time grows with the square of that number, it is the most
nodes divided by the fewest.

``python -m nova_ironic_ring_tools.benchmarks.growth``
"""

import argparse
from collections.abc import Callable, Sequence
import gc
import logging
import sys

import prettytable

from nova_ironic_ring_tools.benchmarks import growth_command
from nova_ironic_ring_tools.benchmarks import growth_core
from nova_ironic_ring_tools.benchmarks import growth_tracker

_NODES = [500, 1000, 2000, 4000]
# The shortest of them counts: other work on the machine prolongs the others.
_ROUNDS = 3
#: The largest allowed value of the last column. It is more than 1, because
#: many small objects do not fit into the processor's caches.
MOST = 2.5


def growth(nodes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return how many times more a node costs with the most nodes.

    :param nodes: the numbers of nodes, in rising order
    :param seconds: the seconds that all nodes took, for each of these numbers
    """
    return seconds[-1] / nodes[-1] * nodes[0] / seconds[0]


def _measure(scene: Callable[[int], float], count: int) -> float:
    """Return the seconds that a scene takes with ``count`` nodes."""
    gc.collect()
    # The garbage collector may run at any time, and looks at all objects.
    gc.disable()
    try:
        return min(scene(count) for _ in range(_ROUNDS))
    finally:
        gc.enable()


def _table(nodes: Sequence[int]) -> prettytable.PrettyTable:
    table = prettytable.PrettyTable(
        ['CPU seconds with N nodes', *map(str, nodes), 'growth'])
    table.align = 'r'
    table.align['CPU seconds with N nodes'] = 'l'
    return table


def main(arguments: Sequence[str]) -> int:
    """Measure, and print tables.

    :param arguments: of the command line
    :returns: 1 if something grows faster than the nodes do
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.benchmarks.growth',
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--nodes', nargs='+', type=int, metavar='N',
                        default=_NODES, help='how many, in rising order '
                        f'(default: {" ".join(map(str, _NODES))})')
    parser.add_argument('--only', default='', metavar='WORD',
                        help='only scenes with this word in their names')
    chosen = parser.parse_args(arguments)
    # Nobody reads here what is logged of each node.
    logging.disable(logging.ERROR)
    worse = []
    for part in growth_core, growth_command, growth_tracker:
        table = _table(chosen.nodes)
        for name, scene in part.SCENES.items():
            if chosen.only not in name:
                continue
            seconds = [_measure(scene, count) for count in chosen.nodes]
            found = growth(chosen.nodes, seconds)
            if found > MOST:
                worse.append(name)
            table.add_row([name, *(f'{each:.3f}' for each in seconds),
                           f'{found:.1f}'])
        if table.rows:
            print(table, flush=True)
    if worse:
        print(f'Grows faster than the nodes do: {", ".join(worse)}.')
    return int(bool(worse))


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
