# SPDX-License-Identifier: Apache-2.0

"""Nova's own tests of its ironic driver, run on the pool driver.

Their instances are on nodes of Ironic, as those of the ring driver are, and
with such an instance the pool driver does what Nova's does.
"""

from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.tests.upstream import base

_NODES = 'wants the UUIDs of nodes, where ours lists pools'
_DRIVER = 'compute.test_pool_driver.'
_SHARE = 'core.passing.test_pool_passes.ShareTestCase.'
_FREE_NODES = 'adapters.ironic.test_nodes.FreeNodesTestCase.'

LEFT_OUT = base.left_out({
    'test_get_available_nodes': (
        _NODES,
        _DRIVER + 'NodesTestCase.test_one_pool_for_all_nodes_of_a_kind'),
    'test_get_available_resource_with_cache': (
        _NODES, _DRIVER + 'ResourceTestCase.test_identity'),
    'test_get_info_cached': (
        'has a node without a resource class, which is in no pool of ours',
        _DRIVER + 'NodesTestCase.test_power_state_is_answered_from_the_cache'),
    'test_node_is_available_empty_cache': (
        _NODES, _DRIVER + 'NodesTestCase.test_first_question_runs_a_pass'),
    'test_node_is_available_with_cache': (
        _NODES, _DRIVER + 'NodesTestCase.test_pool_is_available'),
}, {
    'test__refresh_cache': _SHARE + 'test_each_node_counts_once',
    'test__refresh_cache_multiple_services':
        _SHARE + 'test_each_node_counts_once',
    'test__refresh_cache_our_instances':
        _SHARE + 'test_instance_counts_for_its_service',
    'test__refresh_cache_their_instances':
        _SHARE + 'test_instance_counts_for_its_service',
    'test__refresh_cache_same_host_different_case':
        'core.values.test_pools.NameTestCase.test_host_in_any_case',
    'test__refresh_cache_partition_key':
        'core.passing.test_pool_passes.ScopeTestCase.'
        'test_instance_outside_the_group_counts',
    'test__refresh_cache_partition_key_old_api':
        'compute.test_driver.PartitioningTestCase.'
        'test_ironic_too_old_for_groups',
    'test__refresh_cache_shard': _FREE_NODES + 'test_scope',
    'test__refresh_cache_shard_and_conductor_group':
        _FREE_NODES + 'test_scope',
    'test__refresh_cache_shard_and_conductor_group_skip_shard':
        _FREE_NODES + 'test_ironic_too_old_for_the_scope',
})

theirs = base.Suite(pool_driver.IronicPoolDriver, LEFT_OUT)
# Under the names that they have in Nova.
globals().update(theirs.classes(__name__))


class LeftOutTestCase(base.LeftOutTestCase):
    """The list above is neither out of date nor without amends."""

    SUITE = theirs
