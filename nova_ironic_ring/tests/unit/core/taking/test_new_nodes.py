# SPDX-License-Identifier: Apache-2.0

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.taking import new_nodes
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import base


class NewNodesTestCase(base.PassTestCase):
    """What Placement is asked for new nodes before they get a record."""

    def _add(self, count: int) -> list[str]:
        """Add nodes that this service is to record, and decide on them."""
        self.force_down('a')
        self.force_down('b')
        self.run_pass()
        added = [f'11111111-1111-1111-1111-{number:012}'
                 for number in range(count)]
        for node in added:
            self.cloud.nodes[node] = clouds.Node()
        steps = self.decide().plan.steps
        self.assertEqual({decisions.Decision.CREATE}, {
            steps[node].decision for node in added})
        return added

    def _leave_build(self, node: str) -> None:
        """Leave a build of a service that was deleted with its records."""
        self.cloud.providers.add(node)
        self.cloud.allocations[node] = {'later'}

    def test_many_are_asked_for_at_once(self):
        added = self._add(new_nodes.MANY)
        self.tracker.track(self.result)
        self.assertLessEqual(set(added), self.owned())
        self.assertNotIn('consumers', self.asked)
        self.assertEqual((), self.memory.left_builds)

    def test_build_that_was_left_on_one_of_many(self):
        added = self._add(new_nodes.MANY)
        self._leave_build(added[3])
        self.tracker.track(self.result)
        self.assertEqual(1, self.asked.count('consumers'))
        self.assertEqual([(added[3], {'later'})], [
            (each.node, each.consumers) for each in self.memory.left_builds])

    def test_few_are_asked_for_each(self):
        added = self._add(new_nodes.MANY - 1)
        self._leave_build(added[3])
        self.tracker.track(self.result)
        self.assertEqual(len(added), self.asked.count('consumers'))
        self.assertEqual([added[3]], [
            each.node for each in self.memory.left_builds])

    def test_each_is_asked_for_where_the_listing_fails(self):
        added = self._add(new_nodes.MANY)
        self._leave_build(added[3])

        def fail() -> None:
            raise OSError('no answer')
        self.before['known'] = fail
        self.tracker.track(self.result)
        self.assertEqual(len(added), self.asked.count('consumers'))
        self.assertEqual([added[3]], [
            each.node for each in self.memory.left_builds])

    def test_listing_is_read_anew_in_a_long_pass(self):
        node, *_ = self._add(new_nodes.MANY)
        new = new_nodes.NewNodes(self.result.plan.steps.values())
        world = self.tracker.world
        self.assertFalse(new.may_have_builds(world, node))
        self._leave_build(node)
        self.assertFalse(new.may_have_builds(world, node))
        self.wait(new_nodes.LONGEST)
        self.assertTrue(new.may_have_builds(world, node))
