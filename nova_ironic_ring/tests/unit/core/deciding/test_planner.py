# SPDX-License-Identifier: Apache-2.0
import dataclasses
from typing import Any

import fixtures
from oslotest import base

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import consents
from nova_ironic_ring.core.peers import disputes
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.unit.core.base import desired
from nova_ironic_ring.tests.unit.core.base import NODES

State = membership.State


def _membership(**states: State) -> membership.Membership:
    return membership.Membership(
        frozenset(host for host, state in states.items()
                  if state is State.MEMBER), states,
        dict.fromkeys(states, 0.0))


class PlannerTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.current = settings.Settings('me')
        self.memory = observation.Memory(
            own_work=observation.OwnWork(is_known=True))
        self.mine = sorted(desired('me', 'a', 'b'))
        self.theirs = sorted(set(NODES) - set(self.mine))
        self.see(me=State.MEMBER, a=State.MEMBER, b=State.MEMBER)

    def see(self, trust: Trust = Trust.FULL, is_ending: bool = False,
            **states: State) -> None:
        """See the services in these states, and own what is for this one."""
        known = _membership(**states)
        self.seen = observation.Observation(
            0, observation.Standing(
                known, trust, ring.Ring(known.members, 32), is_ending),
            dict.fromkeys(NODES), {
                node: model.Row('me') for node in self.mine})

    def change(self, **fields: Any) -> None:
        """Change what is seen."""
        self.seen = dataclasses.replace(self.seen, **fields)

    def place(self, node: str, instance: str) -> None:
        """See an instance on a node."""
        self.change(nodes={**self.seen.nodes, node: instance})

    def decide(self) -> planner.Plan:
        """Decide, and see that it comes out alike the second time."""
        found = planner.decide(self.seen, self.memory, self.current)
        self.assertEqual(found, planner.decide(
            self.seen, self.memory, self.current))
        self.plan = found
        found.note_in(self.memory)
        return self.plan

    def wait(self, owner: str, since: float) -> observation.Wait:
        """Return a wait for a node, by the ring that is seen."""
        return observation.Wait(owner, since, consents.fingerprint(
            self.seen.standing.ring, self.current.scope), since)

    def decision(self, node: str) -> Decision:
        """Return the decision on a node."""
        return self.plan.steps[node].decision


class NeedsTestCase(PlannerTestCase):
    """What is read beyond what every pass reads."""

    def _needs(self) -> planner.Needs:
        return planner.needs(self.seen, self.current)

    def test_nothing(self):
        self.assertEqual(planner.Needs([], {}, [], []), self._needs())

    def test_rows_of_free_nodes_for_this_service(self):
        first, second, *others = self.mine
        self.change(rows={node: model.Row('me') for node in others})
        self.assertEqual([first, second], self._needs().rows)
        # One with an instance is not this service's to take.
        self.place(first, 'theirs')
        self.assertEqual([second], self._needs().rows)
        self.current = dataclasses.replace(self.current, follows=True)
        self.assertEqual([first, second], self._needs().rows)

    def test_instances_of_others(self):
        self.place(self.mine[0], 'theirs')
        self.place(self.mine[1], 'mine')
        self.place(self.theirs[0], 'of no concern')
        self.change(instances=observation.Instances(frozenset({'mine'})))
        self.assertEqual({'theirs': self.mine[0]}, self._needs().of_others)

    def test_misplaced_instances(self):
        self.place(self.mine[0], 'here')
        self.place(self.theirs[0], 'there')
        self.place(self.theirs[1], 'theirs')
        self.change(instances=observation.Instances(
            frozenset({'here', 'there'})))
        self.assertEqual([], self._needs().misplaced)
        self.current = dataclasses.replace(self.current, follows=True)
        self.assertEqual(['there'], self._needs().misplaced)

    def test_free_nodes_for_others(self):
        node = self.theirs[0]
        self.change(rows={**self.seen.rows, node: model.Row('me')})
        self.assertEqual([node], self._needs().offered)
        self.place(node, 'theirs')
        self.assertEqual([], self._needs().offered)

    def test_ring_without_members(self):
        self.see(me=State.DISABLED)
        self.place(self.mine[0], 'theirs')
        self.assertEqual(planner.Needs([], {}, [], []), self._needs())

    def test_at_once(self):
        self.current = dataclasses.replace(self.current, cooperative=False)
        self.change(rows={})
        self.place(self.mine[0], 'theirs')
        self.assertEqual(planner.Needs(), self._needs())


