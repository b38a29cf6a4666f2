# SPDX-License-Identifier: Apache-2.0

"""Reads a deployment: Nova's databases, Ironic and, on request, Placement.

Most commands only read, and have to answer at once: this module imports Nova's
objects only to write, and for pools.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import datetime
import functools
import itertools
import json
import threading
from typing import Any, Generic, TYPE_CHECKING, TypeVar

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as keystone_exceptions
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_utils import uuidutils
import requests

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters.nova import tables
from nova_ironic_ring.adapters import plain
from nova_ironic_ring.command.access import allocations
from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import sharding
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import states

if TYPE_CHECKING:
    from nova_ironic_ring.command.access import writing

CONF = cfg.CONF

_T = TypeVar('_T')

_NODE_FIELDS = ('uuid', 'name', 'conductor_group', 'shard', 'instance_uuid',
                'resource_class', 'provision_state', 'maintenance')

# The import of Nova's own constants would be slow.
_CELL0 = '00000000-0000-0000-0000-000000000000'
_IRONIC = 'ironic'
_BUILDING = 'building'
_PROVIDERS = '/resource_providers'

# Seconds to wait for a database that accepts connections and does not answer.
_PATIENCE = 60


class Call(Generic[_T]):
    """A call that starts at once, in a thread of its own.

    The process does not wait for it at its end, because it may never return.
    """

    def __init__(self, call: Callable[[], _T]) -> None:
        """Make the call.

        :param call: the function
        """
        self._call = call
        self._value: _T
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:
            self._error = error

    def result(self, timeout: float | None = None) -> _T:
        """Return what the call returns, or raise what it raises.

        :param timeout: how long to wait for it, in seconds; None for ever
        :raises TimeoutError: if that is over
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError()
        if self._error is not None:
            raise self._error
        return self._value


@dataclasses.dataclass
class _Records:
    """The services in the databases of the cells.

    :ivar services: the nova-computes
    :ivar rows: the records of nodes of Ironic, by node
    :ivar pools: those of pools, by name
    :ivar members: the member records of services, by canonical name
    :ivar others: canonical names of the services with another driver
    :ivar other_rows: canonical names of the hosts with other records
    :ivar aggregates: the host aggregates, by UUID
    :ivar at: when the heartbeats were read, with time zone
    :ivar twice: the names of the cells of each node that has a record in more
        than one, by node
    """

    services: list[snapshot.Service] = dataclasses.field(default_factory=list)
    rows: dict[str, snapshot.Row] = dataclasses.field(default_factory=dict)
    pools: dict[str, snapshot.Row] = dataclasses.field(default_factory=dict)
    members: dict[str, snapshot.Member] = dataclasses.field(
        default_factory=dict)
    others: set[str] = dataclasses.field(default_factory=set)
    other_rows: set[str] = dataclasses.field(default_factory=set)
    aggregates: Mapping[str, snapshot.Aggregate] = dataclasses.field(
        default_factory=dict)
    # Other reads may take longer than the heartbeats are valid.
    at: datetime.datetime = model.NEVER
    twice: dict[str, frozenset[str]] = dataclasses.field(default_factory=dict)


