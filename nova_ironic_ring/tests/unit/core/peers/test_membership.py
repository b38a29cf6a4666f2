# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

import ddt
from oslotest import base

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings

State = membership.State
Watch = membership.Watch
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
ME = settings.Settings('Me', down_time=60)


def _service(host: str, beat: float = 0, **fields) -> model.Service:
    """Return the record of a service with its heartbeat of some time.

    :param fields: of the record, or of what the service says
    """
    said = {name: fields.pop(name) for name in ('last_pass', 'scope')
            if name in fields}
    return model.Service(host, NOW + datetime.timedelta(seconds=beat),
                         said=model.Member(**said) if said else None, **fields)


class StateTestCase(base.BaseTestCase):

    def test_who_lives_to_give(self):
        self.assertEqual({State.MEMBER, State.DISABLED, State.NOT_A_PEER},
                         {state for state in State if state.gives})

    def test_who_lives(self):
        self.assertEqual({State.NOT_WORKING}, {
            state for state in State if state.lives and not state.gives})

    def test_of_whom_nothing_is_to_be_expected(self):
        self.assertEqual({State.ABSENT, State.FORCED_DOWN, State.GONE},
                         {state for state in State if state.is_lost})


@ddt.ddt
class LateTestCase(base.BaseTestCase):
    """Who is late, by the wall clock, as in Nova's API."""

    @ddt.data((-60, False), (-60.5, True),
              # Nova's own rule is as strict in this direction.
              (60, False), (60.5, True))
    @ddt.unpack
    def test_heartbeat(self, beat, expected):
        self.assertIs(expected, membership.is_late(
            _service('a', beat), NOW, 60))

    @ddt.data((True, False), (False, True))
    @ddt.unpack
    def test_heartbeats_elsewhere(self, alive, expected):
        for beat in -999, 0:
            self.assertIs(expected, membership.is_late(
                _service('a', beat, alive=alive), NOW, 60))