class DecideTestCase(PlannerTestCase):

    def test_a_step_for_each_node(self):
        self.assertEqual(set(NODES), set(self.decide().steps))
        self.assertEqual([], self.plan.happened)
        for node in self.mine:
            self.assertEqual(
                planner.Step(Decision.KEEP, Decision.KEEP.value, None,
                             planner.Claim(None, True, 'me', False)),
                self.plan.steps[node])
        for node in self.theirs:
            self.assertEqual(
                planner.Step(Decision.LEAVE, Decision.LEAVE.value),
                self.plan.steps[node])

    def test_what_it_is_given_stays_as_it_was(self):
        node = self.mine[0]
        self.change(rows={**self.seen.rows, node: model.Row('a')})
        before = dataclasses.replace(
            self.memory, waits={node: self.wait('a', -999)})
        kept = dataclasses.replace(before, waits=dict(before.waits))
        planner.decide(self.seen, before, self.current)
        self.assertEqual(kept, before)

    def test_wait_is_remembered_and_ends(self):
        node = self.mine[0]
        self.change(rows={**self.seen.rows, node: model.Row('a')})
        self.decide()
        self.assertEqual({node: self.wait('a', 0)}, self.memory.waits)
        self.change(at=120)
        self.decide()
        self.assertIs(Decision.TAKE_SILENT, self.decision(node))
        self.assertEqual({}, self.memory.waits)
        self.assertEqual({node: 'a'}, self.memory.disputes.taken)
        self.assertEqual(
            [events.NodeTaken(node, 'a', Decision.TAKE_SILENT)],
            self.plan.happened)

    def _wait_for_a(self, said: model.LastPass | None = None) -> str:
        """Wait for a node of a service.

        :param said: what it says of its passes, if it has a member record
        :returns: the UUID of the node, which this service gets in a greater
            ring as well
        """
        self.more = ring.Ring(['me', 'a', 'b', 'e'], 32)
        node = min(each for each in self.mine
                   if self.more.owner(each) == 'me')
        self.change(rows={**self.seen.rows, node: model.Row('a')},
                    said={} if said is None else {'a': said})
        self.decide()
        return node

    def _see_ring(self, at: float, seen: ring.Ring) -> None:
        self.change(at=at, standing=dataclasses.replace(
            self.seen.standing, ring=seen))
        self.decide()

    def test_wait_begins_again_with_another_ring(self):
        node = self._wait_for_a(model.LastPass(60))
        # Its owner needs a pass to see that as well.
        for at, decision in ((100, Decision.WAIT), (120, Decision.WAIT),
                             (219, Decision.WAIT),
                             (220, Decision.TAKE_SILENT)):
            self._see_ring(at, self.more)
            self.assertIs(decision, self.decision(node), at)

    def test_wait_ends_though_the_ring_changes_for_ever(self):
        node = self._wait_for_a(model.LastPass(60))
        rings = self.more, self.seen.standing.ring
        for number in range(1, 10):
            self._see_ring(60 * number, rings[number % 2])
            self.assertIs(Decision.WAIT, self.decision(node))
            self.assertEqual(0, self.memory.waits[node].since)
        self._see_ring(600, rings[0])
        self.assertIs(Decision.TAKE_SILENT, self.decision(node))

    def test_wait_for_an_owner_that_knows_no_ring_of_ours(self):
        """It runs Nova's own driver."""
        node = self._wait_for_a()
        self._see_ring(100, self.more)
        self.assertIs(Decision.WAIT, self.decision(node))
        self._see_ring(120, self.more)
        self.assertIs(Decision.TAKE_SILENT, self.decision(node))

    def test_node_that_is_offered_while_an_instance_is_built_for_it(self):
        node = self.theirs[0]
        self.current = dataclasses.replace(self.current, follows=True)
        self.change(rows={**self.seen.rows, node: model.Row('me')},
                    instances=observation.Instances(
                        frozenset({'mine', 'new'}), frozenset({'mine'})))
        self.place(node, 'mine')
        self.decide()
        self.assertIs(Decision.OFFER_INSTANCE, self.decision(node))
        self.assertEqual(self.seen.standing.ring.owner(node),
                         self.plan.steps[node].offer)
        self.change(instances=dataclasses.replace(
            self.seen.instances, building=frozenset({node})))
        self.decide()
        self.assertEqual('', self.plan.steps[node].offer)

    def test_claims(self):
        kept, held, offered, new, instance = self.mine[:5]
        self.change(rows={
            kept: model.Row('Me'), held: model.Row('gone'),
            offered: model.Row('a', 'me')},
            instances=observation.Instances(frozenset({'mine'})))
        self.place(instance, 'mine')
        self.decide()
        for node, claim in (
                (kept, planner.Claim(None, True, 'Me', False)),
                # The owner is dead, and its builds are to be ended.
                (held, planner.Claim(None, True, 'gone', True)),
                # Nothing may be on its way to be built there.
                (offered, planner.Claim(None, True, 'a', False, True)),
                (new, planner.Claim(None, True, None, True)),
                (instance, planner.Claim('mine'))):
            self.assertEqual(claim, self.plan.steps[node].claim)

    def test_owner_that_has_joined_since_the_ring_was_made(self):
        # It is alive, and will be a member: its nodes are not taken.
        node = self.mine[0]
        self.change(
            rows={**self.seen.rows, node: model.Row('e')},
            others=observation.Others(_membership(e=State.MEMBER)))
        self.memory = dataclasses.replace(
            self.memory, waits={node: self.wait('e', -999)},
            disputes=disputes.Disputes({node: 'e'}))
        self.change(tracked={node})
        self.decide()
        self.assertIs(Decision.WAIT, self.decision(node))
        self.assertEqual([], self.plan.happened)

    def test_stranger_that_lives_is_not_waited_for(self):
        node = self.mine[0]
        self.change(
            rows={**self.seen.rows, node: model.Row('e')},
            others=observation.Others(_membership(e=State.NOT_A_PEER)))
        self.decide()
        self.assertIs(Decision.TAKE_ABANDONED, self.decision(node))
        self.assertFalse(self.plan.steps[node].claim.is_abandoned)

    def test_dispute(self):
        node = self.mine[0]
        self.change(rows={**self.seen.rows, node: model.Row('a')},
                    tracked={node})
        self.memory = dataclasses.replace(
            self.memory, disputes=disputes.Disputes({node: 'a'}))
        seen, memory = self.seen, self.memory
        plan = planner.decide(seen, memory, self.current)
        self.assertEqual([events.DisputeFound('a', [node], 'me')],
                         plan.happened)
        self.assertTrue(plan.disputed.is_with('a', 1199))
        self.assertFalse(plan.disputed.is_with('a', 1200))
        self.assertIs(Decision.WAIT, plan.steps[node].decision)
        # After a blackout others had good reason to take the node.
        standing = dataclasses.replace(seen.standing, trust=Trust.BLACKOUT)
        plan = planner.decide(
            dataclasses.replace(seen, standing=standing), memory,
            self.current)
        self.assertEqual([], plan.happened)
        self.assertEqual({}, plan.disputed.taken)

    def test_offered_node_may_go_to_anybody(self):
        node = self.theirs[0]
        self.change(rows={**self.seen.rows, node: model.Row('me')})
        for building in frozenset({node}), frozenset():
            self.memory = dataclasses.replace(
                self.memory, disputes=disputes.Disputes({node: 'b'}))
            self.change(instances=observation.Instances(building=building))
            self.decide()
            self.assertIs(bool(building), self.plan.steps[node].offer == '')
            self.assertEqual({}, self.memory.disputes.taken)

    def test_instance_is_taken_only_where_nova_has_it(self):
        node = self.mine[0]
        self.see(me=State.MEMBER, a=State.MEMBER, b=State.FORCED_DOWN)
        self.place(node, 'theirs')
        for record, other_drivers, expected in (
                (model.Instance('B', node), set(), Decision.FAIL_OVER),
                (model.Instance('a', node), set(), Decision.LEAVE_INSTANCE),
                (model.Instance(None, node), set(),
                 Decision.LEAVE_INSTANCE),
                (model.Instance('b', self.mine[1]), set(),
                 Decision.LEAVE_INSTANCE),
                (model.Instance('b', None), set(), Decision.LEAVE_INSTANCE),
                (model.Instance('B', node), {'b'}, Decision.LEAVE_INSTANCE),
                (model.Instance('b', node), {'a'}, Decision.FAIL_OVER),
                (None, set(), Decision.LEAVE_INSTANCE)):
            self.change(instances=observation.Instances(
                of_others={'theirs': record} if record else {},
                other_drivers=frozenset(other_drivers)))
            self.decide()
            self.assertIs(expected, self.decision(node), record)

    def test_at_once(self):
        self.current = dataclasses.replace(self.current, cooperative=False)
        self.change(rows={}, instances=observation.Instances(
            frozenset({'mine'})))
        self.place(self.theirs[0], 'mine')
        self.place(self.mine[0], 'theirs')
        before = self.memory
        self.decide()
        self.assertIs(before, self.memory)
        for node, step in self.plan.steps.items():
            if node in (self.theirs[0], self.mine[0]):
                continue
            self.assertEqual(
                planner.Step(Decision.KEEP, Decision.KEEP.value,
                             claim=planner.Claim())
                if node in self.mine else
                planner.Step(Decision.LEAVE, Decision.LEAVE.value), step)
        self.assertEqual(planner.Claim('mine'),
                         self.plan.steps[self.theirs[0]].claim)
        self.assertIs(Decision.LEAVE_INSTANCE, self.decision(self.mine[0]))


