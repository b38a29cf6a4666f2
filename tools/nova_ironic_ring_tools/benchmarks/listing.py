# SPDX-License-Identifier: Apache-2.0

"""Measures the CPU time that a service takes to list Ironic's nodes.

There are ten thousand nodes in 64 shards, and the service owns a tenth of
them. The SDK lists them as Nova's driver has it do, and makes an object of
each node. In turn with it, both drivers of this project list them. There is no
Ironic: a transport answers at once with texts that were made before.
"""

from collections.abc import Callable, Mapping
import statistics
import time
from unittest import mock

from nova_ironic_ring.adapters.ironic import nodes
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.fixtures import ironic_api

_NODES = 10_000
_SHARDS = 64
_SERVICES = 10
_ROUNDS = 5
_SDK = 'the SDK'


def _lists(connect: mock.Mock) -> Mapping[str, Callable[[], int]]:
    """Return functions that list nodes, by name; each returns how many.

    :param connect: the function that Nova's driver calls for its client
    """
    api = ironic_api.Api([
        ironic_api.node(number, f'shard-{number % _SHARDS:02}')
        for number in range(_NODES)])
    client = connect.return_value = api.connect()
    driver = upstream.NovaIronicDriver(mock.Mock())
    held = [f'shard-{number:02}' for number in range(_SHARDS // _SERVICES + 1)]
    own = [node['uuid'] for node in api.nodes[::_SERVICES]]
    settled = {name: nodes.Ironic(driver) for name in (
        'all', 'shards', 'pool')}

    def sdk() -> int:
        return len(list(client.nodes(fields=upstream.node_fields())))

    def ring(ironic: nodes.Ironic) -> int:
        found = ironic.nodes(settings.Scope())
        ironic.for_nova(own)
        return len(found)

    def shards() -> int:
        ironic = settled['shards']
        found = ironic.nodes(settings.Scope(), held)
        ironic.places(found)
        ironic.for_nova(found)
        return len(found)

    def pool() -> int:
        ironic = settled['pool']
        found = ironic.nodes(settings.Scope())
        ironic.describe(found)
        ironic.for_nova(own)
        return len(found)

    return {
        _SDK: sdk,
        'ring, first pass': lambda: ring(nodes.Ironic(driver)),
        'ring': lambda: ring(settled['all']),
        'ring, listing = shards': shards,
        'pool': pool}


def main() -> None:
    """Measure, and print the results."""
    with mock.patch('nova.utils.get_sdk_adapter') as connect:
        _measure(_lists(connect))


def _measure(lists: Mapping[str, Callable[[], int]]) -> None:
    # Once before: what is kept from pass to pass is there then.
    counts = {name: run() for name, run in lists.items()}
    times: dict[str, list[float]] = {name: [] for name in lists}
    for _ in range(_ROUNDS):
        for name, run in lists.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    sdk = statistics.median(times[_SDK])
    for name, each in times.items():
        median = statistics.median(each)
        print(f'{name:22} {counts[name]:5} nodes: min {min(each):.3f} s, '
              f'median {median:.3f} s, {sdk / median:.0f} times less')


if __name__ == '__main__':
    main()
