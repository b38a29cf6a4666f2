# SPDX-License-Identifier: Apache-2.0

"""Builds whose request names the one node that they are for."""

from unittest import mock

import ddt
from nova import context as nova_context
from nova import exception
from nova import objects
from nova import policy
from oslo_utils.fixture import uuidsentinel
from oslotest import base

from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute.pools import named_nodes
from nova_ironic_ring.core.taking.building import reservation
from nova_ironic_ring.tests.fixtures import nova_policy

NODE = '6e9b8d1c-2f4a-4c6e-8b0d-3a5c7e9f1b2d'


@ddt.ddt
class NamedNodesTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(nova_policy.NovaPolicy())
        self.builds = named_nodes.NamedNodes()
        self.instance = objects.Instance(
            uuid=uuidsentinel.instance, node='me.CUSTOM_GOLD.01234567')

    def ask(self, hint=(NODE,), role='admin'):
        """Begin a build that somebody with a role asks for."""
        self.builds.begin(upstream.Request(
            uuidsentinel.instance, {'ironic_node': hint} if hint else {},
            nova_context.RequestContext('user', 'project', roles=[role])))

    def refused(self):
        return str(self.assertRaises(
            exception.InstanceUnacceptable, self.builds.node_for,
            self.instance))

    def test_build_without_the_hint(self):
        self.assertIsNone(self.builds.node_for(self.instance))
        self.ask(hint=None)
        self.assertIsNone(self.builds.node_for(self.instance))

    @ddt.data([NODE], [NODE.upper()], NODE, [NODE.replace('-', '')])
    def test_who_may_force_a_host(self, hint):
        self.ask(hint)
        self.assertEqual(NODE, self.builds.node_for(self.instance))

    @ddt.data('member', 'reader', 'manager', 'service')
    def test_who_may_not(self, role):
        self.ask(role=role)
        self.assertIn('the scheduler hint ironic_node is for those who may '
                      'force a host', self.refused())

    @ddt.data(['rack-1'], [NODE, NODE], ['../chassis'], [NODE + '/vifs'])
    def test_what_is_no_node(self, hint):
        self.ask(hint)
        self.assertIn('has to be the UUID of one node', self.refused())

    def test_build_that_has_ended(self):
        self.ask()
        self.builds.end(uuidsentinel.instance)
        self.builds.end(uuidsentinel.instance)
        self.assertIsNone(self.builds.node_for(self.instance))

    def test_instance_that_nova_has_on_a_node(self):
        # As with the ring driver: the scheduler knows nothing of the hint.
        self.builds.require(self.instance)
        self.ask()
        self.instance.node = NODE
        self.builds.require(self.instance)
        self.instance.node = uuidsentinel.other
        error = self.assertRaises(
            exception.InstanceUnacceptable, self.builds.require,
            self.instance)
        self.assertIn(f'and not node {NODE}: name it with', str(error))

    def test_each_refusal_is_a_sentence(self):
        said = {str(named_nodes.refuse(self.instance, NODE, why))
                for why in reservation.Refusal}
        self.assertEqual(len(reservation.Refusal), len(said))
        for sentence in said:
            self.assertIn(NODE, sentence)
            self.assertNotIn('{', sentence)

    def test_policy_that_cannot_be_read(self):
        # It is asked where Nova can end the build.
        self.ask()
        with mock.patch.object(policy, 'authorize', side_effect=ValueError):
            self.assertRaises(
                ValueError, self.builds.node_for, self.instance)
