# SPDX-License-Identifier: Apache-2.0

"""Tests of what a service with pools does between two passes."""

import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import pool_base


def _fail(*_):
    raise ConnectionError('no answer')


class _Watched:
    """A port that tells what it is asked."""

    def __init__(self, port, asked):
        self._port = port
        self._asked = asked

    def __getattr__(self, name):
        self._asked.append(name)
        return getattr(self._port, name)


class ReactionTestCase(pool_base.TakeoverTestCase):
    """The instances of b are taken over between two passes."""

    def react(self, seconds=1.0):
        """Let time pass, and the services look.

        :returns: what they have taken over
        """
        self.cloud.now += seconds
        for host in self.services:
            self.cloud.beat(host)
        return sorted(
            each.instance for service in self.services.values()
            for each in service.react().taken)

    def configure(self, **values):
        for service in self.services.values():
            service.current = dataclasses.replace(service.current, **values)

    def test_nothing_happens(self):
        service = self.services['a']
        before = service.memory
        asked = []
        service.world = dataclasses.replace(service.world, **{
            port.name: _Watched(getattr(service.world, port.name), asked)
            for port in dataclasses.fields(service.world)})
        result = service.react()
        self.assertEqual(([], []), (result.taken, result.happened))
        self.assertEqual(before.pooled, service.memory.pooled)
        self.assertEqual(
            ['services', 'instances_of'],
            [each for each in asked
             if each not in ('now', 'longest_gap', 'is_ending')])

    def test_one_that_is_forced_down(self):
        self.die()
        self.assertEqual(self.instances, self.react())
        self.assertEqual({'a', 'c'}, self.hosts())

    def test_counted_and_allocated_at_once(self):
        self.die()
        self.react()
        for uuid in self.instances:
            known = self.cloud.instances[uuid]
            provider = pools.uuid_of(known.node)
            found = self.services[known.host].result.found[known.node]
            self.assertIn(uuid, self.cloud.allocations[provider])
            self.assertIn(uuid, {found.nodes[node].instance
                                 for node in found.used})
            self.assertEqual(
                found.inventory(), self.cloud.inventories[provider])

    def test_the_next_pass_keeps_them(self):
        self.die()
        self.react()
        self.run_passes()
        self.assert_whole()
        self.assertEqual([], [
            each for service in self.services.values()
            for each in service.result.taken])

    def test_once(self):
        self.die()
        self.react()
        self.assertEqual([], self.react())

    def test_each_is_said(self):
        self.die()
        said = [each for service in self.services.values()
                for each in service.react().happened
                if isinstance(each, events.InstanceTaken)]
        self.assertEqual(sorted(self.held), sorted(
            each.node for each in said))
        self.assertEqual({True}, {each.is_dead for each in said})

    def test_free_nodes_of_a_dead_service_wait_for_the_pass(self):
        spare = self.held[0]
        self.cloud.nodes[spare].instance = None
        del self.cloud.instances['i0']
        self.cloud.allocations[pools.uuid_of(self.pool_of_b)].discard('i0')
        self.instances.remove('i0')
        self.run_passes()
        self.die()
        self.react()
        self.assertEqual(0, self.counts()[spare])
        self.run_passes()
        self.assertEqual(1, self.counts()[spare])

    def test_node_that_was_released_since_the_last_pass_stays_reserved(self):
        service = self.services['a']
        node = self.build('a', 'mine')
        self.run_passes()
        self.die()
        service.react(lambda pool: frozenset({node}))
        self.assertEqual(1, self.cloud.inventories[
            service.pool.uuid].reserved)

    def test_first_pool_of_its_kind_is_counted_until_it_has_a_row(self):
        for node in self.held:
            self.cloud.nodes[node].kind = pool_base.OTHER
        self.run_passes()
        self.die()
        self.assertEqual([], self.react())
        self.assertEqual({'b'}, self.hosts())
        for host, service in self.services.items():
            name = pools.name(host, pool_base.OTHER)
            pool = service.result.found[name]
            self.assertEqual(pool_base.OTHER, pool.kind)
            self.assertEqual(len(pool.nodes), pool.inventory().reserved)
            # The resource tracker makes it.
            self.cloud.rows[pool.uuid] = clouds.Row(host, pool=name)
        self.assertEqual(self.instances, self.react())
        self.run_passes()
        self.assert_whole()

    def test_one_that_is_absent_for_long(self):
        self.configure(failover_after=100)
        self.run_passes()
        self.die(forced=False)
        self.assertEqual([], self.react(70))
        self.assertEqual(self.instances, self.react(70))

    def test_one_that_is_disabled_and_dead(self):
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], disabled=True)
        self.run_passes()
        self.die()
        self.assertEqual(self.instances, self.react())

    def test_it_is_back_between_two_passes(self):
        service = self.services['b']
        asked = self.asked_to_reread('b')
        for forced in True, False:
            self.cloud.services['b'] = dataclasses.replace(
                self.cloud.services['b'], forced_down=forced)
            self.react()
        self.assertEqual([], asked)
        # The next pass writes its inventories.
        service.run_pass()
        self.assertEqual(list(service.result.found), asked)

    def test_pinned_instances_stay(self):
        self.configure(fails_over=False)
        self.run_passes()
        self.die()
        self.assertEqual([], self.react())

    def test_one_that_is_about_to_end_takes_nothing(self):
        self.die()
        for service in self.services.values():
            service.world.process.is_ending = lambda: True
        self.assertEqual([], self.react())

    def test_one_that_has_stood_still_takes_nothing(self):
        service = self.services['a']
        self.die()
        gaps = iter([0.0])
        service.world.process.longest_gap = lambda since: next(gaps, 1000.0)
        self.assertEqual([], service.react().taken)

    def test_instance_that_has_moved_on_node_since_is_left(self):
        self.die()
        self.cloud.instances['i0'] = model.Instance('b', 'another')
        self.react()
        self.assertEqual('b', self.cloud.instances['i0'].host)

    def test_placement_that_does_not_answer(self):
        self.die()
        for service in self.services.values():
            service.world.placement.consumers = _fail
        self.assertEqual([], self.react())
        for service in self.services.values():
            del service.world.placement.consumers
        self.assertEqual(self.instances, self.react())

    def test_nova_that_does_not_answer(self):
        service = self.services['a']
        service.world.nova.instances_of = _fail
        self.assertRaises(one_pass.UnansweredError, service.react)
        self.assertIs(trust.Trust.BLACKOUT, service.memory.view.trust)
