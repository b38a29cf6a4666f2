# SPDX-License-Identifier: Apache-2.0


import ddt
import fixtures

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.process import heartbeats
from nova_ironic_ring.tests.unit.core import base
from nova_ironic_ring.tests.unit.core.base import desired
from nova_ironic_ring.tests.unit.core.base import NODES

NEW = '11111111-1111-1111-1111-111111111111'


def _fail() -> None:
    raise ConnectionError('no answer')


@ddt.ddt
class TrustTestCase(base.PassTestCase):
    """What is not done while it is not known who is alive."""

    def _trusts(self) -> bool:
        return self.memory.view.trust is Trust.FULL

    def test_all_heartbeats_stand_still(self):
        before = self.owned()
        self.cloud.now += 61
        self.assertEqual(before, self.run_pass())
        self.assertEqual(
            [events.TrustChanged(Trust.FULL, Trust.BLACKOUT, 60)],
            self.happened(events.TrustChanged))
        # This service's own is the first to go on.
        self.alive = {'me'}
        self.wait(5)
        self.assertEqual(before, self.run_pass())
        self.assertEqual(
            [events.TrustChanged(Trust.BLACKOUT, Trust.FULL, 60)],
            self.happened(events.TrustChanged))
        # The others get twice the down time to come back.
        for _ in range(22):
            self.wait(5)
            self.assertEqual(before, self.run_pass())
        self.wait(5)
        self.assertEqual(desired('me'), self.run_pass())

    def test_own_heartbeats_that_were_missing(self):
        self.tracker.process.longest_gap = lambda since: 36.0
        self.force_down('b')
        before = self.owned()
        self.assertEqual(before, self.run_pass())
        # The last members stay in force.
        self.assertEqual({'me', 'a', 'b'},
                         self.memory.view.members)
        self.tracker.process.longest_gap = lambda since: 10.0
        self.assertEqual(desired('me', 'a'), self.run_passes(5, 5))

    @ddt.data('services', 'instances_of', 'rows_of')
    def test_nova_does_not_answer(self, call):
        self.force_down('b')
        before = self.owned()
        self.before[call] = _fail
        error = self.assertRaises(passes.UnansweredError, self.decide)
        self.assertIsInstance(error.__cause__, ConnectionError)
        # The last members stay in force until it does.
        self.assertFalse(self._trusts())
        self.assertEqual(before, self.owned())
        self.assertEqual(desired('me', 'a'), self.run_pass())

    def _is_unanswered(self, call: str) -> None:
        self.before[call] = _fail
        self.assertRaises(passes.UnansweredError, self.decide)

    @ddt.data('nodes', 'nodes_of', 'is_deleted')
    def test_ironic_does_not_answer(self, call):
        self.cloud.instances['nowhere'] = model.Instance('me', 'nowhere')
        self.configure(scope=settings.Scope(''))
        if call == 'is_deleted':
            self.cloud.nodes.clear()
        self._is_unanswered(call)
        # It says nothing of the heartbeats.
        self.run_pass()
        self.assertTrue(self._trusts())

    @ddt.data('nodes', 'instances_of', 'rows_of', 'rows')
    def test_who_stood_still_until_then_is_not_taken_for_dead(self, call):
        # All stood still for a while, and a pass fails besides.
        heartbeats_ = heartbeats.OwnHeartbeats(lambda: self.cloud.now)
        self.tracker.process.longest_gap = heartbeats_.longest_gap
        heartbeats_.beat(lambda: None)
        self.run_pass()
        self.alive.clear()
        self.wait(60)
        self.record(min(desired('me', 'a', 'b')), 'a')
        self._is_unanswered(call)
        self.alive = {'me'}
        for _ in range(22):
            self.wait(5)
            heartbeats_.beat(lambda: None)
            self.run_pass()
            self.assertEqual({'me', 'a', 'b'},
                             self.memory.view.members)

    @ddt.data('instances_of', 'rows_of')
    def test_what_has_happened_until_then_is_told(self, call):
        self.force_down('b')
        self._is_unanswered(call)
        (change,) = self.happened(events.MembersChanged)
        self.assertEqual({'me', 'a'}, change.now.members)

    def test_what_was_decided_is_told(self):
        self.force_down('b')
        node = min(desired('me', 'a') - self.owned())
        self.place(node, 'theirs', 'b')
        taken = desired('me', 'a') - self.owned() - {node}
        # Those of nodes are read when it is decided, and for a takeover.
        self.before['rows'] = lambda: self.before.update(rows=_fail)
        self.assertRaises(passes.UnansweredError, self.decide)
        self.assertEqual(taken, {
            each.node for each in self.happened(events.NodeTaken)})

    def test_nova_that_does_not_answer_makes_all_unheard(self):
        self.alive.remove('b')
        self.wait(50)
        self.before['services'] = _fail
        self.assertRaises(passes.UnansweredError, self.decide)
        self.configure(handover_timeout=9999)
        before = self.owned()
        self.assertEqual(before, self.run_passes(115, 5))
        self.assertEqual(desired('me', 'a'), self.run_passes(5, 5))

    def test_answer_that_takes_long_is_no_silence(self):
        before = self.owned()
        self.run_passes(20, 10)

        def stand_still():
            self.cloud.now += 58
        # Heartbeats go on meanwhile, and the answer is as old as the request.
        self.before['services'] = stand_still
        self.wait(5)
        self.assertEqual(before, self.run_pass())
        self.assertTrue(self._trusts())
        self.assertEqual({'me', 'a', 'b'},
                         self.memory.view.members)
        self.assertEqual(self.cloud.now - 58, self.memory.watch.at)
        self.assertFalse(self.between().is_valid)

    def test_heartbeats_that_were_late_since_the_look(self):
        """What was read since does not renew the view."""
        self.run_pass()
        at = self.memory.watch.at
        self.wait(30)
        self.tracker.process.longest_gap = lambda since: (
            36.0 if since <= at else 0.0)
        this = self.between()
        self.assertFalse(this.is_valid)
        look.again(this)
        self.assertFalse(this.is_valid)

    def test_one_that_was_absent_before_stays_absent(self):
        self.alive.remove('b')
        self.assertEqual(desired('me', 'a'), self.run_passes(70, 10))
        self.tracker.process.longest_gap = lambda since: 36.0
        self.run_passes(10, 10)
        self.assertFalse(self._trusts())
        self.tracker.process.longest_gap = lambda since: 10.0
        self.assertEqual(desired('me', 'a'), self.run_passes(10, 10))
        self.assertEqual({'me', 'a'},
                         self.memory.view.members)
        # Until it is heard.
        self.alive.add('b')
        self.run_passes(10, 10)
        self.assertEqual({'me', 'a', 'b'},
                         self.memory.view.members)

    def test_record_that_is_deleted_while_it_runs(self):
        self.cloud.nodes[NEW] = clouds.Node()
        before = self.owned()
        del self.cloud.services['me']
        self.assertEqual(before, self.run_pass())
        self.assertIs(Trust.STARTING, self.memory.view.trust)

    def test_no_ring_is_acknowledged(self):
        self.tracker.process.longest_gap = lambda since: 36.0
        node = min(desired('b', 'me', 'a', by='b'))
        self.record(node, 'me')
        self.run_pass()
        self.assertIsNone(self.cloud.members['me'].ring)
        self.assertIs(Decision.OFFER, self.decisions()[node])

    def test_no_time_is_waited(self):
        node = min(desired('me', 'a', 'b'))
        self.record(node, 'a')
        self.tracker.process.longest_gap = lambda since: 36.0
        self.run_pass()
        self.assertEqual({}, self.memory.waits)


