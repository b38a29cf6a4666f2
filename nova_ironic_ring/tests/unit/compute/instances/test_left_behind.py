# SPDX-License-Identifier: Apache-2.0

"""What a dead service leaves of an instance, and what its taker makes of it.

Nova's own manager does what it is asked, with Nova's own records, and dies in
the middle. What it has written then is what the taker finds, which runs Nova's
own manager as well. The design page has the same table.
"""

from collections.abc import Callable, Mapping
import dataclasses
import inspect
import pathlib
import re
import time
from typing import Any
from typing import TypeAlias
from unittest import mock

import ddt
import fixtures
from nova.compute import manager
from nova.compute import power_state
from nova.compute import task_states
from nova.compute import vm_states
import nova.conf
from nova.db.main import models
from nova import exception
from nova import manager as nova_manager
from nova import objects
from nova import safe_utils
from nova.virt import hardware
from nova.virt.ironic import driver as nova_driver
from openstack.baremetal.v1 import node as sdk_node
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils
from oslotest import base

from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.compute.instances import recovery
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.fixtures import nova_database

CONF = nova.conf.CONF
NODE = nova_database.NODE
_PAGE = pathlib.Path(__file__).parents[5] / 'doc/source/contributor/design.rst'
#: vm_state, task and service in the end.
_Ends: TypeAlias = tuple[str, str | None, str | None]
_KEY = 'ssh-ed25519 AAAA'
#: What each instance is in the end that Nova does not have any more.
GONE: _Ends = ('deleted', None, None)


