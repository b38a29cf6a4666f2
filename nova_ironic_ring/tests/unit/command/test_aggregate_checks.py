# SPDX-License-Identifier: Apache-2.0

"""What check says of aggregates in Placement."""

import dataclasses

from oslotest import base

from nova_ironic_ring.command import aggregate_checks
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.command import deployment


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
        return list(aggregate_checks.members(dataclasses.replace(
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
