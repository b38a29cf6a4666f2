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

"""Turns what was read of a ring into a cloud in memory, to run passes on."""

from collections.abc import Iterable
import copy
import dataclasses
import datetime

from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core import cloud as clouds
from nova_ironic_ring.core import forecast
from nova_ironic_ring.core import membership
from nova_ironic_ring.core import model
from nova_ironic_ring.core import planner
from nova_ironic_ring.core import profile
from nova_ironic_ring.core import settings

_State = membership.State


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of a ring.

    :ivar add: the names of services that join it or return to it
    :ivar remove: the names of services that leave it for good
    :ivar disable: the names of services that are disabled
    :ivar partitions: points on the ring for each member; None for as now
    """

    add: frozenset[str] = frozenset()
    remove: frozenset[str] = frozenset()
    disable: frozenset[str] = frozenset()
    partitions: int | None = None


@dataclasses.dataclass(frozen=True)
class Prospect:
    """A ring in memory.

    :ivar cloud: the services, nodes and records of its cell
    :ivar members: the settings of the services that live
    """

    cloud: clouds.Cloud
    members: tuple[settings.Settings, ...]

    def step(self, host: str, node: str) -> planner.Step | None:
        """Return what a service does with a node in its next pass.

        What it remembers of its passes, such as how long it has waited, is not
        known here.

        :param host: the canonical name of the service
        :param node: the node's UUID
        :returns: None if it does nothing, because it does not list the node
        """
        for each in self.members:
            if each.me == host:
                return forecast.first_steps(
                    copy.deepcopy(self.cloud), each).get(node)
        return None

    def run(self) -> forecast.Forecast:
        """Return what the services do until nothing moves."""
        return forecast.run(copy.deepcopy(self.cloud), self.members)


def of(seen: snapshot.Snapshot, key: snapshot.Key,
       change: Change = Change()) -> Prospect:
    """Return a ring as it is, or as it would be after a change.

    :param seen: what was read
    :param key: the ring
    :param change: the change
    """
    cloud = _cloud(seen, key.cell)
    hosts = {name for name, service in seen.hosts.items()
             if service.cell == key.cell}
    said = {host: seen.profiles.get(host) for host in hosts}
    members = {
        host: _settings(seen, host, said[host], change) for host in hosts
        if seen.state(host).gives}
    usual = next((each for host, each in sorted(members.items())
                  if seen.key(host) == key and said[host] is not None), None)
    for name in change.add:
        host = model.canonical(name)
        now = clouds.EPOCH
        cloud.services[host] = model.Service(name, now)
        found = usual if said.get(host) is None else _settings(
            seen, host, said[host], change)
        members[host] = dataclasses.replace(
            found or settings.Settings(name), host=name)
    for host in map(model.canonical, change.disable):
        cloud.services[host] = dataclasses.replace(
            cloud.services[host], disabled=True)
    for host in map(model.canonical, change.remove):
        cloud.services[host] = dataclasses.replace(
            cloud.services[host], forced_down=True)
        members.pop(host, None)
    return Prospect(cloud, tuple(
        _with_peers(each, change.add)
        for host, each in sorted(members.items())))


def _settings(seen: snapshot.Snapshot, host: str,
              said: profile.Profile | None, change: Change
              ) -> settings.Settings:
    found = profile.settings_of(
        seen.hosts[host].record.host, said, seen.down_time)
    if change.partitions is not None:
        found = dataclasses.replace(found, partitions=change.partitions)
    return found


def _with_peers(found: settings.Settings, add: Iterable[str]
                ) -> settings.Settings:
    """Add those that join to a peer list, as the operator has to."""
    if found.peers is None:
        return found
    return dataclasses.replace(
        found, peers=found.peers | frozenset(map(model.canonical, add)))


def _cloud(seen: snapshot.Snapshot, cell: str) -> clouds.Cloud:
    """Put a cell, and what Ironic has, into memory.

    Time begins with the snapshot: a service that is late has been silent for
    as long as it was then.
    """
    shift = clouds.EPOCH - seen.now
    services = [
        dataclasses.replace(
            service.record, alive=None,
            last_seen=_last_seen(service.record, seen, shift))
        for service in seen.services if service.cell == cell]
    return clouds.Cloud(
        services={service.name: service for service in services},
        nodes={node.uuid: clouds.Node(node.instance, node.group, node.shard)
               for node in seen.nodes.values()
               if node.uuid not in seen.rows
               or seen.rows[node.uuid].cell == cell},
        rows={row.node: clouds.Row(
            row.owner, None if row.taker is None
            else model.canonical(row.owner), row.taker)
            for row in seen.rows.values() if row.cell == cell},
        instances={instance.uuid: model.Instance(
            instance.host, instance.node, instance.is_building, instance.task)
            for instance in seen.instances.values()
            if instance.cell == cell},
        other_drivers=seen.others)


def _last_seen(service: model.Service, seen: snapshot.Snapshot,
               shift: datetime.timedelta) -> datetime.datetime:
    """Return the last heartbeat, in the time of the cloud."""
    if service.alive is None:
        return service.last_seen + shift
    if service.alive:
        return clouds.EPOCH
    # Its heartbeats are not in the database: at least as long ago as that.
    return clouds.EPOCH - datetime.timedelta(seconds=2 * seen.down_time)
