# SPDX-License-Identifier: Apache-2.0

"""Checks in Placement that the nodes that are not updated are in order.

The rule is :mod:`nova_ironic_ring.core.deciding.provider_check`.
"""

from collections.abc import Collection, Iterable

from oslo_log import log as logging

from nova_ironic_ring.compute import service
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import provider_check
from nova_ironic_ring.core.deciding import updates

LOG = logging.getLogger(__name__)


class ProviderChecks:
    """The checks of one service."""

    def __init__(self, checked: service.Service) -> None:
        """Begin without a check.

        :param checked: the service
        """
        self._service = checked
        self._check = provider_check.ProviderCheck(checked.process.now())

    def run(self, changes: updates.Changes) -> Collection[str]:
        """Check the providers if they may have changed.

        Placement is told of the nodes that the scheduler is wrongly kept away
        from, or not kept away from.

        :param changes: the nodes that need no update otherwise
        :returns: the UUIDs of the nodes that the tracker has to update
        """
        seen, placement = self._seen(), self._service.world.placement
        if not self._check.is_due(seen):
            return ()
        try:
            wrong = self._check.find(changes, placement.providers(), seen)
        except Exception as error:
            # Nothing can be corrected then either: the next pass looks again.
            LOG.debug('Cannot list the resource providers in Placement: %s',
                      error)
            return ()
        if wrong.to_tell:
            self._tell_status(
                wrong.to_tell, seen.standing.is_disabled(seen.me))
        return wrong.to_update

    def came(self, claims: Iterable[planner.Claim]) -> None:
        """Note the claims by which nodes have come without the tracker.

        :param claims: the claims
        """
        self._check.came(
            claims, self._seen(), self._service.settings.full_update_interval)

    def _seen(self) -> provider_check.Moment:
        """Return what is known now."""
        return provider_check.Moment(
            self._service.process.now(), self._service.memory.standing,
            self._service.settings.me)

    def _tell_status(self, nodes: Collection[str], is_disabled: bool) -> None:
        """Tell Placement whether nodes may be chosen.

        :param nodes: their UUIDs
        :param is_disabled: whether this service was disabled when the pass
            began
        """
        placement = self._service.world.placement
        try:
            record = self._service.nova.service(self._service.settings.host)
            if record is None or record.disabled is not is_disabled:
                # Nova has told the opposite since then, or is about to.
                self._check.doubt_told()
                return
            for node in nodes:
                # Nova may have cached it.
                placement.forget_provider(node)
            placement.tell_status(nodes, not is_disabled)
        except Exception as error:
            # The next pass sees it, and has the tracker update these nodes.
            LOG.debug('Cannot tell Placement the status of %(count)d nodes: '
                      '%(error)s', {'count': len(nodes), 'error': error})
