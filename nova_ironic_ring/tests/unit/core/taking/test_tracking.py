# SPDX-License-Identifier: Apache-2.0

import fixtures

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking import rows
from nova_ironic_ring.core.taking import tracking
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import base
from nova_ironic_ring.tests.unit.core.base import desired
from nova_ironic_ring.tests.unit.core.base import NODES

NEW = '11111111-1111-1111-1111-111111111111'


class LastLookTestCase(base.PassTestCase):
    """What is looked at once more before Nova's tracker takes a node."""

    def _take(self, node: str) -> None:
        """Have the tracker take a node that it does not track."""
        self.tracker.process.tracked_nodes.discard(node)
        self.tracker.take(node, self.result, is_sure=True)

    def test_free_node_that_another_has_taken_meanwhile(self):
        self.join('e')
        self.decide()
        node = min(node for node, step in self.result.plan.steps.items()
                   if step.offer)
        self.record(node, 'e')
        self._take(node)
        self.assertEqual('e', self.cloud.rows[node].owner)

    def test_new_node_that_another_was_faster_with(self):
        self.cloud.nodes[NEW] = clouds.Node()
        self.force_down('a')
        self.force_down('b')
        self.assertIn(NEW, self.decide().listed)
        self.record(NEW, 'a')
        self._take(NEW)
        self.assertEqual('a', self.cloud.rows[NEW].owner)

    def test_row_that_is_deleted_meanwhile(self):
        self.decide()
        node = min(self.owned())
        del self.cloud.rows[node]
        self._take(node)
        self.assertNotIn(node, self.cloud.rows)

    def test_owner_in_another_case_is_another_owner(self):
        node = min(desired('me', 'a', 'b'))
        self.record(node, 'a')
        self.let_go('a')
        self.tracker.drop()
        self.decide()
        self.record(node, 'A')
        self._take(node)
        self.assertEqual('A', self.cloud.rows[node].owner)

    def test_instance_that_another_has_taken_meanwhile(self):
        node = min(self.owned())
        self.place(node, 'mine', 'ME')
        self.decide()
        step = self.result.plan.steps[node]
        tracking.claim(self.between(), node, step)
        self.cloud.instances['mine'] = model.Instance('a', node)
        self.assertRaises(tracking.NodeLostError, tracking.claim,
                          self.between(), node, step)
        del self.cloud.instances['mine']
        self.assertRaises(tracking.NodeLostError, tracking.claim,
                          self.between(), node, step)

    def test_node_that_is_not_listed(self):
        self.decide()
        node = min(set(NODES) - self.owned())
        self.assertRaises(
            tracking.NodeLostError, tracking.claim, self.between(), node,
            self.result.plan.steps[node])
        self.assertRaises(
            tracking.NodeLostError, tracking.claim, self.between(), node,
            planner.Step(Decision.KEEP, 'so'))

    def _step_for_node_of_dead(self) -> tuple[str, planner.Step]:
        self.force_down('a')
        self.decide()
        return next(
            (node, step) for node, step in self.result.plan.steps.items()
            if step.claim is not None and step.claim.owner == 'a'
            and step.decision.takes)

    def test_dead_owner_that_has_come_back(self):
        node, step = self._step_for_node_of_dead()
        tracking.claim(self.between(), node, step)
        self.alive.add('a')
        self.change('a', forced_down=False)
        self.wait(1)
        self.decide()
        self.assertRaises(tracking.NodeLostError, tracking.claim,
                          self.between(), node, step)

    def test_disabled_owner_that_has_come_back(self):
        self.change('a', disabled=True)
        self.run_pass()
        self.die('a')
        self.decide()
        node, step = next(
            (node, step) for node, step in self.result.plan.steps.items()
            if step.claim is not None and step.claim.owner == 'a'
            and step.claim.is_abandoned)
        tracking.claim(self.between(), node, step)
        self.alive.add('a')
        self.wait(1)
        # It is to build on the node.
        self.cloud.allocations[node] = {'build'}
        self.assertRaises(tracking.NodeLostError, tracking.claim,
                          self.between(), node, step)

    def test_service_that_is_about_to_end(self):
        node, step = self._step_for_node_of_dead()
        own = min(self.owned())
        self.useFixture(fixtures.MockPatchObject(
            self.tracker.world.process, 'is_ending', lambda: True))
        self.assertRaises(tracking.NodeLostError, tracking.claim,
                          self.between(), node, step)
        self.assertEqual([], tracking.claim(
            self.between(), own, self.result.plan.steps[own]))

    def test_provider_is_read_anew(self):
        self.run_pass()
        self.assertNotIn('forget_provider', self.asked)
        node = min(self.owned())
        self._take(node)
        self.assertEqual(1, self.asked.count('forget_provider'))
        # After it is known that the node is still to be taken.
        self.assertLess(self.asked.index('rows'),
                        self.asked.index('forget_provider'))

    def test_at_once_nobody_asks_for_the_owner(self):
        self.configure(cooperative=False)
        self.decide()
        node = min(self.owned())
        self.record(node, 'a')
        self._take(node)
        self.assertEqual('me', self.cloud.rows[node].owner)


