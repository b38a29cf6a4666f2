# SPDX-License-Identifier: Apache-2.0

"""What services write into the statistics of their rows."""

import datetime
import json
from typing import Any

from oslotest import base

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.core.values import settings


class ProfileTestCase(base.BaseTestCase):

    def test_failures(self):
        at = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
        known = {f'n{number}': failures.Failure(
            number + 1, at + datetime.timedelta(seconds=number))
            for number in range(25)}
        said = stats.say_failures('Host A', known)
        # What a row has room for is bounded: the last ones.
        self.assertEqual(
            {node: known[node] for node in list(known)[5:]},
            stats.read_failures(said, 'host a'))
        # Rather than successes.
        good = {'good': failures.Failure(0, at + datetime.timedelta(hours=1))}
        self.assertEqual(said, stats.say_failures('Host A', known | good))
        self.assertEqual(good, stats.read_failures(
            stats.say_failures('a', good), 'a'))
        self.assertEqual({}, stats.read_failures(said, 'b'))
        self.assertEqual({}, stats.say_failures('a', {}))
        (key,) = said
        for broken in ('no', '[]', '{}', '{"from": "a", "nodes": 1}',
                       '{"from": "a", "nodes": {"n": [1]}}',
                       '{"from": "a", "nodes": {"n": [Infinity, ""]}}',
                       '{"from": "a", "nodes": {"n": ["x", "y"]}}',
                       '{"from": "a", "nodes": {"n": [1, 2]}}'):
            self.assertEqual({}, stats.read_failures({key: broken}, 'a'))
        self.assertEqual({}, stats.read_failures(None, 'a'))

    def test_values(self):
        said = profile.of(settings.Settings(
            'me', scope=settings.Scope('rack'), peers=frozenset({'b', 'a'}),
            follows=True))
        self.assertEqual(('a', 'b'), said.names)
        self.assertEqual(profile.fingerprint('b', 'a'), said.peers)
        self.assertEqual('follow', said.mobility)
        self.assertEqual('pinned', profile.of(settings.Settings(
            'me', fails_over=False)).mobility)

    def test_very_many_peers(self):
        said = profile.of(settings.Settings(
            'me', scope=settings.Scope('rack'),
            peers=frozenset(map(str, range(51)))))
        self.assertEqual((), said.names)
        self.assertEqual(12, len(said.peers or ''))


