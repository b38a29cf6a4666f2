# SPDX-License-Identifier: Apache-2.0

"""Nodes whose owner has written something into them that cannot be."""

import ddt

from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import shapes
from nova_ironic_ring.tests.functional import base


@ddt.ddt
class RingTestCase(base.LabTestCase):

    def _free_node(self) -> str:
        return min(node.id for node in self.cloud.baremetal.nodes(
            details=True, associated=False)
            if node.resource_class == 'baremetal')

    @ddt.data(*shapes.IMPOSSIBLE)
    def test_node_spoils_nothing_else(self, nonsense):
        node = self._free_node()
        owner = self.lab.connect('lab-system').baremetal
        said = owner.get_node(node).properties
        self.addCleanup(self.lab.wait_settled, self.nodes)
        self.addCleanup(owner.patch_node, node, [
            {'op': 'replace', 'path': '/properties', 'value': said}])
        owner.patch_node(node, [
            {'op': 'replace', 'path': '/properties', 'value': nonsense}])
        # Each says that its passes work, and has all its nodes.
        for _ in range(2):
            self.wait_for_passes(*self.lab.state.computes)
        self.lab.wait_settled(self.nodes)
        log = ''.join(
            self.lab.compute(name).log.read_text()
            for name in self.lab.state.computes)
        self.assertIn(f'Node {node} has impossible properties or traits in '
                      'Ironic', log)
        server = self.boot_active('beside')
        servers.delete(self.cloud, [server])


class PoolTestCase(RingTestCase):

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=12)
