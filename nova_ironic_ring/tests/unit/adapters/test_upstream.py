# SPDX-License-Identifier: Apache-2.0

"""Nova's private names are where we think that they are.

A failure here means that a release of Nova has changed one: mend
nova_ironic_ring/adapters/upstream.py, which has them all.
"""

import contextlib
import functools
import inspect
import pathlib
import threading
import time
import types
from unittest import mock

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import claims
from nova.compute import manager
from nova.compute import power_state
from nova.compute import provider_tree
from nova.compute import resource_tracker
import nova.conf
from nova.conf import ironic as conf_ironic
from nova import context
from nova import exception
from nova.network import model as network_model
from nova import objects
from nova.objects import request_spec
from nova import policies
from nova import safe_utils
from nova.scheduler.client import report
from nova import service
from nova.servicegroup.drivers import db
from nova.virt.ironic import driver
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
from oslo_concurrency import lockutils
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel
from oslotest import base

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import driver as ring_driver
from nova_ironic_ring.core.values import states
from nova_ironic_ring.tests.fixtures import nova_policy


_PROVIDER_YAML = """
meta: {schema_version: '1.0'}
providers:
  - identification: {uuid: $COMPUTE_NODE}
    inventories:
      additional:
        - CUSTOM_LICENSE: {total: 10}
        - CUSTOM_SLOT: {total: 1}
  - identification: {name: other}
    traits: {additional: [CUSTOM_ANY]}
"""


class MadeAgain(Exception):
    """The tracker has come to the driver's part."""


def _port(label: str, *addresses: tuple[str, int]) -> network_model.VIF:
    """Return a port as Nova has it.

    :param label: its network's
    :param addresses: each with the version of its protocol
    """
    return network_model.VIF(network=network_model.Network(
        label=label, subnets=[network_model.Subnet(ips=[
            network_model.FixedIP(address=address, version=version)
            for address, version in addresses])]))


