# SPDX-License-Identifier: Apache-2.0

import dataclasses

import ddt
import fixtures

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.taking import rows
from nova_ironic_ring.core.taking import tracking
from nova_ironic_ring.tests.unit.core import base
from nova_ironic_ring.tests.unit.core.base import desired


@ddt.ddt
class TakeTestCase(base.PassTestCase):
    """Nodes that are taken without Nova's tracker."""

    def setUp(self):
        super().setUp()
        self.node = min(desired('me', 'a', 'b'))
        self.record(self.node, 'a')
        self.let_go('a')
        self.cloud.providers.add(self.node)
        self.tracker.drop()
        self.decide()
        row = self.cloud.rows[self.node]
        row.sayer, row.made_at = 'a', 7
        row.made_of = self.tracker._made_of(
            [self.node], self.result.plan.steps)[self.node]
        self.assertIs(Decision.TAKE_OFFERED,
                      self.result.plan.steps[self.node].decision)

    def _take(self) -> rows.Moved:
        self.this = self.between()
        return rows.take(self.this, self.result.plan.steps)

    def test_taken(self):
        self.assertEqual({self.node}, self._take().taken)
        self.assertEqual('me', self.cloud.rows[self.node].owner)
        # Who moves a node does not update it.
        self.assertEqual(7, self.cloud.rows[self.node].made_at)

    def test_plan_after_it(self):
        plan = self._take().corrected(self.result.plan, 'me')
        self.assertIs(Decision.TAKE_OFFERED, plan.steps[self.node].decision)
        self.assertEqual('me', plan.steps[self.node].claim.owner)
        lost = rows.Moved(lost=frozenset({self.node}))
        self.assertIs(Decision.WAIT, lost.corrected(
            self.result.plan, 'me').steps[self.node].decision)

    def test_left_to_the_tracker(self):
        row = self.cloud.rows[self.node]
        for made_of in 'something else', None:
            row.made_of = made_of
            self.assertEqual(rows.Moved(), self._take())
        # Without the last listing of the node nobody knows.
        del self.cloud.nodes[self.node]
        self.assertEqual(rows.Moved(), self._take())

    def test_each_pass_updates_each_node(self):
        self.configure(full_update_interval=0)
        self.assertEqual(rows.Moved(), self._take())

    def test_services_were_read_long_ago(self):
        self.wait(self.current.down_time)
        self.assertEqual(rows.Moved(), self._take())

    def test_nova_does_not_answer(self):
        self.useFixture(fixtures.MockPatchObject(
            self.tracker.world.nova, 'rows', side_effect=OSError('away')))
        self.assertRaises(OSError, self._take)

    def test_something_is_allocated_of_it(self):
        self.cloud.allocations[self.node] = {'build'}
        self.assertEqual({self.node}, self._take().lost)
        # What a dead service was to build, the tracker ends.
        self.force_down('a')
        self.decide()
        self.assertEqual(rows.Moved(), self._take())

    def test_many_are_taken_by_several_looks(self):
        self.useFixture(fixtures.MockPatchObject(rows, '_BATCH', 1))
        node = max(desired('me', 'a', 'b'))
        self.record(node, 'a')
        self.decide()
        row = self.cloud.rows[node]
        row.sayer, row.made_of = 'a', self.tracker._made_of(
            [node], self.result.plan.steps)[node]
        self.cloud.providers.add(node)
        self.asked.clear()
        self.before['service'] = lambda: self.before.update(
            service=self._fail)
        self.assertEqual({self.node}, self._take().taken)
        self.before.clear()
        self.decide()
        self.assertEqual({node}, self._take().taken)
        self.assertEqual(2, self.asked.count('take_rows'))

    def _fail(self) -> None:
        raise OSError('away')

    def test_taken_from_a_dead_service(self):
        self.force_down('a')
        self.decide()
        self.assertEqual({self.node}, self._take().taken)
        self.assertIsNone(self.cloud.rows[self.node].made_at)

    def test_write_that_seems_to_fail(self):
        nova = self.tracker.world.nova
        write = nova.take_rows

        def take_rows(*given):
            write(*given)
            return frozenset()
        self.useFixture(fixtures.MockPatchObject(nova, 'take_rows', take_rows))
        self.assertEqual({self.node}, self._take().lost)
        self.assertEqual('me', self.cloud.rows[self.node].owner)
        # Builds that its former owner may still get are looked for.
        self.assertEqual({self.node: 'a'}, self.memory.handovers.givers)

    @ddt.data('disabled', 'forced_down')
    def test_service_that_was_disabled_since(self, how):
        service = self.cloud.services['me']
        self.cloud.services['me'] = dataclasses.replace(
            service, **{how: True})
        self.assertEqual({self.node}, self._take().lost)
        # A look between passes has seen that as well.
        this = one_pass.Pass(
            self.tracker.world, self.current, self.memory.copied(),
            self.memory)
        look.between_passes(this)
        self.memory = this.memory
        self.assertEqual({self.node}, self._take().lost)
        self.assertEqual('a', self.cloud.rows[self.node].owner)
        # And when the resource tracker is to take the node.
        self.assertRaises(
            tracking.NodeLostError, tracking.claim, self.between(),
            self.node, self.result.plan.steps[self.node])
        self.cloud.services['me'] = service
        self.assertEqual({self.node}, self._take().taken)

    def test_service_that_is_about_to_end(self):
        self.useFixture(fixtures.MockPatchObject(
            self.tracker.world.process, 'is_ending', lambda: True))
        self.assertEqual({self.node}, self._take().lost)
        self.assertEqual('a', self.cloud.rows[self.node].owner)
