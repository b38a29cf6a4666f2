# SPDX-License-Identifier: Apache-2.0

"""Tests of what Tempest is told of a cloud."""

import pathlib
from unittest import mock

import fixtures
import openstack
from oslotest import base

from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import settings
from nova_ironic_ring_tools.tempest import configuration
from nova_ironic_ring_tools.tempest import places

_GROUND = configuration.Ground(
    'image', 'image-2', 'flavor', 'flavor-2', '2.103')


class SectionsTestCase(base.BaseTestCase):

    def _sections(self, *computes: str):
        lab = mock.Mock(state=lab_state.State(
            pathlib.Path('/lab'), ports={'keystone': 20001},
            secret='s3cret', computes=list(computes)))
        return configuration.sections(places.of_lab(lab), _GROUND)

    def test_lab(self):
        sections = self._sections('compute-1')
        self.assertEqual('http://127.0.0.1:20001/v3',
                         sections['identity']['uri_v3'])
        self.assertEqual('s3cret', sections['auth']['admin_password'])
        self.assertEqual(
            ('image', 'image-2', 'flavor', 'flavor-2', '2.103', 'tempest'),
            tuple(sections['compute'][name] for name in (
                'image_ref', 'image_ref_alt', 'flavor_ref', 'flavor_ref_alt',
                'max_microversion', 'fixed_network_name')))

    def test_services(self):
        """Some tests are for several services, and are skipped with one."""
        for count in 1, 3:
            sections = self._sections(
                *(f'compute-{number}' for number in range(count)))
            self.assertEqual(count, sections['compute']['min_compute_nodes'])

    def test_devstack(self):
        connect = self.useFixture(
            fixtures.MockPatchObject(openstack, 'connect')).mock
        box = container.Container(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path))
        place = places.of_devstack(
            box, settings.Cloud(computes=2), pathlib.Path('/x'))
        sections = configuration.sections(place, _GROUND)
        self.assertEqual(box.password(), sections['auth']['admin_password'])
        self.assertEqual(sections['identity']['uri_v3'],
                         connect.call_args.kwargs['auth_url'])
        self.assertEqual(2, sections['compute']['min_compute_nodes'])
        self.assertEqual(pathlib.Path('/x/tempest.log'),
                         sections['DEFAULT']['log_file'])
