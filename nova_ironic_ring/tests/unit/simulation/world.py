# SPDX-License-Identifier: Apache-2.0

"""A cloud in memory in which time passes, and what can befall it.

Time is virtual: what is due next is done next. The services are in
:mod:`host`; what must never happen is in :mod:`invariants`.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import datetime
import heapq
import itertools
import random
import typing

from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.simulation import adversary
from nova_ironic_ring.tests.unit.simulation import builds
from nova_ironic_ring.tests.unit.simulation import host as hosts
from nova_ironic_ring.tests.unit.simulation import invariants
from nova_ironic_ring.tests.unit.simulation import times
from nova_ironic_ring.tests.unit.simulation import writes

# What is done with an instance, as Nova names it.
_WORK = 'rebooting'


class World:
    """The cloud, its services, and the time.

    :ivar cloud: what Nova, Ironic and Placement have
    :ivar services: the processes that live, by canonical name
    :ivar builds: all builds, by the UUID of the instance
    :ivar steps: how many calls of a port there were
    :ivar adversary: the owner of some nodes, who writes what it likes; of none
        until it is given one
    :ivar stalled_until: until when nobody gets an answer of the database
    :ivar is_hidden: whether Ironic's policy hides all nodes
    :ivar is_placement_down: whether nobody gets an answer of Placement
    :ivar writes: what they write, of which answers may be lost
    :ivar follows: whether instances go with the ring
    :ivar full_update_interval: seconds after which an unchanged node is
        updated, which chance chooses
    :ivar is_benign: whether services only come and go, as they should
    :ivar disturbed_at: when the last thing befell everybody
    :ivar changed_at: when something last befell any service
    :ivar work_changed_at: when the passes of a service last began to fail, or
        to work
    """

    def __init__(self, seed: int = 0) -> None:
        """Make an empty cloud.

        :param seed: what the times of all that happens come from
        """
        self.random = random.Random(seed)
        self.cloud = clouds.Cloud()
        self.services: dict[str, hosts.Host] = {}
        self.builds: dict[str, builds.Build] = {}
        #: Messages that nobody has received, by canonical name of the service.
        self.messages: dict[str, list[builds.Build]] = {}
        #: The conductor group of each service, by canonical name.
        self.groups: dict[str, str | None] = {}
        #: The services that divide nodes by their shards, by canonical name.
        self.by_shards: set[str] = set()
        #: How often each service was started, by canonical name.
        self.lives: dict[str, int] = {}
        #: Since when a service may have no nodes, because an operator has
        #: disabled it or forced it down, by canonical name.
        self.barred_since: dict[str, float] = {}
        #: Since when a service is dead, by canonical name.
        self.dead_since: dict[str, float] = {}
        #: How wrong the clock of each service's machine is, in seconds.
        self.skews: dict[str, float] = {}
        self.steps = 0
        self.adversary = adversary.Adversary(self.cloud, self.log, seed)
        self.stalled_until = 0.0
        self.is_hidden = False
        self.is_placement_down = False
        self.writes = writes.Writes(self.log, seed)
        self.follows = False
        self.full_update_interval = self.random.choice(
            times.FULL_UPDATE_INTERVALS)
        self.is_benign = False
        self.disturbed_at = 0.0
        self.changed_at = 0.0
        self.work_changed_at = 0.0
        self.timeline: list[str] = []
        self.rules = invariants.Invariants(self)
        self._failure: invariants.InvariantError | None = None
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._numbers = itertools.count(1)

    def log(self, what: str) -> None:
        """Add a line to the timeline.

        :param what: what has happened
        """
        self.timeline.append(f'{self.now:8.2f}  {what}')

    def fail(self, what: str) -> None:
        """Report that something must not be.

        :param what: what it is
        :raises InvariantError: always
        """
        story = '\n'.join(['', *self.timeline])
        self._failure = invariants.InvariantError(
            f'{what}, at {self.now:.2f}:{story}')
        raise self._failure

    # Time

    @property
    def now(self) -> float:
        """The present time, in seconds."""
        return self.cloud.now

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Have something done at some time.

        :param when: the time, in seconds
        :param what: does it
        """
        heapq.heappush(self._due, (when, next(self._order), what))

    def run(self, seconds: float) -> None:
        """Let time pass.

        :param seconds: how much
        """
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            when, _, what = heapq.heappop(self._due)
            self.cloud.now = max(self.now, when)
            what()
            # A pass may have taken it for the error of a port.
            if self._failure is not None:
                raise self._failure
        self.cloud.now = end

    def soon(self, most: float = 0.2) -> float:
        """Return a short time.

        :param most: how long it may be, in seconds
        """
        return self.random.uniform(0.001, most)

    # What befalls the services

    def start(self, name: str, group: str | None = None,
              peers: tuple[str, ...] = (),
              kind: type[hosts.Host] | None = None) -> None:
        """Start a service, for the first time or again.

        :param name: its name
        :param group: its conductor group; None for the nodes of all groups
        :param peers: the names of its peers
        :param kind: the driver that it runs; ours if not given
        """
        me = model.canonical(name)
        self.log(f'{name} starts' + (f' in "{group}"' if group else ''))
        self.lives[me] = self.lives.get(me, 0) + 1
        if self.groups.get(me, group) != group:
            self.rules.rescoped[me] = self.now
        self.groups[me] = group
        self.dead_since.pop(me, None)
        self.changed_at = max(self.changed_at, self.now)
        self.services[me] = (kind or hosts.Host)(self, name, group, peers)

    def crash(self, host: hosts.Host) -> None:
        """End a service at once.

        :param host: the service
        """
        self.log(f'{host.name} ends')
        del self.services[host.me]
        self.dead_since.setdefault(host.me, self.now)
        self.changed_at = max(self.changed_at, self.now)
        if self.random.random() < 0.5:
            for build in self.messages.pop(host.me, ()):
                build.is_lost = True
        host.end()

    def terminate(self, host: hosts.Host, seconds: float) -> None:
        """Send SIGTERM to a service, which waits for what is under way.

        :param host: the service
        :param seconds: how long it waits
        """
        self.log(f'{host.name} is to end in {seconds:.0f} s')
        self.dead_since[host.me] = self.now
        self.disturb(host, float('inf'))
        host.process.ending = True
        host.ends_at = self.now + seconds
        self.at(host.ends_at,
                lambda: self.crash(host) if host.lives else None)

    def freeze(self, host: hosts.Host, seconds: float) -> None:
        """Have a service stand still for some time.

        :param host: the service
        :param seconds: for how long
        """
        self.log(f'{host.name} freezes for {seconds:.0f} s')
        host.frozen_until = self.now + seconds
        self.disturb(host, host.frozen_until)

    def cut_off(self, host: hosts.Host, is_cut_off: bool = True) -> None:
        """Take a service off Nova's database, or connect it again.

        :param host: the service
        :param is_cut_off: which of the two
        """
        self.log(f'{host.name} is {"cut off" if is_cut_off else "back"}')
        host.is_cut_off = is_cut_off
        if is_cut_off:
            self.disturb(host, float('inf'))
        else:
            self.calm(host)

    def lose_ironic(self, host: hosts.Host, is_lost: bool = True) -> None:
        """Take a service off Ironic, or connect it again.

        Its heartbeat goes on.

        :param host: the service
        :param is_lost: which of the two
        """
        self.log(f'{host.name} {"loses" if is_lost else "has"} Ironic')
        host.has_ironic = not is_lost
        host.works_from = float('inf') if is_lost else self.now
        self.work_changed_at = self.now

    def fail_placement(self, is_down: bool) -> None:
        """Have Placement answer nobody, or everybody again.

        :param is_down: which of the two
        """
        self.log(f'Placement is {"down" if is_down else "back"}')
        self.is_placement_down = is_down
        self.work_changed_at = self.now

    def lose_answers(self, share: float) -> None:
        """Have writes be done and answer an error.

        :param share: how many of them, from 0 to 1
        """
        self.writes.lose(share)
        self.work_changed_at = self.now
        self._change()

    def stall(self, seconds: float) -> None:
        """Have the database stand still for some time.

        :param seconds: for how long
        """
        self.log(f'the database stands still for {seconds:.0f} s')
        self.stalled_until = max(self.stalled_until, self.now + seconds)
        self.changed_at = max(self.changed_at, self.stalled_until)

    def hide(self, is_hidden: bool) -> None:
        """Have Ironic hide all nodes, or show them again.

        :param is_hidden: which of the two
        """
        self.log(f'Ironic {"hides" if is_hidden else "shows"} all nodes')
        self.is_hidden = is_hidden
        self.rules.hidden()
        self._change()

    def bar(self, name: str, **changes: typing.Any) -> None:
        """Disable a service or force it down, or undo that.

        :param name: its canonical name
        :param changes: what is to be changed of its record
        """
        service = dataclasses.replace(self.cloud.services[name], **changes)
        self.cloud.services[name] = service
        self.log(f'{name} is set to {changes}')
        if service.disabled or service.forced_down:
            self.barred_since.setdefault(name, self.now)
        else:
            self.barred_since.pop(name, None)
        self.changed_at = max(self.changed_at, self.now)
        if name in self.services:
            self.disturb(self.services[name], self.now)

    def disturb(self, host: hosts.Host, until: float) -> None:
        """Note that something befalls a service.

        :param host: the service
        :param until: when it is over, in seconds
        """
        host.disturbed_at = max(host.disturbed_at, until)
        self.changed_at = max(self.changed_at, self.now if until == float(
            'inf') else until)

    def _change(self) -> None:
        """Note that something befalls everybody."""
        self.disturbed_at = max(self.disturbed_at, self.now)
        self.changed_at = max(self.changed_at, self.now)

    def calm(self, host: hosts.Host) -> None:
        """Note that what befell a service is over.

        :param host: the service
        """
        if not host.process.ending:
            host.disturbed_at = max(self.now, host.frozen_until)
        self.changed_at = max(self.changed_at, self.now)

    def beat(self, name: str) -> None:
        """Write the heartbeat of a service.

        The time is that of its conductor's clock, which may be wrong.

        :param name: the name of the service
        """
        self.cloud.beat(name)
        me = model.canonical(name)
        service = self.cloud.services[me]
        self.cloud.services[me] = dataclasses.replace(
            service, last_seen=service.last_seen + datetime.timedelta(
                seconds=self.skews.get(me, 0)))

    # What is in Ironic

    def enroll(self, group: str = '', shard: str | None = None) -> str:
        """Add a node.

        :param group: its conductor group
        :param shard: its shard, if it has one
        :returns: its UUID
        """
        number = next(self._numbers)
        uuid = f'00000000-0000-0000-0000-{number:012d}'
        self.cloud.nodes[uuid] = clouds.Node(group=group, shard=shard)
        self.rules.row_changed(uuid)
        self.log(f'node {number} is enrolled'
                 f'{" in " + group if group else ""}'
                 f'{" in shard " + shard if shard else ""}')
        return uuid

    def remove(self, node: str) -> None:
        """Take a node away.

        :param node: its UUID
        """
        self.log(f'node {invariants.short(node)} is deleted in Ironic')
        del self.cloud.nodes[node]

    def change_group(self, host: hosts.Host, group: str | None) -> None:
        """Give a service another conductor group.

        :param host: the service
        :param group: the group; None for the nodes of all groups
        """
        self.log(f'{host.name} is now in "{group}"')
        host.group = self.groups[host.me] = group
        self.rules.rescoped[host.me] = self.now
        self.disturb(host, self.now)
        self._change()

    def regroup(self, node: str, group: str) -> None:
        """Give a node another conductor group.

        :param node: its UUID
        :param group: the group
        """
        self.cloud.nodes[node].group = group
        self._change()
        self.rules.regrouped[node] = self.now
        self.log(f'node {invariants.short(node)} is now in "{group}"')

    def change_listing(self, host: hosts.Host) -> None:
        """Have a service divide nodes by their shards, or not any more.

        :param host: the service
        """
        self.by_shards ^= {host.me}
        self.log(f'{host.name} has listing = '
                 f'{"shards" if host.me in self.by_shards else "all"}')
        self.disturb(host, self.now)
        self._change()

    def reshard(self, node: str, shard: str | None) -> None:
        """Give a node another shard.

        :param node: its UUID
        :param shard: the shard; None for none
        """
        self.cloud.nodes[node].shard = shard
        self._change()
        self.log(f'node {invariants.short(node)} is now in shard {shard}')

    # What users do

    def is_free(self, node: str) -> bool:
        """Say whether nobody has, or is to have, a node.

        :param node: its UUID
        """
        return (self.cloud.nodes[node].instance is None
                and not self.cloud.allocations.get(node))

    def boot(self, node: str) -> None:
        """Have an instance built on a free node, if a service seems to live.

        :param node: its UUID
        """
        row = self.cloud.rows.get(node)
        service = (self.cloud.services.get(model.canonical(row.owner))
                   if row else None)
        if service is None or service.disabled or (
                times.is_down(service, self.now)):
            return
        build = builds.Build(self, f'instance-{next(self._numbers)}', node,
                             service.name)
        self.builds[build.instance] = build
        self.log(f'{build.instance} is to be built on node '
                 f'{invariants.short(node)} by {service.host}')
        build.allocate()

    def delete(self, uuid: str) -> None:
        """Delete an instance.

        :param uuid: its UUID
        """
        instance = self.cloud.instances[uuid]
        host = self.services.get(instance.host_name or '')
        if host is None or host.process.ending or (
                times.is_down(self.cloud.services[host.me], self.now)):
            # Nova's API deletes it itself, and tells nobody.
            self.log(f'{uuid} is deleted, without its service')
            self.forget(uuid)
            return
        self.log(f'{uuid} is to be deleted by {instance.host}')
        self.cloud.instances[uuid] = dataclasses.replace(
            instance, task='deleting')
        host.later(2, lambda: builds.tear_down(host, uuid))

    def forget(self, uuid: str) -> None:
        """Delete an instance in Nova and Placement.

        :param uuid: its UUID
        """
        known = self.cloud.instances.pop(uuid, None)
        if known is not None:
            self.cloud.deleted[uuid] = known
        self.free(uuid)

    def free(self, uuid: str) -> None:
        """Delete the allocation of an instance.

        :param uuid: its UUID
        """
        for consumers in self.cloud.allocations.values():
            consumers.discard(uuid)

    def work(self, uuid: str) -> None:
        """Have something done with an instance, or be done with it.

        :param uuid: its UUID
        """
        instance = self.cloud.instances[uuid]
        if instance.is_building or instance.task not in (None, _WORK):
            return
        self.cloud.instances[uuid] = dataclasses.replace(
            instance, task=None if instance.task else _WORK)
        self.log(f'{uuid} is {"idle" if instance.task else "busy"}')

    # What should be

    def is_up(self, name: str) -> bool:
        """Say whether a service is a member, seen from nowhere.

        :param name: its canonical name
        """
        host = self.services.get(name)
        return (host is not None and not host.process.ending
                and name in self.cloud.services
                and name not in self.barred_since)

    def members(self, group: str | None) -> set[str]:
        """Return the members of a ring.

        :param group: the conductor group of the ring
        """
        return {name for name, host in self.services.items()
                if self.is_up(name) and host.group == group}

    def heal(self) -> None:
        """Bring all back to order, but for what the adversary has written."""
        self.adversary.rest()
        if self.writes.share:
            self.lose_answers(0)
        for host in self.services.values():
            host.traps.clear()
            if host.is_cut_off:
                self.cut_off(host, False)
            if not host.has_ironic:
                self.lose_ironic(host, False)
        self.skews.clear()
        for uuid, instance in self.cloud.instances.items():
            if instance.task == _WORK:
                self.cloud.instances[uuid] = dataclasses.replace(
                    instance, task=None)

    def quiet_from(self) -> float:
        """Return when all that has been going on is over, in seconds."""
        return max([self.now, self.stalled_until, *(
            max(host.frozen_until, host.ends_at)
            for host in self.services.values())])
