# SPDX-License-Identifier: Apache-2.0

"""What becomes of a pass, and of what is remembered, where a port fails."""

from oslotest import base

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds


class _PassTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud(now=100.0)
        current = settings.Settings('me')
        self.before = observation.Memory(
            kept={'kept'}, handovers=observation.Handovers({'node': 'a'}),
            own_work=observation.OwnWork(is_working=True))
        self.this = one_pass.Pass(
            clouds.connect(self.cloud, current).world, current,
            self.before.copied(), self.before)

    def write(self) -> None:
        """Write to all that is changed in place, and to some of the rest."""
        memory = self.this.memory
        memory.nodes = {'node': None}
        memory.kept.add('other')
        memory.handovers.givers['other'] = 'b'
        memory.handovers.is_unanswered = True
        memory.vanished.note('other', 1)
        memory.cleaning.looked_at = 1
        memory.pooled.turn = 3


class CopyTestCase(_PassTestCase):

    def test_what_a_pass_writes_is_not_in_what_was_before(self):
        before = self.before.copied()
        self.write()
        self.assertEqual(before, self.before)
        self.assertNotEqual(before, self.this.memory)
        self.assertIs(self.before, self.this.before)


class AskingTestCase(_PassTestCase):

    def break_off(self, port: one_pass.Port) -> one_pass.UnansweredError:
        """Have a port fail after all sorts of things were written."""
        memory = self.this.memory
        with self.assertRaises(one_pass.UnansweredError) as caught, (
                self.this.asking(port)):
            self.write()
            raise ConnectionError('no answer')
        error = caught.exception
        self.assertIs(memory, error.memory)
        self.assertIsInstance(error.__cause__, ConnectionError)
        return error

    def test_ironic(self):
        expected = self.before.copied()
        expected.end_unanswered()
        found = self.break_off(one_pass.Port.IRONIC).memory
        self.assertEqual(expected, found)
        self.assertTrue(found.own_work.is_failing)

    def test_nova(self):
        # Heartbeats may have been missed.
        expected = self.before.copied()
        expected.fail(100.0)
        found = self.break_off(one_pass.Port.NOVA).memory
        self.assertEqual(expected, found)
        self.assertEqual(100.0, found.confidence.bad_at)

    def test_events_are_told_all_the_same(self):
        event = events.NodesBack()
        self.this.happened.append(event)
        self.assertEqual(
            [event], self.break_off(one_pass.Port.IRONIC).happened)

    def test_what_was_written_before_the_block_stays(self):
        self.write()
        with self.assertRaises(one_pass.UnansweredError) as caught, (
                self.this.asking(one_pass.Port.IRONIC)):
            self.this.memory.pooled.turn = 4
            raise ConnectionError('no answer')
        self.assertEqual(3, caught.exception.memory.pooled.turn)
        self.assertEqual({'kept', 'other'}, caught.exception.memory.kept)

    def test_answer(self):
        with self.this.asking(one_pass.Port.NOVA):
            self.write()
        self.assertEqual(3, self.this.memory.pooled.turn)


class GoingOnTestCase(_PassTestCase):

    def test_error_is_said_and_what_was_written_stays(self):
        error = ConnectionError('no answer')
        with self.this.going_on(events.InstanceNotTaken, 'i', 'a'):
            self.write()
            raise error
        self.assertEqual([events.InstanceNotTaken('i', 'a', error)],
                         self.this.happened)
        self.assertEqual(3, self.this.memory.pooled.turn)

    def test_no_error(self):
        with self.this.going_on(events.InstanceNotTaken, 'i', 'a'):
            self.write()
        self.assertEqual([], self.this.happened)


class TakeTestCase(_PassTestCase):

    def test_it_is_noted_and_said(self):
        taken = model.Takeover('node', 'i', 'a', None, True)
        self.this.take(taken)
        self.assertEqual([taken], self.this.taken)
        self.assertEqual([events.InstanceTaken('node', 'i', 'a', True)],
                         self.this.happened)
