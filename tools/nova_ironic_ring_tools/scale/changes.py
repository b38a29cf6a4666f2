# SPDX-License-Identifier: Apache-2.0

"""Measures how soon Placement is told of a change in Ironic.

One service has all nodes, and its next pass is an hour away.
"""

from collections.abc import Sequence
import dataclasses
import statistics
import time

import prettytable

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring_tools.scale import seed
from nova_ironic_ring_tools.scale import stages

_HOST = 'compute-1'
# Seconds.
_INTERVAL = 3600
_PATIENCE = 7200
_POLL = 0.25
# While thousands of nodes are recorded, each look at them costs seconds.
_POLL_START = 10
# How often maintenance of a node is set and unset.
_ROUNDS = 5
# The processes that look for changes, and that answer.
_PROCESSES = (_HOST, 'ironic', 'mariadb')


@dataclasses.dataclass(frozen=True)
class Run:
    """The results of a driver.

    :ivar driver: the value of ``compute_driver`` in nova.conf
    :ivar count: how many nodes the service has
    :ivar seen: after how many seconds each change was in Placement
    :ivar idle: seconds of processor time in a minute without a change, by the
        name of the process
    """

    driver: str
    count: int
    seen: Sequence[float]
    idle: dict[str, float]


def measure(driver: str, count: int) -> Run:
    """Bring a lab up, and measure.

    :param driver: the value of ``compute_driver`` in nova.conf
    :param count: how many nodes the service is to have
    :raises LabError: if the lab does not come up, or a change does not reach
        Placement
    """
    fixture = cloud.Cloud(
        place.directory('scale-changes'), driver=driver, computes=0,
        node_count=1, progress=print)
    with fixture:
        lab = fixture.lab
        with lab.database.connect('ironic') as opened:
            seed.seed(seed.Databases(opened), seed.Size(count, (), 1))
        lab.add_compute(_HOST)

        def has(nodes: int) -> bool:
            return sum(stages.offered(lab).values()) == nodes
        lab.wait('The whole inventory', lambda: has(count),
                 _PATIENCE, _POLL_START)
        lab.configure_compute(_HOST, {
            'DEFAULT': {'update_resources_interval': _INTERVAL}})
        lab.compute(_HOST).kill()
        lab.start_compute(_HOST)
        before = _used(lab)
        time.sleep(60)
        idle = {name: used - before[name]
                for name, used in _used(lab).items()}
        ironic = lab.connect('lab-system').baremetal
        node = next(iter(ironic.nodes())).id
        seen = []
        for _ in range(_ROUNDS):
            for act, nodes in ((ironic.set_node_maintenance, count - 1),
                               (ironic.unset_node_maintenance, count)):
                act(node)
                begin = time.monotonic()
                lab.wait(f'{nodes} nodes in Placement',
                         lambda: has(nodes), _PATIENCE, _POLL)
                seen.append(time.monotonic() - begin)
        return Run(driver, count, seen, idle)


def _used(lab: cloud.Lab) -> dict[str, float]:
    return {name: lab.state.process(name).processor_time()
            for name in _PROCESSES}


def table(run: Run) -> prettytable.PrettyTable:
    """Make a table of the results.

    :param run: the results
    """
    printed = prettytable.PrettyTable([
        'driver', 'nodes', 'median s', 'longest s',
        *(f'{name} s a minute' for name in run.idle)])
    printed.align = 'r'
    printed.add_row([
        run.driver, run.count, f'{statistics.median(run.seen):.1f}',
        f'{max(run.seen):.1f}',
        *(f'{used:.2f}' for used in run.idle.values())])
    return printed


#: The drivers to measure: Nova's own driver would take an hour.
DRIVERS = {'ring': lab_state.RING_DRIVER, 'pool': lab_state.POOL_DRIVER}
