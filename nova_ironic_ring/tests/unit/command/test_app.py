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

"""Tests of what the command does, on a deployment that only answers."""

import contextlib
import dataclasses
import io
import json

import fixtures
import nova.conf
from nova import exception
from nova import objects
from oslotest import base

from nova_ironic_ring.command import app
from nova_ironic_ring.command import errors
from nova_ironic_ring.command import snapshot
from nova_ironic_ring import conf
from nova_ironic_ring import membership
from nova_ironic_ring import profile
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class FakeSource:
    """A deployment that changes as a real one would, a step at each look."""

    def __init__(self, seen: snapshot.Snapshot) -> None:
        self.seen = seen
        self.deleted: list[str] = []
        #: What becomes of it after each look.
        self.step = lambda seen: seen
        #: Nodes that are enrolled again after the first look.
        self.enrolled: set[str] = set()

    def read(self, providers: bool = False) -> snapshot.Snapshot:
        seen, self.seen = self.seen, self.step(self.seen)
        return seen

    @contextlib.contextmanager
    def cell_of(self, name):
        assert name == 'cell1'
        yield 'context'

    def has_node(self, node: str) -> bool:
        return node in self.seen.nodes or node in self.enrolled

    def delete_provider(self, node: str) -> None:
        self.deleted.append(node)
        self.seen = dataclasses.replace(
            self.seen,
            providers=(self.seen.providers or frozenset()) - {node})


class _Terminal(io.StringIO):

    def isatty(self) -> bool:
        return True


class CommandTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.useFixture(fixtures.MockPatchObject(app, 'configure'))
        conf.register_opts(nova.conf.CONF)
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.command.work._POLL', 0))
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.command.app._WATCH_INTERVAL', 0))
        self.source = FakeSource(make())
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.command.source.Source',
            side_effect=lambda cell: self.source))
        self.saved: list[dict] = []
        self.useFixture(fixtures.MockPatchObject(
            objects.Service, 'get_by_compute_host',
            side_effect=self._service))
        self.update = self.useFixture(fixtures.MockPatch(
            'nova.compute.api.HostAPI')).mock().service_update
        self.update.side_effect = self._update

    def _service(self, context, host):
        record = self.source.seen.service(host).record
        found = objects.Service(
            host=host, disabled=record.disabled, disabled_reason=None,
            forced_down=record.forced_down)
        found.obj_reset_changes()
        return found

    def _update(self, context, record):
        changes = {name: getattr(record, name)
                   for name in record.obj_what_changed()}
        self.saved.append({'host': record.host} | changes)
        self.source.seen = dataclasses.replace(self.source.seen, services=[
            dataclasses.replace(each, record=dataclasses.replace(
                each.record, **{name: value for name, value in changes.items()
                                if name != 'disabled_reason'}))
            if each.record.host == record.host else each
            for each in self.source.seen.services])

    def run_command(self, *arguments: str, status: int = 0,
                    answer: str | None = None) -> str:
        """Run the command, and return what it prints."""
        out, err = io.StringIO(), io.StringIO()
        stdin = io.StringIO() if answer is None else _Terminal(answer)
        ran = app.RingApp(stdin=stdin, stdout=out, stderr=err)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            result = ran.run(list(arguments))
        self.err = err.getvalue()
        self.assertEqual(status, result, out.getvalue() + self.err)
        return out.getvalue()

    def _divide(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Have two nodes go where they should be."""
        current = seen.ring(seen.keys()[0])
        if not current.members:
            return seen
        rows = dict(seen.rows)
        moved = 0
        for node, row in seen.rows.items():
            owner = current.owner(node)
            held = seen.nodes[node].instance
            if row.owner != owner and moved < 2 and (
                    held is None or seen.state(row.owner)
                    is membership.State.FORCED_DOWN):
                rows[node] = dataclasses.replace(row, owner=owner)
                seen = self._give(seen, held, owner) if held else seen
                moved += 1
        return dataclasses.replace(seen, rows=rows)

    def _give(self, seen: snapshot.Snapshot, instance: str, host: str
              ) -> snapshot.Snapshot:
        return dataclasses.replace(seen, instances={
            **seen.instances, instance: dataclasses.replace(
                seen.instances[instance], host=host)})


class ReadingTestCase(CommandTestCase):

    def test_show(self):
        table = self.run_command('show')
        self.assertIn('| cell cell1 | a    | member |', table)

    def test_show_for_scripts(self):
        lines = json.loads(self.run_command('show', '-f', 'json'))
        self.assertEqual(['a', 'b', 'c'], [line['Host'] for line in lines])
        self.assertEqual({
            'Ring', 'Host', 'State', 'Nodes', 'Desired', 'To hand over',
            'Instances', 'To fail over'}, set(lines[0]))

    def test_watch(self):
        looks = []

        def look(seen):
            looks.append(seen)
            if len(looks) == 3:
                raise KeyboardInterrupt()
            return seen
        self.source.step = look
        self.run_command('show', '--watch')
        self.assertEqual(3, len(looks))

    def test_node_show(self):
        story = json.loads(self.run_command(
            'node', 'show', 'node-3', '-f', 'json'))
        self.assertEqual(NODES[3], story['Node'])
        self.assertIn('KEEP', story['Decision'])

    def test_node_that_there_is_not(self):
        self.run_command('node', 'show', 'x', status=2)
        self.assertEqual(
            'Ironic has no node "x": see "openstack baremetal node list" for '
            'those that it has.\n', self.err)

    def test_plan(self):
        path = self.useFixture(fixtures.TempDir()).join('plan.svg')
        table = self.run_command('plan', '--add', 'd', '--svg', path)
        self.assertIn('| d    |     0 |', table)
        self.assertIn('change hands', self.err)
        with open(path, encoding='utf-8') as file:
            self.assertIn('<svg', file.read())

    def test_plan_that_cannot_be_drawn(self):
        self.run_command('plan', '--add', 'd', '--svg', '/dev/null/x',
                         status=2)
        self.assertIn('cannot be written', self.err)

    def test_plan_of_one_of_several_rings(self):
        seen = make()
        rows = {node: dataclasses.replace(
            row, profile=profile.Profile(conductor_group='rack'))
            if row.owner == 'c' else row for node, row in seen.rows.items()}
        self.source.seen = dataclasses.replace(seen, rows=rows)
        self.run_command('plan', '--add', 'd', status=2)
        self.assertIn('There is more than one such ring', self.err)
        self.run_command('plan', '--group', 'rack', '--add', 'd')
        self.run_command('plan', '--group', 'x', '--add', 'd', status=2)
        self.assertIn('There is no such ring', self.err)
        self.run_command('plan', '--partitions', '0', status=2)

    def test_check(self):
        self.run_command('check')
        self.assertEqual('All is well.\n', self.err)
        self.source.seen = make(services=[
            service('a'), service('b', 61), service('c')])
        self.assertIn('services', self.run_command('check', status=1))

    def test_upgrade_check(self):
        self.assertIn('Result: Success', self.run_command('upgrade', 'check'))
        self.source.seen = make(services=[
            service('a'), service('b', 61), service('c')])
        self.assertIn('Result: Warning',
                      self.run_command('upgrade', 'check', status=1))

    def test_what_cannot_be_reached(self):
        self.source.read = lambda: (_ for _ in ()).throw(
            errors.CommandError('Ironic is away: look for it.'))
        self.run_command('show', status=2)
        self.assertEqual('Ironic is away: look for it.\n', self.err)

    def test_unknown_command(self):
        self.run_command('dance', status=2)


class AskTestCase(CommandTestCase):

    def test_dry_run(self):
        self.run_command('drain', 'a', '--dry-run')
        self.assertIn('* disable the nova-compute on a\n', self.err)
        self.assertEqual([], self.saved)

    def test_nobody_to_ask(self):
        self.run_command('drain', 'a', status=2)
        self.assertIn('There is no terminal to ask on', self.err)
        self.assertEqual([], self.saved)

    def test_no(self):
        self.run_command('drain', 'a', answer='n\n')
        self.assertEqual([], self.saved)

    def test_yes(self):
        self.source.step = self._divide
        self.run_command('drain', 'a', answer='y\n')
        self.assertEqual(1, len(self.saved))


class DrainTestCase(CommandTestCase):

    def setUp(self):
        super().setUp()
        self.source.step = self._divide

    def test_drain_and_undrain(self):
        self.run_command('drain', 'a', '--yes', '--reason', 'a fan')
        self.assertEqual([{'host': 'a', 'disabled': True,
                           'disabled_reason': 'a fan'}], self.saved)
        self.assertRegex(self.err, r'\[#{30}\] +\d+ s, 0 nodes of a to wait')
        self.assertNotIn('a', {row.owner
                               for row in self.source.seen.rows.values()})
        self.run_command('drain', 'a', '--yes')
        self.assertIn('There is nothing to do', self.err)

        self.source.step = self._let_join
        self.run_command('undrain', 'A', '--yes')
        self.assertIn('a', {row.owner
                            for row in self.source.seen.rows.values()})

    def _let_join(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Have a newcomer claim a node, by which its peers see it."""
        if not seen.service('a').record.disabled and not any(
                row.owner == 'a' for row in seen.rows.values()):
            return dataclasses.replace(seen, rows={
                **seen.rows, NODES[0]: dataclasses.replace(
                    seen.rows[NODES[0]], owner='a')})
        return self._divide(seen)

    def test_takes_too_long(self):
        self.source.step = lambda seen: seen
        self.run_command('drain', 'a', '--yes', '--timeout', '0', status=1)
        self.assertIn('This has not come about in 0 s', self.err)

    def test_nobody_would_take_them(self):
        self.source.seen = make(services=[
            service('a'), service('b', 61), service('c', disabled=True)])
        self.run_command('drain', 'a', '--yes', status=2)
        self.assertIn('nobody could take', self.err)

    def test_instances(self):
        self.source.seen = make(instances={1: 'a'})
        self.run_command('drain', 'a', '--instances', '--yes', status=2)
        self.assertIn('set [ironic_ring] instance_mobility = follow',
                      self.err)
        self.source.seen = make(instances={1: 'a'}, said=profile.Profile(
            mobility='follow'))
        self.run_command('drain', 'a', '--instances', '--dry-run')
        self.assertIn('* wait until its 1 instances are with others',
                      self.err)

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
            return self._divide(seen)
        self.source.step = look
        self.run_command('drain', 'a', '--yes')
        self.assertIn('Ironic is away.', self.err)
        self.assertGreater(len(looks), 4)

    def test_undrain_of_the_dead(self):
        self.source.seen = make(services=[
            service('a', 61, disabled=True), service('b')])
        self.run_command('undrain', 'a', '--yes', status=2)
        self.assertIn('The nova-compute on a is down: start it', self.err)


class FailoverTestCase(CommandTestCase):

    def setUp(self):
        super().setUp()
        self.source.step = self._divide
        self.source.seen = make(instances={1: 'b', 2: 'b'}, services=[
            service('a'), service('b', 61), service('c')])

    def test_failover(self):
        self.run_command('failover', 'b', '--yes')
        self.assertEqual([{'host': 'b', 'forced_down': True}], self.saved)
        self.assertNotIn('ALIVE', self.err)
        self.assertEqual({'a', 'c'}, {
            each.host for each in self.source.seen.instances.values()}
            | {'a', 'c'})
        self.assertIn('openstack compute service set --up b', self.err)

    def test_of_one_that_lives(self):
        self.source.seen = make()
        self.run_command('failover', 'b', '--yes', status=2)
        self.assertIn('The nova-compute on b is alive', self.err)
        self.assertEqual([], self.saved)
        self.run_command('failover', 'b', '--alive', '--yes')
        self.assertEqual(1, len(self.saved))

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


class MoveTestCase(CommandTestCase):

    def setUp(self):
        super().setUp()
        self.source.seen = make(instances={1: 'b', 2: 'a'})
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.failover.take_offered', side_effect=self._take))
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all_by_host',
            side_effect=lambda context, host: [objects.ComputeNode(
                host=host, hypervisor_type=self.hypervisor)]))
        self.hypervisor = 'ironic'
        self.is_busy = False

    def _take(self, context, host, node, estate, strangers):
        self.assertEqual((NODES[1], 'instance-1', 'b'),
                         (node, estate.instance, estate.host))
        if self.is_busy:
            return False
        seen = self._give(self.source.seen, 'instance-1', host)
        self.source.seen = dataclasses.replace(seen, rows={
            **seen.rows,
            node: dataclasses.replace(seen.rows[node], owner=host)})
        return True

    def test_move(self):
        self.run_command('move', 'node-1', 'C', '--yes')
        self.assertEqual('c', self.source.seen.rows[NODES[1]].owner)
        self.run_command('move', 'node-1', 'c', '--yes')
        self.assertIn('There is nothing to do', self.err)

    def test_busy_by_now(self):
        self.is_busy = True
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('Something is being done with instance', self.err)

    def test_what_cannot_be_moved(self):
        busy = dataclasses.replace(
            self.source.seen.instances['instance-2'], is_idle=False)
        self.source.seen = dataclasses.replace(
            self.source.seen, instances={
                **self.source.seen.instances, 'instance-2': busy})
        for arguments, message in (
                (('node-3', 'c'), 'has no instance: free nodes are where'),
                (('node-2', 'c'), 'Something is being done with instance'),
                (('node-1', 'x'), 'There is no nova-compute on "x"'),
                (('node-99', 'c'), 'Ironic has no node "node-99"')):
            self.run_command('move', *arguments, '--yes', status=2)
            self.assertIn(message, self.err)

    def test_what_nova_has_elsewhere(self):
        seen = self.source.seen
        self.source.seen = dataclasses.replace(seen, instances={
            **seen.instances, 'instance-1': dataclasses.replace(
                seen.instances['instance-1'], node='kvm-1')})
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('and Nova has it on kvm-1', self.err)

    def test_what_is_of_a_host_with_another_hypervisor(self):
        self.hypervisor = 'QEMU'
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('b has nodes that are not of Ironic', self.err)

    def test_where_it_cannot_go(self):
        self.source.seen = dataclasses.replace(self.source.seen, services=[
            service('a'), service('b'), service('c', 61)])
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('The nova-compute on c is down', self.err)
        self.source.seen = make(instances={1: 'b'}, said=profile.Profile(
            mobility='follow'))
        self.run_command('move', 'node-1', 'c', '--yes', status=2)
        self.assertIn('and would go back', self.err)


