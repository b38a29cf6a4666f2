# SPDX-License-Identifier: Apache-2.0

"""All checks, in their order."""

from collections.abc import Callable, Iterator
import dataclasses

from nova_ironic_ring.command.checks import findings
from nova_ironic_ring.command.checks import pools
from nova_ironic_ring.command.checks import records
from nova_ironic_ring.command.checks import services
from nova_ironic_ring.command.telling import snapshot


@dataclasses.dataclass(frozen=True)
class Check:
    """A check.

    :ivar title: its name in ``upgrade check``
    :ivar run: finds what is wrong with what was read
    :ivar is_fatal: whether it has to be repaired before an upgrade: members
        that disagree may lose nodes to each other
    """

    title: str
    run: Callable[[snapshot.Snapshot], Iterator[findings.Finding]]
    is_fatal: bool = False


CHECKS: tuple[Check, ...] = (
    Check('Configuration of the members', services.configuration, True),
    Check('Conductor groups and shards', services.groups),
    Check('Nodes of two rings', services.overlaps, True),
    Check('Host aggregates', services.aggregates),
    Check('Aggregates of compute nodes', services.members),
    Check('Drivers', services.drivers),
    Check('Releases of the services', services.protocols),
    Check('Passes of the services', services.work),
    Check('Services forced down', services.forced),
    Check('Rings of services', services.rings),
    Check('Times until failover', services.failovers),
    Check('Limits of requests', services.limits),
    Check('Records of nodes', records.rows),
    Check('Resource providers', records.providers),
    Check('Pools', pools.pools),
    Check('Records of pools', pools.records, True),
    Check('Sizes of pools', pools.counts),
    Check('Instances', records.instances),
    Check('Instances without nodes', records.lost_instances),
    Check('Allocations', records.allocations))


def find(seen: snapshot.Snapshot) -> list[findings.Finding]:
    """Run all checks.

    :param seen: what was read
    :returns: what they have found, in the order of the checks
    """
    return [finding for check in CHECKS for finding in check.run(seen)
            if seen.is_meant(finding.cell)]
