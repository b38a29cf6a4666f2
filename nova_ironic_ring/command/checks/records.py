# SPDX-License-Identifier: Apache-2.0

"""Finds records, providers, nodes and instances that do not match."""

from collections.abc import Iterator

from nova_ironic_ring.command.checks.findings import Finding
from nova_ironic_ring.command.checks.findings import FindingCode
from nova_ironic_ring.command.checks import pools
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.core.values import pools as core_pools


def rows(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Records of lost services or without nodes, and nodes without records.

    :param seen: what was read
    """
    on = {each.node: each.uuid for each in seen.instances.values()}
    holders = {node.instance: node.uuid for node in seen.nodes.values()}
    for node, row in seen.rows.items():
        if node not in seen.nodes:
            yield Finding(
                FindingCode.RECORD_WITHOUT_NODE, node,
                f'the record of {row.owner} is of a node that '
                'Ironic does not have',
                _advice_on_hidden(on[node], holders.get(on[node]))
                if node in on else
                'wait for ten passes of the resource tracker, then run '
                '"nova-ironic-ring clean rows"', row.cell)
    for host in sorted({row.owner for row in seen.rows.values()}):
        left = [row for row in seen.rows.values()
                if row.owner == host and row.node in seen.nodes]
        if not left or seen.state(host).lives:
            continue
        held = any(seen.instance_on(seen.nodes[row.node]) for row in left)
        yield Finding(
            FindingCode.INSTANCES_OF_LOST_SERVICE if held
            else FindingCode.RECORDS_OF_LOST_SERVICE, host,
            f'it is {seen.word(host)}, and '
            + plural.of(len(left), 'record of a node is',
                        'records of nodes are') + ' still in its name',
            pools.advice_on_lost(seen, host, held), left[0].cell)
    for node, owner in sorted(seen.desired.owners().items()):
        if node in seen.rows or seen.has_pools(owner):
            continue
        yield Finding(
            FindingCode.NODE_WITHOUT_RECORD, node,
            'the node has no record in Nova',
            'wait for a pass of the resource tracker; if this persists, look '
            'for ERROR in the log of the service that "nova-ironic-ring node '
            'show" names')


def _advice_on_hidden(instance: str, holder: str | None) -> str:
    """Return the advice on a node that Ironic does not show, and Nova uses.

    :param instance: the UUID of the instance that Nova has there
    :param holder: the UUID of the node that Ironic has it on; None if there is
        none
    """
    if holder is not None:
        # Nova finds the node of an instance by its instance_uuid.
        return (f'do not delete server {instance}: Ironic has it on node '
                f'{holder} now, and Nova would tear that down')
    return ("check whether Nova's account may not see the node; if the node "
            f'was deleted on purpose, delete server {instance}, which Nova '
            'has there')


def providers(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Resource providers without nodes or pools, and nodes without providers.

    :param seen: what was read
    """
    if seen.providers is None:
        return
    left = seen.providers - seen.nodes.keys() - seen.rows.keys()
    for uuid in () if seen.unread else sorted(left):
        yield Finding(
            FindingCode.PROVIDER_WITHOUT_NODE, uuid,
            'Placement has a resource provider of a node '
            'that neither Ironic nor Nova has',
            'run "nova-ironic-ring clean providers"')
    # Another check tells of those with instances, which nobody may remove.
    for name in () if seen.unread else sorted(
            seen.pool_providers - seen.pools.keys()
            - pools.without_record(seen).keys()):
        yield Finding(
            FindingCode.PROVIDER_WITHOUT_NODE, name,
            'Placement has a resource provider of a pool that Nova does not '
            'have', 'run "nova-ironic-ring clean providers"')
    for uuid in sorted(
            seen.rows.keys() & seen.nodes.keys() - seen.providers):
        yield Finding(
            FindingCode.NODE_WITHOUT_PROVIDER, uuid,
            'the node has a record and no resource '
            'provider, so nothing is built on it',
            'wait for a pass; if this persists, restart '
            f'{seen.rows[uuid].owner} and look for ERROR in its log',
            seen.rows[uuid].cell)
    for uuid in sorted(seen.rows.keys() & seen.nodes.keys()):
        if seen.nodes[uuid].resource_class is None:
            yield Finding(
                FindingCode.NODE_WITHOUT_CLASS, uuid,
                'the node has no resource class, so nothing is built on it',
                'set its resource class in Ironic', seen.rows[uuid].cell)


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
                    FindingCode.INSTANCE_NOT_IN_NOVA, node.uuid,
                    f'the node holds instance {node.instance}, which Nova '
                    'does not have',
                    'if Nova has deleted it, wait for [DEFAULT] '
                    'running_deleted_instance_poll_interval, after which '
                    "Nova's task for deleted instances frees the node; if the "
                    'node is so still, and nothing but this Nova uses it, '
                    'undeploy it in Ironic',
                    row.cell if row else None)
            continue
        if instance.host is not None and (
                not core_pools.has(instance, node.uuid)
                or model.canonical(instance.host) in seen.others):
            yield Finding(
                FindingCode.INSTANCE_ELSEWHERE, node.uuid,
                f'the node holds instance {instance.uuid}, which Nova has on '
                f'{instance.node}, with {instance.host}',
                'find out who has set the instance_uuid of the node: no '
                'service takes the instance over', instance.cell)
            continue
        if row is not None and instance.host is not None and (
                instance.pool is None) and (
                model.canonical(instance.host)
                != model.canonical(row.owner)):
            yield Finding(
                FindingCode.INSTANCE_AND_NODE_APART, instance.uuid,
                f'it belongs to {instance.host}, and its node {node.uuid} is '
                f'recorded for {row.owner}',
                f'wait for a pass of {instance.host}; if that is dead, run '
                f'"nova-ironic-ring failover {instance.host}"'
                if instance.host_name in seen.hosts else
                f'Nova has no service {instance.host}: run "nova-ironic-ring '
                f'move {node.uuid} HOST" with the name of a live service',
                instance.cell)


