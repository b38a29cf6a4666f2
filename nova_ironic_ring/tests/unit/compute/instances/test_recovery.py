# SPDX-License-Identifier: Apache-2.0

"""Tests of what becomes of an instance that is taken over."""

import functools
import itertools
import threading
import time
from unittest import mock

import fixtures
from nova.compute import manager
from nova.compute import power_state
from nova import exception
from nova import objects
from openstack.baremetal.v1 import node as sdk_node
from oslotest import base

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute.instances import recovery
from nova_ironic_ring.compute.recording import counters
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.values import model
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.unit.compute import base as compute_base


NODE = fake_nova.NODES[0]


def _taken(node: str, instance: str, task: str | None = None,
           is_dead: bool = True) -> model.Takeover:
    return model.Takeover(node, instance, 'dead', task, is_dead)


class RecoveringTestCase(base.BaseTestCase):
    """A service recovers what it has taken over."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.useFixture(fixtures.MockPatchObject(recovery, '_POLL', 0))
        self.nova = self.useFixture(fake_nova.FakeNova())
        self.nova.conf.config(host='me')
        self.me = self.nova.compute('me')
        self.me.tracked[NODE] = object()
        self.init = self.me.manager._init_instance
        self.states = ['active']
        self.useFixture(fixtures.MockPatchObject(
            self.nova, 'node', side_effect=self._node))
        self.recovery = self.me.driver.ring_recovery

    def _node(self, uuid):
        return sdk_node.Node(id=uuid, provision_state=(
            self.states.pop(0) if len(self.states) > 1 else self.states[0]))

    def _recover(self, vm_state: str = 'active', task: str | None = None,
                 host: str = 'me', was: str | None = '') -> tuple[
                     str, str | None]:
        """Have an instance brought to order, and return its states then.

        :param was: its task when it was taken over; empty for the same
        :returns: its state and its task
        """
        self.nova.vm_states['instance'] = vm_state
        self.nova.put('instance', NODE, host, task=task,
                      is_building=vm_state == 'building')
        self.nova.cloud.nodes[NODE].instance = 'instance'
        compute_base.recover(self.me.driver, _taken(
            NODE, 'instance', task if was == '' else was))
        if 'instance' not in self.nova.cloud.instances:
            return 'deleted', None
        now = self.nova.instance('instance')
        return now.vm_state, now.task_state

    def test_task_belongs_to_the_request_of_the_user(self):
        # Also where Nova is to continue with another task.
        for task in 'powering-off', 'unshelving':
            self.init.reset_mock()
            self._recover(task=task)
            (call,) = self.init.call_args_list
            self.assertEqual(f'req-of-{task}', call.args[0].request_id)

    def test_request_is_not_looked_for_without_a_task(self):
        self._recover()
        (call,) = self.init.call_args_list
        self.assertNotIn('req-of-', call.args[0].request_id)

    def test_soft_delete_belongs_to_the_request_of_the_user(self):
        self._recover(task='soft-deleting')
        (call,) = self.me.manager.soft_delete_instance.call_args_list
        self.assertEqual('req-of-soft-deleting', call.args[0].request_id)

    def _given(self) -> objects.Instance:
        """Return the instance that Nova's own recovery was given."""
        (call,) = self.init.call_args_list
        return call.args[1]

    def _finish(self, instance):
        instance.vm_state = 'active'
        instance.task_state = None


