# SPDX-License-Identifier: Apache-2.0

"""What becomes of a pass, and of what is remembered, where a port fails."""

from collections.abc import Callable
import dataclasses
from unittest import mock

import ddt
from oslotest import base

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds


# What takes an instance, by the place that it is to have.
_CALLS = (('node', 'set_instance_host'), ('pool', 'place_instance'))


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
        memory.pooled.rereads = 3


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
        self.before.view = self.this.memory.view = (
            view.View(trust=trust.Trust.FULL))
        expected = self.before.copied()
        expected.fail(100.0)
        found = self.break_off(one_pass.Port.NOVA).memory
        self.assertEqual(expected, found)
        self.assertIs(trust.Trust.BLACKOUT, found.view.trust)

    def test_events_are_told_all_the_same(self):
        event = events.NodesBack()
        self.this.happened.append(event)
        self.assertEqual(
            [event], self.break_off(one_pass.Port.IRONIC).happened)

    def test_what_was_written_before_the_block_stays(self):
        self.write()
        with self.assertRaises(one_pass.UnansweredError) as caught, (
                self.this.asking(one_pass.Port.IRONIC)):
            self.this.memory.pooled.rereads = 4
            raise ConnectionError('no answer')
        self.assertEqual(3, caught.exception.memory.pooled.rereads)
        self.assertEqual({'kept', 'other'}, caught.exception.memory.kept)

    def test_answer(self):
        with self.this.asking(one_pass.Port.NOVA):
            self.write()
        self.assertEqual(3, self.this.memory.pooled.rereads)


class GoingOnTestCase(_PassTestCase):

    def test_error_is_said_and_what_was_written_stays(self):
        error = ConnectionError('no answer')
        with self.this.going_on(events.InstanceNotTaken, 'i', 'a'):
            self.write()
            raise error
        self.assertEqual([events.InstanceNotTaken('i', 'a', error)],
                         self.this.happened)
        self.assertEqual(3, self.this.memory.pooled.rereads)

    def test_no_error(self):
        with self.this.going_on(events.InstanceNotTaken, 'i', 'a'):
            self.write()
        self.assertEqual([], self.this.happened)


def _nothing() -> None:
    pass


