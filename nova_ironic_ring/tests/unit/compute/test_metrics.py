# SPDX-License-Identifier: Apache-2.0

"""Tests of what Prometheus is shown."""

import contextlib
import datetime
import io
import os
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
import time
from unittest import mock
import urllib.error
import urllib.request
import warnings

import fixtures
from nova import exception
from oslo_utils import timeutils
import prometheus_client
from prometheus_client import parser
import testtools

from nova_ironic_ring.compute import certificates
from nova_ironic_ring.compute import metrics
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.compute.recording import counters
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.process import heartbeats
from nova_ironic_ring.tests.fixtures import authority
from nova_ironic_ring.tests.unit.compute import base


class CollectorTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.counted = counters.Counters()
        self.useFixture(fixtures.MockPatchObject(
            counters, 'COUNTERS', self.counted))
        self.recovering = 0
        self.driver.init_host('me')
        self.collector = metrics.Collector(
            self.me.ring, lambda: self.recovering, self.counted)

    def _read(self) -> dict[str, float]:
        """Return each value by its name, with its label's value."""
        shown = prometheus_client.CollectorRegistry()
        shown.register(self.collector)
        text = prometheus_client.generate_latest(shown).decode()
        return {
            '/'.join([sample.name.removeprefix('nova_ironic_ring_'),
                      *sample.labels.values()]): sample.value
            for family in parser.text_string_to_metric_families(text)
            for sample in family.samples}

    def test_before_the_first_pass(self):
        self.nova.advance(7)
        seen = self._read()
        self.assertEqual(0, seen['passes_total'])
        self.assertEqual(0, seen['pass_seconds'])
        self.assertGreaterEqual(seen['pass_age_seconds'], 0)
        self.assertEqual(1, seen['trust/STARTING'])
        self.assertEqual(0, seen['trust/FULL'])
        self.assertEqual(0, seen['members'])

    def test_all_values_are_there_from_the_start(self):
        before = set(self._read())
        self.settle()
        # There was no heartbeat at the start.
        self.assertEqual(before | {'heartbeat_age_seconds'}, set(self._read()))
        for code in decisions.Decision:
            self.assertIn(f'nodes/{code.name}', before)
        for code in membership.State:
            self.assertIn(f'services/{code.name}', before)
        for code in trust.Trust:
            self.assertIn(f'trust/{code.name}', before)

    def test_age_of_the_last_heartbeat(self):
        now = 100.0
        self.me.ring.process.heartbeats = own = heartbeats.OwnHeartbeats(
            lambda: now)
        self.assertNotIn('heartbeat_age_seconds', self._read())
        now = 107
        own.beat(lambda: None)
        now = 110
        self.assertEqual(3, self._read()['heartbeat_age_seconds'])

    def test_after_some_passes(self):
        self.settle()
        seen = self._read()
        self.assertEqual(2, seen['passes_total'])
        self.assertLess(seen['pass_age_seconds'], 60)
        self.assertEqual(60, seen['pass_interval_seconds'])
        self.assertEqual(120, seen['handover_timeout_seconds'])
        self.assertEqual(1, seen['trust/FULL'])
        self.assertEqual(3, seen['members'])
        self.assertEqual(3, seen['services/MEMBER'])
        self.assertEqual(len(self.nova.owned('me')), seen['nodes/KEEP'])
        self.assertEqual(len(base.NODES), sum(
            value for name, value in seen.items()
            if name.startswith('nodes/')))

    def test_age_of_the_last_pass(self):
        self.settle()
        self.me.run_pass()
        self.nova.advance(70)
        # Whatever becomes of the machine's clock.
        now = timeutils.utcnow(with_timezone=True)
        for hours in -1, 1:
            with fixtures.MockPatch(
                    'oslo_utils.timeutils.utcnow',
                    return_value=now + datetime.timedelta(hours=hours)):
                self.assertEqual(70, self._read()['pass_age_seconds'])

    def test_offers_and_their_age(self):
        self.settle()
        self.assertEqual(0, self._read()['offers'])
        self.nova.change_service('me', disabled=True)
        self.me.run_pass()
        seen = self._read()
        offered = [node for node, step
                   in self.me.ring.result.plan.steps.items() if step.offer]
        self.assertEqual(len(offered), seen['offers'])
        self.assertGreater(seen['offers'], 0)
        self.assertEqual(0, seen['oldest_offer_seconds'])
        self.nova.advance(30)
        self.assertEqual(30, self._read()['oldest_offer_seconds'])
        for node in offered:
            self.nova.own(node, 'a')
        self.me.run_pass()
        seen = self._read()
        self.assertEqual((0, 0), (seen['offers'],
                                  seen['oldest_offer_seconds']))

    def test_waits_and_forced_takes(self):
        self.settle()
        node = min(self.nova.owned('me'))
        self.nova.own(node, 'a')
        self.me.run_pass()
        self.nova.advance(50)
        seen = self._read()
        self.assertEqual((1, 50), (seen['waits'], seen['oldest_wait_seconds']))
        self.assertEqual(1, seen['nodes/WAIT'])
        for _ in range(3):
            for host in 'ab':
                self.nova.change_service(host)
            self.nova.advance(40)
            self.me.run_pass()
        seen = self._read()
        self.assertEqual(1, seen['nodes_taken_total/TAKE_SILENT'])
        self.assertEqual((0, 0), (seen['waits'], seen['oldest_wait_seconds']))

    def test_recovery_that_was_given_up(self):
        self.assertEqual(0, self._read()['recoveries_given_up_total'])
        self.counted.gave_up()
        self.assertEqual(1, self._read()['recoveries_given_up_total'])

    def test_death_and_takeover(self):
        self.settle()
        node = self.first_of_b()
        self.nova.put('instance', node, 'b')
        self.me.run_pass()
        self.nova.change_service('b', forced_down=True)
        self.me.run_pass()
        seen = self._read()
        self.assertEqual(1, seen['services/FORCED_DOWN'])
        self.assertEqual(2, seen['members'])
        self.assertEqual(1, seen['instances_taken_over_total/dead'])
        self.assertEqual(0, seen['instances_taken_over_total/consent'])
        self.assertGreater(seen['nodes_taken_total/TAKE_ABANDONED'], 0)

    def test_rings_that_differ(self):
        self.settle()
        self.assertEqual(0, self._read()['rings_differ'])
        for _ in range(6):
            self.nova.acknowledge('a', 'a')
            self.me.run_pass()
            self.nova.advance(60)
        self.assertEqual(1, self._read()['rings_differ'])
        self.assertIn('by another ring than a: no free node', self.log.output)
        self.nova.acknowledge('a', 'me', 'a', 'b')
        self.me.run_pass()
        self.assertEqual(0, self._read()['rings_differ'])

    def test_vanished_nodes(self):
        self.settle()
        self.assertEqual(0, self._read()['nodes_vanished'])
        self.cloud.nodes.clear()
        self.me.begin_pass()
        self.assertEqual(1, self._read()['nodes_vanished'])

    def test_recovery(self):
        self.recovering = 4
        self.assertEqual(4, self._read()['instances_to_recover'])


