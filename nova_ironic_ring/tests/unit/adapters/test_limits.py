# SPDX-License-Identifier: Apache-2.0

"""Requests to a service that accepts connections and stays silent."""

import functools
import time
from unittest import mock

from keystoneauth1 import exceptions
from nova.compute import resource_tracker
import nova.conf
from nova import exception
from nova.scheduler.client import report
from nova import utils
from oslo_concurrency import lockutils
from oslo_config import fixture as config_fixture
from oslotest import base
import requests

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.adapters import limits
from nova_ironic_ring.adapters import placement
from nova_ironic_ring.adapters import plain
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.tests.fixtures import silence

CONF = nova.conf.CONF
conf.register_opts(CONF)


def _answer() -> requests.Response:
    """Return an answer with nothing in it, as the SDK counts answers."""
    found = requests.Response()
    found.status_code = 200
    found.request = requests.Request('GET', 'http://127.0.0.1/').prepare()
    return found


class LimitsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(silence.Silence())
        self.config = self.useFixture(config_fixture.Config(CONF)).config
        self.config(group='ironic_ring', request_timeout=1)
        for group in 'ironic', 'placement':
            self.config(group=group, auth_type='none',
                        endpoint_override=self.service.url)
        upstream.limit_new_sessions()

    def client(self) -> report.SchedulerReportClient:
        """Make Nova's client of Placement, which is silent from then on."""
        self.service.is_frozen = False
        found = report.SchedulerReportClient()
        self.service.is_frozen, self.service.requests = True, 0
        return found

    def fails_within(self, seconds: float, call: object, *errors: type
                     ) -> None:
        begun = time.monotonic()
        self.assertRaises(errors, call)
        self.assertLess(time.monotonic() - begun, seconds)

    def test_each_client_gives_up(self):
        client, own = self.client(), plain.Ironic(CONF)
        for call in (
                lambda: client.get('/resource_providers'),
                lambda: utils.get_sdk_adapter(
                    'baremetal', admin=True, check_service=True),
                lambda: list(own.nodes(['uuid'])),
                lambda: plain.connect(CONF, 'placement').get('/')):
            with limits.haste():
                self.fails_within(
                    8, call, exceptions.ClientException,
                    exception.ServiceUnavailable)
        self.assertGreaterEqual(self.service.requests, 4)

    def test_what_the_operator_has_set(self):
        self.config(group='placement', timeout=2)
        session = self.client()._client.session
        self.assertEqual((2, 2), (session.timeout, session.hasty))

    def test_requests_of_users_have_more_time(self):
        session = self.client()._client.session
        self.assertEqual((4, 1), (session.timeout, session.hasty))

    def test_client_that_nova_has_made_before(self):
        found = self.client()
        source = type('Source', (), {})()
        source.virtapi = type('Virtapi', (), {'reportclient': found})()
        found._client.session = type(found._client.session).__base__()
        upstream.limit_sessions(source)
        self.assertEqual(4, found._client.session.timeout)

    def test_one_request_finds_out_for_all_in_haste(self):
        client = self.client()
        with limits.haste():
            self.assertRaises(
                exceptions.ConnectTimeout, client.get, '/first')
            for _ in range(9):
                self.fails_within(
                    0.5, lambda: client.get('/more'),
                    exceptions.ConnectTimeout)
        self.assertEqual(1, self.service.requests)
        # A user's request is worth a try, and says that it answers again.
        self.service.is_frozen = False
        self.assertTrue(client.get('/users'))
        with limits.haste():
            self.assertTrue(client.get('/more'))

    def test_slow_request_of_a_user_is_no_silence(self):
        client = self.client()
        session = client._client.session
        session.timeout = session.hasty = 0.3
        self.assertRaises(exceptions.ConnectTimeout, client.get, '/users')
        # Some releases send it twice.
        sent = self.service.requests
        # Ironic's conductor may be slow: those in haste are sent.
        for _ in range(3):
            with limits.haste():
                self.assertRaises(
                    exceptions.ConnectTimeout, client.get, '/hasty')
        # After the first of them, the service is silent for all in haste.
        self.assertEqual(sent + 1, self.service.requests)

    def test_it_is_asked_again_after_a_while(self):
        client = self.client()
        client._client.session.hasty = 0.2
        with limits.haste():
            self.assertRaises(
                exceptions.ConnectTimeout, client.get, '/first')
            self.service.is_frozen = False
            time.sleep(0.3)
            self.assertTrue(client.get('/more'))

    def test_several_at_a_time_for_hundreds_of_nodes(self):
        source = type('Source', (), {})()
        source.virtapi = type(
            'Virtapi', (), {'reportclient': self.client()})()
        found = placement.Placement(source)
        with limits.haste():
            self.fails_within(
                5, lambda: found.in_use([str(node) for node in range(500)]),
                exceptions.ConnectTimeout)
        # With one for what is free.
        self.assertLess(self.service.requests, 6)
        # Of a service that was enabled or disabled: failures are logged.
        found.tell_status([str(node) for node in range(500)], True)

    def test_who_holds_the_lock_of_the_tracker_is_in_haste(self):
        client, held = self.client(), []
        answer = _answer()

        def send(*_: object, **options: object) -> requests.Response:
            lock = lockutils.internal_fair_lock(
                resource_tracker.COMPUTE_RESOURCE_SEMAPHORE)
            held.append((lock.owner is not None, options['timeout']))
            return answer
        with mock.patch.object(
                client._client.session.session, 'request', send):
            client.get('/before')
            upstream.in_turn_with_tracker(lambda: client.get('/during'))
            client.get('/after')
        self.assertEqual([(False, 4), (True, 1), (False, 4)], held)

    def test_update_by_the_tracker_is_in_haste(self):
        client, asked = self.client(), []
        session = client._client.session
        tracker = resource_tracker.ResourceTracker('me', mock.Mock(), client)
        source = type('Source', (), {})()
        source.virtapi = mock.Mock()
        source.virtapi._compute.rt = tracker
        answer = _answer()

        def send(*_: object, **options: object) -> requests.Response:
            asked.append(options['timeout'])
            return answer
        ask = functools.partial(client.get, '/node')
        # Builds come to the one of them, and passes to the other.
        for name in '_update', 'update_available_resource':
            setattr(tracker, name, lambda *_, **__: ask())
        upstream.update_in_turn(source)
        with mock.patch.object(session.session, 'request', send):
            ask()
            tracker._update('context', mock.Mock())
            tracker.update_available_resource('context', 'node')
            ask()
        self.assertEqual([4, 1, 1, 4], asked)
