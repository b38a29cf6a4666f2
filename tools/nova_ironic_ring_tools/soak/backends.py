# SPDX-License-Identifier: Apache-2.0

"""Restarts of what all services of OpenStack rest on.

What Nova, Ironic or Cinder do for a server at that moment may be lost, and
stays so with any driver. So they wait until nothing is under way. A
nova-compute that starts ends at once if Keystone or Placement answers with an
error, with any driver, and init systems start it again; so they wait for those
that start as well.
"""

from collections.abc import Callable
import functools

from nova_ironic_ring_tools.faults import operators
from nova_ironic_ring_tools.soak import world as worlds

# Seconds.
_PATIENCE = 60
_OUTAGE = (0.0, 20.0)
# The states of a server that no service has claimed yet.
_BUILDING = ('scheduling', 'BUILD')


def restart_database(world: worlds.World) -> str | None:
    """Stop MariaDB, and start it again.

    :param world: the lab
    :returns: a text for it; None if the lab does not come to rest before
    :raises LabError: if MariaDB does not come back
    """
    outage = _restart(world, world.lab.database.restart)
    return outage and f'MariaDB has restarted, {outage} s after it stopped'


def lose_queues(world: worlds.World) -> str | None:
    """Kill RabbitMQ, and start it again without its queues.

    :param world: the lab
    :returns: a text for it; None if the lab does not come to rest before
    :raises LabError: if RabbitMQ does not come back
    """
    outage = _restart(world, functools.partial(
        world.lab.broker.restart, is_killed=True))
    return outage and f'RabbitMQ has lost its queues, and was away {outage} s'


def _restart(world: worlds.World, restart: Callable[[float], None]
             ) -> str | None:
    """Wait until the lab is at rest, and restart something.

    :param restart: does so, with an outage of so many seconds
    :raises LabError: if a service does not start
    :returns: the seconds as a text; None if the lab does not come to rest
    """
    world.wait_for_answers()
    for host in world.lab.state.computes:
        if host not in world.away:
            world.lab.wait_alive(host)
    if not _is_quiet(world):
        return None
    outage = world.chance.uniform(*_OUTAGE)
    restart(outage)
    return f'{outage:.0f}'


def _is_quiet(world: worlds.World) -> bool:
    """Wait until nothing is done for a server, a node or a volume.

    What does not change in all that time is stuck, such as a volume whose
    server was being built when its service died. It is not waited for again.
    """
    first = _busy(world)
    if operators.wait(lambda: _busy(world) <= world.stuck, _PATIENCE):
        return True
    last = _busy(world)
    if world.away and any(
            state in _BUILDING for _, state in last - world.stuck):
        # Its message may wait for a service that is away, and would be lost.
        return False
    world.stuck |= first & last
    return last <= world.stuck


def _busy(world: worlds.World) -> frozenset[tuple[str, str]]:
    """Return what something is done for now, and in which state it is."""
    states = [
        *((server.id, server.task_state
           or (server.status if server.status == 'BUILD' else None))
          for server in world.servers()),
        *((node.id, node.reservation or node.target_power_state
           or (None if node.provision_state in ('available', 'active')
               else node.provision_state))
          for node in world.link.baremetal.nodes(details=True)),
        *((volume.id, None if volume.status in ('available', 'in-use', 'error')
           else volume.status)
          for volume in world.link.block_storage.volumes())]
    return frozenset((each, state) for each, state in states if state)
