# SPDX-License-Identifier: Apache-2.0

"""Tests of what Tempest is told of a lab."""

import pathlib

from oslotest import base

from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring_tools.tempest import configuration

_GROUND = configuration.Ground('image', 'image-2', 'flavor', 'flavor-2')


class SectionsTestCase(base.BaseTestCase):

    def _sections(self, *computes: str):
        return configuration.sections(
            lab_state.State(pathlib.Path('/lab'), ports={'keystone': 20001},
                            secret='s3cret', computes=list(computes)),
            _GROUND, pathlib.Path('/lab/log/tempest.log'))

    def test_lab(self):
        sections = self._sections('compute-1')
        self.assertEqual('http://127.0.0.1:20001/v3',
                         sections['identity']['uri_v3'])
        self.assertEqual('s3cret', sections['auth']['admin_password'])
        self.assertEqual(
            ('image', 'image-2', 'flavor', 'flavor-2', 'tempest'),
            tuple(sections['compute'][name] for name in (
                'image_ref', 'image_ref_alt', 'flavor_ref', 'flavor_ref_alt',
                'fixed_network_name')))

    def test_services(self):
        """Some tests are for several services, and are skipped with one."""
        for count in 1, 3:
            sections = self._sections(
                *(f'compute-{number}' for number in range(count)))
            self.assertEqual(count, sections['compute']['min_compute_nodes'])
