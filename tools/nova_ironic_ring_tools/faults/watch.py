# SPDX-License-Identifier: Apache-2.0

"""Counts each change of the owner of a node, with triggers in the database."""

import collections
from collections.abc import Mapping
import dataclasses
import datetime

from nova_ironic_ring.core.values import member
from nova_ironic_ring.lab import cloud

_SCHEMA = 'watch'
_SETUP = f'''
CREATE DATABASE IF NOT EXISTS {_SCHEMA};
CREATE TABLE IF NOT EXISTS {_SCHEMA}.changes (
    id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME(3), node CHAR(36),
    old VARCHAR(255), new VARCHAR(255));
CREATE OR REPLACE TRIGGER nova.watch_owners
    AFTER UPDATE ON nova.compute_nodes FOR EACH ROW
    INSERT INTO {_SCHEMA}.changes (at, node, old, new)
    SELECT UTC_TIMESTAMP(3), NEW.uuid, OLD.host,
           IF(NEW.deleted, NULL, NEW.host)
    FROM DUAL WHERE (OLD.host <> NEW.host OR OLD.deleted <> NEW.deleted)
    AND NEW.hypervisor_hostname NOT LIKE '%{member.SUFFIX}';
CREATE TABLE IF NOT EXISTS {_SCHEMA}.providers (
    id INT AUTO_INCREMENT PRIMARY KEY, node CHAR(36));
CREATE OR REPLACE TRIGGER placement.watch_providers
    AFTER DELETE ON placement.resource_providers FOR EACH ROW
    INSERT INTO {_SCHEMA}.providers (node) SELECT OLD.uuid
    FROM DUAL WHERE OLD.name NOT LIKE '%{member.SUFFIX}';
'''


@dataclasses.dataclass(frozen=True)
class Change:
    """A node that went from one service to another.

    :ivar at: when, by the clock of the database, in UTC
    :ivar node: the node's UUID
    :ivar old: the record owner before
    :ivar new: the record owner afterwards; None if the record was deleted
    """

    at: datetime.datetime
    node: str
    old: str
    new: str | None


class Watch:
    """Watches the nodes' records of a lab."""

    def __init__(self, lab: cloud.Lab) -> None:
        """Begin to watch.

        :param lab: the lab
        """
        self.lab = lab
        self._last = 0
        with lab.database.connect() as opened, opened.cursor() as cursor:
            for statement in _SETUP.split(';\n'):
                if statement.strip():
                    cursor.execute(statement)

    def now(self) -> datetime.datetime:
        """Return the time by the clock of the database, in UTC."""
        with self.lab.cell() as opened, opened.cursor() as cursor:
            cursor.execute('SELECT UTC_TIMESTAMP(3)')
            ((now,),) = cursor.fetchall()
        return now

    def restart(self) -> None:
        """Forget the changes until now."""
        changes = self._read(0)
        self._last = changes[-1][0] if changes else 0

    def changes(self) -> list[Change]:
        """Return the changes since the last restart, in their order."""
        return [Change(*change[1:]) for change in self._read(self._last)]

    def lost_providers(self) -> int:
        """Return how many resource providers were deleted since the start."""
        with self.lab.cell() as opened, opened.cursor() as cursor:
            cursor.execute(f'SELECT COUNT(*) FROM {_SCHEMA}.providers')
            ((count,),) = cursor.fetchall()
        return count

    def _read(self, after: int) -> list[tuple]:
        with self.lab.cell() as opened, opened.cursor() as cursor:
            cursor.execute(
                'SELECT id, at, node, old, new '
                f'FROM {_SCHEMA}.changes WHERE id > %s ORDER BY id', (after,))
            return list(cursor.fetchall())


def most_for_one_node(changes: list[Change]) -> int:
    """Return the largest number of changes of one node.

    :param changes: the changes
    """
    counts = collections.Counter(change.node for change in changes)
    return max(counts.values(), default=0)


def needed(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Return how many changes were necessary.

    :param before: the owner of each node before
    :param after: the owner of each node after
    """
    return sum(after.get(node) != owner for node, owner in before.items())
