# SPDX-License-Identifier: Apache-2.0

"""Tests of what a service does between two passes."""

from collections.abc import Callable
import dataclasses

import ddt
import fixtures

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.peers.membership import State
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.unit.core import base
from nova_ironic_ring.tests.unit.core.base import desired


def _fail() -> None:
    raise ConnectionError('no answer')


# What costs no request.
_OF_THE_PROCESS = 'now', 'longest_gap', 'is_ending', 'tracked'


class _ReactionTestCase(base.PassTestCase):
    """An instance of b is on a node that is for me once b is dead."""

    def setUp(self):
        super().setUp()
        self.node = min(desired('me', 'a') - desired('me', 'a', 'b'))
        self.place(self.node, 'theirs', 'b')
        self.run_pass()

    def react(self) -> node_places.ReactionResult:
        """Look at the services between two passes."""
        self.asked.clear()
        try:
            self.reacted = reaction.run(
                self.tracker.world, self.memory, self.current, base.PLACES)
        except one_pass.UnansweredError as error:
            self.memory = error.memory
            raise
        self.memory = self.reacted.memory
        return self.reacted

    def react_for(self, seconds: float) -> None:
        """Look at the services for some time, as often as they are heard."""
        every = self.current.report_interval
        for _ in range(round(seconds / every)):
            self.wait(every)
            self.react()

    def assertTaken(self, *instances: str) -> None:
        self.assertEqual(list(instances), [
            each.instance for each in self.reacted.taken])

    def happened_now(self, kind: type) -> list:
        return [each for each in self.reacted.happened
                if isinstance(each, kind)]


class QuietTestCase(_ReactionTestCase):

    def test_what_is_asked(self):
        self.react()
        self.assertEqual(
            ['services', 'instances_of'],
            [each for each in self.asked
             if each not in _OF_THE_PROCESS])

    def test_nothing_happens(self):
        before = self.memory
        self.wait(1)
        self.react()
        self.assertTaken()
        self.assertEqual([], self.reacted.happened)
        self.assertEqual({}, self.reacted.steps)
        self.assertEqual(
            dataclasses.replace(before, view=self.memory.view,
                                watch=self.memory.watch,
                                work_watch=self.memory.work_watch),
            self.memory)

    def test_instances_of_others_are_read_once(self):
        self.place(min(self.owned()), 'other', 'a')
        self.run_pass()
        self.join('e')
        self.react()
        self.assertIn('instances', self.asked)
        self.react()
        self.assertNotIn('instances', self.asked)

    def test_what_nova_does_not_have_is_read_once(self):
        self.cloud.nodes[min(self.owned())].instance = 'unknown'
        self.run_pass()
        self.react()
        self.assertIn('instances', self.asked)
        self.react()
        self.assertNotIn('instances', self.asked)
        # Something else is on the node by now.
        self.cloud.nodes[min(self.owned())].instance = None
        self.run_pass()
        self.react()
        self.assertEqual(frozenset(), self.memory.nowhere)