class RecoveryTestCase(RecoveringTestCase):

    def test_nothing_taken_over(self):
        with fixtures.MockPatch('threading.Thread') as thread:
            self.recovery.start(())
        thread.mock.assert_not_called()

    def test_what_a_live_service_has_given_needs_nothing(self):
        self.nova.put('instance', NODE, 'me')
        with fixtures.MockPatch('threading.Thread') as thread:
            self.recovery.start([
                _taken(NODE, 'instance', is_dead=False)])
        thread.mock.assert_not_called()

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        while self.recovery.pending:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_thread_that_cannot_be_started(self):
        self.nova.put('instance', NODE, 'me')
        with fixtures.MockPatch('threading.Thread.start', side_effect=(
                RuntimeError("can't start new thread"))):
            # The pass, which has taken it over, goes on.
            self.recovery.start([_taken(NODE, 'instance')])
        self.assertIn("can't start new thread", self.log.output)
        self.assertEqual(1, self.recovery.pending)
        # As after the next pass.
        self.recovery.start(())
        self._wait()
        self.init.assert_called_once()

    def test_threads_that_cannot_be_started_for_a_while(self):
        self.useFixture(fixtures.MockPatchObject(
            recovery, '_LONGEST_WAIT', 0))
        self.nova.put('instance', NODE, 'me')
        start = threading.Thread.start
        # The second is the first one for an instance.
        with mock.patch.object(
                threading.Thread, 'start', autospec=True,
                side_effect=lambda thread: start(thread) if (
                    tried.call_count != 2) else self._refuse()) as tried:
            self.recovery.start([_taken(NODE, 'instance')])
            self._wait()
        self.init.assert_called_once()
        self.assertIn("can't start new thread", self.log.output)

    def _refuse(self) -> None:
        raise RuntimeError("can't start new thread")

    def test_machines_that_do_not_do_what_they_are_to(self):
        self.useFixture(fixtures.MockPatchObject(recovery, '_HELD', 0.1))
        end = threading.Event()
        self.addCleanup(end.set)
        names = [f'held-{number}' for number in range(20)]
        for name in *names, 'instance':
            self.nova.put(name, NODE, 'me')
        self.init.side_effect = lambda context, instance: (
            instance.uuid == 'instance' or end.wait(60))
        self.recovery.start([_taken(NODE, name) for name in names])
        self.recovery.start([_taken(NODE, 'instance')])
        deadline = time.monotonic() + 30
        while self.recovery.pending > len(names):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        end.set()
        self._wait()
        self.assertEqual(len(names) + 1, self.init.call_count)

    def test_evacuation_that_nobody_has_refused(self):
        self.nova.evacuated.add('instance')
        self.assertEqual(('active', None),
                         self._recover('active', 'rebuilding'))
        # Which sets to ERROR what was being rebuilt.
        self.assertIsNone(self._given().task_state)
        # It has been refused since it was taken over.
        self.assertEqual(('active', None), self._recover(
            'active', None, was='rebuilding'))

    def test_nova_does_what_it_does_at_a_start(self):
        def recover(context, instance):
            instance.task_state = None
            instance.save()
        self.init.side_effect = recover
        self.assertEqual(('active', None),
                         self._recover('active', 'rebooting'))
        self.assertEqual('instance', self._given().uuid)

    def test_task_that_nova_does_not_know_what_to_do_with(self):
        self.assertEqual(('error', None), self._recover('error', 'rebuilding'))

    def test_task_that_another_has_ended_meanwhile(self):
        def recover(context, instance):
            self.nova.change_instance('instance', task='powering-on')
        self.init.side_effect = recover
        self.assertEqual(('active', 'powering-on'),
                         self._recover('active', 'rebooting'))

    def test_delete_that_fails_is_left_to_nova(self):
        self.assertEqual(('error', 'deleting'),
                         self._recover('error', 'deleting'))

    def test_another_has_it_by_now(self):
        self._recover('building', 'spawning', host='other')
        self.init.assert_not_called()
        self.assertEqual({}, self.nova.faults)

    def test_it_was_built_after_all(self):
        self._recover('active')
        self.assertEqual({}, self.nova.faults)

    def test_task_that_a_user_has_begun_since(self):
        for was in None, 'powering-off':
            self.assertEqual(('active', 'rebooting'), self._recover(
                'active', 'rebooting', was=was))
        self.assertEqual(('active', None), self._recover(
            'active', None, was='rebooting'))
        self.init.assert_not_called()

    def test_build_that_had_not_reached_ironic(self):
        for task, state in (('spawning', 'available'), ('spawning', None),
                            ('spawning', 'deploy failed'),
                            ('networking', 'active')):
            self.nova.faults.clear()
            self.states = [state]
            self.assertEqual(('error', None), self._recover('building', task))
            self.assertIn('the nova-compute dead has died',
                          str(self.nova.faults['instance']))

    def test_build_whose_reason_cannot_be_recorded(self):
        # The instance is saved by then.
        self.useFixture(fixtures.MockPatch(
            'nova.compute.utils.add_instance_fault_from_exc',
            side_effect=OSError('full')))
        self.states = ['available']
        self.assertEqual(('error', None), self._recover(
            'building', 'networking'))
        self.assertIn('Cannot record why instance instance is in ERROR.',
                      self.log.output)

    def test_build_with_which_its_service_goes_on(self):
        # It has been taken for dead, and finds out when Ironic is done.
        finish = self.me.manager._update_instance_after_spawn
        finish.side_effect = self._finish
        self.states = ['deploying', 'active']
        self.assertEqual(('active', None), self._recover(
            'building', 'spawning', was='networking'))
        self.assertEqual({}, self.nova.faults)

    def test_build_with_which_its_service_goes_on_as_it_is_given_up(self):
        finish = self.me.manager._update_instance_after_spawn
        finish.side_effect = self._finish
        self.states = ['deploying', 'active']
        save = objects.Instance.save

        def go_on(instance, **expected):
            if expected.get('expected_task_state') == ['networking']:
                self.nova.change_instance('instance', task='spawning')
            save(instance, **expected)
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'save', go_on))
        self.assertEqual(('active', None), self._recover(
            'building', 'networking'))
        self.assertEqual({}, self.nova.faults)

    def test_build_that_has_come_here_again(self):
        builds = self.me.ring.process.builds
        builds.add('instance')

        def end():
            self.nova.vm_states['instance'] = 'active'
            self.nova.put('instance', NODE, 'me')
            builds.clear()
        # As the build does that runs here.
        thread = threading.Timer(0.2, end)
        thread.start()
        self.addCleanup(thread.join)
        self.assertEqual(('active', None), self._recover(
            'building', 'spawning'))
        self.me.manager._update_instance_after_spawn.assert_not_called()

    def test_build_that_ironic_is_at(self):
        finish = self.me.manager._update_instance_after_spawn
        finish.side_effect = self._finish
        self.states = ['deploying', 'wait call-back', 'deploying', 'active']
        self.assertEqual(('active', None),
                         self._recover('building', 'spawning'))
        self.assertEqual({}, self.nova.faults)
        self.init.assert_not_called()
        self.me.manager._update_scheduler_instance_info.assert_called_once()

    def test_build_that_another_takes_over_meanwhile(self):
        self.states = ['deploying']
        looked = []

        def look(uuid):
            looked.append(uuid)
            if len(looked) == 3:
                self.nova.change_instance('instance', host='other')
            return self._node(uuid)
        self.nova.node.side_effect = look
        self.assertEqual(('building', 'spawning'),
                         self._recover('building', 'spawning'))
        self.assertEqual(3, len(looked))
        self.init.assert_not_called()

    def test_delete_is_tried_until_it_is_done(self):
        # Nova's own sets the instance to ERROR, and raises nothing.
        def delete(context, instance):
            if self.init.call_count == 3:
                del self.nova.cloud.instances['instance']
        self.init.side_effect = delete
        self._recover('active', 'deleting')
        self.assertEqual(3, self.init.call_count)

    def test_build_that_was_being_deleted(self):
        self.init.side_effect = lambda *_: (
            self.nova.cloud.instances.pop('instance'))
        self._recover('building', 'deleting')
        self.assertEqual({}, self.nova.faults)
        # In which state Nova's own goes on with the delete.
        self.assertEqual('error', self._given().vm_state)

    def test_waits_for_the_resource_tracker(self):
        nodes = mock.MagicMock()
        nodes.__contains__.side_effect = [False, False, True]
        self.me.manager.rt.compute_nodes = nodes
        self._recover()
        self.assertEqual(3, nodes.__contains__.call_count)
        self.init.assert_called_once()

    def test_node_that_the_resource_tracker_need_not_update(self):
        # It is free in Ironic, and was taken without the tracker.
        self.me.tracked.clear()
        self.nova.put('instance', NODE, 'me')
        job = recovery._Job(_taken(NODE, 'instance'), time.monotonic())
        track = mock.Mock(side_effect=[False, True])
        started = recovery.Recovery(self.me.driver, frozenset(), track)
        self.assertFalse(started._look(job))
        self.assertTrue(started._look(job))
        track.assert_called_with(NODE)

    def test_the_driver_has_the_tracker_do_so(self):
        ring = self.me.driver.ring_service
        ring.process.untracked = frozenset({NODE})
        with mock.patch.object(upstream, 'track') as track, (
                mock.patch.object(
                    upstream, 'tracked_nodes', return_value=frozenset())):
            self.assertTrue(self.me.driver.ring_recovery._track(NODE))
            self.assertFalse(self.me.driver.ring_recovery._track('other'))
        track.assert_called_once_with(self.me.driver, NODE)

    def test_rescue(self):
        for task, states, outcome in (
                ('rescuing', ['rescuing', 'rescue wait', 'rescue'], 'rescued'),
                ('rescuing', ['active'], 'stopped'),
                ('rescuing', ['rescue failed'], 'error'),
                ('unrescuing', ['unrescuing', 'active'], 'active'),
                ('unrescuing', ['rescue'], 'rescued'),
                ('unrescuing', ['unrescue failed'], 'error')):
            self.states = states
            self.assertEqual((outcome, None), self._recover(
                'rescued' if task == 'unrescuing' else 'stopped', task))

    def test_rescue_that_ironic_was_not_asked_for(self):
        for state, asked in ((power_state.SHUTDOWN, 1),
                             (power_state.RUNNING, 0)):
            with mock.patch.object(
                    self.me.driver, 'get_info',
                    return_value=mock.Mock(state=state)), mock.patch.object(
                        self.me.driver, 'power_on') as switch:
                self.assertEqual(('active', None), self._recover(
                    'active', 'rescuing'))
            # Nova had switched it off, as what is rescued does not run.
            self.assertEqual(asked, switch.call_count)

    def test_rescue_after_which_the_machine_cannot_be_switched_on(self):
        with mock.patch.object(
                self.me.driver, 'get_info', return_value=mock.Mock(
                    state=power_state.SHUTDOWN)), mock.patch.object(
                        self.me.driver, 'power_on', side_effect=ValueError):
            self.assertEqual(('stopped', None), self._recover(
                'active', 'rescuing'))

    def test_reboot_that_no_service_has_begun(self):
        # Which Nova would take for done where the machine runs.
        for asked, begun in (('rebooting', 'reboot_pending'),
                             ('rebooting_hard', 'reboot_pending_hard')):
            self.init.reset_mock()
            self.init.side_effect = (
                lambda _, instance, begun=begun: self.assertEqual(
                    begun, instance.task_state))
            self.assertEqual(('active', None), self._recover('active', asked))
            self.init.assert_called_once()

    def test_reboot_that_a_service_has_begun(self):
        self.init.side_effect = lambda _, instance: self.assertEqual(
            'reboot_started', instance.task_state)
        self._recover('active', 'reboot_started')
        self.init.assert_called_once()

    def _start(self, context: object, instance: objects.Instance) -> None:
        """Do what Nova does at a start with one that is being started."""
        self.assertEqual(('stopped', 'powering-on'), (
            instance.vm_state, instance.task_state))
        instance.vm_state, instance.task_state = 'active', None
        instance.save(expected_task_state=['powering-on'])

    def test_restore(self):
        self.init.side_effect = self._start
        self.assertEqual(('active', None), self._recover(
            'soft-delete', 'restoring'))

    def test_restore_that_fails_leaves_nothing_to_reclaim(self):
        # Nova says no more when it was deleted: it would be deleted at once.
        self.assertEqual(('stopped', None), self._recover(
            'soft-delete', 'restoring'))

    def test_restore_is_gone_on_with(self):
        self.init.side_effect = [ValueError('no answer'), mock.DEFAULT]
        self.assertEqual(('stopped', None), self._recover(
            'soft-delete', 'restoring'))
        self.assertEqual(2, self.init.call_count)

    def test_soft_delete(self):
        def delete(context, instance):
            instance.vm_state, instance.task_state = 'soft-delete', None
            instance.save(expected_task_state=['soft-deleting'])
        self.me.manager.soft_delete_instance.side_effect = delete
        self.assertEqual(('soft-delete', None), self._recover(
            'active', 'soft-deleting'))
        self.init.assert_not_called()

    def test_delete_of_one_that_was_to_be_deleted_later(self):
        # In which state Nova's own does nothing.
        self.init.side_effect = lambda *_: (
            self.nova.cloud.instances.pop('instance'))
        self._recover('soft-delete', 'deleting')
        self.assertEqual('error', self._given().vm_state)

    def test_unshelving_of_one_that_has_its_machine(self):
        self.init.side_effect = lambda _, instance: self.assertEqual(
            'powering-on', instance.task_state)
        self._recover('shelved', 'unshelving')
        self.init.assert_called_once()

    def test_server_that_ironic_services(self):
        # An operator has Ironic at work on the firmware, for instance.
        busy = ['servicing', 'service wait', 'service hold', 'active']
        for states in busy, ['service failed']:
            for was, task, outcome in (
                    ('active', 'rescuing', 'active'),
                    ('stopped', 'rescuing', 'stopped'),
                    ('rescued', 'unrescuing', 'active'),
                    ('active', 'shelving', 'active')):
                self.states = list(states)
                with mock.patch.object(
                        self.me.driver, 'get_info',
                        side_effect=self._running) as look:
                    self.assertEqual((outcome, None),
                                     self._recover(was, task))
                self.assertEqual(was == 'active', look.called)

    def test_switching_of_a_server_that_ironic_services(self):
        def recover(context, instance):
            # No time to switch the machine before.
            self.assertEqual(1, len(self.states))
            self._finish(instance)
            instance.save()
        self.init.side_effect = recover
        soft_delete = self.me.manager.soft_delete_instance
        soft_delete.side_effect = recover
        busy = ['servicing', 'service wait', 'service hold', 'active']
        for states in busy, ['service failed']:
            for was, task in (
                    *(('active', f'reboot{step}{hard}') for step in (
                        'ing', '_pending', '_started')
                      for hard in ('', '_hard')),
                    ('active', 'powering-off'), ('stopped', 'powering-on'),
                    ('shelved', 'unshelving'), ('soft-delete', 'restoring'),
                    ('active', 'soft-deleting')):
                with self.subTest(states=states, task=task):
                    self.init.reset_mock()
                    soft_delete.reset_mock()
                    self.states = list(states)
                    self.assertEqual(
                        ('active', None), self._recover(was, task))
                    self.assertEqual(1, (
                        self.init.call_count + soft_delete.call_count))

    def _looked_at_after(self, seconds: float, state: str
                         ) -> tuple[recovery.Recovery, recovery._Job]:
        """Look at a rescue that was taken over some time ago."""
        self.states = [state]
        self.nova.put('instance', NODE, 'me', task='rescuing')
        self.nova.cloud.nodes[NODE].instance = 'instance'
        job = recovery._Job(_taken(NODE, 'instance', 'rescuing'),
                            time.monotonic() - seconds)
        looking = recovery.Recovery(self.me.driver, frozenset())
        looking._try(job)
        return looking, job

    def test_what_waits_for_long_is_looked_at_less_often(self):
        with mock.patch.object(recovery, '_POLL', 1.0):
            for seconds, pause in ((0, 1), (9, 1), (60, 6), (590, 59),
                                   (600, 60), (86400, 60)):
                _, job = self._looked_at_after(seconds, 'service hold')
                self.assertFalse(job.is_done)
                self.assertAlmostEqual(
                    pause, job.due - time.monotonic(), delta=1)

    def test_what_waits_for_long_is_told_once(self):
        for state in 'service hold', 'rescuing':
            with self.subTest(state=state):
                _, job = self._looked_at_after(
                    recovery._PATIENCE - 60, state)
                self.assertNotIn('provision state', self.log.output)
                looking, job = self._looked_at_after(
                    recovery._PATIENCE, state)
                looking._try(job)
                (line,) = [line for line in self.log.output.splitlines()
                           if 'provision state' in line]
                self.assertIn('instance instance, which was taken over from '
                              'dead, has waited for 30 minutes', line)
                self.assertIn(f'node {NODE} is in provision state {state}: ',
                              line)
                self.assertIn(f'baremetal node unhold {NODE}"', line)
                self.log._output.truncate(0)

    def _running(self, *_: object, **__: object) -> mock.Mock:
        """Say that a machine runs, which is no time to look before."""
        self.assertEqual(1, len(self.states))
        return mock.Mock(state=power_state.RUNNING)

    def test_one_that_fails_is_tried_again(self):
        self.init.side_effect = [ValueError('once'), None]
        given_up = counters.COUNTERS.recoveries_given_up
        self._recover()
        self.assertEqual(2, self.init.call_count)
        self.assertEqual(given_up, counters.COUNTERS.recoveries_given_up)

    def test_errors_in_a_row_come_to_an_end(self):
        counted = self.useFixture(fixtures.MockPatchObject(
            counters, 'COUNTERS', counters.Counters())).mock
        self.init.side_effect = ValueError('always')
        self._recover()
        self.assertEqual(30, self.init.call_count)
        self.assertEqual(1, counted.recoveries_given_up)

    def test_errors_that_are_not_in_a_row(self):
        finish = self.me.manager._update_instance_after_spawn
        finish.side_effect = self._finish
        looks = itertools.cycle(
            [ValueError('no answer'), *[self._node_in('deploying')] * 2])
        self.nova.node.side_effect = [
            *itertools.islice(looks, 120), self._node_in('active')]
        self.assertEqual(('active', None), self._recover(
            'building', 'spawning'))

    @staticmethod
    def _node_in(state):
        return sdk_node.Node(id=NODE, provision_state=state)

    def test_machine_that_another_node_has(self):
        # Whose owner has written the instance there.
        self.nova.node.side_effect = lambda uuid: sdk_node.Node(
            id=fake_nova.NODES[1], provision_state='active')
        self.assertEqual(('error', None), self._recover(
            'building', 'spawning'))
        self.me.manager._update_instance_after_spawn.assert_not_called()

    def test_one_that_is_deleted(self):
        compute_base.recover(self.me.driver, _taken(NODE, 'deleted'))
        self.init.assert_not_called()
        self.assertEqual('', self.log.output)

    def test_many(self):
        for node in fake_nova.NODES:
            self.me.tracked[node] = object()
            self.nova.put(f'on {node}', node, 'me')
        before = threading.active_count()
        most = []
        self.init.side_effect = lambda *_: most.append(
            threading.active_count() - before)
        compute_base.recover(self.me.driver, *(
            _taken(node, f'on {node}') for node in fake_nova.NODES))
        # And the one that has them looked at.
        self.assertLessEqual(max(most), 8 + 1)
        self.assertEqual(
            {f'on {node}' for node in fake_nova.NODES},
            {call.args[1].uuid for call in self.init.call_args_list})

    def test_its_threads_end(self):
        before = set(threading.enumerate())
        used = set()
        self.init.side_effect = lambda *_: used.add(threading.current_thread())
        self._recover()
        self._recover()
        self.assertEqual(set(), used & before)
        for thread in set(threading.enumerate()) - before:
            thread.join(30)
            self.assertFalse(thread.is_alive(), thread)
        self.assertEqual(2, len(used))


