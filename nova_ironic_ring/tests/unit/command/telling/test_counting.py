# SPDX-License-Identifier: Apache-2.0

"""Services with pools, as the command sees them."""

import dataclasses

from oslotest import base as oslotest_base

from nova_ironic_ring.command.telling import counting
from nova_ironic_ring.command.telling import nodes
from nova_ironic_ring.command.telling import overview
from nova_ironic_ring.command.telling import planning
from nova_ironic_ring.command.telling import prospect
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = (
    deployment.make_pooled, deployment.service, deployment.NODES)
KIND, POOLS = deployment.KIND, deployment.POOLS
change, owner = deployment.change, deployment.owner


class CountingTestCase(oslotest_base.BaseTestCase):

    def test_each_node_counts_where_it_should(self):
        found = counting.of(make())
        self.assertEqual(
            {node: counting.Count(host, POOLS[host], 'cell1')
             for number, node in enumerate(NODES)
             for host in (owner(number),)}, found)
        self.assertEqual({}, counting.of(deployment.make()))

    def test_instances_count_where_nova_has_them(self):
        found = counting.of(make(instances=dict.fromkeys(range(5), 'b')))
        self.assertEqual({POOLS['b']},
                         {found[node].pool for node in NODES[:5]})

    def test_free_nodes_of_one_that_is_down_count_for_others(self):
        found = counting.of(make(instances={1: 'b'}, services=[
            service('a'), service('b', 61), service('c')]))
        self.assertEqual(
            counting.Count('b', POOLS['b'], 'cell1'), found.pop(NODES[1]))
        self.assertEqual({'a', 'c'}, {each.host for each in found.values()})
        self.assertEqual(29, len(found))

    def test_free_nodes_of_one_whose_passes_fail_count_for_others(self):
        found = counting.of(deployment.failing(make(instances={1: 'b'}), 'b'))
        self.assertEqual('b', found.pop(NODES[1]).host)
        self.assertEqual({'a', 'c'}, {each.host for each in found.values()})

    def test_instances_of_the_dead_have_a_taker(self):
        found = counting.of(make(instances={1: 'b'}, services=[
            service('a'), service('b', forced_down=True), service('c')]))
        self.assertEqual(counting.Count(
            'b', POOLS['b'], 'cell1', owner(1, 'a', 'c')), found[NODES[1]])

    def test_left(self):
        seen = make(instances={1: 'a'})
        for total, reserved, used, left in (
                (5, 0, 1, 4), (5, 2, 1, 4), (1, 0, 1, 0), (1, 1, 0, 0),
                # Builds that are on their way.
                (1, 0, 2, 1), (5, 0, 3, 6)):
            self.assertEqual(left, counting.left(seen, 'a', {
                POOLS['a']: snapshot.Inventory(total, reserved, used),
                POOLS['b']: snapshot.Inventory(5, 0, 0)}))
        self.assertEqual(0, counting.left(seen, 'a', {}))
        lost = dataclasses.replace(seen, services=[
            service('a', 61), service('b')])
        for total, reserved, used, left in (
                (5, 0, 1, 4), (5, 5, 1, 0), (5, 5, 2, 1)):
            self.assertEqual(left, counting.left(lost, 'a', {
                POOLS['a']: snapshot.Inventory(total, reserved, used)}))

    def test_missing(self):
        seen = make()
        size = seen.inventories[POOLS['a']].total
        self.assertEqual(0, counting.missing(seen, ['a'], seen.inventories))
        self.assertEqual(size, counting.missing(seen, ['a'], {}))
        self.assertEqual(
            size + seen.inventories[POOLS['b']].total,
            counting.missing(seen, ['a', 'b'], {}))
        self.assertEqual(size - 1, counting.missing(
            seen, ['a'], {POOLS['a']: snapshot.Inventory(1, 1, 0)}))


