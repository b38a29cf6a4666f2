# SPDX-License-Identifier: Apache-2.0
import dataclasses
from typing import Any

import ddt

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.taking import leftovers
from nova_ironic_ring.core.taking import pool_return
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import base
from nova_ironic_ring.tests.unit.core.base import desired
from nova_ironic_ring.tests.unit.core.base import NODES


def _fail() -> None:
    raise ConnectionError('no answer')


@ddt.ddt
class DueTestCase(base.PassTestCase):

    @ddt.data(
        ({}, Trust.FULL, None, True),
        ({}, Trust.FULL, 0, True),
        ({}, Trust.FULL, 1, False),
        ({}, Trust.BLACKOUT, None, False),
        ({}, Trust.STARTING, None, False),
        ({'cooperative': False}, Trust.FULL, None, False))
    @ddt.unpack
    def test_due(self, values, trust, looked_at, expected):
        self.configure(**values)
        self.cloud.now = 600
        self.memory.cleaning = observation.Cleaning(looked_at)
        self.memory.view = view.View(trust=trust)
        leftovers.clean(self.between(), pool_return.Own({}, {}))
        self.assertEqual(600 if expected else looked_at,
                         self.memory.cleaning.looked_at)


@ddt.ddt
class LeftoversTestCase(base.PassTestCase):
    """Records of nodes that Ironic has no more."""

    SETTINGS = settings.Settings('me', fails_over=False)

    def setUp(self):
        super().setUp()
        self.force_down('b')
        self.gone = sorted(desired('me', 'a') - desired('me', 'a', 'b'))
        for node in self.gone:
            # Free ones would be taken.
            self.place(node, f'on-{node}', 'b')

    def _vanish(self, *nodes: str) -> None:
        for node in nodes:
            del self.cloud.nodes[node]
            self.cloud.allocations[node] = set()
            self.cloud.instances.pop(f'on-{node}', None)

    def _clean(self) -> None:
        """Run passes until it is looked for leftovers again."""
        before = self.memory.cleaning.looked_at
        self.run_passes(600, 60)
        self.assertNotEqual(before, self.memory.cleaning.looked_at)

    def test_nodes_of_a_dead_service(self):
        node = self.gone[0]
        self._vanish(node)
        self._clean()
        self.assertNotIn(node, self.cloud.rows)
        self.assertNotIn(node, self.cloud.allocations)
        self.assertEqual([events.RecordRemoved(node, 'b')],
                         self.happened(events.RecordRemoved))
        # Without the record, nobody would look for the provider again.
        self.assertLess(self.asked.index('delete_provider'),
                        self.asked.index('delete_row'))
        # Ironic is not asked for what it has just listed.
        self.assertEqual(1, self.asked.count('is_deleted'))

    def _tear_down(self, node: str, **fields: Any) -> str:
        """Have Ironic tear down a node, and Placement free its allocation."""
        uuid = f'on-{node}'
        self.cloud.nodes[node].instance = None
        self.cloud.allocations[node] = set()
        self.cloud.instances[uuid] = model.Instance('b', node, **fields)
        return uuid

    def test_what_is_to_be_finished_without_a_machine(self):
        self.configure(fails_over=True)
        node = self.gone[0]
        for fields in ({'task': 'shelving'}, {'is_offloaded': True},
                       {'is_deleted': True}):
            uuid = self._tear_down(node, **fields)
            self._clean()
            self.assertEqual('me', self.cloud.instances[uuid].host)
            self.assertIn(events.InstanceTaken(node, uuid, 'b', True),
                          self.happened(events.InstanceTaken))

    def test_what_is_to_be_finished_after_a_long_search(self):
        self.configure(fails_over=True)
        uuid = self._tear_down(self.gone[0], task='shelving')
        self._vanish(*self.gone[1:])
        # As long as a service may be silent.
        self.before['is_deleted'] = lambda: self.wait(60)
        self._clean()
        self.assertEqual('me', self.cloud.instances[uuid].host)

    def _bring_back(self) -> None:
        """Let the dead service send a heartbeat again."""
        self.change('b', forced_down=False)
        self.alive.add('b')
        self.wait(1)

    def test_what_is_to_be_finished_by_one_that_is_back(self):
        self.configure(fails_over=True)
        uuid = self._tear_down(self.gone[0], task='shelving')
        self._vanish(*self.gone[1:])
        self.before['is_deleted'] = self._bring_back
        self._clean()
        self.assertEqual('b', self.cloud.instances[uuid].host)

    def test_what_is_not_to_be_finished(self):
        self.configure(fails_over=True)
        node = self.gone[0]
        uuid = self._tear_down(node, task='rebooting')
        # And what another hypervisor has.
        self.cloud.instances['kvm'] = model.Instance(
            'b', 'kvm', task='deleting')
        self._clean()
        for each in uuid, 'kvm':
            self.assertEqual('b', self.cloud.instances[each].host)

    def test_what_a_service_has_to_finish_that_keeps_its_instances(self):
        uuid = self._tear_down(self.gone[0], task='shelving')
        self._clean()
        self.assertEqual('b', self.cloud.instances[uuid].host)

    def test_error_with_what_is_to_be_finished(self):
        self.configure(fails_over=True)
        # What is on nodes is taken over first.
        self._clean()
        uuid = self._tear_down(self.gone[0], task='shelving')
        self.before['set_instance_host'] = _fail
        self._clean()
        (failed,) = [each for each in self.happened(events.InstanceNotTaken)
                     if each.instance == uuid]
        self.assertEqual('b', failed.host)
        self._clean()
        self.assertEqual('me', self.cloud.instances[uuid].host)

    def _reserve(self, node: str, task: str | None, *consumers: str) -> str:
        uuid = f'on-{node}'
        self.cloud.instances[uuid] = model.Instance(
            None, None, task=task, is_offloaded=True)
        self.cloud.allocations[node] = set(consumers)
        return uuid

    def test_node_that_was_reserved_for_an_unshelving(self):
        node = self.gone[0]
        for task in 'unshelving', 'spawning':
            uuid = self._reserve(node, task, f'on-{node}')
            self.cloud.nodes[node].instance = uuid
            self._clean()
            self.assertIsNone(self.cloud.nodes[node].instance)
            self.assertIsNone(self.cloud.instances[uuid].task)
            self.assertEqual(set(), self.cloud.allocations[node])
            self.assertIn(events.UnshelveEnded(node, uuid, 'b'),
                          self.happened(events.UnshelveEnded))
            self.cloud.rows[node].owner = 'b'

    def test_reservation_that_is_all_that_is_left(self):
        node = self.gone[0]
        self._reserve(node, None)
        self._clean()
        self.assertIsNone(self.cloud.nodes[node].instance)

    def test_unshelving_that_the_owner_of_a_node_has_written_there(self):
        node, other = self.gone[0], sorted(desired('a', 'me', 'a'))[0]
        uuid = self._reserve(node, 'unshelving')
        # Ironic says it of the node, which Nova's scheduler has not chosen.
        self.cloud.allocations[other] = {uuid}
        self._clean()
        self.assertEqual('unshelving', self.cloud.instances[uuid].task)
        self.assertEqual({uuid}, self.cloud.allocations[other])
        self.assertEqual([], self.happened(events.UnshelveEnded))

    def test_it_is_looked_for_them_now_and_then(self):
        looks = 0
        for _ in range(30):
            self.wait(60)
            self.run_pass()
            looks += self.cloud.now == self.memory.cleaning.looked_at
        self.assertEqual(3, looks)

    def test_nodes_of_an_absent_service(self):
        self.change('b', forced_down=False)
        self._vanish(self.gone[0])
        self._clean()
        self.assertNotIn(self.gone[0], self.cloud.rows)

    def test_nodes_of_an_absent_service_that_is_disabled(self):
        # It is not in the ring, and nothing that Ironic has is of it.
        node = self.gone[0]
        for each in NODES:
            if each != node and self.cloud.rows[each].owner == 'b':
                self.record(each, 'a')
                self.cloud.nodes[each].instance = None
        self.change('b', forced_down=False, disabled=True)
        self._vanish(node)
        self.restart()
        self.run_passes(2, 1)
        self.assertIn(node, self.cloud.rows)
        self._clean()
        self.assertNotIn(node, self.cloud.rows)

    def test_nodes_of_one_that_lives(self):
        self.change('b', forced_down=False)
        self.change('b', disabled=True)
        self.alive.add('b')
        self._vanish(self.gone[0])
        self._clean()
        self._clean()
        self.assertIn(self.gone[0], self.cloud.rows)

    def test_nodes_that_the_ring_gives_another(self):
        theirs = min(desired('me', 'a', by='a')
                     & desired('me', 'a', 'b', by='b'))
        self._vanish(theirs)
        self._clean()
        self.assertIn(theirs, self.cloud.rows)

    def test_nodes_that_only_left_the_group(self):
        node = self.gone[0]
        self.configure(scope=settings.Scope(''),
                       peers=frozenset({'me', 'a', 'b'}))
        self.cloud.nodes[node] = clouds.Node(group='rack2')
        del self.cloud.instances[f'on-{node}']
        self._clean()
        self.assertNotIn(node, self.decisions())
        self.assertIn(node, self.cloud.rows)
        self.assertNotIn('delete_provider', self.asked)

    def _is_kept(self, node: str) -> None:
        self.assertIn(node, self.cloud.rows)
        (kept,) = self.happened(events.RecordNotRemoved)
        self.assertEqual((node, 'b'), (kept.node, kept.host))

    def test_node_that_nova_has_an_instance_on(self):
        node = self.gone[0]
        self._vanish(node)
        self.cloud.instances['theirs'] = model.Instance('b', node)
        self._clean()
        self.assertIn(node, self.cloud.rows)
        self.assertEqual([events.NodeKept(node, 'theirs')],
                         self.happened(events.NodeKept))

    def test_provider_that_a_live_instance_has_an_allocation_of(self):
        node = self.gone[0]
        self._vanish(node)
        self.cloud.allocations[node] = {'deleted', 'theirs'}
        self.cloud.instances['theirs'] = model.Instance(None, None)
        self._clean()
        self.assertIn(node, self.cloud.rows)
        self.assertEqual([events.NodeKept(node, 'theirs')],
                         self.happened(events.NodeKept))
        self.assertNotIn('delete_provider', self.asked)
        self.assertEqual({'deleted', 'theirs'},
                         self.cloud.allocations[node])
        # Once Nova has deleted it, nothing is in the way.
        del self.cloud.instances['theirs']
        self._clean()
        self.assertNotIn(node, self.cloud.rows)

    def test_placement_does_not_answer(self):
        node = self.gone[0]
        for call in 'consumers', 'delete_provider':
            self._vanish(node)
            self.before[call] = _fail
            self._clean()
            self._is_kept(node)
            self.assertNotIn('delete_row', self.asked)
            self.cloud.nodes[node] = clouds.Node()

    def test_provider_that_cannot_be_deleted_yet(self):
        """Without the row, nobody would look for the provider again."""
        node = self.gone[0]
        self._vanish(node)
        self.cloud.providers.add(node)
        for _ in range(3):
            # It is gone for one pass only, as are all that stand before it.
            self.before['delete_provider'] = _fail
            self._clean()
            self._is_kept(node)
            self.assertIn(node, self.cloud.providers)
        self._clean()
        self.assertNotIn(node, self.cloud.providers)
        self.assertNotIn(node, self.cloud.rows)

    def test_row_that_another_has_by_now(self):
        node = self.gone[0]
        self._vanish(node)
        self.before['delete_row'] = lambda: self.record(node, 'a')
        self._clean()
        self.assertIn(node, self.cloud.rows)
        self.assertEqual([], self.happened(events.RecordRemoved))

    def _give_many(self) -> set[str]:
        """Have b own many nodes that are for this service."""
        self.force_down('a')
        many = set(NODES) - self.owned()
        for node in many:
            self.place(node, f'on-{node}', 'b')
            self.record(node, 'b')
        return many

    def test_too_many(self):
        before = self._give_many()
        self._vanish(*before)
        self._clean()
        self.assertEqual(set(), before - self.cloud.rows.keys())
        self.assertNotIn('delete_provider', self.asked)
        (vanished,) = self.happened(events.NodesVanished)
        self.assertEqual(('b', False, sorted(before), len(before)), (
            vanished.host, vanished.is_mine, vanished.nodes, vanished.total))
        self._clean()
        self.assertEqual([], self.happened(events.NodesVanished))
        self.configure(vanished_nodes_limit=100)
        self._clean()
        self.assertEqual(set(), before & self.cloud.rows.keys())

    def test_too_many_one_after_the_other(self):
        gone = sorted(self._give_many())
        self._vanish(*gone[:5])
        self._clean()
        self.assertEqual(5, len(self.happened(events.RecordRemoved)))
        self._vanish(gone[5])
        self._clean()
        self.assertIn(gone[5], self.cloud.rows)
        # Twice the time between two searches after the five.
        self._clean()
        self.assertNotIn(gone[5], self.cloud.rows)

    def test_nova_does_not_answer_about_one_service(self):
        for host in 'a', 'b':
            base.say(self.cloud, host)
        gone = sorted(self._give_many())
        self._vanish(*gone[:5])
        # The other dead service is asked for first.
        self.run_passes(540, 60)
        self.before['rows_of'] = lambda: self.before.update(rows_of=_fail)
        self.run_passes(60, 60)
        self.assertEqual(5, len(self.happened(events.RecordRemoved)))
        (failed,) = self.happened(events.RecordNotRemoved)
        self.assertEqual((None, 'a'), (failed.node, failed.host))
        self._vanish(gone[5])
        self._clean()
        self.assertIn(gone[5], self.cloud.rows)