class FailoverTestCase(_ReactionTestCase):

    def test_forced_down(self):
        self.force_down('b')
        self.react()
        self.assertTaken('theirs')
        self.assertNotIn('nodes', self.asked)
        self.assertEqual('me', self.cloud.instances['theirs'].host)
        self.assertNotIn(self.node, self.cloud.rows)
        self.assertIs(
            Decision.FAIL_OVER, self.reacted.steps[self.node].decision)
        self.assertEqual(
            [events.InstanceTaken(self.node, 'theirs', 'b', True)],
            self.happened_now(events.InstanceTaken))

    def test_once(self):
        self.force_down('b')
        self.react()
        self.react()
        self.assertTaken()

    def test_the_next_pass_lists_the_node(self):
        self.force_down('b')
        self.react()
        self.assertIn(self.node, self.run_pass())
        self.assertIs(Decision.KEEP_INSTANCE, self.decisions()[self.node])
        self.assertEqual('me', self.cloud.rows[self.node].owner)

    def test_the_tracker_may_take_the_node_before(self):
        self.force_down('b')
        self.react()
        plan = dataclasses.replace(self.result.plan, steps={
            **self.result.plan.steps, **self.reacted.steps})
        self.tracker.take(
            self.node, dataclasses.replace(self.result, plan=plan))
        self.assertEqual('me', self.cloud.rows[self.node].owner)

    def test_absent_for_long(self):
        self.configure(failover_after=100)
        # It has been heard of since this service has started.
        self.react_for(20)
        self.alive.discard('b')
        self.react_for(90)
        self.assertTaken()
        self.assertIs(State.ABSENT,
                      self.memory.view.state('b'))
        self.react_for(10)
        self.assertTaken('theirs')

    def test_absent_is_not_dead(self):
        self.alive.discard('b')
        self.react_for(1000)
        self.assertTaken()
        self.assertEqual('b', self.cloud.instances['theirs'].host)

    def test_service_that_was_deleted(self):
        self.alive.discard('b')
        del self.cloud.services['b']
        self.react()
        self.assertIn('services', self.asked)
        self.assertTaken('theirs')

    def test_service_that_nova_does_not_have(self):
        # Somebody has changed the database while all live.
        nodes = sorted(desired('me', 'a', 'b'))[:2]
        for node, host in zip(nodes, 'ab', strict=True):
            self.place(node, f'of-{host}', host)
        self.run_pass()
        for node, host in zip(nodes, 'ab', strict=True):
            self.place(node, f'of-{host}', 'gone')
        # One service has its turn in each look.
        self.assertEqual({'of-a', 'of-b'}, {
            each.instance for _ in range(2) for each in self.react().taken})

    def test_disabled_and_forced_down(self):
        self.change('b', disabled=True)
        self.run_pass()
        self.force_down('b')
        self.react()
        self.assertTaken('theirs')

    def test_disabled_service_keeps_them(self):
        self.change('b', disabled=True)
        self.react()
        self.assertTaken()

    def test_another_is_faster(self):
        self.force_down('b')
        self.before['delete_row'] = lambda: self.record(self.node, 'a')
        self.react()
        self.assertTaken()
        self.assertEqual({}, self.reacted.steps)
        self.assertEqual('b', self.cloud.instances['theirs'].host)
        self.assertNotIn('theirs', self.memory.instances)

    def test_instance_that_has_gone_since_the_listing(self):
        del self.cloud.instances['theirs']
        self.force_down('b')
        self.react()
        self.assertTaken()
        self.assertIn(self.node, self.cloud.rows)

    def test_instance_that_is_on_another_node_by_now(self):
        self.cloud.instances['theirs'] = model.Instance('b', 'other')
        self.force_down('b')
        self.react()
        self.assertTaken()
        self.assertEqual(
            [events.InstanceElsewhere(self.node, 'theirs', 'b')],
            self.happened_now(events.InstanceElsewhere))
        self.react()
        self.run_pass()
        self.assertEqual([], self.happened(events.InstanceElsewhere))

    def test_free_nodes_are_left_to_the_pass(self):
        self.force_down('b')
        before = self.owned()
        self.react()
        self.assertEqual(before, self.owned())

    def test_newcomer_takes_nothing(self):
        self.cloud.members.clear()
        self.force_down('b')
        self.react()
        self.assertTaken()
        base.say(self.cloud, 'me')
        self.react()
        self.assertTaken('theirs')

    def test_service_without_a_node_takes_it(self):
        for node in self.owned():
            self.record(node, 'a')
        self.force_down('b')
        self.react()
        self.assertTaken('theirs')

    def test_pinned(self):
        self.configure(fails_over=False)
        self.force_down('b')
        self.react()
        self.assertTaken()

    def test_service_that_ends(self):
        self.tracker.process.is_ending = lambda: True
        self.force_down('b')
        self.react()
        self.assertTaken()

    def test_nodes_of_another_scope(self):
        self.force_down('b')
        self.configure(scope=settings.Scope(shard='another'))
        self.react()
        self.assertTaken()

    def test_before_the_first_pass(self):
        self.memory = observation.Memory()
        self.force_down('b')
        self.react()
        self.assertTaken()


