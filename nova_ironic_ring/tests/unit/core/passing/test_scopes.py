# SPDX-License-Identifier: Apache-2.0

"""Services that find their peers by what these say of themselves."""

from collections.abc import Iterable
import dataclasses
import datetime
from unittest import mock

from oslotest import base

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.core.world import forecast
from nova_ironic_ring.tests.unit.core import base as core_base

RACKS = {'rack1': [f'r1-{number:02}' for number in range(40)],
         'rack2': [f'r2-{number:02}' for number in range(40)]}
ONE, TWO = settings.Scope('Rack1'), settings.Scope('rack2')
State = membership.State


class _Process(clouds.Process):
    """A process whose clock begins with it."""

    def __init__(self, cloud: clouds.Cloud) -> None:
        super().__init__(cloud)
        self._began = cloud.now

    def now(self) -> float:
        return super().now() - self._began


class _Service(core_base.WithTracker):
    """A service, whose resource tracker takes what a pass lists."""

    def __init__(self, cloud: clouds.Cloud, current: settings.Settings
                 ) -> None:
        self.cloud = cloud
        self.current = current
        process = _Process(cloud)
        self.tracker = clouds.Tracker(cloud, process, ports.Ports(
            clouds.Nova(cloud, current.host), clouds.Ironic(cloud),
            clouds.Placement(cloud), process), current)
        self.memory = dataclasses.replace(
            forecast.start(cloud, current),
            watch=membership.Watch.of_one_look(
                cloud.services.values(), clouds.EPOCH + datetime.timedelta(
                    seconds=cloud.now), current.down_time))
        self.result = node_places.PassResult()

    def decide(self) -> None:
        self.result = passes.run(
            self.tracker.world, self.memory, self.current,
            node_places.Nodes())
        self.memory = self.result.memory

    def track(self) -> None:
        self.tracker.track(self.result)

    @property
    def members(self) -> frozenset[str]:
        return self.memory.view.members

    def state(self, host: str) -> State:
        return self.memory.view.state(host)


class _ScopesTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud(nodes={
            node: clouds.Node(group=rack)
            for rack, nodes in RACKS.items() for node in nodes})
        self.services: dict[str, _Service] = {}
        #: How often each node has come from one service to another.
        self.moves: dict[str, int] = {}

    def start(self, scope: settings.Scope, *hosts: str,
              peers: frozenset[str] | None = None) -> None:
        """Start services, or restart them with another scope."""
        for host in hosts:
            self.cloud.beat(host)
            self.services[host] = _Service(self.cloud, settings.Settings(
                host, scope=scope, peers=peers))

    def run_passes(self, count: int = 6, hosts: Iterable[str] = ()) -> None:
        """Let services run passes in turn."""
        for _ in range(count):
            for host in hosts or list(self.services):
                before = self._owners()
                self.services[host].decide()
                self.services[host].track()
                for node, owner in self._owners().items():
                    if before.get(node, owner) != owner:
                        self.moves[node] = self.moves.get(node, 0) + 1
            self._wait(60)

    def _wait(self, seconds: float) -> None:
        self.cloud.now += seconds
        for host in self.services:
            self.cloud.beat(host)

    def _owners(self) -> dict[str, str]:
        return {node: row.owner for node, row in self.cloud.rows.items()}

    def assert_divided(self, rack: str, *hosts: str) -> None:
        """See that the nodes of a group are where a ring has them."""
        current, owners = ring.Ring(hosts, 32), self._owners()
        self.assertEqual(
            {node: current.owner(node) for node in RACKS[rack]},
            {node: owners.get(node) for node in RACKS[rack]})

    def assert_settled(self) -> None:
        """See that nothing moves any more, and all acknowledge one ring."""
        self.moves.clear()
        self.run_passes(4)
        self.assertEqual({}, self.moves)
        for service in self.services.values():
            self.assertEqual(frozenset(), service.memory.agreement.lasting)


