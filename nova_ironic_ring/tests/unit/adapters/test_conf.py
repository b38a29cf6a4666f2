# SPDX-License-Identifier: Apache-2.0

from importlib import metadata
import pathlib

import fixtures
from oslo_config import cfg
from oslo_config import generator
from oslotest import base

from nova_ironic_ring.adapters import conf


class OptionsTestCase(base.BaseTestCase):

    def _conf(self, **values) -> cfg.ConfigOpts:
        registered = cfg.ConfigOpts()
        conf.register_opts(registered)
        registered([], default_config_files=[])
        for name, value in values.items():
            registered.set_override(name, value, 'ironic_ring')
        return registered

    def test_default(self):
        self.assertEqual(32, self._conf().ironic_ring.partitions)

    def test_no_partitions(self):
        self.assertRaises(ValueError, self._conf, partitions=0)

    def test_registered_twice(self):
        registered = self._conf()
        conf.register_opts(registered)
        self.assertEqual(32, registered.ironic_ring.partitions)

    def test_peer_list_where_nova_has_it_no_more(self):
        registered = cfg.ConfigOpts()
        conf.register_peer_list(registered)
        registered([], default_config_files=[])
        self.assertEqual([], registered.ironic.peer_list)
        self.assertTrue(conf.peer_list_opt.mutable)

    def test_those_that_are_read_only_at_a_start(self):
        self.assertEqual(
            ['request_timeout', 'metrics_listen', 'metrics_cert_file',
             'metrics_key_file', 'metrics_client_ca_file'],
            [option.name for _, options in conf.list_opts()
             for option in options if not option.mutable])

    def test_sample_is_what_the_generator_writes(self):
        root = pathlib.Path(__file__).resolve().parents[4]
        written = pathlib.Path(self.useFixture(fixtures.TempDir()).join('it'))
        generator.main([
            '--config-file',
            str(root / 'etc/oslo-config-generator/nova-ironic-ring.conf'),
            '--output-file', str(written)])
        self.assertEqual(
            written.read_text(),
            (root / 'etc/nova-ironic-ring.conf.sample').read_text(),
            'write it anew: tools/tox -e genconfig')

    def test_entry_point(self):
        (found,) = metadata.entry_points(
            group='oslo.config.opts', name='nova_ironic_ring')
        self.assertIs(conf.list_opts, found.load())
