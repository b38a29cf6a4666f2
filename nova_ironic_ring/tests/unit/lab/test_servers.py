# SPDX-License-Identifier: Apache-2.0

"""Tests of waiting for servers, with the SDK and without a cloud."""

import functools
from typing import Any
from unittest import mock

import fixtures
from openstack.compute.v2 import _proxy
from openstack.compute.v2 import server as sdk_server
from openstack import exceptions
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import servers


def _server(status: str | None, **fields) -> sdk_server.Server:
    return sdk_server.Server(id='1', name='web', status=status, **fields)


class ServersTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(servers, '_POLL', 0.01))
        self.cloud = mock.Mock()
        compute = self.cloud.compute
        compute.wait_for_server = functools.partial(
            _proxy.Proxy.wait_for_server, compute)
        self.fetch = self.useFixture(fixtures.MockPatchObject(
            sdk_server.Server, 'fetch', autospec=True)).mock
        compute.get_server.side_effect = lambda uuid: self._look(None)
        self.fetch.side_effect = lambda server, *_, **__: self._look(server)

    def _look(self, server: sdk_server.Server | None) -> sdk_server.Server:
        """Return what there is by now; the last for ever."""
        found = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if found is None:
            raise exceptions.NotFoundException()
        return found

    def test_active(self):
        self.looks = [_server('BUILD'), _server('BUILD'), _server('ACTIVE')]
        # What is given is of before.
        self.assertEqual('ACTIVE', servers.wait_active(
            self.cloud, _server('ACTIVE')).status)
        self.assertEqual(1, len(self.looks))

    def test_failed(self):
        self.looks = [_server('BUILD'), _server(
            'ERROR', fault={'message': 'No valid host was found.'})]
        error = self.assertRaises(
            errors.LabError, servers.wait_active, self.cloud, _server(None))
        self.assertEqual('Server web has failed: No valid host was found.',
                         str(error))

    def test_never_active(self):
        self.looks = [_server('BUILD')]
        error = self.assertRaises(
            errors.LabError, servers.wait_active, self.cloud, _server(None),
            0.05)
        self.assertIn('Server web is BUILD after 0.05 s', str(error))

    def test_delete(self):
        # One that is DELETED still has its node and its allocation.
        self.looks = [_server('ACTIVE'), _server('DELETED'), None]
        servers.delete(self.cloud, [_server('ACTIVE')])
        self.cloud.compute.delete_server.assert_called_once()
        self.assertEqual([None], self.looks)

    def test_never_gone(self):
        self.looks = [_server('ACTIVE')]
        error = self.assertRaises(
            errors.LabError, servers.delete, self.cloud, [_server('ACTIVE')],
            0.05)
        self.assertIn('Server web is still there 0.05 s after', str(error))


class BootTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = mock.Mock()
        self.cloud.baremetal.get_node.return_value.resource_class = (
            'baremetal-arm')
        self.cloud.compute.find_flavor.return_value.id = 'flavor'
        self.cloud.image.find_image.return_value.id = 'image'
        self.cloud.compute.post.return_value = mock.Mock(
            status_code=202, json=lambda: {'server': {'id': '1'}})

    def _sent(self) -> dict[str, Any]:
        (_, keywords) = self.cloud.compute.post.call_args
        return keywords['json']

    def test_all(self):
        server = servers.boot(
            self.cloud, 'web', 'one', 'node', 'network', 'large',
            config_drive=True, scheduler_hints={'ironic_node': 'node'})
        self.assertEqual(('1', 'web'), (server.id, server.name))
        self.assertEqual(
            {'server': {'name': 'web', 'flavorRef': 'flavor',
                        'imageRef': 'image', 'config_drive': True,
                        'networks': [{'uuid': 'network'}], 'host': 'one',
                        'hypervisor_hostname': 'node'},
             'os:scheduler_hints': {'ironic_node': 'node'}}, self._sent())

    def test_without_image_or_network(self):
        servers.boot(self.cloud, 'web', imageRef='')
        self.assertEqual(
            {'server': {'name': 'web', 'flavorRef': 'flavor', 'imageRef': '',
                        'networks': 'none'}, 'os:scheduler_hints': {}},
            self._sent())

    def test_refused(self):
        self.cloud.compute.post.return_value = mock.Mock(
            status_code=400, url='http://nova/servers',
            headers={'content-type': 'application/json'},
            json=lambda: {'badRequest': {'message': 'No such node.'}})
        error = self.assertRaises(
            errors.LabError, servers.boot, self.cloud, 'web')
        self.assertIn('Nova does not boot web: ', str(error))
        self.assertIn('No such node.', str(error))

    def _flavor(self, **more: str) -> str:
        servers.boot(self.cloud, 'web', **more)
        ((name,), _) = self.cloud.compute.find_flavor.call_args
        return name

    def test_flavor_is_the_usual_one(self):
        self.assertEqual('baremetal', self._flavor())

    def test_flavor_is_that_of_the_node(self):
        self.assertEqual('baremetal-arm', self._flavor(node='node'))

    def test_flavor_that_is_asked_for(self):
        self.assertEqual(
            'large', self._flavor(node='node', flavor='large'))
