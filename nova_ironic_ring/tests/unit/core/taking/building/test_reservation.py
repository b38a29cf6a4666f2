# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import dataclasses

import ddt
from oslotest import base

from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.taking.building import reservation
from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import pool_base

KIND = pools.Kind('CUSTOM_BAREMETAL')


class ReserveTestCase(base.BaseTestCase):
    """Who gets which node."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud(nodes={
            name: clouds.Node() for name in 'abcd'})
        self.ironic = clouds.Ironic(self.cloud)

    def reserve(self, own='', kind=KIND, instance='i'):
        self.found = reservation.reserve(
            self.ironic, reservation.Wanted(instance, kind, own),
            settings.Scope())
        return self.found.node

    def test_own_share_first(self):
        self.assertEqual('c', self.reserve('cd'))
        self.assertEqual('i', self.cloud.nodes['c'].instance)
        self.assertEqual(0, self.found.conflicts)

    def test_next_one_where_another_was_faster(self):
        self.cloud.nodes['c'].instance = 'other'
        self.cloud.nodes['d'].is_ready = False
        self.assertEqual('b', self.reserve('cdb'))
        self.assertEqual('other', self.cloud.nodes['c'].instance)
        self.assertEqual(2, self.found.conflicts)

    def test_others_of_the_same_kind_then(self):
        for name in 'cd':
            self.cloud.nodes[name].instance = 'other'
        self.cloud.nodes['a'].kind = pools.Kind('CUSTOM_GOLD')
        self.assertEqual('b', self.reserve('cd'))

    def test_next_one_where_its_kind_has_changed(self):
        self.cloud.nodes['c'].kind = pools.Kind('CUSTOM_GOLD')
        self.assertEqual('d', self.reserve('cd'))
        self.assertIsNone(self.cloud.nodes['c'].instance)

    def test_where_others_have_failed_comes_last(self):
        known = {name: failures.Failure(count, clouds.EPOCH)
                 for name, count in (('a', 1), ('b', 3), ('d', 2))}

        def reserve(instance):
            # It is the service's own, and is not among those to try first.
            return reservation.reserve(self.ironic, reservation.Wanted(
                instance, KIND, '', failing=known), settings.Scope()).node
        self.assertEqual(['c', 'a', 'd', 'b', None], [
            reserve(str(number)) for number in range(5)])

    def test_not_where_the_deployment_has_failed(self):
        self.assertEqual('d', reservation.reserve(
            self.ironic, reservation.Wanted(
                'i', KIND, 'cd', frozenset('c')), settings.Scope()).node)
        for name in 'ab':
            self.cloud.nodes[name].instance = 'other'
        self.assertIsNone(reservation.reserve(
            self.ironic, reservation.Wanted(
                'j', KIND, '', frozenset('c')), settings.Scope()).node)

    def test_answer_that_was_lost(self):
        give = self.ironic.reserve

        def lose(node, instance, *kind):
            give(node, instance, *kind)
            return False
        self.ironic.reserve = lose
        self.assertEqual('c', self.reserve('cd'))

    def test_instance_that_has_another_node_gets_no_second_one(self):
        self.cloud.nodes['a'].instance = 'i'
        self.assertIsNone(self.reserve('cd'))
        self.assertEqual('a', self.found.had)
        self.assertEqual([None] * 3, [
            self.cloud.nodes[name].instance for name in 'bcd'])

    def test_instance_whose_node_another_service_has_deployed(self):
        # It would be tried first, and be free for others then.
        self.cloud.nodes['c'] = clouds.Node('i', is_ready=False)
        self.assertIsNone(self.reserve('cd'))
        self.assertEqual('i', self.cloud.nodes['c'].instance)

    def test_none_left(self):
        for name in 'abcd':
            self.cloud.nodes[name].instance = 'other'
        self.assertIsNone(self.reserve('ab'))
        self.assertIsNone(self.found.had)

    def test_not_beyond_the_scope(self):
        for name in 'abcd':
            self.cloud.nodes[name].group = 'other'
        found = reservation.reserve(
            self.ironic, reservation.Wanted('i', KIND),
            settings.Scope('mine'))
        self.assertIsNone(found.node)

    def test_kind_that_is_not_known(self):
        # It would get one that is no substitute.
        for own in '', 'ab':
            self.assertIsNone(self.reserve(own, kind=None))

    def _fail_for(self, *nodes):
        give, asked = self.ironic.reserve, []

        def fail(node, instance, *kind):
            asked.append(node)
            if node in nodes:
                raise ConnectionError(node)
            return give(node, instance, *kind)
        self.ironic.reserve = fail
        return asked

    def test_node_for_which_ironic_fails(self):
        self._fail_for('c', 'a')
        self.assertEqual('d', self.reserve('cd'))
        self.assertEqual(0, self.found.conflicts)

    def test_ironic_that_fails_for_all(self):
        # Each may take a minute, and there may be thousands.
        asked = self._fail_for(*'abcd')
        self.assertRaises(ConnectionError, self.reserve, 'abcd')
        self.assertEqual(['a', 'b', 'c'], asked)

    def test_node_that_could_not_be_released(self):
        give, asked = self.ironic.reserve, []

        def fail(node, instance, *kind):
            asked.append(node)
            give(node, instance, *kind)
            raise ConnectionError(node)
        self.ironic.reserve = fail
        self.assertRaises(ConnectionError, self.reserve, 'cd')
        self.assertEqual(['c'], asked)

    def test_failure_that_takes_effect_later(self):
        give, asked = self.ironic.reserve, []

        def fail(node, instance, *kind):
            asked.append(node)
            if node == 'c':
                raise TimeoutError()
            self.cloud.nodes['c'].instance = instance
            return give(node, instance, *kind)
        self.ironic.reserve = fail
        self.assertEqual('c', self.reserve('cd'))
        self.assertEqual(['c', 'd'], asked)

    def test_each_node_once(self):
        got = [self.reserve('ab', instance=str(number))
               for number in range(5)]
        self.assertEqual({'a', 'b', 'c', 'd', None}, set(got))

    def test_what_makes_no_kind_does_not_matter(self):
        for number, node in enumerate('abcd'):
            self.cloud.nodes[node].kind = dataclasses.replace(
                KIND, traits=frozenset({f'CUSTOM_{number}'}))
        self.assertIsNone(self.reserve('ab'))
        for wanted in (
                reservation.Wanted('i', KIND, 'a'),
                reservation.Wanted('j', KIND, named='c'),
                reservation.Wanted('k', KIND)):
            self.assertIsNotNone(reservation.reserve(
                self.ironic, dataclasses.replace(
                    wanted, rule=kinds.Rule(traits=frozenset())),
                settings.Scope()).node)

    def test_what_is_tried_is_not_tried_again(self):
        asked = []
        self.ironic.reserve = lambda node, *_: asked.append(node)
        self.assertIsNone(self.reserve('ab'))
        self.assertEqual(['a', 'b'], asked[:2])
        self.assertEqual(['a', 'b', 'c', 'd'], sorted(asked))

    def test_another_order_for_each_instance(self):
        orders = {tuple(reservation.in_turn('abcd', str(number)))
                  for number in range(50)}
        self.assertGreater(len(orders), 10)
        self.assertEqual({tuple('abcd')}, {
            tuple(sorted(order)) for order in orders})


class NamedTestCase(base.BaseTestCase):
    """One node that was named, and no other."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud(nodes={
            name: clouds.Node() for name in 'abcd'})

    def reserve(self, node='c', kind=KIND, scope=settings.Scope()):
        return reservation.reserve(clouds.Ironic(self.cloud), (
            reservation.Wanted('i', kind, 'ab', frozenset('d'), node)), scope)

    def assertRefused(self, why, *args, **kwargs):
        had = {name: node.instance for name, node in self.cloud.nodes.items()}
        self.assertEqual(reservation.Reserved(refused=why),
                         self.reserve(*args, **kwargs))
        self.assertEqual(had, {name: node.instance for name, node
                               in self.cloud.nodes.items()})

    def test_it_is_reserved(self):
        # Whoever it counts for, and whatever has failed there.
        for name in 'cd':
            self.assertEqual(
                reservation.Reserved(name), self.reserve(name))
            self.assertEqual('i', self.cloud.nodes[name].instance)
            self.cloud.nodes[name].instance = None

    def test_it_is_not_there(self):
        self.assertRefused(reservation.Refusal.UNKNOWN, 'x')

    def test_it_has_an_instance(self):
        self.cloud.nodes['c'].instance = 'other'
        self.assertRefused(reservation.Refusal.HAS_INSTANCE)

    def test_it_is_not_ready(self):
        self.cloud.nodes['c'].is_ready = False
        self.assertRefused(reservation.Refusal.NOT_READY)

    def test_it_is_of_another_kind(self):
        self.assertRefused(
            reservation.Refusal.OTHER_KIND, kind=pools.Kind('CUSTOM_GOLD'))
        self.assertRefused(reservation.Refusal.OTHER_KIND, kind=None)

    def test_it_is_in_another_group(self):
        self.cloud.nodes['c'].group = 'rack'
        self.assertRefused(reservation.Refusal.ELSEWHERE,
                           scope=settings.Scope('mine'))
        self.assertEqual(
            'c', self.reserve(scope=settings.Scope('rack')).node)

    def test_another_is_faster(self):
        with mock.patch.object(clouds.Ironic, 'reserve', return_value=False):
            self.assertRefused(reservation.Refusal.TAKEN)

    def test_instance_that_has_a_node_gets_no_second_one(self):
        self.cloud.nodes['a'].instance = 'i'
        self.assertEqual(reservation.Reserved(had='a'), self.reserve())


