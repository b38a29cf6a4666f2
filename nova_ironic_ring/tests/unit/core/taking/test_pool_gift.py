# SPDX-License-Identifier: Apache-2.0

"""Instances in pools that are given to a service that lives."""

import dataclasses

from nova_ironic_ring.core.taking import pool_gift
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import pool_base


class GiftTestCase(pool_base.TakeoverTestCase):
    """An instance of b is given to a."""

    def setUp(self):
        super().setUp()
        self.pool_of_a = self.services['a'].pool.name
        self.nova = clouds.Nova(self.cloud, 'a')
        self.placement = clouds.Placement(self.cloud)

    def give(self):
        return pool_gift.give(self.nova, self.placement, pool_gift.Gift(
            'i0', 'b', self.pool_of_b, self.pool_of_a))

    def allocated(self):
        return {provider for provider, consumers
                in self.cloud.allocations.items() if 'i0' in consumers}

    def test_it_is_with_the_other(self):
        self.assertTrue(self.give())
        self.assertEqual(('a', self.pool_of_a), (
            self.cloud.instances['i0'].host, self.cloud.instances['i0'].node))
        self.assertEqual({pools.uuid_of(self.pool_of_a)}, self.allocated())
        self.run_passes()
        self.assert_whole()

    def test_it_stays_there(self):
        self.give()
        self.run_passes(3)
        self.assertEqual('a', self.cloud.instances['i0'].host)
        self.assert_whole()

    def test_to_a_pool_that_is_full(self):
        for number, node in enumerate(sorted(self.services['a'].pool.free)):
            self.build('a', f'of-a-{number}', node)
        self.run_passes()
        self.assertTrue(self.give())
        self.run_passes()
        self.assert_whole()

    def test_something_is_being_done_with_it(self):
        self.cloud.instances['i0'] = dataclasses.replace(
            self.cloud.instances['i0'], task='rebooting')
        before = self.allocated()
        self.assertFalse(self.give())
        self.assertEqual('b', self.cloud.instances['i0'].host)
        self.assertEqual(before, self.allocated())

    def test_another_was_faster(self):
        self.cloud.allocations[pools.uuid_of(self.pool_of_b)].discard('i0')
        self.cloud.allocations['elsewhere'] = {'i0'}
        self.assertFalse(self.give())
        self.assertEqual('b', self.cloud.instances['i0'].host)

    def test_it_ends_before_the_instance_is_changed(self):
        def die(*_):
            raise KeyboardInterrupt
        self.nova.place_instance = die
        self.assertRaises(KeyboardInterrupt, self.give)
        self.assertEqual({pools.uuid_of(self.pool_of_a)}, self.allocated())
        # Who has the allocation gives it back.
        self.run_passes(2)
        self.assertEqual('b', self.cloud.instances['i0'].host)
        self.assert_whole()
