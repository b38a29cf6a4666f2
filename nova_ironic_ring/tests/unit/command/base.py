# SPDX-License-Identifier: Apache-2.0

"""What the tests of the command as a whole share."""

import contextlib
import dataclasses
import io
import json

import fixtures
import nova.conf
from nova import objects
from oslotest import base

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.adapters.nova import tables
from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command.access import writing
from nova_ironic_ring.command import app
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.deciding import sharding
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.tests.unit.command import deployment


class FakeSource:
    """A deployment that changes as a real one would, a step at each look."""

    def __init__(self, seen: snapshot.Snapshot) -> None:
        self.seen = seen
        #: The context of the cell.
        self.context: object = 'context'
        self.deleted: list[str] = []
        #: Who has allocations of each node.
        self.allocated: dict[str, frozenset[str]] = {}
        #: What becomes of it after each look.
        self.step = lambda seen: seen
        #: What Placement has of pools.
        self.pools: dict[str, snapshot.Inventory] = {}
        #: Nodes that are enrolled again after the first look.
        self.enrolled: set[str] = set()
        #: What was asked, in turn.
        self.asked: list[str] = []
        #: Why Ironic does not answer.
        self.away = ''
        #: The accounts that may set shards, by the names of their clouds.
        self.may_set_shards: set[str | None] = {None}
        #: Why the shards of nodes cannot be set.
        self.busy: dict[str, str] = {}
        #: The nodes whose shards were set, in turn.
        self.set: list[str] = []

    def _look(self) -> snapshot.Snapshot:
        self.asked.append('nova')
        seen, self.seen = self.seen, self.step(self.seen)
        return seen

    def _listed(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        self.asked.append('ironic')
        if self.away:
            raise errors.CommandError(self.away)
        return seen

    def read(self, providers: bool = False, ironic: bool = True
             ) -> snapshot.Snapshot:
        seen = self._look()
        return self._listed(seen) if ironic else dataclasses.replace(
            seen, nodes=snapshot.recorded(seen))

    def refresh(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        return snapshot.renewed(seen, self._look())

    def with_nodes(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        return self._listed(dataclasses.replace(seen, nodes=self.seen.nodes))

    def read_nodes(self, names):
        full = self.seen
        seen = self.read(ironic=False)
        found = [full.find(name) for name in names]
        self.asked += [node.uuid for node in found]
        return dataclasses.replace(seen, nodes={
            **seen.nodes, **{node.uuid: node for node in found}}), found

    @contextlib.contextmanager
    def cell_of(self, name):
        assert name == 'cell1'
        self.asked.append('write')
        yield writing.CellWriter(self.context)

    def cells(self):
        return [tables.Cell('uuid', 'cell1', '')]

    def nodes(self) -> dict[str, snapshot.Node]:
        self.asked.append('nodes')
        return dict(self.seen.nodes)

    def node(self, name: str) -> snapshot.Node | None:
        return next((node for node in self.seen.nodes.values()
                     if name in (node.uuid, node.name)), None)

    def has_node(self, node: str) -> bool:
        return node in self.seen.nodes or node in self.enrolled

    def place(self, node: str) -> sharding.Place | None:
        if self.away:
            raise errors.CommandError(self.away)
        found = self.seen.nodes.get(node)
        return sharding.Place(found.group, found.shard) if found else None

    def see_shards(self, cloud: str | None = None) -> None:
        if self.away:
            raise errors.CommandError(self.away)

    def set_shard(self, node: str, shard: str | None,
                  cloud: str | None = None) -> None:
        if cloud not in self.may_set_shards:
            raise errors.RefusedError(f'Ironic does not let {cloud}.')
        if node in self.busy:
            raise errors.CommandError(self.busy[node])
        self.set.append(node)
        self.seen = dataclasses.replace(self.seen, nodes={
            **self.seen.nodes, node: dataclasses.replace(
                self.seen.nodes[node], shard=shard)})

    def consumers(self, node: str) -> frozenset[str]:
        return self.allocated.get(node, frozenset())

    def inventories(self, names) -> dict[str, snapshot.Inventory]:
        return {name: self.pools[name] for name in names if name in self.pools}

    def delete_provider(self, node: str) -> None:
        self.deleted.append(node)
        self.seen = dataclasses.replace(
            self.seen,
            providers=(self.seen.providers or frozenset()) - {node})


class Terminal(io.StringIO):

    def isatty(self) -> bool:
        return True


class CommandTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.useFixture(fixtures.MockPatchObject(app, 'configure'))
        self.useFixture(fixtures.MockPatchObject(writing, 'set_up'))
        conf.register_opts(nova.conf.CONF)
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.command.steps._POLL', 0))
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.command.reading._WATCH_INTERVAL', 0))
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.command.trail._log_as_nova'))
        #: What was recorded as actions of instances, in turn.
        self.actions: list[audit.Entry] = []
        for name in ('record', 'ask'):
            self.useFixture(fixtures.MockPatch(
                f'nova_ironic_ring.adapters.trail.actions.{name}',
                autospec=True, side_effect=lambda context, entry, **_: (
                    self.actions.append(entry))))
        self.author = audit.Author('alice', 'controller', 'bob', '')
        self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.command.trail.find_author',
            side_effect=lambda arguments: dataclasses.replace(
                self.author, arguments=' '.join(arguments))))
        self.lines = self.useFixture(fixtures.FakeLogger(
            'nova_ironic_ring.audit', format='%(message)s'))
        self.source = FakeSource(deployment.make())
        self.make_source = self.useFixture(fixtures.MockPatch(
            'nova_ironic_ring.command.access.source.Source',
            side_effect=lambda cell: self.source)).mock
        self.saved: list[dict] = []
        self.useFixture(fixtures.MockPatchObject(
            objects.Service, 'get_by_compute_host',
            side_effect=self._service))
        self.update = self.useFixture(fixtures.MockPatch(
            'nova.compute.api.HostAPI')).mock().service_update
        self.update.side_effect = self._update
        # What the API saves alone, where nothing else comes of it.
        self.useFixture(fixtures.MockPatchObject(
            objects.Service, 'save', lambda record: self._update(
                None, record)))

    def _service(self, context, host):
        record = self.source.seen.service(host).record
        found = objects.Service(
            host=host, disabled=record.disabled, disabled_reason=None,
            forced_down=record.forced_down, last_seen_up=record.last_seen)
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
                    answer: str | None = None,
                    stream: type[io.StringIO] = io.StringIO) -> str:
        """Run the command, and return what it prints."""
        out, err = stream(), stream()
        stdin = io.StringIO() if answer is None else Terminal(answer)
        ran = app.RingApp(stdin=stdin, stdout=out, stderr=err)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            result = ran.run(list(arguments))
        self.err = err.getvalue()
        self.assertEqual(status, result, out.getvalue() + self.err)
        return out.getvalue()

    def run_steps(self, *arguments: str, status: int = 0
                  ) -> list[tuple[str, str, str]]:
        """Run the command, and return what has come of which step."""
        return [(step['Action'], step['Subject'], step['Result code'])
                for step in json.loads(self.run_command(
                    *arguments, '-f', 'json', status=status))]

    def written(self) -> list[tuple[str, ...]]:
        """Return the audit lines: the code, and what it is about."""
        return [tuple(filter(None, (
            said['event'], said['service'], said['node'], said['from'],
            said['to'], said['reason'])))
            for said in map(json.loads, self.lines.output.splitlines())]

    def divide(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Have two nodes go where they should be."""
        current = seen.rings[seen.keys()[0]]
        if not current.members:
            return seen
        rows = dict(seen.rows)
        moved = 0
        for node, row in seen.rows.items():
            owner = str(current.owner(node))
            held = seen.nodes[node].instance
            if row.owner != owner and moved < 2 and (
                    held is None or seen.state(row.owner)
                    is membership.State.FORCED_DOWN):
                rows[node] = dataclasses.replace(row, owner=owner)
                seen = self.give(seen, held, owner) if held else seen
                moved += 1
        return dataclasses.replace(seen, rows=rows)

    def give(self, seen: snapshot.Snapshot, instance: str, host: str
             ) -> snapshot.Snapshot:
        return dataclasses.replace(seen, instances={
            **seen.instances, instance: dataclasses.replace(
                seen.instances[instance], host=host)})
