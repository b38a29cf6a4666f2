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
import inspect
import itertools
import logging
import signal
import types
from unittest import mock

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import manager
import nova.conf
from nova import exception
from nova import objects
from nova.virt.ironic import driver as nova_driver
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
from oslo_config import fixture as config_fixture
from oslo_utils import fixture as time_fixture
from oslo_utils import timeutils
from oslotest import base

from nova_ironic_ring import driver
from nova_ironic_ring import possession
from nova_ironic_ring import records
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
        'forced_down': False, 'disabled': False}
        | fields)


def _offer(giver: str, taker: str) -> dict[str, str]:
    """Return what an offer is, in the statistics of a node."""
    return {'ironic_ring:from': giver, 'ironic_ring:to': taker}


class DriverTestCase(base.BaseTestCase):
    """The driver on a Nova and an Ironic that only answer."""

    HANDOVER = 'immediate'

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.conf = self.useFixture(config_fixture.Config(CONF))
        self.conf.config(host='me')
        self.conf.config(handover=self.HANDOVER, group='ironic_ring')
        self.clock = self.useFixture(time_fixture.TimeFixture(NOW))
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))

        self.signal = self.useFixture(
            fixtures.MockPatch('signal.signal')).mock

        #: What was asked for, in turn.
        self.asked: list[str] = []
        #: Those that run an ironic driver.
        self.services = [_service('me'), _service('a'), _service('b')]
        #: All other nova-computes, and those without a node.
        self.others: list[objects.Service] = []
        self.nodes = {name: None for name in NODES}
        #: Of instances: those that are not active, and that are busy.
        self.vm_states: dict[str, str] = {}
        self.tasks: dict[str, str] = {}
        #: The node of each instance of this service.
        self.instances: dict[str, str | None] = {}
        #: The service of each instance of others, and its node where that is
        #: not the one that Ironic has it on.
        self.hosts: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.rows: dict[str, objects.ComputeNode] = {}
        for owner, name, function in (
                (objects.ServiceList, 'get_all_computes_by_hv_type',
                 self._ring_services),
                (objects.ServiceList, 'get_by_binary', self._all_services),
                (objects.Service, 'get_by_compute_host', self._own_service),
                (objects.ComputeNodeList, 'get_all_by_host',
                 self._rows_of_host),
                (objects.ComputeNodeList, 'get_all_by_uuids',
                 self._rows_of_nodes),
                (objects.InstanceList, 'get_uuids_by_host', self._instances),
                (objects.InstanceList, 'get_by_filters',
                 self._some_instances)):
            self.useFixture(fixtures.MockPatchObject(
                owner, name, side_effect=function))

        self.ironic = mock.Mock()
        self.ironic.nodes.side_effect = self._nodes
        self.ironic.get_node.side_effect = self._node
        #: What Nova's resource tracker has in hand.
        self.tracked: dict[str, object] = {}
        self.driver = self._new_driver()

    def _new_driver(self) -> driver.IronicRingDriver:
        made = driver.IronicRingDriver(mock.Mock())
        made.virtapi._compute.rt.compute_nodes = self.tracked
        client = made.virtapi.reportclient
        client.get_allocations_for_resource_provider.return_value = (
            types.SimpleNamespace(allocations={}))
        made._ironic_connection = self.ironic
        made._can_send_version = mock.Mock()
        return made

    def _ring_services(self, context, hypervisor_type):
        self.assertEqual('ironic', hypervisor_type)
        self.asked.append('services')
        return [service for service in self.services if not service.disabled]

    def _all_services(self, context, binary, include_disabled):
        self.assertEqual(('nova-compute', True), (binary, include_disabled))
        self.asked.append('all services')
        return self.services + self.others

    def _own_service(self, context, host):
        for service in self.services + self.others:
            if service.host.lower() == host.lower():
                return service
        raise exception.ComputeHostNotFound(host=host)

    def _rows_of_host(self, context, host):
        self.asked.append('rows')
        found = [row for row in self.rows.values()
                 if row.host.lower() == host.lower()]
        if not found:
            raise exception.ComputeHostNotFound(host=host)
        return found

    def _rows_of_nodes(self, context, uuids):
        self.asked.append('candidates')
        return [self.rows[uuid] for uuid in uuids if uuid in self.rows]

    def _nodes(self, fields, **filters):
        self.asked.append('nodes')
        self.filters = filters
        return (self._node(name) for name in self.nodes)

    def _node(self, name, **_):
        self.asked.append('node')
        if name not in self.nodes:
            raise sdk_exceptions.NotFoundException()
        return sdk_node.Node(id=name, instance_id=self.nodes[name],
                             properties={'cpu_arch': 'x86_64'})

    def _instances(self, context, host):
        self.assertEqual(CONF.host, host)
        self.asked.append('instances')
        return list(self.instances)

    def _some_instances(self, context, filters, expected_attrs):
        self.asked.append('builds')
        return [objects.Instance(uuid=uuid, node=self._place(uuid),
                                 host=self.hosts.get(uuid, CONF.host),
                                 vm_state=self.vm_states.get(uuid, 'active'),
                                 task_state=self.tasks.get(uuid),
                                 system_metadata={})
                for uuid in filters['uuid']
                if uuid in self.instances or uuid in self.hosts]

    def _place(self, uuid: str) -> str | None:
        """Return the node that Nova has an instance on."""
        found = {instance: node for node, instance in self.nodes.items()}
        return self.places.get(
            uuid, self.instances.get(uuid) or found.get(uuid))

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
        self.instances = {'mine': None}
        self.assertIn(foreign, self._listed())

    def test_instances_that_nova_may_have_deleted(self):
        desired = sorted(self._desired('me', 'a', 'b'))
        foreign = sorted(set(NODES) - set(desired))
        self.nodes[desired[0]] = 'mine'
        self.nodes[desired[1]] = 'deleted or another\'s'
        self.nodes[foreign[0]] = 'theirs'
        self.instances = {'mine': None}
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
        self.useFixture(fixtures.MockPatch(
            'nova.servicegroup.API')).mock().service_is_up = (
                lambda service: service.host == 'b')
        self.driver = self._new_driver()
        self.assertEqual(self._desired('me', 'b'), self._listed())

    def test_change_of_members_is_told_once(self):
        self._listed()
        self._listed()
        self.services.pop()
        self._listed()
        self.assertEqual(
            'Members of the ring: a, b, me (before: none): a has come, '
            'b has come, me has come.\n'
            'Members of the ring: a, me (before: a, b, me): b is gone.\n',
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


class CooperativeTestCase(DriverTestCase):
    """The driver, and what Nova and the other services make of it."""

    HANDOVER = 'cooperative'

    def setUp(self):
        super().setUp()
        current = ring.Ring({'me', 'a', 'b'}, 32)
        for name in NODES:
            self._record(name, current.owner(name))
        self._pass()
        self._beat()

    def _record(self, node: str, host: str, **stats: str) -> None:
        self.rows[node] = objects.ComputeNode(
            uuid=node, host=host, stats=stats, hypervisor_type='ironic')

    def _beat(self) -> None:
        """Have time pass, with a heartbeat of all that live."""
        self.clock.advance_time_seconds(1)
        for service in self.services + self.others:
            if service.last_seen_up:
                service.last_seen_up += datetime.timedelta(seconds=1)

    def _pass(self) -> set[str]:
        """Do what Nova's resource tracker does in a pass."""
        self.asked.clear()
        listed = self._listed()
        for node in list(self.tracked):
            if self.rows[node].host != 'me':
                del self.tracked[node]
        for node in listed:
            try:
                stats = self.driver.get_available_resource(node)['stats']
            except exception.ComputeHostNotFound:
                continue
            self._record(node, 'me', **{
                key: value for key, value in stats.items()
                if value is not None})
            self.tracked[node] = object()
        return listed

    def _owned(self) -> set[str]:
        return {node for node, row in self.rows.items() if row.host == 'me'}

    def _offers(self) -> dict[str, str]:
        return {node: row.stats['ironic_ring:to']
                for node, row in self.rows.items()
                if row.host == row.stats.get('ironic_ring:from')}


class ConsentTestCase(CooperativeTestCase):
    """The handover between services that live."""

    def test_steady_state_costs_one_listing_of_own_rows(self):
        # Now and then one looks for what is left of dead services.
        self.assertEqual(1, self._asked_in_a_pass().count('all services'))
        self.assertEqual(
            ['services', 'nodes', 'instances', 'rows'],
            [each for each in self._asked_in_a_pass() if each != 'node'])
        self.assertEqual(len(NODES), self.asked.count('node'))

    def _asked_in_a_pass(self) -> list[str]:
        self.asked.clear()
        self._pass()
        return self.asked

    def test_newcomer_is_given_its_share(self):
        before = self._owned()
        self.services.append(_service('e'))
        after = self._desired('me', 'a', 'b', 'e')
        self.assertLess(after, before)
        self.assertEqual(before, self._pass())
        self.assertEqual(dict.fromkeys(before - after, 'e'), self._offers())
        self.assertIn('is offered to e', self.log.output)

        # Builds go on working until it is taken.
        self._beat()
        self.assertEqual(before, self._pass())
        for node in before - after:
            self._record(node, 'e')
        self.assertEqual(after, self._pass())
        self.assertEqual({}, self._offers())

    def test_node_taken_in_the_middle_of_a_pass_is_not_taken_back(self):
        self.services.append(_service('e'))
        self._pass()
        node = sorted(self._offers())[0]
        self._listed()
        # As the resource tracker does with what another service has.
        self._record(node, 'e')
        del self.tracked[node]
        self.assertRaises(exception.ComputeHostNotFound,
                          self.driver.get_available_resource, node)

    def test_nova_looks_anew_for_the_providers_of_nodes_that_are_taken(self):
        client = self.driver.virtapi.reportclient
        self._pass()
        self.assertEqual(
            {(node,) for node in self._owned()},
            {call.args for call in
             client.invalidate_resource_provider.call_args_list})
        client.invalidate_resource_provider.reset_mock()
        self._pass()
        client.invalidate_resource_provider.assert_not_called()

    def test_node_offered_before_the_resource_tracker_knows_it(self):
        self.services.append(_service('e'))
        self._listed()
        self.tracked.clear()
        node = sorted(self.driver._plan.offers)[0]
        self.assertEqual('e', self.driver.get_available_resource(node)[
            'stats']['ironic_ring:to'])

    def test_new_node_that_another_service_was_faster_with(self):
        new = '11111111-1111-1111-1111-111111111111'
        self.nodes[new] = None
        self.services[1].disabled = self.services[2].disabled = True
        self.assertIn(new, self._listed())
        self._record(new, 'a')
        self.assertRaises(exception.ComputeHostNotFound,
                          self.driver.get_available_resource, new)

    def test_nothing_is_offered_while_it_is_built_on(self):
        self.services.append(_service('e'))
        node = sorted(self._owned() - self._desired('me', 'a', 'b', 'e'))[0]
        self.instances = {'building': node}
        self.assertIn(node, self._pass())
        self.assertIn('builds', self.asked)
        self.assertEqual('', self._offers()[node])
        self.assertNotIn('is offered', self.log.output)
        self.instances = {}
        self._pass()
        self.assertEqual('e', self._offers()[node])

    def test_owner_that_says_not_now_is_not_silent(self):
        node = sorted(self._desired('me', 'a', 'b'))[0]
        self._record(node, 'a', **_offer('a', ''))
        self.conf.config(group='ironic_ring', handover_timeout=3)
        for _ in range(30):
            self.assertNotIn(node, self._pass())
            self._beat()
        # From the last time that it said so.
        self._record(node, 'a')
        for _ in range(2):
            self.assertNotIn(node, self._pass())
            self._beat()
        self.assertIn(node, self._pass())

    def test_nothing_is_taken_after_sigterm(self):
        node = sorted(self._desired('me', 'a', 'b'))[0]
        self._record(node, 'a', **_offer('a', 'me'))
        self.driver._pulse.end()
        self.assertNotIn(node, self._pass())

    def test_missing_heartbeats(self):
        self.driver._pulse = mock.Mock(ended=False)
        self.driver._pulse.longest_gap.return_value = 36
        self.services[1].last_seen_up -= datetime.timedelta(hours=1)
        before = self._owned()
        self.assertEqual(before, self._pass())
        self.driver._pulse.longest_gap.return_value = 10
        for _ in range(CONF.service_down_time):
            self.assertEqual(before, self._pass())
            self._beat()
        self.assertEqual(self._desired('me', 'b'), self._pass())

    def test_record_deleted_while_it_runs(self):
        new = '11111111-1111-1111-1111-111111111111'
        self.nodes[new] = None
        before = self._owned()
        self.services.pop(0)
        self.assertEqual(before, self._pass())

    def test_ironic_fails_while_nodes_are_missing(self):
        self.nodes.clear()
        self.ironic.get_node.side_effect = sdk_exceptions.SDKException('gone')
        self.assertRaises(exception.VirtDriverNotReady, self._pass)
        self.assertNotIn('have been late', self.log.output)
        self.nodes = dict.fromkeys(NODES)
        self.ironic.get_node.side_effect = self._node
        self._pass()
        self.assertNotIn('have been late', self.log.output)

    def test_strangers_are_not_waited_for(self):
        self.conf.config(group='ironic', conductor_group='', peer_list=[
            'me', 'a'])
        self.assertEqual(self._desired('me', 'a'), self._pass())

    def test_quarrel_of_three(self):
        node = sorted(self._desired('me', 'a', 'b'))[0]
        self.conf.config(group='ironic_ring', handover_timeout=3)
        for owner in 'a', 'b':
            self.assertNotIn('takes back', self.log.output)
            self._record(node, owner)
            while node not in self._pass():
                self._beat()
        self._record(node, 'a')
        for _ in range(29):
            self.assertNotIn(node, self._pass())
            self._beat()
        self.assertIn('a takes back nodes', self.log.output)

    def test_offer_is_taken(self):
        node = sorted(self._desired('me', 'a', 'b'))[0]
        self._record(node, 'a')
        self.tracked.pop(node)
        self.assertNotIn(node, self._pass())
        self.assertEqual(1, self.asked.count('candidates'))
        self._record(node, 'a', **_offer('a', 'me'))
        self.assertIn(node, self._pass())
        self.assertIn(f'Node {node} of a is free and taken with consent',
                      self.log.output)

    def test_offer_of_a_former_owner_is_none(self):
        node = sorted(self._desired('me', 'a', 'b'))[0]
        self._record(node, 'a', **_offer('b', 'me'))
        self.assertNotIn(node, self._pass())

    def test_silent_owner(self):
        node = sorted(self._desired('me', 'a', 'b'))[0]
        self._record(node, 'a')
        self.conf.config(update_resources_interval=5)
        for _ in range(2 * CONF.update_resources_interval):
            self.assertNotIn(node, self._pass())
            self._beat()
        self.assertIn(node, self._pass())

    def test_silent_owner_takes_back(self):
        self.conf.config(group='ironic_ring', handover_timeout=3)
        node = sorted(self._desired('me', 'a', 'b'))[0]
        # It keeps its hands off for ten times the timeout, and then for twice
        # as long.
        for seconds in 3, 30, 60:
            self._record(node, 'a')
            waited = 0
            while node not in self._pass():
                waited += 1
                self._beat()
            self.assertEqual(seconds, waited)
        self._record(node, 'a')
        self.assertNotIn(node, self._pass())
        self.assertEqual(1, self.log.output.count(
            f'a takes back nodes that me has taken, such as {node} (1 in'))
        # With consent it is taken all the same.
        self._record(node, 'a', **_offer('a', 'me'))
        self.assertIn(node, self._pass())

    def test_update_that_failed_is_no_quarrel(self):
        self.conf.config(group='ironic_ring', handover_timeout=1)
        node = sorted(self._desired('me', 'a', 'b'))[0]
        for _ in range(3):
            self._record(node, 'a')
            self.tracked.pop(node, None)
            self._listed()
            self._beat()
        self.assertIn(node, self._listed())
        self.assertNotIn('takes back', self.log.output)

    def test_dead_owner(self):
        dead = self.services.pop()
        dead.last_seen_up = NOW - datetime.timedelta(hours=1)
        self.services.append(dead)
        self.assertEqual(self._desired('me', 'a'), self._pass())

    def test_owner_without_a_record(self):
        self.services.pop()
        self.assertEqual(self._desired('me', 'a'), self._pass())
        self.assertIn('all services', self.asked)

    def test_disabled_owner_is_waited_for(self):
        self.services[2].disabled = True
        before = self._owned()
        self.assertEqual(before, self._pass())
        for node in self._desired('me', 'a') - before:
            self._record(node, 'b', **_offer('b', 'me'))
        self.assertEqual(self._desired('me', 'a'), self._pass())

    def test_disabled_service_drains(self):
        self.services[0].disabled = True
        before = self._owned()
        instance = sorted(before)[0]
        self.nodes[instance] = 'mine'
        self.instances = {'mine': instance}
        self.assertEqual(before, self._pass())
        offers = self._offers()
        self.assertEqual(before - {instance}, set(offers))
        self.assertEqual({'a', 'b'}, set(offers.values()))
        for node, taker in offers.items():
            self._record(node, taker)
        for _ in range(5):
            self._beat()
            self.assertEqual({instance}, self._pass())

    def test_all_are_disabled(self):
        for service in self.services:
            service.disabled = True
        before = self._owned()
        self.assertEqual(before, self._pass())
        self.assertEqual({}, self._offers())

    def test_late_heartbeats(self):
        # All at once, as when the database stands still.
        for service in self.services:
            service.last_seen_up -= datetime.timedelta(
                seconds=CONF.service_down_time + 1)
        before = self._owned()
        self.assertEqual(before, self._pass())
        self.services[0].last_seen_up = timeutils.utcnow(with_timezone=True)
        self.assertEqual(before, self._pass())
        self.assertEqual(1, self.log.output.count('have been late, or'))
        for _ in range(CONF.service_down_time):
            self.assertEqual(before, self._pass())
            self._beat()
        self.assertEqual(self._desired('me'), self._pass())
        self.assertIn('All has been in time for 60 s', self.log.output)

    def test_nova_that_does_not_answer(self):
        before = self._owned()
        with fixtures.MockPatchObject(
                objects.InstanceList, 'get_uuids_by_host',
                side_effect=exception.ServiceUnavailable):
            self.assertRaises(exception.ServiceUnavailable, self._pass)
        del self.services[1:]
        self.assertEqual(before, self._pass())

    def test_vanished_nodes(self):
        before = self._owned()
        self.assertGreater(len(before), 5)
        self.nodes.clear()
        self.assertEqual(set(), self._listed())
        for node in before:
            self.assertFalse(self.driver.is_node_deleted(node))
        self._listed()
        self.assertEqual(1, self.log.output.count(
            f'does not show {len(before)} of the {len(before)} nodes'))
        self.nodes = dict.fromkeys(NODES)
        self.assertEqual(before, self._listed())
        self.assertIn('that had vanished are there again',
                      self.log.output)

    def test_deleted_nodes(self):
        for node in sorted(self._owned())[:5]:
            del self.nodes[node]
            self._listed()
            self.assertTrue(self.driver.is_node_deleted(node))
        self.assertFalse(self.driver.is_node_deleted(min(self.nodes)))


class FailoverTestCase(CooperativeTestCase):
    """What a dead service has left behind."""

    def setUp(self):
        super().setUp()
        # The ring gives this one to this service once b is not there.
        self.node = sorted(self._desired('me', 'a')
                           - self._desired('me', 'a', 'b'))[0]
        self.nodes[self.node] = 'theirs'
        self.hosts['theirs'] = 'b'
        self.recovery = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.recovery.start')).mock
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNode, 'destroy', autospec=True,
            side_effect=self._destroy))
        self.saved = self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'save', autospec=True,
            side_effect=self._save)).mock
        self.refresh = self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'refresh', autospec=True,
            side_effect=self._refresh)).mock
        self.client = self.driver.virtapi.reportclient

    def _refresh(self, instance):
        instance.host = self.hosts[instance.uuid]
        instance.node = self._place(instance.uuid)

    def _destroy(self, row):
        if self.rows[row.uuid].host != row.host:
            raise exception.ObjectActionError(action='destroy', reason='')
        del self.rows[row.uuid]

    def _save(self, instance, **expected):
        self.hosts[instance.uuid] = instance.host

    def _force_down(self) -> None:
        self.services[2].forced_down = True

    def _picked_up(self) -> list[str]:
        return [node for call in self.recovery.mock_calls
                for node in call.args[3]]

    def test_service_that_is_down(self):
        self.services[2].last_seen_up -= datetime.timedelta(days=1)
        self.assertNotIn(self.node, self._pass())
        self.assertEqual('b', self.hosts['theirs'])

    def test_service_that_is_forced_down(self):
        self._force_down()
        self.assertIn(self.node, self._pass())
        self.assertEqual('me', self.hosts['theirs'])
        self.assertEqual('me', self.rows[self.node].host)
        self.assertEqual([self.node], self._picked_up())
        self.assertIn(f'Instance theirs on node {self.node} is taken over '
                      'from b', self.log.output)
        self.assertEqual({self.node: 'b'}, self.recovery.call_args.args[4])
        self.instances = {'theirs': self.node}
        self.assertIn(self.node, self._pass())
        self.assertEqual([self.node], self._picked_up())

    def test_service_without_a_record(self):
        self.services.pop()
        self.assertIn(self.node, self._pass())
        self.assertEqual('me', self.hosts['theirs'])

    def test_service_that_is_silent_for_long(self):
        self.conf.config(failover_after=300, group='ironic_ring')
        now = timeutils.utcnow(with_timezone=True)
        self.services[2].last_seen_up = now - datetime.timedelta(seconds=299)
        self.assertNotIn(self.node, self._pass())
        self.services[2].last_seen_up = now - datetime.timedelta(seconds=300)
        self.assertIn(self.node, self._pass())

    def test_disabled_and_forced_down(self):
        self.services[2].disabled = True
        self._force_down()
        self.assertIn(self.node, self._pass())

    def test_pinned(self):
        self.conf.config(instance_mobility='pinned', group='ironic_ring')
        self._force_down()
        self.assertNotIn(self.node, self._pass())

    def test_blackout(self):
        self._force_down()
        self.services[0].last_seen_up -= datetime.timedelta(days=1)
        self.assertNotIn(self.node, self._pass())

    def test_another_service_is_faster_with_the_row(self):
        self._force_down()
        with fixtures.MockPatchObject(
                objects.ComputeNode, 'destroy',
                side_effect=exception.ObjectActionError(
                    action='destroy', reason='host changed')):
            self.assertNotIn(self.node, self._pass())
        self.assertEqual('b', self.hosts['theirs'])

    def test_another_service_is_faster_with_the_instance(self):
        self._pass()
        self.hosts['theirs'] = 'a'
        self._force_down()
        self.assertNotIn(self.node, self._pass())
        self.assertEqual('b', self.rows[self.node].host)
        # It is asked anew.
        self._pass()
        self.saved.assert_not_called()

    def test_row_that_another_has_deleted_and_not_brought_back(self):
        del self.rows[self.node]
        self._force_down()
        for _ in range(2):
            self.assertNotIn(self.node, self._pass())
            self.assertEqual('b', self.hosts['theirs'])
        # That one has died over it.
        for _ in range(120):
            self._beat()
        self.assertIn(self.node, self._pass())
        self.assertEqual('me', self.hosts['theirs'])

    def test_instance_that_another_has_renamed_meanwhile(self):
        self._force_down()
        self.refresh.side_effect = lambda instance: setattr(
            instance, 'host', 'a')
        self.assertNotIn(self.node, self._pass())
        self.saved.assert_not_called()

    def test_instance_that_is_deleted_meanwhile(self):
        self._force_down()
        self.refresh.side_effect = exception.InstanceNotFound(
            instance_id='theirs')
        self.assertNotIn(self.node, self._pass())
        self.assertNotIn('cannot be taken over', self.log.output)

    def test_one_failure_does_not_stop_the_others(self):
        second = sorted(self._desired('me', 'a')
                        - self._desired('me', 'a', 'b'))[1]
        self.nodes[second] = 'more'
        self.hosts['more'] = 'b'
        self._force_down()
        self.saved.side_effect = lambda instance: (
            self._save(instance) if instance.uuid == 'more'
            else (_ for _ in ()).throw(exception.CellTimeout()))
        listed = self._pass()
        self.assertNotIn(self.node, listed)
        self.assertIn(second, listed)
        self.assertEqual([second], self._picked_up())
        self.assertIn('Instance theirs of b cannot be taken over',
                      self.log.output)

    def test_row_that_another_brings_back(self):
        row = self.rows.pop(self.node)
        self._force_down()
        self._pass()
        self.rows[self.node] = row
        self.hosts['theirs'] = row.host = 'a'
        self.assertNotIn(self.node, self._pass())
        self.assertEqual('a', self.hosts['theirs'])

    def test_service_that_is_about_to_end(self):
        self._force_down()
        self.driver._pulse.end()
        self.assertNotIn(self.node, self._pass())

    def test_instance_that_is_taken_over_in_the_middle_of_a_pass(self):
        own = sorted(self._owned())[0]
        self.nodes[own] = 'mine'
        self.instances = {'mine': own}
        self.hosts['mine'] = 'me'
        self._listed()
        self.tracked.pop(own)
        self.driver.get_available_resource(own)
        # In any case, as when it was decided on.
        self.hosts['mine'] = 'ME'
        self.driver.get_available_resource(own)
        self.hosts['mine'] = 'a'
        self.assertRaises(exception.ComputeHostNotFound,
                          self.driver.get_available_resource, own)

    def _assert_left(self, warning: str) -> None:
        """See that nothing is taken, and that this is said once."""
        for _ in range(3):
            self.assertNotIn(self.node, self._pass())
            self._beat()
        self.assertEqual('b', self.rows[self.node].host)
        self.saved.assert_not_called()
        self.assertEqual(1, self.log.output.count('Ironic has instance'))
        self.assertIn(
            f'Ironic has instance theirs of {self.hosts["theirs"]} on node '
            f'{self.node}, but Nova {warning}', self.log.output)

    def test_instance_that_nova_has_elsewhere(self):
        self._force_down()
        self.places['theirs'] = 'kvm-1'
        self.hosts['theirs'] = 'kvm'
        self.others = [_service('kvm', forced_down=True)]
        self._assert_left('has it on kvm-1: it is not taken over.')
        # Once more, if somebody does so once more.
        self.nodes[self.node] = None
        self._pass()
        self.nodes[self.node] = 'theirs'
        self._pass()
        self.assertEqual(2, self.log.output.count('Ironic has instance'))

    def test_instance_of_a_dead_peer_that_nova_has_elsewhere(self):
        self._force_down()
        self.places['theirs'] = NODES[0]
        self._assert_left(f'has it on {NODES[0]}')
        # If that was but for a moment.
        del self.places['theirs']
        self.assertIn(self.node, self._pass())
        self.assertEqual('me', self.hosts['theirs'])

    def test_instance_that_turns_out_to_be_elsewhere(self):
        # After the decision, but before the row is deleted.
        self._force_down()
        with fixtures.MockPatchObject(
                self.driver._records, 'places_of', return_value={
                    'theirs': records.Place('b', self.node)}):
            self.places['theirs'] = 'kvm-1'
            self.assertNotIn(self.node, self._pass())
        self.assertEqual('b', self.rows[self.node].host)
        self.refresh.assert_not_called()
        self.saved.assert_not_called()

    def test_instance_that_nova_has_elsewhere_at_last(self):
        self._force_down()
        self.refresh.side_effect = lambda instance: setattr(
            instance, 'node', 'kvm-1')
        self.assertNotIn(self.node, self._pass())
        self.saved.assert_not_called()

    def test_host_with_another_hypervisor(self):
        self._force_down()
        self.hosts['theirs'] = 'kvm'
        self.others = [_service('kvm', forced_down=True)]
        self._record('11111111-1111-1111-1111-111111111111', 'kvm')
        self.rows['11111111-1111-1111-1111-111111111111'
                  ].hypervisor_type = 'QEMU'
        self._assert_left('has nodes of kvm that are not of Ironic')

    def test_host_that_has_another_hypervisor_by_now(self):
        # Since the decision.
        self._force_down()
        with fixtures.MockPatch(
                'nova_ironic_ring.records.strangers',
                side_effect=itertools.cycle([frozenset(), frozenset('b')])):
            self._assert_left('has nodes of b that are not of Ironic')

    def test_host_without_a_row(self):
        # All that it had has been taken over, and the taker has died.
        self.rows = {node: row for node, row in self.rows.items()
                     if row.host != 'b'}
        self.conf.config(group='ironic_ring', handover_timeout=1)
        self._force_down()
        self.assertNotIn(self.node, self._pass())
        self._beat()
        self.assertIn(self.node, self._pass())
        self.assertEqual('me', self.hosts['theirs'])

    def test_steady_state_asks_once_for_the_services_of_instances(self):
        own = sorted(self._owned())[0]
        self.nodes[self.node] = None
        self.nodes[own] = 'theirs'
        self._pass()
        self.assertIn('builds', self.asked)
        self._pass()
        self.assertNotIn('builds', self.asked)

    def test_build_on_its_way(self):
        self.nodes[self.node] = None
        self.client.get_allocations_for_resource_provider.side_effect = (
            lambda context, node: types.SimpleNamespace(
                allocations={'theirs': {}} if node == self.node else {}))
        self.hosts['theirs'] = None
        self.vm_states['theirs'] = 'building'
        self._force_down()
        with fixtures.MockPatch(
                'nova.compute.utils.add_instance_fault_from_exc') as fault:
            self._pass()
        (ended,) = (call.args[0] for call in self.saved.call_args_list)
        self.assertEqual('theirs', ended.uuid)
        self.assertEqual('error', ended.vm_state)
        self.assertIsNone(ended.host)
        self.assertIn('the nova-compute b has died',
                      str(fault.mock.call_args.args[2]))
        self.client.delete_allocation_for_instance.assert_called_once_with(
            mock.ANY, 'theirs', force=True)
        # If b comes back and finds that it was to build it.
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'get_by_uuid', return_value=ended))
        self.assertRaises(
            exception.BuildAbortException, self.driver.spawn,
            mock.sentinel.context, objects.Instance(uuid='theirs'),
            mock.sentinel.image, [], None, {})
        self.assertEqual([], self.ironic.update_node.mock_calls)

    def _allocate(self, *consumers: str) -> None:
        self.nodes[self.node] = None
        self.client.get_allocations_for_resource_provider.side_effect = (
            lambda context, node: types.SimpleNamespace(allocations=(
                dict.fromkeys(consumers, {}) if node == self.node else {})))

    def test_delete_that_ironic_has_done(self):
        self._allocate('theirs')
        self.tasks['theirs'] = 'deleting'
        self._force_down()
        self._pass()
        self.assertEqual('me', self.hosts['theirs'])
        self.assertEqual([self.node], self._picked_up())

    def test_build_that_is_no_instance_yet(self):
        self._allocate('later')
        self._force_down()
        self._pass()
        self.saved.assert_not_called()
        self.hosts['later'] = None
        self.vm_states['later'] = 'building'
        with fixtures.MockPatch(
                'nova.compute.utils.add_instance_fault_from_exc'):
            self._pass()
        self.saved.assert_called_once()
        self.saved.reset_mock()
        self._pass()
        self.saved.assert_not_called()

    def test_allocation_that_cannot_be_freed_yet(self):
        self._allocate('theirs')
        self.hosts['theirs'] = None
        self.vm_states['theirs'] = 'building'
        self._force_down()
        free = self.client.delete_allocation_for_instance
        free.side_effect = exception.AllocationDeleteFailed(
            consumer_uuid='theirs', error='')
        with fixtures.MockPatch(
                'nova.compute.utils.add_instance_fault_from_exc'):
            self._pass()
            self.assertIn('cannot be ended yet', self.log.output)
            free.side_effect = None
            self._pass()
        self.assertEqual(2, free.call_count)

    def test_offered_node_whose_owner_dies(self):
        self._allocate('theirs')
        self.hosts['theirs'] = None
        self.vm_states['theirs'] = 'building'
        self._record(self.node, 'b', **_offer('b', 'me'))
        self._force_down()
        with fixtures.MockPatch(
                'nova.compute.utils.add_instance_fault_from_exc'):
            self.assertIn(self.node, self._pass())
        self.saved.assert_called_once()

    def test_stranger_that_lives(self):
        self._allocate('theirs')
        self.hosts['theirs'] = None
        self.vm_states['theirs'] = 'building'
        self.conf.config(conductor_group='group', peer_list=['me', 'a'],
                         group='ironic')
        self._pass()
        self.saved.assert_not_called()

    def test_build_that_has_arrived_at_another_service(self):
        self.nodes[self.node] = None
        self.client.get_allocations_for_resource_provider.return_value = (
            types.SimpleNamespace(allocations={'theirs': {}}))
        self.hosts['theirs'] = 'a'
        self.vm_states['theirs'] = 'building'
        self._force_down()
        self.assertIn(self.node, self._pass())
        self.saved.assert_not_called()

    def test_placement_does_not_answer(self):
        self.nodes[self.node] = None
        self.client.get_allocations_for_resource_provider.side_effect = (
            keystone_exceptions.ConnectFailure())
        self._force_down()
        self.assertIn(self.node, self._pass())
        self.assertIn('Placement does not tell', self.log.output)


