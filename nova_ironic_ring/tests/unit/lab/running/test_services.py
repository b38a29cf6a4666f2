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

    def test_more_options(self):
        state = lab_state.State(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path),
            ports=dict.fromkeys(lab_state.APIS, 1))
        backend = mock.Mock(**{'url': 'rabbit://'})
        database = mock.Mock(**{'url.return_value': 'mysql://'})
        config = services.NovaConfig(
            services.Context(state, database, backend))
        config.write({'ironic_ring': {'full_update_interval': 7}})
        written = configparser.RawConfigParser()
        written.read(config.common)
        self.assertEqual('7', written['ironic_ring']['full_update_interval'])
        self.assertEqual('127.0.0.1', written['DEFAULT']['my_ip'])
        config.write()
        written.clear()
        written.read(config.common)
        self.assertNotIn('ironic_ring', written)