class MemberTestCase(base.BaseTestCase):
    """What a service says in its member record."""

    AT = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    #: It says nothing that can be read.
    NOTHING = model.Member()
    HELD = frozenset(map(shards.code, ['x', 'y', 'z' * 255]))

    def _say(self, host: str = 'Host A', last_pass: model.LastPass = (
            model.LastPass(60)), held: frozenset[str] | None = None,
            ring: str | None = None, **changes: Any) -> dict[str, str]:
        return stats.say_member(ports.Saying(
            settings.Settings(host, **changes), last_pass, held, ring))

    def _changed(self, **changes: object) -> dict[str, str]:
        """Return what another release, or somebody else, may write."""
        ((key, said),) = self._say('a', model.LastPass(
            60, self.AT), self.HELD, 'r', scope=settings.Scope('rack')).items()
        return {key: json.dumps(json.loads(said) | changes)}

    def _profile(self, **changes: object) -> dict[str, str]:
        ((_, said),) = self._say('a').items()
        return self._changed(profile=json.loads(said)['profile'] | changes)

    def test_passes_can_be_read(self):
        for said in model.LastPass(60), model.LastPass(60, self.AT):
            self.assertEqual(said, stats.read_member(
                self._say(last_pass=said), 'host a').last_pass)

    def test_what_is_held_can_be_read(self):
        self.assertEqual(self.HELD, stats.read_member(
            self._say('A', held=self.HELD), 'a ').held)
        for held in None, frozenset():
            self.assertEqual(frozenset(), stats.read_member(
                self._say('A', held=held), 'a').held)

    def test_ring_can_be_read(self):
        for ring in None, '0a1b':
            self.assertEqual(ring, stats.read_member(
                self._say('A', ring=ring), 'a').ring)

    def test_whether_instances_follow_can_be_read(self):
        for follows in True, False:
            self.assertIs(follows, stats.read_member(
                self._say('A', follows=follows), 'a').follows)

    def test_who_differs_can_be_read(self):
        for count, most in (0, 0), (2, 2), (30, 20):
            hosts = [f'b{number:02}' for number in range(count)]
            said = stats.say_member(ports.Saying(
                settings.Settings('A'), model.LastPass(60),
                differ=frozenset(hosts)))
            self.assertEqual(set(hosts[:most]),
                             stats.read_member(said, 'a').differ)

    def test_scope_can_be_read(self):
        for changes in ({'scope': settings.Scope('')},
                        {'scope': settings.Scope(shard='x')},
                        {'scope': settings.Scope('rack'), 'by_shards': True}):
            said = stats.read_member(self._say('A', **changes), 'a')
            self.assertEqual(
                (changes['scope'], changes.get('by_shards', False)),
                (said.scope, said.by_shards))

    def test_profile_can_be_read(self):
        for changes in ({}, {'scope': settings.Scope(''),
                             'peers': frozenset('ab')},
                        {'scope': settings.Scope(shard='x')},
                        {'follows': True}, {'fails_over': False},
                        {'kind_rule': kinds.Rule(
                            frozenset({'raid', 'boot'}), frozenset()),
                         'pools_limit': 7}):
            found = stats.read_profile(self._say('Me', **changes), 'me')
            self.assertEqual(
                profile.of(settings.Settings('me', **changes)), found)
            self.assertEqual(changes.get('kind_rule', kinds.Rule()),
                             found.kind_rule)

    def test_what_another_has_written(self):
        said = self._say('b', model.LastPass(60, self.AT), self.HELD, 'r')
        self.assertEqual(self.NOTHING, stats.read_member(said, 'a'))
        self.assertIsNone(stats.read_profile(said, 'a'))
        self.assertNotEqual(self.NOTHING, stats.read_member(said, 'B'))

    def test_what_cannot_be_read(self):
        (key,) = self._say()
        for found in (None, {}, *(
                {key: each} for each in (
                    None, '', 'x', '7', '[]', 'null', '{}', '{"from": "a"}',
                    '"from"', '{"from": ["a"]}', '[' * 60000,
                    '{"from": "a", "profile": ' + '[' * 60000,
                    '{"from": "a", "profile": {}}',
                    f'{{"from": "a", "protocol": {profile.PROTOCOL}}}')),
                self._changed(protocol=None), self._changed(protocol='x'),
                self._changed(protocol=float('inf')),
                self._changed(protocol=float('nan')),
                self._changed(profile=None), self._changed(profile=[]),
                self._changed(profile='x'), self._profile(names=7),
                self._profile(capabilities=7), self._profile(traits=True),
                self._profile(pools_limit=float('inf')),
                self._profile(pools_limit={}),
                # Other services compare these, and look them up.
                self._profile(conductor_group=7), self._profile(shard=['x']),
                self._profile(conductor_group={'a': {}})):
            self.assertEqual(self.NOTHING, stats.read_member(found, 'a'))
            self.assertIsNone(stats.read_profile(found, 'a'))

    def test_scope_of_a_service_whose_passes_cannot_be_read(self):
        for changes in (
                {'cycle': 'x'}, {'cycle': None}, {'cycle': [60]},
                {'cycle': 10 ** 400}, {'cycle': float('inf')},
                {'cycle': float('nan')}, {'cycle': -1}, {'at': 'x'},
                {'at': 7}, {'at': ['x']}):
            found = stats.read_member(self._changed(**changes), 'a')
            self.assertIsNone(found.last_pass, changes)
            self.assertEqual(settings.Scope('rack'), found.scope)

    def test_large_and_nested_values(self):
        for value in ('x' * 60000, 10 ** 4000, {'a': [{}] * 1000},
                      [[[[]]]] * 1000, -1, 0.5, True, ''):
            for name in 'cycle', 'at', 'held', 'ring', 'differ', 'more':
                found = stats.read_member(self._changed(**{name: value}), 'a')
                self.assertEqual(settings.Scope('rack'), found.scope)
                # Whoever knows it looks it up among the others.
                hash(found)


