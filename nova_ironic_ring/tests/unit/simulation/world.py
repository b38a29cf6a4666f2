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

"""One Nova and one Ironic in memory, and services that keep nodes of it.

Time is virtual. A pass is a coroutine that reads, decides and acts at
different times, so that anything can happen in between, as it does between the
queries of a real nova-compute.
"""

from collections.abc import Generator, Iterator
import dataclasses
import datetime
import itertools
import random

from nova_ironic_ring import keeper
from nova_ironic_ring import membership
from nova_ironic_ring import ownership
from nova_ironic_ring import pulse
from nova_ironic_ring import ring
from nova_ironic_ring import settings
from nova_ironic_ring import vanished

_EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)

# Seconds, as on the lab.
REPORT_INTERVAL = 2.0
DOWN_TIME = 8.0
PASS_INTERVAL = 5.0
HANDOVER_TIMEOUT = 2 * PASS_INTERVAL
FAILOVER_AFTER = 12.0
#: From the last event until all is where it belongs: a service that has gone
#: is found out, after a blackout of as long; then three passes.
QUIET = 2 * DOWN_TIME + HANDOVER_TIMEOUT + 4 * PASS_INTERVAL


class InvariantError(AssertionError):
    """What must never happen has happened."""


class Unreachable(Exception):
    """A service cannot reach Nova's database."""


@dataclasses.dataclass
class Node:
    """A node of Ironic."""

    name: str
    group: str = ''
    instance: str | None = None


@dataclasses.dataclass
class Instance:
    """An instance, which belongs to a service from its claim on."""

    name: str
    host: str
    node: str
    since: float
    #: Whether its service is doing something with it.
    is_busy: bool = False


@dataclasses.dataclass
class Row:
    """A node's record."""

    owner: str
    giver: str | None = None
    taker: str | None = None


@dataclasses.dataclass
class Service:
    """The record of a service."""

    host: str
    last_seen: float
    disabled: bool = False
    forced_down: bool = False


@dataclasses.dataclass(frozen=True)
class Move:
    """A node that went from one service to another."""

    at: float
    node: str
    old: str
    new: str


