# SPDX-License-Identifier: Apache-2.0
import dataclasses
from typing import Any

from oslotest import base

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.unit.core.base import desired
from nova_ironic_ring.tests.unit.core.base import NODES

State = membership.State


def _view(trust: Trust = Trust.FULL, is_ending: bool = False,
          **states: State) -> view.View:
    return view.View(
        states=states, silences=dict.fromkeys(states, 0.0), trust=trust,
        ring=ring.Ring((host for host, state in states.items()
                        if state is State.MEMBER), 32), is_ending=is_ending)


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
        self.seen = observation.Observation(
            0, _view(trust, is_ending, **states),
            dict.fromkeys(NODES), {
                node: model.Row('me') for node in self.mine})

    def change(self, **fields: Any) -> None:
        """Change what is seen."""
        self.seen = dataclasses.replace(self.seen, **fields)

    def know(self, **states: State) -> None:
        """See services in these states, which do not change the ring."""
        known = self.seen.view
        self.change(view=dataclasses.replace(
            known, states={**known.states, **states}))

    def hear(self, **said: model.Member | None) -> None:
        """See what services say in their member records."""
        known = self.seen.view
        self.change(view=dataclasses.replace(
            known, services={**known.services, **{
                host: model.Service(host, model.NEVER, said=each)
                for host, each in said.items()}}))

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

    def ring(self) -> str:
        """Return the fingerprint of the ring that is seen."""
        return self.seen.view.ring.fingerprint(self.current.scope)

    def says(self, ring: str | None = None, **said: Any) -> model.Member:
        """Return the record of a service of the same scope.

        :param ring: the ring that it acknowledges
        """
        return model.Member(
            model.LastPass(60), model.Scope(), ring=ring, **said)

    def decision(self, node: str) -> Decision:
        """Return the decision on a node."""
        return self.plan.steps[node].decision


