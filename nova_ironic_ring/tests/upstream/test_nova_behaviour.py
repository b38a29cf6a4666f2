# SPDX-License-Identifier: Apache-2.0

"""What Nova's own code does, which the driver relies on.

On Nova's database and with its objects and its resource tracker: where one of
these fails, a release of Nova does something else, and what the test names in
its comment has to be thought over.

Nova's tests make all threads of the process eventlet's: so this is here, and
not beside the unit tests.
"""

from collections.abc import Callable
import functools
import inspect
from typing import Any
from unittest import mock
import warnings

import fixtures
from nova.compute import api
from nova.compute import build_results
from nova.compute import manager
from nova.compute import power_state
from nova.compute import resource_tracker
from nova.compute import task_states
from nova.compute import vm_states
from nova import context as nova_context
from nova import exception
from nova import objects
from nova import safe_utils
from nova.scheduler import host_manager
from nova.scheduler import weights
from nova.scheduler.weights import cpu
from nova.scheduler.weights import disk
from nova.scheduler.weights import io_ops
from nova.scheduler.weights import ram
from nova import test
from nova.tests import fixtures as nova_fixtures
from oslo_utils.fixture import uuidsentinel
from sqlalchemy import exc as sqlalchemy_exc

from nova_ironic_ring.adapters.nova import marks
from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute.instances import evacuations
from nova_ironic_ring.compute.instances import guards
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.core.taking.building import reservation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports

NODE = uuidsentinel.node


class NovaTestCase(test.NoDBTestCase):
    """Nova's main database, in memory, with two services of one Ironic."""

    USES_DB_SELF = True

    def setUp(self):
        super().setUp()
        # Nova's tests take them for errors, on other releases of SQLAlchemy.
        warnings.simplefilter('ignore', sqlalchemy_exc.SADeprecationWarning)
        self.useFixture(nova_fixtures.Database())
        self.context = nova_context.get_admin_context()
        self.services = {}
        for host in 'me', 'b':
            service = objects.Service(
                self.context, host=host, binary='nova-compute',
                topic='compute')
            service.create()
            self.services[host] = service
        self.flags(host='me')
        # What is recorded matters here, and not what Placement has.
        self.useFixture(fixtures.MockPatchObject(
            resource_tracker.ResourceTracker, '_update_to_placement'))
        self.nova = records.Nova(self.context)

    def _tracker(self, host: str) -> resource_tracker.ResourceTracker:
        """Return the resource tracker of a nova-compute that lists NODE."""
        driver = mock.Mock()
        driver.get_available_nodes.return_value = [NODE]
        tracker = resource_tracker.ResourceTracker(
            host, driver, mock.Mock())
        tracker.set_service_ref(self.services[host])
        return tracker

    def _resources(self, **said: str) -> dict[str, object]:
        return {
            'uuid': NODE, 'hypervisor_hostname': NODE,
            'hypervisor_type': 'ironic', 'hypervisor_version': 1,
            'cpu_info': '', 'vcpus': 0, 'vcpus_used': 0, 'memory_mb': 0,
            'memory_mb_used': 0, 'local_gb': 0, 'local_gb_used': 0,
            'host_ip': '127.0.0.1', 'numa_topology': None, 'stats': said}

    def _take(self, host: str, **said: str) -> objects.ComputeNode:
        """Have a resource tracker take the node, as for the first time."""
        tracker = self._tracker(host)
        tracker._init_compute_node(self.context, self._resources(**said))
        found = tracker.compute_nodes[NODE]
        found.save()
        return found


