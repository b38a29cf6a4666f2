# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.peers import agreement
from nova_ironic_ring.core.peers.membership import State
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import base
from nova_ironic_ring.tests.unit.core.base import desired


def _fail() -> None:
    raise ConnectionError('no answer')


class NotWorkingTestCase(base.PassTestCase):
    """A peer that heartbeats, and whose passes fail."""

    CYCLE = 60

    def setUp(self):
        super().setUp()
        self.theirs = {node for node, row in self.cloud.rows.items()
                       if row.owner == 'b'}
        for owner in 'a', 'b':
            self._say(owner)
        self.run_passes(2 * self.CYCLE, self.CYCLE)

    def _say(self, host: str) -> None:
        """Have a peer say that it has run a good pass."""
        base.say(self.cloud, host, last_pass=model.LastPass(
            self.CYCLE, self.tracker.world.process.wall_time()))

    def _pass(self, *working: str) -> None:
        self.wait(self.CYCLE)
        for host in working:
            self._say(host)
        self.run_pass()

    def _fail(self, passes: int = 9) -> None:
        """Have the passes of b fail."""
        for _ in range(passes):
            self._pass('a')

    def _state(self) -> State:
        return self.memory.view.state('b')

    def test_its_free_nodes_are_taken(self):
        found = []
        for _ in range(9):
            self._pass('a')
            found += self.happened(events.PassesFail)
        self.assertEqual(['b'], [each.host for each in found])
        self.assertEqual(State.NOT_WORKING, self._state())
        self.assertEqual(desired('me', 'a'), self.owned())

    def test_between_two_passes(self):
        self._fail()
        look.between_passes(self.between())
        self.assertEqual(State.NOT_WORKING, self._state())
        self._say('b')
        this = self.between()
        look.between_passes(this)
        self.assertEqual(State.MEMBER, self._state())
        self.assertIn(events.PassesWork('b'), this.happened)

    def test_forced_down(self):
        self._fail()
        self.force_down('b')
        look.between_passes(self.between())
        self.assertEqual(State.FORCED_DOWN, self._state())

    def test_what_it_is_to_build_on_stays(self):
        node = min(desired('me', 'a') & self.theirs)
        self.cloud.allocations[node] = {'instance'}
        self._fail()
        self.assertEqual('b', self.cloud.rows[node].owner)
        del self.cloud.allocations[node]
        self._fail(1)
        self.assertEqual('me', self.cloud.rows[node].owner)

    def test_its_instances_stay(self):
        self.configure(failover_after=1)
        node = min(desired('me', 'a') & self.theirs)
        self.place(node, 'instance', 'b')
        self._fail(20)
        self.assertEqual('b', self.cloud.instances['instance'].host)
        self.assertEqual('b', self.cloud.rows[node].owner)

    def test_it_comes_back(self):
        self._fail()
        self._pass('a', 'b')
        self.assertEqual([events.PassesWork('b')],
                         self.happened(events.PassesWork))
        self.assertEqual(
            desired('me', 'a') - desired('me', 'a', 'b'),
            {node for node, step in self.result.plan.steps.items()
             if step.offer == 'b'})

    def test_it_says_no_time_any_more(self):
        base.say(self.cloud, 'b', last_pass=model.LastPass(self.CYCLE))
        self._fail()
        self.assertEqual(State.NOT_WORKING, self._state())

    def test_outage_of_nova_is_no_pass(self):
        for _ in range(60):
            self.before['services'] = _fail
            self.wait(self.CYCLE)
            self.assertRaises(passes.UnansweredError, self.decide)
        self._pass('a', 'b')
        # All would wait for it for hours, if its passes failed from now on.
        self.assertEqual(
            self.CYCLE, self.result.work.said.last_pass.cycle)
        self._pass('a', 'b')
        self.assertEqual(self.CYCLE, self.memory.work_watch.cycle)
        # They were not watched meanwhile.
        self.assertEqual(State.MEMBER, self._state())
        self._fail(12)
        self.assertEqual(State.NOT_WORKING, self._state())

    def test_nobody_has_ironic(self):
        for _ in range(20):
            self.before['nodes'] = _fail
            self.wait(self.CYCLE)
            self.assertRaises(passes.UnansweredError, self.decide)
        self._fail(6)
        self.assertEqual(State.MEMBER, self._state())
        self._fail(6)
        self.assertEqual(State.NOT_WORKING, self._state())
        # Once more, which is no reason to believe that it works.
        self.before['nodes'] = _fail
        self.assertRaises(passes.UnansweredError, self.decide)
        self._fail(1)
        self.assertEqual(State.NOT_WORKING, self._state())

    def test_nobody_can_write_records(self):
        self.tracker.world.nova.say_member = lambda said: None
        for _ in range(20):
            self.wait(self.CYCLE)
            self.decide()
        self.assertEqual(State.MEMBER, self._state())
        self.assertTrue(self.memory.own_work.is_failing)

    def test_in_a_blackout(self):
        self.tracker.process.longest_gap = lambda since: 36.0
        self._fail(20)
        self.assertEqual(State.MEMBER, self._state())

    def test_waits_end_where_own_passes_fail(self):
        node = min(self.owned())
        self.record(node, 'a')
        self._pass('a', 'b')
        for _ in range(5):
            self.before['nodes'] = _fail
            self.wait(self.CYCLE)
            self.assertRaises(passes.UnansweredError, self.decide)
        self._pass('a', 'b')
        self.assertEqual(Decision.WAIT, self.decisions()[node])