class WatchTestCase(base.BaseTestCase):
    """Who is absent, by what this process has watched."""

    def setUp(self):
        super().setUp()
        self.watch = Watch()

    def _is_absent(self, at: float, beat: float, **fields) -> bool:
        """Look at a service, and say whether it is absent."""
        service = _service('A', beat, **fields)
        self.watch = self.watch.look([service], at)
        return self.watch.is_absent(service, 60)

    def test_heartbeat_that_stands_still_for_the_down_time(self):
        self.assertFalse(self._is_absent(0, 0))
        self.assertFalse(self._is_absent(10, 10))
        self.assertFalse(self._is_absent(69.5, 10))
        self.assertTrue(self._is_absent(70, 10))
        self.assertEqual(60, self.watch.silence('a'))

    def test_heartbeat_that_is_read_long_after_the_look(self):
        self.watch = self.watch.look([_service('a', 0)], 0)
        for beat in 30, 90, 150:
            # It moves until the listing of Ironic's nodes has ended.
            self.watch = self.watch.look([_service('a', beat - 30)], beat - 30)
            self.watch = self.watch.look(
                [_service('a', beat)], beat - 30, beat)
            self.assertEqual(beat - 30, self.watch.at)
        self.assertFalse(self._is_absent(209, 150))
        self.assertEqual(59, self.watch.silence('a'))
        self.assertTrue(self._is_absent(210, 150))

    def test_heartbeat_that_goes_on(self):
        for at in range(0, 600, 50):
            self.assertFalse(self._is_absent(at, at))

    def test_back_again(self):
        self._is_absent(0, 0)
        self._is_absent(10, 10)
        self.assertTrue(self._is_absent(70, 10))
        self.assertFalse(self._is_absent(71, 71))
        self.assertEqual(0, self.watch.silence('a'))

    def test_twice_as_long_where_it_was_not_heard_since_the_start(self):
        self.assertFalse(self._is_absent(5, 0))
        self.assertFalse(self._is_absent(124.5, 0))
        self.assertTrue(self._is_absent(125, 0))

    def test_twice_as_long_where_it_was_not_heard_since_an_outage(self):
        self._is_absent(0, 0)
        self._is_absent(10, 10)
        self.watch = self.watch.restarted(40)
        self.assertEqual(0, self.watch.silence('a'))
        self.assertFalse(self._is_absent(159.5, 10))
        self.assertTrue(self._is_absent(160, 10))

    def test_once_as_long_where_it_was_heard_since_an_outage(self):
        self._is_absent(0, 0)
        self.watch = self.watch.restarted(40)
        self.assertFalse(self._is_absent(50, 50))
        self.assertFalse(self._is_absent(109.5, 50))
        self.assertTrue(self._is_absent(110, 50))

    def test_wall_clocks_do_not_matter(self):
        # Of conductor: far behind, set back, and years ahead.
        for at, beat in ((0, -9999), (10, -9990), (20, -99999), (30, 9e8)):
            self.assertFalse(self._is_absent(at, beat))
        self.assertFalse(self._is_absent(89.5, 9e8))
        self.assertTrue(self._is_absent(90, 9e8))

    def test_one_that_was_never_looked_at(self):
        self.assertFalse(Watch(1000).is_absent(_service('a', -1000), 60))
        self.assertEqual(0, Watch(1000).silence('a'))

    def test_one_that_nova_has_no_longer_is_forgotten(self):
        self._is_absent(0, 0)
        self._is_absent(10, 10)
        self.watch = self.watch.look([_service('b', 100)], 100)
        self.assertFalse(self._is_absent(100, 10))
        self.assertEqual(0, self.watch.silence('a'))

    def test_heartbeats_elsewhere(self):
        self.assertFalse(self._is_absent(0, 0, alive=True))
        self.assertFalse(self._is_absent(500, 0, alive=True))
        self.assertFalse(self._is_absent(559.5, 0, alive=False))
        self.assertTrue(self._is_absent(560, 0, alive=False))
        self.assertFalse(self._is_absent(561, 0, alive=True))

    def test_heartbeats_elsewhere_that_nobody_has_heard(self):
        self.assertFalse(self._is_absent(0, 0, alive=False))
        self.assertFalse(self._is_absent(119.5, 0, alive=False))
        self.assertTrue(self._is_absent(120, 0, alive=False))

    def test_a_watch_is_a_value(self):
        before = self.watch.look([_service('a')], 0)
        before.look([_service('a', 1)], 50)
        before.restarted(50)
        self.assertEqual(Watch().look([_service('a')], 0), before)


@ddt.ddt
class OneLookTestCase(base.BaseTestCase):
    """The watch of who cannot wait."""

    @ddt.data((-59, False, 0), (-61, True, 61), (61, True, 61))
    @ddt.unpack
    def test_late_is_absent(self, beat, is_absent, silence):
        service = _service('a', beat)
        watch = Watch.of_one_look([service], NOW, 60)
        self.assertIs(is_absent, watch.is_absent(service, 60))
        self.assertEqual(silence, watch.silence('a'))

    def test_heartbeats_elsewhere(self):
        for alive, silence in ((True, 0), (False, 60)):
            service = _service('a', alive=alive)
            watch = Watch.of_one_look([service], NOW, 60)
            self.assertIs(not alive, watch.is_absent(service, 60))
            self.assertEqual(silence, watch.silence('a'))

    def test_it_goes_on_like_any_other(self):
        services = [_service('a', -61), _service('b')]
        watch = Watch.of_one_look(services, NOW, 60)
        later = [_service('a', 5), _service('b')]
        watch = watch.look(later, 60)
        self.assertFalse(watch.is_absent(later[0], 60))
        self.assertTrue(watch.is_absent(later[1], 60))


