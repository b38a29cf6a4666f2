# SPDX-License-Identifier: Apache-2.0

"""Tests of what was read of a deployment."""

import dataclasses

from oslotest import base

from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.peers import rings
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class FindTestCase(base.BaseTestCase):

    def test_by_name_or_uuid(self):
        seen = make()
        self.assertEqual(NODES[7], seen.find(NODES[7]).uuid)
        self.assertEqual(NODES[7], seen.find('node-7').uuid)

    def test_by_the_beginning_of_the_uuid(self):
        seen = make(nodes={
            'abcd-1': snapshot.Node(None, uuid='abcd-1'),
            'abce-1': snapshot.Node(None, uuid='abce-1')})
        self.assertEqual('abcd-1', seen.find('abcd').uuid)

    def test_by_the_server_on_it(self):
        seen = make(instances={7: 'a', 8: 'b'})
        self.assertEqual(NODES[7], seen.find('instance-7').uuid)
        self.assertEqual(NODES[7], seen.find('server-7').uuid)
        # A node goes before a server of the same name.
        seen = dataclasses.replace(seen, nodes={
            **seen.nodes, NODES[9]: snapshot.Node(
                None, uuid=NODES[9], name='server-7')})
        self.assertEqual(NODES[9], seen.find('server-7').uuid)

    def test_server_with_the_name_of_the_beginning_of_a_uuid(self):
        seen = make(
            instances={7: 'a'},
            nodes={NODES[7]: snapshot.Node(
                None, 'instance-7', uuid=NODES[7]),
                'abcd-1': snapshot.Node(None, uuid='abcd-1')})
        seen = dataclasses.replace(seen, instances={
            uuid: dataclasses.replace(instance, name='abcd')
            for uuid, instance in seen.instances.items()})
        error = self.assertRaises(ValueError, seen.find, 'abcd')
        self.assertIn(f'fits 2 nodes, {NODES[7]} and abcd-1', str(error))

    def test_servers_of_the_same_name(self):
        seen = make(instances={7: 'a', 8: 'b'})
        seen = dataclasses.replace(seen, instances={
            uuid: dataclasses.replace(instance, name='web')
            for uuid, instance in seen.instances.items()})
        error = self.assertRaises(ValueError, seen.find, 'web')
        self.assertEqual(
            'There are 2 servers "web", instance-7 and instance-8 among '
            'them: give the UUID of one.', str(error))
        self.assertEqual(NODES[7], seen.find('instance-7').uuid)

    def test_none(self):
        error = self.assertRaises(ValueError, make().find, 'node-77')
        self.assertIn('Ironic has no node "node-77"', str(error))

    def test_more_than_one(self):
        error = self.assertRaises(ValueError, make().find, '00000000-')
        self.assertIn('fits 30 nodes', str(error))

    def test_service_that_may_be_in_a_cell_that_was_not_read(self):
        seen = make(unread={'cell2': 'The database of cell cell2 is away.',
                            'cell3': ''})
        error = self.assertRaises(ValueError, seen.service, 'x')
        self.assertEqual(
            'There is no nova-compute on "x": the hosts are a, b, c. The '
            'database of cell cell2 is away.', str(error))

    def test_words_for_services(self):
        seen = make(services=[
            service('a'), service('b', 61), service('c', disabled=True),
            service('d', 61, disabled=True), service('e', forced_down=True),
            service('f', 61, forced_down=True)])
        self.assertEqual(
            ['member', 'down', 'disabled', 'down', 'forced down',
             'forced down', 'gone'], [seen.word(host) for host in 'abcdefg'])
        self.assertEqual(
            'ace', ''.join(host for host in 'abcdefg' if seen.lives(host)))

    def test_services_whose_heartbeats_are_not_in_the_database(self):
        seen = make(services=[
            service('a', 1000, alive=True), service('b', alive=False)])
        self.assertEqual(['member', 'down'],
                         [seen.word(host) for host in 'ab'])

    def test_ring_of_one_that_has_changed_its_scope(self):
        seen = make(said=profile.Profile(conductor_group='Rack'))
        found = deployment.say(seen, 'b', conductor_group=None, shard='one')
        self.assertEqual(
            rings.Key('cell1', model.Scope(None, 'one')), found.key('b'))
        rack = rings.Key('cell1', model.Scope('rack'))
        self.assertEqual(rack, seen.key('b'))

    def test_ring_of_one_that_says_nothing(self):
        said = profile.Profile(conductor_group='rack')
        seen = make(said=said, services=[service(host) for host in 'abcd'])
        # One without a node has not said anything yet.
        rack = rings.Key('cell1', model.Scope('rack'))
        self.assertEqual(rack, seen.key('d'))
        seen = deployment.stock(seen, 'c')
        self.assertIsNone(seen.key('c'))
        for more in {'shard': 'x', 'conductor_group': None}, {'peers': 'x'}:
            listed = deployment.say(seen, **more)
            self.assertEqual('peers' in more, listed.key('c') is not None)

    def test_service(self):
        self.assertEqual('a', make().service('A').record.host)
        error = self.assertRaises(ValueError, make().service, 'x')
        self.assertIn('There is no nova-compute on "x": the hosts are '
                      'a, b, c', str(error))
        seen = make(services=[service('a'), service('a', cell='cell2')])
        error = self.assertRaises(ValueError, seen.service, 'a')
        self.assertIn('choose one with --cell', str(error))