class World:
    """All of it."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.nodes: dict[str, Node] = {}
        self.instances: dict[str, Instance] = {}
        self.rows: dict[str, Row] = {}
        self.services: dict[str, Service] = {}
        self.hosts: dict[str, Host] = {}
        self.moves: list[Move] = []
        self.timeline: list[str] = []
        #: Until when nobody gets an answer of the database.
        self.stalled_until = 0.0
        #: Whether Ironic's policy hides the nodes from the services.
        self.hidden = False
        self.steps = 0
        #: Whether instances go with the ring.
        self.follows = False
        #: Who had the rows that heirs have deleted and not brought back yet.
        self.heirless: dict[str, str] = {}
        #: Whether nothing befalls anybody but what is in order, so that no
        #: service may go without another's consent or mistake it for dead.
        self.is_benign = False
        #: When the last thing befell everybody.
        self.disturbed_at = 0.0
        self._numbers = itertools.count(1)

    def log(self, what: str) -> None:
        """Add a line to the timeline."""
        self.timeline.append(f'{self.now:8.2f}  {what}')

    def story(self) -> str:
        """Return the timeline, for a person to read."""
        return '\n'.join(['', *self.timeline])

    def fail(self, what: str) -> None:
        """Report that something must not be."""
        raise InvariantError(f'{what}, at {self.now:.2f}:{self.story()}')

    # Time

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while True:
            due = min(((host.next_time(), host)
                       for host in self.hosts.values()),
                      key=lambda each: each[0], default=None)
            if due is None or due[0] > end:
                break
            self.now = max(self.now, due[0])
            due[1].step()
            self.steps += 1
        self.now = end

    def jitter(self, most: float = 0.2) -> float:
        """Return a short time."""
        return self.random.uniform(0.001, most)

    # What befalls the services

    def start(self, name: str, **config) -> None:
        """Start a service, for the first time or again."""
        self.log(f'{name} starts'
                 f'{" with " + str(config) if config else ""}')
        kind = config.pop('kind', Host)
        self.hosts[name] = kind(self, name, **config)

    def crash(self, name: str) -> None:
        """End a service at once."""
        self.log(f'{name} crashes')
        self.hosts.pop(name)

    def freeze(self, name: str, seconds: float) -> None:
        """Have a service stand still for some time."""
        self.log(f'{name} freezes for {seconds:.0f} s')
        self.hosts[name].frozen_until = self.now + seconds
        self.hosts[name].disturbed_at = self.now + seconds

    def stall(self, seconds: float) -> None:
        """Have the database stand still for some time."""
        self.log(f'the database stands still for {seconds:.0f} s')
        self.stalled_until = self.now + seconds
        self.disturbed_at = self.stalled_until

    # What is in Ironic, and what users do

    def enroll(self, group: str = '') -> str:
        """Add a node."""
        number = next(self._numbers)
        name = f'00000000-0000-0000-0000-{number:012d}'
        self.nodes[name] = Node(name, group)
        self.log(f'node {number} is enrolled'
                 f'{" in " + group if group else ""}')
        return name

    def remove(self, name: str) -> None:
        """Take a node away."""
        self.log(f'node {_short(name)} is deleted in Ironic')
        del self.nodes[name]

    def boot(self, name: str) -> None:
        """Have the owner of a free node build an instance on it."""
        row = self.rows.get(name)
        host = self.hosts.get(row.owner) if row else None
        if host is None or name not in host.tracked:
            return
        instance = f'instance-{next(self._numbers)}'
        self.log(f'{host.name} builds {instance} on node {_short(name)}')
        self.instances[instance] = Instance(
            instance, host.name, name, self.now)
        self.nodes[name].instance = instance

    def delete(self, name: str) -> None:
        """Delete an instance."""
        instance = self.instances.pop(name)
        if instance.node in self.nodes:
            self.nodes[instance.node].instance = None
        self.log(f'{name} is deleted')

    # What the resource tracker does to a row

    def take(self, node: str, host: 'Host', since: float) -> None:
        """Have a service record itself as the owner of a node.

        :param node: the node
        :param host: the service
        :param since: when its pass began
        """
        row = self.rows.get(node)
        if row is None:
            self.rows[node] = Row(host.name)
            self.log(f'{host.name} creates the row of node {_short(node)}')
            old = self.heirless.pop(node, host.name)
            if old != host.name:
                self.moves.append(Move(self.now, node, old, host.name))
            return
        if row.owner == host.name:
            return
        name = self.nodes[node].instance if node in self.nodes else None
        instance = self.instances.get(name) if name else None
        if instance is not None and instance.since < since and (
                instance.host != host.name
                and instance.host in self.hosts):
            self.fail(f'{host.name} takes node {_short(node)}, which has an '
                      f'instance of {instance.host}')
        self.log(f'{host.name} takes node {_short(node)} of {row.owner}'
                 f'{host.reason(node)}')
        owner = self.hosts.get(row.owner)
        reason = host.decisions.get(node)
        # One that has just come back was silent for all that others can see.
        if self.is_benign and owner is not None and (
                self.now - owner.disturbed_at > DOWN_TIME) and reason in (
                ownership.Decision.TAKE_SILENT,
                ownership.Decision.TAKE_ABANDONED):
            self.fail(f'{host.name} takes node {_short(node)} of {row.owner} '
                      f'({reason.name})')
        if owner is not None and host.decisions.get(node) in (
                ownership.Decision.TAKE_ABANDONED,
                ownership.Decision.TAKE_SILENT) and (
                self._is_undisturbed(owner) and self._is_undisturbed(host)
                and owner.ring == host.ring):
            self.fail(f'{host.name} takes node {_short(node)} without the '
                      f'consent of {row.owner}, which is well')
        self.moves.append(Move(self.now, node, row.owner, host.name))
        row.owner = host.name

    def _is_undisturbed(self, host: 'Host') -> bool:
        """Say whether a service has been well for a long time."""
        return (self.now - max(self.disturbed_at, host.disturbed_at) > QUIET
                and self.is_up(self.services[host.name]))

    def win(self, node: str, host: 'Host', expected: str) -> bool:
        """Have a service delete the row of a node that it takes over."""
        row = self.rows.get(node)
        if row is None or row.owner != expected:
            return False
        self.log(f'{host.name} is to take over node {_short(node)}')
        self.heirless[node] = row.owner
        del self.rows[node]
        return True

    def fail_over(self, name: str, host: 'Host', dead: str) -> bool:
        """Have a service take an instance over from a dead one."""
        instance = self.instances.get(name)
        if instance is None:
            return False
        self.log(f'{host.name} takes {name} over from {dead}')
        if instance.host != dead:
            self.fail(f'{name} is with {instance.host} by now')
        owner = self.hosts.get(dead)
        if owner is not None and self._is_undisturbed(owner) and (
                self._is_undisturbed(host)):
            self.fail(f'{host.name} takes {name} over from {dead}, '
                      'which is well')
        instance.host = host.name
        # What was being done is finished as its own restart would do.
        instance.is_busy = False
        return True

    def follow(self, name: str, host: 'Host', giver: str) -> bool:
        """Have a service take an instance of one that lets it."""
        instance = self.instances.get(name)
        if instance is None or instance.host != giver or instance.is_busy:
            return False
        self.log(f'{host.name} takes {name} of {giver}')
        instance.host = host.name
        return True

    def lose(self, node: str, host: 'Host', missing: int, total: int) -> None:
        """Have a service delete the row of a node."""
        if self.rows[node].owner != host.name:
            return
        self.log(f'{host.name} deletes the row of node {_short(node)}')
        del self.rows[node]
        if node in self.nodes and missing > max(5, total * 20 // 100):
            self.fail(f'{host.name} deletes the row of node {_short(node)}, '
                      'which still exists')

    # What should be

    def is_up(self, service: Service) -> bool:
        """Say whether a service is a member, seen from nowhere."""
        return (service.host in self.hosts and not service.disabled
                and not service.forced_down)

    def members(self, group: str | None) -> set[str]:
        """Return the members of a ring."""
        return {name for name, service in self.services.items()
                if self.is_up(service)
                and self.hosts[name].group == group}

    def check_settled(self, groups: list[str | None],
                      fails_over: bool) -> None:
        """See that all nodes are where they belong.

        :param groups: the conductor groups
        :param fails_over: whether all services take instances over
        """
        rings = {group: ring.Ring(members, 32) for group in groups
                 if (members := self.members(group))}
        for name, node in self.nodes.items():
            row = self.rows.get(name)
            group = None if None in groups else node.group
            desired = rings[group].owner(name) if group in rings else None
            instance = (self.instances.get(node.instance)
                        if node.instance else None)
            if instance is not None:
                if fails_over and desired is not None and (
                        instance.host not in self.hosts
                        or self.services[instance.host].forced_down):
                    self.fail(f'{instance.name} is with {instance.host}, '
                              'which is dead')
                # Without a node it is in nobody's ring, and an instance is
                # not taken without consent.
                owners = {row.owner for row in self.rows.values()}
                if self.follows and desired != instance.host and (
                        desired in owners and instance.host in self.hosts):
                    self.fail(f'{instance.name} is with {instance.host} and '
                              f'not with {desired}')
                if instance.host in self.hosts and (
                        row is None or row.owner != instance.host):
                    self.fail(f'node {_short(name)} is not with its '
                              f'instance on {instance.host}')
            elif desired is not None and (
                    row is None or row.owner != desired):
                self.fail(f'node {_short(name)} is with '
                          f'{row.owner if row else "nobody"} '
                          f'and not with {desired}')


class Host:
    """A nova-compute with our driver: the thin shell, once more."""

    def __init__(self, world: World, name: str, group: str | None = None,
                 peers: tuple[str, ...] = (), skew: float = 0) -> None:
        self.world = world
        self.name = name
        self.group = group
        self.peers = peers
        self.skew = skew
        self.keeper = keeper.Keeper()
        self.tracked: set[str] = set()
        self.decisions: dict[str, ownership.Decision] = {}
        self.frozen_until = 0.0
        self.disturbed_at = world.now
        self.is_cut_off = False
        self.disputes = 0
        self.pulse = pulse.Pulse(lambda: self.world.now)
        self.vanished = vanished.Guard()
        self._without_row: set[str] = set()
        self._beat_at: float | None = None
        self._pass: Iterator[None] | None = None
        self._pass_at = world.now + world.jitter()
        self._passes = 0

    @property
    def ring(self) -> tuple:
        """What its ring is made by, besides who lives."""
        return self.group, frozenset(self.peers), type(self)

    @property
    def settings(self) -> settings.Settings:
        """What its nova.conf says."""
        return settings.Settings(
            host=self.name, down_time=DOWN_TIME, conductor_group=self.group,
            shard=None, peers=membership.peers(
                self.name, self.group, None, self.peers),
            partitions=32, pass_interval=PASS_INTERVAL,
            report_interval=REPORT_INTERVAL, cooperative=True,
            handover_timeout=HANDOVER_TIMEOUT, vanished_nodes_limit=20,
            fails_over=True, follows=self.world.follows,
            failover_after=FAILOVER_AFTER)

    def reason(self, node: str) -> str:
        """Say why a node is taken."""
        decision = self.decisions.get(node)
        return f' ({decision.name})' if decision else ''

    def time(self) -> datetime.datetime:
        """Return what its clock shows."""
        return _EPOCH + datetime.timedelta(
            seconds=self.world.now + self.skew)

    def next_time(self) -> float:
        """Return when it does something next."""
        at = min(self._pass_at, self._beat_at or self._pass_at)
        for until in self.frozen_until, self.world.stalled_until:
            if at < until:
                # All at once, and in any order.
                at = until + self.world.jitter(1)
        return at

    def step(self) -> None:
        """Do what is due."""
        now = self.world.now
        if self._beat_at is not None and self._beat_at <= self._pass_at:
            self._beat_at = now + REPORT_INTERVAL
            if not self.is_cut_off:
                record = self.world.services[self.name]
                record.last_seen = now
                self.pulse.beat()
            return
        if self._pass is None:
            self._pass = self._run_pass()
        try:
            next(self._pass)
            self._pass_at = now + self.world.jitter()
            return
        except StopIteration:
            pass
        except Unreachable:
            self.keeper.fail(self.time())
        self._pass = None
        self._passes += 1
        if self._passes < 2:
            # Nova asks twice before a service is up.
            self._pass_at = now + self.world.jitter()
            self.world.services.setdefault(self.name, Service(self.name, now))
        else:
            self._pass_at = now + PASS_INTERVAL
            if self._beat_at is None:
                self._beat_at = now + self.world.jitter()

    # What the driver and the resource tracker do, and in their order

    def _ask(self) -> None:
        if self.is_cut_off:
            raise Unreachable()

    def _record(self, service: Service) -> membership.Service:
        return membership.Service(
            service.host, _EPOCH + datetime.timedelta(
                seconds=service.last_seen),
            forced_down=service.forced_down, disabled=service.disabled)

    def _ring_services(self) -> list[membership.Service]:
        owners = {row.owner for row in self.world.rows.values()}
        return [self._record(service)
                for service in self.world.services.values()
                if service.host in owners and not service.disabled]

    def _rows(self, nodes: Iterator[str] | list[str]
              ) -> dict[str, ownership.Row]:
        found = {}
        for node in nodes:
            row = self.world.rows.get(node)
            if row is not None:
                found[node] = ownership.Row(
                    row.owner, row.taker if row.giver == row.owner else None)
        return found

    def _my_rows(self) -> dict[str, ownership.Row]:
        return self._rows([node for node, row in self.world.rows.items()
                           if row.owner == self.name])

    def _list(self) -> dict[str, str | None]:
        if self.world.hidden:
            return {}
        return {node.name: node.instance for node in self.world.nodes.values()
                if self.group is None or node.group == self.group}

    def _is_deleted(self, node: str) -> bool:
        return self.world.hidden or node not in self.world.nodes

    def _run_pass(self) -> Iterator[None]:
        since = self.world.now
        self._ask()
        own = self.world.services.get(self.name)
        self.keeper.look(self.settings, self._ring_services(),
                         self._record(own) if own else None,
                         self.pulse.longest_gap(), self.time())
        yield
        nodes = self._list()
        yield
        self._ask()
        instances = {instance.name for instance in
                     self.world.instances.values()
                     if instance.host == self.name}
        if self.group is not None and not self.world.hidden:
            nodes |= {
                node.name: node.instance for node in self.world.nodes.values()
                if node.instance in instances}
        yield
        self._ask()
        rows = self._my_rows()
        total, missing = len(rows), rows.keys() - nodes.keys()
        self.vanished.look(missing, total, 20, self._is_deleted, self.time(),
                           10 * PASS_INTERVAL)
        yield
        self._ask()
        rows |= self._rows(self.keeper.wanted(nodes, rows))
        hosts = {name: self.world.instances[name].host
                 for name in self.keeper.foreign(nodes, instances)
                 if name in self.world.instances}
        idle = {name for name in self.keeper.misplaced(nodes, instances)
                if name in self.world.instances
                and not self.world.instances[name].is_busy}
        everybody = [self._record(service)
                     for service in self.world.services.values()]
        plan = self.keeper.plan(
            nodes, instances, (), rows, hosts, idle, everybody,
            set(self.tracked), self.time())
        self.decisions = dict(plan.decisions)
        self.disputes += len(plan.disputes)
        for dispute in plan.disputes:
            self.world.log(f'{self.name} complains of {dispute.host}')
        if own is None:
            return
        yield
        lost = yield from self._take_instances(plan, nodes, hosts)

        self._ask()
        mine = self._my_rows()
        self.tracked &= mine.keys()
        listed = [node for node, decision in plan.decisions.items()
                  if decision.lists and node not in lost]
        for node in mine.keys() - set(listed):
            if not self.vanished.closed and self._is_deleted(node):
                self.vanished.note(node, self.time())
                self.world.lose(node, self, len(missing), total)
                self.tracked.discard(node)
        yield
        for node in listed:
            self._ask()
            instance = self.world.instances.get(nodes[node] or '')
            if node not in self.tracked and nodes[node] and (
                    instance is None or instance.host != self.name):
                continue
            taker = plan.offers.get(node)
            if node not in self.tracked:
                row = self.world.rows.get(node)
                if node in plan.owners and (
                        row.owner if row else None) != plan.owners[node]:
                    continue
                self.world.take(node, self, since)
                self.tracked.add(node)
            row = self.world.rows.get(node)
            if row is not None:
                row.giver, row.taker = (self.name, taker) if taker else (
                    None, None)
            if self.world.random.random() < 0.3:
                yield

    def _take_instances(self, plan: keeper.Plan,
                        nodes: dict[str, str | None], hosts: dict[str, str]
                        ) -> Generator[None, None, set[str]]:
        """Take instances over, in more than one step.

        :returns: the nodes of those that could not be had
        """
        lost = set()
        without_row = set()
        heir_of = [node for node, decision in plan.decisions.items()
                   if decision is ownership.Decision.FAIL_OVER]
        self._ask()
        rows = {node: self.world.rows[node].owner for node in heir_of
                if node in self.world.rows}
        yield
        self._ask()
        read = {node: name for node in heir_of if (name := nodes[node])
                and name in self.world.instances
                and self.world.instances[name].host == hosts[name]}
        for node in heir_of:
            yield
            self._ask()
            if node not in read:
                lost.add(node)
                continue
            if node not in rows:
                without_row.add(node)
                if node not in self._without_row:
                    lost.add(node)
                    continue
            elif not self.world.win(node, self, rows[node]):
                lost.add(node)
                continue
            yield
            self._ask()
            if not self.world.fail_over(read[node], self, hosts[read[node]]):
                lost.add(node)
        self._without_row = without_row
        for node, decision in plan.decisions.items():
            if decision is ownership.Decision.TAKE_INSTANCE:
                yield
                self._ask()
                name = nodes[node] or ''
                if not self.world.follow(name, self, hosts[name]):
                    lost.add(node)
        return lost


class StockHost(Host):
    """A nova-compute with Nova's own driver."""

    def _run_pass(self) -> Iterator[None]:
        since = self.world.now
        self._ask()
        up = {self.name} | {
            service.host for service in self._ring_services()
            if abs((self.time() - service.last_seen).total_seconds())
            <= DOWN_TIME and not service.forced_down}
        points = ring.Ring(up, 32)
        instances = {instance.name for instance in
                     self.world.instances.values()
                     if instance.host == self.name}
        yield
        listed = [node for node, instance in self._list().items()
                  if (points.owner(node) == self.name
                      if instance is None else instance in instances)]
        if self.name not in self.world.services:
            return
        yield
        self._ask()
        self.tracked &= self._my_rows().keys()
        for node in listed:
            self._ask()
            if node not in self.tracked:
                self.world.take(node, self, since)
                self.tracked.add(node)
            row = self.world.rows.get(node)
            if row is not None:
                row.giver = row.taker = None


def _short(node: str) -> str:
    """Return a node's number."""
    return node.rpartition('-')[2].lstrip('0')
