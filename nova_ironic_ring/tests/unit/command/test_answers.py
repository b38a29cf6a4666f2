# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Tests of what the command makes of what it reads."""

import dataclasses
from xml.etree import ElementTree

from oslotest import base

from nova_ironic_ring.command import checks
from nova_ironic_ring.command import decisions
from nova_ironic_ring.command import overview
from nova_ironic_ring.command import picture
from nova_ironic_ring.command import planning
from nova_ironic_ring.command import snapshot
from nova_ironic_ring import profile
from nova_ironic_ring import ring
from nova_ironic_ring.tests.unit.command import deployment

make, service, NODES = deployment.make, deployment.service, deployment.NODES


def _of(seen: snapshot.Snapshot, host: str) -> overview.Line:
    (line,) = (line for line in overview.lines(seen) if line.host == host)
    return line


def _elsewhere(seen: snapshot.Snapshot) -> snapshot.Snapshot:
    """Have Nova say that an instance is a server of another kind."""
    return dataclasses.replace(seen, instances={
        uuid: dataclasses.replace(instance, host='kvm', node='kvm-1')
        for uuid, instance in seen.instances.items()})


class OverviewTestCase(base.BaseTestCase):

    def test_all_is_well(self):
        lines = overview.lines(make())
        self.assertEqual(['a', 'b', 'c'], [line.host for line in lines])
        self.assertEqual({'member'}, {line.state for line in lines})
        self.assertEqual({'cell cell1'}, {line.ring for line in lines})
        self.assertEqual(30, sum(line.owned for line in lines))
        for line in lines:
            self.assertEqual(line.owned, line.desired)
            self.assertEqual(0, line.to_hand_over)

    def test_states(self):
        seen = make('a', 'b', 'c', 'd', 'E', services=[
            service('a'), service('b', 61), service('c', disabled=True,
                                                    reason='a fan'),
            service('d', 61, forced_down=True),
            service('E', forced_down=True), service('f'), service('g', 61)])
        self.assertEqual({
            'a': 'member',
            'b': 'down since 2026-01-01 11:58:59 UTC (61 s)',
            'c': 'disabled: a fan', 'd': 'forced down',
            'E': 'forced down, but alive',
            'f': 'alive, but without a node, so in no ring',
            'g': 'down since 2026-01-01 11:58:59 UTC (61 s)',
        }, {line.host: line.state for line in overview.lines(seen)})
        # All is for the only member.
        self.assertEqual(30, _of(seen, 'a').desired)
        self.assertGreater(_of(seen, 'b').to_hand_over, 0)

    def test_instances_of_the_dead(self):
        seen = make(instances={1: 'b', 2: 'b', 3: 'a', 4: 'gone'}, services=[
            service('a'), service('b', 61), service('c')])
        self.assertEqual(2, _of(seen, 'b').instances)
        self.assertEqual(2, _of(seen, 'b').to_fail_over)
        self.assertEqual(0, _of(seen, 'a').to_fail_over)
        self.assertEqual('Nova has no record of it', _of(seen, 'gone').state)
        self.assertEqual(1, _of(seen, 'gone').to_fail_over)

    def test_stock_driver(self):
        seen = make()
        rows = {node: dataclasses.replace(
            row, profile=None if row.owner == 'b' else row.profile)
            for node, row in seen.rows.items()}
        seen = dataclasses.replace(seen, rows=rows)
        self.assertEqual("member, with Nova's own driver",
                         _of(seen, 'b').state)

    def test_groups_are_rings_of_their_own(self):
        seen = make(said=profile.Profile(conductor_group='rack'))
        self.assertEqual(
            {'cell cell1, group "rack"'},
            {line.ring for line in overview.lines(seen)})
        self.assertFalse(seen.keys()[0].serves(snapshot.Node('x', group='')))
        self.assertTrue(
            seen.keys()[0].serves(snapshot.Node('x', group='Rack')))

    def test_service_that_is_not_in_a_peer_list(self):
        seen = make(said=profile.Profile(
            conductor_group='rack', peers=profile.fingerprint('a', 'b'),
            names=('a', 'b')))
        self.assertEqual('alive, but not in the peer list of a, b, c',
                         _of(seen, 'c').state)
        self.assertEqual('member', _of(seen, 'a').state)

    def test_service_without_a_node_among_several_rings(self):
        seen = make(services=[service(host) for host in 'abcd'])
        rows = {node: dataclasses.replace(
            row, profile=profile.Profile(conductor_group='Rack'))
            if row.owner == 'c' else row for node, row in seen.rows.items()}
        seen = dataclasses.replace(seen, rows=rows)
        self.assertEqual(2, len(seen.keys()))
        self.assertEqual('rack', seen.keys()[1].group)
        self.assertEqual('cell cell1, unknown', _of(seen, 'd').ring)
        # Where there is but one, it is in that one.
        seen = make(services=[service(host) for host in 'abcd'])
        self.assertEqual('cell cell1', _of(seen, 'd').ring)

    def test_one_cell(self):
        seen = make(services=[service(host) for host in 'abc']
                    + [service('d', cell='cell2')])
        self.assertEqual(['d'], [line.host for line in overview.lines(
            dataclasses.replace(seen, cell='cell2'))])

    def test_services_of_other_drivers_are_no_concern(self):
        seen = make(services=[service(host) for host in 'abcd'],
                    others=frozenset({'d'}))
        self.assertEqual(3, len(overview.lines(seen)))
        error = self.assertRaises(ValueError, seen.service, 'd')
        self.assertIn('does not run an ironic driver', str(error))