class LostInstanceTestCase(DriverTestCase):
    """What is asked of a service that has lost an instance."""

    def test_its_machine_is_left_alone(self):
        self.driver.destroy(mock.sentinel.context, self.instance, [])
        self.assertEqual([], self.ironic.mock_calls)
        self.assertIn('its machine is left alone', self.log.output)

    def test_machine_of_one_that_is_deleted(self):
        self.nodes = {}
        for state, task in (('error', None), ('active', 'deleting')):
            self.state, self.task = state, task
            self.ironic.reset_mock()
            self.driver.destroy(mock.sentinel.context, self.instance, [])
            self.ironic.nodes.assert_called_once()

    OPERATIONS = (
        'power_on', 'power_off', 'reboot', 'rebuild', 'rescue', 'unrescue',
        'attach_interface', 'detach_interface')

    def setUp(self):
        super().setUp()
        self.instance = objects.Instance(
            uuid='lost', system_metadata={}, task_state='powering-on')
        self.host = 'other'
        self.state = 'active'
        self.task = None
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'get_by_uuid', side_effect=self._instance))

    def _instance(self, context, uuid, expected_attrs):
        if self.host is None:
            raise exception.InstanceNotFound(instance_id=uuid)
        return objects.Instance(
            uuid=uuid, host=self.host, vm_state=self.state,
            task_state=self.task, system_metadata={})

    def _call(self, name: str) -> None:
        method = getattr(self.driver, name)
        method(**{parameter.name: (
            self.instance if parameter.name == 'instance' else None)
            for parameter in inspect.signature(method).parameters.values()
            if parameter.default is parameter.empty})

    def test_nothing_is_done_with_it(self):
        for name in self.OPERATIONS:
            error = self.assertRaises(
                possession.NotMineError, self._call, name)
            self.assertEqual('Instance lost was taken over by other: me does '
                             'nothing with it.', str(error))
        self.assertEqual([], self.ironic.mock_calls)

    def test_nova_leaves_its_state_alone(self):
        self.assertTrue(issubclass(possession.NotMineError,
                                   exception.UnexpectedTaskStateError))

    def test_nova_cannot_set_it_to_error(self):
        self.assertRaises(possession.NotMineError, self._call, 'rescue')
        compute = mock.Mock(spec=manager.ComputeManager)
        self.assertRaises(
            possession.NotMineError,
            manager.ComputeManager._set_instance_obj_error_state, compute,
            self.instance)

    def test_task_that_another_is_at(self):
        self.task = 'reboot_pending'
        self.assertRaises(possession.NotMineError, self._call, 'power_on')

    def test_without_a_task(self):
        self.instance.task_state = None
        self.assertRaises(possession.NotMineError, self._call,
                          'attach_interface')

    def test_task_that_nobody_has_taken_up_is_done(self):
        self.nodes = {}
        self.task = 'powering-on'
        self.assertRaises(exception.InstanceNotFound, self._call, 'power_on')
        self.ironic.nodes.assert_called_once()

    def test_own_instance_and_one_that_is_deleted(self):
        self.nodes = {}
        for host in 'ME', None:
            self.host = host
            self.ironic.reset_mock()
            # Nova's own driver looks for its node.
            self.assertRaises(exception.InstanceNotFound, self._call,
                              'power_on')
            self.ironic.nodes.assert_called_once()

    def _spawn(self) -> None:
        self.driver.spawn(mock.sentinel.context, self.instance,
                          mock.sentinel.image, [], None, {})

    def test_build_of_it_fails_for_good(self):
        # Ironic does not have the node.
        self.nodes = {}
        self.instance.node = 'node'
        self.state = 'building'
        self.assertRaises(exception.BuildAbortException, self._spawn)
        # Somebody has built it anew.
        self.state = 'active'
        self.assertRaises(exception.BuildAbortException, self._spawn)
        self.assertRaises(possession.NotMineError, self.instance.save)
        self.host = 'me'
        self.assertRaises(sdk_exceptions.NotFoundException, self._spawn)


