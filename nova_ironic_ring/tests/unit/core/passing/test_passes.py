# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.core import base
from nova_ironic_ring.tests.unit.core.base import desired
from nova_ironic_ring.tests.unit.core.base import NODES

NEW = '11111111-1111-1111-1111-111111111111'


def _fail() -> None:
    raise ConnectionError('no answer')


class QuietTestCase(base.PassTestCase):
    """A pass in which nothing moves."""

    def test_what_is_asked_and_in_which_order(self):
        self.run_pass()
        asked = [each for each in self.asked if each not in (
            'now', 'wall_time', 'tracked', 'longest_gap', 'is_ending',
            'rows_of', 'fingerprints', 'makes_with', 'providers')]
        # An instance that appears during the listing is then known.
        self.assertEqual(['nodes', 'services', 'instances_of',
                          'disabled', 'has_provider', 'say_member'], asked)
        # Once for the pass, and once for the tracker.
        self.assertEqual(2, self.asked.count('rows_of'))

    def test_looks_while_the_nodes_are_listed(self):
        """What they have seen is not told, nor taken back, by the pass."""
        self.run_pass()
        self.force_down('b')

        def look_meanwhile():
            this = one_pass.Pass(
                self.tracker.world, self.current, self.memory.copied())
            look.between_passes(this)
            self.memory = this.memory
        self.before['nodes'] = look_meanwhile
        result = passes.run(self.tracker.world, self, self.current,
                            node_places.Nodes())
        self.assertIs(self.memory, result.before)
        self.assertEqual({'me', 'a'},
                         result.memory.view.members)
        self.assertNotIn(events.MembersChanged, map(type, result.happened))

    def test_nodes_that_come_meanwhile(self):
        step = planner.Step(Decision.TAKE_ABANDONED, 'so')
        found = node_places.PassResult(
            listed={'mine': None}, orphans=frozenset('io'),
            changes=updates.Changes(frozenset({'mine'}))).joined(
                {'came': step, 'moved': step},
                observation.Memory(nodes={'came': 'i'}), frozenset({'moved'}))
        self.assertEqual({'mine': None, 'came': 'i', 'moved': None},
                         found.listed)
        self.assertEqual({'came': step, 'moved': step}, found.plan.steps)
        self.assertEqual(frozenset('o'), found.orphans)
        # The tracker updates what it is still to record, and nothing else.
        self.assertEqual(['came'], [
            node for node in found.listed if found.changes.needs_update(node)])

    def test_own_nodes_are_listed(self):
        self.assertEqual(desired('me', 'a', 'b'), self.run_pass())
        self.assertEqual([events.PassDone], [
            type(each) for each in self.result.happened])
        (done,) = self.result.happened
        self.assertFalse(done.moves)
        self.assertEqual({Decision.KEEP, Decision.LEAVE}, set(done.counts))
        self.assertEqual(len(NODES), sum(done.counts.values()))

    def test_node_with_the_uuid_of_a_member_record(self):
        for host in 'Me', 'a':
            self.cloud.nodes[member.uuid_of(host)] = clouds.Node()
        self.assertEqual(desired('me', 'a', 'b'), self.run_pass())
        # Whoever it would be for.
        self.assertTrue(self.memory.nodes.keys().isdisjoint(
            map(member.uuid_of, ('me', 'a'))))

    def test_the_ring_is_made_once(self):
        before = self.memory.view.ring
        self.run_pass()
        self.assertIs(before, self.memory.view.ring)

    def test_the_same_pass_twice(self):
        self.join('e')
        before, said = self.memory, self.cloud.members['me']
        first = self.decide()
        self.memory, self.cloud.members['me'] = before, said
        second = self.decide()
        self.assertEqual(first.plan, second.plan)
        self.assertEqual(first.memory.waits, second.memory.waits)
        self.assertEqual(first.memory.agreement, second.memory.agreement)

    def test_own_instances_are_listed_wherever_they_are(self):
        node = min(set(NODES) - self.owned())
        self.place(node, 'mine', 'ME')
        self.assertIn(node, self.run_pass())
        self.assertEqual('mine', self.result.listed[node])

    def test_instance_that_appears_during_the_listing(self):
        node = min(self.owned())
        self.before['instances_of'] = lambda: self.place(node, 'new', 'me')
        self.cloud.nodes[node].instance = 'new'
        self.assertIn(node, self.run_pass())
        self.assertIs(Decision.KEEP_INSTANCE, self.decisions()[node])

    def test_instances_of_others_are_not_listed(self):
        node = min(self.owned())
        self.place(node, 'theirs', 'a')
        self.assertNotIn(node, self.run_pass())

    def test_instances_of_others_are_read_once(self):
        self.place(min(self.owned()), 'theirs', 'a')
        self.run_pass()
        self.assertIn('instances', self.asked)
        self.run_pass()
        self.assertNotIn('instances', self.asked)
        self.assertNotIn('other_drivers', self.asked)

    def test_instances_of_others_are_read_again_with_other_members(self):
        self.place(min(self.owned()), 'theirs', 'a')
        self.run_pass()
        self.join('e')
        self.run_pass()
        self.assertIn('instances', self.asked)

    def test_orphans(self):
        mine, other = sorted(self.owned())[:2]
        of_others = min(set(NODES) - self.owned())
        self.place(mine, 'mine', 'me')
        self.cloud.nodes[other].instance = 'deleted'
        self.place(of_others, 'theirs', 'a')
        self.run_pass()
        self.assertEqual({'deleted'}, self.result.orphans)

    def test_service_without_a_record_has_no_orphans(self):
        # Nova refuses to start a new service that knows of any.
        self.cloud.nodes[min(self.owned())].instance = 'deleted'
        del self.cloud.services['me']
        self.run_pass()
        self.assertEqual(frozenset(), self.result.orphans)

    def test_all_nodes_have_a_step_and_those_listed_a_claim(self):
        self.run_pass()
        for node, step in self.result.plan.steps.items():
            self.assertIs(step.decision.lists, step.claim is not None)
            self.assertIs(step.decision.lists, node in self.result.listed)


