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


import datetime

from oslotest import base

from nova_ironic_ring import vanished

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
WINDOW = 600


class GuardTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.guard = vanished.Guard()
        self.asked: list[str] = []

    def _look(self, missing: int, total: int, limit: int = 20,
              kept: int = 0, now: float = 0) -> bool:
        """Say whether so many are too many, some of which still exist."""
        def is_deleted(node: str) -> bool:
            self.asked.append(node)
            return int(node) >= kept
        self.asked.clear()
        self.guard.look(
            set(map(str, range(missing))), total, limit, is_deleted,
            START + datetime.timedelta(seconds=now), WINDOW)
        return self.guard.closed

    def test_none(self):
        self.assertFalse(self._look(0, 0))
        self.assertEqual([], self.asked)

    def test_handful(self):
        self.assertFalse(self._look(5, 5))
        self.assertFalse(self._look(5, 5, limit=0))
        self.assertTrue(self._look(6, 6))

    def test_share(self):
        self.assertFalse(self._look(20, 100))
        self.assertEqual([], self.asked)
        self.assertTrue(self._look(21, 100))

    def test_no_limit(self):
        self.assertTrue(self._look(100, 100))
        self.assertFalse(self._look(100, 100, limit=100))

    def test_no_more_are_asked_for_than_it_takes(self):
        self.assertTrue(self._look(1000, 1000))
        self.assertEqual(201, len(self.asked))

    def test_those_that_only_left_the_group(self):
        self.assertFalse(self._look(50, 100, kept=30))
        self.assertTrue(self._look(50, 100, kept=29))

    def test_there_again(self):
        self.assertTrue(self._look(50, 100))
        self.assertFalse(self._look(0, 100))

    def test_one_after_the_other(self):
        for number in range(20):
            self.assertFalse(self._look(1, 100 - number, now=number))
            self.guard.note(f'gone-{number}',
                            START + datetime.timedelta(seconds=number))
        self.assertTrue(self._look(1, 80, now=20))
        self.assertFalse(self._look(0, 80, now=20))
        # Five of them are forgotten: it is a share of 95 of which 15 are gone.
        self.assertTrue(self._look(1, 80, now=WINDOW - 1))
        self.assertFalse(self._look(4, 80, now=WINDOW + 4))
        self.assertTrue(self._look(5, 80, now=WINDOW + 4))
