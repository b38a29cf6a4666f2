# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.peers.membership import State
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
        now = self.tracker.world.process.wall_time()
        own = sorted(node for node, row in self.cloud.rows.items()
                     if row.owner == host)
        for node in own:
            self.cloud.rows[node].say(host, model.LastPass(
                self.CYCLE, now if node == own[0] else None))

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
        return self.memory.standing.membership.state('b')

    def test_its_free_nodes_are_taken(self):
        found = []
        for _ in range(9):
            self._pass('a')
            found += self.happened(events.PassesFail)
        self.assertEqual(['b'], [each.host for each in found])
        self.assertEqual(State.NOT_WORKING, self._state())
        self.assertEqual(desired('me', 'a'), self.owned())

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

    def test_it_says_so_in_another_row(self):
        # Of which nothing is known before it is looked for.
        nova = self.tracker.world.nova
        services = nova.ring_services
        said = model.LastPass(
            self.CYCLE, self.tracker.world.process.wall_time())
        nova.ring_services = lambda: [
            dataclasses.replace(each, last_pass=said)
            if each.name == 'b' else each for each in services()]
        for _ in range(12):
            self._pass('a', 'b')
            self.assertEqual(State.MEMBER, self._state())
        nova.last_passes = lambda hosts: {}
        self._fail()
        self.assertEqual(State.NOT_WORKING, self._state())

    def test_row_that_said_so_goes_to_another_service(self):
        self._pass('a', 'b')
        nova = self.tracker.world.nova
        services = nova.ring_services
        said = model.LastPass(self.CYCLE)
        nova.ring_services = lambda: [
            dataclasses.replace(each, last_pass=said)
            if each.name == 'b' else each for each in services()]
        nova.last_passes = lambda hosts: {'b': said}
        # Its next pass has the time to say so in another row.
        self._fail(6)
        self.assertEqual(State.MEMBER, self._state())
        self._fail(6)
        self.assertEqual(State.NOT_WORKING, self._state())
        self._fail(12)
        self.assertEqual(State.NOT_WORKING, self._state())

    def test_outage_of_nova_is_no_pass(self):
        for _ in range(60):
            self.before['ring_services'] = _fail
            self.wait(self.CYCLE)
            self.assertRaises(passes.UnansweredError, self.decide)
        self._pass('a', 'b')
        # All would wait for it for hours, if its passes failed from now on.
        self.assertEqual(self.CYCLE, self.result.work.said.cycle)
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

    def test_nobody_can_write_rows(self):
        # As where Placement is down: Nova's tracker writes there first.
        for _ in range(20):
            self.wait(self.CYCLE)
            self.decide()
        self.assertEqual(State.MEMBER, self._state())
        self.assertTrue(self.memory.own_work.is_failing)

    def test_in_a_blackout(self):
        self.tracker.process.longest_gap = lambda: 36.0
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

    def _shown(self) -> dict[str, datetime.datetime]:
        return {node: row.last_pass.at for node, row in self.cloud.rows.items()
                if row.owner == 'me' and row.last_pass and row.last_pass.at}

    def test_what_is_said_of_own_passes(self):
        before = self._shown()
        self.assertEqual(1, len(before))
        self._pass('a', 'b')
        self.assertEqual(before.keys(), self._shown().keys())
        self.assertNotEqual(before, self._shown())

    def test_row_of_an_instance_is_preferred(self):
        (before,) = self._shown()
        node = max(self.owned() - {before})
        self.place(node, 'server', 'me')
        self._pass('a', 'b')
        self._pass('a', 'b')
        said = max(self._shown().values())
        self.assertEqual(said, self._shown()[node])

    def test_row_that_cannot_be_written(self):
        (node,) = self._shown()
        take = self.tracker.take
        self.tracker.take = lambda each, result: (
            () if each == node else take(each, result))
        for _ in range(9):
            before = max(self._shown().values())
            self._pass('a', 'b')
        self.assertGreater(max(self._shown().values()), before)
        self.assertFalse(self.memory.own_work.is_failing)

    def test_row_that_is_lost(self):
        (node,) = self._shown()
        self.cloud.rows[node] = clouds.Row('a')
        self._pass('a', 'b')
        self.assertEqual(1, len(self._shown()))
        self.assertFalse(self.memory.own_work.is_failing)

    def test_clock_that_goes_back(self):
        before = max(self._shown().values())
        self.tracker.process.wall_time = lambda: clouds.EPOCH
        self._pass('a', 'b')
        self.assertGreater(max(self._shown().values()), before)

    def test_clock_that_was_far_ahead(self):
        now = self.tracker.process.wall_time
        ahead = datetime.timedelta(days=300)
        self.tracker.process.wall_time = lambda: now() + ahead
        self._pass('a', 'b')
        self.assertGreater(max(self._shown().values()), now())
        self.tracker.process.wall_time = now
        for _ in range(3):
            self._pass('a', 'b')
            self.assertEqual(
                now().replace(microsecond=0), max(self._shown().values()))
            self.assertFalse(self.memory.own_work.is_failing)

    def test_nodes_that_are_not_listed(self):
        before = max(self._shown().values())
        self.cloud.nodes.clear()
        self._pass('a', 'b')
        self.assertIn('say_last_pass', self.asked)
        self.assertGreater(max(self._shown().values()), before)

    def test_row_that_is_about_to_be_deleted(self):
        ((node, before),) = self._shown().items()
        del self.cloud.nodes[node]
        self.wait(self.CYCLE)
        # Nova's manager deletes such rows before the tracker writes others.
        self.decide()
        shown = self._shown()
        self.assertEqual(before, shown.pop(node))
        self.assertGreater(max(shown.values()), before)
        self.asked.clear()
        self._pass('a', 'b')
        self.assertNotIn('say_last_pass', self.asked)


