# SPDX-License-Identifier: Apache-2.0

"""Gives instances, and so their nodes, to other services."""

from collections.abc import Iterable, Sequence
import functools

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import steps
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.taking import pool_gift
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports

_Action = steps.StepAction


class Mover(steps.Changer):
    """Moves instances."""

    #: The counts of the last look.
    _counted: tuple[snapshot.Snapshot, bool] | None = None

    def plan(self, nodes: Iterable[str], host: str) -> list[steps.PlannedStep]:
        """Plan the move of nodes.

        :param nodes: the name of each
        :param host: the name of the service that is to have them
        :raises ValueError: if there is no such node or service
        :raises CommandError: if one of them cannot be moved
        """
        seen, asked = self._source.read_nodes(nodes)
        seen = self._see(seen)
        if seen.pools:
            # The target counts of its pools depend on all nodes.
            seen = self._source.with_nodes(seen)
        self._seen = seen
        found = {node.uuid: (node, _instance(seen, node)) for node in asked}
        target = _target(seen, host)
        for node, instance in found.values():
            _see_it_goes(seen, node, instance, target)
        return [
            step for node, instance in found.values()
            if instance.host_name != target.record.name
            for step in (
                steps.PlannedStep(
                    _Action.GIVE_INSTANCE, node.uuid,
                    f'give instance {instance.uuid} ({instance.name}) of '
                    f'{instance.host} to {target.record.host}'),
                steps.PlannedStep(
                    _Action.WAIT_FOR_NODE, node.uuid, 'wait until '
                    f'{target.record.host} has node {node.uuid}', 1))]

    def move(self, planned: Sequence[steps.PlannedStep], host: str,
             timeout: float) -> steps.StepResults:
        """Give instances to another service, and wait.

        One that can no longer be given away does not stop the others.

        :param planned: the steps
        :param host: the name of the service that is to have them
        :param timeout: how long to wait, in seconds
        """
        # Somebody may have taken long to say yes.
        seen = self._source.refresh(self._seen or self._source.read())
        done = dict.fromkeys(planned, steps.NOT_DONE)
        given = set()
        for step in planned:
            if step.action is _Action.GIVE_INSTANCE:
                try:
                    self._give(seen, step.subject, _target(seen, host))
                except (errors.CommandError, ValueError) as error:
                    done[step] = steps.failed(error)
                else:
                    done[step] = steps.DONE
                    given.add(step.subject)
        waits = {step: functools.partial(
            self._left, node=step.subject, host=model.canonical(host))
            for step in planned if step.action is _Action.WAIT_FOR_NODE
            and step.subject in given}
        return {**done, **self._waiter.wait(seen, waits, timeout)}

    def _left(self, seen: snapshot.Snapshot, node: str, host: str) -> int:
        """Count what is left to wait for: one, until a service has a node."""
        row = seen.rows.get(node)
        if row is not None:
            return int(row.owner_name != host)
        # Its pools count the node when they have their target counts.
        return int(not seen.has_pools(host) or self._lacks(seen, host))

    def _lacks(self, seen: snapshot.Snapshot, host: str) -> bool:
        """Say whether Placement lacks nodes that count for a service.

        The answer is the same for all nodes in a look, and slow to compute.
        """
        if self._counted is None or self._counted[0] is not seen:
            self._counted = seen, bool(self._not_counted(seen, [host]))
        return self._counted[1]

    def _give(self, seen: snapshot.Snapshot, node: str,
              target: snapshot.Service) -> None:
        """Give the instance on a node to another service.

        :raises CommandError: if it can no longer move
        """
        found = seen.find(node)
        instance, host = _instance(seen, found), target.record.host
        _see_it_goes(seen, found, instance, target)
        with self._source.cell_of(instance.cell) as cell:
            if instance.pool is None:
                cell.give_instance(instance.uuid, ports.Expected(
                    str(instance.host), node), host)
            else:
                cell.give_in_pools(pool_gift.Gift(
                    instance.uuid, str(instance.host), str(instance.pool),
                    str(_pool_for(seen, found, target))), host)
            self._trail().moved(
                cell.context, node=node, instance=instance.uuid,
                source=str(instance.host), target=target.record.host)


