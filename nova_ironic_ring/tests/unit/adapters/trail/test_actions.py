# SPDX-License-Identifier: Apache-2.0

"""Tests of the actions of instances, on Nova's own tables."""

import dataclasses
import datetime
from unittest import mock

import fixtures
from nova.objects import instance_action
import oslo_messaging
from oslo_utils import fixture as utils_fixture
from oslo_utils import timeutils
from oslotest import base

from nova_ironic_ring.adapters.trail import actions
from nova_ironic_ring.adapters.trail import history
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.tests.fixtures import nova_database

INSTANCE, NODE = nova_database.INSTANCE, nova_database.NODE
BY = audit.Author('alice', 'controller', 'bob', 'move node-1 c')
FAILOVER = audit.Entry(
    audit.Code.INSTANCE_FAILED_OVER, 'b', node=NODE, instance=INSTANCE,
    source='a', target='b', reason='FORCED_DOWN')


class ActionsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_database.NovaDatabase())

    def _actions(self) -> list[instance_action.InstanceAction]:
        return list(instance_action.InstanceActionList.get_by_instance_uuid(
            self.nova.context(), INSTANCE))

    def _events(self, action: instance_action.InstanceAction
                ) -> list[instance_action.InstanceActionEvent]:
        return list(instance_action.InstanceActionEventList.get_by_action(
            self.nova.context(), action.id))

    def _record(self, entry: audit.Entry) -> None:
        """Record what has happened just now."""
        actions.record(self.nova.context(), entry, timeutils.utcnow())

    def test_takeover_is_an_action(self):
        for code, name in audit.ACTIONS.items():
            self._record(audit.Entry(
                code, 'b', node=NODE, instance=INSTANCE, source='a',
                target='b', reason='CONSENT'))
            action = self._actions()[0]
            self.assertEqual(name, action.action)
            self.assertIsNotNone(action.finish_time)
            # Nova takes a message for that of a failure.
            self.assertIsNone(action.message)
            (event,) = self._events(action)
            self.assertEqual(
                (name, 'Success', 'b', None),
                (event.event, event.result, event.host, event.traceback))
            self.assertEqual(
                '{"from": "a", "to": "b", "node": "%s", "reason": "CONSENT", '
                '"by": null}' % NODE, event.details)
        self.assertEqual(len(audit.ACTIONS), len(self._actions()))

    def test_answers_are_lost(self):
        """What is written again stands there once."""
        context = self.nova.context()
        for kind in (instance_action.InstanceAction,
                     instance_action.InstanceActionEvent):
            write = kind.create

            def lose(self, *given, _write=write):
                _write(self, *given)
                raise oslo_messaging.MessagingTimeout()
            with mock.patch.object(kind, 'create', lose):
                self.assertRaises(
                    oslo_messaging.MessagingTimeout, actions.record, context,
                    FAILOVER, timeutils.utcnow(), True)
        actions.record(context, FAILOVER, timeutils.utcnow(), True)
        (action,) = self._actions()
        self.assertEqual(1, len(self._events(action)))

    def test_who_has_asked_for_a_failover_is_in_its_action(self):
        actions.ask(self.nova.context(), audit.Entry(
            audit.Code.SERVICE_FORCED_DOWN, 'controller', instance=INSTANCE,
            source='a', reason='smoke', author=BY))
        (asked,) = self._actions()
        self.assertIsNone(asked.finish_time)
        self._record(FAILOVER)
        (action,) = self._actions()
        self.assertEqual((asked.request_id, 'ironic_ring_failover'),
                         (action.request_id, action.action))
        self.assertIsNotNone(action.finish_time)
        self.assertEqual(
            ['ironic_ring_asked', 'ironic_ring_failover'],
            sorted(event.event for event in self._events(action)))
        # The next one is another.
        self._record(FAILOVER)
        self.assertEqual(2, len(self._actions()))

    def test_service_that_is_faster_than_who_has_asked(self):
        self._record(FAILOVER)
        actions.ask(self.nova.context(), audit.Entry(
            audit.Code.SERVICE_FORCED_DOWN, 'controller', instance=INSTANCE,
            author=BY))
        (action,) = self._actions()
        self.assertEqual(
            ['ironic_ring_asked', 'ironic_ring_failover'],
            sorted(event.event for event in self._events(action)))

    def test_failover_that_nobody_has_asked_for(self):
        actions.ask(self.nova.context(), audit.Entry(
            audit.Code.SERVICE_FORCED_DOWN, 'controller', instance=INSTANCE,
            author=BY))
        for entry in (dataclasses.replace(FAILOVER, reason='ABSENT'),
                      dataclasses.replace(
                          FAILOVER, code=audit.Code.INSTANCE_TAKEN)):
            self._record(entry)
        self.assertEqual(3, len(self._actions()))

    def test_failover_that_was_asked_for_long_ago(self):
        actions.ask(self.nova.context(), audit.Entry(
            audit.Code.SERVICE_FORCED_DOWN, 'controller', instance=INSTANCE,
            author=BY))
        self.useFixture(fixtures.MockPatchObject(
            actions, '_PATIENCE', datetime.timedelta(0)))
        self._record(FAILOVER)
        self.assertEqual(2, len(self._actions()))

    def test_what_is_recorded_late(self):
        at = timeutils.utcnow().replace(microsecond=0)
        self.useFixture(utils_fixture.TimeFixture(
            at + datetime.timedelta(minutes=2)))
        actions.record(self.nova.context(), FAILOVER, at)
        (action,) = self._actions()
        (event,) = self._events(action)
        self.assertEqual({at}, {timeutils.normalize_time(time) for time in (
            action.start_time, action.finish_time,
            event.start_time, event.finish_time)})

    def test_what_is_recorded_is_read(self):
        instance_action.InstanceAction.action_start(
            self.nova.context(), INSTANCE, 'reboot')
        self._record(FAILOVER)
        (found,) = history.History(self.nova.context()).actions()
        self.assertEqual(
            ('ironic_ring_failover', INSTANCE, 'b',
             {'from': 'a', 'to': 'b', 'node': NODE, 'reason': 'FORCED_DOWN',
              'by': None}),
            (found.name, found.instance, found.host, found.said))
        self.assertEqual(self._actions()[0].request_id, found.request)
