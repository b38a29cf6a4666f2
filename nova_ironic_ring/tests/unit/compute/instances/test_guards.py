# SPDX-License-Identifier: Apache-2.0

"""What is asked of a service that has lost an instance."""

import functools
import inspect
from unittest import mock

import fixtures
from nova.compute import claims
from nova.compute import manager
from nova import exception
from nova.scheduler.client import report
from nova.virt.ironic import driver as nova_driver
from openstack import exceptions as sdk_exceptions

from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import driver
from nova_ironic_ring.compute.instances import guards
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.unit.compute import base

PREPARES = 'prepare_networks_before_block_device_mapping'
REQUIRED = (
    'power_on', 'power_off', 'reboot', 'rebuild', 'rescue', 'unrescue',
    'attach_interface', 'detach_interface', 'prepare_for_spawn', PREPARES)
#: What Nova calls after a build that has failed, and the method of its driver
#: that does it.
CLEANERS = {
    # Which takes down what another service has deployed meanwhile.
    'failed_spawn_cleanup': 'destroy',
    'clean_networks_preparation': 'clean_networks_preparation',
    'unplug_vifs': 'unplug_vifs'}
NODE = base.NODES[0]


class LostInstanceTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.nova.put('lost', NODE, 'other')
        #: The copy that came with the message.
        self.instance = self.nova.instance('lost')
        self.instance.task_state = 'powering-on'


class GuardsTestCase(LostInstanceTestCase):

    def _call(self, name: str) -> object:
        method = getattr(self.driver, name)
        return method(**{parameter.name: (
            self.instance if parameter.name == 'instance' else None)
            for parameter in inspect.signature(method).parameters.values()
            if parameter.default is parameter.empty})

    def _assert_refused(self, name: str) -> None:
        self.assertRaises(guards.NotMineError, self._call, name)
        self.assertRaises(guards.NotMineError, self.instance.save)
        self.assertEqual([], self.nova.ironic.mock_calls)

    def _assert_done(self, name: str) -> None:
        """See that Nova's own driver is asked, with all that was given."""
        done = mock.Mock(return_value='done')
        with mock.patch.object(nova_driver.IronicDriver, name, done):
            self.assertEqual('done', self._call(name))
        given = dict(done.call_args.kwargs)
        self.assertIs(self.instance, given.pop('instance'))
        self.assertEqual({None}, {*given.values(), None})

    def test_nothing_is_done_with_it(self):
        for name in REQUIRED:
            self._assert_refused(name)

    def test_cleaning_up_is_left_to_who_has_it(self):
        for name in CLEANERS:
            self.assertIsNone(self._call(name))
            self.assertEqual([], self.nova.ironic.mock_calls)
        # Nobody has built it, and nobody will.
        self.nova.vm_states['lost'] = 'error'
        for name, done_by in CLEANERS.items():
            with mock.patch.object(nova_driver.IronicDriver, done_by) as done:
                self._call(name)
            self.assertIn(self.instance, (
                *done.call_args.args, *done.call_args.kwargs.values()))

    def test_error(self):
        error = self.assertRaises(
            guards.NotMineError, self._call, 'power_on')
        self.assertEqual('Instance lost was taken over by other: me does '
                         'nothing with it.', str(error))
        # After which Nova leaves the state of an instance alone.
        self.assertIsInstance(error, exception.UnexpectedTaskStateError)

    def test_nova_cannot_set_it_to_error(self):
        self.assertRaises(guards.NotMineError, self._call, 'rescue')
        compute = mock.Mock(spec=manager.ComputeManager)
        self.assertRaises(
            guards.NotMineError,
            manager.ComputeManager._set_instance_obj_error_state, compute,
            self.instance)

    def test_task_that_another_is_at(self):
        self.nova.change_instance('lost', task='reboot_pending')
        for name in REQUIRED:
            self._assert_refused(name)

    def test_without_a_task(self):
        self.instance.task_state = None
        self._assert_refused('attach_interface')

    def test_task_that_nobody_has_taken_up_is_done(self):
        self.nova.change_instance('lost', task='powering-on')
        for name in REQUIRED:
            if name != PREPARES:
                self._assert_done(name)

    def test_build_that_is_lost_is_not_gone_on_with(self):
        # After which Nova would save it as one that is being built.
        self.nova.change_instance('lost', host='me', task='powering-on')

        def lose(**_):
            self.nova.change_instance('lost', host='other')
        for before in lambda: lose, lambda: None:
            with mock.patch.object(nova_driver.IronicDriver, PREPARES,
                                   side_effect=before()) as done:
                self.assertRaises(guards.NotMineError, self._call, PREPARES)
            done.assert_called_once()
            self.assertRaises(guards.NotMineError, self.instance.save)

    def test_task_that_another_has_ended_meanwhile(self):
        # Nova would end whatever another service is at by then.
        for name in 'reboot', 'power_off':
            self.nova.change_instance('lost', host='me', task='powering-on')
            self.instance = self.nova.instance('lost')

            def lose(*_, **__):
                self.nova.change_instance(
                    'lost', host='other', task='rebuilding')
            with mock.patch.object(nova_driver.IronicDriver, name,
                                   side_effect=lose) as done:
                self.assertRaises(guards.NotMineError, self._call, name)
            done.assert_called_once()
            self.assertRaises(guards.NotMineError, self.instance.save)

    def test_own_instance(self):
        for host in 'me', 'ME', None:
            self.nova.change_instance('lost', host=host)
            for name in *REQUIRED, 'destroy', 'spawn':
                self._assert_done(name)

    def test_instance_that_is_deleted(self):
        del self.cloud.instances['lost']
        for name in *REQUIRED, 'destroy':
            self._assert_done(name)

    def test_signatures_are_those_of_nova(self):
        for name in *REQUIRED, 'destroy', 'spawn':
            self.assertEqual(
                inspect.signature(getattr(nova_driver.IronicDriver, name)),
                inspect.signature(getattr(driver.RingMixin, name)), name)
            self.assertEqual(f'RingMixin.{name}',
                             getattr(driver.RingMixin, name).__qualname__)

    def test_positional_arguments(self):
        done = mock.Mock()
        self.nova.change_instance('lost', host='me')
        with mock.patch.object(nova_driver.IronicDriver, 'reboot', done):
            self.driver.reboot('context', self.instance, 'network', 'SOFT')
        done.assert_called_once_with(
            'context', self.instance, 'network', 'SOFT')