class RingTestCase(base.PassTestCase):
    """Whom the ring consists of."""

    def test_forced_down_services_are_no_members(self):
        self.force_down('b')
        self.assertEqual(desired('me', 'a'), self.run_pass())

    def test_watched_heartbeat_that_stands_still(self):
        self.alive.remove('b')
        self.wait(59)
        self.assertEqual(desired('me', 'a', 'b'), self.run_pass())
        self.wait(1)
        self.assertEqual(desired('me', 'a'), self.run_pass())

    def test_old_heartbeat_that_was_not_watched(self):
        # As of a service whose clock, or whose conductor's, is wrong.
        self.change('b', last_seen=clouds.EPOCH.replace(year=2025))
        self.alive.remove('b')
        for _ in range(59):
            self.wait(1)
            self.assertEqual(desired('me', 'a', 'b'), self.run_pass())

    def test_heartbeats_of_a_wrong_clock(self):
        for _ in range(20):
            self.wait(10)
            self.change('b', last_seen=self.cloud.services[
                'b'].last_seen.replace(year=2036))
            self.assertEqual(desired('me', 'a', 'b'), self.run_pass())

    def test_partitions(self):
        self.assertNotEqual(desired('me', 'a', 'b'),
                            desired('me', 'a', 'b', partitions=7))
        self.configure(partitions=7)
        self.run_pass()
        self.assertEqual(
            desired('me', 'a', 'b', partitions=7) & self.owned(),
            {node for node, decision in self.decisions().items()
             if decision is Decision.KEEP})

    def test_names_in_any_case(self):
        self.configure(host='ME')
        self.cloud.services['a'] = dataclasses.replace(
            self.cloud.services['a'], host='A')
        self.assertEqual(desired('me', 'a', 'b'), self.run_pass())

    def test_change_of_members_is_told_once(self):
        self.join('e')
        self.force_down('b')
        self.run_pass()
        (change,) = self.happened(events.MembersChanged)
        self.assertEqual({'me', 'a', 'b'}, change.before)
        self.assertEqual({'me', 'a', 'e'}, change.now.members)
        self.assertIs(membership.State.FORCED_DOWN, change.now.state('b'))
        self.run_pass()
        self.assertEqual([], self.happened(events.MembersChanged))

    def test_stranger_that_lives_is_waited_for(self):
        self.configure(peers=frozenset({'me', 'a'}))
        before = self.owned()
        self.assertEqual(before, self.run_pass())
        self.assertEqual({'me', 'a'}, self.memory.view.members)
        # One with Nova's own driver, until the handover timeout.
        self.assertEqual(desired('me', 'a'), self.run_passes(120, 60))

    def test_stranger_that_has_died(self):
        self.configure(peers=frozenset({'me', 'a'}))
        self.force_down('b')
        self.assertEqual(desired('me', 'a'), self.run_pass())


class ScopeTestCase(base.PassTestCase):
    """The nodes that a service is limited to."""

    def _move(self, node: str) -> None:
        """Have a node leave the conductor group."""
        self.cloud.nodes[node].group = 'rack2'
        self.configure(scope=settings.Scope('rack1'))
        for each in NODES:
            if each != node:
                self.cloud.nodes[each].group = 'rack1'

    def test_node_with_an_own_instance_stays(self):
        node = min(self.owned())
        self.place(node, 'mine', 'me')
        self._move(node)
        self.assertIn(node, self.run_pass())
        self.assertIn('nodes_of', self.asked)

    def test_free_node_and_one_of_another_do_not(self):
        free, theirs = sorted(self.owned())[:2]
        self.place(theirs, 'theirs', 'a')
        self._move(free)
        self.cloud.nodes[theirs].group = 'rack2'
        listed = self.run_pass()
        self.assertNotIn(free, listed)
        self.assertNotIn(theirs, self.decisions())
        self.assertNotIn('nodes_of', self.asked)

    def test_without_a_limit_nobody_is_asked(self):
        self.cloud.instances['nowhere'] = model.Instance('me', 'nowhere')
        self.run_pass()
        self.assertNotIn('nodes_of', self.asked)


