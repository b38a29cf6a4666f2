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

import datetime
import signal
import types
from unittest import mock

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
import nova.conf
from nova import exception
from nova import objects
from nova.virt.ironic import driver as nova_driver
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
from oslo_config import fixture as config_fixture
from oslo_utils import fixture as time_fixture
from oslotest import base

from nova_ironic_ring import driver
from nova_ironic_ring import ring

CONF = nova.conf.CONF
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)

# By a ring of three with the default partitions; see test_nodes_by_the_ring.
NODES = ['00000000-0000-0000-0000-%012d' % number for number in range(30)]


def _service(host: str, silent: float = 0, **fields) -> objects.Service:
    """Return the record of a service that was heard of some seconds ago."""
    return objects.Service(**{
        'host': host, 'binary': 'nova-compute', 'topic': 'compute',
        'created_at': NOW - datetime.timedelta(days=1),
        'last_seen_up': NOW - datetime.timedelta(seconds=silent),
        'forced_down': False, 'disabled': False} | fields)


class DriverTestCase(base.BaseTestCase):
    """The driver on a Nova and an Ironic that only answer."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.conf = self.useFixture(config_fixture.Config(CONF))
        self.conf.config(host='me')
        self.useFixture(time_fixture.TimeFixture(NOW))
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))

        self.signal = self.useFixture(
            fixtures.MockPatch('signal.signal')).mock

        #: What was asked for, in turn.
        self.asked: list[str] = []
        self.services = [_service('me'), _service('a'), _service('b')]
        self.nodes = {name: None for name in NODES}
        self.instances: list[str] = []
        self._patch(objects.ServiceList, 'get_all_computes_by_hv_type',
                    self._services)
        self._patch(objects.InstanceList, 'get_uuids_by_host',
                    self._instances)

        self.ironic = mock.Mock()
        self.ironic.nodes.side_effect = self._nodes
        self.driver = driver.IronicRingDriver(None)
        self.driver._ironic_connection = self.ironic
        self.driver._can_send_version = mock.Mock()

    def _patch(self, owner: type, name: str, function) -> None:
        self.useFixture(
            fixtures.MockPatchObject(owner, name, side_effect=function))

    def _services(self, context, hypervisor_type):
        self.assertEqual('ironic', hypervisor_type)
        self.asked.append('services')
        return self.services

    def _nodes(self, fields, **filters):
        self.asked.append('nodes')
        self.filters = filters
        return (sdk_node.Node(id=name, instance_id=instance,
                              properties={'cpu_arch': 'x86_64'})
                for name, instance in self.nodes.items())

    def _instances(self, context, host):
        self.assertEqual(CONF.host, host)
        self.asked.append('instances')
        return self.instances

    def _desired(self, *members: str, partitions: int = 32) -> set[str]:
        """Return the nodes that are for this service."""
        current = ring.Ring(members, partitions)
        return {name for name in NODES if current.owner(name) == 'me'}

    def _listed(self) -> set[str]:
        return set(self.driver.get_available_nodes())


class PassTestCase(DriverTestCase):

    def test_nodes_by_the_ring(self):
        desired = self._desired('me', 'a', 'b')
        self.assertGreater(len(desired), 0)
        self.assertLess(len(desired), len(NODES))
        self.assertEqual(desired, self._listed())

    def test_instances_come_after_nodes(self):
        self._listed()
        self.assertLess(self.asked.index('nodes'),
                        self.asked.index('instances'))

    def test_own_instances_always(self):
        foreign = sorted(set(NODES) - self._desired('me', 'a', 'b'))[0]
        self.nodes[foreign] = 'mine'
        self.instances = ['mine']
        self.assertIn(foreign, self._listed())

    def test_instances_that_nova_may_have_deleted(self):
        desired = sorted(self._desired('me', 'a', 'b'))
        foreign = sorted(set(NODES) - set(desired))
        self.nodes[desired[0]] = 'mine'
        self.nodes[desired[1]] = 'deleted or another\'s'
        self.nodes[foreign[0]] = 'theirs'
        self.instances = ['mine']
        self._listed()
        self.assertEqual(['mine', 'deleted or another\'s'],
                         self.driver.list_instance_uuids())
        self.assertEqual(1, self.driver.get_num_instances())

    def test_newcomer_lists_no_instances_of_others(self):
        # Nova refuses to start a new service that lists any.
        self.services = [_service('a'), _service('b')]
        self.nodes[sorted(self._desired('me', 'a', 'b'))[0]] = 'theirs'
        self._listed()
        self.assertEqual([], self.driver.list_instance_uuids())

    def test_instances_of_others_never(self):
        own = sorted(self._desired('me', 'a', 'b'))[0]
        self.nodes[own] = 'theirs'
        self.assertNotIn(own, self._listed())

    def test_dead_and_forced_down_services_are_no_members(self):
        self.services = [
            _service('me'), _service('a', CONF.service_down_time + 1),
            _service('b', forced_down=True), _service('c')]
        self.assertEqual(self._desired('me', 'c'), self._listed())

    def test_service_that_never_had_a_heartbeat(self):
        self.services = [_service('me'), _service('a', last_seen_up=None)]
        self.assertEqual(self._desired('me'), self._listed())

    def test_newcomer_counts_itself_in(self):
        self.services = [_service('a'), _service('b')]
        self.assertEqual(self._desired('me', 'a', 'b'), self._listed())

    def test_host_names_in_any_case(self):
        self.conf.config(host='ME')
        self.services = [_service('Me'), _service('A'), _service('b')]
        self.assertEqual(self._desired('me', 'a', 'b'), self._listed())

    def test_partitions(self):
        self.conf.config(partitions=7, group='ironic_ring')
        self.assertNotEqual(self._desired('me', 'a', 'b'),
                            self._desired('me', 'a', 'b', partitions=7))
        self.assertEqual(self._desired('me', 'a', 'b', partitions=7),
                         self._listed())

    def test_heartbeats_in_memcached(self):
        self.conf.config(servicegroup_driver='mc')
        # What the database says does not count.
        self.services = [_service('a'), _service('b', 999)]
        self.driver._service_group = mock.Mock()
        self.driver._service_group.service_is_up.side_effect = (
            lambda service: service.host == 'b')
        self.assertEqual(self._desired('me', 'b'), self._listed())

    def test_change_of_members_is_told_once(self):
        self._listed()
        self._listed()
        self.services.pop()
        self._listed()
        self.assertEqual(
            'Members of the ring: a, b, me (before: none).\n'
            'Members of the ring: a, me (before: a, b, me).\n',
            ''.join(line + '\n' for line in self.log.output.splitlines()
                    if 'Members' in line))

    def _break_listing(self) -> None:
        def half_a_listing(fields, **filters):
            yield from list(self._nodes(fields))[:3]
            raise sdk_exceptions.SDKException('gone')
        self.ironic.nodes.side_effect = half_a_listing

    def test_ironic_does_not_answer(self):
        self._break_listing()
        self.assertRaises(exception.VirtDriverNotReady,
                          self.driver.get_available_nodes)
        self.assertIn('Ironic does not list its nodes: gone', self.log.output)

    def test_failed_pass_keeps_the_cache(self):
        before = self._listed()
        self._break_listing()
        self.assertRaises(exception.VirtDriverNotReady,
                          self.driver.get_available_nodes)
        self.assertEqual(before, set(self.driver.node_cache))

    def test_answers_from_the_cache(self):
        own = sorted(self._desired('me', 'a', 'b'))[0]
        self.assertTrue(self.driver.node_is_available(own))
        self.assertEqual(own, self.driver.get_available_resource(own)['uuid'])
        self.assertEqual(1, self.asked.count('nodes'))


class PartitioningTestCase(DriverTestCase):

    def test_no_filter(self):
        self._listed()
        self.assertEqual({}, self.filters)

    def test_conductor_group(self):
        self.conf.config(group='ironic', conductor_group='rack1',
                         peer_list=['Me', ' A'])
        self.assertEqual(self._desired('me', 'a'), self._listed())
        self.assertEqual({'conductor_group': 'rack1'}, self.filters)

    def test_own_instance_on_a_node_that_has_left_the_group(self):
        self.conf.config(group='ironic', conductor_group='rack1',
                         peer_list=['me', 'a'])
        self.instances = ['mine', 'nowhere']
        elsewhere = '11111111-1111-1111-1111-111111111111'
        asked = []

        def nodes(fields, instance_id=None, **filters):
            if instance_id is None:
                return self._nodes(fields, **filters)
            asked.append(instance_id)
            return iter([sdk_node.Node(id=elsewhere, instance_id='mine')]
                        if instance_id == 'mine' else [])

        self.ironic.nodes.side_effect = nodes
        self.assertEqual(self._desired('me', 'a') | {elsewhere},
                         self._listed())
        self.assertEqual(['mine', 'nowhere'], asked)

        # Once it is listed, and without a filter, nobody is asked.
        asked.clear()
        self.nodes[NODES[0]] = 'mine'
        self.instances = ['mine']
        self._listed()
        self.conf.config(group='ironic', conductor_group=None)
        self.instances = ['mine', 'nowhere']
        self._listed()
        self.assertEqual([], asked)

    def test_partition_key_is_the_old_name(self):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(path, 'w') as file:
            file.write('[ironic]\npartition_key = rack1\npeer_list = me\n')
        self.conf.set_config_files([path])
        self.conf.conf.reload_config_files()
        self._listed()
        self.assertEqual({'conductor_group': 'rack1'}, self.filters)

    def test_default_conductor_group(self):
        self.conf.config(group='ironic', conductor_group='', peer_list=['me'])
        self.assertEqual(set(NODES), self._listed())
        self.assertEqual({'conductor_group': ''}, self.filters)

    def test_shard(self):
        self.conf.config(group='ironic', shard='one')
        self.assertEqual(set(NODES), self._listed())
        self.assertEqual({'shard': 'one'}, self.filters)

    def test_shard_of_a_group(self):
        # The peers of the group are those of other shards.
        self.conf.config(group='ironic', shard='one', conductor_group='rack1',
                         peer_list=['me', 'a'])
        self.assertEqual(set(NODES), self._listed())
        self.assertEqual({'shard': 'one', 'conductor_group': 'rack1'},
                         self.filters)

    def _too_old_for(self, version: str) -> None:
        def can_send_version(wanted):
            if wanted == version:
                raise exception.IronicAPIVersionNotAvailable(version=wanted)
        self.driver._can_send_version.side_effect = can_send_version

    def test_ironic_too_old_for_groups(self):
        self._too_old_for('1.46')
        self.conf.config(group='ironic', conductor_group='rack1',
                         peer_list=['me'])
        self.assertRaises(exception.VirtDriverNotReady,
                          self.driver.get_available_nodes)
        self.assertIn('[ironic] conductor_group needs version 1.46',
                      self.log.output)
        self.ironic.nodes.assert_not_called()

    def test_ironic_too_old_for_shards(self):
        self._too_old_for('1.82')
        self.conf.config(group='ironic', shard='one', conductor_group='rack1')
        self.assertRaises(exception.VirtDriverNotReady,
                          self.driver.get_available_nodes)
        self.assertIn('[ironic] shard needs version 1.82', self.log.output)
        self.ironic.nodes.assert_not_called()

    def test_ironic_does_not_tell_its_versions(self):
        for error in (exception.ServiceUnavailable(),
                      keystone_exceptions.ConnectFailure()):
            self.driver._can_send_version.side_effect = error
            self.conf.config(group='ironic', shard='one')
            self.assertRaises(exception.VirtDriverNotReady,
                              self.driver.get_available_nodes)


class InitHostTestCase(DriverTestCase):

    def test_good_configuration(self):
        self.driver.init_host('me')
        self.assertEqual('', self.log.output)
        self.signal.assert_called_once_with(signal.SIGHUP, mock.ANY)

    def test_sighup_takes_effect_in_the_next_pass(self):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')

        def write(peers: str) -> None:
            with open(path, 'w') as file:
                file.write('[ironic]\nconductor_group = rack1\n'
                           f'peer_list = {peers}\n')

        write('me, a')
        self.conf.set_config_files([path])
        CONF.reload_config_files()
        self.driver.virtapi = mock.Mock()
        self.driver.init_host('me')
        self.assertEqual(self._desired('me', 'a'), self._listed())
        write('me, b')
        self.assertEqual(self._desired('me', 'a'), self._listed())
        self.driver.virtapi._compute.reset.assert_not_called()

        _, handler = self.signal.call_args.args
        handler(signal.SIGHUP, None)
        self.assertEqual(self._desired('me', 'b'), self._listed())
        self.driver.virtapi._compute.reset.assert_called_once_with()

    def test_bad_peer_list(self):
        self.conf.config(group='ironic', conductor_group='rack1',
                         peer_list=['a'])
        self.assertRaises(exception.InvalidConfiguration,
                          self.driver.init_host, 'me')
        self.assertIn('does not name this service (me)', self.log.output)

    def test_configuration_that_goes_bad(self):
        self.conf.config(group='ironic', conductor_group='rack1',
                         peer_list=['me', 'a'])
        before = self._listed()
        self.conf.config(group='ironic', peer_list=[])
        self.assertEqual(before, self._listed())
        self.assertEqual(before, self._listed())
        self.assertEqual(1, self.log.output.count('peer_list is empty'))
        self.assertIn('stays in force', self.log.output)

        self.conf.config(group='ironic', peer_list=['me'])
        self.assertEqual(set(NODES), self._listed())
        self.conf.config(group='ironic', peer_list=[])
        self._listed()
        self.assertEqual(2, self.log.output.count('peer_list is empty'))


class WithoutTheRingOfNovaTestCase(DriverTestCase):
    """Everything works when Nova has lost its ring and what is for it."""

    def setUp(self):
        for name in ('virt.ironic.driver.IronicDriver._refresh_hash_ring',
                     'virt.ironic.driver._check_peer_list',
                     'virt.ironic.driver._HASH_RING_PARTITIONS',
                     'virt.ironic.driver.hash_ring',
                     'exception.InvalidPeerList'):
            self.useFixture(fixtures.MonkeyPatch(
                f'nova.{name}', fixtures.MonkeyPatch.delete))
        # Its constructor makes one.
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.ironic.driver.servicegroup',
            types.SimpleNamespace(API=lambda: None)))
        super().setUp()
        del self.driver.servicegroup_api

    def test_they_are_gone(self):
        self.assertFalse(hasattr(nova_driver, 'hash_ring'))
        self.assertFalse(
            hasattr(nova_driver.IronicDriver, '_refresh_hash_ring'))

    def test_pass(self):
        self.driver.init_host('me')
        self.assertEqual(self._desired('me', 'a', 'b'), self._listed())
        self.assertFalse(hasattr(self.driver, 'hash_ring'))

    def test_conductor_group(self):
        self.conf.config(group='ironic', conductor_group='rack1',
                         peer_list=['me', 'a'])
        self.driver.init_host('me')
        self.assertEqual(self._desired('me', 'a'), self._listed())

    def test_bad_peer_list(self):
        self.conf.config(group='ironic', conductor_group='rack1')
        self.assertRaises(exception.InvalidConfiguration,
                          self.driver.init_host, 'me')

    def test_heartbeats_in_memcached(self):
        self.conf.config(servicegroup_driver='mc')
        self.driver._service_group = mock.Mock()
        self.driver._service_group.service_is_up.return_value = False
        self.assertEqual(self._desired('me'), self._listed())

    def test_cache_is_filled_when_it_is_needed(self):
        own = sorted(self._desired('me', 'a', 'b'))[0]
        self.assertEqual(own, self.driver.get_available_resource(own)['uuid'])
