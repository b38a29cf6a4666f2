# SPDX-License-Identifier: Apache-2.0

"""Tests of what a service keeps of what changes hands."""

import json
import threading

import fixtures
import oslo_messaging

from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.tests.unit.compute import base

Code = audit.Code


class HistoryTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.lines = self.useFixture(fixtures.FakeLogger(
            'nova_ironic_ring.audit', format='%(message)s'))
        self.useFixture(fixtures.MockPatchObject(
            self.driver.ring_recovery, 'start'))
        self.sent = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.trail.audit.notify')).mock

    def _die(self, instance: str = 'instance') -> str:
        """Have b die, with an instance, and return the node of that."""
        self.settle()
        node = self.first_of_b()
        self.nova.put(instance, node, 'b')
        self.me.run_pass()
        self.nova.change_service('b', forced_down=True)
        return node

    def _written(self, code: Code) -> list[dict]:
        """Return the lines with a code, once all is written."""
        self.assertTrue(self.me.ring.history.wait(30))
        return [said for line in self.lines.output.splitlines()
                if (said := json.loads(line))['event'] == code.name]

    def test_failover_is_an_action_of_the_instance(self):
        node = self._die()
        self.me.run_pass()
        (line,) = self._written(Code.INSTANCE_FAILED_OVER)
        expected = audit.Entry(
            Code.INSTANCE_FAILED_OVER, 'me', node=node, instance='instance',
            source='b', target='me', reason='FORCED_DOWN')
        self.assertEqual({'time': line['time'], **expected.values()}, line)
        self.assertEqual([expected], self.nova.actions)
        self.assertIn(line, [call.args[0] for call in self.sent.mock_calls])
        # Once.
        self.me.run_pass()
        self.assertEqual(1, len(self._written(Code.INSTANCE_FAILED_OVER)))
        self.assertEqual([expected], self.nova.actions)

    def test_takeover_between_passes(self):
        self._die()
        self.driver.ring_reactions.look()
        self.assertEqual(1, len(self._written(Code.INSTANCE_FAILED_OVER)))
        self.assertEqual(['instance'],
                         [entry.instance for entry in self.nova.actions])

    def test_takeover_goes_on_where_it_cannot_be_recorded(self):
        node = self._die()
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.trail.actions.record',
            side_effect=ValueError('no conductor')))
        self.assertIn(node, self.me.run_pass())
        self.assertEqual('me', self.nova.host_of('instance'))
        self.assertTrue(self.me.ring.history.wait(30))
        self.assertIn('goes from b to me: no conductor', self.log.output)

    def test_action_is_recorded_when_conductor_answers_again(self):
        self._die()
        recorded = []

        def record(context, entry, at, is_again):
            recorded.append((context.request_id, is_again))
            if len(recorded) < 3:
                raise oslo_messaging.MessagingTimeout('no conductor')
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.trail.actions.record', record))
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.recording.history._LONGEST_WAIT', 0.1))
        self.me.run_pass()
        self.assertTrue(self.me.ring.history.wait(30))
        self.assertEqual([False, True, True], [
            is_again for _, is_again in recorded])
        # By which what was written before is found.
        self.assertEqual(1, len({request for request, _ in recorded}))

    def test_actions_do_not_wait_for_notifications(self):
        answers, recorded = threading.Event(), threading.Event()
        self.addCleanup(answers.set)
        self.sent.side_effect = lambda *_: answers.wait(30)
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.trail.actions.record',
            side_effect=lambda *_: recorded.set()))
        self._die()
        self.me.run_pass()
        self.assertTrue(recorded.wait(10))

    def test_members_and_free_nodes(self):
        self._die()
        self.me.run_pass()
        self.assertIn(('b', 'FORCED_DOWN'), [
            (line['service'], line['reason'])
            for line in self._written(Code.MEMBER_LEFT)])
        self.assertEqual({('b', 'me', 'TAKE_ABANDONED')}, {
            (line['from'], line['to'], line['reason'])
            for line in self._written(Code.NODE_TAKEN)})