class RowTestCase(NovaTestCase):

    def test_tracker_takes_every_node_that_is_listed(self):
        # Therefore the last look, and the lists that leave nodes out.
        before = self._take('b')
        self.assertEqual('b', self.nova.rows([NODE])[NODE].owner)
        after = self._take('me')
        self.assertEqual(model.Row('me'), self.nova.rows([NODE])[NODE])
        self.assertEqual(before.id, after.id)
        self.assertEqual({}, self.nova.rows_of('b'))

    def test_tracker_brings_back_a_deleted_row(self):
        # Therefore a takeover may begin with deleting the row.
        before = self._take('b')
        self.assertTrue(self.nova.delete_row(NODE, 'b'))
        self.assertEqual({}, self.nova.rows([NODE]))
        after = self._take('me')
        self.assertEqual(before.id, after.id)
        self.assertEqual('me', self.nova.rows([NODE])[NODE].owner)

    def test_row_is_deleted_on_condition_that_its_host_is_the_same(self):
        # Therefore of two services only one can win.
        self._take('b')
        (mine,), (theirs,) = (objects.ComputeNodeList.get_all_by_uuids(
            self.context, [NODE]) for _ in range(2))
        self._take('me')
        self.assertRaises(exception.ObjectActionError, theirs.destroy)
        self.assertEqual('me', self.nova.rows([NODE])[NODE].owner)
        self.assertFalse(self.nova.delete_row(NODE, 'b'))

    def test_row_is_deleted_once(self):
        self._take('b')
        copies = [objects.ComputeNodeList.get_all_by_uuids(
            self.context, [NODE])[0] for _ in range(2)]
        copies[0].destroy()
        self.assertRaises(exception.ComputeHostNotFound, copies[1].destroy)

    def test_tracker_saves_what_the_driver_says(self):
        # Therefore what the row was made of, and profiles.
        self._take('me', **stats.make('me', 'x', 7))
        self.assertEqual(model.Row('me', made_of='x', made_at=7),
                         self.nova.rows([NODE])[NODE])
        # And nothing of it stays that is not said any more.
        self._take('me')
        self.assertEqual(model.Row('me'), self.nova.rows([NODE])[NODE])

    def test_services_with_nodes_of_ironic(self):
        # Of these the ring is made.
        def ironic() -> dict[str, bool]:
            return {each.host: each.is_ironic for each in self.nova.services()}
        self.assertEqual({'me': False, 'b': False}, ironic())
        self._take('b')
        self.assertEqual({'me': False, 'b': True}, ironic())
        self.services['b'].disabled = True
        self.services['b'].save()
        self.assertEqual({'me': False, 'b': True}, ironic())
        self.assertTrue(self.nova.service('b').disabled)


class ServiceTestCase(NovaTestCase):

    def test_api_saves_what_is_forced_down_and_no_more(self):
        # The command saves it so, without the API.
        service = self.services['b']
        service.forced_down = True
        with mock.patch.object(api.HostAPI, '__init__', return_value=None):
            # Without anything that it could ask or tell.
            api.HostAPI().service_update(self.context, service)
        self.assertTrue(objects.Service.get_by_compute_host(
            self.context, 'b').forced_down)


