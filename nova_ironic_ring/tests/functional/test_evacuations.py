# SPDX-License-Identifier: Apache-2.0

"""Evacuations, which servers of Ironic cannot have, are refused."""

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.tests.functional import base
from nova_ironic_ring.tests.functional import test_failover


class EvacuationTestCase(test_failover._FailoverTestCase):
    """Somebody asks for what servers of Ironic cannot have."""

    def _evacuate(self, server: sdk_server.Server, status: int = 0) -> None:
        self.run_program('openstack', 'server', 'evacuate', server.id,
                         status=status)

    def _migrations(self, server: sdk_server.Server) -> list[str]:
        """Return what has become of the evacuations of a server."""
        with self.lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute(
                "SELECT status FROM migrations WHERE deleted = 0 AND "
                "migration_type = 'evacuation' AND instance_uuid = %s "
                'ORDER BY id', (server.id,))
            return [status for status, in cursor.fetchall()]

    def _wait_refused(self, server: sdk_server.Server) -> None:
        self.lab.wait('The end of the evacuation', lambda: (
            self.show(server).task_state is None))
        self.assertEqual(('ACTIVE', self.dead), (
            self.show(server).status, self.show(server).compute_host))

    def test_before_and_after_a_takeover(self):
        (server,) = self._boot_active('evacuated')
        before = self.allocations(server)
        self.lab.compute(self.dead).kill()
        self.wait_down(self.dead)
        # As Masakari asks for it.
        self._evacuate(server)
        self._wait_refused(server)
        self.assertEqual(['failed'], self._migrations(server))
        self.assertEqual(before, self.allocations(server))
        self.force_down(self.dead)
        self._wait_taken_over(server)
        self.assertEqual('ACTIVE', self.show(server).status)
        # The service that it is with lives.
        self._evacuate(server, status=1)
        self.assertEqual(['failed'], self._migrations(server))
        taker = self.show(server).compute_host
        self._bring_back()
        self.wait_for_passes(self.dead)
        self.assertEqual(('ACTIVE', taker), (
            self.show(server).status, self.show(server).compute_host))
        self.assertEqual(1, len(self.allocations(server)))
        self.assertReboots(server)

    def test_service_that_comes_back_first(self):
        (server,) = self._boot_active('evacuated')
        before = self.allocations(server)
        self.lab.compute(self.dead).kill()
        self.wait_down(self.dead)
        with self.frozen(*self.takers):
            self._evacuate(server)
            # The message waits for the destination.
            self.lab.wait('A second place', lambda: (
                len(self.allocations(server)) == 2))
            self.lab.start_compute(self.dead)
            self._wait_refused(server)
            self.assertEqual(['failed'], self._migrations(server))
            self.assertEqual(before, self.allocations(server))
        for taker in self.takers:
            self.wait_for_passes(taker)
        self._wait_refused(server)
        self.assertEqual(before, self.allocations(server))
        self.assertReboots(server)


class PoolEvacuationTestCase(EvacuationTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=12)
