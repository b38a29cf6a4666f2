# SPDX-License-Identifier: Apache-2.0

"""Nova's records, read as values and written on conditions."""

import datetime
import functools
import json
from typing import Any
from unittest import mock
import uuid

import ddt
import fixtures
from nova.db.main import models
from nova import exception
from nova import objects
from oslo_config import fixture as config_fixture
import oslo_messaging
from oslo_serialization import jsonutils
from oslotest import base

from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.values import bounds
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import nova_database

NODE, OTHER = fake_nova.NODES[:2]


class RecordsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_nova.FakeNova())
        self.fake.conf.config(host='me')
        self.cloud = self.fake.cloud
        self.nova = records.Nova()
        #: The same state, as the core reads it.
        self.core = clouds.Nova(self.cloud, 'me')


class LargeTestCase(base.BaseTestCase):
    """No answer of conductor's is too large for RabbitMQ."""

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(nova_database.NovaDatabase())
        # Nova chooses the regular expressions of filters by it.
        self.useFixture(config_fixture.Config(records.CONF)).config(
            connection='sqlite://', group='database')
        self.nova = records.Nova(self.database.context(), 'me')
        self.largest = self.messages = 0
        for owner, name in ((objects.ComputeNodeList, 'get_all_by_uuids'),
                            (objects.InstanceList, 'get_by_filters')):
            self.useFixture(fixtures.MockPatchObject(
                owner, name, functools.partial(
                    self._answer, getattr(owner, name))))

    def _answer(self, read, *args, **kwargs):
        found = read(*args, **kwargs)
        message = jsonutils.dumps({'oslo.message': jsonutils.dumps(
            found.obj_to_primitive())})
        self.largest = max(self.largest, len(message))
        self.messages += 1
        return found

    def _check(self, wanted, read, most):
        self.messages = self.largest = 0
        self.assertEqual(set(wanted), set(read()))
        self.assertLess(self.largest, most * 2 ** 20)

    def test_rows_with_whatever_owners_write(self):
        uuids = [str(uuid.uuid4()) for _ in range(1000)]
        for letter in '"', '\U0001f600':
            said = bounds.properties({
                'cpu_arch': letter * 255, 'capabilities': ','.join(
                    f'{n:02}:{letter * 160}' for n in range(200))}).said
            row = {'stats': json.dumps({
                'cpu_arch': said['cpu_arch'],
                **stats.make('me', 'x' * 64, 10 ** 9),
                **dict(each.split(':')
                       for each in said['capabilities'].split(','))})}
            with self.database.writing() as session:
                session.query(models.ComputeNode).delete()
            self.database.add(*(models.ComputeNode(
                uuid=uuid, host='me', hypervisor_hostname=uuid, vcpus=1,
                hypervisor_type='ironic', hypervisor_version=1, cpu_info='',
                memory_mb=1, local_gb=1, vcpus_used=0, memory_mb_used=0,
                local_gb_used=0, mapped=1, **row) for uuid in uuids))
            self._check(uuids, lambda: self.nova.rows(uuids), 4)
            # A pass that has nothing to do reads as many.
            self.assertLess(self.messages, 4)

    def test_instances_with_whatever_users_write(self):
        uuids = [str(uuid.uuid4()) for _ in range(200)]
        self.database.add(*(models.Instance(
            uuid=uuid, node='node', vm_state='building', user_data='x' * 65535)
            for uuid in uuids))
        for read in (self.nova.unclaimed, self.nova.building,
                     lambda: self.nova.instances(uuids),
                     lambda: self.nova.instances_on('node')):
            self._check(uuids, read, 8)
        with self.database.writing() as session:
            session.query(models.Instance).filter_by(node='node').update(
                {'deleted': models.Instance.id})
        self._check(
            uuids, lambda: self.nova.deleted_instances(uuids), 8)


