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

        def openstack(*words, system):
            self.assertTrue(system)
            if words[1] == 'node':
                return [{'UUID': uuid} for uuid in ('n3', 'n1', 'n2')]
            return [{'Conductor Group': '', 'Alive': True},
                    {'Conductor Group': 'rack-b', 'Alive': True},
                    {'Conductor Group': 'rack-c', 'Alive': False}]

        self.cloud.openstack.side_effect = openstack

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

    def test_stop(self):
        conductors.stop(self.cloud.box, ['', 'rack-b'])
        self.cloud.box.root_run.assert_called_once_with(
            'systemctl', 'stop', 'nova-ironic-ring-conductor-2')
