# SPDX-License-Identifier: Apache-2.0

"""The time that a driver takes with Nova's own resource tracker, in memory.

One service has all nodes, and all are free. Nova's database, Ironic and
Placement are objects in memory, and the time to make their answers counts as
well. The time to list the nodes does not count: ``benchmarks.listing``
measures that.
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import time
from unittest import mock

from nova_ironic_ring.adapters.ironic import nodes
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import driver
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.fixtures import ironic_api
from nova_ironic_ring.tests.fixtures import nova_tracker
from nova_ironic_ring_tools.benchmarks import growth_core

_ME = 'me'
_DRIVERS: Mapping[str, type[upstream.NovaIronicDriver]] = {
    'ring': driver.IronicRingDriver, 'pool': pool_driver.IronicPoolDriver}


class _Clock:
    """Adds up the processor time of calls; a call in a call counts once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._is_running = False

    def timing(self, method: Callable[..., object]) -> Callable[..., object]:
        """Return a function whose calls are timed.

        :param method: the function
        """
        @functools.wraps(method)
        def call(*args: object, **kwargs: object) -> object:
            if self._is_running:
                return method(*args, **kwargs)
            self._is_running = True
            start = time.process_time()
            try:
                return method(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - start
                self._is_running = False
        return call


@contextlib.contextmanager
def _started(name: str, count: int) -> Iterator[tuple[
        fake_nova.FakeNova, nova_tracker.NovaTracker, fake_nova.Compute]]:
    """Start a service that has had no pass yet."""
    there = growth_core.names(count)
    api = ironic_api.Api([
        {**ironic_api.node(number), 'instance_uuid': None,
         'provision_state': 'available'} for number in range(count)])
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch('signal.signal'))
        nova = stack.enter_context(fake_nova.FakeNova(clouds.Cloud(
            nodes={node: clouds.Node() for node in there})))
        stack.enter_context(mock.patch(
            'nova.utils.get_sdk_adapter', return_value=api.connect()))
        nova.conf.config(host=_ME)
        nova.add_service(_ME)
        me = nova.compute(_ME, _DRIVERS[name])
        yield nova, stack.enter_context(
            nova_tracker.NovaTracker(nova, me)), me


@functools.cache
def _passes(name: str, count: int) -> Mapping[str, tuple[float, float]]:
    """Measure passes of a service.

    :param name: the name of the driver
    :param count: how many nodes there are
    :returns: the seconds of the first pass and of a steady pass: of the driver
        alone, and with Nova's tracker
    """
    found = {}
    with _started(name, count) as (nova, tracker, me):
        listing, ours = _Clock(), _Clock()
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(
                nodes.Ironic, 'nodes', listing.timing(nodes.Ironic.nodes)))
            for method in ('get_available_nodes', 'get_available_resource',
                           'update_provider_tree', 'is_node_deleted'):
                stack.enter_context(mock.patch.object(
                    me.driver, method, ours.timing(
                        getattr(me.driver, method))))
            # In the second pass the service sees its own first heartbeat.
            for what in 'first', '', '', 'steady':
                listing.seconds = ours.seconds = 0
                whole = growth_core.timed(tracker.run_pass)
                found[what] = (ours.seconds - listing.seconds,
                               whole - listing.seconds)
                nova.advance()
    assert nova.owned(_ME)
    return found


def _cost(name: str, what: str, is_whole: bool, count: int) -> float:
    return _passes(name, count)[what][is_whole]


#: Each takes the number of nodes, and returns the seconds that it takes.
SCENES: Mapping[str, Callable[[int], float]] = {
    f'{name}: {what} pass, {whose}': functools.partial(
        _cost, name, what, is_whole)
    for name in _DRIVERS for what in ('first', 'steady')
    for whose, is_whole in (('the driver alone', False),
                            ("with Nova's tracker", True))}