class ReadTestCase(RecordsTestCase):
    """The adapters read what the core's own Nova in memory says."""

    def setUp(self):
        super().setUp()
        self.fake.add_service('Me', 'b', 'c', 'd')
        self.fake.change_service('c', disabled=True)
        self.fake.change_service('d', forced_down=True)
        self.cloud.other_drivers = frozenset({'d'})
        for number, host in enumerate(('Me', 'b', 'c', 'd')):
            self.fake.own(fake_nova.NODES[number], host)
        self.fake.put('built', NODE, 'me', task='rebooting')
        self.fake.put('building', OTHER, None, is_building=True)
        self.fake.put('ended', OTHER, None, is_given_up=True)

    def _ironic(self) -> set[str]:
        """Return the services that run an ironic driver."""
        return {service.name for service in self.nova.services()
                if service.is_ironic}

    def test_services(self):
        self.assertEqual(self.core.services(), self.nova.services())
        self.assertEqual({'me', 'b', 'c', 'd'}, self._ironic())

    def test_services_that_have_no_live_row(self):
        everybody = objects.ServiceList.get_by_binary(
            None, 'nova-compute', include_disabled=True)
        with fixtures.MockPatchObject(
                objects.ServiceList, 'get_all_computes_by_hv_type',
                return_value=everybody):
            self.assertEqual({'me', 'b', 'c', 'd'}, self._ironic())
            # Its rows are deleted, which Nova's own answer does not mind.
            self.fake.own(fake_nova.NODES[1], 'Me')
            self.assertEqual({'me', 'c', 'd'}, self._ironic())
            # Another row than the one that is remembered.
            self.fake.own(fake_nova.NODES[0], 'c')
            self.assertEqual({'me', 'c', 'd'}, self._ironic())

    def test_nova_that_does_not_tell_who_runs_an_ironic_driver(self):
        with fixtures.MockPatchObject(
                records.objects, 'ServiceList', mock.Mock(
                    spec=['get_by_binary'], get_by_binary=(
                        objects.ServiceList.get_by_binary))):
            self.assertEqual({'me', 'b', 'c', 'd'}, self._ironic())
            self.fake.own(fake_nova.NODES[1], 'Me')
            self.assertEqual({'me', 'c', 'd'}, self._ironic())

    def test_instances_on_a_node(self):
        self.assertEqual(self.core.instances_on(OTHER),
                         self.nova.instances_on(OTHER))
        self.assertEqual({'building', 'ended'},
                         self.nova.instances_on(OTHER))
        self.assertEqual(set(), self.nova.instances_on('none'))

    def test_pools(self):
        for host in 'me', 'b', 'nobody':
            name = f'{host}.CUSTOM_GOLD.01234567'
            self.cloud.rows[pools.uuid_of(name)] = clouds.Row('me', pool=name)
            self.assertEqual(
                {name} & self.core.pools_of(host), self.nova.pools_of(host))
        self.assertEqual({'me.CUSTOM_GOLD.01234567'},
                         self.nova.pools_of('me'))

    def test_sizes_of_flavors(self):
        self.assertEqual({'built': pools.Size(512, 6, 2)},
                         self.nova.sizes(['built', 'no-more']))
        self.assertEqual({}, self.nova.sizes([]))

    def test_one_service(self):
        self.assertEqual(self.core.service('D'), self.nova.service('D'))
        self.assertIsNone(self.nova.service('nobody'))

    def test_rows(self):
        for host in 'me', 'd', 'nobody':
            self.assertEqual(
                self.core.rows_of(host), self.nova.rows_of(host))
        self.assertEqual(1, len(self.nova.rows_of('d')))
        wanted = [NODE, OTHER, fake_nova.NODES[20]]
        self.assertEqual(self.core.rows(wanted), self.nova.rows(wanted))
        self.assertEqual(model.Row('Me'), self.nova.rows([NODE])[NODE])

    def test_instances(self):
        self.assertEqual({'built'}, self.nova.instances_of('ME'))
        wanted = ['built', 'building', 'ended', 'deleted']
        self.assertEqual(self.core.instances(wanted),
                         self.nova.instances(wanted))

    def test_nothing_is_asked_for_nothing(self):
        self.fake.asked.clear()
        self.assertEqual({}, self.nova.rows([]))
        self.assertEqual({}, self.nova.instances(iter(())))
        self.assertEqual([], self.fake.asked)

    def test_other_drivers(self):
        self.assertEqual({'d'}, self.nova.other_drivers(['D', 'b', 'none']))

    def test_service_that_never_had_a_heartbeat(self):
        created = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        found = records.service_of(objects.Service(
            host='me', created_at=created, last_seen_up=None,
            forced_down=False, disabled=False))
        self.assertEqual(model.Service('me', created), found)

    def test_heartbeats_in_memcached(self):
        self.fake.conf.config(servicegroup_driver='mc')
        self.useFixture(fixtures.MockPatch(
            'nova.servicegroup.API')).mock().service_is_up = (
                lambda service: service.host == 'b')
        self.assertEqual(
            {'Me': False, 'b': True, 'c': False, 'd': False},
            {service.host: service.alive
             for service in records.Nova().services()})
        self.assertIsNone(self.nova.service('b').alive)


