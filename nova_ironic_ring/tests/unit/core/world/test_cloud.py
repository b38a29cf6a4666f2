# SPDX-License-Identifier: Apache-2.0
import dataclasses
import datetime
from typing import Any

import ddt
from oslotest import base

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds

SAID = model.LastPass(60, clouds.EPOCH)


class CloudTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.tracker = clouds.connect(self.cloud, settings.Settings('Me'))
        self.nova = self.tracker.world.nova


@ddt.ddt
class NovaTestCase(CloudTestCase):

    def test_heartbeats(self):
        self.cloud.beat('A')
        self.cloud.services['a'] = model.Service(
            'A', clouds.EPOCH, disabled=True)
        self.cloud.now = 10
        self.cloud.beat('a')
        self.assertEqual(
            {'a': model.Service('A', clouds.EPOCH + datetime.timedelta(
                seconds=10), disabled=True)}, self.cloud.services)

    def test_services(self):
        for host in 'A', 'b', 'c':
            self.cloud.beat(host)
        self.cloud.rows = {'1': clouds.Row('a'), '2': clouds.Row('b')}
        self.cloud.services['b'] = model.Service(
            'b', clouds.EPOCH, disabled=True)
        self.assertEqual(
            [('A', True), ('b', True), ('c', False)],
            [(each.host, each.is_ironic) for each in self.nova.services()])
        found = self.nova.service('a')
        self.assertEqual('A', found and found.host)
        self.assertIsNone(self.nova.service('d'))

    def _say(self, host: str, **fields: Any) -> None:
        """Have a service write its record."""
        clouds.Nova(self.cloud, host).make_member(ports.Saying(
            settings.Settings(host, scope=settings.Scope('rack1'),
                              by_shards=True), SAID, **fields))

    def test_members(self):
        self.cloud.rows = {'1': clouds.Row('A'), '2': clouds.Row('B')}
        for host in 'A', 'b', 'C':
            self.cloud.beat(host)
        self._say('B', held=frozenset({'code'}), ring='r',
                  differ=frozenset('d'))
        # One that has no node is known by its record alone.
        self._say('C')
        said = model.Member(SAID, settings.Scope('rack1'), True)
        self.assertEqual(
            {'c': said, 'b': dataclasses.replace(
                said, held=frozenset({'code'}), ring='r',
                differ=frozenset('d'))},
            self.nova.members(['a', 'B', 'C', 'd']))
        self.assertEqual({}, self.nova.members([]))

    def test_services_with_what_they_say(self):
        self.cloud.rows = {'1': clouds.Row('A')}
        for host in 'A', 'b', 'C', 'd':
            self.cloud.beat(host)
        for host in 'b', 'C':
            self._say(host, held=frozenset({'code'}), ring='r')
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=True)
        found = {each.host: each for each in self.nova.services()}
        self.assertEqual(
            {'A': True, 'b': True, 'C': True, 'd': False},
            {host: each.is_ironic for host, each in found.items()})
        for host in 'A', 'd':
            self.assertIsNone(found[host].said)
        for host in 'b', 'C':
            self.assertEqual(self.cloud.members[host.lower()],
                             found[host].said)
        self.assertEqual((SAID, settings.Scope('rack1')),
                         (found['C'].last_pass, found['C'].scope))

    def test_rows(self):
        self.cloud.rows = {'1': clouds.Row('A'), '2': clouds.Row('b')}
        self.assertEqual({'1': model.Row('A')}, self.nova.rows_of('a'))
        self.assertEqual({'2': model.Row('b')}, self.nova.rows(['2', '3']))

    def test_row_is_deleted_if_it_has_this_owner(self):
        self.cloud.rows['1'] = clouds.Row('A')
        self.assertFalse(self.nova.delete_row('1', 'a'))
        self.assertIn('1', self.cloud.rows)
        self.assertTrue(self.nova.delete_row('1', 'A'))
        self.assertFalse(self.nova.delete_row('1', 'A'))

    @ddt.data((model.Instance('a', '1'), 'a', None, True),
              (model.Instance('a', '1', task='x'), 'a', 'x', True),
              (model.Instance('a', '1', task='x'), 'a', None, False),
              (model.Instance('a', '1'), 'a', 'x', False),
              (model.Instance('a', '2'), 'a', None, False),
              (model.Instance('b', '1'), 'a', None, False),
              (None, 'a', None, False))
    @ddt.unpack
    def test_instance_is_changed_if_it_is_as_expected(
            self, found, host, task, expected):
        if found:
            self.cloud.instances['i'] = found
        self.assertIs(expected, self.nova.set_instance_host(
            'i', ports.Expected(host, '1', task)))
        if found:
            self.assertEqual('Me' if expected else found.host,
                             self.cloud.instances['i'].host)

    def test_build_is_ended_if_it_is_one(self):
        self.cloud.instances['i'] = model.Instance('a', '1', True, 'x')
        self.assertTrue(self.nova.end_build('i', 'a'))
        self.assertEqual(model.Instance(None, None, is_given_up=True),
                         self.cloud.instances['i'])
        for uuid in 'i', 'j':
            self.assertFalse(self.nova.end_build(uuid, 'a'))

    def test_unshelving_is_ended_if_no_service_has_it(self):
        shelved = model.Instance(None, None, is_offloaded=True)
        for task in 'unshelving', 'spawning':
            self.cloud.instances['i'] = dataclasses.replace(
                shelved, task=task)
            self.assertTrue(self.nova.end_unshelve('i'))
            self.assertEqual(shelved, self.cloud.instances['i'])
        self.cloud.instances['k'] = dataclasses.replace(
            shelved, task='spawning', host='a')
        for uuid in 'i', 'j', 'k':
            self.assertFalse(self.nova.end_unshelve(uuid))

    def test_other_drivers(self):
        self.cloud.other_drivers = frozenset({'a', 'b'})
        self.assertEqual({'a'}, self.nova.other_drivers(['A', 'c']))

    def test_instances(self):
        self.cloud.instances = {'i': model.Instance('ME', '1'),
                                'j': model.Instance('a', '2')}
        self.assertEqual({'i'}, self.nova.instances_of('me'))
        self.assertEqual({'j': model.Instance('a', '2')},
                         self.nova.instances(['j', 'k']))