class HiddenNodesTestCase(base.DriverTestCase):
    """A service with pools starts again while Ironic hides its nodes."""

    def start(self):
        for host in 'a', 'b':
            del self.cloud.services[host]
        self.nova.computes.clear()
        return self.nova.compute('me', pool_driver.IronicPoolDriver)

    def _uses(self) -> dict[str, float]:
        """Return how many nodes pools have, by what they are used for."""
        return {sample.labels['use']: sample.value for family
                in metrics.Collector(self.me.ring, lambda: 0).collect()
                for sample in family.samples if 'use' in sample.labels}

    def test_nodes_of_pools(self):
        pool = pools.name('me', base.KIND)
        for number, node in enumerate(base.NODES[:3]):
            self.nova.put(f'i{number}', pool, 'me')
            self.cloud.nodes[node].instance = f'i{number}'
        # The last one has no allocation, as after a rebuild that has failed.
        self.cloud.allocations[pools.uuid_of(pool)] = {'i0', 'i1'}
        self.settle()
        before = {'free': 27, 'instance': 2, 'reserved': 1}
        self.assertEqual(before, self._uses())

        hidden = {node: self.cloud.nodes.pop(node)
                  for node in base.NODES[1:10]}
        self.me = self.nova.compute('me', pool_driver.IronicPoolDriver)
        self.settle()
        self.assertEqual({'free': 20, 'instance': 2, 'reserved': 8},
                         self._uses())
        self.cloud.nodes.update(hidden)
        self.me.run_pass()
        self.assertEqual(before, self._uses())


