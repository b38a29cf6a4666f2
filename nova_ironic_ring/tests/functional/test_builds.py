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

"""Builds that wait inside nova-compute while services come, go and die."""

import time

from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.tests.functional import base

_SERVERS = 12


class WaitingBuildsTestCase(base.LabTestCase):
    """Each service builds one server at a time, and lets the others wait."""

    def setUp(self) -> None:
        super().setUp()
        self.computes = list(self.lab.state.computes)
        self.addCleanup(self._restart, {})
        self._restart({'DEFAULT': {'max_concurrent_builds': 1}})

    def _restart(self, sections: dict[str, dict[str, object]]) -> None:
        for name in self.computes:
            self.lab.compute(name).stop()
            self.lab.configure_compute(name, sections)
        for name in self.computes:
            self.lab.compute(name).start()
        for name in self.computes:
            self.lab.wait_alive(name)
        self.lab.wait_settled(self.nodes)

    def _boot_all(self) -> list[sdk_server.Server]:
        return [self.boot(f'waits-{number}') for number in range(_SERVERS)]

    def _wait_over(self, wanted: list[sdk_server.Server]) -> list[str]:
        """Wait until no server is being built, and return their states."""
        self.lab.wait('The end of all builds', lambda: all(
            self.show(server).status != 'BUILD' for server in wanted))
        return [self.show(server).status for server in wanted]

    def _set_disabled(self, name: str, disabled: bool) -> None:
        (service,) = self.cloud.compute.services(
            host=name, binary='nova-compute')
        if disabled:
            self.cloud.compute.disable_service(service)
        else:
            self.cloud.compute.enable_service(service)

    def test_service_that_is_disabled_and_one_that_joins(self):
        wanted = self._boot_all()
        time.sleep(0.5)
        self._set_disabled(self.computes[1], True)
        self.addCleanup(self._set_disabled, self.computes[1], False)
        newcomer = self.lab.next_name()
        self.lab.add_compute(newcomer)
        self.addCleanup(self.remove_compute, newcomer)
        self.assertEqual(['ACTIVE'] * _SERVERS, self._wait_over(wanted))
        nodes = {self.show(server).hypervisor_hostname for server in wanted}
        self.assertEqual(_SERVERS, len(nodes))
        # Its builds are over: now it gives up what is free.
        self.lab.wait('No free node of the disabled one', lambda: {
            node for node, owner in self.lab.owners().items()
            if owner == self.computes[1]} <= nodes)