class InstanceTestCase(NovaTestCase):

    def setUp(self):
        super().setUp()
        self.row = self._take('b')

    def _instance(self, **fields: object) -> str:
        instance = objects.Instance(self.context, **{
            'uuid': uuidsentinel.instance, 'host': 'b', 'node': NODE,
            'compute_id': self.row.id, 'project_id': 'p', 'user_id': 'u',
            'vm_state': vm_states.ACTIVE, **fields})
        instance.create()
        return instance.uuid

    def test_read(self):
        uuid = self._instance(task_state='rebooting')
        self.assertEqual({uuid}, self.nova.instances_of('b'))
        self.assertEqual(
            {uuid: model.Instance('b', NODE, task='rebooting')},
            self.nova.instances([uuid, uuidsentinel.other]))

    def test_delete_that_has_not_come_to_the_record(self):
        # Nova ends the task first, then frees the allocation.
        uuid = self._instance(vm_state=vm_states.DELETED)
        self.assertTrue(self.nova.instances([uuid])[uuid].is_deleting)
        source = inspect.getsource(manager.ComputeManager._delete_instance)
        self.assertLess(source.index('instance.save()'),
                        source.index('self._complete_deletion('))
        # Which is gone on with at a start.
        self.assertIn('self._complete_partial_deletion(', inspect.getsource(
            manager.ComputeManager._init_instance))

    def test_given_another_host(self):
        uuid = self._instance()
        wanted = ports.Expected('b', NODE)
        self.assertTrue(self.nova.set_instance_host(uuid, wanted))
        self.assertEqual({uuid}, self.nova.instances_of('me'))
        self.assertFalse(self.nova.set_instance_host(uuid, wanted))

    def test_given_another_pool(self):
        pool = 'me.CUSTOM_GOLD.01234567'
        uuid = self._instance(task_state='rebooting')
        wanted = ports.Expected('b', NODE, 'rebooting')
        # Nova wants the row of the compute node, and refuses one without it.
        self.assertFalse(self.nova.place_instance(uuid, wanted, pool))
        tracker = self._tracker('me')
        tracker._init_compute_node(self.context, self._resources() | {
            'uuid': pools.uuid_of(pool), 'hypervisor_hostname': pool})
        row = tracker.compute_nodes[pool]
        self.assertEqual({pool}, self.nova.pools_of('me'))
        self.assertTrue(self.nova.place_instance(uuid, wanted, pool))
        found = objects.Instance.get_by_uuid(self.context, uuid)
        self.assertEqual(('me', pool, row.id, 'rebooting'), (
            found.host, found.node, found.compute_id, found.task_state))
        self.assertFalse(self.nova.place_instance(uuid, wanted, pool))
        self.assertFalse(self.nova.place_instance(
            uuid, ports.Expected('me', pool), pool))

    def test_given_a_node(self):
        pool = 'me.CUSTOM_GOLD.01234567'
        uuid = self._instance(node=pool)
        wanted = ports.Expected('b', pool)
        theirs = self._tracker('b')
        theirs._init_compute_node(self.context, self._resources())
        # The row is another service's.
        self.assertFalse(self.nova.place_instance(uuid, wanted, NODE))
        self.assertTrue(self.nova.delete_row(NODE, 'b'))
        mine = self._tracker('me')
        mine._init_compute_node(self.context, self._resources())
        self.assertTrue(self.nova.place_instance(uuid, wanted, NODE))
        found = objects.Instance.get_by_uuid(self.context, uuid)
        self.assertEqual(
            ('me', NODE, mine.compute_nodes[NODE].id),
            (found.host, found.node, found.compute_id))

    def test_node_is_not_changed_without_its_row(self):
        # Therefore the three are changed together.
        instance = objects.Instance.get_by_uuid(
            self.context, self._instance())
        instance.node = 'me.CUSTOM_GOLD.01234567'
        self.assertRaises(exception.ObjectActionError, instance.save)

    def test_task_that_is_not_expected_when_it_is_saved(self):
        uuid = self._instance(task_state='rebooting')
        self.assertFalse(self.nova.set_instance_host(
            uuid, ports.Expected('b', NODE)))
        self.assertEqual({uuid}, self.nova.instances_of('b'))

    def test_build_is_ended(self):
        # The fault goes by way of conductor, which tests have none of.
        uuid = self._instance(vm_state=vm_states.BUILDING,
                              task_state='spawning')
        self.assertTrue(self.nova.end_build(uuid, 'b'))
        ended = objects.Instance.get_by_uuid(self.context, uuid)
        self.assertEqual(
            (vm_states.ERROR, None, None, None, None),
            (ended.vm_state, ended.task_state, ended.host, ended.node,
             ended.compute_id))
        self.assertTrue(self.nova.instances([uuid])[uuid].is_given_up)
        self.assertIn('the nova-compute b has died', ended.fault.message)
        self.assertFalse(self.nova.end_build(uuid, 'b'))

    def test_claim_of_a_build_that_is_ended_meanwhile(self):
        tracker = self._tracker('me')
        tracker._init_compute_node(self.context, self._resources())
        uuid = self._instance(host=None, node=None, compute_id=None,
                              vm_state=vm_states.BUILDING)
        claimed = objects.Instance.get_by_uuid(
            self.context, uuid, expected_attrs=['system_metadata'])
        self.assertTrue(self.nova.end_build(uuid, 'me'))
        # As Nova does before the claim, without saving it.
        claimed.system_metadata.update({'boot_roles': 'member'})
        tracker._set_instance_host_and_node(
            claimed, tracker.compute_nodes[NODE])
        # It writes over the mark, and tells the state.
        self.assertIsNone(marks.given_up_with(objects.Instance.get_by_uuid(
            self.context, uuid, expected_attrs=['system_metadata'])))
        self.assertEqual(vm_states.ERROR, claimed.vm_state)
        self.assertIn('self._set_instance_host_and_node(instance, ',
                      inspect.getsource(tracker.instance_claim))


