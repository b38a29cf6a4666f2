# SPDX-License-Identifier: Apache-2.0
"""A cloud whose services really run, to compare the command's answers with.

The services remember what they have seen in passes of their own, and know
their settings; the command is given what it would read.
"""

import dataclasses
import datetime

from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.command import deployment

NODES = deployment.NODES
CELL = 'cell1'

# For so long everything has been as it is, in seconds.
_NODES = node_places.Nodes()
_BEFORE = 500.0
_HEARTBEAT = 20.0


class World:
    """A cloud, and the services on it.

    :ivar cloud: the cloud
    :ivar settings: the settings of each service that runs passes, by its
        canonical name
    :ivar silent: for how long services have not been heard of, in seconds
    """

    def __init__(self, *hosts: str, **common) -> None:
        """Start services, between which all nodes are divided.

        :param hosts: their names; a, b and c if there is none
        :param common: other settings of all of them than the usual ones
        """
        self.cloud = clouds.Cloud(now=_BEFORE)
        self.common = common
        self.settings: dict[str, settings.Settings] = {}
        self.silent: dict[str, float] = {}
        self._stock: set[str] = set()
        #: Those that have no record yet.
        self._new: set[str] = set()
        self._memories: dict[str, observation.Memory] = {}
        self._trackers: dict[str, clouds.Tracker] = {}
        scope = common.get('scope', settings.Scope())
        self.cloud.nodes = {
            node: clouds.Node(None, scope.conductor_group or '', scope.shard)
            for node in NODES}
        for host in hosts or ('a', 'b', 'c'):
            self.add(host)
        self.divide(*self.settings)

    def add(self, host: str, silent: float = 0, is_stock: bool = False,
            is_new: bool = False, fields: dict | None = None,
            **changes) -> None:
        """Start a service, or start it anew with other settings.

        :param host: its name
        :param silent: for how long it has not been heard of
        :param is_stock: whether it runs Nova's own driver
        :param is_new: whether it has no member record yet
        :param fields: what else its record says
        :param changes: other settings than the usual ones
        """
        current = settings.Settings(host, **self.common | changes)
        if is_stock:
            current = dataclasses.replace(
                current, cooperative=False, fails_over=False, partitions=32)
            self._stock.add(current.me)
        if is_new:
            self._new.add(current.me)
        self.settings[current.me] = current
        self.silent[current.me] = silent
        self.cloud.services[current.me] = model.Service(
            host, clouds.EPOCH, **fields or {})
        self._beat(self.cloud, self.cloud.now)

    def divide(self, *members: str) -> None:
        """Record all nodes as the ring of some services has them."""
        found = ring.Ring(map(model.canonical, members), 32)
        self.cloud.rows = {
            node: clouds.Row(self.cloud.services[str(found.owner(node))].host)
            for node in self.cloud.nodes}

    def own(self, host: str, *numbers: int) -> None:
        """Record nodes for a service."""
        for number in numbers:
            self.cloud.rows[NODES[number]] = clouds.Row(host)

    def acknowledge(self, host: str, *members: str) -> None:
        """Have the record of a service acknowledge a ring.

        :param host: the service
        :param members: the members of the ring; all services if there is none
        """
        current = self.settings[model.canonical(host)]
        self.cloud.members[current.me] = dataclasses.replace(
            self.cloud.members.get(current.me, model.Member()),
            ring=ring.Ring(
                members or self.settings, current.partitions).fingerprint(
                    current.scope))

    def hold(self, host: str, *numbers: int, owner: str | None = None,
             **fields) -> None:
        """Put instances on nodes.

        :param host: the service that they belong to
        :param numbers: the numbers of the nodes
        :param owner: the service that has the nodes; None for the same
        :param fields: what else is to be said of the instances
        """
        self.own(owner or host, *numbers)
        for number in numbers:
            self.cloud.nodes[NODES[number]].instance = f'instance-{number}'
            self.cloud.instances[f'instance-{number}'] = model.Instance(
                **{'host': host, 'node': NODES[number]} | fields)

    def number(self, owner: str, *members: str) -> int:
        """Return the number of a node that a ring maps to a service."""
        found = ring.Ring(members or self.settings, 32)
        return next(number for number, node in enumerate(NODES)
                    if found.owner(node) == owner)

    # What the command reads

    def snapshot(self) -> snapshot.Snapshot:
        """Return what the command would read."""
        ours = {host: current for host, current in self.settings.items()
                if host not in self._stock | self._new}
        owners = {model.canonical(row.owner)
                  for row in self.cloud.rows.values()} | ours.keys()
        return snapshot.Snapshot(
            clouds.EPOCH + datetime.timedelta(seconds=self.cloud.now), 60,
            [snapshot.Service(service, CELL)
             for service in self.cloud.services.values()],
            {node: snapshot.Row(
                row.owner, node=node, cell=CELL)
                for node, row in self.cloud.rows.items()},
            {uuid: snapshot.Instance(
                each.host, each.node, each.is_building, each.task, uuid=uuid,
                name=uuid, cell=CELL)
                for uuid, each in self.cloud.instances.items()},
            {uuid: snapshot.Node(
                None, node.instance, uuid=uuid, group=node.group,
                shard=node.shard)
                for uuid, node in self.cloud.nodes.items()},
            self.cloud.other_drivers - owners, self.cloud.other_drivers,
            members={host: snapshot.Member(
                **vars(self._said(host)), cell=CELL,
                profile=profile.of(current))
                for host, current in ours.items()})

    def _said(self, host: str) -> model.Member:
        """Return what the record of a service says, but for its passes."""
        current = self.settings[host]
        return dataclasses.replace(
            self.cloud.members.get(host, model.Member()), last_pass=None,
            scope=current.scope, by_shards=current.by_shards,
            follows=current.follows)

    # What the services do

    def steps(self) -> dict[str, dict[str, planner.Step]]:
        """Return what each service does in its next pass.

        :returns: by the node, and by the service
        """
        self._publish()
        steps: dict[str, dict[str, planner.Step]] = {
            node: {} for node in self.cloud.nodes}
        for host, current in self.settings.items():
            if self.silent[host] < 60:
                self._remember(host)
                tracker = self._connect(_copy(self.cloud), current)
                for node, step in passes.run(
                        tracker.world, self._memories[host],
                        current, _NODES).plan.steps.items():
                    steps[node][host] = step
        return steps

    def run(self, seconds: float = 3000) -> None:
        """Let time pass: the services run their passes, one each minute.

        :param seconds: for how long
        """
        living = {host: current for host, current in reversed(
            self.settings.items()) if self.silent[host] < 60}
        self._publish()
        for host in living:
            self._remember(host)
        for _ in range(int(seconds // 60)):
            for host, current in living.items():
                tracker = self._trackers.setdefault(
                    host, self._connect(self.cloud, current))
                result = passes.run(
                    tracker.world, self._memories[host], current, _NODES)
                tracker.memory = result.memory
                tracker.track(result)
                self._memories[host] = tracker.memory
                if host in self._stock:
                    # Ironic has no node of the name: Nova removes the record.
                    self.cloud.members.pop(host, None)
                # Not all at the same time.
                self.cloud.now += 1
                self._beat(self.cloud, self.cloud.now)
            self.cloud.now += 60 - len(living)
            self._beat(self.cloud, self.cloud.now)

    def newly(self, host: str) -> None:
        """Have a service start only now."""
        self._memories[model.canonical(host)] = observation.Memory()
        self._new.add(model.canonical(host))

    def _publish(self) -> None:
        """Have the services say in their records which nodes they divide."""
        for host in self.settings.keys() - self._stock - self._new:
            self.cloud.members[host] = self._said(host)

    def remember(self) -> None:
        """Have all services see what is now, before it changes."""
        self._publish()
        for host in self.settings:
            self._remember(host)

    def _remember(self, host: str) -> None:
        """Let a service look at what has been so for long, and no more.

        It has waited for nothing yet.
        """
        if host in self._memories:
            return
        memory = observation.Memory()
        at = 0.0
        while at < _BEFORE:
            cloud = _copy(self.cloud)
            cloud.now = at
            self._beat(cloud, at)
            memory = passes.run(self._connect(
                cloud, self.settings[host]).world, memory,
                self.settings[host], _NODES).memory
            at += _HEARTBEAT
        self._memories[host] = dataclasses.replace(
            memory, waits={}, without_row={})

    def _beat(self, cloud: clouds.Cloud, at: float) -> None:
        """Write the heartbeats up to a time."""
        for host, silent in self.silent.items():
            seen = at if silent == 0 else min(at, _BEFORE - silent)
            cloud.services[host] = dataclasses.replace(
                cloud.services[host],
                last_seen=clouds.EPOCH + datetime.timedelta(seconds=seen))

    def _connect(self, cloud: clouds.Cloud, current: settings.Settings
                 ) -> clouds.Tracker:
        tracker = clouds.connect(cloud, current)
        tracker.process.tracked_nodes = set(
            tracker.world.nova.rows_of(current.host))
        return tracker


def _copy(cloud: clouds.Cloud) -> clouds.Cloud:
    """Copy a cloud, so that a pass can be run and undone."""
    return dataclasses.replace(
        cloud, services=dict(cloud.services), members=dict(cloud.members),
        rows={node: dataclasses.replace(row)
              for node, row in cloud.rows.items()},
        instances=dict(cloud.instances))
