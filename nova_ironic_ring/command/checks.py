# SPDX-License-Identifier: Apache-2.0

"""Finds misconfiguration and leftovers, each with what to do about it."""

from collections.abc import Callable, Iterator, Mapping
import itertools

from nova_ironic_ring.command import aggregate_checks
from nova_ironic_ring.command.findings import Code
from nova_ironic_ring.command.findings import Finding
from nova_ironic_ring.command import pool_checks
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.core.values import profile

_State = membership.State


Check = Callable[[snapshot.Snapshot], Iterator[Finding]]


def find(seen: snapshot.Snapshot) -> list[Finding]:
    """Run all checks.

    :param seen: what was read
    :returns: what they have found, in the order of the checks
    """
    return [finding for check in CHECKS for finding in check(seen)
            if seen.is_meant(finding.cell)]


def configuration(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Members that disagree on what makes the ring.

    :param seen: what was read
    """
    for key in seen.keys():
        said = {host: found for host, found in seen.profiles.items()
                if host in seen.hosts and seen.key(host) == key
                and seen.state(host) in (
                    _State.MEMBER, _State.DISABLED)}
        for field, option in (
                ('partitions', '[ironic_ring] partitions'),
                ('handover', '[ironic_ring] handover'),
                ('mobility', '[ironic_ring] instance_mobility'),
                ('listing', '[ironic_ring] listing'),
                ('capabilities', '[ironic_ring] pool_capabilities'),
                ('traits', '[ironic_ring] pool_traits'),
                ('peers', '[ironic] peer_list')):
            # One without a peer list goes by what the others say, and one
            # without pools has no kinds.
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
                    Code.CONFIGURATION_DIFFERS, str(key),
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
    rings = {key: seen.ring(key) for key in seen.keys()}
    for key, current in rings.items():
        if not current.members and seen.served(key):
            yield Finding(
                Code.RING_WITHOUT_MEMBER, str(key),
                'no service of this ring lives and is '
                'enabled, and it has '
                + plural.of(len(seen.served(key)), 'node'),
                'start one, or enable one: see "nova-ironic-ring show"',
                key.cell)
        # The list may have those that are dead, or have no node just now.
        said = {found.peers for host, found in seen.profiles.items()
                if host in seen.hosts and seen.key(host) == key
                and found.peers is not None}
        known = [host for host in seen.hosts
                 if seen.key(host) in (key, None)
                 and seen.hosts[host].cell == key.cell]
        alive = [host for host in known if seen.key(host) == key
                 and seen.state(host) is _State.MEMBER]
        if key.group is not None and not key.shard and len(said) == 1 and (
                not said & {profile.fingerprint(*known),
                            profile.fingerprint(*current.members),
                            profile.fingerprint(*alive)}):
            yield Finding(
                Code.PEER_LIST_DIFFERS_FROM_SERVICES, str(key),
                '[ironic] peer_list is not what lives '
                f'there ({", ".join(sorted(current.members)) or "nobody"})',
                'start the peers that are missing, or set the list to the '
                'hosts that serve the group, or remove it from all of them, '
                'and send SIGHUP', key.cell)
    # What another cell has is not known where that was not read.
    for node in () if seen.unread else seen.nodes.values():
        if not any(key.serves(node) for key in rings):
            yield Finding(
                Code.NODE_NOT_SERVED, node.uuid,
                f'the node is in conductor group "{node.group}"'
                f'{f" and shard {node.shard}" if node.shard else ""}, which '
                'no nova-compute serves',
                'start a nova-compute with that [ironic] conductor_group and '
                'shard, or change the node')


def overlaps(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Rings that have nodes in common, and neither has all of the other's.

    :param seen: what was read
    """
    for one, other in itertools.combinations(seen.keys(), 2):
        if one.cell != other.cell or one.scope.covers(other.scope) or (
                other.scope.covers(one.scope)):
            continue
        both = [node.uuid for node in seen.served(one) if other.serves(node)]
        if both:
            yield Finding(
                Code.SCOPES_OVERLAP, str(one),
                plural.of(
                    len(both), f'of its nodes, {both[0]}, is one of those of',
                    f'of its nodes, such as {both[0]}, are those of')
                + f' {other} as well: both rings take nodes from each other',
                'give each node to one of the two: set [ironic] '
                'conductor_group and shard on all of their services, or '
                'change the nodes', one.cell)


def aggregates(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services of a ring that are not in the same host aggregates.

    Nova takes the availability zone and the aggregates of a node from its
    service, so that a node would change both with its service.

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
                Code.AGGREGATES_DIFFER, str(key),
                f'host aggregates differ ({words})',
                'add all services of the ring to the same host aggregates: a '
                'node has the availability zone and the aggregates of its '
                'service', key.cell)


def drivers(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services of Nova's own driver, and those whose driver does not load.

    :param seen: what was read
    """
    pooled = {model.canonical(str(each.host))
              for held in pool_checks.without_record(seen).values()
              for each in held}
    for host, service in seen.hosts.items():
        if seen.state(host) not in (_State.MEMBER, _State.DISABLED):
            continue
        if host in seen.owners and host not in seen.profiles:
            # The ring driver is the way from Nova's own, but where that one
            # has been started on pools by mistake.
            driver = ('IronicPoolDriver' if host in pooled
                      else 'IronicRingDriver')
            yield Finding(
                Code.SERVICE_SAYS_NOTHING, service.record.host,
                "it does not say anything of itself: it runs Nova's own "
                'driver, or an old release of this one',
                f'set [DEFAULT] compute_driver = ironic_ring.{driver} there, '
                'and restart it', service.cell)
        elif host not in seen.owners and seen.nodes and (
                seen.state(host) is _State.MEMBER):
            yield Finding(
                Code.SERVICE_WITHOUT_NODE, service.record.host,
                'it lives and has no node: its driver does not load or finds '
                'no nodes, or the ring has none of the free nodes for it',
                'look for ERROR in its log; if it is to have no nodes, '
                'disable it', service.cell)


def protocols(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services of releases that do not write the same into their records.

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
            deaf = ', '.join(sorted(
                host for host in older
                if not profile.understands(spoken[host], newest)))
            words = '; '.join(f'{_hosts_with(spoken, value)}: {value}'
                              for value in sorted(set(spoken.values())))
            yield Finding(
                Code.PROTOCOLS_DIFFER, str(key),
                f'the services speak different versions of the protocol '
                f'({words}), and ' + (
                    f'{deaf} do not take what others offer'
                    if deaf else 'understand each other'),
                f'upgrade this package on {", ".join(sorted(older))}, and '
                'restart them', key.cell)
        elif newest > profile.PROTOCOL:
            yield Finding(
                Code.PROTOCOLS_DIFFER, str(key),
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
                Code.PASSES_FAIL, service.record.host,
                'it lives, and its passes fail: the last good one was '
                + (f'at {at:%Y-%m-%d %H:%M:%S} UTC' if at else 'long ago'),
                'if it has not just started, look for ERROR and WARNING in '
                'its log, whether it reaches Ironic and Placement, and at its '
                'credentials in [ironic]; or its clock is wrong',
                service.cell)


def timeouts(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services that do not wait for as long as a handover may take.

    :param seen: what was read
    """
    for host, service in seen.hosts.items():
        slow = seen.too_slow(host) if seen.lives(host) else {}
        if slow:
            slowest = max(sorted(slow), key=lambda each: slow[each])
            yield Finding(
                Code.TIMEOUT_TOO_SHORT, service.record.host,
                '[ironic_ring] handover_timeout is '
                f'{seen.profiles[host].handover_timeout:g} s, and two passes '
                f'of {slowest} take {slow[slowest]:.0f} s: it may take nodes '
                'before their owners could consent',
                'unset the option, so that passes are measured, or raise it, '
                'and send SIGHUP', service.cell)


def failovers(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Services that wait longer before a failover than they are told to.

    :param seen: what was read
    """
    for host, said in seen.profiles.items():
        if host in seen.hosts and seen.lives(host) and (
                0 < said.failover_configured < said.failover_after):
            service = seen.hosts[host]
            yield Finding(
                Code.FAILOVER_RAISED, service.record.host,
                '[ironic_ring] failover_after is '
                f'{said.failover_configured:g} s, and it goes by '
                f'{said.failover_after:g} s, [DEFAULT] '
                'graceful_shutdown_timeout: a service that ends in order may '
                'take that long',
                f'set failover_after to {said.failover_after:g} or more, and '
                'send SIGHUP; or lower graceful_shutdown_timeout, and restart '
                'the services', service.cell)


def rows(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Records of lost services, and records and nodes without each other.

    :param seen: what was read
    """
    for node, row in seen.rows.items():
        if node not in seen.nodes:
            yield Finding(
                Code.RECORD_WITHOUT_NODE, node,
                f'the record of {row.owner} is of a node that '
                'Ironic does not have',
                'wait for ten passes of the resource tracker, then run '
                '"nova-ironic-ring clean rows"', row.cell)
    for host in sorted({row.owner for row in seen.rows.values()}):
        left = [row for row in seen.rows.values()
                if row.owner == host and row.node in seen.nodes]
        if not left or seen.state(host).lives:
            continue
        held = any(seen.nodes[row.node].instance for row in left)
        yield Finding(
            Code.INSTANCES_OF_LOST_SERVICE if held
            else Code.RECORDS_OF_LOST_SERVICE, host,
            f'it is {seen.word(host)}, and '
            + plural.of(len(left), 'record of a node is',
                        'records of nodes are') + ' still in its name',
            pool_checks.advice_on_lost(seen, host, held), left[0].cell)
    served: dict[str, str] = {}
    for key in seen.keys():
        current = seen.ring(key)
        if current.members:
            served |= {node.uuid: str(current.owner(node.uuid))
                       for node in seen.served(key)}
    for node in sorted(served.keys() - seen.rows.keys()):
        if seen.has_pools(served[node]):
            continue
        yield Finding(
            Code.NODE_WITHOUT_RECORD, node, 'the node has no record in Nova',
            'wait for a pass of the resource tracker; if it stays so, look '
            'for ERROR in the log of the service that "nova-ironic-ring node '
            'show" names')


def providers(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Resource providers and nodes without each other.

    :param seen: what was read
    """
    if seen.providers is None:
        return
    left = seen.providers - seen.nodes.keys() - seen.rows.keys()
    for uuid in () if seen.unread else sorted(left):
        yield Finding(
            Code.PROVIDER_WITHOUT_NODE, uuid,
            'Placement has a resource provider of a node '
            'that neither Ironic nor Nova has',
            'run "nova-ironic-ring clean providers"')
    for uuid in sorted(
            seen.rows.keys() & seen.nodes.keys() - seen.providers):
        yield Finding(
            Code.NODE_WITHOUT_PROVIDER, uuid,
            'the node has a record and no resource '
            'provider, so nothing is built on it',
            f'wait for a pass; if it stays so, restart {seen.rows[uuid].owner}'
            ' and look for ERROR in its log', seen.rows[uuid].cell)


def instances(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Instances that are not with the service that has their node.

    :param seen: what was read
    """
    for node in seen.nodes.values():
        instance = seen.instance_on(node)
        row = seen.rows.get(node.uuid)
        if instance is None:
            if node.instance is not None and not seen.unread:
                yield Finding(
                    Code.INSTANCE_NOT_IN_NOVA, node.uuid,
                    f'the node holds instance {node.instance}, which Nova '
                    'does not have',
                    "Nova's task for such frees it within [DEFAULT] "
                    'running_deleted_instance_poll_interval; if the instance '
                    'was never of this Nova, undeploy the node in Ironic',
                    row.cell if row else None)
            continue
        if instance.host is not None and (
                not instance.is_on(node.uuid)
                or model.canonical(instance.host) in seen.others):
            yield Finding(
                Code.INSTANCE_ELSEWHERE, node.uuid,
                f'the node holds instance {instance.uuid}, which Nova has on '
                f'{instance.node}, with {instance.host}',
                'see who has set the instance_uuid of the node: nobody takes '
                'the instance over', instance.cell)
            continue
        if row is not None and instance.host is not None and (
                instance.pool is None) and (
                model.canonical(instance.host)
                != model.canonical(row.owner)):
            yield Finding(
                Code.INSTANCE_AND_NODE_APART, instance.uuid,
                f'it belongs to {instance.host}, and its node {node.uuid} is '
                f'recorded for {row.owner}',
                f'wait for a pass of {instance.host}; if that is dead, run '
                f'"nova-ironic-ring failover {instance.host}"', instance.cell)


#: All checks, in their order.
CHECKS: tuple[Check, ...] = (
    configuration, groups, overlaps, aggregates, aggregate_checks.members,
    drivers, protocols, work, timeouts, failovers, rows, providers,
    pool_checks.pools, pool_checks.records, pool_checks.counts, instances,
    pool_checks.instances)
