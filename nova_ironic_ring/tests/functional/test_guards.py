# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Slips of others cost nobody a record, a node or a server."""

import contextlib

from nova_ironic_ring.lab import services
from nova_ironic_ring.tests.functional import base


class HiddenNodesTestCase(base.LabTestCase):
    """Ironic hides a few nodes, as a slip of a node's owner would."""

    @contextlib.contextmanager
    def _hidden(self, *hidden: str):
        """Hide nodes from Nova's account: it sees those that it owns."""
        project = self.cloud.identity.find_project(
            'service', ignore_missing=False).id
        seen = [node.id for node in self.cloud.baremetal.nodes()
                if node.id not in hidden]
        ironic = services.Ironic(self.lab.context)
        for node in seen:
            self.cloud.baremetal.update_node(node, owner=project)
        ironic.set_policy({
            'baremetal:node:list_all': '!', 'baremetal:node:list': '',
            'baremetal:node:get': 'project_id:%(node.owner)s'})
        try:
            yield
        finally:
            ironic.set_policy({})
            for node in seen:
                self.cloud.baremetal.update_node(node, owner=None)

    def test_nodes_with_servers_and_a_free_one(self):
        wanted = [self.boot_active(f'hidden-{number}') for number in range(3)]
        nodes = {server.hypervisor_hostname for server in wanted}
        before = self.lab.owners()
        free = next(node for node in before if node not in nodes)
        with self._hidden(*nodes, free):
            # Few enough to be believed deleted.
            self.lab.wait('The loss of the free node',
                          lambda: free not in self.lab.owners())
            self.wait_for_passes(*self.lab.state.computes)
            rest = {node: owner for node, owner in before.items()
                    if node != free}
            self.assertEqual(rest, self.lab.owners())
            self.assertLessEqual(nodes, {
                each.id
                for each in self.cloud.placement.resource_providers()})
            for server in wanted:
                self.assertIn(server.hypervisor_hostname,
                              self.allocations(server))
        self.lab.wait_settled(self.nodes)
        for server in wanted:
            self.assertReboots(server)