class DriverTestCase(oslotest_base.BaseTestCase):
    """Which driver a service seems to have."""

    def test_one_without_a_record_is_as_its_peers(self):
        seen = make(services=[service(host) for host in 'abcd'])
        self.assertEqual([True] * 4, list(map(seen.has_pools, 'abcd')))
        seen = deployment.make(services=[service(host) for host in 'abcd'])
        self.assertEqual([False] * 4, list(map(seen.has_pools, 'abcd')))

    def test_one_that_has_changed_it(self):
        seen = deployment.record(
            dataclasses.replace(make(), rows=deployment.make().rows), 'a',
            has_pools=False)
        self.assertEqual([False, True], list(map(seen.has_pools, 'ab')))
        # Those that do not say it.
        self.assertEqual([True, True, False], list(map(
            dataclasses.replace(
                deployment.stock(seen, 'a', 'b', 'c'),
                pools={name: row for name, row in seen.pools.items()
                       if row.owner != 'c'}).has_pools, 'abc')))

    def test_one_with_a_member_record_alone(self):
        seen = dataclasses.replace(deployment.record(
            make(), 'b', has_pools=False), pools={})
        self.assertEqual([True, False, True], list(
            map(seen.has_pools, 'abc')))

    def test_both_in_one_ring(self):
        # The nodes of c have records of their own.
        others = deployment.make()
        seen = dataclasses.replace(
            deployment.record(make(), 'c', has_pools=False),
            rows={node: row for node, row in others.rows.items()
                  if row.owner == 'c'},
            pools={name: row for name, row in make().pools.items()
                   if row.owner != 'c'})
        self.assertEqual([True, True, False], list(
            map(seen.has_pools, 'abc')))
        found = counting.of(seen)
        for number, node in enumerate(NODES):
            self.assertEqual(
                owner(number), found[node].host if node in found
                else seen.rows[node].owner)
        self.assertEqual(30, sum(
            line.owned for line in overview.lines(seen)))
        story = nodes.Teller(seen).tell(seen.nodes[min(seen.rows)])
        self.assertEqual(('KEEP', ''), (story.code, story.pool))


class OverviewTestCase(oslotest_base.BaseTestCase):

    def lines(self, seen):
        return {line.host: line for line in overview.lines(seen)}

    def test_all_is_well(self):
        for line in self.lines(make()).values():
            self.assertEqual('MEMBER', line.is_what.code.name)
            self.assertEqual(line.desired, line.owned)
            self.assertEqual(0, line.to_hand_over)

    def test_dead_one(self):
        lines = self.lines(make(instances={1: 'b', 2: 'b', 3: 'a'}, services=[
            service('a'), service('b', forced_down=True), service('c')]))
        self.assertEqual((2, 2, 2, 0), (
            lines['b'].owned, lines['b'].instances, lines['b'].to_fail_over,
            lines['b'].to_hand_over))
        self.assertEqual(30, sum(line.owned for line in lines.values()))

    def test_pools_of_one_that_is_gone(self):
        lines = self.lines(make(instances={1: 'b'}, services=[
            service('a'), service('c')]))
        self.assertEqual(('GONE', 1), (
            lines['b'].is_what.code.name, lines['b'].owned))


