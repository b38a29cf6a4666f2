# SPDX-License-Identifier: Apache-2.0

"""Makes a history of what Nova's records tell, line by line."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import datetime
import enum
from typing import Any

from nova_ironic_ring.adapters import actions
from nova_ironic_ring.adapters import history
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.values import model


class Code(enum.Enum):
    """What a record tells; the names are for programs, and stay."""

    SERVICE_CREATED = enum.auto()
    #: A service was heard of last.
    SERVICE_SEEN = enum.auto()
    SERVICE_DELETED = enum.auto()
    #: A compute node has got a record.
    RECORD_CREATED = enum.auto()
    RECORD_DELETED = enum.auto()
    SERVER_CREATED = enum.auto()
    SERVER_DELETED = enum.auto()


#: What the record of a service tells, for programs.
OF_SERVICES = frozenset({
    Code.SERVICE_CREATED.name, Code.SERVICE_SEEN.name,
    Code.SERVICE_DELETED.name})

#: What the actions of instances tell, by the name of their event.
EVENTS: Mapping[str, audit.Code] = {
    **{name: code for code, name in audit.ACTIONS.items()},
    actions.ASKED: audit.Code.SERVICE_FORCED_DOWN}


@dataclasses.dataclass(frozen=True)
class Line:
    """Something that has happened.

    :ivar at: when, with time zone
    :ivar code: what, as programs know it
    :ivar server: the UUID of the instance; empty for none
    :ivar node: the UUID of the node, or the name of the pool
    :ivar source: the name of the service that had it
    :ivar target: the name of the service that has it from then on
    :ivar reason: why
    :ivar author: who has done it: a service, or somebody with the command
    :ivar command: what that one has typed
    :ivar request: the UUID of the instance's action
    """

    at: datetime.datetime
    code: str
    server: str = ''
    node: str = ''
    source: str = ''
    target: str = ''
    reason: str = ''
    author: str = ''
    command: str = ''
    request: str = ''


def find(past: history.History, name: str, node: snapshot.Node | None = None
         ) -> list[Line] | None:
    """Tell what the records of a cell have of a host, a node or a server.

    :param past: the records
    :param name: what it is called by
    :param node: the node of Ironic that is called so; None if there is none
    :returns: in the order of time; None if there is no such record
    """
    services = past.services(name)
    places = [name] + ([node.uuid] if node else [])
    rows = past.rows(places, services[0].name if services else None)
    all_done = past.actions()
    on_node = {action.instance for action in all_done
               if action.said.get('node') in places}
    if node and node.instance:
        # Of an instance in a pool, Nova does not know the node.
        on_node.add(node.instance)
    instances = past.instances(name, places, on_node)
    uuids = {each.name for each in instances}
    done = [action for action in all_done
            if action.instance in uuids or _names(action, name)]
    if not (services or rows or instances or done):
        return None
    return sorted([
        *_of_services(services), *_of_rows(rows), *_of_instances(instances),
        *_of_actions(done)], key=lambda line: line.at)


def _names(action: history.Action, host: str) -> bool:
    """Say whether an action is from, or to, a service."""
    return model.canonical(host) in {
        model.canonical(str(action.said.get(end))) for end in ('from', 'to')}


def _of_services(services: Iterable[history.Service]) -> Iterator[Line]:
    for each in services:
        if each.created:
            yield Line(each.created, Code.SERVICE_CREATED.name,
                       target=each.name)
        if each.seen:
            said = []
            if each.is_forced_down:
                said.append('forced down')
            if each.is_disabled:
                said.append('disabled')
            if each.disabled_reason:
                said.append(each.disabled_reason)
            yield Line(each.seen, Code.SERVICE_SEEN.name, target=each.name,
                       reason=': '.join(said))
        if each.deleted:
            yield Line(each.deleted, Code.SERVICE_DELETED.name,
                       source=each.name)


def _of_rows(rows: Iterable[history.Record]) -> Iterator[Line]:
    for row in rows:
        if row.created:
            # Nova has one record of a node, whose host changes: that it was
            # made for the present one is not said.
            yield Line(row.created, Code.RECORD_CREATED.name, node=row.name,
                       target=row.host or '')
        if row.deleted:
            yield Line(row.deleted, Code.RECORD_DELETED.name, node=row.name,
                       source=row.host or '')


def _of_instances(instances: Iterable[history.Instance]) -> Iterator[Line]:
    for each in instances:
        if each.created:
            yield Line(each.created, Code.SERVER_CREATED.name, each.name,
                       reason=each.display_name)
        if each.deleted:
            yield Line(each.deleted, Code.SERVER_DELETED.name, each.name,
                       each.node or '', source=each.host or '',
                       reason=each.display_name)


def _of_actions(done: Iterable[history.Action]) -> Iterator[Line]:
    for each in done:
        said = {name: value or '' for name, value in each.said.items()}
        author = _author(said.get('by'))
        yield Line(
            each.at, EVENTS[each.name].name if each.name in EVENTS
            else each.name, each.instance, said.get('node', ''),
            said.get('from', ''), said.get('to', ''), said.get('reason', ''),
            str(author) if author else each.host or '',
            author.arguments if author else '', each.request)


def _author(said: Any) -> audit.Author | None:
    """Say who has run a command, if somebody has."""
    try:
        return audit.Author(**said)
    except TypeError:
        # Nobody, or another release has written it.
        return None
