# SPDX-License-Identifier: Apache-2.0

"""Measures the time that services and Ironic take to list Ironic's nodes.

No nova-compute runs: this asks Ironic what several services would ask in a
pass, one service after the other, first as Nova's driver asks, and then as the
driver of this project does. The command line is that of ``__main__``, with
``--listing``.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import time

import nova.conf
from openstack.baremetal.v1 import node as sdk_node
import prettytable

from nova_ironic_ring.adapters.ironic import nodes
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring_tools.scale import seed

CONF = nova.conf.CONF

_SCOPE = settings.Scope()
# For how long to measure Ironic while nobody asks it, in seconds.
_IDLE = 20


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the cloud is.

    :ivar nodes: how many nodes
    :ivar services: how many services divide them
    :ivar shards: how many shards they are in
    """

    nodes: int
    services: int
    shards: int


@dataclasses.dataclass(frozen=True)
class Cost:
    """The time that listings took, in seconds.

    :ivar nodes: how many nodes were listed
    :ivar elapsed: the time by the clock
    :ivar service: the processor time of the service
    :ivar ironic: the processor time of Ironic, which is one process for API
        and conductor
    :ivar database: the processor time of MariaDB
    """

    nodes: int = 0
    elapsed: float = 0
    service: float = 0
    ironic: float = 0
    database: float = 0

    def __add__(self, other: 'Cost') -> 'Cost':
        return Cost(*(mine + theirs for mine, theirs in zip(
            dataclasses.astuple(self), dataclasses.astuple(other))))

    @property
    def all(self) -> float:
        """The processor time of all processes."""
        return self.service + self.ironic + self.database


@dataclasses.dataclass(frozen=True)
class Listings:
    """The listings of services, one after the other.

    :ivar name: their name in the table
    :ivar costs: the cost of each
    """

    name: str
    costs: Sequence[Cost]

    @property
    def total(self) -> Cost:
        """The cost of all together."""
        return sum(self.costs, Cost())

    @property
    def each(self) -> Cost:
        """The mean of their costs."""
        return Cost(*(value / len(self.costs)
                      for value in dataclasses.astuple(self.total)))


@dataclasses.dataclass(frozen=True)
class Run:
    """The results.

    :ivar size: how large the cloud was
    :ivar idle: processor time that Ironic takes in a second while nobody asks
        it, in seconds
    :ivar listings: the listings of Nova's driver, of the ring driver with
        ``listing = all`` and with ``listing = shards``, and then those of the
        first passes with ``all`` and with ``shards``
    """

    size: Size
    idle: float
    listings: Sequence[Listings]


class _Service:
    """One service: it asks Ironic, and keeps answers from pass to pass."""

    def __init__(self, driver: upstream.NovaIronicDriver,
                 held: frozenset[str], own: Sequence[str]) -> None:
        self._driver = driver
        self._held = held
        self._own = own
        self._ironic = nodes.Ironic(driver)
        self._by_shards = nodes.Ironic(driver)

    def list_as_nova(self) -> int:
        """List as Nova's driver does."""
        found: list[sdk_node.Node] = list(self._driver.ironic_connection.nodes(
            fields=upstream.node_fields()))
        return len(found)

    def list_all(self) -> int:
        """List with ``listing = all``."""
        found = self._ironic.nodes(_SCOPE)
        self._ironic.for_nova(self._own)
        return len(found)

    def list_shards(self) -> int:
        """List with ``listing = shards``."""
        self._by_shards.shards(_SCOPE)
        found = self._by_shards.nodes(_SCOPE, self._held)
        self._by_shards.places(found)
        self._by_shards.for_nova(found)
        return len(found)

    def know(self, other: '_Service') -> None:
        """Keep what another service has listed, as after a pass of its own.

        :param other: the other service
        """
        self._ironic.found = dict(other._ironic.found)
        self._ironic.for_nova(self._own)


def measure(size: Size) -> Run:
    """Bring a lab up, and measure.

    :param size: how large the cloud is to be
    :raises LabError: if the lab does not come up
    """
    fixture = cloud.Cloud(
        place.directory('scale-listing'), driver=lab_state.RING_DRIVER,
        computes=0, node_count=1, progress=print)
    with fixture:
        lab = fixture.lab
        _enroll(lab, size)
        # The conductor would look at the power of each node now and then.
        services.Ironic(lab.context, overrides={
            'conductor': {'sync_power_state_interval': 0}}).restart()
        CONF([], project='nova', default_config_files=[str(lab.nova.common)])
        return _measure(lab, size)


