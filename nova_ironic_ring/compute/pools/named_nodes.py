# SPDX-License-Identifier: Apache-2.0

"""Builds whose request names the one node that they are for.

Nova sees pools, so a user who may force a host names a node with a scheduler
hint. Nova passes the hint on without a check. This service checks it when it
builds, with the rights of the user who has asked for the build.
"""

import uuid

from nova import exception
from nova import objects

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.taking.building import reservation

#: The scheduler hint: it has the UUID of a node.
HINT = 'ironic_node'

_SENTENCES = {
    reservation.Refusal.UNKNOWN: (
        'Ironic has no node {node}: compare the hint with "openstack '
        'baremetal node list"'),
    reservation.Refusal.HAS_INSTANCE: (
        'node {node} has an instance: name one that is free'),
    reservation.Refusal.NOT_READY: (
        'nothing can be built on node {node} now: see its provision state, '
        'maintenance and power state in Ironic'),
    reservation.Refusal.OTHER_KIND: (
        'node {node} is not of the kind of pool {pool}, which was scheduled: '
        'name a pool of its kind as well, with --hypervisor-hostname'),
    reservation.Refusal.ELSEWHERE: (
        'node {node} is not in the conductor group and shard of the service '
        'that was scheduled: name one that is, with --host'),
    reservation.Refusal.TAKEN: (
        'another instance has got node {node} meanwhile: name one that is '
        'free'),
}


class NamedNodes:
    """Knows which running builds are for one named node."""

    def __init__(self) -> None:
        """Begin without a build."""
        # Threads add and remove what is their own.
        self._asked: dict[str, upstream.Request] = {}

    def begin(self, request: upstream.Request) -> None:
        """Note the request of a build.

        :param request: the request
        """
        if request.hints.get(HINT):
            self._asked[request.instance] = request

    def end(self, instance: str) -> None:
        """Forget a build that has ended.

        :param instance: the UUID of the instance
        """
        self._asked.pop(instance, None)

    def node_for(self, instance: objects.Instance) -> str | None:
        """Name the one node that an instance is to be built on.

        :param instance: the instance
        :returns: the node's UUID; None if any node will do
        :raises nova.exception.InstanceUnacceptable: if the user may not name a
            node, or the hint is no UUID; Nova then ends the build
        """
        asked = self._asked.get(instance.uuid)
        if asked is None:
            return None
        if not upstream.may_force_host(asked.context):
            raise _refusal(instance, (
                f'the scheduler hint {HINT} is for those who may force a host '
                f'({upstream.FORCED_HOST}): ask without it'))
        said = asked.hints[HINT]
        try:
            (name,) = [said] if isinstance(said, str) else said
            return str(uuid.UUID(name))
        except ValueError:
            raise _refusal(instance, (
                f'the scheduler hint {HINT} has to be the UUID of one node'
            )) from None

    def require(self, instance: objects.Instance) -> None:
        """Check that an instance that Nova has on a node is to be there.

        :param instance: the instance, with a node of Ironic as its node
        :raises nova.exception.InstanceUnacceptable: if another node was named,
            or as :meth:`node_for`
        """
        node = self.node_for(instance)
        if node not in (None, instance.node):
            raise _refusal(instance, (
                f'node {instance.node} was scheduled, and not node {node}: '
                'name it with --hypervisor-hostname as well'))


def refuse(instance: objects.Instance, node: str,
           why: reservation.Refusal) -> exception.InstanceUnacceptable:
    """Return the error that ends a build, whose one node cannot be had.

    :param instance: the instance, with its pool as its node
    :param node: the UUID of the node
    :param why: why it cannot be had
    """
    return _refusal(instance, _SENTENCES[why].format(
        node=node, pool=instance.node))


def _refusal(instance: objects.Instance, reason: str
             ) -> exception.InstanceUnacceptable:
    # Nova keeps the reason of this one, and tries no other service.
    return exception.InstanceUnacceptable(
        instance_id=instance.uuid, reason=reason)
