# SPDX-License-Identifier: Apache-2.0

"""Tests of what the documentation promises to programs."""

import contextlib
import dataclasses
import io
import pathlib
import re
from unittest import mock

from cliff import commandmanager
import fixtures
from nova.db.main import models
from oslotest import base

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.adapters.nova import tables
from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command.access import writing
from nova_ironic_ring.command import app
from nova_ironic_ring.command.checks import findings
from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command.checks import upgrade
from nova_ironic_ring.command import looking_back
from nova_ironic_ring.command import reading
from nova_ironic_ring.command import steps
from nova_ironic_ring.command.telling import nodes
from nova_ironic_ring.command.telling import overview
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.tests.fixtures import nova_database
from nova_ironic_ring.tests.fixtures import pages
from nova_ironic_ring.tests.unit.command import base as command_base
from nova_ironic_ring.tests.unit.command import deployment

_DOCS = pathlib.Path(__file__).parents[4] / 'doc/source'
_PAGE = _DOCS / 'command.rst'


class DocsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.page = _PAGE.read_text()

    def _tables(self, columns: int) -> set[tuple[str, ...]]:
        """Return the first columns of the lines of all tables."""
        pattern = r'   \* - (\w+)\n' + r'     - (.*)\n' * (columns - 1)
        return set(re.findall(pattern, self.page))

    def test_findings(self):
        self.assertLessEqual(
            {(code.name, code.kind, code.severity.value)
             for code in findings.FindingCode}, self._tables(3))

    def test_states(self):
        self.assertLessEqual({(code.name,) for code in overview.StateCode},
                             {line[:1] for line in self._tables(2)})

    def test_decisions(self):
        self.assertLessEqual(
            {(code.name,) for code in decisions.Decision}
            | {(nodes.NONE,), (nodes.COUNT,)},
            {line[:1] for line in self._tables(2)})

    def test_history(self):
        page = (_DOCS / 'history.rst').read_text()
        cells = re.findall(r'   \* - ([A-Z_, ]+)\n', page)
        described = set(re.findall(r'[A-Z_]{4,}', ' '.join(cells)))
        self.assertEqual(
            {code.name for kind in (audit.Code, looking_back.RecordCode)
             for code in kind},
            described)
        for name in audit.ACTIONS.values():
            self.assertIn(f'   * - ``{name}``\n', page)

    def test_tour(self):
        """The tour shows what the commands print now."""
        page = (_DOCS / 'tour.rst').read_text()
        self.assertEqual(
            [upgrade.NOVA, *(check.title for check in table.CHECKS)],
            re.findall(r'    \| Check: (.*?) *\|\n', page))
        seen = deployment.make()
        fields = list(nodes.explain(seen, next(iter(seen.nodes.values()))))
        shown = re.findall(
            r'    \| Field .*\n    \+[-+]+\n((?:    \| .*\n)+)', page)
        self.assertTrue(shown)
        for fields_shown in shown:
            self.assertEqual(
                [each for each in fields
                 if each not in reading.NodeShow.codes],
                re.findall(r'    \| (.*?) +\| ', fields_shown))

    def test_steps(self):
        self.assertLessEqual(
            {(code.name,) for kind in (steps.StepAction, steps.ResultCode)
             for code in kind}, {line[:1] for line in self._tables(2)})

    def test_states_of_services(self):
        page = (_DOCS / 'monitoring.rst').read_text()
        for state in membership.State:
            self.assertIn(state.name, page)

    def test_options_of_the_driver(self):
        known = {option.name for option in conf.ring_opts}
        for page in pages.pages():
            self.assertLessEqual(set(re.findall(
                r'\[ironic_ring\]\s+(\w+)', page.read_text())), known, page)


class CommandLinesTestCase(base.BaseTestCase):

    def test_commands_and_options(self):
        # A plugin of devstack and a secret of Kubernetes are called so, too.
        found = list(pages.typed(
            '(?<!enable_plugin )(?<!generic )nova-ironic-ring|'
            r'tools/lab(?: --name \w+)? ring'))
        self.assertGreater(len(found), 70)
        self.useFixture(fixtures.MonkeyPatch(
            'sys.stderr', errors_of := io.StringIO()))
        for each in found:
            if each.words[0] in ('COMMAND', 'help'):
                continue
            try:
                pages.check(self, app.RingApp(), each)
            except (SystemExit, ValueError) as error:
                self.fail(f'{each}: {error} {errors_of.getvalue()}')


