# SPDX-License-Identifier: Apache-2.0

"""Tests of the network of the container, without making one."""

import pathlib

import fixtures
from oslotest import base

from nova_ironic_ring_tools.devstack import commands
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import network


class NetworkTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.before = root / 'before'
        self.forwarding = root / 'ip_forward'
        self.forwarding.write_text('0\n')
        self.namespace = root / 'namespace'
        self.calls: list[str] = []
        self.refused = ''
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring_tools.devstack.network._FORWARDING',
            self.forwarding))
        self.useFixture(fixtures.MockPatchObject(
            network, 'path', lambda: self.namespace))
        self.useFixture(fixtures.MockPatchObject(
            commands, 'run', self._run))

    def _run(self, *argv: str) -> str:
        called = ' '.join(argv)
        self.calls.append(called)
        if self.refused and called.startswith(self.refused):
            raise errors.DevstackError('No.')
        return ''

    def test_up(self):
        network.up(self.before)
        self.assertIn('ip -n ironic-ring address add 10.255.77.2/30 dev host0',
                      self.calls)
        self.assertIn('nft add rule ip ironic-ring out ip saddr 10.255.77.2 '
                      'oifname != ironic-ring masquerade', self.calls)
        self.assertEqual('1\n', self.forwarding.read_text())

    def test_up_once_more(self):
        self.namespace.touch()
        self.before.touch()
        network.up(self.before)
        self.assertEqual([], self.calls)

    def test_network_of_another(self):
        self.namespace.touch()
        error = self.assertRaises(errors.DevstackError, network.up,
                                  self.before)
        self.assertIn('The network namespace ironic-ring is there already: '
                      'end the other devstack with "down"', str(error))
        network.down(self.before)
        self.assertEqual([], self.calls)

    def test_down_restores_the_machine(self):
        network.up(self.before)
        del self.calls[:]
        network.down(self.before)
        self.assertEqual(['nft delete table ip ironic-ring',
                          'ip link delete ironic-ring',
                          'ip netns delete ironic-ring'], self.calls)
        self.assertEqual('0\n', self.forwarding.read_text())
        self.assertFalse(self.before.exists())

    def test_down_of_what_is_gone(self):
        self.refused = 'ip link delete'
        self.before.write_text('0\n')
        network.down(self.before)
        self.assertEqual('ip netns delete ironic-ring', self.calls[-1])
        self.assertEqual('0\n', self.forwarding.read_text())

    def test_up_that_fails_leaves_nothing(self):
        self.refused = 'nft add chain'
        self.assertRaises(errors.DevstackError, network.up, self.before)
        self.assertEqual('ip netns delete ironic-ring', self.calls[-1])
        self.assertEqual('0\n', self.forwarding.read_text())
