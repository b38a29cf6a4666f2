# SPDX-License-Identifier: Apache-2.0

"""Tests of what is read from Nova's databases without Nova's objects."""

from nova.objects import cell_mapping
from oslo_config import cfg
from oslo_config import fixture
from oslotest import base

from nova_ironic_ring.adapters.nova import tables

_CONNECTION = 'mysql+pymysql://nova:p%40ss@db.example:3306/nova?charset=utf8'


class FilledTestCase(base.BaseTestCase):

    def test_as_nova_does(self):
        self.useFixture(fixture.Config(cfg.CONF)).config(
            group='database', connection=_CONNECTION)
        for template in (
                '{scheme}://{username}:{password}@{hostname}/cell1?{query}',
                '{scheme}://{username}:{password}@{hostname}:{port}/{path}_2',
                'mysql+pymysql://root@{hostname}/{path}#{fragment}'):
            self.assertEqual(
                cell_mapping.CellMapping.format_db_url(template),
                tables.filled(template, _CONNECTION))

    def test_what_is_left_to_nova(self):
        for template, connection in (
                ('{scheme}://{hostname2}/nova', _CONNECTION),
                ('{scheme}://{hostname}/nova', None),
                ('{scheme}://{hostname}/nova', 'mysql://a:1,b:2/nova'),
                ('{scheme', _CONNECTION)):
            self.assertIsNone(tables.filled(template, connection))
