# SPDX-License-Identifier: Apache-2.0

"""Tests of the history, on Nova's own tables."""

import dataclasses
import datetime
import json

import fixtures
from nova import context as nova_context
from nova.db.main import models
from oslo_utils import fixture as time_fixture
from oslo_utils import timeutils

from nova_ironic_ring.adapters.trail import actions
from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import looking_back
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.fixtures import nova_database
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

INSTANCE, NODE = nova_database.INSTANCE, nova_database.NODE
SECOND = '22222222-2222-2222-2222-222222222222'
POOL = pools.name('b', deployment.KIND)
Code = audit.Code
START = datetime.datetime(2026, 1, 1, 12)
BY = audit.Author('alice', 'controller', 'bob', 'failover a')
# The base class replaces them.
_record, ask = actions.record, actions.ask


def record(context: nova_context.RequestContext, entry: audit.Entry) -> None:
    """Record what has happened just now."""
    _record(context, entry, timeutils.utcnow())


def _at(hours: float) -> datetime.datetime:
    return START + datetime.timedelta(hours=hours)


class HistoryTestCase(base.CommandTestCase):
    """Service a has an instance, is forced down, and b takes it over."""

    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_database.NovaDatabase())
        self.useFixture(time_fixture.TimeFixture(START))
        self.source.context = self.nova.context()
        self.nova.add(
            models.Service(host='a', binary='nova-compute', created_at=START,
                           last_seen_up=_at(2), forced_down=True,
                           disabled=True, disabled_reason='a fan'),
            models.ComputeNode(
                uuid=NODE, hypervisor_hostname=NODE, host='b', vcpus=0,
                memory_mb=0, local_gb=0, vcpus_used=0, memory_mb_used=0,
                local_gb_used=0, hypervisor_type='ironic',
                hypervisor_version=1, cpu_info='', created_at=_at(1)))
        with self.nova.writing() as session:
            session.query(models.Instance).update(
                {'created_at': _at(1), 'deleted_at': _at(5), 'deleted': 1,
                 'host': 'b'})
        self._write(3, ask, audit.Entry(
            Code.SERVICE_FORCED_DOWN, 'controller', service='a',
            instance=INSTANCE, source='a', reason='smoke', author=BY))
        self._write(3.5, record, audit.Entry(
            Code.INSTANCE_FAILED_OVER, 'b', node=NODE, instance=INSTANCE,
            source='a', target='b', reason='FORCED_DOWN'))

    def _write(self, hours: float, write, entry: audit.Entry) -> None:
        timeutils.set_time_override(_at(hours))
        write(self.nova.context(), entry)

    def _lines(self, *arguments: str) -> list[tuple[str, ...]]:
        """Return what is shown: when, what, and all that is said of it."""
        lines = json.loads(self.run_command(
            'history', *arguments, '-f', 'json'))
        self.requests = {line['Request'] for line in lines}
        return [(line['Time'][11:13], *(
            line[name] for name in (
                'Event', 'Server', 'Node', 'From', 'To', 'Reason', 'By',
                'Command')
            if line[name])) for line in lines]

    ASKED = ('15', 'SERVICE_FORCED_DOWN', INSTANCE, 'a', 'smoke',
             'alice (bob) on controller', 'failover a')
    TAKEN = ('15', 'INSTANCE_FAILED_OVER', INSTANCE, NODE, 'a', 'b',
             'FORCED_DOWN', 'b')
    CREATED = ('13', 'SERVER_CREATED', INSTANCE, 'server-1')
    DELETED = ('17', 'SERVER_DELETED', INSTANCE, NODE, 'b', 'server-1')
    RECORD = ('13', 'RECORD_CREATED', NODE, 'b')

    def test_server(self):
        for name in (INSTANCE, 'server-1'):
            self.assertEqual(
                [self.CREATED, self.ASKED, self.TAKEN, self.DELETED],
                self._lines(name))
        # What openstack server event show wants.
        self.assertEqual(1, len(self.requests - {''}))

    def test_node(self):
        for name in (NODE, 'node-1', NODE[:-1] + '1'):
            self.assertEqual(
                [self.RECORD, self.CREATED, self.ASKED, self.TAKEN,
                 self.DELETED], self._lines(name))
        # One that is named whole is asked for alone.
        self.assertNotIn('nodes', self.source.asked)

    def test_node_with_the_name_of_a_server(self):
        # Projects name their servers as they like.
        with self.nova.writing() as session:
            session.query(models.Instance).update({'display_name': 'node-2'})
        self.nova.add(models.Instance(
            uuid=SECOND, host='kvm', node='kvm', display_name='node-1',
            created_at=_at(6)))
        lines = self._lines('node-1')
        self.assertEqual(
            [self.RECORD, self.CREATED[:3] + ('node-2',), self.ASKED,
             self.TAKEN, self.DELETED[:5] + ('node-2',),
             ('18', 'SERVER_CREATED', SECOND, 'node-1')], lines)
        self.assertNotIn('nodes', self.source.asked)

    def test_host_while_ironic_is_away(self):
        node = self.useFixture(fixtures.MockPatchObject(
            self.source, 'node', side_effect=errors.CommandError('No.'))).mock
        self._lines('a')
        self.assertEqual('', self.err)
        node.assert_not_called()

    def test_host(self):
        self.assertEqual(
            [('12', 'SERVICE_CREATED', 'a'),
             ('14', 'SERVICE_SEEN', 'a', 'forced down: disabled: a fan'),
             self.ASKED, self.TAKEN], self._lines('A'))

    def test_host_that_has_taken(self):
        # Nova has no record of the service any more.
        self.assertEqual([self.TAKEN], self._lines('b'))

    def test_since(self):
        self.assertEqual(
            [self.TAKEN, self.DELETED],
            self._lines('server-1', '--since', '2026-01-01T15:30'))
        self.assertEqual(
            [self.DELETED],
            self._lines('server-1', '--since', '2026-01-01T18:00+01:30'))

    def test_nothing_since(self):
        self.assertEqual([], self._lines('server-1', '--since', '2027-01-01'))
        self.assertIn('Nothing is known of server-1 since 2027-01-01.\n',
                      self.err)

    def test_what_there_is_not(self):
        self.run_command('history', 'x', status=2)
        self.assertEqual(
            'Nova has no record of a service, a node or a server "x", and '
            'Ironic has no such node: see "nova-ironic-ring show" and '
            '"nova-ironic-ring node list".\n', self.err)

    def test_more_than_one_node(self):
        self.run_command('history', '00000000', status=2)
        self.assertEqual('Ironic has 30 nodes "00000000": give the UUID.\n',
                         self.err)

    def _pool(self, instance: str | None) -> None:
        """Have node-1 count in a pool, with an instance or none."""
        self.nova = self.useFixture(nova_database.NovaDatabase())
        self.source.context = self.nova.context()
        with self.nova.writing() as session:
            session.query(models.Instance).update(
                {'created_at': _at(1), 'host': 'b', 'node': POOL})
        self.source.seen = dataclasses.replace(self.source.seen, nodes={
            **self.source.seen.nodes, NODE: dataclasses.replace(
                self.source.seen.nodes[NODE], instance=instance)})

    def test_node_in_a_pool_whose_server_never_moved(self):
        self._pool(INSTANCE)
        for name in (NODE, 'node-1'):
            self.assertEqual([self.CREATED], self._lines(name))

    def test_node_in_a_pool_whose_former_server_moved(self):
        self._pool(SECOND)
        self.nova.add(models.Instance(
            uuid=SECOND, host='b', node=POOL, display_name='server-2',
            created_at=_at(4)))
        self._write(3.5, record, audit.Entry(
            Code.INSTANCE_FAILED_OVER, 'b', node=NODE, instance=INSTANCE,
            source='a', target='b', reason='FORCED_DOWN'))
        expected = [self.CREATED, self.TAKEN,
                    ('16', 'SERVER_CREATED', SECOND, 'server-2')]
        for name in (NODE, 'node-1'):
            self.assertEqual(expected, self._lines(name))
        # What Nova has is told without Ironic as well.
        self.useFixture(fixtures.MockPatchObject(
            self.source, 'node', side_effect=errors.CommandError('No.')))
        self.assertEqual(expected[:2], self._lines(NODE))
        self.assertEqual('No.\n', self.err)
        self.assertEqual(expected[2:], self._lines('server-2'))

    def test_free_node_in_a_pool(self):
        for instance in (None, SECOND):
            self._pool(instance)
            self.assertEqual([], self._lines('node-1'))
            self.assertEqual('Nothing is known of node node-1.\n', self.err)

    def test_table_for_people(self):
        table = self.run_command('history', 'server-1')
        self.assertNotIn('Request', table)
        self.assertIn('| 2026-01-01T15:30:00+00:00 | INSTANCE_FAILED_OVER |',
                      table)

    def test_times(self):
        now = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
        for words, hours in (('30m', 0.5), ('12h', 12), ('7d', 168)):
            self.assertEqual(now - datetime.timedelta(hours=hours),
                             looking_back.read_time(words, now))
        self.run_command('history', 'a', '--since', 'monday', status=2)
        self.assertEqual(
            '"monday" is no time: give one such as 2026-01-31T12:00, or 12h '
            'for the last 12 hours.\n', self.err)
