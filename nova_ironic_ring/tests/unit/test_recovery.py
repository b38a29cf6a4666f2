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

"""Tests of what becomes of an instance that is taken over."""

import threading
from unittest import mock

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
from oslotest import base

from nova_ironic_ring import recovery


class RecoveryTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.useFixture(fixtures.MockPatchObject(recovery, '_POLL', 0))
        self.source = mock.Mock()
        self.compute = self.source.virtapi._compute
        self.compute.rt.compute_nodes = {'node': object()}
        self.states = ['active']
        self.source._validate_instance_and_node.side_effect = self._node
        self.saved: list[tuple] = []
        self.useFixture(fixtures.MockPatchObject(
            objects.Instance, 'save', autospec=True, side_effect=self._save))
        self.fault = self.useFixture(fixtures.MockPatch(
            'nova.compute.utils.add_instance_fault_from_exc')).mock
        self.context = nova_context.get_admin_context()

    def _node(self, instance):
        return mock.Mock(provision_state=(
            self.states.pop(0) if len(self.states) > 1 else self.states[0]))

    def _save(self, instance, expected_task_state=None):
        self.saved.append((instance.vm_state, instance.task_state,
                           expected_task_state))

    def _recover(self, vm_state='active', task_state=None) -> objects.Instance:
        instance = objects.Instance(
            uuid='instance', vm_state=vm_state, task_state=task_state,
            system_metadata={})
        before = set(threading.enumerate())
        recovery.start(self.source, self.context, {'node': instance},
                       {'node': 'dead'})
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
        return instance

    def test_nothing_taken_over(self):
        with fixtures.MockPatch('threading.Thread') as thread:
            recovery.start(self.source, self.context, {}, {})
        thread.mock.assert_not_called()

    def test_nova_does_what_it_does_at_a_start(self):
        instance = self._recover('active', 'rebooting')
        self.compute._init_instance.assert_called_once_with(
            self.context, instance)
        self.assertEqual([], self.saved)

    def test_build(self):
        instance = self._recover('building', 'spawning')
        self.assertIn('the nova-compute dead has died',
                      str(self.fault.call_args.args[2]))
        self.compute._init_instance.assert_called_once_with(
            self.context, instance)

    def test_waits_for_the_resource_tracker(self):
        nodes = mock.MagicMock()
        nodes.__contains__.side_effect = [False, False, True]
        self.compute.rt.compute_nodes = nodes
        self._recover()
        self.assertEqual(3, nodes.__contains__.call_count)
        self.compute._init_instance.assert_called_once()

    def test_rescue(self):
        for task, states, outcome in (
                ('rescuing', ['rescuing', 'rescue wait', 'rescue'], 'rescued'),
                ('rescuing', ['active'], 'active'),
                ('rescuing', ['rescue failed'], 'error'),
                ('unrescuing', ['unrescuing', 'active'], 'active'),
                ('unrescuing', ['rescue'], 'rescued'),
                ('unrescuing', ['unrescue failed'], 'error')):
            self.states = states
            self.saved.clear()
            self._recover('rescued' if task == 'unrescuing' else 'active',
                          task)
            self.assertEqual([(outcome, None, [task])], self.saved)

    def test_one_that_fails_is_said(self):
        self.compute._init_instance.side_effect = (
            exception.InstanceNotFound(instance_id='instance'))
        self._recover()
        self.assertIn('Instance instance, which was taken over from dead, '
                      'cannot be brought to order', self.log.output)