class _DiedError(BaseException):
    """The process ends: nothing of Nova catches this."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """What Ironic says of a machine.

    :ivar state: its provision state; None if Ironic has the instance nowhere
    :ivar is_on: whether it is switched on
    """

    state: str | None = 'active'
    is_on: bool = True


ON, OFF, NONE = Machine(), Machine(is_on=False), Machine(None, False)


@dataclasses.dataclass(frozen=True)
class Row:
    """What a dead service leaves, and what becomes of it.

    :ivar task: the task that it leaves
    :ivar state: the vm_state that it leaves
    :ivar ends: vm_state, task and service in the end
    :ivar machine: what Ironic says when the taker looks
    :ivar asked: the method of Nova's manager that does it; None where no
        service has begun with it, and the API has written the task
    :ivar was: task and vm_state when it is asked for that
    :ivar dies: what the manager calls when it dies
    :ivar given: what the method is given beside the instance
    :ivar has_service: whether it has one
    """

    task: str | None
    state: str
    ends: _Ends
    machine: Machine = ON
    asked: str | None = None
    was: tuple[str | None, str] | None = None
    dies: str = ''
    given: Mapping[str, object] = dataclasses.field(default_factory=dict)
    has_service: bool = True


S, T = vm_states, task_states
_ACTIVE = (S.ACTIVE, None, 'me')
_STOPPED = (S.STOPPED, None, 'me')
_ERROR = (S.ERROR, None, 'me')
_SHELVED = (S.SHELVED_OFFLOADED, None, None)
_GIVEN_UP = (S.ERROR, None, None)


def _shelving(dies: str, ends: _Ends, machine: Machine, state: str = S.ACTIVE,
              task: str | None = T.SHELVING) -> Row:
    return Row(task, state, ends, machine, 'shelve_offload_instance',
               (T.SHELVING, S.ACTIVE), dies, {'clean_shutdown': False})


def _build(task: str | None, dies: str, ends: _Ends,
           machine: Machine = NONE) -> Row:
    return Row(task, S.BUILDING, ends, machine, '_do_build_and_run_instance',
               (T.SCHEDULING, S.BUILDING), dies, {
                   'image': {}, 'filter_properties': {}, 'node': NODE,
                   'host_list': [], 'block_device_mapping': []})


def _left(task: str | None, state: str, ends: _Ends,
          machine: Machine = ON) -> Row:
    """Return a row of what the API has written, and nobody has begun."""
    return Row(task, state, ends, machine)


#: In the order of the page.
ROWS = (
    _left(None, S.ACTIVE, _ACTIVE),
    _left(None, S.STOPPED, _STOPPED, OFF),
    _left(None, S.RESCUED, (S.RESCUED, None, 'me'), Machine('rescue')),
    _left(None, S.ERROR, _ERROR),
    _left(None, S.SOFT_DELETED, (S.SOFT_DELETED, None, 'me'), OFF),
    Row(None, S.DELETED, GONE, NONE, '_delete_instance',
        (T.DELETING, S.ACTIVE), '_complete_deletion', {'bdms': []}),
    _shelving('rt.update_usage', _SHELVED, NONE, S.SHELVED_OFFLOADED, None),
    _build(None, '_validate_instance_group_policy', _GIVEN_UP),
    dataclasses.replace(_build(None, 'rt.instance_claim', _GIVEN_UP),
                        has_service=False),
    Row(T.SCHEDULING, S.BUILDING, _GIVEN_UP, NONE, has_service=False),
    _build(T.NETWORKING, 'driver.prepare_for_spawn', _GIVEN_UP),
    _build(T.BLOCK_DEVICE_MAPPING, '_prep_block_device', _ERROR,
           Machine('available', False)),
    _build(T.SPAWNING, 'driver.spawn', _ERROR, Machine('available', False)),
    _build(T.SPAWNING, 'driver.spawn', _ACTIVE, ON),
    Row(T.SPAWNING, S.SHELVED_OFFLOADED, _SHELVED, NONE, 'unshelve_instance',
        (T.UNSHELVING, S.SHELVED_OFFLOADED), '_prep_block_device',
        has_service=False),
    Row(T.SPAWNING, S.SHELVED_OFFLOADED, _SHELVED, NONE, 'unshelve_instance',
        (T.UNSHELVING, S.SHELVED_OFFLOADED), 'driver.spawn',
        {'node': NODE, 'filter_properties': {}}),
    Row(T.SPAWNING, S.SHELVED_OFFLOADED, _ACTIVE, ON, 'unshelve_instance',
        (T.UNSHELVING, S.SHELVED_OFFLOADED), 'driver.spawn',
        {'node': NODE, 'filter_properties': {}}),
    _left(T.IMAGE_SNAPSHOT_PENDING, S.ACTIVE, _ACTIVE),
    Row(T.IMAGE_SNAPSHOT, S.ACTIVE, _ACTIVE, ON, 'snapshot_instance',
        (T.IMAGE_SNAPSHOT_PENDING, S.ACTIVE), 'instance.save'),
    *(_left(task, S.STOPPED, _STOPPED, OFF) for task in (
        T.IMAGE_SNAPSHOT_PENDING, T.IMAGE_SNAPSHOT, T.IMAGE_BACKUP,
        T.RESIZE_PREP, T.RESIZE_MIGRATING)),
    _left(T.IMAGE_BACKUP, S.ACTIVE, _ACTIVE),
    _left(T.UPDATING_PASSWORD, S.ACTIVE, _ACTIVE),
    _left(T.RESIZE_PREP, S.ACTIVE, _ACTIVE),
    _left(T.RESIZE_MIGRATING, S.ACTIVE, _ACTIVE),
    _left(T.REBOOTING, S.ACTIVE, _ACTIVE),
    _left(T.REBOOTING_HARD, S.ACTIVE, _ACTIVE),
    *(_left(task, S.STOPPED, _ACTIVE, OFF) for task in (
        T.REBOOTING_HARD, T.REBOOT_PENDING_HARD, T.REBOOT_STARTED_HARD)),
    *(_left(task, S.ERROR, _ERROR, machine) for task in (
        T.REBOOTING_HARD, T.REBOOT_PENDING_HARD, T.REBOOT_STARTED_HARD)
        for machine in (ON, OFF)),
    Row(T.REBOOT_PENDING, S.ACTIVE, _ACTIVE, ON, 'reboot_instance',
        (T.REBOOTING, S.ACTIVE), 'instance.save', {'reboot_type': 'SOFT'}),
    Row(T.REBOOT_PENDING_HARD, S.ACTIVE, _ACTIVE, OFF, 'reboot_instance',
        (T.REBOOTING_HARD, S.ACTIVE), 'instance.save',
        {'reboot_type': 'HARD'}),
    Row(T.REBOOT_STARTED, S.ACTIVE, _ACTIVE, ON, 'reboot_instance',
        (T.REBOOTING, S.ACTIVE), 'driver.reboot', {'reboot_type': 'SOFT'}),
    Row(T.REBOOT_STARTED_HARD, S.ACTIVE, _ACTIVE, OFF, 'reboot_instance',
        (T.REBOOTING_HARD, S.ACTIVE), 'driver.reboot',
        {'reboot_type': 'HARD'}),
    Row(T.PAUSING, S.ACTIVE, _ACTIVE, ON, 'pause_instance',
        (T.PAUSING, S.ACTIVE), 'driver.pause'),
    Row(T.SUSPENDING, S.ACTIVE, _ACTIVE, ON, 'suspend_instance',
        (T.SUSPENDING, S.ACTIVE), 'driver.suspend'),
    Row(T.POWERING_OFF, S.ACTIVE, _STOPPED, ON, 'stop_instance',
        (T.POWERING_OFF, S.ACTIVE), 'driver.power_off',
        {'clean_shutdown': True}),
    _left(T.POWERING_OFF, S.ERROR, _ERROR),
    Row(T.POWERING_ON, S.STOPPED, _ACTIVE, OFF, 'start_instance',
        (T.POWERING_ON, S.STOPPED), 'driver.power_on'),
    Row(T.RESCUING, S.ACTIVE, (S.RESCUED, None, 'me'), Machine('rescue'),
        'rescue_instance', (T.RESCUING, S.ACTIVE), 'driver.rescue'),
    _left(T.RESCUING, S.ACTIVE, _ACTIVE),
    _left(T.RESCUING, S.STOPPED, _STOPPED, OFF),
    _left(T.RESCUING, S.ERROR, (S.RESCUED, None, 'me'), Machine('rescue')),
    _left(T.RESCUING, S.ERROR, _ERROR),
    _left(T.RESCUING, S.ACTIVE, _ERROR, Machine('rescue failed')),
    Row(T.UNRESCUING, S.RESCUED, _ACTIVE, ON, 'unrescue_instance',
        (T.UNRESCUING, S.RESCUED), 'driver.unrescue'),
    _left(T.UNRESCUING, S.RESCUED, (S.RESCUED, None, 'me'),
          Machine('rescue')),
    _left(T.UNRESCUING, S.RESCUED, _ERROR, Machine('unrescue failed')),
    _left(T.REBUILDING, S.ACTIVE, _ERROR),
    _left(T.REBUILDING, S.STOPPED, _ERROR, OFF),
    _left(T.REBUILDING, S.ERROR, _ERROR),
    _left(T.REBUILD_SPAWNING, S.ACTIVE, _ERROR, Machine('deploying')),
    _left(T.REBUILD_SPAWNING, S.STOPPED, _ERROR, OFF),
    _left(T.REBUILD_SPAWNING, S.ERROR, _ERROR),
    _left(T.MIGRATING, S.ACTIVE, _ACTIVE),
    Row(T.DELETING, S.ACTIVE, GONE, ON, '_delete_instance',
        (T.DELETING, S.ACTIVE), '_shutdown_instance', {'bdms': []}),
    _left(T.DELETING, S.BUILDING, GONE, NONE),
    _left(T.DELETING, S.STOPPED, GONE, OFF),
    _left(T.DELETING, S.RESCUED, GONE, Machine('rescue')),
    _left(T.DELETING, S.ERROR, GONE),
    _left(T.DELETING, S.SOFT_DELETED, GONE, OFF),
    _left(T.DELETING, S.SHELVED_OFFLOADED, GONE, NONE),
    _left(T.DELETING, S.SHELVED_OFFLOADED, GONE),
    *(_left(T.SOFT_DELETING, state, (S.SOFT_DELETED, None, 'me'), machine)
      for state, machine in ((S.STOPPED, OFF), (S.ERROR, ON),
                             (S.RESCUED, Machine('rescue')))),
    *(_left(T.SOFT_DELETING, S.SHELVED_OFFLOADED,
            (S.SOFT_DELETED, None, 'me'), machine) for machine in (ON, NONE)),
    Row(T.SOFT_DELETING, S.ACTIVE, (S.SOFT_DELETED, None, 'me'), ON,
        'soft_delete_instance', (T.SOFT_DELETING, S.ACTIVE),
        'driver.soft_delete'),
    Row(T.RESTORING, S.SOFT_DELETED, _ACTIVE, OFF, 'restore_instance',
        (T.RESTORING, S.SOFT_DELETED), 'driver.restore'),
    _left(T.SHELVING, S.ACTIVE, _ACTIVE),
    _left(T.SHELVING, S.STOPPED, _SHELVED, OFF),
    _shelving('driver.power_off', _ACTIVE, ON),
    _shelving('network_api.unbind_ports', _SHELVED, OFF),
    _shelving('driver.destroy', _SHELVED, OFF),
    _shelving('driver.destroy', _SHELVED, NONE),
    _shelving('_terminate_volume_connections', _SHELVED, NONE),
    _shelving('rt.delete_allocation_for_shelve_offloaded_instance', _SHELVED,
              NONE),
    Row(T.UNSHELVING, S.SHELVED_OFFLOADED, _SHELVED, NONE, has_service=False),
)

#: What Nova's manager cannot leave of an ironic server, and the method by
#: which it would come to that, which Nova's ironic driver does not have.
NEVER = {
    T.IMAGE_PENDING_UPLOAD: 'snapshot',
    T.IMAGE_UPLOADING: 'snapshot',
    T.SHELVING_IMAGE_PENDING_UPLOAD: 'snapshot',
    T.SHELVING_IMAGE_UPLOADING: 'snapshot',
    T.SHELVING_OFFLOADING: 'snapshot',
    T.RESIZE_MIGRATED: 'migrate_disk_and_power_off',
    T.RESIZE_FINISH: 'migrate_disk_and_power_off',
    T.RESIZE_REVERTING: 'finish_migration',
    T.RESIZE_CONFIRMING: 'finish_migration',
    T.UNPAUSING: 'pause',
    T.RESUMING: 'suspend',
}
#: With a driver that rebuilds by itself it does not come to that.
NEVER_IN_A_REBUILD = T.REBUILD_BLOCK_DEVICE_MAPPING


def _machines_driver(machine: Machine) -> Any:
    """Return a driver for what Ironic says of a machine."""
    found = mock.MagicMock(spec=nova_driver.IronicDriver)
    found.capabilities = {}
    if machine.state is None:
        error = exception.InstanceNotFound(instance_id='it')
        found._validate_instance_and_node.side_effect = error
    else:
        found._validate_instance_and_node.return_value = sdk_node.Node(
            id=NODE, provision_state=machine.state)
    found.get_info.return_value = hardware.InstanceInfo(
        state=power_state.RUNNING if machine.is_on
        else power_state.SHUTDOWN if machine.state else power_state.NOSTATE)
    # As of all drivers that do not have it.
    found.soft_delete.side_effect = NotImplementedError
    found.restore.side_effect = NotImplementedError
    return found


def _manager(host: str, machine: Machine) -> manager.ComputeManager:
    """Return Nova's manager, with nothing real around it."""
    found = object.__new__(manager.ComputeManager)
    nova_manager.Manager.__init__(found, host, 'compute')
    vars(found).update({name: mock.MagicMock(name=name) for name in (
        'rt', 'network_api', 'volume_api', 'image_api', 'share_manager',
        'notifier', 'reportclient', 'compute_task_api', 'virtapi',
        '_notify_about_instance_usage', '_update_scheduler_instance_info',
        '_delete_scheduler_instance_info', '_update_resource_tracker',
        '_validate_instance_group_policy', '_check_device_tagging',
        '_get_rescue_image', '_snapshot_semaphore', '_get_accel_info',
        'instance_events', '_clean_instance_console_tokens')})
    vars(found).update(host=host, driver=_machines_driver(machine))
    found.driver.virtapi = found.virtapi
    found.virtapi._compute = found
    found.virtapi.reportclient = found.reportclient
    found.rt.compute_nodes = {NODE: object()}
    found._get_request_group_mapping = lambda _: None
    found._update_resource_tracker = lambda context, instance: (
        found.rt.update_usage(context, instance, instance.node))

    def claim(context: object, instance: objects.Instance, *_: object,
              **__: object) -> Any:
        instance.host, instance.node = host, NODE
        instance.compute_id = 1
        instance.save()
        return mock.MagicMock()
    found.rt.instance_claim = claim
    return found


