# SPDX-License-Identifier: Apache-2.0

"""What services write into the statistics of their rows."""

import datetime
import json

from oslotest import base

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import model
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

    def test_consent_by_ring(self):
        said = model.LastPass(60, datetime.datetime(
            2026, 1, 2, tzinfo=datetime.timezone.utc), model.Consent(
                '0a1b', frozenset({'n1', 'n2'})))
        written = stats.say_last_pass('Host A', said)
        self.assertEqual(said, stats.read_last_pass(written, 'host a'))
        # A former owner's last saving.
        self.assertIsNone(stats.read_last_pass(written, 'b'))

    def test_what_is_held_can_be_read(self):
        held = frozenset(map(shards.code, ['x', 'y', 'z' * 255]))
        said = stats.hold('A', held)
        self.assertEqual(held, stats.read_held(said, 'a '))
        # A former owner's last saving.
        self.assertEqual(frozenset(), stats.read_held(said, 'b'))
        for nothing in (None, {}, {next(iter(said)): 'x'},
                        {next(iter(said)): '[]'}, stats.hold('a', None),
                        stats.hold('a', [])):
            self.assertEqual(frozenset(), stats.read_held(nothing, 'a'))

    def test_what_is_published_can_be_read(self):
        for changes in ({}, {'scope': settings.Scope(''),
                             'peers': frozenset('ab')},
                        {'scope': settings.Scope(shard='x')},
                        {'follows': True}, {'fails_over': False},
                        {'kind_rule': kinds.Rule(
                            frozenset({'raid', 'boot'}), frozenset()),
                         'pools_limit': 7}):
            said = profile.of(settings.Settings('me', **changes))
            self.assertEqual(said, stats.read_profile(
                stats.publish('Me', said), 'me'))
            self.assertEqual(changes.get('kind_rule', kinds.Rule()),
                             said.kind_rule)

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

    def test_what_cannot_be_read(self):
        for found in (None, {}, {'ironic_ring:profile': 'x'},
                      {'ironic_ring:profile': '7'},
                      {'ironic_ring:profile': '[]'},
                      {'ironic_ring:profile': '{"names": 7}'}):
            self.assertIsNone(stats.read_profile(found, 'me'))

    def test_what_a_former_owner_has_written(self):
        found = stats.publish('A', profile.Profile())
        self.assertIsNone(stats.read_profile(found, 'b'))
        self.assertTrue(stats.is_of_another(found, 'b'))
        self.assertFalse(stats.is_of_another(found, 'a'))
        self.assertFalse(stats.is_of_another({}, 'b'))


class LastPassTestCase(base.BaseTestCase):

    AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)

    def test_what_is_said_can_be_read(self):
        for said in model.LastPass(60), model.LastPass(60, self.AT):
            self.assertEqual(said, stats.read_last_pass(
                stats.say_last_pass('A', said), 'a'))

    def test_what_a_former_owner_has_said(self):
        self.assertIsNone(stats.read_last_pass(
            stats.say_last_pass('b', model.LastPass(60, self.AT)), 'a'))

    def test_what_cannot_be_read(self):
        for said in ('x', '7', '{"from": "a"}',
                     '{"from": "a", "cycle": "x"}',
                     '{"from": "a", "cycle": 6, "at": "x"}',
                     '{"from": "a", "cycle": 6, "at": 7}'):
            self.assertIsNone(stats.read_last_pass(
                {'ironic_ring:passes': said}, 'a'), said)
        self.assertIsNone(stats.read_last_pass(None, 'a'))


class OfferTestCase(base.BaseTestCase):

    def test_what_is_offered_can_be_read(self):
        offered = stats.offer('A', 'B')
        self.assertEqual('b', stats.taker(offered, 'a'))
        self.assertEqual('', stats.taker(stats.offer('A', ''), 'A '))

    def test_offer_of_a_former_owner_is_none(self):
        self.assertIsNone(stats.taker(stats.offer('b', 'me'), 'a'))

    def test_row_without_an_offer(self):
        for found in None, {}, {'cpu_arch': 'x86_64'}:
            self.assertIsNone(stats.taker(found, 'a'))

    def test_what_others_say_in_our_name_is_not_kept(self):
        said = {'cpu_arch': 'x86_64', **stats.offer('a', 'b'),
                ' Ironic_Ring:to': 'b', 'ironic_ring_from': 'a'}
        self.assertEqual({'cpu_arch': 'x86_64'}, stats.cleaned(said))


class ConsentTestCase(base.BaseTestCase):

    def test_what_is_said(self):
        self.assertEqual('0a1b', stats.read_consent(
            stats.consent('Host A', '0a1b'), 'host a'))

    def test_what_another_has_said(self):
        self.assertIsNone(stats.read_consent(
            stats.consent('b', '0a1b'), 'a'))

    def test_nothing_is_said(self):
        for said in None, {}, {'ironic_ring:follows': 'a'}, (
                stats.consent('a', '')):
            self.assertIsNone(stats.read_consent(said, 'a'))


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

    OTHERS = '', 'x', '-1', '2.5', '3', str(profile.PROTOCOL + 1)

    def test_nobody_takes_free_nodes(self):
        said = stats.say_last_pass('a', model.LastPass(
            61, None, model.Consent('0a1b', frozenset({'n1'}))))
        (key,) = said
        whole = json.loads(said[key])
        versions = *self.OTHERS, None, 3, str(profile.PROTOCOL)
        for lets in [
                *(whole['lets'] | {'protocol': each} for each in versions),
                [], {}, 'x', {'protocol': 4, 'ring': 'r', 'but': 1}]:
            found = stats.read_last_pass(
                {key: json.dumps(whole | {'lets': lets})}, 'a')
            # Its owner is not silent.
            self.assertEqual(
                model.LastPass(61, None, model.Consent('')), found, lets)

    def test_nobody_takes_what_is_offered(self):
        for other in self.OTHERS:
            said = stats.offer('a', 'b') | {'ironic_ring:protocol': other}
            # The empty string, and not None: the owner is not silent, and its
            # node is not taken after a time.
            self.assertEqual('', stats.taker(said, 'a'), other)
            self.assertIsNone(stats.taker(said, 'c'))

    def test_nobody_takes_instances(self):
        for other in self.OTHERS:
            said = stats.consent('a', '0a1b') | {'ironic_ring:protocol': other}
            self.assertIsNone(stats.read_consent(said, 'a'), other)

    def test_scope_can_be_read(self):
        said = stats.read_profile({'ironic_ring:profile': json.dumps(
            {'from': 'a', 'conductor_group': 'rack', 'protocol': 7,
             'more': 'to come'})}, 'a')
        assert said is not None
        self.assertEqual((7, 'rack'), (said.protocol, said.conductor_group))

    def test_what_is_no_profile(self):
        for found in '{"from": "a", "protocol": "x"}', '{"from": "a"}', 'x':
            self.assertIsNone(stats.read_profile(
                {'ironic_ring:profile': found}, 'a'), found)