class FindTestCase(base.BaseTestCase):

    def test_by_name_or_uuid(self):
        seen = make()
        self.assertEqual(NODES[7], seen.find(NODES[7]).uuid)
        self.assertEqual(NODES[7], seen.find('node-7').uuid)

    def test_by_the_beginning_of_the_uuid(self):
        seen = make(nodes={
            'abcd-1': snapshot.Node('abcd-1'), 'abce-1': snapshot.Node(
                'abce-1')})
        self.assertEqual('abcd-1', seen.find('abcd').uuid)

    def test_none(self):
        error = self.assertRaises(ValueError, make().find, 'node-77')
        self.assertIn('Ironic has no node "node-77"', str(error))

    def test_more_than_one(self):
        error = self.assertRaises(ValueError, make().find, '00000000-')
        self.assertIn('fits 30 nodes', str(error))

    def test_service(self):
        self.assertEqual('a', make().service('A').record.host)
        error = self.assertRaises(ValueError, make().service, 'x')
        self.assertIn('There is no nova-compute on "x": the hosts are '
                      'a, b, c', str(error))
        seen = make(services=[service('a'), service('a', cell='cell2')])
        error = self.assertRaises(ValueError, seen.service, 'a')
        self.assertIn('choose one with --cell', str(error))


class PlanTestCase(base.BaseTestCase):

    def _plan(self, seen: snapshot.Snapshot, **changes) -> planning.Plan:
        return planning.plan(seen, seen.keys()[0], **changes)

    def test_join(self):
        plan = self._plan(make(), add=['D'])
        self.assertEqual(['a', 'b', 'c', 'd'],
                         [share.host for share in plan.shares])
        self.assertEqual(30, sum(share.nodes for share in plan.shares))
        self.assertEqual(30, sum(share.nodes_after for share in plan.shares))
        # Only what the new one gets.
        self.assertEqual(plan.shares[3].nodes_after, plan.moved_nodes)
        self.assertEqual(0, plan.shares[3].nodes)

    def test_leave(self):
        plan = self._plan(make(instances={1: 'b', 2: 'a'}), remove=['b'])
        share = plan.shares[1]
        self.assertEqual((0, 0), (share.nodes_after, share.instances_after))
        self.assertEqual(share.nodes, plan.moved_nodes)
        self.assertEqual(1, plan.moved_instances)

    def test_instances_that_follow(self):
        held = dict.fromkeys(range(10), 'a')
        stay = self._plan(make(instances=held), add=['d'])
        self.assertEqual(0, stay.moved_instances)
        follow = self._plan(make(instances=held, said=profile.Profile(
            mobility='follow')), add=['d'])
        current = ring.Ring('abcd', 32)
        self.assertEqual(
            sum(current.owner(NODES[number]) != 'a' for number in held),
            follow.moved_instances)

    def test_partitions(self):
        plan = self._plan(make(), partitions=1024)
        self.assertLess(plan.balance_after, plan.balance)
        self.assertGreater(plan.moved_nodes, 0)

    def test_errors(self):
        for changes, message in (
                ({'add': ['A']}, '"a" is a member of the ring'),
                ({'remove': ['x']}, '"x" is no member of the ring'),
                ({'remove': ['a', 'b', 'c']}, 'Nobody would be left')):
            error = self.assertRaises(ValueError, self._plan, make(),
                                      **changes)
            self.assertIn(message, str(error))
        nobody = make(services=[service(host, 61) for host in 'abc'])
        error = self.assertRaises(ValueError, self._plan, nobody)
        self.assertIn('has no living member', str(error))

    def test_picture(self):
        plan = self._plan(make('a', '<b>', instances={1: 'a'}), add=['d'])
        root = ElementTree.fromstring(picture.svg(plan))
        texts = [each.text for each in root.iter(
            '{http://www.w3.org/2000/svg}text')]
        self.assertIn('<b>', texts)
        self.assertIn(f'{plan.moved_nodes} free nodes and 0 instances change '
                      'hands', texts[0])
        bars = list(root.iter('{http://www.w3.org/2000/svg}rect'))
        # Two in the legend, and four a service.
        self.assertEqual(2 + 4 * 3, len(bars))

    def test_balance(self):
        self.assertEqual(1, planning.balance({'a': 5, 'b': 5}))
        self.assertEqual(1.5, planning.balance({'a': 9, 'b': 3}))
        self.assertEqual(1, planning.balance({'a': 0}))


