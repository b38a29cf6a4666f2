# SPDX-License-Identifier: Apache-2.0

"""Tests of how a deployment is read."""

import datetime
import json
import threading
import types
import typing

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import vm_states
import nova.conf
from nova.db.api import models as api_models
from nova.db.main import models
from nova import objects
from nova.objects import fields
from oslotest import base
import sqlalchemy as sa

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters.nova import tables
from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command.access import source
from nova_ironic_ring.command.access import writing
from nova_ironic_ring.command.telling import nodes
from nova_ironic_ring.command.telling import overview
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.deciding import sharding
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.core.values import settings

CONF = nova.conf.CONF
NODES = [f'{number}0000000-0000-4000-8000-000000000000'
         for number in range(1, 6)]
INSTANCE = '90000000-0000-4000-8000-000000000000'
# Seconds to wait for what comes at once.
_PATIENCE = 30


class FakeIronic:
    """Ironic, by what it was asked."""

    def __init__(self, nodes: list[dict]) -> None:
        self.found = nodes
        self.asked: list[tuple] = []
        self.newest = 'shard'
        #: What setting a shard raises.
        self.error: Exception | None = None

    def nodes(self, fields, **filters):
        self.asked.append(('nodes', tuple(fields), filters))
        if self.found is None:
            raise keystone_exceptions.ConnectFailure('away')
        return [node for node in self.found if all(
            node[name] == value for name, value in filters.items())]

    def knows(self, field):
        return field == self.newest

    def set_shard(self, node, shard):
        self.asked.append(('set', node, shard))
        if self.error:
            raise self.error

    def node(self, name, fields):
        self.asked.append(('node', name))
        return next((node for node in self.found
                     if name in (node['uuid'], node['name'])), None)


def make_node(uuid: str, name: str = '', **said) -> dict:
    return {'uuid': uuid, 'name': name or f'node-{uuid[0]}',
            'conductor_group': '', 'shard': None, 'instance_uuid': None,
            **said}


def say_member(host: str, last_pass: model.LastPass = model.LastPass(60),
               has_pools: bool = False, **said) -> dict:
    """Return what a member record says.

    :param host: the name of the service
    :param last_pass: its passes
    :param has_pools: whether its compute nodes are pools
    :param said: its settings
    """
    return stats.say_member(ports.Saying(
        settings.Settings(host, **said), last_pass, has_pools=has_pools))


class SourceTestCase(base.BaseTestCase):
    """Databases that are real, and an Ironic that only answers."""

    CELLS: tuple[str, ...] = ('cell1',)

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.directory = self.useFixture(fixtures.TempDir())
        self.engines = {}
        for name in ('api', *self.CELLS):
            self.engines[name] = sa.create_engine(self.url(name))
            known = (api_models if name == 'api' else models).BASE.metadata
            known.create_all(self.engines[name], [
                known.tables[table.name] for table in tables.TABLES[
                    'api' if name == 'api' else 'main']])
        for number, name in enumerate(('cell0', *self.CELLS)):
            self.add('api', api_models.CellMapping, name=name, id=number + 1,
                     uuid=objects.CellMapping.CELL0_UUID if not number
                     else f'cell-uuid-{name}', transport_url='none:///',
                     database_connection=self.url(name))
        CONF.set_override('connection', self.url('api'), 'api_database')
        self.addCleanup(CONF.clear_override, 'connection', 'api_database')
        self.ironic = FakeIronic([make_node(uuid) for uuid in NODES])
        self.make_ironic = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.plain.Ironic',
            side_effect=lambda options, cloud: self.ironic)).mock
        self.source = source.Source()

    def url(self, name: str) -> str:
        return f'sqlite:///{self.directory.join(name)}'

    def add(self, database: str, model: typing.Any, **values) -> None:
        with self.engines[database].begin() as connection:
            connection.execute(sa.insert(model.__table__), [values])

    def add_service(self, host: str, cell: str = 'cell1', **values) -> None:
        self.add(cell, models.Service, **{
            'host': host, 'binary': 'nova-compute', 'topic': 'compute',
            'report_count': 1, 'disabled': False, 'forced_down': False,
            'deleted': 0, 'last_seen_up': datetime.datetime.now(
                datetime.timezone.utc).replace(tzinfo=None)} | values)

    def add_row(self, node: str, host: str, cell: str = 'cell1',
                said: dict | None = None, **values) -> None:
        self.add(cell, models.ComputeNode, **{
            'host': host, 'hypervisor_hostname': node,
            'hypervisor_type': 'ironic', 'stats': json.dumps(said or {}),
            'vcpus': 1, 'memory_mb': 1, 'local_gb': 1, 'vcpus_used': 0,
            'memory_mb_used': 0, 'local_gb_used': 0, 'hypervisor_version': 1,
            'cpu_info': '', 'deleted': 0} | values)

    def add_member(self, host: str, cell: str = 'cell1',
                   said: dict | None = None, **values) -> None:
        """Add the member record of a service.

        :param host: its name
        :param cell: the name of the cell
        :param said: what the record says; None for the usual settings
        :param values: other columns
        """
        self.add_row(member.name(host), host, cell, say_member(host)
                     if said is None else said, **values)

    def add_instance(self, uuid: str, host: str | None, node: str | None,
                     cell: str = 'cell1', **values) -> None:
        self.add(cell, models.Instance, **{
            'uuid': uuid, 'host': host, 'node': node, 'deleted': 0,
            'display_name': 'server', 'vm_state': 'active',
            'hidden': False} | values)


