# SPDX-License-Identifier: Apache-2.0

"""Writes the records of many nodes directly into the databases of a cloud.

Ironic takes seconds to enroll a node, and Nova's resource tracker takes as
long to record one. To measure only what comes afterwards, this copies the
records of one real node instead.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import datetime
import json
from typing import Any
import uuid

import pymysql
from pymysql import cursors

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import profile

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, 'scale.nova-ironic-ring')
# How many records are written at once.
_CHUNK = 1000
# What a member record needs, and nobody goes by: no service runs.
_DOWN_TIME = _CYCLE = 60
# The names of all member records.
_MEMBERS = f'%{member.SUFFIX}'
# The columns that the database fills in itself.
_KEYS = ('id',)


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the cloud is to be.

    :ivar nodes: how many nodes it is to have, including those that it has
    :ivar hosts: the names of the services that are to have the nodes; a
        service without a record gets one
    :ivar partitions: points on the ring for each service
    :ivar instances: the fraction of the nodes with an instance, from 0 to 1
    """

    nodes: int
    hosts: Sequence[str]
    partitions: int
    instances: float = 0


@dataclasses.dataclass(frozen=True)
class Databases:
    """Connections, each to a database of its own, that commit each statement.

    :ivar ironic: to the database of Ironic
    :ivar cell: to that of Nova's cell; None if Nova is not to have the nodes
    :ivar placement: to that of Placement; None if Placement is not to have
        the nodes
    """

    ironic: pymysql.Connection
    cell: pymysql.Connection | None = None
    placement: pymysql.Connection | None = None


def seed(databases: Databases, size: Size) -> list[str]:
    """Copy a node of a cloud many times.

    The cloud must have at least one node that is available and has a record of
    a service with the ring driver. Each new node and its instance belong to
    the service to which the ring maps the node. What services say of their
    last passes is removed, because no service runs. Instances have neither
    allocations nor ports.

    :param databases: the databases to write to
    :param size: how large the cloud is to be
    :returns: the UUIDs of the nodes that were added
    """
    there = _all(databases.ironic, 'SELECT uuid FROM nodes')
    added = [str(uuid.uuid5(_NAMESPACE, f'node-{number}'))
             for number in range(size.nodes - len(there))]
    with_instance = {
        node: str(uuid.uuid5(_NAMESPACE, f'instance-{node}'))
        for node in added[:round(len(added) * size.instances)]}
    template = _one(
        databases.ironic, 'SELECT * FROM nodes WHERE instance_uuid IS NULL '
        "AND provision_state = 'available' ORDER BY id LIMIT 1")
    _insert(databases.ironic, 'nodes', (
        {**template, 'uuid': node, 'name': f'scale-{number}',
         **({'instance_uuid': with_instance[node],
             'provision_state': 'active'} if node in with_instance else {})}
        for number, node in enumerate(added)))
    _copy_children(databases.ironic, template, added)
    if databases.cell is not None:
        _seed_cell(databases.cell, size, added, with_instance)
    if databases.placement is not None:
        _seed_placement(databases.placement, template['uuid'], added)
    return added


def _copy_children(ironic: pymysql.Connection, template: Mapping[str, Any],
                   added: Sequence[str]) -> None:
    """Give each new node the traits of the first one."""
    traits = _all(ironic, 'SELECT * FROM node_traits WHERE node_id = %s',
                  template['id'])
    ids = {row['uuid']: row['id']
           for row in _all(ironic, 'SELECT id, uuid FROM nodes')}
    _insert(ironic, 'node_traits', (
        {**trait, 'node_id': ids[node]} for trait in traits for node in added))


def _seed_cell(cell: pymysql.Connection, size: Size, added: Sequence[str],
               with_instance: Mapping[str, str]) -> None:
    """Record nodes, services and instances in Nova."""
    services = {row['host']: row for row in _all(
        cell, "SELECT * FROM services WHERE `binary` = 'nova-compute' "
        'AND deleted = 0')}
    some_service = next(iter(services.values()))
    _insert(cell, 'services', (
        {**some_service, 'host': host, **(
            {'uuid': str(uuid.uuid5(_NAMESPACE, f'service-{host}'))}
            if 'uuid' in some_service else {})}
        for host in size.hosts if host not in services))
    row = _one(cell, 'SELECT * FROM compute_nodes WHERE deleted = 0 '
               "AND hypervisor_type = 'ironic' "
               'AND hypervisor_hostname NOT LIKE %s ORDER BY id LIMIT 1',
               _MEMBERS)
    _seed_members(cell, size.hosts, row)
    current = ring.Ring(map(str.lower, size.hosts), size.partitions)
    names = {host.lower(): host for host in size.hosts}
    owners = {node: names[str(current.owner(node))] for node in added}
    _insert(cell, 'compute_nodes', (
        {**row, 'uuid': node, 'hypervisor_hostname': node,
         'host': owners[node], 'stats': '{}'}
        for node in added))
    ids = {each['uuid']: each['id'] for each in _all(
        cell, 'SELECT id, uuid FROM compute_nodes WHERE deleted = 0')}
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    _insert(cell, 'instances', ({
        'created_at': now, 'launched_at': now, 'deleted': 0, 'hidden': 0,
        'uuid': instance, 'display_name': f'server-{instance[:8]}',
        'hostname': f'server-{instance[:8]}', 'host': owners[node],
        'launched_on': owners[node], 'node': node, 'compute_id': ids[node],
        'vm_state': 'active', 'power_state': 1, 'memory_mb': 1, 'vcpus': 1,
        'root_gb': 1, 'ephemeral_gb': 0, 'cleaned': 0,
        'project_id': 'scale', 'user_id': 'scale',
    } for node, instance in with_instance.items()))