class AddressTestCase(base.DriverTestCase):

    def test_good(self):
        for text, expected in (
                ('127.0.0.1:19108', ('127.0.0.1', 19108)),
                ('0.0.0.0:80', ('0.0.0.0', 80)),
                ('[::1]:19108', ('::1', 19108))):
            self.assertEqual(expected, metrics.address(text))

    def test_bad(self):
        for text in (':19108', '19108', '127.0.0.1', '127.0.0.1:0',
                     '127.0.0.1:x', '127.0.0.1:65536', '::1:19108',
                     'controller:19108', 'http://127.0.0.1:19108',
                     'a@127.0.0.1:19108', '127.0.0.1:19108/metrics'):
            error = self.assertRaises(ValueError, metrics.address, text)
            self.assertEqual(
                f'[ironic_ring] metrics_listen = "{text}" is no IP address '
                'with a port: set it to one, such as 127.0.0.1:19108 or '
                '[::1]:19108, or to nothing.', str(error))

    def test_the_driver_refuses_to_start(self):
        self.configure(metrics_listen=':19108')
        self.assertRaises(exception.InvalidConfiguration,
                          self.driver.init_host, 'me')
        self.assertIn('is no IP address with a port', self.log.output)


class ServerTestCase(base.DriverTestCase):

    def _get(self, host: str, port: int) -> str:
        # No proxy of the environment.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f'http://{host}:{port}/metrics',
                         timeout=10) as answer:
            return answer.read().decode()

    def _start(self, listen: str) -> metrics.Server:
        server = metrics.start(self.me.ring, lambda: 0, listen)
        assert server is not None
        self.addCleanup(server.server_close)
        return server

    def test_off_by_default(self):
        with mock.patch.object(metrics, 'Server') as server:
            self.driver.init_host('me')
        server.assert_not_called()

    def test_on_with_the_option(self):
        listen = f'127.0.0.1:{_free_port()}'
        self.configure(metrics_listen=listen)
        with mock.patch.object(metrics, 'start') as start:
            self.driver.init_host('me')
        ring, recovering, *given = start.call_args.args
        self.assertIs(self.me.ring, ring)
        self.assertEqual(0, recovering())
        self.assertEqual([listen, certificates.Paths()], given)

    def test_on_with_certificates(self):
        values = {'metrics_listen': '127.0.0.1:19108',
                  'metrics_cert_file': '/cert', 'metrics_key_file': '/key',
                  'metrics_client_ca_file': '/ca'}
        self.configure(**values)
        with mock.patch.object(metrics, 'start') as start:
            self.driver.init_host('me')
        self.assertEqual(
            ('127.0.0.1:19108', certificates.Paths('/cert', '/key', '/ca')),
            start.call_args.args[2:])

    def test_answers(self):
        self.settle()
        port = _free_port()
        self._start(f'127.0.0.1:{port}')
        text = self._get('127.0.0.1', port)
        self.assertIn('\nnova_ironic_ring_passes_total 2.0\n', text)
        self.assertIn('\nprocess_resident_memory_bytes ', text)
        # Again: one answer does not end it.
        self.assertIn('nova_ironic_ring_members 3.0',
                      self._get('127.0.0.1', port))

    def test_answers_while_somebody_says_nothing(self):
        self.settle()
        port = _free_port()
        self._start(f'127.0.0.1:{port}')
        with socket.create_connection(('127.0.0.1', port)):
            self.assertIn('nova_ironic_ring', self._get('127.0.0.1', port))

    def test_ends_when_it_is_closed(self):
        server = metrics.Server('127.0.0.1', 0)
        port = server.server_port
        server.server_close()
        server.run()
        self.assertRaises(urllib.error.URLError, self._get, '127.0.0.1', port)

    def test_somebody_who_goes_away(self):
        server = metrics.Server('127.0.0.1', 0)
        self.addCleanup(server.server_close)
        with (contextlib.redirect_stderr(io.StringIO()) as printed,
              mock.patch.object(metrics.LOG, 'debug') as debug,
              mock.patch.object(metrics.LOG, 'exception') as fault):
            for error in ConnectionResetError('gone'), KeyError('x'):
                with mock.patch.object(
                        metrics._Handler, 'setup', side_effect=error):
                    server.process_request_thread(
                        socket.socket(), ('192.0.2.1', 5))
        self.assertEqual('', printed.getvalue())
        text, values = debug.call_args.args
        self.assertEqual('No metrics for 192.0.2.1: gone', text % values)
        fault.assert_called_once_with('No metrics for %s.', '192.0.2.1')

    def test_port_that_is_taken(self):
        with socket.create_server(('127.0.0.1', 0)) as taken:
            listen = f'127.0.0.1:{taken.getsockname()[1]}'
            self.assertIsNone(metrics.start(self.me.ring, lambda: 0, listen))
        self.assertIn(f'cannot listen on {listen} (Address already in use): '
                      'choose another', self.log.output)

    def test_with_eventlet(self):
        run_with_eventlet(self)


