# SPDX-License-Identifier: Apache-2.0

"""Services that divide the nodes by their shards, with either driver."""

import collections
from collections.abc import Collection, Iterable
import dataclasses
import datetime
from typing import Any

from oslotest import base

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.core.world import forecast
from nova_ironic_ring.tests.unit.core import base as core_base

SHARDS = [f's{number:02}' for number in range(16)]
#: The shard of each node: five in each, and five in none.
NODES = {f'{shard or "none"}-{number}': shard
         for shard in (*SHARDS, None) for number in range(5)}


class _Ironic(clouds.Ironic):
    """Ironic, which remembers what it was asked."""

    def __init__(self, cloud: clouds.Cloud) -> None:
        super().__init__(cloud)
        #: The shards of each listing of a pass; None for a whole one.
        self.listings: list[Collection[str] | None] = []
        self.named_nodes: set[str] = set()
        self.is_hidden = False
        #: Which nodes were asked for singly, and how often for all names.
        self.looked_for: list[str] = []
        self.name_listings = 0

    def nodes(self, scope: settings.Scope,
              shards: Collection[str] | None = None
              ) -> dict[str, str | None]:
        self.listings.append(shards)
        return {} if self.is_hidden else super().nodes(scope, shards)

    def named(self, scope: settings.Scope, nodes: Collection[str]
              ) -> dict[str, str | None]:
        self.named_nodes |= set(nodes)
        return {} if self.is_hidden else super().named(scope, nodes)

    def uuids(self, scope: settings.Scope) -> frozenset[str]:
        self.name_listings += 1
        return super().uuids(scope)

    def is_deleted(self, node: str) -> bool:
        self.looked_for.append(node)
        return self.is_hidden or super().is_deleted(node)


class _Service(core_base.WithTracker):
    """A service, and what Nova's tracker makes of its passes."""

    def __init__(self, cloud: clouds.Cloud, current: settings.Settings,
                 has_pools: bool) -> None:
        self.current = current
        self.has_pools = has_pools
        process = clouds.Process(cloud)
        self.ironic = _Ironic(cloud)
        self.tracker = clouds.Tracker(cloud, process, ports.Ports(
            clouds.Nova(cloud, current.host), self.ironic,
            clouds.Placement(cloud), process), current)
        # It has watched the others for long.
        self.memory = dataclasses.replace(
            forecast.start(cloud, current),
            work_watch=membership.WorkWatch(),
            watch=membership.Watch.of_one_look(
                cloud.services.values(), clouds.EPOCH + datetime.timedelta(
                    seconds=cloud.now), current.down_time).restarted(
                        cloud.now))
        self.result: Any = None

    def decide(self) -> None:
        """Run a pass, of which the tracker makes nothing yet."""
        self.ironic.listings.clear()
        self.ironic.named_nodes.clear()
        place: Any = (pool_places.Pools() if self.has_pools
                      else node_places.Nodes())
        try:
            self.result = passes.run(
                self.tracker.world, self.memory, self.current, place)
        except one_pass.UnansweredError as error:
            self.memory = error.memory
            raise
        self.memory = self.result.memory

    def track(self) -> None:
        """Have the tracker take what the pass has listed."""
        if self.has_pools:
            self.tracker.count(self.result)
        else:
            self.tracker.track(self.result)

    def shards(self) -> frozenset[str]:
        return self.memory.view.ring.shards(self.current.me)

    def nodes(self) -> set[str]:
        """Name its nodes."""
        if self.has_pools:
            return {node for pool in self.result.found.values()
                    for node in pool.nodes}
        return {node for node, row in self.tracker.cloud.rows.items()
                if row.owner == self.current.host}

    def happened(self, kind: type) -> list[Any]:
        return [each for each in self.result.happened
                if isinstance(each, kind)]