@ddt.ddt
class DifferentRingsTestCase(pool_base.PoolPassTestCase):
    """Services whose pools overlap, for they see different rings."""

    def _reserve(self, service, instance):
        """Have a service reserve as it does, by what its last pass saw."""
        return reservation.reserve(
            service.world.ironic, reservation.Wanted(
                instance, service.pool.kind,
                reservation.in_turn(service.pool.free, instance)),
            service.current.scope).node

    @ddt.data(*pool_base.DIFFERENT_RINGS)
    def test_builds(self, rings):
        self.differ(pool_base.DIFFERENT_RINGS[rings])
        self.run_passes(2)
        # More than one service offers them to the scheduler.
        shared = {node for node, count in self.counts().items() if count > 1}
        self.assertNotEqual(set(), shared)
        built = {}
        for number in range(len(pool_base.NODES)):
            for host, service in self.services.items():
                uuid = f'{host}-{number}'
                node = self._reserve(service, uuid)
                if node is None:
                    continue
                # No node of another instance, and no second one for its own,
                # whoever tries the build again.
                self.assertNotIn(node, built)
                for other in self.services.values():
                    self.assertIn(self._reserve(other, uuid), (node, None))
                built[node] = uuid
                self.cloud.instances[uuid] = model.Instance(
                    host, service.pool.name)
                self.allocate(service.pool.name, uuid)
        self.assertEqual(set(pool_base.NODES), set(built))
        self.assertEqual(built, {
            node: known.instance for node, known in self.cloud.nodes.items()})

        hosts = {uuid: known.host
                 for uuid, known in self.cloud.instances.items()}
        for _ in range(3):
            self.run_passes()
            for service in self.services.values():
                self.assertEqual((), tuple(service.result.taken))
        self.assertEqual(hosts, {
            uuid: known.host for uuid, known in self.cloud.instances.items()})
        # Each counts where it is, and nowhere else.
        self.assertEqual(
            dict.fromkeys(pool_base.NODES, 1), self.counts())
        for node, uuid in built.items():
            self.assertIn(node, self.services[hosts[uuid]].pool.used)