class BuildTestCase(NovaTestCase):
    """A build in a pool, as Nova's manager goes through it."""

    POOL = 'me.CUSTOM_GOLD.01234567'

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatch(
            'nova.compute.utils.notify_about_instance_create'))
        tracker = self._tracker('me')
        tracker._init_compute_node(self.context, self._resources() | {
            'uuid': pools.uuid_of(self.POOL),
            'hypervisor_hostname': self.POOL})
        # As the claim leaves it.
        self.instance = objects.Instance(
            self.context, uuid=uuidsentinel.instance, host='me',
            node=self.POOL, compute_id=tracker.compute_nodes[self.POOL].id,
            project_id='p', user_id='u', vm_state=vm_states.BUILDING,
            task_state=task_states.SCHEDULING, system_metadata={})
        self.instance.create()
        self.compute = mock.MagicMock(host='me')
        self.compute._get_request_group_mapping.return_value = None
        for name in ('_build_and_run_instance', '_build_resources',
                     '_build_resources_cleanup',
                     '_nil_out_instance_obj_host_and_node'):
            setattr(self.compute, name, getattr(
                manager.ComputeManager, name).__get__(self.compute))
        self.driver = self.compute.driver
        # Without the guard, which asks whose the instance is.
        self.driver.prepare_for_spawn = functools.partial(
            pool_driver._CountingMixin.prepare_for_spawn, self.driver)
        self.reserve = self.driver.ring_service.reserve
        self.reserve.return_value = reservation.Reserved(NODE)

    def build(self, **properties: object) -> str:
        """Have the manager build the instance, and say what has come of it."""
        return inspect.unwrap(
            manager.ComputeManager._do_build_and_run_instance)(
                self.compute, self.context, self.instance, image={},
                request_spec=None, filter_properties=properties,
                admin_password='', injected_files=[], requested_networks=[],
                security_groups=[], block_device_mapping=[], node=self.POOL,
                host_list=['another'], accel_uuids=[])

    def assertTriesAnother(self):
        """See that Nova sends the build to another service."""
        self.assertEqual(build_results.RESCHEDULED,
                         self.build(retry={'num_attempts': 1}))
        (call,) = self.compute.compute_task_api.build_instances.call_args_list
        self.assertEqual([['another']], call.kwargs['host_lists'])
        self.compute.reportclient.delete_allocation_for_instance.\
            assert_called_once_with(
                self.context, self.instance.uuid, force=True)
        found = objects.Instance.get_by_uuid(self.context, self.instance.uuid)
        self.assertEqual((None, None, task_states.SCHEDULING), (
            found.host, found.node, found.task_state))

    def assertFails(self, **properties: object):
        self.assertEqual(build_results.FAILED, self.build(**properties))
        self.compute.compute_task_api.build_instances.assert_not_called()

    def test_node_that_is_reserved(self):
        self.assertEqual(build_results.ACTIVE, self.build(retry={}))
        self.driver.spawn.assert_called_once()

    def test_no_node_is_left(self):
        # Therefore a service that has run out of nodes may refuse a build.
        self.reserve.return_value = reservation.Reserved()
        self.assertTriesAnother()
        self.driver.spawn.assert_not_called()
        # Which it therefore has to bear without a node.
        self.driver.clean_networks_preparation.assert_called_once()
        self.driver.failed_spawn_cleanup.assert_called_once_with(
            self.instance)

    def test_reservation_fails(self):
        self.reserve.side_effect = ValueError('no answer')
        self.assertTriesAnother()
        self.driver.spawn.assert_not_called()

    def test_no_other_error_of_a_reservation_will_do(self):
        # Therefore the driver makes this one of all errors.
        self.driver.prepare_for_spawn = mock.Mock(
            side_effect=exception.InstanceDeployFailure(reason='no'))
        self.assertFails(retry={'num_attempts': 1})

    def test_deployment_fails(self):
        # Therefore the other node that is tried is not the last chance.
        self.driver.spawn.side_effect = exception.InstanceDeployFailure(
            reason='bad')
        self.assertTriesAnother()
        self.compute._shutdown_instance.assert_called_once()

    def test_node_that_was_named_and_cannot_be_had(self):
        # Therefore this error: the reason is kept, and no other service tried.
        self.driver.ring_named_nodes.node_for.return_value = NODE
        self.reserve.return_value = reservation.Reserved(
            refused=reservation.Refusal.HAS_INSTANCE)
        self.assertFails(retry={'num_attempts': 1})
        self.driver.spawn.assert_not_called()
        found = objects.InstanceFault.get_latest_for_instance(
            self.context, self.instance.uuid)
        self.assertIn(f'node {NODE} has an instance', found.message)

    def test_nova_that_is_to_try_once(self):
        # [scheduler] max_attempts = 1: the service tries all nodes itself.
        self.reserve.return_value = reservation.Reserved()
        self.assertFails()


