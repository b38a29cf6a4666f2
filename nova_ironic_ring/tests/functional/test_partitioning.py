# SPDX-License-Identifier: Apache-2.0

"""Real nova-computes with conductor groups, shards and peer lists."""

import collections
import dataclasses
import json
from typing import ClassVar

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.core.values import member
from nova_ironic_ring.lab import servers
from nova_ironic_ring.tests.functional import base

# Two peers of one group, on either kind of threads, with a list; one of
# another group and one of the default group, without.
PEERS = 'a-one, A-Two, nowhere'
ON_EVENTLET = {'OS_NOVA_DISABLE_EVENTLET_PATCHING': 'false'}
ON_THREADS = {'OS_NOVA_DISABLE_EVENTLET_PATCHING': 'true'}


def _group(name: str, peers: str = '', **ring_options: object) -> dict:
    return {'ironic': {'conductor_group': name, 'peer_list': peers},
            'ironic_ring': ring_options}


class PartitioningTestCase(base.LabTestCase):

    KIND = base.Kind(computes=0, nodes=0, groups=('rack-a', 'rack-b'))

    by_group: ClassVar[dict[str, list[str]]]

    @classmethod
    def furnish(cls, lab):
        cls.by_group = {
            group: lab.enroll(count, conductor_group=group)
            for group, count in (('rack-a', 8), ('rack-b', 4), ('', 3))}
        for name, overrides, env in (
                ('a-one', _group('rack-a', PEERS), ON_EVENTLET),
                ('a-two', _group('RACK-A', PEERS), ON_THREADS),
                ('b-one', _group('rack-b'), ON_EVENTLET),
                ('default', _group(''), ON_THREADS)):
            lab.add_compute(name, overrides, env)
        for name in lab.state.computes:
            lab.wait_alive(name)
        lab.discover_hosts()
        lab.wait('The owners that are expected',
                 lambda: base.is_divided(lab, cls._expected()))

    def setUp(self):
        super().setUp()
        self.system = self.lab.connect('lab-system')

    @classmethod
    def _expected(cls, **members: list[str]) -> dict[str, str]:
        """Return who owns each node, by the members of its group."""
        hosts = {'rack-a': ['a-one', 'a-two'], 'rack-b': ['b-one'],
                 '': ['default']}
        hosts |= {name.replace('_', '-'): those
                  for name, those in members.items()}
        owners: dict[str, str] = {}
        for group, nodes in cls.by_group.items():
            owners |= base.divide(nodes, *hosts[group])
        return owners

    def is_settled(self) -> bool:
        return base.is_divided(self.lab, self._expected())

    def assertOwners(self, expected: dict[str, str]) -> None:
        self.lab.wait('The owners that are expected',
                      lambda: base.is_divided(self.lab, expected))

    def _without_service(self, group: str, owners: dict[str, str]
                         ) -> dict[str, str]:
        """Return whose nodes are where nobody serves a group any more.

        :param group: the group
        :param owners: whose they were
        """
        # Their records stay where they are.
        return owners

    def _move(self, node: str, group: str) -> None:
        self.system.baremetal.update_node(node, conductor_group=group)

    def test_each_group_is_divided_among_its_peers(self):
        expected = self._expected()
        self.assertEqual({'a-one', 'a-two', 'b-one', 'default'},
                         set(expected.values()))
        self.assertOwners(expected)

    def test_several_services_are_not_called_deprecated(self):
        for name in self.lab.state.computes:
            log = self.lab.compute(name).log.read_text()
            self.assertNotIn('Having multiple compute services', log)

    def test_leave_and_join(self):
        self.assertOwners(self._expected())
        self.lab.compute('a-two').stop()
        self.assertOwners(self._expected(rack_a=['a-one']))
        self.lab.start_compute('a-two')
        self.assertOwners(self._expected())

    def test_free_node_changes_its_group(self):
        self.assertOwners(self._expected())
        node = self.by_group['rack-a'][0]
        self.addCleanup(self._move, node, 'rack-a')
        self._move(node, 'rack-b')
        self.assertOwners(self._expected() | {node: 'b-one'})
        self._move(node, '')
        self.assertOwners(self._expected() | {node: 'default'})

    def test_node_with_an_instance_changes_its_group(self):
        self.assertOwners(self._expected())
        server = self.boot_active('stays', 'a-two')
        node = self.node_of(server).id
        self.addCleanup(self._move, node, 'rack-a')

        self._move(node, 'rack-b')
        self.wait_for_passes('a-one', 'a-two', 'b-one')
        self.assertIsDivided(self._expected())
        self.assertNotIn('Found orphan compute node',
                         self.lab.compute('a-two').log.read_text())
        self.assertReboots(server)

        servers.delete(self.cloud, [server])
        self.assertOwners(self._expected() | {node: 'b-one'})

    def test_sighup_changes_the_group(self):
        # On eventlet and on native threads.
        both = ['b-one', 'default']
        self.assertOwners(self._expected())
        for name, group in ('b-one', 'rack-b'), ('default', ''):
            self.addCleanup(self.lab.reconfigure, name, _group(group))
        for name in both:
            self.lab.reconfigure(name, _group('Rack-B'))
        expected = self._expected(rack_b=both)
        # Nobody serves the default group now.
        self.assertIn('default', {
            expected[node] for node in self.by_group['rack-b']})
        self.assertOwners(self._without_service('', expected))
        for name in both:
            self.assertEqual('running', self.lab.compute(name).state)

    def test_peer_lists_are_removed_one_by_one(self):
        self.assertOwners(self._expected())
        for name in 'a-one', 'a-two':
            self.addCleanup(self.lab.reconfigure, name,
                            _group('rack-a', PEERS))
            self.lab.reconfigure(name, _group('rack-a'))
            self.wait_for_passes('a-one', 'a-two')
            self.assertIsDivided(self._expected())

    def test_peer_list_that_leaves_one_out(self):
        self.assertOwners(self._expected())
        log = self.lab.compute('default').log
        before = len(log.read_text())
        self.addCleanup(self.lab.reconfigure, 'default', _group(''))
        # First, and for long enough that the other has seen it: without its
        # list it would take b-one for a peer, and offer nodes to it.
        self.addCleanup(self.wait_for_passes, 'default', 'b-one')
        self.addCleanup(self.lab.reconfigure, 'b-one', _group('rack-b'))
        self.lab.reconfigure('default', _group('', 'default'))
        # It says that it is in the same group, by the node that it has left.
        self.lab.reconfigure('b-one', _group(''))

        def warnings() -> list[str]:
            return [line for line in log.read_text()[before:].splitlines()
                    if 'it leaves out b-one' in line]
        self.lab.wait('A warning', warnings)
        self.wait_for_passes('default', 'b-one')
        (warning,) = warnings()
        self.assertIn(' WARNING ', warning)

    def test_sighup_changes_the_partitions(self):
        self.assertOwners(self._expected())
        for name in 'a-one', 'a-two':
            self.addCleanup(self.lab.reconfigure, name,
                            _group('rack-a', PEERS))
            self.lab.reconfigure(
                name, _group('rack-a', PEERS, partitions=7))
        changed = self._expected() | base.divide(
            self.by_group['rack-a'], 'a-one', 'a-two', partitions=7)
        self.assertNotEqual(self._expected(), changed)
        self.assertOwners(changed)

    def test_sighup_with_bad_values(self):
        self.assertOwners(self._expected())
        both = ['a-one', 'a-two']
        logs = {name: self.lab.compute(name).log for name in both}
        for name in both:
            self.addCleanup(self.lab.reconfigure, name,
                            _group('rack-a', PEERS))
        for bad, complaint in (
                (_group('rack-a', 'b'), 'does not name this service'),
                (_group('no/group', PEERS), 'conductor_group'),
                (_group('rack-a', PEERS, partitions='few'), 'partitions')):
            before = {name: len(logs[name].read_text()) for name in both}

            def errors(name: str) -> list[str]:
                return [line for line
                        in logs[name].read_text()[before[name]:].splitlines()
                        if 'stays in force' in line]

            for name in both:
                self.lab.reconfigure(name, bad)
            self.lab.wait(f'Complaints about {complaint}',
                          lambda: all(errors(name) for name in both))
            self.wait_for_passes(*both)
            for name in both:
                # It is said once, however many passes there are.
                (error,) = errors(name)
                self.assertIn(complaint, error)
                self.assertIn(' ERROR ', error)
        self.assertIsDivided(self._expected())

    def test_bad_configuration_at_the_start(self):
        self.assertOwners(self._expected())
        self.lab.add_compute('c-one', _group('rack-a', 'a-one'))
        self.addCleanup(self.lab.state.computes.remove, 'c-one')
        started = self.lab.compute('c-one')
        self.addCleanup(started.kill)
        with self.assertRaisesRegex(Exception, 'c-one has died'):
            self.lab.wait('Nothing', lambda: False)
        self.assertIn(
            '[ironic] peer_list does not name this service (c-one)',
            started.log.read_text())
        self.assertIsDivided(self._expected())


