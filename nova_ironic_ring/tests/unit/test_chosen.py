# SPDX-License-Identifier: Apache-2.0

"""The lists of functional tests name tests that there are."""

from collections.abc import Iterator
import pathlib
import re
import unittest

from oslotest import base

_FUNCTIONAL = pathlib.Path(__file__).parents[1] / 'functional'
# One choice of several, as "(builds|join)".
_CHOICE = re.compile(r'\(([^()]*\|[^()]*)\)')


def _ids(found: unittest.TestSuite) -> Iterator[str]:
    for each in found:
        if isinstance(each, unittest.TestSuite):
            yield from _ids(each)
        else:
            yield each.id()


def _simple(pattern: str) -> Iterator[str]:
    """Return the patterns that a pattern with choices stands for."""
    choice = _CHOICE.search(pattern)
    if choice is None:
        yield pattern
        return
    for word in choice[1].split('|'):
        yield from _simple(
            pattern[:choice.start()] + word + pattern[choice.end():])


class ChosenTestCase(base.BaseTestCase):

    def test_each_choice_fits_a_test(self):
        loader = unittest.TestLoader()
        tests = list(_ids(loader.discover(
            str(_FUNCTIONAL), top_level_dir=str(_FUNCTIONAL.parents[2]))))
        self.assertEqual([], loader.errors)
        self.assertGreater(len(tests), 100)
        for name in 'releases.txt', 'long.txt':
            lines = [line for line
                     in (_FUNCTIONAL / name).read_text().splitlines()
                     if line.strip() and not line.startswith('#')]
            self.assertEqual([], [
                pattern for line in lines for pattern in _simple(line)
                if not any(re.search(pattern, test) for test in tests)], name)