class OffersTestCase(_ReactionTestCase):
    """Nodes that the last pass waits for are offered since then."""

    def setUp(self):
        super().setUp()
        self.waited = sorted(desired('me', 'a', 'b'))[:5]
        for node in self.waited:
            self.record(node, 'a')
        self.run_pass()
        self.first, self.second, *_ = self.waited

    def offer(self, *nodes: str) -> None:
        """Have some of the nodes be those of a, which lets them go.

        The others are with a service that acknowledges no ring.
        """
        for node in self.waited:
            self.record(node, 'a' if node in nodes else 'b')
        self.let_go('a')
        self.let_go('b', ring=None)

    def track(self) -> None:
        """Have the tracker record what the last look says."""
        self.tracker.current = self.current
        for node in self.reacted.steps:
            self.tracker.take(node, dataclasses.replace(
                self.result, plan=planner.Plan(self.reacted.steps)))

    def react(self) -> node_places.ReactionResult:
        """Look at the services, and then take free nodes."""
        looked = super().react()
        try:
            taken = node_places.take_free(
                self.tracker.world, self.memory, self.current)
        except one_pass.UnansweredError as error:
            self.memory = error.memory
            raise
        self.memory = taken.memory
        self.reacted = dataclasses.replace(
            looked, memory=taken.memory, moved=taken.moved,
            steps={**looked.steps, **taken.steps},
            happened=[*looked.happened, *taken.happened])
        return self.reacted

    def assertOffered(self, *nodes: str) -> None:
        self.assertEqual(
            {node: Decision.TAKE_OFFERED for node in nodes},
            {node: step.decision
             for node, step in self.reacted.steps.items()})
        self.assertEqual(
            [events.NodeTaken(node, 'a', Decision.TAKE_OFFERED)
             for node in nodes], self.happened_now(events.NodeTaken))

    def test_nothing_is_offered(self):
        self.react()
        self.assertOffered()
        self.assertEqual(
            ['services', 'instances_of', 'rows'],
            [each for each in self.asked
             if each not in _OF_THE_PROCESS])

    def test_they_are_taken_with_consent(self):
        self.let_go('a')
        self.react()
        self.assertOffered(*self.waited)
        self.assertTaken()
        self.assertNotIn('nodes', self.asked)
        # And in the last look.
        self.assertEqual(1, self.asked.count('members'))
        self.track()
        self.assertLessEqual({*self.waited}, self.owned())

    def test_consents_of_all_owners_are_read_together(self):
        self.record(self.first, 'b')
        for owner in 'a', 'b':
            self.let_go(owner)
        self.react()
        self.assertEqual({*self.waited}, self.reacted.steps.keys())
        self.assertEqual(1, self.asked.count('members'))

    def describe(self) -> None:
        """Have the rows say what they would be made of here."""
        for node in self.waited:
            row = self.cloud.rows[node]
            row.sayer, row.made_at = row.owner, 7
            row.made_of = self.tracker._made_of(
                [node], {node: planner.Step(Decision.TAKE_OFFERED, '')})[node]
            self.cloud.providers.add(node)

    def test_they_are_taken_without_the_tracker(self):
        self.let_go('a')
        self.describe()
        self.react()
        self.assertOffered(*self.waited)
        self.assertEqual({*self.waited}, self.reacted.moved)
        self.assertEqual({'me'}, {
            self.cloud.rows[node].owner for node in self.waited})
        self.assertEqual({}, dict(self.memory.waits))
        self.assertEqual(frozenset(), self.memory.taking)

    def test_placement_does_not_answer(self):
        self.let_go('a')
        self.useFixture(fixtures.MockPatchObject(
            self.tracker.world.placement, 'unused',
            side_effect=OSError('away')))
        self.react()
        # The next pass says so, and has the tracker take them.
        self.assertEqual(({}, []), (
            self.reacted.steps, self.reacted.happened))
        self.run_pass()
        self.assertEqual(1, len(self.happened(events.NodesNotTaken)))

    def test_free_nodes_of_a_lost_service(self):
        self.describe()
        self.cloud.allocations[self.first] = {'build'}
        self.force_down('a')
        self.react()
        # What it was to build, the next pass finds.
        self.assertLessEqual({*self.waited[1:]}, self.reacted.moved)
        self.assertNotIn(self.first, self.reacted.steps)
        self.assertEqual('a', self.cloud.rows[self.first].owner)

    def test_nodes_that_may_be_for_a_narrower_scope(self):
        """Which they are, only a pass knows."""
        known = self.memory.view
        self.memory.view = dataclasses.replace(
            known, states={**known.states, 'n': State.NARROWER_SCOPE},
            services={**known.services, 'n': model.Service(
                'n', model.NEVER, said=model.Member(
                    scope=settings.Scope('g')))})
        self.memory.waits = {}
        self.useFixture(fixtures.MockPatchObject(look, 'between_passes'))
        self.react()
        self.assertNotIn('rows', self.asked)

    def test_the_ring_is_acknowledged_at_once(self):
        self.change('b', disabled=True)
        self.react()
        self.assertEqual(self.ring(), self.cloud.members['me'].ring)
        self.assertEqual(self.ring(), self.reacted.said.ring)
        self.react()
        self.assertIsNone(self.reacted.said)
        # Its last pass was not good.
        base.say(self.cloud, 'me', ring=None)
        self.change('b', disabled=False)
        self.react()
        self.assertIsNone(self.reacted.said)
        self.assertIsNone(self.cloud.members['me'].ring)

    def test_of_one_of_two_owners(self):
        self.offer(self.first)
        self.react()
        self.assertOffered(self.first)

    def test_another_ring_or_none(self):
        for acknowledged in 'other', None:
            self.let_go('a', ring=acknowledged)
            self.react()
            self.assertOffered()

    def test_once(self):
        self.offer(self.first)
        self.react()
        self.react()
        self.assertOffered()

    def test_the_next_pass_says_nothing_again(self):
        self.offer(self.first)
        self.react()
        # The tracker has not come to it.
        self.assertIn(self.first, self.run_pass())
        self.assertEqual([], self.happened(events.NodeTaken))
        self.assertEqual('me', self.cloud.rows[self.first].owner)
        self.run_pass()
        self.assertIs(Decision.KEEP, self.decisions()[self.first])

    def test_offer_that_is_withdrawn(self):
        self.offer(self.first)
        self.react()
        self.let_go('a', ring=None)
        self.run_pass()
        self.assertEqual('a', self.cloud.rows[self.first].owner)
        self.assertIn(self.first, self.memory.waits)

    def test_the_pass_that_takes_it_by_force_says_so(self):
        self.offer(self.first)
        self.react()
        self.let_go('a', ring=None)
        self.force_down('a')
        self.run_pass()
        self.assertIn(
            events.NodeTaken(self.first, 'a', Decision.TAKE_ABANDONED),
            self.happened(events.NodeTaken))

    def test_another_has_taken_it_meanwhile(self):
        self.offer(self.first)
        self.react()
        self.record(self.first, 'b')
        self.track()
        self.assertEqual('b', self.cloud.rows[self.first].owner)

    def test_the_owner_is_to_build_on_it(self):
        self.offer(self.first)
        self.react()
        self.cloud.allocations[self.first] = {'build'}
        self.track()
        self.assertEqual('a', self.cloud.rows[self.first].owner)

    def test_builds_of_an_owner_that_is_disabled_go_on(self):
        self.change('a', disabled=True)
        for node in self.waited:
            self.record(node, 'a')
        self.run_pass()
        self.offer(self.first)
        self.react()
        claim = self.reacted.steps[self.first].claim
        self.assertEqual((False, True),
                         (claim.is_abandoned, claim.is_handed_over))

    def test_row_that_has_gone(self):
        del self.cloud.rows[self.first]
        self.react()
        self.assertOffered()

    def test_instance_on_it_since_the_last_listing(self):
        self.place(self.first, 'new', 'a')
        self.run_pass()
        self.offer(self.first)
        self.react()
        self.assertOffered()

    def test_it_is_for_another_by_now(self):
        node = min(desired('me', 'a', 'b') - desired('me', 'a', 'b', 'e'))
        self.record(node, 'a')
        self.run_pass()
        self.join('e')
        self.let_go('a', ring=ring.Ring(
            {'me', 'a', 'b', 'e'}, 32).fingerprint(self.current.scope))
        self.react()
        self.assertIn(node, self.memory.waits)
        self.assertNotEqual({}, self.reacted.steps)
        self.assertNotIn(node, self.reacted.steps)

    def test_newcomer(self):
        self.cloud.members.clear()
        self.offer(self.first)
        self.react()
        self.assertOffered()
        base.say(self.cloud, 'me')
        self.react()
        self.assertOffered(self.first)

    def test_service_that_ends(self):
        self.tracker.process.is_ending = lambda: True
        self.offer(self.first)
        self.react()
        self.assertOffered()

    def test_no_trust(self):
        self.offer(self.first)
        self.before['rows'] = lambda: setattr(
            self.tracker.process, 'longest_gap', lambda since: 1000)
        self.react()
        self.assertOffered()
        self.react()
        self.assertIs(Trust.BLACKOUT, self.memory.view.trust)
        self.assertOffered()

    def test_own_rows_are_not_all_read(self):
        """There may be thousands, and passes wait for the look."""
        self.offer(self.first)
        self.asked.clear()
        self.react()
        self.assertOffered(self.first)
        self.assertNotIn('rows_of', self.asked)

    def test_service_without_a_node(self):
        for node in self.owned():
            self.record(node, 'b')
        self.offer(self.first)
        self.react()
        self.assertOffered(self.first)

    def test_nova_does_not_answer(self):
        self.before['rows'] = _fail
        self.assertRaises(one_pass.UnansweredError, self.react)
        self.assertFalse(self.memory.view.is_trusted)

    def test_instances_come_first(self):
        self.offer(self.first)
        self.force_down('b')
        self.react()
        self.assertTaken('theirs')
        self.assertEqual({self.node}, self.reacted.steps.keys())
        # The other one goes by the new ring as well.
        self.let_go('a')
        self.react()
        self.assertOffered(self.first)

    def test_no_more_at_once_than_the_tracker_comes_to(self):
        self.let_go('a')
        self.useFixture(fixtures.MockPatchObject(node_places, '_NODES', 2))
        self.react()
        self.assertOffered(*self.waited[:2])
        self.react()
        self.assertOffered()
        self.tracker.process.tracked_nodes.add(self.waited[0])
        self.react()
        self.assertOffered(self.waited[2])

    def test_rows_are_read_in_turn(self):
        self.useFixture(fixtures.MockPatchObject(node_places, '_ROWS', 2))
        self.offer(self.waited[-1])
        for _ in range(3):
            self.wait(self.current.report_interval)
            self.react()
            if self.reacted.steps:
                break
        self.assertOffered(self.waited[-1])


