# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from nova_ironic_ring.core.values import merging
from nova_ironic_ring.core.values import model


@dataclasses.dataclass(frozen=True)
class _Value(merging.Merged):
    number: int = 0
    names: frozenset[str] = frozenset()


class MergeTestCase(unittest.TestCase):
    """What one thread has changed is changed in what another has made."""

    def _is(self, expected, now, before, after):
        with self.subTest(now=now, before=before, after=after):
            self.assertEqual(expected, merging.merge(now, before, after))

    def test_values(self):
        self._is(1, now=1, before=0, after=0)
        self._is(1, now=0, before=0, after=1)
        self._is(2, now=1, before=0, after=2)
        self._is(2, now=None, before=1, after=2)
        self._is(None, now=None, before=1, after=1)

    def test_sets(self):
        for kind in set, frozenset:
            self._is(kind('ad'), now=kind('abd'), before=kind('abc'),
                     after=kind('ac'))
            self._is(kind('abcd'), now=kind('abd'), before=kind('ab'),
                     after=kind('abc'))

    def test_tuples(self):
        self._is((2, 4, 3), now=(1, 2, 4), before=(1, 2), after=(2, 3))
        self._is((1, 3), now=(1, 3), before=(1,), after=(1, 3))

    def test_mappings(self):
        self._is({'a': 1, 'c': 3, 'd': 4}, now={'a': 0, 'b': 0, 'd': 4},
                 before={'a': 0, 'b': 0}, after={'a': 1, 'c': 3})
        # Another thread has taken out what was changed here.
        self._is({'a': 1}, now={}, before={'a': 0}, after={'a': 1})
        self._is({'a': 2}, now={'a': 2}, before={'a': 0}, after={'a': 0})

    def test_other_dataclasses_are_replaced_as_a_whole(self):
        self._is(model.Scope('b'), now=model.Scope(None, 'c'),
                 before=model.Scope('a'), after=model.Scope('b'))

    def test_values_of_mappings(self):
        self._is({'a': _Value(2, frozenset('b'))},
                 now={'a': _Value(0, frozenset('b'))},
                 before={'a': _Value()}, after={'a': _Value(2)})

    def test_dataclasses(self):
        self._is(_Value(2, frozenset('bc')),
                 now=_Value(1, frozenset('ac')),
                 before=_Value(1, frozenset('a')),
                 after=_Value(2, frozenset('b')))
        self._is(_Value(1), now=_Value(1), before=_Value(), after=_Value())

    def test_nothing_given_is_changed(self):
        now, before, after = {'a': {1}}, {'a': {0}}, {'a': {0}, 'b': {2}}
        merging.merge(now, before, after)
        self.assertEqual(({'a': {1}}, {'a': {0}}, {'a': {0}, 'b': {2}}),
                         (now, before, after))
