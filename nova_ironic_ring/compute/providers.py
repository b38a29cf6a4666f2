# SPDX-License-Identifier: Apache-2.0

"""What both drivers add to the description of a resource provider."""

from collections.abc import Iterable, Mapping
from typing import Any

from nova.compute import provider_tree
from nova import exception
from oslo_log import log as logging

from nova_ironic_ring.adapters import placement
from nova_ironic_ring.adapters import upstream

LOG = logging.getLogger(__name__)


class Providers:
    """Completes the description of a service's resource providers."""

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        """Choose the service.

        :param driver: the driver of the nova-compute
        """
        self._driver = driver
        self._placement = placement.Placement(driver)
        #: The nodes that were last seen without a resource class.
        self.without_class: set[str] = set()

    def offer_nothing(self, tree: provider_tree.ProviderTree, node: str,
                      listed: Iterable[str]) -> None:
        """Describe a node without a resource class, and log that it has none.

        Nova's own driver raises an error, which the tracker logs with a
        traceback in each pass.

        :param tree: the tree
        :param node: the node's UUID
        :param listed: the UUIDs of the service's nodes
        """
        tree.update_inventory(node, {})
        if node not in self.without_class:
            LOG.warning('Node %(node)s has no resource class in Ironic, so '
                        'nothing is built on it: set one.', {'node': node})
        self.without_class.intersection_update(listed)
        self.without_class.add(node)

    def keep_used(self, tree: provider_tree.ProviderTree, name: str,
                  before: Mapping[str, Any]) -> None:
        """Keep resource classes that servers use and the driver does not know.

        They come from a provider.yaml: that of a service which had the compute
        node or the server before, or one that was deleted. Placement refuses
        an inventory without them, and Nova's tracker would fail in each pass.

        :param tree: the tree, as the driver leaves it
        :param name: the name of the compute node
        :param before: the inventory before the driver has changed it
        :raises Exception: if Placement does not say what servers have
        """
        said = tree.data(name)
        more = before.keys() - said.inventory.keys()
        if more:
            # The tracker adds these itself.
            more -= upstream.configured_classes(self._driver, said)
        if more:
            more &= self._placement.used_classes(said.uuid)
        if more:
            tree.update_inventory(name, {
                **said.inventory, **{each: before[each] for each in more}})

    def require_current(self, tree: provider_tree.ProviderTree, name: str,
                        before: Mapping[str, Any]) -> None:
        """Have Nova's tracker read a provider again before it writes.

        Each allocation that is made or deleted changes the generation of the
        provider, and Nova's client reads the generation only every few
        minutes. Placement refuses what is written to an older one. Then Nova
        logs an error, reads the provider, and tries again: it does the last
        two after this exception as well.

        :param tree: the tree, as the driver leaves it
        :param name: the name of the compute node
        :param before: the inventory before the driver has changed it; empty
            for a new provider
        :raises nova.exception.ResourceProviderUpdateConflict: if the inventory
            is to be changed, and the provider has changed since it was read
        """
        said = tree.data(name)
        if not before or said.inventory == before or (
                not self._placement.is_changed(said.uuid, said.generation)):
            return
        self._placement.forget_provider(said.uuid)
        raise exception.ResourceProviderUpdateConflict(
            uuid=said.uuid, generation=said.generation,
            error='It has changed since it was read.')