def _plain(name: str) -> Callable[..., Any]:
    """Return a method of Nova's manager without what is around it."""
    return safe_utils.get_wrapped_function(
        getattr(manager.ComputeManager, name))


class MessageTestCase(NovaTestCase):
    """What service b does with what it finds in its queue."""

    def setUp(self):
        super().setUp()
        for name in ('notify_usage_exists', 'notify_about_instance_rebuild',
                     'notify_about_instance_action',
                     'add_instance_fault_from_exc'):
            self.useFixture(fixtures.MockPatch(f'nova.compute.utils.{name}'))
        self.row = self._take('me')
        self.flags(host='b')
        self.compute = mock.MagicMock(
            host='b', spec=manager.ComputeManager, image_api=mock.Mock(),
            notifier=mock.Mock(), driver=mock.MagicMock(),
            reportclient=mock.Mock(), rt=self._tracker('b'))
        # As the tracker of a service that was frozen still has it.
        self.compute.rt.compute_nodes[NODE] = self.row
        self.freed = self.compute.rt.reportclient.\
            remove_provider_tree_from_instance_allocation
        for name in ('_do_rebuild_instance_with_claim', '_do_rebuild_instance',
                     '_error_out_instance_on_exception', '_instance_update',
                     '_set_instance_obj_error_state', 'power_update'):
            setattr(self.compute, name,
                    functools.partial(_plain(name), self.compute))
        self.compute._error_out_instance_on_exception = functools.partial(
            manager.ComputeManager._error_out_instance_on_exception,
            self.compute)
        self.compute._get_power_state.return_value = power_state.RUNNING
        source = mock.Mock(virtapi=mock.Mock(
            _compute=self.compute,
            reportclient=self.compute.rt.reportclient))
        upstream.guard_writes(source, guards.write_if_mine)
        upstream.guard_failed_rebuild(source, guards.is_kept_there)
        upstream.guard_evacuations(source, evacuations.refuse)

    def _asked(self, **fields: object) -> objects.Instance:
        """Return the instance as it was when the service was asked."""
        objects.Instance(self.context, **{
            'uuid': uuidsentinel.instance, 'host': 'b', 'node': NODE,
            'compute_id': self.row.id, 'project_id': 'p', 'user_id': 'u',
            'vm_state': vm_states.ACTIVE, 'system_metadata': {},
            'power_state': power_state.RUNNING, **fields}).create()
        return objects.Instance.get_by_uuid(
            self.context, uuidsentinel.instance)

    def _becomes(self, **fields: object) -> None:
        """Have the instance become something else meanwhile."""
        now = objects.Instance.get_by_uuid(
            self.context, uuidsentinel.instance)
        now.update(fields)
        now.save()

    def assertState(self, vm_state: str, task_state: str | None):
        now = objects.Instance.get_by_uuid(
            self.context, uuidsentinel.instance)
        self.assertEqual((vm_state, task_state),
                         (now.vm_state, now.task_state))

    def _call(self, name: str, instance: objects.Instance, *given: object
              ) -> object:
        """Do what the manager does with a message."""
        return manager.reverts_task_state(_plain(name))(
            self.compute, self.context, instance, *given)

    def _rebuild(self, instance: objects.Instance) -> None:
        parameters = inspect.signature(_plain('rebuild_instance')).parameters
        self._call('rebuild_instance', instance,
                   *[None for _ in list(parameters)[3:]])


