# SPDX-License-Identifier: Apache-2.0

"""Tests of what is read of the past, on Nova's own tables."""

import datetime

from nova.db.main import models
from oslo_utils import timeutils
from oslotest import base

from nova_ironic_ring.adapters.trail import actions
from nova_ironic_ring.adapters.trail import history
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.tests.fixtures import nova_database

INSTANCE, NODE = nova_database.INSTANCE, nova_database.NODE
OTHER = '22222222-2222-2222-2222-222222222222'
UTC = datetime.timezone.utc
AT = datetime.datetime(2026, 1, 1, 12)
LATER = AT + datetime.timedelta(hours=1)


def _row(name: str, host: str | None, **fields) -> models.ComputeNode:
    return models.ComputeNode(
        uuid=name, hypervisor_hostname=name, host=host, vcpus=0, memory_mb=0,
        local_gb=0, vcpus_used=0, memory_mb_used=0, local_gb_used=0,
        hypervisor_type='ironic', hypervisor_version=1, cpu_info='',
        created_at=AT, **fields)


class HistoryTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_database.NovaDatabase())
        self.past = history.History(self.nova.context())

    def test_rows_are_read_that_are_deleted(self):
        self.nova.add(_row(NODE, 'a'), _row(
            OTHER, 'b', deleted=2, deleted_at=LATER), _row('x', None))
        self.assertEqual(
            [history.Record(NODE, 'a', AT.replace(tzinfo=UTC), None)],
            self.past.rows([NODE]))
        self.assertEqual(
            [history.Record(OTHER, 'b', AT.replace(tzinfo=UTC),
                            LATER.replace(tzinfo=UTC))],
            self.past.rows(host='b'))
        self.assertEqual(
            [NODE, OTHER], [row.name for row in self.past.rows([NODE], 'b')])
        self.assertEqual([], self.past.rows(['y']))

    def test_instances_are_read_that_are_deleted(self):
        self.nova.add(
            models.Instance(uuid=OTHER, display_name='server-2', host='b',
                            node='pool', deleted=2, deleted_at=LATER),
            models.Instance(uuid=NODE, display_name='server-3'))
        for wanted, found in (
                (('server-1', (), ()), [INSTANCE]),
                ((OTHER, (), ()), [OTHER]),
                (('x', [NODE, 'pool'], ()), [INSTANCE, OTHER]),
                (('x', (), [OTHER]), [OTHER]), (('x', (), ()), [])):
            self.assertEqual(found, [
                each.name for each in self.past.instances(*wanted)])
        (server,) = self.past.instances(OTHER, (), ())
        self.assertEqual(
            ('b', 'pool', 'server-2', LATER.replace(tzinfo=UTC)),
            (server.host, server.node, server.display_name, server.deleted))

    def test_services_are_read_in_any_case(self):
        self.nova.add(
            models.Service(host='Rack', binary='nova-compute',
                           last_seen_up=LATER, disabled=True, forced_down=True,
                           disabled_reason='a fan'),
            models.Service(host='rack', binary='nova-conductor'))
        (service,) = self.past.services('rACK')
        self.assertEqual(
            ('Rack', LATER.replace(tzinfo=UTC), True, 'a fan', True),
            (service.name, service.seen, service.is_disabled,
             service.disabled_reason, service.is_forced_down))

    def test_actions_since(self):
        for _ in range(2):
            actions.record(self.nova.context(), audit.Entry(
                audit.Code.INSTANCE_TAKEN, 'b', instance=INSTANCE),
                timeutils.utcnow())
        first, second = self.past.actions()
        self.assertEqual([second], self.past.actions(second.at))

    def test_event_that_somebody_else_has_written(self):
        actions.record(self.nova.context(), audit.Entry(
            audit.Code.INSTANCE_TAKEN, 'b', instance=INSTANCE),
            timeutils.utcnow())
        (action,) = self.past.actions()
        self.nova.add(
            models.InstanceActionEvent(
                action_id=1, event='compute_reboot_instance', details='{}'),
            models.InstanceActionEvent(
                action_id=1, event='ironic_ring_new', details='no JSON'),
            models.InstanceActionEvent(
                action_id=1, event='ironic_ring_new', details='[]'))
        self.assertEqual(
            [action.said, {}, {}],
            [each.said for each in self.past.actions()])