class ConsentTestCase(base.PassTestCase):
    """The handover between services that live."""

    def test_newcomer_is_offered_its_share(self):
        before = self.owned()
        self.join('e')
        after = desired('me', 'a', 'b', 'e')
        self.assertLess(after, before)
        # What is offered is listed until it is taken: builds go on.
        self.assertEqual(before, self.run_pass())
        self.assertEqual(dict.fromkeys(before - after, 'e'), self.offers())
        self.assertEqual(
            {events.NodeOffered(node, 'e') for node in before - after},
            set(self.happened(events.NodeOffered)))
        self.assertTrue(self.happened(events.PassDone)[0].moves)
        self.assertEqual(before, self.run_pass())
        # It is told once.
        self.assertEqual([], self.happened(events.NodeOffered))
        self.assertFalse(self.happened(events.PassDone)[0].moves)
        for node in before - after:
            self.record(node, 'e')
        self.assertEqual(after, self.run_pass())
        self.assertEqual({}, self.offers())

    def _of_another(self, owner: str = 'a') -> str:
        """Have another service own a node that is for this one."""
        node = min(desired('me', 'a', 'b'))
        self.record(node, owner)
        self.tracker.drop()
        return node

    def _be_offered(self) -> str:
        """Have a node for this service be one of a, which lets it go."""
        self.let_go('a')
        return self._of_another()

    def test_offer_is_taken(self):
        node = self._of_another()
        self.let_go('a', ring=None)
        self.assertNotIn(node, self.run_pass())
        self.assertIs(Decision.WAIT, self.decisions()[node])
        self.assertEqual(1, self.asked.count('rows'))
        self.let_go('a')
        self.assertIn(node, self.run_pass())
        self.assertEqual('me', self.cloud.rows[node].owner)
        self.assertEqual(
            [events.NodeTaken(node, 'a', Decision.TAKE_OFFERED)],
            self.happened(events.NodeTaken))

    def test_offer_of_another_than_the_owner_is_none(self):
        node = self._of_another()
        self.let_go('b')
        self.assertNotIn(node, self.run_pass())

    def test_owner_that_acknowledges_another_ring(self):
        node = self._of_another()
        for number in range(20):
            self.let_go('a', ring='other' if number % 2 else None)
            self.wait(60)
            self.assertNotIn(node, self.run_pass())
        # It stays until the owner is lost.
        self.die('a')
        self.assertIn(node, self.run_pass())
        self.assertIs(Decision.TAKE_ABANDONED, self.decisions()[node])

    def test_owner_that_does_not_answer(self):
        node = self._of_another()
        self.run_pass()
        self.wait(119)
        self.assertNotIn(node, self.run_pass())
        self.wait(1)
        self.assertIn(node, self.run_pass())
        self.assertIs(Decision.TAKE_SILENT, self.decisions()[node])

    def test_the_wait_is_for_one_owner(self):
        node = self._of_another()
        self.run_pass()
        self.wait(100)
        self.record(node, 'b')
        self.run_pass()
        self.wait(100)
        self.assertNotIn(node, self.run_pass())
        self.wait(20)
        self.assertIn(node, self.run_pass())

    def test_absent_owner(self):
        node = self._of_another()
        self.die('a')
        self.assertIn(node, self.run_pass())
        self.assertIs(Decision.TAKE_ABANDONED, self.decisions()[node])

    def test_owner_without_a_record(self):
        node = self._of_another(owner='nobody')
        self.assertIn(node, self.run_pass())
        # It might have been new.
        self.assertLess(1, self.asked.count('services'))

    def test_disabled_owner_is_waited_for(self):
        self.change('b', disabled=True)
        before = self.owned()
        self.assertEqual(before, self.run_pass())
        for node in desired('me', 'a') - before:
            self.assertIs(Decision.WAIT, self.decisions()[node])
        self.let_go('b')
        self.assertEqual(desired('me', 'a'), self.run_pass())

    def test_disabled_owner_that_says_nothing_new(self):
        self.let_go('b', ring='another')
        self.change('b', disabled=True)
        before = self.owned()
        for _ in range(10):
            self.let_go('b', ring='another')
            self.assertEqual(before, self.run_passes(60, 60))
        # Its passes fail.
        self.assertEqual(before, self.run_passes(180, 60))
        self.assertEqual(desired('me', 'a'), self.run_passes(60, 60))
        self.assertEqual({Decision.TAKE_SILENT}, {
            each.decision for each in self.happened(events.NodeTaken)})

    def test_disabled_owner_that_runs_novas_own_driver_by_now(self):
        self.let_go('b', ring=None)
        self.change('b', disabled=True)
        before = self.owned()
        self.assertEqual(before, self.run_passes(120, 60))
        del self.cloud.members['b']
        self.assertEqual(desired('me', 'a'), self.run_passes(60, 60))

    def test_disabled_owner_that_was_never_heard(self):
        # It may have died before this service looked.
        self.change('b', disabled=True)
        self.alive.remove('b')
        node = min(desired('me', 'a') - self.owned())
        self.configure(handover_timeout=9999)
        self.run_pass()
        self.memory = dataclasses.replace(
            self.memory, watch=membership.Watch())
        self.run_pass()
        self.wait(60)
        self.assertNotIn(node, self.run_pass())
        self.wait(59)
        self.assertNotIn(node, self.run_pass())
        self.wait(1)
        self.assertIn(node, self.run_pass())

    def test_disabled_service_gives_its_free_nodes_away(self):
        self.change('me', disabled=True)
        before = self.owned()
        instance = min(before)
        self.place(instance, 'mine', 'me')
        self.assertEqual(before, self.run_pass())
        offers = self.offers()
        self.assertEqual(before - {instance}, set(offers))
        self.assertEqual({'a', 'b'}, set(offers.values()))
        for node, taker in offers.items():
            self.record(node, taker)
        self.assertEqual({instance}, self.run_passes(600, 60))

    def test_all_are_disabled(self):
        for host in 'me', 'a', 'b':
            self.change(host, disabled=True)
        before = self.owned()
        self.assertEqual(before, self.run_pass())
        self.assertEqual({}, self.offers())

    def test_what_is_built_on_is_offered_and_not_taken(self):
        node = min(self.owned() & desired('me', 'a', 'b', 'e', by='e'))
        self.join('e')
        # It waits inside nova-compute, or is on its way there.
        self.cloud.allocations[node] = {'waits'}
        self.assertIn(node, self.run_pass())
        self.assertEqual('e', self.offers()[node])
        # Whoever takes it looks at that, and its owner asks nobody.
        self.assertNotIn('consumers', self.asked)

    def test_node_without_a_provider_is_offered(self):
        self.join('e')
        node = min(self.owned() & desired('me', 'a', 'b', 'e', by='e'))
        self.cloud.providers.discard(node)
        self.run_pass()
        self.assertEqual('e', self.offers()[node])

    def test_start_while_placement_does_not_tell_its_providers(self):
        def fail():
            raise ConnectionError('no answer')
        self.restart()
        self.before['known'] = fail
        self.run_pass()
        (found,) = self.happened(events.ProvidersUnknown)
        self.assertEqual('no answer', str(found.error))
        # After a good pass it is not asked again: the nodes have their turns.
        self.run_passes(180, 60)
        self.assertTrue(self.memory.own_work.is_said)
        self.assertNotIn('known', self.asked)
        self.assertEqual([], self.happened(events.ProvidersUnknown))

    def test_offered_node_is_not_taken_that_something_is_allocated_of(self):
        node = self._be_offered()
        self.cloud.allocations[node] = {'late'}
        for _ in range(2):
            self.assertNotIn(node, self.run_pass())
            self.assertEqual([], self.happened(events.NodeTaken))
        self.assertEqual('a', self.cloud.rows[node].owner)
        del self.cloud.allocations[node]
        self.run_pass()
        self.assertEqual('me', self.cloud.rows[node].owner)

    def _take_with_a_build_on_its_way(self) -> str:
        """Take a node of a, for which a build is on its way to a."""
        node = self._be_offered()

        def allocate() -> None:
            self.cloud.allocations[node] = {'late'}
            self.cloud.instances['late'] = model.Instance(
                None, None, is_building=True)
        # Just after it was seen that nothing is allocated.
        self.before['forget_provider'] = allocate
        self.assertIn(node, self.run_pass())
        self.assertEqual('me', self.cloud.rows[node].owner)
        self.run_passes(180, 60)
        return node

    def test_build_that_comes_to_a_giver_that_lives(self):
        self._take_with_a_build_on_its_way()
        (left,) = self.memory.handovers.builds
        self.assertEqual('a', left.host)
        self.assertTrue(self.cloud.instances['late'].is_building)
        self.cloud.instances['late'] = model.Instance('a', 'other')
        self.run_pass()
        self.assertEqual((), self.memory.handovers.builds)

    def test_build_that_dies_when_the_giver_has_begun(self):
        node = self._take_with_a_build_on_its_way()
        self.cloud.instances['late'] = model.Instance(
            'a', node, True, 'networking')
        self.run_passes(1200, 60)
        self.force_down('a')
        self.run_pass()
        self.assertTrue(self.cloud.instances['late'].is_given_up)
        self.assertEqual(set(), self.cloud.allocations[node])

    def test_build_that_cannot_be_ended_at_once(self):
        node = self._take_with_a_build_on_its_way()
        self.run_passes(1200, 60)
        self.force_down('a')
        self.before['end_build'] = _fail
        self.run_pass()
        self.run_pass()
        self.assertTrue(self.cloud.instances['late'].is_given_up)
        self.assertEqual(set(), self.cloud.allocations[node])

    def test_givers_that_cannot_be_looked_at(self):
        self._take_with_a_build_on_its_way()
        before = self.memory.handovers.builds
        # Instances may have been taken over in this pass.
        self.before['services'] = lambda: self.before.update(services=_fail)
        self.run_pass()
        self.assertEqual(1, len(self.happened(events.HandoversUnknown)))
        self.assertEqual(before, self.memory.handovers.builds)

    def test_build_that_dies_with_the_giver(self):
        node = self._take_with_a_build_on_its_way()
        self.force_down('a')
        self.run_pass()
        self.assertTrue(self.cloud.instances['late'].is_given_up)
        self.assertEqual(set(), self.cloud.allocations[node])
        self.assertEqual([events.BuildEnded(node, 'late', 'a')],
                         self.happened(events.BuildEnded))

    def test_build_that_dies_with_a_giver_that_has_no_node_left(self):
        node = self._take_with_a_build_on_its_way()
        for each, row in self.cloud.rows.items():
            if row.owner == 'a':
                self.record(each, 'b')
        self.run_pass()
        self.assertTrue(self.cloud.instances['late'].is_building)
        self.die('a')
        self.run_passes(120, 60)
        self.assertTrue(self.cloud.instances['late'].is_given_up)
        self.assertEqual(set(), self.cloud.allocations[node])

    def test_build_that_waits_here_when_the_giver_dies(self):
        self._take_with_a_build_on_its_way()
        self.tracker.process.waiting_builds = lambda: {'late'}
        self.force_down('a')
        self.run_pass()
        self.assertTrue(self.cloud.instances['late'].is_building)

    def test_handover_is_looked_at_once(self):
        node = self._be_offered()
        self.run_pass()
        self.assertEqual({node: 'a'}, self.memory.handovers.givers)
        self.run_pass()
        self.assertEqual(1, self.asked.count('unused'))
        self.assertEqual({}, self.memory.handovers.givers)
        self.run_pass()
        self.assertNotIn('unused', self.asked)

    def test_nothing_is_taken_when_about_to_end(self):
        node = self._be_offered()
        self.tracker.process.is_ending = lambda: True
        self.assertNotIn(node, self.run_pass())
        self.assertIs(Decision.WAIT, self.decisions()[node])


