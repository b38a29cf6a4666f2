# SPDX-License-Identifier: Apache-2.0

"""Silences and lost answers end by themselves."""

import pathlib
import random
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring.lab.inside import lost
from nova_ironic_ring_tools.soak import troubles
from nova_ironic_ring_tools.soak import world as worlds


class TroublesTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.lab = mock.Mock()
        self.lab.state.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.EnvironmentVariable(
            'NOVA_IRONIC_RING_LAB', str(self.lab.state.directory)))
        self.world = worlds.World(self.lab, random.Random(1), 'network')
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring_tools.soak.troubles._SECONDS', (0.2, 0.2)))

    def test_silence(self):
        process = self.lab.state.process.return_value
        self.assertIn('silent for', troubles.be_silent(self.world))
        process.pause.assert_called_with()
        # One such time after the other.
        self.assertIsNone(troubles.lose_answers(self.world))
        process.resume.assert_not_called()
        self.world.wait_for_answers()
        process.resume.assert_called_with()

    def test_answers(self):
        self.world.wait_for_answers()
        with mock.patch.object(random, 'random', return_value=0.1):
            self.assertIn('lost for', troubles.lose_answers(self.world))
            self.assertTrue(lost.now())
            self.world.wait_for_answers()
            self.assertFalse(lost.now())
