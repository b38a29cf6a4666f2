# SPDX-License-Identifier: Apache-2.0

"""Removes what is left of nodes that Ironic does not have."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command.checks.findings import FindingCode
from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command import steps
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import vanished
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.core.values import pools

if TYPE_CHECKING:
    from nova_ironic_ring.command.access import source
    from nova_ironic_ring.command import trail

CONF = cfg.CONF

_Action = steps.StepAction


class Cleaner:
    """Removes leftovers."""

    def __init__(self, where: 'source.Source',
                 written: 'Callable[[], trail.Trail]') -> None:
        """Choose the deployment.

        :param where: the deployment
        :param written: returns the records of what is done; slow to import
        """
        self._source = where
        #: What was read when it was planned.
        self._seen: snapshot.Snapshot | None = None
        self._trail = written

    def plan(self, kind: str) -> list[steps.PlannedStep]:
        """Plan the removal of leftovers.

        :param kind: ``rows`` or ``providers``
        :raises CommandError: if they are too many to be believed
        """
        seen = self._seen = self._source.read(providers=True)
        for error in seen.unread.values():
            raise errors.CommandError(
                f'{error} Nothing is removed while a cell cannot be read.'
                if error else 'Leave out --cell: records of another cell '
                'would look like leftovers.')
        found = sorted(
            finding.subject for finding in table.find(seen)
            if finding.kind == kind and finding.subject not in seen.nodes)
        limit = CONF.ironic_ring.vanished_nodes_limit
        if kind == 'rows':
            _require_ironic_of(seen, {seen.rows[node].cell for node in found})
            for owner in {seen.rows[node].owner for node in found}:
                _believe(
                    sum(seen.rows[node].owner == owner for node in found),
                    sum(row.owner == owner for row in seen.rows.values()),
                    f'of {owner}', limit)
        else:
            # Of pools, Ironic knows nothing.
            _believe(sum(not pools.is_pool(name) for name in found),
                     len(seen.providers or ()), 'with a resource provider',
                     limit)
        planned = [steps.PlannedStep(
            _Action.DELETE_RECORD if kind == 'rows'
            else _Action.DELETE_PROVIDER, node,
            f'delete the {kind[:-1]} of '
            f'{"pool" if pools.is_pool(node) else "node"} {node}')
            for node in found]
        # A service that Nova has deletes its pools itself.
        return planned + [steps.PlannedStep(
            _Action.DELETE_RECORD, name, f'delete the row of pool {name}')
            for name in (_left_pools(seen) if kind == 'rows' else ())]

    def clean(self, planned: Sequence[steps.PlannedStep]) -> steps.StepResults:
        """Remove what is left of nodes.

        :param planned: the steps
        """
        # Somebody may have taken long to say yes. Ironic is asked for each.
        seen = self._source.refresh(
            self._seen or self._source.read(providers=True))
        done = {}
        for step in planned:
            try:
                self._clean(seen, step)
                done[step] = steps.DONE
            except errors.CommandError as error:
                done[step] = steps.failed(error)
        return done

    def _clean(self, seen: snapshot.Snapshot, step: steps.PlannedStep) -> None:
        """Remove what is left of a node, or of a pool.

        :raises CommandError: if Ironic has it again, or a service
        """
        node = step.subject
        is_provider = step.action is _Action.DELETE_PROVIDER
        if pools.is_pool(node):
            if not is_provider:
                self._remove_pool(seen, node)
                return
            # Its service may have come back while others were removed.
            if node in self._source.refresh(seen).pools:
                raise errors.CommandError(
                    f'Nova has pool {node} again: its provider is not '
                    'removed.')
        elif self._source.has_node(node):
            raise errors.CommandError(
                f'Node {node} is in Ironic: its records are not removed.')
        if is_provider:
            # Placement refuses where something is allocated.
            self._source.delete_provider(pools.provider(node))
            self._trail().write(audit.Code.PROVIDER_REMOVED, node=node)
        # Or a service may have been faster.
        elif node in seen.rows:
            for instance in seen.instances.values():
                if instance.node == node:
                    raise errors.CommandError(
                        f'Nova has server {instance.uuid} on node {node}, '
                        'whose record is not removed: delete the server.')
            self._remove_row(seen, node)

    def _remove_row(self, seen: snapshot.Snapshot, node: str) -> None:
        # Without the record, nobody would look for the provider again.
        if node in (seen.providers or ()):
            self._source.delete_provider(node)
        with self._source.cell_of(seen.rows[node].cell) as cell:
            if cell.destroy_record(node):
                self._trail().write(audit.Code.RECORD_REMOVED, node=node,
                                    source=seen.rows[node].owner)

    def _remove_pool(self, seen: snapshot.Snapshot, name: str) -> None:
        # Or it has been removed.
        if name not in seen.pools:
            return
        if name not in _left_pools(seen):
            raise errors.CommandError(
                f'Pool {name} has instances, or a service: it is not removed.')
        # Placement refuses where a build is on its way to it.
        self._source.delete_provider(pools.uuid_of(name))
        with self._source.cell_of(seen.pools[name].cell) as cell:
            if cell.destroy_record(pools.uuid_of(name)):
                self._trail().write(audit.Code.RECORD_REMOVED, node=name,
                                    source=seen.pools[name].owner)


def _left_pools(seen: snapshot.Snapshot) -> list[str]:
    """Name the pools without instances of services that Nova does not have."""
    return [finding.subject for finding in table.find(seen)
            if finding.code is FindingCode.POOL_OF_LOST_SERVICE
            and seen.state(seen.pools[finding.subject].owner)
            is membership.State.GONE]


def _require_ironic_of(seen: snapshot.Snapshot, cells: Iterable[str]) -> None:
    """See that Ironic is the one whose nodes cells have records of.

    A cell may have an Ironic of its own, and the command asks only one.

    :param cells: the names of the cells
    :raises CommandError: if it has nodes of other cells, and of one none
    """
    known = {row.cell for row in seen.rows.values() if row.node in seen.nodes}
    for cell in sorted(set(cells) - known) if known else ():
        raise errors.CommandError(
            f'Ironic has none of the nodes that cell {cell} has records of: '
            'nothing is removed. If the cell has an Ironic of its own, name '
            'that one in [ironic] of the configuration.')


def _believe(missing: int, total: int, what: str, limit: int) -> None:
    """Check that not too many nodes have vanished, as the services do."""
    guard = vanished.look(vanished.Guard(), vanished.Missing(
        list(map(str, range(missing))), total, lambda node: True),
        vanished.Limits(limit, 0), 0)
    if guard.has_too_many:
        raise errors.CommandError(
            f'Ironic does not show {missing} of '
            f'{plural.of(total, "node")} {what}: see '
            "whether Nova's account in [ironic] may see all nodes. If "
            'they were deleted on purpose, set [ironic_ring] '
            'vanished_nodes_limit = 100 in the nova.conf that this '
            'command reads.')