class AtOnceTestCase(base.PassTestCase):
    """A service with Nova's own driver, in a forecast."""

    SETTINGS = settings.Settings('me', cooperative=False)

    def test_by_the_ring_whoever_owns_a_node(self):
        for node in NODES[1:]:
            self.record(node, 'a')
        self.record(NODES[0], 'b')
        self.assertEqual(desired('me', 'a', 'b'), self.run_pass())
        self.assertEqual(desired('me', 'a', 'b'), self.owned())
        self.force_down('b')
        self.assertEqual(desired('me', 'a'), self.run_pass())

    def test_nothing_more_is_read(self):
        self.force_down('b')
        self.place(min(desired('me', 'a', 'b')), 'theirs', 'b')
        self.run_pass()
        self.assertEqual(1, self.asked.count('services'))
        for call in 'rows', 'instances':
            self.assertNotIn(call, self.asked)

    def test_instances(self):
        own, theirs = sorted(desired('me', 'a', 'b'))[:2]
        of_others = min(set(NODES) - desired('me', 'a', 'b'))
        self.place(of_others, 'mine', 'me')
        self.place(theirs, 'theirs', 'a')
        listed = self.run_pass()
        self.assertIn(own, listed)
        self.assertIn(of_others, listed)
        self.assertNotIn(theirs, listed)
        self.assertEqual({'theirs'}, self.result.orphans)


