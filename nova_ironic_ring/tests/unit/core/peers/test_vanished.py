# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from nova_ironic_ring.core.peers import vanished

WINDOW = 600


class GuardTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.guard = vanished.Guard()
        self.asked: list[str] = []

    def _look(self, missing: int, total: int, percent: int = 20,
              kept: int = 0, at: float = 0, unnamed: int = 0) -> bool:
        """Say whether so many are too many, some of which still exist."""
        def is_deleted(node: str) -> bool:
            self.asked.append(node)
            return int(node) >= kept
        self.asked.clear()
        self.guard = vanished.look(
            self.guard, vanished.Missing(
                list(map(str, range(missing))), total, is_deleted, unnamed),
            vanished.Limits(percent, WINDOW), at)
        return self.guard.has_too_many

    def test_none(self):
        self.assertFalse(self._look(0, 0))
        self.assertEqual([], self.asked)

    def test_handful(self):
        self.assertFalse(self._look(5, 5))
        self.assertFalse(self._look(5, 5, percent=1))
        self.assertTrue(self._look(6, 6))

    def test_none_may_vanish(self):
        self.assertFalse(self._look(0, 100, percent=0))
        self.assertTrue(self.guard.is_closed)
        # One that has only left the group is no matter.
        self.assertFalse(self._look(1, 100, percent=0, kept=1))
        self.assertTrue(self._look(1, 100, percent=0))
        self.assertTrue(self._look(0, 100, percent=0, unnamed=1))

    def test_share(self):
        self.assertFalse(self._look(20, 100))
        self.assertEqual([], self.asked)
        self.assertTrue(self._look(21, 100))

    def test_no_limit(self):
        self.assertTrue(self._look(100, 100))
        self.assertFalse(self._look(100, 100, percent=100))

    def test_no_more_are_asked_for_than_needed(self):
        self.assertTrue(self._look(1000, 1000))
        self.assertEqual(201, len(self.asked))

    def test_those_that_only_left_the_group(self):
        self.assertFalse(self._look(50, 100, kept=30))
        self.assertTrue(self._look(50, 100, kept=29))

    def test_those_without_a_name(self):
        def look(unnamed, missing=0):
            self.asked.clear()
            return self._look(missing, 100, unnamed=unnamed)
        self.assertFalse(look(20))
        self.assertTrue(look(21))
        self.assertFalse(look(15, 5))
        self.assertEqual([], self.asked)
        self.assertTrue(look(15, 6))
        self.assertTrue(look(21, 60))

    def test_there_again(self):
        self.assertTrue(self._look(50, 100))
        self.assertFalse(self._look(0, 100))

    def test_one_after_the_other(self):
        for number in range(20):
            self.assertFalse(self._look(1, 100 - number, at=number))
            self.guard.note(f'gone-{number}', number)
        self.assertTrue(self._look(1, 80, at=20))
        self.assertFalse(self._look(0, 80, at=20))
        # Five of them are forgotten: it is a share of 95 of which 15 are gone.
        self.assertTrue(self._look(1, 80, at=WINDOW - 1))
        self.assertFalse(self._look(4, 80, at=WINDOW + 4))
        self.assertTrue(self._look(5, 80, at=WINDOW + 4))

    def test_one_that_is_missing_still_counts_once(self):
        for number in range(5):
            self.guard.note(str(number), 0)
        self.assertFalse(self._look(5, 5))

    def test_those_without_a_name_count_as_long(self):
        self.guard.note_unnamed(2, 0)
        self.guard.note_unnamed(3, 10)
        self.assertTrue(self._look(1, 20, at=WINDOW - 1))
        self.assertFalse(self._look(2, 20, at=WINDOW))
        self.assertTrue(self._look(3, 20, at=WINDOW))
        self.assertFalse(self._look(5, 20, at=WINDOW + 10))

    def test_copy_shares_nothing(self):
        before = vanished.Guard()
        after = before.copied()
        self.assertEqual(before, after)
        after.note('node', 1)
        self.assertEqual(vanished.Guard(), before)
        self.assertEqual({'node': 1}, after.deleted)

    def test_nodes_that_are_hidden_after_the_look(self):
        self.assertFalse(self._look(8, 8, kept=8))
        believed = 0
        for number in range(8):
            if not self.guard.is_closed:
                believed += 1
                self.guard.note(str(number), 0)
        self.assertEqual(5, believed)
        self.assertFalse(self.guard.has_too_many)
        self.assertTrue(self.guard.is_closed)