class ShelvedTestCase(RecoveringTestCase):
    """An instance that boots from a volume; Nova's own code shelves it."""

    def setUp(self):
        super().setUp()
        self.compute = self.me.manager
        self.compute.host = 'me'
        self.compute.driver = self.me.driver
        for name in ('_shelve_offload_instance', '_power_off_instance',
                     '_terminate_volume_connections',
                     '_nil_out_instance_obj_host_and_node'):
            setattr(self.compute, name, functools.partial(
                getattr(manager.ComputeManager, name), self.compute))
        for name in ('network_api', 'volume_api', 'share_manager'):
            setattr(self.compute, name, mock.MagicMock())
        self.volumes = self.compute.volume_api
        self.volumes.attachment_create.return_value = {'id': 'new'}
        self.compute._get_power_off_values.return_value = 0, 0
        self.compute._get_power_state.return_value = 4
        # Nova's own tests wait for nothing either.
        self.nova.conf.config(group='ironic', api_retry_interval=0)
        self.compute.rt.delete_allocation_for_shelve_offloaded_instance = (
            lambda context, instance: (
                self.me.placement.delete_allocation_for_instance(
                    context, instance.uuid, force=True)))
        self.bdm = mock.Mock(
            is_volume=True, attachment_id='old', volume_id='volume')
        self.useFixture(fixtures.MockPatchObject(
            objects.BlockDeviceMappingList, 'get_by_instance_uuid',
            return_value=[self.bdm]))
        self.has_volume = self.useFixture(fixtures.MockPatch(
            'nova.compute.utils.is_volume_backed_instance',
            return_value=True)).mock
        self.useFixture(fixtures.MockPatch(
            'nova.compute.utils.notify_about_instance_action', autospec=True))
        self.nova.cloud.allocations[NODE] = {'instance'}
        self.power = 'power on'
        #: What is asked of Ironic, in turn.
        self.asked: list[str] = []
        self.nova.ironic.nodes.side_effect = self._found
        self.nova.ironic.set_node_power_state = mock.Mock(
            side_effect=lambda node, *_, **__: self.asked.append('off'))
        self.nova.ironic.set_node_provision_state = mock.Mock(
            side_effect=self._undeploy)

    def _found(self, instance_id, **_: object):
        """Say which node Ironic has an instance on."""
        node = self.nova.node(NODE)
        node.power_state = self.power
        # Ironic forgets the instance when the node is torn down.
        return [node] if node.provision_state in (
            'active', 'deleting', 'deploying', 'deploy failed') else []

    def _undeploy(self, node, target, **_: object) -> None:
        self.asked.append(target)
        self.states = [None]

    def _shelve(self, *states: str | None, vm_state: str = 'active',
                task: str = 'shelving') -> tuple[str, str | None]:
        self.states = list(states)
        return self._recover(vm_state, task)

    def assertShelved(self):
        """See that nothing is left to do, and the data is there."""
        self.assertEqual(
            model.Instance(None, None, is_offloaded=True),
            self.nova.cloud.instances['instance'])
        self.assertEqual(set(), self.nova.cloud.allocations[NODE])
        self.volumes.attachment_delete.assert_called_once_with(
            mock.ANY, 'old')
        self.assertEqual('new', self.bdm.attachment_id)
        self.init.assert_not_called()

    def assertAsBefore(self):
        """See that the instance is left on its machine."""
        self.assertEqual([], self.asked)
        self.assertEqual('me', self.nova.host_of('instance'))
        self.assertEqual({'instance'}, self.nova.cloud.allocations[NODE])
        self.assertEqual([], self.volumes.mock_calls)

    def test_machine_that_is_undeployed(self):
        self._shelve('deleting', 'deleting', None)
        self.assertShelved()
        self.assertEqual([], self.asked)

    def test_machine_that_is_switched_off(self):
        self.power = 'power off'
        self._shelve('active')
        self.assertShelved()
        self.assertEqual(['deleted'], self.asked[-1:])

    def test_machine_that_runs(self):
        self.assertEqual(('active', None), self._shelve('active'))
        self.assertAsBefore()

    def test_failure_is_tried_again(self):
        self.volumes.attachment_create.side_effect = [
            OSError('no answer'), {'id': 'new'}]
        self._shelve(None)
        self.assertShelved()

    def test_offloading_of_one_that_is_shelved(self):
        # Never with Nova's ironic driver; its machine may still run.
        self.has_volume.return_value = False
        self._shelve('active', vm_state='shelved', task='shelving_offloading')
        self.assertShelved()

    def test_one_with_disks_of_its_own(self):
        self.has_volume.return_value = False
        for power, state, outcome in (
                ('power on', 'active', 'active'),
                ('power off', 'active', 'stopped'),
                ('power off', None, 'error')):
            self.power = power
            self.assertEqual((outcome, None), self._shelve(state))
            self.assertAsBefore()

    def _unshelve(self, *states: str | None, task: str | None = 'spawning'
                  ) -> tuple[str, str | None]:
        self.states = list(states)
        return self._recover('shelved_offloaded', task)

    def test_all_but_the_last_step(self):
        self.nova.cloud.allocations[NODE] = set()
        self.assertEqual(('shelved_offloaded', None),
                         self._unshelve(None, task=None))
        self.assertEqual(model.Instance(None, None, is_offloaded=True),
                         self.nova.cloud.instances['instance'])

    def test_unshelving_that_had_not_reached_ironic(self):
        self._unshelve(None)
        self.assertShelved()
        self.assertEqual([], self.asked)

    def test_unshelving_that_ironic_is_at(self):
        self.compute._update_instance_after_spawn.side_effect = self._finish
        self.assertEqual(('active', None), self._unshelve(
            'deploying', 'deploying', 'active'))
        self.assertEqual('me', self.nova.host_of('instance'))
        self.assertEqual({'instance'}, self.nova.cloud.allocations[NODE])
        self.init.assert_not_called()

    def test_unshelving_that_fails_in_ironic(self):
        self._unshelve('deploying', 'deploy failed')
        self.assertShelved()
        # Else the node would be lost.
        self.assertEqual(['deleted'], self.asked)