class SilenceTestCase(CooperativeTestCase):
    """Services whose heartbeats are not in the database."""

    def test_silence_begins_when_it_is_seen(self):
        self.conf.config(failover_after=300, group='ironic_ring')
        node = sorted(self._desired('me', 'a')
                      - self._desired('me', 'a', 'b'))[0]
        self.nodes[node] = 'theirs'
        self.hosts['theirs'] = 'b'
        self.driver._records._is_up = lambda service: service.host != 'b'
        with fixtures.MockPatchObject(
                self.driver._heir, 'take_over', return_value={}) as heir:
            self._pass()
            self.assertEqual({}, heir.mock.call_args.args[2])
            for _ in range(301):
                self._beat()
            self._pass()
            self.assertEqual({node}, set(heir.mock.call_args.args[2]))


class ReportTestCase(CooperativeTestCase):
    """What the service tells of itself."""

    def _text(self, section) -> str:
        section.set_current_view_type('text')
        return str(section)

    def test_before_the_first_pass(self):
        report = self._text(self._new_driver()._report())
        self.assertIn('trust = starting', report)

    def test_section_of_the_guru_meditation_report(self):
        with fixtures.MockPatch(
                'oslo_reports.guru_meditation_report.TextGuruMeditation.'
                'register_section') as register:
            self.driver.init_host('me')
        title, generator = register.mock.call_args.args
        self.assertEqual('Ironic ring', title)
        self.services[2].forced_down = True
        self._pass()
        report = self._text(generator())
        for line in ('a = member', 'b = forced down', 'members = a, me',
                     'partitions = 32', 'trust = full',
                     'vanished nodes = open', 'quarrels with = nobody',
                     'TAKE_ABANDONED = ', 'fails_over = True', 'took = '):
            self.assertIn(line, report)

    def test_members_that_come_and_go(self):
        self.services[2].forced_down = True
        self.services.append(_service('e'))
        self._pass()
        self.assertIn('Members of the ring: a, e, me (before: a, b, me): '
                      'e has come, b is forced down.', self.log.output)

    def test_one_line_where_something_moves(self):
        log = self.useFixture(fixtures.FakeLogger(
            'nova_ironic_ring.driver', level=logging.INFO))
        self._pass()
        self.assertEqual('', log.output)
        self.services[2].forced_down = True
        self._pass()
        self.assertEqual(1, log.output.count('Of 30 nodes, '))
        self.assertRegex(log.output, r'This took \d\.\d\d s\.')


