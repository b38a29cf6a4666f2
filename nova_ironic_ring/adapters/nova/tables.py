# SPDX-License-Identifier: Apache-2.0

"""Reads a few columns of Nova's tables, for the command.

Nova's objects have all columns, in an instance each, and import most of Nova.
A command that only reads ten thousand records would spend most of its time on
these. Writes do use Nova's objects.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import datetime
from typing import Any
import urllib.parse

from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa

#: So many names are asked for at once.
_CHUNK = 1000

CELL_MAPPINGS = sa.table('cell_mappings', *map(sa.column, (
    'id', 'uuid', 'name', 'database_connection')))
AGGREGATES = sa.table('aggregates', *map(sa.column, (
    'id', 'uuid', 'name')))
AGGREGATE_HOSTS = sa.table('aggregate_hosts', *map(sa.column, (
    'aggregate_id', 'host')))
AGGREGATE_METADATA = sa.table('aggregate_metadata', *map(sa.column, (
    'aggregate_id', 'key', 'value')))
SERVICES = sa.table(
    'services', *map(sa.column, (
        'host', 'binary', 'topic', 'disabled_reason', 'deleted')),
    sa.column('disabled', sa.Boolean), sa.column('forced_down', sa.Boolean),
    sa.column('last_seen_up', sa.DateTime),
    sa.column('created_at', sa.DateTime))
COMPUTE_NODES = sa.table('compute_nodes', *map(sa.column, (
    'id', 'host', 'hypervisor_hostname', 'hypervisor_type', 'stats',
    'deleted')))
INSTANCES = sa.table('instances', *map(sa.column, (
    'uuid', 'display_name', 'host', 'node', 'vm_state', 'task_state',
    'project_id', 'deleted')))

#: By the name of the database: ``api`` or ``main``.
TABLES: Mapping[str, Sequence[sa.TableClause]] = {
    'api': (CELL_MAPPINGS, AGGREGATES, AGGREGATE_HOSTS, AGGREGATE_METADATA),
    'main': (SERVICES, COMPUTE_NODES, INSTANCES)}


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell, as Nova maps it.

    :ivar uuid: its UUID
    :ivar name: its name; its UUID where it has none of its own
    :ivar url: the connection to its database; it may be a template
    """

    uuid: str
    name: str
    url: str = dataclasses.field(repr=False)


def filled(template: str, connection: str | None) -> str | None:
    """Fill in the template of a connection to a database.

    The variables are those of "Template URLs in Cell Mappings" in
    https://docs.openstack.org/nova/latest/admin/cells.html.

    :param template: as a mapping of a cell has it
    :param connection: ``[database] connection`` of nova.conf
    :returns: None if it has other variables, or the connection several hosts
    """
    parts = urllib.parse.urlsplit(connection or '')
    if not parts.scheme or ',' in parts.netloc:
        return None
    try:
        return template.format(
            scheme=parts.scheme, username=parts.username,
            password=parts.password, hostname=parts.hostname,
            port=parts.port, path=parts.path.lstrip('/'), query=parts.query,
            fragment=parts.fragment)
    except (LookupError, ValueError):
        return None


class Database:
    """A database of Nova, read without Nova's objects.

    A method raises oslo_db.exception.DBError, or CantStartEngineError, if the
    database cannot be reached.
    """

    def __init__(self, options: cfg.ConfigOpts.GroupAttr,
                 url: str | None = None) -> None:
        """Choose the database; it is connected to when it is asked.

        :param options: ``[database]`` or ``[api_database]`` of nova.conf
        :param url: the connection; None for the one in the options
        """
        self._manager = enginefacade.transaction_context()
        said = dict(options.items())
        if url is not None:
            said['connection'] = url
        # A user at a terminal must not wait for retries.
        self._manager.configure(**said | {'max_retries': 0})

    @contextlib.contextmanager
    def _connect(self) -> Iterator[sa.Connection]:
        try:
            engine = self._manager.writer.get_engine()
        except (sa.exc.ArgumentError, ImportError, ValueError) as error:
            # It is no connection, or its driver is not installed here.
            raise db_exception.CantStartEngineError(str(error)) from error
        with engine.connect() as connection:
            yield connection

    def cells(self) -> list[Cell]:
        """Return all cells, in Nova's order."""
        table = CELL_MAPPINGS.c
        with self._connect() as connection:
            found = connection.execute(sa.select(
                table.uuid, table.name, table.database_connection,
            ).order_by(table.id)).all()
        names = [name for _, name, _ in found]
        return [Cell(uuid, name if name and names.count(name) == 1 else uuid,
                     url) for uuid, name, url in found]

    def aggregates(self) -> list[tuple[str, str, str | None, str]]:
        """Return the aggregates of hosts.

        :returns: UUID, name and availability zone of each, and the name of a
            host; once for each of its hosts
        """
        hosts, zones = AGGREGATE_HOSTS.c, AGGREGATE_METADATA.c
        with self._connect() as connection:
            return [(uuid, name, zone, host) for uuid, name, zone, host
                    in connection.execute(sa.select(
                        AGGREGATES.c.uuid, AGGREGATES.c.name, zones.value,
                        hosts.host)
                    .select_from(AGGREGATE_HOSTS.join(
                        AGGREGATES, AGGREGATES.c.id == hosts.aggregate_id)
                        .outerjoin(AGGREGATE_METADATA, sa.and_(
                            zones.aggregate_id == hosts.aggregate_id,
                            zones.key == 'availability_zone'))))]

    def services(self) -> list[dict[str, Any]]:
        """Return the nova-computes, by column.

        Times are with time zone.
        """
        table = SERVICES.c
        with self._connect() as connection:
            return [{**row._mapping,
                     'last_seen_up': _utc(row.last_seen_up),
                     'created_at': _utc(row.created_at)}
                    for row in connection.execute(
                        sa.select(SERVICES).where(
                            table.deleted == 0,
                            table.binary == 'nova-compute'))]

    def compute_nodes(self) -> Sequence[sa.Row]:
        """Return the records of nodes: host, name, type and statistics."""
        table = COMPUTE_NODES.c
        with self._connect() as connection:
            return connection.execute(
                sa.select(table.host, table.hypervisor_hostname,
                          table.hypervisor_type, table.stats)
                .where(table.deleted == 0).order_by(table.id)).all()

    def instances(self, hosts: Iterable[str] = (), uuids: Iterable[str] = (),
                  names: Iterable[str] = ()) -> list[sa.Row]:
        """Return the instances that are not deleted, or can be restored.

        :param hosts: the names of the services whose instances are wanted
        :param uuids: the UUIDs of other wanted instances
        :param names: the names of other wanted instances
        """
        table = INSTANCES.c
        found = []
        with self._connect() as connection:
            for column, wanted in ((table.host, hosts), (table.uuid, uuids),
                                   (table.display_name, names)):
                values = sorted(wanted)
                for first in range(0, len(values), _CHUNK):
                    found += connection.execute(sa.select(
                        table.uuid, table.display_name, table.host,
                        table.node, table.vm_state, table.task_state,
                        table.project_id).where(
                            table.deleted == 0, column.in_(
                                values[first:first + _CHUNK]))).all()
        return found


def _utc(time: datetime.datetime | None) -> datetime.datetime | None:
    return time and time.replace(tzinfo=datetime.timezone.utc)