class _TestCase(base.BaseTestCase):
    """Services on a cloud in memory."""

    HAS_POOLS = False

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud(nodes={
            node: clouds.Node(shard=shard) for node, shard in NODES.items()})
        self.services: dict[str, _Service] = {}
        #: How often each node has come from one service to another.
        self.moves: collections.Counter[str] = collections.Counter()
        #: What was taken, and how.
        self.taken: list[events.NodeTaken] = []

    def start(self, *hosts: str, **options: Any) -> None:
        for host in hosts:
            self.cloud.beat(host)
            self.services[host] = _Service(self.cloud, settings.Settings(
                host, **{'by_shards': True, **options}), self.HAS_POOLS)

    def owners(self) -> dict[str, str]:
        return {node: host for host, service in self.services.items()
                if service.result for node in service.nodes()}

    def run_passes(self, count: int = 6, hosts: Iterable[str] = ()) -> None:
        """Let services run passes in turn."""
        for _ in range(count):
            self.cloud.now += 60
            for host in hosts or self.services:
                self.cloud.beat(host)
            for host in hosts or list(self.services):
                before = self.owners()
                self.services[host].decide()
                self.services[host].track()
                self.taken += self.services[host].happened(events.NodeTaken)
                self.moves.update(
                    node for node, owner in self.owners().items()
                    if before.get(node, owner) != owner)

    def place(self, node: str, instance: str, host: str) -> None:
        """Put an instance of a service on a node."""
        self.cloud.nodes[node].instance = instance
        place = node
        if self.HAS_POOLS:
            place = min(self.services[host].result.found)
            self.cloud.allocations.setdefault(
                pools.uuid_of(place), set()).add(instance)
        self.cloud.instances[instance] = model.Instance(host, place)

    def assert_divided(self, *hosts: str) -> None:
        """See that all agree, nobody has too much, and each has its own."""
        deals = [self.services[host].memory.view.ring.deal
                 for host in hosts]
        tables = {host: dict(deal.owners) if deal else {}
                  for host, deal in zip(hosts, deals)}
        first = tables[hosts[0]]
        self.assertEqual(dict.fromkeys(hosts, first), tables)
        self.assertEqual(set(SHARDS), set(first))
        counts = collections.Counter(first.values())
        self.assertLessEqual(max(counts.values()), -(-16 // len(hosts)))
        self.assertGreaterEqual(min(counts[host] for host in hosts),
                                16 // len(hosts))
        ring = self.services[hosts[0]].memory.view.ring
        owners = self.owners()
        self.assertEqual({
            node: first[shard] if shard else ring.by_name(node)
            for node, shard in NODES.items()
            if self.cloud.nodes[node].instance is None}, {
            node: owners.get(node) for node in NODES
            if self.cloud.nodes[node].instance is None})

    def assert_settled(self) -> None:
        """See that nothing moves any more, and each lists its own alone."""
        self.moves.clear()
        self.run_passes(4)
        self.assertEqual({}, self.moves)
        for service in self.services.values():
            self.assertEqual(frozenset(), service.memory.agreement.lasting)


class ShardPassTestCase(_TestCase):
    """With the ring driver."""

    def setUp(self):
        super().setUp()
        self.start('a', 'b', 'c')
        self.run_passes(12)
        self.moves.clear()
        self.taken.clear()

    def test_division(self):
        self.assert_divided('a', 'b', 'c')
        self.assert_settled()

    def test_each_lists_its_own_shards(self):
        self.run_passes(1)
        for service in self.services.values():
            self.assertEqual([service.shards()], list(map(
                frozenset, service.ironic.listings)))
            self.assertEqual(set(), service.ironic.named_nodes)

    def test_join(self):
        before = {host: service.shards()
                  for host, service in self.services.items()}
        self.start('d')
        self.run_passes(8)
        self.assert_divided('a', 'b', 'c', 'd')
        for host, shards in before.items():
            self.assertGreaterEqual(shards, self.services[host].shards())
        self.assert_moved_once('d')
        self.assert_settled()

    def assert_moved_once(self, *hosts: str) -> None:
        """See that what has moved has come to these, at once.

        Nodes without a shard are mapped by their names.
        """
        self.assertLessEqual(set(self.moves.values()), {1})
        owners = self.owners()
        self.assertLessEqual(
            {owners[node] for node in self.moves if NODES[node]}, {*hosts})

    def test_death_and_return(self):
        before = self.services['c'].shards()
        self.run_passes(6, ['a', 'b'])
        gone = self.services.pop('c')
        self.assert_divided('a', 'b')
        self.assert_settled()
        self.assertEqual(before, (
            self.services['a'].shards() | self.services['b'].shards())
            - (frozenset(SHARDS) - before))
        self.moves.clear()
        self.services['c'] = gone
        self.start('c')
        self.run_passes(8)
        self.assert_divided('a', 'b', 'c')
        self.assert_moved_once('c')
        self.assert_settled()

    def test_failover(self):
        node = min(node for node in self.services['c'].nodes()
                   if NODES[node])
        self.place(node, 'i', 'c')
        for host in 'a', 'b':
            self.services[host].current = dataclasses.replace(
                self.services[host].current, failover_after=60)
        self.run_passes(6, ['a', 'b'])
        host = self.cloud.instances['i'].host
        self.assertIn(NODES[node], self.services[host].shards())

    def test_node_with_an_instance_stays_listed(self):
        node = min(node for node in self.services['a'].nodes()
                   if NODES[node])
        self.place(node, 'i', 'a')
        self.cloud.nodes[node].shard = next(iter(
            self.services['b'].shards()))
        for _ in range(3):
            self.run_passes(1)
            self.assertIn(node, self.services['a'].nodes())
        # After the first time, the shard is asked for as well.
        self.assertEqual(set(), self.services['a'].ironic.named_nodes)
        self.assertIn(self.cloud.nodes[node].shard,
                      self.services['a'].ironic.listings[0])

    def test_restart(self):
        node = min(self.services['a'].nodes())
        self.place(node, 'i', 'a')
        self.start('a')
        self.run_passes(4)
        self.assertEqual({}, self.moves)
        self.assert_divided('a', 'b', 'c')

    def test_shard_of_a_node_changes(self):
        node = min(node for node in self.services['a'].nodes()
                   if NODES[node])
        self.cloud.nodes[node].shard = next(iter(
            self.services['b'].shards()))
        self.run_passes(4)
        # With consent: its owner has asked for it by its name.
        self.assertEqual([], [
            each for each in self.taken if each.decision.forces])
        # With pools it may count nowhere for a moment.
        self.assertLessEqual(self.moves.items(), {(node, 1)})
        self.assertIn(node, self.services['b'].nodes())
        self.assert_settled()

    def test_all_shards_change(self):
        for number, node in enumerate(NODES):
            self.cloud.nodes[node].shard = SHARDS[number % 16]
        self.run_passes(8)
        self.assertEqual({1}, set(self.moves.values()))
        self.assertLess(len(self.cloud.rows), len(NODES) + 1)
        self.assert_settled()

    def test_missing_nodes(self):
        service = self.services['a']
        service.ironic.is_hidden = True
        self.run_passes(2, ['a'])
        self.assertTrue(service.memory.vanished.has_too_many)
        service.ironic.is_hidden = False
        self.run_passes(1)
        self.assertFalse(service.memory.vanished.has_too_many)
        self.assert_divided('a', 'b', 'c')
        self.assert_settled()

    def test_nodes_of_others_are_not_missing(self):
        self.start('d')
        for _ in range(6):
            self.run_passes(1)
            for service in self.services.values():
                self.assertEqual([], service.happened(events.NodesVanished))
                self.assertEqual({}, service.memory.vanished.deleted)

    def test_one_that_does_not_divide_by_shards(self):
        self.start('d', by_shards=False)
        self.run_passes(1)
        self.services['a'].decide()
        (said,) = self.services['a'].happened(events.ListingDiffers)
        self.assertEqual((frozenset({'d'}), True),
                         (said.hosts, said.by_shards))
        self.run_passes(10)
        self.assertEqual({1}, set(self.moves.values()))
        for service in self.services.values():
            self.assertIsNone(service.memory.view.ring.deal)
            self.assertEqual([], service.happened(events.ListingDiffers))
        self.assert_settled()
        # The last one gets it as well.
        self.start('d')
        self.run_passes(10)
        self.assert_divided('a', 'b', 'c', 'd')
        self.assertEqual({1}, set(self.moves.values()))
        self.assert_settled()

    def test_none_for_a_service_is_no_empty_scope(self):
        self.services.clear()
        self.cloud.services.clear()
        self.cloud.nodes = {node: known for node, known
                            in self.cloud.nodes.items()
                            if known.shard == SHARDS[0]}
        for known in self.cloud.nodes.values():
            known.group = 'rack'
        self.start('x', 'y', scope=settings.Scope('rack'))
        without = set()
        for _ in range(10):
            self.run_passes(1)
            for host, service in self.services.items():
                self.assertEqual([], service.happened(events.ScopeEmpty))
                if not service.memory.nodes:
                    without.add(host)
        self.assertEqual(1, len(without))

    def test_more_services_than_shards(self):
        self.start(*(f'x{number:02}' for number in range(20)))
        self.run_passes(10)
        self.assert_settled()
        self.assertLessEqual(max(len(service.shards()) for service
                                 in self.services.values()), 1)

    def test_shards_come_and_go(self):
        for node, shard in NODES.items():
            if shard == 's00':
                self.cloud.nodes[node].shard = 'new'
        self.run_passes(6)
        self.assert_settled()
        self.assertEqual({'new', *SHARDS[1:]}, {
            shard for service in self.services.values()
            for shard in service.shards()})

    def test_ironic_tells_of_no_shards(self):
        before = {host: service.shards()
                  for host, service in self.services.items()}
        for service in self.services.values():
            service.ironic.shards = lambda scope: frozenset()
        self.run_passes(3)
        self.assertEqual(before, {
            host: service.shards()
            for host, service in self.services.items()})
        self.assertEqual({}, self.moves)

    def test_what_is_held_is_said_whatever_the_tracker_does(self):
        self.start('d')
        self.run_passes(8)
        service = self.services['a']
        held = self.cloud.members['a'].held
        self.assertLess(0, len(held))
        core_base.say(self.cloud, 'a', held=frozenset())
        service.decide()
        self.assertEqual(held, self.cloud.members['a'].held)


class StartTestCase(_TestCase):
    """From the first start on."""

    def test_all_at_once(self):
        self.start('a', 'b', 'c')
        # Nobody sees what another is about to take.
        for _ in range(2):
            for service in self.services.values():
                service.decide()
            for service in self.services.values():
                service.track()
            self.cloud.now += 60
            for host in self.services:
                self.cloud.beat(host)
        self.run_passes(10)
        self.assert_divided('a', 'b', 'c')
        self.assert_settled()

    def test_from_all_to_shards(self):
        self.start('a', 'b', 'c', by_shards=False)
        self.run_passes(10)
        for host in 'abc':
            self.moves.clear()
            self.start(host)
            self.run_passes(6)
            self.assertLessEqual(set(self.moves.values()), {1})
        self.assert_divided('a', 'b', 'c')
        self.assert_settled()


class LeftoversTestCase(_TestCase):
    """Records of a dead service's nodes, of which nobody lists all."""

    def _die(self, copies: int) -> str:
        """Have c die with instances, and one of its nodes vanish.

        :param copies: how many nodes there are for each of NODES
        :returns: the node
        """
        self.cloud.nodes = {
            f'{node}-{copy}': clouds.Node(shard=shard)
            for node, shard in NODES.items() for copy in range(copies)}
        self.start('a', 'b', 'c', fails_over=False)
        self.run_passes(12)
        lost = [node for node, owner in self.owners().items()
                if owner == 'c']
        for node in lost:
            self.place(node, f'on-{node}', 'c')
        self.cloud.services['c'] = dataclasses.replace(
            self.cloud.services['c'], forced_down=True)
        del self.services['c']
        self.run_passes(2)
        # Those that it finds in its shards are no matter.
        ring = self.services['a'].memory.view.ring
        gone = min(node for node in lost if ring.by_name(node) == 'a'
                   and node not in self.services['a'].memory.nodes)
        del self.cloud.nodes[gone]
        self.cloud.instances.pop(f'on-{gone}')
        self.cloud.allocations[gone] = set()
        return gone

    def _clean(self) -> None:
        service = self.services['a']
        service.memory = dataclasses.replace(
            service.memory, cleaning=observation.Cleaning())
        service.ironic.looked_for.clear()
        service.ironic.name_listings = 0
        self.run_passes(1)

    def test_many_records(self):
        gone = self._die(6)
        self._clean()
        ironic = self.services['a'].ironic
        self.assertNotIn(gone, self.cloud.rows)
        self.assertEqual([gone], ironic.looked_for)
        self.assertEqual(1, ironic.name_listings)

    def test_few_records(self):
        gone = self._die(1)
        self._clean()
        ironic = self.services['a'].ironic
        self.assertNotIn(gone, self.cloud.rows)
        self.assertIn(gone, ironic.looked_for)
        self.assertLess(len(ironic.looked_for), 20)
        self.assertEqual(0, ironic.name_listings)


class PoolShardPassTestCase(ShardPassTestCase):
    """With the pool driver."""

    HAS_POOLS = True
