# SPDX-License-Identifier: Apache-2.0

"""Which answers are lost, and how."""

import pathlib
import random
from unittest import mock

import fixtures
from nova import objects
from oslotest import base

from nova_ironic_ring.lab.inside import conductor_manager
from nova_ironic_ring.lab.inside import lost

_OURS = 'nova-compute keystoneauth1/5'


class LostTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.EnvironmentVariable(
            'NOVA_IRONIC_RING_LAB', str(self.directory)))

    def _ask(self, method: str = 'PUT', agent: str = _OURS) -> tuple[str, str]:
        """Return the status and the body of the answer to a request."""
        done = mock.Mock()
        start = mock.Mock()

        def application(environ, start_response):
            done()
            start_response('200 OK', [])
            return [b'done']
        answer = lost.losing(application)(
            {'REQUEST_METHOD': method, 'HTTP_USER_AGENT': agent}, start)
        done.assert_called_once_with()
        (called,) = start.call_args_list
        return called.args[0], b''.join(answer).decode()

    def test_answers(self):
        well = ('200 OK', 'done')
        self.assertEqual(well, self._ask())
        lost.lose(self.directory, 1)
        self.assertEqual(well, self._ask('GET'))
        self.assertEqual(well, self._ask(agent='nova-scheduler'))
        for chance in (0.4, 0.6):
            with mock.patch.object(random, 'random', return_value=chance):
                if chance < 0.5:
                    self.assertRaises(ConnectionResetError, self._ask)
                else:
                    self.assertIn('503', self._ask()[0])
        lost.lose(self.directory, 0)
        self.assertEqual(well, self._ask())

    def test_what_is_of_the_ring(self):
        taken, claimed, rebooted = (
            objects.Instance(**fields) for fields in (
                {'host': 'me'}, {'host': 'me', 'launched_on': 'me'},
                {'task_state': None}))
        for written, method, is_lost in (
                (objects.ComputeNode(), 'destroy', True),
                (objects.Service(), 'save', False), (taken, 'save', True),
                (taken, 'refresh', False), (claimed, 'save', False),
                (rebooted, 'save', False),
                (objects.Instance(host=None), 'save', False)):
            self.assertEqual(
                is_lost, conductor_manager.is_of_ring(written, method))
