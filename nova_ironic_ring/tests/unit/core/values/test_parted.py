# SPDX-License-Identifier: Apache-2.0

"""Tests of mappings that are copied in parts."""

from oslotest import base

from nova_ironic_ring.core.values import parted

_MANY = {f'key-{number}': number for number in range(1000)}


class PartedTestCase(base.BaseTestCase):

    def test_it_is_a_mapping(self):
        found = parted.Parted(_MANY)
        self.assertEqual(_MANY, found)
        self.assertEqual(sorted(_MANY), list(found))
        self.assertEqual(1000, len(found))
        self.assertEqual(7, found['key-7'])
        self.assertIsNone(found.get('key-1000'))
        self.assertEqual({'key-1'}, found.keys() & {'key-1', 'other'})
        self.assertEqual("Parted({'a': 1})", repr(parted.Parted({'a': 1})))

    def test_none(self):
        self.assertEqual({}, parted.Parted())
        self.assertFalse(parted.Parted())
        self.assertNotIn('key', parted.Parted())

    def test_changed_copies(self):
        before = parted.Parted(_MANY)
        after = before
        for key in _MANY:
            after = after.having(key, 0).having(f'{key}-more', 1)
        self.assertEqual({**dict.fromkeys(_MANY, 0),
                          **{f'{key}-more': 1 for key in _MANY}}, after)
        for key in _MANY:
            after = after.without(key)
        self.assertEqual({f'{key}-more': 1 for key in _MANY}, after)
        self.assertEqual(_MANY, before)

    def test_without_what_is_not_there(self):
        found = parted.Parted({'a': 1})
        self.assertIs(found, found.without('b'))