class NewcomerTestCase(PlannerTestCase):
    """A service whose member record its peers cannot have read yet."""

    def setUp(self):
        super().setUp()
        self.memory.own_work = observation.OwnWork()
        current = ring.Ring({'a', 'b'}, 32)
        self.change(rows={node: model.Row(str(current.owner(node)))
                          for node in self.mine})

    def _takes(self) -> list[str]:
        self.decide()
        return [node for node, step in self.plan.steps.items()
                if step.decision.takes or step.decision.takes_instance]

    def test_nothing_with_or_without_consent(self):
        rows = dict(self.seen.rows)
        new, gone, offered = self.mine[2:5]
        del rows[new]
        rows[gone] = model.Row('gone')
        rows[offered] = model.Row('a', 'me')
        self.change(rows=rows)
        self.assertEqual([], self._takes())
        for node in self.mine:
            self.assertIs(Decision.WAIT, self.decision(node))
        # They begin when its peers know it.
        self.assertEqual({}, self.memory.waits)
        self.assertEqual({}, self.memory.disputes.taken)
        self.memory.own_work = observation.OwnWork(is_known=True)
        self.assertEqual([new, gone, offered], sorted(self._takes()))
        self.assertEqual({*self.mine} - {new, gone, offered},
                         self.memory.waits.keys())

    def test_instances_of_a_dead_service(self):
        self.see(me=State.MEMBER, a=State.MEMBER, b=State.FORCED_DOWN)
        self.change(rows=dict.fromkeys(NODES, model.Row('a')))
        for number in 0, 1:
            self.place(self.mine[number], f'i{number}')
        self.change(instances=observation.Instances(of_others={
            f'i{number}': model.Instance('b', self.mine[number])
            for number in (0, 1)}))
        self.assertEqual([], self._takes())
        self.memory.own_work = observation.OwnWork(is_known=True)
        self.assertEqual(self.mine[:2], sorted(self._takes()))

    def test_what_it_has_it_keeps_and_offers(self):
        # It has restarted with other settings, or its record was deleted.
        self.change(rows=dict.fromkeys(NODES, model.Row('me')))
        self.decide()
        self.assertEqual(
            {**dict.fromkeys(self.mine, Decision.KEEP),
             **dict.fromkeys(self.theirs, Decision.OFFER)},
            {node: self.decision(node) for node in NODES})

    def test_alone(self):
        self.see(me=State.MEMBER)
        self.change(rows={}, others=observation.Others(
            self.seen.standing.membership, True))
        self.assertEqual(NODES, self._takes())

    def test_alone_and_only_started(self):
        self.see(Trust.STARTING, me=State.MEMBER)
        self.change(rows={}, others=observation.Others(
            self.seen.standing.membership, True))
        self.assertEqual(NODES, self._takes())

    def test_dispute(self):
        self.memory = dataclasses.replace(
            self.memory, disputes=disputes.Disputes(
                dict.fromkeys(self.mine, 'a')))
        self.change(tracked=set(self.mine),
                    rows=dict.fromkeys(self.mine, model.Row('a')))
        self.assertEqual([], self._takes())

    def test_nothing(self):
        for values in ({'me': State.MEMBER, 'trust': Trust.STARTING},
                       {'me': State.MEMBER, 'trust': Trust.BLACKOUT},
                       {'me': State.MEMBER, 'is_ending': True},
                       {'me': State.DISABLED}):
            self.see(**{'a': State.MEMBER, 'b': State.MEMBER, **values})
            self.change(rows={node: model.Row('a') for node in self.mine})
            self.assertEqual([], self._takes(), values)


