# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Mapping
import datetime
from unittest import mock

from oslotest import base

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.core.world import forecast
from nova_ironic_ring.tests.unit.core import base as core_base
from nova_ironic_ring.tests.unit.core.base import NODES


class ForecastTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.settings = {host: settings.Settings(host)
                         for host in ('a', 'b', 'c')}
        for host in self.settings:
            self.cloud.beat(host)
            core_base.say(self.cloud, host, ring=ring.Ring(
                'abc', 32).fingerprint(settings.Scope()))
        self.before = self._by_ring('a', 'b', 'c')
        for node, owner in self.before.items():
            self.cloud.nodes[node] = clouds.Node()
            self.cloud.rows[node] = clouds.Row(owner)

    def _by_ring(self, *members: str) -> dict[str, str]:
        current = ring.Ring(members, 32)
        return {node: str(current.owner(node)) for node in NODES}

    def _run(self, hosts: Iterable[str] = 'abc') -> forecast.Forecast:
        return forecast.run(
            self.cloud, [self.settings[host] for host in hosts])

    def _first(self, host: str) -> Mapping[str, planner.Step]:
        return forecast.first_steps(self.cloud, self.settings[host])

    def test_nothing_moves(self):
        found = self._run()
        self.assertTrue(found.is_settled)
        self.assertEqual(self.before, found.owners)
        self.assertEqual({}, found.moves)
        self.assertEqual({}, found.hosts)
        for host in 'abc':
            for node, step in self._first(host).items():
                self.assertIs(
                    Decision.KEEP if self.before[node] == host
                    else Decision.LEAVE, step.decision)

    def _passes(self, hosts: Iterable[str] = 'abc') -> int:
        """Return how many passes each service runs, in the mean."""
        with mock.patch.object(
                forecast.passes, 'run', wraps=forecast.passes.run) as run:
            self.assertTrue(self._run(hosts).is_settled)
        return run.call_count // len(list(hosts))

    def test_time_does_not_pass_where_nothing_waits_for_it(self):
        self.assertEqual(1, self._passes())

    def test_time_passes_where_a_node_is_waited_for(self):
        wanted = self._by_ring('a', 'b', 'c', 'other')
        node = next(node for node in NODES if wanted[node] == 'a')
        # Its owner runs no passes: it lives, and nobody knows its settings.
        self.cloud.rows[node].owner = 'other'
        self.cloud.beat('other')
        self.assertLess(2, self._passes())
        self.assertEqual('a', self._run().owners[node])

    def _silence(self) -> str:
        """Have c be silent for long, and return its node with an instance."""
        node = next(node for node in NODES if self.before[node] == 'c')
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('c', node)
        self.cloud.services['c'] = model.Service(
            'c', clouds.EPOCH.replace(year=2025))
        return node

    def test_time_passes_where_a_service_is_silent(self):
        self._silence()
        # It has the instance until the end.
        self.assertLess(2, self._passes('ab'))

    def test_service_that_is_forced_down(self):
        node = next(node for node in NODES if self.before[node] == 'c')
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('c', node)
        self.cloud.services['c'] = model.Service(
            'c', clouds.EPOCH, forced_down=True)
        found = self._run('ab')
        after = self._by_ring('a', 'b')
        self.assertTrue(found.is_settled)
        self.assertEqual(after, found.owners)
        self.assertEqual({'i': after[node]}, found.hosts)
        self.assertIs(Decision.FAIL_OVER,
                      self._first(after[node])[node].decision)
        self.assertEqual(
            {each: 1 for each in NODES if self.before[each] == 'c'},
            found.moves)

    def test_late_service_is_absent_and_keeps_its_instances(self):
        node = self._silence()
        found = self._run('ab')
        self.assertEqual({'i': 'c'}, found.hosts)
        self.assertEqual({**self._by_ring('a', 'b'), node: 'c'},
                         found.owners)

    def test_service_that_joins(self):
        # It has nothing yet, and begins with one node.
        for node in NODES:
            self.cloud.rows[node] = clouds.Row(
                self._by_ring('a', 'b')[node])
        found = self._run()
        self.assertTrue(found.is_settled)
        self.assertEqual(self._by_ring('a', 'b', 'c'), found.owners)
        self.assertEqual({1}, set(found.moves.values()))

    def test_disabled_service_gives_its_nodes_away(self):
        self.cloud.services['c'] = model.Service(
            'c', clouds.EPOCH, disabled=True)
        found = self._run()
        self.assertTrue(found.is_settled)
        self.assertEqual(self._by_ring('a', 'b'), found.owners)
        self.assertIn(Decision.OFFER, {
            step.decision for step in self._first('c').values()})

    def test_owner_that_does_not_give(self):
        # It lives and is not asked to run passes.
        self.cloud.services['c'] = model.Service(
            'c', clouds.EPOCH.replace(year=2025), alive=True, disabled=True)
        found = self._run('ab')
        self.assertTrue(found.is_settled)
        self.assertEqual(self.before, found.owners)
        # One with Nova's own driver is not asked for its consent.
        del self.cloud.members['c']
        found = self._run('ab')
        self.assertTrue(found.is_settled)
        self.assertEqual(self._by_ring('a', 'b'), found.owners)

    def test_takeover_that_another_has_died_over(self):
        node = next(node for node in NODES if self.before[node] == 'c')
        self.cloud.nodes = {node: clouds.Node('i')}
        self.cloud.instances['i'] = model.Instance('c', node)
        self.cloud.rows = {
            each: clouds.Row(owner) for each, owner in self.before.items()
            if owner != 'c'}
        for each in self.cloud.rows:
            self.cloud.nodes[each] = clouds.Node()
        self.cloud.services['c'] = model.Service(
            'c', clouds.EPOCH, forced_down=True)
        found = self._run('ab')
        self.assertTrue(found.is_settled)
        self.assertEqual({'i': self._by_ring('a', 'b')[node]}, found.hosts)

    def test_services_that_disagree(self):
        for host, peers in (('a', {'a', 'b'}), ('b', {'b'})):
            self.settings[host] = settings.Settings(
                host, peers=frozenset(peers), handover_timeout=60)
        found = self._run('ab')
        self.assertFalse(found.is_settled)
        self.assertEqual({}, found.moves)

    def test_services_that_take_from_each_other_in_turn(self):
        # In the end of each round, all is as it was.
        for host, partitions in (('a', 32), ('b', 64)):
            self.settings[host] = settings.Settings(
                host, cooperative=False, partitions=partitions)
        self.assertFalse(self._run('ab').is_settled)

    def test_instance_of_one_that_is_dead_after_a_time(self):
        node = next(node for node in NODES if self.before[node] == 'c')
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('c', node)
        self.cloud.services['c'] = model.Service(
            'c', clouds.EPOCH - datetime.timedelta(seconds=100))
        for host in 'ab':
            self.settings[host] = settings.Settings(host, failover_after=600)
        found = self._run('ab')
        self.assertTrue(found.is_settled)
        self.assertEqual({'i': self._by_ring('a', 'b')[node]}, found.hosts)

    def test_cloud_stays_as_it_is(self):
        self.cloud.services['c'] = model.Service(
            'c', clouds.EPOCH, forced_down=True)
        self._run('ab')
        self.assertEqual(self.before, {
            node: row.owner for node, row in self.cloud.rows.items()})
        self.assertEqual(0, self.cloud.now)


class StartTestCase(base.BaseTestCase):

    def test_well_for_long(self):
        cloud = clouds.Cloud()
        cloud.beat('Me')
        cloud.services['late'] = model.Service(
            'late', clouds.EPOCH.replace(year=2025))
        current = settings.Settings('me')
        memory = forecast.start(cloud, current)
        self.assertIs(Trust.FULL, memory.view.trust)
        self.assertTrue(memory.watch.has_moved('late'))
        self.assertIs(membership.State.ABSENT, membership.state(
            cloud.services['late'], current, memory.watch))
        self.assertEqual(current, memory.settings)
