# SPDX-License-Identifier: Apache-2.0

"""Tests of conductors for conductor groups, with stand-ins for the cloud."""

from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring_tools.devstack import conductors
from nova_ironic_ring_tools.devstack import errors


class ConductorsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = mock.Mock()

        self.cloud.baremetal.side_effect = {
            'node': [{'uuid': uuid} for uuid in ('n3', 'n1', 'n2')],
            'conductor': [{'conductor_group': '', 'alive': True},
                          {'conductor_group': 'rack-b', 'alive': True},
                          {'conductor_group': 'rack-c', 'alive': False}],
        }.__getitem__

    def test_start(self):
        conductors.start(self.cloud, ['', 'rack-b'])
        self.cloud.box.write.assert_called_once_with(
            'etc/ironic/conductor-2.conf',
            '[DEFAULT]\nhost = conductor-2\n\n'
            '[conductor]\nconductor_group = rack-b\n')
        run = self.cloud.box.root_run.call_args.args
        self.assertIn('--unit=nova-ironic-ring-conductor-2', run)
        self.assertEqual(('--config-file', '/etc/ironic/conductor-2.conf'),
                         run[-2:])
        self.assertEqual(
            [('n1', ''), ('n2', 'rack-b'), ('n3', '')],
            [(call.args[3], call.args[5])
             for call in self.cloud.do.call_args_list])

    def test_conductor_that_does_not_come(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring_tools.devstack.conductors._TIMEOUT', 0))
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring_tools.devstack.cloud._POLL', 0.01))
        error = self.assertRaises(
            errors.DevstackError, conductors.start,
            self.cloud, ['', 'rack-c'])
        self.assertIn('each conductor group has a conductor', str(error))
        self.cloud.do.assert_not_called()

    def test_start_after_a_failed_one(self):
        conductors.start(self.cloud, ['', 'rack-b'])
        self.assertEqual(
            ['stop', 'reset-failed', '--quiet'],
            [call.args[1] for call in self.cloud.box.root_run.call_args_list])

    def test_stop(self):
        conductors.stop(self.cloud.box)
        # A pattern, which need not match any unit.
        self.assertEqual(
            [mock.call('systemctl', verb, 'nova-ironic-ring-conductor-*')
             for verb in ('stop', 'reset-failed')],
            self.cloud.box.root_run.call_args_list)