class PrivateNamesTestCase(base.BaseTestCase):

    def _method(self, name: str) -> inspect.Signature:
        self.assertTrue(
            hasattr(driver.IronicDriver, name),
            f"Nova's IronicDriver has no {name} any more: see "
            f'{upstream.__file__}')
        return inspect.signature(getattr(driver.IronicDriver, name))

    def test_listing(self):
        self.assertIn('uuid', driver._NODE_FIELDS)
        self.assertIn('instance_uuid', driver._NODE_FIELDS)

    def test_listing_of_nodes(self):
        self._method('_get_node_list').bind(None, fields=[], shard='one')

    def test_pools(self):
        source = driver.IronicDriver(mock.Mock())
        node = sdk_node.Node(
            id='node', resource_class='gold', provision_state='available',
            power_state='power off', properties={
                'memory_mb': 1, 'cpu_arch': 'x86_64', 'capabilities': 'a:b'})
        self.assertEqual({'cpu_arch': 'x86_64', 'a': 'b'},
                         upstream.describe(source, node)['stats'])
        self.assertEqual((1, 0, 0), tuple(
            upstream.size(source, node)[name]
            for name in ('memory_mb', 'local_gb', 'cpus')))
        self.assertTrue(upstream.is_ready(source, node))
        node.is_maintenance = True
        self.assertFalse(upstream.is_ready(source, node))
        source._validate_instance_and_node = mock.Mock(return_value=node)
        self.assertEqual('node', upstream.node_of(source, 'instance'))
        self._method('_validate_instance_and_node').bind(None, 'instance')

    def test_tracker_waits(self):
        held = []

        def call():
            lock = lockutils.internal_fair_lock(
                resource_tracker.COMPUTE_RESOURCE_SEMAPHORE)
            held.append(lock.owner)
        upstream.in_turn_with_tracker(call)
        self.assertIsNotNone(held[0])
        # The tracker has the same lock, which is the closure's name.
        self.assertIn(resource_tracker.COMPUTE_RESOURCE_SEMAPHORE, [
            cell.cell_contents for cell in
            resource_tracker.ResourceTracker.instance_claim.__closure__])

    def test_allocations_are_read_for_pci_alone(self):
        self.assertIn('get_allocations_for_provider_tree', (
            resource_tracker.ResourceTracker._update_to_placement
            .__wrapped__.__code__.co_names))
        client = mock.create_autospec(
            report.SchedulerReportClient, instance=True)
        read = client.get_allocations_for_provider_tree
        read.return_value = {'i': {}}
        upstream.skip_allocations(mock.Mock(
            virtapi=mock.Mock(reportclient=client)))
        self.assertEqual(
            {}, client.get_allocations_for_provider_tree(None, 'pool'))
        read.assert_not_called()
        conf = self.useFixture(config_fixture.Config(upstream.CONF))
        conf.config(group='pci', report_in_placement=True)
        self.assertEqual({'i': {}}, client.get_allocations_for_provider_tree(
            None, 'pool'))

    def test_numbers_that_a_column_cannot_take(self):
        self.assertIn('_update', (
            resource_tracker.ResourceTracker._init_compute_node
            .__code__.co_names))
        saved = []
        tracker = mock.create_autospec(
            resource_tracker.ResourceTracker, instance=True)
        tracker._update.side_effect = (
            lambda context, row, startup=False: saved.append(
                (row.memory_mb, row.memory_mb_used, row.free_ram_mb)))
        source = mock.Mock()
        source.virtapi._compute.rt = tracker
        upstream.bound_records(source, lambda number: min(number, 9))
        row = objects.ComputeNode(
            memory_mb=30, memory_mb_used=25, free_ram_mb=5, vcpus=1)
        tracker._update(None, row, startup=True)
        self.assertEqual([(9, 9, 5)], saved)
        # The tracker goes on to count with what there is.
        self.assertEqual((30, 25), (row.memory_mb, row.memory_mb_used))
        self.assertNotIn('local_gb', row)

    def _deleted_provider(self, status: int) -> mock.Mock:
        """Return a client of Placement that misses a provider once.

        :param status: Placement's first answer
        """
        client = mock.create_autospec(
            report.SchedulerReportClient, instance=True)
        client.get_allocations_for_provider_tree.side_effect = [
            exception.ResourceProviderAllocationRetrievalFailed(
                rp_uuid='n', error='{"errors": [{"status": %d}]}' % status),
            {'i': {}}]
        upstream.restore_providers(mock.Mock(
            virtapi=mock.Mock(reportclient=client)))
        return client

    def test_provider_that_was_deleted_is_made_again(self):
        client = self._deleted_provider(404)
        tracker = mock.Mock(spec=resource_tracker.ResourceTracker,
                            reportclient=client, driver=mock.Mock())
        tracker.driver.update_provider_tree.side_effect = MadeAgain
        # Nova's own: it begins again after a conflict.
        self.assertRaises(
            MadeAgain, resource_tracker.ResourceTracker._update_to_placement,
            tracker, None, mock.Mock(hypervisor_hostname='n'), False)
        client.invalidate_resource_provider.assert_called_once_with('n')
        self.assertEqual(2, sum('ensure_root' in name for name, _, _
                                in client.mock_calls))

    def test_provider_that_is_missing(self):
        self.assertIn('delete_resource_provider', (
            manager.ComputeManager.update_available_resource
            .__code__.co_names))
        client = report.SchedulerReportClient(adapter=mock.Mock())
        client.get_providers_in_tree = mock.Mock(return_value=[])
        node = objects.ComputeNode(
            uuid=uuidsentinel.node, hypervisor_hostname='n', host='me')
        source = inspect.getsource(client.delete_resource_provider)
        if 'except ValueError' not in source:
            # Not with the patch for Nova.
            self.assertRaises(ValueError, client.delete_resource_provider,
                              None, node)
        upstream.bear_missing_providers(mock.Mock(
            virtapi=mock.Mock(reportclient=client)))
        client.delete_resource_provider(None, node, cascade=False)
        client.get_providers_in_tree.assert_called_with(
            None, uuidsentinel.node)

    def test_provider_that_is_there(self):
        client = mock.create_autospec(
            report.SchedulerReportClient, instance=True)
        client.get_providers_in_tree.return_value = [{'uuid': 'n'}]
        client.delete_resource_provider.side_effect = ValueError
        delete = client.delete_resource_provider
        upstream.bear_missing_providers(mock.Mock(
            virtapi=mock.Mock(reportclient=client)))
        node = objects.ComputeNode(uuid=uuidsentinel.node)
        # That is another error.
        self.assertRaises(
            ValueError, client.delete_resource_provider, 'context', node, True)
        delete.assert_called_once_with('context', node, cascade=True)

    def test_aggregates(self):
        self.assertIn(
            '_provider_tree',
            report.SchedulerReportClient.clear_provider_cache
            .__code__.co_names)
        tree = provider_tree.ProviderTree()
        tree.new_root('first', uuidsentinel.first)
        tree.update_aggregates('first', ['one'])
        source = mock.Mock(virtapi=mock.Mock(
            reportclient=mock.Mock(_provider_tree=tree)))
        self.assertEqual(
            {'one'}, upstream.aggregates(source, uuidsentinel.first))
        self.assertIsNone(upstream.aggregates(source, uuidsentinel.other))

    def test_classes_of_provider_yaml(self):
        directory = self.useFixture(fixtures.TempDir())
        pathlib.Path(directory.join('one.yaml')).write_text(_PROVIDER_YAML)
        self.useFixture(config_fixture.Config(nova.conf.CONF)).config(
            group='compute', provider_config_location=directory.path)
        tracker = resource_tracker.ResourceTracker(
            'me', mock.Mock(), mock.Mock())
        source = mock.Mock(virtapi=mock.Mock(_compute=mock.Mock(rt=tracker)))
        tree = provider_tree.ProviderTree()
        for name in ('one', 'other'):
            tree.new_root(name, getattr(uuidsentinel, name))
        self.assertEqual(
            {'CUSTOM_LICENSE', 'CUSTOM_SLOT'},
            upstream.configured_classes(source, tree.data('one')))
        self.assertEqual(
            set(), upstream.configured_classes(source, tree.data('other')))
        tracker.provider_configs = {}
        self.assertEqual(
            set(), upstream.configured_classes(source, tree.data('one')))

    def test_placement_that_does_not_answer(self):
        client = self._deleted_provider(503)
        self.assertRaises(
            exception.ResourceProviderAllocationRetrievalFailed,
            client.get_allocations_for_provider_tree, None, 'n')
        client.invalidate_resource_provider.assert_not_called()

    def test_peer_list(self):
        self.assertTrue(upstream.make_peer_list_mutable())
        (option,) = (each for each in conf_ironic.ironic_options
                     if each.name == 'peer_list')
        self.assertTrue(option.mutable)

    def test_peer_list_that_nova_has_no_more(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova.conf.ironic.ironic_options', []))
        self.assertFalse(upstream.make_peer_list_mutable())

    def test_manager(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        upstream.reset_manager(source)
        compute.reset.assert_called_once_with()

    def test_heartbeat(self):
        self.assertIn('pre_start_hook',
                      service.Service.start.__code__.co_names)
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        compute.rt = mock.Mock()
        manager.ComputeManager.pre_start_hook(compute, 'record')
        self.assertEqual('record', compute.service_ref)

        # And that is all that a heartbeat does.
        record = mock.Mock(report_count=1)
        reporter = mock.Mock(service_ref=record)
        db.DbDriver._report_state(mock.Mock(), reporter)
        self.assertEqual([mock.call.save()], record.mock_calls)

    def test_heartbeat_is_watched(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        beat = mock.Mock()
        # Before the service has a record.
        upstream.watch_heartbeats(source, beat)
        saved = []
        self.useFixture(fixtures.MockPatchObject(
            objects.Service, 'save', lambda record: saved.append(record)))
        record = compute.service_ref = objects.Service(report_count=1)
        for _ in range(2):
            upstream.watch_heartbeats(source, beat)
        db.DbDriver._report_state(mock.Mock(), mock.Mock(service_ref=record))
        # Once, and what is called in its place writes it.
        (call,) = beat.call_args_list
        self.assertEqual([], saved)
        call.args[0]()
        self.assertEqual([record], saved)

    def test_instance_that_may_not_be_saved(self):
        instance = objects.Instance(uuid=uuidsentinel.instance)
        upstream.forbid_saving(instance, ValueError('no'))
        self.assertRaises(ValueError, instance.save,
                          expected_task_state=[None])
        # It is this that Nova calls.
        self.assertIn('save', (
            manager.ComputeManager._set_instance_obj_error_state
            .__code__.co_names))

    def test_signature(self):
        self.assertEqual(
            inspect.signature(driver.IronicDriver.destroy),
            upstream.signature('destroy'))
        self.assertRaises(AttributeError, upstream.signature, 'no_more')

    def test_node_that_ironic_does_not_tell_of(self):
        source = mock.Mock()
        source.is_node_deleted = functools.partial(
            driver.IronicDriver.is_node_deleted, source)
        source._get_node.side_effect = sdk_exceptions.SDKException('gone')
        self.assertRaises(exception.VirtDriverNotReady,
                          upstream.is_deleted, source, 'node')
        source._get_node.side_effect = sdk_exceptions.NotFoundException
        self.assertTrue(upstream.is_deleted(source, 'node'))
        source._get_node.side_effect = None
        self.assertFalse(upstream.is_deleted(source, 'node'))

    def test_resource_tracker(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        compute.rt = resource_tracker.ResourceTracker(
            'me', mock.Mock(), mock.Mock())
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        self.assertNotIn('node', upstream.tracked_nodes(source))
        compute.rt.compute_nodes['node'] = object()
        self.assertIn('node', upstream.tracked_nodes(source))
        # Another service has it.
        compute.rt.clean_compute_node_cache([])
        self.assertNotIn('node', upstream.tracked_nodes(source))

    def test_placement(self):
        client = report.SchedulerReportClient(adapter=mock.Mock())
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=client)
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        self.assertIs(client, upstream.placement(source))
        # The resource tracker has the same.
        self.assertIn('reportclient',
                      manager.ComputeManager.__init__.__code__.co_names)
        # What Nova has heard of a provider is forgotten.
        client._provider_tree.new_root('node', uuidsentinel.node, 1)
        client.invalidate_resource_provider(uuidsentinel.node)
        self.assertFalse(client._provider_tree.exists(uuidsentinel.node))

    def test_recovery(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        upstream.recover(source, 'context', 'instance')
        compute._init_instance.assert_called_once_with('context', 'instance')
        inspect.signature(manager.ComputeManager._init_instance).bind(
            compute, 'context', 'instance')
        # That is what Nova does with each instance when it starts.
        self.assertIn('_init_instance',
                      manager.ComputeManager.init_host.__code__.co_names)
        # It takes a reboot for done that no service has begun.
        for task, is_done_again in (('rebooting', False),
                                    ('rebooting_hard', False),
                                    ('reboot_pending', True),
                                    ('reboot_pending_hard', True)):
            found, _ = manager.ComputeManager._retry_reboot(
                compute, mock.Mock(task_state=task, vm_state='active'),
                power_state.RUNNING)
            self.assertEqual(is_done_again, found, task)

    def test_soft_delete(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        upstream.soft_delete(source, 'context', 'instance')
        compute.soft_delete_instance.assert_called_once_with(
            'context', 'instance')
        inspect.signature(manager.ComputeManager.soft_delete_instance).bind(
            compute, 'context', 'instance')
        # One that says no more when it was deleted is reclaimed at once:
        # therefore a restore is recovered.
        self.assertTrue(manager.ComputeManager._deleted_old_enough(
            compute, mock.Mock(deleted_at=None), 3600))

    def test_end_of_a_build(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        instance = mock.Mock(access_ip_v4=None, access_ip_v6=None)
        instance.get_network_info.return_value = [
            _port('other', ('192.0.2.9', 4)),
            _port('front', ('192.0.2.7', 4), ('2001:db8::7', 6),
                  ('192.0.2.8', 4))]
        self.useFixture(config_fixture.Config(nova.conf.CONF)).config(
            default_access_ip_network_name='front')
        with mock.patch(
                'nova.compute.utils.notify_about_instance_create',
                autospec=True) as notify:
            upstream.finish_build(source, 'context', instance)
        self.assertEqual(('192.0.2.7', '2001:db8::7'),
                         (instance.access_ip_v4, instance.access_ip_v6))
        compute._notify_about_instance_usage.assert_called_once_with(
            'context', instance, 'create.end',
            network_info=instance.get_network_info.return_value,
            extra_usage_info={'message': 'Success'})
        notify.assert_called_once_with(
            'context', instance, instance.host, phase='end')
        compute._update_instance_after_spawn.assert_called_once_with(instance)
        instance.save.assert_called_once_with(expected_task_state='spawning')
        inspect.signature(
            manager.ComputeManager._update_instance_after_spawn).bind(
                compute, instance)
        inspect.signature(
            manager.ComputeManager._update_scheduler_instance_info).bind(
                compute, 'context', instance)
        inspect.signature(
            manager.ComputeManager._notify_about_instance_usage).bind(
                compute, 'context', instance, 'create.end',
                extra_usage_info={})
        # That is what Nova does after the driver has built it.
        builds = inspect.getsource(
            manager.ComputeManager._build_and_run_instance)
        for name in ('_update_instance_after_spawn',
                     '_notify_about_instance_usage',
                     '_update_scheduler_instance_info'):
            self.assertIn(f'self.{name}(', builds)

    def test_builds_that_were_interrupted(self):
        name = '_error_out_instances_whose_build_was_interrupted'
        method = getattr(manager.ComputeManager, name)
        inspect.signature(method).bind(None, 'context', set(), [])
        self.assertIn(f'self.{name}(', inspect.getsource(
            manager.ComputeManager.init_host))
        self.assertIn('self._set_instance_obj_error_state(',
                      inspect.getsource(method))

    def test_where_builds_are(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        end = compute._error_out_instances_whose_build_was_interrupted
        find = mock.Mock(return_value=frozenset({'b', 'a'}))
        upstream.look_where_builds_are(source, find)
        look = compute._error_out_instances_whose_build_was_interrupted
        look('context', {'instance'}, {'a': 1, 'b': 2, 'c': 3}.keys())
        end.assert_called_once_with('context', {'instance'}, ['a', 'b'])
        end.reset_mock()
        find.side_effect = ConnectionError('no answer')
        look('context', set(), ['b', 'a'])
        end.assert_called_once_with('context', set(), ['a', 'b'])

    def test_reaping(self):
        reaps = inspect.getsource(
            manager.ComputeManager._cleanup_running_deleted_instances)
        for name in '_shutdown_instance', '_cleanup_volumes':
            self.assertIn(f'self.{name}(context, instance, bdms,', reaps)
            self.assertIn('bdms', inspect.signature(
                getattr(manager.ComputeManager, name)).parameters)

    def _bind(self, name: str, *given: object) -> None:
        """See that the manager has a method, and takes so much."""
        inspect.signature(
            getattr(manager.ComputeManager, name)).bind(None, *given)

    def test_shelving(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        instance = mock.Mock(uuid=uuidsentinel.instance)
        upstream.offload(source, 'context', instance)
        compute._shelve_offload_instance.assert_called_once_with(
            'context', instance, False)
        self._bind('_shelve_offload_instance', 'context', instance, False)
        # That is what Nova does with one that boots from a volume, with the
        # same lock; and then the last step.
        self.assertIn('self._shelve_offload_instance(', inspect.getsource(
            manager.ComputeManager.shelve_offload_instance))
        self.assertIn('@utils.synchronized(instance.uuid)', inspect.getsource(
            manager.ComputeManager.shelve_offload_instance))
        upstream.leave_offloaded(source, instance)
        compute._nil_out_instance_obj_host_and_node.assert_called_once_with(
            instance)
        instance.save.assert_called_once_with(expected_task_state=[None])
        done = inspect.getsource(
            manager.ComputeManager._shelve_offload_instance)
        self.assertLess(
            done.index('instance.task_state = None'),
            done.index('self._nil_out_instance_obj_host_and_node(instance)'))
        # It tears down what has no image that is not to be lost.
        self.assertNotIn('snapshot', vars(driver.IronicDriver))

    def test_end_of_an_unshelving(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        instance = mock.Mock(system_metadata={'shelved_at': 'noon', 'a': 'b'})
        with mock.patch('nova.compute.utils.notify_about_instance_action',
                        autospec=True) as notify:
            upstream.finish_unshelving(source, 'context', instance)
        notify.assert_called_once_with(
            'context', instance, instance.host, action='unshelve', phase='end')
        compute._update_instance_after_spawn.assert_called_once_with(instance)
        self.assertEqual({'a': 'b'}, instance.system_metadata)
        instance.save.assert_called_once_with(expected_task_state='spawning')
        done = inspect.getsource(manager.ComputeManager._unshelve_instance)
        for name in ('self._update_instance_after_spawn',
                     'compute_utils.remove_shelved_keys_from_system_metadata',
                     'self._update_scheduler_instance_info',
                     'self._terminate_volume_connections',
                     'self.reportclient.delete_allocation_for_instance',
                     'self._nil_out_instance_obj_host_and_node'):
            self.assertIn(f'{name}(', done)
        # Before it claims a node, which the rules go by.
        self.assertLess(
            done.index('instance.task_state = task_states.SPAWNING'),
            done.index('self.rt.instance_claim('))
        self._bind('_terminate_volume_connections', 'context', instance, [])

    def test_unshelving_is_guarded(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        method = mock.create_autospec(
            manager.ComputeManager.unshelve_instance)
        compute.unshelve_instance = functools.partial(method, compute)
        is_wanted = mock.Mock(side_effect=[False, True])
        upstream.guard_unshelving(
            mock.Mock(virtapi=manager.ComputeVirtAPI(compute)), is_wanted)
        # As the manager is asked for it.
        for expected in False, True:
            compute.unshelve_instance(
                'context', instance='instance', image=None,
                filter_properties={}, node='node', request_spec=None,
                accel_uuids=[])
            is_wanted.assert_called_with('instance', 'node')
            self.assertIs(expected, method.called)

    def test_cleanup_after_a_build(self):
        builds = inspect.getsource(
            manager.ComputeManager._do_build_and_run_instance)
        for name in '_cleanup_allocated_networks', '_cleanup_volumes':
            self.assertIn(f'self.{name}(', builds)
        # What is guarded says which instance it is for.
        for owner, name, parameter in (
                (manager.ComputeManager, '_cleanup_allocated_networks',
                 'instance'),
                (manager.ComputeManager, '_cleanup_volumes', 'instance'),
                (manager.ComputeManager, '_shutdown_instance', 'instance'),
                (manager.ComputeManager, '_terminate_volume_connections',
                 'instance'),
                (report.SchedulerReportClient,
                 'delete_allocation_for_instance', 'uuid')):
            self.assertTrue(
                hasattr(owner, name),
                f"Nova's {owner.__name__} has no {name} any more: see "
                f'{upstream.__file__}')
            self.assertIn(parameter, inspect.signature(
                getattr(owner, name)).parameters)

    def test_writing_of_states(self):
        for name in ('_instance_update', '_set_instance_obj_error_state',
                     'power_update'):
            self.assertIn('instance', inspect.signature(
                safe_utils.get_wrapped_function(
                    getattr(manager.ComputeManager, name))).parameters)
        source = inspect.getsource(manager)
        for call in ('self._instance_update(context, instance, ',
                     'self._set_instance_obj_error_state(instance',
                     'self.power_update(context, instance, event.tag)',
                     'self.rt.delete_allocation_for_evacuated_instance('):
            self.assertIn(call, source)

    def test_allocation_after_a_rebuild(self):
        tracker = mock.create_autospec(resource_tracker.ResourceTracker)
        free = tracker.delete_allocation_for_evacuated_instance
        compute = mock.Mock(spec=manager.ComputeManager, rt=tracker)
        client = mock.create_autospec(
            report.SchedulerReportClient, instance=True)
        tracker.compute_nodes = {'node': 'row'}
        is_kept = mock.Mock(side_effect=[True, False, False])
        upstream.guard_failed_rebuild(mock.Mock(virtapi=mock.Mock(
            _compute=compute, reportclient=client)), is_kept)
        for _ in range(2):
            free.assert_not_called()
            tracker.delete_allocation_for_evacuated_instance(
                'context', 'instance', 'node', node_type='destination')
        free.assert_called_once_with(
            'context', 'instance', 'node', node_type='destination')
        is_kept.assert_called_with('instance', 'node')
        # Nova would look for the node in what the tracker has.
        self.assertIn('self.compute_nodes[node].uuid', inspect.getsource(
            resource_tracker.ResourceTracker
            .delete_allocation_for_evacuated_instance))
        instance = objects.Instance(uuid=uuidsentinel.instance)
        tracker.delete_allocation_for_evacuated_instance(
            'context', instance, 'gone', node_type='destination')
        free.assert_called_once()
        client.remove_provider_tree_from_instance_allocation.\
            assert_called_once_with('context', instance.uuid, 'gone')

    def test_evacuations(self):
        tracker = resource_tracker.ResourceTracker(
            'me', mock.Mock(), mock.Mock())
        tracker._move_claim = mock.Mock()
        compute = mock.Mock(spec=manager.ComputeManager, rt=tracker)
        refuse = mock.Mock(side_effect=ValueError)
        upstream.guard_evacuations(
            mock.Mock(virtapi=mock.Mock(_compute=compute)), refuse)
        self.assertRaises(ValueError, tracker.rebuild_claim, 'context',
                          'instance', 'node', {}, migration=None)
        refuse.assert_called_once_with('instance')
        tracker._move_claim.assert_not_called()
        # As the manager asks for it, for an evacuation alone.
        source = inspect.getsource(safe_utils.get_wrapped_function(
            manager.ComputeManager.rebuild_instance))
        self.assertIn('if evacuate:', source)
        self.assertIn('rebuild_claim = self.rt.rebuild_claim', source)

    def test_what_was_to_be_evacuated_is_not_destroyed(self):
        self.assertIs(False, driver.IronicDriver.capabilities[
            'supports_evacuate'])
        start = inspect.getsource(manager.ComputeManager.init_host)
        self.assertLess(start.index('self.driver.init_host('),
                        start.index('self._destroy_evacuated_instances('))
        self.assertEqual(['self', 'context', 'node_cache'], list(
            inspect.signature(
                manager.ComputeManager._destroy_evacuated_instances)
            .parameters))
        compute = mock.Mock(spec=manager.ComputeManager)
        destroy = compute._destroy_evacuated_instances
        source = mock.Mock()
        source.virtapi._compute = compute
        upstream.destroy_no_evacuated(source)
        self.assertEqual({}, compute._destroy_evacuated_instances(None, {}))
        destroy.assert_not_called()

    def test_instances_at_a_start(self):
        compute = mock.Mock(spec=manager.ComputeManager)
        init = compute._init_instance = mock.Mock()
        self.assertEqual(['self', 'context', 'instance'], list(
            inspect.signature(manager.ComputeManager._init_instance)
            .parameters))
        settle = mock.Mock(side_effect=lambda *_: init.assert_not_called())
        source = mock.Mock(virtapi=mock.Mock(_compute=compute))
        upstream.before_each_start(source, settle)
        upstream.recover(source, 'context', 'instance')
        settle.assert_called_once_with('context', 'instance')
        init.assert_called_once_with('context', 'instance')
        settle.side_effect, settle.return_value = None, True
        upstream.recover(source, 'context', 'another')
        init.assert_called_once_with('context', 'instance')
        start = inspect.getsource(manager.ComputeManager.init_host)
        self.assertLess(start.index('self.driver.init_host('),
                        start.index('self._init_instance(context, instance)'))

    def test_clean_up_of_a_node(self):
        self.assertEqual(
            ['self', 'node', 'instance', 'network_info'],
            list(inspect.signature(driver.IronicDriver._cleanup_deploy)
                 .parameters))
        self.assertIn('self._cleanup_deploy(',
                      inspect.getsource(driver.IronicDriver.spawn))
        self.assertIn('self._unprovision(instance, node)',
                      inspect.getsource(driver.IronicDriver.destroy))

    def test_requests_are_watched(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        compute._get_scheduler_hints = (
            manager.ComputeManager._get_scheduler_hints)
        build, begins, ends = mock.Mock(), mock.Mock(), mock.Mock()

        # Nova calls it by position.
        def call(self, *args, **kwargs):
            begins.assert_called_once()
            return build(*args, **kwargs)
        call.__signature__ = inspect.signature(
            manager.ComputeManager._do_build_and_run_instance)
        compute._do_build_and_run_instance = call.__get__(compute)
        upstream.watch_requests(
            mock.Mock(virtapi=manager.ComputeVirtAPI(compute)), begins, ends)
        instance = objects.Instance(uuid=uuidsentinel.instance)
        spec = request_spec.RequestSpec(scheduler_hints={'node': ['x']})
        build.side_effect = ValueError
        self.assertRaises(
            ValueError, compute._do_build_and_run_instance, 'context',
            instance, 'image', spec, {}, *[None] * 5)
        begins.assert_called_once_with(upstream.Request(
            uuidsentinel.instance, {'node': ['x']}, 'context'))
        ends.assert_called_once_with(uuidsentinel.instance)

    def test_builds_are_excused(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        compute.rt = resource_tracker.ResourceTracker(
            'me', mock.Mock(), mock.Mock())
        excuses = iter([True, False])
        upstream.excuse_builds(mock.Mock(virtapi=manager.ComputeVirtAPI(
            compute)), lambda: next(excuses))
        for expected in 0, 1:
            manager.ComputeManager._build_failed(compute, 'node')
            self.assertEqual(expected, compute.rt.stats['node'].get(
                'failed_builds', 0))
        # In the thread of the build, after it.
        source = inspect.getsource(
            manager.ComputeManager.build_and_run_instance)
        self.assertLess(
            source.index('self._do_build_and_run_instance('),
            source.index('self._build_failed('))

    def test_who_may_force_a_host(self):
        self.useFixture(nova_policy.NovaPolicy())
        for role, may in (('admin', True), ('member', False)):
            self.assertIs(may, upstream.may_force_host(
                context.RequestContext('user', 'project', roles=[role])))
        # The name is that of Nova's rule.
        self.assertIn(upstream.FORCED_HOST, {
            rule.name for rule in policies.list_rules()})

    def test_builds_are_watched(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        compute.build_and_run_instance = functools.partial(
            manager.ComputeManager.build_and_run_instance, compute)
        compute.rt = resource_tracker.ResourceTracker(
            'me', mock.Mock(), mock.Mock())
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        here, begins = set(), mock.Mock()
        compute._do_build_and_run_instance = functools.partial(
            manager.ComputeManager._do_build_and_run_instance, compute)
        note = mock.Mock(side_effect=lambda context, uuid: (
            self.assertEqual({uuid}, here)))
        upstream.watch_builds(source, here, note)
        upstream.watch_claims(source, begins)
        instance = objects.Instance(uuid=uuidsentinel.instance)
        # As the resource tracker is asked in the middle of a build.
        self.assertIn('self.rt.instance_claim(context, instance, node, ',
                      inspect.getsource(
                          manager.ComputeManager._build_and_run_instance))
        self.assertRaises(
            exception.ComputeResourcesUnavailable, compute.rt.instance_claim,
            'context', instance, 'node', {}, limits=None)
        begins.assert_called_once_with(uuidsentinel.instance, 'node')
        self.assertEqual(set(), here)
        # Nova refuses it, for it lacks much; it had come all the same. So it
        # is where Nova finds no thread.
        self.assertRaises(TypeError, compute.build_and_run_instance,
                          'context', instance, 'image')
        self.assertEqual(set(), here)
        here.add(uuidsentinel.instance)
        note.assert_called_once_with('context', uuidsentinel.instance)
        # Whatever becomes of it.
        self.assertIn('self._do_build_and_run_instance(', inspect.getsource(
            manager.ComputeManager.build_and_run_instance))
        self.assertRaises(TypeError, compute._do_build_and_run_instance,
                          'context', instance, 'image')
        self.assertEqual(set(), here)

    def test_unshelving(self):
        # Nova asks for the volumes first, and has no node reserved.
        source = inspect.getsource(manager.ComputeManager._unshelve_instance)
        self.assertLess(source.index('self._prep_block_device('),
                        source.index('self.rt.instance_claim('))
        self.assertNotIn('prepare_for_spawn', source)
        self.assertIn('self._unshelve_instance(', inspect.getsource(
            manager.ComputeManager.unshelve_instance))
        unshelve = mock.create_autospec(
            manager.ComputeManager._unshelve_instance)
        compute = mock.Mock(spec=manager.ComputeManager)
        compute._unshelve_instance = functools.partial(unshelve, compute)
        entered = []

        @contextlib.contextmanager
        def reserved(*given):
            entered.append(given)
            unshelve.assert_not_called()
            yield
            unshelve.assert_called_once()

        upstream.prepare_unshelving(
            mock.Mock(virtapi=mock.Mock(_compute=compute)), reserved)
        compute._unshelve_instance(
            'context', 'instance', None, {}, 'node', None, None)
        self.assertEqual([('instance', 'node')], entered)

    def test_claims_are_guarded(self):
        found = mock.create_autospec(claims.Claim, instance=True)
        tracker = resource_tracker.ResourceTracker(
            'me', mock.Mock(), mock.Mock())
        self.useFixture(fixtures.MockPatchObject(
            resource_tracker.ResourceTracker, 'instance_claim',
            autospec=True, return_value=found))
        guard = mock.Mock()
        compute = mock.Mock(
            spec=manager.ComputeManager, reportclient=None, rt=tracker)
        undo = mock.Mock()
        abort = found.abort
        upstream.guard_claims(
            mock.Mock(virtapi=manager.ComputeVirtAPI(compute)), guard, undo)
        asked = functools.partial(
            tracker.instance_claim, 'context', 'instance', 'node', {},
            limits=None)
        self.assertIs(found, asked())
        guard.assert_called_once_with('instance')
        abort.assert_not_called()
        undo.assert_not_called()
        guard.side_effect, found.abort = ValueError, abort
        # Before Nova says that the instance has no service.
        undo.side_effect = lambda instance: abort.assert_not_called()
        self.assertRaises(ValueError, asked)
        abort.assert_called_once_with()
        undo.assert_called_once_with('instance')
        # With which a claim ends where what is done in it has failed.
        self.assertIn('self.abort()', inspect.getsource(
            claims.NopClaim.__exit__))

    def test_the_end_of_the_start(self):
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        compute.post_start_hook = functools.partial(
            manager.ComputeManager.post_start_hook, compute)
        begin = mock.Mock()
        upstream.when_started(
            mock.Mock(virtapi=manager.ComputeVirtAPI(compute)), begin)
        begin.assert_not_called()
        compute.post_start_hook()
        begin.assert_called_once_with()
        start = inspect.getsource(service.Service.start)
        self.assertLess(start.index('self.manager.pre_start_hook('),
                        start.index('self.manager.post_start_hook()'))

    def test_rebuilt(self):
        tracker = mock.create_autospec(resource_tracker.ResourceTracker)
        tracker.compute_nodes = {'node': 'row'}
        write = tracker.finish_evacuation
        compute = mock.Mock(spec=manager.ComputeManager, rt=tracker)
        guard = mock.Mock(return_value=True)
        upstream.guard_rebuilt(
            mock.Mock(virtapi=mock.Mock(_compute=compute)), guard)
        # As the manager asks for it.
        self.assertIn(
            'self.rt.finish_evacuation(instance, scheduled_node, migration)',
            inspect.getsource(manager))
        instance = objects.Instance(uuid=uuidsentinel.instance)
        tracker.finish_evacuation(instance, 'node', None)
        write.assert_called_once_with(instance, 'node', None)
        guard.return_value = False
        tracker.finish_evacuation(instance, 'other', None)
        self.assertEqual([mock.call(instance, True),
                          mock.call(instance, False)], guard.mock_calls)
        write.assert_called_once()

    def test_volumes(self):
        self.assertFalse(upstream.has_volumes(None))
        self.assertFalse(upstream.has_volumes({'block_device_mapping': []}))
        self.assertTrue(upstream.has_volumes({'block_device_mapping': [{}]}))

    def test_tracking(self):
        tracker = mock.create_autospec(resource_tracker.ResourceTracker)
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        compute.rt = tracker
        upstream.track(mock.Mock(virtapi=manager.ComputeVirtAPI(compute)),
                       'node')
        tracker.update_available_resource.assert_called_once_with(
            mock.ANY, 'node')
        # The driver is asked first, outside of the tracker's lock.
        self.assertIn('get_available_resource', (
            resource_tracker.ResourceTracker.update_available_resource
            .__code__.co_names))

    def test_updates_that_are_not_needed(self):
        tracker = mock.create_autospec(resource_tracker.ResourceTracker)
        rows = {'changed': 'me', 'same': 'another'}
        tracker.compute_nodes = {
            node: objects.ComputeNode(host=host)
            for node, host in rows.items()}
        update = tracker.update_available_resource
        compute = mock.Mock(spec=manager.ComputeManager, reportclient=None)
        compute.rt = tracker
        source = mock.Mock(virtapi=manager.ComputeVirtAPI(compute))
        updating = mock.MagicMock()
        upstream.update_when_needed(
            source, 'me', lambda node: node == 'changed', updating)
        # As the manager asks.
        for node in 'changed', 'same':
            tracker.update_available_resource('context', node, startup=True)
        update.assert_called_once_with('context', 'changed', startup=True)
        upstream.update(source, 'same')
        upstream.track(source, 'same')
        # The tracker has learnt that another service has this one.
        tracker.remove_node.assert_called_once_with('same')
        update.side_effect = ValueError
        self.assertRaises(ValueError, upstream.update, source, 'changed')
        self.assertEqual(3, updating.call_count)
        self.assertIn('update_available_resource', (
            manager.ComputeManager._update_available_resource_for_node
            .__code__.co_names))

    def test_updates_of_one_node_come_one_after_the_other(self):
        begun, going_on = threading.Event(), threading.Event()
        done = []

        def update(context, nodename, startup=False):
            if nodename == 'one' and not begun.is_set():
                begun.set()
                going_on.wait(30)
            done.append((nodename, startup))
        tracker = types.SimpleNamespace(
            update_available_resource=update, _update=mock.Mock())
        source = mock.Mock()
        source.virtapi._compute.rt = tracker
        upstream.update_in_turn(source)
        threads = [threading.Thread(
            target=tracker.update_available_resource,
            args=('context', 'one'), kwargs={'startup': startup})
            for startup in (True, False)]
        threads[0].start()
        begun.wait(30)
        threads[1].start()
        tracker.update_available_resource('context', 'other')
        self.assertEqual([('other', False)], done)
        going_on.set()
        for thread in threads:
            thread.join(30)
        self.assertEqual(
            [('other', False), ('one', True), ('one', False)], done)

    def test_status_of_a_service(self):
        self.assertIn('update_compute_provider_status', (
            manager.ComputeManager._update_compute_provider_status
            .__code__.co_names))
        self.assertEqual(['self', 'context', 'enabled'], list(
            inspect.signature(
                manager.ComputeManager._update_compute_provider_status)
            .parameters))
        self.assertEqual(
            ['self', 'context', 'rp_uuid', 'enabled'], list(inspect.signature(
                manager.ComputeVirtAPI.update_compute_provider_status)
                .parameters))

    def test_what_the_tracker_has_of_a_node(self):
        tracker = resource_tracker.ResourceTracker(
            'me', mock.Mock(), mock.Mock())
        for name in 'stats', 'compute_nodes':
            self.assertEqual({}, dict(getattr(tracker, name)))
        self.assertIn('stats', (
            resource_tracker.ResourceTracker._update_usage
            .__code__.co_names))

    def test_provision_of(self):
        self._method('_validate_instance_and_node').bind(None, 'instance')
        source = mock.Mock()
        source._validate_instance_and_node.return_value = sdk_node.Node(
            id='node', provision_state='active')
        instance = objects.Instance(uuid=uuidsentinel.instance, node='node')
        self.assertIs(states.Meaning.RUNS,
                      upstream.provision_of(source, instance).meaning)
        self.assertEqual(('node', 'active'),
                         upstream.provision_of(source, instance))
        # In a pool it may be on any node.
        instance.node = 'a.CUSTOM_BAREMETAL.0123abcd'
        self.assertIs(states.Meaning.RUNS,
                      upstream.provision_of(source, instance).meaning)
        instance.node = 'another'
        for found in {}, {'side_effect': exception.InstanceNotFound(
                instance_id='i')}:
            source._validate_instance_and_node.configure_mock(**found)
            self.assertIs(states.Meaning.NONE,
                          upstream.provision_of(source, instance).meaning)
            self.assertEqual((None, None),
                             upstream.provision_of(source, instance))

    def test_api_version(self):
        self._method('_can_send_version').bind(None, '1.46')
        source = mock.Mock()
        self.assertTrue(upstream.has_api_version(source, '1.46'))
        source._can_send_version.side_effect = (
            exception.IronicAPIVersionNotAvailable(version='1.46'))
        self.assertFalse(upstream.has_api_version(source, '1.46'))
        for error in (exception.ServiceUnavailable(),
                      keystone_exceptions.ConnectFailure()):
            source._can_send_version.side_effect = error
            self.assertRaises(exception.VirtDriverNotReady,
                              upstream.has_api_version, source, '1.46')

    def test_cache(self):
        self._method('_refresh_cache').bind(None)
        self._method('_get_node').bind(None, uuidsentinel.node)
        # Nova's own methods fill and read the cache by these names.
        self.assertIn(
            '_refresh_cache',
            driver.IronicDriver.get_available_nodes.__code__.co_names)
        for name in ('node_is_available', 'list_instances',
                     'list_instance_uuids'):
            names = getattr(driver.IronicDriver, name).__code__.co_names
            self.assertIn('_refresh_cache', names)
            self.assertIn('node_cache', names)
        for name in 'node_cache', 'node_cache_time':
            self.assertIn(
                name, driver.IronicDriver._refresh_cache.__code__.co_names)

    def test_cache_is_filled_by_the_public_method(self):
        source = ring_driver.IronicRingDriver(mock.Mock())
        with fixtures.MockPatchObject(source, 'get_available_nodes') as listed:
            source.list_instance_uuids()
        listed.mock.assert_called_once_with()

    def test_fill_cache(self):
        source = driver.IronicDriver(mock.Mock())
        nodes = {uuidsentinel.node: sdk_node.Node(
            id=uuidsentinel.node, instance_id=uuidsentinel.instance)}
        upstream.fill_cache(source, nodes)
        self.assertTrue(source.node_is_available(uuidsentinel.node))
        self.assertEqual([uuidsentinel.instance],
                         source.list_instance_uuids())
        self.assertLess(time.time() - source.node_cache_time, 60)
        # Nova's driver changes what it has.
        source.node_cache.clear()
        self.assertEqual(1, len(nodes))

    def test_init_host_does_nothing_but_build_the_ring_of_nova(self):
        # Ours does not call it.
        self.assertEqual(
            {'_refresh_hash_ring', 'nova_context', 'get_admin_context'},
            set(driver.IronicDriver.init_host.__code__.co_names),
            "Nova's init_host does more now, which "
            'IronicRingDriver.init_host has to do as well')