@ddt.ddt
class RuleTestCase(base.BaseTestCase):
    """What a service is, in the order in which it is asked."""

    PEERS = frozenset({'me', 'a'})

    @ddt.data(
        # host, peers, silence, fields, expected
        ('a', None, 0, {}, State.MEMBER),
        ('A', PEERS, 0, {}, State.MEMBER),
        ('a', None, 60, {}, State.ABSENT),
        ('a', None, 0, {'disabled': True}, State.DISABLED),
        ('a', None, 60, {'disabled': True}, State.ABSENT),
        ('a', None, 0, {'forced_down': True}, State.FORCED_DOWN),
        ('a', None, 60, {'forced_down': True}, State.FORCED_DOWN),
        ('a', None, 0, {'forced_down': True, 'disabled': True},
         State.FORCED_DOWN),
        # A stranger is one only while it lives.
        ('b', PEERS, 0, {}, State.NOT_A_PEER),
        ('b', PEERS, 0, {'disabled': True}, State.NOT_A_PEER),
        ('b', PEERS, 60, {}, State.ABSENT),
        ('b', PEERS, 60, {'disabled': True}, State.ABSENT),
        ('b', PEERS, 0, {'forced_down': True}, State.FORCED_DOWN),
        # This one runs this very code, whatever its heartbeat says.
        ('me', None, 999, {}, State.MEMBER),
        ('ME', None, 999, {'disabled': True}, State.DISABLED),
        ('me', None, 0, {'forced_down': True}, State.FORCED_DOWN))
    @ddt.unpack
    def test_state(self, host, peers, silence, fields, expected):
        service = _service(host, **fields)
        watch = Watch().look([_service(host, -1)], -1).look(
            [service], 0).look([service], silence)
        self.assertIs(expected, membership.state(
            service, dataclasses.replace(ME, peers=peers), watch))


@ddt.ddt
class ScopeTestCase(base.BaseTestCase):
    """What a service is that says which nodes it divides."""

    MINE = settings.Scope('Rack1')

    def _state(self, current: settings.Settings, silence: float = 0,
               **fields) -> State:
        service = _service('a', **fields)
        watch = Watch().look([_service('a', -1)], -1).look(
            [service], 0).look([service], silence)
        return membership.state(service, current, watch)

    @ddt.data(
        # this one's scope, what the other says, state
        (MINE, settings.Scope('rack1'), State.MEMBER),
        (MINE, settings.Scope('rack2'), State.OTHER_SCOPE),
        (MINE, settings.Scope(), State.OTHER_SCOPE),
        (MINE, None, State.OTHER_SCOPE),
        (MINE, settings.Scope('rack1', 'one'), State.NARROWER_SCOPE),
        (settings.Scope(), settings.Scope('rack2'), State.NARROWER_SCOPE),
        (settings.Scope(), settings.Scope(), State.MEMBER),
        (settings.Scope(), None, State.MEMBER),
        (settings.Scope(None, 'one'), MINE, State.OTHER_SCOPE))
    @ddt.unpack
    def test_while_it_lives(self, scope, said, expected):
        current = dataclasses.replace(ME, scope=scope)
        self.assertIs(expected, self._state(current, scope=said))

    def test_another_driver(self):
        for silence, expected in (0, State.OTHER_SCOPE), (60, State.ABSENT):
            self.assertIs(expected, self._state(
                ME, silence, is_ironic=False))

    def test_while_it_does_not(self):
        for said, scope, expected in (
                (self.MINE, self.MINE, State.ABSENT),
                (settings.Scope('rack2'), self.MINE, State.ABSENT),
                (self.MINE, settings.Scope(), State.ABSENT)):
            self.assertIs(expected, self._state(
                dataclasses.replace(ME, scope=scope), 60, scope=said))

    def test_narrower_one_that_is_disabled(self):
        for scope, expected in ((settings.Scope(), State.OTHER_SCOPE),
                                (settings.Scope('rack2'), State.OTHER_SCOPE),
                                (self.MINE, State.DISABLED)):
            self.assertIs(expected, self._state(
                dataclasses.replace(ME, scope=scope),
                disabled=True, scope=self.MINE))

    def test_narrower_scopes(self):
        shard = settings.Scope(None, 'one')
        services = [
            _service(host, scope=scope)
            for host, scope in (
                ('a', settings.Scope('rack1', 'one')), ('b', self.MINE),
                ('c', settings.Scope('RACK1')), ('d', shard), ('e', None),
                ('f', settings.Scope('rack2')))]
        services[-1] = dataclasses.replace(services[-1], forced_down=True)
        self.assertEqual({
            settings.Scope('rack1', 'one'), self.MINE,
            settings.Scope('RACK1'), shard}, view.assess(
            services, ME, Watch().look(services, 0)).narrower)

    def test_this_one_has_its_settings(self):
        # A row of its own may name the scope that it had before.
        me = _service('me', scope=settings.Scope('rack2'))
        self.assertIs(State.MEMBER, membership.state(
            me, dataclasses.replace(ME, scope=self.MINE), Watch()))

    def test_list_decides_and_may_differ(self):
        current = dataclasses.replace(
            ME, scope=self.MINE, peers=frozenset({'me', 'a', 'b', 'c', 'g'}))
        said = {'a': self.MINE, 'b': settings.Scope('rack2'), 'c': None,
                'd': settings.Scope('RACK1'), 'e': settings.Scope('rack2'),
                'f': self.MINE}
        services = [_service(host, scope=scope,
                             forced_down=host == 'f')
                    for host, scope in said.items()]
        found = view.assess(services, current, Watch())
        self.assertEqual({'me', 'a', 'b', 'c'}, found.members)
        self.assertIs(State.NOT_A_PEER, found.state('d'))
        # One that is not in the list divides what it says.
        self.assertIs(State.OTHER_SCOPE, found.state('e'))
        self.assertEqual({'d'}, found.unlisted)
        self.assertEqual({'b'}, found.elsewhere)
        # Of those that are disabled, nobody says so.
        found = view.assess([
            dataclasses.replace(each, disabled=True) for each in services],
            current, Watch())
        self.assertEqual(frozenset(), found.unlisted | found.elsewhere)

        found = view.assess(
            services, dataclasses.replace(current, peers=None), Watch())
        self.assertEqual({'me', 'a', 'd'}, found.members)
        self.assertEqual(frozenset(), found.unlisted | found.elsewhere)


