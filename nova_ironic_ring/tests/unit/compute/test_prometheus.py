# SPDX-License-Identifier: Apache-2.0

"""Tests that a Prometheus can read the metrics as the documentation says."""

import pathlib
import re
import shutil
import textwrap
from typing import Any

import fixtures
import testtools
import yaml

from nova_ironic_ring.compute import certificates
from nova_ironic_ring.compute import metrics
from nova_ironic_ring.lab.running import state
from nova_ironic_ring.lab import waiting
from nova_ironic_ring.tests.fixtures import authority
from nova_ironic_ring.tests.unit.compute import base
from nova_ironic_ring_tools import prometheus

_PAGE = pathlib.Path(__file__).parents[4] / 'doc/source/monitoring.rst'
# Seconds.
_PATIENCE, _POLL = 40, 0.2


def _jobs() -> list[list[dict[str, Any]]]:
    """Return the jobs of the documentation: without TLS, and with it."""
    blocks = re.findall(r'^In Prometheus::\n\n((?: {4}.*\n|\n)+)',
                        _PAGE.read_text(), re.MULTILINE)
    return [yaml.safe_load(textwrap.dedent(block))['scrape_configs']
            for block in blocks]


@testtools.skipUnless(shutil.which('prometheus'), 'There is no Prometheus.')
class PrometheusTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.settle()
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.port, self.web = state.free_ports(2)
        self.plain, self.safe = (job for (job,) in _jobs())

    def _serve(self, paths: certificates.Paths = certificates.Paths()) -> None:
        server = metrics.start(
            self.me.ring, lambda: 0, f'127.0.0.1:{self.port}', paths)
        assert server is not None
        self.addCleanup(server.server_close)

    def _watch(self, job: dict[str, Any]) -> dict[str, Any]:
        """Have a Prometheus watch the service, and return what it has found.

        :param job: the job of the documentation
        """
        (static,) = job['static_configs']
        static['targets'] = [f'127.0.0.1:{self.port}']
        self.prometheus = self.useFixture(
            prometheus.Prometheus(self.web, [job]))
        found: dict[str, Any] = {}

        def is_known() -> bool:
            for target in self.prometheus.targets():
                found.update(target)
            return found.get('health', 'unknown') != 'unknown'
        self.assertTrue(waiting.until(is_known, _PATIENCE, _POLL), found)
        return found

    def assertRead(self, found: dict[str, Any]) -> None:
        self.assertEqual(('up', ''), (found['health'], found['lastError']))
        read: list[dict[str, Any]] = []

        def has_values() -> bool:
            read[:] = self.prometheus.values(
                'nova_ironic_ring_passes_total', 60)
            return bool(read)
        self.assertTrue(waiting.until(has_values, _PATIENCE, _POLL))
        (passes,) = read
        self.assertEqual('2', passes['values'][-1][1])

    def test_without_tls(self):
        self._serve()
        self.assertRead(self._watch(self.plain))

    def test_with_certificates_of_both(self):
        signer = authority.Authority(self.directory, 'ca')
        cert, key = signer.issue('server')
        self._serve(certificates.Paths(cert, key, signer.path))
        mine, secret = signer.issue('prometheus')
        self.safe['tls_config'] = {
            name: {'ca_file': signer.path, 'cert_file': mine,
                   'key_file': secret}[name]
            for name in self.safe['tls_config']}
        self.assertRead(self._watch(self.safe))

    def test_without_a_certificate_of_its_own(self):
        signer = authority.Authority(self.directory, 'ca')
        cert, key = signer.issue('server')
        self._serve(certificates.Paths(cert, key, signer.path))
        self.safe['tls_config'] = {'ca_file': signer.path}
        found = self._watch(self.safe)

        def is_told() -> bool:
            # A request may meet the closed connection before the reason.
            for target in self.prometheus.targets():
                found.update(target)
            self.assertEqual('down', found['health'])
            return 'certificate required' in found['lastError']
        self.assertTrue(waiting.until(is_told, _PATIENCE, _POLL), found)