def _instance(seen: snapshot.Snapshot, found: snapshot.Node
              ) -> snapshot.Instance:
    """Return the instance on a node.

    :raises CommandError: if there is none, or it cannot be moved
    """
    instance = seen.instance_on(found)
    if instance is None or instance.host is None:
        raise errors.CommandError(
            f'Node {found.uuid} has no instance: free nodes are where the '
            'ring maps them, and would go back.')
    if not pools.has(instance, found.uuid):
        raise errors.CommandError(
            f'Ironic has instance {instance.uuid} on node {found.uuid}, '
            f'and Nova has it on {instance.node}: see who has set the '
            'instance_uuid of the node.')
    if not instance.is_idle:
        raise errors.CommandError(
            f'Something is being done with instance {instance.uuid}: '
            'wait until it is over; if its service is dead, run '
            f'"nova-ironic-ring failover {instance.host}".')
    return instance


def _target(seen: snapshot.Snapshot, host: str) -> snapshot.Service:
    """Return the service that is to have nodes.

    :raises ValueError: if there is no such service
    :raises CommandError: if it could not manage them
    """
    target = seen.service(host)
    if seen.state(host) is not membership.State.MEMBER:
        raise errors.CommandError(
            f'The nova-compute on {host} is {seen.word(host)}: it '
            'could not look after the instance.')
    key = seen.key(target.record.name)
    following = [name for name, each in seen.profiles.items()
                 if each.mobility == 'follow' and name in seen.hosts
                 and seen.key(name) == key]
    if following:
        raise errors.CommandError(
            'With [ironic_ring] instance_mobility = follow, as on '
            f'{following[0]}, instances are where the ring maps them, and '
            'would go back.')
    return target


def _see_it_goes(seen: snapshot.Snapshot, node: snapshot.Node,
                 instance: snapshot.Instance, target: snapshot.Service
                 ) -> None:
    """Check that an instance can go to a service.

    :raises CommandError: if it cannot
    """
    _see_it_fits(seen, node, instance, target)
    _see_it_has_a_place(seen, node, instance, target)


def _see_it_fits(seen: snapshot.Snapshot, node: snapshot.Node,
                 instance: snapshot.Instance, target: snapshot.Service
                 ) -> None:
    """Check that a service serves a node.

    :raises CommandError: if it does not
    """
    key = seen.key(target.record.name)
    if target.cell != instance.cell or key is None or (
            not key.scope.has(node.group, node.shard)):
        raise errors.CommandError(
            f'The nova-compute on {target.record.host} does not serve node '
            f'{node.uuid}: it is in another cell, group or shard.')


def _see_it_has_a_place(seen: snapshot.Snapshot, node: snapshot.Node,
                        instance: snapshot.Instance,
                        target: snapshot.Service) -> None:
    """Check that a service has a place for an instance.

    :raises CommandError: if it has the other driver, or no pool of its kind
    """
    host, is_pooled = target.record.host, seen.has_pools(target.record.name)
    if is_pooled and instance.pool is None:
        raise errors.CommandError(
            f'The nova-compute on {host} has the pool driver: instances with '
            'nodes of their own do not move there.')
    if instance.pool is not None and not is_pooled:
        raise errors.CommandError(
            f'Instance {instance.uuid} is in pool {instance.pool}, and the '
            f'nova-compute on {host} does not have the pool driver: instances '
            'in pools do not move there.')
    if instance.pool is not None and _pool_for(
            seen, node, target) not in seen.pools:
        raise errors.CommandError(
            f'The nova-compute on {host} has no pool of nodes such as '
            f'{node.uuid}: it has one as soon as the ring maps a free node of '
            'that kind to it.')


def _pool_for(seen: snapshot.Snapshot, node: snapshot.Node,
              target: snapshot.Service) -> str | None:
    """Name the pool of a service that a node is in.

    :returns: None if the node can be in none
    """
    kind = seen.kind(target.record.name, node)
    return None if kind is None else pools.name(target.record.host, kind)
