# SPDX-License-Identifier: Apache-2.0

"""The command ``history``: prints what Nova's records tell of the past."""

import argparse
from collections.abc import Iterable, Sequence
import dataclasses
import datetime
import re
from typing import TYPE_CHECKING

from cliff import lister
from oslo_utils import uuidutils

from nova_ironic_ring.command import base
from nova_ironic_ring.command import errors
from nova_ironic_ring.command import snapshot

if TYPE_CHECKING:
    from nova_ironic_ring.command import past

_UNITS = {'m': 'minutes', 'h': 'hours', 'd': 'days'}


@dataclasses.dataclass(frozen=True)
class _Found:
    """What is known of a host, a node or a server.

    :ivar lines: that, in the order of time
    :ivar node: the node of Ironic, where that was asked and has it
    """

    lines: 'Sequence[past.Line]'
    node: snapshot.Node | None = None


class History(base.Codes, lister.Lister):
    """Show what Nova's records tell of a node, a server or a service.

    Deleted records are shown as well, until "nova-manage db
    archive_deleted_rows" takes them away. Times are in UTC.
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
            help='only what was later: a time such as 2026-01-31T12:00, in '
                 'UTC unless it says otherwise; or 30m, 12h, 7d ago')
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
        """Find out what the records of all cells tell.

        :raises CommandError: if there is none, and Ironic has no such node
        """
        lines = self._of_cells(name)
        if lines is not None and not _may_be_of_a_node(lines, name):
            return _Found(lines)
        # Only Ironic knows the names of nodes, and which instance is on one
        # that counts in a pool. Where there is something of that name, it is
        # no beginning of a UUID.
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
                  ) -> 'list[past.Line] | None':
        # These modules are slow to import.
        from nova_ironic_ring.adapters import history
        from nova_ironic_ring.command import past
        found: 'list[past.Line] | None' = None
        for cell in self.source.cells():
            with self.source.cell_of(cell.name) as opened:
                lines = past.find(
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


def _may_be_of_a_node(lines: 'Sequence[past.Line]', name: str) -> bool:
    """Say whether a node may have a name by which Nova has found something.

    A project may call its servers as nodes are called.

    :param lines: what Nova has found
    """
    from nova_ironic_ring.command import past
    if uuidutils.is_uuid_like(name):
        return any(line.node == name for line in lines)
    return not any(line.code in past.OF_SERVICES for line in lines)


def read_time(words: str, now: datetime.datetime) -> datetime.datetime:
    """Read a time.

    :param words: how it was typed
    :param now: what time it is, with time zone
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