class StartTestCase(_ScopesTestCase):
    """No peer list, from the first start on."""

    def test_all_at_once(self):
        self.start(ONE, 'a', 'b', 'c')
        self.start(TWO, 'd', 'e')
        # Nobody sees what another is about to take.
        for _ in range(2):
            for service in self.services.values():
                service.decide()
            for service in self.services.values():
                service.track()
            self._wait(60)
        for host in self.services:
            self.assertIn(host, self._owners().values())
        self.run_passes()
        self.assert_divided('rack1', 'a', 'b', 'c')
        self.assert_divided('rack2', 'd', 'e')
        self.assertLessEqual(max(self.moves.values(), default=0), 1)
        self.assert_settled()

    def test_newcomer_is_found_by_its_record_alone(self):
        self.start(ONE, 'a')
        self.run_passes(3)
        self.moves.clear()
        self.start(ONE, 'b')
        self.run_passes(1, ['b', 'a'])
        self.assertNotIn('b', self._owners().values())
        self.assertEqual({'a', 'b'}, self.services['a'].members)
        self.assertFalse(self.services['b'].memory.own_work.is_known)
        self.run_passes(1, ['b'])
        self.assertTrue(self.services['b'].memory.own_work.is_known)
        self.assertIn('b', self._owners().values())
        self.run_passes()
        self.assert_divided('rack1', 'a', 'b')
        self.assertEqual({1}, set(self.moves.values()))
        self.assert_settled()

    def test_shards_and_groups_together(self):
        for nodes in RACKS.values():
            for number, node in enumerate(nodes):
                self.cloud.nodes[node].shard = 'xy'[number % 2]
        self.start(settings.Scope('rack1', 'x'), 'a', 'b')
        self.start(settings.Scope('rack1', 'y'), 'c', 'd')
        self.start(settings.Scope('rack2'), 'e', 'f')
        self.run_passes()
        owners = self._owners()
        for shard, hosts in ('x', 'ab'), ('y', 'cd'):
            current = ring.Ring(hosts, 32)
            for node in RACKS['rack1']:
                if self.cloud.nodes[node].shard == shard:
                    self.assertEqual(current.owner(node), owners[node])
        self.assert_divided('rack2', 'e', 'f')
        self.assert_settled()

    def test_failover_in_a_shard(self):
        for node in RACKS['rack1'] + RACKS['rack2']:
            self.cloud.nodes[node].shard = 'x'
        shard = settings.Scope(None, 'x')
        self.start(shard, 'a', 'b', 'c')
        self.run_passes()
        node = min(node for node, owner in self._owners().items()
                   if owner == 'c')
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('c', node)
        # Forced down, and disabled as well, so that it is not in the ring.
        for disabled in False, True:
            self.cloud.services['c'] = dataclasses.replace(
                self.cloud.services['c'], forced_down=True, disabled=disabled)
            self.services.pop('c', None)
            self.run_passes(3)
            self.assertNotEqual('c', self.cloud.instances['i'].host)
            self.cloud.instances['i'] = model.Instance('c', node)
            self.cloud.rows[node].owner = 'c'
        self.run_passes(3)
        self.assert_divided('rack1', 'a', 'b')

    def test_other_drivers(self):
        # One of Nova's own driver, in another group.
        self.cloud.beat('stock')
        for node in RACKS['rack2']:
            self.cloud.rows[node] = clouds.Row('stock')
        self.start(ONE, 'a', 'b')
        self.run_passes()
        self.assert_divided('rack1', 'a', 'b')
        self.cloud.beat('stock')
        self.services['a'].decide()
        self.assertIs(State.OTHER_SCOPE, self.services['a'].state('stock'))
        self.start(settings.Scope(), 'c')
        self.cloud.beat('stock')
        self.services['c'].decide()
        self.assertIs(State.MEMBER, self.services['c'].state('stock'))

    def _happened(self, host: str, kind: type[events.Event]
                  ) -> list[events.Event]:
        return [each for each in self.services[host].result.happened
                if isinstance(each, kind)]

    def test_scope_without_a_node(self):
        self.start(settings.Scope(None, 'nowhere'), 'a')
        self._forget('a')
        self.run_passes(1)
        self.assertEqual(
            [events.ScopeEmpty(settings.Scope(None, 'nowhere'))],
            self._happened('a', events.ScopeEmpty))
        self.run_passes(2)
        self.assertEqual([], self._happened('a', events.ScopeEmpty))

    def test_scope_without_a_node_where_ironic_did_not_answer(self):
        self.start(settings.Scope(None, 'nowhere'), 'a')
        self._forget('a')
        service = self.services['a']
        with mock.patch.object(service.tracker.world.ironic, 'nodes',
                               side_effect=ConnectionError):
            error = self.assertRaises(one_pass.UnansweredError, service.decide)
        service.memory = error.memory
        self.assertEqual([], [each for each in error.happened
                              if isinstance(each, events.ScopeEmpty)])
        self.run_passes(1)
        self.assertEqual(1, len(self._happened('a', events.ScopeEmpty)))
        self.run_passes(1)
        self.assertEqual([], self._happened('a', events.ScopeEmpty))

    def test_scope_with_nodes_or_without_a_limit(self):
        self.start(ONE, 'a')
        self.cloud.nodes, nodes = {}, self.cloud.nodes
        self.start(settings.Scope(), 'b')
        self._forget('a', 'b')
        self.run_passes(1, ['b'])
        self.cloud.nodes = nodes
        self.run_passes(1, ['a'])
        for host in 'a', 'b':
            self.assertEqual([], self._happened(host, events.ScopeEmpty))

    def _forget(self, *hosts: str) -> None:
        """Have services begin with nothing, as at their start."""
        for host in hosts:
            self.services[host].memory = dataclasses.replace(
                self.services[host].memory, settings=None)

    def test_service_with_rows_of_another_group(self):
        # It ran Nova's own driver until now.
        self.start(ONE, 'b')
        self.run_passes()
        for node in RACKS['rack2'][:30]:
            self.cloud.rows[node] = clouds.Row('a')
        self.cloud.beat('a')
        self.run_passes(1)
        self.assertIs(State.OTHER_SCOPE, self.services['b'].state('a'))
        self.start(ONE, 'a')
        self.run_passes(1, ['a'])
        self.moves.clear()
        self.run_passes(1, ['b'])
        self.assertIs(State.MEMBER, self.services['b'].state('a'))
        self.assertEqual({}, self.moves)
        self.run_passes()
        self.assertEqual({'a', 'b'}, self.services['a'].members)
        self.assertEqual({'a', 'b'}, self.services['b'].members)
        self.assert_divided('rack1', 'a', 'b')
        self.assert_settled()

    def test_newcomer_that_has_nodes_already(self):
        # As above; an owner that is gone has nodes for it.
        self.start(ONE, 'b')
        self.run_passes()
        self.moves.clear()
        for node in RACKS['rack2'][:3]:
            self.cloud.rows[node] = clouds.Row('a')
        for node in RACKS['rack1']:
            self.cloud.rows[node] = clouds.Row('gone')
        self.start(ONE, 'a')
        self.run_passes(1, ['a'])
        self.assertEqual({}, self.moves)
        self.run_passes(1, ['a'])
        self.assertLess(1, len(self.moves))

    def test_record_that_vanishes(self):
        self.start(ONE, 'a', 'b')
        self.run_passes()
        node = min(node for node, owner in self._owners().items()
                   if owner == 'b')
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('b', node)
        tracker = self.services['b'].tracker
        tracker.make_member = lambda work: None
        self.cloud.members.pop('b')
        self.run_passes(1)
        # It is as one with Nova's own driver, in another scope.
        self.assertIs(State.OTHER_SCOPE, self.services['a'].state('b'))
        self.assertEqual({'a'}, self.services['a'].members)
        self.assertFalse(self.services['b'].memory.own_work.is_known)
        # It takes nothing, and keeps its instances.
        self.run_passes(3)
        self.assertEqual({node}, {
            node for node, owner in self._owners().items() if owner == 'b'})
        self.assertEqual('b', self.cloud.instances['i'].host)
        self.cloud.nodes[node].instance = None
        del self.cloud.instances['i']
        del tracker.make_member
        self.run_passes(2)
        self.assertEqual({'a', 'b'}, self.services['a'].members)
        self.run_passes()
        self.assert_divided('rack1', 'a', 'b')
        self.assert_settled()

    def test_records_of_dead_peers_alone_are_cleaned(self):
        self.start(ONE, 'a', 'b')
        self.start(TWO, 'c')
        self.run_passes()
        for host in 'b', 'c':
            self.cloud.services[host] = dataclasses.replace(
                self.cloud.services[host], forced_down=True)
            del self.services[host]
        lost = [min(node for node, owner in self._owners().items()
                    if owner == host) for host in 'bc']
        for node in lost:
            del self.cloud.nodes[node]
        self.services['a'].memory = dataclasses.replace(
            self.services['a'].memory, cleaning=observation.Cleaning())
        self.run_passes(40)
        self.assertNotIn(lost[0], self.cloud.rows)
        self.assertEqual('c', self.cloud.rows[lost[1]].owner)


