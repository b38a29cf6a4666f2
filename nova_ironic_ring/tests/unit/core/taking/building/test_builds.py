# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Sequence
import dataclasses

import ddt
from oslotest import base

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds

BUILD = model.Instance('Dead', 'node', True, 'spawning')
SCHEDULED = model.Instance(None, None, True, 'scheduling')
DELETED = model.Instance('Dead', 'node', task='deleting')
GIVEN_UP = model.Instance(None, None, is_given_up=True)


@dataclasses.dataclass(frozen=True)
class _Settled:
    """What has come of a look.

    :ivar left: what is to be looked at again
    :ivar taken: the instances that were taken
    :ivar happened: the events for the log
    """

    left: tuple[observation.LeftBuild, ...] = ()
    taken: Sequence[model.Takeover] = dataclasses.field(default_factory=list)
    happened: Sequence[events.Event] = dataclasses.field(
        default_factory=list)


class _Placement(clouds.Placement):
    """A Placement that may not answer."""

    is_away = False

    def consumers(self, node):
        if self.is_away:
            raise ConnectionError('no answer')
        return super().consumers(node)

    def free(self, instance):
        if self.is_away:
            raise ConnectionError('no answer')
        super().free(instance)


class _Nova(clouds.Nova):
    """Nova, where something happens just before a change."""

    def before(self) -> None:
        """Do nothing, unless a test has replaced this."""

    def instances(self, uuids):
        uuids = list(uuids)
        if 'unanswered' in uuids:
            raise ConnectionError('no answer')
        return super().instances(uuids)

    def end_build(self, instance, host, is_claimed=True):
        self.before()
        return super().end_build(instance, host, is_claimed)

    def end_unshelve(self, instance):
        self.before()
        return super().end_unshelve(instance)

    def set_instance_host(self, instance, expected):
        self.before()
        return super().set_instance_host(instance, expected)


