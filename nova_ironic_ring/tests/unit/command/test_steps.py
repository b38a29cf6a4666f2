# SPDX-License-Identifier: Apache-2.0

"""Tests of what comes of steps."""

from oslotest import base

from nova_ironic_ring.command import steps


class StepsTestCase(base.BaseTestCase):

    def test_worst(self):
        all_outcomes = [steps.DONE, steps.NOT_DONE, steps.NOT_YET,
                        steps.failed(ValueError('no'))]
        for count, worst in enumerate(steps.ResultCode(value) for value in (
                'done', 'done', 'not done', 'not done in time', 'failed')):
            self.assertEqual(worst, steps.worst({
                steps.PlannedStep(
                    steps.StepAction.DELETE_RECORD, str(number), ''): each
                for number, each in enumerate(all_outcomes[:count])}))
