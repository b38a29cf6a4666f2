# SPDX-License-Identifier: Apache-2.0

import datetime
import inspect

from oslotest import base

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import settings

Decision = decisions.Decision
Trust = trust.Trust
NOW = view.View(
    states={'b': membership.State.FORCED_DOWN}, ring=ring.Ring('ae', 1))
ERROR = ValueError('no')

#: One event of each kind, its level, and what its text says.
LINES = [
    (events.MembersChanged(frozenset('ab'), NOW), 'INFO',
     'Members of the ring: a, e (before: a, b): e has come, b is forced '
     'down.'),
    (events.TrustChanged(Trust.FULL, Trust.BLACKOUT, 60.0), 'WARNING',
     'until those of this service are in time again'),
    (events.PeerListDiffers(frozenset('bc'), frozenset('d')), 'WARNING',
     'it leaves out b, c, alive in the same conductor group; it names d, in '
     'another conductor group or shard. The list decides.'),
    (events.ScopeEmpty(settings.Scope('rack', 'x')), 'WARNING',
     'Ironic has no node in conductor group "rack" and shard "x", which'),
    (events.PassesFail('b', 240.0), 'WARNING',
     'b is alive, and its passes have failed for 240 s or more: its free '
     'nodes are taken over, its instances stay with it.'),
    (events.PassesWork('b'), 'INFO',
     'The passes of b work again: it is a member of the ring.'),
    (events.NodesVanished('me', True, ['n1', 'n2'], 9), 'ERROR',
     'Ironic does not show 2 of 9 nodes of this service, such as n1:'),
    (events.NodeKept('n1', 'i1'), 'ERROR',
     'Ironic does not show node n1 any more, and Nova has instance i1 on it'),
    (events.ProvidersUnknown(ERROR), 'WARNING',
     'Cannot find out whether all nodes of this service have resource '
     'providers; a node without one gets it when the node has its turn: no'),
    (events.NodesBack(), 'INFO',
     'No node of this service counts as vanished any more'),
    (events.RingsDiffer(frozenset('ba')), 'ERROR',
     'For some passes, this service has gone by another ring than a, b: no '
     'free node goes from one to the other while both live.'),
    (events.RingsAgree(frozenset('ba')), 'INFO',
     'This service goes by the same ring again as a, b.'),
    (events.NodeTaken('n1', 'b', Decision.TAKE_OFFERED), 'INFO',
     'Node n1 of b is free and taken with consent of its owner.'),
    (events.NodeOffered('n1', 'b'), 'INFO', 'Node n1 is offered to b.'),
    (events.InstanceTaken('n1', 'i1', 'b', True), 'INFO',
     'Instance i1 on node n1 is taken over from b, which is dead.'),
    (events.InstanceNotTaken('i1', 'b', ERROR), 'ERROR',
     'Instance i1 of b cannot be taken over: no'),
    (events.AllocationNotMoved('i1', 'me.CUSTOM_GOLD.01234567'), 'WARNING',
     'Placement does not move the allocation of instance i1 to '
     'me.CUSTOM_GOLD.01234567: there is no room'),
    (events.InstanceElsewhere('n1', 'i1', 'kvm'), 'WARNING',
     'Ironic has instance i1 on node n1, and Nova does not have it there: the '
     'instance stays with kvm.'),
    (events.BuildEnded('n1', 'i1', 'b'), 'INFO',
     'The build of instance i1 on node n1 has ended, because the nova-compute '
     'b has died: the instance is in ERROR.'),
    (events.UnshelveEnded('n1', 'i1', None), 'INFO',
     'Instance i1, which was to be unshelved on node n1, stays shelved: its '
     'nova-compute has died. Unshelve it again.'),
    (events.BuildNotEnded('n1', 'i1', None, ERROR), 'ERROR',
     'The build of instance i1, which its nova-compute has left behind, '
     'cannot be ended yet: no'),
    (events.HandoversUnknown(ERROR), 'WARNING',
     'former owners of nodes, or lost; the next pass tries again: no'),
    (events.LastPassNotSaid(ERROR), 'WARNING',
     'Cannot report to the other services that the passes of this one work: '
     'no'),
    (events.RecordRemoved('n1', 'b'), 'INFO', 'Node n1 of b, which is absent'),
    (events.RecordNotRemoved('n1', 'b', ERROR), 'ERROR',
     'Cannot delete the record or resource provider of node n1 of b: no'),
    (events.PoolsCounted(2, 9, 4, True), 'INFO',
     '9 nodes are in 2 pools of this service; 4 of them can be built on.'),
    (events.NodesPooled(['n1', 'n2']), 'INFO',
     '2 nodes are in pools now, such as n1: the record and the resource '
     'provider of each are gone.'),
    (events.InstanceMoved('i1', 'n1', 'me.CUSTOM_GOLD.01234567'), 'INFO',
     'Instance i1 goes from compute node n1 to me.CUSTOM_GOLD.01234567.'),
    (events.PoolsTooSmall(30, 31), 'WARNING',
     'The 31 nodes of this service are in 30 pools: nearly each has traits'),
    (events.DeploymentFailed(
        'n1', 'i1', 2, datetime.datetime(
            2026, 1, 2, 3, tzinfo=datetime.timezone.utc), ERROR), 'WARNING',
     'The deployment of instance i1 on node n1 has failed (2 failed '
     'deployments in a row on this node): until 2026-01-02T03:00:00+00:00, '
     'builds try this node after all others of its kind: no'),
    (events.PoolsLeftOut(3, 4, 2, ['n1', 'n2', 'n3']), 'WARNING',
     'There are more kinds of nodes than this service makes pools of '
     '([ironic_ring] pools_limit is 3): nothing is built on 3 nodes of 2 '
     'kinds, such as n1.'),
    (events.PoolsWithinLimit(3), 'INFO',
     'This service has a pool of each kind of its nodes again: 3 pools.'),
    (events.NodesNotTaken(2, ERROR), 'WARNING',
     'Cannot take 2 nodes directly; the resource tracker takes them, which is '
     'slower: no'),
    (events.AllocationsUnknown('me.CUSTOM_GOLD.01234567', ERROR), 'WARNING',
     'Cannot read from Placement who has allocations of pool '
     'me.CUSTOM_GOLD.01234567: each instance in it counts as having one: no'),
    (events.ListingDiffers(frozenset({'a', 'b'}), True), 'WARNING',
     '[ironic_ring] listing is "shards" here and is not on a, b, which are in '
     'the same ring.'),
    (events.PassDone({Decision.KEEP: 2, Decision.WAIT: 1}, True), 'INFO',
     'Of 3 nodes, 2 free and for this service, 1 free, for this service, and '
     'waited for.'),
]

