# SPDX-License-Identifier: Apache-2.0
"""What is measured: a start, steady passes, a restart, a death and others."""

from collections.abc import Callable
import dataclasses
import datetime
import time

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.core.values import member
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import view
from nova_ironic_ring_tools.scale import costs
from nova_ironic_ring_tools.scale import rpc

#: The services.
ONE, OTHER = 'compute-1', 'compute-2'
# Seconds.
_PATIENCE = 7200
_POLL = 0.5
# Seconds in which services that are not done would take or give a node.
_SETTLED = 30
# How many builds may fail after a restart.
_TRIES = 10


@dataclasses.dataclass(frozen=True)
class Stage:
    """The cost of a stage.

    :ivar name: its name in the table
    :ivar used: what the services have used meanwhile
    :ivar first: seconds until the first node was there; None for a stage that
        waits for no nodes
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


def outside_aggregates(lab: cloud.Lab) -> int:
    """Return how many resource providers are in no aggregate yet.

    :param lab: the lab
    """
    with lab.cell() as opened, opened.cursor() as cursor:
        cursor.execute(
            'SELECT COUNT(*) FROM placement.resource_providers AS providers '
            'LEFT JOIN placement.resource_provider_aggregates '
            'ON resource_provider_id = providers.id '
            'WHERE aggregate_id IS NULL '
            f"AND name NOT LIKE '%{member.SUFFIX}'")
        ((count,),) = cursor.fetchall()
        return int(count)


class Course:
    """Two services on a lab, and the stages that they go through."""

    def __init__(self, lab: cloud.Lab, count: int, sent: rpc.Counter) -> None:
        """Choose the lab.

        :param lab: a lab with nodes, and without a nova-compute
        :param count: how many nodes it has
        :param sent: counts the messages that the nova-computes send
        """
        self._lab = lab
        self._count = count
        self._sent = sent

    def run(self, window: float, overrides: services.Sections) -> list[Stage]:
        """Run all stages, from the start of the services to a drain.

        :param window: for how long to measure the steady passes, in seconds
        :param overrides: options of the nova-computes, by section
        :returns: the cost of each stage
        :raises LabError: if a service dies by itself, or a stage does not end
        """
        lab = self._lab
        stages = self.run_until_restart(window, overrides)
        self._wait_settled()

        stages.append(self._measure(
            'kill -9', lab.compute(ONE).kill,
            lambda: self._has_all(OTHER), self._grows(OTHER)))
        stages.append(self._measure(
            'return', lab.compute(ONE).start, self._is_shared,
            self._grows(ONE)))
        if lab.state.driver == lab_state.STOCK_DRIVER:
            # With that driver, the nodes of a disabled service change hands
            # for ever.
            return stages
        self._wait_settled()
        stages.append(self._measure(
            'drain', lambda: self._disable(ONE),
            lambda: self._has_all(OTHER), self._grows(OTHER)))
        return stages

    def run_until_restart(self, window: float, overrides: services.Sections
                          ) -> list[Stage]:
        """Run the stages from the start of the services to a restart of one.

        :param window: as for :meth:`run`
        :param overrides: as for :meth:`run`
        :returns: as :meth:`run`
        :raises LabError: as :meth:`run`
        """
        lab = self._lab
        costs.count_rows(lab)

        def start() -> None:
            lab.add_compute(ONE, overrides)
            if lab.state.driver == lab_state.STOCK_DRIVER:
                # Of several that start on an empty table, some end with an
                # error.
                lab.wait('A record of every node', lambda: (
                    len(lab.owners()) == self._count), _PATIENCE)
            lab.add_compute(OTHER, overrides)

        stages = [self._measure('start', start, self._is_shared,
                                self._is_whole)]
        # With Nova's own driver, the first service may have all nodes before
        # the second one has a record.
        for host in (ONE, OTHER):
            lab.wait_alive(host)
        lab.discover_hosts()
        if lab.state.driver != lab_state.STOCK_DRIVER:
            # The hosts are in an aggregate now, which changes each node.
            lab.wait('Each provider in an aggregate',
                     lambda: not outside_aggregates(lab), _PATIENCE)
        time.sleep(window)

        before = costs.used(lab, self._sent)
        time.sleep(window)
        stages.append(Stage(
            'steady', costs.used(lab, self._sent).since(before)))

        stages.append(self._change())
        stages.append(self._restart(OTHER))
        stages.append(self._build(OTHER))
        return stages

    def _is_whole(self) -> bool:
        return sum(offered(self._lab).values()) >= self._count

    def _is_shared(self) -> bool:
        found = offered(self._lab)
        return sum(found.values()) == self._count and all(
            found.get(host, 0) >= self._count / 4 for host in (ONE, OTHER))

    def _wait_shared(self) -> None:
        self._lab.wait('A shared inventory', self._is_shared, _PATIENCE)

    def _wait_settled(self) -> None:
        """Wait until no node changes hands any more."""
        self._wait_shared()
        if self._lab.state.driver == lab_state.STOCK_DRIVER:
            # With that driver, it may take for ever.
            return
        before: dict[str, str] = {}
        since = 0.0

        def is_settled() -> bool:
            nonlocal before, since
            found = self._lab.owners()
            if found != before:
                before, since = found, time.monotonic()
            return time.monotonic() - since > _SETTLED
        self._lab.wait('An inventory that stays', is_settled, _PATIENCE)

    def _has_all(self, host: str) -> bool:
        return offered(self._lab).get(host, 0) >= self._count

    def _offers(self, host: str) -> bool:
        return offered(self._lab).get(host, 0) > 0

    def _grows(self, host: str) -> Callable[[], bool]:
        """Return a function that tells whether a service has more nodes."""
        lab = self._lab
        before = offered(lab).get(host, 0) if host == OTHER else 0
        return lambda: offered(lab).get(host, 0) > before

    def _change(self) -> Stage:
        """Measure how soon Placement is told of the maintenance of a node."""
        lab = self._lab
        ironic = lab.connect('lab-system').baremetal
        node = next(iter(ironic.nodes())).id

        def is_known() -> bool:
            return sum(offered(lab).values()) == self._count - 1
        stage = self._measure(
            'change', lambda: ironic.set_node_maintenance(node), is_known,
            is_known)
        ironic.unset_node_maintenance(node)
        lab.wait('All nodes in Placement', lambda: (
            sum(offered(lab).values()) == self._count), _PATIENCE)
        return stage

    def _restart(self, host: str) -> Stage:
        """Stop a service, and measure the time from its start to a heartbeat.

        The service answers no message before its first heartbeat.

        :param host: the name of the service
        """
        self._lab.compute(host).stop()
        before = self._heartbeat(host)

        def is_alive() -> bool:
            return self._heartbeat(host) != before
        return self._measure(
            'restart', self._lab.compute(host).start, is_alive, is_alive)

    def _build(self, host: str) -> Stage:
        """Let a service that was just restarted build a server.

        While it did not run, the other service may have taken all its nodes.

        :param host: the name of the service
        :raises LabError: if no server is built
        """
        lab = self._lab
        kind = next(iter(lab.connect('lab-system').baremetal.nodes(
            details=True))).resource_class
        with lab.connect() as connected:
            booted: list[sdk_server.Server] = []
            failed: list[errors.LabError] = []

            def is_built() -> bool:
                if not self._offers(host):
                    return False
                try:
                    booted.append(servers.boot(
                        connected, 'scale', host=host, flavor=kind))
                    servers.wait_active(connected, booted[-1], _PATIENCE)
                except errors.LabError as error:
                    # The node may have changed hands meanwhile.
                    print(f'build: {error}', flush=True)
                    failed.append(error)
                    if len(failed) == _TRIES:
                        raise
                    return False
                return True
            stage = self._measure('build', lambda: None, is_built,
                                  lambda: self._offers(host))
            servers.delete(connected, booted, _PATIENCE)
        return stage

    def _heartbeat(self, host: str) -> datetime.datetime | None:
        with self._lab.cell() as opened:
            return view.heartbeat(opened, host)

    def _disable(self, host: str) -> None:
        with self._lab.connect() as connected:
            (service,) = connected.compute.services(
                host=host, binary='nova-compute')
            connected.compute.disable_service(service)

    def _measure(self, name: str, act: Callable[[], None],
                 done: Callable[[], bool], begun: Callable[[], bool]
                 ) -> Stage:
        """Run a stage, and measure its cost.

        :param name: its name in the table
        :param act: begins it
        :param done: returns whether it is over
        :param begun: returns whether the first node is there
        """
        before = costs.used(self._lab, self._sent)
        act()
        first: float | None = None

        def is_over() -> bool:
            nonlocal first
            if first is None and begun():
                first = time.monotonic() - before.at
            return done()
        self._lab.wait(
            f'The end of "{name}"', is_over, _PATIENCE, _POLL)
        stage = Stage(
            name, costs.used(self._lab, self._sent).since(before), first)
        # A run takes long, so each stage is printed as soon as it is over.
        print(f'{name}: {stage.used.at:.0f} s', flush=True)
        return stage