class Source:
    """A deployment."""

    def __init__(self, cell: str | None = None) -> None:
        """Choose the cells.

        :param cell: the name or the UUID of the only one that is read; None
            for all
        """
        self._cell = cell
        #: By the name of the cloud whose account it is; None for Nova's own.
        self._ironics: dict[str | None, plain.Ironic] = {}
        self._databases: dict[str, tables.Database] = {}

    @property
    def _ironic(self) -> plain.Ironic:
        return self._ironic_of(None)

    @functools.cached_property
    def _api(self) -> tables.Database:
        return tables.Database(CONF.api_database)

    @functools.cached_property
    def _placement(self) -> adapter.Adapter:
        return plain.connect(CONF, 'placement')

    @functools.cached_property
    def _cells(self) -> list[tables.Cell]:
        """All cells but cell0.

        :raises CommandError: if there is none, or no access
        """
        with _database('the API database', 'api_database'):
            found = [cell for cell in self._api.cells()
                     if cell.uuid != _CELL0]
        if not found:
            raise errors.CommandError(
                'Nova has no cell: see "nova-manage cell_v2 create_cell".')
        return found

    def cells(self) -> list[tables.Cell]:
        """Return the cells that are to be read.

        :raises CommandError: if there is no such cell, or no access
        """
        found = [cell for cell in self._cells
                 if self._cell in (None, cell.name, cell.uuid)]
        if not found:
            names = ', '.join(cell.name for cell in self._cells)
            raise errors.CommandError(
                f'There is no cell "{self._cell}": Nova has {names}.')
        return found

    @contextlib.contextmanager
    def cell_of(self, name: str) -> Iterator['writing.CellWriter']:
        """Enter a cell to write.

        :param name: its name, or its UUID where it has none
        :returns: what writes there
        :raises CommandError: if its database cannot be reached
        """
        # The import of most of Nova takes longer than reading everything.
        from nova_ironic_ring.command.access import writing
        cell = next(cell for cell in self._cells
                    if name in (cell.name, cell.uuid))
        with _database(f'the database of cell {name}', 'database'), (
                writing.cell(cell.uuid)) as found:
            yield found

    def read(self, providers: bool = False, ironic: bool = True
             ) -> snapshot.Snapshot:
        """Read a deployment, once.

        :param providers: whether to ask Placement as well
        :param ironic: whether to ask Ironic; otherwise the nodes are those of
            Nova's records
        :raises CommandError: if something cannot be reached; for cells, only
            if none can be
        """
        # Most deployments have no pools, so nodes are listed meanwhile.
        is_wanted = threading.Event()
        is_wanted.set()
        listing = Call(functools.partial(
            self.nodes, is_wanted=is_wanted.is_set)) if ironic else None
        found, unread = self._records(self.cells())
        if found.pools:
            is_wanted.clear()
        providing = Call(self._providers) if providers else None
        counting = Call(
            lambda: self.inventories(found.pools)) if providers else None
        placing = Call(
            lambda: self._with_providers(found)) if providers else None
        # Instances are read after the nodes, as the services do.
        nodes = {} if listing is None else (
            self.nodes(True) if found.pools else listing.result())
        instances = self._instances(
            found, unread, [node.instance for node in nodes.values()
                            if node.instance])
        seen = _snapshot(
            found, instances, unread,
            self.cells()[0].name if self._cell is not None else None)
        of_nodes, of_pools = (
            providing.result() if providing else (None, frozenset[str]()))
        seen = dataclasses.replace(
            seen, nodes=nodes if ironic else snapshot.recorded(seen),
            providers=of_nodes, pool_providers=of_pools,
            inventories=counting.result() if counting else {},
            aggregates=placing.result() if placing else found.aggregates)
        return self._with_allocations(seen) if providers else seen

    def _with_allocations(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Ask Placement which allocations fit neither Nova nor Ironic."""
        def ask(url: str) -> Mapping[str, Any]:
            return self._ask_placement('GET', url).json()

        allocated = allocations.of_nodes(seen, ask)
        lacking = allocations.lacking(seen, ask)
        # A build may have begun since the instances were read, and a server
        # may have been deleted.
        now = self._instances(_Records(), seen.unread, sorted(
            lacking.union(*allocated.values())))
        return dataclasses.replace(
            seen, allocated=allocated, instances={**seen.instances, **now},
            unallocated=frozenset(
                uuid for uuid in lacking & now.keys() if now[uuid].is_idle
                and now[uuid].node == seen.instances[uuid].node))

    def refresh(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Read Nova's databases again, and nothing else.

        :param seen: what was read before
        :raises CommandError: if a cell that answered before does not answer
        """
        found, unread = self._records([
            cell for cell in self.cells() if cell.name not in seen.unread])
        # Those that were not asked have none.
        for error in filter(None, unread.values()):
            raise errors.CommandError(error)
        return snapshot.renewed(seen, _snapshot(
            found, self._instances(found, seen.unread, [
                node.instance for node in seen.nodes.values()
                if node.instance]), seen.unread, seen.cell))

    def with_nodes(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Ask Ironic for its nodes, after only Nova was asked.

        :param seen: what Nova has said
        :raises CommandError: if Ironic does not answer
        """
        return dataclasses.replace(
            seen, nodes=self.nodes(bool(seen.pools)))

    def read_nodes(self, names: Iterable[str]
                   ) -> tuple[snapshot.Snapshot, list[snapshot.Node]]:
        """Read Nova's databases, and some nodes of Ironic.

        The other nodes are those of Nova's records.

        :param names: what to find each node by, as
            :meth:`snapshot.Snapshot.find` has it
        :raises ValueError: if there is no such node, or more than one
        :raises CommandError: if something cannot be reached
        """
        seen = self.read(ironic=False)
        # Which pools a service makes depends on all its nodes.
        if seen.needs_shards or seen.pools:
            seen = self.with_nodes(seen)
        found = [self._find(name, seen) for name in names]
        more = [node.instance for node in found
                if node.instance and node.instance not in seen.instances]
        if more:
            seen = dataclasses.replace(seen, instances={
                **seen.instances, **self._instances(
                    _Records(), seen.unread, more)})
        return dataclasses.replace(seen, nodes={
            **seen.nodes, **{node.uuid: node for node in found}}), found

    def _records(self, cells: Sequence[tables.Cell]
                 ) -> tuple[_Records, dict[str, str]]:
        """Read the services in the databases of cells, all at once.

        :param cells: the cells to read
        :returns: the services, and the errors of cells that were not read, by
            their names; empty for cells that were not selected
        :raises CommandError: if no cell can be read
        """
        found = _Records()
        aggregates = Call(self._aggregates)
        calls = {cell.name: Call(
            functools.partial(self._read_cell, cell)) for cell in cells}
        unread = {cell.name: '' for cell in self._cells
                  if cell.name not in calls}
        found.aggregates = aggregates.result()
        said: dict[str, set[str]] = {}
        for each in found.aggregates.values():
            for host in each.hosts:
                said.setdefault(host, set()).add(each.name)
        for name, call in calls.items():
            try:
                at, services, rows = call.result(_PATIENCE)
            except errors.CommandError as error:
                unread[name] = str(error)
                continue
            except TimeoutError:
                unread[name] = (
                    f'The database of cell {name} does not answer within '
                    f'{_PATIENCE} s: see [database] connection in nova.conf, '
                    'and the database itself.')
                continue
            found.at = max(found.at, at)
            found.services += [dataclasses.replace(
                service, aggregates=frozenset(
                    said.get(service.record.host, ())))
                for service in services]
            for row in rows.kept:
                if row.node in found.rows:
                    found.twice[row.node] = found.twice.get(
                        row.node, frozenset()) | {
                            found.rows[row.node].cell, row.cell}
                (found.pools if pools.is_pool(row.node)
                 else found.rows)[row.node] = row
            found.members |= rows.members
            found.other_rows |= rows.other_hosts
            found.others |= rows.other_hosts - rows.members.keys() - {
                model.canonical(row.owner) for row in rows.kept}
        if calls and all(unread.get(name) for name in calls):
            raise errors.CommandError(' '.join(
                unread[name] for name in calls))
        return found, unread

    def _read_cell(self, cell: tables.Cell
                   ) -> tuple[datetime.datetime, list[snapshot.Service],
                              '_Rows']:
        """Read the services and the records of a cell.

        :returns: when the services were read, with time zone, and both
        :raises CommandError: if its database cannot be reached
        """
        with self._reading(cell) as database:
            is_up = _liveness()
            found = database.services()
            at = datetime.datetime.now(datetime.timezone.utc)
            services = [snapshot.Service(
                model.Service(
                    each['host'], each['last_seen_up'] or each['created_at'],
                    forced_down=bool(each['forced_down']),
                    disabled=bool(each['disabled']),
                    alive=is_up(each) if is_up else None),
                cell.name, each['disabled_reason'])
                for each in found]
            return at, services, _rows(database.compute_nodes(), cell.name)

    @contextlib.contextmanager
    def _reading(self, cell: tables.Cell) -> Iterator[tables.Database]:
        """Read the database of a cell.

        :raises CommandError: if it cannot be reached
        """
        with _database(f'the database of cell {cell.name}', 'database'):
            if cell.uuid not in self._databases:
                self._databases[cell.uuid] = tables.Database(
                    CONF.database, _url(cell.url))
            yield self._databases[cell.uuid]

    def _aggregates(self) -> dict[str, snapshot.Aggregate]:
        """Read the host aggregates, by UUID."""
        with _database('the API database', 'api_database'):
            found: dict[tuple[str, str, str | None], set[str]] = {}
            for uuid, name, zone, host in self._api.aggregates():
                found.setdefault((uuid, name, zone), set()).add(host)
        return {uuid: snapshot.Aggregate(
            f'{name} (availability zone {zone})' if zone else name,
            frozenset(hosts)) for (uuid, name, zone), hosts in found.items()}

    def _with_providers(self, found: _Records
                        ) -> dict[str, snapshot.Aggregate]:
        """Read the providers in the aggregates of services of Ironic."""
        owners = found.members.keys() | {
            model.canonical(row.owner) for row in (
                *found.rows.values(), *found.pools.values())}
        return {uuid: dataclasses.replace(each, providers=frozenset(
            said['uuid'] for said in self._ask_placement(
                'GET', f'{_PROVIDERS}?member_of={uuid}'
            ).json()['resource_providers']))
            if owners & set(map(model.canonical, each.hosts)) else each
            for uuid, each in found.aggregates.items()}

    def _instances(self, found: _Records, unread: Collection[str],
                   uuids: Sequence[str] = (), names: Sequence[str] = ()
                   ) -> dict[str, snapshot.Instance]:
        """Read the instances of services, and more.

        :param found: what was read of services
        :param unread: the names of the cells that are not read
        :param uuids: the UUIDs of other wanted instances
        :param names: the names of other wanted instances
        """
        instances: dict[str, snapshot.Instance] = {}
        for cell in self.cells():
            if cell.name in unread:
                continue
            hosts = [service.record.host for service in found.services
                     if service.cell == cell.name
                     and service.record.name not in found.others]
            with self._reading(cell) as database:
                read = database.instances(hosts, names=names)
                known = {instance.uuid for instance in read}
                read += database.instances(
                    uuids=[uuid for uuid in uuids if uuid not in known])
            instances |= {each.uuid: snapshot.Instance(
                each.host, each.node, each.vm_state == _BUILDING,
                each.task_state, uuid=each.uuid,
                name=each.display_name or '', cell=cell.name,
                project=each.project_id or '')
                for each in read}
        return instances

    def nodes(self, has_pools: bool = False,
              is_wanted: Callable[[], bool] = lambda: True
              ) -> dict[str, snapshot.Node]:
        """Read what Ironic has, by UUID.

        :param has_pools: whether to read the properties of each node for the
            scheduler as well
        :param is_wanted: returns whether to continue
        :raises CommandError: if it does not answer
        """
        make, fields = _maker(has_pools)
        with _asking_ironic():
            return {node['uuid']: make(node) for node in itertools.takewhile(
                lambda _: is_wanted(), self._ironic.nodes(fields))}

    def node(self, name: str, has_pools: bool = False
             ) -> snapshot.Node | None:
        """Read one node of Ironic.

        :param name: its UUID or its name
        :param has_pools: as :meth:`nodes` has it
        :returns: None if there is none
        :raises CommandError: if Ironic does not answer
        """
        make, fields = _maker(has_pools)
        with _asking_ironic():
            node = self._ironic.node(name, fields)
        return None if node is None else make(node)

    def _find(self, name: str, seen: snapshot.Snapshot) -> snapshot.Node:
        """Find a node of Ironic.

        :param name: what to find it by
        :param seen: what Nova has said
        :raises ValueError: if there is none, or more than one
        :raises CommandError: if it does not answer
        """
        node = self.node(name, bool(seen.pools))
        if node is not None:
            return node
        make, fields = _maker(bool(seen.pools))
        # A name that may also be the beginning of a UUID is searched among
        # all.
        instances = seen.instances.values()
        if not any(each.name == name for each in instances):
            # Of a service that has no record.
            instances = self._instances(
                _Records(), seen.unread, names=[name]).values()
        server = name if uuidutils.is_uuid_like(name) else None if (
            snapshot.is_beginning(name)) else snapshot.named(instances, name)
        with _asking_ironic():
            held = [] if server is None else list(
                self._ironic.nodes(fields, instance_uuid=server))
            if len(held) == 1:
                return make(held[0])
            # To find it by the beginning of its UUID, or to report that there
            # is none.
            found = {node['uuid']: make(node)
                     for node in self._ironic.nodes(fields)}
        return snapshot.find(found.values(), name, instances)

    def place(self, node: str) -> sharding.Place | None:
        """Read the current place of a node of Ironic, and nothing else.

        :param node: its UUID
        :returns: None if Ironic does not have it
        :raises CommandError: if it does not answer
        """
        with _asking_ironic():
            found = self._ironic.node(node, ('conductor_group', 'shard'))
        return None if found is None else sharding.Place(
            found.get('conductor_group') or '', found.get('shard'))

    def see_shards(self, cloud: str | None = None) -> None:
        """Check that Ironic has shards, and answers an account.

        :param cloud: as :meth:`set_shard` has it
        :raises CommandError: if it does not
        """
        with _changing_ironic(cloud):
            if self._ironic_of(cloud).knows('shard'):
                return
        raise errors.CommandError(
            'This Ironic has no shards: they came with version 1.82 of its '
            'API. Upgrade Ironic first.')

    def set_shard(self, node: str, shard: str | None,
                  cloud: str | None = None) -> None:
        """Put a node of Ironic into a shard.

        :param node: its UUID
        :param shard: the name of the shard; None for no shard
        :param cloud: the cloud in clouds.yaml whose account changes the node;
            None for Nova's own
        :raises RefusedError: if no node can be changed
        :raises CommandError: if this node cannot
        """
        with _changing_ironic(cloud):
            try:
                self._ironic_of(cloud).set_shard(node, shard)
            except (keystone_exceptions.BadRequest,
                    keystone_exceptions.NotFound,
                    keystone_exceptions.Conflict) as error:
                raise errors.CommandError(
                    f'Node {node} stays as it is: {_line(error)}') from error

    def _ironic_of(self, cloud: str | None) -> plain.Ironic:
        """Return a connection to Ironic with an account."""
        if cloud not in self._ironics:
            self._ironics[cloud] = plain.Ironic(CONF, cloud)
        return self._ironics[cloud]

    def has_node(self, node: str) -> bool:
        """Return whether Ironic has a node now.

        :param node: its UUID
        :raises CommandError: if it does not answer
        """
        with _asking_ironic():
            return self._ironic.node(node, ('uuid',)) is not None

    def _providers(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the UUIDs of providers of nodes, and the names of pools'."""
        names = {each['uuid']: each['name'] for each in self._ask_placement(
            'GET', _PROVIDERS).json()['resource_providers']
            if each.get('parent_provider_uuid') is None}
        return (frozenset(uuid for uuid, name in names.items()
                          if uuid == name),
                frozenset(name for uuid, name in names.items()
                          if pools.is_pool(name)
                          and uuid == pools.uuid_of(name)))

    def inventories(self, names: Iterable[str]
                    ) -> dict[str, snapshot.Inventory]:
        """Read what Placement has of pools.

        :param names: the names of the pools
        :returns: by name, of those that it has
        :raises CommandError: if Placement does not answer, or refuses
        """
        found = {}
        for name in names:
            url = f'{_PROVIDERS}/{pools.uuid_of(name)}'
            told = self._ask_placement('GET', f'{url}/inventories').json()
            # A provider.yaml may have added other classes, which do not count
            # nodes.
            inventories: Mapping[str, Mapping[str, int]] = {
                each: said for each, said
                in told.get('inventories', {}).items()
                if pools.is_class_of(name, each)}
            if inventories:
                usages = self._ask_placement(
                    'GET', f'{url}/usages').json().get('usages', {})
                found[name] = snapshot.Inventory(
                    sum(each['total'] for each in inventories.values()),
                    sum(each['reserved'] for each in inventories.values()),
                    sum(usages.get(each, 0) for each in inventories))
        return found

    def consumers(self, node: str) -> frozenset[str]:
        """Read the consumers with allocations of a node.

        :param node: the node's UUID
        :raises CommandError: if Placement does not answer, or refuses
        """
        return frozenset(self._ask_placement(
            'GET', f'{_PROVIDERS}/{node}/allocations'
        ).json().get('allocations', ()))

    def delete_provider(self, node: str) -> None:
        """Delete the resource provider of a node, if there is one.

        :param node: the node's UUID
        :raises CommandError: if Placement refuses, for example because of an
            allocation
        """
        self._ask_placement('DELETE', f'{_PROVIDERS}/{node}')

    def _ask_placement(self, method: str, url: str) -> requests.Response:
        """Ask Placement.

        :raises CommandError: if it does not answer, or refuses
        """
        try:
            answer = self._placement.request(
                url, method, microversion='1.20', raise_exc=False,
                headers={'Accept': 'application/json'})
        except keystone_exceptions.ClientException as error:
            raise errors.CommandError(
                'Placement does not answer: see the credentials and the '
                f'endpoint in [placement] of nova.conf ({_line(error)}).'
            ) from error
        # One provider may be gone, for example after half a run of "clean".
        # What stands before Placement answers with 404 as well.
        if answer.status_code >= 400 and (
                answer.status_code != 404 or url == _PROVIDERS
                or '"status": 404' not in answer.text):
            raise errors.CommandError(
                f'Placement refuses "{method} {url}" with status '
                f'{answer.status_code}: see "openstack resource provider show '
                '--allocations" for what is allocated, and the endpoint in '
                '[placement] of nova.conf.')
        return answer


@dataclasses.dataclass(frozen=True)
class _Rows:
    """The records in a cell.

    :ivar kept: those of nodes of Ironic, and of pools
    :ivar members: the member records of services, by canonical name
    :ivar other_hosts: canonical names of the hosts of the other records
    """

    kept: list[snapshot.Row]
    members: dict[str, snapshot.Member]
    other_hosts: set[str]


def _rows(found: Iterable, cell: str) -> _Rows:
    """Parse the records of nodes, and of members, in a cell.

    :param found: as :meth:`tables.Database.compute_nodes` has them
    :param cell: the name of the cell
    """
    kept, members, other_hosts = [], {}, set()
    for host, node, kind, said in found:
        if kind != _IRONIC:
            other_hosts.add(model.canonical(host or ''))
            continue
        values = json.loads(said) if said else {}
        owner = host or ''
        if not member.is_member(node):
            kept.append(snapshot.Row(owner, node=node, cell=cell))
        elif node == member.name(owner):
            members[model.canonical(owner)] = snapshot.Member(
                **vars(stats.read_member(values, owner)), cell=cell,
                profile=stats.read_profile(values, owner),
                failed=stats.read_failures(values, owner))
    return _Rows(kept, members, other_hosts)


def _snapshot(found: _Records, instances: Mapping[str, snapshot.Instance],
              unread: Mapping[str, str], cell: str | None
              ) -> snapshot.Snapshot:
    """Merge the content of the databases."""
    return snapshot.Snapshot(
        found.at, CONF.service_down_time, found.services, found.rows,
        instances, {}, frozenset(found.others), frozenset(found.other_rows),
        cell=cell, pools=found.pools, members=found.members,
        aggregates=found.aggregates,
        unread=unread, twice=found.twice,
        is_start_unlimited=CONF.placement.timeout is None)


def _liveness() -> Callable[[Mapping[str, object]], bool] | None:
    """Return how to know that a service is alive, if not by the database."""
    if CONF.servicegroup_driver != 'mc':
        return None
    from nova_ironic_ring.adapters.nova import records
    return records.liveness()


def _maker(has_pools: bool) -> tuple[
        Callable[[plain.Node], snapshot.Node], tuple[str, ...]]:
    """Return the function that makes a node, and the fields that it needs.

    :param has_pools: whether there are pools
    """
    if not has_pools:
        return _node, _NODE_FIELDS
    # Nova's driver determines the kind of a node, and is slow to import.
    from nova_ironic_ring.adapters.ironic import kinds
    known = kinds.Kinds()

    def make(node: plain.Node) -> snapshot.Node:
        said = known.said(node)
        return dataclasses.replace(
            _node(node), kind=said.kind, is_ready=said.is_ready)
    return make, tuple(dict.fromkeys((*_NODE_FIELDS, *known.fields)))


def _node(node: plain.Node) -> snapshot.Node:
    return snapshot.Node(
        None, node['instance_uuid'], uuid=node['uuid'], name=node['name'],
        group=node.get('conductor_group') or '', shard=node.get('shard'),
        resource_class=node.get('resource_class'),
        is_available=not node.get('maintenance') and (
            states.meaning(node.get('provision_state', ''))
            is states.Meaning.FREE))


@contextlib.contextmanager
def _asking_ironic() -> Iterator[None]:
    """Return an error of one sentence: Ironic does not answer."""
    try:
        yield
    except (keystone_exceptions.ClientException, ValueError) as error:
        raise errors.CommandError(
            'Ironic does not tell of its nodes: see the credentials and '
            f'the endpoint in [ironic] of nova.conf ({_line(error)}).'
        ) from error


@contextlib.contextmanager
def _changing_ironic(cloud: str | None) -> Iterator[None]:
    """Return an error of one sentence: Ironic refuses the account.

    :param cloud: the name of the cloud whose account it is
    """
    account = (f'the account of cloud "{cloud}"' if cloud
               else "Nova's account")
    where = 'clouds.yaml' if cloud else '[ironic] of nova.conf'
    try:
        yield
    except keystone_exceptions.Forbidden as error:
        raise errors.RefusedError(
            f'Ironic does not let {account} set the shards of nodes: name '
            'another one with --os-cloud, by default one that administrates '
            'the whole system (policy baremetal:node:update:shard).'
        ) from error
    except (keystone_exceptions.ClientException, ValueError) as error:
        raise errors.RefusedError(
            f'Ironic does not answer {account}: see the credentials and the '
            f'endpoint in {where} ({_line(error)}).') from error


def _url(connection: str) -> str:
    """Return the connection to a cell, which may be given as a template."""
    if '{' not in connection:
        return connection
    found = tables.filled(connection, CONF.database.connection)
    if found is None:
        # The import of that much of Nova takes longer than everything else.
        from nova_ironic_ring.command.access import writing
        found = writing.url_of(connection)
    return found


@contextlib.contextmanager
def _database(what: str, section: str) -> Iterator[None]:
    """Return an error of one sentence: a database cannot be reached."""
    try:
        yield
    except (db_exception.DBError,
            db_exception.CantStartEngineError) as error:
        raise errors.CommandError(
            f'{what[0].upper()}{what[1:]} cannot be reached: see [{section}] '
            'connection in nova.conf, which this command reads as nova-manage '
            + ('does, and what "nova-manage cell_v2 list_cells" has of the '
               'cell' if section == 'database' else 'does')
            + f' ({_line(error)}).') from error


def _line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