#: The other texts that a kind has.
MORE = [
    (events.ListingDiffers(frozenset('a'), False), 'WARNING',
     '[ironic_ring] listing is "all" here and is not on a,'),
    (events.ListingDiffers(frozenset(), True), 'INFO',
     'All services of the ring have the same [ironic_ring] listing.'),
    (events.TrustChanged(Trust.BLACKOUT, Trust.FULL, 60.0), 'INFO',
     'a service is absent after 60 s of silence, or after twice that'),
    (events.PeerListDiffers(frozenset('b'), frozenset()), 'WARNING',
     'what the services report: it leaves out b, alive in the same conductor '
     'group. The'),
    (events.NodesVanished('me', True, ['n1'], 9, 0, True), 'ERROR',
     'Ironic does not show 1 of 9 nodes of this service, such as n1: they are '
     'still counted, and reserved.'),
    (events.NodesVanished('me', True, [], 9, 2, True), 'ERROR',
     'Ironic does not show 2 of 9 nodes of the pools of this service before '
     'its start: they are still counted, and reserved.'),
    (events.NodesVanished('b', False, ['n1'], 1), 'ERROR',
     '1 of 1 node of b, which is absent or dead, such as n1'),
    (events.InstanceTaken('n1', 'i1', 'b', False), 'INFO',
     'is taken over from b with its consent.'),
    (events.BuildNotEnded('n1', None, 'b', ERROR), 'WARNING',
     'Cannot read from Placement which builds for node n1 the nova-compute b '
     'has left behind'),
    (events.RecordNotRemoved(None, None, ERROR), 'ERROR',
     'Cannot look for what dead services have left behind: no'),
    (events.PoolsCounted(2, 9, 4, False), 'DEBUG', '9 nodes are in 2 pools'),
    (events.PassDone({}, False), 'DEBUG', 'Of 0 nodes, none.'),
    (events.PassDone({Decision.KEEP: 1}, False), 'DEBUG', 'Of 1 node, 1 free'),
    (events.PoolsCounted(1, 1, 0, True), 'INFO', '1 node is in 1 pool of'),
    (events.NodesPooled(['n1']), 'INFO', '1 node is in pools now, such as n1'),
]