class PauseTestCase(_ReactionTestCase):
    """When it is looked again."""

    SETTINGS = settings.Settings('me', down_time=60, report_interval=10)

    def react_until(self, done: Callable[[], object]) -> float:
        """Look, and wait as long as is said, until something is true.

        :returns: the seconds since the last heartbeat of b
        """
        while not done():
            self.wait(reaction.pause(self.memory, self.current))
            self.react()
        return self.cloud.now - self.heard

    def silence(self, after: float) -> None:
        """Have b be heard of for the last time, some time before a look."""
        self.react()
        self.react_for(20)
        self.wait(10 - after)
        self.heard = self.cloud.now
        self.alive.discard('b')
        self.wait(after)
        self.react()

    def is_absent(self) -> bool:
        return self.memory.view.state('b') is State.ABSENT

    def test_all_are_well(self):
        self.react_for(30)
        self.assertEqual(10, reaction.pause(self.memory, self.current))

    def test_absent(self):
        for after in 0.5, 5, 9.5:
            self.alive.add('b')
            self.silence(after)
            # Of these, the first look has come so long after the heartbeat.
            self.assertLess(self.react_until(self.is_absent), 60 + after + 0.3)

    def test_looks_that_come_a_little_early(self):
        self.silence(5)
        self.wait(59.99)
        self.react()
        self.assertFalse(self.is_absent())
        self.assertEqual(0.2, reaction.pause(self.memory, self.current))

    def test_dead(self):
        self.configure(failover_after=95)
        self.silence(5)
        self.assertLess(self.react_until(lambda: self.reacted.taken),
                        95 + 5 + 0.3)

    def test_service_that_is_long_dead(self):
        self.configure(failover_after=95)
        self.silence(5)
        self.react_until(lambda: self.reacted.taken)
        self.react_for(130)
        self.assertEqual(10, reaction.pause(self.memory, self.current))

    def test_service_that_was_not_heard_of_since_the_start(self):
        nodes = self.memory.nodes
        self.restart()
        self.memory = dataclasses.replace(self.memory, nodes=nodes)
        self.alive.discard('b')
        self.react()
        self.heard = self.cloud.now
        self.assertLess(self.react_until(self.is_absent), 120 + 0.3)