class DifferentRingsTestCase(base.PassTestCase):
    """Services that acknowledge different rings."""

    def setUp(self):
        super().setUp()
        for host in 'a', 'b':
            self.let_go(host)
        self.run_pass()

    def _pass(self, **rings: str | None) -> None:
        """Run a pass after some others, which acknowledge these rings."""
        self.wait(60)
        for host in 'a', 'b':
            self.let_go(host, ring=rings.get(host, self.ring()))
        self.run_pass()

    def _told(self) -> list[events.Event]:
        return [each for each in self.result.happened if isinstance(
            each, (events.RingsDiffer, events.RingsAgree))]

    def _pass_often(self, passes: int, **rings: str | None
                    ) -> list[list[events.Event]]:
        """Run passes, and return what is told in each."""
        told = []
        for _ in range(passes):
            self._pass(**rings)
            told.append(self._told())
        return told

    def _differ(self) -> None:
        self._pass_often(5, a='other')
        self.assertEqual({'a'}, self.memory.agreement.lasting)

    def test_it_is_told_once(self):
        self.assertEqual(
            [[], [], [], [], [events.RingsDiffer(frozenset('a'))], [], []],
            self._pass_often(7, a='other'))
        self.assertEqual(
            [[events.RingsDiffer(frozenset('b'))] if number == 4 else []
             for number in range(6)],
            self._pass_often(6, a='other', b='third'))
        self.assertEqual([[], [events.RingsAgree(frozenset('ab'))], []], [
            *self._pass_often(1, a=None, b=None), *self._pass_often(2)])

    def test_for_some_passes(self):
        for _ in range(3):
            self.assertEqual(4 * [[]], self._pass_often(4, a='other'))
            self.assertEqual([[]], self._pass_often(1))

    def test_other_is_lost(self):
        self._differ()
        self.force_down('a')
        self._pass(a='other')
        self.assertEqual([], self._told())
        self.assertEqual(frozenset(), self.memory.agreement.lasting)

    def test_other_settings(self):
        self._pass_often(4, a='other')
        self.configure(pass_interval=59)
        self.assertEqual(
            [[], [], [], [], [events.RingsDiffer(frozenset('a'))]],
            self._pass_often(5, a='other'))

    def test_blackout(self):
        self._pass_often(4, a='other')
        self.tracker.process.longest_gap = lambda since: 36.0
        self._pass(a='other')
        self.assertEqual({}, self.memory.agreement.since)
        self.tracker.process.longest_gap = lambda since: 0.0
        self.assertEqual(4 * [[]], self._pass_often(4, a='other'))

    def test_own_passes_that_fail(self):
        self._pass_often(3, a='other')
        for _ in range(6):
            self.before['has_provider'] = _fail
            self._pass(a='other')
            self.assertEqual([], self._told())

    def test_stranger(self):
        self.configure(peers=frozenset({'me', 'a'}))
        self._pass_often(5, b='other')
        self.assertEqual({'b'}, self.memory.agreement.lasting)

    def test_no_node_goes_from_one_to_the_other(self):
        node = min(self.owned())
        self.record(node, 'a')
        self._pass_often(20, a='other')
        self.assertEqual('a', self.cloud.rows[node].owner)
        self._pass()
        self.assertEqual('me', self.cloud.rows[node].owner)


