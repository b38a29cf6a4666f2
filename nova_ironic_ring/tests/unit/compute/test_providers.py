# SPDX-License-Identifier: Apache-2.0

"""The resource providers of a service, in Placement itself."""

import logging
from unittest import mock

import fixtures
from nova import objects
from oslo_utils import uuidutils
import testtools

from nova_ironic_ring.compute import driver
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import real_placement
from nova_ironic_ring.tests.unit.compute import base
from nova_ironic_ring.tests.unit.compute import test_pool_driver

#: Few of them, for Placement takes its time.
NODES = fake_nova.NODES[:9]
CLASS = 'CUSTOM_BAREMETAL'
LICENSE = 'CUSTOM_LICENSE'
#: What provider.yaml says, as Nova's tracker has read it.
CONFIGURED = {'$COMPUTE_NODE': {
    '__source_file': 'provider.yaml', 'inventories': {'additional': [
        {LICENSE: {'total': 10, 'reserved': 2, 'min_unit': 1, 'max_unit': 10,
                   'step_size': 1, 'allocation_ratio': 1.0}}]}}}


@testtools.skipUnless(
    real_placement.WORKS, 'The locks of this Nova are copied with eventlet.')
class RealPlacementTestCase(base.DriverTestCase):
    """The service me, whose tracker writes to Placement itself."""

    def setUp(self):
        super().setUp()
        self.real = self.useFixture(real_placement.RealPlacement())
        self.use_placement()

    def start(self):
        for node in fake_nova.NODES[len(NODES):]:
            del self.cloud.nodes[node]
        return super().start()

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

    def test_class_that_is_used_and_configured_for_another_here(self):
        self.use_placement(**CONFIGURED)
        self.track(self.place)
        self.assertTrue(self.real.allocate(
            uuidutils.generate_uuid(), self.uuid, CLASS, LICENSE))
        self.use_placement(
            **{uuidutils.generate_uuid(): CONFIGURED['$COMPUTE_NODE']})
        self.track(self.place)
        self.assertEqual({CLASS, LICENSE},
                         self.real.inventories(self.uuid).keys())

    def test_class_that_is_used_and_configured_for_others_here(self):
        self.use_placement(**CONFIGURED)
        self.track(self.place)
        self.assertTrue(self.real.allocate(
            uuidutils.generate_uuid(), self.uuid, CLASS, LICENSE))
        # What names a compute node replaces what is for all of them.
        self.use_placement(**CONFIGURED, **{
            self.uuid: {'__source_file': 'provider.yaml'}})
        self.track(self.place)
        self.assertEqual({CLASS, LICENSE},
                         self.real.inventories(self.uuid).keys())

    def test_class_that_is_neither_used_nor_configured_here(self):
        self.use_placement(**CONFIGURED)
        self.track(self.place)
        self.use_placement()
        self.track(self.place)
        self.assertEqual({CLASS}, self.real.inventories(self.uuid).keys())