class PoolLeftoversTestCase(base.PassTestCase):
    """Pools that a dead service has left behind."""

    def setUp(self):
        super().setUp()
        self.force_down('b')
        current = ring.Ring({'me', 'a'}, 32)
        #: Two that are this service's to settle.
        self.pools = [name for name in (
            'b.CUSTOM_GOLD.%08d' % number for number in range(30))
            if current.owner(pools.uuid_of(name)) == 'me'][:2]
        for name in self.pools:
            self.cloud.rows[pools.uuid_of(name)] = clouds.Row('b', pool=name)

    def _leave(self, uuid: str, pool: str, **fields: Any) -> None:
        """Leave an instance in a pool that is on no node."""
        self.cloud.instances[uuid] = model.Instance('b', pool, **fields)
        self.cloud.allocations.setdefault(
            pools.uuid_of(pool), set()).add(uuid)

    def _clean(self) -> set[str]:
        """Run passes until it is looked for leftovers again.

        :returns: the instances that this service has taken then
        """
        for _ in range(10):
            self.wait(60)
            self.run_pass()
            if self.cloud.now == self.memory.cleaning.looked_at:
                break
        self.assertEqual(self.cloud.now, self.memory.cleaning.looked_at)
        return {each.instance for each in self.result.taken}

    def test_records_are_read_once(self):
        self._leave('gone', self.pools[0], task='deleting')
        self.assertIn('gone', self._clean())
        # Those of the lost one; the pass and the tracker read this service's.
        self.assertEqual(3, self.asked.count('rows_of'))
        self.assertNotIn('pools_of', self.asked)

    def test_records_of_a_service_with_other_nodes_are_not_read(self):
        base.say(self.cloud, 'b', scope=settings.Scope('rack2'))
        self._clean()
        # The pass and the tracker read this service's.
        self.assertEqual(2, self.asked.count('rows_of'))

    def test_pools_of_a_service_with_other_nodes(self):
        base.say(self.cloud, 'b', scope=settings.Scope('rack2'))
        self._leave('gone', self.pools[0], task='deleting')
        before = dict(self.cloud.instances)
        self.assertNotIn('gone', self._clean())
        self.assertEqual(before, self.cloud.instances)
        self.assertNotIn('reserve_all', self.asked)

    def test_service_whose_name_has_capitals(self):
        self.cloud.services['b'] = dataclasses.replace(
            self.cloud.services['b'], host='B')
        self._leave('gone', self.pools[0], task='deleting')
        self._leave('new', self.pools[0], is_building=True)
        for uuid in 'gone', 'new':
            self.cloud.instances[uuid] = dataclasses.replace(
                self.cloud.instances[uuid], host='B')
        self.assertIn('gone', self._clean())
        self.assertTrue(self.cloud.instances['new'].is_given_up)

    def test_error_after_one_was_taken(self):
        first, second = sorted(self.pools)
        self._leave('a-gone', first, task='deleting')
        self._leave('b-new', first, is_building=True)
        self._leave('c-gone', first, task='deleting')
        self.before['end_build'] = _fail
        self.assertEqual({'a-gone', 'c-gone'}, self._clean())
        (failed,) = self.happened(events.BuildNotEnded)
        self.assertEqual((first, 'b-new', 'b'),
                         (failed.node, failed.instance, failed.host))
        self.assertEqual({'me'}, {
            self.cloud.instances[uuid].host for uuid in ('a-gone', 'c-gone')})
        self._clean()
        self.assertTrue(self.cloud.instances['b-new'].is_given_up)

    def test_error_with_one_that_is_being_deleted(self):
        self._leave('gone', self.pools[0], task='deleting')
        self.before['set_instance_host'] = _fail
        self.assertEqual(set(), self._clean())
        (failed,) = self.happened(events.InstanceNotTaken)
        self.assertEqual(('gone', 'b'), (failed.instance, failed.host))
        self.assertEqual({'gone'}, self._clean())

    def test_error_with_the_next_pool(self):
        first, second = sorted(self.pools)
        self._leave('gone', first, task='deleting')
        self.before['set_instance_host'] = lambda: self.before.update(
            reserve_all=_fail)
        self.assertEqual({'gone'}, self._clean())
        (failed,) = self.happened(events.RecordNotRemoved)
        self.assertEqual((second, 'b'), (failed.node, failed.host))