class DestroyTestCase(LostInstanceTestCase):

    def _destroy(self) -> bool:
        """Destroy the instance, and say whether Nova's own driver does it."""
        done = mock.Mock()
        with mock.patch.object(nova_driver.IronicDriver, 'destroy', done):
            self.driver.destroy(mock.sentinel.context, self.instance, [])
        return done.called

    def test_its_machine_is_left_alone(self):
        self.assertFalse(self._destroy())

    def test_machine_of_one_that_is_deleted(self):
        self.nova.change_instance('lost', task='deleting')
        self.assertTrue(self._destroy())

    def test_allocation_of_one_that_is_deleted_but_for_its_record(self):
        # Nova ends the task before that, and nobody else would free it.
        free = self.me.manager.reportclient.delete_allocation_for_instance = (
            mock.create_autospec(
                report.SchedulerReportClient.delete_allocation_for_instance))
        upstream.guard_cleanup(self.driver, guards.clean_up_if_mine)
        self.nova.vm_states['lost'] = 'deleted'
        self.nova.launched.add('lost')
        self.me.manager.reportclient.delete_allocation_for_instance(
            None, 'context', 'lost', force=True)
        free.assert_called_once_with(None, 'context', 'lost', force=True)

    def test_machine_of_one_that_has_failed(self):
        self.nova.vm_states['lost'] = 'error'
        self.assertTrue(self._destroy())
        self.nova.change_instance('lost', is_building=True)
        self.assertTrue(self._destroy())

    def test_machine_of_one_that_was_active(self):
        self.nova.vm_states['lost'] = 'error'
        self.nova.launched.add('lost')
        self.assertFalse(self._destroy())

    def test_machine_of_one_that_is_brought_to_life_again(self):
        self.nova.vm_states['lost'] = 'error'
        self.nova.change_instance('lost', task='rebuilding')
        self.assertFalse(self._destroy())
        # Another service waits for Ironic, as this one did.
        self.nova.change_instance('lost', is_building=True, task='spawning')
        self.assertFalse(self._destroy())

    def test_networks_and_volumes_after_a_build_that_another_has(self):
        compute = self.me.manager
        done = {name: mock.create_autospec(
            getattr(manager.ComputeManager, name))
            for name in ('_cleanup_allocated_networks', '_cleanup_volumes',
                         '_shutdown_instance')}
        free = compute.reportclient.delete_allocation_for_instance = (
            mock.create_autospec(
                report.SchedulerReportClient.delete_allocation_for_instance))
        for name, method in done.items():
            setattr(compute, name, method)
        upstream.guard_cleanup(self.driver, guards.clean_up_if_mine)
        self.nova.change_instance('lost', is_building=True, task='spawning')
        for name, method in done.items():
            instance = self.nova.instance('lost')
            getattr(compute, name)(
                None, 'context', instance, mock.sentinel.other)
            method.assert_not_called()
            # Nor can Nova set it to ERROR, or let a third service have it.
            self.assertRaises(guards.NotMineError, instance.save)
        delete = compute.reportclient.delete_allocation_for_instance
        delete(None, 'context', 'lost', force=True)
        free.assert_not_called()
        delete(None, 'context', 'deleted', force=True)
        free.assert_called_once_with(None, 'context', 'deleted', force=True)
        self.nova.change_instance('lost', host='me')
        for name, method in done.items():
            getattr(compute, name)(
                None, 'context', self.instance, mock.sentinel.other)
            method.assert_called_once_with(
                None, 'context', self.instance, mock.sentinel.other)