class MemberTestCase(RecordsTestCase):
    """What services say in their member records."""

    RACK, SHARD = model.Scope('rack'), model.Scope(None, 'one')
    B = member.uuid_of('b')

    def setUp(self):
        super().setUp()
        self.fake.add_service('b', 'c', 'd')
        # It runs Nova's own driver.
        self.fake.own(OTHER, 'c')
        self.cloud.other_drivers = frozenset({'d'})
        self.said = self._say(1)

    def _say(self, minute: int, **changes: Any) -> model.Member:
        said = model.Member(model.LastPass(
            60, clouds.EPOCH + datetime.timedelta(minutes=minute)),
            self.RACK, **changes)
        self.cloud.members['b'] = said
        return said

    def _read(self) -> dict[str, model.Member | None]:
        """Return what the services say that run an ironic driver."""
        return {each.name: each.said for each in self.nova.services()
                if each.is_ironic}

    def test_records_are_read(self):
        self.assertEqual({'b': self.said, 'c': None}, self._read())
        said = self._say(2, by_shards=True, held=frozenset({'01234567'}),
                         ring='0a1b')
        self.assertEqual({'b': said, 'c': None}, self._read())
        self.assertEqual(self.core.services(), self.nova.services())

    def test_records_are_read_in_one_request(self):
        for host in 'c', 'd':
            del self.cloud.services[host]
        self.cloud.rows.clear()
        for host in 'e', 'f':
            self.fake.add_service(host)
            self.cloud.members[host] = self.said
        for _ in range(2):
            self.fake.asked.clear()
            self.assertEqual({'b', 'e', 'f'}, self._read().keys())
            self.assertEqual(['all services', 'rows'], self.fake.asked)
        self.fake.asked.clear()
        self.assertEqual({'b': self.said, 'e': self.said},
                         self.nova.members(['B', 'E']))
        self.assertEqual(['rows'], self.fake.asked)

    def test_services_without_a_record(self):
        for _ in range(2):
            self.assertEqual({'b': self.said, 'c': None}, self._read())
            self.assertEqual({'b': self.said},
                             self.nova.members(['B', 'C', 'd', 'none']))
        # A row of each is read as those of the others, once it is known.
        self.fake.asked.clear()
        self._read()
        self.assertEqual(['all services', 'rows', 'ring services', 'rows'],
                         self.fake.asked)
        # It has gone to another.
        self.fake.own(OTHER, 'b')
        self.assertEqual({'b': self.said}, self._read())

    def test_disabled_service_without_a_record(self):
        """Nova does not name it among those with nodes of Ironic."""
        for host in 'c', 'd':
            self.fake.change_service(host, disabled=True)
        self.assertEqual({'b': self.said, 'c': None}, self._read())
        # One that had none gets none while it is disabled.
        self.cloud.other_drivers = frozenset()
        self.nova = records.Nova()
        for more in ['rows of host', 'rows of host'], ['rows']:
            self.fake.asked.clear()
            self._read()
            self.assertEqual(['all services', 'rows', *more], self.fake.asked)

    def test_all_of_a_record_is_read(self):
        said = self._say(1, ring='0a1b', follows=True, has_pools=True,
                         differ=frozenset({'c'}))
        self.assertEqual(said, self.nova.members(['b'])['b'])

    def test_service_that_gets_a_record(self):
        self.assertIsNone(self._read()['c'])
        self.cloud.members['c'] = self.said
        self.assertEqual(self.said, self._read()['c'])
        del self.cloud.members['c']
        self.assertIsNone(self._read()['c'])

    def test_record_without_a_word(self):
        """Nova's tracker has created it, and not saved it yet."""
        self.cloud.members['b'] = model.Member()
        self.assertEqual({'b': None, 'c': None}, self._read())
        self.assertEqual(model.Member(), self.nova.members(['b'])['b'])

    def test_node_with_the_uuid_of_a_record(self):
        """Whoever may name nodes in Ironic may choose their UUIDs."""
        del self.cloud.members['b']
        self.fake.stats[self.B] = stats.say_member(ports.Saying(
            settings.Settings('b', scope=self.SHARD), model.LastPass(60)))
        # It is another's; it is its own; its name is like that of a record.
        for row, expected in (
                (clouds.Row('c'), {'c': None}),
                (clouds.Row('b'), {'b': None, 'c': None}),
                (clouds.Row('c', pool=member.name('b')), {'c': None})):
            self.cloud.rows[self.B] = row
            self.nova = records.Nova()
            self.assertEqual(expected, self._read())
            self.assertEqual({}, self.nova.members(['b', 'c']))

    def test_record_is_no_row(self):
        self.fake.own(NODE, 'b')
        self.assertEqual({NODE}, self.nova.rows_of('b').keys())
        self.assertEqual(self.core.rows_of('b'), self.nova.rows_of('b'))
        self.assertEqual(frozenset(), self.nova.other_drivers(['b']))

    def _write(self, host: str, held: frozenset[str] | None = None) -> None:
        self.nova.say_member(ports.Saying(
            settings.Settings(host, scope=self.SHARD),
            model.LastPass(60, clouds.EPOCH), held, 'ring'))

    def test_what_is_written(self):
        self.cloud.members['me'] = model.Member()
        # The database does not distinguish these names.
        for host in 'me', 'ME ':
            held = frozenset({f'{host[:1].lower():0>8}'})
            self._write(host, held)
            self.assertEqual(
                model.Member(model.LastPass(60, clouds.EPOCH), self.SHARD,
                             held=held, ring='ring'),
                self.nova.members(['me'])['me'])
        self.assertEqual(self.said, self.nova.members(['b'])['b'])

    def test_nothing_is_written_without_an_own_record(self):
        save = self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNode, 'save')).mock
        self._write('me')
        for row in (clouds.Row('b'), clouds.Row('me'),
                    clouds.Row('b', pool=member.name('me'))):
            self.cloud.rows[member.uuid_of('me')] = row
            self._write('me')
        save.assert_not_called()
        self.cloud.members['me'] = model.Member()
        self._write('me')
        save.assert_called_once_with()

    def test_failures_of_builds(self):
        known = {NODE: failures.Failure(2, clouds.EPOCH)}
        self.nova.failures_to_say = lambda: known
        self.cloud.members['me'] = model.Member()
        self._write('me')
        self.fake.add_service('me')
        self.fake.stats[self.B] = stats.say_failures('b', {
            OTHER: failures.Failure(3, clouds.EPOCH)})
        self.nova.services()
        self.assertEqual(known, self.nova.own_failures)
        self.assertEqual({OTHER: failures.Failure(3, clouds.EPOCH)},
                         self.nova.failures)


