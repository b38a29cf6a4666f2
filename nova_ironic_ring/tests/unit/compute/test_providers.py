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

"""The resource providers of a service, in Placement itself."""

from oslo_utils import uuidutils

from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.core import pools
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import real_placement
from nova_ironic_ring.tests.unit.compute import base
from nova_ironic_ring.tests.unit.compute import test_pool_driver

NODES = fake_nova.NODES
CLASS = 'CUSTOM_BAREMETAL'
LICENSE = 'CUSTOM_LICENSE'
#: What provider.yaml says, as Nova's tracker has read it.
CONFIGURED = {'$COMPUTE_NODE': {
    '__source_file': 'provider.yaml', 'inventories': {'additional': [
        {LICENSE: {'total': 10, 'reserved': 2, 'min_unit': 1, 'max_unit': 10,
                   'step_size': 1, 'allocation_ratio': 1.0}}]}}}


class RealPlacementTestCase(base.DriverTestCase):
    """The service me, whose tracker writes to Placement itself."""

    def setUp(self):
        super().setUp()
        self.real = self.useFixture(real_placement.RealPlacement())
        self.use_placement()

    def use_placement(self, **configured):
        """Have the service begin with an empty cache, as after a restart."""
        self.client = self.real.client()
        self.me.manager.reportclient = self.client
        self.driver.virtapi.reportclient = self.client
        self.configured = configured
        self.me.manager.rt.provider_configs = configured

    def track(self, *places):
        """Run a pass, and write the providers of some compute nodes.

        :param places: their names; none for all that are listed
        """
        listed = self.me.run_pass()
        for place in places or sorted(listed):
            self.real.track(self.client, (fake_nova.key(place), place),
                            self.me.driver, self.configured)
        self.nova.advance()


class ClassTestCase(RealPlacementTestCase):
    """What a provider.yaml adds to nodes, with the ring driver."""

    def setUp(self):
        super().setUp()
        self.settle()
        self.place = min(self.me.run_pass())
        self.uuid = fake_nova.key(self.place)

    def test_class_of_its_own_provider_yaml(self):
        self.use_placement(**CONFIGURED)
        for _ in range(2):
            self.track(self.place)
            self.assertEqual((10, 2), self.real.inventories(
                self.uuid)[LICENSE])
        self.assertTrue(self.real.allocate(
            uuidutils.generate_uuid(), self.uuid, CLASS, LICENSE))
        # And where the driver's own inventory changes.
        self.cloud.nodes[NODES[0]].is_ready = False
        self.track(self.place)
        self.assertEqual((10, 2), self.real.inventories(self.uuid)[LICENSE])

    def test_class_that_is_used_and_not_configured_here(self):
        self.use_placement(**CONFIGURED)
        self.track(self.place)
        instance = uuidutils.generate_uuid()
        self.assertTrue(self.real.allocate(
            instance, self.uuid, CLASS, LICENSE))
        self.use_placement()
        self.track(self.place)
        self.assertEqual({CLASS, LICENSE},
                         self.real.inventories(self.uuid).keys())
        self.client.delete_allocation_for_instance(
            self.real.context, instance, force=True)
        self.track(self.place)
        self.assertEqual({CLASS}, self.real.inventories(self.uuid).keys())

    def test_class_that_is_neither_used_nor_configured_here(self):
        self.use_placement(**CONFIGURED)
        self.track(self.place)
        self.use_placement()
        self.track(self.place)
        self.assertEqual({CLASS}, self.real.inventories(self.uuid).keys())


class PoolClassTestCase(ClassTestCase):
    """The same of pools."""

    def start(self):
        self.cloud.rows.clear()
        for host in 'a', 'b':
            del self.cloud.services[host]
        self.nova.computes.clear()
        return self.nova.compute('me', pool_driver.IronicPoolDriver)

    def test_pool_whose_nodes_are_hidden(self):
        self.use_placement(**CONFIGURED)
        self.track(self.place)
        # It is restarted, and knows none of them.
        self.cloud.nodes.clear()
        self.nova.computes.clear()
        self.me = self.nova.compute('me', pool_driver.IronicPoolDriver)
        self.driver = self.me.driver
        self.use_placement(**CONFIGURED)
        for _ in range(2):
            self.track(self.place)
        found = self.real.inventories(self.uuid)
        self.assertEqual({CLASS: (len(NODES), len(NODES)), LICENSE: (10, 2)},
                         found)


class ReservedByPeerTestCase(RealPlacementTestCase):
    """A peer alone takes this service for lost, and reserves its pool."""

    start = PoolClassTestCase.start

    def test_pool_is_open_again_after_a_few_passes(self):
        # Nova's client reads nothing anew by itself.
        self.nova.conf.config(
            group='compute', resource_provider_association_refresh=0)
        self.settle()
        self.track()
        pool, provider = test_pool_driver.POOL, pools.uuid_of(
            test_pool_driver.POOL)
        expected = {CLASS: (len(NODES), 0)}
        self.assertEqual(expected, self.real.inventories(provider))
        self.real.port().reserve_all(pool)
        self.assertEqual({CLASS: (len(NODES), len(NODES))},
                         self.real.inventories(provider))
        for _ in range(5):
            self.track()
        self.assertEqual(expected, self.real.inventories(provider))