class CheckTestCase(base.BaseTestCase):

    def _kinds(self, seen: snapshot.Snapshot) -> list[str]:
        return [finding.kind for finding in checks.find(seen)]

    def _only(self, seen: snapshot.Snapshot) -> checks.Finding:
        (finding,) = checks.find(seen)
        return finding

    def _say(self, seen: snapshot.Snapshot, host: str,
             **changes) -> snapshot.Snapshot:
        """Have a service say something else of itself."""
        return dataclasses.replace(seen, rows={
            node: dataclasses.replace(row, profile=dataclasses.replace(
                row.profile or profile.Profile(), **changes))
            if row.owner == host else row
            for node, row in seen.rows.items()})

    def test_all_is_well(self):
        self.assertEqual([], checks.find(make(instances={1: 'a'})))

    def test_partitions_that_differ(self):
        finding = self._only(self._say(make(), 'b', partitions=64))
        self.assertEqual('configuration', finding.kind)
        self.assertEqual('[ironic_ring] partitions differs '
                         '(a, c: 32; b: 64)', finding.what)

    def test_peer_lists(self):
        said = profile.Profile(conductor_group='rack',
                               peers=profile.fingerprint('a', 'b', 'c'))
        self.assertEqual([], checks.find(make(said=said)))
        found = self._say(make(said=said), 'b',
                          peers=profile.fingerprint('b', 'c'))
        self.assertIn('[ironic] peer_list differs',
                      checks.find(found)[0].what)
        finding = self._only(make(said=dataclasses.replace(
            said, peers=profile.fingerprint('a', 'b', 'c', 'd'))))
        self.assertIn('peer_list is not what lives there (a, b, c)',
                      finding.what)

    def test_peer_list_with_one_that_is_drained_or_dead(self):
        said = profile.Profile(conductor_group='rack',
                               peers=profile.fingerprint('a', 'b', 'c'))
        seen = make('a', 'b', said=said, services=[
            service('a'), service('b'), service('c', disabled=True)])
        self.assertEqual([], checks.find(seen))
        seen = make(said=said, services=[
            service('a'), service('b', 61), service('c')])
        self.assertEqual(['services'], self._kinds(seen))

    def test_one_cell(self):
        seen = make(services=[service('a'), service('b', 61), service('c')])
        self.assertEqual(['services'], self._kinds(
            dataclasses.replace(seen, cell='cell1')))
        self.assertEqual([], self._kinds(
            dataclasses.replace(seen, cell='cell2')))

    def test_group_without_a_member(self):
        seen = make(services=[service(host, disabled=True) for host in 'abc'])
        self.assertIn('groups', self._kinds(seen))

    def test_node_in_no_group_served(self):
        seen = make(said=profile.Profile(
            conductor_group='rack',
            peers=profile.fingerprint('a', 'b', 'c')))
        nodes = seen.nodes | {
            'other': snapshot.Node('other', group='elsewhere')}
        finding = self._only(dataclasses.replace(seen, nodes=nodes))
        self.assertEqual('other', finding.subject)
        self.assertIn('conductor group "elsewhere"', finding.what)

    def test_stock_driver(self):
        seen = make()
        seen = dataclasses.replace(seen, rows={
            node: dataclasses.replace(
                row, profile=None if row.owner == 'b' else row.profile)
            for node, row in seen.rows.items()})
        finding = self._only(seen)
        self.assertEqual(('drivers', 'b'), (finding.kind, finding.subject))

    def test_driver_that_does_not_load(self):
        finding = self._only(make(services=[
            service(host) for host in 'abcd']))
        self.assertEqual('d', finding.subject)
        self.assertIn('does not load', finding.what)

    def test_rows_of_dead_services(self):
        finding = self._only(make(services=[
            service('a'), service('b', 61), service('c')]))
        self.assertEqual(('services', 'b'), (finding.kind, finding.subject))

    def test_row_and_provider_without_a_node(self):
        seen = make()
        nodes = dict(seen.nodes)
        del nodes[NODES[3]]
        finding = self._only(dataclasses.replace(seen, nodes=nodes))
        self.assertEqual(('rows', NODES[3]), (finding.kind, finding.subject))
        rows = dict(seen.rows)
        del rows[NODES[3]]
        finding = self._only(
            dataclasses.replace(seen, nodes=nodes, rows=rows))
        self.assertEqual(('providers', NODES[3]),
                         (finding.kind, finding.subject))

    def test_node_without_a_row_or_a_provider(self):
        seen = make()
        rows = dict(seen.rows)
        del rows[NODES[3]]
        finding = self._only(dataclasses.replace(
            seen, rows=rows, providers=seen.providers - {NODES[3]}))
        self.assertIn('has no record in Nova', finding.what)
        finding = self._only(dataclasses.replace(
            seen, providers=seen.providers - {NODES[3]}))
        self.assertIn('no resource provider', finding.what)

    def test_instance_that_is_not_with_its_row(self):
        seen = make(instances={1: 'a'})
        row = dataclasses.replace(seen.rows[NODES[1]], owner='b')
        finding = self._only(dataclasses.replace(
            seen, rows={**seen.rows, NODES[1]: row}))
        self.assertEqual('instance-1', finding.subject)

    def test_instance_that_nova_has_elsewhere(self):
        finding = self._only(_elsewhere(make(instances={1: 'a'})))
        self.assertEqual(NODES[1], finding.subject)
        self.assertIn('which Nova has on kvm-1, with kvm', finding.what)

    def test_instance_that_nova_does_not_have(self):
        finding = self._only(dataclasses.replace(
            make(instances={1: 'a'}), instances={}))
        self.assertEqual(NODES[1], finding.subject)
        self.assertIn('which Nova does not have', finding.what)

    def test_without_placement(self):
        self.assertEqual([], checks.find(make(providers=None)))