class WriteTestCase(RecordsTestCase):

    def test_row_of_the_owner_that_was_read(self):
        self.fake.own(NODE, 'b')
        self.assertFalse(self.nova.delete_row(NODE, 'c'))
        self.assertTrue(self.nova.delete_row(NODE, 'b'))
        self.assertEqual({}, self.cloud.rows)
        self.assertFalse(self.nova.delete_row(NODE, 'b'))

    def test_row_that_changes_between_reading_and_deleting(self):
        for error in (exception.ObjectActionError(action='', reason=''),
                      exception.ComputeHostNotFound(host='b')):
            self.fake.own(NODE, 'b')
            with fixtures.MockPatchObject(
                    objects.ComputeNode, 'destroy', side_effect=error):
                self.assertFalse(self.nova.delete_row(NODE, 'b'))

    def _take(self, **expected) -> bool:
        return self.nova.set_instance_host('i', ports.Expected(**{
            'host': 'b', 'node': NODE, **expected}))

    def test_instance_that_is_as_expected(self):
        self.fake.put('i', NODE, 'b', task='rebooting')
        for expected in {'host': 'c'}, {'node': OTHER}, {'task': None}:
            self.assertFalse(self._take(**{'task': 'rebooting', **expected}))
            self.assertEqual('b', self.fake.host_of('i'))
        self.assertTrue(self._take(task='rebooting'))
        self.assertEqual('me', self.fake.host_of('i'))
        self.assertEqual('rebooting', self.cloud.instances['i'].task)
        self.assertFalse(self._take(task='rebooting'))

    def test_idle_instance(self):
        self.fake.put('i', NODE, 'b')
        self.assertTrue(self._take())

    def test_instance_that_is_deleted(self):
        self.assertFalse(self._take())
        self.fake.put('i', NODE, 'b')
        self.fake.unsaveable['i'] = exception.InstanceNotFound(instance_id='i')
        self.assertFalse(self._take())

    def test_another_service_is_given_an_instance(self):
        self.fake.put('i', NODE, 'b')
        self.assertTrue(records.Nova(host='c').set_instance_host(
            'i', ports.Expected('b', NODE)))
        self.assertEqual('c', self.fake.host_of('i'))

    def test_end_build(self):
        for host in 'b', None:
            self.fake.put('i', NODE, host, is_building=True, task='spawning')
            self.assertTrue(self.nova.end_build('i', 'b'))
            self.assertEqual('error', self.fake.instance('i').vm_state)
            self.assertEqual(model.Instance(None, None, is_given_up=True),
                             self.cloud.instances['i'])
            self.assertIn('nova-compute b', str(self.fake.faults.pop('i')))

    def test_end_unshelve(self):
        for task in 'unshelving', 'spawning':
            self.fake.put('i', None, None, task=task, is_offloaded=True)
            self.assertTrue(self.nova.end_unshelve('i'))
            self.assertEqual(model.Instance(None, None, is_offloaded=True),
                             self.cloud.instances['i'])
        # It is over; and one that is deleted, that a service has, or that is
        # being built.
        self.assertFalse(self.nova.end_unshelve('i'))
        self.assertFalse(self.nova.end_unshelve('deleted'))
        for fields in ({'host': 'b', 'is_offloaded': True},
                       {'host': None, 'is_building': True}):
            self.fake.put('i', None, task='spawning', **fields)
            self.assertFalse(self.nova.end_unshelve('i'))

    def test_unshelving_that_a_service_begins_meanwhile(self):
        self.fake.put('i', None, None, task='unshelving', is_offloaded=True)
        save = objects.Instance.save

        def begin_and_save(instance, **expected):
            self.fake.change_instance('i', task='spawning')
            save(instance, **expected)
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'save', begin_and_save))
        self.assertFalse(self.nova.end_unshelve('i'))
        self.assertEqual('spawning', self.cloud.instances['i'].task)

    def test_build_that_has_ended_or_gone_elsewhere(self):
        self.assertFalse(self.nova.end_build('deleted', 'b'))
        self.fake.put('i', NODE, 'c', is_building=True)
        self.assertFalse(self.nova.end_build('i', 'b'))
        self.fake.put('i', NODE, 'b')
        self.assertFalse(self.nova.end_build('i', 'b'))
        self.assertFalse(self.cloud.instances['i'].is_given_up)
        self.assertEqual({}, self.fake.faults)

    def test_build_that_ends_meanwhile(self):
        self.fake.put('i', NODE, 'b', is_building=True)
        # Between the reading and the saving.
        save = objects.Instance.save

        def end_and_save(instance, **expected):
            self.fake.put('i', NODE, 'b')
            save(instance, **expected)
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'save', end_and_save))
        self.assertFalse(self.nova.end_build('i', 'b'))
        self.assertEqual(model.Instance('b', NODE),
                         self.cloud.instances['i'])