def _enroll(lab: cloud.Lab, size: Size) -> None:
    """Add nodes to a lab that has one, and spread all evenly over shards."""
    with lab.database.connect('ironic') as opened:
        seed.seed(seed.Databases(opened), seed.Size(size.nodes, (), 1))
        with opened.cursor() as cursor:
            cursor.execute("UPDATE nodes SET shard = "
                           "CONCAT('shard-', MOD(id, %s))", (size.shards,))


def _measure(lab: cloud.Lab, size: Size) -> Run:
    driver = upstream.NovaIronicDriver(None)
    known = _services(driver, size)
    idle = _cost(lab, _wait)

    def run(name: str, lists: Callable[[_Service], int],
            asking: Sequence[_Service] = known) -> Listings:
        costs = []
        for each in asking:
            costs.append(_cost(lab, functools.partial(lists, each)))
            print(f'{name}: {costs[-1].elapsed:.1f} s', flush=True)
        return Listings(name, costs)

    as_nova = run("Nova's driver", _Service.list_as_nova)
    first = run('ring, first pass', _Service.list_all, known[:1])
    for each in known[1:]:
        each.know(known[0])
    whole = run('ring', _Service.list_all)
    first_of_shards = run(
        'ring, shards, first pass', _Service.list_shards)
    by_shards = run('ring, shards', _Service.list_shards)
    return Run(size, idle.ironic / idle.elapsed, [
        as_nova, whole, by_shards, first, first_of_shards])


def _wait() -> int:
    """Wait, to measure Ironic while nobody asks it."""
    time.sleep(_IDLE)
    return 0


def _services(driver: upstream.NovaIronicDriver, size: Size
              ) -> list[_Service]:
    """Return the services, each with the nodes and shards of the ring."""
    ironic = nodes.Ironic(driver)
    names = ironic.shards(_SCOPE)
    hosts = [f'compute-{number}' for number in range(size.services)]
    current = ring.Ring(hosts, cloud.PARTITIONS)
    dealt = shards.Deal(names, dict.fromkeys(hosts, frozenset()))
    own: dict[str, list[str]] = {host: [] for host in hosts}
    for node in ironic.uuids(_SCOPE):
        own[str(current.owner(node))].append(node)
    return [_Service(driver, dealt.of(host), own[host]) for host in hosts]


def _cost(lab: cloud.Lab, lists: Callable[[], int]) -> Cost:
    """Return the cost of a listing.

    :param lab: the lab
    :param lists: lists nodes, and returns how many
    """
    before = _others(lab)
    # After that: to look at other processes takes processor time of this one.
    elapsed, service = time.monotonic(), time.process_time()
    count = lists()
    elapsed, service = (time.monotonic() - elapsed,
                        time.process_time() - service)
    ironic, database = (now - then for now, then in zip(_others(lab), before))
    return Cost(count, elapsed, service, ironic, database)


def _others(lab: cloud.Lab) -> list[float]:
    return [lab.state.process(name).processor_time()
            for name in ('ironic', 'mariadb')]


def table(run: Run) -> prettytable.PrettyTable:
    """Make a table of the results.

    :param run: the results
    """
    parts = ('elapsed', 'service', 'ironic', 'database')
    printed = prettytable.PrettyTable([
        'listing', 'services', 'nodes', *(f'{part} s' for part in parts),
        *(f'all {part} s' for part in parts)])
    printed.align = 'r'
    printed.align['listing'] = 'l'
    for each in run.listings:
        printed.add_row([
            each.name, len(each.costs), f'{each.each.nodes:.0f}',
            *(f'{getattr(each.each, part):.2f}' for part in parts),
            *(f'{getattr(each.total, part):.1f}' for part in parts)])
    return printed


def summary(run: Run) -> str:
    """Return a text that compares the listings.

    :param run: the results
    """
    as_nova, whole, by_shards, *_ = run.listings
    return '\n'.join([
        f"Of a service's processor time, a listing takes "
        f'{as_nova.each.service / whole.each.service:.0f} times less than '
        f"Nova's driver, and with shards "
        f'{as_nova.each.service / by_shards.each.service:.0f} times less.',
        f"Of Ironic's, with shards, "
        f'{as_nova.each.ironic / by_shards.each.ironic:.1f} times less.',
        f'All {run.size.services} services with shards take '
        f'{by_shards.total.ironic / whole.each.ironic:.2f} times what one '
        f"listing of all nodes takes of Ironic's processor time, and "
        f'{by_shards.total.all / whole.each.all:.2f} times what it takes of '
        "all processes'.",
        f'While nobody asks, Ironic takes {run.idle:.3f} s a second.'])
