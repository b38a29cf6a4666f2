# SPDX-License-Identifier: Apache-2.0

"""What services of other releases write, as they have written it."""

import datetime
import json

from oslotest import base

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import profile

# Recorded from these releases, which have no tag, by the commits that made
# them: the first one whose offers no capability can forge, and the last one
# that does not say its protocol.
FIRST = 'the first offers that nobody can forge (8cbb9fb)'
LAST = 'the last without a version of the protocol (3adb465)'
BY_ROW = 'the last that says in each row who may take the node (e542b0a)'
RECORDED = {
    FIRST: {
        'ironic_ring:from': 'compute-1',
        'ironic_ring:profile':
            '{"conductor_group": "rack", "handover": "cooperative", '
            '"mobility": "follow", "names": ["compute-1", "compute-2"], '
            '"partitions": 64, "peers": "6c28d463f31b", "shard": null}',
        'ironic_ring:to': 'compute-2'},
    LAST: {
        'ironic_ring:follows': 'compute-1 0a1b2c3d4e5f',
        'ironic_ring:from': 'compute-1',
        'ironic_ring:passes':
            '{"at": "2026-01-01T12:00:00+00:00", "cycle": 61, '
            '"from": "compute-1"}',
        'ironic_ring:profile':
            '{"conductor_group": "rack", "failover_after": 120, '
            '"from": "compute-1", "handover": "cooperative", '
            '"handover_timeout": 90, "listing": "all", "mobility": "follow", '
            '"names": ["compute-1", "compute-2"], "partitions": 64, '
            '"peers": "6c28d463f31b", "shard": null}',
        'ironic_ring:shards': '{"from": "compute-1", "held": "ab"}',
        'ironic_ring:to': 'compute-2'},
    BY_ROW: {
        'ironic_ring:follows': 'compute-1 0a1b2c3d4e5f',
        'ironic_ring:from': 'compute-1',
        'ironic_ring:made': '{"from": "compute-1", "of": "f00 ba4"}',
        'ironic_ring:passes':
            '{"at": "2026-01-01T12:00:00+00:00", "cycle": 61, '
            '"from": "compute-1"}',
        'ironic_ring:profile':
            '{"capabilities": null, "conductor_group": "rack", '
            '"failover_after": 120, "failover_configured": 0, '
            '"from": "compute-1", "handover": "cooperative", '
            '"handover_timeout": 120, "listing": "all", '
            '"mobility": "follow", "names": ["compute-1", "compute-2"], '
            '"partitions": 64, "peers": "6c28d463f31b", "pools_limit": 0, '
            '"protocol": 2, "shard": null, "traits": null}',
        'ironic_ring:protocol': '2',
        'ironic_ring:shards': '{"from": "compute-1", "held": "ab"}',
        'ironic_ring:to': 'compute-2'},
}