class SayTestCase(base.PassTestCase):
    """What a service says of its passes, and whether that arrives."""

    CYCLE = 60

    def setUp(self):
        super().setUp()
        self._pass()

    def _pass(self) -> None:
        self.wait(self.CYCLE)
        self.run_pass()

    def _said(self) -> model.LastPass:
        said = self.cloud.members['me'].last_pass
        assert said is not None
        return said

    def _at(self) -> datetime.datetime:
        said = self._said().at
        assert said is not None
        return said

    def _own(self) -> observation.OwnWork:
        return self.memory.own_work

    def test_what_is_said(self):
        self.assertEqual(model.Member(model.LastPass(
            self.CYCLE, self.tracker.process.wall_time()), model.Scope(),
            ring=self.ring()), self.cloud.members['me'])
        self.assertEqual(self.cloud.members['me'].last_pass,
                         self.result.work.said.last_pass)

    def test_scope_and_settings(self):
        scope = model.Scope('rack1', 's')
        self.configure(scope=scope, by_shards=True)
        self.memory.held = frozenset({'code'})
        own_work.say(self.between(), has_pools=True)
        said = self.cloud.members['me']
        self.assertEqual(
            (scope, True, frozenset({'code'}), self.ring(), True),
            (said.scope, said.by_shards, said.held, said.ring,
             said.has_pools))

    def test_what_is_not_divided_by_shards(self):
        own_work.say(self.between())
        self.assertEqual(frozenset(), self.cloud.members['me'].held)

    def test_each_pass_says_it(self):
        before = self._at()
        self._pass()
        self.assertEqual(before + datetime.timedelta(seconds=60), self._at())

    def test_two_passes_in_a_second(self):
        before = self._at()
        self.run_pass()
        self.assertEqual(before + datetime.timedelta(seconds=1), self._at())

    def test_clock_that_goes_back(self):
        before = self._at()
        self.tracker.process.wall_time = lambda: clouds.EPOCH
        self._pass()
        self.assertEqual(before + datetime.timedelta(seconds=1), self._at())

    def test_clock_that_was_far_ahead(self):
        now = self.tracker.process.wall_time
        ahead = datetime.timedelta(days=300)
        self.tracker.process.wall_time = lambda: now() + ahead
        self._pass()
        self.assertGreater(self._at(), now())
        self.tracker.process.wall_time = now
        for _ in range(3):
            self._pass()
            self.assertEqual(now(), self._at())
            self.assertFalse(self._own().is_failing)

    def test_time_stays_without_trust(self):
        before = self._said()
        self.tracker.process.longest_gap = lambda since: 36.0
        self.wait(5)
        self.run_pass()
        self.assertFalse(self.memory.view.is_trusted)
        self.assertEqual(before.at, self._at())
        self.assertFalse(self.result.work.is_good)
        self.assertFalse(self._own().is_working)
        # Nothing was said that did not arrive.
        self.wait(5)
        self.run_pass()
        self.assertFalse(self._own().is_failing)

    def test_is_working(self):
        for _ in range(2):
            self._pass()
            self.assertTrue(self.result.work.is_good)
            self.assertTrue(self.result.work.is_recorded)
            self.assertTrue(self._own().is_working)
            self.assertFalse(self._own().is_failing)

    def test_what_is_lost(self):
        self.tracker.world.nova.say_member = lambda said: None
        # It sees what it has said before.
        self._pass()
        self.assertFalse(self._own().is_failing)
        for _ in range(2):
            self._pass()
            self.assertTrue(self._own().is_failing)
            self.assertFalse(self._own().is_working)
        del self.tracker.world.nova.say_member
        self._pass()
        self.assertTrue(self._own().is_failing)
        self._pass()
        self.assertFalse(self._own().is_failing)
        self.assertTrue(self._own().is_working)

    def test_record_that_is_gone(self):
        self.cloud.members.pop('me')
        self._pass()
        self.assertFalse(self._own().is_known)
        self.assertTrue(self._own().is_failing)
        self.assertFalse(self.result.work.is_recorded)
        for _ in range(2):
            self._pass()
        self.assertTrue(self._own().is_known)
        self.assertFalse(self._own().is_failing)
        self.assertTrue(self.result.work.is_recorded)

    def test_record_of_another_scope(self):
        base.say(self.cloud, 'me', scope=model.Scope('rack1'))
        self._pass()
        self.assertFalse(self._own().is_known)
        self._pass()
        self.assertTrue(self._own().is_known)

    def test_write_that_fails(self):
        self.before['say_member'] = _fail
        self._pass()
        (failed,) = self.happened(events.LastPassNotSaid)
        self.assertIsInstance(failed.error, ConnectionError)
        self.assertEqual(desired('me', 'a', 'b'), set(self.result.listed))
        self.assertTrue(self.memory.view.is_trusted)
        self._pass()
        self.assertTrue(self._own().is_failing)
        self.assertEqual([], self.happened(events.LastPassNotSaid))

    def test_disabled_service(self):
        # It is not among those of the ring, and its record is read apart.
        self.change('me', disabled=True)
        before = self._at()
        self._pass()
        self.assertTrue(self._own().is_known)
        self.assertTrue(self._own().is_working)
        self.assertGreater(self._at(), before)

    def test_service_without_a_node(self):
        self.cloud.nodes.clear()
        self.cloud.rows.clear()
        before = self._at()
        self._pass()
        self.assertGreater(self._at(), before)
        self.assertTrue(self._own().is_working)

    def test_renewed_in_a_long_pass(self):
        work = self.result.work
        now = self._at()
        later = work.renewed(now + datetime.timedelta(seconds=100))
        self.assertEqual(dataclasses.replace(
            work.said.last_pass, at=now + datetime.timedelta(seconds=100)),
            later.said.last_pass)
        # All else is as in the pass.
        self.assertEqual(dataclasses.replace(work, said=later.said), later)
        self.assertEqual(
            now + datetime.timedelta(seconds=101),
            later.renewed(clouds.EPOCH).said.last_pass.at)


