# SPDX-License-Identifier: Apache-2.0

"""Nova's own task that reaps deleted instances, with a real database."""

import dataclasses
import datetime
import types
from unittest import mock

from nova.compute import manager
import nova.conf
from nova.db.main import models
from oslo_config import fixture as config_fixture
from oslo_utils import timeutils
from oslotest import base

from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import driver
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.tests.fixtures import nova_database

DELETED = '22222222-2222-2222-2222-222222222222'
NODE, OTHER = nova_database.NODE, '00000000-0000-0000-0000-000000000002'
_REAL = ('_cleanup_running_deleted_instances', '_running_deleted_instances',
         '_get_instances_on_driver', '_deleted_old_enough', '_cleanup_volumes')


class ReapingTestCase(base.BaseTestCase):
    """A node has an instance in Ironic that Nova has deleted long ago."""

    def setUp(self):
        super().setUp()
        conf = self.useFixture(config_fixture.Config(nova.conf.CONF))
        conf.config(host='me', running_deleted_instance_action='reap',
                    running_deleted_instance_timeout=0)
        # By which Nova chooses how names are compared.
        conf.config(group='database', connection='sqlite://')
        self.nova = self.useFixture(nova_database.NovaDatabase())
        self.manager = mock.Mock(spec=manager.ComputeManager, host='me')
        self.manager.volume_api = mock.Mock()
        self.manager.instance_events = mock.Mock()
        for name in _REAL:
            setattr(self.manager, name, types.MethodType(
                getattr(manager.ComputeManager, name), self.manager))
        self.reaped = []
        self.manager._shutdown_instance = self._shut_down
        self.driver = driver.IronicRingDriver(mock.Mock(
            _compute=self.manager))
        self.manager.driver = self.driver
        upstream.keep_detached(self.driver)
        ring = self.driver.ring_service
        self.ironic = mock.Mock()
        self.ironic.is_available.return_value = False
        ring.world = dataclasses.replace(
            ring.world, nova=records.Nova(self.nova.context()),
            ironic=self.ironic)
        # As a pass has found it on a node that is for this service.
        ring.memory = dataclasses.replace(ring.memory, nodes={NODE: DELETED})
        ring.result = node_places.PassResult(orphans=frozenset({DELETED}))
        self.driver.node_cache = {OTHER: mock.Mock(id=OTHER, instance_id=None)}

    def _shut_down(self, context, instance, bdms, requested_networks=None,
                   notify=True):
        self.reaped.append((instance.uuid, [
            each.volume_id for each in bdms]))

    def _add(self, host, node):
        past = timeutils.utcnow() - datetime.timedelta(hours=1)
        self.nova.add(
            models.Instance(
                id=99, uuid=DELETED, host=host, node=node, display_name='vm',
                vm_state='deleted', deleted=99, deleted_at=past),
            models.BlockDeviceMapping(
                id=5, uuid=OTHER, instance_uuid=DELETED,
                volume_id='detached', delete_on_termination=True,
                source_type='volume', destination_type='volume',
                device_name='/dev/vdb', deleted=5, deleted_at=past))

    def _reap(self):
        self.manager._cleanup_running_deleted_instances(self.nova.context())

    def test_one_of_that_node(self):
        self._add('a', NODE)
        self._reap()
        self.assertEqual([(DELETED, [])], self.reaped)
        self.manager.volume_api.delete.assert_not_called()

    def test_one_that_is_not_deployed_yet(self):
        self.ironic.is_available.return_value = True
        self._add('a', NODE)
        self.nova.add(models.Service(
            id=98, uuid=OTHER, host='a', binary='nova-compute',
            topic='compute', report_count=1, version=1,
            last_seen_up=timeutils.utcnow() - datetime.timedelta(hours=1)))
        self._reap()
        self.assertEqual([], self.reaped)
        self.ironic.is_available.assert_called_once_with(NODE)

    def test_one_of_another_host(self):
        self._add('kvm-7', 'kvm-7')
        self._reap()
        self.assertEqual([], self.reaped)

    def test_one_of_another_node_of_the_service(self):
        self._add('me', OTHER)
        self._reap()
        self.assertEqual([], self.reaped)

    def test_one_that_is_not_deleted(self):
        ring = self.driver.ring_service
        ring.memory = dataclasses.replace(
            ring.memory, nodes={NODE: nova_database.INSTANCE})
        ring.result = node_places.PassResult(
            orphans=frozenset({nova_database.INSTANCE}))
        self._reap()
        self.assertEqual([], self.reaped)
        # Nova reads them after this: it may be deleted by then.
        self.assertEqual([], self.driver.list_instance_uuids())