class SlowTestCase(base.DriverTestCase):
    """Clients that are never done, with TLS and without."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(metrics, '_DEADLINE', 0.5))
        directory = self.useFixture(fixtures.TempDir()).path
        made = authority.Authority(directory, 'ca')
        self.context = ssl.create_default_context(cafile=made.path)
        self.tls = certificates.Certificates(
            certificates.Paths(*made.issue('server')))

    def _serve(self, tls: certificates.Certificates | None) -> metrics.Server:
        server = metrics.Server('127.0.0.1', 0, tls)
        server.set_app(prometheus_client.make_wsgi_app(
            prometheus_client.CollectorRegistry()))
        threading.Thread(target=server.run, daemon=True).start()
        self.addCleanup(server.server_close)
        return server

    def _connect(self, server: metrics.Server, is_safe: bool = False
                 ) -> socket.socket:
        found = socket.create_connection(
            ('127.0.0.1', server.server_port), 30)
        if is_safe:
            found = self.context.wrap_socket(
                found, server_hostname='127.0.0.1')
        self.addCleanup(found.close)
        return found

    def _drip(self, to: socket.socket, said: bytes) -> float:
        """Send a byte at a time, and return how long that is borne."""
        begun = time.monotonic()
        to.settimeout(0.02)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while time.monotonic() < begun + 30:
                to.sendall(said)
                with contextlib.suppress(TimeoutError):
                    if not to.recv(1000):
                        break
        return time.monotonic() - begun

    def test_who_goes_on_slowly(self):
        for tls, is_safe, said in (
                (None, False, b'G'), (self.tls, True, b'G'),
                # The beginning of a handshake.
                (self.tls, False, b'\x16\x03\x01\x40\x00')):
            client = self._connect(self._serve(tls), is_safe)
            if not is_safe and tls:
                client.sendall(said)
                said = b'\x00'
            self.assertLess(self._drip(client, said), 10)

    def test_who_never_says_anything(self):
        for tls in None, self.tls:
            self.assertEqual(b'', self._connect(self._serve(tls)).recv(1))

    def test_who_never_ends_a_request(self):
        self.useFixture(fixtures.MockPatchObject(metrics, '_DEADLINE', 60))
        client = self._connect(self._serve(None))
        with contextlib.suppress(ConnectionError):
            client.sendall(b'GET /' + b'x' * 20_000)
            # It waits for no more of that.
            client.recv(1)

    def test_many(self):
        # None of them is late.
        self.useFixture(fixtures.MockPatchObject(metrics, '_DEADLINE', 60))
        for tls in None, self.tls:
            server = self._serve(tls)
            threads = threading.active_count()
            files = len(os.listdir('/proc/self/fd'))
            slow = subprocess.Popen(
                [sys.executable, '-c', _SLOW, str(server.server_port)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(slow.wait)
            self.addCleanup(slow.kill)
            slow.stdout.readline()
            # Whoever does go on has an answer.
            client = self._connect(server, tls is not None)
            client.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
            self.assertIn(b'200 OK', client.recv(1000))
            self.assertLess(threading.active_count() - threads, 10)
            self.assertLess(
                len(os.listdir('/proc/self/fd')) - files, 30)
            slow.kill()


# As many connections as wait in the kernel, each with one byte.
_SLOW = """
import socket, sys
found = []
for _ in range(60):
    found.append(socket.create_connection(('127.0.0.1', int(sys.argv[1]))))
    found[-1].sendall(b'\\x16')
