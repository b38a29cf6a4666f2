# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Tests of what Tempest is told of a lab."""

import pathlib

from oslotest import base

from nova_ironic_ring.lab import state as lab_state
from nova_ironic_ring.tests.tempest import configuration

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
