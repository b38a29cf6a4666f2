# SPDX-License-Identifier: Apache-2.0

"""Finds what is wrong when all events are over."""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping

from openstack.baremetal.v1 import node as sdk_node

from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.lab import view
from nova_ironic_ring_tools.faults import operators
from nova_ironic_ring_tools.soak import world as worlds

# Seconds: far more than the lab takes to come to rest.
_PATIENCE = 300
# How often to ask for the delete of a server: if all are deleted at once,
# Ironic drops a connection now and then, and Nova does not ask Ironic again.
_DELETES = 3
#: Returns what is wrong now.
_Look = Callable[[worlds.World], Iterator[str]]


def complaints(world: worlds.World, refused: collections.Counter[str]
               ) -> list[str]:
    """Wait until the lab is at rest, and return what is wrong then.

    :param world: the lab, in which all services run
    :param refused: how often each event was refused; this adds the deletes
        that had to be asked for again, the nodes that Ironic had to be told
        again to undeploy, and the volumes that had to be freed
    :returns: a line for each thing that is wrong
    """
    found: list[str] = []
    asked = collections.Counter[str]()

    def is_well(look: _Look) -> bool:
        found[:] = look(world)
        return not found

    def is_deleted() -> bool:
        for server in world.servers():
            if server.task_state is None and asked[server.id] < _DELETES:
                if asked[server.id]:
                    refused['last delete'] += 1
                asked[server.id] += 1
                world.link.compute.delete_server(server)
        if undeployed := _undeploy(world):
            refused['undeploy'] += undeployed
        if freed := _free_volumes(world):
            refused['free volume'] += freed
        return is_well(_emptiness)
    operators.wait(lambda: is_well(_servers), _PATIENCE)
    said = list(found)
    operators.wait(lambda: is_well(_records), _PATIENCE)
    said += found
    operators.wait(is_deleted, _PATIENCE)
    said += found
    operators.wait(lambda: is_well(_records), _PATIENCE)
    return said + found


def _undeploy(world: worlds.World) -> int:
    """Free nodes that Ironic could not undeploy, as an operator would.

    While its service seems dead, Nova's API deletes a server by itself, with
    its volume. Later, the service has Ironic undeploy the node, and Ironic
    refuses because it does not find the volume. No driver changes that.

    :returns: how many nodes these were
    """
    baremetal, count = world.system.baremetal, 0
    for node in baremetal.nodes(details=True, provision_state='error'):
        if node.instance_id:
            continue
        for target in baremetal.volume_targets(node=node.id):
            baremetal.delete_volume_target(target)
        baremetal.set_node_provision_state(node.id, 'deleted')
        count += 1
    return count


def _free_volumes(world: worlds.World) -> int:
    """Free volumes that deletes of servers have left, as an operator would.

    Nova notes which volume it has made for a server after it has attached the
    volume. If its service is killed before that, no delete of the server finds
    the volume. And when Nova's conductor builds a server anew elsewhere, it
    makes a new attachment: a delete of that moment knows only the former one.
    No driver changes that.

    :returns: how many volumes these were
    """
    cinder, count = world.link.block_storage, 0
    known = {server.id for server in world.servers()}
    volumes = {volume.id for volume in cinder.volumes()
               if volume.status in ('attaching', 'reserved')}
    for attachment in cinder.attachments():
        if attachment.volume_id in volumes and (
                attachment.instance not in known):
            cinder.delete_attachment(attachment)
            count += 1
    return count


def _servers(world: worlds.World) -> Iterator[str]:
    """Return a line for each thing that is wrong with servers."""
    nodes: dict[str, list[str]] = {}
    for node in world.link.baremetal.nodes(details=True):
        if node.instance_id:
            nodes.setdefault(node.instance_id, []).append(node.name)
    for server in world.servers():
        name = f'{server.name} ({server.id}) on {server.compute_host}'
        if server.task_state:
            yield f'{name} is {server.task_state}'
        if server.status == 'ERROR':
            if not (server.fault or {}).get('message'):
                yield f'{name} is in ERROR, and nobody says why'
        elif server.status not in ('ACTIVE', 'SHUTOFF'):
            yield f'{name} is {server.status}'
        elif len(nodes.get(server.id, ())) != 1:
            yield f'{name} is on nodes {nodes.get(server.id)}'
        zone = world.zones.get(server.name)
        if zone and server.compute_host and zone != worlds.ZONES[
                worlds.group_of(server.compute_host)]:
            yield f'{name} is not in {zone}'
        if server.compute_host and server.status != 'ERROR' and not (
                world.link.placement.get(f'/allocations/{server.id}').json()[
                    'allocations']):
            yield f'{name} has no allocation'
    known = {server.id for server in world.servers()}
    for instance, held in nodes.items():
        if instance not in known:
            yield f'{held} hold {instance}, which Nova does not have'