@ddt.ddt
class BuildsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.cloud.nodes['node'] = clouds.Node()
        self.cloud.beat('other')
        self.trust = trust.Trust.FULL
        connected = clouds.connect(self.cloud, settings.Settings('me')).world
        self.nova = _Nova(self.cloud, 'me')
        self.placement = _Placement(self.cloud)
        self.world = ports.Ports(
            self.nova, connected.ironic, self.placement, connected.process)

    def _allocate(self, **instances: model.Instance) -> None:
        self.cloud.allocations['node'] = set(instances)
        self.cloud.instances.update(instances)

    def _look(self, host: str | None = 'Dead') -> '_Settled':
        this = self._pass()
        left = builds.look(this, 'node', host)
        return _Settled(tuple(left), this.taken, this.happened)

    def _look_again(self, left: tuple[observation.LeftBuild, ...]
                    ) -> '_Settled':
        this = self._pass()
        this.memory.left_builds = left
        builds.look_again(this)
        return _Settled(
            this.memory.left_builds, this.taken, this.happened)

    def _pass(self) -> one_pass.Pass:
        return one_pass.Pass(
            self.world, settings.Settings('me'), observation.Memory(
                view=view.View(trust=self.trust)))

    def _change_before(self, change: Callable[[], object]) -> None:
        setattr(self.nova, 'before', change)

    @ddt.data(BUILD, SCHEDULED)
    def test_build_is_ended_and_its_node_is_free(self, found):
        self._allocate(new=found)
        settled = self._look()
        self.assertEqual([events.BuildEnded('node', 'new', 'Dead')],
                         settled.happened)
        self.assertEqual(((), []), (settled.left, settled.taken))
        self.assertTrue(self.cloud.instances['new'].is_given_up)
        self.assertEqual(set(), self.cloud.allocations['node'])

    @ddt.data('unshelving', 'spawning')
    def test_instance_that_was_to_be_unshelved(self, task):
        # Nova's own does so with one that fails.
        shelved = model.Instance(None, None, is_offloaded=True)
        self._allocate(new=dataclasses.replace(shelved, task=task))
        settled = self._look()
        self.assertEqual(_Settled(happened=[
            events.UnshelveEnded('node', 'new', 'Dead')]), settled)
        self.assertEqual(shelved, self.cloud.instances['new'])
        self.assertEqual(set(), self.cloud.allocations['node'])

    def test_node_that_was_reserved_for_an_unshelving(self):
        # As in a pool, where Nova has no node of it yet.
        self._allocate(new=model.Instance(
            None, None, task='spawning', is_offloaded=True))
        self.cloud.nodes['reserved'] = clouds.Node('new')
        self._look()
        self.assertIsNone(self.cloud.nodes['reserved'].instance)

    def test_unshelving_that_a_service_begins_meanwhile(self):
        self._allocate(new=model.Instance(
            None, None, task='unshelving', is_offloaded=True))
        self._change_before(lambda: self.cloud.instances.update(
            new=model.Instance('other', 'more', task='spawning',
                               is_offloaded=True)))
        settled = self._look()
        self.assertEqual(([], []), (settled.taken, settled.happened))
        self.assertEqual({'new'}, self.cloud.allocations['node'])

    @ddt.data({'is_offloaded': False, 'task': 'shelving'},
              {'is_offloaded': False, 'task': 'shelving_offloading'},
              {'is_offloaded': True, 'task': 'spawning'},
              {'is_offloaded': True, 'task': None})
    def test_what_its_service_has_to_finish_without_a_machine(self, fields):
        # Ironic has torn it down by itself, or was not told to deploy it.
        self._allocate(old=model.Instance('Dead', 'node', **fields))
        settled = self._look()
        self.assertEqual(_Settled(
            taken=[model.Takeover(
                'node', 'old', 'Dead', fields['task'], True)],
            happened=[events.InstanceTaken('node', 'old', 'Dead', True)]),
            settled)
        self.assertEqual('me', self.cloud.instances['old'].host)
        # Whoever finishes it frees that.
        self.assertEqual({'old'}, self.cloud.allocations['node'])

    def test_allocation_of_one_that_is_shelved(self):
        # Its taker has died before it was free.
        self._allocate(old=model.Instance(None, None, is_offloaded=True))
        self.assertEqual(_Settled(), self._look())
        self.assertEqual(set(), self.cloud.allocations['node'])

    def test_former_owner_that_nobody_knows(self):
        self._allocate(new=SCHEDULED, other=BUILD)
        settled = self._look(None)
        self.assertEqual([events.BuildEnded('node', 'new', None)],
                         settled.happened)
        self.assertEqual(BUILD, self.cloud.instances['other'])

    @ddt.data(model.Instance('other', 'node', True),
              model.Instance('other', 'node', task='deleting'),
              model.Instance('Dead', 'node'),
              model.Instance('Dead', 'node', task='rebooting'))
    def test_what_goes_on(self, found):
        self._allocate(new=found)
        self.assertEqual(_Settled(), self._look())
        self.assertEqual(found, self.cloud.instances['new'])
        self.assertEqual({'new'}, self.cloud.allocations['node'])

    def test_build_of_another_that_is_lost(self):
        """Its owner had the node of it, and died before it had settled."""
        self.cloud.services['other'] = dataclasses.replace(
            self.cloud.services['other'], forced_down=True)
        self._allocate(new=model.Instance('other', 'node', True),
                       elsewhere=model.Instance('other', 'another', True))
        settled = self._look()
        self.assertEqual([events.BuildEnded('node', 'new', 'other')],
                         settled.happened)
        self.assertEqual({'elsewhere'}, self.cloud.allocations['node'])

    def test_own_build_of_a_service_that_is_forced_down(self):
        self.cloud.beat('me')
        self.cloud.services['me'] = dataclasses.replace(
            self.cloud.services['me'], forced_down=True)
        mine = model.Instance('me', 'node', True, 'spawning')
        self._allocate(new=mine)
        self.assertEqual(_Settled(), self._look())
        self.assertEqual(mine, self.cloud.instances['new'])

    def test_build_of_another_while_nobody_is_trusted(self):
        self.trust = trust.Trust.BLACKOUT
        self._allocate(new=model.Instance('other', 'node', True))
        self.assertEqual([{'new'}], [
            each.consumers for each in self._look().left])

    def test_build_that_was_given_up_before(self):
        self._allocate(new=GIVEN_UP)
        self.assertEqual(_Settled(), self._look())
        self.assertEqual(set(), self.cloud.allocations['node'])

    def test_build_that_is_done_meanwhile(self):
        self._allocate(new=BUILD)
        self._change_before(lambda: self.cloud.instances.update(
            new=model.Instance('other', 'node')))
        settled = self._look()
        self.assertEqual(([], []), (settled.taken, settled.happened))
        self.assertEqual(_Settled(),
                         self._look_again(settled.left))
        self.assertEqual({'new'}, self.cloud.allocations['node'])

    def test_build_that_its_service_claims_meanwhile(self):
        # It may reserve a node next, and die: then it has the instance.
        self._allocate(new=SCHEDULED)
        self._change_before(lambda: self.cloud.instances.update(new=BUILD))
        settled = self._look()
        self.assertEqual([], settled.happened)
        self.assertEqual(BUILD, self.cloud.instances['new'])
        self.assertEqual({'new'}, self.cloud.allocations['node'])

    def _release(self, instance: model.Instance, owner: str = 'me') -> None:
        this = self._pass()
        this.memory.view = view.View(
            trust=trust.Trust.FULL, ring=ring.Ring({owner}, 1))
        this.memory.instances = {'new': instance}
        self.cloud.nodes['node'] = clouds.Node('new')
        builds.release_ended(this, {'node': 'new', 'free': None})

    def test_node_that_was_reserved_after_the_build_had_ended(self):
        self._release(GIVEN_UP)
        self.assertIsNone(self.cloud.nodes['node'].instance)

    def test_node_that_stays_reserved(self):
        for instance, owner in (
                (BUILD, 'me'), (SCHEDULED, 'me'), (GIVEN_UP, 'other'),
                (model.Instance(None, None), 'me'),
                (model.Instance('me', 'node', is_given_up=True), 'me')):
            with self.subTest(instance=instance):
                self._release(instance, owner)
                self.assertEqual('new', self.cloud.nodes['node'].instance)

    def test_build_that_has_reached_ironic_meanwhile(self):
        # Its service was silent alone, and goes on.
        self._allocate(new=BUILD)
        self.cloud.nodes['node'] = clouds.Node('new')
        settled = self._look()
        self.assertEqual((frozenset({'new'}),), tuple(
            each.consumers for each in settled.left))
        self.assertEqual(BUILD, self.cloud.instances['new'])
        self.assertEqual({'new'}, self.cloud.allocations['node'])
        # Which fails after all.
        self.cloud.nodes['node'] = clouds.Node()
        self.assertEqual(
            [events.BuildEnded('node', 'new', 'Dead')],
            self._look_again(settled.left).happened)

    @ddt.data(SCHEDULED, BUILD)
    def test_build_that_the_owner_of_another_node_has_written_there(
            self, found):
        self._allocate(new=found)
        self.cloud.nodes['elsewhere'] = clouds.Node('new')
        settled = self._look()
        self.assertEqual([events.BuildEnded('node', 'new', 'Dead')],
                         settled.happened)
        self.assertEqual(set(), self.cloud.allocations['node'])

    def test_build_that_nova_has_on_another_node_by_now(self):
        self._allocate(new=model.Instance('Dead', 'other', True, 'spawning'))
        self.cloud.nodes['other'] = clouds.Node('new')
        self.assertEqual([], self._look().happened)

    def test_delete_is_finished(self):
        # Also where it is a build that is deleted.
        for is_building in False, True:
            found = model.Instance('Dead', 'node', is_building, 'deleting')
            self._allocate(old=found)
            settled = self._look()
            self.assertEqual(
                [model.Takeover('node', 'old', 'Dead', 'deleting', True)],
                settled.taken)
            self.assertEqual((), settled.left)
            self.assertEqual(
                [events.InstanceTaken('node', 'old', 'Dead', True)],
                settled.happened)
            self.assertEqual('me', self.cloud.instances['old'].host)
            self.assertEqual({'old'}, self.cloud.allocations['node'])

    def test_delete_that_is_done_but_for_its_allocation(self):
        self._allocate(old=model.Instance('Dead', 'node', is_deleted=True))
        settled = self._look()
        self.assertEqual(
            [model.Takeover('node', 'old', 'Dead', None, True)],
            settled.taken)
        self.assertEqual('me', self.cloud.instances['old'].host)

    def test_delete_that_its_service_finishes(self):
        """It was only silent, and is back: it is looked at again."""
        self._allocate(old=DELETED)
        self.cloud.beat('Dead')
        # One that is disabled may be back as well.
        for is_disabled in False, True:
            self.cloud.services['dead'] = dataclasses.replace(
                self.cloud.services['dead'], disabled=is_disabled)
            settled = self._look()
            self.assertEqual([], settled.taken)
            self.assertEqual([frozenset({'old'})], [
                each.consumers for each in settled.left])
        self.assertEqual('Dead', self.cloud.instances['old'].host)
        self.trust = trust.Trust.STARTING
        del self.cloud.services['dead']
        self.assertEqual([], self._look().taken)
        # It has died again.
        self.trust = trust.Trust.FULL
        self.assertEqual(['old'], [
            each.instance for each in self._look().taken])

    def test_build_that_its_service_goes_on_with(self):
        """It was only silent, is back, and has claimed the node."""
        self._allocate(new=model.Instance('Dead', 'node', is_building=True))
        self.cloud.beat('Dead')
        settled = self._look()
        self.assertEqual([frozenset({'new'})], [
            each.consumers for each in settled.left])
        self.assertFalse(self.cloud.instances['new'].is_given_up)
        # It has died again.
        del self.cloud.services['dead']
        self.assertFalse(self._look().left)
        self.assertTrue(self.cloud.instances['new'].is_given_up)

    def test_delete_that_another_was_faster_with(self):
        self._allocate(old=DELETED)
        self._change_before(lambda: self.cloud.instances.update(
            old=model.Instance('other', 'node')))
        self.assertEqual(_Settled(), self._look())
        self.assertEqual('other', self.cloud.instances['old'].host)

    def test_delete_on_another_node(self):
        self._allocate(old=model.Instance('Dead', 'more', task='deleting'))
        self.assertEqual(_Settled(), self._look())
        self.assertEqual('Dead', self.cloud.instances['old'].host)

    def test_no_allocation(self):
        self.cloud.instances['new'] = BUILD
        self.assertEqual(_Settled(), self._look())

    def test_placement_does_not_answer(self):
        self._allocate(new=BUILD)
        self.placement.is_away = True
        settled = self._look()
        (event,) = settled.happened
        self.assertEqual(('node', None, 'Dead'), (
            event.node, event.instance, event.host))
        self.assertEqual([], settled.taken)
        self.assertEqual(BUILD, self.cloud.instances['new'])
        # A build that comes meanwhile comes to this service.
        self._allocate(new=BUILD, old=GIVEN_UP, mine=SCHEDULED)
        left = settled.left
        for _ in range(2 * observation.LOOKS):
            left = self._look_again(left).left
        self.placement.is_away = False
        self.assertEqual((), self._look_again(left).left)
        self.assertTrue(self.cloud.instances['new'].is_given_up)
        self.assertEqual({'mine'}, self.cloud.allocations['node'])
        self.assertEqual(SCHEDULED, self.cloud.instances['mine'])

    def test_looks_without_an_answer_of_placement_do_not_count(self):
        self.cloud.beat('Dead')
        self._allocate(new=BUILD)
        self.placement.is_away = True
        left = self._look().left
        for _ in range(2 * observation.LOOKS):
            left = self._look_again(left).left
        self.assertEqual([(observation.LOOKS, True)], [
            (each.looks, each.is_unread) for each in left])
        # Those that have an answer do.
        self.placement.is_away = False
        left = self._look_again(left).left
        for looks in reversed(range(1, observation.LOOKS)):
            left = self._look_again(left).left
            self.assertEqual([(looks, False)], [
                (each.looks, each.is_unread) for each in left])
        self.assertEqual((), self._look_again(left).left)

    def test_allocation_that_cannot_be_freed_yet(self):
        self._allocate(new=BUILD)
        self._change_before(
            lambda: setattr(self.placement, 'is_away', True))
        this = self._pass()
        this.memory.left_builds = tuple(builds.look(this, 'node', 'Dead'))
        self.assertEqual(
            [events.BuildEnded, events.BuildNotEnded],
            [type(event) for event in this.happened])
        # However long that takes.
        for _ in range(2 * observation.LOOKS):
            builds.look_again(this)
            builds.free_again(this)
        self.assertEqual({'new'}, self.cloud.allocations['node'])
        self.placement.is_away = False
        builds.free_again(this)
        self.assertEqual(set(), self.cloud.allocations['node'])
        self.assertEqual(frozenset(), this.memory.unfreed)

    def test_allocation_of_what_is_unshelved_again(self):
        shelved = model.Instance(None, None, is_offloaded=True)
        this = self._pass()
        for change, is_freed, is_left in (
                ({'task': 'unshelving'}, False, True),
                ({'host': 'a', 'node': 'node'}, False, False),
                ({}, True, False)):
            self._allocate(i=dataclasses.replace(shelved, **change))
            this.memory.unfreed = frozenset({'i'})
            builds.free_again(this)
            self.assertEqual((is_freed, is_left), (
                not self.cloud.allocations['node'],
                bool(this.memory.unfreed)), change)
        # Nova deletes it with the instance.
        del self.cloud.instances['i']
        this.memory.unfreed = frozenset({'i'})
        builds.free_again(this)
        self.assertEqual(frozenset(), this.memory.unfreed)

    def test_consumer_that_is_no_instance_yet(self):
        self._allocate(new=BUILD)
        self.cloud.allocations['node'].add('later')
        settled = self._look()
        self.assertEqual(
            (observation.LeftBuild('node', 'Dead', frozenset({'later'})),),
            settled.left)
        settled = self._look_again(settled.left)
        self.assertEqual(9, settled.left[0].looks)
        self.cloud.instances['later'] = SCHEDULED
        settled = self._look_again(settled.left)
        self.assertEqual(_Settled(happened=[
            events.BuildEnded('node', 'later', 'Dead')]), settled)

    def test_it_is_looked_for_it_ten_times(self):
        left = (observation.LeftBuild('node', 'Dead', frozenset({'x'})),)
        for _ in range(9):
            left = self._look_again(left).left
            self.assertEqual(1, len(left))
        self.assertEqual((), self._look_again(left).left)

    def test_nova_does_not_answer_about_one_of_them(self):
        self._allocate(old=DELETED)
        settled = self._look_again((
            observation.LeftBuild('node', 'Dead', frozenset({'old'})),
            observation.LeftBuild('n2', 'Dead', frozenset({'unanswered'})),
            observation.LeftBuild('n3', 'Dead', frozenset({'later'}))))
        # It is this service's now, and has to be looked after.
        self.assertEqual(['old'], [each.instance for each in settled.taken])
        self.assertEqual([('n2', 9), ('n3', 9)], [
            (each.node, each.looks) for each in settled.left])
        _, event = settled.happened
        self.assertEqual(('n2', None), (event.node, event.instance))

    def test_build_that_waits_for_its_turn_here(self):
        self.cloud.instances['new'] = SCHEDULED
        self.cloud.allocations['node'] = {'new'}
        self.world.process.waiting.add('new')
        self.assertEqual(_Settled(),
                         self._look())
        self.assertEqual(SCHEDULED, self.cloud.instances['new'])


