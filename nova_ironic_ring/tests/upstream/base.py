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

"""Nova's own tests of its ironic driver, derived for one of ours."""

from collections.abc import Mapping
import importlib
import importlib.util
import types
import unittest

import fixtures
import nova.conf
from nova import objects
from oslotest import base

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core import cloud as clouds
from nova_ironic_ring.tests.fixtures import fake_nova

CONF = nova.conf.CONF
_THEIRS = 'nova.tests.unit.virt.ironic.test_driver'
_DRIVER = 'nova.virt.ironic.driver.IronicDriver'

#: By the test case's name and the test's: why it is left out, and which test
#: of our own, below tests.unit, stands for it.
LeftOut = Mapping[str, Mapping[str, tuple[str, str]]]


class _LoneService(fake_nova.FakeNova):
    """A Nova that knows of this service alone, and of no node.

    Nova's tests answer what its own driver asks of the database; this answers
    the rest. Their instances have no records, and some are no instances.
    """

    def __init__(self) -> None:
        super().__init__(clouds.Cloud())
        self.cloud.beat(CONF.host)

    def instance(self, uuid: str) -> objects.Instance:
        return objects.Instance(uuid=uuid, host=None, system_metadata={})


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
            nova = self.useFixture(_LoneService())
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
    """The tests that are left out are there, and others stand for them."""

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