class EvacuationTestCase(MessageTestCase):
    """An instance of service me, which is absent, is to be evacuated to b."""

    def setUp(self):
        super().setUp()
        self.compute._set_migration_status = (
            manager.ComputeManager._set_migration_status)
        self.compute._get_request_group_mapping.return_value = None
        self.instance = self._asked(
            host='me', task_state=task_states.REBUILDING)
        self.migration = objects.Migration(
            self.context, source_compute='me', source_node=NODE,
            instance_uuid=self.instance.uuid, status='accepted',
            migration_type='evacuation')
        self.migration.create()

    def _evacuate(self, node: str) -> None:
        given = dict.fromkeys(list(inspect.signature(
            _plain('rebuild_instance')).parameters)[3:])
        given |= {'recreate': True, 'scheduled_node': node,
                  'migration': self.migration}
        self.assertRaises(
            exception.BuildAbortException, self._call, 'rebuild_instance',
            self.instance, *given.values())

    def assertRefused(self, vm_state: str):
        self.assertState(vm_state, None)
        found = objects.Instance.get_by_uuid(self.context, self.instance.uuid)
        self.assertEqual(NODE, found.node)
        self.assertEqual('failed', objects.Migration.get_by_id(
            self.context, self.migration.id).status)
        self.compute.driver.assert_not_called()

    def test_it_stays_as_it_was(self):
        for state in vm_states.ACTIVE, vm_states.STOPPED:
            self._becomes(
                vm_state=state, task_state=task_states.REBUILDING)
            self.instance = objects.Instance.get_by_uuid(
                self.context, self.instance.uuid)
            # The node may be another's by now, and not be tracked.
            self._evacuate(uuidsentinel.free)
            self.assertRefused(state)
            self.freed.assert_called_once_with(
                mock.ANY, self.instance.uuid, uuidsentinel.free)
            self.freed.reset_mock()

    def test_node_that_the_tracker_has(self):
        self.compute.rt.compute_nodes[uuidsentinel.free] = mock.Mock(
            uuid=uuidsentinel.free)
        self._evacuate(uuidsentinel.free)
        self.assertRefused(vm_states.ACTIVE)
        self.freed.assert_called_once_with(
            mock.ANY, self.instance.uuid, uuidsentinel.free)

    def test_taken_over_meanwhile(self):
        # Its task has ended with that.
        self._becomes(task_state=None, host='c')
        self._evacuate(uuidsentinel.free)
        self.assertRefused(vm_states.ACTIVE)
        self.freed.assert_called_once()

    def test_taken_over_to_the_pool_that_it_was_evacuated_to(self):
        pool = 'b.CUSTOM_GOLD.01234567'
        self._becomes(task_state=None, host='b', node=pool, compute_id=99)
        self._evacuate(pool)
        # Else nothing would be reserved for it any more.
        self.freed.assert_not_called()
        found = objects.Instance.get_by_uuid(self.context, self.instance.uuid)
        self.assertEqual((vm_states.ACTIVE, pool), (
            found.vm_state, found.node))


