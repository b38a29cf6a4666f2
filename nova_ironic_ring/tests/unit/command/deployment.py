# SPDX-License-Identifier: Apache-2.0

"""A deployment to test the command on."""

import collections
import dataclasses
import datetime
import typing

from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import shards as core_shards
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)
KIND = pools.Kind('CUSTOM_BAREMETAL')
NODES = ['00000000-0000-0000-0000-%012d' % number for number in range(30)]
POOLS = {host: pools.name(host, KIND) for host in 'abcd'}


def service(host: str, silent: float = 0, cell: str = 'cell1',
            reason: str | None = None, **fields) -> snapshot.Service:
    """Make a service that was heard of some seconds ago."""
    return snapshot.Service(model.Service(
        host, NOW - datetime.timedelta(seconds=silent), **fields),
        cell, reason)


def make(*hosts: str, instances: dict[int, str] | None = None,
         said: profile.Profile | None = None, **changes) -> snapshot.Snapshot:
    """Make a deployment in which all nodes are where they should be.

    :param hosts: the services; a, b and c if there is none
    :param instances: the service of the instance on each node, by number
    :param said: what all services say of themselves
    :param changes: other values for what is in a snapshot
    """
    hosts = hosts or ('a', 'b', 'c')
    held = instances or {}
    current = ring.Ring(hosts, 32)
    said = said or profile.Profile()
    values: dict[str, typing.Any] = {
        'now': NOW, 'down_time': 60, 'services': [
            service(host) for host in hosts],
        'nodes': {node: snapshot.Node(
            None, f'instance-{number}' if number in held else None, uuid=node,
            name=f'node-{number}', group=said.conductor_group or '',
            shard=said.shard, resource_class='baremetal', is_available=True)
            for number, node in enumerate(NODES)},
        'instances': {f'instance-{number}': snapshot.Instance(
            host, NODES[number], uuid=f'instance-{number}',
            name=f'server-{number}', cell='cell1')
            for number, host in held.items()},
        'rows': {node: snapshot.Row(
            held.get(number) or str(current.owner(node)), node=node,
            cell='cell1') for number, node in enumerate(NODES)},
        'members': {host.lower(): member(said)
                    for host in (*hosts, *held.values())},
        'providers': frozenset(NODES)} | changes
    return agree(snapshot.Snapshot(**values))


def member(said: profile.Profile) -> snapshot.Member:
    """Make the member record of a service.

    :param said: its profile
    """
    return snapshot.Member(
        scope=said.scope, by_shards=said.listing == 'shards',
        follows=said.mobility == 'follow', profile=said, cell='cell1')


def agree(seen: snapshot.Snapshot) -> snapshot.Snapshot:
    """Have each service acknowledge the ring that the command sees.

    :param seen: the deployment
    """
    found = {host: seen.rings[key].fingerprint(key.scope)
             for host in seen.members if host in seen.hosts
             and (key := seen.key(host)) in seen.rings and key is not None}
    return dataclasses.replace(seen, members={
        host: dataclasses.replace(said, ring=found.get(host))
        for host, said in seen.members.items()})


def record(seen: snapshot.Snapshot, host: str, **fields
           ) -> snapshot.Snapshot:
    """Have the member record of a service say something else.

    :param seen: the deployment
    :param host: the canonical name of the service
    :param fields: what it says
    """
    return dataclasses.replace(seen, members={
        **seen.members, host: dataclasses.replace(
            seen.members[host], **fields)})


def say(seen: snapshot.Snapshot, *hosts: str, **changes
        ) -> snapshot.Snapshot:
    """Have services say something else of their configuration.

    :param seen: the deployment
    :param hosts: their canonical names; all that have a record if there is
        none
    :param changes: the fields of their profiles
    """
    for host in hosts or seen.members:
        found = dataclasses.replace(seen.profiles[host], **changes)
        seen = record(seen, host, profile=found, scope=found.scope,
                      by_shards=found.listing == 'shards',
                      follows=found.mobility == 'follow')
    return seen


def stock(seen: snapshot.Snapshot, *hosts: str) -> snapshot.Snapshot:
    """Have services run Nova's own driver.

    :param seen: the deployment
    :param hosts: their canonical names
    """
    return dataclasses.replace(seen, members={
        host: said for host, said in seen.members.items()
        if host not in hosts})


