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

"""Nova's own tests of its ironic driver, run on ours.

What is a drop-in has to pass them. Left out are the tests that look into the
ring inside of Nova's driver, which ours does not use; each is named here with
its reason, and with the test of our own for the behaviour that it is about.
"""

import unittest

from nova.virt.ironic import driver as nova_driver

from nova_ironic_ring.compute import driver
from nova_ironic_ring.tests.upstream import base

_ITS_RING = "replaces the ring of Nova's driver by a mock and asks that one"
_NO_FALLBACK = ('wants all nodes of an Ironic that is too old for a filter, '
                'where ours lists none and says which version it needs')

_NO_RESOURCES = ("has a string for a node's resources, where ours writes into "
                 'their statistics')
_NOT_WHAT_IT_IS = {
    'test_get_available_resource': (
        _NO_RESOURCES,
        'compute.test_driver.StatsTestCase.test_node_that_was_not_decided_on'),
    'test_get_available_resource_with_cache': (
        _NO_RESOURCES,
        'compute.test_driver.CacheTestCase.test_answers_come_from_it'),
    'test_detach_interface': (
        'has a string for an instance, where ours asks whose it is',
        'compute.test_guards.GuardsTestCase.test_own_instance'),
}

#: Why a test is left out, and which one of ours stands for it.
LEFT_OUT = {
    'IronicDriverTestCase': _NOT_WHAT_IT_IS,
    'IronicDriverSyncTestCase': _NOT_WHAT_IT_IS,
    'HashRingTestCase': {
        'test_hash_ring_refreshed_on_init': (
            'wants init_host to build the ring of Nova\'s driver, where ours '
            'builds one in each pass and init_host checks the configuration',
            'compute.test_service.InitHostTestCase.test_bad_peer_list'),
    },
    'NodeCacheTestCase': {
        'test__refresh_cache': (
            _ITS_RING,
            'compute.test_driver.PassTestCase.test_nodes_by_the_ring'),
        'test__refresh_cache_multiple_services': (
            _ITS_RING,
            'compute.test_driver.PassTestCase.test_nodes_by_the_ring'),
        'test__refresh_cache_our_instances': (
            _ITS_RING,
            'compute.test_driver.PassTestCase.test_own_instances_always'),
        'test__refresh_cache_their_instances': (
            _ITS_RING,
            'compute.test_driver.PassTestCase.test_instances_of_others_never'),
        'test__refresh_cache_same_host_different_case': (
            _ITS_RING,
            'compute.test_driver.PassTestCase.test_host_names_in_any_case'),
        'test__refresh_cache_partition_key': (
            _ITS_RING,
            'compute.test_driver.PartitioningTestCase.test_conductor_group'),
        'test__refresh_cache_partition_key_old_api': (
            _NO_FALLBACK,
            'compute.test_driver.PartitioningTestCase.'
            'test_ironic_too_old_for_groups'),
        'test__refresh_cache_shard': (
            _ITS_RING,
            'compute.test_driver.PartitioningTestCase.test_shard'),
        'test__refresh_cache_shard_and_conductor_group': (
            _ITS_RING,
            'compute.test_driver.PartitioningTestCase.test_shard_of_a_group'),
        'test__refresh_cache_shard_and_conductor_group_skip_shard': (
            _NO_FALLBACK,
            'compute.test_driver.PartitioningTestCase.'
            'test_ironic_too_old_for_shards'),
    },
}


theirs = base.Suite(driver.IronicRingDriver, LEFT_OUT)
# Under the names that they have in Nova.
globals().update(theirs.classes(__name__))


class LeftOutTestCase(base.LeftOutTestCase):
    """The list above is neither out of date nor without amends."""

    SUITE = theirs

    def test_the_others_see_our_driver(self):
        theirs = globals()['IronicDriverTestCase']
        seen = []

        class Spy(theirs):
            def test_spy(self):
                seen.append(type(self.driver))
                seen.append(nova_driver.IronicDriver)

        Spy('test_spy').run(unittest.TestResult())
        self.assertEqual([driver.IronicRingDriver] * 2, seen)
