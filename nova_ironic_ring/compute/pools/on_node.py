# SPDX-License-Identifier: Apache-2.0

"""Lets Nova's driver find an instance's node if Nova has a pool.

To Nova's ironic driver ``instance.node`` is the UUID of a node of Ironic. With
the pool driver, it is the name of a pool, and Ironic knows the node.
"""

from collections.abc import Callable
import inspect
from typing import Any

from nova import exception
from nova import objects

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.values import pools

#: The methods of Nova's driver in which it reads an instance's node.
READERS = (
    'spawn', 'rebuild', 'rescue', 'unrescue', 'destroy', 'attach_interface',
    'get_vnc_console', 'get_volume_connector',
    'prepare_networks_before_block_device_mapping')
#: Those of them that Nova calls before it has given an instance that is being
#: unshelved a node.
EARLY = ('get_volume_connector',)
#: Those of them that clean up, and have nothing to do without a node.
CLEANERS = ('unplug_vifs', 'detach_interface', 'clean_networks_preparation')


class OnNode:
    """An instance whose ``node`` is the UUID of its node.

    All other attributes are those of the instance, which stays the same object
    for whoever changes or saves it. Ironic is asked when the node is first
    read.
    """

    def __init__(self, source: upstream.NovaIronicDriver,
                 instance: objects.Instance, node: str | None = None) -> None:
        """Choose the instance.

        :param source: what speaks to Ironic
        :param instance: the instance
        :param node: the node to return before Ironic has the instance on one:
            the UUID of a node, or the name of a pool
        """
        vars(self).update(_source=source, _instance=instance)
        if node is not None:
            vars(self).update(_node=node)

    @property
    def node(self) -> str:
        """The UUID of the node.

        :raises nova.exception.InstanceNotFound: if no node holds the instance
        """
        own = vars(self)
        if '_node' not in own:
            own['_node'] = upstream.node_of(own['_source'], own['_instance'])
        return own['_node']

    def get(self, name: str, default: object = None) -> Any:
        """Return a field, as Nova's objects do.

        :param name: the field's name
        :param default: what to return if it is not set
        """
        return (self.node if name == 'node'
                else vars(self)['_instance'].get(name, default))

    def __getitem__(self, name: str) -> Any:
        return self.node if name == 'node' else vars(self)['_instance'][name]

    def __contains__(self, name: str) -> bool:
        return name in vars(self)['_instance']

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)['_instance'], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)['_instance'], name, value)


def found(mixin: type) -> type:
    """Let the methods of Nova's driver see an instance on its node.

    :param mixin: the class that is mixed in before Nova's driver
    """
    for name in READERS + CLEANERS:
        # Older releases of Nova do not have all of them.
        if hasattr(upstream.NovaIronicDriver, name):
            setattr(mixin, name, _method(mixin, name))
    return mixin


def _method(mixin: type, name: str) -> Callable[..., Any]:
    signature = upstream.signature(name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        instance = given.arguments['instance']
        method = getattr(super(mixin, self), name)
        place = getattr(instance, 'node', None)
        # A node of Ironic has no name but its UUID. One that is being
        # unshelved has a node in Ironic first.
        if not pools.is_pool(place) and (place or name not in EARLY):
            return method(*args, **kwargs)
        instance = OnNode(self, instance)
        given.arguments['instance'] = instance
        if name in CLEANERS and not _has_node(instance):
            return None
        return method(*given.args[1:], **given.kwargs)
    call.__name__ = name
    call.__qualname__ = f'{mixin.__qualname__}.{name}'
    call.__doc__ = inspect.getdoc(getattr(upstream.NovaIronicDriver, name))
    # Nova compares it with that of its other drivers.
    setattr(call, '__signature__', signature)
    return call


def _has_node(instance: OnNode) -> bool:
    try:
        return bool(instance.node)
    except exception.InstanceNotFound:
        return False
