# SPDX-License-Identifier: Apache-2.0

import dataclasses
import string
import uuid

from oslotest import base

from nova_ironic_ring.core.values import pools

GOLD = pools.Kind('CUSTOM_GOLD', frozenset({'CUSTOM_FAST'}),
                  frozenset({('cpu_arch', 'x86_64'), ('boot', 'uefi')}))
SMALL = pools.Size(1000, 10, 4)


def node(kind=GOLD, instance=None, is_ready=True):
    return pools.Node(kind, instance, is_ready, SMALL)


class NameTestCase(base.BaseTestCase):
    """The name of a pool says where it is and what, and stays the same."""

    def test_what_it_looks_like(self):
        self.assertRegex(
            pools.name('compute-1', GOLD),
            r'^compute-1\.CUSTOM_GOLD\.[0-9a-f]{8}$')

    def test_same_after_a_restart(self):
        # Written down: if this changes, all pools of all clouds are others.
        self.assertEqual('compute-1.CUSTOM_GOLD.c1f64ee7',
                         pools.name('compute-1', GOLD))
        self.assertEqual('b32d82b0-1113-5e46-9d46-21dbec711af2',
                         pools.uuid_of('compute-1.CUSTOM_GOLD.c1f64ee7'))

    def test_another_for_all_that_the_scheduler_can_ask_for(self):
        names = {pools.name(host, kind) for host in ('a', 'b') for kind in (
            GOLD, pools.Kind('CUSTOM_GOLD'), pools.Kind('CUSTOM_SILVER'),
            pools.Kind('CUSTOM_GOLD', GOLD.traits),
            pools.Kind('CUSTOM_GOLD', properties=GOLD.properties),
            dataclasses.replace(GOLD, architecture=''),
            dataclasses.replace(GOLD, architecture='aarch64'))}
        self.assertEqual(14, len(names))

    def test_host_in_any_case(self):
        self.assertEqual(pools.name('compute-1', GOLD),
                         pools.name(' Compute-1', GOLD))

    def test_bounds(self):
        allowed = set(string.ascii_letters + string.digits + '-._')
        longest = pools.Kind('CUSTOM_' + 'A' * 80)
        for host in ('h' * 255, 'a host/with:odd*letters', 'x'):
            found = pools.name(host, longest)
            self.assertLessEqual(len(found), 200)
            self.assertLessEqual(set(found), allowed)

    def test_long_hosts_that_begin_alike(self):
        self.assertNotEqual(pools.name('h' * 254 + 'a', GOLD),
                            pools.name('h' * 254 + 'b', GOLD))

    def test_whose_it_is(self):
        for host in ('me', 'me.example.org', 'h' * 255, 'a b'):
            found = pools.name(host, GOLD)
            self.assertTrue(pools.is_of(host, found))
            self.assertFalse(pools.is_of('other', found))
            self.assertTrue(pools.is_pool(found))

    def test_node_of_ironic_is_nobodys_pool(self):
        for found in (str(uuid.uuid4()), '', None, 'me', 'me.CUSTOM_GOLD'):
            self.assertFalse(pools.is_of('me', found))
            self.assertFalse(pools.is_pool(found))


