# SPDX-License-Identifier: Apache-2.0

"""What the columns of Nova's databases take, on real servers."""

from collections.abc import Iterator
import contextlib
import functools
import os
from typing import Any
from unittest import mock

from nova.compute import resource_tracker
import nova.conf
from nova import context as nova_context
from nova.db.main import models
from nova import objects
from oslo_db.sqlalchemy import enginefacade
from oslotest import base
from pifpaf.drivers import mysql

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.core.values import bounds
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import postgresql
from nova_ironic_ring.tests.unit.compute import base as unit

CONF = nova.conf.CONF

_NODES = 10000
_INSTANCES = 6000
# 2 TiB of memory.
_MEMORY = 2 * 1024 ** 2
_POOL = pools.name('me', unit.KIND)


class _Driver:
    """Says of the pool what the pool driver says."""

    def __init__(self) -> None:
        self.tracker: Any = None
        with fake_nova.FakeNova() as nova:
            nova.conf.config(host='me')
            nova.add_service('me')
            nova.cloud.nodes = {
                f'00000000-0000-0000-0000-{number:012d}': clouds.Node()
                for number in range(_NODES)}
            nova.page = _NODES
            nova.properties = dict.fromkeys(nova.cloud.nodes, {
                'memory_mb': _MEMORY, 'local_gb': 30000, 'cpus': 512})
            compute = nova.compute('me', pool_driver.IronicPoolDriver)
            compute.run_pass()
            found = compute.ring.result.found[_POOL]
            size = found.nodes[min(found.nodes)].size
            used = dict.fromkeys(list(found.nodes)[:_INSTANCES], pools.Node(
                unit.KIND, 'instance', size=size))
            found.nodes.update(used)
            object.__setattr__(found, 'used', frozenset(used))
            compute.ring._sizes = {'instance': pools.Size(_MEMORY, 30000, 512)}
            compute.tracked.pop(_POOL)
            #: Of one that the resource tracker does not track yet.
            self.first = compute.driver.get_available_resource(_POOL)
            compute.tracked[_POOL] = None
            self.later = compute.driver.get_available_resource(_POOL)

    def get_available_resource(self, name: str) -> dict[str, Any]:
        return dict(self.later if name in self.tracker.compute_nodes
                    else self.first)

    def __getattr__(self, name: str) -> mock.Mock:
        return mock.Mock()


@functools.cache
def _driver() -> _Driver:
    return _Driver()


class ColumnsTestCase(base.BaseTestCase):
    """A pool of 10 000 nodes of 2 TiB, 6 000 of them with an instance."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.driver = _driver()

    def _tracker(self) -> resource_tracker.ResourceTracker:
        """Return Nova's own tracker, whose records are in the database."""
        client = mock.Mock()
        client.get_allocations_for_resource_provider.return_value = mock.Mock(
            allocations={})
        tracker = resource_tracker.ResourceTracker(
            'me', self.driver, reportclient=client)
        tracker.service_ref = objects.Service(id=1, host='me')
        # Here it is about its records alone.
        tracker._update_to_placement = mock.Mock()
        self.driver.tracker = tracker
        source = mock.Mock()
        source.virtapi._compute.rt = tracker
        upstream.bound_records(source, bounds.number)
        return tracker

    @contextlib.contextmanager
    def _instances(self) -> Iterator[None]:
        """Let Nova have instances in the pool."""
        flavor = objects.Flavor(
            memory_mb=_MEMORY, vcpus=512, root_gb=30000, ephemeral_gb=0,
            swap=0, extra_specs={})
        instances = [objects.Instance(
            uuid=f'11111111-1111-1111-1111-{number:012d}', host='me',
            node=_POOL, vm_state='active', task_state=None, memory_mb=_MEMORY,
            vcpus=512, flavor=flavor, old_flavor=None, new_flavor=None,
            numa_topology=None, migration_context=None, pci_requests=None,
            pci_devices=None, resources=None, project_id='p', os_type=None,
            deleted=False) for number in range(_INSTANCES)]
        with mock.patch.object(objects.Instance, 'save'), mock.patch.object(
                objects.InstanceList, 'get_by_host_and_node',
                return_value=objects.InstanceList(objects=instances)), (
                mock.patch.object(
                    objects.MigrationList, 'get_in_progress_and_error',
                    return_value=objects.MigrationList(objects=[]))), (
                mock.patch.object(
                    objects.PciDeviceList, 'get_by_compute_node',
                    return_value=objects.PciDeviceList(objects=[]))), (
                mock.patch('nova.compute.utils.is_volume_backed_instance',
                           return_value=False)):
            yield

    def _check(self, url: str) -> None:
        """Have the tracker run passes, and read what is in the table."""
        manager = enginefacade.transaction_context()
        manager.configure(connection=url)
        context = nova_context.get_admin_context()
        context.db_connection = manager
        engine = manager.writer.get_engine()
        models.BASE.metadata.create_all(
            engine, [models.ComputeNode.__table__])
        tracker = self._tracker()
        with self._instances():
            for _ in range(2):
                tracker.update_available_resource(context, _POOL)
        row = objects.ComputeNode.get_by_host_and_nodename(
            context, 'me', _POOL)
        self.assertEqual(
            (bounds.LARGEST, bounds.LARGEST, bounds.LARGEST, _INSTANCES),
            (row.memory_mb, row.memory_mb_used, row.free_ram_mb,
             row.running_vms))
        # What fits is as it is.
        self.assertEqual(
            (_NODES - _INSTANCES) * 30000, row.free_disk_gb)
        self.assertEqual(_INSTANCES * 512, row.vcpus_used)
        # The tracker goes on to count exactly.
        self.assertEqual(
            _INSTANCES * _MEMORY + CONF.reserved_host_memory_mb,
            tracker.compute_nodes[_POOL].memory_mb_used)

    def test_mariadb(self):
        with mock.patch.dict(os.environ, PATH=os.pathsep.join(
                [os.environ['PATH'], '/usr/sbin'])):
            server = self.useFixture(mysql.MySQLDriver())
        self._check(
            'mysql+pymysql://root@localhost/pifpaf?unix_socket='
            f'{server.socket}&charset=utf8mb4')

    def test_postgresql(self):
        self._check(self.useFixture(postgresql.PostgreSQL()).url)
