# SPDX-License-Identifier: Apache-2.0

"""Lets one nova-compute after the other run another release."""

import dataclasses
import re

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import waiting
from nova_ironic_ring_tools.faults import operators
from nova_ironic_ring_tools.faults import watch

# Seconds: far more than a task of a server takes, and a poll.
_PATIENCE = 120
_POLL = 0.5
# What Nova 34 logs when it is stopped, with any driver.
_OF_A_STOP = re.compile(r' ERROR oslo[._]service')


@dataclasses.dataclass(frozen=True)
class Step:
    """What was seen after a nova-compute was restarted.

    :ivar name: what was done
    :ivar changes: how many changes of owner that made
    :ivar most: how many of one node, at most
    :ivar active: how many servers are active, and were rebooted
    :ivar servers: how many servers there are
    :ivar build: the state of a server that the service then built, and why
        if that is another than ACTIVE
    :ivar findings: what ``nova-ironic-ring check`` has found
    :ivar errors: the lines at ERROR that the services have logged
    """

    name: str
    changes: int
    most: int
    active: int
    servers: int
    build: str
    findings: list[str]
    errors: list[str]

    #: The titles of the columns.
    COLUMNS = ('step', 'changes of owner (most for one)', 'servers rebooted',
               'build', 'check', 'errors logged')

    @property
    def passed(self) -> bool:
        """Whether all is as it should be."""
        # A service that is away for long loses its nodes, and gets them back.
        return (self.most <= 2 and self.build == 'ACTIVE'
                and self.active == self.servers
                and not self.findings and not self.errors)

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        return [self.name, f'{self.changes} ({self.most})',
                f'{self.active} of {self.servers}',
                self.build,
                '; '.join(self.findings) or 'all is well',
                ', '.join([str(len(self.errors)), *self.errors[:1]])]


class Upgrade:
    """A lab whose nova-computes are changed one after the other."""

    def __init__(self, lab: cloud.Lab, nodes: int) -> None:
        """Begin with a lab that is up.

        :param lab: the lab
        :param nodes: how many nodes it has
        """
        self._lab = lab
        self._nodes = nodes
        self._link = lab.connect()
        self._watch = watch.Watch(lab)

    def begin(self, program: str) -> None:
        """Let all nova-computes run an older release.

        :param program: the path of the program
        """
        names = list(self._lab.state.computes)
        for name in names:
            self._lab.compute(name).stop()
            self.define(name, program)
        with self._lab.cell() as opened, opened.cursor() as cursor:
            # Nova starts no service that is older than all others are.
            cursor.execute('UPDATE services SET version = 0 '
                           "WHERE `binary` = 'nova-compute'")
            opened.commit()
        # It remembers how old they are.
        conductor = self._lab.state.process('nova-conductor')
        conductor.stop()
        conductor.start()
        for name in names:
            self._lab.start_compute(name)

    def boot(self) -> list[sdk_server.Server]:
        """Boot a server on each nova-compute.

        :returns: the servers, which are active
        """
        self._lab.wait_settled(self._nodes)
        return [servers.wait_active(self._link, servers.boot(
            self._link, f'server-on-{name}', name))
            for name in self._lab.state.computes]

    def change(self, name: str, program: str, release: str,
               booted: list[sdk_server.Server]) -> Step:
        """Let a nova-compute run another release, and look at everything.

        :param name: the nova-compute
        :param program: the path of the program
        :param release: the release, in words
        :param booted: the servers
        """
        self._watch.restart()
        logged = len(self._errors())
        self._lab.compute(name).stop()
        self.define(name, program)
        self._lab.start_compute(name)
        self._lab.wait_settled(self._nodes)
        changes = self._watch.changes()
        active = sum(self._reboot(each) for each in booted)
        return Step(
            f'{name} runs {release}', len(changes),
            watch.most_for_one_node(changes), active, len(booted),
            self._build(name), operators.findings(self._lab),
            self._errors()[logged:])

    def define(self, name: str, program: str) -> None:
        """Set what a nova-compute runs from its next start on.

        :param name: the nova-compute
        :param program: the path of the program
        """
        compute = services.NovaCompute(self._lab.nova, name)
        compute.process.define([
            program, '--config-file', str(compute.config.common),
            '--config-file', str(compute.conf)])

    def _reboot(self, server: sdk_server.Server) -> bool:
        """Reboot a server, and return whether that was done."""
        self._link.compute.reboot_server(server, 'HARD')

        def is_well() -> bool:
            found = self._link.compute.get_server(server.id)
            return found.status == 'ACTIVE' and found.task_state is None
        return waiting.until(is_well, _PATIENCE, _POLL)

    def _build(self, host: str) -> str:
        """Build a server on a service, and return what becomes of it."""
        server = servers.boot(self._link, 'built-after', host)
        waiting.until(lambda: self._link.compute.get_server(
            server.id).status != 'BUILD', _PATIENCE, _POLL)
        found = self._link.compute.get_server(server.id)
        servers.delete(self._link, [server])
        self._lab.wait_settled(self._nodes)
        return ': '.join([found.status, *(
            [found.fault['message']] if found.fault else [])])

    def _errors(self) -> list[str]:
        """Return the lines at ERROR in the logs of all nova-computes."""
        return sorted(
            line for name in self._lab.state.computes
            for line in self._lab.compute(name).log.read_text().splitlines()
            if ' ERROR ' in line and not _OF_A_STOP.search(line))