class StartTestCase(base.PassTestCase):
    """A service that starts takes care not to disturb the others."""

    def setUp(self):
        super().setUp()
        self.cloud.rows.clear()
        self.cloud.members.clear()
        self.restart()

    def _start(self) -> None:
        """Do what Nova does until the first heartbeat."""
        self.assertEqual(set(), self.run_pass())
        self.assertIs(Trust.STARTING, self.memory.view.trust)
        self.wait(10)

    def _run_unknown_pass(self) -> set[str]:
        """Run a pass that does not find the record of this service."""
        self.cloud.members.pop('me', None)
        return self.run_pass()

    def test_newcomer(self):
        self.give_all_to('a', 'b')
        self._start()
        # Nothing before the others agree.
        self.assertEqual(set(), self.run_passes(100, 10))
        node, other = sorted(desired('me', 'a', 'b'))[:2]
        self.assertIs(Decision.WAIT, self.decisions()[node])
        self.record(node, 'c')
        self.cloud.beat('c')
        self.change('c', disabled=True)
        self.let_go('c')
        self.assertEqual({node}, self.run_pass())
        # It waits for the rest as long as any other service.
        self.assertIn(other, self.memory.waits)
        self.assertEqual(desired('me', 'a', 'b'), self.run_passes(30, 10))

    def test_newcomer_whose_record_does_not_arrive(self):
        self.give_all_to('a', 'b')
        new = max(desired('me', 'a', 'b'))
        del self.cloud.rows[new]
        offered = {node for node in desired('me', 'a', 'b') - {new}
                   if self.cloud.rows[node].owner == 'a'}
        self._start()
        for _ in range(60):
            self.wait(10)
            self.let_go('a')
            self.assertEqual(set(), self._run_unknown_pass())
        self.assertFalse(self.memory.own_work.is_known)
        self.assertEqual({}, self.memory.waits)
        self.assertEqual({new} | offered, self.run_pass())

    def test_newcomer_and_what_nobody_has(self):
        self.give_all_to('a', 'b')
        new = sorted(desired('me', 'a', 'b'))[3]
        del self.cloud.rows[new]
        self._start()
        self.assertEqual({new}, self.run_pass())
        self.assertIs(Decision.CREATE, self.decisions()[new])

    def test_newcomer_with_an_instance_to_take_over(self):
        self.give_all_to('a', 'b')
        node = min(desired('me', 'a'))
        self.place(node, 'theirs', 'b')
        self._start()
        self.force_down('b')
        self.assertEqual(set(), self._run_unknown_pass())
        self.assertIs(Decision.LEAVE_INSTANCE, self.decisions()[node])
        self.assertIn(node, self.run_pass())
        self.assertEqual('me', self.cloud.instances['theirs'].host)

    def test_newcomer_that_knows_other_newcomers(self):
        # Nobody has a node yet, and each sees the others by their records.
        for host in 'a', 'b':
            base.say(self.cloud, host)
        self._start()
        self.assertEqual(desired('me', 'a', 'b'), self.run_pass())
        self.assertEqual({'me', 'a', 'b'},
                         self.memory.view.members)

    def test_newcomer_that_knows_no_others(self):
        # They may have started, and have said nothing yet.
        self.assertEqual(set(), self.run_pass())
        self.assertEqual({'me'}, self.memory.view.members)

    def test_disabled_newcomer(self):
        self.change('me', disabled=True)
        self.give_all_to('a', 'b')
        self._start()
        self.assertEqual(set(), self.run_pass())

    def test_newcomer_that_is_about_to_end(self):
        self.give_all_to('a', 'b')
        self._start()
        self.tracker.process.is_ending = lambda: True
        self.assertEqual(set(), self.run_pass())

    def test_newcomer_whose_peers_do_not_want_it(self):
        self.give_all_to('a')
        self._start()
        for _ in range(60):
            self.wait(10)
            self.let_go('a', ring='without it')
            self.assertEqual(set(), self.run_pass())
        self.assertEqual({'a'}, self.memory.agreement.lasting)

    def test_restart(self):
        self.give_all_to('me', 'a', 'b')
        del self.cloud.rows[min(NODES)]
        mine = self.owned()
        self.alive.clear()
        for _ in range(5):
            self.wait(60)
            self.assertEqual(mine, self.run_pass())
        self.assertEqual({}, self.offers())

    def test_peers_get_twice_the_down_time_to_be_heard(self):
        self.give_all_to('me', 'a', 'b')
        mine = self.owned()
        self.alive = {'me', 'a'}
        self.run_pass()
        self.assertEqual(mine, self.run_passes(115, 5))
        self.assertEqual(desired('me', 'a'), self.run_passes(5, 5))

    def test_own_instances(self):
        self.give_all_to('a', 'b')
        self.place(NODES[0], 'mine', 'me')
        self.assertEqual({NODES[0]}, self.run_pass())

    def test_alone_on_an_empty_table(self):
        # Before there is a record of it, and before the tracker runs.
        self.cloud.services.clear()
        self.assertEqual({}, self.decide().listed)
        self.cloud.beat('me')
        self.assertEqual(set(NODES), self.run_pass())
        self.assertIs(Trust.STARTING, self.memory.view.trust)


