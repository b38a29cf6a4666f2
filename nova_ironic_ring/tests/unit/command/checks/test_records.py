# SPDX-License-Identifier: Apache-2.0

"""Tests of records, providers and instances that do not fit together."""

import dataclasses

from oslotest import base

from nova_ironic_ring.command.checks import findings
from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class CheckTestCase(base.BaseTestCase):

    def _kinds(self, seen: snapshot.Snapshot) -> list[str]:
        return [finding.kind for finding in table.find(seen)]

    def _only(self, seen: snapshot.Snapshot) -> findings.Finding:
        (finding,) = table.find(seen)
        return finding

    def _say(self, seen: snapshot.Snapshot, host: str,
             **changes) -> snapshot.Snapshot:
        """Have a service say something else of itself."""
        return deployment.say(seen, host, **changes)

    def test_rows_of_dead_services(self):
        finding = self._only(make(services=[
            service('a'), service('b', 61), service('c')]))
        self.assertEqual(('services', 'b'), (finding.kind, finding.subject))
        self.assertEqual('RECORDS_OF_LOST_SERVICE', finding.code.name)
        seen = make('a', 'b', instances={1: 'b'}, services=[
            service('a'), service('b', 61)])
        seen = dataclasses.replace(seen, rows={
            node: row for node, row in seen.rows.items()
            if row.owner == 'a' or node == NODES[1]})
        self.assertIn(
            'it is down, and 1 record of a node is still in its name',
            [finding.what for finding in table.find(seen)])
        finding = table.find(make(instances={1: 'b'}, services=[
            service('a'), service('b', 61), service('c')]))[0]
        self.assertEqual('INSTANCES_OF_LOST_SERVICE', finding.code.name)

    def test_row_and_provider_without_a_node(self):
        seen = make()
        nodes = dict(seen.nodes)
        del nodes[NODES[3]]
        finding = self._only(dataclasses.replace(seen, nodes=nodes))
        self.assertEqual(('rows', NODES[3]), (finding.kind, finding.subject))
        self.assertEqual('RECORD_WITHOUT_NODE', finding.code.name)
        rows = dict(seen.rows)
        del rows[NODES[3]]
        finding = self._only(
            dataclasses.replace(seen, nodes=nodes, rows=rows))
        self.assertEqual(('providers', NODES[3]),
                         (finding.kind, finding.subject))
        self.assertEqual('PROVIDER_WITHOUT_NODE', finding.code.name)

    def test_node_with_an_instance_that_ironic_does_not_show(self):
        seen = make(instances={1: 'a'})
        gone = seen.nodes[NODES[1]]
        nodes = {uuid: node for uuid, node in seen.nodes.items()
                 if uuid != NODES[1]}
        finding = self._only(dataclasses.replace(seen, nodes=nodes))
        self.assertEqual('RECORD_WITHOUT_NODE', finding.code.name)
        self.assertTrue(finding.advice.startswith(
            "check whether Nova's account may not see the node; if"))
        # It was enrolled anew, with its instance.
        new = '99999999-0000-0000-0000-000000000000'
        (finding,) = (
            finding for finding in table.find(dataclasses.replace(
                seen, nodes={**nodes, new: dataclasses.replace(
                    gone, uuid=new)}))
            if finding.code.name == 'RECORD_WITHOUT_NODE')
        self.assertIn('do not delete server instance-1: Ironic has it on node '
                      + new, finding.advice)

    def test_node_that_is_deployed_without_nova(self):
        seen = make(instances={1: 'b'}, services=[
            service('a'), service('b', 61), service('c')])
        self.assertEqual(
            ['RECORDS_OF_LOST_SERVICE', 'INSTANCE_NOT_IN_NOVA'],
            [finding.code.name for finding in table.find(
                dataclasses.replace(seen, instances={}))])

    def test_instance_whose_node_was_undeployed(self):
        seen = make(instances={1: 'a'})
        free = dataclasses.replace(seen.nodes[NODES[1]], instance=None)
        finding = self._only(dataclasses.replace(
            seen, nodes={**seen.nodes, NODES[1]: free}))
        self.assertEqual(('INSTANCE_WITHOUT_NODE', 'instance-1'),
                         (finding.code.name, finding.subject))
        self.assertIn(f'on node {NODES[1]} for Nova', finding.what)

    def test_provider_of_which_nova_has_no_pool(self):
        seen = deployment.make_pooled()
        left = 'b.CUSTOM_GONE.0123abcd'
        seen = dataclasses.replace(
            seen, pool_providers=frozenset([left, *seen.pools]))
        finding = self._only(seen)
        self.assertEqual(('PROVIDER_WITHOUT_NODE', left),
                         (finding.code.name, finding.subject))
        self.assertEqual([], table.find(dataclasses.replace(
            seen, unread={'cell2': 'away'})))

    def test_node_without_a_row_or_a_provider(self):
        seen = make()
        rows = dict(seen.rows)
        del rows[NODES[3]]
        finding = self._only(dataclasses.replace(
            seen, rows=rows, providers=seen.providers - {NODES[3]}))
        self.assertIn('has no record in Nova', finding.what)
        self.assertEqual('NODE_WITHOUT_RECORD', finding.code.name)
        finding = self._only(dataclasses.replace(
            seen, providers=seen.providers - {NODES[3]}))
        self.assertIn('no resource provider', finding.what)
        self.assertEqual('NODE_WITHOUT_PROVIDER', finding.code.name)

    def test_instance_that_is_not_with_its_row(self):
        seen = make(instances={1: 'a'})
        row = dataclasses.replace(seen.rows[NODES[1]], owner='b')
        finding = self._only(dataclasses.replace(
            seen, rows={**seen.rows, NODES[1]: row}))
        self.assertEqual('instance-1', finding.subject)
        self.assertEqual('INSTANCE_AND_NODE_APART', finding.code.name)

    def test_instance_that_nova_has_elsewhere(self):
        finding = self._only(deployment.elsewhere(make(instances={1: 'a'})))
        self.assertEqual(NODES[1], finding.subject)
        self.assertIn('which Nova has on kvm-1, with kvm', finding.what)
        self.assertEqual('INSTANCE_ELSEWHERE', finding.code.name)

    def test_instance_that_nova_does_not_have(self):
        finding = self._only(dataclasses.replace(
            make(instances={1: 'a'}), instances={}))
        self.assertEqual(NODES[1], finding.subject)
        self.assertIn('which Nova does not have', finding.what)
        self.assertEqual('INSTANCE_NOT_IN_NOVA', finding.code.name)

    def test_instance_of_a_service_without_a_record(self):
        seen = make('a', 'b', instances={1: 'x'})
        finding = self._only(dataclasses.replace(seen, rows={
            **seen.rows, NODES[1]: dataclasses.replace(
                seen.rows[NODES[1]], owner='b')}))
        # There is nothing to fail over.
        self.assertIn(f'run "nova-ironic-ring move {NODES[1]} HOST"',
                      finding.advice)

    def test_node_without_a_resource_class(self):
        seen = make()
        finding = self._only(dataclasses.replace(seen, nodes={
            **seen.nodes, NODES[1]: dataclasses.replace(
                seen.nodes[NODES[1]], resource_class=None)}))
        self.assertEqual(('NODE_WITHOUT_CLASS', NODES[1]),
                         (finding.code.name, finding.subject))

    def test_allocations(self):
        seen = make(instances={1: 'a'})
        for number, host, node, is_building in (
                (2, 'b', NODES[2], True), (3, None, None, True),
                (4, None, None, False)):
            uuid = f'instance-{number}'
            seen = dataclasses.replace(seen, instances={
                **seen.instances, uuid: snapshot.Instance(
                    host, node, is_building, uuid=uuid, name='', cell='cell1')
            })
        for consumers, expected in (
                ('', []), ('2', []), ('3', []), ('4', ['ALLOCATION_LEFT']),
                # It was built, and is deleted.
                ('9', ['ALLOCATION_LEFT']), ('29', ['ALLOCATION_LEFT']),
                ('23', ['TWO_ALLOCATIONS']),
                ('239', ['ALLOCATION_LEFT', 'TWO_ALLOCATIONS'])):
            allocated = {NODES[2]: frozenset(
                f'instance-{each}' for each in consumers)}
            found = table.find(dataclasses.replace(
                seen, allocated=allocated))
            self.assertEqual(
                expected, [finding.code.name for finding in found], consumers)
            self.assertEqual({NODES[2]} if expected else set(),
                             {finding.subject for finding in found})
        # Its instance may be in a cell that does not answer.
        self.assertEqual([], table.find(dataclasses.replace(
            seen, allocated=allocated | {NODES[2]: frozenset({'x'})},
            unread={'cell2': 'away'})))

    def test_instance_without_an_allocation(self):
        finding = self._only(dataclasses.replace(
            make(instances={1: 'a'}), unallocated=frozenset({'instance-1'})))
        self.assertEqual(('INSTANCE_WITHOUT_ALLOCATION', 'instance-1'),
                         (finding.code.name, finding.subject))
        self.assertIn(f'{NODES[1]} --amend --resource '
                      'CUSTOM_BAREMETAL:reserved=0"', finding.advice)
        self.assertIn('heal_allocations --instance instance-1"',
                      finding.advice)
        finding = self._only(dataclasses.replace(
            deployment.make_pooled(instances={1: 'a'}),
            unallocated=frozenset({'instance-1'})))
        # A pool has room.
        self.assertNotIn('reserved', finding.advice)

    def test_without_placement(self):
        self.assertEqual([], table.find(make(providers=None)))