class OldMessageTestCase(MessageTestCase):
    """A service is back, and finds what it was asked to do in its queue.

    Its instance was taken over meanwhile, and used.
    """

    def test_rebuild(self):
        instance = self._asked(task_state=task_states.REBUILDING)
        self._becomes(host='me', task_state=None)
        self.assertRaises(exception.UnexpectedTaskStateError,
                          self._rebuild, instance)
        self.assertState(vm_states.ACTIVE, None)
        self.freed.assert_not_called()

    def test_rebuild_that_fails_with_its_own_service(self):
        instance = self._asked(task_state=task_states.REBUILDING)
        self.compute.driver.rebuild.side_effect = ValueError('no')
        self.assertRaises(ValueError, self._rebuild, instance)
        self.assertState(vm_states.ERROR, None)
        self.freed.assert_called_once()

    def test_suspending(self):
        instance = self._asked(task_state=task_states.SUSPENDING)
        self._becomes(host='me', task_state=task_states.DELETING,
                      vm_state=vm_states.STOPPED)
        # Which is what Nova's ironic driver does.
        self.compute.driver.suspend.side_effect = NotImplementedError
        self.assertRaises(NotImplementedError, self._call,
                          'suspend_instance', instance)
        self.assertState(vm_states.STOPPED, task_states.DELETING)

    def _tell_of_machine(self, instance: objects.Instance) -> None:
        """Do what the manager does where Ironic says a machine is off."""
        self.compute.driver.power_update_event = functools.partial(
            upstream.NovaIronicDriver.power_update_event, mock.Mock())
        manager.ComputeManager.external_instance_event(
            self.compute, self.context, [instance],
            [objects.InstanceExternalEvent(
                instance_uuid=instance.uuid, name='power-update',
                tag='POWER_OFF')])

    def test_machine_that_was_off(self):
        # It was started since: Nova would switch it off again.
        instance = self._asked()
        self._becomes(host='me')
        self._tell_of_machine(instance)
        self.assertState(vm_states.ACTIVE, None)

    def test_machine_that_is_off(self):
        self._tell_of_machine(self._asked())
        self.assertState(vm_states.STOPPED, None)


class SpreadTestCase(test.NoDBTestCase):
    """One request of many servers, as the scheduler's weighers spread it."""

    def _left(self, servers: int, **free: int) -> list[int]:
        """Return how many free nodes each service is left with.

        :param servers: how many are asked for
        :param free: how many each service has, by its name
        """
        states = []
        for host, count in free.items():
            state = host_manager.HostState(host, host, 'cell')
            state.free_ram_mb = state.free_disk_mb = count
            state.vcpus_total, state.cpu_allocation_ratio = count, 1.0
            states.append(state)
        weighers = [ram.RAMWeigher(), disk.DiskWeigher(), cpu.CPUWeigher(),
                    io_ops.IoOpsWeigher()]
        for _ in range(servers):
            best = weights.HostWeightHandler().get_weighed_objects(
                weighers, states, objects.RequestSpec())[0].obj
            # As the scheduler does before it chooses for the next server.
            best.free_ram_mb -= 1
            best.free_disk_mb -= 1
            best.vcpus_used += 1
            best.num_io_ops += 1
        return [state.free_ram_mb for state in states]

    def test_what_is_left_is_about_the_same(self):
        # Therefore the driver says of a pool what its free nodes have.
        for servers, free in ((15, (10, 8, 12)), (40, (40, 20, 20)),
                              (30, (20, 16, 24))):
            left = self._left(servers, **dict(zip('abc', free)))
            self.assertEqual(sum(free) - servers, sum(left))
            self.assertLess(max(left) - min(left), 5, left)
        # The large one first: this is no spread in proportion.
        self.assertEqual([10, 5, 5], self._left(10, a=20, b=5, c=5))