class BlackoutTestCase(base.PassTestCase):
    """All heartbeats stand still after a decision on nodes of a dead one."""

    def setUp(self):
        super().setUp()
        for _ in range(2):
            self.run_pass()
        self.die('a')
        for _ in range(6):
            self.wait(10)
        self.steps = {
            node: step for node, step in self.decide().plan.steps.items()
            if step.decision is Decision.TAKE_ABANDONED}

    def stand_still(self):
        """Let nobody send heartbeats, and then all of them, a as well."""
        for _ in range(4):
            self.cloud.now += 10
            self.look()
        self.alive.add('a')
        self.wait(1)
        self.look()

    def look(self):
        self.memory = reaction.run(
            self.tracker.world, self.memory, self.current,
            base.PLACES).memory

    def test_build_of_an_owner_that_is_back(self):
        node = min(self.steps)
        self.stand_still()
        self.cloud.instances['new'] = model.Instance(
            None, None, is_building=True, task='scheduling')
        self.cloud.allocations[node] = {'new'}
        self.cloud.arrived['new'] = 'a'
        self.assertFalse(tracking.look(self.between(), tracking.Listed(
            node, self.steps[node], False)))
        self.assertFalse(self.cloud.instances['new'].is_given_up)

    def test_nodes_that_are_recorded_together(self):
        self.stand_still()
        moved = rows.take(self.between(), self.steps)
        self.assertEqual(self.steps.keys(), moved.lost)

    def test_without_one(self):
        node = min(self.steps)
        self.assertTrue(tracking.look(self.between(), tracking.Listed(
            node, self.steps[node], False)))


class HandoverTestCase(base.PassTestCase):
    """What is looked for when a node has come from a service that lives."""

    def setUp(self):
        super().setUp()
        self.node, self.other = sorted(self.owned())[:2]
        self.asked.clear()

    def _look(self, node: str, is_tracked: bool = True,
              claim: planner.Claim | None = None) -> bool:
        this = self.between()
        is_mine = tracking.look(this, tracking.Listed(
            node, planner.Step(Decision.TAKE_OFFERED, 'so', claim=claim),
            is_tracked))
        self.looked = this.happened
        return is_mine

    def _hand_over(self, node: str) -> bool:
        """Have a node come from the service a."""
        self.record(node, 'a')
        is_mine = self._look(node, False, planner.Claim(
            checks_owner=True, owner='a', is_handed_over=True))
        self.record(node, 'me')
        return is_mine

    def test_giver_is_remembered_until_its_builds_are_looked_for(self):
        self.assertTrue(self._hand_over(self.node))
        self.assertEqual({self.node: 'a'}, self.memory.handovers.givers)
        self.cloud.allocations[self.node] = {'build'}
        self._look(self.node)
        self.assertEqual(
            observation.Handovers({}, (observation.LeftBuild(
                self.node, 'a', frozenset({'build'})),)),
            self.memory.handovers)

    def test_node_that_its_owner_is_to_build_on(self):
        self.cloud.allocations[self.node] = {'build'}
        self.assertFalse(self._hand_over(self.node))
        self.assertEqual({}, self.memory.handovers.givers)

    def test_placement_that_does_not_answer_is_asked_once_a_pass(self):
        for node in self.node, self.other:
            self._hand_over(node)
        self.asked.clear()
        # Of the two nodes, for the first only.
        self.before['consumers'] = self._fail
        self._look(self.node)
        (happened,) = self.looked
        self.assertIsInstance(happened, events.HandoversUnknown)
        self._look(self.other)
        self.assertEqual([], self.looked)
        self.assertEqual(['consumers'], self.asked)
        self.assertEqual(
            {self.node: 'a', self.other: 'a'}, self.memory.handovers.givers)
        # The next pass begins anew.
        self.run_pass()
        self.assertFalse(self.memory.handovers.is_unanswered)
        self.assertEqual({}, self.memory.handovers.givers)

    def _fail(self) -> None:
        raise ConnectionError('no answer')