class NamesTestCase(base.BaseTestCase):
    """What is written down here, because Nova's own is slow to import."""

    def test_names_of_nova(self):
        objects.register_all()
        self.assertEqual(objects.CellMapping.CELL0_UUID, source._CELL0)
        self.assertEqual(fields.HVType.IRONIC, source._IRONIC)
        self.assertEqual(vm_states.BUILDING, source._BUILDING)


class ReadTestCase(SourceTestCase):

    def test_limit_of_a_start(self):
        self.assertTrue(self.source.read().is_start_unlimited)
        CONF.set_override('timeout', 60, 'placement')
        self.addCleanup(CONF.clear_override, 'timeout', 'placement')
        self.assertFalse(self.source.read().is_start_unlimited)

    def test_services(self):
        self.add_service('A', disabled=True, disabled_reason='bad RAM')
        self.add_service('b', forced_down=True)
        self.add_service('new', last_seen_up=None,
                         created_at=datetime.datetime(2026, 1, 1))
        self.add_service('gone', deleted=7)
        self.add_service('c1', binary='nova-conductor')
        for name, hosts in (('rack-1', 'Ab'), ('fast', 'A')):
            number = len(name)
            self.add('api', api_models.Aggregate, id=number, name=name,
                     uuid=f'uuid-of-{name}')
            for host in hosts:
                self.add('api', api_models.AggregateHost, host=host,
                         aggregate_id=number)
        self.add('api', api_models.AggregateMetadata, aggregate_id=6,
                 key='availability_zone', value='east')
        self.add('api', api_models.AggregateMetadata, aggregate_id=6,
                 key='other', value='x')
        found = {each.record.host: each
                 for each in self.source.read().services}
        self.assertEqual({'A', 'b', 'new'}, set(found))
        self.assertEqual(('cell1', 'bad RAM', True, False), (
            found['A'].cell, found['A'].reason, found['A'].record.disabled,
            found['A'].record.forced_down))
        self.assertIs(True, found['b'].record.forced_down)
        self.assertEqual(datetime.datetime(
            2026, 1, 1, tzinfo=datetime.timezone.utc),
            found['new'].record.last_seen)
        self.assertEqual({'fast', 'rack-1 (availability zone east)'},
                         found['A'].aggregates)
        self.assertEqual({'rack-1 (availability zone east)'},
                         found['b'].aggregates)
        self.assertEqual({
            'uuid-of-rack-1': snapshot.Aggregate(
                'rack-1 (availability zone east)', frozenset('Ab')),
            'uuid-of-fast': snapshot.Aggregate('fast', frozenset('A'))},
            self.source.read().aggregates)

    def test_what_services_say(self):
        at = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        last = model.LastPass(60, at)
        scope, failed = settings.Scope('rack'), {
            NODES[3]: failures.Failure(2, at)}
        self.add_member('A', said=say_member(
            'a', last, True, scope=scope, peers=frozenset('ab'))
            | stats.say_failures('a', failed))
        self.add_row(NODES[0], 'A')
        self.add_row(NODES[1], 'B')
        self.add_row(NODES[2], 'B', deleted=3)
        seen = self.source.read()
        rows, (said,) = seen.rows, seen.members.values()
        self.assertEqual({'a'}, set(seen.members))
        self.assertEqual(set(NODES[:2]), set(rows))
        self.assertEqual(profile.of(settings.Settings(
            'a', scope=scope, peers=frozenset('ab'))), said.profile)
        self.assertEqual((last, scope, True, failed, 'cell1'), (
            said.last_pass, said.scope, said.has_pools, said.failed,
            said.cell))
        self.assertEqual(snapshot.Row('A', node=NODES[0], cell='cell1'),
                         rows[NODES[0]])

    def test_member_record_that_is_none(self):
        for name, host in ((member.name('b'), 'a'), ('x.ring-member', 'a'),
                           (member.name('c'), 'c')):
            self.add_row(name, host, said=say_member('a'))
        seen = self.source.read()
        self.assertEqual({}, seen.rows)
        # The last one may be read, and says nothing.
        self.assertEqual({'c': snapshot.Member(cell='cell1')}, seen.members)
        self.assertEqual({}, seen.profiles)

    def test_service_with_a_member_record_alone(self):
        self.add_service('a')
        self.add_member('a')
        self.add_row('a', 'a', hypervisor_type='QEMU')
        seen = self.source.read()
        self.assertEqual(frozenset(), seen.others)
        self.assertEqual({'a'}, seen.rings[seen.keys()[0]].members)
        self.assertEqual({'a'}, seen.known)
        self.assertEqual(frozenset(), seen.owners)
        (line,) = overview.lines(seen)
        self.assertEqual(('member', 0, 5), (
            line.is_what.words, line.owned, line.desired))

    def test_hosts_with_nodes_of_another_kind(self):
        self.add_row(NODES[0], 'a')
        self.add_row('kvm-1', 'KVM', hypervisor_type='QEMU')
        self.add_row('a', 'a', hypervisor_type='QEMU')
        seen = self.source.read()
        self.assertEqual([NODES[0]], list(seen.rows))
        self.assertEqual({'kvm', 'a'}, seen.other_rows)
        self.assertEqual({'kvm'}, seen.others)

    def test_instances(self):
        self.add_service('a')
        self.add_row(NODES[0], 'a')
        self.add_instance('i1', 'a', NODES[0], vm_state='building',
                          task_state='spawning')
        self.add_instance('i2', 'a', NODES[1], deleted=2)
        self.add_instance('i3', None, None, vm_state='soft-delete')
        self.add_instance('i4', 'elsewhere', 'kvm')
        self.ironic.found[2]['instance_uuid'] = 'i3'
        found = self.source.read().instances
        self.assertEqual({'i1', 'i3'}, set(found))
        self.assertEqual(snapshot.Instance(
            'a', NODES[0], True, 'spawning', uuid='i1', name='server',
            cell='cell1'),
            found['i1'])

    def test_when_it_was(self):
        self.add_service('a')
        self.add_row(NODES[0], 'a')
        before = datetime.datetime.now(datetime.timezone.utc)
        answered = []
        # Both are read at the same time.
        is_asked, is_read = threading.Event(), threading.Event()
        read = self.source._records

        def records(cells):
            self.assertTrue(is_asked.wait(_PATIENCE))
            found = read(cells)
            is_read.set()
            return found

        def nodes(fields, **filters):
            is_asked.set()
            self.assertTrue(is_read.wait(_PATIENCE))
            answered.append(datetime.datetime.now(datetime.timezone.utc))
            return []
        self.source._records = records
        self.ironic.nodes = nodes
        # Not when Ironic has answered: heartbeats are old by then.
        seen = self.source.read()
        self.assertLess(before, seen.now)
        self.assertLess(seen.now, answered[0])

    def test_each_is_asked_once(self):
        self.add_service('a')
        self.add_row(NODES[0], 'a')
        self.source.read()
        self.assertEqual([('nodes', source._NODE_FIELDS, {})],
                         self.ironic.asked)

    def test_one_session_for_all_looks(self):
        self.add_service('a')
        self.add_row(NODES[0], 'a')
        make_database = self.useFixture(fixtures.MockPatchObject(
            tables, 'Database', wraps=tables.Database)).mock
        for _ in range(3):
            self.source.read()
        self.assertEqual(3, len(self.ironic.asked))
        self.assertEqual(1, self.make_ironic.call_count)
        # The API database, and that of the cell.
        self.assertEqual(2, make_database.call_count)

    def test_without_ironic(self):
        self.ironic.found = None
        self.add_service('a')
        for node in NODES:
            self.add_row(node, 'a')
        self.add_instance(INSTANCE, 'a', NODES[1])
        seen = self.source.read(ironic=False)
        self.assertEqual([], self.ironic.asked)
        self.assertEqual(INSTANCE, seen.nodes[NODES[1]].instance)
        (line,) = overview.lines(seen)
        self.assertEqual((5, 5, 1), (line.owned, line.desired, line.instances))

    def test_ironic_that_does_not_answer(self):
        self.ironic.found = None
        self.assertRaisesRegex(
            errors.CommandError, r'Ironic does not tell .*\(away\)',
            self.source.read)

    def test_a_single_node(self):
        for host in 'ab':
            self.add_service(host)
            self.add_member(host)
        for number, node in enumerate(NODES):
            self.add_row(node, 'ab'[number % 2])
        self.add_instance(INSTANCE, 'a', NODES[0])
        self.ironic.found[0]['instance_uuid'] = INSTANCE
        full = self.source.read()
        for number, node in enumerate(NODES):
            self.ironic.asked.clear()
            seen, (found,) = self.source.read_nodes([f'node-{number + 1}'])
            self.assertEqual([('node', f'node-{number + 1}')],
                             self.ironic.asked)
            self.assertEqual(node, found.uuid)
            self.assertEqual(nodes.explain(full, full.nodes[node]),
                             nodes.explain(seen, found))

    def test_a_single_node_where_nodes_are_divided_by_shards(self):
        for host in 'ab':
            self.add_service(host)
            self.add_member(host, said=say_member(host, by_shards=True))
        for number, node in enumerate(NODES):
            host = 'ab'[number % 2]
            self.add_row(node, host)
            self.ironic.found[number]['shard'] = f'shard-{number}'
        full = self.source.read()
        for node in NODES:
            seen, (found,) = self.source.read_nodes([node])
            self.assertEqual(nodes.explain(full, full.nodes[node]),
                             nodes.explain(seen, found))

    def test_what_a_node_is_found_by(self):
        self.ironic.found[0]['instance_uuid'] = INSTANCE
        _, found = self.source.read_nodes([INSTANCE, NODES[1], '3000'])
        self.assertEqual(NODES[:3], [node.uuid for node in found])
        self.assertRaisesRegex(ValueError, 'Ironic has no node "x"',
                               self.source.read_nodes, ['x'])

    def test_a_single_node_by_the_name_of_its_server(self):
        self.add_service('a')
        self.add_row(NODES[0], 'a')
        self.add_instance(INSTANCE, 'a', NODES[0], display_name='web-1')
        self.ironic.found[0]['instance_uuid'] = INSTANCE
        _, (found,) = self.source.read_nodes(['web-1'])
        self.assertEqual(NODES[0], found.uuid)
        # All nodes are not read for that.
        self.assertEqual(
            [('node', 'web-1'), {'instance_uuid': INSTANCE}],
            [self.ironic.asked[0], *(
                asked[2] for asked in self.ironic.asked[1:])])

    def test_server_of_a_service_without_a_record(self):
        self.add_instance(INSTANCE, 'gone', NODES[0], display_name='web-1')
        self.ironic.found[0]['instance_uuid'] = INSTANCE
        for name in 'web-1', INSTANCE:
            seen, (found,) = self.source.read_nodes([name])
            self.assertEqual(NODES[0], found.uuid)
            self.assertEqual('gone', seen.instances[INSTANCE].host)

    def test_server_with_the_name_of_the_beginning_of_a_uuid(self):
        self.add_service('a')
        self.add_row(NODES[0], 'a')
        self.add_instance(INSTANCE, 'a', NODES[0], display_name=NODES[1][:-1])
        self.ironic.found[0]['instance_uuid'] = INSTANCE
        self.assertRaisesRegex(
            ValueError, 'give the whole UUID', self.source.read_nodes,
            [NODES[1][:-1]])

    def test_the_databases_alone(self):
        self.add_service('a')
        self.add_row(NODES[0], 'a')
        self.ironic.found[3]['instance_uuid'] = 'not in nova'
        seen = self.source.read()
        self.ironic.asked.clear()
        self.add_row(NODES[1], 'b')
        self.add_instance(INSTANCE, 'a', NODES[0])
        seen = self.source.refresh(seen)
        self.assertEqual([], self.ironic.asked)
        self.assertEqual({NODES[0]: 'a', NODES[1]: 'b'}, {
            node: row.owner for node, row in seen.rows.items()})
        self.assertEqual(
            [INSTANCE, None, None, 'not in nova', None],
            [seen.nodes[node].instance for node in NODES])
        with self.engines['cell1'].begin() as connection:
            connection.execute(sa.delete(models.ComputeNode.__table__))
            connection.execute(sa.delete(models.Instance.__table__))
        seen = self.source.refresh(seen)
        # Their services have seen that Ironic does not have them.
        self.assertEqual(set(NODES[2:]), set(seen.nodes))

    def test_template_of_a_connection(self):
        with self.engines['api'].begin() as connection:
            connection.execute(sa.update(
                api_models.CellMapping.__table__).values(
                    database_connection=f'{{scheme}}:///{self.directory.path}'
                    '/cell1'))
        # To import Nova's objects would take most of the command's time.
        self.patch(writing, 'url_of', None)
        CONF.set_override('connection', 'sqlite:///x', 'database')
        self.addCleanup(CONF.clear_override, 'connection', 'database')
        self.add_service('a')
        self.assertEqual(1, len(self.source.read().services))


