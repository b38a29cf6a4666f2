# SPDX-License-Identifier: Apache-2.0

"""Three services with pools, which run passes on a cloud in memory."""

import collections
import dataclasses

import fixtures
from oslotest import base

from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.passing import pool_places
from nova_ironic_ring.core.passing import reaction
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking import rereads
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds

NODES = ['00000000-0000-0000-0000-%012d' % number for number in range(30)]
KIND = pools.Kind('CUSTOM_BAREMETAL')
OTHER = pools.Kind('CUSTOM_BAREMETAL', frozenset({'CUSTOM_FAST'}))
#: What makes the services see different rings, by service.
DIFFERENT_RINGS = {
    'partitions': {'a': {'partitions': 1}, 'c': {'partitions': 100}},
    'peers': {host: {'peers': frozenset({host, 'b'})} for host in 'abc'},
    'both': {'a': {'peers': frozenset('ab'), 'partitions': 5},
             'b': {'peers': frozenset('bc')}},
}


class Service:
    """A service, and what Nova's tracker makes of its pools."""

    def __init__(self, cloud, host, **options):
        self.cloud = cloud
        self.host = host
        self.current = settings.Settings(host, **options)
        self.tracker = clouds.connect(cloud, self.current)
        self.world = self.tracker.world
        self.memory = observation.Memory()
        self.result = pool_places.PassResult()

    def run_pass(self, released=lambda pool: frozenset()):
        try:
            self.memory = self.memory.begun(
                self.world.process.now(), self.current)
            self.result = passes.run(
                self.world, self.memory, self.current,
                pool_places.Pools(released))
        except one_pass.UnansweredError as error:
            self.memory = error.memory
            raise
        self.memory = self.result.memory
        self.tracker.count(self.result)
        return self.result

    def react(self, released=lambda pool: frozenset()):
        """Look at the other services between two passes."""
        try:
            result = reaction.run(
                self.world, self.memory, self.current,
                pool_places.Pools(released))
        except one_pass.UnansweredError as error:
            self.memory = error.memory
            raise
        self.memory = result.memory
        self.result = dataclasses.replace(self.result, found=result.found)
        return result

    @property
    def pool(self):
        """Its pool of most nodes."""
        return self.result.found[pools.name(self.host, KIND)]

    def nodes(self):
        return {node for pool in self.result.found.values()
                for node in pool.nodes}

    def total(self):
        return sum(pool.inventory().total
                   for pool in self.result.found.values())

    def happened(self, kind):
        return [each for each in self.result.happened
                if isinstance(each, kind)]


class PoolPassTestCase(base.BaseTestCase):
    """Three services, which all run passes."""

    HOSTS: tuple[str, ...] = ('a', 'b', 'c')

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud(
            nodes={node: clouds.Node() for node in NODES})
        self.services = {}
        for host in self.HOSTS:
            self.start(host)
        self.run_passes(3)

    def asked_to_reread(self, host):
        """Return the pools that a service is to read anew, from now on.

        Not those that are read in turn.
        """
        self.useFixture(fixtures.MockPatchObject(
            rereads, '_TURNS', 1 << 40))
        asked = []
        self.services[host].world.placement.reread = asked.append
        return asked

    def start(self, host, **options):
        self.cloud.beat(host)
        self.services[host] = Service(self.cloud, host, **options)
        return self.services[host]

    def differ(self, rings):
        """Have services see different rings from now on.

        :param rings: one of DIFFERENT_RINGS
        """
        for host, options in rings.items():
            service = self.services[host]
            service.current = service.tracker.current = dataclasses.replace(
                service.current, **options)

    def run_passes(self, count=1, seconds=10.0, silent=(), failing=()):
        """Let time pass, and the services run their passes.

        :param silent: services without heartbeats and passes
        :param failing: services without passes
        """
        for _ in range(count):
            self.cloud.now += seconds
            for host in self.services:
                if host not in silent:
                    self.cloud.beat(host)
            for host, service in self.services.items():
                if host not in silent and host not in failing:
                    service.run_pass()

    def build(self, host, instance, node=None, allocates=True):
        """Put an instance on a node of a service."""
        service = self.services[host]
        node = node or min(service.pool.free)
        name = service.pool.name
        self.cloud.nodes[node].instance = instance
        self.cloud.instances[instance] = model.Instance(host, name)
        if allocates:
            self.allocate(name, instance)
        return node

    def allocate(self, name, instance):
        self.cloud.allocations.setdefault(
            pools.uuid_of(name), set()).add(instance)

    def counts(self):
        """Say how many services each node counts for."""
        return collections.Counter(
            node for service in self.services.values()
            for node in service.nodes())


class TakeoverTestCase(PoolPassTestCase):
    """The service b dies with instances on all of its nodes."""

    def setUp(self):
        super().setUp()
        self.held = sorted(self.services['b'].pool.free)
        for number, node in enumerate(self.held):
            self.build('b', f'i{number}', node)
        self.instances = sorted(self.cloud.instances)
        self.run_passes()
        self.pool_of_b = self.services['b'].pool.name

    def die(self, host='b', forced=True):
        """Have a service end, and say that it is down."""
        self.cloud.services[host] = dataclasses.replace(
            self.cloud.services[host], forced_down=forced)
        return self.services.pop(host)

    def come_back(self, service):
        """Start a service again."""
        host = service.host
        self.cloud.services[host] = dataclasses.replace(
            self.cloud.services[host], forced_down=False)
        service.memory = observation.Memory()
        self.services[host] = service

    def hosts(self):
        return {self.cloud.instances[uuid].host for uuid in self.instances}

    def assert_whole(self):
        """All instances are where their node counts and their allocation is.

        Nothing is counted twice among the living.
        """
        for uuid in self.instances:
            known = self.cloud.instances[uuid]
            service = self.services[known.host]
            (node,) = (name for name, node in self.cloud.nodes.items()
                       if node.instance == uuid)
            self.assertIn(node, service.result.found[known.node].used)
            self.assertEqual({pools.uuid_of(known.node)}, {
                provider for provider, consumers
                in self.cloud.allocations.items() if uuid in consumers})
        self.assertEqual(dict.fromkeys(NODES, 1), self.counts())
        for service in self.services.values():
            for pool in service.result.found.values():
                self.assertEqual(0, pool.inventory().reserved)