class RingTestCase(base.PassTestCase):
    """Which ring a service acknowledges, beside the last good pass."""

    def _said(self) -> str | None:
        return self.cloud.members['me'].ring

    def test_after_a_good_pass(self):
        self.assertEqual(self.ring(), self._said())

    def test_before_the_tracker_comes_to_a_node(self):
        before = self._said()
        self.join('e')
        self.decide()
        self.assertIn(Decision.OFFER, self.decisions().values())
        self.assertEqual(self.ring(), self._said())
        self.assertNotEqual(before, self._said())

    def test_of_a_service_that_is_disabled(self):
        self.change('me', disabled=True)
        self.run_pass()
        self.assertNotIn('me', self.memory.view.members)
        # It lets go of all, however the others divide that.
        self.assertEqual(model.EVERY_RING, self._said())

    def test_none_without_trust(self):
        self.tracker.process.longest_gap = lambda since: 36.0
        self.decide()
        self.assertFalse(self.memory.view.is_trusted)
        self.assertIsNone(self._said())

    def test_none_without_trust_between_passes(self):
        self.memory.view = dataclasses.replace(
            self.memory.view, trust=Trust.BLACKOUT)
        own_work.say(self.between())
        self.assertIsNone(self._said())

    def test_none_while_placement_does_not_answer(self):
        self.before['has_provider'] = _fail
        self.run_pass()
        self.assertIsNone(self._said())
        self.run_pass()
        self.assertEqual(self.ring(), self._said())

    def test_renewed_with_the_pass(self):
        later = self.result.work.renewed(self.tracker.process.wall_time())
        self.assertEqual(self._said(), later.said.ring)

    def test_who_differs(self):
        self.memory.agreement = agreement.Agreement(
            {'a': -999.0}, frozenset('a'))
        self.let_go('a', ring='other')
        self.run_pass()
        self.assertEqual({'a'}, self.cloud.members['me'].differ)
        self.let_go('a')
        self.run_pass()
        self.assertEqual(frozenset(), self.cloud.members['me'].differ)

    def test_whether_instances_follow(self):
        for follows in True, False:
            self.configure(follows=follows)
            self.run_pass()
            self.assertIs(follows, self.cloud.members['me'].follows)
