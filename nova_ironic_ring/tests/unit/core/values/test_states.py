# SPDX-License-Identifier: Apache-2.0

"""Tests that each of Ironic's provision states has a meaning."""

import importlib

from nova.virt.ironic import driver
from nova.virt.ironic import ironic_states
from oslotest import base

from nova_ironic_ring.core.values import states

# Where nodes of a server are that Nova need not have undeployed.
_NO_SERVER = {states.Meaning.FREE, states.Meaning.NONE}


class MeaningTestCase(base.BaseTestCase):

    def test_all_states_of_ironic(self):
        known = set(ironic_states.ALL_STATES)
        try:
            # It is there where the lab is.
            machine = importlib.import_module('ironic.common.state_machine')
        except ImportError:
            pass
        else:
            known = {*known, *machine.machine.states}
        self.assertEqual(known, states.MEANINGS.keys() - {None})

    def test_what_nova_undeploys_has_a_server(self):
        for state in driver._UNPROVISION_STATES:
            self.assertNotIn(states.meaning(state), _NO_SERVER, state)

    def test_state_of_a_later_ironic(self):
        self.assertTrue(states.meaning('to be invented').is_under_way)