class ConsentTestCase(PlannerTestCase):
    """What is said once of all free nodes that go to others."""

    def setUp(self):
        super().setUp()
        self.offered = self.theirs[:4]
        self.change(rows={**self.seen.rows, **{
            node: model.Row('me') for node in self.offered}})
        self.ring = consents.fingerprint(
            self.seen.standing.ring, self.current.scope)

    def _by_ring(self) -> set[str]:
        return {node for node, step in self.decide().steps.items()
                if step.by_ring}

    def test_all_that_go_to_others(self):
        self.assertEqual({*self.offered}, self._by_ring())
        self.assertEqual(model.Consent(self.ring), self.plan.consent)
        step = self.plan.steps[self.offered[0]]
        self.assertEqual((Decision.OFFER, None), (step.decision, step.in_row))
        self.assertIn(step.offer, 'ab')
        self.assertIn(events.NodeOffered(self.offered[0], str(step.offer)),
                      self.plan.happened)
        # It is said once.
        self.assertEqual([], self.decide().happened)

    def test_node_that_is_built_on(self):
        held = self.offered[0]
        self.change(instances=observation.Instances(
            building=frozenset({held})))
        self.decide()
        self.assertEqual(model.Consent(self.ring, frozenset({held})),
                         self.plan.consent)
        step = self.plan.steps[held]
        self.assertEqual((Decision.HOLD, '', None),
                         (step.decision, step.offer, step.in_row))

    def test_all_that_may_be_built_on(self):
        self.useFixture(fixtures.MockPatchObject(consents, 'MOST', 1))
        self.change(instances=observation.Instances(
            building=frozenset(self.offered)))
        # As where Placement does not answer: no row is written, nor later.
        self.assertEqual({*self.offered}, self._by_ring())
        self.assertEqual(model.Consent(''), self.plan.consent)
        self.assertEqual(('', None), (self.plan.steps[self.offered[0]].offer,
                                      self.plan.steps[self.offered[0]].in_row))

    def test_the_only_one_that_is_built_on(self):
        self.change(rows={node: model.Row('me') for node in (
            *self.mine, self.offered[0])}, instances=observation.Instances(
                building=frozenset(self.offered)))
        self.assertEqual(set(), self._by_ring())
        self.assertIsNone(self.plan.consent)
        self.assertEqual('', self.plan.steps[self.offered[0]].in_row)

    def test_too_many_to_be_named(self):
        self.useFixture(fixtures.MockPatchObject(consents, 'MOST', 1))
        self.change(instances=observation.Instances(
            building=frozenset(self.offered[:1])))
        self.assertEqual(set(), self._by_ring())
        self.assertIsNone(self.plan.consent)
        self.assertEqual('', self.plan.steps[self.offered[0]].in_row)

    def test_row_of_the_only_one(self):
        self.change(rows={node: model.Row('me') for node in (
            *self.mine, self.offered[0])})
        self.assertEqual(set(), self._by_ring())
        self.assertIn(self.plan.steps[self.offered[0]].in_row, ('a', 'b'))
        self.assertIsNone(self.plan.consent)

    def test_row_that_says_so_itself(self):
        node, owner = self.offered[0], self.seen.standing.ring.owner
        self.change(rows={
            **self.seen.rows, node: model.Row('me', owner(node))})
        self.assertEqual({*self.offered[1:]}, self._by_ring())

    def test_instances_that_follow(self):
        self.place(self.offered[0], 'instance')
        self.current = dataclasses.replace(self.current, follows=True)
        self.change(instances=observation.Instances(
            frozenset({'instance'}), frozenset({'instance'})))
        self.assertEqual({*self.offered[1:]}, self._by_ring())
        self.assertIs(Decision.OFFER_INSTANCE, self.decision(self.offered[0]))

    def test_without_trust(self):
        self.change(standing=dataclasses.replace(
            self.seen.standing, trust=Trust.BLACKOUT))
        self.decide()
        self.assertIsNone(self.plan.consent)


