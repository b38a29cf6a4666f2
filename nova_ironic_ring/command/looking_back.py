# SPDX-License-Identifier: Apache-2.0

"""The command ``history``: prints what Nova's records contain of the past."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import enum
import re
from typing import Any, TYPE_CHECKING

from cliff import lister
from oslo_utils import uuidutils

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import app
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.values import model

if TYPE_CHECKING:
    from nova_ironic_ring.adapters.trail import history

_UNITS = {'m': 'minutes', 'h': 'hours', 'd': 'days'}


class RecordCode(enum.Enum):
    """The kinds of events; the names are for programs, and stay."""

    SERVICE_CREATED = enum.auto()
    #: The last heartbeat of a service.
    SERVICE_SEEN = enum.auto()
    SERVICE_DELETED = enum.auto()
    #: The record of a compute node was created.
    RECORD_CREATED = enum.auto()
    RECORD_DELETED = enum.auto()
    SERVER_CREATED = enum.auto()
    SERVER_DELETED = enum.auto()


# The events in the record of a service, for programs.
_OF_SERVICES = frozenset({
    RecordCode.SERVICE_CREATED.name, RecordCode.SERVICE_SEEN.name,
    RecordCode.SERVICE_DELETED.name})


@dataclasses.dataclass(frozen=True)
class HistoryLine:
    """Something that has happened.

    :ivar at: when, with time zone
    :ivar code: what, as programs know it
    :ivar server: the UUID of the instance; empty for none
    :ivar node: the UUID of the node, or the name of the pool
    :ivar source: the name of the service that had it
    :ivar target: the name of the service that has it from then on
    :ivar reason: why
    :ivar author: the author: a service, or a user of the command
    :ivar command: the command line of that user
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


@dataclasses.dataclass(frozen=True)
class _Found:
    """What is known of a host, a node or a server.

    :ivar lines: that, in the order of time
    :ivar node: the node of Ironic, where that was asked and has it
    """

    lines: Sequence[HistoryLine]
    node: snapshot.Node | None = None


class History(app.Codes, lister.Lister):
    """Show what has happened to a node, a server or a service.

    The source is Nova's records. This includes deleted records, until
    "nova-manage db archive_deleted_rows" removes them. Times are in UTC.
    """

    codes = ('Command', 'Request')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'name', metavar='NODE|SERVER|HOST',
            help='the name or UUID of a node or of a server, or the name of a '
                 'service')
        parser.add_argument(
            '--since', metavar='TIME',
            help='only later events: a time such as 2026-01-31T12:00, in '
                 'UTC unless it has a time zone; or 30m, 12h, 7d ago')
        return parser

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        name = parsed_args.name
        since = parsed_args.since and read_time(
            parsed_args.since, datetime.datetime.now(datetime.timezone.utc))
        found = self._find(name)
        lines = [line for line in found.lines
                 if since is None or line.at >= since]
        if not lines:
            what = f'node {name}' if found.node else name
            later = f' since {parsed_args.since}' if since else ''
            self.say(f'Nothing is known of {what}{later}.')
        return (('Time', 'Event', 'Server', 'Node', 'From', 'To', 'Reason',
                 'By', *self.codes),
                [(line.at.isoformat(timespec='seconds'), line.code,
                  line.server, line.node, line.source, line.target,
                  line.reason, line.author, line.command, line.request)
                 for line in lines])

    def _find(self, name: str) -> _Found:
        """Read the records of all cells.

        :raises CommandError: if there is none, and Ironic has no such node
        """
        lines = self._of_cells(name)
        if lines is not None and not _may_be_of_a_node(lines, name):
            return _Found(lines)
        # Only Ironic knows the names of nodes, and the instance of a node that
        # counts in a pool. If something has the name, it is not the beginning
        # of a UUID.
        try:
            node = (self._node(name) if lines is None
                    else self.source.node(name))
        except errors.CommandError as error:
            if lines is None:
                raise
            self.say(str(error))
            node = None
        if node is not None:
            lines = self._of_cells(name, node) or []
        if lines is None:
            raise errors.CommandError(
                f'Nova has no record of a service, a node or a server '
                f'"{name}", and Ironic has no such node: see '
                '"nova-ironic-ring show" and "nova-ironic-ring node list".')
        return _Found(lines, node)

    def _of_cells(self, name: str, node: snapshot.Node | None = None
                  ) -> list[HistoryLine] | None:
        # It is slow to import.
        from nova_ironic_ring.adapters.trail import history
        found: list[HistoryLine] | None = None
        for cell in self.source.cells():
            with self.source.cell_of(cell.name) as opened:
                lines = find(
                    history.History(opened.context), name, node)
            if lines is not None:
                found = sorted([*(found or []), *lines],
                               key=lambda line: line.at)
        return found

    def _node(self, name: str) -> snapshot.Node | None:
        """Find a node by its name, or the beginning of its UUID.

        :raises CommandError: if there is more than one
        """
        node = self.source.node(name)
        if node is not None:
            return node
        found = [node for node in self.source.nodes().values()
                 if node.uuid.startswith(name.lower())]
        if len(found) > 1:
            raise errors.CommandError(
                f'Ironic has {len(found)} nodes "{name}": give the UUID.')
        return found[0] if found else None


