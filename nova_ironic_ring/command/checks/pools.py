# SPDX-License-Identifier: Apache-2.0

"""Finds what is wrong with pools, each with what to do about it."""

import collections
from collections.abc import Container, Iterator

from nova_ironic_ring.command.checks.findings import Finding
from nova_ironic_ring.command.checks.findings import FindingCode
from nova_ironic_ring.command.telling import counting
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.core.values import pools as core_pools

_State = membership.State


def advice_on_lost(seen: snapshot.Snapshot, host: str, held: bool) -> str:
    """Return the advice on records and instances of a lost service.

    :param seen: what was read
    :param host: its name
    :param held: whether there are instances among it
    """
    lasting = ('stay for more than two passes, see that a member of its ring '
               'lives')
    if not held:
        return 'wait; if they ' + lasting
    if seen.state(host) is _State.GONE:
        return (f'wait; if they {lasting}, and that [ironic_ring] '
                'instance_mobility is not pinned there')
    return ('start it; or make sure that it has ended, and move its instances '
            f'with "nova-ironic-ring failover {host}"; its free nodes move by '
            f'themselves: if they {lasting}')


def pools(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Pools of lost services, and nodes that no pool can have.

    :param seen: what was read
    """
    held = collections.Counter(
        instance.node for instance in seen.instances.values())
    for host in sorted({row.owner for row in seen.pools.values()}):
        if seen.state(host).lives:
            continue
        names = {name: row for name, row in sorted(seen.pools.items())
                 if row.owner == host}
        count = sum(held[name] for name in names)
        if count:
            yield Finding(
                FindingCode.INSTANCES_OF_LOST_SERVICE, host,
                f'it is {seen.word(host)}, and ' + plural.of(
                    count, 'instance is', 'instances are')
                + ' still in its pools', advice_on_lost(seen, host, True),
                next(iter(names.values())).cell)
        is_gone = seen.state(host) is _State.GONE
        for name, row in names.items():
            if not held[name]:
                yield Finding(
                    FindingCode.POOL_OF_LOST_SERVICE, name,
                    f'it is the record of {host}, which is {seen.word(host)}, '
                    'and has no instance',
                    'run "nova-ironic-ring clean rows"' if is_gone else
                    'its nodes count for others; if the service does not '
                    'come back, delete it with "openstack compute service '
                    'delete", which deletes the record as well', row.cell)
    for uuid, owner in seen.desired.owners().items() if seen.pools else ():
        if seen.nodes[uuid].kind is None and uuid not in seen.rows and (
                seen.has_pools(owner)):
            yield Finding(
                FindingCode.NODE_WITHOUT_POOL, uuid,
                'the node has no resource class, so it is in no pool, and '
                'nothing is built on it', 'set its resource class in Ironic',
                seen.desired.keys[uuid].cell)


def counts(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Nodes without a pool, and pools whose sizes differ from Ironic.

    :param seen: what was read
    """
    counted = counting.look(seen)
    yield from _left_out(seen, counted)
    yield from _totals(seen, counted)


def _left_out(seen: snapshot.Snapshot, counted: counting.Counts
              ) -> Iterator[Finding]:
    """Services that do not make a pool for each kind of their nodes."""
    found: dict[str, list[str]] = {}
    for node, host in sorted(counted.left_out.items()):
        found.setdefault(host, []).append(node)
    for host, nodes in sorted(found.items()):
        of_kinds = len({seen.kind(host, seen.nodes[node]) for node in nodes})
        service = seen.hosts[host]
        yield Finding(
            FindingCode.NODES_LEFT_OUT, service.record.host,
            'it has as many pools as [ironic_ring] pools_limit '
            f'({seen.profiles[host].pools_limit}) lets it make, and '
            + plural.of(len(nodes), f'node, {nodes[0]}, is',
                        f'nodes, such as {nodes[0]}, are')
            + f' of {plural.of(of_kinds, "other kind")}: nothing is built '
            'there',
            'find out who has set the traits and capabilities of these nodes '
            'in Ironic; name those that flavors request in [ironic_ring] '
            'pool_traits and pool_capabilities, or raise the limit, on all '
            'services of the ring, and send SIGHUP', service.cell)


def _totals(seen: snapshot.Snapshot, counted: counting.Counts
            ) -> Iterator[Finding]:
    """Pools that have more or fewer nodes together than Ironic.

    Pools of services that are lost, or whose passes fail, are reserved.
    """
    counts = counted.counted
    if seen.providers is None or not counts:
        return
    expected = collections.Counter(count.pool for count in counts.values())
    unclaimed = _unclaimed(seen, counts.keys() | counted.left_out)
    for key in seen.keys():
        hosts = [host for host in sorted(seen.hosts)
                 if seen.key(host) == key and seen.state(host).gives]
        kinds = {kind for node in seen.served(key) if node.uuid in counts
                 and (kind := seen.kind(
                     counts[node.uuid].host, node)) is not None}
        kinds.update(kind for host, kind in unclaimed if host in hosts)
        for kind in sorted(kinds, key=repr):
            names = {host: core_pools.name(host, kind) for host in hosts}
            in_none = sum(unclaimed[host, kind] for host in hosts)
            in_ironic = in_none + sum(
                expected[name] for name in names.values())
            actual = {host: _total(seen, name, expected[name])
                      for host, name in names.items()}
            if sum(actual.values()) == in_ironic:
                continue
            words = [f'{actual[host]} instead of {expected[name]} for {host}'
                     for host, name in names.items()
                     if actual[host] != expected[name]]
            if in_none:
                words.append(f'{in_none} for no service')
            yield Finding(
                FindingCode.POOLS_DIFFER_FROM_IRONIC, str(key),
                'Placement has '
                f'{plural.of(sum(actual.values()), "node")} of resource '
                f'class {kind.resource_class} and of one kind in pools, and '
                f'Ironic has {in_ironic} ({", ".join(words)})',
                'wait for a pass of each service; if this persists, look for '
                'ERROR and WARNING in their logs', key.cell)


def _unclaimed(seen: snapshot.Snapshot, counts: Container[str]
               ) -> collections.Counter[tuple[str, core_pools.Kind]]:
    """Count the free nodes that should be in a pool, and are in none.

    Services that see different rings may each assign a node to the other.

    :param seen: what was read
    :param counts: UUIDs of the nodes that are in a pool, and of those that
        are left out
    :returns: how many there are, by the canonical name of their desired owner,
        and their kind
    """
    return collections.Counter(
        (owner, kind) for uuid, owner in seen.desired.owners().items()
        if (kind := seen.kind(owner, seen.nodes[uuid])) is not None
        and seen.nodes[uuid].instance is None
        and uuid not in counts and uuid not in seen.rows
        and seen.has_pools(owner))


def _total(seen: snapshot.Snapshot, name: str, expected: int) -> int:
    """Return how many nodes Placement has in a pool.

    :param name: the name of the pool
    :param expected: how many it should have
    """
    found = seen.inventories.get(name)
    # A pool without nodes has one node in Placement, which is reserved.
    if found is None or (not expected and found.total == found.reserved):
        return 0
    return found.total


def without_record(seen: snapshot.Snapshot
                   ) -> dict[str, list[snapshot.Instance]]:
    """Return the instances in pools that Nova has no record of.

    :param seen: what was read
    :returns: by the name of the pool
    """
    found: dict[str, list[snapshot.Instance]] = {}
    for instance in seen.instances.values():
        if instance.pool is not None and instance.pool not in seen.pools and (
                model.canonical(str(instance.host))
                not in seen.others | seen.other_rows):
            found.setdefault(instance.pool, []).append(instance)
    return found


def records(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Pools that have instances, and no record.

    The pool driver deletes no record of a pool with an instance. Nova's own
    driver treats all pools of its service as nodes that Ironic does not have.

    :param seen: what was read
    """
    for pool, held in sorted(without_record(seen).items()):
        host = held[0].host
        yield Finding(
            FindingCode.POOL_WITHOUT_RECORD, pool,
            plural.of(len(held), f'instance of {host} is',
                      f'instances of {host} are')
            + ' in it, and Nova has no record of it',
            "Nova's own driver deletes the records of pools: set [DEFAULT] "
            f'compute_driver = ironic_ring.IronicPoolDriver on {host}, and '
            'restart it, which makes the record again and counts the nodes of '
            'these instances',
            held[0].cell)