@ddt.ddt
class IronicTestCase(CloudTestCase):

    @ddt.data(
        (settings.Scope(), {'1', '2', '3'}),
        (settings.Scope(''), {'1'}),
        (settings.Scope('rack1'), {'2', '3'}),
        (settings.Scope(None, 'one'), {'3'}),
        (settings.Scope('', 'one'), set()))
    @ddt.unpack
    def test_scope(self, scope, expected):
        self.cloud.nodes = {
            '1': clouds.Node('i'), '2': clouds.Node(group='Rack1'),
            '3': clouds.Node(group='rack1', shard='one')}
        ironic = self.tracker.world.ironic
        self.assertEqual(expected, set(ironic.nodes(scope)))
        self.assertEqual({'1': 'i'}, ironic.nodes_of(['i', 'j']))
        self.assertEqual([False, True], [
            ironic.is_deleted(node) for node in ('1', '4')])


class LatestTestCase(CloudTestCase):
    """The nodes that have changed since they were listed."""

    def setUp(self):
        super().setUp()
        self.cloud.nodes = {
            '1': clouds.Node(), '2': clouds.Node(group='rack')}
        self.ironic = self.tracker.world.ironic

    def _changed(self, scope=settings.Scope()):
        return {each.node: (each.before.is_ready, each.now.is_ready)
                for each in self.ironic.latest(scope)}

    def test_nothing_was_listed(self):
        self.cloud.nodes['1'].is_ready = False
        self.assertEqual({}, self._changed())

    def test_it_is_told_once(self):
        self.ironic.nodes(settings.Scope())
        self.cloud.nodes['1'].is_ready = False
        self.assertTrue(self.ironic.glances(['1', '3'])['1'].is_ready)
        self.assertEqual({'1': (True, False)}, self._changed())
        self.assertFalse(self.ironic.glances(['1', '3'])['1'].is_ready)
        self.assertEqual({}, self._changed())

    def test_there_is_one_page(self):
        self.ironic.nodes(settings.Scope())
        self.cloud.nodes['1'].is_ready = False
        self.assertEqual(
            (), self.ironic.latest(settings.Scope(), after='1'))

    def test_scope(self):
        self.ironic.nodes(settings.Scope())
        for node in self.cloud.nodes.values():
            node.is_ready = False
        self.assertEqual(
            {'2': (True, False)}, self._changed(settings.Scope('rack')))