class FailoverTestCase(base.PassTestCase):
    """What a dead service has left behind."""

    def setUp(self):
        super().setUp()
        # The ring gives these to this service once b is not there.
        self.node, self.second = sorted(
            desired('me', 'a') - desired('me', 'a', 'b'))[:2]
        self.place(self.node, 'theirs', 'b')

    def _host(self, instance: str = 'theirs') -> str | None:
        return self.cloud.instances[instance].host

    def test_service_that_is_forced_down(self):
        self.force_down('b')
        self.assertIn(self.node, self.run_pass())
        self.assertEqual('me', self._host())
        self.assertEqual('me', self.cloud.rows[self.node].owner)
        (taken,) = self.result.taken
        self.assertEqual(
            (self.node, 'theirs', 'b', None, True),
            dataclasses.astuple(taken))
        self.assertEqual(
            [events.InstanceTaken(self.node, 'theirs', 'b', True)],
            self.happened(events.InstanceTaken))
        self.assertTrue(self.happened(events.PassDone)[0].moves)
        self.assertIn(self.node, self.run_pass())
        self.assertEqual([], self.result.taken)
        self.assertIs(Decision.KEEP_INSTANCE, self.decisions()[self.node])

    def test_service_that_is_only_absent(self):
        self.die('b')
        self.assertNotIn(self.node, self.run_pass())
        self.assertNotIn(self.node, self.run_passes(3600, 60))
        self.assertEqual('b', self._host())

    def test_service_that_is_absent_for_long(self):
        self.configure(failover_after=300)
        self.run_pass()
        self.alive.remove('b')
        self.assertNotIn(self.node, self.run_passes(299, 1))
        self.wait(1)
        self.assertIn(self.node, self.run_pass())

    def test_absence_before_this_service_has_looked_does_not_count(self):
        self.configure(failover_after=300)
        self.change('b', last_seen=clouds.EPOCH.replace(year=2025))
        self.alive.remove('b')
        self.run_pass()
        self.assertNotIn(self.node, self.run_passes(299, 1))
        self.wait(1)
        self.assertIn(self.node, self.run_pass())

    def test_service_without_a_record(self):
        del self.cloud.services['b']
        self.assertIn(self.node, self.run_pass())
        self.assertEqual('me', self._host())

    def test_disabled_and_forced_down(self):
        self.change('b', disabled=True)
        self.force_down('b')
        self.assertIn(self.node, self.run_pass())

    def test_disabled_and_alive(self):
        self.change('b', disabled=True)
        self.assertNotIn(self.node, self.run_pass())

    def test_pinned(self):
        self.configure(fails_over=False)
        self.force_down('b')
        self.assertNotIn(self.node, self.run_pass())

    def test_blackout(self):
        self.force_down('b')
        self.tracker.process.longest_gap = lambda since: 36.0
        self.assertNotIn(self.node, self.run_pass())

    def test_service_that_is_about_to_end(self):
        self.force_down('b')
        self.tracker.process.is_ending = lambda: True
        self.assertNotIn(self.node, self.run_pass())

    def _leaves_alone(self) -> None:
        """See that the instance is left alone, and told of once."""
        self.force_down('b')
        self.assertNotIn(self.node, self.run_pass())
        self.assertEqual('b', self._host())
        self.assertEqual('b', self.cloud.rows[self.node].owner)
        self.assertEqual(
            [events.InstanceElsewhere(self.node, 'theirs', 'b')],
            self.happened(events.InstanceElsewhere))
        self.assertIn('theirs', self.result.orphans)
        self.run_pass()
        self.assertEqual([], self.happened(events.InstanceElsewhere))

    def test_instance_that_nova_has_on_another_node(self):
        self.cloud.instances['theirs'] = model.Instance('b', self.second)
        self._leaves_alone()

    def test_instance_that_nova_has_on_this_node_after_all(self):
        self.cloud.instances['theirs'] = model.Instance('b', self.second)
        self._leaves_alone()
        self.place(self.node, 'theirs', 'b')
        self.assertIn(self.node, self.run_pass())

    def test_instance_that_comes_to_a_service_later(self):
        self.place(self.node, 'theirs', None)
        self.force_down('b')
        self.assertNotIn(self.node, self.run_pass())
        self.place(self.node, 'theirs', 'b')
        self.assertIn(self.node, self.run_pass())

    def test_instance_that_nova_has_on_no_node(self):
        self.cloud.instances['theirs'] = model.Instance('b', None)
        self._leaves_alone()

    def test_instance_of_a_service_with_another_driver(self):
        self.cloud.other_drivers = frozenset({'b'})
        self._leaves_alone()

    def test_instance_that_another_has_taken_over_meanwhile(self):
        self.force_down('b')
        self.before['set_instance_host'] = lambda: self.place(
            self.node, 'theirs', 'a')
        self.assertNotIn(self.node, self.run_pass())
        self.assertEqual('a', self._host())
        self.assertIs(Decision.LEAVE_INSTANCE, self.decisions()[self.node])
        self.assertIn('could not be taken',
                      self.result.plan.steps[self.node].why)
        self.assertIsNone(self.result.plan.steps[self.node].claim)
        # It is asked for anew, and not tried again.
        self.assertNotIn('theirs', self.memory.instances)
        self.run_pass()
        self.assertNotIn('set_instance_host', self.asked)

    def test_instance_that_the_owner_of_the_node_has(self):
        self.configure(follows=True)
        node = min(self.owned())
        self.place(node, 'more', 'b')
        self.record(node, 'b')
        self.run_pass()
        self.place(node, 'more', 'a')
        self.record(node, 'a')
        self.run_pass()
        self.assertEqual('a', self.memory.instances['more'].host)

    def test_build_that_is_ended(self):
        self.cloud.nodes[self.node].instance = None
        self.cloud.allocations[self.node] = {'theirs', 'later'}
        self.cloud.instances['theirs'] = model.Instance(
            None, None, is_building=True)
        self.force_down('b')
        self.assertIn(self.node, self.run_pass())
        self.assertTrue(self.cloud.instances['theirs'].is_given_up)
        self.assertEqual({'later'}, self.cloud.allocations[self.node])
        # It is an instance now.
        self.cloud.instances['later'] = model.Instance(
            'b', self.node, is_building=True)
        self.run_pass()
        self.assertEqual([events.BuildEnded(self.node, 'later', 'b')],
                         self.happened(events.BuildEnded))
        self.assertEqual((), self.memory.left_builds)

    def test_builds_of_one_that_lives_go_on(self):
        self.cloud.nodes[self.node].instance = None
        self.cloud.allocations[self.node] = {'theirs'}
        self.cloud.instances['theirs'] = model.Instance(
            None, None, is_building=True)
        self.configure(peers=frozenset({'me', 'a'}))
        self.run_passes(180, 60)
        self.assertIs(Decision.WAIT, self.decisions()[self.node])
        self.assertEqual('b', self.cloud.rows[self.node].owner)
        self.assertTrue(self.cloud.instances['theirs'].is_building)
        # It was built somewhere else.
        del self.cloud.allocations[self.node]
        self.run_passes(180, 60)
        self.assertEqual('me', self.cloud.rows[self.node].owner)

    def test_builds_for_a_node_without_a_row(self):
        self.cloud.nodes[NEW] = clouds.Node()
        self.cloud.allocations[NEW] = {'new'}
        self.cloud.instances['new'] = model.Instance(
            None, None, is_building=True)
        self.force_down('a')
        self.force_down('b')
        self.run_pass()
        self.assertTrue(self.cloud.instances['new'].is_given_up)

    def test_deleted_instance_of_a_build_is_brought_to_order(self):
        self.cloud.nodes[self.node].instance = None
        self.cloud.allocations[self.node] = {'theirs'}
        self.force_down('b')
        self.cloud.instances.clear()
        self.run_pass()
        self.cloud.instances['theirs'] = model.Instance(
            'b', self.node, task='deleting')
        self.run_pass()
        (taken,) = self.result.taken
        self.assertEqual(('theirs', 'b', 'deleting', True), (
            taken.instance, taken.host, taken.task, taken.is_dead))
        self.assertEqual('me', self._host())


