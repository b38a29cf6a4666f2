# SPDX-License-Identifier: Apache-2.0

"""Tests of what Ironic says as plain JSON."""

from unittest import mock

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from oslotest import base

from nova_ironic_ring.adapters import plain


class CloudTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        path = self.useFixture(fixtures.TempDir()).join('clouds.yaml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write("""
clouds:
  system:
    auth:
      auth_url: http://keystone
      username: admin
      password: secret
      system_scope: all
    region_name: here
    baremetal_endpoint_override: http://ironic
""")
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', path))

    def test_cloud(self):
        client = plain.connect_cloud('system')
        self.assertEqual(('baremetal', 'here', 'http://ironic'), (
            client.service_type, client.region_name,
            client.endpoint_override))

    def test_cloud_that_there_is_not(self):
        error = self.assertRaises(ValueError, plain.connect_cloud, 'nowhere')
        self.assertIn('nowhere', str(error))


class IronicTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.client = mock.Mock()
        self.connect = self.patch(plain, 'connect')
        self.connect.return_value = self.client
        self.use('http://ironic:6385/')
        self.ironic = plain.Ironic(mock.sentinel.options)

    def patch(self, owner, name):
        patcher = mock.patch.object(owner, name)
        self.addCleanup(patcher.stop)
        return patcher.start()

    def use(self, url: str, newest: tuple[int, int] | None = (1, 95)) -> None:
        self.client.get_endpoint_data.return_value = mock.Mock(
            url=url, max_microversion=newest)

    def answer(self, *pages: list[str]) -> None:
        last = len(pages) - 1
        self.client.get.side_effect = [
            mock.Mock(json=mock.Mock(return_value={
                'nodes': [{'uuid': uuid} for uuid in page],
                **({'next': 'there'} if number < last else {})}))
            for number, page in enumerate(pages)]

    def asked(self) -> list[tuple]:
        return [(call.args[0], call.kwargs['params'],
                 call.kwargs['microversion'])
                for call in self.client.get.call_args_list]

    def test_pages(self):
        self.answer(['a', 'b'], ['c'], [])
        self.assertEqual(['a', 'b', 'c'], [
            node['uuid'] for node in self.ironic.nodes(
                ('uuid', 'shard'), conductor_group='rack')])
        query = {'fields': 'uuid,shard', 'conductor_group': 'rack'}
        url = 'http://ironic:6385/v1/nodes'
        self.assertEqual([
            (url, query, '1.82'), (url, {**query, 'marker': 'b'}, '1.82'),
            (url, {**query, 'marker': 'c'}, '1.82')], self.asked())
        self.client.get_endpoint_data.assert_called_once_with()

    def test_one_session_for_all_listings(self):
        for _ in range(3):
            self.answer(['a'], [])
            self.assertEqual(['a'], [
                node['uuid'] for node in self.ironic.nodes(('uuid',))])
        self.assertEqual(1, self.connect.call_count)
        self.client.get_endpoint_data.assert_called_once_with()

    def test_old_ironic(self):
        self.use('http://ironic/baremetal/v1', (1, 50))
        self.answer([])
        list(self.ironic.nodes(('uuid', 'conductor_group', 'shard')))
        self.assertEqual(
            [('http://ironic/baremetal/v1/nodes',
              {'fields': 'uuid,conductor_group'}, '1.50')], self.asked())

    def test_ironic_that_does_not_tell_its_versions(self):
        self.use('http://ironic', None)
        self.answer([])
        list(self.ironic.nodes(('uuid', 'shard')))
        self.assertEqual('1.82', self.asked()[0][2])

    def test_no_endpoint(self):
        self.client.get_endpoint_data.return_value = None
        self.assertRaises(keystone_exceptions.EndpointNotFound, list,
                          self.ironic.nodes(('uuid',)))

    def test_what_it_knows(self):
        self.assertTrue(self.ironic.knows('shard'))
        self.use('http://ironic', (1, 81))
        old = plain.Ironic(mock.sentinel.options)
        self.assertFalse(old.knows('shard'))
        self.assertTrue(old.knows('conductor_group'))

    def test_set_shard(self):
        self.ironic.set_shard('n', 'x')
        self.ironic.set_shard('n', None)
        self.assertEqual([
            ('http://ironic:6385/v1/nodes/n', '1.82', [change])
            for change in ({'op': 'add', 'path': '/shard', 'value': 'x'},
                           {'op': 'remove', 'path': '/shard'})],
            [(call.args[0], call.kwargs['microversion'], call.kwargs['json'])
             for call in self.client.patch.call_args_list])

    def test_account_of_a_cloud(self):
        connect_cloud = self.patch(plain, 'connect_cloud')
        connect_cloud.return_value = self.client
        plain.Ironic(mock.sentinel.options, 'system').set_shard('n', 'x')
        connect_cloud.assert_called_once_with('system')
        self.connect.assert_not_called()
        self.client.patch.assert_called_once()

    def test_node(self):
        self.client.get.return_value.json.return_value = {'uuid': 'a'}
        self.assertEqual({'uuid': 'a'}, self.ironic.node('x', ('uuid',)))
        self.assertEqual(
            [('http://ironic:6385/v1/nodes/x', {'fields': 'uuid'}, '1.37')],
            self.asked())
        self.ironic.node('web #1?', ('uuid',))
        self.assertEqual('http://ironic:6385/v1/nodes/web%20%231%3F',
                         self.asked()[-1][0])
        asked = len(self.asked())
        for name in '', '..', 'detail', 'x/ports':
            self.assertIsNone(self.ironic.node(name, ('uuid',)))
        self.assertEqual(asked, len(self.asked()))
        for error in (keystone_exceptions.NotFound(),
                      keystone_exceptions.BadRequest()):
            self.client.get.side_effect = error
            self.assertIsNone(self.ironic.node('y', ('uuid',)))
        self.client.get.side_effect = keystone_exceptions.Forbidden()
        self.assertRaises(keystone_exceptions.Forbidden, self.ironic.node,
                          'y', ('uuid',))