def _kinds() -> list[type[events.Event]]:
    """Return what events there are."""
    return [kind for _, kind in inspect.getmembers(events, inspect.isclass)
            if issubclass(kind, events.Event)
            and kind not in (events.Event, events.Move)]


class EventsTestCase(base.BaseTestCase):

    def test_what_each_kind_says(self):
        self.assertEqual(
            sorted(kind.__name__ for kind in _kinds()),
            sorted(type(event).__name__ for event, *_ in LINES))
        for event, level, text in LINES + MORE:
            self.assertEqual(level, event.level().name, event)
            self.assertIn(text, event.text())

    def test_each_kind_has_a_text_of_its_own(self):
        for kind in _kinds():
            self.assertIn('text', vars(kind), kind)

    def test_start_of_trust_is_no_news(self):
        self.assertEqual('', events.TrustChanged(
            Trust.STARTING, Trust.FULL, 60.0).text())

    def test_many_moves(self):
        moves = {
            events.NodeTaken('n1', 'b', Decision.TAKE_OFFERED):
                '21 nodes of b are free and taken with consent of its owner.',
            events.NodeOffered('n1', 'b'): '21 nodes are offered to b.',
            events.InstanceTaken('n1', 'i1', 'b', True):
                '21 instances are taken over from b, which is dead.',
            events.InstanceTaken('n1', 'i1', 'b', False):
                '21 instances are taken over from b with its consent.',
            events.InstanceMoved('i1', 'n1', 'p1'):
                '21 instances go to other compute nodes of this service, such '
                'as p1.'}
        self.assertEqual(
            {kind for kind in _kinds() if issubclass(kind, events.Move)},
            set(map(type, moves)))
        for move, line in moves.items():
            self.assertEqual(line, move.text_of_many(21))

    def test_moves_that_one_line_can_tell_of(self):
        def moves(node: str, host: str) -> list[events.Move]:
            return [
                events.NodeTaken(node, host, Decision.TAKE_OFFERED),
                events.NodeTaken(node, host, Decision.TAKE_ABANDONED),
                events.NodeOffered(node, host),
                events.InstanceTaken(node, f'i{node}', host, True),
                events.InstanceTaken(node, f'i{node}', host, False)]

        def kinds(made: list[events.Move]) -> list[object]:
            return [(type(move), move.kind()) for move in made]

        ours, theirs = moves('n1', 'b'), moves('n1', 'c')
        self.assertEqual(kinds(ours), kinds(moves('n2', 'b')))
        self.assertEqual(10, len({*kinds(ours), *kinds(theirs)}))
        self.assertEqual(events.InstanceMoved('i1', 'n1', 'p1').kind(),
                         events.InstanceMoved('i2', 'n2', 'p2').kind())

    def test_what_is_no_kind_says_nothing(self):
        self.assertRaises(NotImplementedError, events.Event().text)
        self.assertRaises(NotImplementedError, events.Move().kind)
        self.assertRaises(NotImplementedError, events.Move().text_of_many, 2)