class AssessTestCase(base.BaseTestCase):

    def _assess(self, *services: model.Service) -> view.View:
        """Assess services of which only those stay that are said to live."""
        return view.assess(
            services, ME, Watch().look(services, 0).look(services, 120))

    def test_only_the_living(self):
        found = self._assess(
            _service('a', alive=True), _service('c'),
            _service('d', alive=True, forced_down=True),
            _service('e', alive=True, disabled=True))
        self.assertEqual({'me', 'a'}, found.members)
        self.assertEqual(
            {'me': State.MEMBER, 'a': State.MEMBER, 'c': State.ABSENT,
             'd': State.FORCED_DOWN, 'e': State.DISABLED}, found.states)
        self.assertEqual(120, found.silences['c'])

    def test_newcomer_without_a_record(self):
        self.assertEqual({'me'}, self._assess().members)

    def test_disabled_service_is_no_member_for_itself(self):
        self.assertEqual({'a'}, self._assess(
            _service('a', alive=True), _service('me', disabled=True)).members)

    def test_case_does_not_matter(self):
        self.assertEqual({'me', 'other'}, self._assess(
            _service('ME'), _service('Other', alive=True)).members)

    def test_one_that_nova_has_no_record_of(self):
        self.assertIs(State.GONE, self._assess().state('nowhere'))

    def test_view_that_is_corrected(self):
        before = self._assess(
            _service('me'), _service('a'), _service('b'),
            _service('c', alive=True), _service('d', alive=True),
            _service('f', forced_down=True))
        found = before.corrected(self._assess(
            _service('me', disabled=True), _service('a', alive=True),
            _service('c'), _service('e', alive=True), _service('f')))
        # Nobody joins or leaves the ring by it.
        self.assertEqual(before.ring, found.ring)
        self.assertIs(State.MEMBER, found.state('me'))
        # Who is back is lost no more, and who is new is not.
        self.assertIs(State.MEMBER, found.state('a'))
        self.assertEqual(0, found.silences['a'])
        self.assertIs(State.MEMBER, found.state('E'))
        # Nobody is forced down any more when an operator says so.
        self.assertIs(State.ABSENT, found.state('f'))
        # Who is lost since then is so with the next look.
        self.assertIs(State.ABSENT, found.state('b'))
        self.assertIs(State.MEMBER, found.state('c'))
        self.assertIs(State.MEMBER, found.state('d'))

    def test_peers(self):
        found = self._assess(
            _service('a'), _service('b', disabled=True),
            _service('c', disabled=True, alive=True),
            _service('d', is_ironic=False, alive=True),
            _service('e', is_ironic=False))
        self.assertEqual(
            {'me': State.MEMBER, 'a': State.ABSENT, 'c': State.DISABLED},
            found.peers)

    def test_alone(self):
        self.assertTrue(self._assess(_service('Me')).is_alone('me'))
        self.assertFalse(self._assess().is_alone('me'))
        self.assertFalse(self._assess(
            _service('me'), _service('a', is_ironic=False)).is_alone('me'))