class NeedsTestCase(PlannerTestCase):
    """What is read beyond what every pass reads."""

    def _needs(self) -> planner.Needs:
        return planner.needs(self.seen, self.current)

    def test_nothing(self):
        self.assertEqual(planner.Needs([], {}), self._needs())

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

    def test_ring_without_members(self):
        self.see(me=State.DISABLED)
        self.place(self.mine[0], 'theirs')
        self.assertEqual(planner.Needs([], {}), self._needs())

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
            self.memory, waits={node: observation.Wait('a', -999)})
        kept = dataclasses.replace(before, waits=dict(before.waits))
        planner.decide(self.seen, before, self.current)
        self.assertEqual(kept, before)

    def test_wait_is_remembered_and_ends(self):
        node = self.mine[0]
        self.change(rows={**self.seen.rows, node: model.Row('a')})
        self.decide()
        self.assertEqual({node: observation.Wait('a', 0)},
                         self.memory.waits)
        self.change(at=119)
        self.decide()
        self.assertIs(Decision.WAIT, self.decision(node))
        self.change(at=120)
        self.decide()
        self.assertIs(Decision.TAKE_SILENT, self.decision(node))
        self.assertEqual({}, self.memory.waits)
        self.assertEqual(
            [events.NodeTaken(node, 'a', Decision.TAKE_SILENT)],
            self.plan.happened)

    def test_wait_goes_on_with_another_ring(self):
        """An owner with Nova's own driver knows no ring of ours."""
        more = ring.Ring(['me', 'a', 'b', 'e'], 32)
        node = min(each for each in self.mine if more.owner(each) == 'me')
        self.change(rows={**self.seen.rows, node: model.Row('a')})
        self.decide()
        self.change(at=120, view=dataclasses.replace(
            self.seen.view, ring=more))
        self.decide()
        self.assertIs(Decision.TAKE_SILENT, self.decision(node))

    def test_offers(self):
        free, instance, unknown = self.theirs[:3]
        self.change(
            rows={**self.seen.rows, **dict.fromkeys(
                (free, instance, unknown), model.Row('me'))},
            instances=observation.Instances(frozenset({'mine'})))
        self.place(instance, 'mine')
        self.place(unknown, 'theirs')
        for follows, offers in (False, {free}), (True, {free, instance}):
            self.current = dataclasses.replace(self.current, follows=follows)
            self.decide()
            self.assertEqual(
                {node: self.seen.view.ring.owner(node)
                 for node in offers},
                {node: step.offer for node, step in self.plan.steps.items()
                 if step.offer})
        self.assertEqual((Decision.OFFER, Decision.OFFER_INSTANCE), (
            self.decision(free), self.decision(instance)))

    def test_offers_are_told_once(self):
        node = self.theirs[0]
        self.change(rows={**self.seen.rows, node: model.Row('me')})
        owner = str(self.seen.view.ring.owner(node))
        for before, expected in (
                ({}, [events.NodeOffered(node, owner)]),
                ({node: 'other'}, [events.NodeOffered(node, owner)]),
                ({node: owner}, [])):
            self.memory.offered = before
            self.memory.view = self.seen.view
            self.assertEqual(expected, planner.decide(
                self.seen, self.memory, self.current).happened)
        self.memory.offered = {}
        self.decide()
        self.assertEqual({node: owner}, self.memory.offered)
        self.assertEqual([], self.decide().happened)

    def test_offers_are_not_told_without_trust(self):
        node = self.theirs[0]
        self.change(rows={**self.seen.rows, node: model.Row('me')},
                    view=dataclasses.replace(
                        self.seen.view, trust=Trust.BLACKOUT))
        self.assertEqual([], self.decide().happened)
        self.assertEqual({}, self.memory.offered)

    def test_claims(self):
        kept, held, offered, new, instance = self.mine[:5]
        self.change(rows={
            kept: model.Row('Me'), held: model.Row('gone'),
            offered: model.Row('a')},
            instances=observation.Instances(frozenset({'mine'})))
        self.hear(a=self.says(self.ring()))
        self.place(instance, 'mine')
        self.decide()
        for node, claim in (
                (kept, planner.Claim(None, True, 'Me', False)),
                # The owner is dead, and its builds are to be ended.
                (held, planner.Claim(None, True, 'gone', True)),
                # Nothing may be on its way to be built there.
                (offered, planner.Claim(
                    None, True, 'a', False, True, ring=self.ring())),
                (new, planner.Claim(None, True, None, True)),
                (instance, planner.Claim('mine'))):
            self.assertEqual(claim, self.plan.steps[node].claim)

    def test_owner_that_has_joined_since_the_ring_was_made(self):
        # It is alive, and will be a member: its nodes are not taken.
        node = self.mine[0]
        self.change(rows={**self.seen.rows, node: model.Row('e')})
        self.know(e=State.MEMBER)
        for said, since in (None, 0), (self.says('of four'), -999):
            self.memory.waits = {node: observation.Wait('e', since)}
            self.hear(e=said)
            self.decide()
            self.assertIs(Decision.WAIT, self.decision(node))
            self.assertEqual([], self.plan.happened)

    def test_stranger_that_lives_is_waited_for(self):
        node = self.mine[0]
        self.change(rows={**self.seen.rows, node: model.Row('e')})
        self.know(e=State.NOT_A_PEER)
        self.decide()
        self.assertIs(Decision.WAIT, self.decision(node))
        self.change(at=120)
        self.decide()
        self.assertIs(Decision.TAKE_SILENT, self.decision(node))
        self.assertFalse(self.plan.steps[node].claim.is_abandoned)

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
        new, gone, offered = self.mine[2:5]
        rows = dict.fromkeys(self.mine, model.Row('a'))
        del rows[new]
        rows[gone], rows[offered] = model.Row('gone'), model.Row('b')
        self.change(rows=rows)
        self.hear(b=self.says(self.ring()))
        self.assertEqual([], self._takes())
        for node in self.mine:
            self.assertIs(Decision.WAIT, self.decision(node))
        # They begin when its peers know it.
        self.assertEqual({}, self.memory.waits)
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
        self.change(rows={})
        self.hear(me=None)
        self.assertEqual(NODES, self._takes())

    def test_alone_and_only_started(self):
        self.see(Trust.STARTING, me=State.MEMBER)
        self.change(rows={})
        self.hear(me=None)
        self.assertEqual(NODES, self._takes())

    def test_nothing(self):
        for values in ({'me': State.MEMBER, 'trust': Trust.STARTING},
                       {'me': State.MEMBER, 'trust': Trust.BLACKOUT},
                       {'me': State.MEMBER, 'is_ending': True},
                       {'me': State.DISABLED}):
            self.see(**{'a': State.MEMBER, 'b': State.MEMBER, **values})
            self.change(rows={node: model.Row('a') for node in self.mine})
            self.assertEqual([], self._takes(), values)


