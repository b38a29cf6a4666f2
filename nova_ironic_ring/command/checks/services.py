# SPDX-License-Identifier: Apache-2.0

"""Finds what is wrong with services and the rings that they make."""

import collections
from collections.abc import Iterator, Mapping
import itertools

from nova_ironic_ring.command.checks.findings import Finding
from nova_ironic_ring.command.checks.findings import FindingCode
from nova_ironic_ring.command.checks import pools
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import aggregates as core_aggregates
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.core.values import pools as core_pools
from nova_ironic_ring.core.values import profile

_State = membership.State


def configuration(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Members with different values of an option that defines the ring.

    :param seen: what was read
    """
    for key in seen.keys():
        said = {host: found for host, found in seen.profiles.items()
                if host in seen.hosts and seen.key(host) == key
                and seen.state(host) in (
                    _State.MEMBER, _State.DISABLED)}
        for field, option in (
                ('partitions', '[ironic_ring] partitions'),
                ('mobility', '[ironic_ring] instance_mobility'),
                ('listing', '[ironic_ring] listing'),
                ('capabilities', '[ironic_ring] pool_capabilities'),
                ('traits', '[ironic_ring] pool_traits'),
                ('peers', '[ironic] peer_list')):
            # A service without a peer list uses the reports of the others, and
            # one without pools has no kinds.
            values = {host: _in_words(getattr(found, field))
                      for host, found in said.items()
                      if (field != 'peers' or found.peers is not None)
                      and (field not in ('capabilities', 'traits')
                           or seen.has_pools(host))}
            if len(set(values.values())) > 1:
                words = '; '.join(
                    f'{_hosts_with(values, value)}: {value}'
                    for value in sorted(set(values.values()), key=str))
                yield Finding(
                    FindingCode.CONFIGURATION_DIFFERS, str(key),
                    f'{option} differs ({words})',
                    f'set the same {option} on all of them, and send SIGHUP',
                    key.cell)


def _in_words(value: object) -> object:
    """Write a list of an option as nova.conf has it."""
    if isinstance(value, tuple):
        return ','.join(value) or 'empty'
    return 'unset' if value is None else value


def _hosts_with(values: Mapping[str, object], value: object) -> str:
    return ', '.join(sorted(host for host in values if values[host] == value))


def groups(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Rings without a member, and nodes that no ring serves.

    :param seen: what was read
    """
    for key, current in seen.rings.items():
        if not current.members and seen.served(key):
            yield Finding(
                FindingCode.RING_WITHOUT_MEMBER, str(key),
                'no service of this ring lives and is '
                'enabled, and it has '
                + plural.of(len(seen.served(key)), 'node'),
                'start one, or enable one: see "nova-ironic-ring show"',
                key.cell)
        # The list may contain services that are dead, or have no node at the
        # moment.
        said = {found.peers for host, found in seen.profiles.items()
                if host in seen.hosts and seen.key(host) == key
                and found.peers is not None}
        known = [host for host in seen.hosts
                 if seen.key(host) in (key, None)
                 and seen.hosts[host].cell == key.cell]
        alive = [host for host in known if seen.key(host) == key
                 and seen.state(host) is _State.MEMBER]
        if key.scope.conductor_group is not None and (
                not key.scope.shard) and len(said) == 1 and (
                not said & {profile.fingerprint(*known),
                            profile.fingerprint(*current.members),
                            profile.fingerprint(*alive)}):
            yield Finding(
                FindingCode.PEER_LIST_DIFFERS_FROM_SERVICES, str(key),
                '[ironic] peer_list differs from the live services '
                f'({", ".join(sorted(current.members)) or "none"})',
                'start the peers that are missing, or set the list to the '
                'hosts that serve the group, or remove it from all of them, '
                'and send SIGHUP', key.cell)
    # The services of a cell that was not read are not known.
    for node in () if seen.unread else seen.nodes.values():
        if not any(key.scope.has(node.group, node.shard)
                   for key in seen.keys()):
            yield Finding(
                FindingCode.NODE_NOT_SERVED, node.uuid,
                f'the node is in conductor group "{node.group}"'
                f'{f" and shard {node.shard}" if node.shard else ""}, which '
                'no nova-compute serves',
                'start a nova-compute with that [ironic] conductor_group and '
                'shard, or change the node')


def overlaps(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Rings with nodes of another cell, or with some of those of another ring.

    :param seen: what was read
    """
    both_have: dict[frozenset[str], list[str]] = {}
    for node, cells in seen.twice.items():
        both_have.setdefault(cells, []).append(node)
    for cells, nodes in both_have.items():
        yield Finding(
            FindingCode.NODES_IN_TWO_CELLS, ', '.join(sorted(cells)),
            plural.of(
                len(nodes), f'node, {min(nodes)}, has a record',
                f'nodes, such as {min(nodes)}, have records')
            + ' in each of these cells: the services of all of them build on '
            'such a node, and none knows of the others',
            'give the services of each cell an Ironic, or [ironic] '
            'conductor_group or shard, of their own')
    for one, other in itertools.combinations(seen.keys(), 2):
        if one.cell != other.cell or one.scope.covers(other.scope) or (
                other.scope.covers(one.scope)):
            continue
        both = [node.uuid for node in seen.served(one)
                if other.scope.has(node.group, node.shard)]
        if both:
            yield Finding(
                FindingCode.SCOPES_OVERLAP, str(one),
                plural.of(
                    len(both), f'of its nodes, {both[0]}, is one of those of',
                    f'of its nodes, such as {both[0]}, are those of')
                + f' {other} as well: both rings take nodes from each other',
                'assign each node to one of the two: set [ironic] '
                'conductor_group and shard on all of their services, or '
                'change the nodes', one.cell)


def aggregates(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services of a ring that are not in the same host aggregates.

    Nova derives the availability zone and the aggregates of a node from its
    service, so a node would change both with its service.

    :param seen: what was read
    """
    for key in seen.keys():
        found = {host: ', '.join(sorted(service.aggregates)) or 'none'
                 for host, service in seen.hosts.items()
                 if seen.key(host) == key and seen.state(host) in (
                     _State.MEMBER, _State.DISABLED)}
        if len(set(found.values())) > 1:
            words = '; '.join(f'{_hosts_with(found, value)}: {value}'
                              for value in sorted(set(found.values())))
            yield Finding(
                FindingCode.AGGREGATES_DIFFER, str(key),
                f'host aggregates differ ({words})',
                'add all services of the ring to the same host aggregates: a '
                'node has the availability zone and the aggregates of its '
                'service', key.cell)


def members(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Compute nodes that are in other aggregates in Placement than in Nova.

    The scheduler uses Placement. Aggregates without a service of Ironic are
    ignored: somebody may have set them by hand.

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
        of = plural.of(len(places), 'compute node')
        for code, counts, differs, advice in (
                (FindingCode.NOT_IN_AGGREGATE, missing,
                 ('not in', 'in Nova: requests for it do not find them'),
                 'wait for two of its passes; if this persists, check whether '
                 'its log contains "Cannot read the host aggregates", and '
                 'configure [api_database] for the conductor of its cell'),
                (FindingCode.LEFT_IN_AGGREGATE, left,
                 ('in', 'not in Nova: requests for it find them'),
                 'wait for some minutes; if this persists, add the host to '
                 'the aggregate, or take the resource providers out of it '
                 'with "openstack resource provider aggregate set"')):
            for uuid, count in sorted(counts.items()):
                yield Finding(
                    code, host,
                    f'{count} of its {of} {"is" if count == 1 else "are"} '
                    f'{differs[0]} aggregate {known[uuid].name} in '
                    f'Placement, and the host is {differs[1]}',
                    advice, seen.hosts[host].cell)


def _places(seen: snapshot.Snapshot) -> dict[str, list[str]]:
    """Name the providers of services that update their aggregates.

    :returns: UUIDs, by the canonical name of the service
    """
    assert seen.providers is not None
    found: dict[str, list[str]] = {}
    for name, row in (*seen.rows.items(), *seen.pools.items()):
        host = model.canonical(row.owner)
        # Another check finds providers that do not exist yet.
        if host in seen.hosts and host in seen.profiles and (
                seen.state(host).gives) and (
                    name in seen.providers or name in seen.inventories):
            found.setdefault(host, []).append(core_pools.provider(name))
    return found


def drivers(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services of Nova's own driver, and those whose driver does not load.

    :param seen: what was read
    """
    pooled = {model.canonical(str(each.host))
              for held in pools.without_record(seen).values()
              for each in held}
    for host, service in seen.hosts.items():
        if seen.state(host) not in (_State.MEMBER, _State.DISABLED):
            continue
        if host in seen.known and host not in seen.profiles:
            # From Nova's own driver, the ring driver is next, unless Nova's
            # was started on pools by mistake.
            driver = ('IronicPoolDriver' if host in pooled
                      else 'IronicRingDriver')
            yield Finding(
                FindingCode.SERVICE_SAYS_NOTHING, service.record.host,
                "it does not report its settings: it runs Nova's own driver, "
                'or an old release of this one',
                f'set [DEFAULT] compute_driver = ironic_ring.{driver} there, '
                'and restart it', service.cell)
        elif host not in seen.owners and seen.nodes and (
                seen.state(host) is _State.MEMBER):
            # Its driver has made the member record.
            cause = ('finds no nodes, or the ring assigns no free node to it'
                     if host in seen.known else 'does not load')
            yield Finding(
                FindingCode.SERVICE_WITHOUT_NODE, service.record.host,
                f'it lives and has no node: its driver {cause}',
                'look for ERROR in its log; if it should have no nodes, '
                'disable it', service.cell)


def protocols(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services whose releases write different protocols into their records.

    :param seen: what was read
    """
    for key in seen.keys():
        spoken = {host: found.protocol
                  for host, found in seen.profiles.items()
                  if host in seen.hosts and seen.key(host) == key
                  and seen.state(host) in (_State.MEMBER, _State.DISABLED)}
        newest = max(spoken.values(), default=profile.PROTOCOL)
        older = [host for host in spoken if spoken[host] < newest]
        if older:
            words = '; '.join(f'{_hosts_with(spoken, value)}: {value}'
                              for value in sorted(set(spoken.values())))
            yield Finding(
                FindingCode.PROTOCOLS_DIFFER, str(key),
                f'the services speak different versions of the protocol '
                f'({words}), and no free node goes from one version to '
                'another',
                f'upgrade this package on {", ".join(sorted(older))}, and '
                'restart them', key.cell)
        elif newest > profile.PROTOCOL:
            yield Finding(
                FindingCode.PROTOCOLS_DIFFER, str(key),
                f'the services speak version {newest} of the protocol, and '
                f'this command knows {profile.PROTOCOL}',
                'upgrade this package where the command runs', key.cell)


def work(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services that live, and whose passes fail.

    :param seen: what was read
    """
    for host, service in seen.hosts.items():
        if seen.state(host) is _State.NOT_WORKING:
            at = seen.last_pass(host)
            yield Finding(
                FindingCode.PASSES_FAIL, service.record.host,
                'it lives, and its passes fail: the last good one was '
                + (f'at {at:%Y-%m-%d %H:%M:%S} UTC' if at else 'long ago'),
                'if it has not just started, look for ERROR and WARNING in '
                'its log; check whether it reaches Ironic and Placement, its '
                'credentials in [ironic], and its clock',
                service.cell)


def forced(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services that live, and that an operator has forced down.

    :param seen: what was read
    """
    for host, service in seen.hosts.items():
        if seen.state(host) is _State.FORCED_DOWN and seen.lives(host):
            yield Finding(
                FindingCode.FORCED_DOWN_AND_ALIVE, service.record.host,
                'it is alive, and forced down: its ring gives it no nodes',
                'if it is well, run "openstack compute service set --up '
                f'{service.record.host} nova-compute"; if not, stop it',
                service.cell)


def rings(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services that have seen others acknowledge another ring for long.

    :param seen: what was read
    """
    for host, service in seen.hosts.items():
        said = seen.members.get(host)
        if said is not None and said.differ and seen.lives(host):
            yield Finding(
                FindingCode.RINGS_DIFFER, service.record.host,
                f'for long, it has gone by another ring than '
                f'{", ".join(sorted(said.differ))}: no free node goes from '
                'one to the other while both live',
                'make [ironic] peer_list, conductor_group and shard and '
                '[ironic_ring] partitions agree on all of them, and send '
                'SIGHUP', service.cell)


def failovers(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services that wait longer for a failover than configured.

    :param seen: what was read
    """
    for host, said in seen.profiles.items():
        if host in seen.hosts and seen.lives(host) and (
                0 < said.failover_configured < said.failover_after):
            service = seen.hosts[host]
            yield Finding(
                FindingCode.FAILOVER_RAISED, service.record.host,
                '[ironic_ring] failover_after is '
                f'{said.failover_configured:g} s, and it waits for '
                f'{said.failover_after:g} s, [DEFAULT] '
                'graceful_shutdown_timeout: a clean shutdown may take that '
                'long',
                f'set failover_after to {said.failover_after:g} or more, and '
                'send SIGHUP; or lower graceful_shutdown_timeout, and restart '
                'the services', service.cell)


def limits(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """A start that waits for Placement as long as that is silent.

    :param seen: what was read
    """
    if seen.is_start_unlimited:
        yield Finding(
            FindingCode.START_WITHOUT_LIMIT, 'nova.conf of this host',
            '[placement] timeout is unset: a nova-compute that starts while '
            'Placement accepts connections and does not answer waits for as '
            'long as that lasts, because Nova asks before it loads the driver',
            'set [placement] timeout, for example to 30, in the nova.conf of '
            'each nova-compute and of this host')
