# SPDX-License-Identifier: Apache-2.0

"""Tests of what is found to look at."""

import dataclasses

from oslotest import base

from nova_ironic_ring.command.checks import findings
from nova_ironic_ring.command.checks import services
from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


class CheckTestCase(base.BaseTestCase):

    def _kinds(self, seen: snapshot.Snapshot) -> list[str]:
        return [finding.kind for finding in table.find(seen)]

    def _only(self, seen: snapshot.Snapshot) -> findings.Finding:
        (finding,) = table.find(seen)
        return finding

    def _say(self, seen: snapshot.Snapshot, host: str,
             **changes) -> snapshot.Snapshot:
        """Have a service say something else of itself."""
        return deployment.say(seen, host, **changes)

    def test_all_is_well(self):
        self.assertEqual([], table.find(make(instances={1: 'a'})))

    def test_passes_that_fail(self):
        finding = self._only(deployment.failing(make(), 'b'))
        self.assertEqual(('services', 'b'), (finding.kind, finding.subject))
        self.assertEqual('PASSES_FAIL', finding.code.name)
        self.assertIn('its passes fail: the last good one was at '
                      '2026-01-01 11:00:00 UTC', finding.what)
        self.assertIn('Ironic', finding.advice)

    def test_forced_down_and_alive(self):
        """After a failover, somebody has forgotten to let it come back."""
        seen = make('a', 'b', services=[
            service('a'), service('b'), service('C', forced_down=True)])
        finding = self._only(seen)
        self.assertEqual(('services', 'C'), (finding.kind, finding.subject))
        self.assertEqual('FORCED_DOWN_AND_ALIVE', finding.code.name)
        self.assertIn('"openstack compute service set --up C nova-compute"',
                      finding.advice)
        # One that is dead as well is as it should be.
        self.assertEqual([], table.find(make('a', 'b', services=[
            service('a'), service('b'),
            service('C', 61, forced_down=True)])))

    def test_services_that_see_others_go_by_another_ring(self):
        seen = deployment.record(make(), 'b', differ=frozenset('ca'))
        finding = self._only(seen)
        self.assertEqual(('configuration', 'b'),
                         (finding.kind, finding.subject))
        self.assertEqual('RINGS_DIFFER', finding.code.name)
        self.assertIn('by another ring than a, c: no free node goes',
                      finding.what)
        self.assertIn('peer_list', finding.advice)
        # What a dead one has seen may be old.
        self.assertNotIn('RINGS_DIFFER', [
            each.code.name for each in table.find(dataclasses.replace(
                seen, services=[service('a'), service('b', 61),
                                service('c')]))])

    def test_failover_that_waits_longer_than_it_is_told_to(self):
        seen = self._say(make(), 'b', failover_after=180)
        # A release that does not say what is configured.
        self.assertEqual([], table.find(seen))
        self.assertEqual([], table.find(self._say(
            seen, 'b', failover_configured=180)))
        finding = self._only(self._say(seen, 'b', failover_configured=10))
        self.assertEqual(('FAILOVER_RAISED', 'configuration', 'b'), (
            finding.code.name, finding.kind, finding.subject))
        self.assertIn('failover_after is 10 s, and it waits for 180 s',
                      finding.what)
        self.assertIn('set failover_after to 180 or more', finding.advice)

    def test_start_without_a_limit(self):
        finding = self._only(dataclasses.replace(
            make(), is_start_unlimited=True))
        self.assertEqual(('START_WITHOUT_LIMIT', 'configuration'), (
            finding.code.name, finding.kind))
        self.assertIn('[placement] timeout is unset', finding.what)

    def test_partitions_that_differ(self):
        finding = self._only(self._say(make(), 'b', partitions=64))
        self.assertEqual('configuration', finding.kind)
        self.assertIs(findings.FindingCode.CONFIGURATION_DIFFERS, finding.code)
        self.assertIs(findings.Severity.ERROR, finding.code.severity)
        self.assertEqual('[ironic_ring] partitions differs '
                         '(a, c: 32; b: 64)', finding.what)

    def test_listings_that_differ(self):
        finding = self._only(self._say(
            deployment.by_shards(make(), *'uvwxyz'), 'b', listing='all'))
        self.assertIs(findings.FindingCode.CONFIGURATION_DIFFERS, finding.code)
        self.assertEqual('[ironic_ring] listing differs '
                         '(b: all; a, c: shards)', finding.what)

    def test_protocols_that_differ(self):
        finding = self._only(self._say(make(), 'b', protocol=3))
        self.assertEqual(('drivers', 'PROTOCOLS_DIFFER'),
                         (finding.kind, finding.code.name))
        self.assertIs(findings.Severity.WARNING, finding.code.severity)
        self.assertEqual(
            'the services speak different versions of the protocol '
            f'(b: 3; a, c: {profile.PROTOCOL}), and no free node goes from '
            'one version to another', finding.what)
        self.assertEqual('upgrade this package on b, and restart them',
                         finding.advice)

    def test_protocol_that_the_command_does_not_know(self):
        finding = self._only(make(
            said=profile.Profile(protocol=profile.PROTOCOL + 1)))
        self.assertEqual('PROTOCOLS_DIFFER', finding.code.name)
        self.assertIn(
            f'and this command knows {profile.PROTOCOL}', finding.what)
        self.assertIn('where the command runs', finding.advice)

    def test_protocol_of_a_dead_service(self):
        seen = self._say(make(services=[
            service('a'), service('b', 61), service('c')]), 'b', protocol=3)
        self.assertEqual(['services'], self._kinds(seen))

    def test_shards(self):
        self.assertEqual([], table.find(
            deployment.by_shards(make(), *'uvwxyz')))

    def test_peer_lists(self):
        said = profile.Profile(conductor_group='rack',
                               peers=profile.fingerprint('a', 'b', 'c'))
        self.assertEqual([], table.find(make(said=said)))
        found = self._say(make(said=said), 'b',
                          peers=profile.fingerprint('b', 'c'))
        self.assertIn('[ironic] peer_list differs',
                      table.find(found)[0].what)
        finding = self._only(make(said=dataclasses.replace(
            said, peers=profile.fingerprint('a', 'b', 'c', 'd'))))
        self.assertIn('peer_list differs from the live services (a, b, c)',
                      finding.what)
        self.assertEqual('PEER_LIST_DIFFERS_FROM_SERVICES', finding.code.name)

    def test_peer_list_that_some_have(self):
        said = profile.Profile(conductor_group='rack')
        self.assertEqual([], table.find(make(said=said)))
        listed = profile.fingerprint('a', 'b', 'c')
        self.assertEqual([], table.find(
            self._say(make(said=said), 'b', peers=listed)))
        finding = self._only(self._say(
            make(said=said), 'b', peers=profile.fingerprint('a', 'b')))
        self.assertEqual('PEER_LIST_DIFFERS_FROM_SERVICES', finding.code.name)
        self.assertIn('or remove it from all', finding.advice)

    def test_shard_of_several(self):
        self.assertEqual([], table.find(make(
            said=profile.Profile(shard='one'))))

    def test_peer_list_with_one_that_is_drained_or_dead(self):
        said = profile.Profile(conductor_group='rack',
                               peers=profile.fingerprint('a', 'b', 'c'))
        seen = make('a', 'b', said=said, services=[
            service('a'), service('b'), service('c', disabled=True)])
        self.assertEqual([], table.find(seen))
        seen = make(said=said, services=[
            service('a'), service('b', 61), service('c')])
        self.assertEqual(['services'], self._kinds(seen))

    def test_aggregates(self):
        together = frozenset({'rack-1 (availability zone east)'})
        self.assertEqual([], table.find(make(services=[
            dataclasses.replace(service(host), aggregates=together)
            for host in 'abc'])))
        finding = self._only(make(services=[
            dataclasses.replace(service('a'), aggregates=together),
            dataclasses.replace(
                service('b', disabled=True), aggregates=together),
            service('c')]))
        self.assertEqual('aggregates', finding.kind)
        self.assertEqual('AGGREGATES_DIFFER', finding.code.name)
        self.assertEqual(
            'host aggregates differ '
            '(c: none; a, b: rack-1 (availability zone east))', finding.what)

    def test_aggregates_of_rings_that_have_nothing_to_do_with_each_other(self):
        seen = make(services=[
            dataclasses.replace(service(host), aggregates=frozenset(host))
            for host in 'abc'])
        for host in 'abc':
            seen = self._say(seen, host, shard=host)
        nodes = {uuid: dataclasses.replace(
            node, shard=seen.rows[uuid].owner)
            for uuid, node in seen.nodes.items()}
        self.assertNotIn('aggregates', self._kinds(
            dataclasses.replace(seen, nodes=nodes)))

    def test_one_cell(self):
        seen = make(services=[service('a'), service('b', 61), service('c')])
        self.assertEqual(['services'], self._kinds(
            dataclasses.replace(seen, cell='cell1')))
        self.assertEqual([], self._kinds(
            dataclasses.replace(seen, cell='cell2')))

    def test_group_without_a_member(self):
        seen = make(services=[service(host, disabled=True) for host in 'abc'])
        self.assertEqual({'RING_WITHOUT_MEMBER'}, {
            finding.code.name for finding in table.find(seen)})

    def test_node_in_no_group_served(self):
        seen = make(said=profile.Profile(
            conductor_group='rack',
            peers=profile.fingerprint('a', 'b', 'c')))
        nodes = seen.nodes | {
            'other': snapshot.Node(None, uuid='other', group='elsewhere')}
        finding = self._only(dataclasses.replace(seen, nodes=nodes))
        self.assertEqual('other', finding.subject)
        self.assertIn('conductor group "elsewhere"', finding.what)
        self.assertEqual('NODE_NOT_SERVED', finding.code.name)

    def test_scopes_that_overlap(self):
        seen = make(said=profile.Profile(conductor_group='rack', shard='x'))

        def use(**scopes: profile.Profile) -> set[str]:
            return {f'{finding.subject}: {finding.what}'
                    for finding in table.find(dataclasses.replace(
                        seen, members={
                            host: deployment.member(said)
                            for host, said in scopes.items()}))
                    if finding.code.name == 'SCOPES_OVERLAP'}

        group = profile.Profile(conductor_group='rack')
        shard = profile.Profile(shard='x')
        (found,) = use(a=group, b=group, c=shard)
        self.assertIn('30 of its nodes, such as 0', found)
        self.assertIn('are those of cell cell1, group "rack" as well', found)
        # One within the other, and two that have no node in common.
        for a, b in ((profile.Profile(), group), (shard, profile.Profile()),
                     (profile.Profile('rack', 'x'), shard),
                     (profile.Profile('other'), shard)):
            self.assertEqual(set(), use(a=a, b=b, c=b))

    def test_nodes_of_two_cells(self):
        cells = frozenset(('cell1', 'cell2'))
        for nodes, words in (
                (('0',), '1 node, 0, has a record in each'),
                (('1', '0'), '2 nodes, such as 0, have records in each')):
            finding = self._only(dataclasses.replace(
                make(), twice=dict.fromkeys(nodes, cells)))
            self.assertEqual('NODES_IN_TWO_CELLS', finding.code.name)
            self.assertEqual('cell1, cell2', finding.subject)
            self.assertIn(words, finding.what)

    def test_stock_driver(self):
        finding = self._only(deployment.stock(make(), 'b'))
        self.assertEqual(('drivers', 'b'), (finding.kind, finding.subject))
        self.assertEqual('SERVICE_SAYS_NOTHING', finding.code.name)

    def test_driver_that_does_not_load(self):
        finding = self._only(make(services=[
            service(host) for host in 'abcd']))
        self.assertEqual('d', finding.subject)
        self.assertIn('does not load', finding.what)
        self.assertEqual('SERVICE_WITHOUT_NODE', finding.code.name)

    def test_member_without_a_node(self):
        seen = make('a', 'b')
        (finding,) = (finding for finding in table.find(
            dataclasses.replace(
                seen, services=[*seen.services, service('d')],
                members={**seen.members, 'd': seen.members['a']}))
            if finding.kind == 'drivers')
        self.assertEqual(('SERVICE_WITHOUT_NODE', 'd'), (
            finding.code.name, finding.subject))
        self.assertIn('the ring assigns no free node to it', finding.what)


class MembersTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.seen = deployment.make('a', 'b', said=profile.Profile())
        self.of = {host: frozenset(
            node for node, row in self.seen.rows.items() if row.owner == host)
            for host in 'ab'}

    def _find(self, seen=None, **providers):
        """Look, where each service is in a zone of its name in Nova.

        :param seen: the deployment
        :param providers: what Placement has in each of the zones
        """
        return list(services.members(dataclasses.replace(
            seen or self.seen, aggregates={
                host: snapshot.Aggregate(
                    f'zone-{host}', frozenset(host.upper()), found)
                for host, found in providers.items()})))

    def test_all_is_well(self):
        self.assertEqual([], self._find(**self.of))

    def test_nova_has_told_of_the_first_alone(self):
        first = min(self.of['a'])
        (found,) = self._find(a=frozenset({first}), b=self.of['b'])
        count = len(self.of['a'])
        self.assertEqual(('NOT_IN_AGGREGATE', 'aggregates', 'a'), (
            found.code.name, found.kind, found.subject))
        self.assertIn(f'{count - 1} of its {count} compute nodes are not in '
                      'aggregate zone-a', found.what)
        self.assertIn('[api_database]', found.advice)

    def test_node_that_has_come_from_the_other(self):
        moved = min(self.of['a'])
        (found,) = self._find(a=self.of['a'], b=self.of['b'] | {moved})
        self.assertEqual(('LEFT_IN_AGGREGATE', 'a'), (
            found.code.name, found.subject))
        self.assertIn('1 of its', found.what)
        self.assertIn('is in aggregate zone-b', found.what)

    def test_aggregate_without_a_service_of_ironic(self):
        # It was not asked for.
        self.assertEqual([], self._find(k=None, **self.of))

    def test_service_that_is_dead(self):
        services = [
            deployment.service('a', silent=1000), deployment.service('b')]
        self.assertEqual([], self._find(dataclasses.replace(
            self.seen, services=services), a=frozenset(), b=self.of['b']))

    def test_pools(self):
        name = pools.name('a', deployment.KIND)
        row = next(row for row in self.seen.rows.values()
                   if row.owner == 'a')
        seen = dataclasses.replace(
            self.seen, rows={}, pools={
                name: dataclasses.replace(row, node=name)},
            inventories={name: snapshot.Inventory(15, 0, 0)})
        self.assertEqual([], self._find(
            seen, a=frozenset({pools.uuid_of(name)})))
        (found,) = self._find(seen, a=frozenset())
        self.assertIn('1 of its 1 compute node is not in', found.what)

    def test_placement_was_not_asked(self):
        self.assertEqual([], self._find(dataclasses.replace(
            self.seen, providers=None), a=frozenset(), b=frozenset()))