class ConsentTestCase(PlannerTestCase):
    """A node of an owner that says which ring it acknowledges."""

    def setUp(self):
        super().setUp()
        self.node = self.mine[0]
        self.change(rows={**self.seen.rows, self.node: model.Row('A')})

    def _say(self, ring: str | None, **said: Any) -> Decision:
        self.hear(a=self.says(ring, **said))
        self.decide()
        return self.decision(self.node)

    def test_same_ring(self):
        self.assertIs(Decision.TAKE_OFFERED, self._say(self.ring()))
        claim = self.plan.steps[self.node].claim
        assert claim is not None
        self.assertEqual(self.ring(), claim.ring)
        self.assertTrue(claim.is_handed_over)

    def test_every_ring_of_its_scope(self):
        """Its owner is disabled."""
        self.assertIs(Decision.TAKE_OFFERED, self._say(model.EVERY_RING))
        self.current = dataclasses.replace(self.current, follows=True)
        self.place(self.node, 'theirs')
        self.change(instances=observation.Instances(of_others={
            'theirs': model.Instance('A', self.node)}))
        said = self.says(model.EVERY_RING, follows=True)
        for scope, expected in (
                (model.Scope(), Decision.TAKE_INSTANCE),
                # Its peers there may live.
                (model.Scope('rack'), Decision.LEAVE_INSTANCE)):
            self.hear(a=dataclasses.replace(said, scope=scope))
            self.decide()
            self.assertIs(expected, self.decision(self.node))

    def test_it_is_told_once(self):
        taken = events.NodeTaken(self.node, 'A', Decision.TAKE_OFFERED)
        self._say(self.ring())
        self.assertEqual([taken], self.plan.happened)
        self.memory.taking = frozenset({self.node})
        self.assertEqual(
            [], planner.decide(
                self.seen, self.memory, self.current).happened)

    def test_another_ring_or_none_is_waited_for_for_ever(self):
        for number in range(9):
            self.change(at=number * self.current.handover_timeout)
            self.assertIs(
                Decision.WAIT, self._say('other' if number % 2 else None))
        self.assertEqual(0, self.memory.waits[self.node].since)

    def test_another_scope(self):
        # Whatever a list of peers says.
        self.hear(a=dataclasses.replace(
            self.says('other'), scope=settings.Scope('rack')))
        for scope, expected in (
                (settings.Scope('rack2'), Decision.TAKE_ABANDONED),
                (settings.Scope('rack'), Decision.WAIT)):
            self.current = dataclasses.replace(self.current, scope=scope)
            self.decide()
            self.assertIs(expected, self.decision(self.node), scope)

    def test_dead_owner(self):
        self.know(a=State.ABSENT)
        self.assertIs(Decision.TAKE_ABANDONED, self._say('other'))

    def test_another_than_the_owner_says_so(self):
        self.change(rows={**self.seen.rows, self.node: model.Row('b')})
        self.assertIs(Decision.WAIT, self._say(self.ring()))

    def test_instance(self):
        self.current = dataclasses.replace(self.current, follows=True)
        self.place(self.node, 'theirs')
        self.change(instances=observation.Instances(of_others={
            'theirs': model.Instance('A', self.node, task='rebooting')}))
        self.assertIs(Decision.TAKE_INSTANCE,
                      self._say(self.ring(), follows=True))
        for ring_, follows in ((self.ring(), False), ('other', True),
                               (None, True)):
            self.assertIs(Decision.LEAVE_INSTANCE,
                          self._say(ring_, follows=follows))

    def test_instance_where_this_service_does_not_follow(self):
        self.place(self.node, 'theirs')
        self.change(instances=observation.Instances(of_others={
            'theirs': model.Instance('A', self.node)}))
        self.assertIs(Decision.LEAVE_INSTANCE,
                      self._say(self.ring(), follows=True))

    def test_instance_on_the_row_of_another(self):
        self.current = dataclasses.replace(self.current, follows=True)
        self.place(self.node, 'theirs')
        self.change(instances=observation.Instances(of_others={
            'theirs': model.Instance('A', self.node)}))
        for rows in ({self.node: model.Row('b')}, {}):
            self.change(rows=rows)
            self.assertIs(Decision.LEAVE_INSTANCE,
                          self._say(self.ring(), follows=True))
