# SPDX-License-Identifier: Apache-2.0

"""Tests of the command line, on a deployment that only answers."""

from importlib import metadata
import io
import json
from unittest import mock

from cliff import commandmanager
import fixtures

from nova_ironic_ring.command import app
from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command.checks import upgrade
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import base
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class ReadingTestCase(base.CommandTestCase):

    def test_show(self):
        table = self.run_command('show')
        self.assertIn('| cell cell1 | a    | member |', table)
        self.assertNotIn('State code', table)

    def test_show_for_scripts(self):
        lines = json.loads(self.run_command('show', '-f', 'json'))
        self.assertEqual(['a', 'b', 'c'], [line['Host'] for line in lines])
        self.assertEqual({
            'Ring', 'Host', 'State', 'Nodes', 'Desired', 'To hand over',
            'Instances', 'To fail over', 'State code'}, set(lines[0]))
        self.assertEqual('MEMBER', lines[0]['State code'])

    def test_show_without_ironic(self):
        self.source.away = 'Ironic is away.'
        self.run_command('show', status=2)
        lines = json.loads(self.run_command(
            'show', '--no-ironic', '-f', 'json'))
        self.assertEqual([14, 10, 6], [line['Nodes'] for line in lines])
        self.assertEqual([14, 10, 6], [line['Desired'] for line in lines])

    def test_show_without_ironic_where_nodes_are_divided_by_shards(self):
        self.source.seen = make(said=profile.Profile(listing='shards'))
        self.run_command('show', '--no-ironic', status=2)
        self.assertIn('leave out --no-ironic', self.err)
        self.run_command('show')

    def test_each_reads_once(self):
        for arguments in (('show',), ('check',), ('plan',),
                          ('node', 'list')):
            self.source.asked.clear()
            self.run_command(*arguments)
            self.assertEqual(['nova', 'ironic'], self.source.asked)

    def test_cell_that_does_not_answer(self):
        self.source.seen = make(unread={
            'cell2': 'The database of cell cell2 cannot be reached.',
            'cell3': ''})
        for arguments in (('show',), ('plan',), ('node', 'list'),
                          ('node', 'show', 'node-3'), ('check',)):
            self.run_command(*arguments, status=1)
            self.assertIn(
                'The database of cell cell2 cannot be reached. What is said '
                'here is without this cell.\n', self.err)
            self.assertNotIn('cell3', self.err)
            self.assertNotIn('All is well', self.err)

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
        # One session for all looks.
        self.make_source.assert_called_once_with(None)

    def test_node_show(self):
        story = json.loads(self.run_command(
            'node', 'show', 'node-3', '-f', 'json'))
        self.assertEqual(NODES[3], story['Node'])
        self.assertEqual(['nova', NODES[3]], self.source.asked)
        self.assertEqual(f'{story["Owner"]}: KEEP', story['Decision'])
        self.assertEqual({
            'Owner state code': 'MEMBER', 'Decided by': story['Owner'],
            'Decision code': 'KEEP', 'To move': False}, {
                name: value for name, value in story.items()
                if 'code' in name or name in ('Decided by', 'To move')})
        self.assertNotIn('code', self.run_command('node', 'show', 'node-3'))

    def test_node_that_there_is_not(self):
        self.run_command('node', 'show', 'x', status=2)
        self.assertEqual(
            'Ironic has no node "x", and none with such a server: give the '
            'name or UUID of a node ("nova-ironic-ring node list" has them), '
            'or of the server on it ("openstack server list '
            '--all-projects").\n', self.err)

    def test_node_show_by_the_name_of_a_server(self):
        self.source.seen = make(instances={3: 'a'})
        self.assertEqual(f'{NODES[3]}\n', self.run_command(
            'node', 'show', 'server-3', '-f', 'value', '-c', 'Node'))

    def test_plan(self):
        path = self.useFixture(fixtures.TempDir()).join('plan.svg')
        table = self.run_command('plan', '--add', 'd', '--svg', path)
        self.assertIn('| d    |     0 |', table)
        self.assertIn('change hands', self.err)
        self.assertIn(f'The picture is in {path}.\n', self.err)
        self.assertNotIn('picture', table)
        with open(path, encoding='utf-8') as file:
            self.assertIn('<svg', file.read())

    def test_plan_that_cannot_be_drawn(self):
        self.run_command('plan', '--add', 'd', '--svg', '/dev/null/x',
                         status=2)
        self.assertIn('cannot be written', self.err)

    def test_plan_of_one_of_several_rings(self):
        self.source.seen = deployment.say(
            make(), 'c', conductor_group='rack')
        self.run_command('plan', '--add', 'd', status=2)
        self.assertIn('There is more than one such ring', self.err)
        self.run_command('plan', '--group', 'rack', '--add', 'd')
        self.run_command(
            'plan', '--group', 'rack', '--shard', '', '--add', 'd')
        self.run_command('plan', '--group', '', '--add', 'd')
        self.run_command('plan', '--group', '', '--remove', 'c', status=2)
        self.assertIn('its members are a, b.', self.err)
        self.run_command('plan', '--group', 'x', '--add', 'd', status=2)
        self.assertIn('There is no such ring', self.err)
        self.run_command('plan', '--partitions', '0', status=2)

    def test_plan_for_scripts(self):
        lines = json.loads(self.run_command(
            'plan', '--disable', 'b', '--remove', 'C', '-f', 'json'))
        self.assertEqual(['a', 'b', 'c'], [line['Host'] for line in lines])
        self.assertEqual({
            'Host', 'Nodes', 'Nodes after', 'Instances', 'Instances after'},
            set(lines[0]))
        self.assertEqual([30, 0, 0], [line['Nodes after'] for line in lines])

    def test_plan_that_cannot_be_made(self):
        for arguments, message in (
                (('--partitions', '0'), '--partitions has to be 1 at least.'),
                (('--partitions', '65537'), '--partitions can be 65536 at '
                 'most, as [ironic_ring] partitions can.'),
                # A variable of a script that is not set.
                (('--add', ''), '"" is no name of a service: give a host name '
                 'with --add, --remove and --disable.'),
                (('--disable', 'x'), '"x" is no member of the ring of cell '
                 'cell1: its members are a, b, c.'),
                (('--remove', 'x'), '"x" is no member of the ring of cell '
                 'cell1: its members are a, b, c.'),
                (('--add', 'A'), '"a" is a member of the ring of cell cell1 '
                 'already.'),
                (('--remove', 'a', '--disable', 'b', '--disable', 'c'),
                 'Nobody would be left in the ring of cell cell1: keep one '
                 'member.')):
            self.assertEqual('', self.run_command(
                'plan', *arguments, status=2))
            self.assertEqual(f'{message}\n', self.err)

    def test_plan_of_shards(self):
        lines = json.loads(self.run_command(
            'plan', '--listing', 'shards', '--shards', '6', '-f', 'json'))
        self.assertEqual(
            [('a', 10, 30, 10), ('b', 10, 30, 10), ('c', 10, 30, 10)],
            [(line['Host'], line['Nodes after'], line['Listed'],
              line['Listed after']) for line in lines])
        self.assertIn('All services together list 90 nodes in a pass, then '
                      '30.', self.err)
        self.assertIn('then 1.00.', self.err)
        # Nothing was changed.
        self.assertEqual({None}, {
            node.shard for node in self.source.seen.nodes.values()})
        self.assertEqual([], self.source.set)

    def test_plan_of_shards_that_there_are(self):
        self.source.seen = deployment.by_shards(make(), *'uvwxyz')
        lines = json.loads(self.run_command(
            'plan', '--listing', 'shards', '--add', 'd', '-f', 'json'))
        self.assertEqual([(10, 10), (10, 10), (10, 5), (0, 5)], sorted(
            ((line['Listed'], line['Listed after']) for line in lines),
            reverse=True))
        lines = json.loads(self.run_command(
            'plan', '--listing', 'all', '-f', 'json'))
        self.assertEqual([(10, 30)] * 3, [
            (line['Listed'], line['Listed after']) for line in lines])

    def test_plan_of_shards_that_cannot_be_made(self):
        for arguments, message in (
                (('--shards', '4'), 'add --listing shards.'),
                (('--listing', 'all', '--shards', '4'),
                 'add --listing shards.'),
                (('--listing', 'shards'), 'No node of cell cell1 is in a '
                 'shard: give their number with --shards'),
                (('--listing', 'shards', '--shards', '2'),
                 '2 shards are fewer than the 3 services'),
                (('--listing', 'shards', '--shards', '3', '--prefix', 'X'),
                 '--prefix cannot be')):
            self.run_command('plan', *arguments, status=2)
            self.assertIn(message, self.err)
            self.assertEqual(1, self.err.count('\n'))
        self.source.seen = make(said=profile.Profile(shard='x'))
        self.run_command('plan', '--listing', 'shards', status=2)
        self.assertIn('shard "x" has only one shard', self.err)

    def test_plan_without_members(self):
        self.source.seen = make(services=[
            service(host, 61) for host in 'abc'])
        self.run_command('plan', status=2)
        self.assertEqual(
            'The ring of cell cell1 has no living member: see '
            '"nova-ironic-ring show".\n', self.err)
        self.source.seen = make(services=[], rows={})
        self.run_command('plan', status=2)
        self.assertIn('There is no such ring', self.err)

    def test_plan_of_services_that_disagree(self):
        self.run_command('plan')
        self.assertNotIn('disagree', self.err)
        seen = make()
        self.source.seen = deployment.say(seen, 'b', partitions=64)
        self.run_command('plan')
        self.assertIn('The services disagree: they go by different rings. '
                      'See "nova-ironic-ring check".', self.err)

    def test_check(self):
        # Nor is there an empty line.
        self.assertEqual('', self.run_command('check'))
        self.assertEqual('All is well.\n', self.err)
        self.assertIn('| Check |', self.run_command('check', '--print-empty'))
        self.source.seen = make(services=[
            service('a'), service('b', 61), service('c')])
        table = self.run_command('check', status=1)
        self.assertIn('| services | b ', table)
        self.assertIn('| warning ', table)
        # It is for programs.
        self.assertNotIn('RECORDS_OF_LOST_SERVICE', table)
        self.assertEqual('RECORDS_OF_LOST_SERVICE\n', self.run_command(
            'check', '-f', 'value', '-c', 'Code', status=1))

    def test_check_for_scripts(self):
        self.assertEqual([], json.loads(self.run_command(
            'check', '-f', 'json')))
        self.source.seen = make(services=[
            service('a'), service('b', 61), service('c')])
        (finding,) = json.loads(self.run_command(
            'check', '-f', 'json', status=1))
        self.assertEqual({
            'Check': 'services', 'Subject': 'b', 'Severity': 'warning',
            'Code': 'RECORDS_OF_LOST_SERVICE'}, {
                name: value for name, value in finding.items()
                if name not in ('Found', 'To do')})

    def test_upgrade_check(self):
        self.assertIn('Result: Success', self.run_command('upgrade', 'check'))
        self.source.seen = make(services=[
            service('a'), service('b', 61), service('c')])
        self.assertIn('Result: Warning',
                      self.run_command('upgrade', 'check', status=1))

    def test_upgrade_check_for_scripts(self):
        lines = json.loads(self.run_command('upgrade', 'check', '-f', 'json'))
        self.assertIn({'Check': 'Drivers', 'Result': 'Success', 'Details': '',
                       'Result code': 'SUCCESS'}, lines)
        self.source.seen = make(services=[
            service('a'), service('b', 61), service('c')])
        self.assertIn('WARNING\n', self.run_command(
            'upgrade', 'check', '-f', 'value', '-c', 'Result code', status=1))

    def test_upgrade_check_runs_all_checks(self):
        (title, _), *others = upgrade.UpgradeChecks(make())._upgrade_checks
        self.assertEqual(upgrade.NOVA, title)
        self.assertEqual(list(table.CHECKS),
                         [how['check'] for _, (_, how) in others])

    def test_upgrade_check_of_nova(self):
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.names.release', return_value='35.0.0'))
        missing = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.adapters.names.missing', return_value=[])).mock

        def line(status):
            return json.loads(self.run_command(
                'upgrade', 'check', '-f', 'json', status=status))[0]
        said = line(1)
        self.assertEqual(('Release of Nova', 'WARNING'),
                         (said['Check'], said['Result code']))
        self.assertIn('On this host: Nova 35.0.0 is none', said['Details'])
        missing.return_value = ['a', 'b']
        said = line(2)
        self.assertEqual('FAILURE', said['Result code'])
        self.assertIn('On this host: Nova 35.0.0 lacks a and b, which',
                      said['Details'])
        # It is looked at once for both.
        missing.reset_mock()
        self.assertIn('Result: Failure', self.run_command(
            'upgrade', 'check', status=2))
        missing.assert_called_once_with()

    def test_upgrade_check_that_fails_where_a_cell_does_not_answer(self):
        seen = make(unread={'cell2': 'The database of cell cell2 is away.'})
        self.source.seen = deployment.say(seen, 'b', partitions=64)
        # What has to be mended is worse than what was not read.
        for arguments in (), ('-f', 'json'):
            self.run_command('upgrade', 'check', *arguments, status=2)

    def test_every_command_is_for_programs_as_well(self):
        manager = commandmanager.CommandManager('nova_ironic_ring.command')
        for name, _ in manager:
            factory, *_ = manager.find_command(name.split())
            parser = factory(mock.Mock(), None).get_parser(name)
            (choices,) = [action.choices for action in parser._actions
                          if action.dest == 'formatter']
            self.assertLessEqual({'csv', 'json', 'table', 'value', 'yaml'},
                                 set(choices), name)

    def test_node_show_as_csv(self):
        titles, values = self.run_command(
            'node', 'show', 'node-3', '-f', 'csv', '-c', 'Node', '-c',
            'Decision code').splitlines()
        self.assertEqual('"Node","Decision code"', titles)
        self.assertEqual(f'"{NODES[3]}","KEEP"', values)

    def test_what_cannot_be_reached(self):
        self.source.away = 'Ironic is away: look for it.'
        self.run_command('show', status=2)
        self.assertEqual('Ironic is away: look for it.\n', self.err)

    def test_help_says_how_it_is_run(self):
        self.assertIn('usage: nova-ironic-ring ',
                      self.run_command('help', '--help'))
        out = io.StringIO()
        self.assertRaises(
            SystemExit, app.RingApp(stdout=out).run, ['--help'])
        self.assertTrue(out.getvalue().startswith('usage: nova-ironic-ring '))

    def test_version_is_that_of_the_package(self):
        out = self.useFixture(fixtures.StringStream('stdout')).stream
        with fixtures.MonkeyPatch('sys.stdout', out):
            self.assertRaises(SystemExit, app.RingApp().run, ['--version'])
        out.seek(0)
        # Behind the name that it was called by.
        self.assertEqual(
            metadata.version('nova-ironic-ring'), out.read().split()[-1])

    def test_unknown_command(self):
        self.run_command('dance', status=2)

    def test_no_command(self):
        self.run_command('--cell', 'cell1', status=2)
        self.assertIn('Name a command: "nova-ironic-ring --help" lists them.',
                      self.err)

    def test_log_file_that_cannot_be_written(self):
        self.run_command('--log-file', '/dev/null/x', 'show', status=2)


class AskTestCase(base.CommandTestCase):

    def test_dry_run(self):
        self.run_command('drain', 'a', '--dry-run')
        self.assertIn('* disable the nova-compute on a\n', self.err)
        self.assertEqual([], self.saved)

    def test_columns_that_there_are_not(self):
        # Said before anything is done.
        self.run_command('drain', 'a', '--yes', '-c', 'x', status=2)
        self.assertIn("No recognized column names in ['x']", self.err)
        self.assertEqual([], self.saved)

    def test_nobody_to_ask(self):
        self.run_command('drain', 'a', status=2)
        self.assertIn('There is no terminal to ask on', self.err)
        self.assertEqual([], self.saved)

    def test_no(self):
        table = self.run_command('drain', 'a', answer='n\n')
        self.assertIn('| not done |', table)
        self.assertEqual([], self.saved)

    def test_yes(self):
        self.source.step = self.divide
        self.run_command('drain', 'a', answer='y\n')
        self.assertEqual(1, len(self.saved))
