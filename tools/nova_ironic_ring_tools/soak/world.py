# SPDX-License-Identifier: Apache-2.0

"""The lab of the soak: two groups of two services, and one more service."""

from collections.abc import Callable, Iterator
import dataclasses
import random
import threading
import time
from typing import Any

from openstack.compute.v2 import server as sdk_server
from openstack import connection

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab import tenant
from nova_ironic_ring_tools.faults import operators

#: Ironic's conductor groups, and the services of each. No event stops the
#: first service of a group: one has to run, and its memory is compared.
GROUPS = {'rack-a': ('compute-1', 'compute-2', 'compute-5'),
          'rack-b': ('compute-3', 'compute-4')}
#: The availability zone of each group.
ZONES = dict(zip(GROUPS, tenant.ZONES))
#: The group whose services divide nodes by their shards.
BY_SHARDS = 'rack-b'
#: The service that joins and leaves.
NEWCOMER = 'compute-5'
#: How the names of all servers begin.
NAME = 'soak-'
# The size of each pool of threads of a nova-compute, and of its pool of
# connections to RabbitMQ, each of which has a thread. A pool starts a thread
# for each job until it is full, even if others are idle, and ends none.
# growth.py says how many threads all pools may have.
_POOL = 4
_POOLS: services.Sections = {
    'DEFAULT': {
        # One for each of the two topics that Nova listens to.
        'executor_thread_pool_size': _POOL,
        'default_thread_pool_size': _POOL,
        # These two share a pool.
        'max_concurrent_builds': _POOL,
        'max_concurrent_snapshots': _POOL,
        'sync_power_state_pool_size': 1},
    'oslo_messaging_rabbit': {'rpc_conn_pool_size': _POOL}}


def group_of(host: str) -> str:
    """Return the conductor group of a service.

    :param host: its name
    """
    return next(group for group, hosts in GROUPS.items() if host in hosts)


def options(host: str) -> services.Sections:
    """Return the options of nova.conf for one service.

    :param host: its name
    """
    group = group_of(host)
    return {**_POOLS,
            'ironic': {'conductor_group': group},
            'ironic_ring': {
                'listing': 'shards' if group == BY_SHARDS else 'all'}}


@dataclasses.dataclass(frozen=True)
class Absence:
    """A way in which a service does not do its work for a time.

    :ivar what: what is done to the service, such as "kill"
    :ivar begin: does this to a service, by its name
    :ivar end: lets the service work again
    :ivar least: how long this lasts at least, in seconds
    :ivar most: how long this lasts at most, in seconds
    """

    what: str
    begin: Callable[[cloud.Lab, str], None]
    end: Callable[[cloud.Lab, str], None]
    least: float
    most: float


@dataclasses.dataclass(frozen=True)
class Wrong:
    """A part of a node that its owner has written wrongly.

    :ivar path: the part, as Ironic's API has it
    :ivar said: what it was before
    """

    path: str
    said: Any


class World:
    """The lab, and its services that do not work now."""

    def __init__(self, lab: cloud.Lab, chance: random.Random,
                 network: str) -> None:
        """Begin.

        :param lab: the lab, with the services of :data:`GROUPS`
        :param chance: the random numbers that decide
        :param network: the UUID of a network for servers
        """
        self.lab = lab
        self.chance = chance
        self.network = network
        self.link: connection.Connection = lab.connect()
        #: A connection with the right to change nodes of Ironic.
        self.system: connection.Connection = lab.connect('lab-system')
        #: For each service that does not work now: why, and until when, in
        #: seconds.
        self.away: dict[str, tuple[Absence, float]] = {}
        #: What was there before in nodes that are wrong, by UUID.
        self.wrong: dict[str, Wrong] = {}
        #: The zone that was asked for, by the name of the server.
        self.zones: dict[str, str] = {}
        #: Ends the time in which something is silent, or answers are lost.
        self.trouble = threading.Timer(0, lambda: None)
        #: What is never done with, and the state in which it stays.
        self.stuck: frozenset[tuple[str, str]] = frozenset()
        self._count = 0

    def next_name(self) -> str:
        """Return a name for a server."""
        self._count += 1
        return f'{NAME}{self._count}'

    def servers(self) -> list[sdk_server.Server]:
        """Return all servers that there are."""
        return [server for server in self.link.compute.servers(details=True)
                if server.name.startswith(NAME)]

    def server(self, *statuses: str) -> sdk_server.Server | None:
        """Choose a server without a task.

        :param statuses: the statuses that it may have
        :returns: the server; None if there is none
        """
        found = [server for server in self.servers()
                 if server.status in statuses and not server.task_state]
        return self.chance.choice(found) if found else None

    def expendable(self) -> str | None:
        """Choose a service that its group can do without now.

        :returns: its name; None if there is none
        """
        found = [host for hosts in GROUPS.values()
                 if not any(host in self.away for host in hosts)
                 for host in hosts[1:] if host in self.lab.state.computes]
        return self.chance.choice(found) if found else None

    def returning(self, now: float) -> Iterator[tuple[str, str]]:
        """Let the services work again whose time is over.

        :param now: the time in seconds
        :returns: the name of each, and what was done to it
        """
        for host, (absence, until) in list(self.away.items()):
            if until <= now:
                # If it is refused, the next call tries it again.
                absence.end(self.lab, host)
                del self.away[host]
                yield host, absence.what

    def wait_for_answers(self) -> None:
        """Wait until nothing is silent, and no answers are lost."""
        if self.trouble.is_alive():
            self.trouble.join()

    def leave(self, host: str, absence: Absence) -> None:
        """Let a service stop its work for a time.

        :param host: its name
        :param absence: how; if a part of it is refused, it ends in time all
            the same
        """
        self.away[host] = absence, time.monotonic() + self.chance.uniform(
            absence.least, absence.most)
        absence.begin(self.lab, host)


def _kill(lab: cloud.Lab, host: str) -> None:
    lab.compute(host).kill()
    operators.force_down(lab, host, True)


def _revive(lab: cloud.Lab, host: str) -> None:
    # Both at once: while it is forced down, it counts as dead.
    lab.compute(host).start()
    operators.force_down(lab, host, False)


def _suspect(lab: cloud.Lab, host: str) -> None:
    lab.compute(host).pause()
    operators.force_down(lab, host, True)


def _wake(lab: cloud.Lab, host: str) -> None:
    lab.compute(host).resume()
    operators.force_down(lab, host, False)


#: The ways in which a service can be absent.
ABSENCES = (
    Absence('kill and force down', _kill, _revive, 20, 60),
    Absence('freeze', lambda lab, host: lab.compute(host).pause(),
            lambda lab, host: lab.compute(host).resume(), 3, 30),
    Absence('freeze and force down', _suspect, _wake, 5, 40),
    Absence('stop', lambda lab, host: lab.compute(host).stop(),
            lambda lab, host: lab.compute(host).start(), 0, 30),
    Absence('disable',
            lambda lab, host: operators.set_enabled(lab, host, False),
            lambda lab, host: operators.set_enabled(lab, host, True), 20, 60),
)