class _Place:
    """A Placement with an allocation, and an Ironic without the instance."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.freed: list[str] = []

    def consumers(self, node: str) -> frozenset[str]:
        return frozenset({self.instance})

    def free(self, instance: str) -> None:
        self.freed.append(instance)

    def nodes_of(self, instances: object) -> dict[str, str | None]:
        return {}

    def waiting_builds(self) -> frozenset[str]:
        return frozenset()

    def now(self) -> float:
        return 0.0

    def longest_gap(self, since: float) -> float:
        return 0.0


@ddt.ddt
class LeftBehindTestCase(base.BaseTestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # It takes a while to make all tables.
        cls.database = nova_database.NovaDatabase()
        cls.addClassCleanup(cls.database.cleanUp)
        cls.database.setUp()

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.context = self.database.context()
        self.uuid = uuidutils.generate_uuid()
        self.useFixture(fixtures.MockPatch(
            'nova.context.get_admin_context', return_value=self.context))
        self.useFixture(fixtures.MockPatchObject(
            type(self.context), 'elevated', lambda context: context))
        self.conf = self.useFixture(config_fixture.Config(CONF))
        self.conf.config(group='database', connection='sqlite://')
        self.useFixture(fixtures.MockPatch('nova.rpc.get_notifier'))
        self.useFixture(fixtures.MockPatch(
            'nova.notifications.base.send_update'))
        # Which Nova adds its events to.
        self.database.add(models.InstanceAction(
            instance_uuid=self.uuid, action='asked', request_id='before'))
        for name in ('notify_about_instance_action', 'notify_usage_exists',
                     'notify_about_instance_create', 'add_instance_fault_from'
                     '_exc', 'notify_about_instance_delete',
                     'notify_about_instance_rescue_action',
                     'delete_arqs_if_needed'):
            self.useFixture(fixtures.MockPatch(f'nova.compute.utils.{name}'))
        self.useFixture(fixtures.MockPatch(
            'nova.compute.utils.is_volume_backed_instance',
            return_value=True))
        self.nova = records.Nova(self.context, 'me')
        self.place = _Place(self.uuid)

    def _create(self, row: Row) -> objects.Instance:
        task, state = row.was or (row.task, row.state)
        has_service = row.has_service and not (
            state in (S.BUILDING, S.SHELVED_OFFLOADED) and row.asked)
        found = objects.Instance(
            self.context, uuid=self.uuid, project_id='p', user_id='u',
            host='b' if has_service else None,
            node=NODE if has_service else None,
            compute_id=1 if has_service else None,
            vm_state=state, task_state=task, system_metadata={},
            power_state=power_state.RUNNING, image_ref='',
            key_name='key', key_data=_KEY,
            keypairs=objects.KeyPairList(objects=[objects.KeyPair(
                name='key', user_id='u', public_key=_KEY)]),
            auto_disk_config=False, display_name='server', metadata={},
            flavor=objects.Flavor(
                memory_mb=1, vcpus=1, root_gb=1, ephemeral_gb=0, swap=0,
                extra_specs={}, name='f', flavorid='f'),
            pci_requests=objects.InstancePCIRequests(requests=[]))
        found.create()
        return objects.Instance.get_by_uuid(
            self.context, self.uuid, expected_attrs=[
                'system_metadata', 'metadata', 'flavor', 'info_cache',
                'pci_requests', 'numa_topology'])

    def _die(self, row: Row) -> None:
        """Have the service b die in the middle."""
        self.conf.config(host='b')
        instance = self._create(row)
        if row.asked is None:
            return
        assert row.was is not None
        dying = _manager('b', ON if row.was[1] == S.ACTIVE else OFF)
        if row.dies == 'instance.save':
            self._die_after_saving(instance)
        else:
            owner: Any = dying
            *path, name = row.dies.split('.')
            for each in path:
                owner = getattr(owner, each)
            setattr(owner, name, mock.Mock(side_effect=_DiedError))
        method = safe_utils.get_wrapped_function(
            getattr(manager.ComputeManager, row.asked))
        given = self._given(method, instance, row)
        self.assertRaises(_DiedError, method, dying, **given)

    def _die_after_saving(self, instance: objects.Instance) -> None:
        save = instance.save

        def saved(*args: object, **kwargs: object) -> None:
            save(*args, **kwargs)
            raise _DiedError
        vars(instance)['save'] = saved

    def _given(self, method: Callable[..., Any], instance: objects.Instance,
               row: Row) -> dict[str, Any]:
        parameters = inspect.signature(method).parameters.values()
        return {parameter.name: None for parameter in parameters
                if parameter.default is parameter.empty
                and parameter.name != 'self'} | {
                    'context': self.context, 'instance': instance,
                    **row.given}

    def _take(self, row: Row) -> model.Takeover | None:
        """Have the service me look, and take what the other has left."""
        now = self._read()
        assert now is not None
        self.conf.config(host='me')
        if row.machine.state is not None:
            self.assertTrue(self.nova.set_instance_host(
                self.uuid, ports.Expected('b', NODE, row.task)))
            return model.Takeover(NODE, self.uuid, 'b', row.task, True)
        place: Any = self.place
        this = one_pass.Pass(
            ports.Ports(self.nova, place, place, place),
            settings.Settings('me'), observation.Memory(
                view=view.View(trust=trust.Trust.FULL)))
        builds.look(this, NODE, 'b')
        if this.taken:
            return this.taken[0]
        (happened,) = this.happened
        self.assertIsInstance(
            happened, (events.BuildEnded, events.UnshelveEnded))
        self.assertEqual([self.uuid], self.place.freed)
        return None

    def _recover(self, taken: model.Takeover, row: Row) -> None:
        """Have the service me go on with it, until nothing is left to do."""
        compute = _manager('me', row.machine)
        started = recovery.Recovery(compute.driver, frozenset())
        job = recovery._Job(taken, time.monotonic())
        started._try(job)
        self.assertEqual(0, job.attempts, self.log.output)
        self.assertTrue(job.is_done)

    def _read(self) -> objects.Instance | None:
        try:
            return objects.Instance.get_by_uuid(self.context, self.uuid)
        except exception.InstanceNotFound:
            return None

    @ddt.data(*ROWS)
    def test_row(self, row):
        self._die(row)
        left = self._read()
        self.assertEqual(
            (row.task, row.state, 'b' if row.has_service else None),
            (left.task_state, left.vm_state, left.host))
        taken = self._take(row)
        if taken is not None:
            self._recover(taken, row)
        now = self._read()
        self.assertEqual(row.ends, GONE if now is None else (
            now.vm_state, now.task_state, now.host))
        # Nova takes it off an instance while it unshelves that.
        self.assertEqual(_KEY, _KEY if now is None else now.key_data)


class PageTestCase(base.BaseTestCase):
    """The tables of the design page have all that Nova has."""

    def setUp(self):
        super().setUp()
        page = _PAGE.read_text()
        self.text = page[page.index('What a dead service leaves behind\n---'):]

    def _table(self, number: int) -> list[list[str]]:
        """Return the lines of a table, each with what its columns say."""
        table = self.text.split('.. list-table::')[number]
        table = re.split(r'\n(?=[^ \n])', table)[0]
        return [
            [' '.join(column.split()) for column in re.split(
                r'\n     - ', line)]
            for line in table.split('\n   * - ')[2:]]

    @staticmethod
    def _names(column: str) -> list[str]:
        return re.findall('``([^`]+)``', column)

    def test_rows_are_those_of_the_page(self):
        said: dict[tuple[str | None, str], set[str]] = {}
        for tasks, states, _, ends in self._table(1):
            for task in self._names(tasks) or [None]:
                for state in self._names(states):
                    self.assertNotIn((task, state), said)
                    said[task, state] = set(self._names(ends)) or {state}
        tested: dict[tuple[str | None, str], set[str]] = {}
        for row in ROWS:
            tested.setdefault((row.task, row.state), set()).add(row.ends[0])
        self.assertEqual(tested, said)

    def test_what_cannot_be_left_is_on_the_page(self):
        said = {task for tasks, _ in self._table(2)
                for task in self._names(tasks)}
        self.assertEqual({*NEVER, NEVER_IN_A_REBUILD}, said)
        for task, method in NEVER.items():
            self.assertNotIn(method, vars(nova_driver.IronicDriver), task)
        self.assertIn('rebuild', vars(nova_driver.IronicDriver))

    def test_each_task_of_nova_has_its_place(self):
        # A release of Nova that has a new one fails here: say in the tables
        # what a dead service leaves by it, and what becomes of that.
        known = {value for name, value in vars(task_states).items()
                 if name.isupper() and isinstance(value, str)}
        self.assertGreater(len(known), 30)
        told = {row.task for row in ROWS} | {*NEVER, NEVER_IN_A_REBUILD}
        self.assertEqual(known, told - {None})

    def test_each_state_of_nova_has_its_place(self):
        known = {value for name, value in vars(vm_states).items()
                 if name.isupper() and isinstance(value, str)}
        never = {S.PAUSED, S.SUSPENDED, S.RESIZED, S.SHELVED}
        self.assertEqual(known, {row.state for row in ROWS} | never)
        intro = ' '.join(self.text.split('.. list-table::')[0].split())
        for state in never:
            self.assertIn(f'``{state}``', intro)
