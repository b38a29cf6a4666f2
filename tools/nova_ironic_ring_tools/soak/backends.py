# SPDX-License-Identifier: Apache-2.0

"""Restarts of what all services of OpenStack rest on.

What Nova, Ironic or Cinder do for a server at that moment may be lost, and
stays so with any driver. So they wait until nothing is under way.
"""

from collections.abc import Callable
import functools

from nova_ironic_ring_tools.faults import operators
from nova_ironic_ring_tools.soak import world as worlds

# Seconds.
_PATIENCE = 60
_OUTAGE = (0.0, 20.0)


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
    :returns: the seconds as a text; None if the lab does not come to rest
    """
    if not _is_quiet(world):
        return None
    outage = world.chance.uniform(*_OUTAGE)
    restart(outage)
    return f'{outage:.0f}'


def _is_quiet(world: worlds.World) -> bool:
    """Wait until nothing is done for a server or a node."""
    def is_idle() -> bool:
        return all(
            server.status != 'BUILD' and not server.task_state
            for server in world.servers()) and all(
                node.provision_state in ('available', 'active')
                and not node.reservation and not node.target_power_state
                for node in world.link.baremetal.nodes(details=True)) and all(
                    volume.status in ('available', 'in-use', 'error')
                    for volume in world.link.block_storage.volumes())
    return operators.wait(is_idle, _PATIENCE)
