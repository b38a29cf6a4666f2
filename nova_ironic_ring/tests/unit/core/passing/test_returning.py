# SPDX-License-Identifier: Apache-2.0

"""A pass takes long, and a service that was dead is back before its end."""

import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.unit.core.passing import test_pool_change

#: Seconds: longer than a service may be silent.
_LONG = 300


class ReturningTestCase(test_pool_change.ChangeTestCase):

    def wait(self, seconds, *hosts):
        """Let time pass, in which some services send heartbeats."""
        for _ in range(seconds // 10):
            self.cloud.now += 10
            for host in hosts:
                self.cloud.beat(host)

    def slow(self, port, name, *hosts):
        """Have a call of the service a take long.

        :param hosts: the services that send heartbeats meanwhile
        """
        world = getattr(self.services['a'].world, port)
        made = getattr(world, name)

        def call(*args, **kwargs):
            found = made(*args, **kwargs)
            self.wait(_LONG, *hosts)
            return found
        setattr(world, name, call)
        self.addCleanup(setattr, world, name, made)

    def fall_silent(self):
        """Have b be silent until its instances may be taken over.

        The service a looks at it, but has no pass.
        """
        self.die('b', forced=False)
        while True:
            self.wait(10, 'a', 'c')
            service = self.services['a']
            service.current = dataclasses.replace(
                service.current, fails_over=False, failover_after=_LONG)
            service.run_pass()
            if service.memory.view.is_dead('b', _LONG):
                break
        service.current = dataclasses.replace(
            service.current, fails_over=True)

    def of_b(self):
        """Return the instances of b."""
        return {uuid for uuid, known in self.cloud.instances.items()
                if known.host == 'b'}

    def test_pools(self):
        self.begin('pool')
        self.fall_silent()
        before = self.of_b()
        self.assertTrue(before)
        self.slow('ironic', 'describe', 'a', 'b', 'c')
        self.services['a'].run_pass()
        self.assertEqual(before, self.of_b())

    def test_pools_of_one_that_has_died(self):
        self.begin('pool')
        self.fall_silent()
        before = self.of_b()
        self.slow('ironic', 'describe', 'a', 'c')
        self.services['a'].run_pass()
        self.assertLess(self.of_b(), before)

    def test_in_a_pool_with_the_ring_driver(self):
        self.start('b', 'pool')
        self.run_passes(3)
        self.fall_silent()
        before = self.of_b()
        self.assertTrue(any(
            pools.is_pool(self.cloud.instances[uuid].node)
            for uuid in before))
        self.slow('ironic', 'nodes', 'a', 'b', 'c')
        for _ in range(3):
            self.services['a'].run_pass()
        self.assertEqual(before, self.of_b())

    def test_without_trust_the_dead_stay_dead(self):
        self.begin('pool')
        self.fall_silent()
        service = self.services['a']
        service.world.process.longest_gap = lambda since: 1000.0
        for _ in range(3):
            service.run_pass()
            self.assertFalse(service.memory.view.is_trusted)
            self.assertTrue(service.memory.view.is_lost('b'))

    def test_ring_where_each_listing_takes_long(self):
        self.fall_silent()
        before = self.of_b()
        self.slow('ironic', 'nodes', 'a', 'c')
        for _ in range(3):
            self.services['a'].run_pass()
        self.assertLess(self.of_b(), before)

    def test_ring_where_each_listing_takes_long_and_it_is_back(self):
        self.fall_silent()
        before = self.of_b()
        self.slow('ironic', 'nodes', 'a', 'b', 'c')
        for _ in range(3):
            self.services['a'].run_pass()
        self.assertEqual(before, self.of_b())

    def test_free_nodes_of_one_that_is_back_with_another_driver(self):
        self.start('a', 'pool')
        self.run_passes(3)
        for uuid in self.of_b():
            known = self.cloud.instances[uuid]
            self.cloud.instances[uuid] = dataclasses.replace(
                known, is_building=True, task='spawning')
        self.fall_silent()
        before = self.of_b()
        self.slow('ironic', 'describe', 'a', 'b', 'c')
        self.services['a'].run_pass()
        self.assertEqual(before, self.of_b())
        for kind in events.BuildEnded, events.NodeTaken:
            self.assertEqual([], self.services['a'].happened(kind))

    def test_builds_on_their_way_to_a_pool(self):
        for is_back in False, True:
            self.begin('pool')
            # Then it is a that settles all pools.
            self.die('c')
            self.run_passes(4)
            self.fall_silent()
            pool = next(row.pool for row in self.cloud.rows.values()
                        if row.owner == 'b')
            self.cloud.instances['new'] = model.Instance(
                'b', pool, is_building=True)
            self.cloud.allocations[pools.uuid_of(pool)].add('new')
            if is_back:
                self.slow('placement', 'reserve_all', 'a', 'b')
            self.services['a'].run_pass()
            self.assertEqual(not is_back, bool(
                self.services['a'].happened(events.BuildEnded)))
