# SPDX-License-Identifier: Apache-2.0

"""Serves metrics of this service to Prometheus.

All values are computed at a request, from what the service has in memory:
nothing is measured without a request.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
import io
import ipaddress
import socket
import socketserver
import sys
import threading
import time
from typing import Any
import urllib.parse
from wsgiref import simple_server

from nova import exception
from oslo_log import log as logging
import prometheus_client
from prometheus_client import core
from prometheus_client import registry

from nova_ironic_ring.compute import certificates
from nova_ironic_ring.compute import node_service
from nova_ironic_ring.compute import pool_service
from nova_ironic_ring.compute.recording import counters
from nova_ironic_ring.compute import service
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import trust

LOG = logging.getLogger(__name__)

_PREFIX = 'nova_ironic_ring_'
# Whoever asks does so in milliseconds. What nobody has answered for so many
# seconds, however slowly it goes on, and the oldest of more than so many at a
# time, keep files and threads from what else nova-compute does.
_DEADLINE = 10.0
_MOST = 8
# Bytes of a request; that of Prometheus has some hundred.
_LARGEST = 16 * 1024


class Collector(registry.Collector):
    """Makes the values of one service."""

    def __init__(self, ring: service.Service,
                 recovering: Callable[[], int],
                 counted: counters.Counters = counters.COUNTERS) -> None:
        """Choose the service to show.

        :param ring: the service
        :param recovering: returns the number of instances that it has taken
            over from dead services, and not recovered yet
        :param counted: what has happened
        """
        self._ring = ring
        self._recovering = recovering
        self._counted = counted
        self._since = ring.process.now()
        #: When it was first seen that a node is offered, by node and taker.
        self._offers: dict[tuple[str, str], float] = {}

    def collect(self) -> Iterator[core.Metric]:
        """Make the values."""
        yield from self._passes()
        if isinstance(self._ring, node_service.RingService):
            yield from self._nodes(self._ring)
        elif isinstance(self._ring, pool_service.PoolService):
            yield from self._pools(self._ring)
        yield from self._services()
        yield from self._guards()
        yield from self._happened()

    def _passes(self) -> Iterator[core.Metric]:
        ring, ended, current = (
            self._ring, self._ring.ended, self._ring.settings)
        yield _counter('passes', 'Passes that have ended well.', ring.passes)
        yield _gauge('pass_seconds', 'How long the last pass took.',
                     ended.seconds if ended else 0)
        yield _gauge(
            'pass_age_seconds',
            'Since when the last pass has ended, or the service has started.',
            # Not by the machine's clock, which may be set.
            ring.process.now() - (ended.now if ended else self._since))
        yield _gauge('pass_interval_seconds',
                     'How long after a pass the next one is due.',
                     current.pass_interval)
        yield _gauge('handover_timeout_seconds',
                     "How long nodes of services with Nova's own driver are "
                     'waited for.', current.handover_timeout)

    def _nodes(self, ring: node_service.RingService) -> Iterator[core.Metric]:
        steps, now = ring.result.plan.steps, ring.process.now()
        counts = dict.fromkeys(decisions.Decision, 0)
        offers = set()
        for node, step in steps.items():
            counts[step.decision] += 1
            if step.offer:
                offers.add((node, step.offer))
        yield _labelled(core.GaugeMetricFamily, 'nodes',
                        'Nodes, by what the last pass has decided on them.',
                        'decision', _by_name(counts))
        self._offers = {offer: self._offers.get(offer, now)
                        for offer in offers}
        yield _gauge('offers', 'Nodes that others may take and have not yet.',
                     len(offers))
        yield _gauge('oldest_offer_seconds',
                     'Since when the oldest offer is seen here.',
                     _age(self._offers.values(), now))
        yield _counter('nodes_updated', 'Updates of nodes by the resource '
                       'tracker.', ring.updated)
        yield _counter('nodes_skipped', 'Nodes in passes that needed no '
                       'update.', ring.skipped)
        yield _gauge('oldest_update_seconds',
                     'Since when the node is not updated that has waited '
                     'longest for its turn, as of the last pass.',
                     ring.oldest_update())
        waits = ring.memory.waits
        yield _gauge('waits', 'Nodes that this service waits for.', len(waits))
        yield _gauge('oldest_wait_seconds',
                     'Since when this service waits for a node.',
                     _age((wait.since for wait in waits.values()), now))

    def _pools(self, ring: pool_service.PoolService) -> Iterator[core.Metric]:
        found = ring.result.found.values()
        nodes = sum(len(pool.nodes) + pool.missing for pool in found)
        free = sum(len(pool.free) for pool in found)
        used = sum(len(pool.used) + pool.missing_used for pool in found)
        yield _gauge('pools', 'Pools of this service.', len(found))
        yield _labelled(core.GaugeMetricFamily, 'pool_nodes',
                        'Nodes in its pools, by what they are used for.',
                        'use', {'free': free, 'instance': used,
                                'reserved': nodes - free - used})
        yield _labelled(
            core.CounterMetricFamily, 'reservations',
            'Reservations of nodes for builds, by what has come of them.',
            'result', {each.value: self._counted.reservations[each]
                       for each in counters.Reservation})
        yield _counter('reservation_conflicts', 'Nodes that others had when '
                       'they were to be reserved.', self._counted.conflicts)
        yield _gauge('failed_nodes', 'Nodes that builds try after all others, '
                     'for deployments on them have failed.',
                     len(ring.failing()))

    def _services(self) -> Iterator[core.Metric]:
        known = self._ring.memory.view
        counts = dict.fromkeys(membership.State, 0)
        for state in known.peers.values():
            counts[state] += 1
        yield _labelled(core.GaugeMetricFamily, 'services',
                        'Services, by what they are to this one.', 'state',
                        _by_name(counts))
        yield _gauge('members', 'Members of the ring.',
                     len(known.members))

    def _guards(self) -> Iterator[core.Metric]:
        memory = self._ring.memory
        yield _labelled(
            core.GaugeMetricFamily, 'trust',
            'How far this service goes by what it sees of the others.',
            'trust', {each.name: each is memory.view.trust
                      for each in trust.Trust})
        age = self._ring.process.heartbeats.age()
        # Probes read it as the sign that the service has started.
        if age is not None:
            yield _gauge(
                'heartbeat_age_seconds',
                'Since when the last heartbeat has reached the database.', age)
        yield _gauge('rings_differ', 'Live services that have acknowledged '
                     'another ring for long.', len(memory.agreement.lasting))
        yield _gauge('nodes_vanished',
                     'Whether too many nodes are gone to believe it.',
                     memory.vanished.has_too_many)
        yield _gauge('nodes_kept', 'Nodes that Ironic does not show and that '
                     'are kept because of an instance.', len(memory.kept))
        yield _gauge('instances_to_recover',
                     'Instances taken over from dead services that are not '
                     'brought to order yet.', self._recovering())

    def _happened(self) -> Iterator[core.Metric]:
        counted = self._counted
        yield _labelled(
            core.CounterMetricFamily, 'nodes_taken',
            'Nodes that this service has decided to take.', 'decision',
            {each.name: counted.nodes_taken[each]
             for each in decisions.Decision
             if each.takes and each is not decisions.Decision.CREATE})
        yield _labelled(
            core.CounterMetricFamily, 'instances_taken_over',
            'Instances that this service has taken over.', 'reason',
            {'dead': counted.instances_taken[True],
             'consent': counted.instances_taken[False]})
        yield _counter('takeovers_failed', 'Takeovers of instances that have '
                       'failed.', counted.instances_not_taken)
        yield _counter('recoveries_given_up', 'Instances taken over from dead '
                       'services that are not brought to order any more.',
                       counted.recoveries_given_up)


def _gauge(name: str, words: str, value: float) -> core.Metric:
    return core.GaugeMetricFamily(_PREFIX + name, words, value)


def _counter(name: str, words: str, value: float) -> core.Metric:
    return core.CounterMetricFamily(_PREFIX + name, words, value)


def _labelled(kind: type[core.GaugeMetricFamily]
              | type[core.CounterMetricFamily], name: str, words: str,
              label: str, values: Mapping[str, float]) -> core.Metric:
    made = kind(_PREFIX + name, words, labels=[label])
    for each, value in values.items():
        made.add_metric([each], value)
    return made


def _by_name(counts: Mapping) -> dict[str, float]:
    return {each.name: count for each, count in counts.items()}


def _age(times: Iterable[float], now: float) -> float:
    return now - min(times, default=now)


def address(text: str) -> tuple[str, int]:
    """Read the address to listen on.

    :param text: as configured
    :returns: IP address and port
    :raises ValueError: if it is not both; the message says what to do
    """
    try:
        parts = urllib.parse.urlsplit(f'//{text}')
        if parts.netloc == text and '@' not in text and parts.port:
            return str(ipaddress.ip_address(parts.hostname or '')), parts.port
    except ValueError:
        pass
    raise ValueError(
        f'[ironic_ring] metrics_listen = "{text}" is no IP address with a '
        'port: set it to one, such as 127.0.0.1:19108 or [::1]:19108, or to '
        'nothing.')


class _Handler(simple_server.WSGIRequestHandler):

    def setup(self) -> None:
        """Read the request, which has no body."""
        super().setup()
        head = b''
        while line := self.rfile.readline(
                max(0, _LARGEST - len(head))).strip():
            head += line + b'\r\n'
        self.rfile = io.BytesIO(head + b'\r\n')

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """Answers Prometheus, in threads of nova-compute, of either kind.

    There are few connections at a time, and each lasts for seconds at most,
    TLS included: whoever does not go on is cut off.
    """

    daemon_threads = True
    #: How many wait in the kernel, where they cost no files.
    request_queue_size = 64

    def __init__(self, host: str, port: int,
                 tls: certificates.Certificates | None = None) -> None:
        """Begin to listen.

        :param host: the IP address
        :param port: the port; 0 for one that is free
        :param tls: what to serve with; None for without TLS
        :raises OSError: if it cannot listen there
        """
        self._tls = tls
        #: Each connection with a second handle, as TLS takes the first one,
        #: and the time by which it ends; None if it has been cut off.
        self._open: dict[Any, tuple[socket.socket, float | None]] = {}
        self._changed = threading.Condition()
        self.address_family = (socket.AF_INET6 if ':' in host
                               else socket.AF_INET)
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # Not WSGIServer's: it asks DNS for the name of the address.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = (
            str(self.server_address[0]), int(self.server_address[1]))
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin to answer, once fewer than the most are being answered.

        :param request: the socket
        :param client_address: whose it is
        :raises OSError: if there are too many files
        :raises RuntimeError: if there are too many threads
        """
        try:
            with self._changed:
                while len(self._open) >= _MOST:
                    self._cut(1)
                    self._changed.wait(_DEADLINE)
                self._open[request] = (
                    request.dup(), time.monotonic() + _DEADLINE)
            super().process_request(request, client_address)
        except (OSError, RuntimeError):
            self.shutdown_request(request)
            raise

    def shutdown_request(self, request: Any) -> None:
        """Close a connection.

        :param request: the socket
        """
        super().shutdown_request(request)
        with self._changed:
            if request in self._open:
                self._open.pop(request)[0].close()
                self._changed.notify()

    def _cut(self, least: int = 0) -> float | None:
        """Cut off connections that are late, and some of the oldest.

        :param least: how many at least, if there are so many
        :returns: seconds until the next one is late; None if there is none
        """
        with self._changed:
            for request, (handle, until) in self._open.items():
                if until is None:
                    continue
                left = until - time.monotonic()
                if left > 0 and not least:
                    return left
                least = max(0, least - 1)
                self._open[request] = handle, None
                with contextlib.suppress(OSError):
                    # Its thread gets an end of file, or an error.
                    handle.shutdown(socket.SHUT_RDWR)
        return None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer one request; called in its own thread.

        :param request: the socket
        :param client_address: whose it is
        """
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        # Here and not on the socket that listens: whoever does not go on
        # would keep all others waiting.
        with self._tls.context().wrap_socket(
                request, server_side=True) as safe:
            super().finish_request(safe, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what has ended a request; called where that is handled.

        :param request: the socket
        :param client_address: whose it is
        """
        # The default prints a traceback.
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            # Such as no TLS, or no certificate, or a client that has gone: it
            # knows, and may ask every few seconds.
            LOG.debug('No metrics for %(address)s: %(error)s', {
                'address': client_address[0], 'error': error})
        else:
            LOG.exception('No metrics for %s.', client_address[0])

    def run(self) -> None:
        """Answer until the server is closed."""
        # Not serve_forever: it waits with a selector, and one that was
        # imported before eventlet's patches stops the whole process.
        while True:
            try:
                self.socket.settimeout(self._cut())
                self.process_request(*self.get_request())
            except TimeoutError:
                continue
            except (OSError, RuntimeError) as error:
                # It was closed, or there are too many files or threads.
                if self.socket.fileno() == -1:
                    return
                LOG.warning('A request for metrics cannot be answered: %s',
                            error)
                time.sleep(1)