def _shard(name: str) -> dict:
    return {'ironic': {'shard': name}}


class ShardsTestCase(base.LabTestCase):
    """Two services for each of two shards, which find each other."""

    KIND = base.Kind(computes=0, nodes=0)
    SERVICES: ClassVar[dict[str, list[str]]] = {
        'x': ['x-one', 'x-two'], 'y': ['y-one', 'y-two']}

    by_shard: ClassVar[dict[str, list[str]]]

    @classmethod
    def furnish(cls, lab):
        cls.by_shard = {shard: lab.enroll(8, shard=shard) for shard in 'xy'}
        # All at once, and nobody has a record yet.
        for shard, names in cls.SERVICES.items():
            for name, env in zip(names, (ON_EVENTLET, ON_THREADS)):
                lab.add_compute(name, _shard(shard), env)
        for name in lab.state.computes:
            lab.wait_alive(name)
        lab.discover_hosts()
        lab.wait('The owners that are expected',
                 lambda: base.is_divided(lab, cls._expected()))

    @classmethod
    def _expected(cls, **members: list[str]) -> dict[str, str]:
        """Return who owns each node, by the members of its shard."""
        owners: dict[str, str] = {}
        for shard, nodes in cls.by_shard.items():
            owners |= base.divide(
                nodes, *members.get(shard, cls.SERVICES[shard]))
        return owners

    def is_settled(self) -> bool:
        return base.is_divided(self.lab, self._expected())

    def assertOwners(self, **members: list[str]) -> None:
        expected = self._expected(**members)
        self.lab.wait('The owners that are expected',
                      lambda: base.is_divided(self.lab, expected))

    def test_each_shard_is_divided_among_its_services(self):
        self.assertEqual({'x-one', 'x-two', 'y-one', 'y-two'},
                         set(self._expected().values()))
        self.assertOwners()

    def test_failover_inside_a_shard(self):
        self.assertOwners()
        server = self.boot_active('fails-over', 'x-two')
        self.lab.compute('x-two').kill()
        self.addCleanup(self.lab.start_compute, 'x-two')
        self.force_down('x-two')
        self.addCleanup(self.force_down, 'x-two', False)
        self.lab.wait('A new host', lambda: self.show(
            server).compute_host == 'x-one')
        self.assertOwners(x=['x-one'])
        self.assertReboots(server)
        servers.delete(self.cloud, [server])

    def test_service_changes_its_shard(self):
        self.assertOwners()
        for shard in 'x', 'y':
            self.lab.compute('y-two').stop()
            self.lab.configure_compute('y-two', _shard(shard))
            self.lab.start_compute('y-two')
            if shard == 'x':
                self.assertOwners(x=['x-one', 'x-two', 'y-two'],
                                  y=['y-one'])
        self.assertOwners()


