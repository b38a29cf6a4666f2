# SPDX-License-Identifier: Apache-2.0
"""What a plan foretells is what real services then do."""

import collections

from typing import ClassVar

from openstack.compute.v2 import service as sdk_service

from nova_ironic_ring.tests.functional import base

#: The free nodes and the instances of each service that has some.
Shares = dict[str, tuple[int, int]]


class PlanTestCase(base.LabTestCase):

    #: What is decided on a free node, and on one with an instance.
    DECISIONS: ClassVar[tuple[str, str]] = 'KEEP', 'KEEP_INSTANCE'

    def _shares(self) -> Shares:
        """Return what each has, without the command."""
        instances = collections.Counter(
            server.compute_host for server in self.cloud.compute.servers())
        nodes = self._free(instances)
        return {host: (nodes[host], instances[host])
                for host in {*nodes, *instances}}

    def _free(self, instances: collections.Counter[str]
              ) -> collections.Counter[str]:
        """Count the free nodes of each service.

        :param instances: how many instances each has
        """
        held = {node.id for node in self.cloud.baremetal.nodes(details=True)
                if node.instance_id}
        return collections.Counter(
            owner for node, owner in self.lab.owners().items()
            if node not in held)

    def _owners(self) -> dict[str, str]:
        """Return whose each node is."""
        return self.lab.owners()

    def _foretold(self, *change: str) -> Shares:
        """Return what each has after a change, by a plan."""
        return {line['Host']: (line['Nodes after'], line['Instances after'])
                for line in self.read('plan', *change)
                if line['Nodes after'] or line['Instances after']}

    def assertForetold(self, foretold: Shares) -> None:
        """See that a plan comes true, and that nothing is to come then."""
        self.lab.wait(f'What the plan foretells: {foretold}',
                      lambda: self._shares() == foretold)
        self.assertEqual(foretold, self._foretold())

    def _service(self, host: str) -> sdk_service.Service:
        (service,) = self.cloud.compute.services(
            host=host, binary='nova-compute')
        return service

    def _force_down(self, host: str, forced: bool) -> None:
        self.cloud.compute.update_service_forced_down(
            self._service(host), host, 'nova-compute', forced)

    def test_nothing_to_come(self):
        self.assertForetold(self._shares())

    def test_join(self):
        newcomer = self.lab.next_name()
        foretold = self._foretold('--add', newcomer)
        self.assertIn(newcomer, foretold)
        self.lab.add_compute(newcomer)
        self.addCleanup(self.remove_compute, newcomer)
        self.lab.wait_alive(newcomer)
        self.lab.discover_hosts()
        self.assertForetold(foretold)

    def test_drain_and_undrain(self):
        self.boot_active('stays', 'compute-2')
        whole = self._shares()
        foretold = self._foretold('--disable', 'compute-2')
        # Its instance stays with it.
        self.assertEqual((0, 1), foretold['compute-2'])
        self.addCleanup(lambda: self.cloud.compute.enable_service(
            self._service('compute-2')))
        self.cloud.compute.disable_service(self._service('compute-2'))
        self.assertForetold(foretold)

        foretold = self._foretold('--add', 'compute-2')
        self.assertEqual(whole, foretold)
        self.cloud.compute.enable_service(self._service('compute-2'))
        self.assertForetold(foretold)

    def test_death_and_return(self):
        server = self.boot_active('stays', 'compute-2')
        foretold = self._foretold('--remove', 'compute-2')
        # Its instance fails over.
        self.assertNotIn('compute-2', foretold)
        self.assertEqual(1, sum(
            instances for _, instances in foretold.values()))
        self.addCleanup(self.lab.start_compute, 'compute-2')
        self.addCleanup(self._force_down, 'compute-2', False)
        self.lab.compute('compute-2').kill()
        self._force_down('compute-2', True)
        self.assertForetold(foretold)

        taker = self.show(server).compute_host
        foretold = self._foretold('--add', 'compute-2')
        # It gets free nodes, and not its instance.
        self.assertGreater(foretold['compute-2'][0], 0)
        self.assertEqual(0, foretold['compute-2'][1])
        self._force_down('compute-2', False)
        self.lab.start_compute('compute-2')
        # It has nodes before its first heartbeat, and until then a plan still
        # goes by its last one, which may be too old.
        self.lab.wait_alive('compute-2')
        # And until its first pass is recorded, its passes count as failing.
        self.wait_for_passes('compute-2')
        self.assertForetold(foretold)
        self.assertEqual(
            taker, self.show(server).compute_host)

    def test_decisions_are_those_that_come_about(self):
        host = self.lab.state.computes[-1]
        server = self.boot_active('stays', host)
        held = self.node_of(server).id
        free, with_instance = self.DECISIONS
        # One node of each, and that of the server.
        nodes = {owner: node for node, owner in self._owners().items()
                 if node != held}
        for owner, node in nodes.items():
            self.assertEqual(f'{owner}: {free}',
                             self.read('node', 'show', node)['Decision'])
        told = self.read('node', 'show', held)
        self.assertEqual(f'{host}: {with_instance}', told['Decision'])