class MissingTestCase(base.PassTestCase):
    """Nodes of this service that are not listed any more."""

    def _look(self, node: str) -> bool:
        this = self.between()
        is_gone = leftovers.is_deleted(this, node)
        self.found = this.happened
        return is_gone

    def test_node_that_ironic_does_not_have(self):
        node = min(self.owned())
        self.assertFalse(self._look(node))
        del self.cloud.nodes[node]
        self.assertTrue(self._look(node))
        self.assertEqual({node}, set(self.memory.vanished.deleted))
        self.assertEqual([], self.found)

    def test_too_many(self):
        node = min(self.owned())
        self.cloud.nodes.clear()
        self.run_pass()
        self.assertFalse(self._look(node))
        self.assertEqual([], self.found)

    def test_node_that_nova_has_an_instance_on(self):
        node = min(self.owned())
        self.place(node, 'mine', 'me')
        hidden = self.cloud.nodes.pop(node)
        self.assertFalse(self._look(node))
        self.assertEqual([events.NodeKept(node, 'mine')], self.found)
        self.assertEqual({}, self.memory.vanished.deleted)
        # Once is enough, for as long as it is missing.
        self.run_pass()
        self.assertFalse(self._look(node))
        self.assertEqual([], self.found)
        self.cloud.nodes[node] = hidden
        self.run_pass()
        del self.cloud.nodes[node]
        self.assertFalse(self._look(node))
        self.assertEqual([events.NodeKept(node, 'mine')], self.found)
        # The server was deleted.
        del self.cloud.instances['mine']
        self.assertTrue(self._look(node))
