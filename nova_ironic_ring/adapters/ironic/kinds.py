# SPDX-License-Identifier: Apache-2.0

"""Makes the kind of a node from its JSON in Ironic.

The kind consists of the properties that the scheduler may request: resource
class, traits, capabilities and architecture. How nodes of a kind become a pool
is in
:mod:`nova_ironic_ring.core.values.pools`.
"""

import json

from nova_ironic_ring.adapters.ironic import nodes
from nova_ironic_ring.adapters import plain
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.values import pools

# Properties that differ from node to node, and do not make the kind.
_OWN = ('uuid', 'instance_uuid', 'last_error')


class Kinds:
    """Asks Nova's driver once for all nodes that are the same."""

    def __init__(self) -> None:
        """Know of no node."""
        self._ironic = nodes.Ironic(upstream.NovaIronicDriver(None))
        self._known: dict[str, pools.Node] = {}

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that Nova's driver needs, by their names in Ironic."""
        return upstream.node_fields()

    def said(self, node: plain.Node) -> pools.Node:
        """Convert Ironic's data of a node as Nova's driver does.

        :param node: the node, with the fields of :attr:`fields`
        """
        key = json.dumps([
            node['instance_uuid'] is None,
            *(node[field] for field in self.fields if field not in _OWN)],
            sort_keys=True)
        if key not in self._known:
            self._known[key] = self._ironic.said(node)
        return self._known[key]
