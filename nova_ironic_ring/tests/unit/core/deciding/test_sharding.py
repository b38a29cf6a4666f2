# SPDX-License-Identifier: Apache-2.0

"""Tests of which shards nodes get."""

import collections

from oslotest import base

from nova_ironic_ring.core.deciding import sharding

NAMES = sharding.Names()
Place = sharding.Place


def make(*groups: tuple[int, str, str | None]) -> dict[str, Place]:
    """Make so many nodes of a conductor group and a shard each."""
    found: dict[str, Place] = {}
    for count, group, shard in groups:
        for _ in range(count):
            found[f'node-{len(found):05}'] = Place(group, shard)
    return found


class NamesTestCase(base.BaseTestCase):

    def test_names(self):
        self.assertEqual('ironic-ring-007', NAMES.of(7))
        self.assertEqual('ironic-ring-1024', NAMES.of(1024))
        for number in 1, 99, 1000:
            self.assertEqual(number, NAMES.number(NAMES.of(number)))
        for other in (None, '', 'rack-1', 'ironic-ring-', 'ironic-ring-1',
                      'ironic-ring-000', 'ironic-ring-0001',
                      'ironic-ring-00x', 'Ironic-ring-001',
                      'my-ironic-ring-001'):
            self.assertIsNone(NAMES.number(other), other)

    def test_other_prefix(self):
        names = sharding.Names('rack1.')
        self.assertEqual(12, names.number('rack1.012'))
        self.assertIsNone(names.number('rack1-012'))
        for bad in ('', 'Rack-', 'rack1', 'a,b', 'a b-', 'ä-', 'x' * 201):
            error = self.assertRaises(ValueError, sharding.Names, bad)
            self.assertIn('--prefix cannot be', str(error))
            self.assertNotIn('\n', str(error))

    def test_what_was_made(self):
        places = make((2, '', None), (1, '', 'rack-1'),
                      (1, '', 'ironic-ring-001'))
        self.assertEqual({'node-00003': 'ironic-ring-001'},
                         NAMES.made(places))


class CountTestCase(base.BaseTestCase):

    def test_first_time(self):
        self.assertEqual(
            64, sharding.count(make((500, '', None)), NAMES, 64, 3))

    def test_again(self):
        places = make((1, '', 'ironic-ring-016'), (1, '', None))
        self.assertEqual(16, sharding.count(places, NAMES, None, 3))
        self.assertEqual(16, sharding.count(places, NAMES, 16, 3))

    def test_bad_numbers(self):
        new = make((100, '', None))
        old = make((1, '', 'ironic-ring-016'), (99, '', None))
        for places, wanted, services, words in (
                (new, None, 3, '20 for each service are 60'),
                ({}, 3, 3, 'Ironic shows none'),
                (make((3, '', 'x')), 3, 3, 'in a shard of another name'),
                (new, 0, 0, '--shards has to be 1 at least'),
                (new, 4, 5, '4 shards are fewer than the 5 services of a '),
                (old, None, 17, '16 shards are fewer than the 17 services'),
                (old, 15, 3, 'There are 16 shards "ironic-ring-..." already'),
                (new, 101, 3, '101 shards are more than there are '
                 'nodes for them (100)'),
                (old, 101, 3, '101 shards are more than there are '
                 'nodes for them (100)')):
            error = self.assertRaises(
                ValueError, sharding.count, places, NAMES, wanted, services)
            self.assertIn(words, str(error))
            self.assertNotIn('\n', str(error))