class ConsentTestCase(base.PassTestCase):
    """A free node of an owner that acknowledges the same ring."""

    def setUp(self):
        super().setUp()
        # One more node is for this service, and with another.
        self.node = min(desired('me', 'a', 'b'))
        self.record(self.node, 'a')
        self.tracker.drop()
        self.let_go('a')

    def _take(self, is_moved: bool) -> str:
        """Have the node be taken, and return its owner.

        :param is_moved: whether that is done without the tracker
        """
        step = self.result.plan.steps[self.node]
        self.assertIs(Decision.TAKE_OFFERED, step.decision)
        row = self.cloud.rows[self.node]
        if is_moved:
            row.sayer = model.canonical(row.owner)
            row.made_of = self.tracker._made_of(
                [self.node], self.result.plan.steps)[self.node]
            self.cloud.providers.add(self.node)
            moved = rows.take(self.between(), {self.node: step})
            self.assertIs(row.owner == 'me', self.node in moved.taken)
        else:
            self.tracker.take(self.node, self.result)
        return row.owner

    def test_taken(self):
        for is_moved in False, True:
            self.record(self.node, 'a')
            self.let_go('a')
            self.tracker.drop()
            self.decide()
            self.assertEqual('me', self._take(is_moved))

    def _change(self, number: int) -> None:
        """Change what the owner says since the decision."""
        if number == 0:
            self.let_go('a', ring=None)
        elif number == 1:
            self.let_go('a', ring='other')
        elif number == 2:
            # It runs Nova's own driver by now.
            del self.cloud.members['a']
        else:
            self.cloud.allocations[self.node] = {'instance'}

    def test_withdrawn_meanwhile(self):
        for number in range(4):
            for is_moved in False, True:
                self.cloud.allocations.clear()
                self.record(self.node, 'a')
                self.let_go('a')
                self.decide()
                self._change(number)
                self.assertEqual('a', self._take(is_moved), number)

    def test_said_anew_meanwhile(self):
        # Its next pass says the same, or a long one says it again.
        for is_moved in False, True:
            self.record(self.node, 'a')
            self.tracker.drop()
            self.decide()
            self.wait(5)
            self.let_go('a')
            self.asked.clear()
            self.assertEqual('me', self._take(is_moved))
            self.assertIn('members', self.asked)

    def test_owner_that_has_it_from_another_since(self):
        # The other one says the same.
        self.decide()
        self.let_go('b')
        self.record(self.node, 'b')
        self.assertEqual('b', self._take(False))

    def test_record_is_read_only_for_a_consent(self):
        self.force_down('a')
        self.record(self.node, 'a')
        self.let_go('a', ring=None)
        self.decide()
        self.assertIs(Decision.TAKE_ABANDONED, self.decisions()[self.node])
        self.asked.clear()
        self.tracker.take(self.node, self.result)
        self.assertEqual('me', self.cloud.rows[self.node].owner)
        self.assertNotIn('members', self.asked)

    def test_last_pass_counts(self):
        self.wait(60)
        self.let_go('a', ring='other')
        self.decide()
        self.assertIs(Decision.WAIT, self.decisions()[self.node])

    def test_another_than_the_owner_says_so(self):
        self.cloud.members['b'] = self.cloud.members.pop('a')
        self.decide()
        self.assertIs(Decision.WAIT, self.decisions()[self.node])

    def test_owner_that_is_disabled(self):
        self.change('a', disabled=True)
        self.decide()
        # The ring has changed, and the owner goes by the new one.
        self.assertIs(Decision.WAIT, self.decisions()[self.node])
        self.let_go('a')
        self.decide()
        self.assertEqual('me', self._take(False))

    def test_nobody_is_asked_where_nothing_is_waited_for(self):
        self.run_pass()
        self.assertIn('members', self.asked)
        self.run_pass()
        self.assertNotIn('members', self.asked)