def _records(world: worlds.World) -> Iterator[str]:
    """Return a line for each thing that is wrong with records of nodes."""
    with world.lab.cell() as opened:
        seen = view.read(opened)
    nodes = {node.id: node
             for node in world.link.baremetal.nodes(details=True)}
    rows = {row.node: row.owner for row in seen.rows}
    live = {host for host in world.lab.state.computes}
    for uuid in rows.keys() - nodes.keys():
        yield f'node {uuid} of {rows[uuid]} is not in Ironic'
    if not seen.pools:
        for uuid in nodes.keys() - rows.keys():
            yield f'node {uuid} has no record'
    for uuid, owner in rows.items():
        node = nodes.get(uuid)
        if node is None or node.instance_id:
            continue
        if model.canonical(owner) not in live:
            yield f'node {uuid} is of {owner}, which does not exist any more'
        elif worlds.group_of(owner) != node.conductor_group:
            yield (f'node {uuid} of group {node.conductor_group} is with '
                   f'{owner}')
    if seen.pools:
        for group in worlds.GROUPS:
            total = sum(pool.total - pool.reserved for pool in seen.pools
                        if pool.owner in worlds.GROUPS[group])
            wanted = _usable(world, group, nodes.values())
            if total != wanted:
                yield f'pools of {group} have {total} nodes, not {wanted}'
    providers = {each.id
                 for each in world.link.placement.resource_providers()
                 if not member.is_member(each.name)}
    records = {*rows, *(pool.uuid for pool in seen.pools)}
    for uuid in providers ^ records:
        yield (f'{uuid} has a provider and no record' if uuid in providers
               else f'{uuid} has a record and no provider')
    owners = {**rows, **{pool.uuid: pool.owner for pool in seen.pools}}
    yield from _zones(world, {
        uuid: owner for uuid, owner in owners.items() if uuid in providers})


def _usable(world: worlds.World, group: str,
            nodes: Iterable[sdk_node.Node]) -> int:
    """Return how many nodes of a group have a server or can have one.

    A node that Ironic could not undeploy can have none.
    """
    return sum(
        node.conductor_group == group and not node.instance_id
        and node.provision_state == 'available' for node in nodes) + sum(
            server.status != 'ERROR'
            and server.compute_host in worlds.GROUPS[group]
            for server in world.servers())


def _zones(world: worlds.World, owners: Mapping[str, str]) -> Iterator[str]:
    """Return a line for each provider that is not in its service's zone.

    :param owners: the name of the service of each, by its UUID
    """
    zones = {each.uuid: each.name for each in world.link.compute.aggregates()
             if each.availability_zone}
    for uuid, owner in owners.items():
        found = world.link.placement.get(
            f'/resource_providers/{uuid}/aggregates', microversion='1.19'
        ).json().get('aggregates', ())
        inside = sorted(zones[each] for each in found if each in zones)
        wanted = worlds.ZONES[worlds.group_of(owner)]
        if inside != [wanted]:
            yield f'{uuid} of {owner} is in {inside}, not in {wanted}'


def _emptiness(world: worlds.World) -> Iterator[str]:
    """Return a line for each thing that deleted servers have left behind."""
    for server in world.servers():
        yield f'{server.name} ({server.id}) is still {server.status}'
    for node in world.link.baremetal.nodes(details=True):
        if node.instance_id or node.provision_state != 'available':
            yield (f'{node.name} is {node.provision_state} with instance '
                   f'{node.instance_id}')
    for volume in world.link.block_storage.volumes():
        if volume.attachments or volume.status not in ('available', 'error'):
            yield (f'volume {volume.id} is {volume.status}, attached to '
                   f'{[each["server_id"] for each in volume.attachments]}')
    for port in world.link.network.ports():
        yield f'port {port.id} of {port.device_id} is left'
    for provider in world.link.placement.resource_providers():
        for consumer in world.link.placement.get(
                f'/resource_providers/{provider.id}/allocations').json().get(
                    'allocations', ()):
            kind = 'pool' if pools.is_pool(provider.name) else 'node'
            yield f'{kind} {provider.name} is allocated to {consumer}'
