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

"""Tests of what is read from Nova's databases without Nova's objects."""

from nova.objects import cell_mapping
from oslo_config import cfg
from oslo_config import fixture
from oslotest import base

from nova_ironic_ring.adapters import tables

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
