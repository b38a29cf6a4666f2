# SPDX-License-Identifier: Apache-2.0

"""The member records of services, as operators of Nova meet them."""

from nova_ironic_ring.core.values import member
from nova_ironic_ring.lab.running import schema
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.tests.functional import base


class _RecordsTestCase(base.LabTestCase):
    """What the tests of records share."""

    def setUp(self):
        super().setUp()
        self.hosts = list(self.lab.state.computes)

    def _rows(self) -> dict[str, str]:
        """Return the services that have records, by the UUID of the record."""
        with self.lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute(
                'SELECT uuid, host FROM compute_nodes WHERE deleted = 0 '
                f"AND hypervisor_hostname LIKE '%{member.SUFFIX}'")
            return dict(cursor.fetchall())

    def _providers(self) -> dict[str, str]:
        """Return the providers of records: the name of each, by its UUID."""
        return {each.id: each.name
                for each in self.cloud.placement.resource_providers()
                if member.is_member(each.name)}

    def _has(self, *hosts: str) -> bool:
        """Return whether just these services have records and providers."""
        return self._rows() == {
            member.uuid_of(host): host for host in hosts} and (
            self._providers() == {
                member.uuid_of(host): member.name(host) for host in hosts})

    def _manage(self, *command: str) -> None:
        schema.run(self.lab.state.directory, (
            *self.lab.nova.manage, *command))


class RingTestCase(_RecordsTestCase):

    def test_what_operators_see(self):
        self.assertTrue(self._has(*self.hosts))
        found = {each.id: each
                 for each in self.cloud.compute.hypervisors(details=True)}
        self.assertLessEqual({*self._rows()}, found.keys())
        classes = {tenant.placement_class(node.resource_class)
                   for node in self.cloud.baremetal.nodes(details=True)}
        for host in self.hosts:
            shown = found[member.uuid_of(host)]
            self.assertEqual(
                (member.name(host), 'ironic', 'up', 'enabled'),
                (shown.name, shown.hypervisor_type, shown.state,
                 shown.status))
            # No build comes to it, though provider.yaml may add a class.
            self.assertTrue(classes.isdisjoint(self.cloud.placement.get(
                f'/resource_providers/{shown.id}/inventories'
            ).json()['inventories']))

    def test_records_that_are_deleted(self):
        first, second = self.hosts[:2]
        with self.lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute(
                'UPDATE compute_nodes SET deleted = id, deleted_at = '
                'UTC_TIMESTAMP() WHERE uuid = %s', (member.uuid_of(first),))
        for host in first, second:
            self.cloud.placement.delete(
                f'/resource_providers/{member.uuid_of(host)}')
        self.lab.wait('All records again', lambda: self._has(*self.hosts))
        # And its peers read it.
        self.lab.wait_settled(self.nodes)

    def test_service_that_is_deleted(self):
        *others, host = self.hosts
        self.addCleanup(self.lab.discover_hosts)
        self.addCleanup(self.lab.start_compute, host)
        self.lab.compute(host).stop()
        (service,) = self.cloud.compute.services(
            host=host, binary='nova-compute')
        self.cloud.compute.delete_service(service)
        self.assertTrue(self._has(*others))
        self.lab.wait('All nodes with the others', lambda: (
            self.nodes == sum(self.lab.shares().get(other, 0)
                              for other in others)))
        self.lab.start_compute(host)
        self.lab.wait('Its record again', lambda: self._has(*self.hosts))


class PoolTestCase(RingTestCase):
    """The same with pools."""

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=12)


class NodeMoveTestCase(_RecordsTestCase):
    """``nova-manage db ironic_compute_node_move``, as upstream has it."""

    def test_node_with_a_server(self):
        target, *others, source = self.hosts
        server = self.boot_active('moved', source)
        node = server.hypervisor_hostname
        self.addCleanup(self.lab.start_compute, source)
        self.addCleanup(self.force_down, source, False)
        with self.frozen(target, *others):
            self.lab.compute(source).kill()
            self.force_down(source)
            self._manage('db', 'ironic_compute_node_move',
                         '--ironic-node-uuid', node,
                         '--destination-host', target)
            self.assertEqual(target, self.show(server).compute_host)
        self.lab.wait('The node with its new service', lambda: (
            self.lab.owners().get(node) == target
            and self.has_place(self.show(server))))
        self.assertReboots(self.show(server))
        self.assertEqual(target, self.show(server).compute_host)
