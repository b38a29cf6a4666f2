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

"""Reads a deployment: Nova's databases, Ironic and, where asked, Placement."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import datetime

from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import vm_states
import nova.conf
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import fields
from nova.scheduler.client import report
from openstack import exceptions as sdk_exceptions
from oslo_db import exception as db_exception
import requests

from nova_ironic_ring.adapters import nodes as ironic_nodes
from nova_ironic_ring.adapters import records
from nova_ironic_ring.adapters import stats
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.command import errors
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core import model
from nova_ironic_ring.core import pools

CONF = nova.conf.CONF

_NODE_FIELDS = ('uuid', 'name', 'conductor_group', 'shard', 'instance_uuid')


@dataclasses.dataclass
class _Records:
    """What the databases of the cells have of services.

    :ivar services: the nova-computes
    :ivar rows: the records of nodes of Ironic, by node
    :ivar pools: those of pools, by name
    :ivar others: canonical names of the services with another driver
    :ivar other_rows: canonical names of the hosts with other records
    """

    services: list[snapshot.Service] = dataclasses.field(default_factory=list)
    rows: dict[str, snapshot.Row] = dataclasses.field(default_factory=dict)
    pools: dict[str, snapshot.Row] = dataclasses.field(default_factory=dict)
    others: set[str] = dataclasses.field(default_factory=set)
    other_rows: set[str] = dataclasses.field(default_factory=set)


class Source:
    """A deployment."""

    def __init__(self, cell: str | None = None) -> None:
        """Choose the cells.

        :param cell: the name or the UUID of the only one that is meant; None
            for all. All are read: they may share an Ironic
        """
        self._cell = cell
        self._ironic = upstream.NovaIronicDriver(None)

    def cells(self) -> list[objects.CellMapping]:
        """Return all cells but cell0.

        :raises CommandError: if there is none, or no access
        """
        with _database('the API database', 'api_database'):
            found = [cell for cell in objects.CellMappingList.get_all(
                nova_context.get_admin_context()) if not cell.is_cell0()]
        if not found:
            raise errors.CommandError(
                'Nova has no cell: see "nova-manage cell_v2 create_cell".')
        return found

    def chosen(self) -> str | None:
        """Return the name of the cell that was chosen; None for all.

        :raises CommandError: if there is no such cell, or no access
        """
        if self._cell is None:
            return None
        names = {cell.uuid: _name(cell) for cell in self.cells()}
        name = names.get(self._cell, self._cell)
        if name not in names.values():
            raise errors.CommandError(
                f'There is no cell "{self._cell}": Nova has '
                f'{", ".join(names.values())}.')
        return name

    @contextlib.contextmanager
    def cell_of(self, name: str) -> Iterator[nova_context.RequestContext]:
        """Enter a cell.

        :param name: its name, or its UUID where it has none
        :returns: a context to read and write its database with
        :raises CommandError: if its database cannot be reached
        """
        cell = next(cell for cell in self.cells()
                    if name in (cell.name, cell.uuid))
        with _database(f'the database of cell {name}', 'database'), (
                nova_context.target_cell(
                    nova_context.get_admin_context(), cell)) as context:
            yield context

    def read(self, providers: bool = False) -> snapshot.Snapshot:
        """Read all of it.

        :param providers: whether to ask Placement as well
        :raises CommandError: if something cannot be reached
        """
        chosen = self.chosen()
        found = self._records()
        # What makes a pool of nodes is long, and not always wanted. Instances
        # are read after the nodes, as the services do.
        nodes = self.nodes(bool(found.pools))
        instances: dict[str, snapshot.Instance] = {}
        for cell in self.cells():
            name = _name(cell)
            with self.cell_of(name) as context:
                instances |= _instances(
                    context, name, [
                        service.record.host for service in found.services
                        if service.cell == name
                        and service.record.name not in found.others],
                    [node.instance for node in nodes.values()
                     if node.instance])
        return snapshot.Snapshot(
            datetime.datetime.now(datetime.timezone.utc),
            CONF.service_down_time, found.services, found.rows, instances,
            nodes, frozenset(found.others), frozenset(found.other_rows),
            self._providers() if providers else None,
            chosen, pools=found.pools,
            inventories=self.inventories(found.pools) if providers else {})

    def _records(self) -> _Records:
        """Read what the databases of the cells have of services."""
        is_up = records.liveness()
        aggregates = _aggregates()
        found = _Records()
        for cell in self.cells():
            name = _name(cell)
            with self.cell_of(name) as context:
                found.services += [snapshot.Service(
                    records.service_of(
                        service, is_up(service) if is_up else None), name,
                    service.disabled_reason,
                    aggregates.get(service.host, frozenset()))
                    for service in objects.ServiceList.get_by_binary(
                        context, 'nova-compute', include_disabled=True)]
                rows, other_hosts = _rows(context, name)
                found.rows |= {each: row for each, row in rows.items()
                               if not pools.is_pool(each)}
                found.pools |= {each: row for each, row in rows.items()
                                if pools.is_pool(each)}
                found.other_rows |= other_hosts
                found.others |= other_hosts - {
                    model.canonical(row.owner) for row in rows.values()}
        return found

    def nodes(self, has_pools: bool = False) -> dict[str, snapshot.Node]:
        """Read what Ironic has, by UUID.

        :param has_pools: whether to read what the scheduler may ask of each
            node as well
        :raises CommandError: if it does not answer
        """
        wanted: tuple[str, ...] = _NODE_FIELDS
        if has_pools:
            wanted += tuple(name for name in upstream.node_fields()
                            if name not in wanted)
        ironic = ironic_nodes.Ironic(self._ironic)
        try:
            found = {}
            for node in upstream.list_fields(self._ironic, wanted):
                said = ironic.said(node) if has_pools else pools.Node(None)
                found[node.id] = snapshot.Node(
                    node.id, node.name, node.conductor_group or '',
                    node.shard, node.instance_id, said.kind, said.is_ready)
            return found
        except (sdk_exceptions.SDKException, exception.NovaException,
                keystone_exceptions.ClientException) as error:
            # Nova's own driver says no more than that it is not ready.
            cause = error.__context__ or error
            raise errors.CommandError(
                'Ironic does not tell of its nodes: see the credentials and '
                f'the endpoint in [ironic] of nova.conf ({_line(cause)}).'
            ) from error

    def has_node(self, node: str) -> bool:
        """Say whether Ironic has a node just now.

        :param node: its UUID
        :raises CommandError: if it does not answer
        """
        try:
            return not upstream.is_deleted(self._ironic, node)
        except exception.VirtDriverNotReady as error:
            raise errors.CommandError(
                f'Ironic does not tell of node {node}: see the credentials '
                'and the endpoint in [ironic] of nova.conf.') from error

    def _providers(self) -> frozenset[str]:
        return frozenset(
            each['uuid'] for each in _placement(
                'GET', '/resource_providers').json()['resource_providers']
            if each['uuid'] == each['name']
            and each.get('parent_provider_uuid') is None)

    def inventories(self, names: Iterable[str]
                    ) -> dict[str, snapshot.Inventory]:
        """Read what Placement has of pools.

        :param names: the names of the pools
        :returns: by name, of those that it has
        :raises CommandError: if Placement does not answer, or refuses
        """
        found = {}
        for name in names:
            url = f'/resource_providers/{pools.uuid_of(name)}'
            told = _placement('GET', f'{url}/inventories').json()
            inventories: Mapping[str, Mapping[str, int]] = told.get(
                'inventories', {})
            if inventories:
                usages = _placement('GET', f'{url}/usages').json()
                found[name] = snapshot.Inventory(
                    sum(each['total'] for each in inventories.values()),
                    sum(each['reserved'] for each in inventories.values()),
                    sum(usages.get('usages', {}).values()))
        return found

    def consumers(self, node: str) -> frozenset[str]:
        """Read who has allocations of a node.

        :param node: the node's UUID
        :raises CommandError: if Placement does not answer, or refuses
        """
        return frozenset(_placement(
            'GET', f'/resource_providers/{node}/allocations'
        ).json().get('allocations', ()))

    def delete_provider(self, node: str) -> None:
        """Delete the resource provider of a node.

        :param node: the node's UUID
        :raises CommandError: if Placement refuses, because something is
            allocated of it, for one
        """
        _placement('DELETE', f'/resource_providers/{node}')


def _aggregates() -> dict[str, frozenset[str]]:
    """Read the host aggregates, by the name of each host."""
    found: dict[str, set[str]] = {}
    with _database('the API database', 'api_database'):
        for each in objects.AggregateList.get_all(
                nova_context.get_admin_context()):
            name = each.name
            if each.availability_zone:
                name += f' (availability zone {each.availability_zone})'
            for host in each.hosts:
                found.setdefault(host, set()).add(name)
    return {host: frozenset(names) for host, names in found.items()}


def _rows(context: nova_context.RequestContext, cell: str
          ) -> tuple[dict[str, snapshot.Row], set[str]]:
    """Read the rows of nodes of Ironic, and name the other rows' hosts."""
    kept, other_hosts = {}, set()
    for row in objects.ComputeNodeList.get_all(context):
        if row.hypervisor_type != fields.HVType.IRONIC:
            other_hosts.add(model.canonical(row.host))
            continue
        kept[row.hypervisor_hostname] = snapshot.Row(
            row.hypervisor_hostname, row.host, cell,
            stats.taker(row.stats, row.host),
            stats.read_profile(row.stats, row.host),
            stats.read_last_pass(row.stats, row.host))
    return kept, other_hosts