class WriteTestCase(LostInstanceTestCase):
    """What Nova makes of an instance after a request that has failed."""

    def setUp(self):
        super().setUp()
        compute = self.me.manager
        self.done = [mock.create_autospec(
            getattr(manager.ComputeManager, name), return_value='done')
            for name in ('_instance_update', '_set_instance_obj_error_state',
                         'power_update')]
        (compute._instance_update, compute._set_instance_obj_error_state,
         compute.power_update) = self.done
        self.free = (
            compute.rt.delete_allocation_for_evacuated_instance)
        self.driver.init_host('me')
        self.compute = compute

    def _write(self) -> list[object]:
        return [
            self.compute._instance_update(
                None, 'context', self.instance, task_state=None),
            self.compute._set_instance_obj_error_state(
                None, self.instance, clean_task_state=True),
            self.compute.power_update(
                None, 'context', self.instance, 'POWER_OFF')]

    def _free(self, node: str = NODE) -> bool:
        self.free.reset_mock()
        self.compute.rt.compute_nodes[node] = mock.Mock(uuid=node)
        self.compute.rt.delete_allocation_for_evacuated_instance(
            'context', self.instance, node, node_type='destination')
        return self.free.mock_calls == [mock.call(
            'context', self.instance, node, node_type='destination')]

    def test_task_that_is_over(self):
        self.assertEqual([None] * 3, self._write())
        for done in self.done:
            done.assert_not_called()
        self.assertIn('belongs to other now: this service no longer changes '
                      'its state.', self.log.output)
        # Nor does anything else that Nova does with this copy.
        self.assertRaises(guards.NotMineError, self.instance.save)
        self.assertFalse(self._free())

    def test_without_a_task(self):
        self.instance.task_state = None
        self.assertEqual([None] * 3, self._write())

    def test_task_that_nobody_has_taken_up(self):
        self.nova.change_instance('lost', task='powering-on')
        self.assertEqual(['done'] * 3, self._write())
        self.assertTrue(self._free())

    def test_own_instance(self):
        self.nova.change_instance('lost', host='me')
        self.assertEqual(['done'] * 3, self._write())
        self.assertTrue(self._free())

    def test_allocation_of_another_compute_node(self):
        # To which it was to be evacuated.
        self.assertTrue(self._free(base.NODES[1]))


