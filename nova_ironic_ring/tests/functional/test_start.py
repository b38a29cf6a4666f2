# SPDX-License-Identifier: Apache-2.0

"""A nova-compute that starts, alone or among others."""

import json
import pathlib
import re
import shutil

import fixtures
import nova

from nova_ironic_ring.lab import waiting
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

    def test_node_that_is_gone_and_has_no_provider(self):
        """A service may end before it has created the provider."""
        (node,) = self.lab.enroll(1)
        self.lab.wait('A provider of the node',
                      lambda: node in self.providers())
        self.lab.compute('compute-1').stop()
        self.cloud.placement.delete_resource_provider(node)
        self.cloud.baremetal.delete_node(node)
        self.lab.start_compute('compute-1')
        self.assertHasAll()


class OtherNovaTestCase(base.LabTestCase):
    """The Nova of a service is not one that this project is tested with."""

    KIND = AloneTestCase.KIND
    _NAME = 'other'

    def setUp(self) -> None:
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.env = {'PYTHONPATH': str(self.path)}
        # Nova asks for its own version as for that of any package.
        metadata = self.path / 'nova-99.0.0.dist-info' / 'METADATA'
        metadata.parent.mkdir()
        metadata.write_text('Metadata-Version: 2.1\nName: nova\n'
                            'Version: 99.0.0\n')

    def _rename(self, **names: str) -> None:
        """Make a copy of Nova in which names are others.

        :param names: the new names by the old ones
        """
        shutil.copytree(
            pathlib.Path(nova.__file__).parent, self.path / 'nova',
            ignore=shutil.ignore_patterns('tests', 'locale', '__pycache__'))
        for path in (self.path / 'nova' / 'compute').glob('*.py'):
            text = path.read_text()
            for old, new in names.items():
                text = re.sub(rf'\b{old}\b', new, text)
            path.write_text(text)

    def _upgrade_check(self) -> dict[str, str]:
        """Return the line on Nova of ``nova-ironic-ring upgrade check``."""
        done = self._run(*self.lab.nova.ring, 'upgrade', 'check', '-f', 'json',
                         **self.env)
        (line,) = [line for line in json.loads(done.stdout)
                   if 'Nova' in line['Check']]
        return line

    def test_names_that_are_missing(self):
        self._rename(_init_instance='_prepare_instance',
                     instance_claim='claim')
        self.lab.add_compute(self._NAME, env=self.env)
        self.addCleanup(self.lab.forget_compute, self._NAME)
        compute = self.lab.compute(self._NAME)
        self.assertTrue(waiting.until(
            lambda: compute.state == 'stopped', timeout=60, poll=1))
        # On eventlet, an empty line comes after it.
        *_, said = [line for line in compute.log.read_text().splitlines()
                    if ' ERROR ' in line and ' lacks ' in line]
        for part in ('Nova 99.0.0 lacks ', 'ComputeManager._init_instance',
                     'ResourceTracker.instance_claim',
                     'which this driver needs: use Nova 31 to 34'):
            self.assertIn(part, said)
        # It has not come as far as a record of it.
        self.assertEqual([], list(self.cloud.compute.services(
            host=self._NAME)))
        line = self._upgrade_check()
        self.assertEqual('FAILURE', line['Result code'])
        self.assertIn('Nova 99.0.0 lacks ', line['Details'])

    def test_newer_release(self):
        self.lab.add_compute(self._NAME, env=self.env)
        self.addCleanup(self.remove_compute, self._NAME)
        self.lab.wait_alive(self._NAME)
        (said,) = [line for line in self.lab.compute(
            self._NAME).log.read_text().splitlines() if '99.0.0' in line
            and ' WARNING ' in line]
        self.assertIn('Nova 99.0.0 is none of the releases that this driver '
                      'is tested with, 31 to 34', said)
        line = self._upgrade_check()
        self.assertEqual('WARNING', line['Result code'])
        self.assertIn('Nova 99.0.0 is none of the releases', line['Details'])


class RingTestCase(base.LabTestCase):
    """A build that is on its way to a peer when a service starts.

    What Nova's own driver does with it, test_ring tells.
    """

    def test_build_of_a_peer_is_left_alone(self):
        status, server = self.build_while_one_starts()
        self.assertEqual('BUILD', status)
        self.assertEqual('ACTIVE', server.status)
