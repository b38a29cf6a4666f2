# SPDX-License-Identifier: Apache-2.0

"""Tests of how kinds of nodes are told apart."""

import fixtures
from oslotest import base

from nova_ironic_ring.adapters.ironic import kinds
from nova_ironic_ring.adapters.ironic import nodes
from nova_ironic_ring.core.values import pools


class KindsTestCase(base.BaseTestCase):

    def _node(self, number: int, **said) -> dict:
        return {
            'uuid': f'{number}', 'instance_uuid': None, 'last_error': None,
            'power_state': 'power on', 'target_power_state': None,
            'provision_state': 'available', 'target_provision_state': None,
            'maintenance': False, 'properties': {'cpu_arch': 'x86_64'},
            'traits': [], 'resource_class': 'baremetal', **said}

    def test_nova_is_asked_once_for_all_that_are_the_same(self):
        asked = self.useFixture(fixtures.MockPatchObject(
            nodes.Ironic, 'said', autospec=True,
            side_effect=nodes.Ironic.said)).mock
        known = kinds.Kinds()
        found = [known.said(self._node(number, **said)) for number, said in
                 enumerate(({}, {}, {'last_error': 'x'},
                            {'instance_uuid': 'i'}, {'maintenance': True},
                            {'traits': ['CUSTOM_FAST']}, {}))]
        self.assertEqual(4, asked.call_count)
        plain = pools.Kind('CUSTOM_BAREMETAL', frozenset(),
                           frozenset({('cpu_arch', 'x86_64')}))
        self.assertEqual([plain] * 5, [
            found[number].kind for number in (0, 1, 2, 3, 4)])
        self.assertEqual({'CUSTOM_FAST'}, found[5].kind.traits)
        self.assertEqual([True, True, True, True, False, True, True],
                         [each.is_ready for each in found])