class ChangeTestCase(_ScopesTestCase):
    """Services that are restarted with another scope, one by one."""

    def setUp(self):
        super().setUp()
        self.start(ONE, 'a', 'b', 'c')
        self.start(TWO, 'd', 'e')
        self.run_passes()
        self.moves.clear()

    def test_to_another_group(self):
        self.start(TWO, 'c')
        self.run_passes()
        self.assert_divided('rack1', 'a', 'b')
        self.assert_divided('rack2', 'c', 'd', 'e')
        self.assertEqual({1}, set(self.moves.values()))
        self.assert_settled()

    def test_peers_know_it_after_one_pass(self):
        self.start(TWO, 'c')
        self.run_passes(1, ['c'])
        self.assertEqual(TWO, self.cloud.members['c'].scope)
        self.run_passes(1, ['a', 'd'])
        self.assertIs(State.OTHER_SCOPE, self.services['a'].state('c'))
        self.assertIs(State.MEMBER, self.services['d'].state('c'))

    def test_what_one_that_dies_then_leaves_behind(self):
        owners = self._owners()
        node, building = sorted(
            node for node in RACKS['rack1'] if owners[node] == 'c')[:2]
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('c', node)
        self.cloud.allocations[building] = {'j'}
        self.cloud.instances['j'] = model.Instance(
            None, None, True, 'scheduling')
        self.start(TWO, 'c')
        self.run_passes(2)
        self.cloud.services['c'] = dataclasses.replace(
            self.cloud.services['c'], forced_down=True)
        del self.services['c']
        self.run_passes(15)
        self.assertIn(self.cloud.instances['i'].host, 'ab')
        self.assertTrue(self.cloud.instances['j'].is_given_up)
        self.assert_divided('rack2', 'd', 'e')

    def test_what_holds_an_instance_stays(self):
        node = min(node for node, owner in self._owners().items()
                   if owner == 'c')
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('c', node)
        self.start(TWO, 'c')
        self.run_passes()
        self.assertEqual('c', self.cloud.rows[node].owner)
        self.assertEqual('c', self.cloud.instances['i'].host)
        self.cloud.nodes[node].instance = None
        del self.cloud.instances['i']
        self.run_passes(2)
        self.assert_divided('rack1', 'a', 'b')
        self.assert_divided('rack2', 'c', 'd', 'e')
        self.assert_settled()

    def test_two_change_places(self):
        self.start(TWO, 'c')
        self.start(ONE, 'd')
        self.run_passes()
        self.assert_divided('rack1', 'a', 'b', 'd')
        self.assert_divided('rack2', 'c', 'e')
        self.assert_settled()

    def test_all_to_a_new_group_at_once(self):
        for node in RACKS['rack1']:
            self.cloud.nodes[node].group = 'rack3'
        self.start(settings.Scope('rack3'), 'a', 'b', 'c')
        self.run_passes()
        self.assert_divided('rack1', 'a', 'b', 'c')
        self.assertEqual({}, self.moves)
        self.assert_settled()

    def test_from_all_nodes_to_groups(self):
        self.start(settings.Scope(), *'abcde')
        self.run_passes(8)
        everybody = ring.Ring('abcde', 32)
        self.assertEqual(
            {node: everybody.owner(node) for node in self.cloud.nodes},
            self._owners())
        self.moves.clear()
        for host, scope in zip('abcde', (ONE, ONE, ONE, TWO, TWO)):
            self.start(scope, host)
            self.run_passes(3)
        self.run_passes()
        self.assert_divided('rack1', 'a', 'b', 'c')
        self.assert_divided('rack2', 'd', 'e')
        self.assertLessEqual(max(self.moves.values()), 4)
        self.assert_settled()

    def test_from_groups_to_all_nodes(self):
        for host in 'abcde':
            self.start(settings.Scope(), host)
            self.run_passes(3)
        self.run_passes()
        everybody = ring.Ring('abcde', 32)
        self.assertEqual(
            {node: everybody.owner(node) for node in self.cloud.nodes},
            self._owners())
        self.assert_settled()

    def test_without_limits_beside_a_group(self):
        self.start(settings.Scope(), 'd', 'e')
        self.run_passes(8)
        self.assert_divided('rack1', 'a', 'b', 'c')
        self.assert_divided('rack2', 'd', 'e')
        for step in (self.services['d'].result.plan.steps[node]
                     for node in RACKS['rack1']):
            self.assertIs(decisions.Decision.LEAVE, step.decision)
        self.assertIs(State.NARROWER_SCOPE, self.services['d'].state('a'))
        self.assertIs(State.OTHER_SCOPE, self.services['a'].state('d'))
        self.assert_settled()

    def test_peers_that_cannot_be_told(self):
        self.start(TWO, 'c')
        nova = self.services['c'].tracker.world.nova
        nova.say_member = lambda said: 1 / 0
        self.run_passes(2)
        self.assertIn(events.LastPassNotSaid, map(
            type, self.services['c'].result.happened))
        self.assertFalse(self.services['c'].memory.own_work.is_known)
        # Its former peers go on to offer it nodes, and it takes none.
        self.assertEqual({}, self.moves)
        del nova.say_member
        self.run_passes()
        self.assert_divided('rack2', 'c', 'd', 'e')


