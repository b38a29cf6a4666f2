# SPDX-License-Identifier: Apache-2.0

"""Restarts of what all services of OpenStack rest on.

What Nova, Ironic or Cinder do for a server at that moment may be lost, and
stays so with any driver. So they wait until nothing is under way.
"""

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
    if not _is_quiet(world):
        return None
    outage = world.chance.uniform(*_OUTAGE)
    world.lab.database.restart(outage)
    return f'MariaDB has restarted, {outage:.0f} s after it stopped'


def lose_queues(world: worlds.World) -> str | None:
    """Kill RabbitMQ, and start it again without its queues.

    :param world: the lab
    :returns: a text for it; None if the lab does not come to rest before
    :raises LabError: if RabbitMQ does not come back
    """
    if not _is_quiet(world):
        return None
    outage = world.chance.uniform(*_OUTAGE)
    world.lab.broker.restart(outage, is_killed=True)
    return f'RabbitMQ has lost its queues, and was away for {outage:.0f} s'


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