class ShardsTestCase(SourceTestCase):

    def test_place(self):
        self.ironic.found[1] |= {'shard': 'x', 'conductor_group': 'Rack'}
        self.assertEqual(sharding.Place(), self.source.place(NODES[0]))
        self.assertEqual(
            sharding.Place('Rack', 'x'), self.source.place(NODES[1]))
        self.assertIsNone(self.source.place('gone'))

    def test_old_ironic(self):
        self.source.see_shards()
        self.ironic.newest = 'conductor_group'
        self.assertRaisesRegex(
            errors.CommandError, '^This Ironic has no shards: .*1.82',
            self.source.see_shards)

    def test_set(self):
        self.source.set_shard(NODES[0], 'x')
        self.source.set_shard(NODES[0], None)
        self.assertEqual([('set', NODES[0], 'x'), ('set', NODES[0], None)],
                         self.ironic.asked)

    def test_set_is_refused(self):
        for error, cloud, kind, words in (
                (keystone_exceptions.Forbidden('no'), None,
                 errors.RefusedError, "does not let Nova's account set"),
                (keystone_exceptions.Forbidden('no'), 'c',
                 errors.RefusedError, 'does not let the account of cloud "c"'),
                (keystone_exceptions.Unauthorized('no'), None,
                 errors.RefusedError, r'see .* \[ironic\] of nova.conf'),
                (keystone_exceptions.ConnectFailure('away'), 'c',
                 errors.RefusedError, r'see .* in clouds.yaml \(away\)'),
                (ValueError('Cloud c was not found.'), 'c',
                 errors.RefusedError, r'\(Cloud c was not found.\)'),
                (keystone_exceptions.Conflict('locked'), None,
                 errors.CommandError, f'Node {NODES[0]} stays as it is: '),
                (keystone_exceptions.NotFound('gone'), None,
                 errors.CommandError, f'Node {NODES[0]} stays as it is: ')):
            self.ironic.error = error
            found = self.assertRaises(
                kind, self.source.set_shard, NODES[0], 'x', cloud)
            self.assertIs(kind, type(found))
            self.assertRegex(str(found), words)
            self.assertNotIn('\n', str(found))


