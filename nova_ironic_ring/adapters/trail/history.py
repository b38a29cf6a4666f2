# SPDX-License-Identifier: Apache-2.0

"""Reads past events from Nova's database, including deleted records.

Nova's objects leave deleted records out, and find the actions of one instance
only, so the tables are read as Nova's own tools read them.
"""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import datetime
import json
from typing import Any

from nova import context as nova_context
from nova.db.main import api as db
from nova.db.main import models
import sqlalchemy as sa
from sqlalchemy import engine
from sqlalchemy import sql

from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.values import model


@dataclasses.dataclass(frozen=True)
class Action:
    """An event of an instance action that this project has written.

    :ivar at: when it was, with time zone
    :ivar name: its name
    :ivar instance: the UUID of the instance
    :ivar request: the UUID of the action, as Nova's API wants it
    :ivar host: the name of the service, or machine, that has written it
    :ivar said: its further content
    """

    at: datetime.datetime
    name: str
    instance: str
    request: str
    host: str | None
    said: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Record:
    """A record that is or was.

    :ivar name: the UUID of the node, or of the instance; the name of the pool,
        or of the service
    :ivar host: the name of the service
    :ivar created: when it was made, with time zone; None if not known
    :ivar deleted: when it was deleted, likewise; None if it is not
    """

    name: str
    host: str | None
    created: datetime.datetime | None
    deleted: datetime.datetime | None


@dataclasses.dataclass(frozen=True)
class Instance(Record):
    """An instance.

    :ivar display_name: its name
    :ivar node: the UUID of the node, or the name of the pool
    """

    display_name: str
    node: str | None


@dataclasses.dataclass(frozen=True)
class Service(Record):
    """A nova-compute.

    :ivar seen: when it was heard of last, with time zone; None if never
    :ivar is_disabled: whether it is disabled
    :ivar disabled_reason: why
    :ivar is_forced_down: whether it is forced down
    """

    seen: datetime.datetime | None
    is_disabled: bool
    disabled_reason: str | None
    is_forced_down: bool


class History:
    """The past of one cell."""

    def __init__(self, context: nova_context.RequestContext) -> None:
        """Choose the cell.

        :param context: the context of the cell
        """
        self._context = context

    def actions(self, since: datetime.datetime | None = None
                ) -> list[Action]:
        """Read the actions of this project's, of all instances.

        :param since: when the first of them was; None for all
        """
        action, event = models.InstanceAction, models.InstanceActionEvent
        wanted = sa.select(
            event.start_time, event.event, action.instance_uuid,
            action.request_id, event.host, event.details).join(
                event, event.action_id == action.id).where(
                    action.action.in_(sorted(audit.ACTIONS.values())),
                    # Nova adds to the last action where it finds no other.
                    event.event.like('ironic_ring_%')).order_by(event.id)
        if since is not None:
            wanted = wanted.where(event.start_time >= _naive(since))
        return [Action(_aware(at), name, instance, request, host,
                       _read(said))
                for at, name, instance, request, host, said
                in self._rows(wanted)]

    def rows(self, names: Collection[str] = (), host: str | None = None
             ) -> list[Record]:
        """Read records of compute nodes.

        :param names: UUIDs of nodes, and names of pools
        :param host: the name of a service, all of whose records are read
        """
        row = models.ComputeNode
        wanted = row.hypervisor_hostname.in_(sorted(names))
        if host is not None:
            wanted |= row.host == host
        return [Record(name, owner, _aware(created), _aware(deleted))
                for name, owner, created, deleted in self._rows(sa.select(
                    row.hypervisor_hostname, row.host, row.created_at,
                    row.deleted_at).where(wanted).order_by(row.id))]

    def instances(self, name: str, nodes: Iterable[str],
                  uuids: Iterable[str]) -> list[Instance]:
        """Read instances.

        :param name: the name, or UUID, of some
        :param nodes: where others are: UUIDs of nodes, and names of pools
        :param uuids: UUIDs of others
        """
        each = models.Instance
        wanted = sa.or_(
            each.uuid.in_(sorted({*uuids, name})), each.display_name == name,
            each.node.in_(sorted(nodes)))
        return [Instance(
            uuid, host, _aware(created), _aware(deleted), shown or '', place)
            for uuid, host, created, deleted, shown, place in self._rows(
                sa.select(each.uuid, each.host, each.created_at,
                          each.deleted_at, each.display_name, each.node
                          ).where(wanted).order_by(each.id))]

    def services(self, host: str) -> list[Service]:
        """Read the records of a nova-compute.

        :param host: its name, in any case
        """
        each = models.Service
        return [Service(
            name, name, _aware(created), _aware(deleted), _aware(seen),
            bool(disabled), reason, bool(forced))
            for name, created, deleted, seen, disabled, reason, forced
            in self._rows(sa.select(
                each.host, each.created_at, each.deleted_at,
                each.last_seen_up, each.disabled, each.disabled_reason,
                each.forced_down).where(
                    each.binary == 'nova-compute').order_by(each.id))
            if model.canonical(name) == model.canonical(host)]

    def _rows(self, wanted: sql.Select) -> list[engine.Row]:
        with db.get_context_manager(self._context).reader.using(
                self._context) as session:
            return list(session.execute(wanted))


def _aware(at: datetime.datetime | None) -> Any:
    """Return a time of the database, which has UTC, with its zone."""
    return at and at.replace(tzinfo=datetime.timezone.utc)


def _naive(at: datetime.datetime) -> datetime.datetime:
    return at.astimezone(datetime.timezone.utc).replace(tzinfo=None)


def _read(details: str | None) -> Mapping[str, Any]:
    """Read the details of an event; empty if it is not ours."""
    try:
        said = json.loads(details or '')
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
