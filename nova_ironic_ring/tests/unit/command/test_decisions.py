# SPDX-License-Identifier: Apache-2.0

"""Tests of what is said of one node."""

import dataclasses
from typing import Any

from oslotest import base

from nova_ironic_ring.command import decisions
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class DecisionTestCase(base.BaseTestCase):

    def _explain(self, seen: snapshot.Snapshot, number: int) -> Any:
        return decisions.explain(seen, seen.nodes[NODES[number]])

    def _codes(self, story: Any) -> tuple[str, str, bool]:
        return story['Decided by'], story['Decision code'], story['To move']

    def _of(self, number: int, *hosts: str) -> str:
        return str(ring.Ring(hosts, 32).owner(NODES[number]))

    def test_free_and_well(self):
        story = self._explain(make(), 0)
        owner = self._of(0, 'a', 'b', 'c')
        self.assertEqual(owner, story['Owner'])
        self.assertEqual(owner, story['Desired owner'])
        self.assertEqual(2, len(story['Successors'].split(', ')))
        self.assertEqual(f'{owner}: KEEP', story['Decision'])
        self.assertEqual('the node is free and for this service',
                         story['Reason'])

    def test_in_a_ring_with_some_of_the_nodes_of_another(self):
        seen = deployment.with_a_rack(make())
        story = self._explain(seen, 0)
        self.assertEqual('cell cell1, group "rack"', story['Ring'])
        self.assertEqual(('c', 'c: KEEP', ''), (
            story['Desired owner'], story['Decision'], story['Successors']))
        self.assertEqual('cell cell1', self._explain(seen, 12)['Ring'])

    def _with_row(self, number: int, owner: str, taker: str | None = None,
                  **changes) -> snapshot.Snapshot:
        seen = make(**changes)
        row = dataclasses.replace(seen.rows[NODES[number]], owner=owner,
                                  taker=taker)
        return dataclasses.replace(
            seen, rows={**seen.rows, NODES[number]: row})

    def test_free_and_with_another(self):
        desired = self._of(0, 'a', 'b', 'c')
        other = 'a' if desired != 'a' else 'b'
        story = self._explain(self._with_row(0, other), 0)
        self.assertEqual(f'{other}: OFFER', story['Decision'])
        self.assertEqual((other, 'OFFER', True), self._codes(story))
        story = self._explain(self._with_row(0, other, desired), 0)
        self.assertEqual(f'{desired}: TAKE_OFFERED', story['Decision'])
        self.assertEqual(desired, story['Offered to'])
        story = self._explain(self._with_row(0, other, services=[
            service(host, 61 if host == other else 0) for host in 'abc']), 0)
        self.assertEqual(
            f'{story["Desired owner"]}: TAKE_ABANDONED', story['Decision'])

    def test_node_that_something_is_to_be_built_on(self):
        desired = self._of(0, 'a', 'b', 'c')
        other = 'a' if desired != 'a' else 'b'
        story = self._explain(self._with_row(0, other, allocated={
            NODES[0]: frozenset({'new'})}), 0)
        self.assertEqual(f'{other}: HOLD', story['Decision'])
        self.assertIn('being built on', story['Reason'])

    def test_new(self):
        seen = make()
        rows = dict(seen.rows)
        del rows[NODES[0]]
        story = self._explain(dataclasses.replace(seen, rows=rows), 0)
        self.assertIn('CREATE', story['Decision'])
        self.assertFalse(story['To move'])
        self.assertEqual('', story['Owner'])

    def test_shards(self):
        seen = deployment.by_shards(make(), *'uvwxyz')
        node = NODES[0]
        owner = seen.rows[node].owner
        story = self._explain(seen, 0)
        self.assertEqual(('u', owner, owner), (
            story['Shard'], story['Owner'], story['Desired owner']))
        self.assertEqual(f'{owner}: KEEP', story['Decision'])
        self.assertEqual({'a', 'b', 'c'} - {owner},
                         {*story['Successors'].split(', ')})
        # Who has it lists it, though the shard is for another.
        other = min({'a', 'b', 'c'} - {owner})
        story = self._explain(dataclasses.replace(seen, rows={
            **seen.rows, node: dataclasses.replace(
                seen.rows[node], owner=other)}), 0)
        self.assertEqual((other, 'OFFER', True), self._codes(story))
        self.assertEqual(owner, story['Desired owner'])

    def test_nobody(self):
        story = self._explain(make(services=[
            service(host, 61) for host in 'abc']), 0)
        self.assertEqual('none', story['Decision'])
        self.assertEqual(('', 'NONE', False), self._codes(story))
        self.assertEqual('DOWN', story['Owner state code'])
        self.assertEqual('no member lives that could decide',
                         story['Reason'])
        # Those that are disabled keep what nobody else may have.
        story = self._explain(make(services=[
            service(host, disabled=True) for host in 'abc']), 0)
        self.assertEqual(f'{story["Owner"]}: KEEP', story['Decision'])

    def test_instance(self):
        story = self._explain(make(instances={0: 'a'}), 0)
        self.assertEqual('a: KEEP_INSTANCE', story['Decision'])
        self.assertEqual('instance-0 (server-0)', story['Instance'])
        self.assertEqual('a', story['Instance belongs to'])

    def test_instance_that_follows(self):
        desired = self._of(0, 'a', 'b', 'c')
        other = 'a' if desired != 'a' else 'b'
        story = self._explain(make(
            instances={0: other}, said=profile.Profile(mobility='follow')), 0)
        self.assertEqual(f'{other}: OFFER_INSTANCE', story['Decision'])

    def test_instance_of_the_dead(self):
        services = [service('a', 61), service('b'), service('c')]
        desired = self._of(0, 'b', 'c')
        story = self._explain(
            make(instances={0: 'a'}, services=services), 0)
        self.assertEqual(f'{desired}: LEAVE_INSTANCE', story['Decision'])
        self.assertIn('nobody has said that it is dead', story['Reason'])
        self.assertEqual((desired, 'LEAVE_INSTANCE', False),
                         self._codes(story))
        services[0] = service('a', 61, forced_down=True)
        story = self._explain(
            make(instances={0: 'a'}, services=services), 0)
        self.assertEqual(f'{desired}: FAIL_OVER', story['Decision'])
        self.assertEqual((desired, 'FAIL_OVER', True), self._codes(story))
        story = self._explain(make(
            instances={0: 'a'}, services=services,
            said=profile.Profile(mobility='pinned')), 0)
        self.assertEqual(f'{desired}: LEAVE_INSTANCE', story['Decision'])

    def test_instance_of_one_that_is_down_where_nobody_takes_it(self):
        story = self._explain(make(
            instances={0: 'a'}, said=profile.Profile(mobility='pinned'),
            services=[service('a', 61), service('b'), service('c')]), 0)
        self.assertEqual('the node is with an instance of another service',
                         story['Reason'])

    def test_fields(self):
        self.assertEqual([
            'Node', 'Name', 'Conductor group', 'Shard', 'Ring', 'Owner',
            'Owner is', 'Desired owner', 'Pool', 'Successors', 'Instance',
            'Instance belongs to', 'Offered to', 'Decision', 'Reason',
            'Failed deployments', 'Owner state code', 'Decided by',
            'Decision code', 'To move'],
            list(self._explain(make(), 0)))

    def test_instance_that_nova_has_elsewhere(self):
        story = self._explain(
            deployment.elsewhere(make(instances={1: 'a'})), 1)
        self.assertEqual('LEAVE_INSTANCE', story['Decision'])
        self.assertIn('Nova has the instance on kvm-1', story['Reason'])
        self.assertEqual(('', 'LEAVE_INSTANCE', False), self._codes(story))

    def test_instance_that_nova_does_not_have(self):
        story = self._explain(dataclasses.replace(
            make(instances={0: 'a'}), instances={}), 0)
        self.assertEqual('LEAVE_INSTANCE', story['Decision'])