class CellsTestCase(SourceTestCase):
    """Two cells."""

    CELLS = ('cell1', 'cell2')

    def setUp(self):
        super().setUp()
        self.add_service('a')
        self.add_service('b', 'cell2')
        self.add_row(NODES[0], 'a')
        self.add_row(NODES[1], 'b', 'cell2')

    def _break(self, *cells: str, url: str = 'sqlite:////nowhere/at/all'
               ) -> None:
        for cell in cells:
            with self.engines['api'].begin() as connection:
                table = api_models.CellMapping.__table__
                connection.execute(sa.update(table).where(
                    table.c.name == cell).values(
                        database_connection=url))

    def test_both(self):
        seen = self.source.read()
        self.assertEqual(set(NODES[:2]), set(seen.rows))
        self.assertEqual({}, seen.unread)

    def test_both_have_a_node(self):
        self.assertEqual({}, self.source.read().twice)
        self.add_row(NODES[0], 'b', 'cell2')
        seen = self.source.read()
        self.assertEqual(
            {NODES[0]: frozenset(('cell1', 'cell2'))}, seen.twice)
        # With one cell, nobody knows of the other.
        self.assertEqual({}, source.Source('cell2').read().twice)

    def test_one_that_does_not_answer(self):
        self._break('cell2')
        seen = self.source.read()
        self.assertEqual({NODES[0]}, set(seen.rows))
        self.assertRegex(
            seen.unread['cell2'],
            r'The database of cell cell2 cannot be reached: see \[database\]')
        self.assertEqual({NODES[0]}, set(self.source.refresh(seen).rows))
        # Which of the others are of that cell is not known.
        self.assertEqual([NODES[0]], [
            node.uuid for node in seen.served(seen.keys()[0])])

    def test_one_alone_is_read_again(self):
        alone = source.Source('cell2')
        seen = alone.refresh(alone.read())
        self.assertEqual({NODES[1]}, set(seen.rows))

    def test_none_answers(self):
        self._break('cell1', 'cell2')
        self.assertRaisesRegex(
            errors.CommandError, 'cell1 cannot.* cell2 cannot',
            self.source.read)

    def test_one_that_does_not_answer_any_more(self):
        seen = self.source.read()
        self._break('cell2')
        self.assertRaisesRegex(errors.CommandError, 'cell2 cannot be reached',
                               source.Source().refresh, seen)

    def test_one_whose_connection_is_none(self):
        for url, words in (
                ('mysql+pymsql://u@h/nova', r"Can't load plugin"),
                ('mysql://u@h/nova', r"No module named 'MySQLdb'"),
                ('h:3306', 'Could not parse'),
                ('mysql+pymysql://u@h:port/nova', 'invalid literal')):
            self._break('cell2', url=url)
            seen = source.Source().read()
            self.assertEqual({NODES[0]}, set(seen.rows))
            self.assertRegex(
                seen.unread['cell2'],
                r'^The database of cell cell2 cannot be reached: see '
                r'\[database\] .*"nova-manage cell_v2 list_cells".* '
                rf'\({words}')

    def test_api_database_whose_connection_is_none(self):
        CONF.set_override('connection', 'h:3306', 'api_database')
        self.assertRaisesRegex(
            errors.CommandError, r'^The API database cannot be reached: see '
            r'\[api_database\]', source.Source().read)

    def test_two_of_the_same_name(self):
        # Nova lets them have one, and knows them by their UUIDs.
        with self.engines['api'].begin() as connection:
            table = api_models.CellMapping.__table__
            connection.execute(sa.update(table).where(
                table.c.name == 'cell2').values(name='cell1'))
        names = {f'cell-uuid-{name}' for name in self.CELLS}
        seen = self.source.read()
        self.assertEqual(set(NODES[:2]), set(seen.rows))
        self.assertEqual(names, {row.cell for row in seen.rows.values()})
        self.assertEqual(
            {NODES[1]}, set(source.Source('cell-uuid-cell2').read().rows))
        self.assertRaisesRegex(
            errors.CommandError, 'no cell "cell1": Nova has cell-uuid-cell1, '
            'cell-uuid-cell2', source.Source('cell1').read)

    def test_one_alone(self):
        self._break('cell2')
        for name in 'cell1', 'cell-uuid-cell1':
            seen = source.Source(name).read()
            self.assertEqual(('cell1', {NODES[0]}, {'cell2': ''}), (
                seen.cell, set(seen.rows), seen.unread))
        self.assertRaisesRegex(
            errors.CommandError, 'no cell "x": Nova has cell1, cell2',
            source.Source('x').read)