_BY_SHARDS = {'ironic_ring': {'listing': 'shards'}}


class ListingTestCase(base.LabTestCase):
    """Services that divide 16 shards, and list no more than their own."""

    KIND = base.Kind(computes=3, nodes=16)
    #: How many shards one that was dead may get when it is back.
    RETURNED: ClassVar[tuple[int, ...]] = (5,)

    by_shard: ClassVar[dict[str, str]]

    @classmethod
    def furnish(cls, lab):
        baremetal = lab.connect('lab-system').baremetal
        cls.by_shard = {
            f'shard-{number:02}': node for number, node in enumerate(sorted(
                node.id for node in baremetal.nodes()))}
        for shard, node in cls.by_shard.items():
            baremetal.update_node(node, shard=shard)
        # One after the other: until all have it, nothing changes.
        for name in lab.state.computes:
            lab.reconfigure(name, _BY_SHARDS)
        lab.wait('Shares that are even', lambda: (
            cls._say_shards(lab) and cls._counts(lab) == [5, 5, 6]))

    def is_settled(self) -> bool:
        return self._counts(self.lab) == [5, 5, 6]

    @staticmethod
    def _say_shards(lab) -> bool:
        """Say whether all records say which shards their owners hold."""
        with lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute(
                'SELECT host, stats FROM compute_nodes WHERE deleted = 0 '
                f"AND hypervisor_hostname LIKE '%{member.SUFFIX}'")
            return all(stats.read_member(json.loads(said), host).held
                       for host, said in cursor.fetchall())

    @staticmethod
    def _counts(lab) -> list[int]:
        return sorted(lab.shares().values())

    def _owners(self) -> dict[str, str]:
        """Return whose each node is."""
        return self.lab.owners()

    def lasting(self, found):
        # Each time, a service that is back may have other shards, and so pools
        # of other kinds.
        return dataclasses.replace(
            found, owners=dict.fromkeys(found.owners, ''), pools={},
            providers=found.providers - found.pools.keys())

    def _wait_divided(self, *counts: int) -> dict[str, str]:
        """Wait until all nodes are divided, and return who owns each."""
        live = [name for name in self.lab.state.computes
                if self.lab.compute(name).state == 'running']
        settled: dict[str, str] = {}

        def is_settled() -> bool:
            nonlocal settled
            settled = self._owners()
            if self._counts(self.lab) != sorted(counts) or sorted(
                    collections.Counter(settled.values()).values()
            ) != sorted(counts):
                return False
            # Nodes that are on their way can be as many by chance: one pass
            # offers them, and another takes them.
            self.wait_for_passes(*live)
            return self._owners() == settled
        self.lab.wait(f'Shares of {counts}', is_settled)
        return settled

    def _moved(self, before: dict[str, str]) -> dict[str, tuple[str, str]]:
        """Say which nodes have another owner than before."""
        return {node: (before[node], owner)
                for node, owner in self._owners().items()
                if before[node] != owner}

    def assertListed(self, name: str, count: int) -> None:
        """See how many nodes a service has asked Ironic for."""
        self.assertIn(
            f'Of {count} nodes, {count} free and for this service',
            self.lab.compute(name).last_lines(200))

    def assertWith(self, node: str, other: str) -> None:
        """See that a free node comes to the service of another one."""
        def is_there() -> bool:
            owners = self._owners()
            return owners[node] == owners[other] != 'compute-3'
        self.lab.wait('The owner of the shard', is_there)

    def test_shards_of_nodes_change(self):
        before = self._wait_divided(5, 5, 6)
        counts = collections.Counter(before.values())
        server = self.boot_active('stays', 'compute-3')
        used = self.node_of(server).id
        free = next(node for node, owner in before.items()
                    if owner == 'compute-3' and node != used)
        # With two shards less, a service with six may lose one.
        other = next(node for node, owner in before.items()
                     if owner != 'compute-3' and counts[owner] == 5)
        baremetal = self.lab.connect('lab-system').baremetal
        shards_of = {node: shard for shard, node in self.by_shard.items()}
        for node in used, free:
            self.addCleanup(baremetal.update_node, node, shard=shards_of[node])
            baremetal.update_node(node, shard=shards_of[other])

        self.assertWith(free, other)
        self.wait_for_passes(*self.lab.state.computes)
        self.assertEqual('compute-3', self.show(server).compute_host)
        self.assertTrue(self.has_place(server))
        self.assertReboots(server)
        self.assertEqual([], self.read('check'))
        servers.delete(self.cloud, [server])
        self.assertWith(used, other)

    def test_death_return_and_join(self):
        before = self._wait_divided(5, 5, 6)
        server = self.boot_active('fails-over', 'compute-3')
        self.lab.compute('compute-3').kill()
        self.force_down('compute-3')
        self.addCleanup(self.force_down, 'compute-3', False)
        self._wait_divided(8, 8)
        self.assertEqual(
            {node for node, owner in before.items() if owner == 'compute-3'},
            self._moved(before).keys())
        self.lab.wait('A new host', lambda: self.show(
            server).compute_host != 'compute-3')
        self.assertReboots(server)
        servers.delete(self.cloud, [server])

        before = self._wait_divided(8, 8)
        self.force_down('compute-3', False)
        self.lab.start_compute('compute-3')
        self._wait_divided(5, 5, 6)
        moved = self._moved(before)
        self.assertEqual({'compute-3'}, {new for _, new in moved.values()})
        self.assertIn(len(moved), self.RETURNED)

        before = self._owners()
        self.lab.add_compute('compute-4', _BY_SHARDS)
        self.addCleanup(self.remove_compute, 'compute-4')
        self._wait_divided(4, 4, 4, 4)
        # It joins the aggregates of the others as well.
        self.lab.discover_hosts()
        moved = self._moved(before)
        self.assertEqual({'compute-4'}, {new for _, new in moved.values()})
        self.assertEqual(4, len(moved))
        self.wait_for_passes(*self.lab.state.computes)
        # The command sees the same.
        self.assertEqual([(4, 4)] * 4, [
            (line['Nodes'], line['Desired']) for line in self.read('show')])
        self.assertEqual([], self.read('check'))
        # Each asks for no more than its own shards.
        for name in self.lab.state.computes:
            self.assertListed(name, 4)

    def test_services_that_differ(self):
        before = self._wait_divided(5, 5, 6)
        log = self.lab.compute('compute-2').log
        start = len(log.read_text())
        self.addCleanup(self.lab.reconfigure, 'compute-1', _BY_SHARDS)
        self.lab.reconfigure('compute-1', {})
        self.lab.wait('A warning', lambda: any(
            ' WARNING ' in line for line in log.read_text()[
                start:].splitlines()
            if 'listing is "shards" here and is not on compute-1' in line))
        # All of them divide the nodes one by one.
        expected = base.divide(before.keys(), *self.lab.state.computes)
        self.lab.wait('The owners that are expected',
                      lambda: base.is_divided(self.lab, expected))
        # Pools are written before Placement has them.
        self.wait_for_passes(*self.lab.state.computes)
        (finding,) = self.read('check', status=1)
        self.assertIn('[ironic_ring] listing differs', finding['Found'])
        self.lab.reconfigure('compute-1', _BY_SHARDS)
        self._wait_divided(5, 5, 6)