class PlacementTestCase(CloudTestCase):

    def test_allocations(self):
        placement = self.tracker.world.placement
        self.cloud.nodes['1'] = clouds.Node('i')
        self.cloud.allocations['1'] = {'j', 'k'}
        self.assertEqual({'i', 'j', 'k'}, placement.consumers('1'))
        placement.free('j')
        self.assertEqual({'i', 'k'}, placement.consumers('1'))
        placement.delete_provider('1')
        self.assertEqual({'i'}, placement.consumers('1'))
        self.assertEqual(frozenset(), placement.consumers('2'))


def _result(node: str, step: planner.Step) -> node_places.PassResult:
    return node_places.PassResult(plan=planner.Plan({node: step}))


class TrackerTestCase(CloudTestCase):

    def setUp(self):
        super().setUp()
        # A service without a record takes nothing.
        self.cloud.beat('Me')

    def _take(self, decision: Decision, owner: str | None = None) -> None:
        self.tracker.take('1', _result('1', planner.Step(
            decision, 'so', None, planner.Claim(None, True, owner))))
        # When it was made, and of what, is tested for itself.
        row = self.cloud.rows['1']
        row.sayer = row.made_at = None

    def test_take(self):
        self._take(Decision.CREATE)
        self.assertEqual(clouds.Row('Me'), self.cloud.rows['1'])
        self.assertIn('1', self.tracker.process.tracked())
        # An offer is in the record of the service alone.
        self._take(Decision.OFFER)
        self.assertEqual(clouds.Row('Me'), self.cloud.rows['1'])

    def test_node_that_another_has_taken(self):
        self.cloud.rows['1'] = clouds.Row('a')
        self._take(Decision.CREATE)
        self.assertEqual(clouds.Row('a'), self.cloud.rows['1'])
        self.assertNotIn('1', self.tracker.process.tracked())
        self._take(Decision.TAKE_ABANDONED, owner='a')
        self.assertEqual('Me', self.cloud.rows['1'].owner)

    def test_drop(self):
        self._take(Decision.CREATE)
        self.tracker.drop()
        self.assertIn('1', self.tracker.process.tracked())
        self.cloud.rows['1'].owner = 'a'
        self.tracker.drop()
        self.assertNotIn('1', self.tracker.process.tracked())

    def test_instance_that_is_taken_in_the_last_look_is_told_of(self):
        cloud = clouds.Cloud(
            nodes={'node': clouds.Node()}, rows={'node': clouds.Row('dead')},
            instances={'instance': model.Instance(
                'dead', 'node', task='deleting')},
            allocations={'node': {'instance'}})
        cloud.beat('me')
        tracker = clouds.connect(cloud, settings.Settings('me'))
        tracker.memory = observation.Memory(
            view=view.View(trust=trust.Trust.FULL))
        taken = []
        tracker.process.took = taken.append
        tracker.take('node', _result('node', planner.Step(
            Decision.TAKE_ABANDONED, 'taken',
            claim=planner.Claim(None, True, 'dead', is_abandoned=True))))
        self.assertEqual(['instance'], [each.instance for each in taken])
        self.assertEqual('me', cloud.instances['instance'].host)