class CleanTestCase(CommandTestCase):

    def setUp(self):
        super().setUp()
        nodes = dict(self.source.seen.nodes)
        del nodes[NODES[3]]
        self.source.seen = dataclasses.replace(self.source.seen, nodes=nodes)
        self.rows: list[str] = []
        self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNodeList, 'get_all_by_uuids',
            side_effect=lambda context, uuids: [
                objects.ComputeNode(uuid=uuid) for uuid in uuids]))
        self.destroy = self.useFixture(fixtures.MockPatchObject(
            objects.ComputeNode, 'destroy', autospec=True,
            side_effect=lambda row: self.rows.append(row.uuid))).mock

    def test_rows(self):
        self.run_command('clean', 'rows', '--dry-run')
        self.assertEqual([], self.rows)
        self.assertIn(f'* delete the row of node {NODES[3]}', self.err)
        self.run_command('clean', 'rows', '--yes')
        self.assertEqual([NODES[3]], self.rows)
        self.assertEqual([NODES[3]], self.source.deleted)

    def test_providers(self):
        self.run_command('clean', 'providers', '--yes')
        self.assertIn('There is nothing to do', self.err)
        rows = dict(self.source.seen.rows)
        del rows[NODES[3]]
        self.source.seen = dataclasses.replace(self.source.seen, rows=rows)
        self.run_command('clean', 'providers', '--yes')
        self.assertEqual([NODES[3]], self.source.deleted)
        self.assertEqual([], self.rows)

    def test_node_that_is_back(self):
        self.source.enrolled = {NODES[3]}
        self.run_command('clean', 'rows', '--yes', status=1)
        self.assertEqual([], self.rows)
        self.assertIn('is in Ironic: nothing of it is removed', self.err)

    def test_too_many(self):
        self.source.seen = dataclasses.replace(self.source.seen, nodes={})
        for kind in 'rows', 'providers':
            self.run_command('clean', kind, '--yes', status=2)
            self.assertIn('may see all nodes', self.err)
            self.source.seen = dataclasses.replace(self.source.seen, rows={})
        self.assertEqual([], self.source.deleted + self.rows)

    def test_row_that_its_service_has_removed(self):
        looks = []

        def look(seen):
            looks.append(seen)
            return dataclasses.replace(seen, rows={}) if (
                len(looks) == 1) else seen
        self.source.step = look
        self.run_command('clean', 'rows', '--yes')
        self.assertEqual([], self.rows)

    def test_row_that_another_has_by_now(self):
        self.destroy.side_effect = exception.ObjectActionError(
            action='destroy', reason='host changed')
        self.run_command('clean', 'rows', '--yes', status=1)
        self.assertIn('host changed', self.err)
