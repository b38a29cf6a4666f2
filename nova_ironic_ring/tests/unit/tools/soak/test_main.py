# SPDX-License-Identifier: Apache-2.0

"""Tests of what the soak prints in the end."""

import contextlib
import io

import fixtures
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring_tools.soak import __main__ as soak
from nova_ironic_ring_tools.soak import acts


class MainTestCase(base.BaseTestCase):

    def _run(self, *results) -> tuple[int, str]:
        """Run the lane, with these results of the drivers."""
        self.useFixture(fixtures.MockPatchObject(
            soak, 'soak', side_effect=results))
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = soak.main(['--seed', '7', '--minutes', '5'])
        return status, output.getvalue().rpartition('The results:\n')[2]

    def test_all_is_well(self):
        self.assertEqual((0, (
            'ring, 5 minutes, seed 7\n  1 things happened: boot 1\n'
            '  All is well.\n'
            'pool, 5 minutes, seed 7\n  All is well.\n')), self._run(
                (['1 things happened: boot 1'], []), ([], [])))

    def test_something_is_wrong(self):
        self.assertEqual((1, (
            'ring, 5 minutes, seed 7\n  WRONG: port 1 is left\n'
            'pool, 5 minutes, seed 7\n  All is well.\n')), self._run(
                ([], ['port 1 is left']), ([], [])))

    def test_lab_that_fails(self):
        self.assertEqual((2, (
            'ring, 5 minutes, seed 7\n'
            '  WRONG: The lab has failed: compute-1 has died\n'
            'pool, 5 minutes, seed 7\n  WRONG: port 1 is left\n')), self._run(
                errors.LabError('compute-1 has died'),
                ([], ['port 1 is left'])))

    def test_story(self):
        story = soak.Story()
        story.happened.update(['boot', 'kill', 'boot'])
        self.assertEqual(['3 things happened: boot 2, kill 1',
                          '0 things were refused: none'],
                         list(story.lines()))

    def test_each_act_has_a_name(self):
        names = [act.name for act in acts.ACTS]
        self.assertEqual(len(set(names)), len(names))
