# SPDX-License-Identifier: Apache-2.0

"""Slips of others cost nobody a record, a node or a server."""

from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab import servers
from nova_ironic_ring.tests.functional import base


class HiddenNodesTestCase(base.LabTestCase):
    """Ironic hides a few nodes, as a slip of a node's owner would."""

    def _count_errors(self, node: str) -> int:
        """Count the ERRORs of all services that name a node."""
        return sum(
            ' ERROR ' in line and f'does not show node {node}' in line
            for name in self.lab.state.computes
            for line in self.lab.compute(name).log.read_text().splitlines())

    def test_nodes_with_servers_and_a_free_one(self):
        wanted = [self.boot(f'hidden-{number}') for number in range(3)]
        wanted = [servers.wait_active(self.cloud, each) for each in wanted]
        nodes = {server.hypervisor_hostname for server in wanted}
        before = self.lab.owners()
        free = min(set(before) - nodes)
        with services.Ironic(self.lab.context).hidden({*nodes, free}):
            # Few enough to be believed deleted.
            self.lab.wait('The loss of the free node',
                          lambda: free not in self.lab.owners())
            self.lab.wait('An ERROR for each of the others', lambda: all(
                self._count_errors(node) for node in nodes))
            self.wait_for_passes(*self.lab.state.computes)
            self.assertEqual(
                {node: owner for node, owner in before.items()
                 if node != free}, self.lab.owners())
            providers = self.providers()
            self.assertEqual(set(before) - {free}, providers)
            for server in wanted:
                self.assertEqual([server.hypervisor_hostname],
                                 list(self.allocations(server)))
        self.lab.wait_settled(self.nodes)
        self.assertEqual([1] * 3, [self._count_errors(node) for node in nodes])
        for server in wanted:
            self.assertReboots(server)


class FailingPassesTestCase(base.LabTestCase):
    """A service lives, and cannot reach Ironic."""

    def _restart(self, name: str, sections: services.Sections) -> None:
        self.lab.compute(name).stop()
        self.lab.configure_compute(name, sections)
        self.lab.start_compute(name)

    def test_its_free_nodes_go_to_the_others(self):
        failing, *others = self.lab.state.computes
        self.addCleanup(self._restart, failing, {})
        self.cut_off_ironic(failing, self._restart)
        self.lab.wait(f'No node of {failing}', lambda: (
            failing not in self.lab.owners().values()))
        # It lives.
        (service,) = self.cloud.compute.services(
            host=failing, binary='nova-compute')
        self.assertEqual('up', service.state)
        for other in others:
            self.assertIn(f'{failing} is alive, and its passes have failed',
                          self.lab.compute(other).log.read_text())

        self._restart(failing, {})
        self.lab.wait_settled(self.nodes)
        self.assertIn(failing, self.lab.owners().values())
