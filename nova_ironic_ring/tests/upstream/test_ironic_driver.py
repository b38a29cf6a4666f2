# SPDX-License-Identifier: Apache-2.0

"""Nova's own tests of its ironic driver, run on ours.

What is a drop-in has to pass them. Left out are the tests that look into the
ring inside of Nova's driver, which ours does not use; each is named, here or
in base.py, with its reason and the test of our own for the behaviour that it
is about.
"""

from nova_ironic_ring.compute import driver
from nova_ironic_ring.tests.upstream import base

_NO_RESOURCES = ("has a string for a node's resources, where ours writes into "
                 'their statistics')
_DRIVER = 'compute.test_driver.'

LEFT_OUT = base.left_out({
    'test_get_available_nodes': (
        'wants nodes alone, where ours lists the member record as well',
        'compute.test_member_record.MemberRecordTestCase.'
        'test_it_is_listed_first'),
    'test_get_available_resource': (
        _NO_RESOURCES,
        _DRIVER + 'StatsTestCase.test_node_that_was_not_decided_on'),
    'test_get_available_resource_with_cache': (
        _NO_RESOURCES,
        _DRIVER + 'CacheTestCase.test_answers_come_from_it'),
}, {
    'test__refresh_cache': _DRIVER + 'PassTestCase.test_nodes_by_the_ring',
    'test__refresh_cache_multiple_services':
        _DRIVER + 'PassTestCase.test_nodes_by_the_ring',
    'test__refresh_cache_our_instances':
        _DRIVER + 'PassTestCase.test_own_instances_always',
    'test__refresh_cache_their_instances':
        _DRIVER + 'PassTestCase.test_instances_of_others_never',
    'test__refresh_cache_same_host_different_case':
        _DRIVER + 'PassTestCase.test_host_names_in_any_case',
    'test__refresh_cache_partition_key':
        _DRIVER + 'PartitioningTestCase.test_conductor_group',
    'test__refresh_cache_partition_key_old_api':
        _DRIVER + 'PartitioningTestCase.test_ironic_too_old_for_groups',
    'test__refresh_cache_shard':
        _DRIVER + 'PartitioningTestCase.test_shard',
    'test__refresh_cache_shard_and_conductor_group':
        _DRIVER + 'PartitioningTestCase.test_shard_of_a_group',
    'test__refresh_cache_shard_and_conductor_group_skip_shard':
        _DRIVER + 'PartitioningTestCase.test_ironic_too_old_for_shards',
})

theirs = base.Suite(driver.IronicRingDriver, LEFT_OUT)
# Under the names that they have in Nova.
globals().update(theirs.classes(__name__))


class LeftOutTestCase(base.LeftOutTestCase):
    """The list above is neither out of date nor without amends."""

    SUITE = theirs
