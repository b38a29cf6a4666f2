# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import oslo_messaging
from oslotest import base

from nova_ironic_ring.lab import waiting
from nova_ironic_ring_tools.scale import rpc


class CounterTestCase(base.BaseTestCase):
    def test_what_a_service_sends(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        config = self.useFixture(config_fixture.Config(cfg.CONF))
        # A thread of oslo.messaging tries for so long to reach the socket.
        config.config(group='oslo_messaging_metrics',
                      metrics_thread_stop_timeout=1)
        with rpc.Counter(directory) as sent:
            for section, options in sent.options.items():
                config.config(group=section, **{
                    name: str(value) if isinstance(value, pathlib.Path)
                    else value for name, value in options.items()})
            client = oslo_messaging.get_rpc_client(
                oslo_messaging.get_rpc_transport(cfg.CONF, 'fake://'),
                oslo_messaging.Target(topic='conductor'))
            client.cast({}, 'one')
            client.cast({}, 'another')
            found = waiting.until(lambda: sent.count == 2, 20, 0.01)
        self.assertTrue(found)
        self.assertEqual([], list(directory.iterdir()))
