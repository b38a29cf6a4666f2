# SPDX-License-Identifier: Apache-2.0

"""Lets many services divide very many nodes in memory, and prints the result.

The services run real passes, one after the other, until nothing moves: after
the death of one of them, and after one more has come. The figures do not
include the cost of Nova, Ironic and Placement: ``scale`` measures that.
"""

import argparse
import collections
from collections.abc import Sequence
import dataclasses
import datetime
import sys
import time
import uuid

import prettytable

from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.core.world import forecast
from nova_ironic_ring_tools.benchmarks import rounds

# Shards for each service, if the services divide the nodes by shards.
_SHARDS = 20


@dataclasses.dataclass(frozen=True)
class Size:
    """How large a cloud is.

    :ivar services: the number of services
    :ivar nodes: the number of nodes
    :ivar by_shards: whether the services divide the nodes by their shards
    """

    services: int
    nodes: int
    by_shards: bool


def _cloud(size: Size) -> clouds.Cloud:
    """Make a cloud in which every node is with its desired owner."""
    made = clouds.Cloud()
    hosts = [f'compute-{number:03}' for number in range(size.services)]
    for host in hosts:
        made.beat(host)
    names = [f'shard-{number:05}'
             for number in range(_SHARDS * size.services)]
    owner = ring.Ring(hosts, rounds.PARTITIONS).owner
    held = shards.deal(names, dict.fromkeys(hosts, ())) if (
        size.by_shards) else {}
    codes: dict[str, set[str]] = {host: set() for host in hosts}
    for name, host in held.items():
        codes[host].add(shards.code(name))
    for host in hosts:
        made.members[host] = model.Member(
            scope=settings.Scope(), by_shards=size.by_shards,
            held=frozenset(codes[host]))
    for number in range(size.nodes):
        node = str(uuid.UUID(int=number * 7919))
        shard = names[number % len(names)] if size.by_shards else None
        made.nodes[node] = clouds.Node(shard=shard)
        made.rows[node] = clouds.Row(
            held[shard] if shard else str(owner(node)))
    return made


def _settings(host: str, size: Size) -> settings.Settings:
    return settings.Settings(
        host, partitions=rounds.PARTITIONS, by_shards=size.by_shards)


def _measure(name: str, cloud: clouds.Cloud, size: Size) -> list[object]:
    """Let the services that live run passes until nothing moves.

    :param name: what has happened
    :returns: a line of the table
    """
    living = [service.host for service in cloud.services.values()
              if service.last_seen == clouds.EPOCH]
    before = {node: row.owner for node, row in cloud.rows.items()}
    start = time.process_time()
    found = forecast.run(cloud, [_settings(host, size) for host in living])
    used = time.process_time() - start
    counts = collections.Counter(found.owners.values())
    other = sum(owner != before[node] for node, owner in found.owners.items())
    return ['shards' if size.by_shards else 'all', name, other,
            sum(found.moves.values()), max(found.moves.values(), default=0),
            f'{max(counts.values()) * len(living) / size.nodes:.2f}',
            max(found.listed.values()),
            'yes' if found.is_settled else 'no', f'{used:.0f}']


def main(arguments: Sequence[str]) -> int:
    """Measure, and print a table.

    :param arguments: of the command line
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.benchmarks.large',
        description=__doc__)
    parser.add_argument('--services', type=int, default=100, metavar='N')
    parser.add_argument('--nodes', type=int, default=100_000, metavar='N')
    chosen = parser.parse_args(arguments)
    table = prettytable.PrettyTable([
        'listing', 'what', 'with another', 'moves', 'most of a node',
        'largest over mean', 'most listed', 'settled', 'processor s'])
    table.align = 'r'
    for by_shards in False, True:
        size = Size(chosen.services, chosen.nodes, by_shards)
        dead = _cloud(size)
        first, *_ = dead.services
        dead.services[first] = dataclasses.replace(
            dead.services[first],
            last_seen=clouds.EPOCH - datetime.timedelta(hours=1))
        table.add_row(_measure('death', dead, size))
        joined = _cloud(size)
        joined.beat(rounds.NEWCOMER)
        table.add_row(_measure('join', joined, size))
        print(table, flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