class DivideTestCase(base.BaseTestCase):

    def divide(self, places: dict[str, Place], number: int
               ) -> dict[str, Place]:
        """Divide nodes, and return where they are then."""
        given = sharding.divide(places, NAMES, number)
        self.assertEqual(set(sharding.unsharded(places)), set(given))
        return {node: Place(place.group, given.get(node, place.shard))
                for node, place in places.items()}

    def assert_even(self, places: dict[str, Place], number: int) -> None:
        """See that shards are even in each group, and in all."""
        for groups in {place.group for place in places.values()}, {None}:
            for group in groups:
                found = sharding.sizes(
                    [place.shard for place in places.values()
                     if group in (None, place.group)], NAMES, number)
                self.assertLessEqual(found.most - found.least, 1)

    def test_evenly(self):
        for nodes, number in (1, 1), (10, 3), (1000, 64), (64, 64):
            self.assert_even(self.divide(
                make((nodes, '', None)), number), number)

    def test_in_each_group(self):
        self.assert_even(self.divide(make(
            (13, 'a', None), (14, 'b', None), (5, '', None)), 8), 8)

    def test_groups_in_any_case(self):
        places = self.divide(make((3, 'Rack', None), (3, 'rack', None)), 6)
        self.assertEqual(6, len({each.shard for each in places.values()}))

    def test_instances_of_a_service_stay_together(self):
        places = make((40, '', None), (3, 'b', None))
        for number in range(24):
            node = f'node-{number:05}'
            places[node] = Place('', None, 'abc'[number % 3])
        given = sharding.divide(places, NAMES, 8)
        by_host = {host: {given[node] for node, place in places.items()
                          if place.host == host} for host in 'abc'}
        # Three instances in each of the shards, and eight of each service.
        self.assertEqual([3, 4, 3], list(map(len, by_host.values())))
        self.assertEqual({3}, set(collections.Counter(
            given[node] for node, place in places.items() if place.host
        ).values()))
        self.assert_even({node: Place(place.group, given[node])
                          for node, place in places.items()}, 8)

    def test_again(self):
        before = self.divide(make((100, 'a', None), (7, 'b', None)), 12)
        enrolled = {f'later-{number}': Place('b' if number % 2 else 'a')
                    for number in range(31)}
        after = self.divide({**before, **enrolled}, 12)
        self.assertEqual(before, {node: after[node] for node in before})
        self.assert_even(after, 12)

    def test_holes_are_filled(self):
        places = make((9, '', 'ironic-ring-001'), (1, '', 'ironic-ring-002'),
                      (17, '', None))
        self.assert_even(self.divide(places, 3), 3)

    def test_other_shards_stay(self):
        places = self.divide(make((50, '', 'rack-1'), (8, '', None)), 4)
        self.assertEqual(
            {'rack-1': 50, **{NAMES.of(number): 2 for number in range(1, 5)}},
            collections.Counter(place.shard for place in places.values()))

    def test_in_whichever_order(self):
        places = make((20, 'a', None), (20, 'b', None))
        self.assertEqual(
            sharding.divide(places, NAMES, 7),
            sharding.divide(dict(reversed(places.items())), NAMES, 7))

    def test_sizes(self):
        for shards, number, words, are_even in (
                ('12', 2, '1', True), ('112', 2, '1 to 2', True),
                ('1112', 2, '1 to 3', False), ('1', 2, '0 to 1', True),
                ('1' * 110 + '2' * 100, 2, '100 to 110', True),
                ('1' * 111 + '2' * 100, 2, '100 to 111', False)):
            found = sharding.sizes(
                [NAMES.of(int(each)) for each in shards], NAMES, number)
            self.assertEqual((words, are_even), (str(found), found.are_even))


class WarningsTestCase(base.BaseTestCase):

    def test_nothing(self):
        places = make((3, '', None), (2, '', 'ironic-ring-001'))
        self.assertEqual([], sharding.warnings(places, NAMES, {}))
        sharding.see_unused(['ironic-ring-001'], {'compute-1': 'rack-1'})

    def test_other_names(self):
        (said,) = sharding.warnings(make(
            (3, '', None), (2, '', 'rack-1'), (1, '', 'Rack-2')), NAMES, {})
        self.assertIn('3 nodes are in 2 shards of other names, such as '
                      '"Rack-2": they stay there.', said)

    def test_services_that_are_limited(self):
        (said,) = sharding.warnings(make((3, '', None)), NAMES, {
            'b': 'rack-2', 'a': 'rack-1'})
        self.assertIn('limits 2 services, such as a to shard "rack-1"', said)

    def test_service_that_is_limited_to_one_of_them(self):
        error = self.assertRaises(
            ValueError, sharding.see_unused,
            ['ironic-ring-001', 'ironic-ring-002'],
            {'a': 'rack-1', 'b': 'ironic-ring-002'})
        self.assertEqual(
            '[ironic] shard limits b to shard "ironic-ring-002", which is not '
            'to be a scope and a part of a ring at once: choose other names '
            'with --prefix, or change the option on b.', str(error))
