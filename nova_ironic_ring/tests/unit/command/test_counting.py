# SPDX-License-Identifier: Apache-2.0

"""Services with pools, as the command sees them."""

import collections
import dataclasses
import json

import fixtures
from nova import exception
from nova import objects
from oslotest import base as oslotest_base

from nova_ironic_ring.command import checks
from nova_ironic_ring.command import counting
from nova_ironic_ring.command import decisions
from nova_ironic_ring.command import errors
from nova_ironic_ring.command import overview
from nova_ironic_ring.command import planning
from nova_ironic_ring.command import prospect
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.taking import pool_gift
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = (
    deployment.make_pooled, deployment.service, deployment.NODES)
KIND = deployment.KIND
POOLS = {host: pools.name(host, KIND) for host in 'abcd'}


def change(seen, **of_nodes):
    """Have Ironic say something else of nodes.

    :param of_nodes: what to change, by the name of the node as in node_3
    """
    nodes = dict(seen.nodes)
    for name, fields in of_nodes.items():
        uuid = NODES[int(name.removeprefix('node_'))]
        nodes[uuid] = dataclasses.replace(nodes[uuid], **fields)
    return dataclasses.replace(seen, nodes=nodes)


def owner(number, *hosts):
    return ring.Ring(hosts or ('a', 'b', 'c'), 32).owner(NODES[number])


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
        pooled, ring_driver = make(), deployment.make()
        for host, is_pooled in ('a', False), ('b', True):
            seen = dataclasses.replace(
                pooled, rows=deployment.failing(
                    ring_driver, '' if host == 'a' else 'b').rows,
                pools=deployment.failing(pooled, 'a').pools)
            self.assertEqual(is_pooled, seen.has_pools(host))

    def test_both_in_one_ring(self):
        # The nodes of c have records of their own.
        nodes = deployment.make()
        seen = dataclasses.replace(
            make(), rows={node: row for node, row in nodes.rows.items()
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
        story = decisions.Teller(seen).tell(seen.nodes[min(seen.rows)])
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
        return decisions.explain(seen, seen.nodes[NODES[number]])

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
        # The service that has failed says so, in each of its rows.
        seen = dataclasses.replace(seen, pools={
            name: dataclasses.replace(row, failed={
                NODES[0]: failures.Failure(3, seen.now)}) if name == POOLS['c']
            else row for name, row in seen.pools.items()})
        self.assertEqual(
            f'3 in a row, the last at {seen.now.isoformat()}',
            self.explain(seen, 0)['Failed deployments'])
        teller = decisions.Teller(seen)
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
            rows={NODES[0]: snapshot.Row(NODES[0], owner(0), 'cell1')},
            instances={'i': snapshot.Instance(
                'i', 'i', owner(0), NODES[0], 'cell1')})
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


class CheckTestCase(oslotest_base.BaseTestCase):

    def codes(self, seen):
        return [finding.code.name for finding in checks.find(seen)]

    def test_all_is_well(self):
        self.assertEqual([], checks.find(make(instances={1: 'b'})))

    def test_passes_that_fail(self):
        found = checks.find(deployment.failing(make(instances={1: 'b'}), 'b'))
        self.assertIn('PASSES_FAIL', [each.code.name for each in found])

    def test_lost_service(self):
        services = [service('a'), service('b', 61), service('c')]
        seen = make(services=services)
        # Its peers have not had a pass yet.
        self.assertEqual(
            ['POOL_OF_LOST_SERVICE', 'POOLS_DIFFER_FROM_IRONIC'],
            self.codes(seen))
        (finding, _) = checks.find(seen)
        self.assertEqual(POOLS['b'], finding.subject)
        self.assertIn('openstack compute service delete', finding.advice)
        self.assertEqual('INSTANCES_OF_LOST_SERVICE', self.codes(
            make(instances={1: 'b'}, services=services))[0])

    def test_service_that_is_gone(self):
        finding = checks.find(make(services=[service('a'), service('c')]))[0]
        self.assertEqual('POOL_OF_LOST_SERVICE', finding.code.name)
        self.assertIn('nova-ironic-ring clean rows', finding.advice)

    def without(self, seen, host):
        """Have Nova have deleted the pool of a service."""
        return dataclasses.replace(seen, **{
            kind: {name: each for name, each in getattr(seen, kind).items()
                   if name != POOLS[host]}
            for kind in ('pools', 'inventories')})

    def test_service_with_novas_own_driver_beside_pools(self):
        seen = self.without(make(), 'c')
        rows = {node: snapshot.Row(node, 'c', 'cell1')
                for number, node in enumerate(NODES) if owner(number) == 'c'}
        (finding,) = checks.find(dataclasses.replace(
            seen, rows=rows, providers=frozenset(rows)))
        self.assertEqual(('SERVICE_SAYS_NOTHING', 'c'),
                         (finding.code.name, finding.subject))
        # Pools are no way from that driver.
        self.assertIn('ironic_ring.IronicRingDriver', finding.advice)

    def test_pool_that_novas_own_driver_has_deleted(self):
        found = [finding for finding in checks.find(self.without(
            make(instances={1: 'b', 2: 'b', 3: 'a'}), 'b'))
            if finding.code.name == 'POOL_WITHOUT_RECORD']
        (finding,) = found
        self.assertEqual(POOLS['b'], finding.subject)
        self.assertIn('2 instances of b are in it', finding.what)

    def test_novas_own_driver_that_was_started_on_pools(self):
        seen = self.without(make(instances={1: 'c'}), 'c')
        rows = {node: snapshot.Row(node, 'c', 'cell1')
                for number, node in enumerate(NODES) if owner(number) == 'c'}
        found = checks.find(dataclasses.replace(
            seen, rows=rows, providers=frozenset(rows)))
        self.assertEqual(['SERVICE_SAYS_NOTHING', 'POOL_WITHOUT_RECORD'],
                         [finding.code.name for finding in found][:2])
        # They do not contradict each other.
        for finding in found[:2]:
            self.assertIn('ironic_ring.IronicPoolDriver', finding.advice)

    def test_host_whose_hypervisor_is_named_as_pools_are(self):
        seen = self.without(make(instances={1: 'b'}), 'b')
        self.assertNotIn('POOL_WITHOUT_RECORD', self.codes(
            dataclasses.replace(seen, other_rows=frozenset('b'))))

    def test_total(self):
        seen = make()
        size = seen.inventories[POOLS['a']].total
        for total in size + 1, size - 1:
            (finding,) = checks.find(dataclasses.replace(
                seen, inventories={
                    **seen.inventories,
                    POOLS['a']: snapshot.Inventory(total, 0, 0)}))
            self.assertEqual('POOLS_DIFFER_FROM_IRONIC', finding.code.name)
            self.assertIn(
                f'Placement has {30 + total - size} nodes of resource class '
                'CUSTOM_BAREMETAL', finding.what)
            self.assertIn(f'Ironic has 30 ({total} instead of {size} for a)',
                          finding.what)
        # What has no pool in Placement is missing.
        (finding,) = checks.find(dataclasses.replace(seen, inventories={
            name: found for name, found in seen.inventories.items()
            if name != POOLS['a']}))
        self.assertIn(f'0 instead of {size} for a', finding.what)

    def test_nodes_that_count_for_nobody(self):
        seen = make()
        seen = dataclasses.replace(seen, pools={
            **seen.pools, POOLS['b']: dataclasses.replace(
                seen.pools[POOLS['b']], profile=profile.Profile(
                    partitions=7))})
        counted = collections.Counter(
            count.pool for count in counting.of(seen).values())
        left = 30 - sum(counted.values())
        self.assertLess(0, left)
        # Placement has what each of them counts.
        (_, finding) = checks.find(dataclasses.replace(
            seen, inventories={
                name: snapshot.Inventory(counted[name], 0, 0)
                for name in POOLS.values()}))
        self.assertEqual('POOLS_DIFFER_FROM_IRONIC', finding.code.name)
        self.assertIn(f'Placement has {30 - left} nodes of', finding.what)
        self.assertIn(f'Ironic has 30 ({left} for no service)', finding.what)

    def test_total_of_kinds(self):
        other = pools.Kind('CUSTOM_BAREMETAL', frozenset({'CUSTOM_FAST'}))
        seen = change(make(), node_0={'kind': other})
        host, name = owner(0), pools.name(owner(0), other)
        size = seen.inventories[POOLS[host]].total
        self.assertEqual(['POOLS_DIFFER_FROM_IRONIC'] * 2, self.codes(seen))
        self.assertEqual([], self.codes(dataclasses.replace(
            seen, pools={**seen.pools, name: dataclasses.replace(
                seen.pools[POOLS[host]], node=name)}, inventories={
                **seen.inventories, name: snapshot.Inventory(1, 0, 0),
                POOLS[host]: snapshot.Inventory(size - 1, 0, 0)})))

    def test_pool_without_nodes(self):
        held = dict.fromkeys(range(30), 'b')
        seen = make(instances=held, services=[
            service('a'), service('b'), service('c', disabled=True)])
        self.assertEqual([], self.codes(dataclasses.replace(
            seen, inventories={
                **seen.inventories, POOLS['a']: snapshot.Inventory(1, 1, 0),
                POOLS['c']: snapshot.Inventory(1, 1, 1)})))

    def test_node_without_resource_class(self):
        seen = change(make(), node_0={'kind': None})
        host = owner(0)
        size = seen.inventories[POOLS[host]].total
        self.assertEqual(['NODE_WITHOUT_POOL'], self.codes(
            dataclasses.replace(seen, inventories={
                **seen.inventories,
                POOLS[host]: snapshot.Inventory(size - 1, 0, 0)})))

    def limited(self, **options):
        """Return a deployment in which a stranger makes a kind a node."""
        return change(make(said=profile.Profile(
            protocol=profile.PROTOCOL, **options)), **{
                f'node_{number}': {'kind': pools.Kind(
                    'CUSTOM_BAREMETAL', frozenset({f'CUSTOM_{number}'}))}
                for number in range(10)})

    def test_more_kinds_than_the_limit(self):
        seen = dataclasses.replace(self.limited(pools_limit=1), inventories={
            name: snapshot.Inventory(sum(
                owner(number) == host for number in range(10, 30)), 0, 0)
            for host, name in POOLS.items()})
        found = [finding for finding in checks.find(seen)
                 if finding.code.name == 'NODES_LEFT_OUT']
        self.assertEqual(len(found), len(checks.find(seen)))
        self.assertEqual({owner(number) for number in range(10)},
                         {finding.subject for finding in found})
        number = sum(owner(number) == found[0].subject for number in range(10))
        self.assertIn('pools_limit (1) lets it make, and '
                      f'{number} node', found[0].what)
        self.assertEqual(
            f'{owner(0)} has as many pools as [ironic_ring] pools_limit lets '
            "it make, and none of the node's kind: nothing is built on the "
            'node', decisions.explain(seen, seen.nodes[NODES[0]])['Reason'])
        self.assertNotIn('NODES_LEFT_OUT', self.codes(
            self.limited(pools_limit=30)))

    def test_kinds_by_what_the_services_say(self):
        self.assertEqual([], self.codes(self.limited(traits=())))

    def test_kinds_that_differ(self):
        seen = self.limited(traits=('CUSTOM_FAST',))
        seen = dataclasses.replace(seen, pools={
            name: dataclasses.replace(row, profile=dataclasses.replace(
                row.profile, traits=None)) if row.owner == 'a' else row
            for name, row in seen.pools.items()})
        (what,) = (finding.what for finding in checks.find(seen)
                   if finding.code.name == 'CONFIGURATION_DIFFERS')
        self.assertEqual('[ironic_ring] pool_traits differs '
                         '(b, c: CUSTOM_FAST; a: unset)', what)

    def test_instance_without_node(self):
        seen = make(instances={1: owner(1)})
        self.assertEqual(['INSTANCE_WITHOUT_NODE'], self.codes(
            change(seen, node_1={'instance': None})))
        seen = dataclasses.replace(seen, instances={
            'instance-1': dataclasses.replace(
                seen.instances['instance-1'], is_building=True)})
        self.assertEqual([], self.codes(
            change(seen, node_1={'instance': None})))

    def test_instance_in_the_pool_of_another(self):
        seen = make(instances={1: 'a'})
        seen = dataclasses.replace(seen, instances={
            'instance-1': dataclasses.replace(
                seen.instances['instance-1'], node=POOLS['b'])})
        self.assertIn('INSTANCE_ELSEWHERE', self.codes(seen))


class CommandTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.use(make(instances={1: 'a', 2: 'b'}))
        self.source.step = self.pass_

    def use(self, seen):
        self.source.seen, self.source.pools = seen, dict(seen.inventories)

    def pass_(self, seen):
        """Have a service that lives write its inventory, or be reserved."""
        counts = counting.of(seen)
        sizes = collections.Counter(each.pool for each in counts.values())
        used = collections.Counter(
            each.pool for each in seen.instances.values())
        for name, row in seen.pools.items():
            wanted = snapshot.Inventory(
                max(1, sizes[name]), int(not sizes[name]), used[name])
            if seen.state(row.owner).is_lost:
                was = self.source.pools[name]
                wanted = snapshot.Inventory(was.total, was.total, used[name])
            if self.source.pools.get(name) != wanted:
                self.source.pools[name] = wanted
                return seen
        return self.take_over(seen)

    def take_over(self, seen):
        for node, count in counting.of(seen).items():
            if count.taker is not None:
                uuid = str(seen.nodes[node].instance)
                return dataclasses.replace(seen, instances={
                    **seen.instances, uuid: dataclasses.replace(
                        seen.instances[uuid], host=count.taker,
                        node=POOLS[count.taker])})
        return seen

    def test_drain_and_undrain(self):
        steps = self.run_steps('drain', 'a', '--yes')
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'),
             ('WAIT_FOR_NODES', 'a', 'DONE')], steps)
        self.assertIn('free nodes are with others', self.err)
        # Its instance stays, and its node is with it.
        self.assertEqual(snapshot.Inventory(1, 0, 1),
                         self.source.pools[POOLS['a']])
        self.assertEqual(30, sum(
            each.total for each in self.source.pools.values()))
        self.assertEqual([], self.run_steps('drain', 'a', '--yes'))
        self.assertEqual(
            [('ENABLE_SERVICE', 'a', 'DONE'), ('WAIT_FOR_SHARE', 'a', 'DONE')],
            self.run_steps('undrain', 'a', '--yes'))
        self.assertGreater(self.source.pools[POOLS['a']].total, 1)

    def test_drain_waits_for_builds(self):
        self.source.step = lambda seen: seen
        self.source.pools[POOLS['a']] = snapshot.Inventory(1, 0, 3)
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'),
             ('WAIT_FOR_NODES', 'a', 'NOT_YET')],
            self.run_steps('drain', 'a', '--yes', '--timeout', '0', status=1))

    def test_drain_waits_for_its_peers(self):
        size = self.source.pools[POOLS['a']].total

        def step(seen):
            if seen.service('a').record.disabled:
                self.source.pools[POOLS['a']] = snapshot.Inventory(1, 0, 1)
            return seen
        self.source.step = step
        self.run_steps('drain', 'a', '--yes', '--timeout', '0', status=1)
        self.assertIn(f': {size - 1} left', self.err)

    def test_drain_while_placement_is_away_for_a_moment(self):
        read, calls = self.source.inventories, []

        def inventories(names):
            calls.append(names)
            if len(calls) == 2:
                raise errors.CommandError('Placement is away.')
            return read(names)
        self.source.inventories = inventories
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'),
             ('WAIT_FOR_NODES', 'a', 'DONE')],
            self.run_steps('drain', 'a', '--yes'))
        self.assertIn('Placement is away.', self.err)

    def test_drain_of_instances(self):
        self.run_command('drain', 'a', '--instances', '--yes', status=2)
        self.assertIn('set [ironic_ring] instance_mobility = follow',
                      self.err)
        self.assertEqual([], self.saved)
        self.use(make(instances={1: 'a', 2: 'a'}, said=profile.Profile(
            mobility='follow')))
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'), ('WAIT_FOR_NODES', 'a', 'DONE'),
             ('WAIT_FOR_INSTANCES', 'a', 'DONE')],
            self.run_steps('drain', 'a', '--instances', '--yes'))
        self.assertNotIn('a', {
            each.host for each in self.source.seen.instances.values()})

    def test_failover(self):
        seen = make(instances={1: 'a', 2: 'b'}, services=[
            service('a'), service('b', 61), service('c')])
        self.use(seen)
        self.assertEqual(
            [('FORCE_SERVICE_DOWN', 'b', 'DONE'),
             ('WAIT_FOR_NODES', 'b', 'DONE'),
             ('WAIT_FOR_INSTANCES', 'b', 'DONE')],
            self.run_steps('failover', 'b', '--yes'))
        self.assertIn(self.source.seen.instances['instance-2'].host,
                      ('a', 'c'))

    def test_node_whose_instance_is_about_to_follow(self):
        self.use(make(instances={1: 'a'}, said=profile.Profile(
            mobility='follow'), services=[
                service('a', disabled=True), service('b'), service('c')]))
        told = json.loads(self.run_command(
            'node', 'show', 'node-1', '-f', 'json'))
        self.assertIn(told['Decision'], {
            'b: TAKE_INSTANCE', 'c: TAKE_INSTANCE'})

    def _give(self, given=True):
        """Have instances be given away as they are asked for."""
        def give(nova, placement, gift):
            self.given.append(gift)
            if given is not True:
                raise given
            host = next(host for host, pool in POOLS.items()
                        if pool == gift.target)
            self.source.seen = dataclasses.replace(
                self.source.seen, instances={
                    **self.source.seen.instances,
                    gift.instance: dataclasses.replace(
                        self.source.seen.instances[gift.instance], host=host,
                        node=gift.target)})
            return True
        self.given = []
        self.useFixture(fixtures.MockPatchObject(pool_gift, 'give', give))
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all_by_host', return_value=[]))

    def test_move(self):
        self._give()
        self.assertEqual(
            [('GIVE_INSTANCE', NODES[1], 'DONE'),
             ('WAIT_FOR_NODE', NODES[1], 'DONE')],
            self.run_steps('move', 'instance-1', 'c', '--yes'))
        self.assertEqual([pool_gift.Gift(
            'instance-1', 'a', POOLS['a'], POOLS['c'])], self.given)
        # Its new service has counted it.
        self.assertEqual(
            1, self.source.pools[POOLS['c']].used)
        self.run_command('move', 'node-1', 'c', '--yes')
        self.assertIn('There is nothing to do', self.err)

    def test_move_of_many_asks_once_a_look(self):
        self.use(make(instances={number: 'a' for number in range(6)}))
        self._give()
        asked, looks = [], []
        inventories, step = self.source.inventories, self.source.step

        def look(seen):
            looks.append(seen)
            return step(seen)

        def ask(names):
            asked.append(sorted(names))
            return inventories(asked[-1])
        self.source.step, self.source.inventories = look, ask
        self.run_command('move', *(f'node-{number}' for number in range(6)),
                         'c', '--yes')
        # One look to plan, and one before the first is given.
        self.assertLessEqual(len(asked), len(looks) - 2)

    def test_move_that_placement_refuses(self):
        self._give(exception.ResourceProviderUpdateConflict(
            uuid='u', generation=1, error='409'))
        self.assertEqual(
            [('GIVE_INSTANCE', NODES[1], 'FAILED'),
             ('WAIT_FOR_NODE', NODES[1], 'NOT_DONE')],
            self.run_steps('move', 'node-1', 'c', '--yes', status=2))
        self.assertIn('Placement does not move', self.err)

    def test_move_to_one_without_such_a_pool_is_refused(self):
        seen = self.source.seen
        self.use(dataclasses.replace(seen, nodes={
            uuid: dataclasses.replace(node, kind=pools.Kind('CUSTOM_OTHER'))
            for uuid, node in seen.nodes.items()}))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('has no pool of nodes such as', self.err)

    def test_move_of_what_follows_is_refused(self):
        self.use(make(instances={1: 'a'}, said=profile.Profile(
            mobility='follow')))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('and would go back', self.err)

    def test_move_to_one_with_the_ring_driver_is_refused(self):
        nodes = deployment.make(instances={1: 'a'})
        seen = self.source.seen
        self.use(dataclasses.replace(
            seen, pools={name: row for name, row in seen.pools.items()
                         if row.owner != 'c'},
            rows={node: row for node, row in nodes.rows.items()
                  if row.owner == 'c'}))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('does not have the pool driver', self.err)

    def test_move_to_one_with_pools_is_refused(self):
        nodes = deployment.make(instances={1: 'a'})
        self.use(dataclasses.replace(
            nodes, pools={POOLS['c']: make().pools[POOLS['c']]}, rows={
                node: row for node, row in nodes.rows.items()
                if row.owner != 'c'}))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('has the pool driver', self.err)

    def test_node_list(self):
        lines = json.loads(self.run_command(
            'node', 'list', '--decision', 'count', '-f', 'json'))
        self.assertEqual(30, len(lines))
        for line in lines:
            self.assertEqual(POOLS[line['Owner']], line['Pool'])
        self.assertNotIn('Pool', self.run_command('node', 'list'))
        names = json.loads(self.run_command(
            'node', 'list', '--owner', 'A', '-f', 'json'))
        self.assertEqual({'a'}, {line['Owner'] for line in names})

    def test_node_show_of_a_server(self):
        told = json.loads(self.run_command(
            'node', 'show', 'instance-1', '-f', 'json'))
        self.assertEqual((NODES[1], POOLS['a']), (told['Node'], told['Pool']))
        self.assertEqual('instance-1 (server-1)', told['Instance'])

    def test_check_and_show(self):
        self.run_command('check')
        self.assertIn('All is well', self.err)
        lines = json.loads(self.run_command('show', '-f', 'json'))
        self.assertEqual(30, sum(line['Nodes'] for line in lines))