def _instances(context: nova_context.RequestContext, cell: str,
               hosts: Iterable[str], uuids: Sequence[str]
               ) -> dict[str, snapshot.Instance]:
    """Read the instances of services, and more."""
    found = [instance for host in hosts
             for instance in objects.InstanceList.get_by_host(
                 context, host, expected_attrs=[])]
    found += list(records.find_instances(context, uuids))
    return {instance.uuid: snapshot.Instance(
        instance.uuid, instance.display_name or '', instance.host,
        instance.node, cell, instance.vm_state == vm_states.BUILDING,
        instance.task_state)
        for instance in found}


def _placement(method: str, url: str) -> requests.Response:
    """Ask Placement.

    :raises CommandError: if it does not answer, or refuses
    """
    try:
        client = report.report_client_singleton()
        call = client.get if method == 'GET' else client.delete
        answer = call(url, version='1.20')
    except (keystone_exceptions.ClientException,
            sdk_exceptions.SDKException) as error:
        raise errors.CommandError(
            'Placement does not answer: see the credentials and the endpoint '
            f'in [placement] of nova.conf ({_line(error)}).') from error
    if answer.status_code >= 400 and (
            method, answer.status_code) != ('GET', 404):
        raise errors.CommandError(
            f'Placement refuses "{method} {url}" with status '
            f'{answer.status_code}: see "openstack resource provider show '
            '--allocations" for what is allocated.')
    return answer


@contextlib.contextmanager
def _database(what: str, section: str) -> Iterator[None]:
    """Say in one sentence that a database cannot be reached."""
    try:
        yield
    except (db_exception.DBError, db_exception.CantStartEngineError,
            exception.CellTimeout) as error:
        raise errors.CommandError(
            f'{what[0].upper()}{what[1:]} cannot be reached: see [{section}] '
            'connection in nova.conf, which this command reads as nova-manage '
            f'does ({_line(error)}).') from error


def _name(cell: objects.CellMapping) -> str:
    return cell.name or cell.uuid


def _line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
