# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Mapping

import ddt
from oslotest import base

from nova_ironic_ring.core.deciding.decisions import Decision
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds

PATIENCE = 120


class _Nova(clouds.Nova):
    """Nova, where something happens just before a call."""

    before: dict[tuple[str, str], Callable[[], object]] = {}

    def _tell(self, call: str, about: str = '') -> None:
        self.before.pop((call, about), lambda: None)()

    def rows(self, nodes):
        self._tell('rows')
        return super().rows(nodes)

    def instances(self, uuids):
        self._tell('instances')
        return super().instances(uuids)

    def delete_row(self, node, owner):
        self._tell('delete_row', node)
        return super().delete_row(node, owner)

    def set_instance_host(self, instance, expected):
        self._tell('set_instance_host', instance)
        return super().set_instance_host(instance, expected)


def _fail() -> None:
    raise ConnectionError('no answer')


class TakeoverTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        for number in '1', '2', '3':
            self.cloud.nodes[f'n{number}'] = clouds.Node(f'i{number}')
            self.cloud.rows[f'n{number}'] = clouds.Row('Dead')
            self.cloud.instances[f'i{number}'] = model.Instance(
                'Dead', f'n{number}', task='rebooting')
        #: What each service reads in the beginning.
        self.seen = dict(self.cloud.instances)
        self.memory = observation.Memory()
        self.world = self._world('me')
        assert isinstance(self.world.nova, _Nova)
        self.before = self.world.nova.before = {}

    def _world(self, host: str) -> ports.Ports:
        connected = clouds.connect(self.cloud, settings.Settings(host)).world
        return ports.Ports(
            _Nova(self.cloud, host), connected.ironic, connected.placement,
            connected.process)

    def _take(self, *nodes: str, host: str = 'me',
              decision: Decision = Decision.FAIL_OVER) -> one_pass.Pass:
        return self._take_all(dict.fromkeys(nodes, decision), host)

    def _take_all(self, decided: Mapping[str, Decision], host: str = 'me'
                  ) -> one_pass.Pass:
        """Have a service take over what is decided on.

        :returns: its pass
        """
        memory = self.memory if host == 'me' else observation.Memory(
            without_row={'n1': -PATIENCE})
        memory.watch = membership.Watch(self.cloud.now)
        this = one_pass.Pass(
            self.world if host == 'me' else self._world(host),
            settings.Settings(host, handover_timeout=PATIENCE), memory)
        plan = takeover.take_over(
            this, planner.Plan({node: planner.Step(decision, 'so')
                                for node, decision in decided.items()}),
            observation.Observation(
                0, view.View(),
                {node: each.instance
                 for node, each in self.cloud.nodes.items()}, {},
                observation.Instances(of_others=self.seen)))
        self.lost = {node for node, step in plan.steps.items()
                     if step.decision is Decision.LEAVE_INSTANCE}
        return this

    def _none_taken(self, this: one_pass.Pass) -> None:
        self.assertEqual(([], []), (this.taken, this.happened))

    def _hosts(self) -> dict[str, str | None]:
        return {uuid: instance.host
                for uuid, instance in self.cloud.instances.items()}


