# SPDX-License-Identifier: Apache-2.0

"""Which properties and traits of a node in Ironic make its kind.

Whoever owns a node in Ironic may write capabilities and traits into it. So
operators may name those that count.
"""

from collections.abc import Mapping
import dataclasses

from nova_ironic_ring.core.values import pools

# Nova's driver puts the architecture among the capabilities.
_ARCHITECTURE = 'cpu_arch'


@dataclasses.dataclass(frozen=True)
class Rule:
    """What makes a kind besides resource class and architecture.

    :ivar capabilities: the names of the capabilities that count; None for all
    :ivar traits: the traits that count; None for all
    """

    capabilities: frozenset[str] | None = None
    traits: frozenset[str] | None = None

    def kind(self, whole: pools.Kind | None) -> pools.Kind | None:
        """Return the kind of a node, without what does not count.

        :param whole: all that the scheduler could ask of the node; None if
            it has no resource class
        """
        if whole is None or self == _ALL:
            return whole
        return dataclasses.replace(
            whole,
            traits=whole.traits if self.traits is None
            else whole.traits & self.traits,
            properties=whole.properties if self.capabilities is None
            else frozenset(
                (name, value) for name, value in whole.properties
                if name == _ARCHITECTURE or name in self.capabilities))

    def nodes(self, found: Mapping[str, pools.Node]
              ) -> Mapping[str, pools.Node]:
        """Return nodes with their kinds, without what does not count.

        :param found: what Ironic says of the nodes, by UUID
        """
        if self == _ALL:
            return found
        # Of many nodes there are few kinds.
        known = {kind: self.kind(kind)
                 for kind in {node.kind for node in found.values()}}
        return {uuid: dataclasses.replace(node, kind=known[node.kind])
                for uuid, node in found.items()}


_ALL = Rule()
