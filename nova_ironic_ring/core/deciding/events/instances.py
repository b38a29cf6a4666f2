# SPDX-License-Identifier: Apache-2.0

"""What happens to instances and their allocations."""

from collections.abc import Hashable
import dataclasses
import datetime

from nova_ironic_ring.core.deciding.events import base
from nova_ironic_ring.core.values import plural


@dataclasses.dataclass(frozen=True)
class InstanceTaken(base.Move):
    """This service takes an instance over.

    :ivar node: the UUID of its node
    :ivar instance: the UUID of the instance
    :ivar host: the name of the service that it belonged to
    :ivar is_dead: whether that service is dead; if not, it has consented
    """

    node: str
    instance: str
    host: str
    is_dead: bool

    def kind(self) -> Hashable:
        return self.host, self.is_dead

    def text(self) -> str:
        return (f'Instance {self.instance} on node {self.node} is taken over '
                f'from {self.host}{self._why()}.')

    def text_of_many(self, count: int) -> str:
        return (f'{count} instances are taken over from {self.host}'
                f'{self._why()}.')

    def _why(self) -> str:
        return ', which is dead' if self.is_dead else ' with its consent'


@dataclasses.dataclass(frozen=True)
class InstanceMoved(base.Move):
    """An instance has moved to another compute node of this service.

    :ivar instance: the UUID of the instance
    :ivar source: where it was: the name of a pool, or the UUID of a node
    :ivar target: where it is now
    """

    instance: str
    source: str
    target: str

    def kind(self) -> Hashable:
        return ()

    def text(self) -> str:
        return (f'Instance {self.instance} goes from compute node '
                f'{self.source} to {self.target}.')

    def text_of_many(self, count: int) -> str:
        return (f'{count} instances go to other compute nodes of this '
                f'service, such as {self.target}.')


@dataclasses.dataclass(frozen=True)
class InstanceNotTaken(base.Event):
    """An instance could not be taken over, because of an error.

    :ivar instance: the UUID of the instance
    :ivar host: the name of the service that it belongs to
    :ivar error: the error
    """

    LEVEL = base.Level.ERROR

    instance: str
    host: str
    error: Exception

    def text(self) -> str:
        return (f'Instance {self.instance} of {self.host} cannot be taken '
                f'over: {self.error}')


@dataclasses.dataclass(frozen=True)
class AllocationNotMoved(base.Event):
    """Placement does not move the allocation of an instance.

    The destination has no room for it, the allocation is on another provider,
    or another service moves it at the same time.

    :ivar instance: the UUID of the instance
    :ivar target: the destination: the name of a pool, or the UUID of a node
    """

    LEVEL = base.Level.WARNING

    instance: str
    target: str

    def text(self) -> str:
        return ('Placement does not move the allocation of instance '
                f'{self.instance} to {self.target}: there is no room, or '
                'the allocation is elsewhere. The next pass tries again.')


@dataclasses.dataclass(frozen=True)
class InstanceElsewhere(base.Event):
    """Ironic has an instance on a node, and Nova does not have it there.

    :ivar node: the UUID of the node
    :ivar instance: the UUID of the instance
    :ivar host: the name of the service that the instance belongs to
    """

    LEVEL = base.Level.WARNING

    node: str
    instance: str
    host: str

    def text(self) -> str:
        return (f'Ironic has instance {self.instance} on node {self.node}, '
                'and Nova does not have it there: the instance stays with '
                f'{self.host}. See who has set instance_uuid of the node.')


@dataclasses.dataclass(frozen=True)
class _Ended(base.Event):
    """What a dead service was to do with an instance was ended.

    :ivar node: the UUID of the node that it was for
    :ivar instance: the UUID of the instance
    :ivar host: the name of the service; None if it is not known any more
    """

    LEVEL = base.Level.INFO

    node: str
    instance: str
    host: str | None


class BuildEnded(_Ended):
    """A build was ended because its service has died."""

    def text(self) -> str:
        why = (f'the nova-compute {self.host} has died' if self.host else
               'no nova-compute builds it')
        return (f'The build of instance {self.instance} on node {self.node} '
                f'has ended, because {why}: the instance is in ERROR.')


class UnshelveEnded(_Ended):
    """An instance that was to be unshelved is not: its service has died."""

    def text(self) -> str:
        return (f'Instance {self.instance}, which was to be unshelved on node '
                f'{self.node}, stays shelved: {_nova_compute(self.host)} has '
                'died. Unshelve it again.')


@dataclasses.dataclass(frozen=True)
class BuildNotEnded(base.Event):
    """A build that a dead service has left behind could not be ended yet.

    :ivar node: the UUID of the node that it was for
    :ivar instance: the UUID of the instance; None if not known: Placement or
        Nova did not answer
    :ivar host: the name of the service; None if it is not known any more
    :ivar error: the error
    """

    node: str
    instance: str | None
    host: str | None
    error: Exception

    def level(self) -> base.Level:
        return (base.Level.WARNING if self.instance is None
                else base.Level.ERROR)

    def text(self) -> str:
        host = _nova_compute(self.host)
        if self.instance is None:
            return ('Cannot read from Placement which builds for node '
                    f'{self.node} {host} has left behind; the next pass '
                    f'tries again: {self.error}')
        return (f'The build of instance {self.instance}, which {host} has '
                f'left behind, cannot be ended yet: {self.error}')


@dataclasses.dataclass(frozen=True)
class DeploymentFailed(base.Event):
    """The deployment of an instance in a pool has failed.

    :ivar node: the UUID of the node
    :ivar instance: the UUID of the instance
    :ivar count: the number of deployments on the node that failed in a row
    :ivar until: builds try the node after all others until this time
    :ivar error: the error
    """

    LEVEL = base.Level.WARNING

    node: str
    instance: str
    count: int
    until: datetime.datetime
    error: Exception

    def text(self) -> str:
        return (f'The deployment of instance {self.instance} on node '
                f'{self.node} has failed '
                f'({plural.of(self.count, "failed deployment")} in a row on '
                'this node): until '
                f'{self.until.isoformat(timespec="seconds")}, builds try this '
                f'node after all others of its kind: {self.error}')


def _nova_compute(host: str | None) -> str:
    return f'the nova-compute {host}' if host else 'its nova-compute'