class DecisionTestCase(oslotest_base.BaseTestCase):

    def explain(self, seen, number):
        return nodes.explain(seen, seen.nodes[NODES[number]])

    def codes(self, story):
        return tuple(story[name] for name in (
            'Owner', 'Pool', 'Decided by', 'Decision code', 'To move'))

    def test_free(self):
        host, story = owner(0), self.explain(make(), 0)
        self.assertEqual(
            (host, POOLS[host], host, 'COUNT', False), self.codes(story))
        self.assertEqual(f'{host}: COUNT', story['Decision'])
        self.assertEqual(
            f'the node is free, and counts in the pool of {host}',
            story['Reason'])
        self.assertEqual('MEMBER', story['Owner state code'])

    def test_failed_deployments(self):
        seen = make()
        self.assertEqual('', self.explain(seen, 0)['Failed deployments'])
        # The service that has failed says so.
        seen = deployment.record(seen, 'c', failed={
            NODES[0]: failures.Failure(3, seen.now)})
        self.assertEqual(
            f'3 in a row, the last at {seen.now.isoformat()}',
            self.explain(seen, 0)['Failed deployments'])
        teller = nodes.Teller(seen)
        self.assertEqual([
            f'3 in a row, the last at {seen.now.isoformat()}', ''], [
            teller.tell(seen.nodes[node]).failed for node in NODES[:2]])

    def test_not_ready(self):
        story = self.explain(change(make(), node_0={'is_ready': False}), 0)
        self.assertIn('free and not ready: reserved', story['Reason'])

    def test_with_an_instance(self):
        host = 'a' if owner(1) != 'a' else 'b'
        story = self.explain(make(instances={1: host}), 1)
        self.assertEqual(
            (host, POOLS[host], host, 'COUNT', False), self.codes(story))
        self.assertEqual(owner(1), story['Desired owner'])
        self.assertEqual('instance-1 (server-1)', story['Instance'])
        self.assertEqual(host, story['Instance belongs to'])

    def test_with_an_instance_that_nobody_has(self):
        story = self.explain(change(make(), node_0={'instance': 'i'}), 0)
        self.assertEqual('COUNT', story['Decision code'])
        self.assertIn('that Nova does not have', story['Reason'])

    def test_with_an_instance_of_one_that_is_down(self):
        story = self.explain(make(instances={1: 'b'}, services=[
            service('a'), service('b', 61), service('c')]), 1)
        self.assertEqual(
            ('b', POOLS['b'], owner(1, 'a', 'c'), 'LEAVE_INSTANCE', False),
            self.codes(story))
        self.assertIn('nova-ironic-ring failover b', story['Reason'])

    def test_with_an_instance_of_the_dead(self):
        story = self.explain(make(instances={1: 'b'}, services=[
            service('a'), service('b', forced_down=True), service('c')]), 1)
        self.assertEqual(
            ('b', POOLS['b'], owner(1, 'a', 'c'), 'FAIL_OVER', True),
            self.codes(story))

    def test_with_an_instance_while_nobody_lives(self):
        story = self.explain(make(instances={1: 'b'}, services=[
            service('b', 61)]), 1)
        self.assertEqual(('b', POOLS['b'], '', 'LEAVE_INSTANCE', False),
                         self.codes(story))

    def test_without_resource_class(self):
        story = self.explain(change(make(), node_0={'kind': None}), 0)
        self.assertEqual(('', '', '', 'NONE', False), self.codes(story))
        self.assertIn('no resource class', story['Reason'])

    def test_with_a_record_of_another_driver(self):
        seen = make()
        seen = dataclasses.replace(
            change(seen, node_0={'instance': 'i'}),
            rows={NODES[0]: snapshot.Row(
                owner(0), node=NODES[0], cell='cell1')},
            instances={'i': snapshot.Instance(
                owner(0), NODES[0], uuid='i', name='i', cell='cell1')})
        # Its service brings it into a pool, and counts it there already.
        self.assertEqual((owner(0), 'COUNT', False),
                         self.codes(self.explain(seen, 0))[2:])


class PlanTestCase(oslotest_base.BaseTestCase):

    def plan(self, seen, **changes):
        return planning.plan(seen, seen.keys()[0], prospect.Change(**{
            name: frozenset(hosts) for name, hosts in changes.items()}))

    def test_as_it_is(self):
        plan = self.plan(make(instances={1: 'b'}))
        self.assertEqual((0, 0, True), (
            plan.moved_nodes, plan.moved_instances, plan.is_settled))
        self.assertEqual(29, sum(share.nodes for share in plan.shares))

    def test_as_with_the_ring_driver(self):
        for changes in {'add': ['d']}, {'remove': ['b']}, {'disable': ['c']}:
            held = {1: 'b', 2: 'a'}
            self.assertEqual(
                self.plan(deployment.make(instances=held), **changes),
                self.plan(make(instances=held), **changes))

    def test_one_that_is_forced_down_already(self):
        plan = self.plan(make(instances={1: 'b'}, services=[
            service('a'), service('b', forced_down=True), service('c')]))
        self.assertEqual((0, 1, True), (
            plan.moved_nodes, plan.moved_instances, plan.is_settled))