def lost_instances(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Instances that Ironic has on no node.

    Another check tells of those whose node Ironic does not show.

    :param seen: what was read
    """
    on_nodes = {node.instance for node in seen.nodes.values()}
    for uuid, instance in sorted(seen.instances.items()):
        if uuid in on_nodes or not instance.is_idle:
            continue
        if instance.pool is not None:
            where = f'in pool {instance.pool}'
        elif instance.node in seen.rows and instance.node in seen.nodes:
            where = f'on node {instance.node} for Nova'
        else:
            continue
        yield Finding(
            FindingCode.INSTANCE_WITHOUT_NODE, uuid,
            f'it is {where}, and Ironic has it on no node that Nova may see',
            'check whether somebody has undeployed its node, or removed its '
            "instance_uuid, or Nova's account may not see it; if the machine "
            'is lost, delete the server', instance.cell)


def allocations(seen: snapshot.Snapshot) -> Iterator[Finding]:
    """Allocations of nodes that are of nobody, or of two, and missing ones.

    :param seen: what was read
    """
    for node, consumers in sorted(seen.allocated.items()):
        left = [] if seen.unread else [
            each for each in sorted(consumers) if not _is_for(
                seen.instances.get(each), node)]
        for each in left:
            yield Finding(
                FindingCode.ALLOCATION_LEFT, node,
                f'Placement has an allocation of the node for {each}, which '
                + ('is a server that is not on it' if each in seen.instances
                   else 'Nova does not have') + ': nothing is built there',
                'if this persists for a minute, run "openstack resource '
                f'provider allocation delete {each}"', seen.rows[node].cell)
        rest = sorted(consumers.difference(left))
        if len(rest) > 1:
            yield Finding(
                FindingCode.TWO_ALLOCATIONS, node,
                'Placement has allocations of the node for '
                f'{" and ".join(rest)}: two builds were sent to it',
                'one of them is built elsewhere, or ends in ERROR; set '
                '[placement] allocation_conflict_retry_count = 1 in '
                'placement.conf, and restart Placement',
                seen.rows[node].cell)
    for uuid in sorted(seen.unallocated):
        instance = seen.instances[uuid]
        heal = ('run "nova-manage placement heal_allocations --instance '
                f'{uuid}"')
        persists = 'if this persists for a minute: '
        known = seen.nodes.get(instance.node or '')
        yield Finding(
            FindingCode.INSTANCE_WITHOUT_ALLOCATION, uuid,
            f'Placement has no allocation of it, and Nova has it on '
            f'{instance.node}',
            persists + heal if known is None else
            persists + 'Placement refuses one (409) while the node is '
            'reserved, which the next pass does again: run "openstack '
            f'resource provider inventory set {known.uuid} --amend --resource '
            f'{known.placement_class}:reserved=0", and at once {heal}',
            instance.cell)


def _is_for(instance: snapshot.Instance | None, node: str) -> bool:
    """Return whether an instance may have an allocation of a node."""
    return instance is not None and (
        instance.node == node or not instance.is_idle)
