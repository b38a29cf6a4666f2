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

"""Tests of what comes of steps."""

from oslotest import base

from nova_ironic_ring.command import steps


class StepsTestCase(base.BaseTestCase):

    def test_worst(self):
        all_outcomes = [steps.DONE, steps.NOT_DONE, steps.NOT_YET,
                        steps.failed(ValueError('no'))]
        for count, worst in enumerate(steps.Result(value) for value in (
                'done', 'done', 'not done', 'not done in time', 'failed')):
            self.assertEqual(worst, steps.worst({
                steps.Step(steps.Action.DELETE_RECORD, str(number), ''): each
                for number, each in enumerate(all_outcomes[:count])}))