@ddt.ddt
class TakeTestCase(_PassTestCase):
    """What is taken is recovered and recorded, once, whatever is lost."""

    def setUp(self):
        super().setUp()
        nova = self.nova = self.this.world.nova
        self.write = {place: getattr(nova, call) for place, call in _CALLS}
        self.recovered: list[model.Takeover] = []
        setattr(self.this.world.process, 'took', self.recovered.append)
        self.cloud.rows['pool'] = clouds.Row('me')

    def _take(self, place: str, before: Callable[[], None] = _nothing,
              after: Callable[[], None] = _nothing) -> bool | None:
        """Take an instance.

        :param place: where it is to be: on its node, or on another
        :param before: called before the write
        :param after: called after it
        :returns: None if Nova does not answer
        """
        def write(*given):
            before()
            answer = self.write[place](*given)
            after()
            return answer
        setattr(self.nova, dict(_CALLS)[place], write)
        found = self.cloud.instances.get('i')
        taken = model.Takeover(
            place, 'i', 'a', None if found is None else found.task, True)
        try:
            return self.this.take(
                taken, None if place == 'node' else 'node', 'node')
        except ConnectionError:
            return None

    def _lose(self) -> None:
        raise ConnectionError('no answer')

    def _next(self) -> None:
        """Begin the next pass, or a look, with what is remembered."""
        self.this = one_pass.Pass(
            self.this.world, self.this.current, self.this.memory.copied())
        self.this.see_what_was_taken()

    def _assert_taken(self, *places: str) -> None:
        """See that the last pass has handed an instance on, and told of it."""
        self.assertEqual(list(places), [each.node for each in self.recovered])
        self.assertEqual(self.recovered, self.this.taken)
        self.assertEqual(
            [events.InstanceTaken('node', 'i', 'a', True) for _ in places],
            self.this.happened)
        self.recovered.clear()

    def _another(self) -> one_pass.Pass:
        """Begin what runs at the same time, with a copy of the memory."""
        return one_pass.Pass(
            self.this.world, self.this.current, self.this.memory.copied())

    def test_look_that_runs_while_it_is_written(self):
        """Nova's answer to the look tells nothing of what it did not ask."""
        self.cloud.instances['i'] = model.Instance('a', 'node', task='t')
        tried = observation.Tried(
            model.Takeover('other', 'o', 'a', None, True), 'other', 0.0)
        self.this.memory.tried['o'] = tried

        def look() -> None:
            other = self._another()
            real = self.nova.instances

            def ask(uuids):
                found = real(uuids)
                # The pass goes on, and writes the next one meanwhile.
                del self.this.memory.tried['o']
                self.this.memory.tried['i'] = mine
                return found
            mine = self.this.memory.tried.pop('i')
            self.nova.instances = ask
            other.see_what_was_taken()
            self.nova.instances = real
            self.assertEqual([], other.taken)
        self.assertTrue(self._take('node', before=look))
        self._assert_taken('node')

    def test_look_that_sees_it_first(self):
        self.cloud.instances['i'] = model.Instance('a', 'node', task='t')
        other = self._another()
        self.assertTrue(self._take('node', after=other.see_what_was_taken))
        # Both know, and one has handed it on and told of it.
        self.assertEqual(['i'], [each.instance for each in self.recovered])
        self.assertEqual(self.recovered, self.this.taken)
        self.assertEqual(self.recovered, other.taken)
        self.assertEqual(1, len(self.this.happened + other.happened))

    @ddt.data('node', 'pool')
    def test_answer(self, place):
        self.cloud.instances['i'] = model.Instance('a', 'node', task='t')
        self.assertTrue(self._take(place))
        self._assert_taken(place)
        self.assertEqual(model.Instance('me', place, task='t'),
                         self.cloud.instances['i'])
        self._next()
        self._assert_taken()

    @ddt.data('node', 'pool')
    def test_answer_is_lost(self, place):
        self.cloud.instances['i'] = model.Instance('a', 'node', task='t')
        self.assertIsNone(self._take(place, after=self._lose))
        self._assert_taken()
        # Nor can it be read again.
        with mock.patch.object(self.nova, 'instances', self._lose):
            self._next()
        self._assert_taken()
        # A user has gone on with it.
        self.cloud.instances['i'] = dataclasses.replace(
            self.cloud.instances['i'], task='deleting')
        self._next()
        self._assert_taken(place)
        self._next()
        self._assert_taken()

    def test_write_comes_late(self):
        """Conductor does it after this service has seen that it is not."""
        self.cloud.instances['i'] = model.Instance('a', 'node')
        self.assertIsNone(self._take('node', before=self._lose))
        self._next()
        self._assert_taken()
        # Just before the next try, which is then refused.
        late = {'i': model.Instance('me', 'node')}
        self.assertFalse(self._take(
            'node', lambda: self.cloud.instances.update(late)))
        self._assert_taken()
        self._next()
        self._assert_taken('node')

    def test_next_try_succeeds(self):
        self.cloud.instances['i'] = model.Instance('a', 'node')
        self._take('node', before=self._lose)
        self._next()
        self.assertTrue(self._take('node'))
        self._assert_taken('node')
        self._next()
        self._assert_taken()

    def test_it_is_noted_whatever_fails_after_it(self):
        self.cloud.instances['i'] = model.Instance('a', 'node')
        error = self.assertRaises(
            one_pass.UnansweredError, self._take_and_fail)
        self.assertEqual(['i'], [each.instance for each in self.recovered])
        self.assertEqual([events.InstanceTaken('node', 'i', 'a', True)],
                         error.happened)
        # Nor is forgotten what was only tried.
        self.recovered.clear()
        self.cloud.instances['i'] = model.Instance('a', 'node')
        self.assertRaises(
            one_pass.UnansweredError, self._take_and_fail, self._lose)
        self._next()
        self._assert_taken('node')

    def _take_and_fail(self, after: Callable[[], None] = _nothing) -> None:
        with self.this.asking():
            self._take('node', after=after)
            raise ValueError('anything')

    @ddt.data(None, model.Instance('b', 'node'), model.Instance(None, None),
              model.Instance('me', 'other'))
    def test_another_has_it(self, found):
        for before in _nothing, self._lose:
            self.cloud.instances.clear()
            if found is not None:
                self.cloud.instances['i'] = found
            self.assertFalse(self._take('node', before))
            self._next()
            self._assert_taken()
            self.assertEqual({}, self.this.memory.tried)

    def test_memory_of_it_ends(self):
        self.cloud.instances['i'] = model.Instance('a', 'node')
        self._take('node', before=self._lose)
        self._next()
        self.assertEqual({'i'}, self.this.memory.tried.keys())
        self.cloud.now += 3600
        self._next()
        self.assertEqual({}, self.this.memory.tried)
