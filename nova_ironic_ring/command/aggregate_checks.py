# SPDX-License-Identifier: Apache-2.0

"""Finds compute nodes that are not in the aggregates of their service."""

import collections
from collections.abc import Iterator

from nova_ironic_ring.command.findings import Code
from nova_ironic_ring.command.findings import Finding
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core.deciding import aggregates as core_aggregates
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.core.values import pools


def members(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Compute nodes that are in other aggregates in Placement than in Nova.

    The scheduler goes by Placement. What services of Ironic are not in is not
    looked at: it may have been put there by hand.

    :param seen: what was read
    """
    if seen.providers is None:
        return
    known = {uuid: each for uuid, each in seen.aggregates.items()
             if each.providers is not None}
    for host, places in sorted(_places(seen).items()):
        own = frozenset(
            uuid for uuid, each in known.items()
            if host in map(model.canonical, each.hosts))
        missing: collections.Counter[str] = collections.Counter()
        left: collections.Counter[str] = collections.Counter()
        for place in places:
            found = frozenset(
                uuid for uuid, each in known.items()
                if each.providers is not None and place in each.providers)
            wanted = core_aggregates.wanted(found, own, found - own)
            missing.update(wanted - found)
            left.update(found - wanted)
        for uuid, count in sorted(missing.items()):
            yield Finding(
                Code.NOT_IN_AGGREGATE, host,
                f'{count} of its {plural.of(len(places), "compute node")} '
                f'{"is" if count == 1 else "are"} not in aggregate '
                f'{known[uuid].name} in Placement, and the host is in Nova: '
                'requests for it do not find them',
                'wait for two passes of it; if it stays so, see whether its '
                'log says that Nova does not tell the host aggregates, and '
                'give the conductor of its cell the [api_database]',
                seen.hosts[host].cell)
        for uuid, count in sorted(left.items()):
            yield Finding(
                Code.LEFT_IN_AGGREGATE, host,
                f'{count} of its {plural.of(len(places), "compute node")} '
                f'{"is" if count == 1 else "are"} in aggregate '
                f'{known[uuid].name} in Placement, and the host is not in '
                'Nova: requests for it find them',
                'wait for some minutes; if it stays so, add the host to the '
                'aggregate, or take the resource providers out of it with '
                '"openstack resource provider aggregate set"',
                seen.hosts[host].cell)


def _places(seen: snapshot.Snapshot) -> dict[str, list[str]]:
    """Name the providers of services that see to their aggregates.

    :returns: UUIDs, by the canonical name of the service
    """
    assert seen.providers is not None
    found: dict[str, list[str]] = {}
    for name, row in (*seen.rows.items(), *seen.pools.items()):
        host = model.canonical(row.owner)
        # One that is not there yet is found by another check.
        if host in seen.hosts and host in seen.profiles and (
                seen.state(host).gives) and (
                    name in seen.providers or name in seen.inventories):
            found.setdefault(host, []).append(pools.provider(name))
    return found