class ResumedTestCase(RecoveringTestCase):
    """The service is restarted before it has recovered an instance."""

    def setUp(self):
        super().setUp()
        self.me.driver.init_host('me')

    def _start(self, vm_state: str, task: str | None,
               code: audit.Code = audit.Code.INSTANCE_FAILED_OVER) -> None:
        """Have Nova's start look at an instance, and finish the rest."""
        self.nova.actions.append(audit.Entry(
            code, 'me', instance='instance', source='dead', target='me'))
        self.nova.vm_states['instance'] = vm_state
        self.nova.put('instance', NODE, 'me', task=task,
                      is_building=vm_state == 'building')
        self.nova.cloud.nodes[NODE].instance = 'instance'
        self.me.manager._init_instance(
            'context', self.nova.instance('instance'))
        for _ in range(1000):
            if not self.recovery.pending:
                break
            time.sleep(0.01)
        self.assertEqual(0, self.recovery.pending)
        found = self.nova.instance('instance')
        self.now = found.vm_state, found.task_state

    def test_rescue(self):
        self.states = ['rescuing', 'rescue']
        self._start('active', 'rescuing')
        self.assertEqual(('rescued', None), self.now)
        # As a step of that recovery, and not before.
        self.init.assert_called_once()
        self.assertIn('was taken over from dead, and not recovered before',
                      self.log.output)

    def test_build(self):
        # Nova's own start would set it to ERROR at once.
        self.states = ['deploying', 'deploying', 'active']
        finished = self.me.manager._update_instance_after_spawn
        finished.side_effect = self._finish
        self._start('building', 'spawning')
        self.assertEqual(('active', None), self.now)
        self.init.assert_not_called()

    def test_soft_delete(self):
        self._start('active', 'soft-deleting')
        self.me.manager.soft_delete_instance.assert_called_once()

    def test_one_that_the_first_pass_has_taken(self):
        # Nova lists the nodes before it reads the instances.
        self.states = ['deploying', 'active']
        self.nova.vm_states['instance'] = 'building'
        self.nova.put('instance', NODE, 'me', task='spawning',
                      is_building=True)
        with fixtures.MockPatch('threading.Thread'):
            self.recovery.start([_taken(NODE, 'instance', 'spawning')])
        self.me.manager._init_instance(
            'context', self.nova.instance('instance'))
        self.init.assert_not_called()

    def test_nothing_is_under_way(self):
        self._start('active', None)
        self.init.assert_called_once()
        self.assertEqual('context', self.init.call_args.args[0])

    def test_one_that_was_not_left_by_a_dead_service(self):
        self._start('active', 'rescuing', audit.Code.INSTANCE_TAKEN)
        self.init.assert_called_once()
        self.assertEqual(('active', 'rescuing'), self.now)

    def test_nova_does_not_answer(self):
        self.useFixture(fixtures.MockPatchObject(
            recovery, 'left_by',
            side_effect=exception.CellTimeout()))
        self._start('active', 'rescuing')
        self.init.assert_called_once()
        self.assertIn('Cannot find out whether instance instance was taken '
                      'over', self.log.output)
