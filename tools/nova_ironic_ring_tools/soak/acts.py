# SPDX-License-Identifier: Apache-2.0

"""The events on the lab: each function causes one, and returns a text for it.

It returns None if the event is not possible now.
"""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any

from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import tenant
from nova_ironic_ring_tools.faults import operators
from nova_ironic_ring_tools.soak import backends
from nova_ironic_ring_tools.soak import owners
from nova_ironic_ring_tools.soak import troubles
from nova_ironic_ring_tools.soak import world as worlds

_World = worlds.World
# A server is booted only if so many nodes for it are free.
_LEAST_FREE = 4
_SHARDS = 8


def _boot(world: _World) -> str | None:
    fit = world.link.baremetal.nodes(
        details=True, resource_class=tenant.FLAVOR)
    if sum(not node.instance_id for node in fit) < _LEAST_FREE + sum(
            server.status == 'BUILD' for server in world.servers()):
        return None
    name, with_drive = world.next_name(), world.chance.random() < 0.3
    network = world.network if world.chance.random() < 0.5 else None
    more: dict[str, Any] = {'config_drive': with_drive}
    said = ''
    if world.chance.random() < 0.5:
        zone = world.chance.choice(list(worlds.ZONES.values()))
        world.zones[name] = more['availability_zone'] = zone
        said += f' in {zone}'
    if world.chance.random() < 0.3:
        more |= _on_volume(world)
        said += ' from a volume'
    servers.boot(world.link, name, network=network, **more)
    return f'boot {name}{said}'


def _on_volume(world: _World) -> dict[str, Any]:
    """Return arguments for a server whose volume Nova makes and deletes."""
    image = world.link.image.find_image(tenant.IMAGE, ignore_missing=False)
    return {'imageRef': '', 'block_device_mapping_v2': [{
        'boot_index': 0, 'uuid': image.id, 'source_type': 'image',
        'destination_type': 'volume', 'volume_size': 1,
        'delete_on_termination': True}]}


def _delete(world: _World) -> str | None:
    found = world.servers()
    if not found:
        return None
    server = world.chance.choice(found)
    world.link.compute.delete_server(server)
    return f'delete {server.name} ({server.status})'


def _reboot(world: _World) -> str | None:
    server = world.server('ACTIVE')
    if server is None:
        return None
    world.link.compute.reboot_server(server, 'HARD')
    return f'reboot {server.name} on {server.compute_host}'


def _rebuild(world: _World) -> str | None:
    server = world.server('ACTIVE')
    # Nova's driver rebuilds none that is on a volume.
    if server is None or not (server.image and server.image.id):
        return None
    servers.rebuild(world.link, server)
    return f'rebuild {server.name} on {server.compute_host}'


def _power(world: _World) -> str | None:
    server = world.server('ACTIVE', 'SHUTOFF')
    if server is None:
        return None
    if server.status == 'ACTIVE':
        world.link.compute.stop_server(server)
        return f'stop {server.name} on {server.compute_host}'
    world.link.compute.start_server(server)
    return f'start {server.name} on {server.compute_host}'


def _part(absence: worlds.Absence, world: _World) -> str | None:
    host = world.expendable()
    if host is None:
        return None
    world.leave(host, absence)
    return f'{absence.what}: {host}'


def _join(world: _World) -> str | None:
    host = worlds.NEWCOMER
    if host in world.lab.state.computes:
        return None
    world.lab.add_compute(host, worlds.options(host))
    world.lab.wait_alive(host)
    world.lab.discover_hosts()
    return f'add {host}'


def _leave(world: _World) -> str | None:
    host = worlds.NEWCOMER
    if host not in world.lab.state.computes or any(
            each in world.away
            for each in worlds.GROUPS[worlds.group_of(host)]) or any(
                server.compute_host == host for server in world.servers()):
        return None
    # Nova does so only while the service has a node, and no server.
    tenant.leave_aggregates(world.link, host)
    world.lab.compute(host).stop()
    operators.force_down(world.lab, host, True)
    # A build may have come meanwhile.
    world.lab.wait(f'Others for the servers of {host}', lambda: not any(
        server.compute_host == host for server in world.servers()))
    for service in world.link.compute.services(host=host):
        world.link.compute.delete_service(service)
    world.lab.forget_compute(host)
    return f'remove {host}'


def _regroup(world: _World) -> str | None:
    node = world.chance.choice([
        node for node in world.link.baremetal.nodes(details=True)])
    group = world.chance.choice(list(worlds.GROUPS))
    world.system.baremetal.update_node(node.id, conductor_group=group)
    return f'put {node.name} of {node.conductor_group} into {group}'


def _reshard(world: _World) -> str | None:
    node = world.chance.choice(list(world.link.baremetal.nodes(details=True)))
    shard = f'shard-{world.chance.randrange(_SHARDS)}'
    world.system.baremetal.update_node(node.id, shard=shard)
    return f'put {node.name} into {shard}'


@dataclasses.dataclass(frozen=True)
class Act:
    """An event that can happen.

    :ivar name: its name
    :ivar weight: how often it happens, in comparison with the others
    :ivar do: causes it, and returns a text for it; None if it is not possible
    """

    name: str
    weight: int
    do: Callable[[_World], str | None]


#: All events that can happen.
ACTS = (
    Act('boot', 10, _boot),
    Act('delete', 8, _delete),
    Act('reboot', 4, _reboot),
    Act('rebuild', 3, _rebuild),
    Act('stop or start', 4, _power),
    *(Act(absence.what, 2, functools.partial(_part, absence))
      for absence in worlds.ABSENCES),
    Act('add a service', 1, _join),
    Act('remove a service', 1, _leave),
    Act('change a group', 2, _regroup),
    Act('change a shard', 2, _reshard),
    Act('spoil a node', 2, owners.spoil),
    Act('mend a node', 2, owners.mend),
    Act('restart MariaDB', 1, backends.restart_database),
    Act('lose the queues', 1, backends.lose_queues),
    Act('silence', 1, troubles.be_silent),
    Act('lose answers', 1, troubles.lose_answers))