def _seed_members(cell: pymysql.Connection, hosts: Sequence[str],
                  row: Mapping[str, Any]) -> None:
    """Give each service a member record that says nothing of its passes.

    It says the settings of the service that has a record already. If there is
    none, the services run Nova's own driver.

    :param hosts: the names of the services
    :param row: the record of a node, to be copied
    """
    there = {each['uuid']: each for each in _all(
        cell, 'SELECT * FROM compute_nodes WHERE deleted = 0 '
        'AND hypervisor_hostname LIKE %s', _MEMBERS)}
    own = there.get(member.uuid_of(row['host']))
    said = own and stats.read_profile(json.loads(own['stats']), row['host'])
    if not said:
        return
    records = [{
        **row, 'uuid': member.uuid_of(host), 'host': host,
        'hypervisor_hostname': member.name(host), 'vcpus': 0, 'memory_mb': 0,
        'local_gb': 0, 'stats': json.dumps(stats.say_member(ports.Saying(
            profile.settings_of(host, said, _DOWN_TIME),
            model.LastPass(_CYCLE))))} for host in hosts]
    with cell.cursor() as cursor:
        cursor.executemany(
            'UPDATE compute_nodes SET stats = %s WHERE uuid = %s',
            [(each['stats'], each['uuid']) for each in records])
    _insert(cell, 'compute_nodes', (
        each for each in records if each['uuid'] not in there))


def _seed_placement(placement: pymysql.Connection, template: str,
                    added: Sequence[str]) -> None:
    """Copy the resource provider of the first node for each new one."""
    row = _one(placement,
               'SELECT * FROM resource_providers WHERE uuid = %s', template)
    _insert(placement, 'resource_providers', (
        {**row, 'uuid': node, 'name': node, 'root_provider_id': None}
        for node in added))
    with placement.cursor() as cursor:
        cursor.execute('UPDATE resource_providers SET root_provider_id = id '
                       'WHERE root_provider_id IS NULL')
    ids = {each['uuid']: each['id'] for each in _all(
        placement, 'SELECT id, uuid FROM resource_providers')}
    for table in 'inventories', 'resource_provider_traits':
        for each in _all(placement, f'SELECT * FROM {table} '
                         'WHERE resource_provider_id = %s', row['id']):
            _insert(placement, table, (
                {**each, 'resource_provider_id': ids[node]}
                for node in added))


def _all(connection: pymysql.Connection, query: str, *values: object
         ) -> list[dict[str, Any]]:
    with connection.cursor(cursors.DictCursor) as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())


def _one(connection: pymysql.Connection, query: str, *values: object
         ) -> dict[str, Any]:
    """Read the record to copy.

    :raises ValueError: if there is none
    """
    found = _all(connection, query, *values)
    if not found:
        raise ValueError(f'There is nothing to copy: "{query}" has no '
                         'record. Enroll a node, and wait for a pass.')
    return found[0]


def _insert(connection: pymysql.Connection, table: str,
            records: Iterable[Mapping[str, Any]]) -> None:
    """Write records, many at once."""
    quote: Callable[[str], str] = '`{}`'.format
    pending: list[tuple] = []
    query = ''
    with connection.cursor() as cursor:
        for record in records:
            kept = {name: value for name, value in record.items()
                    if name not in _KEYS}
            query = (f'INSERT INTO {table} ({", ".join(map(quote, kept))}) '
                     f'VALUES ({", ".join(["%s"] * len(kept))})')
            pending.append(tuple(kept.values()))
            if len(pending) == _CHUNK:
                cursor.executemany(query, pending)
                pending = []
        if pending:
            cursor.executemany(query, pending)