print(flush=True)
sys.stdin.read()
"""


class TLSTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.authority = authority.Authority(self.directory, 'ca')
        self.cert, self.key = self.authority.issue('server')
        self.settle()

    def _start(self, *paths: str) -> int:
        """Serve the metrics.

        :returns: the port
        """
        server = metrics.start(
            self.me.ring, lambda: 0, f'127.0.0.1:{_free_port()}',
            certificates.Paths(*paths))
        assert server is not None
        self.addCleanup(server.server_close)
        return server.server_port

    def _context(self, *client: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority.path)
        if client:
            context.load_cert_chain(*client)
        return context

    def _get(self, port: int, context: ssl.SSLContext) -> str:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=context))
        with opener.open(f'https://127.0.0.1:{port}/metrics',
                         timeout=10) as answer:
            return answer.read().decode()

    def _served(self, port: int) -> bytes | None:
        """Return the certificate that is served."""
        with (socket.create_connection(('127.0.0.1', port), 10) as plain,
              self._context().wrap_socket(
                  plain, server_hostname='127.0.0.1') as safe):
            return safe.getpeercert(binary_form=True)

    def _ask_without_tls(self, port: int) -> bytes:
        """Return all that the server sends until it closes the connection."""
        found = b''
        with socket.create_connection(('127.0.0.1', port), 10) as plain:
            plain.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
            # It does not read all of that.
            with contextlib.suppress(ConnectionResetError):
                while more := plain.recv(1000):
                    found += more
        return found

    def test_answers(self):
        port = self._start(self.cert, self.key)
        for _ in range(2):
            self.assertIn('\nnova_ironic_ring_passes_total 2.0\n',
                          self._get(port, self._context()))

    def test_nothing_without_tls(self):
        port = self._start(self.cert, self.key)
        self.assertNotIn(b'nova', self._ask_without_tls(port))
        self.assertIn('nova_ironic_ring', self._get(port, self._context()))

    def test_what_ends_the_connection_is_no_news(self):
        server = metrics.Server('127.0.0.1', 0, certificates.Certificates(
            certificates.Paths(self.cert, self.key)))
        self.addCleanup(server.server_close)
        ours, theirs = socket.socketpair()
        self.addCleanup(theirs.close)
        theirs.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
        before = self.log.output
        with (contextlib.redirect_stderr(io.StringIO()) as printed,
              mock.patch.object(metrics.LOG, 'debug') as debug):
            server.process_request_thread(ours, ('192.0.2.1', 5))
        self.assertEqual('', printed.getvalue())
        self.assertEqual(before, self.log.output)
        text, values = debug.call_args.args
        self.assertIn('No metrics for 192.0.2.1: [SSL: HTTP_REQUEST]',
                      text % values)

    def test_nothing_below_1_2(self):
        port = self._start(self.cert, self.key)
        for version, is_served in ((ssl.TLSVersion.TLSv1_1, False),
                                   (ssl.TLSVersion.TLSv1_2, True),
                                   (ssl.TLSVersion.TLSv1_3, True)):
            context = self._context()
            # Else OpenSSL itself would not offer the old one.
            context.set_ciphers('DEFAULT:@SECLEVEL=0')
            with warnings.catch_warnings(action='ignore'):
                context.minimum_version = context.maximum_version = version
            if is_served:
                self.assertIn('nova_ironic_ring', self._get(port, context))
            else:
                error = self.assertRaises(
                    urllib.error.URLError, self._get, port, context)
                self.assertIn('PROTOCOL_VERSION', str(error))

    def test_only_clients_with_a_certificate(self):
        port = self._start(self.cert, self.key, self.authority.path)
        self.assertIn('nova_ironic_ring', self._get(
            port, self._context(*self.authority.issue('prometheus'))))
        stranger = authority.Authority(self.directory, 'stranger')
        for client in ((), stranger.issue('other')):
            # TLS 1.3 tells the client after it has sent its request.
            self.assertRaises(OSError, self._get, port,
                              self._context(*client))

    def test_answers_while_somebody_does_not_go_on(self):
        port = self._start(self.cert, self.key)
        with socket.create_connection(('127.0.0.1', port)):
            self.assertIn('nova_ironic_ring',
                          self._get(port, self._context()))

    def test_no_thread_keeps_the_process_from_its_end(self):
        before = set(threading.enumerate())
        port = self._start(self.cert, self.key)
        with socket.create_connection(('127.0.0.1', port)):
            # One after the other: then that one has its thread.
            self._get(port, self._context())
            found = set(threading.enumerate()) - before
        self.assertGreaterEqual(len(found), 2)
        self.assertEqual({True}, {thread.daemon for thread in found})

    def test_connections_are_closed(self):
        port = self._start(self.cert, self.key)
        self._ask_without_tls(port)
        with (socket.create_connection(('127.0.0.1', port), 10) as plain,
              self._context().wrap_socket(
                  plain, server_hostname='127.0.0.1') as safe):
            safe.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
            while safe.recv(1000):
                pass

    def test_renewed_without_a_restart(self):
        port = self._start(self.cert, self.key)
        before = self._served(port)
        self.assertEqual(before, self._served(port))
        cert, key = self.authority.issue('renewed')
        os.replace(cert, self.cert)
        # Between the two, the former ones are served.
        self.assertEqual(before, self._served(port))
        os.replace(key, self.key)
        self.assertNotEqual(before, self._served(port))

    def test_certificates_that_cannot_be_used(self):
        self.assertIsNone(metrics.start(
            self.me.ring, lambda: 0, f'127.0.0.1:{_free_port()}',
            certificates.Paths('/nowhere')))
        self.assertIn(
            'This service has no metrics, because it cannot use their '
            'certificates ([ironic_ring] metrics_cert_file = "/nowhere": No '
            'such file or directory): correct the option or the file, and '
            'restart.', self.log.output)

    def test_the_driver_refuses_to_start(self):
        self.configure(metrics_listen=f'127.0.0.1:{_free_port()}',
                       metrics_client_ca_file=self.authority.path)
        self.assertRaises(exception.InvalidConfiguration,
                          self.driver.init_host, 'me')
        self.assertIn('has no effect without metrics_cert_file',
                      self.log.output)

    def test_options_without_an_address(self):
        self.assertIsNone(
            metrics.start(self.me.ring, lambda: 0, '',
                          certificates.Paths(key='key')))

    def test_with_eventlet(self):
        run_with_eventlet(self, self.cert, self.key, self.authority.path)


def _free_port(host: str = '127.0.0.1') -> int:
    with socket.create_server((host, 0)) as found:
        return found.getsockname()[1]


def run_with_eventlet(test: testtools.TestCase, *paths: str) -> None:
    """See that metrics are served on green threads, and stop no other one.

    :param test: the test
    :param paths: of a certificate, its key, and the authority that signed it
        and those of clients; none for no TLS
    """
    # What a wrong selector would do: stop all greenlets.
    script = textwrap.dedent("""
        import socketserver
        import eventlet
        eventlet.monkey_patch()
        import ssl, sys, threading, time, urllib.request
        from nova_ironic_ring.compute import certificates
        from nova_ironic_ring.compute import metrics
        paths = sys.argv[1:]
        tls = paths and certificates.Certificates(certificates.Paths(*paths))
        server = metrics.Server('127.0.0.1', 0, tls or None)
        server.set_app(lambda environ, start: (
            start('200 OK', []), [b'metrics'])[1])
        threading.Thread(target=server.run, daemon=True).start()
        ticks = []
        def tick():
            while True:
                ticks.append(time.monotonic())
                eventlet.sleep(0.01)
        eventlet.spawn(tick)
        handlers = [urllib.request.ProxyHandler({})]
        if paths:
            cert, key, ca = paths
            context = ssl.create_default_context(cafile=ca)
            context.load_cert_chain(cert, key)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        opener = urllib.request.build_opener(*handlers)
        url = f'127.0.0.1:{server.server_port}/'
        # Somebody who does not go on.
        import socket
        silent = socket.create_connection(('127.0.0.1', server.server_port))
        for _ in range(2):
            assert opener.open(
                ('https://' if paths else 'http://') + url,
                timeout=30).read() == b'metrics'
        metrics._DEADLINE = 0.5
        late = socket.create_connection(('127.0.0.1', server.server_port))
        assert late.recv(1) == b''
        before = len(ticks)
        eventlet.sleep(0.5)
        print(len(ticks) - before)
        """)
    found = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', script, *paths], timeout=100,
        capture_output=True, text=True, check=False)
    test.assertEqual(0, found.returncode, found.stderr)
    test.assertGreater(int(found.stdout), 5)
