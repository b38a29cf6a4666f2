# SPDX-License-Identifier: Apache-2.0

"""Which instances Nova is told of."""

import dataclasses
import datetime
import types
import typing
from unittest import mock

from oslotest import base

from nova_ironic_ring.core.deciding import orphans
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds

POOL = pools.name('a', pools.Kind('CUSTOM_BAREMETAL'))


NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


class _Ironic(clouds.Ironic):
    """Has a node on which nothing is deployed yet, of an instance."""

    def is_available(self, node):
        return node == 'to build'


class _Nova(clouds.Nova):
    """Counts what is asked for."""

    asked = 0

    def deleted_instances(self, uuids):
        uuids = list(uuids)
        self.asked += len(uuids)
        return super().deleted_instances(uuids)


class OrphansTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.nova = _Nova(self.cloud, 'me')
        self.watch = membership.Watch()
        self.seen: list[model.Service] = []
        self.trust = trust.Trust.FULL
        self.current = settings.Settings('me')

    def _believe(self, orphaned, own=None, turn=0):
        world = typing.cast(ports.Ports, types.SimpleNamespace(
            nova=self.nova, ironic=_Ironic(self.cloud),
            process=mock.Mock(wall_time=lambda: NOW)))
        return orphans.believe(world, orphans.Named(
            own or {}, orphaned, observation.Memory(
                watch=self.watch, view=dataclasses.replace(
                    view.assess(self.seen, self.current, self.watch),
                    trust=self.trust)), self.current), turn)

    def _see(self, since: float, watched: float, **service) -> None:
        """Let a have been silent for some seconds, and be watched for some."""
        self.cloud.services['a'] = model.Service(
            'a', NOW - datetime.timedelta(seconds=since), **service)
        found = self.nova.service('a')
        assert found is not None
        self.seen = [found]
        # Until then, its heartbeat was seen to move.
        self.watch = membership.Watch().look(
            [dataclasses.replace(found, last_seen=model.NEVER)], 0).look(
                [found], 1000).look([found], 1000 + watched)

    def test_deleted_one_of_that_node_or_of_a_pool(self):
        self.cloud.deleted = {'i': model.Instance('a', 'node'),
                              'p': model.Instance('a', POOL)}
        found = self._believe({'i': 'node', 'p': 'other'})
        self.assertEqual(({'i', 'p'}, {}), (found.instances, found.strays))

    def test_deleted_one_of_somewhere_else(self):
        self.cloud.deleted = {
            'i': model.Instance('a', 'other'),
            'vm': model.Instance('kvm', 'kvm'),
            # It had been shelved, or was never built.
            'none': model.Instance(None, None),
            # A name that looks like that of a pool, of another host.
            'odd': model.Instance('kvm', POOL)}
        strays = dict.fromkeys(self.cloud.deleted, 'node')
        found = self._believe(strays)
        self.assertEqual((set(), strays), (found.instances, found.strays))
        # As well if it has come to a node of this service since the pass.
        found = self._believe({}, strays)
        self.assertEqual((set(), strays), (found.instances, found.strays))

    def test_one_that_its_service_may_still_deploy(self):
        """A service stands still between the claim and the deployment."""
        self.cloud.deleted = {'i': model.Instance('A', 'to build'),
                              'd': model.Instance('A', 'deployed')}
        named = {'i': 'to build', 'd': 'deployed'}
        for since, watched, more in (
                (61, 61, {}),
                # Nova's API sees it as down before this service does, or
                # their clocks differ.
                (61, 0, {}), (59, 61, {}), (-99, 0, {}),
                # Disabled, it is in no ring.
                (61, 61, {'disabled': True}),
                # With heartbeats in memcached there is no time of the last.
                (9999, 61, {'alive': False})):
            self._see(since, watched, **more)
            self.assertEqual({'d'}, self._believe(named).instances)
            # The service itself gives the node back.
            self.assertEqual({'i'}, self._believe(
                {}, {'i': 'to build'}).instances)

    def test_each_service_is_read_once(self):
        self.cloud.deleted = {
            f'i{number}': model.Instance('a', 'to build')
            for number in range(9)}
        self._see(61, 61)
        with mock.patch.object(self.nova, 'service',
                               wraps=self.nova.service) as service:
            self._believe(dict.fromkeys(self.cloud.deleted, 'to build'))
        service.assert_called_once_with('a')

    def test_one_of_a_service_that_is_back(self):
        """It has given up the build, or was started anew."""
        self.cloud.deleted = {'i': model.Instance('a', 'to build')}
        self._see(60, 59)
        self.assertEqual({'i'}, self._believe({'i': 'to build'}).instances)

    def test_one_of_a_service_that_is_dead(self):
        self.cloud.deleted = {'i': model.Instance('a', 'to build')}
        named = {'i': 'to build'}
        # It has no record.
        self.assertEqual({'i'}, self._believe(named).instances)
        self._see(61, 61, forced_down=True)
        self.assertEqual({'i'}, self._believe(named).instances)

    def test_one_of_a_service_that_has_been_silent_for_long(self):
        self.cloud.deleted = {'i': model.Instance('a', 'to build')}
        for more in {}, {'disabled': True}, {'alive': False}:
            for after, watched, expected in (
                    (0, 999, set()), (120, 119, set()), (120, 120, {'i'})):
                self._see(9999, watched, **more)
                self.current = settings.Settings(
                    'me', failover_after=after, down_time=60,
                    # It need not be a peer.
                    peers=frozenset({'me'}))
                self.assertEqual(
                    expected, self._believe({'i': 'to build'}).instances)
        # Its heartbeat has moved since it was read last.
        self.cloud.services['a'] = dataclasses.replace(
            self.cloud.services['a'], alive=None,
            last_seen=NOW - datetime.timedelta(seconds=100))
        self.assertEqual(set(), self._believe({'i': 'to build'}).instances)

    def test_while_what_is_seen_of_others_is_not_trusted(self):
        self.cloud.deleted = {'i': model.Instance('a', 'to build')}
        self.current = settings.Settings('me', failover_after=120)
        self._see(999, 999)
        for each in trust.Trust:
            self.trust = each
            self.assertEqual(
                {'i'} if each is trust.Trust.FULL else set(),
                self._believe({'i': 'to build'}).instances)

    def test_what_nova_has_not_deleted(self):
        # Nova's API may delete it before Nova looks at what is returned.
        found = self._believe({'nowhere': 'node'}, {'mine': 'n', 'm': None})
        self.assertEqual({'mine', 'm'}, found.instances)

    def test_very_many_are_looked_at_in_turn(self):
        many = {f'i{number:05}': f'n{number}' for number in range(2500)}
        self.cloud.deleted = {uuid: model.Instance('a', node)
                              for uuid, node in many.items()}
        seen = set()
        for turn in range(3):
            found = self._believe(many, {'mine': 'n'}, turn)
            self.assertEqual(orphans.MOST + 1, len(found.instances))
            seen |= found.instances
        self.assertEqual(3 * (orphans.MOST + 1), self.nova.asked)
        self.assertEqual(many.keys() | {'mine'}, seen)

    def test_nothing(self):
        self.assertEqual(frozenset(), self._believe({}).instances)
        self.assertEqual(0, self.nova.asked)