class VanishedTestCase(base.PassTestCase):
    """Nodes that Ironic does not show any more."""

    def test_too_many(self):
        before = self.owned()
        self.assertGreater(len(before), 5)
        self.cloud.nodes.clear()
        self.assertEqual(set(), set(self.decide().listed))
        self.assertTrue(self.memory.vanished.is_closed)
        self.assertEqual(
            [events.NodesVanished('me', True, sorted(before), len(before))],
            self.happened(events.NodesVanished))
        self.decide()
        self.assertEqual([], self.happened(events.NodesVanished))
        self.cloud.nodes = {node: clouds.Node() for node in NODES}
        self.assertEqual(before, set(self.decide().listed))
        self.assertFalse(self.memory.vanished.is_closed)
        self.assertEqual([events.NodesBack()],
                         self.happened(events.NodesBack))

    def test_handful(self):
        for node in sorted(self.owned())[:5]:
            del self.cloud.nodes[node]
        self.decide()
        self.assertFalse(self.memory.vanished.is_closed)

    def test_believed_deleted_in_ten_passes(self):
        for node in sorted(self.owned())[:6]:
            self.memory.vanished.note(node, self.cloud.now)
            del self.cloud.nodes[node]
            del self.cloud.rows[node]
        gone = min(self.owned())
        del self.cloud.nodes[gone]
        self.wait(599)
        self.decide()
        self.assertTrue(self.memory.vanished.is_closed)
        self.wait(1)
        self.decide()
        self.assertFalse(self.memory.vanished.is_closed)


class StandstillTestCase(base.PassTestCase):
    """A service that stands still between its looks in one pass."""

    def _run(self, gap: float) -> None:
        gaps = [0.0]
        self.force_down('b')
        self.useFixture(fixtures.MockPatchObject(
            self.tracker.process, 'longest_gap',
            side_effect=lambda since: gaps.pop(0) if gaps else gap))
        self.run_pass()
        self.assertEqual([], gaps)

    def test_nothing_is_forced_by_what_was_seen_before(self):
        node = min(desired('me', 'a') - self.owned())
        self._run(36.0)
        self.assertIs(Decision.WAIT, self.decisions()[node])
        self.assertEqual('b', self.cloud.rows[node].owner)

    def test_heartbeat_in_time(self):
        node = min(desired('me', 'a') - self.owned())
        self._run(35.0)
        self.assertIs(Decision.TAKE_ABANDONED, self.decisions()[node])
        self.assertIs(Trust.FULL, self.memory.view.trust)