@ddt.ddt
class DeadTestCase(base.BaseTestCase):
    """Whose instances may be taken over."""

    @ddt.data(
        (State.FORCED_DOWN, 0, 0, True),
        (State.FORCED_DOWN, 0, 300, True),
        (State.GONE, 0, 0, True),
        (State.ABSENT, 9999, 0, False),
        (State.ABSENT, 299, 300, False),
        (State.ABSENT, 300, 300, True),
        (State.MEMBER, 999, 300, False),
        (State.DISABLED, 999, 300, False),
        (State.NOT_A_PEER, 999, 300, False))
    @ddt.unpack
    def test_dead(self, state, silence, failover_after, expected):
        known = view.View(states={'a': state}, silences={'a': silence})
        self.assertIs(expected, known.is_dead('A', failover_after))

    def test_unknown(self):
        self.assertTrue(view.View().is_dead('a', 0))
        self.assertTrue(view.View().is_lost('a'))

    @ddt.data(*State)
    def test_lost(self, state):
        self.assertIs(state.is_lost, view.View(
            states={'a': state}).is_lost('A'))


class OutageTestCase(base.BaseTestCase):
    """Heartbeats may have been lost: for how long nothing was heard."""

    CURRENT = settings.Settings('me', 60)

    def setUp(self):
        super().setUp()
        watch = Watch()
        # b and c have been heard by this process, and c just now.
        for at, beats in (0, 'abcd'), (10, 'abc'), (500, 'c'):
            self.services = [
                _service(host, at if host in beats else 0 if host == 'd'
                         else 10) for host in ('me', *'abcd')]
            watch = watch.look(self.services, at)
        self.watch = watch.after_outage(500, set('bcd'), self.CURRENT)

    def test_silences(self):
        for host, silence in (('a', 0), ('b', 60), ('c', 0), ('d', 120),
                              ('me', 500)):
            with self.subTest(host=host):
                self.assertEqual(silence, self.watch.silence(host))

    def test_who_is_absent(self):
        watch = self.watch.look(self.services, 560)
        self.assertEqual({'b', 'd'}, {
            host for host in 'abcd'
            if watch.is_absent(_service(host, 0), 60)})


