# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Tests of what a service says of itself."""

import json
import typing

from oslotest import base

from nova_ironic_ring import profile
from nova_ironic_ring import settings


def _settings(**changes) -> settings.Settings:
    values: dict[str, typing.Any] = {
        'host': 'me', 'down_time': 60, 'conductor_group': None, 'shard': None,
        'peers': None, 'partitions': 32, 'pass_interval': 60,
        'report_interval': 10, 'cooperative': True, 'handover_timeout': 120,
        'vanished_nodes_limit': 20, 'fails_over': True, 'follows': False,
        'failover_after': 0} | changes
    return settings.Settings(**values)


class ProfileTestCase(base.BaseTestCase):

    def test_what_is_published_can_be_read(self):
        for changes in ({}, {'conductor_group': '', 'peers': frozenset('ab')},
                        {'shard': 'x', 'cooperative': False},
                        {'follows': True}, {'fails_over': False}):
            said = profile.of(_settings(**changes))
            self.assertEqual(said, profile.read(profile.publish(said)))

    def test_values(self):
        said = profile.of(_settings(
            conductor_group='rack', peers=frozenset({'b', 'a'}),
            follows=True))
        self.assertEqual(('a', 'b'), said.names)
        self.assertEqual(profile.fingerprint('b', 'a'), said.peers)
        self.assertEqual('follow', said.mobility)
        self.assertEqual('pinned', profile.of(_settings(
            fails_over=False)).mobility)

    def test_very_many_peers(self):
        said = profile.of(_settings(
            conductor_group='rack',
            peers=frozenset(map(str, range(51)))))
        self.assertEqual((), said.names)
        self.assertEqual(12, len(said.peers or ''))

    def test_what_cannot_be_read(self):
        for stats in (None, {}, {'ironic_ring:profile': 'x'},
                      {'ironic_ring:profile': '7'}):
            self.assertIsNone(profile.read(stats))

    def test_what_a_later_release_says(self):
        said = profile.read({'ironic_ring:profile': json.dumps(
            {'partitions': 64, 'more': 'to come'})})
        self.assertEqual(64, said.partitions if said else None)
