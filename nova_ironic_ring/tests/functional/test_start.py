# SPDX-License-Identifier: Apache-2.0

"""A nova-compute that starts, alone or among others."""

import re

from nova_ironic_ring.tests.functional import base


class AloneTestCase(base.LabTestCase):
    """One service with nothing to configure, as with Nova's own driver."""

    KIND = base.Kind(computes=1, nodes=4)

    def assertHasAll(self) -> None:
        """See that the service has all nodes, now."""
        self.assertIsDivided({
            node.id: 'compute-1' for node in self.cloud.baremetal.nodes()})

    def test_nodes_are_there_from_the_start(self):
        self.assertHasAll()
        log = self.lab.compute('compute-1').log.read_text()
        # Before the service is up: all that is done until then is logged as
        # one request.
        (start,) = {request for line in log.splitlines()
                    if 'Members of the ring' in line
                    or 'Compute node record created' in line
                    for request in re.findall('req-[-0-9a-f]*', line)}
        self.assertIn('Loading compute driver', next(
            line for line in log.splitlines() if start in line))
        self.assertEqual([], [
            line for line in log.splitlines()
            if 'ERROR nova_ironic_ring' in line
            or 'WARNING nova_ironic_ring' in line
            # As they are where the machine is busy.
            and 'Heartbeats of this service have been late' not in line])

    def test_server_and_restart(self):
        server = self.boot_active('lonely')
        self.lab.compute('compute-1').stop()
        self.lab.start_compute('compute-1')
        self.assertHasAll()
        self.assertReboots(server)


class RingTestCase(base.LabTestCase):
    """A build that is on its way to a peer when a service starts.

    What Nova's own driver does with it, test_ring tells.
    """

    def test_build_of_a_peer_is_left_alone(self):
        status, server = self.build_while_one_starts()
        self.assertEqual('BUILD', status)
        self.assertEqual('ACTIVE', server.status)
