# SPDX-License-Identifier: Apache-2.0

"""Tests of what shows how costs grow with the nodes."""

import contextlib
import io

import ddt
import fixtures
import nova.conf
from oslotest import base

from nova_ironic_ring_tools.benchmarks import growth
from nova_ironic_ring_tools.benchmarks import growth_command
from nova_ironic_ring_tools.benchmarks import growth_core
from nova_ironic_ring_tools.benchmarks import growth_tracker

CONF = nova.conf.CONF
_NODES = 20


@ddt.ddt
class ScenesTestCase(base.BaseTestCase):
    """What is measured does happen."""

    @ddt.data(*growth_core.SCENES, *growth_command.SCENES)
    def test_in_memory(self, name):
        scenes = {**growth_core.SCENES, **growth_command.SCENES}
        self.assertGreaterEqual(scenes[name](_NODES), 0)

    @ddt.data(*growth_tracker.SCENES)
    def test_below_the_tracker(self, name):
        if 'update_resources_max_workers' not in CONF.compute:
            self.skipTest('The manager of this Nova has other methods.')
        self.useFixture(fixtures.FakeLogger())
        self.assertGreater(growth_tracker.SCENES[name](_NODES), 0)


class MainTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch('logging.disable', int))
        for part in growth_command, growth_tracker:
            self.useFixture(fixtures.MockPatchObject(part, 'SCENES', {}))

    def _run(self, **scenes) -> tuple[int, str]:
        self.useFixture(fixtures.MockPatchObject(
            growth_core, 'SCENES', scenes))
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = growth.main(['--nodes', '10', '20', '40'])
        return status, output.getvalue()

    def test_as_the_nodes(self):
        status, printed = self._run(walk=lambda count: count / 100)
        self.assertEqual(0, status)
        self.assertIn('| walk                     | 0.100 | 0.200 | 0.400 |'
                      '    1.0 |', printed)

    def test_as_their_square(self):
        status, printed = self._run(walk=lambda count: count / 100,
                                    worse=lambda count: count ** 2)
        self.assertEqual(1, status)
        self.assertIn('Grows faster than the nodes do: worse.', printed)