def with_a_rack(seen: snapshot.Snapshot) -> snapshot.Snapshot:
    """Limit c to the first ten nodes, which are in conductor group "rack".

    The other services have no limit, and have all else.

    :param seen: the deployment
    """
    wide, rack = ring.Ring(['a', 'b'], 32), NODES[:10]
    return agree(dataclasses.replace(
        say(seen, 'c', conductor_group='rack'),
        nodes={uuid: dataclasses.replace(
            node, group='rack' if uuid in rack else '')
            for uuid, node in seen.nodes.items()},
        rows={uuid: dataclasses.replace(
            row, owner='c' if uuid in rack else str(wide.owner(uuid)))
            for uuid, row in seen.rows.items()}))


def by_shards(seen: snapshot.Snapshot, *shards: str) -> snapshot.Snapshot:
    """Have all services divide the nodes by shards, and hold what is theirs.

    :param seen: the deployment
    :param shards: the shards that the nodes are in, in turn
    """
    places = {node: shards[number % len(shards)]
              for number, node in enumerate(seen.nodes)}
    deal = core_shards.Deal(frozenset(shards), {
        host: frozenset() for host in seen.hosts})
    seen = say(seen, listing='shards')
    for host in seen.members:
        seen = record(seen, host, held=deal.to_say(host))
    return agree(dataclasses.replace(
        seen, nodes={uuid: dataclasses.replace(node, shard=places[uuid])
                     for uuid, node in seen.nodes.items()},
        rows={name: dataclasses.replace(
            row, owner=deal.owners[places[name]])
            for name, row in seen.rows.items()}))


def make_pooled(*hosts: str, instances: dict[int, str] | None = None,
                said: profile.Profile | None = None, **changes
                ) -> snapshot.Snapshot:
    """Make a deployment as :func:`make` does, of services with pools."""
    hosts = hosts or ('a', 'b', 'c')
    held = instances or {}
    seen = make(*hosts, instances=held, said=said)
    current = ring.Ring(hosts, 32)
    sizes = collections.Counter(
        held.get(number) or str(current.owner(node))
        for number, node in enumerate(NODES))
    used = collections.Counter(held.values())
    return agree(dataclasses.replace(
        seen, rows={}, nodes={
            uuid: dataclasses.replace(node, kind=KIND)
            for uuid, node in seen.nodes.items()},
        instances={
            uuid: dataclasses.replace(instance, node=pools.name(
                str(instance.host), KIND))
            for uuid, instance in seen.instances.items()},
        pools={name: snapshot.Row(host, node=name, cell='cell1')
               for host in hosts for name in (pools.name(host, KIND),)},
        members={host: dataclasses.replace(each, has_pools=True)
                 for host, each in seen.members.items()},
        inventories={pools.name(host, KIND): snapshot.Inventory(
            sizes[host], 0, used[host]) for host in hosts},
        providers=frozenset(), **changes))


def failing(seen: snapshot.Snapshot, host: str) -> snapshot.Snapshot:
    """Have all services say when their last passes were, and one an hour ago.

    :param seen: the deployment
    :param host: the name of the service whose passes fail
    """
    for each in seen.members:
        seen = record(seen, each, last_pass=model.LastPass(
            60, NOW - datetime.timedelta(
                minutes=60 if each == host else 1)))
    return seen


def elsewhere(seen: snapshot.Snapshot) -> snapshot.Snapshot:
    """Have Nova say that all instances are servers of another kind."""
    return dataclasses.replace(seen, instances={
        uuid: dataclasses.replace(instance, host='kvm', node='kvm-1')
        for uuid, instance in seen.instances.items()})


def change(seen: snapshot.Snapshot, **of_nodes: dict) -> snapshot.Snapshot:
    """Have Ironic say something else of nodes.

    :param seen: the deployment
    :param of_nodes: what to change, by the name of the node as in node_3
    """
    nodes = dict(seen.nodes)
    for name, fields in of_nodes.items():
        uuid = NODES[int(name.removeprefix('node_'))]
        nodes[uuid] = dataclasses.replace(nodes[uuid], **fields)
    return dataclasses.replace(seen, nodes=nodes)


def owner(number: int, *hosts: str) -> str | None:
    """Name the desired owner of a node.

    :param number: the number of the node
    :param hosts: the members of the ring; a, b and c if there is none
    """
    return ring.Ring(hosts or ('a', 'b', 'c'), 32).owner(NODES[number])
