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


from oslotest import base

from nova_ironic_ring import vanished


class TooManyTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.asked: list[str] = []

    def _check(self, missing: int, total: int, limit: int = 20,
               kept: int = 0) -> bool:
        """Say whether so many are too many, some of which still exist."""
        def is_deleted(node: str) -> bool:
            self.asked.append(node)
            return int(node) >= kept
        self.asked.clear()
        return vanished.is_too_many(
            map(str, range(missing)), total, limit, is_deleted)

    def test_none(self):
        self.assertFalse(self._check(0, 0))
        self.assertEqual([], self.asked)

    def test_handful(self):
        self.assertFalse(self._check(5, 5))
        self.assertFalse(self._check(5, 5, limit=0))
        self.assertTrue(self._check(6, 6))

    def test_share(self):
        self.assertFalse(self._check(20, 100))
        self.assertEqual([], self.asked)
        self.assertTrue(self._check(21, 100))

    def test_no_limit(self):
        self.assertFalse(self._check(100, 100, limit=100))

    def test_no_more_are_asked_for_than_it_takes(self):
        self.assertTrue(self._check(1000, 1000))
        self.assertEqual(201, len(self.asked))

    def test_those_that_only_left_the_group(self):
        self.assertFalse(self._check(50, 100, kept=30))
        self.assertTrue(self._check(50, 100, kept=29))