class NarrowerTestCase(_ScopesTestCase):
    """A service without limits beside others in a group."""

    def setUp(self):
        super().setUp()
        self.start(settings.Scope(), 'u')
        self.start(ONE, 'g1', 'g2')
        self.run_passes(8)
        self.assert_divided('rack1', 'g1', 'g2')
        self.moves.clear()

    def _node_of(self, host: str, rack: str = 'rack1') -> str:
        owners = self._owners()
        return min(node for node in RACKS[rack] if owners[node] == host)

    def _change(self, host: str, **fields) -> None:
        self.cloud.services[host] = dataclasses.replace(
            self.cloud.services[host], **fields)

    def test_nodes_outside_their_scope(self):
        # They were without limits before.
        self.start(settings.Scope(), 'g1', 'g2')
        self.run_passes(8)
        self.assert_divided('rack2', 'g1', 'g2', 'u')
        node = self._node_of('g1', 'rack2')
        self.cloud.nodes[node].instance = 'i'
        self.cloud.instances['i'] = model.Instance('g1', node)
        self.start(ONE, 'g1', 'g2')
        self.run_passes()
        self.assert_divided('rack1', 'g1', 'g2')
        self.assertEqual('g1', self.cloud.rows[node].owner)
        self.cloud.nodes[node].instance = None
        del self.cloud.instances['i']
        self.run_passes(2)
        self.assert_divided('rack2', 'u')
        self.assert_settled()

    def test_node_that_leaves_the_group(self):
        node = self._node_of('g1')
        self.cloud.nodes[node].group = ''
        self.cloud.allocations[node] = {'i'}
        self.run_passes(2)
        self.assertEqual('g1', self.cloud.rows[node].owner)
        del self.cloud.allocations[node]
        self.run_passes(2)
        self.assertEqual('u', self.cloud.rows[node].owner)
        self.assertEqual({node: 1}, self.moves)

    def test_node_that_nobody_has(self):
        del self.cloud.rows[self._node_of('g1')]
        self.run_passes(1)
        self.assert_divided('rack1', 'g1', 'g2')
        self.assertEqual({}, self.moves)

    def test_listings_of_ironic_do_not_grow_with_groups(self):
        def listings() -> int:
            with mock.patch.object(
                    clouds.Ironic, '_listed', autospec=True,
                    side_effect=clouds.Ironic._listed) as listed:
                self.run_passes(1, ['u'])
            return listed.call_count
        before = listings()
        shards = [f's{number}' for number in range(10)]
        for node, shard in zip(RACKS['rack2'], shards):
            self.cloud.nodes[node].shard = shard
        for shard in shards[:8]:
            self.start(settings.Scope(
                'RACK2' if shard < 's4' else None, shard), shard)
        self.run_passes(8)
        self.assertEqual(before, listings())
        owners = self._owners()
        self.assertEqual(
            [*shards[:8], 'u', 'u'],
            [owners[node] for node in RACKS['rack2'][:10]])
        self.assert_settled()

    def test_one_of_the_group_dies(self):
        self._change('g1', forced_down=True)
        del self.services['g1']
        self.run_passes(2)
        self.assert_divided('rack1', 'g2')
        self.assertEqual({1}, set(self.moves.values()))
        self.assert_settled()

    def test_all_of_the_group_are_disabled(self):
        self._change('g1', disabled=True)
        self.run_passes(2)
        self.assert_divided('rack1', 'g2')
        self.assertEqual({1}, set(self.moves.values()))
        self._change('g2', disabled=True)
        self.run_passes(20)
        self.assert_divided('rack1', 'u')
        self.assert_settled()

    def test_passes_of_the_group_fail(self):
        self.run_passes(20, ['u'])
        self.assert_divided('rack1', 'u')
        self.run_passes(20)
        self.assert_divided('rack1', 'g1', 'g2')

    def test_all_of_the_group_die(self):
        building, node = self._node_of('g1'), self._node_of('g2')
        self.cloud.allocations[building] = {'i'}
        self.cloud.instances['i'] = model.Instance(
            None, None, True, 'scheduling')
        self.cloud.nodes[node].instance = 'j'
        self.cloud.instances['j'] = model.Instance('g2', node)
        self._change('g1', forced_down=True)
        self._change('g2', forced_down=True)
        del self.services['g1'], self.services['g2']
        self.run_passes(15)
        self.assert_divided('rack1', 'u')
        self.assertTrue(self.cloud.instances['i'].is_given_up)
        self.assertEqual('u', self.cloud.instances['j'].host)

    def test_instance_that_was_given_to_one_that_dies(self):
        self.start(settings.Scope(), 'v')
        self.run_passes(8)
        node = self._node_of('v', 'rack2')
        self.cloud.nodes[node].instance = 'i'
        for host in 'u', 'g1':
            self.cloud.instances['i'] = model.Instance(host, node)
            self.cloud.rows[node] = clouds.Row(host)
            self.run_passes(2)
        self._change('g1', forced_down=True)
        del self.services['g1']
        self.run_passes(3)
        self.assertEqual('v', self.cloud.instances['i'].host)


class ListTestCase(_ScopesTestCase):
    """A peer list, which decides, and differs."""

    def _differs(self) -> list[tuple[set[str], set[str]]]:
        return [(set(each.unlisted), set(each.elsewhere))
                for each in self.services['a'].result.happened
                if isinstance(each, events.PeerListDiffers)]

    def test_it_is_said_once(self):
        self.start(ONE, 'b')
        self.start(TWO, 'd')
        self.run_passes()
        self.start(ONE, 'a', peers=frozenset('ad'))
        self.run_passes(1)
        self.assertEqual([({'b'}, {'d'})], self._differs())
        self.assertEqual({'a', 'd'}, self.services['a'].members)
        self.run_passes(1)
        self.assertEqual([], self._differs())

        self.start(ONE, 'a', peers=frozenset({'a', 'b', 'nobody'}))
        self.run_passes(1)
        self.assertEqual([], self._differs())

    def test_one_has_the_list_and_the_other_not(self):
        self.start(ONE, 'a', peers=frozenset('ab'))
        self.start(ONE, 'b')
        self.run_passes()
        self.assert_divided('rack1', 'a', 'b')
        self.assert_settled()