class NoClassTestCase(RealPlacementTestCase):
    """Nodes without a resource class, with the ring driver."""

    def setUp(self):
        super().setUp()
        self.settle()
        self.place = self.uuid = min(self.me.run_pass())

    def test_node_without_a_resource_class(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.track(self.place)
        self.assertEqual({CLASS}, self.real.inventories(self.uuid).keys())
        self.cloud.nodes[self.place].kind = None
        for _ in range(2):
            self.track(self.place)
        self.assertEqual({}, self.real.inventories(self.uuid))
        self.assertEqual(
            1, log.output.count('has no resource class in Ironic'))
        self.assertNotIn('Traceback', log.output)

    def test_server_on_a_node_that_has_lost_its_resource_class(self):
        self.track(self.place)
        self.assertTrue(self.real.allocate(
            uuidutils.generate_uuid(), self.uuid, CLASS))
        self.cloud.nodes[self.place].kind = None
        self.track(self.place)
        self.assertEqual({CLASS}, self.real.inventories(self.uuid).keys())


class WithPools(base.DriverTestCase):
    """The service alone, with the pool driver."""

    def start(self):
        super().start()
        self.cloud.rows.clear()
        for host in 'a', 'b':
            del self.cloud.services[host]
        self.nova.computes.clear()
        return self.nova.compute('me', pool_driver.IronicPoolDriver)


class PoolClassTestCase(WithPools, ClassTestCase):
    """The same of pools."""

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


class GenerationTestCase(RealPlacementTestCase):
    """Allocations come and go between two writings of an inventory."""

    #: The inventory while the first node is not ready, and afterwards.
    EXPECTED = (1, 1), (1, 0)

    def setUp(self):
        super().setUp()
        # Nova's client reads nothing anew by itself.
        self.nova.conf.config(
            group='compute', resource_provider_association_refresh=0)
        self.settle()
        self.place = min(self.me.run_pass())
        self.uuid = fake_nova.key(self.place)
        self.track(self.place)
        self.of_nova = self.useFixture(
            fixtures.FakeLogger('nova.scheduler.client.report', logging.ERROR))

    def change(self, expected, is_ready):
        self.cloud.nodes[NODES[0]].is_ready = is_ready
        self.track(self.place)
        self.assertEqual(
            {CLASS: expected}, self.real.inventories(self.uuid))

    def test_nova_logs_no_error(self):
        away, back = self.EXPECTED
        instance = uuidutils.generate_uuid()
        self.assertTrue(self.real.allocate(instance, self.uuid, CLASS))
        self.change(away, is_ready=False)
        # By another client, as the API's.
        self.real.client().delete_allocation_for_instance(
            self.real.context, instance, force=True)
        self.change(back, is_ready=True)
        self.assertEqual('', self.of_nova.output)

    def test_provider_is_read_once_more_only_if_it_has_changed(self):
        away, _ = self.EXPECTED
        with mock.patch.object(
                self.client, 'invalidate_resource_provider') as forget:
            self.change(away, is_ready=False)
        forget.assert_not_called()

    def test_placement_that_does_not_tell(self):
        away, _ = self.EXPECTED
        get = self.client.get

        def fail(url, *args, **kwargs):
            if url == f'/resource_providers/{self.uuid}':
                return fake_nova.answer(503)
            return get(url, *args, **kwargs)
        with mock.patch.object(self.client, 'get', fail):
            self.change(away, is_ready=False)


class PoolGenerationTestCase(WithPools, GenerationTestCase):
    """The same of pools."""

    EXPECTED = (len(NODES), 1), (len(NODES), 0)

    def test_node_that_is_released(self):
        self.assertTrue(self.real.allocate(
            uuidutils.generate_uuid(), self.uuid, CLASS))
        self.me.ring.release(NODES[0], self.place)
        self.assertEqual({CLASS: (len(NODES), 1)},
                         self.real.inventories(self.uuid))
        self.assertEqual('', self.of_nova.output)


class ReservedByPeerTestCase(WithPools, RealPlacementTestCase):
    """A peer alone takes this service for lost, and reserves its pool."""

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
            self.nova.advance(60)
            self.track()
        self.assertEqual(expected, self.real.inventories(provider))


class AggregatesTestCase(RealPlacementTestCase):
    """Nova's host aggregates, and those of the providers, with the ring."""

    #: What Nova waits before it asks again for its aggregates, and more.
    LATER = 400

    def setUp(self):
        super().setUp()
        self.zone, self.other, self.own = (
            uuidutils.generate_uuid() for _ in range(3))
        self.nova.aggregates[self.zone] = {'me', 'some-kvm'}
        self.settle()
        self.place = min(self.me.run_pass())
        self.uuid = fake_nova.key(self.place)

    def found(self):
        return self.real.aggregates(self.uuid)

    def restart(self, driver=None):
        """Restart the service, if need be with another driver."""
        if self.me in self.nova.computes:
            self.nova.computes.remove(self.me)
        self.me = self.nova.compute('me', driver or type(self.driver))
        self.driver = self.me.driver
        self.use_placement()
        self.settle()

    def test_new_provider(self):
        self.track(self.place)
        self.assertEqual({self.zone}, self.found())

    def test_node_that_comes_from_another_zone(self):
        self.nova.aggregates[self.other] = {'b'}
        if 'b' not in self.cloud.services:
            self.join('b')
            self.me.run_pass()
        self.real.add(self.uuid, self.place, CUSTOM_BAREMETAL=(1, 0))
        self.real.put_in_aggregates(self.uuid, {self.other})
        self.track(self.place)
        self.assertEqual({self.zone}, self.found())

    def test_node_that_comes_from_one_that_is_drained(self):
        self.nova.aggregates[self.other] = {'drained'}
        self.nova.add_service('drained')
        self.nova.change_service('drained', disabled=True)
        self.real.add(self.uuid, self.place, CUSTOM_BAREMETAL=(1, 0))
        self.real.put_in_aggregates(self.uuid, {self.other})
        self.track(self.place)
        self.assertEqual({self.zone}, self.found())

    def test_what_was_put_there_by_hand_stays(self):
        # One that Nova does not know, and one of hosts without an Ironic.
        self.nova.aggregates[self.other] = {'some-kvm'}
        self.real.add(self.uuid, self.place, CUSTOM_BAREMETAL=(1, 0))
        self.real.put_in_aggregates(self.uuid, {self.other, self.own})
        self.track(self.place)
        self.assertEqual({self.zone, self.other, self.own}, self.found())

    def test_host_that_is_added_and_removed(self):
        self.track(self.place)
        self.nova.aggregates[self.other] = {'me'}
        self.nova.advance(self.LATER)
        self.track(self.place)
        self.assertEqual({self.zone, self.other}, self.found())
        # Nobody of Ironic is in it then.
        self.nova.aggregates[self.other] = set()
        self.nova.advance(self.LATER)
        self.track(self.place)
        self.assertEqual({self.zone}, self.found())

    def test_nova_is_not_asked_for_each_provider(self):
        self.nova.advance(self.LATER)
        self.nova.asked.clear()
        self.track()
        self.assertLess(1, len(self.me.ring.nodes))
        self.assertEqual(1, self.nova.asked.count('aggregates of host'))
        self.nova.asked.clear()
        self.track()
        self.assertNotIn('aggregates of host', self.nova.asked)

    def test_conductor_that_cannot_tell(self):
        asked = []

        def fail(*_, **__):
            asked.append(self.cloud.now)
            # No conductor answers.
            self.cloud.now += 70
            raise ValueError('no [api_database]')
        self.useFixture(fixtures.MockPatchObject(
            objects.AggregateList, 'get_by_host', fail))
        self.restart()
        asked.clear()
        for _ in range(3):
            self.nova.advance(self.LATER)
            self.track(self.place)
            # It is not waited for anew with each provider.
            self.real.track(self.client, (self.uuid, self.place), self.driver)
        self.assertEqual(3, len(asked))
        self.assertEqual(set(), self.found())
        self.assertEqual(
            1, self.log.output.count('Cannot read the host aggregates'))
        self.real.put_in_aggregates(self.uuid, {self.own})
        self.restart()
        self.track(self.place)
        self.assertEqual({self.own}, self.found())


class PoolAggregatesTestCase(WithPools, AggregatesTestCase):
    """The same of pools."""

    def assertPoolsInZone(self):
        for _ in range(4):
            self.track()
        self.assertTrue(self.me.ring.result.found)
        for name in self.me.ring.result.found:
            self.assertEqual({self.zone}, self.real.aggregates(
                pools.uuid_of(name)), name)

    def give_trait(self):
        for node in self.cloud.nodes.values():
            node.kind = pools.Kind(CLASS, frozenset({'CUSTOM_FW2'}))

    def test_all_nodes_get_a_trait(self):
        self.assertPoolsInZone()
        self.give_trait()
        self.assertPoolsInZone()
        self.assertNotIn(self.place, self.me.ring.result.found)

    def test_all_nodes_get_a_trait_while_it_is_down(self):
        self.assertPoolsInZone()
        self.give_trait()
        self.restart()
        self.assertPoolsInZone()

    def test_it_is_disabled_and_enabled_again(self):
        other = self.nova_of_peer()
        self.assertPoolsInZone()
        for disabled in True, False:
            self.nova.change_service('me', disabled=disabled)
            for _ in range(4):
                self.track()
                other.run_pass()
                # Nova's tracker does this with what is not listed.
                for uuid, row in list(self.cloud.rows.items()):
                    if row.owner == 'me' and (
                            row.pool not in self.me.ring.result.found
                            and self.driver.is_node_deleted(row.pool)):
                        del self.cloud.rows[uuid]
                        self.client._delete_provider(uuid)
            self.assertEqual(
                disabled, not self.me.ring.result.found)
        self.assertPoolsInZone()

    def nova_of_peer(self):
        self.nova.add_service('b')
        return self.nova.compute('b', pool_driver.IronicPoolDriver)

    def test_it_has_had_the_ring_driver(self):
        # Two of them show it as well as all.
        for node in NODES[2:]:
            del self.cloud.nodes[node]
        self.cloud.rows.clear()
        for node in NODES[:2]:
            self.nova.own(node, 'me')
        self.restart(driver.IronicRingDriver)
        self.track()
        self.assertEqual({self.zone}, self.real.aggregates(NODES[0]))
        self.restart(pool_driver.IronicPoolDriver)
        self.assertPoolsInZone()
        self.restart(driver.IronicRingDriver)
        for _ in range(4):
            self.track()
        self.assertEqual(set(NODES[:2]), set(self.me.ring.nodes))
        for node in NODES[:2]:
            self.assertEqual({self.zone}, self.real.aggregates(node))

    def test_conductor_that_cannot_tell_of_several_pools(self):
        self.track()
        self.cloud.nodes[NODES[0]].kind = pools.Kind('CUSTOM_OTHER')
        self.useFixture(fixtures.MockPatchObject(
            objects.AggregateList, 'get_by_host', side_effect=ValueError))
        self.restart()
        for _ in range(3):
            self.track()
        first = self.me.ring.nova.first
        self.assertEqual(2, len(self.me.ring.result.found))
        # Nova's API takes the host out of one, and puts it into another.
        self.real.put_in_aggregates(first, {self.own})
        self.nova.advance(self.LATER)
        for _ in range(2):
            self.track()
        (other,) = {pools.uuid_of(name) for name
                    in self.me.ring.result.found} - {first}
        self.assertEqual({self.own}, self.real.aggregates(first))
        self.assertEqual({self.own}, self.real.aggregates(other))
        # What is put there by hand stays, be it before or after a start.
        self.real.put_in_aggregates(other, {self.own, self.other})
        for restart in self.restart, lambda: self.nova.advance(self.LATER):
            restart()
            self.track()
            self.assertEqual({self.own}, self.real.aggregates(first))
            self.assertEqual(
                {self.own, self.other}, self.real.aggregates(other))
        self.real.put_in_aggregates(first, {self.zone})
        self.nova.advance(self.LATER)
        for _ in range(2):
            self.track()
        self.assertEqual(
            {self.zone, self.other}, self.real.aggregates(other))
