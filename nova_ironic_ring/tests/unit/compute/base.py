# SPDX-License-Identifier: Apache-2.0

"""A driver on a Nova, an Ironic and a Placement in memory."""

import time
from typing import Any

import fixtures
from oslotest import base

from nova_ironic_ring.compute.instances import recovery
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.fixtures import fake_nova

NODES = fake_nova.NODES
#: The kind of all of them.
KIND = pools.Kind('CUSTOM_BAREMETAL', frozenset(), frozenset({
    ('cpu_arch', 'x86_64')}))
#: A node that is in no ring from the start.
NEW = '11111111-1111-1111-1111-111111111111'


def recover(driver: Any, *taken: model.Takeover) -> None:
    """Recover instances, and wait until nothing is left to do.

    :param driver: the driver of the service that has taken them over
    :param taken: what was taken over
    """
    started = recovery.Recovery(driver, driver.ring_service.process.builds)
    started.start(taken)
    deadline = time.monotonic() + 30
    while started.pending:
        assert time.monotonic() < deadline
        time.sleep(0.01)


class DriverTestCase(base.BaseTestCase):
    """The service me, with the driver; its peers a and b only have records."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_ironic_ring'))
        self.signal = self.useFixture(
            fixtures.MockPatch('signal.signal')).mock
        self.nova = self.useFixture(fake_nova.FakeNova())
        self.cloud = self.nova.cloud
        self.nova.conf.config(host='me')
        self.nova.add_service('me', 'a', 'b')
        self.me = self.start()
        self.driver = self.me.driver

    def start(self) -> fake_nova.Compute:
        """Start the service, after its peers."""
        self.nova.divide('me', 'a', 'b')
        return self.nova.compute('me')

    def configure(self, group: str = 'ironic_ring', **options: object) -> None:
        self.nova.conf.config(group=group, **options)

    def settle(self) -> None:
        """Have the service start, and be trusted by itself."""
        self.me.run_pass()
        self.nova.advance()
        self.me.run_pass()
        self.nova.advance()

    def nodes_after_pass(self) -> set[str]:
        """Run a pass of the service.

        :returns: UUIDs of the nodes that it has by then
        """
        return self.me.run_pass()

    def say_members(self, *hosts: str) -> None:
        """Have services say in member records that they divide all nodes."""
        for host in hosts:
            self.cloud.members[host] = model.Member(
                model.LastPass(60), model.Scope())

    def join(self, host: str) -> None:
        """Have one more service in the ring."""
        self.nova.add_service(host)
        # Of a node that Ironic lists to nobody.
        self.nova.own(f'22222222-2222-2222-2222-{host:0>12}', host)

    def desired(self, *members: str, partitions: int = 32) -> set[str]:
        """Name the nodes that are for this service."""
        current = ring.Ring(members, partitions)
        return {node for node in NODES if current.owner(node) == 'me'}

    def first_of_b(self) -> str:
        """Name a node of b that is for this service once b is not there."""
        return min(self.desired('me', 'a') - self.desired('me', 'a', 'b'))


class PeersWithPools(DriverTestCase):
    """The same service with the pool driver, and so its peers.

    It goes in front of a case that is for either driver.
    """

    def start(self) -> fake_nova.Compute:
        for host in 'a', 'b':
            self.nova.record(pools.name(host, KIND), host, {})
        return self.nova.compute('me', pool_driver.IronicPoolDriver)

    def nodes_after_pass(self) -> set[str]:
        self.me.run_pass()
        return set(self.me.ring.nodes)