class ShelveTestCase(LostInstanceTestCase):
    """An instance with volumes is offloaded, by Nova's own code."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatch(
            'nova.compute.utils.notify_about_instance_action', autospec=True))
        self.nova.change_instance(
            'lost', host='me', task='shelving_offloading')
        self.instance = self.nova.instance('lost')
        self.volumes = [mock.Mock(
            is_volume=True, attachment_id='old', volume_id='volume')]
        self.compute = self.me.manager
        self.compute.host = 'me'
        self.compute.driver = self.driver
        self.compute.rt.delete_allocation_for_shelve_offloaded_instance = (
            mock.Mock())
        for name in ('network_api', 'volume_api', 'share_manager'):
            setattr(self.compute, name, mock.MagicMock())
        for name in ('_power_off_instance', '_terminate_volume_connections'):
            setattr(self.compute, name, functools.partial(
                getattr(manager.ComputeManager, name), self.compute))
        self.compute._get_power_state.return_value = 4
        self.compute._get_power_off_values.return_value = 60, 10
        self.compute._get_instance_block_device_info.return_value = {}
        self.driver.init_host('me')

    def _lose(self, *_: object, **__: object) -> None:
        self.nova.change_instance('lost', host='other', task=None)

    def _offload(self, is_lost_at_once: bool) -> None:
        """Have the service lose the instance at, or after, switching it off.

        What is lost is not undeployed, and keeps its volumes.
        """
        destroy = self.useFixture(fixtures.MockPatchObject(
            nova_driver.IronicDriver, 'destroy')).mock
        with mock.patch.object(
                nova_driver.IronicDriver, 'power_off', side_effect=(
                    self._lose if is_lost_at_once else None)):
            self.assertRaises(
                guards.NotMineError,
                manager.ComputeManager._shelve_offload_instance,
                self.compute, mock.MagicMock(), self.instance, True,
                bdms=self.volumes)
        destroy.assert_not_called()
        self.assertEqual([], self.compute.volume_api.mock_calls)

    def test_instance_that_is_lost_while_it_is_switched_off(self):
        self._offload(True)
        self.compute.network_api.unbind_ports.assert_not_called()

    def test_instance_that_is_lost_after_that(self):
        self.compute._get_power_state.side_effect = self._lose
        self._offload(False)


class RebuiltTestCase(LostInstanceTestCase):
    """An instance whose rebuild ends here."""

    def setUp(self):
        super().setUp()
        tracker = self.driver.virtapi._compute.rt
        self.write = tracker.finish_evacuation
        self.driver.init_host('me')
        self.tracker = tracker
        self.instance.host = 'me'
        tracker.compute_nodes[NODE] = 'row'

    def _finish(self, node=NODE, migration=None):
        self.tracker.finish_evacuation(self.instance, node, migration)

    def test_instance_of_this_service(self):
        self.nova.change_instance('lost', host='me')
        self._finish()
        self.write.assert_called_once_with(self.instance, NODE, None)

    def test_instance_that_was_lost_is_not_taken_back(self):
        self._finish()
        self.write.assert_not_called()
        self.assertIn('belongs to other on', self.log.output)

    def test_instance_that_has_come_into_a_pool(self):
        self.nova.change_instance(
            'lost', host='me', node='me.CUSTOM_GOLD.01234567')
        self._finish()
        self.write.assert_not_called()

    def test_node_that_is_not_tracked(self):
        # Nova would fail.
        self.nova.change_instance('lost', host='me')
        del self.tracker.compute_nodes[NODE]
        self._finish()
        self.write.assert_not_called()
        self._finish(None)
        self.write.assert_called_once_with(self.instance, None, None)

    def test_instance_that_is_evacuated(self):
        # It is the other service's until then.
        self.instance.host = 'other'
        self._finish(migration='migration')
        self.write.assert_called_once_with(self.instance, NODE, 'migration')

    def test_evacuation_of_one_that_was_lost_is_over(self):
        migration = mock.Mock()
        self._finish(migration=migration)
        self.assertEqual('done', migration.status)
        migration.save.assert_called_once_with()

    def test_instance_that_is_deleted(self):
        del self.cloud.instances['lost']
        self._finish()
        self.write.assert_called_once_with(self.instance, NODE, None)


class ClaimTestCase(base.DriverTestCase):
    """A build claims its node, and has waited for the resource tracker."""

    def setUp(self):
        super().setUp()
        self.driver.init_host('me')
        self.settle()
        self.node = min(self.me.tracked)
        self.nova.put('lost', None, None, is_building=True)
        #: What the build goes on with, as it was read.
        self.instance = self.nova.instance('lost')

    def _claim(self) -> object:
        # As Nova does before, without saving it.
        self.instance.system_metadata = {'boot_roles': 'member'}
        return self.me.manager.rt.instance_claim(
            'context', self.instance, self.node, {})

    def test_build(self):
        self.assertIsInstance(self._claim(), claims.NopClaim)
        self.assertEqual('me', self.nova.host_of('lost'))

    def test_build_that_is_given_up_meanwhile(self):
        self.assertTrue(records.Nova().end_build('lost', 'me'))
        error = self.assertRaises(exception.BuildAbortException, self._claim)
        self.assertIn('nova-compute me has died', str(error))
        # The claim has written over the mark.
        self.assertFalse(self.cloud.instances['lost'].is_given_up)
        self.assertIsNone(self.nova.host_of('lost'))

    def _unshelve(self) -> None:
        self.nova.put('lost', None, None, task='spawning', is_offloaded=True)
        self.instance = self.nova.instance('lost')

    def test_unshelving(self):
        self._unshelve()
        self._claim()
        self.assertEqual('me', self.nova.host_of('lost'))

    def test_unshelving_that_has_ended_meanwhile(self):
        self._unshelve()
        self.assertTrue(records.Nova().end_unshelve('lost'))
        self.assertRaises(exception.BuildAbortException, self._claim)
        self.assertIsNone(self.nova.host_of('lost'))


class UnshelvingTestCase(base.DriverTestCase):
    """A service is asked to unshelve an instance, perhaps long ago."""

    def setUp(self):
        super().setUp()
        self.unshelve = mock.create_autospec(
            manager.ComputeManager.unshelve_instance)
        self.me.manager.unshelve_instance = functools.partial(
            self.unshelve, self.me.manager)
        self.driver.init_host('me')
        self.settle()
        self.node = min(self.me.tracked)
        self.nova.put('lost', None, None, task='unshelving',
                      is_offloaded=True)
        self.asked = self.nova.instance('lost')
        self.cloud.allocations[pools.provider(self.node)] = {'lost'}

    def _unshelves(self) -> bool:
        """Have the service find the message, and say what it does."""
        self.unshelve.reset_mock()
        self.me.manager.unshelve_instance(
            'context', self.asked, image=None, filter_properties={},
            node=self.node, request_spec=None, accel_uuids=[])
        return self.unshelve.called

    def test_just_now(self):
        self.assertTrue(self._unshelves())
        self.assertNotIn('is not unshelved', self.log.output)

    def test_it_has_ended(self):
        self.assertTrue(records.Nova().end_unshelve('lost'))
        self.assertFalse(self._unshelves())
        self.assertIn('Instance lost is not unshelved here', self.log.output)

    def test_it_is_on_its_way_to_another_service(self):
        self.cloud.allocations = {'another': {'lost'}}
        self.assertFalse(self._unshelves())

    def test_it_was_unshelved_elsewhere(self):
        for task in None, 'unshelving':
            self.nova.put('lost', base.NODES[0], 'other', task=task)
            self.assertFalse(self._unshelves())

    def test_it_is_deleted(self):
        del self.cloud.instances['lost']
        self.assertFalse(self._unshelves())

    def test_placement_does_not_answer(self):
        # Nova's own asks it as well, and ends the task then.
        client = self.me.placement
        client.get_allocations_for_resource_provider.side_effect = OSError
        self.assertTrue(self._unshelves())


class PoolUnshelvingTestCase(base.PeersWithPools, UnshelvingTestCase):
    pass


class PoolClaimTestCase(base.PeersWithPools, ClaimTestCase):
    pass


class SpawnTestCase(LostInstanceTestCase):

    def setUp(self):
        super().setUp()
        # Ironic does not have the node, so that each build fails.
        self.instance.node = 'node'

    def _spawn(self) -> None:
        self.driver.spawn(mock.sentinel.context, self.instance,
                          mock.sentinel.image, [], None, {})

    def test_build_that_fails_here(self):
        self.nova.change_instance('lost', host='me', is_building=True)
        self.assertRaises(sdk_exceptions.NotFoundException, self._spawn)

    def test_build_of_one_that_is_lost_fails_for_good(self):
        self.nova.change_instance('lost', is_building=True)
        self.assertRaises(exception.BuildAbortException, self._spawn)
        # Nova would have a third service build it.
        self.assertRaises(guards.NotMineError, self.instance.save)

    def test_build_of_one_that_another_has_built(self):
        self.assertRaises(exception.BuildAbortException, self._spawn)
        self.assertRaises(guards.NotMineError, self.instance.save)

    def test_build_that_another_has_carried_on(self):
        with mock.patch.object(nova_driver.IronicDriver, 'spawn'):
            for fields in {'is_building': True, 'task': 'spawning'}, {
                    'is_building': False, 'task': None}:
                self.nova.change_instance('lost', **fields)
                self.assertRaises(exception.BuildAbortException, self._spawn)
                self.assertRaises(guards.NotMineError, self.instance.save)
            self.nova.change_instance('lost', host='me')
            self._spawn()

    def test_unshelving_what_was_once_given_up(self):
        self.nova.change_instance('lost', host='me', is_given_up=True)
        self.nova.vm_states['lost'] = 'shelved_offloaded'
        with mock.patch.object(nova_driver.IronicDriver, 'spawn') as spawn:
            self._spawn()
        spawn.assert_called_once()

    def test_build_that_was_given_up(self):
        self.nova.change_instance('lost', host=None, is_given_up=True)
        error = self.assertRaises(exception.BuildAbortException, self._spawn)
        self.assertIn('no nova-compute has claimed it, or its', str(error))
        self.nova.ironic.get_node.assert_not_called()