class FailOverTestCase(TakeoverTestCase):

    def test_row_and_instance(self):
        outcome = self._take('n1', 'n2')
        self.assertEqual(
            [model.Takeover('n1', 'i1', 'Dead', 'rebooting', True),
             model.Takeover('n2', 'i2', 'Dead', 'rebooting', True)],
            outcome.taken)
        self.assertEqual(set(), self.lost)
        self.assertEqual(
            [events.InstanceTaken('n1', 'i1', 'Dead', True),
             events.InstanceTaken('n2', 'i2', 'Dead', True)],
            outcome.happened)
        # The tracker brings the rows back.
        self.assertEqual({'n3'}, set(self.cloud.rows))
        self.assertEqual({'i1': 'me', 'i2': 'me', 'i3': 'Dead'},
                         self._hosts())

    def test_task_as_it_is_by_now(self):
        self.cloud.instances['i1'] = model.Instance(
            'Dead', 'n1', task='deleting')
        self.assertEqual('deleting', self._take('n1').taken[0].task)

    def test_nothing_to_take(self):
        self.before['rows', ''] = _fail
        self.memory.without_row = {'n1': 0}
        self._none_taken(self._take())
        self.assertEqual({}, self.memory.without_row)

    def test_rows_are_read_before_instances(self):
        # Another has deleted the row and changed the instance in between: the
        # row that is there by now is that one's, and must not be deleted.
        def take_and_record() -> None:
            self._take('n1', host='other')
            self.cloud.rows['n1'] = clouds.Row('other')
        for call in 'rows', 'instances':
            self.cloud.rows['n1'] = clouds.Row('Dead')
            self.cloud.instances['i1'] = model.Instance('Dead', 'n1')
            self.before[call, ''] = take_and_record
            self._take('n1')
            self.assertEqual({'n1'}, self.lost)
            self.assertEqual('other', self.cloud.instances['i1'].host)
            self.assertEqual('other', self.cloud.rows['n1'].owner)

    def test_row_that_another_was_faster_with(self):
        self.before['delete_row', 'n1'] = lambda: self.cloud.rows.pop('n1')
        self._take('n1', 'n2')
        self.assertEqual({'n1'}, self.lost)
        self.assertEqual('Dead', self.cloud.instances['i1'].host)

    def test_row_that_has_another_owner_by_now(self):
        self.before['delete_row', 'n1'] = (
            lambda: self.cloud.rows.update(n1=clouds.Row('other')))
        self._take('n1')
        self.assertEqual({'n1'}, self.lost)
        self.assertEqual('other', self.cloud.rows['n1'].owner)

    def test_instance_that_another_was_faster_with(self):
        for found in (model.Instance('other', 'n1'),
                      model.Instance('Dead', 'n2'), None):
            self.cloud.rows['n1'] = clouds.Row('Dead')
            self.cloud.instances['i1'] = model.Instance('Dead', 'n1')

            def change(found=found) -> None:
                del self.cloud.instances['i1']
                if found:
                    self.cloud.instances['i1'] = found
            self.before['set_instance_host', 'i1'] = change
            self._take('n1')
            self.assertEqual({'n1'}, self.lost)
            self.assertEqual(found, self.cloud.instances.get('i1'))

    def test_task_that_a_user_has_asked_for_meanwhile(self):
        # It is in the queue of the dead service: the recovery has to know it.
        def rescue() -> None:
            self.cloud.instances['i1'] = model.Instance(
                'Dead', 'n1', task='rescuing')
        self.before['set_instance_host', 'i1'] = rescue
        self.assertEqual(['rescuing'], [
            each.task for each in self._take('n1').taken])
        self.assertEqual('me', self.cloud.instances['i1'].host)

    def test_instance_that_has_another_service_already(self):
        # Then its row is left alone as well.
        for found in model.Instance('other', 'n1'), None:
            self.cloud.instances.pop('i1')
            if found:
                self.cloud.instances['i1'] = found
            self._take('n1')
            self.assertEqual({'n1'}, self.lost)
            self.assertIn('n1', self.cloud.rows)
            self.cloud.instances['i1'] = model.Instance('Dead', 'n1')

    def test_two_services_at_any_time(self):
        # The other does all of it just before each call.
        for call in (('rows', ''), ('instances', ''), ('delete_row', 'n1'),
                     ('set_instance_host', 'i1')):
            self.cloud.rows['n1'] = clouds.Row('Dead')
            self.cloud.instances['i1'] = model.Instance('Dead', 'n1')
            others = []

            def take(others=others) -> None:
                others.append(self._take('n1', host='other'))
            self.before[call] = take
            outcome = self._take('n1')
            takers = [name for name, each in (
                ('me', outcome), ('other', others[0])) if each.taken]
            self.assertEqual([self.cloud.instances['i1'].host], takers, call)

    def test_row_that_is_missing(self):
        # Another may be at it, unless it has died over it.
        del self.cloud.rows['n1']
        self._take('n1')
        self.assertEqual({'n1'}, self.lost)
        self.assertEqual({'n1': 0}, self.memory.without_row)
        self.cloud.now = PATIENCE - 1
        self._take('n1')
        self.assertEqual({'n1'}, self.lost)
        self.cloud.now = PATIENCE
        self._take('n1')
        self.assertEqual(set(), self.lost)
        self.assertEqual('me', self.cloud.instances['i1'].host)

    def test_row_that_comes_back(self):
        row = self.cloud.rows.pop('n1')
        self._take('n1')
        self.cloud.rows['n1'] = row
        self.cloud.instances['i1'] = model.Instance('other', 'n1')
        self.cloud.now = PATIENCE
        self._take('n1')
        self.assertEqual({}, self.memory.without_row)
        # It counts from anew.
        del self.cloud.rows['n1']
        self.cloud.instances['i1'] = model.Instance('Dead', 'n1')
        self._take('n1')
        self.assertEqual({'n1'}, self.lost)

    def test_one_failure_does_not_stop_the_others(self):
        for call in (('delete_row', 'n1'), ('set_instance_host', 'i2')):
            self.before[call] = _fail
        outcome = self._take('n1', 'n2', 'n3')
        self.assertEqual(['n3'], [each.node for each in outcome.taken])
        self.assertEqual({'n1', 'n2'}, self.lost)
        self.assertEqual(
            ['i1', 'i2'],
            [each.instance for each in outcome.happened
             if isinstance(each, events.InstanceNotTaken)])
        # The second has lost its row, and is taken when nobody else has.
        self._take('n2')
        self.assertEqual({'n2'}, self.lost)
        self.cloud.now = PATIENCE
        self._take('n2')
        self.assertEqual(set(), self.lost)

    def test_nova_stands_still_in_the_middle(self):
        # The services may be back by then.
        def stand_still() -> None:
            self.cloud.now += settings.Settings('me').down_time
        self.before['set_instance_host', 'i1'] = stand_still
        outcome = self._take('n1', 'n2', 'n3')
        self.assertEqual(['n1'], [each.node for each in outcome.taken])
        self.assertEqual({'n2', 'n3'}, self.lost)
        self.assertEqual({'n2', 'n3'}, set(self.cloud.rows))
        # The next look sees to them.
        self._take('n2', 'n3')
        self.assertEqual(set(), self.lost)

    def test_service_that_is_to_end_in_the_middle(self):
        def end() -> None:
            self.world.process.is_ending = lambda: True
        self.before['set_instance_host', 'i1'] = end
        outcome = self._take('n1', 'n2', 'n3')
        self.assertEqual(['n1'], [each.node for each in outcome.taken])

    def test_so_many_at_a_time(self):
        for number in range(4, 600):
            self.cloud.nodes[f'n{number}'] = clouds.Node(f'i{number}')
            self.cloud.rows[f'n{number}'] = clouds.Row('Dead')
            self.cloud.instances[f'i{number}'] = model.Instance(
                'Dead', f'n{number}')
        self.seen = dict(self.cloud.instances)
        # Those that another may be at do not stand in the way.
        for number in range(4, 20):
            del self.cloud.rows[f'n{number}']
        outcome = self._take(*self.cloud.nodes)
        self.assertEqual(500, len(outcome.taken))
        self.assertEqual(99, len(self.lost))

    def test_nova_does_not_answer(self):
        for call in 'rows', 'instances':
            self.before[call, ''] = _fail
            self.assertRaises(ConnectionError, self._take, 'n1')
            self.assertEqual('Dead', self.cloud.rows['n1'].owner)

    def test_instance_without_a_service(self):
        self.seen['i1'] = model.Instance(None, 'n1')
        self._none_taken(self._take('n1'))
        self.assertEqual(set(), self.lost)