class FormerReleasesTestCase(base.BaseTestCase):

    def _profile(self, release: str) -> profile.Profile:
        found = stats.read_profile(RECORDED[release], 'compute-1')
        assert found is not None
        return found

    def test_first_version_where_none_is_said(self):
        for release in FIRST, LAST:
            self.assertEqual(1, self._profile(release).protocol, release)
        self.assertEqual(2, self._profile(BY_ROW).protocol)

    def test_offers_are_gone_by(self):
        for release, said in RECORDED.items():
            self.assertEqual(
                'compute-2', stats.taker(said, 'compute-1'), release)
            self.assertIsNone(stats.taker(said, 'compute-3'), release)

    def test_consent_is_gone_by(self):
        self.assertEqual('0a1b2c3d4e5f', stats.read_consent(
            RECORDED[LAST], 'compute-1'))

    def test_scope_and_ring_are_those_that_were_meant(self):
        for release in RECORDED:
            said = self._profile(release)
            self.assertTrue(said.scope.is_same(model.Scope('rack')), release)
            self.assertEqual(('compute-1', 'compute-2'), said.names, release)
            self.assertEqual((64, 'cooperative', 'follow'), (
                said.partitions, said.handover, said.mobility), release)

    def test_what_only_the_later_one_says(self):
        self.assertEqual((0, 120, 120), tuple(
            self._profile(release).failover_after for release in RECORDED))
        said = stats.read_last_pass(RECORDED[LAST], 'compute-1')
        self.assertEqual(61, said.cycle if said else None)
        self.assertEqual({'ab'}, stats.read_held(RECORDED[LAST], 'compute-1'))

    def test_what_they_let_others_take_by_their_ring_is_nothing(self):
        said = stats.read_last_pass(RECORDED[BY_ROW], 'compute-1')
        assert said is not None
        self.assertEqual((61, None), (said.cycle, said.consent))

    def test_what_neither_says(self):
        self.assertEqual({0}, {
            self._profile(release).failover_configured
            for release in RECORDED})

    def test_they_find_all_that_they_read_in_what_this_release_writes(self):
        said = self._profile(LAST)
        at = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)
        passes = stats.say_last_pass('compute-1', model.LastPass(
            61, at, model.Consent('0a1b', frozenset({'n1'}))))
        found = json.loads(passes['ironic_ring:passes'])
        known = json.loads(RECORDED[LAST]['ironic_ring:passes'])
        self.assertEqual(known, {name: found[name] for name in known})
        # Offers mean what they did, for who knows no later version.
        self.assertEqual(RECORDED[BY_ROW]['ironic_ring:protocol'], stats.offer(
            'a', 'b')['ironic_ring:protocol'])
        written = {**stats.publish('compute-1', said),
                   **stats.offer('Compute-1', 'Compute-2'),
                   **stats.consent('compute-1', '0a1b2c3d4e5f'),
                   **stats.hold('compute-1', ['ab'])}
        # They read what they know, and pass over the rest.
        known = json.loads(RECORDED[LAST]['ironic_ring:profile'])
        found = json.loads(written['ironic_ring:profile'])
        self.assertEqual(known, {name: found[name] for name in known})
        for key in ('ironic_ring:follows', 'ironic_ring:from',
                    'ironic_ring:shards', 'ironic_ring:to'):
            self.assertEqual(RECORDED[LAST][key], written[key])


class LaterReleasesTestCase(base.BaseTestCase):
    """What a release writes whose offers mean something else."""

    def test_consent_by_ring_that_means_something_else(self):
        said = stats.say_last_pass('a', model.LastPass(
            61, None, model.Consent('0a1b', frozenset({'n1'}))))
        (key,) = said
        whole = json.loads(said[key])
        for protocol in self.LATER, 'x', None, '':
            found = stats.read_last_pass({key: json.dumps(
                whole | {'lets': whole['lets'] | {'protocol': protocol}})},
                'a')
            # Its owner is not silent.
            self.assertEqual(model.LastPass(61, None, model.Consent('')),
                             found, protocol)
        for lets in [], {}, 'x', {'protocol': 3, 'ring': 'r', 'but': 1}:
            found = stats.read_last_pass(
                {key: json.dumps(whole | {'lets': lets})}, 'a')
            self.assertEqual(model.Consent(''), found and found.consent, lets)

    LATER = str(profile.PROTOCOL + 1)

    def test_nobody_takes_what_is_offered(self):
        # The empty string, and not None: the owner is not silent, and its
        # node is not taken after a time.
        said = {**stats.offer('a', 'b'), 'ironic_ring:protocol': self.LATER}
        self.assertEqual('', stats.taker(said, 'a'))
        self.assertIsNone(stats.taker(said, 'c'))

    def test_nobody_takes_instances(self):
        said = {**stats.consent('a', '0a1b'),
                'ironic_ring:protocol': self.LATER}
        self.assertIsNone(stats.read_consent(said, 'a'))

    def test_what_is_no_version(self):
        for version in '', 'x', '-1', '2.5':
            said = {**stats.offer('a', 'b'), 'ironic_ring:protocol': version}
            self.assertEqual('', stats.taker(said, 'a'), version)

    def test_scope_can_be_read(self):
        said = stats.read_profile({'ironic_ring:profile': json.dumps(
            {'from': 'a', 'conductor_group': 'rack', 'protocol': 7,
             'more': 'to come'})}, 'a')
        assert said is not None
        self.assertEqual((7, 'rack'), (said.protocol, said.conductor_group))

    def test_protocol_of_a_profile_that_is_none(self):
        self.assertIsNone(stats.read_profile(
            {'ironic_ring:profile': '{"protocol": "x"}'}, 'a'))