@ddt.ddt
class TrustTestCase(_ReactionTestCase):
    """What a look between passes changes of what is believed."""

    SETTINGS = settings.Settings('me', down_time=60, report_interval=10,
                                 failover_after=60)

    def test_start(self):
        nodes = self.memory.nodes
        self.restart()
        self.memory = dataclasses.replace(self.memory, nodes=nodes)
        self.force_down('b')
        self.react()
        self.assertIs(Trust.STARTING, self.memory.view.trust)
        self.assertTaken()
        self.wait(10)
        self.react()
        self.assertIs(Trust.FULL, self.memory.view.trust)
        self.assertTaken('theirs')

    def test_restart_in_an_outage(self):
        """Who has not been heard since the start gets twice the time."""
        nodes = self.memory.nodes
        self.restart()
        self.memory = dataclasses.replace(self.memory, nodes=nodes)
        self.alive = {'me', 'a'}
        self.react_for(120)
        self.assertTaken()
        self.assertIn('b', self.memory.view.members)
        self.react_for(10)
        self.assertTaken('theirs')

    def test_outage_of_all(self):
        """Who comes back last from an outage is not taken for dead."""
        self.alive = set()
        self.react_for(50)
        self.assertIs(Trust.BLACKOUT, self.memory.view.trust)
        self.alive = {'me', 'a'}
        self.react_for(100)
        self.assertIs(State.MEMBER,
                      self.memory.view.state('b'))
        self.alive.add('b')
        self.react_for(60)
        self.assertIs(Trust.FULL, self.memory.view.trust)
        self.assertIs(State.MEMBER,
                      self.memory.view.state('b'))
        self.assertEqual('b', self.cloud.instances['theirs'].host)

    def test_own_gap(self):
        self.tracker.process.longest_gap = lambda since: 36
        self.force_down('b')
        self.react()
        self.assertTaken()
        self.assertIs(Trust.BLACKOUT, self.memory.view.trust)

    def test_stands_still_after_the_look(self):
        self.force_down('b')

        def stand_still():
            self.tracker.process.longest_gap = lambda since: 36
        self.before['rows'] = stand_still
        self.react()
        self.assertTaken()
        self.assertEqual('b', self.cloud.instances['theirs'].host)

    @ddt.data('services', 'instances_of', 'rows')
    def test_nova_does_not_answer(self, call):
        self.force_down('b')
        self.before[call] = _fail
        self.assertRaises(one_pass.UnansweredError, self.react)
        self.assertIs(Trust.BLACKOUT, self.memory.view.trust)
        self.assertEqual('b', self.cloud.instances['theirs'].host)
        self.react()
        self.assertTaken('theirs')

    def test_blackout_that_no_pass_sees_ends_waits(self):
        node = min(desired('me', 'a', 'b'))
        self.record(node, 'a')
        self.run_pass()
        self.assertIn(node, self.memory.waits)
        self.tracker.process.longest_gap = lambda since: 36
        self.react()
        self.assertEqual({}, self.memory.waits)

    def test_waits_go_on_otherwise(self):
        node = min(desired('me', 'a', 'b'))
        self.record(node, 'a')
        self.run_pass()
        waits = self.memory.waits
        self.react_for(30)
        self.assertEqual(waits, self.memory.waits)

    def test_passes_are_measured_by_passes(self):
        self.run_passes(300, 100)
        cycle = self.memory.work_watch.cycle
        self.assertEqual(100, cycle)
        self.react_for(50)
        self.assertEqual(cycle, self.memory.work_watch.cycle)
        self.wait(50)
        self.run_pass()
        self.assertEqual(100, self.memory.work_watch.cycle)

    def test_members_change(self):
        self.join('e')
        self.react()
        self.assertEqual({'me', 'a', 'b', 'e'},
                         self.memory.view.ring.members)
        self.assertEqual(1, len(self.happened_now(events.MembersChanged)))
        self.run_pass()
        self.assertEqual([], self.happened(events.MembersChanged))