@ddt.ddt
class LostAnswerTestCase(RecordsTestCase):
    """What is written of an instance is read again without an answer."""

    # What each write is called with, and of which instance.
    TAKE = ('set_instance_host', ('i', ports.Expected('b', NODE)),
            {'node': NODE, 'host': 'b'})
    PLACE = ('place_instance', ('i', ports.Expected('b', NODE), OTHER),
             {'node': NODE, 'host': 'b'})
    END = ('end_build', ('i', 'b'), {
        'node': NODE, 'host': 'b', 'is_building': True, 'task': 'spawning'})
    UNSHELVE = ('end_unshelve', ('i',), {
        'node': None, 'host': None, 'is_offloaded': True,
        'task': 'unshelving'})
    ALL = TAKE, PLACE, END, UNSHELVE

    def _write(self, case, is_done: bool, is_read: bool = True) -> bool:
        """Write, without an answer."""
        call, given, fields = case
        self.fake.own(OTHER, 'me')
        self.fake.put('i', **fields)
        save = objects.Instance.save

        def lose(instance, **expected):
            if is_done:
                save(instance, **expected)
            if not is_read:
                failing.start()
            raise oslo_messaging.MessagingTimeout('no answer')
        failing = mock.patch.object(
            objects.Instance, 'get_by_uuid', side_effect=ConnectionError())
        with fixtures.MockPatchObject(objects.Instance, 'save', lose):
            try:
                return getattr(self.nova, call)(*given)
            finally:
                if not is_read:
                    failing.stop()

    @ddt.data(*ALL)
    def test_write_that_is_done(self, case):
        self.assertTrue(self._write(case, True))

    @ddt.data(*ALL)
    def test_write_that_may_come_yet(self, case):
        self.assertRaises(oslo_messaging.MessagingTimeout,
                          self._write, case, False)

    @ddt.data(*ALL)
    def test_write_that_is_not_read_again(self, case):
        self.assertRaises(oslo_messaging.MessagingTimeout,
                          self._write, case, True, False)