@ddt.ddt
class FollowTestCase(TakeoverTestCase):

    def _follow(self, *nodes: str) -> one_pass.Pass:
        return self._take(*nodes, decision=Decision.TAKE_INSTANCE)

    def setUp(self):
        super().setUp()
        for number in '1', '2', '3':
            self.cloud.instances[f'i{number}'] = self.seen[
                f'i{number}'] = model.Instance('Dead', f'n{number}')
        self._say(self._ring())

    def _ring(self) -> str:
        return self.memory.view.ring.fingerprint(settings.Scope())

    def _say(self, ring: str | None) -> None:
        """Have the service of the instances acknowledge a ring."""
        self.cloud.members['dead'] = model.Member(
            scope=settings.Scope(), ring=ring, follows=True)

    @ddt.data('other', None)
    def test_service_that_acknowledges_another_ring_by_now(self, ring):
        self.before['instances', ''] = lambda: self._say(ring)
        self._none_taken(self._follow('n1'))
        self.assertEqual({'n1'}, self.lost)

    def test_service_without_a_record_by_now(self):
        self.before['instances', ''] = self.cloud.members.clear
        self._none_taken(self._follow('n1'))
        self.assertEqual({'n1'}, self.lost)

    def test_instance_that_is_busy_for_now(self):
        busy = model.Instance('Dead', 'n1', task='rebooting')
        self.cloud.instances['i1'] = self.seen['i1'] = busy
        self._none_taken(self._follow('n1'))
        self.cloud.instances['i1'] = model.Instance('Dead', 'n1')
        self.assertEqual([model.Takeover('n1', 'i1', 'Dead', None, False)],
                         self._follow('n1').taken)

    def test_instance_alone(self):
        outcome = self._follow('n1')
        self.assertEqual(
            [model.Takeover('n1', 'i1', 'Dead', None, False)],
            outcome.taken)
        self.assertEqual(
            [events.InstanceTaken('n1', 'i1', 'Dead', False)],
            outcome.happened)
        # The row follows in the tracker.
        self.assertEqual('Dead', self.cloud.rows['n1'].owner)

    @ddt.data(model.Instance('Dead', 'n1', task='rebooting'),
              model.Instance('other', 'n1'),
              model.Instance('Dead', 'n2'))
    def test_instance_that_is_not_as_it_was(self, found):
        self.cloud.instances['i1'] = found
        outcome = self._follow('n1')
        self.assertEqual(({'n1'}, []), (self.lost, outcome.taken))
        self.assertEqual(found, self.cloud.instances['i1'])

    def test_one_failure_does_not_stop_the_others(self):
        self.before['set_instance_host', 'i2'] = _fail
        outcome = self._take_all({
            'n1': Decision.FAIL_OVER, 'n2': Decision.TAKE_INSTANCE,
            'n3': Decision.TAKE_INSTANCE})
        # Those have to be looked after.
        self.assertEqual(['n1', 'n3'],
                         [each.node for each in outcome.taken])
        self.assertEqual({'n2'}, self.lost)
        self.assertIn('i2', [
            each.instance for each in outcome.happened
            if isinstance(each, events.InstanceNotTaken)])

    @ddt.data(*(each for each in Decision if not each.takes_instance))
    def test_other_decisions(self, decision):
        self._none_taken(self._take('n1', decision=decision))