class FollowTestCase(base.PassTestCase):
    """Instances that go with the ring."""

    SETTINGS = settings.Settings('me', follows=True)

    def setUp(self):
        super().setUp()
        self.node = min(desired('me', 'a', 'b')
                        & desired('me', 'a', 'b', 'e', by='e'))
        self.place(self.node, 'mine', 'me')

    def test_instance_is_offered(self):
        self.run_pass()
        self.assertNotIn(self.node, self.offers())
        self.join('e')
        self.assertIn(self.node, self.run_pass())
        self.assertEqual('e', self.offers()[self.node])
        self.assertIn(events.NodeOffered(self.node, 'e'),
                      self.happened(events.NodeOffered))
        # Who takes it waits until it is idle.
        for fields in {'task': 'rebooting'}, {'is_building': True}:
            self.place(self.node, 'mine', 'me', **fields)
            self.run_pass()
            self.assertEqual('e', self.offers()[self.node])

    def test_only_where_the_configuration_lets_it(self):
        self.configure(follows=False)
        self.join('e')
        self.run_pass()
        self.assertNotIn(self.node, self.offers())

    def _be_offered(self, **fields) -> str:
        node = max(self.owned())
        self.place(node, 'theirs', 'b', **fields)
        self.record(node, 'b')
        self.let_go('b', follows=True)
        self.tracker.drop()
        return node

    def test_what_is_offered_is_taken(self):
        node = self._be_offered()
        self.assertIn(node, self.run_pass())
        self.assertEqual('me', self.cloud.instances['theirs'].host)
        self.assertEqual('me', self.cloud.rows[node].owner)
        self.assertEqual(
            [events.InstanceTaken(node, 'theirs', 'b', False)],
            self.happened(events.InstanceTaken))
        self.assertFalse(self.result.taken[0].is_dead)

    def test_only_with_the_consent_of_its_service(self):
        node = self._be_offered()
        for said in {'follows': False}, {'ring': 'other'}, {'ring': None}:
            self.let_go('b', **{'follows': True, **said})
            self.assertNotIn(node, self.run_pass())
            self.assertIs(Decision.LEAVE_INSTANCE, self.decisions()[node])
        self.let_go('b', follows=True)
        self.assertIn(node, self.run_pass())

    def test_what_is_busy_by_now_is_not_taken(self):
        node = self._be_offered(task='rebooting')
        self.assertNotIn(node, self.run_pass())
        self.assertEqual('b', self.cloud.instances['theirs'].host)
        self.place(node, 'theirs', 'b')
        self.assertIn(node, self.run_pass())

    def test_what_is_with_another_by_now_is_not_taken(self):
        node = self._be_offered()
        self.before['set_instance_host'] = lambda: self.place(
            node, 'theirs', 'a')
        self.assertNotIn(node, self.run_pass())
        self.assertEqual('a', self.cloud.instances['theirs'].host)
        self.record(node, 'a')
        self.let_go('a', follows=True)
        self.assertIn(node, self.run_pass())

    def test_what_nova_has_on_another_node_is_not_taken(self):
        node = self._be_offered()
        self.cloud.instances['theirs'] = model.Instance('b', self.node)
        self.assertNotIn(node, self.run_pass())
        self.assertEqual('b', self.cloud.instances['theirs'].host)