class LeftoversTestCase(CooperativeTestCase):
    """Records of nodes that Ironic has no more."""

    def setUp(self):
        super().setUp()
        self.client = self.driver.virtapi.reportclient
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNode, 'destroy', autospec=True,
            side_effect=lambda row: self.rows.pop(row.uuid)))
        self.services[2].forced_down = True
        self.gone = sorted(self._desired('me', 'a')
                           - self._desired('me', 'a', 'b'))

    def _vanish(self, count: int) -> list[str]:
        nodes = self.gone[:count]
        for node in nodes:
            del self.nodes[node]
        # Until it looks again.
        for _ in range(11):
            self.clock.advance_time_seconds(60)
            for service in self.services[:2]:
                service.last_seen_up += datetime.timedelta(seconds=60)
            self._pass()
        return nodes

    def test_nodes_of_a_dead_service(self):
        (node,) = self._vanish(1)
        self.assertNotIn(node, self.rows)
        (call,) = self.client.delete_resource_provider.mock_calls
        self.assertEqual(node, call.args[1].uuid)
        self.assertEqual({'cascade': True}, call.kwargs)
        self.assertIn(f'Node {node} of b, which is dead, is no more',
                      self.log.output)

    def test_nodes_that_the_ring_gives_another(self):
        theirs = next(name for name, row in sorted(self.rows.items())
                      if row.host == 'b' and name not in self.gone)
        del self.nodes[theirs]
        self._vanish(0)
        self.assertIn(theirs, self.rows)

    def test_services_with_another_driver(self):
        for row in self.rows.values():
            if row.host == 'b':
                row.hypervisor_type = 'QEMU'
        self._vanish(1)
        self.client.delete_resource_provider.assert_not_called()

    def test_placement_does_not_answer(self):
        self.client.delete_resource_provider.side_effect = (
            keystone_exceptions.ConnectFailure('away'))
        (node,) = self._vanish(1)
        self.assertIn(node, self.rows)
        self.assertIn(f'What is left of node {node} of b cannot be removed',
                      self.log.output)

    def test_too_many(self):
        for row in self.rows.values():
            row.host = 'b' if row.host != 'me' else 'me'
        self.services[1].forced_down = True
        self.nodes = {node: None for node in self._owned()}
        # The ring maps all to this service now, and it takes none.
        before = dict(self.rows)
        self._vanish(0)
        self.assertEqual(before.keys(), self.rows.keys())
        self.assertEqual(1, self.log.output.count('nodes of b, which is dead'))