class HandoverTestCase(base.BaseTestCase):
    """A node that Giver, which lives, has handed over."""

    LEFT = observation.LeftBuild('node', 'Giver', frozenset({'new'}))

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud(allocations={'node': {'new'}})
        self.cloud.nodes['node'] = clouds.Node()
        self.world = clouds.connect(
            self.cloud, settings.Settings('me')).world

    def _look(self, node: str) -> observation.Handovers:
        this = one_pass.Pass(
            self.world, settings.Settings('me'), observation.Memory(
                handovers=observation.Handovers({'node': 'Giver'})))
        builds.look_at_handover(this, node)
        return this.memory.handovers

    def test_what_is_allocated(self):
        self.assertEqual(
            observation.Handovers({}, (self.LEFT,)), self._look('node'))

    def test_nothing_is_allocated(self):
        self.cloud.allocations.clear()
        self.assertEqual(observation.Handovers(), self._look('node'))

    def test_node_that_was_not_handed_over(self):
        self.assertEqual(observation.Handovers({'node': 'Giver'}),
                         self._look('another'))

    def test_build_that_has_not_come_anywhere(self):
        self.cloud.instances['new'] = SCHEDULED
        (left,) = builds.of_live_givers(self.world.nova, (self.LEFT,))
        self.assertEqual(frozenset({'new'}), left.consumers)

    def test_build_that_has_come_to_another_service(self):
        self.cloud.instances['new'] = BUILD
        self.assertEqual(
            (), builds.of_live_givers(self.world.nova, (self.LEFT,)))

    def test_build_that_the_giver_has_begun(self):
        self.cloud.instances['new'] = model.Instance(
            'Giver', 'node', True, 'spawning')
        for _ in range(20):
            (left,) = builds.of_live_givers(self.world.nova, (self.LEFT,))
        # However long it waits.
        self.assertEqual(self.LEFT, left)

    def test_unshelving_that_has_not_come_to_an_end(self):
        for host, task in ((None, 'unshelving'), (None, 'spawning'),
                           ('Giver', 'spawning')):
            self.cloud.instances['new'] = model.Instance(
                host, None, task=task, is_offloaded=True)
            self.assertEqual((self.LEFT,), builds.of_live_givers(
                self.world.nova, (self.LEFT,)))
        self.cloud.instances['new'] = model.Instance(
            None, None, is_offloaded=True)
        self.assertEqual(
            (), builds.of_live_givers(self.world.nova, (self.LEFT,)))

    def test_build_that_ironic_has(self):
        self.assertEqual((), builds.not_deployed(
            (self.LEFT,), {'node': 'new'}))
        self.assertEqual(
            (self.LEFT,), builds.not_deployed((self.LEFT,), {
                'node': 'another', 'elsewhere': 'new'}))

    def test_instance_that_nova_does_not_know_yet(self):
        left, looks = (self.LEFT,), 0
        while left:
            left = builds.of_live_givers(self.world.nova, left)
            looks += 1
        self.assertEqual(self.LEFT.looks + 1, looks)
