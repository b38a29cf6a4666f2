# SPDX-License-Identifier: Apache-2.0

"""The ring as Nova's database shows it."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import datetime

import pymysql

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings


@dataclasses.dataclass(frozen=True)
class Row:
    """A node's record.

    :ivar node: the node's UUID
    :ivar owner: the service that the record belongs to
    :ivar free: whether no instance is on the node
    """

    node: str
    owner: str
    free: bool = True


@dataclasses.dataclass(frozen=True)
class Pool:
    """A pool of a service with the pool driver.

    :ivar owner: the service
    :ivar total: how many nodes it has in Placement
    :ivar reserved: how many of these cannot be built on
    :ivar uuid: the UUID of its record and resource provider
    """

    owner: str
    total: int
    reserved: int
    uuid: str = ''


@dataclasses.dataclass
class Member:
    """A line of the table: a service, and what it has.

    :ivar host: the name of the service
    :ivar state: its state in the ring, such as ``member``
    :ivar owned: nodes recorded as its own, or counted in its pools
    :ivar desired: nodes that the ring maps to it
    :ivar instances: instances that belong to it
    """

    host: str
    state: str
    owned: int = 0
    desired: int = 0
    instances: int = 0


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """What the database says at one time.

    :ivar now: the time, with time zone
    :ivar services: the nova-computes
    :ivar rows: the nodes' records
    :ivar instances: how many instances belong to each host
    :ivar pools: the pools of services with the pool driver
    :ivar nodes: if there are pools, for each of Ironic's nodes, by its UUID,
        the service that has the instance on it; None for a free node
    """

    now: datetime.datetime
    services: Sequence[model.Service]
    rows: Sequence[Row]
    instances: dict[str, int]
    pools: Sequence[Pool] = ()
    nodes: Mapping[str, str | None] = dataclasses.field(default_factory=dict)

    def ring(self, down_time: float, partitions: int) -> ring.Ring | None:
        """Return the ring of the members, or None if there are none.

        :param down_time: seconds without a heartbeat after which a service is
            down
        :param partitions: points on the ring for each member
        """
        states = self._states(down_time)
        members = [host for host, state in states.items()
                   if state is membership.State.MEMBER]
        return ring.Ring(members, partitions) if members else None

    def _states(self, down_time: float) -> dict[str, membership.State]:
        """Return the state of each service, by one look."""
        watch = membership.Watch.of_one_look(
            self.services, self.now, down_time)
        current = settings.Settings('', down_time)
        return {service.name: membership.state(service, current, watch)
                for service in self.services}

    def table(self, down_time: float, partitions: int) -> list[Member]:
        """Put together who is in the ring and what each has.

        :param down_time: as :meth:`ring`
        :param partitions: as :meth:`ring`
        :returns: a line for each service, and one for each other host that a
            node's record still names
        """
        states = self._states(down_time)
        lines = {
            service.name: Member(service.host, states[service.name].value)
            for service in self.services}

        def line(host: str) -> Member:
            return lines.setdefault(
                model.canonical(host), Member(host, 'gone'))

        current = self.ring(down_time, partitions)
        for row in self.rows:
            line(row.owner).owned += 1
        for pool in self.pools:
            line(pool.owner).owned += pool.total
        for node in self.nodes or [row.node for row in self.rows]:
            desired = current.owner(node) if current else None
            if desired is not None:
                line(desired).desired += 1
        for host, count in self.instances.items():
            line(host).instances = count
        return list(lines.values())

    def shares(self) -> dict[str, int]:
        """Count the nodes of each service.

        These are the nodes whose records belong to the service, and the nodes
        in its pools that have an instance or can get one.

        :returns: the number by the name of the service, as in its records
        """
        found = collections.Counter(row.owner for row in self.rows)
        for pool in self.pools:
            found[pool.owner] += pool.total - pool.reserved
        return dict(+found)

    def is_settled(self, down_time: float, partitions: int,
                   count: int) -> bool:
        """Return whether each free node is with its desired owner.

        If there are pools, a node is with its owner if the owner's pools count
        it. A node with an instance belongs to the service of the instance.

        :param down_time: as :meth:`ring`
        :param partitions: as :meth:`ring`
        :param count: how many nodes there are to be
        """
        current = self.ring(down_time, partitions)
        if current is None:
            return False
        recorded = {row.node for row in self.rows}
        counted: collections.Counter[str] = collections.Counter()
        for pool in self.pools:
            counted[model.canonical(pool.owner)] += pool.total - pool.reserved
        wanted = collections.Counter(
            model.canonical(user or str(current.owner(node)))
            for node, user in self.nodes.items() if node not in recorded)
        return (len(self.rows) + counted.total() == count
                and counted == wanted and all(
                    model.canonical(row.owner) == current.owner(row.node)
                    for row in self.rows if row.free))


def read(connection: pymysql.Connection) -> Snapshot:
    """Read all that the table is made of.

    :param connection: to Nova's cell database
    """
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT uuid, host, NOT EXISTS (SELECT * FROM instances WHERE '
            'deleted = 0 AND node = hypervisor_hostname) '
            'FROM compute_nodes WHERE deleted = 0 '
            'AND uuid = hypervisor_hostname')
        rows = [Row(node, owner, bool(free))
                for node, owner, free in cursor.fetchall()]
        cursor.execute(
            'SELECT host, total, reserved, uuid FROM compute_nodes '
            'JOIN placement.resource_providers AS providers USING (uuid) '
            'JOIN placement.inventories '
            'ON resource_provider_id = providers.id '
            'JOIN placement.resource_classes AS classes '
            'ON classes.id = resource_class_id '
            'WHERE deleted = 0 AND uuid <> hypervisor_hostname '
            # Only the pool's own resource class, not one that was added.
            "AND hypervisor_hostname LIKE CONCAT('%.', classes.name, '.%')")
        pools = [Pool(*found) for found in cursor.fetchall()]
        nodes = {}
        if pools:
            cursor.execute(
                'SELECT nodes.uuid, instances.host FROM ironic.nodes '
                'LEFT JOIN instances ON instances.uuid = instance_uuid '
                'AND instances.deleted = 0')
            nodes = dict(cursor.fetchall())
        cursor.execute('SELECT host, COUNT(*) FROM instances '
                       'WHERE deleted = 0 AND host IS NOT NULL '
                       'GROUP BY host')
        instances = dict(cursor.fetchall())
    return Snapshot(datetime.datetime.now(datetime.timezone.utc),
                    services(connection), rows, instances, pools, nodes)


def services(connection: pymysql.Connection,
             binary: str = 'nova-compute') -> list[model.Service]:
    """Read the records of all services of a kind.

    :param connection: to Nova's cell database
    :param binary: the name of their program
    """
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT host, COALESCE(last_seen_up, created_at), forced_down, '
            'disabled FROM services WHERE deleted = 0 AND `binary` = %s '
            'ORDER BY host', (binary,))
        return [model.Service(host, _utc(seen), bool(forced), bool(disabled))
                for host, seen, forced, disabled in cursor.fetchall()]


def heartbeat(connection: pymysql.Connection,
              host: str) -> datetime.datetime | None:
    """Read when a nova-compute was last heard of, if it ever was.

    :param connection: to Nova's cell database
    :param host: its host name
    """
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT last_seen_up FROM services WHERE deleted = 0 AND '
            "`binary` = 'nova-compute' AND host = %s", (host,))
        record = cursor.fetchone()
    return _utc(record[0]) if record and record[0] else None


def _utc(time: datetime.datetime) -> datetime.datetime:
    """Add the time zone to a time of the database, which is in UTC."""
    return time.replace(tzinfo=datetime.timezone.utc)
