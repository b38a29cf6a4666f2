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

"""Tests of waiting."""

from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import waiting


class WaitingTestCase(base.BaseTestCase):

    def test_what_comes_about(self):
        answers = iter([False, '', True])
        self.assertTrue(waiting.until(lambda: next(answers), 60, 0))
        self.assertEqual([], list(answers))

    def test_what_does_not(self):
        self.assertFalse(waiting.until(lambda: False, 0.05, 0.01))

    def test_it_looks_once_where_there_is_no_time(self):
        self.assertTrue(waiting.until(lambda: True, 0, 0))

    def test_what_fails(self):
        def fail() -> bool:
            raise errors.LabError('It has died.')
        self.assertRaises(errors.LabError, waiting.until, fail, 60, 0)