def _may_be_of_a_node(lines: Sequence[HistoryLine], name: str) -> bool:
    """Return whether a node may also have a name that Nova knows.

    A project may give its servers the names of nodes.

    :param lines: what Nova has found
    """
    if uuidutils.is_uuid_like(name):
        return any(line.node == name for line in lines)
    return not any(line.code in _OF_SERVICES for line in lines)


def read_time(words: str, now: datetime.datetime) -> datetime.datetime:
    """Read a time.

    :param words: the argument
    :param now: the current time, with time zone
    :raises CommandError: if it is none
    """
    if ago := re.fullmatch(r'(\d{1,5})([mhd])', words):
        return now - datetime.timedelta(
            **{_UNITS[ago[2]]: int(ago[1])})
    try:
        at = datetime.datetime.fromisoformat(words)
    except ValueError as error:
        raise errors.CommandError(
            f'"{words}" is no time: give one such as 2026-01-31T12:00, or '
            '12h for the last 12 hours.') from error
    return at if at.tzinfo else at.replace(tzinfo=datetime.timezone.utc)


def find(past: 'history.History', name: str, node: snapshot.Node | None = None
         ) -> list[HistoryLine] | None:
    """Return the recorded events of a host, a node or a server in a cell.

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
        # Nova does not know the node of an instance in a pool.
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


def _names(action: 'history.Action', host: str) -> bool:
    """Return whether an action is from, or to, a service."""
    return model.canonical(host) in {
        model.canonical(str(action.said.get(end))) for end in ('from', 'to')}


def _of_services(services: 'Iterable[history.Service]'
                 ) -> Iterator[HistoryLine]:
    for each in services:
        if each.created:
            yield HistoryLine(each.created, RecordCode.SERVICE_CREATED.name,
                              target=each.name)
        if each.seen:
            said = []
            if each.is_forced_down:
                said.append('forced down')
            if each.is_disabled:
                said.append('disabled')
            if each.disabled_reason:
                said.append(each.disabled_reason)
            yield HistoryLine(each.seen, RecordCode.SERVICE_SEEN.name,
                              target=each.name, reason=': '.join(said))
        if each.deleted:
            yield HistoryLine(each.deleted, RecordCode.SERVICE_DELETED.name,
                              source=each.name)


def _of_rows(rows: 'Iterable[history.Record]') -> Iterator[HistoryLine]:
    for row in rows:
        if row.created:
            # Nova has one record of a node, whose host changes. The record
            # does not name its first host.
            yield HistoryLine(row.created, RecordCode.RECORD_CREATED.name,
                              node=row.name, target=row.host or '')
        if row.deleted:
            yield HistoryLine(row.deleted, RecordCode.RECORD_DELETED.name,
                              node=row.name, source=row.host or '')


def _of_instances(instances: 'Iterable[history.Instance]'
                  ) -> Iterator[HistoryLine]:
    for each in instances:
        if each.created:
            yield HistoryLine(each.created, RecordCode.SERVER_CREATED.name,
                              each.name, reason=each.display_name)
        if each.deleted:
            yield HistoryLine(each.deleted, RecordCode.SERVER_DELETED.name,
                              each.name, each.node or '',
                              source=each.host or '',
                              reason=each.display_name)


def _of_actions(done: 'Iterable[history.Action]') -> Iterator[HistoryLine]:
    # It is slow to import.
    from nova_ironic_ring.adapters.trail import actions
    codes: Mapping[str, audit.Code] = {
        **{name: code for code, name in audit.ACTIONS.items()},
        actions.ASKED: audit.Code.SERVICE_FORCED_DOWN}
    for each in done:
        said = {name: value or '' for name, value in each.said.items()}
        author = _author(said.get('by'))
        yield HistoryLine(
            each.at, codes[each.name].name if each.name in codes
            else each.name, each.instance, said.get('node', ''),
            said.get('from', ''), said.get('to', ''), said.get('reason', ''),
            str(author) if author else each.host or '',
            author.arguments if author else '', each.request)


def _author(said: Any) -> audit.Author | None:
    """Return who has run a command, if known."""
    try:
        return audit.Author(**said)
    except TypeError:
        # There is no author, or another release has written it.
        return None