class TakeRowsTestCase(base.BaseTestCase):
    """A row goes to another service, in Nova's own database."""

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(nova_database.NovaDatabase())
        self.useFixture(fixtures.MockPatch(
            'nova.rpc.NOTIFIER', mock.Mock(
                **{'is_enabled.return_value': False})))
        self.nova = records.Nova(self.database.context(), 'me')

    def test_answer_is_lost(self):
        """Of two rows one is taken, and conductor answers for neither."""
        self._add(NODE, OTHER)
        save = objects.ComputeNode.save

        def commit_and_lose(row):
            if row.uuid == NODE:
                save(row)
            raise oslo_messaging.MessagingTimeout('no answer')
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNode, 'save', commit_and_lose))
        taking = {NODE: ports.Taking('a', 'so'), OTHER: ports.Taking(
            'a', 'so')}
        with fixtures.MockPatch(
                'nova_ironic_ring.adapters.several.run',
                lambda call, given: [call(each) for each in sorted(
                    given, key=lambda row: row.uuid)]):
            self.assertEqual({NODE}, self.nova.take_rows(taking))

    def _add(self, *nodes: str, **counted: object) -> None:
        """Add nodes of another service."""
        self.database.add(
            *(models.Service(id=number, host=host, binary='nova-compute',
                             topic='compute', report_count=0)
              for number, host in enumerate(('a', 'me'), 1)),
            *(models.ComputeNode(
                uuid=node, host='a', service_id=1, hypervisor_hostname=node,
                hypervisor_type='ironic', hypervisor_version=1, vcpus=0,
                memory_mb=0, local_gb=0, vcpus_used=0, local_gb_used=0,
                cpu_info='', **{'memory_mb_used': 0, **counted})
              for node in nodes))

    def _take(self, **counted: object) -> updates.Changes:
        """Take a row, and return what the next pass is to update."""
        self._add(NODE, **counted)
        step = planner.Step(decisions.Decision.KEEP, 'so')
        made_of = updates.made_of('free', step.decision, 'said')
        self.assertEqual({NODE}, self.nova.take_rows(
            {NODE: ports.Taking('a', made_of, 900)}))
        return updates.find(
            {NODE: step}, self.nova.rows_of('me'), updates.Circumstances(
                {NODE: 'free'}, 'said', frozenset(), {NODE: None}, 1000,
                10 ** 9))

    def test_row_that_was_created_and_not_saved(self):
        """Placement may not have its provider."""
        self._add(NODE, OTHER, stats=json.dumps(
            stats.make('a', 'free said', 7)))
        # As Nova's tracker does, after Placement has the provider.
        objects.ComputeNode.get_by_uuid(self.nova.context, NODE).save()
        found = self.nova.rows_of('a')
        self.assertEqual('free said', found[NODE].made_of)
        self.assertEqual(7, found[NODE].made_at)
        self.assertIsNone(found[OTHER].made_of)

    def test_row_that_counts_nothing(self):
        self.assertEqual({NODE}, self._take(running_vms=0).unchanged)

    def test_row_that_counts_an_instance_that_is_gone(self):
        self.assertEqual(frozenset(), self._take(
            running_vms=1, memory_mb_used=4096,
            stats='{"num_instances": "1"}').unchanged)