class PlacementTestCase(SourceTestCase):

    def setUp(self):
        super().setUp()
        self.status, self.text = 404, '"status": 404'
        self.asked: list[tuple[str, str]] = []
        self.patch(self.source, '_placement', types.SimpleNamespace(
            request=self._request))

    def _request(self, url, method, **options):
        self.asked.append((method, url))
        return types.SimpleNamespace(
            status_code=self.status, json=dict, text=self.text)

    def test_provider_that_is_gone(self):
        # Else what is left beside it could never be removed.
        self.source.delete_provider(NODES[0])
        self.assertEqual(
            [('DELETE', f'/resource_providers/{NODES[0]}')], self.asked)
        self.assertEqual(frozenset(), self.source.consumers(NODES[0]))
        self.assertEqual({}, self.source.inventories(['a.X.0123abcd']))

    def test_provider_that_something_is_allocated_of(self):
        self.status = 409
        self.assertRaisesRegex(
            errors.CommandError, 'Placement refuses "DELETE .*" with status '
            '409: see .* --allocations', self.source.delete_provider, NODES[0])

    def test_provider_of_which_a_proxy_knows_nothing(self):
        self.text = '<html>404</html>'
        self.assertRaisesRegex(
            errors.CommandError, 'status 404: see',
            self.source.delete_provider, NODES[0])

    def test_no_placement_there(self):
        self.assertRaisesRegex(
            errors.CommandError, r'status 404: .* endpoint in \[placement\]',
            self.source.read, providers=True)


