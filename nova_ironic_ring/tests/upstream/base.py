# SPDX-License-Identifier: Apache-2.0

"""Nova's own tests of its ironic driver, derived for one of ours."""

from collections.abc import Mapping
import importlib
import importlib.util
import sys
import types
import unittest

import fixtures
import nova.conf
from nova import objects
from nova.virt.ironic import driver as nova_driver
from oslotest import base

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.fixtures import fake_nova

CONF = nova.conf.CONF
_THEIRS = 'nova.tests.unit.virt.ironic.test_driver'
_DRIVER = 'nova.virt.ironic.driver.IronicDriver'

#: By the test's name: why it is left out, and which test of our own, below
#: tests.unit, stands for it.
LeftOutTests = Mapping[str, tuple[str, str]]
#: The same, by the test case's name.
LeftOut = Mapping[str, LeftOutTests]

_ITS_RING = "replaces the ring of Nova's driver by a mock and asks that one"
_NO_FALLBACK = ('wants all nodes of an Ironic that is too old for a filter, '
                'where ours lists none and says which version it needs')
_NODE_CACHE = {
    'test__refresh_cache': _ITS_RING,
    'test__refresh_cache_multiple_services': _ITS_RING,
    'test__refresh_cache_our_instances': _ITS_RING,
    'test__refresh_cache_their_instances': _ITS_RING,
    'test__refresh_cache_same_host_different_case': _ITS_RING,
    'test__refresh_cache_partition_key': _ITS_RING,
    'test__refresh_cache_partition_key_old_api': _NO_FALLBACK,
    'test__refresh_cache_shard': _ITS_RING,
    'test__refresh_cache_shard_and_conductor_group': _ITS_RING,
    'test__refresh_cache_shard_and_conductor_group_skip_shard': _NO_FALLBACK,
}


def left_out(of_driver: LeftOutTests, of_cache: Mapping[str, str]) -> LeftOut:
    """Name the tests that are left out for a driver of ours.

    :param of_driver: those of the driver's methods, beyond the ones that are
        left out for each of ours
    :param of_cache: the tests of our own that stand for those of the node
        cache, by the name of the test in Nova
    """
    of_driver = {
        'test_detach_interface': (
            'has a string for an instance, where ours asks whose it is',
            'compute.instances.test_guards.GuardsTestCase.test_own_instance'),
        'test_spawn_node_driver_validation_fail': (
            'wants one look at the node, where ours looks again before it is '
            'cleaned up',
            'compute.test_pool_driver.ReserveTestCase.'
            'test_clean_up_of_a_node_that_another_instance_has_by_now'),
        'test_update_provider_tree_no_rc': (
            'wants an error, which the tracker logs with a traceback in each '
            'pass, where ours logs once what the node lacks',
            'compute.test_providers.NoClassTestCase.'
            'test_node_without_a_resource_class'),
        **of_driver}
    return {
        'IronicDriverTestCase': of_driver,
        'IronicDriverSyncTestCase': of_driver,
        'HashRingTestCase': {
            'test_hash_ring_refreshed_on_init': (
                "wants init_host to build the ring of Nova's driver, where "
                'ours builds one in each pass and init_host checks the '
                'configuration',
                'compute.test_service.InitHostTestCase.test_bad_peer_list'),
        },
        'NodeCacheTestCase': {
            test: (reason, of_cache[test])
            for test, reason in _NODE_CACHE.items()},
    }


class _LoneService(fake_nova.FakeNova):
    """A Nova that knows of this service alone, and of no node.

    Nova's tests answer what its own driver asks of the database; this answers
    the rest. Their instances have no records, and some are no instances.
    """

    def __init__(self) -> None:
        super().__init__(clouds.Cloud())
        self.cloud.beat(CONF.host)

    def instance(self, uuid: str) -> objects.Instance:
        return objects.Instance(
            uuid=uuid, host=None, launched_at=None, system_metadata={})


class Suite:
    """Nova's test cases, which take a driver of ours for Nova's."""

    def __init__(self, made: type[upstream.NovaIronicDriver],
                 left_out: LeftOut) -> None:
        """Load Nova's tests once more.

        Their decorators take the class when the module is run, and the tests
        when they run; at all other times Nova has its own.

        :param made: our driver's class
        :param left_out: the tests that are left out
        """
        self.made = made
        self.left_out = left_out
        spec = importlib.util.find_spec(_THEIRS)
        assert spec is not None and spec.loader is not None
        self.module: types.ModuleType = importlib.util.module_from_spec(spec)
        with fixtures.MonkeyPatch(_DRIVER, made):
            spec.loader.exec_module(self.module)

    def classes(self, module: str) -> dict[str, type]:
        """Derive Nova's test cases.

        :param module: the name of the module that they are to be in
        :returns: by the name that they have in Nova
        """
        return {name: self._derive(found, module)
                for name, found in vars(self.module).items()
                if isinstance(found, type)
                and issubclass(found, unittest.TestCase)
                and found.__module__ == _THEIRS}

    def _derive(self, theirs: type[unittest.TestCase], module: str) -> type:
        made = self.made

        def setUp(self):
            self.useFixture(fixtures.MonkeyPatch(_DRIVER, made))
            super(derived, self).setUp()
            # Seconds; some releases of Nova wait the default ten in a test.
            CONF.set_default('serial_console_state_timeout', 1, 'ironic')
            nova = self.useFixture(_LoneService())
            # Nova's tests say what the SDK's client answers. Ours lists the
            # same without it: see tests.unit.adapters.ironic.test_nodes.
            self.useFixture(fixtures.MonkeyPatch(
                'nova_ironic_ring.adapters.upstream.has_own_listing',
                lambda source: True))
            # They also say which fields are read. Ours reads those as well
            # that tell who divides a node.
            self.useFixture(fixtures.MonkeyPatch(
                'nova_ironic_ring.adapters.ironic.nodes._SINCE', {}))
            if hasattr(self, 'driver'):
                compute = nova.compute(CONF.host)
                self.driver.virtapi._compute = compute.manager
                self.driver.virtapi.reportclient = compute.placement

        # What is no method is no test to the loader.
        left_out = dict.fromkeys(self.left_out.get(theirs.__name__, ()))
        derived = type(theirs.__name__, (theirs,), {
            '__module__': module, 'setUp': setUp, **left_out})
        return derived


class LeftOutTestCase(base.BaseTestCase):
    """The list of tests that are left out is right, and no test escapes it.

    The module of a derived class has Nova's test cases under their names.
    """

    SUITE: Suite

    def test_each_is_there_in_nova_and_stood_for_by_one_of_ours(self):
        for name, tests in self.SUITE.left_out.items():
            for test, (reason, ours) in tests.items():
                self.assertTrue(callable(getattr(
                    getattr(self.SUITE.module, name), test)))
                self.assertNotEqual('', reason)
                module, case, method = ours.rsplit('.', 2)
                found = importlib.import_module(
                    f'nova_ironic_ring.tests.unit.{module}')
                self.assertTrue(callable(
                    getattr(getattr(found, case), method)))

    def test_the_others_see_our_driver(self):
        theirs = getattr(sys.modules[type(self).__module__],
                         'IronicDriverTestCase')
        seen = []

        class Spy(theirs):
            def test_spy(self):
                seen.append(type(self.driver))
                seen.append(nova_driver.IronicDriver)

        Spy('test_spy').run(unittest.TestResult())
        self.assertEqual([self.SUITE.made] * 2, seen)