class DecisionTestCase(base.BaseTestCase):

    def _explain(self, seen: snapshot.Snapshot, number: int
                 ) -> dict[str, str]:
        return decisions.explain(seen, seen.nodes[NODES[number]])

    def _of(self, number: int, *hosts: str) -> str:
        return ring.Ring(hosts, 32).owner(NODES[number])

    def test_free_and_well(self):
        story = self._explain(make(), 0)
        owner = self._of(0, 'a', 'b', 'c')
        self.assertEqual(owner, story['Owner'])
        self.assertEqual(owner, story['Desired owner'])
        self.assertEqual(2, len(story['Successors'].split(', ')))
        self.assertEqual(f'{owner}: KEEP', story['Decision'])
        self.assertEqual('the node is free and for this service',
                         story['Reason'])

    def _with_row(self, number: int, owner: str, taker: str | None = None,
                  **changes) -> snapshot.Snapshot:
        seen = make(**changes)
        row = dataclasses.replace(seen.rows[NODES[number]], owner=owner,
                                  taker=taker)
        return dataclasses.replace(
            seen, rows={**seen.rows, NODES[number]: row})

    def test_free_and_with_another(self):
        desired = self._of(0, 'a', 'b', 'c')
        other = 'a' if desired != 'a' else 'b'
        story = self._explain(self._with_row(0, other), 0)
        self.assertEqual(f'{other}: OFFER', story['Decision'])
        story = self._explain(self._with_row(0, other, desired), 0)
        self.assertEqual(f'{desired}: TAKE_OFFERED', story['Decision'])
        self.assertEqual(desired, story['Offered to'])
        story = self._explain(self._with_row(0, other, services=[
            service(host, 61 if host == other else 0) for host in 'abc']), 0)
        self.assertEqual(
            f'{story["Desired owner"]}: TAKE_ABANDONED', story['Decision'])

    def test_new(self):
        seen = make()
        rows = dict(seen.rows)
        del rows[NODES[0]]
        story = self._explain(dataclasses.replace(seen, rows=rows), 0)
        self.assertIn('CREATE', story['Decision'])
        self.assertEqual('', story['Owner'])

    def test_nobody(self):
        story = self._explain(make(services=[
            service(host, disabled=True) for host in 'abc']), 0)
        self.assertEqual('none', story['Decision'])

    def test_instance(self):
        story = self._explain(make(instances={0: 'a'}), 0)
        self.assertEqual('a: KEEP_INSTANCE', story['Decision'])
        self.assertEqual('instance-0 (server-0)', story['Instance'])
        self.assertEqual('a', story['Instance belongs to'])

    def test_instance_that_follows(self):
        desired = self._of(0, 'a', 'b', 'c')
        other = 'a' if desired != 'a' else 'b'
        story = self._explain(make(
            instances={0: other}, said=profile.Profile(mobility='follow')), 0)
        self.assertEqual(f'{other}: OFFER_INSTANCE', story['Decision'])

    def test_instance_of_the_dead(self):
        services = [service('a', 61), service('b'), service('c')]
        desired = self._of(0, 'b', 'c')
        story = self._explain(
            make(instances={0: 'a'}, services=services), 0)
        self.assertEqual(f'{desired}: LEAVE_INSTANCE', story['Decision'])
        self.assertIn('nobody has said that it is dead', story['Reason'])
        services[0] = service('a', 61, forced_down=True)
        story = self._explain(
            make(instances={0: 'a'}, services=services), 0)
        self.assertEqual(f'{desired}: FAIL_OVER', story['Decision'])
        story = self._explain(make(
            instances={0: 'a'}, services=services,
            said=profile.Profile(mobility='pinned')), 0)
        self.assertEqual(f'{desired}: LEAVE_INSTANCE', story['Decision'])

    def test_instance_that_nova_has_elsewhere(self):
        story = self._explain(_elsewhere(make(instances={1: 'a'})), 1)
        self.assertEqual('LEAVE_INSTANCE', story['Decision'])
        self.assertIn('Nova has the instance on kvm-1', story['Reason'])

    def test_instance_that_nova_does_not_have(self):
        story = self._explain(dataclasses.replace(
            make(instances={0: 'a'}), instances={}), 0)
        self.assertEqual('LEAVE_INSTANCE', story['Decision'])
