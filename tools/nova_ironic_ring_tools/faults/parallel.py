# SPDX-License-Identifier: Apache-2.0

"""As many boots at once as there are nodes, while a service dies."""

import collections
from collections.abc import Iterator
import concurrent.futures
import contextlib
import dataclasses
import time

from openstack import connection

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import shapes
from nova_ironic_ring_tools.faults import operators

_HOST = 'compute-2'
SERVERS = 60
_THREADS = 12
_PATIENCE = 300
#: In the fault of a server whose service has died before its build.
DEATH = 'has died while it was to build it'
# The state in Ironic of a node that it was not told to deploy.
_UNTOUCHED = 'available'
COLUMNS = ('ACTIVE', 'ERROR by the death', 'ERROR otherwise',
           'ERROR that Ironic had', 'ERROR with a node', 'BUILD',
           'ACTIVE of each service', 'nodes twice', 'left behind',
           'over after')


@dataclasses.dataclass(frozen=True)
class Flood:
    """Boots, and the death of a service meanwhile.

    :ivar name: its name in the table
    :ivar subset: the value of ``[filter_scheduler] host_subset_size``
    """

    name: str
    subset: int = 1


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How the boots have ended.

    :ivar hosts: how many servers are active, by their service
    :ivar reasons: the fault of each server in ERROR; empty if it has none
    :ivar deployed: how many servers in ERROR Ironic was deploying, or had
        deployed, when the service died
    :ivar held: how many servers in ERROR have a node until they are deleted,
        because their service was about to deploy it when it died
    :ivar building: how many servers are still being built
    :ivar twice: how many active servers are not on exactly one node, and how
        many servers have several nodes
    :ivar left: how many allocations and nodes are left of servers that no
        service has; 1 more if nodes are not free after all servers are deleted
    :ivar over: seconds from the first boot to the end of the last build
    """

    hosts: collections.Counter[str]
    reasons: list[str]
    deployed: int
    held: int
    building: int
    twice: int
    left: int
    over: float

    @property
    def died(self) -> int:
        """How many servers are in ERROR because their service has died."""
        return sum(DEATH in reason for reason in self.reasons)

    @property
    def passed(self) -> bool:
        """Whether each server is active, or in ERROR because of the death.

        No other reason is allowed, such as that no host was found. A server
        that Ironic had begun to deploy must not be in ERROR. A server whose
        service had reserved a node, but not begun to deploy it, keeps that
        node until the server is deleted.
        """
        wrong = self.building or self.twice or self.left or self.deployed
        return not wrong and self.died == len(self.reasons) and (
            self.hosts.total() + self.died == SERVERS)

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        return [str(self.hosts.total()), str(self.died),
                str(len(self.reasons) - self.died), str(self.deployed),
                str(self.held), str(self.building), ' '.join(
                    str(count) for _, count in sorted(self.hosts.items())),
                str(self.twice), str(self.left), f'{self.over:.0f} s']


FLOODS = [
    Flood(f'{SERVERS} boots at once, one killed'),
    Flood(f'{SERVERS} boots at once, one killed, host_subset_size 3', 3),
]


@contextlib.contextmanager
def with_nodes(lab: cloud.Lab) -> Iterator[None]:
    """Make as many free nodes as there are boots.

    :param lab: the lab
    """
    link = lab.connect()
    free = sum(node.instance_id is None
               for node in link.baremetal.nodes(details=True))
    if free < SERVERS:
        lab.enroll(SERVERS - free, shapes.ALIKE)
    lab.wait_settled(_count(link))
    yield


def measure(lab: cloud.Lab, flood: Flood) -> Outcome:
    """Boot servers at once, kill a service, and wait for the builds.

    :param lab: the lab
    :param flood: how the scheduler chooses
    """
    with _subset(lab, flood.subset):
        return _measure(lab)


def _measure(lab: cloud.Lab) -> Outcome:
    link = lab.connect()
    nodes = _count(link)
    lab.wait_settled(nodes)
    kept = {node.instance_id for node in link.baremetal.nodes(details=True)}
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        asked = list(pool.map(
            lambda number: servers.boot(link, f'flood-{number}').id,
            range(SERVERS)))
    # Now some of its builds are over, Ironic deploys some, and some wait.
    operators.wait(lambda: any(
        server.status == 'ACTIVE' and server.compute_host == _HOST
        for server in _shown(link, asked)), _PATIENCE)
    lab.compute(_HOST).kill()
    deployed = {node.instance_id for node
                in link.baremetal.nodes(details=True)
                if node.instance_id and node.provision_state != _UNTOUCHED}
    operators.force_down(lab, _HOST, True)
    operators.wait(lambda: all(
        server.status != 'BUILD' for server in _shown(link, asked)),
        _PATIENCE)
    over = time.monotonic() - start
    # Wait until living services have all servers that a service had, and the
    # rest is freed.
    operators.wait(lambda: not _left(link, asked) and all(
        server.compute_host != _HOST for server in _shown(link, asked)),
        _PATIENCE)
    found = _shown(link, asked)
    active = [server for server in found if server.status == 'ACTIVE']
    held = collections.Counter(
        node.instance_id for node in link.baremetal.nodes(details=True)
        if node.instance_id and node.instance_id not in kept)
    twice = sum(held[server.id] != 1 for server in active) + sum(
        count > 1 for count in held.values())
    left = _left(link, asked)
    servers.delete(link, found)
    lab.start_compute(_HOST)
    operators.force_down(lab, _HOST, False)
    # Wait until the service that has returned is in the ring again.
    left += not operators.wait(lambda: lab.is_settled(nodes), _PATIENCE)
    return Outcome(
        collections.Counter(server.compute_host for server in active),
        [(server.fault or {}).get('message', '') for server in found
         if server.status == 'ERROR'],
        sum(server.id in deployed for server in found
            if server.status == 'ERROR'),
        sum(held[server.id] for server in found if server.status == 'ERROR'),
        sum(server.status == 'BUILD' for server in found), twice, left, over)


@contextlib.contextmanager
def _subset(lab: cloud.Lab, size: int) -> Iterator[None]:
    """Let the scheduler choose at random among some services."""
    path = lab.nova.controller
    before = path.read_text()
    scheduler = lab.state.process('nova-scheduler')

    def restart(text: str) -> None:
        path.write_text(text)
        scheduler.kill()
        scheduler.start()
    if size != 1:
        restart(f'{before}\n[filter_scheduler]\nhost_subset_size = {size}\n')
    try:
        yield
    finally:
        if size != 1:
            restart(before)


def _count(link: connection.Connection) -> int:
    return sum(1 for _ in link.baremetal.nodes())


def _shown(link: connection.Connection, asked: list[str]) -> list:
    wanted = set(asked)
    return [server for server in link.compute.servers(details=True)
            if server.id in wanted]


def _left(link: connection.Connection, asked: list[str]) -> int:
    """Count allocations and nodes of servers that no service has.

    A server that a service has may keep its node until it is deleted.
    """
    others = {server.id for server in _shown(link, asked)
              if server.status != 'ACTIVE' and not server.compute_host}
    return sum(
        len(link.placement.get(f'/allocations/{uuid}').json()['allocations'])
        for uuid in others) + sum(
            node.instance_id in others
            for node in link.baremetal.nodes(details=True))
