# SPDX-License-Identifier: Apache-2.0

"""Tests of what the soak prints in the end."""

from collections.abc import Sequence
import contextlib
import io
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring_tools.soak import __main__ as soak
from nova_ironic_ring_tools.soak import acts

_HEAD = '5 minutes, seed 7, full_update_interval 600 s'


class MainTestCase(base.BaseTestCase):

    def _run(self, *results, arguments: Sequence[str] = ()
             ) -> tuple[int, str]:
        """Run the lane, with these results of the drivers."""
        self.soak = self.useFixture(fixtures.MockPatchObject(
            soak, 'soak', side_effect=results)).mock
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = soak.main([
                '--seed', '7', '--minutes', '5', *arguments])
        return status, output.getvalue().rpartition('The results:\n')[2]

    def test_all_is_well(self):
        self.assertEqual((0, (
            f'ring, {_HEAD}\n  1 event happened: boot 1\n'
            '  All is well.\n'
            f'pool, {_HEAD}\n  All is well.\n')), self._run(
                (['1 event happened: boot 1'], []), ([], [])))

    def test_something_is_wrong(self):
        self.assertEqual((1, (
            f'ring, {_HEAD}\n  WRONG: port 1 is left\n'
            f'pool, {_HEAD}\n  All is well.\n')), self._run(
                ([], ['port 1 is left']), ([], [])))

    def test_lab_that_fails(self):
        self.assertEqual((2, (
            f'ring, {_HEAD}\n'
            '  WRONG: The lab has failed: compute-1 has died\n'
            f'pool, {_HEAD}\n  WRONG: port 1 is left\n')), self._run(
                errors.LabError('compute-1 has died'),
                ([], ['port 1 is left'])))

    def test_full_update_interval(self):
        _, said = self._run(([], []), ([], []), arguments=[
            '--full-update-interval', '0'])
        self.assertIn(
            'ring, 5 minutes, seed 7, full_update_interval 0 s\n', said)
        self.assertEqual([mock.call('ring', 5, 7, 0),
                          mock.call('pool', 5, 7, 0)],
                         self.soak.call_args_list)

    def test_story(self):
        story = soak.Story()
        story.happened.update(['boot', 'kill', 'boot'])
        self.assertEqual(['3 events happened: boot 2, kill 1',
                          '0 events refused: none'],
                         list(story.lines()))

    def test_service_that_dies_by_itself(self):
        world = mock.Mock()
        world.lab.check.side_effect = errors.LabError('compute-1 has died')
        story = soak.Story()
        self.assertRaises(errors.LabError, soak._live, world, story, 60)
        self.assertEqual(0, story.refused.total())

    def test_each_act_has_a_name(self):
        names = [act.name for act in acts.ACTS]
        self.assertEqual(len(set(names)), len(names))
