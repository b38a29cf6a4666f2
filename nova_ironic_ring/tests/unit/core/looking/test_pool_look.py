# SPDX-License-Identifier: Apache-2.0

"""Instances in pools that follow the ring from services that live."""

import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import pool_base


class FollowTestCase(pool_base.TakeoverTestCase):
    """The service b, which has instances, is drained."""

    def setUp(self):
        super().setUp()
        self.follow()
        self.run_passes()

    def follow(self, *hosts, follows=True):
        for host in hosts or self.services:
            service = self.services[host]
            service.current = dataclasses.replace(
                service.current, follows=follows)
            service.tracker.current = service.current

    def drain(self, disabled=True):
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=disabled)

    def test_nothing_moves_without_a_reason(self):
        before = dict(self.cloud.instances)
        self.run_passes(3)
        self.assertEqual(before, self.cloud.instances)

    def test_nothing_is_asked_without_a_reason(self):
        asked = []
        rows_of = self.services['a'].world.nova.rows_of
        self.services['a'].world.nova.rows_of = (
            lambda host: asked.append(host) or rows_of(host))
        self.run_passes()
        self.assertEqual(['a'], asked)

    def test_they_go_from_one_that_is_drained(self):
        self.drain()
        self.run_passes(3)
        self.assertEqual({'a', 'c'}, self.hosts())
        self.run_passes()
        self.assert_whole()

    def test_they_come_back(self):
        self.drain()
        self.run_passes(3)
        self.drain(False)
        self.run_passes(5)
        self.assertEqual({'b'}, self.hosts())
        self.run_passes()
        self.assert_whole()

    def test_it_was_by_consent(self):
        self.drain()
        taken, said = [], []
        for _ in range(3):
            self.run_passes()
            for service in self.services.values():
                taken += service.result.taken
                said += service.happened(events.InstanceTaken)
        self.assertEqual({False}, {each.is_dead for each in taken})
        self.assertEqual({False}, {each.is_dead for each in said})
        self.assertEqual(self.instances, sorted(
            each.instance for each in said))

    def test_they_go_to_one_that_joins(self):
        service = self.start('d', follows=True)
        self.run_passes(3)
        mine = {node.instance for node in service.pool.nodes.values()
                if node.instance}
        self.assertEqual({
            self.cloud.nodes[node].instance for node in self.held
            if service.memory.view.ring.owner(node) == 'd'}, mine)
        self.assertNotEqual(set(), mine)
        self.run_passes()
        self.assert_whole()

    def test_without_the_consent_of_its_service(self):
        self.follow('b', follows=False)
        self.run_passes()
        self.drain()
        self.run_passes(3)
        self.assertEqual({'b'}, self.hosts())
        self.assertEqual(dict.fromkeys(pool_base.NODES, 1), self.counts())

    def test_one_that_does_not_follow_takes_nothing(self):
        self.follow('a', 'c', follows=False)
        self.drain()
        self.run_passes(3)
        self.assertEqual({'b'}, self.hosts())

    def test_from_one_that_sees_another_ring(self):
        self.drain()
        self.run_passes(3, failing=('b',))
        self.assertEqual({'b'}, self.hosts())
        self.run_passes(2)
        self.assertEqual({'a', 'c'}, self.hosts())

    def test_from_one_whose_record_is_gone(self):
        # As of one with Nova's own driver.
        self.drain()
        tracker = self.services['b'].tracker
        tracker.make_member = lambda work: None
        del self.cloud.members['b']
        self.run_passes(3)
        self.assertEqual({'b'}, self.hosts())
        del tracker.make_member
        self.run_passes(3)
        self.assertEqual({'a', 'c'}, self.hosts())

    def test_instances_with_a_task_stay_and_count_once(self):
        self.cloud.instances['i0'] = dataclasses.replace(
            self.cloud.instances['i0'], task='rebooting')
        self.drain()
        self.run_passes(3)
        self.assertEqual('b', self.cloud.instances['i0'].host)
        self.assertEqual(dict.fromkeys(pool_base.NODES, 1), self.counts())
        self.cloud.instances['i0'] = dataclasses.replace(
            self.cloud.instances['i0'], task=None)
        self.run_passes()
        self.assertEqual({'a', 'c'}, self.hosts())
        self.run_passes()
        self.assert_whole()

    def test_a_task_that_begins_meanwhile(self):
        self.drain()
        for service in self.services.values():
            nova = service.world.nova
            nova.place_instance = lambda *_: False
        self.run_passes(2)
        moved = {uuid for uuid in self.instances if uuid not in
                 self.cloud.allocations[pools.uuid_of(self.pool_of_b)]}
        self.assertEqual(set(self.instances), moved)
        for uuid in self.instances:
            self.cloud.instances[uuid] = dataclasses.replace(
                self.cloud.instances[uuid], task='rebooting')
        self.run_passes(2)
        # What was half done is undone.
        self.assertEqual({'b'}, self.hosts())
        self.assertEqual(set(self.instances), self.cloud.allocations[
            pools.uuid_of(self.pool_of_b)])

    def test_a_service_consents_only_while_it_trusts_itself(self):
        service = self.services['b']
        self.assertEqual(service.memory.view.ring.fingerprint(
            service.current.scope), self.cloud.members['b'].ring)
        service.world.process.longest_gap = lambda since: 1000.0
        service.run_pass()
        self.assertIs(trust.Trust.BLACKOUT, service.memory.view.trust)
        self.assertIsNone(self.cloud.members['b'].ring)

    def test_from_a_service_with_the_ring_driver(self):
        # It gives nothing to pools as long as it lives.
        node = min(self.services['a'].pool.free)
        self.cloud.beat('d')
        self.cloud.rows[node] = clouds.Row('d')
        self.cloud.nodes[node].instance = 'other'
        self.cloud.instances['other'] = model.Instance('d', node)
        self.run_passes(3)
        self.assertEqual('d', self.cloud.instances['other'].host)