# What the page says of an exit status, and the world in which that is so.
_PHRASES = {
    (0, 'done'): 'well',
    (0, 'found nothing'): 'well',
    (0, 'not to be done'): 'dry_run',
    (0, 'no node fits'): 'none_fits',
    (0, 'nothing is known since then'): 'since',
    (0, 'the end of ``--watch``'): 'watched',
    (0, 'the services disagree'): 'disagreeing',
    (1, 'a cell does not answer'): 'unread',
    (1, 'found something, of either severity'): 'dead disagreeing',
    (1, 'found something to look at'): 'dead',
    (1, 'has not come about in time, and goes on'): 'stuck',
    (2, 'could not'): 'away',
    (2, 'could not, also where a cell does not answer'): 'away unread',
    (2, 'could not with one node at least'): 'failing',
    (2, 'found what has to be mended first'): 'disagreeing',
    (2, 'there is no such record'): 'unknown',
}
_WORLDS = {world for worlds in _PHRASES.values() for world in worlds.split()}


def _documented() -> dict[str, set[tuple[int, str]]]:
    """Return the exit codes of each command on the page, and their phrases."""
    page = _PAGE.read_text()
    table = page[page.index('Exit codes\n---'):page.index('"Not to be done"')]
    return {
        name: {(status, ' '.join(phrase.split()))
               for status, cell in enumerate(cells)
               for phrase in cell.split(';') if phrase.strip()}
        for name, *cells in re.findall(
            r'   \* - ``([a-z ]+)``\n'
            r'     -(.*(?:\n       .*)*)\n     -(.*(?:\n       .*)*)\n'
            r'     -(.*(?:\n       .*)*)\n', table)}