class FollowTestCase(CooperativeTestCase):
    """Instances that go with the ring."""

    def setUp(self):
        super().setUp()
        self.conf.config(instance_mobility='follow', group='ironic_ring')
        self.saved = self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'save', autospec=True,
            side_effect=self._save)).mock
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'get_by_uuid', side_effect=self._instance))

    def _instance(self, context, uuid, expected_attrs):
        return objects.Instance(uuid=uuid, host=self.hosts[uuid],
                                node=self._place(uuid),
                                task_state=self.tasks.get(uuid))

    def _save(self, instance, expected_task_state):
        self.assertEqual([None], expected_task_state)
        if self.tasks.get(instance.uuid):
            raise exception.UnexpectedTaskStateError(
                instance_uuid=instance.uuid, expected='', actual='')
        self.hosts[instance.uuid] = instance.host

    def _have_instance(self) -> str:
        current = ring.Ring({'me', 'a', 'b', 'e'}, 32)
        node = next(node for node in sorted(self._owned())
                    if current.owner(node) == 'e')
        self.nodes[node] = 'mine'
        self.instances = {'mine': node}
        self.hosts['mine'] = 'me'
        return node

    def test_idle_instance_is_offered(self):
        node = self._have_instance()
        self._pass()
        self.assertNotIn(node, self._offers())
        self.services.append(_service('e'))
        self.assertIn(node, self._pass())
        self.assertEqual('e', self._offers()[node])
        self.assertIn(f'Node {node} is offered to e', self.log.output)
        # It is withdrawn when something is to be done.
        self.tasks['mine'] = 'rebooting'
        self._pass()
        self.assertNotIn(node, self._offers())

    def test_instance_that_is_being_built_is_not_offered(self):
        node = self._have_instance()
        self.vm_states['mine'] = 'building'
        self.services.append(_service('e'))
        self._pass()
        self.assertNotIn(node, self._offers())

    def test_only_where_the_configuration_lets_it(self):
        self.conf.config(instance_mobility='failover', group='ironic_ring')
        node = self._have_instance()
        self.services.append(_service('e'))
        self._pass()
        self.assertNotIn(node, self._offers())

    def _be_offered(self) -> str:
        node = sorted(self._owned())[0]
        self.nodes[node] = 'theirs'
        self.hosts['theirs'] = 'b'
        del self.tracked[node]
        self._record(node, 'b', **_offer('b', 'me'))
        return node

    def test_what_is_offered_is_taken(self):
        node = self._be_offered()
        self.assertIn(node, self._pass())
        self.assertEqual('me', self.hosts['theirs'])
        self.assertEqual('me', self.rows[node].host)
        self.assertIn(f'Instance theirs on node {node} is taken over from b '
                      'with its consent', self.log.output)

    def _assert_left(self, node: str, warning: str) -> None:
        for _ in range(3):
            self.assertNotIn(node, self._pass())
            self._beat()
        self.assertEqual('b', self.rows[node].host)
        self.saved.assert_not_called()
        self.assertEqual(1, self.log.output.count(
            f'Ironic has instance theirs of b on node {node}, but Nova '
            f'{warning}'))

    def test_what_nova_has_elsewhere_is_not_taken(self):
        node = self._be_offered()
        self.places['theirs'] = 'kvm-1'
        self._assert_left(node, 'has it on kvm-1')

    def test_what_turns_out_to_be_elsewhere_is_not_taken(self):
        node = self._be_offered()
        self._pass()
        with fixtures.MockPatchObject(
                self.driver._records, 'places_of', return_value={
                    'theirs': records.Place('b', node)}):
            self.hosts['theirs'] = 'b'
            self._record(node, 'b', **_offer('b', 'me'))
            self.saved.reset_mock()
            self.places['theirs'] = 'kvm-1'
            self.assertNotIn(node, self._pass())
        self.saved.assert_not_called()

    def test_what_is_of_a_host_with_another_hypervisor_is_not_taken(self):
        node = self._be_offered()
        self._record('11111111-1111-1111-1111-111111111111', 'b')
        self.rows['11111111-1111-1111-1111-111111111111'
                  ].hypervisor_type = 'QEMU'
        self._assert_left(node, 'has nodes of b that are not of Ironic')

    def test_what_is_busy_by_now_is_not_taken(self):
        node = self._be_offered()
        self.tasks['theirs'] = 'rebooting'
        self.assertNotIn(node, self._pass())
        self.assertEqual('b', self.hosts['theirs'])
        del self.tasks['theirs']
        self.assertIn(node, self._pass())

    def test_what_is_with_another_by_now_is_not_taken(self):
        node = self._be_offered()
        self._record(node, 'b')
        self._pass()
        self.hosts['theirs'] = 'a'
        self._record(node, 'a', **_offer('a', 'me'))
        self.assertIn(node, self._pass())
        self.assertEqual('me', self.hosts['theirs'])