class TakenByRingTestCase(PlannerTestCase):
    """Free nodes of an owner that says once who may take them."""

    def setUp(self):
        super().setUp()
        self.node = self.mine[0]
        self.change(rows={**self.seen.rows, self.node: model.Row('a')})
        self.ring = consents.fingerprint(
            self.seen.standing.ring, self.current.scope)

    def _say(self, consent: model.Consent | None) -> Decision:
        self.change(said={'a': model.LastPass(60, consent=consent)})
        self.decide()
        return self.decision(self.node)

    def test_same_ring(self):
        self.assertIs(Decision.TAKE_OFFERED,
                      self._say(model.Consent(self.ring)))
        claim = self.plan.steps[self.node].claim
        assert claim is not None
        self.assertEqual(self.ring, claim.ring)
        self.assertTrue(claim.is_handed_over)

    def test_offer_in_the_row(self):
        self.change(rows={**self.seen.rows, self.node: model.Row('a', 'me')})
        self.assertIs(Decision.TAKE_OFFERED,
                      self._say(model.Consent('other')))
        claim = self.plan.steps[self.node].claim
        assert claim is not None
        self.assertIsNone(claim.ring)

    def test_other_ring_is_as_silence(self):
        self.assertIs(Decision.WAIT, self._say(model.Consent('other')))
        self.change(at=self.current.handover_timeout)
        self.assertIs(Decision.TAKE_SILENT, self._say(model.Consent('other')))

    def test_node_that_is_named_is_waited_for(self):
        for at in range(4):
            self.change(at=at * self.current.handover_timeout)
            self.assertIs(Decision.WAIT, self._say(model.Consent(
                self.ring, frozenset({self.node}))))

    def test_owner_of_another(self):
        self.change(rows={**self.seen.rows, self.node: model.Row('b')})
        self.assertIs(Decision.WAIT, self._say(model.Consent(self.ring)))

    def test_node_with_an_instance(self):
        self.current = dataclasses.replace(self.current, follows=True)
        self.place(self.node, 'theirs')
        self.change(instances=observation.Instances(of_others={
            'theirs': model.Instance('a', self.node)}))
        self.assertIs(Decision.LEAVE_INSTANCE,
                      self._say(model.Consent(self.ring)))