class WorkTestCase(base.BaseTestCase):
    """Whose passes have failed for long, by what this process has watched."""

    CURRENT = dataclasses.replace(ME, pass_interval=10, handover_timeout=0)

    def setUp(self):
        super().setUp()
        self.watch = Watch()
        self.work = membership.WorkWatch()

    def _look(self, at: float, last: float | None, beat: float | None = None,
              is_pass: bool = True, **fields) -> State:
        """Look at a service, and say what it is.

        :param at: when it is looked
        :param last: when its last good pass was; None if it does not say so
        :param beat: when its last heartbeat was; None for just now
        :param is_pass: whether a pass of this service begins with it
        """
        service = _service('a', at if beat is None else beat, **{
            'last_pass': model.LastPass(10, None if last is None else (
                NOW + datetime.timedelta(seconds=last)))} | fields)
        self.watch = self.watch.look([service], at)
        if is_pass:
            self.work = self.work.timed(at, self.CURRENT)
        self.work = self.work.look([service], self.watch, self.CURRENT)
        return membership.state(service, self.CURRENT, self.watch, self.work)

    def _states(self, *looks: tuple) -> list[State]:
        return [self._look(*each) for each in looks]

    def test_after_four_passes(self):
        self.assertEqual(
            5 * [State.MEMBER] + [State.NOT_WORKING, State.MEMBER],
            self._states((0, 0), (10, 10), (20, 10), (30, 10), (40, 10),
                         (50, 10), (60, 60)))

    def test_twice_as_long_after_the_start(self):
        looks = [(at, 0) for at in range(0, 90, 10)]
        self.assertEqual(8 * [State.MEMBER] + [State.NOT_WORKING],
                         self._states(*looks))

    def test_service_that_says_when_nowhere(self):
        looks = [(at, None) for at in range(0, 90, 10)]
        self.assertEqual(State.NOT_WORKING, self._states(*looks)[-1])

    def test_row_that_said_so_and_is_another_services_now(self):
        looks = [(at, 0 if at < 40 else None) for at in range(0, 90, 10)]
        self.assertEqual(8 * [State.MEMBER] + [State.NOT_WORKING],
                         self._states(*looks))
        self.assertEqual(State.MEMBER, self._look(100, 95))

    def test_service_that_says_nothing(self):
        for at in range(0, 900, 10):
            self.assertEqual(State.MEMBER, self._look(
                at, None, last_pass=None))

    def test_record_that_is_made_again(self):
        """The passes failed, and one without a record has begun none."""
        self._states((0, 0), (10, 10), (20, 10), (50, 10), (60, 10))
        self.assertEqual(State.MEMBER, self._look(70, None, last_pass=None))
        self.assertEqual(State.NOT_WORKING, self._look(80, None))
        # But not for ever.
        for at in 90, 100:
            self._look(at, None, last_pass=None)
        self.assertEqual(State.MEMBER, self._look(110, None))

    def test_clock_that_steps(self):
        for at in range(0, 900, 10):
            self.assertEqual(State.MEMBER, self._look(at, -at))

    def test_long_passes_of_the_other(self):
        said = model.LastPass(100, NOW)
        self.assertEqual(11 * [State.MEMBER], [
            self._look(at, 0, last_pass=said) for at in range(0, 110, 10)])

    def test_long_pass_of_this_one(self):
        self._states((0, 0), (10, 10))
        # This one stood still, and so may have the other.
        self.assertEqual(4 * [State.MEMBER], self._states(
            (410, 10), (420, 10), (430, 10), (440, 10)))
        # What of it is remembered fades.
        self.assertEqual(400 * 0.75 ** 3, self.work.cycle)

    def test_while_a_pass_of_this_one_takes_long(self):
        self._states((0, 0), (10, 10))
        # What it waits for, theirs may wait for as well.
        self.assertEqual({State.MEMBER}, {
            self._look(at, 10, is_pass=False) for at in range(11, 1000, 10)})
        self.assertEqual(10, self.work.cycle)

    def test_looks_between_two_passes(self):
        found = [self._look(at, min(at, 10), is_pass=not at % 10)
                 for at in range(0, 60, 2)]
        self.assertEqual(25 * [State.MEMBER] + 5 * [State.NOT_WORKING], found)
        self.assertIs(State.MEMBER, self._look(61, 60, is_pass=False))

    def test_handover_timeout(self):
        self.CURRENT = dataclasses.replace(
            self.CURRENT, handover_timeout=100)
        self._states((0, 0), (10, 10))
        self.assertEqual(
            8 * [State.MEMBER] + [State.NOT_WORKING], self._states(
                *((at, 10) for at in range(30, 120, 10))))

    def test_service_that_comes_back(self):
        self._states((0, 0), (10, 10))
        self.assertEqual(
            [*19 * [State.ABSENT], State.MEMBER, State.MEMBER], self._states(
                *((at, 10, 10) for at in range(110, 300, 10)), (300, 10),
                (310, 10)))
        self.assertEqual(State.NOT_WORKING, self._states(
            *((at, 10) for at in range(320, 600, 10)))[-1])

    def test_own_passes_fail(self):
        self._states((0, 0), (10, 10), (40, 10))
        self.work = self.work.restarted(())
        looks = [(at, 10) for at in range(50, 300, 10)]
        self.assertEqual(7 * [State.MEMBER], self._states(*looks[:7]))
        self.assertEqual(State.NOT_WORKING, self._states(*looks[7:])[-1])
        # What was known before stays known.
        self.work = self.work.restarted({'a'})
        self.assertEqual(State.NOT_WORKING, self._look(300, 10))

    def test_stranger_of_a_narrower_scope(self):
        scope = settings.Scope('rack1', 'shard')
        current = dataclasses.replace(
            ME, scope=settings.Scope('rack1'), peers=frozenset({'me'}))
        for fields, expected in (({}, State.NARROWER_SCOPE),
                                 ({'disabled': True}, State.OTHER_SCOPE)):
            self.assertIs(expected, membership.state(_service(
                'a', scope=scope, **fields), current, Watch()))

    def test_narrower_scope_and_stranger(self):
        scope = settings.Scope('rack1')
        for current, fields, expected in (
                ({}, {'scope': scope},
                 State.NARROWER_SCOPE),
                ({'peers': frozenset({'me'})}, {}, State.NOT_A_PEER)):
            self.watch, self.work = Watch(), membership.WorkWatch()
            self.CURRENT = dataclasses.replace(self.CURRENT, **current)
            for at in range(0, 60, 10):
                self.assertIs(
                    expected if at < 50 else State.NOT_WORKING,
                    self._look(at, min(at, 10), **fields))

    def test_disabled_and_down(self):
        self._states((0, 0), (10, 10))
        for at in range(20, 200, 10):
            self.assertEqual(
                State.DISABLED if at < 50 else State.NOT_WORKING,
                self._look(at, 10, disabled=True))
            self.assertEqual(
                State.FORCED_DOWN, self._look(at, 10, forced_down=True))

    def test_of_itself(self):
        service = _service('me', 0, last_pass=model.LastPass(10, None))
        for at in range(0, 900, 10):
            self.watch = self.watch.look([service], at)
            self.work = self.work.look([service], self.watch, self.CURRENT)
        self.assertEqual(State.MEMBER, membership.state(
            service, self.CURRENT, self.watch, self.work))

    def test_one_look(self):
        for seconds, expected in (39, State.MEMBER), (41, State.NOT_WORKING):
            service = _service('a', 0, last_pass=model.LastPass(
                10, NOW - datetime.timedelta(seconds=seconds)))
            self.assertEqual(expected, membership.state(
                service, self.CURRENT, self.watch,
                membership.WorkWatch.of_one_look([service], NOW)))

    def test_one_look_at_a_time_to_come(self):
        # The service's clock was ahead, and what it says never goes back.
        service = _service('a', 0, last_pass=model.LastPass(
            10, NOW + datetime.timedelta(days=1)))
        self.assertEqual(State.MEMBER, membership.state(
            service, self.CURRENT, self.watch,
            membership.WorkWatch.of_one_look([service], NOW)))

    def test_one_look_at_a_service_that_says_when_nowhere(self):
        service = _service('a', 0, last_pass=model.LastPass(10))
        self.assertEqual(State.MEMBER, membership.state(
            service, self.CURRENT, self.watch,
            membership.WorkWatch.of_one_look([service], NOW)))

    def test_it_keeps_what_it_has(self):
        found = view.View(states={'a': State.NOT_WORKING})
        self.assertFalse(found.is_lost('a'))
        self.assertFalse(found.is_dead('a', 1))
        self.assertEqual({'a'}, found.with_state(State.NOT_WORKING))