class PoolsTestCase(SourceTestCase):
    """Rows of pools, their nodes, and what Placement has of them."""

    POOL = 'a.CUSTOM_BAREMETAL.0123abcd'

    def setUp(self):
        super().setUp()
        more = {'power_state': 'power on', 'target_power_state': None,
                'target_provision_state': None, 'last_error': None,
                'maintenance': False, 'resource_class': 'baremetal',
                'traits': ['CUSTOM_FAST'], 'properties': {
                    'cpu_arch': 'x86_64', 'capabilities': 'a:b'}}
        self.ironic.found = [
            make_node(NODES[0], provision_state='active', instance_uuid='i',
                      **more),
            make_node(NODES[1], provision_state='available', **more),
            make_node(NODES[2], provision_state='available',
                      **more | {'resource_class': None})]
        self.asked: list[str] = []
        self.useFixture(fixtures.MockPatchObject(
            source.Source, '_ask_placement', side_effect=self._placement))

    def _placement(self, method, url):
        self.asked.append(url)
        found = {
            '/resource_providers': {'resource_providers': [
                {'uuid': 'p', 'name': 'p'}, {'uuid': 'q', 'name': 'other'},
                {'uuid': member.uuid_of('a'), 'name': member.name('a')},
                {'uuid': pools.uuid_of(self.POOL), 'name': self.POOL},
                {'uuid': 'r', 'name': self.POOL}]},
            f'/resource_providers/{pools.uuid_of(self.POOL)}/inventories': {
                'inventories': {'CUSTOM_BAREMETAL': {
                    'total': 5, 'reserved': 2, 'max_unit': 1},
                    # By a provider.yaml.
                    'CUSTOM_LICENSE': {'total': 10, 'reserved': 0}}},
            f'/resource_providers/{pools.uuid_of(self.POOL)}/usages': {
                'usages': {'CUSTOM_BAREMETAL': 1, 'CUSTOM_LICENSE': 3}},
            '/resource_providers?member_of=zone': {
                'resource_providers': [{'uuid': NODES[0]}]}}
        return types.SimpleNamespace(json=lambda: found.get(url, {}))

    def test_pools(self):
        self.add_row(NODES[3], 'a')
        self.add_row(self.POOL, 'a')
        seen = self.source.read()
        self.assertEqual([NODES[3]], list(seen.rows))
        self.assertEqual([self.POOL], list(seen.pools))
        kind = pools.Kind(
            'CUSTOM_BAREMETAL', frozenset({'CUSTOM_FAST'}),
            frozenset({('cpu_arch', 'x86_64'), ('a', 'b')}))
        self.assertEqual(
            [(kind, 'i', False), (kind, None, True), (None, None, True)],
            [(node.kind, node.instance, node.is_ready)
             for node in seen.nodes.values()])
        self.assertEqual({}, seen.inventories)

    def test_server_that_is_deleted_while_placement_is_asked(self):
        self.add_service('a')
        for number, node in enumerate(NODES[:2]):
            self.add_row(node, 'a')
            self.add_instance(f'i{number}', 'a', node, vm_state='active')

        def lacking(seen, ask):
            with self.engines['cell1'].begin() as connection:
                table = models.Instance.__table__
                connection.execute(sa.update(table).where(
                    table.c.uuid == 'i0').values(deleted=1))
            return frozenset(('i0', 'i1'))
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.command.access.allocations.lacking', lacking))
        self.assertEqual({'i1'}, self.source.read(providers=True).unallocated)

    def test_providers_in_aggregates(self):
        self.add_row(NODES[0], 'A')
        for number, (uuid, host) in enumerate((
                ('zone', 'a'), ('of-kvm', 'kvm'))):
            self.add('api', api_models.Aggregate, id=number, name=uuid,
                     uuid=uuid)
            self.add('api', api_models.AggregateHost, host=host,
                     aggregate_id=number)
        self.assertEqual({'zone': None, 'of-kvm': None}, {
            uuid: each.providers
            for uuid, each in self.source.read().aggregates.items()})
        self.assertEqual({'zone': {NODES[0]}, 'of-kvm': None}, {
            uuid: each.providers for uuid, each
            in self.source.read(providers=True).aggregates.items()})
        # Only those of services with nodes of Ironic are asked for.
        self.assertNotIn('/resource_providers?member_of=of-kvm', self.asked)

    def test_listing_without_kinds_is_given_up(self):
        self.add_row(self.POOL, 'a')
        ended, listed = threading.Event(), self.ironic.nodes

        def nodes(fields, **filters):
            if 'properties' in fields:
                return listed(fields, **filters)
            return endless()

        def endless():
            try:
                while True:
                    yield make_node(NODES[3])
            finally:
                ended.set()
        self.ironic.nodes = nodes
        self.assertNotIn(NODES[3], self.source.read().nodes)
        self.assertTrue(ended.wait(_PATIENCE))

    def test_no_more_is_read_where_there_are_no_pools(self):
        self.add_row(NODES[0], 'a')
        seen = self.source.read()
        self.assertNotIn('properties', self.ironic.asked[0][1])
        self.assertIsNone(seen.nodes[NODES[0]].kind)

    def test_what_placement_has(self):
        self.add_row(self.POOL, 'a')
        seen = self.source.read(providers=True)
        self.assertEqual({'p'}, seen.providers)
        self.assertEqual({self.POOL}, seen.pool_providers)
        self.assertEqual({self.POOL: snapshot.Inventory(5, 2, 1)},
                         seen.inventories)
        self.assertEqual(2, seen.inventories[self.POOL].free)
        other = 'b.CUSTOM_BAREMETAL.0123abcd'
        self.assertEqual({}, self.source.inventories([other]))


class CallTestCase(base.BaseTestCase):

    def test_at_the_same_time(self):
        met = threading.Barrier(2)
        calls = [source.Call(lambda: met.wait(30)) for _ in range(2)]
        self.assertEqual({0, 1}, {call.result() for call in calls})

    def test_error(self):
        call = source.Call(lambda: {}['x'])
        self.assertRaises(KeyError, call.result)

    def test_no_answer(self):
        ended = threading.Event()
        self.addCleanup(ended.set)
        call = source.Call(ended.wait)
        self.assertRaises(TimeoutError, call.result, 0)
        ended.set()
        self.assertTrue(call.result())