class CleanedTestCase(base.BaseTestCase):

    def test_what_others_say_in_our_name_is_not_kept(self):
        said = {'cpu_arch': 'x86_64', **stats.make('a', 'x', 7),
                ' Ironic_Ring:made': 'b', 'ironic_ring_from': 'a'}
        self.assertEqual({'cpu_arch': 'x86_64'}, stats.cleaned(said))


class CountTestCase(base.BaseTestCase):

    def test_what_is_said(self):
        at = datetime.datetime(2026, 1, 31, tzinfo=datetime.timezone.utc)
        for said in model.Counted(12, 30), model.Counted(12, 30, 'x', 4, at):
            self.assertEqual(said, stats.read_count(
                stats.count('Host A', said), 'host a'))

    def test_what_an_earlier_release_has_said(self):
        self.assertEqual(model.Counted(1, 7, 'x'), stats.read_count(
            {'ironic_ring:nodes': '{"from": "a", "nodes": 1, "listed": 7, '
                                  '"asked": "x"}'}, 'a'))

    def test_what_another_has_said(self):
        self.assertIsNone(stats.read_count(
            stats.count('b', model.Counted(12, 30)), 'a'))

    def test_what_cannot_be_read(self):
        for said in ('x', '7', '{"from": "a"}',
                     '{"from": "a", "nodes": 1}',
                     '{"from": "a", "nodes": "x", "listed": 7}',
                     '{"from": "a", "nodes": 1, "listed": 7, "asked": "x",'
                     ' "gone_at": "yesterday"}'):
            self.assertIsNone(stats.read_count(
                {'ironic_ring:nodes': said}, 'a'), said)
        self.assertIsNone(stats.read_count(None, 'a'))

    def test_what_a_row_was_made_of(self):
        said = stats.make('A', 'x', 7.5)
        self.assertEqual(('x', 7), stats.read_made(said, 'a'))
        self.assertEqual((None, None), stats.read_made(said, 'b'))
        (key,) = said
        for at in ('Infinity', 'NaN', 'null', '"x"', '{}'):
            self.assertEqual((None, None), stats.read_made(
                {key: f'{{"from": "a", "of": "x", "at": {at}}}'}, 'a'))


class OtherVersionTestCase(base.BaseTestCase):
    """What a service with another version of the protocol writes."""

    def _read(self, protocol: int, **changes: object) -> model.Member:
        ((key, said),) = stats.say_member(ports.Saying(
            settings.Settings('a', scope=settings.Scope('rack')),
            model.LastPass(61), frozenset(), '0a1b')).items()
        return stats.read_member({key: json.dumps(
            json.loads(said) | {'protocol': protocol} | changes)}, 'a')

    def test_it_acknowledges_no_ring(self):
        self.assertEqual('0a1b', self._read(profile.PROTOCOL).ring)
        for protocol in 3, -1, profile.PROTOCOL + 1:
            found = self._read(protocol)
            self.assertIsNone(found.ring)
            # It is none with Nova's own driver, that is only waited for.
            self.assertIsNotNone(found.scope)

    def test_scope_can_be_read(self):
        found = self._read(7, more='to come', profile={
            'conductor_group': 'row', 'shard': 'x', 'more': 'to come'})
        self.assertEqual(settings.Scope('row', 'x'), found.scope)
        self.assertEqual(61, found.last_pass.cycle)

    def test_profile_can_be_read(self):
        said = stats.read_profile({'ironic_ring:member': json.dumps(
            {'from': 'a', 'protocol': 7, 'more': 'to come',
             'profile': {'conductor_group': 'rack', 'more': 'to come'}})}, 'a')
        assert said is not None
        self.assertEqual((7, 'rack'), (said.protocol, said.conductor_group))