def start(ring: service.Service, recovering: Callable[[], int],
          listen: str, paths: certificates.Paths = certificates.Paths()
          ) -> Server | None:
    """Begin to serve the metrics, if they are configured.

    To be called in the process that runs the service: threads do not survive
    a fork.

    :param ring: the service
    :param recovering: as :class:`Collector`
    :param listen: the address and the port; empty for no metrics
    :param paths: where the certificates for TLS are; without one, the metrics
        are served without TLS
    :returns: the server, if there is one
    :raises nova.exception.InvalidConfiguration: if that is no address, or if
        something for TLS is given without a certificate
    """
    if not listen:
        return None
    try:
        host, port = address(listen)
        paths.check()
    except ValueError as error:
        LOG.error('%s', error)
        raise exception.InvalidConfiguration(str(error)) from error
    # The service is worth more than its metrics.
    try:
        tls = certificates.Certificates(paths) if paths.cert else None
    except ValueError as error:
        LOG.error('This service has no metrics, because it cannot use their '
                  'certificates (%s): correct the option or the file, and '
                  'restart.', error)
        return None
    try:
        server = Server(host, port, tls)
    except OSError as error:
        LOG.error('This service has no metrics, because it cannot listen on '
                  '%(listen)s (%(error)s): choose another [ironic_ring] '
                  'metrics_listen, and restart.', {
                      'listen': listen, 'error': error.strerror or error})
        return None
    shown = prometheus_client.CollectorRegistry()
    shown.register(Collector(ring, recovering))
    prometheus_client.ProcessCollector(registry=shown)
    server.set_app(prometheus_client.make_wsgi_app(shown))
    threading.Thread(target=server.run, daemon=True).start()
    return server
