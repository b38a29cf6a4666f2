# SPDX-License-Identifier: Apache-2.0

"""Tests of the configuration of the lab's services."""

import configparser
import pathlib
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state


class NovaConfigTestCase(base.BaseTestCase):

    def _make(self) -> services.NovaConfig:
        state = lab_state.State(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path),
            ports=dict.fromkeys(lab_state.APIS, 1))
        backend = mock.Mock(**{'url': 'rabbit://'})
        database = mock.Mock(**{'url.return_value': 'mysql://'})
        return services.NovaConfig(services.Context(state, database, backend))

    def test_provider_yaml_for_those_that_can_apply_it(self):
        for release, is_written in ('33.1.0', False), ('34.0.0', True):
            config = self._make()
            with mock.patch('importlib.metadata.version',
                            return_value=release):
                config.provide('compute-1')
            self.assertEqual(is_written, (
                config.providers('compute-1') / 'provider.yaml').exists())

    def test_more_options(self):
        config = self._make()
        config.write({'ironic_ring': {'full_update_interval': 7}})
        written = configparser.RawConfigParser()
        written.read(config.common)
        self.assertEqual('7', written['ironic_ring']['full_update_interval'])
        self.assertEqual('127.0.0.1', written['DEFAULT']['my_ip'])
        config.write()
        written.clear()
        written.read(config.common)
        self.assertNotIn('ironic_ring', written)
