# SPDX-License-Identifier: Apache-2.0

"""Tests of what becomes of services, on a deployment that only answers."""

import dataclasses
import datetime

import fixtures

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class DrainTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.source.step = self.divide

    def test_drain_and_undrain(self):
        self.run_command('drain', 'a', '--yes', '--reason', 'a fan')
        self.assertEqual([{'host': 'a', 'disabled': True,
                           'disabled_reason': 'a fan (by alice (bob) on '
                                              'controller)'}], self.saved)
        self.assertEqual(
            [('COMMAND_BEGUN', 'a fan'), ('SERVICE_DISABLED', 'a', 'a fan'),
             ('COMMAND_ENDED', 'DONE', 'a fan')], self.written())
        self.assertRegex(
            self.err, r'\n\[ *\d+ s\] wait until its 14 free nodes are with '
            r'others: 0 left\n')
        self.assertNotIn('a', {row.owner
                               for row in self.source.seen.rows.values()})
        self.assertEqual([], self.run_steps('drain', 'a', '--yes'))
        self.assertIn('There is nothing to do', self.err)

        self.source.step = self._let_join
        self.assertEqual(
            [('ENABLE_SERVICE', 'a', 'DONE'), ('WAIT_FOR_SHARE', 'a', 'DONE')],
            self.run_steps('undrain', 'A', '--yes'))
        self.assertEqual(
            [('COMMAND_BEGUN',), ('SERVICE_ENABLED', 'a'),
             ('COMMAND_ENDED', 'DONE')], self.written()[-3:])
        self.assertIn('a', {row.owner
                            for row in self.source.seen.rows.values()})

    def _let_join(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Have a newcomer claim a node, by which its peers see it."""
        if not seen.service('a').record.disabled and not any(
                row.owner == 'a' for row in seen.rows.values()):
            return dataclasses.replace(seen, rows={
                **seen.rows, NODES[0]: dataclasses.replace(
                    seen.rows[NODES[0]], owner='a')})
        return self.divide(seen)

    def test_undrain_beside_a_ring_with_some_of_the_nodes(self):
        self.source.seen = deployment.with_a_rack(make(services=[
            service('a', disabled=True), service('b'), service('c')]))
        self.source.step = lambda seen: seen
        self.assertEqual(
            [('ENABLE_SERVICE', 'a', 'DONE'), ('WAIT_FOR_SHARE', 'a', 'DONE')],
            self.run_steps('undrain', 'a', '--yes'))

    def test_only_service_of_a_ring_with_some_of_the_nodes(self):
        self.source.seen = deployment.with_a_rack(make())
        self.assertEqual(
            [('DISABLE_SERVICE', 'c', 'DONE'),
             ('WAIT_FOR_NODES', 'c', 'DONE')],
            self.run_steps('drain', 'c', '--yes'))
        # Not by those of the group for one without a limit.
        self.source.seen = deployment.with_a_rack(make(services=[
            service('a'), service('b', 61), service('c')]))
        self.run_command('drain', 'a', '--yes', status=2)
        self.source.seen = deployment.with_a_rack(make(services=[
            service('a', 61), service('b', 61), service('c')]))
        self.run_command('drain', 'c', '--yes', status=2)
        self.assertIn('nobody could take its 10 free nodes', self.err)

    def test_one_reading(self):
        self.run_command('drain', 'a', '--yes')
        self.assertEqual(['nova', 'ironic', 'write', 'nova'],
                         self.source.asked[:4])
        # Then the databases alone.
        self.assertEqual({'nova'}, set(self.source.asked[3:]))
        self.source.asked.clear()
        self.run_command('undrain', 'a', '--dry-run')
        self.assertEqual(['nova', 'ironic'], self.source.asked)

    def test_takes_too_long(self):
        self.source.step = lambda seen: seen
        table = self.run_command(
            'drain', 'a', '--yes', '--timeout', '0', status=1)
        self.assertIn('This has not finished in 0 s', self.err)
        self.assertIn('| not done in time |', table)
        self.source.seen = make()
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'DONE'),
             ('WAIT_FOR_NODES', 'a', 'NOT_YET')],
            self.run_steps('drain', 'a', '--yes', '--timeout', '0', status=1))

    def test_nobody_would_take_them(self):
        self.source.seen = make(services=[
            service('a'), service('b', 61), service('c', disabled=True)])
        self.run_command('drain', 'a', '--yes', status=2)
        self.assertIn('nobody could take', self.err)

    def test_instances(self):
        self.source.seen = make(instances={1: 'a'})
        self.run_command('drain', 'a', '--instances', '--yes', status=2)
        self.assertIn('The 1 instance of a stays with it: ', self.err)
        self.assertIn('set [ironic_ring] instance_mobility = follow',
                      self.err)
        self.source.seen = make(instances={1: 'a'}, said=profile.Profile(
            mobility='follow'))
        self.run_command('drain', 'a', '--instances', '--dry-run')
        self.assertIn('* wait until its 1 instance is with others\n',
                      self.err)
        self.assertEqual(
            [('DISABLE_SERVICE', 'a', 'NOT_DONE'),
             ('WAIT_FOR_NODES', 'a', 'NOT_DONE'),
             ('WAIT_FOR_INSTANCES', 'a', 'NOT_DONE')],
            self.run_steps('drain', 'a', '--instances', '--dry-run'))

    def test_records_follow_the_instances(self):
        counts = []

        def step(seen):
            counts.append(len(counts))
            instance = seen.instances['instance-1']
            row = seen.rows[NODES[1]]
            return self.divide(dataclasses.replace(
                seen, instances={'instance-1': dataclasses.replace(
                    instance, host='b')}, rows={
                        **seen.rows, NODES[1]: dataclasses.replace(
                            row, owner='a' if len(counts) < 20 else 'b')}))
        self.source.seen = make(instances={1: 'a'}, said=profile.Profile(
            mobility='follow'))
        self.source.step = step
        self.assertIn(('WAIT_FOR_INSTANCES', 'a', 'DONE'), self.run_steps(
            'drain', 'a', '--instances', '--yes'))
        self.assertNotIn('a', {row.owner
                               for row in self.source.seen.rows.values()})

    def test_one_that_somebody_has_disabled(self):
        self.source.seen = make(services=[
            service('a', disabled=True, reason='bad RAM'), service('b'),
            service('c')])
        self.run_command('drain', 'a', '--yes')
        self.assertEqual([], self.saved)
        self.assertNotIn('a', {row.owner
                               for row in self.source.seen.rows.values()})

    def test_what_cannot_be_reached_meanwhile(self):
        looks = []

        def look(seen):
            looks.append(seen)
            if len(looks) == 4:
                raise errors.CommandError('Ironic is away.')
            return self.divide(seen)
        self.source.step = look
        self.run_command('drain', 'a', '--yes')
        self.assertIn('Ironic is away.', self.err)
        self.assertGreater(len(looks), 4)

    def _delete_a_later(self, seen: snapshot.Snapshot, **fields) -> None:
        """Have somebody delete the record of a while the command waits."""
        self.source.seen = dataclasses.replace(seen, services=[
            service('a', **fields), service('b'), service('c')])
        self.source.pools = dict(seen.inventories)
        self.source.step = lambda seen: seen

        def delete(context, record):
            self._update(context, record)
            self.source.pools[pools.name('a', deployment.KIND)] = (
                snapshot.Inventory(1, 1, 0))
            self.source.seen = dataclasses.replace(
                self.source.seen, services=[service('b'), service('c')])
        self.update.side_effect = delete

    def test_drain_of_one_whose_record_is_deleted_meanwhile(self):
        for made in make(), deployment.make_pooled():
            self._delete_a_later(made)
            # The others do not have its nodes yet.
            self.assertEqual(
                [('DISABLE_SERVICE', 'a', 'DONE'),
                 ('WAIT_FOR_NODES', 'a', 'NOT_YET')],
                self.run_steps('drain', 'a', '--yes', '--timeout', '0',
                               status=1))

    def test_undrain_of_one_whose_record_is_deleted_meanwhile(self):
        for made in make(), deployment.make_pooled():
            self._delete_a_later(made, disabled=True)
            self.assertEqual(
                [('ENABLE_SERVICE', 'a', 'DONE'),
                 ('WAIT_FOR_SHARE', 'a', 'NOT_YET')],
                self.run_steps('undrain', 'a', '--yes', '--timeout', '0',
                               status=1))

    def test_undrain_of_the_dead(self):
        self.source.seen = make(services=[
            service('a', 61, disabled=True), service('b')])
        self.run_command('undrain', 'a', '--yes', status=2)
        self.assertIn('The nova-compute on a is down: start it', self.err)


class FailoverTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.source.step = self.divide
        self.source.seen = make(instances={1: 'b', 2: 'b'}, services=[
            service('a'), service('b', 61), service('c')])

    def test_who_has_asked_is_in_the_history_of_each_instance(self):
        self.run_command('failover', 'b', '--yes', '--reason', 'smoke')
        self.assertEqual(
            [('instance-1', 'b', 'smoke', 'failover b --yes --reason smoke'),
             ('instance-2', 'b', 'smoke', 'failover b --yes --reason smoke')],
            [(entry.instance, entry.source, entry.reason,
              entry.author.arguments) for entry in self.actions])

    def test_it_is_forced_down_before_anything_is_written_of_it(self):
        saved = []
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.trail.actions.ask',
            lambda context, entry: saved.append(list(self.saved))))
        self.run_command('failover', 'b', '--yes')
        self.assertEqual([[{'host': 'b', 'forced_down': True}]] * 2, saved)

    def test_failover(self):
        self.assertEqual(
            [('FORCE_SERVICE_DOWN', 'b', 'DONE'),
             ('WAIT_FOR_NODES', 'b', 'DONE'),
             ('WAIT_FOR_INSTANCES', 'b', 'DONE')],
            self.run_steps('failover', 'b', '--yes'))
        self.assertEqual([{'host': 'b', 'forced_down': True}], self.saved)
        self.assertIn(('SERVICE_FORCED_DOWN', 'b'), self.written())
        self.assertNotIn('ALIVE', self.err)
        self.assertEqual({'a', 'c'}, {
            each.host for each in self.source.seen.instances.values()}
            | {'a', 'c'})
        self.assertIn('openstack compute service set --up b', self.err)

    def test_ironic_is_asked_afterwards(self):
        self.run_command('failover', 'b', '--yes')
        self.assertEqual(['nova', 'write', 'ironic'], self.source.asked[:3])
        self.assertEqual({'nova'}, set(self.source.asked[3:]))

    def test_while_ironic_is_away(self):
        self.source.away = 'Ironic is away.'
        self.assertEqual(
            [('FORCE_SERVICE_DOWN', 'b', 'DONE'),
             ('WAIT_FOR_NODES', 'b', 'DONE'),
             ('WAIT_FOR_INSTANCES', 'b', 'DONE')],
            self.run_steps('failover', 'b', '--yes'))
        self.assertIn('Ironic is away.', self.err)

    def test_with_pools_while_nobody_else_answers(self):
        self.source.away = 'Ironic is away.'
        self.source.seen = deployment.make_pooled(
            instances={1: 'b'}, services=[
                service('a'), service('b', 61), service('c')])
        self.source.step = lambda seen: seen

        def refuse(names):
            raise errors.CommandError('Placement is away.')
        self.source.inventories = refuse
        self.assertEqual(
            [('FORCE_SERVICE_DOWN', 'b', 'DONE'),
             ('WAIT_FOR_INSTANCES', 'b', 'NOT_YET')],
            self.run_steps('failover', 'b', '--yes', '--timeout', '0',
                           status=1))
        self.assertEqual([{'host': 'b', 'forced_down': True}], self.saved)

    def test_of_one_that_lives(self):
        for seen in deployment.failing(make(), 'b'), make():
            self.source.seen = seen
            self.run_command('failover', 'b', '--yes', status=2)
            self.assertIn('The nova-compute on b is alive', self.err)
            self.assertEqual([], self.saved)
        self.run_command('failover', 'b', '--alive', '--yes')
        self.assertEqual(1, len(self.saved))

    def _ask_while_it_comes_back(self, *arguments: str, status: int = 0,
                                 **fields) -> None:
        """Run the command, which the operator thinks about for long."""
        def come_back(seen):
            self.source.step = self.divide
            return dataclasses.replace(seen, services=[
                service('a'), service('b', **fields), service('c')])
        self.source.step = come_back
        self.run_command(
            'failover', 'b', *arguments, status=status, answer='y\n')

    def test_of_one_that_comes_back_before_the_answer(self):
        self._ask_while_it_comes_back(status=2)
        self.assertIn('The nova-compute on b has been heard of since',
                      self.err)
        self.assertEqual([], self.saved)
        self.assertEqual([('COMMAND_BEGUN',), ('COMMAND_ENDED', 'FAILED')],
                         self.written())

    def test_of_one_that_comes_back_and_may_live(self):
        self._ask_while_it_comes_back('--alive')
        self.assertEqual([{'host': 'b', 'forced_down': True}], self.saved)

    def test_of_one_that_comes_back_with_heartbeats_elsewhere(self):
        self.source.seen = make(instances={1: 'b', 2: 'b'}, services=[
            service('a', alive=True), service('b', alive=False),
            service('c', alive=True)])
        up = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.nova.records.liveness'
        )).mock.return_value
        up.return_value = True
        self._ask_while_it_comes_back(status=2, alive=True)
        self.assertEqual([], self.saved)
        self.source.seen = dataclasses.replace(self.source.seen, services=[
            service('a', alive=True), service('b', alive=False),
            service('c', alive=True)])
        up.return_value = False
        self.run_command('failover', 'b', '--yes')
        self.assertEqual([{'host': 'b', 'forced_down': True}], self.saved)

    def test_nobody_would_take_over(self):
        self.source.seen = make(instances={1: 'b'}, services=[
            service('a'), service('b', 61), service('c')],
            said=profile.Profile(mobility='pinned'))
        self.run_command('failover', 'b', '--yes', status=2)
        self.assertIn('a, c would not take over instances', self.err)
        self.source.seen = make('a', 'b', services=[
            service('a', 61), service('b', 61)])
        self.run_command('failover', 'b', '--yes', status=2)
        self.assertIn('nobody could take over from it', self.err)

    def test_the_passes_of_the_only_other_member_stand_still(self):
        self.source.seen = deployment.failing(make('a', 'b', services=[
            service('a'), service('b', 61)], instances={1: 'b'}), 'a')
        self.run_command('failover', 'b', '--yes', status=2)
        at = deployment.NOW - datetime.timedelta(hours=1)
        self.assertIn(f'The passes of a (since {at:%Y-%m-%d %H:%M:%S} UTC) '
                      'stand still', self.err)
