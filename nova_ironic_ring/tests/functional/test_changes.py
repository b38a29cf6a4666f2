# SPDX-License-Identifier: Apache-2.0

"""What changes in Ironic while the next pass is an hour away."""

import time

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.tests.functional import base

# Seconds between two requests for what has changed.
_INTERVAL = 5
# The time that a busy machine may take beyond that.
_SLACK = 20


class ChangesTestCase(base.LabTestCase):
    """A service with a record of each node.

    A second one could take the first for lost while that is restarted, and
    reserve its pools until the next pass.
    """

    KIND = base.Kind(computes=1, nodes=12)

    def setUp(self) -> None:
        super().setUp()
        (name,) = self.lab.state.computes
        room = self._room()
        self.addCleanup(self._restart, name, {})
        self._restart(name, {
            'DEFAULT': {'update_resources_interval': 3600},
            'ironic_ring': {'changes_interval': _INTERVAL}})
        self._wait_room(room)
        self.passes = self._passes(name)
        self.baremetal = self.lab.connect('lab-system').baremetal

    def assertNoPass(self) -> None:
        """See that no pass has done it."""
        (name,) = self.lab.state.computes
        self.assertEqual(self.passes, self._passes(name))

    def _restart(self, name: str, overrides: services.Sections) -> None:
        self.lab.configure_compute(name, overrides)
        self.lab.compute(name).kill()
        self.lab.start_compute(name)

    def _room(self) -> int:
        """Count the nodes that Placement has builds come to."""
        found = 0
        for provider in self.cloud.placement.resource_providers():
            said = self.cloud.placement.get(
                f'/resource_providers/{provider.id}/inventories').json()
            found += sum(each['total'] - each['reserved'] for name, each
                         in said['inventories'].items()
                         if name.startswith('CUSTOM_'))
        return found

    def _wait_room(self, nodes: int) -> float:
        """Wait until there is room on so many nodes.

        :returns: how many seconds that has taken
        """
        begin = time.monotonic()
        self.lab.wait(f'Room on {nodes} nodes in Placement',
                      lambda: self._room() == nodes)
        return time.monotonic() - begin

    def _free_node(self) -> str:
        return min(node.id for node in self.baremetal.nodes(
            is_maintenance=False, provision_state='available'))

    def _unset(self, node: str) -> None:
        self.baremetal.unset_node_maintenance(node)

    def test_maintenance(self):
        before, node = self._room(), self._free_node()
        self.addCleanup(self._unset, node)
        self.baremetal.set_node_maintenance(node)
        self.assertLess(self._wait_room(before - 1), _INTERVAL + _SLACK)
        self._unset(node)
        self.assertLess(self._wait_room(before), _INTERVAL + _SLACK)
        self.assertNoPass()

    def test_server_that_comes_and_goes(self):
        before = self._room()
        server = self.boot_active('short')
        node = self.node_of(server).id
        self._delete(server)
        self.lab.wait('The node cleaned', lambda: (
            self.baremetal.get_node(node).provision_state == 'available'))
        self._wait_room(before)
        self.assertEqual('ACTIVE', self._boot_again(node).status)
        self.assertNoPass()

    def _boot_again(self, node: str) -> sdk_server.Server:
        """Boot a server on a node that has been cleaned."""
        return self.boot_active('again', node=node)


class PoolChangesTestCase(ChangesTestCase):
    """The same with pools."""

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=1, nodes=12)

    def _boot_again(self, node: str) -> sdk_server.Server:
        # On whatever node of the kind.
        return self.boot_active('again')
