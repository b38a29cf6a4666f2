# SPDX-License-Identifier: Apache-2.0

"""Makes audit log entries and notifications of the events of a pass.

There is one entry for each change of owner, of members and of trust, and for
each service that begins or ends to go by another ring. Other events only have
a line in the service's log.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import enum

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model


class Code(enum.Enum):
    """What has happened; programs read the names, which never change."""

    #: A free node goes from one service to another, or to its first one.
    NODE_TAKEN = enum.auto()
    #: A service lets another one take a free node.
    NODE_OFFERED = enum.auto()
    #: A node counts in a pool, and has no record of its own any more.
    NODE_POOLED = enum.auto()
    #: An instance goes to another service with the consent of its own.
    INSTANCE_TAKEN = enum.auto()
    #: An instance of a dead service goes to another one.
    INSTANCE_FAILED_OVER = enum.auto()
    #: An instance is on another compute node of the same service.
    INSTANCE_PLACED = enum.auto()
    #: A build has ended, for its service has died.
    BUILD_ENDED = enum.auto()
    UNSHELVE_ENDED = enum.auto()
    #: The record of a node that Ironic does not have is deleted.
    RECORD_REMOVED = enum.auto()
    MEMBER_JOINED = enum.auto()
    MEMBER_LEFT = enum.auto()
    TRUST_CHANGED = enum.auto()
    #: Another service has acknowledged another ring for long, or no longer
    #: does.
    RINGS_DIFFER = enum.auto()
    RINGS_AGREE = enum.auto()
    #: Somebody runs a command that changes something; then what it has done.
    COMMAND_BEGUN = enum.auto()
    INSTANCE_MOVED = enum.auto()
    SERVICE_DISABLED = enum.auto()
    SERVICE_ENABLED = enum.auto()
    SERVICE_FORCED_DOWN = enum.auto()
    PROVIDER_REMOVED = enum.auto()
    #: A node is in another shard of Ironic, or in none.
    SHARD_SET = enum.auto()
    COMMAND_ENDED = enum.auto()


@dataclasses.dataclass(frozen=True)
class Author:
    """Who has run a command.

    :ivar user: the name of the user of the operating system
    :ivar host: where that was
    :ivar openstack_user: the user that the environment names for OpenStack's
        clients; None if it names none
    :ivar arguments: the command, as it was typed
    """

    user: str
    host: str
    openstack_user: str | None
    arguments: str

    def __str__(self) -> str:
        known = f' ({self.openstack_user})' if self.openstack_user else ''
        return f'{self.user}{known} on {self.host}'


@dataclasses.dataclass(frozen=True)
class Entry:
    """One thing that has happened.

    :ivar code: what it is
    :ivar host: the name of the service that reports it, or of the machine that
        a command runs on
    :ivar service: the name of the service that it is about
    :ivar node: the UUID of the node, or the name of the pool
    :ivar instance: the UUID of the instance
    :ivar source: the former owner, or the former value
    :ivar target: the new owner, or the new value
    :ivar reason: the reason: a code, or the text that a person has given
    :ivar author: who has run the command
    """

    code: Code
    host: str
    service: str | None = None
    node: str | None = None
    instance: str | None = None
    source: str | None = None
    target: str | None = None
    reason: str | None = None
    author: Author | None = None

    def values(self) -> dict[str, object]:
        """Return the fields, by the names that programs read."""
        return {
            'event': self.code.name, 'host': self.host,
            'service': self.service, 'node': self.node,
            'instance': self.instance, 'from': self.source,
            'to': self.target, 'reason': self.reason,
            'by': dataclasses.asdict(self.author) if self.author else None}


#: Why an instance is taken over: its service consents; or that service is
#: dead, and is in no ring that would give a reason.
CONSENT, DEAD = 'CONSENT', 'DEAD'

#: The names of the actions that instances have of these entries.
ACTIONS: Mapping[Code, str] = {
    Code.INSTANCE_TAKEN: 'ironic_ring_takeover',
    Code.INSTANCE_FAILED_OVER: 'ironic_ring_failover',
    Code.INSTANCE_MOVED: 'ironic_ring_move'}


def entries(happened: Iterable[events.Event], me: str, known: view.View
            ) -> list[Entry]:
    """Return the audit entries of events.

    :param happened: the events, in their order
    :param me: the name of the service to which they happened
    :param known: what it knows of the others
    """
    return [entry for event in happened
            for entry in _entries(event, me, known)]


def _entries(event: events.Event, me: str, known: view.View
             ) -> Iterator[Entry]:
    match event:
        case events.NodeTaken():
            yield Entry(Code.NODE_TAKEN, me, node=event.node,
                        source=event.owner, target=me,
                        reason=event.decision.name)
        case events.NodeOffered():
            yield Entry(Code.NODE_OFFERED, me, node=event.node, source=me,
                        target=event.taker)
        case events.NodesPooled():
            for node in event.nodes:
                yield Entry(Code.NODE_POOLED, me, node=node, target=me)
        case events.InstanceTaken():
            yield Entry(
                Code.INSTANCE_FAILED_OVER if event.is_dead
                else Code.INSTANCE_TAKEN, me, node=event.node,
                instance=event.instance, source=event.host, target=me,
                reason=_why_dead(event.host, known) if event.is_dead
                else CONSENT)
        case events.InstanceMoved():
            yield Entry(Code.INSTANCE_PLACED, me, instance=event.instance,
                        source=event.source, target=event.target)
        case events.UnshelveEnded():
            yield Entry(Code.UNSHELVE_ENDED, me, node=event.node,
                        instance=event.instance, source=event.host)
        case events.BuildEnded():
            yield Entry(Code.BUILD_ENDED, me, node=event.node,
                        instance=event.instance, source=event.host)
        case events.RecordRemoved():
            yield Entry(Code.RECORD_REMOVED, me, node=event.node,
                        source=event.host)
        case events.MembersChanged():
            yield from _of_members(event, me)
        case events.TrustChanged():
            yield Entry(Code.TRUST_CHANGED, me, source=event.before.name,
                        target=event.now.name)
        case events.RingsDiffer() | events.RingsAgree():
            code = (Code.RINGS_DIFFER if isinstance(event, events.RingsDiffer)
                    else Code.RINGS_AGREE)
            for host in sorted(event.hosts):
                yield Entry(code, me, service=host)


def _why_dead(host: str, known: view.View) -> str:
    """Return why a service is dead, as far as the ring knows."""
    state = known.states.get(model.canonical(host))
    return state.name if state is not None and state.is_lost else DEAD


def _of_members(event: events.MembersChanged, me: str) -> Iterator[Entry]:
    before, now = event.before, event.now.members
    for host in sorted(now - before):
        yield Entry(Code.MEMBER_JOINED, me, service=host)
    for host in sorted(before - now):
        yield Entry(Code.MEMBER_LEFT, me, service=host,
                    reason=event.now.state(host).name)
