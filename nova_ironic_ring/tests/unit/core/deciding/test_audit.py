# SPDX-License-Identifier: Apache-2.0

"""Tests of what is kept of events."""

from typing import TypeAlias

from oslotest import base

from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view

Code = audit.Code
Entry: TypeAlias = audit.Entry
State = membership.State

KNOWN = view.View(states={
    'me': State.MEMBER, 'c': State.MEMBER, 'a': State.FORCED_DOWN,
    'b': State.ABSENT}, ring=ring.Ring({'me', 'c'}, 1))


class EntriesTestCase(base.BaseTestCase):

    def _assert_entries(self, event: events.Event, *expected: Entry) -> None:
        self.assertEqual(list(expected), audit.entries([event], 'me', KNOWN))

    def test_nodes(self):
        self._assert_entries(
            events.NodeTaken('n1', 'b', decisions.Decision.TAKE_ABANDONED),
            Entry(Code.NODE_TAKEN, 'me', node='n1', source='b', target='me',
                  reason='TAKE_ABANDONED'))
        self._assert_entries(
            events.NodeOffered('n1', 'c'),
            Entry(Code.NODE_OFFERED, 'me', node='n1', source='me',
                  target='c'))
        self._assert_entries(
            events.NodesPooled(['n1', 'n2']),
            Entry(Code.NODE_POOLED, 'me', node='n1', target='me'),
            Entry(Code.NODE_POOLED, 'me', node='n2', target='me'))
        self._assert_entries(
            events.RecordRemoved('n1', 'b'),
            Entry(Code.RECORD_REMOVED, 'me', node='n1', source='b'))

    def test_takeover(self):
        self._assert_entries(
            events.InstanceTaken('n1', 'i1', 'c', False),
            Entry(Code.INSTANCE_TAKEN, 'me', node='n1', instance='i1',
                  source='c', target='me', reason='CONSENT'))

    def test_failover_says_why(self):
        for host, reason in (
                ('A', 'FORCED_DOWN'), ('b', 'ABSENT'),
                # A service that is disabled is not known to the ring.
                ('x', 'DEAD'), ('c', 'DEAD')):
            self._assert_entries(
                events.InstanceTaken('n1', 'i1', host, True),
                Entry(Code.INSTANCE_FAILED_OVER, 'me', node='n1',
                      instance='i1', source=host, target='me',
                      reason=reason))

    def test_instances(self):
        self._assert_entries(
            events.InstanceMoved('i1', 'n1', 'pool'),
            Entry(Code.INSTANCE_PLACED, 'me', instance='i1', source='n1',
                  target='pool'))
        self._assert_entries(
            events.BuildEnded('n1', 'i1', None),
            Entry(Code.BUILD_ENDED, 'me', node='n1', instance='i1'))
        self._assert_entries(
            events.UnshelveEnded('n1', 'i1', 'b'),
            Entry(Code.UNSHELVE_ENDED, 'me', node='n1', instance='i1',
                  source='b'))

    def test_members(self):
        self._assert_entries(
            events.MembersChanged(frozenset({'me', 'a', 'b'}), KNOWN),
            Entry(Code.MEMBER_JOINED, 'me', service='c'),
            Entry(Code.MEMBER_LEFT, 'me', service='a', reason='FORCED_DOWN'),
            Entry(Code.MEMBER_LEFT, 'me', service='b', reason='ABSENT'))

    def test_trust(self):
        self._assert_entries(
            events.TrustChanged(trust.Trust.FULL, trust.Trust.BLACKOUT, 60.0),
            Entry(Code.TRUST_CHANGED, 'me', source='FULL', target='BLACKOUT'))

    def test_rings(self):
        self._assert_entries(
            events.RingsDiffer(frozenset({'c', 'a'})),
            Entry(Code.RINGS_DIFFER, 'me', service='a'),
            Entry(Code.RINGS_DIFFER, 'me', service='c'))
        self._assert_entries(
            events.RingsAgree(frozenset({'c'})),
            Entry(Code.RINGS_AGREE, 'me', service='c'))

    def test_what_changes_nothing(self):
        self._assert_entries(events.NodesBack())

    def test_names_of_values_stay(self):
        author = audit.Author('alice', 'controller', None, 'undrain a')
        self.assertEqual({
            'event': 'SERVICE_ENABLED', 'host': 'controller', 'service': 'a',
            'node': None, 'instance': None, 'from': None, 'to': None,
            'reason': 'mended', 'by': {
                'user': 'alice', 'host': 'controller', 'openstack_user': None,
                'arguments': 'undrain a'}},
            Entry(Code.SERVICE_ENABLED, 'controller', service='a',
                  reason='mended', author=author).values())
