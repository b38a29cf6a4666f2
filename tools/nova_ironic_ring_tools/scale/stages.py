# SPDX-License-Identifier: Apache-2.0
"""What is measured: a start, steady passes, a restart, a death and others."""

from collections.abc import Callable
import dataclasses
import datetime
import time

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import services
from nova_ironic_ring.lab import state as lab_state
from nova_ironic_ring.lab import view
from nova_ironic_ring_tools.scale import costs

#: The services.
ONE, OTHER = 'compute-1', 'compute-2'
# Seconds.
_PATIENCE = 7200
_POLL = 0.5


@dataclasses.dataclass(frozen=True)
class Course:
    """How to go through the stages.

    :ivar window: seconds that the steady passes are watched
    :ivar overrides: options of the nova-computes, by section
    """

    window: float
    overrides: services.Sections


@dataclasses.dataclass(frozen=True)
class Stage:
    """What one of them has taken.

    :ivar name: what the table calls it
    :ivar used: what has been used meanwhile
    :ivar first: seconds until the first node was there; None where this means
        nothing
    """

    name: str
    used: costs.Used
    first: float | None = None


def offered(lab: cloud.Lab) -> dict[str, int]:
    """Return how many nodes each service offers in Placement.

    :param lab: the lab
    """
    with lab.cell() as opened, opened.cursor() as cursor:
        cursor.execute(
            'SELECT host, SUM(total - reserved) FROM compute_nodes '
            'JOIN placement.resource_providers AS providers USING (uuid) '
            'JOIN placement.inventories '
            'ON resource_provider_id = providers.id '
            'WHERE deleted = 0 GROUP BY host')
        return {host: int(count) for host, count in cursor.fetchall()}


def run(lab: cloud.Lab, count: int, course: Course) -> list[Stage]:
    """Start two services, let them be, restart and kill one, and drain it.

    :param lab: a lab with nodes, and without a nova-compute
    :param count: how many nodes it has
    :param course: how to go through them
    :raises LabError: if a service dies by itself, or nothing comes of it
    """
    def is_whole() -> bool:
        return sum(offered(lab).values()) >= count

    def is_shared() -> bool:
        found = offered(lab)
        return sum(found.values()) == count and all(
            found.get(host, 0) >= count / 4 for host in (ONE, OTHER))

    def start() -> None:
        lab.add_compute(ONE, course.overrides)
        if lab.state.driver == lab_state.STOCK_DRIVER:
            # Of several that start on an empty table, some end with an error.
            lab.wait('A record of every node', lambda: (
                len(lab.owners()) == count), _PATIENCE)
        lab.add_compute(OTHER, course.overrides)

    stages = [_measure(lab, 'start', start, is_whole, is_whole)]
    lab.discover_hosts()
    # The second service gets its share first.
    lab.wait('A shared inventory', is_shared, _PATIENCE)

    before = costs.used(lab)
    time.sleep(course.window)
    stages.append(Stage('steady', costs.used(lab).since(before)))

    stages.append(_change(lab, count))
    stages.append(_restart(lab, OTHER))
    lab.wait('A shared inventory', is_shared, _PATIENCE)

    stages.append(_measure(
        lab, 'kill -9', lab.compute(ONE).kill,
        lambda: offered(lab).get(OTHER, 0) >= count,
        _grows(lab, OTHER)))
    stages.append(_measure(
        lab, 'join', lab.compute(ONE).start, is_shared, _grows(lab, ONE)))
    if lab.state.driver == lab_state.STOCK_DRIVER:
        # Disabled, its nodes go to and fro for ever.
        return stages
    stages.append(_measure(
        lab, 'drain', lambda: _disable(lab, ONE),
        lambda: offered(lab).get(OTHER, 0) >= count, _grows(lab, OTHER)))
    return stages


def _change(lab: cloud.Lab, count: int) -> Stage:
    """Set maintenance of one node in Ironic, until Placement knows of that.

    :param lab: the lab
    :param count: how many nodes it has
    """
    ironic = lab.connect('lab-system').baremetal
    node = next(iter(lab.owners()))

    def is_known() -> bool:
        return sum(offered(lab).values()) == count - 1
    stage = _measure(
        lab, 'change', lambda: ironic.set_node_maintenance(node), is_known,
        is_known)
    ironic.unset_node_maintenance(node)
    lab.wait('All nodes in Placement', lambda: (
        sum(offered(lab).values()) == count), _PATIENCE)
    return stage


def _restart(lab: cloud.Lab, host: str) -> Stage:
    """Stop a service, and start it, until its first heartbeat.

    Nova answers no message before that.

    :param lab: the lab
    :param host: the name of the service
    """
    lab.compute(host).stop()
    before = _heartbeat(lab, host)

    def is_alive() -> bool:
        return _heartbeat(lab, host) != before
    return _measure(
        lab, 'restart', lab.compute(host).start, is_alive, is_alive)


def _heartbeat(lab: cloud.Lab, host: str) -> datetime.datetime | None:
    with lab.cell() as opened:
        return view.heartbeat(opened, host)


def _disable(lab: cloud.Lab, host: str) -> None:
    with lab.connect() as connected:
        (service,) = connected.compute.services(
            host=host, binary='nova-compute')
        connected.compute.disable_service(service)


def _grows(lab: cloud.Lab, host: str) -> Callable[[], bool]:
    """Return what says whether a service has more nodes by now."""
    before = offered(lab).get(host, 0) if host == OTHER else 0
    return lambda: offered(lab).get(host, 0) > before


def _measure(lab: cloud.Lab, name: str, act: Callable[[], None],
             done: Callable[[], bool], begun: Callable[[], bool]) -> Stage:
    """Do something, and wait for what comes of it.

    :param lab: the lab
    :param name: what the table calls it
    :param act: does it
    :param done: says whether all nodes are where they belong
    :param begun: says whether the first one is
    """
    before = costs.used(lab)
    act()
    first: float | None = None

    def is_over() -> bool:
        nonlocal first
        if first is None and begun():
            first = time.monotonic() - before.at
        return done()
    lab.wait(f'The end of "{name}"', is_over, _PATIENCE, _POLL)
    stage = Stage(name, costs.used(lab).since(before), first)
    # A run takes long, and this is known.
    print(f'{name}: {stage.used.at:.0f} s', flush=True)
    return stage
