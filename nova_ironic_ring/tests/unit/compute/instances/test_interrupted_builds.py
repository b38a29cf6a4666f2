# SPDX-License-Identifier: Apache-2.0

"""Nova's own start, with builds on nodes of the service that starts."""

import functools
import types
from unittest import mock

import fixtures
from nova.compute import manager
from nova import context as nova_context
from nova import exception
from nova import objects

from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.core.taking.building import unclaimed
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.unit.compute import base

_REAL = ('_error_out_instances_whose_build_was_interrupted',
         '_set_instance_obj_error_state')


class InterruptedBuildsTestCase(base.DriverTestCase):
    """A node of this service has an allocation of a build.

    The peer a has handed it over when the scheduler had chosen a.
    """

    def setUp(self):
        super().setUp()
        # Seconds: each minute is a pass.
        self.useFixture(fixtures.MockPatchObject(unclaimed, 'PATIENCE', 360.0))
        self.node = min(self.desired('me', 'a', 'b'))
        self.nova.own(self.node, 'me')

    def build(self, host=None, task='scheduling'):
        self.nova.put('new', None, host, task=task, is_building=True)
        if host is not None:
            self.nova.change_instance('new', node=self.node)
        self.cloud.allocations[self.node] = {'new'}

    def restart(self, nodes=None):
        self.me = self.nova.compute('me')
        self.begin([self.node] if nodes is None else nodes)

    def begin(self, nodes):
        compute = self.me.manager
        for name in _REAL:
            setattr(compute, name, types.MethodType(
                getattr(manager.ComputeManager, name), compute))
        free = self.me.placement.delete_allocation_for_instance
        # A guard reads which instance it is for.
        self.me.placement.delete_allocation_for_instance = (
            lambda context, uuid, **others: free(context, uuid, **others))
        with self.nova.being('me'), mock.patch.object(
                objects.InstanceList, 'get_by_filters', self._building):
            self.me.driver.init_host('me')
            self.me.driver.get_available_nodes()
            compute.driver = self.me.driver
            compute._error_out_instances_whose_build_was_interrupted(
                nova_context.get_admin_context(), set(), nodes)

    def _building(self, context, filters, expected_attrs=(), **_):
        if 'uuid' not in filters and 'host' in filters:
            return self.nova._instances(context, filters)
        filters = {'uuid': self.cloud.instances, **filters}
        found = [self.nova.instance(uuid) for uuid in filters['uuid']
                 if uuid in self.cloud.instances]
        return [each for each in found if each.vm_state == filters.get(
            'vm_state', each.vm_state)]

    def run_passes(self, seconds):
        for _ in range(int(seconds) // 60):
            self.nova.advance(60)
            self.me.run_pass()

    def state(self):
        found = self.nova.instance('new')
        return found.vm_state, found.task_state

    def test_one_that_has_come_here(self):
        self.build()
        self.cloud.arrived['new'] = 'ME'
        self.restart()
        self.assertEqual(('error', None), self.state())

    def _looked_at(self, nodes):
        """Return the nodes that Nova looks at if the service restarts."""
        with mock.patch.object(
                manager.ComputeManager, _REAL[0], autospec=True) as looked:
            self.restart(nodes)
        (_, _, _, found) = looked.call_args.args
        return list(found)

    def test_nodes_that_are_looked_at(self):
        self.build()
        others = sorted(self.desired('me', 'a', 'b') - {self.node})
        self.nova.put('active', others[0], 'me')
        nodes = [self.node, *others]
        self.assertEqual([self.node], self._looked_at(nodes))
        self.assertEqual([], self._looked_at(others))
        # Then there would be more requests than nodes.
        self.nova.put('other', None, None, task='scheduling', is_building=True)
        self.assertEqual(others[:1], self._looked_at(others[:1]))

    def test_all_nodes_are_looked_at(self):
        self.build()
        nodes = sorted(self.desired('me', 'a', 'b'))
        with mock.patch.object(
                self.me.ring.placement.__class__, 'providers_of_all',
                side_effect=exception.ConsumerAllocationRetrievalFailed(
                    consumer_uuid='new', error='no answer')):
            self.assertEqual(nodes, self._looked_at(nodes))

    def test_one_that_has_come_here_for_a_node_of_a_peer(self):
        # Of which Nova finds the builds at the start of that one alone.
        self.build()
        self.cloud.arrived['new'] = 'me'
        self.nova.own(self.node, 'a')
        self.restart(())
        self.assertEqual(('error', None), self.state())
        self.assertEqual(set(), self.cloud.allocations[self.node])

    def _unshelve(self, task):
        self.nova.put('new', None, None, task=task, is_offloaded=True)
        self.cloud.allocations[self.node] = {'new'}

    def test_unshelving_that_has_come_here(self):
        for task, reserved in ('unshelving', None), ('spawning', 'new'):
            self._unshelve(task)
            self.cloud.nodes[self.node].instance = reserved
            self.nova.provision_states[self.node] = 'available'
            self.cloud.arrived['new'] = 'me'
            self.restart()
            self.assertEqual(('shelved_offloaded', None), self.state())
            self.assertEqual(set(), self.cloud.allocations[self.node])
            self.assertIsNone(self.cloud.nodes[self.node].instance)

    def test_unshelving_that_has_come_to_a_peer_or_nowhere(self):
        for at in {'new': 'a'}, {}:
            self._unshelve('unshelving')
            self.cloud.arrived.clear()
            self.cloud.arrived.update(at)
            self.restart()
            self.assertEqual(('shelved_offloaded', 'unshelving'), self.state())
            self.assertEqual({'new'}, self.cloud.allocations[self.node])

    def test_nova_does_not_answer(self):
        for begin, before, after in (
                (self.build, ('building', 'scheduling'), ('error', None)),
                (lambda: self._unshelve('unshelving'),
                 ('shelved_offloaded', 'unshelving'),
                 ('shelved_offloaded', None))):
            begin()
            self.cloud.arrived['new'] = 'me'
            with mock.patch.object(
                    self.me.ring.nova.__class__, 'unclaimed',
                    side_effect=exception.CellTimeout()):
                self.restart(())
            # It does not keep the service from starting.
            self.assertEqual(before, self.state())
            self.run_passes(2 * unclaimed.SEARCH_INTERVAL
                            + unclaimed.PATIENCE + 120)
            self.assertEqual(after, self.state())
            self.assertEqual(set(), self.cloud.allocations[self.node])
            self.assertEqual((), self.me.ring.memory.unclaimed)

    def test_one_request_of_many_has_no_answer(self):
        """The others are ended all the same, and that one later."""
        ports = self.me.ring.world
        for port, name in (
                (ports.placement, 'providers_of'), (ports.placement, 'free'),
                (ports.nova, 'arrived_at'), (ports.nova, 'end_build'),
                (ports.nova, 'end_unshelve')):
            with self.subTest(name=name):
                for number, node in enumerate(sorted(self.cloud.nodes)[:6]):
                    uuid = f'i-{number}'
                    self.nova.put(uuid, None, None, **(
                        {'task': 'unshelving', 'is_offloaded': True}
                        if number % 2 else
                        {'task': 'scheduling', 'is_building': True}))
                    self.cloud.allocations[node] = {uuid}
                    self.cloud.arrived[uuid] = 'me'
                call, failed = getattr(port.__class__, name), []

                def ask(self, uuid, *given):
                    # That of a build, and that of an unshelving.
                    if int(uuid[2:]) % 2 not in failed:
                        failed.append(int(uuid[2:]) % 2)
                        raise exception.PlacementAPIConnectFailure()
                    return call(self, uuid, *given)
                with mock.patch.object(port.__class__, name, ask):
                    self.restart(())
                self.assertLessEqual(4, self._ended())
                self.run_passes(unclaimed.PATIENCE + 120)
                self.assertEqual(6, self._ended())
                self.assertEqual((), self.me.ring.memory.unclaimed)
                self.assertEqual(
                    frozenset(), self.me.ring.memory.unfreed)

    def _unread(self, provider):
        """Start while Nova does not say where the build has come to."""
        self.build()
        self.cloud.allocations[provider] = self.cloud.allocations.pop(
            self.node)
        with mock.patch.object(
                self.me.ring.nova.__class__, 'arrived_at',
                side_effect=exception.CellTimeout()):
            self.restart(())
            self.run_passes(120)
        self.assertEqual(('building', 'scheduling'), self.state())

    def _node_of_a_peer(self):
        return min(set(base.NODES) - self.desired('me', 'a', 'b'))

    def test_one_of_another_service_is_not_read_at_the_start(self):
        # A virtual machine's, for instance, or one that a peer is to build.
        self.useFixture(fixtures.MockPatchObject(unclaimed, 'LONGEST', 900.0))
        for provider, given_up in (
                ('of-a-hypervisor', None), (self._node_of_a_peer(), None),
                ('of-a-hypervisor', unclaimed.PATIENCE)):
            with self.subTest(provider=provider, given_up=given_up):
                self.cloud.arrived.clear()
                if given_up is not None:
                    self.cloud.arrived['new'] = 'hypervisor'
                    self.cloud.given_up['new'] = given_up
                self._unread(provider)
                self.run_passes(unclaimed.LONGEST + 120)
                self.assertEqual(('building', 'scheduling'), self.state())
                self.assertEqual({'new'}, self.cloud.allocations[provider])
                self.assertEqual((), self.me.ring.memory.unclaimed)
                self.cloud.allocations.clear()

    def test_one_of_this_service_is_not_read_at_the_start(self):
        # It has come here, whoever has the node by now.
        for provider in self.node, self._node_of_a_peer():
            self.cloud.arrived['new'] = 'me'
            self._unread(provider)
            self.run_passes(60)
            self.assertEqual(('error', None), self.state())
            self.assertEqual(set(), self.cloud.allocations[provider])
        # It has come to no service, which the node alone tells.
        self.cloud.arrived.clear()
        self._unread(self.node)
        self.run_passes(unclaimed.PATIENCE + 120)
        self.assertEqual(('error', None), self.state())
        self.assertEqual(set(), self.cloud.allocations[self.node])

    def test_one_in_a_pool_of_this_service_is_not_read_at_the_start(self):
        pool = pools.uuid_of(pools.name('me', base.KIND))
        with mock.patch.object(
                self.nova, 'compute', functools.partial(
                    self.nova.compute,
                    made=pool_driver.IronicPoolDriver)):
            self._unread(pool)
        self.run_passes(unclaimed.PATIENCE + 120)
        self.assertEqual(('error', None), self.state())
        self.assertEqual(set(), self.cloud.allocations[pool])

    def test_nothing_is_ended_while_nobody_says_of_which_node_it_is(self):
        self.useFixture(fixtures.MockPatchObject(unclaimed, 'LONGEST', 900.0))
        for provider, outcome in (
                (self.node, ('error', None)),
                ('of-a-hypervisor', ('building', 'scheduling'))):
            with self.subTest(provider=provider):
                with mock.patch.object(
                        self.me.ring.placement.__class__, 'providers_of',
                        side_effect=exception.PlacementAPIConnectFailure()):
                    self._unread(provider)
                    self.run_passes(unclaimed.LONGEST + 120)
                    self.assertEqual(('building', 'scheduling'), self.state())
                self.run_passes(120)
                self.assertEqual(outcome, self.state())
                self.assertEqual((), self.me.ring.memory.unclaimed)
                self.cloud.allocations.clear()

    def test_answers_of_all_writes_are_lost(self):
        """What was ended without a word keeps no node."""
        nova = self.me.ring.nova.__class__
        for name, fields in (
                ('end_build', {'task': 'scheduling', 'is_building': True}),
                ('end_unshelve', {'task': 'unshelving',
                                  'is_offloaded': True})):
            with self.subTest(name=name):
                self.nova.put('i-0', None, None, **fields)
                self.cloud.allocations[self.node] = {'i-0'}
                self.cloud.arrived['i-0'] = 'me'
                write = getattr(nova, name)

                def lose(self, *given):
                    write(self, *given)
                    raise exception.CellTimeout()
                with mock.patch.object(nova, name, lose):
                    self.restart(())
                self.run_passes(120)
                self.assertEqual(1, self._ended())
                self.assertEqual(
                    frozenset(), self.me.ring.memory.unfreed)

    def _ended(self):
        """Count the instances whose task has ended, and that have no node."""
        allocated = set().union(*self.cloud.allocations.values())
        return sum(
            each.task is None and not each.is_building
            and uuid not in allocated
            for uuid, each in self.cloud.instances.items() if 'i-' in uuid)

    def test_where_it_has_come_is_noted(self):
        self.build()
        compute = self.me.manager
        compute.build_and_run_instance = lambda context, instance, image: None
        self.me.driver.init_host('me')
        compute.build_and_run_instance(
            'context', self.nova.instance('new'), 'image')
        self.assertEqual('me', self.cloud.arrived['new'])

    def test_one_that_waits_long_at_a_peer(self):
        self.build()
        self.cloud.arrived['new'] = 'a'
        self.restart()
        self.run_passes(2 * unclaimed.PATIENCE)
        self.assertEqual(('building', 'scheduling'), self.state())
        # It goes with the peer, and at once.
        self.nova.change_service('a', forced_down=True)
        self.run_passes(120)
        self.assertEqual(('error', None), self.state())
        self.assertEqual(set(), self.cloud.allocations[self.node])

    def test_one_that_waits_longest_at_a_peer(self):
        self.useFixture(fixtures.MockPatchObject(unclaimed, 'LONGEST', 900.0))
        self.build()
        self.cloud.arrived['new'] = 'a'
        self.restart()
        self.run_passes(unclaimed.LONGEST - 120)
        self.assertEqual(('building', 'scheduling'), self.state())
        self.run_passes(240)
        self.assertEqual(('error', None), self.state())

    def test_one_that_comes_to_a_peer_after_the_start(self):
        self.build()
        self.restart()
        self.cloud.arrived['new'] = 'a'
        self.run_passes(2 * unclaimed.PATIENCE)
        self.assertEqual(('building', 'scheduling'), self.state())

    def test_one_that_has_come_here_and_waits_here_no_more(self):
        self.build()
        self.restart()
        self.cloud.arrived['new'] = 'me'
        self.run_passes(unclaimed.PATIENCE + 240)
        self.assertEqual(('error', None), self.state())

    def test_one_that_waits_at_a_peer(self):
        self.build()
        self.restart()
        self.assertEqual(('building', 'scheduling'), self.state())
        self.run_passes(unclaimed.PATIENCE - 120)
        self.assertEqual(('building', 'scheduling'), self.state())
        # It has come to its turn there.
        self.nova.change_instance('new', host='a', node=self.node)
        self.run_passes(unclaimed.PATIENCE)
        self.assertEqual(('building', 'scheduling'), self.state())
        self.assertEqual((), self.me.ring.memory.unclaimed)

    def test_one_that_was_sent_to_a_service_that_has_died(self):
        """Nova sends what has failed to the next host, alive or not."""
        for given_up in None, 0.0:
            self.restart(())
            self.run_passes(120)
            self.build()
            # It has failed at a peer, and came to no other service.
            self.cloud.arrived.clear()
            if given_up is not None:
                self.cloud.arrived['new'] = 'a'
                self.cloud.given_up['new'] = given_up
            self.run_passes(2 * unclaimed.SEARCH_INTERVAL)
            (found,) = self.me.ring.memory.unclaimed
            self.assertEqual(('new', self.node), (found.instance, found.node))
            self.assertEqual(('building', 'scheduling'), self.state())
            self.cloud.given_up['new'] = unclaimed.PATIENCE
            self.run_passes(unclaimed.PATIENCE + 120)
            self.assertEqual(('error', None), self.state())
            self.assertEqual(set(), self.cloud.allocations[self.node])

    def test_one_that_was_given_up_just_now(self):
        self.build()
        self.restart()
        self.cloud.arrived['new'] = 'a'
        self.cloud.given_up['new'] = 1.0
        self.run_passes(unclaimed.PATIENCE + 240)
        self.assertEqual(('building', 'scheduling'), self.state())

    def test_one_that_this_service_has_given_up(self):
        self.build()
        self.cloud.arrived['new'] = 'me'
        self.cloud.given_up['new'] = unclaimed.PATIENCE - 1
        # Not on a node that the service lists.
        self.restart(())
        self.assertEqual(('building', 'scheduling'), self.state())
        # It has never come to another one.
        self.cloud.given_up['new'] = unclaimed.PATIENCE
        self.restart(())
        self.assertEqual(('error', None), self.state())
        self.assertEqual(set(), self.cloud.allocations[self.node])

    def test_one_that_has_left_a_peer_before_that_has_died(self):
        self.build()
        self.cloud.arrived['new'] = 'a'
        self.restart()
        self.cloud.arrived['new'] = 'b'
        self.nova.change_service('a', forced_down=True)
        self.run_passes(240)
        self.assertEqual(('building', 'scheduling'), self.state())
        self.nova.change_service('b', forced_down=True)
        self.run_passes(240)
        self.assertEqual(('error', None), self.state())

    def test_one_of_another_node(self):
        self.restart(())
        self.run_passes(120)
        self.build()
        other = self.cloud.allocations.pop(self.node)
        self.cloud.allocations['of-a-peer'] = other
        self.run_passes(2 * unclaimed.SEARCH_INTERVAL)
        self.assertEqual((), self.me.ring.memory.unclaimed)

    def test_one_that_comes_late(self):
        self.restart(())
        self.run_passes(120)
        self.build()
        self.run_passes(2 * unclaimed.SEARCH_INTERVAL)
        self.nova.change_instance('new', host='a', node=self.node)
        self.run_passes(120)
        self.assertEqual((), self.me.ring.memory.unclaimed)

    def test_one_that_is_claimed_soon(self):
        self.restart(())
        self.run_passes(120)
        with mock.patch.object(
                self.me.ring.placement.__class__, 'consumers') as asked:
            for number in range(4):
                self.nova.put(f'new-{number}', None, None, task='scheduling',
                              is_building=True)
                self.run_passes(unclaimed.SEARCH_INTERVAL)
                self.nova.change_instance(
                    f'new-{number}', host='a', node=self.node)
        asked.assert_not_called()

    def test_without_an_answer(self):
        self.restart(())
        self.run_passes(120)
        self.build()
        with mock.patch.object(
                self.me.ring.placement.__class__, 'consumers',
                side_effect=exception.PlacementAPIConnectFailure()):
            self.run_passes(2 * unclaimed.SEARCH_INTERVAL)
        self.assertEqual((), self.me.ring.memory.unclaimed)
        self.run_passes(120)
        (found,) = self.me.ring.memory.unclaimed
        self.assertEqual('new', found.instance)
        with mock.patch.object(
                self.me.ring.placement.__class__, 'free',
                side_effect=exception.PlacementAPIConnectFailure()):
            self.run_passes(unclaimed.PATIENCE + 120)
        self.assertEqual(('error', None), self.state())
        self.assertEqual({'new'}, self.cloud.allocations[self.node])
        self.run_passes(60)
        self.assertEqual(set(), self.cloud.allocations[self.node])
        self.assertEqual((), self.me.ring.memory.unclaimed)

    def test_one_that_waits_nowhere(self):
        self.build()
        self.restart()
        self.run_passes(unclaimed.PATIENCE + 240)
        self.assertEqual(('error', None), self.state())
        self.assertEqual(set(), self.cloud.allocations[self.node])
        self.assertEqual((), self.me.ring.memory.unclaimed)

    def test_one_that_comes_here_after_the_start(self):
        self.build()
        self.restart()
        self.me.ring.process.builds.add('new')
        self.run_passes(unclaimed.PATIENCE + 240)
        self.assertEqual(('building', 'scheduling'), self.state())

    def test_one_that_a_peer_is_building(self):
        self.build('a', 'block_device_mapping')
        self.restart()
        self.run_passes(unclaimed.PATIENCE + 240)
        self.assertEqual(('building', 'block_device_mapping'), self.state())

    def test_one_that_a_peer_was_building_when_it_died(self):
        self.build('a', 'block_device_mapping')
        self.restart()
        self.run_passes(240)
        self.nova.change_service('a', forced_down=True)
        self.run_passes(240)
        self.assertEqual(('error', None), self.state())
        self.assertEqual(set(), self.cloud.allocations[self.node])

    def test_without_a_peer_it_was_for_this_service(self):
        self.build()
        self.nova.change_service('a', forced_down=True)
        self.nova.change_service('b', forced_down=True)
        self.restart()
        self.assertEqual(('error', None), self.state())

    def test_peer_that_is_disabled(self):
        self.build()
        self.nova.change_service('a', disabled=True)
        self.nova.change_service('b', forced_down=True)
        self.restart()
        self.assertEqual(('building', 'scheduling'), self.state())

    def test_one_for_a_pool_was_for_this_service(self):
        self.build()
        self.me = self.nova.compute('me', pool_driver.IronicPoolDriver)
        pool = pools.uuid_of(pools.name('me', base.KIND))
        self.cloud.allocations[pool] = self.cloud.allocations.pop(self.node)
        self.begin([pool])
        self.assertEqual(('error', None), self.state())