class GroupTestCase(base.BaseTestCase):
    """Which nodes are in which pool."""

    def test_nodes_of_a_kind_are_a_pool(self):
        other = pools.Kind('CUSTOM_GOLD')
        gold = pools.name('me', GOLD)
        found = pools.group(
            'me', {'1': node(), '2': node(other), '3': node(), '4': node()},
            {'1': gold, '2': pools.name('me', other), '3': gold})
        self.assertEqual(
            {gold: {'1', '3'},
             pools.name('me', other): {'2'}},
            {name: set(pool.nodes) for name, pool in found.items()})
        self.assertEqual({GOLD, other},
                         {pool.kind for pool in found.values()})

    def test_instance_stays_in_its_pool_when_its_node_changes(self):
        changed = pools.Kind('CUSTOM_GOLD', frozenset({'CUSTOM_SLOW'}))
        before = pools.name('me', GOLD)
        found = pools.group(
            'me', {'1': node(changed, 'i')}, {'1': before})
        self.assertEqual({before}, set(found))
        self.assertIsNone(found[before].kind)

    def test_kind_with_the_name_of_another(self):
        one, other = (pools.Kind('CUSTOM_GOLD', frozenset(), frozenset({
            ('x', text)})) for text in ('6120', '37717'))
        name = pools.name('me', one)
        self.assertEqual(name, pools.name('me', other))
        nodes = {'1': node(one), '2': node(other), '3': node(other)}
        counts = dict.fromkeys(nodes, name)
        (found,) = pools.group('me', nodes, counts).values()
        self.assertEqual((other, {'2', '3'}), (found.kind, set(found.nodes)))
        before = {name: pools.Pool(name, one)}
        (found,) = pools.group('me', nodes, counts, (), before).values()
        self.assertEqual((one, {'1'}), (found.kind, set(found.nodes)))
        nodes['2'] = node(other, 'i')
        (found,) = pools.group('me', nodes, counts, (), before).values()
        self.assertEqual((one, {'1', '2'}), (found.kind, set(found.nodes)))

    def test_instance_on_a_node_that_has_lost_its_class(self):
        pool = pools.name('me', GOLD)
        found = pools.group('me', {'1': node(None, 'i')}, {'1': pool})
        self.assertEqual({'1'}, set(found[pool].nodes))

    def test_pool_that_is_named_is_there_without_nodes(self):
        pool = pools.name('me', GOLD)
        found = pools.group('me', {}, {}, [pool])
        self.assertEqual({pool: pools.Pool(pool)}, found)

    def test_instance_without_an_allocation_is_reserved(self):
        found = pools.group('me', {'1': node(instance='i')},
                            {'1': pools.name('me', GOLD)})
        (pool,) = found.values()
        self.assertEqual(pools.Inventory(1, 1), pool.inventory())


class InventoryTestCase(base.BaseTestCase):
    """What Placement is told."""

    def pool(self, *nodes, used=''):
        return pools.Pool('pool', GOLD, {
            str(number): each for number, each in enumerate(nodes)},
            frozenset(used))

    def test_free_nodes(self):
        self.assertEqual(pools.Inventory(2, 0),
                         self.pool(node(), node()).inventory())

    def test_what_cannot_be_built_on_is_reserved(self):
        self.assertEqual(
            pools.Inventory(3, 2), self.pool(
                node(), node(is_ready=False), node(is_ready=False)
            ).inventory())

    def test_instance_with_its_allocation_is_not_reserved(self):
        # Also in maintenance: its allocation takes the node from the pool.
        pool = self.pool(node(), node(instance='i'),
                         node(instance='j', is_ready=False), used='12')
        self.assertEqual(pools.Inventory(3, 0), pool.inventory())

    def test_instance_without_its_allocation_is_reserved(self):
        pool = self.pool(node(), node(instance='i'))
        self.assertEqual(pools.Inventory(2, 1), pool.inventory())

    def test_node_that_has_lost_its_instance_since_is_reserved(self):
        pool = self.pool(node(), node(instance='i'), node(instance='j'),
                         used='12')
        self.assertEqual(pools.Inventory(3, 1),
                         pool.inventory(frozenset('1')))

    def test_node_that_was_built_on_and_released_since_is_reserved(self):
        self.assertEqual(pools.Inventory(2, 1), self.pool(
            node(), node()).inventory(frozenset('0')))

    def test_node_that_was_released_and_does_not_count_here(self):
        # One of those that count is another service's instance by now.
        self.assertEqual(pools.Inventory(2, 1), self.pool(
            node(), node()).inventory(frozenset('x')))
        self.assertEqual(pools.Inventory(1, 1), self.pool(
            node()).inventory(frozenset('xy')))

    def test_never_zero(self):
        self.assertEqual(pools.Inventory(1, 1), self.pool().inventory())

    def test_room_is_that_of_the_free_nodes(self):
        pool = self.pool(node(), node(), node(is_ready=False),
                         node(instance='i'), used='3')
        self.assertEqual(pools.Size(2000, 20, 8), pool.room)
        self.assertEqual(['0', '1'], pool.free)
