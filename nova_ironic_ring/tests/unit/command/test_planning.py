# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Tests of what a change of a ring would move."""

from oslotest import base

from nova_ironic_ring.command import planning
from nova_ironic_ring.command import prospect
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core import profile
from nova_ironic_ring.core import ring
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class PlanTestCase(base.BaseTestCase):

    def _plan(self, seen: snapshot.Snapshot, partitions: int | None = None,
              **changes) -> planning.Plan:
        return planning.plan(seen, seen.keys()[0], prospect.Change(
            partitions=partitions, **{
                name: frozenset(hosts) for name, hosts in changes.items()}))

    def test_join(self):
        plan = self._plan(make(), add=['D'])
        self.assertEqual(['a', 'b', 'c', 'd'],
                         [share.host for share in plan.shares])
        self.assertEqual(30, sum(share.nodes for share in plan.shares))
        self.assertEqual(30, sum(share.nodes_after for share in plan.shares))
        # Only what the new one gets.
        self.assertEqual(plan.shares[3].nodes_after, plan.moved_nodes)
        self.assertEqual(0, plan.shares[3].nodes)

    def test_leave(self):
        plan = self._plan(make(instances={1: 'b', 2: 'a'}), remove=['b'])
        share = plan.shares[1]
        self.assertEqual((0, 0), (share.nodes_after, share.instances_after))
        self.assertEqual(share.nodes, plan.moved_nodes)
        self.assertEqual(1, plan.moved_instances)

    def test_instances_that_follow(self):
        held = dict.fromkeys(range(10), 'a')
        stay = self._plan(make(instances=held), add=['d'])
        self.assertEqual(0, stay.moved_instances)
        follow = self._plan(make(instances=held, said=profile.Profile(
            mobility='follow')), add=['d'])
        current = ring.Ring('abcd', 32)
        self.assertEqual(
            sum(current.owner(NODES[number]) != 'a' for number in held),
            follow.moved_instances)

    def test_partitions(self):
        plan = self._plan(make(), partitions=1024)
        self.assertLess(plan.balance_after, plan.balance)
        self.assertGreater(plan.moved_nodes, 0)

    def test_errors(self):
        for changes, message in (
                ({'add': ['A']}, '"a" is a member of the ring'),
                ({'remove': ['x']}, '"x" is no member of the ring'),
                ({'remove': ['a', 'b', 'c']}, 'Nobody would be left')):
            error = self.assertRaises(ValueError, self._plan, make(),
                                      **changes)
            self.assertIn(message, str(error))
        nobody = make(services=[service(host, 61) for host in 'abc'])
        error = self.assertRaises(ValueError, self._plan, nobody)
        self.assertIn('has no living member', str(error))

    def test_balance(self):
        self.assertEqual(1, planning.balance({'a': 5, 'b': 5}))
        self.assertEqual(1.5, planning.balance({'a': 9, 'b': 3}))
        self.assertEqual(1, planning.balance({'a': 0}))
