# SPDX-License-Identifier: Apache-2.0

"""Tests of the requests for an instance, on Nova's own tables."""

from nova.compute import utils as compute_utils
from nova import context as nova_context
from nova import exception
from nova.objects import instance_action
from oslotest import base

from nova_ironic_ring.adapters.nova import user_requests
from nova_ironic_ring.tests.fixtures import nova_database

INSTANCE = nova_database.INSTANCE


class RequestsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_database.NovaDatabase())

    def _ask(self, name: str) -> str:
        """Have something asked of the instance, and return the request."""
        context = self.nova.context()
        instance_action.InstanceAction.action_start(context, INSTANCE, name)
        return context.request_id

    def _resumed(self, task: str = 'powering-off'
                 ) -> nova_context.RequestContext:
        context = self.nova.context()
        user_requests.resume(context, INSTANCE, task)
        return context

    def _do(self, context: nova_context.RequestContext) -> None:
        """Do what Nova does when it stops a server, and is overtaken."""
        with compute_utils.EventReporter(context, 'stop', 'me', INSTANCE):
            self._ask('start')

    def test_last_request(self):
        self.assertIsNone(user_requests.last(
            self.nova.context(), INSTANCE, 'powering-off'))
        self._ask('create')
        asked = self._ask('stop')
        for beside in 'lock', 'ironic_ring_failover', 'unlock':
            self._ask(beside)
        self.assertEqual(['stop', 'create'], [
            each.action for each in user_requests.latest(
                self.nova.context(), INSTANCE)])
        self.assertEqual(asked, self._resumed().request_id)

    def test_switching_that_ironic_reports_is_not_the_request(self):
        asked = self._ask('reboot')
        reported = self._ask('start')
        for task in 'rebooting_hard', 'reboot_started':
            self.assertEqual(asked, self._resumed(task).request_id)
        # Whatever it was, that is no action of its own.
        self.assertEqual(reported, self._resumed('rescuing').request_id)
        self.assertEqual(reported, self._resumed('powering-off').request_id)

    def test_request_that_nova_does_not_know(self):
        context = self.nova.context()
        before = context.request_id
        user_requests.resume(context, INSTANCE, 'powering-off')
        self.assertEqual(before, context.request_id)

    def test_next_request_comes_before_the_end(self):
        self._ask('stop')
        self._do(self._resumed())
        start, stop = instance_action.InstanceActionList.get_by_instance_uuid(
            self.nova.context(), INSTANCE)
        self.assertEqual('start', start.action)
        (event,) = instance_action.InstanceActionEventList.get_by_action(
            self.nova.context(), stop.id)
        self.assertEqual(('stop', 'Success', 'me'), (
            event.event, event.result, event.host))

    def test_what_nova_does_by_itself(self):
        # If this fails, this release of Nova can do without resume().
        self._ask('stop')
        self.assertRaises(exception.InstanceActionEventNotFound,
                          self._do, self.nova.context())
