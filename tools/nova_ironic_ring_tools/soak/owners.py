# SPDX-License-Identifier: Apache-2.0

"""What owners of nodes write into them by mistake, and take back later."""

from nova_ironic_ring.lab import shapes
from nova_ironic_ring_tools.soak import world as worlds

# The most nodes that are wrong at a time.
_MOST = 4
# Each replaces the properties of a node.
_PROPERTIES = (*shapes.IMPOSSIBLE, {})
_CLASSES = ('Baremetal.LARGE', 'x' * 80)
_EXTRA = {'instance': 'x' * 30000, '\x1b[31m': ['\U0001f600']}


def spoil(world: worlds.World) -> str | None:
    """Write something impossible into a node.

    :param world: the lab
    :returns: a text for it; None if enough nodes are wrong
    :raises openstack.exceptions.SDKException: if Ironic refuses
    """
    if len(world.wrong) >= _MOST:
        return None
    node = world.chance.choice([
        node for node in world.link.baremetal.nodes(details=True)
        if node.id not in world.wrong])
    path, said, value = world.chance.choice([
        *(('/properties', node.properties, each) for each in _PROPERTIES),
        *(('/resource_class', node.resource_class, each)
          for each in _CLASSES),
        ('/extra', node.extra, _EXTRA)])
    _write(world, node.id, worlds.Wrong(path, value))
    world.wrong[node.id] = worlds.Wrong(path, said)
    return f'write impossible {path[1:]} into {node.name}'


def mend(world: worlds.World) -> str | None:
    """Write into a node what was there before.

    :param world: the lab
    :returns: a text for it; None if no node is wrong
    :raises openstack.exceptions.SDKException: if Ironic refuses
    """
    if not world.wrong:
        return None
    node, wrong = world.chance.choice(sorted(
        world.wrong.items(), key=lambda each: each[0]))
    _write(world, node, wrong)
    del world.wrong[node]
    return f'mend {wrong.path[1:]} of {node}'


def _write(world: worlds.World, node: str, part: worlds.Wrong) -> None:
    world.system.baremetal.patch_node(node, [
        {'op': 'replace', 'path': part.path, 'value': part.said}])