class ConsentTestCase(base.PassTestCase):
    """By which ring others may take free nodes, beside the last good pass."""

    def setUp(self):
        super().setUp()
        for node, row in self.cloud.rows.items():
            if row.owner != 'me':
                row.say_settings(dataclasses.replace(
                    self.current, host=row.owner), None)
        self.run_pass()

    def _consents(self) -> dict[str, model.Consent]:
        return {node: row.last_pass.consent
                for node, row in self.cloud.rows.items()
                if row.owner == 'me' and row.last_pass is not None
                and row.last_pass.consent is not None}

    def test_where_nothing_goes(self):
        self.assertEqual({}, self._consents())

    def test_one_row_that_stays(self):
        for host in 'e', 'f', 'g':
            self.join(host)
            self.cloud.rows[f'of-{host}'].say_settings(
                dataclasses.replace(self.current, host=host), None)
        before = self.owned()
        self.run_pass()
        ((node, consent),) = self._consents().items()
        self.assertIs(Decision.KEEP, self.decisions()[node])
        self.assertEqual({}, self.offers())
        self.assertEqual({node}, consent.but)
        self.assertIn(Decision.OFFER, self.decisions().values())
        self.assertEqual(before, self.owned())

    def test_of_all_one_goes_last(self):
        self.change('me', disabled=True)
        self.run_pass()
        ((node, consent),) = self._consents().items()
        self.assertIs(Decision.OFFER, self.decisions()[node])
        self.assertEqual({node}, consent.but)
        for other in self.owned() - {node}:
            self.cloud.rows[other].owner = 'a'
        self.run_pass()
        self.assertEqual({}, self._consents())
        self.assertEqual({node}, self.offers().keys())

    def test_withdrawn_without_trust(self):
        self.change('me', disabled=True)
        self.run_pass()
        self.memory.fail(self.cloud.now)
        self.run_pass()
        self.assertFalse(self.memory.standing.is_trusted)
        self.assertEqual({}, self._consents())

    def test_withdrawn_while_placement_does_not_answer(self):
        self.change('me', disabled=True)
        self.run_pass()
        self.before['in_use'] = _fail
        self.run_pass()
        self.assertEqual([''], [
            each.ring for each in self._consents().values()])
        self.assertEqual({}, self.offers())
        self.run_pass()
        ((_, consent),) = self._consents().items()
        self.assertNotEqual('', consent.ring)
        self.assertEqual({}, self.offers())

    def _say_before(self) -> tuple[str, model.LastPass]:
        """Have a row say again what it said a pass before.

        :returns: its node, and what it says
        """
        self.change('me', disabled=True)
        self.run_pass()
        ((first, _),) = self._consents().items()
        row = self.cloud.rows[first].last_pass
        self.wait(61)
        self.run_pass()
        self.cloud.rows[first].last_pass = row
        return first, row

    def test_withdrawn_before_another_row_says_it(self):
        # It has not arrived, as far as this service can see.
        first, row = self._say_before()
        self.memory.own_work = dataclasses.replace(
            self.memory.own_work, shown=row.at, node=first)
        self.decide()
        self.assertEqual({}, self._consents())
        self.tracker.track(self.result)
        self.assertEqual(1, len(self._consents()))
        self.assertNotIn(first, self._consents())

    def test_none_while_another_cannot_be_withdrawn(self):
        # Another row has said it since, and this one cannot be written.
        first, _ = self._say_before()
        self.before['say_last_pass'] = _fail
        self.decide()
        self.assertIn(first, self._consents())
        self.assertIsNone(self.result.work.said.consent)
        self.decide()
        self.assertIsNotNone(self.result.work.said.consent)

    def test_withdrawn_where_another_did_not_arrive(self):
        self.change('me', disabled=True)
        self.run_pass()
        before = self.result.work.node
        # Chance may choose a row again that cannot be written.
        for _ in range(40):
            self.wait(61)
            self.decide()
            if self.memory.own_work.is_failing:
                self.assertNotEqual(before, self.result.work.node)
                self.assertEqual({}, self._consents())
            before = self.result.work.node
        self.assertTrue(self.memory.own_work.is_failing)

    def test_row_that_is_not_listed(self):
        self.change('me', disabled=True)
        self.run_pass()
        ((node, _),) = self._consents().items()
        del self.cloud.nodes[node]
        self.decide()
        self.assertNotIn(node, self._consents())
