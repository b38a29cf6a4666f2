# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The ring as the database shows it."""

import dataclasses
import datetime

import pymysql

from nova_ironic_ring import membership
from nova_ironic_ring import ring


@dataclasses.dataclass(frozen=True)
class Row:
    """A node's record in Nova.

    :ivar node: the node's UUID
    :ivar owner: the service that the record belongs to
    """

    node: str
    owner: str


@dataclasses.dataclass
class Member:
    """A line of the table.

    :ivar host: the service
    :ivar state: what it is to the ring
    :ivar owned: nodes recorded as its own
    :ivar desired: nodes that the ring maps to it
    :ivar instances: instances that belong to it
    """

    host: str
    state: str
    owned: int = 0
    desired: int = 0
    instances: int = 0


def rows(connection: pymysql.Connection) -> list[Row]:
    """Read the nodes' records.

    :param connection: to Nova's cell database
    """
    with connection.cursor() as cursor:
        cursor.execute('SELECT uuid, host FROM compute_nodes '
                       'WHERE deleted = 0')
        return [Row(*record) for record in cursor.fetchall()]


def services(connection: pymysql.Connection,
             binary: str = 'nova-compute') -> list[membership.Service]:
    """Read the records of all services of a kind.

    :param connection: to Nova's cell database
    :param binary: the kind
    """
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT host, COALESCE(last_seen_up, created_at), forced_down, '
            'disabled FROM services WHERE deleted = 0 AND `binary` = %s '
            'ORDER BY host', (binary,))
        return [
            membership.Service(
                host, seen.replace(tzinfo=datetime.timezone.utc),
                bool(forced), bool(disabled))
            for host, seen, forced, disabled in cursor.fetchall()]


def instances(connection: pymysql.Connection) -> dict[str, int]:
    """Count the instances of each service.

    :param connection: to Nova's cell database
    """
    with connection.cursor() as cursor:
        cursor.execute('SELECT host, COUNT(*) FROM instances '
                       'WHERE deleted = 0 AND host IS NOT NULL '
                       'GROUP BY host')
        return dict(cursor.fetchall())


def table(connection: pymysql.Connection, down_time: float,
          partitions: int) -> list[Member]:
    """Put together who is in the ring and what each has.

    :param connection: to Nova's cell database
    :param down_time: seconds without a heartbeat after which a service is down
    :param partitions: points on the ring for each member
    :returns: a line for each service, and one for each other host that a
        node's record still names
    """
    view = membership.View('', down_time)
    now = datetime.datetime.now(datetime.timezone.utc)
    lines = {
        membership.canonical(service.host):
            Member(service.host, view.state(service, now).value)
        for service in services(connection)}
    members = [name for name, line in lines.items()
               if line.state == membership.State.MEMBER.value]
    current = ring.Ring(members, partitions) if members else None

    def line(host: str) -> Member:
        return lines.setdefault(
            membership.canonical(host), Member(host, 'gone'))

    for row in rows(connection):
        line(row.owner).owned += 1
        if current:
            line(current.owner(row.node)).desired += 1
    for host, count in instances(connection).items():
        line(host).instances = count
    return list(lines.values())
