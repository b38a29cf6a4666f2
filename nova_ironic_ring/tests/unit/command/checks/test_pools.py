# SPDX-License-Identifier: Apache-2.0

"""Tests of what is found to look at where nodes are in pools."""

import collections
import dataclasses

from oslotest import base as oslotest_base

from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command.telling import counting
from nova_ironic_ring.command.telling import nodes
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = (
    deployment.make_pooled, deployment.service, deployment.NODES)
KIND, POOLS = deployment.KIND, deployment.POOLS
change, owner = deployment.change, deployment.owner


class PoolsTestCase(oslotest_base.BaseTestCase):

    def codes(self, seen):
        return [finding.code.name for finding in table.find(seen)]

    def test_all_is_well(self):
        self.assertEqual([], table.find(make(instances={1: 'b'})))

    def test_passes_that_fail(self):
        found = table.find(deployment.failing(make(instances={1: 'b'}), 'b'))
        self.assertIn('PASSES_FAIL', [each.code.name for each in found])

    def test_lost_service(self):
        services = [service('a'), service('b', 61), service('c')]
        seen = make(services=services)
        # Its peers have not had a pass yet.
        self.assertEqual(
            ['POOL_OF_LOST_SERVICE', 'POOLS_DIFFER_FROM_IRONIC'],
            self.codes(seen))
        (finding, _) = table.find(seen)
        self.assertEqual(POOLS['b'], finding.subject)
        self.assertIn('openstack compute service delete', finding.advice)
        self.assertEqual('INSTANCES_OF_LOST_SERVICE', self.codes(
            make(instances={1: 'b'}, services=services))[0])

    def test_service_that_is_gone(self):
        finding = table.find(make(services=[service('a'), service('c')]))[0]
        self.assertEqual('POOL_OF_LOST_SERVICE', finding.code.name)
        self.assertIn('nova-ironic-ring clean rows', finding.advice)

    def without(self, seen, host):
        """Have Nova have deleted the records of a service and its pool."""
        return dataclasses.replace(deployment.stock(seen, host), **{
            kind: {name: each for name, each in getattr(seen, kind).items()
                   if name != POOLS[host]}
            for kind in ('pools', 'inventories')})

    def test_service_with_novas_own_driver_beside_pools(self):
        seen = self.without(make(), 'c')
        rows = {node: snapshot.Row('c', node=node, cell='cell1')
                for number, node in enumerate(NODES) if owner(number) == 'c'}
        (finding,) = table.find(dataclasses.replace(
            seen, rows=rows, providers=frozenset(rows)))
        self.assertEqual(('SERVICE_SAYS_NOTHING', 'c'),
                         (finding.code.name, finding.subject))
        # Pools are no way from that driver.
        self.assertIn('ironic_ring.IronicRingDriver', finding.advice)

    def test_pool_that_novas_own_driver_has_deleted(self):
        found = [finding for finding in table.find(self.without(
            make(instances={1: 'b', 2: 'b', 3: 'a'}), 'b'))
            if finding.code.name == 'POOL_WITHOUT_RECORD']
        (finding,) = found
        self.assertEqual(POOLS['b'], finding.subject)
        self.assertIn('2 instances of b are in it', finding.what)

    def test_novas_own_driver_that_was_started_on_pools(self):
        seen = self.without(make(instances={1: 'c'}), 'c')
        rows = {node: snapshot.Row('c', node=node, cell='cell1')
                for number, node in enumerate(NODES) if owner(number) == 'c'}
        found = table.find(dataclasses.replace(
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
            (finding,) = table.find(dataclasses.replace(
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
        (finding,) = table.find(dataclasses.replace(seen, inventories={
            name: found for name, found in seen.inventories.items()
            if name != POOLS['a']}))
        self.assertIn(f'0 instead of {size} for a', finding.what)

    def test_nodes_that_count_for_nobody(self):
        seen = deployment.say(make(), 'b', partitions=7)
        counted = collections.Counter(
            count.pool for count in counting.of(seen).values())
        left = 30 - sum(counted.values())
        self.assertLess(0, left)
        # Placement has what each of them counts.
        (_, finding) = table.find(dataclasses.replace(
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
        found = [finding for finding in table.find(seen)
                 if finding.code.name == 'NODES_LEFT_OUT']
        self.assertEqual(len(found), len(table.find(seen)))
        self.assertEqual({owner(number) for number in range(10)},
                         {finding.subject for finding in found})
        number = sum(owner(number) == found[0].subject for number in range(10))
        self.assertIn('pools_limit (1) lets it make, and '
                      f'{number} node', found[0].what)
        self.assertEqual(
            f'{owner(0)} has as many pools as [ironic_ring] pools_limit lets '
            "it make, and none of the node's kind: nothing is built on the "
            'node', nodes.explain(seen, seen.nodes[NODES[0]])['Reason'])
        self.assertNotIn('NODES_LEFT_OUT', self.codes(
            self.limited(pools_limit=30)))

    def test_kinds_by_what_the_services_say(self):
        self.assertEqual([], self.codes(self.limited(traits=())))

    def test_kinds_that_differ(self):
        seen = self.limited(traits=('CUSTOM_FAST',))
        seen = deployment.say(seen, 'a', traits=None)
        (what,) = (finding.what for finding in table.find(seen)
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