class StartTestCase(CooperativeTestCase):
    """A service that starts takes care not to disturb the others."""

    def setUp(self):
        super().setUp()
        self.rows.clear()
        self.tracked.clear()
        self.driver = self._new_driver()

    def _start(self) -> None:
        """Do what Nova does until the first heartbeat."""
        self.assertEqual(set(), self._pass())
        self.assertEqual(set(), self._pass())
        self._beat()

    def _give_all_to(self, *hosts: str) -> None:
        current = ring.Ring(hosts, 32)
        for node in NODES:
            self._record(node, current.owner(node))

    def test_newcomer(self):
        self.others = [self.services.pop(0)]
        self._give_all_to('a', 'b')
        self._start()
        (first,) = self._pass()
        self.assertIn(first, self._desired('me', 'a', 'b'))
        self.assertIn('taken as the first one of a newcomer', self.log.output)
        # No more until the others know of it and agree.
        self.services += self.others
        self.others = []
        for _ in range(5):
            self._beat()
            self.assertEqual({first}, self._pass())

    def test_newcomer_prefers_what_nobody_has(self):
        self.others = [self.services.pop(0)]
        self._give_all_to('a', 'b')
        new = sorted(self._desired('me', 'a', 'b'))[3]
        del self.rows[new]
        self._start()
        self.assertEqual({new}, self._pass())

    def test_disabled_newcomer(self):
        self.others = [self.services.pop(0)]
        self.others[0].disabled = True
        self._give_all_to('a', 'b')
        self._start()
        self.assertEqual(set(), self._pass())

    def test_newcomer_whose_peers_do_not_want_it(self):
        self.others = [self.services.pop(0)]
        self._start_quarrel()
        for _ in range(100):
            self.assertEqual(set(), self._pass())
            self._beat()
        self.assertEqual(1, self.log.output.count('takes back'))

    def _start_quarrel(self) -> None:
        self._give_all_to('a')
        self.services.pop()
        self._start()
        self._pass()
        self._give_all_to('a')

    def test_restart(self):
        self._give_all_to('me', 'a', 'b')
        del self.rows[min(NODES)]
        mine = self._owned()
        self.assertEqual(mine, self._pass())
        self.assertEqual(mine, self._pass())
        self.assertEqual({}, self._offers())

    def test_instances_of_its_own(self):
        self._give_all_to('a', 'b')
        self.nodes[NODES[0]] = 'mine'
        self.instances = {'mine': NODES[0]}
        self.assertEqual({NODES[0]}, self._pass())

    def test_several_on_an_empty_table(self):
        self.others = self.services
        self.services = []
        self._start()
        self.assertEqual(1, len(self._pass()))

    def test_alone_on_an_empty_table(self):
        # Before there is a record of it.
        self.services = []
        self.assertEqual(set(), self._pass())
        self.others = [_service('me', last_seen_up=None)]
        self.assertEqual(set(NODES), self._pass())


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
        self.instances = {'mine': None, 'nowhere': None}
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
        self.instances = {'mine': None}
        self._listed()
        self.conf.config(group='ironic', conductor_group=None)
        self.instances = {'mine': None, 'nowhere': None}
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

    def test_sigterm_ends_the_heartbeat(self):
        self.useFixture(fixtures.MockPatch(
            'signal.getsignal', return_value=lambda *_: None))
        self.driver.init_host('me')
        handlers = {call.args[0]: call.args[1]
                    for call in self.signal.mock_calls}
        record = self.driver.virtapi._compute.service_ref
        save = record.save
        self._listed()
        record.save()
        handlers[signal.SIGTERM](signal.SIGTERM, None)
        record.save()
        save.assert_called_once_with()

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
        self.useFixture(fixtures.MockPatch(
            'nova.servicegroup.API')).mock().service_is_up.return_value = False
        self.driver = self._new_driver()
        self.assertEqual(self._desired('me'), self._listed())

    def test_cache_is_filled_when_it_is_needed(self):
        own = sorted(self._desired('me', 'a', 'b'))[0]
        self.assertEqual(own, self.driver.get_available_resource(own)['uuid'])
