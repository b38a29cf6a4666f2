# SPDX-License-Identifier: Apache-2.0

"""Builds that wait inside nova-compute while services come and go."""

import concurrent.futures
from typing import ClassVar

from nova_ironic_ring.core.values import pools
from nova_ironic_ring.lab import servers
from nova_ironic_ring.tests.functional import base


class WaitingBuildsTestCase(base.LabTestCase):
    """Each service builds one server at a time, and lets the others wait."""

    #: How many servers are asked for at once.
    SERVERS: ClassVar[int] = 12

    def setUp(self) -> None:
        super().setUp()
        self.computes = list(self.lab.state.computes)
        self.addCleanup(self._restart, {})
        self._restart({'DEFAULT': {'max_concurrent_builds': 1}})

    def _restart(self, sections: dict[str, dict[str, object]]) -> None:
        for name in self.computes:
            self.lab.compute(name).kill()
            self.lab.configure_compute(name, sections)
            self.lab.compute(name).start()
        for name in self.computes:
            self.lab.wait_alive(name)
        self.lab.wait_settled(self.nodes)

    def test_service_that_is_disabled_and_one_that_joins(self):
        (service,) = self.cloud.compute.services(
            host=self.computes[1], binary='nova-compute')
        newcomer = self.lab.next_name()
        with concurrent.futures.ThreadPoolExecutor(self.SERVERS) as pool:
            asked = list(pool.map(
                # Not all ask for the same, as there are several kinds.
                lambda number: self.boot(
                    f'waits-{number}',
                    flavor=None if number else 'baremetal-large'),
                range(self.SERVERS)))
        self.lab.wait('The first build', lambda: any(
            self.show(server).task_state == 'spawning' for server in asked))
        self.cloud.compute.disable_service(service)
        self.addCleanup(self.cloud.compute.enable_service, service)
        self.lab.add_compute(newcomer)
        self.addCleanup(self.remove_compute, newcomer)
        built = [servers.wait_active(self.cloud, server) for server in asked]
        self.assertEqual(self.SERVERS, len({
            self.node_of(server).id for server in built}))
        for server in built:
            self.assertEqual([pools.provider(server.hypervisor_hostname)],
                             list(self.allocations(server)))
        # The builds of the disabled one are over: it gives up what is free.
        self.lab.wait_settled(self.nodes)
        servers.delete(self.cloud, built)
