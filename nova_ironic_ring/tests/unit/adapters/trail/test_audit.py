# SPDX-License-Identifier: Apache-2.0

"""Tests of the lines and the notifications of what changes hands."""

import json

import fixtures
import nova.conf
from nova import rpc
from oslo_config import fixture as config_fixture
import oslo_messaging
from oslo_messaging import conffixture
from oslo_messaging.notify import _impl_test
from oslotest import base

from nova_ironic_ring.adapters.trail import audit
from nova_ironic_ring.core.deciding import audit as core_audit

CONF = nova.conf.CONF
ENTRY = core_audit.Entry(
    core_audit.Code.NODE_TAKEN, 'b', node='n1', source='a', target='b',
    reason='TAKE_OFFERED')


class LinesTestCase(base.BaseTestCase):

    def test_line_is_one_object(self):
        log = self.useFixture(fixtures.FakeLogger(
            'nova_ironic_ring.audit', format='%(levelname)s %(message)s'))
        said = audit.write(ENTRY)
        (line,) = log.output.splitlines()
        level, _, text = line.partition(' ')
        self.assertEqual('INFO', level)
        self.assertEqual(said, json.loads(text))
        self.assertEqual(
            ['time', 'event', 'host', 'service', 'node', 'instance', 'from',
             'to', 'reason', 'by'], list(said))
        self.assertRegex(str(said['time']),
                         r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$')


class NotificationsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(CONF))
        self.useFixture(conffixture.ConfFixture(CONF)).transport_url = 'fake:/'
        self.addCleanup(_impl_test.reset)
        for name in ('TRANSPORT', 'NOTIFICATION_TRANSPORT', 'NOTIFIER',
                     'LEGACY_NOTIFIER'):
            self.useFixture(fixtures.MockPatchObject(rpc, name, None))

    def _sent(self, driver: list[str], topics: str) -> list[dict]:
        """Notify, as Nova is configured."""
        self.conf.config(group='notifications', notification_format=topics)
        self.conf.config(group='oslo_messaging_notifications', driver=driver)
        rpc.init(CONF)
        _impl_test.reset()
        audit.notify(audit.write(ENTRY), 'nova-compute')
        return [message for _, message, priority, _ in _impl_test.NOTIFICATIONS
                if priority == 'INFO']

    def test_notifications_are_sent_in_each_format(self):
        for topics in ('unversioned', 'versioned', 'both'):
            (message,) = self._sent(['test'], topics)
            self.assertEqual(
                ('ironic_ring.node_taken', 'nova-compute:b', 'n1'),
                (message['event_type'], message['publisher_id'],
                 message['payload']['node']))

    def test_notifications_are_off_by_default(self):
        self.assertEqual([], self._sent([], 'both'))

    def test_without_a_message_bus(self):
        # As in a program that has not begun to use it.
        audit.notify(audit.write(ENTRY), 'nova-compute')

    def test_bus_that_fails(self):
        log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.useFixture(fixtures.MockPatchObject(
            oslo_messaging.Notifier, 'prepare', side_effect=ValueError('no')))
        self._sent(['test'], 'versioned')
        self.assertIn('notification of NODE_TAKEN cannot be sent: no',
                      log.output)