class ExitCodesTestCase(command_base.CommandTestCase):
    """Each command in each world exits with what the page says, and no other.

    A world is a method, which returns the arguments that are added.
    """

    #: For each command what it is given, so that it has something to do.
    COMMANDS: dict[str, tuple[str, ...]] = {
        'show': (), 'node list': (), 'node show': ('node-3',), 'plan': (),
        'check': (), 'upgrade check': (), 'drain': ('a', '--yes'),
        'undrain': ('a', '--yes'), 'failover': ('a', '--alive', '--yes'),
        'move': ('node-1', 'node-2', 'c', '--yes'), 'clean': ('rows', '--yes'),
        'shard': ('--shards', '4', '--yes'), 'history': ('server-1',)}

    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_database.NovaDatabase())
        self.busy: set[str] = set()
        for name, method in (
                ('give_instance', self._give),
                ('destroy_record', lambda cell, node: True)):
            self.useFixture(fixtures.MockPatchObject(
                writing.CellWriter, name, method))

    def _give(self, uuid, expected, host):
        if uuid in self.busy:
            raise errors.CommandError('Something is being done with it.')
        self.source.seen = self.give(self.source.seen, uuid, host)

    def _begin(self, name: str) -> None:
        """Have a world in which all is well, and there is something to do."""
        seen = deployment.make(
            instances={1: 'b', 2: 'a'} if name == 'move' else {}, services=[
                deployment.service('a', disabled=name == 'undrain'),
                deployment.service('b'), deployment.service('c')])
        if name == 'clean':
            nodes = dict(seen.nodes)
            del nodes[deployment.NODES[3]]
            seen = dataclasses.replace(seen, nodes=nodes)
        if name == 'undrain':
            seen = self._settle(seen)
        self.source = command_base.FakeSource(seen)
        self.source.context = self.nova.context()
        self.source.step = self._settle
        self.busy.clear()
        self.name = name

    def _settle(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Have all nodes be where they should be at once."""
        current = ring.Ring([
            each.record.host for each in seen.services
            if not each.record.disabled
            and seen.state(each.record.host).lives], 32)
        held = {instance.node: instance.host
                for instance in seen.instances.values()}
        return dataclasses.replace(seen, rows={
            node: dataclasses.replace(row, owner=held.get(
                node) or str(current.owner(node)))
            for node, row in seen.rows.items()})

    def _well(self) -> tuple[str, ...]:
        return ()

    def _dry_run(self) -> tuple[str, ...]:
        return ('--dry-run',)

    def _none_fits(self) -> tuple[str, ...]:
        return ('--decision', 'OFFER')

    def _since(self) -> tuple[str, ...]:
        return ('--since', '2999-01-01')

    def _watched(self) -> tuple[str, ...]:
        self.source.step = mock.Mock(side_effect=[
            self.source.seen, KeyboardInterrupt()])
        return ('--watch',)

    def _disagreeing(self) -> tuple[str, ...]:
        self.source.seen = deployment.say(
            self.source.seen, 'b', partitions=64)
        return ()

    def _dead(self) -> tuple[str, ...]:
        self.source.seen = dataclasses.replace(self.source.seen, services=[
            deployment.service(
                each.record.host, 61 if each.record.host == 'b' else 0,
                disabled=each.record.disabled)
            for each in self.source.seen.services])
        return ()

    def _unread(self) -> tuple[str, ...]:
        away = 'The database of cell cell2 is away.'
        self.source.seen = dataclasses.replace(
            self.source.seen, unread={'cell2': away})
        found, entered = self.source.cells(), self.source.cell_of

        def cell_of(name):
            if name == 'cell2':
                raise errors.CommandError(away)
            return entered(name)
        self.source.cell_of = cell_of
        self.source.cells = lambda: [
            *found, tables.Cell('uuid2', 'cell2', '')]
        return ()

    def _stuck(self) -> tuple[str, ...]:
        self.source.step = lambda seen: seen
        return ('--timeout', '0')

    def _away(self) -> tuple[str, ...]:
        def raise_error(*arguments):
            raise errors.CommandError('The API database is away.')
        self.source.step = self.source.cells = raise_error
        return ()

    def _failing(self) -> tuple[str, ...]:
        node = deployment.NODES[3]
        self.busy.add('instance-1')
        self.source.busy[node] = 'Node 3 is locked.'
        self.source.enrolled.add(node)
        return ()

    def _unknown(self) -> tuple[str, ...]:
        nova = self.useFixture(nova_database.NovaDatabase())
        with nova.writing() as session:
            session.query(models.Instance).delete()
        self.source.context = nova.context()
        return ()

    def _takes(self, option: str) -> bool:
        """Say whether a command has an option."""
        manager = commandmanager.CommandManager('nova_ironic_ring.command')
        factory, *_ = manager.find_command(self.name.split())
        return option in factory(
            mock.Mock(), None).get_parser('')._option_string_actions

    def _status(self, name: str, world: str) -> int | None:
        """Return the exit status of a command in a world.

        :returns: None if it does not take the options of that world
        """
        self._begin(name)
        more = getattr(self, f'_{world}')()
        if not all(self._takes(each) for each in more[:1]):
            return None
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return app.RingApp(
                stdin=io.StringIO(), stdout=out, stderr=io.StringIO()).run(
                    [*name.split(), *self.COMMANDS[name], *more])

    def test_all_commands_are_there(self):
        manager = commandmanager.CommandManager('nova_ironic_ring.command')
        names = {name for name, _ in manager}
        self.assertEqual(names, _documented().keys())
        self.assertEqual(names, self.COMMANDS.keys())

    def test_page_and_code(self):
        for name, documented in _documented().items():
            self.assertLessEqual(documented, _PHRASES.keys(), name)
            said = {(status, world) for status, phrase in documented
                    for world in _PHRASES[status, phrase].split()}
            statuses = {world: self._status(name, world)
                        for world in sorted(_WORLDS)}
            for status, world in sorted(said):
                self.assertEqual(status, statuses[world], (name, world))
            # What is not well is said.
            self.assertEqual([], [
                (name, world, status) for world, status in statuses.items()
                if status and (status, world) not in said])
