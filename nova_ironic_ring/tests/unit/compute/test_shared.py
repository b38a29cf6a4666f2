# SPDX-License-Identifier: Apache-2.0

"""What both drivers do when Nova unshelves an instance."""

import functools
from unittest import mock

import fixtures
from nova.compute import manager
from nova import exception
from nova import objects
from nova.virt.ironic import driver as nova_driver
import oslo_messaging

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import driver
from nova_ironic_ring.compute.instances import guards
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.unit.compute import base

NODE = fake_nova.NODES[0]


class UnshelvingTestCase(base.DriverTestCase):
    """Nova's own way, up to where it asks for the volumes."""

    MADE: type = driver.IronicRingDriver

    def setUp(self):
        super().setUp()
        self.me = self.nova.compute('me', self.MADE)
        self.driver = self.me.driver
        self.nova.put('i', None, None)
        self.instance = self.nova.instance('i')
        self.instance.vm_state = 'shelved_offloaded'
        self.instance.save = mock.Mock()
        self.instance.get_network_info = mock.Mock(return_value=[])
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.compute.instances.guards._read',
            side_effect=lambda uuid: self.instance))
        self.nodes = []
        self.compute = self.me.manager
        self.compute.host = 'me'
        self.compute.reportclient = mock.Mock()
        self.free = self.useFixture(fixtures.MockPatchObject(
            self.me.ring.world.placement, 'free')).mock
        self.compute._prep_block_device.side_effect = self._ask
        self.compute._unshelve_instance = functools.partial(
            manager.ComputeManager._unshelve_instance, self.compute)
        upstream.prepare_unshelving(self.driver, self.driver._reserved)
        for owner, name in (
                (objects.BlockDeviceMappingList, 'get_by_instance_uuid'),
                (manager.compute_utils, 'notify_about_instance_action'),
                (nova_driver.IronicDriver, 'destroy')):
            self.useFixture(fixtures.MockPatchObject(
                owner, name, autospec=owner is manager.compute_utils))
        self.useFixture(fixtures.MockPatchObject(
            nova_driver.IronicDriver, 'prepare_for_spawn', autospec=True,
            side_effect=self._reserve))
        #: The nodes that got ports, and the ports.
        self.plugged = []
        self.useFixture(fixtures.MockPatchObject(
            nova_driver.IronicDriver,
            'prepare_networks_before_block_device_mapping', autospec=True,
            side_effect=lambda source, instance, vifs: self.plugged.append(
                (instance.node, vifs))))
        self.connector = self.useFixture(fixtures.MockPatchObject(
            nova_driver.IronicDriver, 'get_volume_connector',
            autospec=True)).mock

    def _reserve(self, source, instance):
        # Ironic gives no instance a second node.
        self.assertEqual([], self.held())
        self.cloud.nodes[instance.get('node')].instance = instance.uuid

    def _ask(self, context, instance, bdms):
        """Ask for the connector, as Nova does for each volume."""
        self.driver.get_volume_connector(instance)
        (call,) = self.connector.call_args_list
        self.nodes.append(call.args[1].node)
        raise ValueError('no volume')

    def place(self) -> str:
        """Return what the scheduler has chosen."""
        return NODE

    def _unshelve(self):
        self.compute._unshelve_instance(
            'context', self.instance, None, {}, self.place(), None, None)

    def held(self) -> list[str]:
        """Name the nodes that Ironic has the instance on."""
        return [node for node, known in self.cloud.nodes.items()
                if known.instance == 'i']

    def test_volumes_are_for_a_node_that_is_reserved(self):
        self.assertRaises(ValueError, self._unshelve)
        self.assertEqual(self.held(), self.nodes)
        self.assertEqual(1, len(self.nodes))
        # Nova has it on none before the claim.
        self.assertIsNone(self.instance.node)

    def test_ports_are_attached_to_the_node(self):
        # Nova's manager has the driver do so only when it builds an instance.
        vifs = self.instance.get_network_info.return_value = ['vif']
        self.assertRaises(ValueError, self._unshelve)
        self.assertEqual([(self.held()[0], vifs)], self.plugged)

    def test_machine_that_is_active_stays_if_nova_cannot_save_so(self):
        destroy = nova_driver.IronicDriver.destroy

        def ask(context, instance, bdms):
            # Nova has saved that it is shelved, and saves this when it ends
            # the task.
            guards._read.side_effect = lambda uuid: mock.Mock(
                vm_state='shelved_offloaded', host='me')
            instance.vm_state = 'active'
            raise oslo_messaging.MessagingTimeout
        self.compute._prep_block_device.side_effect = ask
        self.assertRaises(oslo_messaging.MessagingTimeout, self._unshelve)
        destroy.assert_not_called()
        self.free.assert_not_called()

    def test_what_was_begun_is_undone(self):
        destroy = nova_driver.IronicDriver.destroy
        self.assertRaises(ValueError, self._unshelve)
        destroy.assert_called_once()
        self.free.assert_called_once_with('i')

    def test_machine_that_another_service_has_by_now_is_left_alone(self):
        def ask(context, instance, bdms):
            instance.host, instance.vm_state = 'other', 'active'
            raise ValueError
        self.compute._prep_block_device.side_effect = ask
        self.assertRaises(ValueError, self._unshelve)
        nova_driver.IronicDriver.destroy.assert_not_called()
        self.free.assert_not_called()

    def test_nova_that_does_not_say_what_it_is_now(self):
        def ask(context, instance, bdms):
            guards._read.side_effect = exception.CellTimeout
            raise ValueError
        self.compute._prep_block_device.side_effect = ask
        # Nova ends the claim, and the task, by the error of the build.
        self.assertRaises(ValueError, self._unshelve)

    def test_node_that_could_not_be_cleaned_up_before(self):
        left = fake_nova.NODES[1]
        self.cloud.nodes[left].instance = 'i'
        destroyed = []

        def destroy(context, instance, *_, **__):
            destroyed.extend(self.held())
            # Nova's driver looks there for volume targets.
            self.assertEqual(left, instance.node)
            self.cloud.nodes[left].instance = None
        nova_driver.IronicDriver.destroy.side_effect = destroy
        with self.driver._reserved(self.instance, self.place()):
            self.assertEqual([left], destroyed)
            self.assertEqual(1, len(self.held()))

    def test_unshelved_while_it_waited_for_its_turn(self):
        self.cloud.nodes[fake_nova.NODES[1]].instance = 'i'
        self.instance.vm_state, self.instance.host = 'active', 'me'
        with mock.patch.object(
                self.driver, 'prepare_for_spawn',
                side_effect=exception.ComputeResourcesUnavailable(reason='')):
            self.assertRaises(exception.ComputeResourcesUnavailable,
                              self._unshelve)
        nova_driver.IronicDriver.destroy.assert_not_called()

    def test_node_is_let_go_before_the_claim_ends(self):
        # From then on Nova says that no service has the instance.
        steps = []
        destroy = nova_driver.IronicDriver.destroy
        destroy.side_effect = lambda *_: steps.append('destroy')

        def fail():
            with self.driver._reserved(self.instance, self.place()):
                self.driver._let_go(self.instance)
                steps.append('abort')
                raise ValueError('Ironic has failed to deploy it')
        self.assertRaises(ValueError, fail)
        self.assertEqual(['destroy', 'abort'], steps)
        # What cannot be undone then is tried once more.
        steps.clear()
        destroy.side_effect = [ValueError, None]
        destroy.reset_mock()
        self.cloud.nodes[self.held()[0]].instance = None
        self.assertRaises(ValueError, fail)
        self.assertEqual(2, destroy.call_count)

    def test_claims_are_watched(self):
        with mock.patch.object(upstream, 'guard_claims') as guard:
            self.driver.init_host('me')
        guard.assert_called_once_with(
            self.driver, guards.claim_once, self.driver._let_go)

    def test_no_node(self):
        with mock.patch.object(
                self.driver, 'prepare_for_spawn',
                side_effect=exception.ComputeResourcesUnavailable(reason='')):
            self.assertRaises(exception.ComputeResourcesUnavailable,
                              self._unshelve)
        nova_driver.IronicDriver.destroy.assert_not_called()
        self.assertEqual([], self.nodes)
        self.free.assert_called_once_with('i')

    def test_placement_that_does_not_answer(self):
        self.free.side_effect = exception.PlacementAPIConnectFailure()
        self.cloud.instances['i'] = model.Instance(
            None, None, task='unshelving', is_offloaded=True)
        self.cloud.allocations[NODE] = {'i'}
        self.assertRaises(ValueError, self._unshelve)
        self.me.run_pass()
        # Nova ends the task after that.
        self.nova.change_instance('i', task=None)
        self.free.reset_mock(side_effect=True)
        self.me.run_pass()
        self.free.assert_called_once_with('i')
        self.assertEqual(frozenset(), self.me.ring.memory.unfreed)

    def test_nothing_is_undone_after_a_success(self):
        with self.driver._reserved(self.instance, self.place()):
            pass
        self.assertEqual(1, len(self.held()))
        nova_driver.IronicDriver.destroy.assert_not_called()


class PoolUnshelvingTestCase(UnshelvingTestCase):

    MADE = pool_driver.IronicPoolDriver

    def place(self) -> str:
        self.me.run_pass()
        return pools.name('me', base.KIND)
