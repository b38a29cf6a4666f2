# SPDX-License-Identifier: Apache-2.0

"""What Placement itself says of allocations that do not fit."""

import dataclasses

import fixtures
from oslo_utils import uuidutils
from oslotest import base
import testtools

from nova_ironic_ring.command.access import allocations
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.tests.fixtures import real_placement
from nova_ironic_ring.tests.unit.command import deployment

NODES = deployment.NODES[:6]
CLASS = 'CUSTOM_BAREMETAL'
PROJECT = uuidutils.generate_uuid(dashed=False)
BUILT, LOST, BUILDING, LEFT = (
    uuidutils.generate_uuid() for _ in range(4))


@testtools.skipUnless(
    real_placement.WORKS, 'The locks of this Nova are copied with eventlet.')
class AllocationsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.real = self.useFixture(real_placement.RealPlacement())
        self.asked: list[str] = []
        seen = deployment.make('a')
        for node in NODES:
            self.real.add(node, node, **{CLASS: (1, 0)})
        held = {BUILT: NODES[0], LOST: NODES[1], BUILDING: NODES[2]}
        for uuid, node in held.items():
            if uuid != LOST:
                self.assertTrue(self.real.allocate(
                    uuid, node, CLASS, owner=PROJECT))
        # Those that are built on are reserved, and one that is broken.
        for node in (*NODES[:2], NODES[3]):
            self.real.add(node, node, **{CLASS: (1, 1)})
        of = {node: uuid for uuid, node in held.items()}
        self.seen = dataclasses.replace(
            seen, providers=frozenset(NODES), nodes={
                node: dataclasses.replace(
                    seen.nodes[node], instance=of.get(node),
                    is_available=node != NODES[3]) for node in NODES},
            rows={node: seen.rows[node] for node in NODES},
            instances={uuid: snapshot.Instance(
                'a', node, uuid == BUILDING, uuid=uuid, name='', cell='cell1',
                project=PROJECT) for uuid, node in held.items()})

    def ask(self, url):
        self.asked.append(url)
        return self.real.get(url)

    def test_nodes(self):
        building = {NODES[2]: {BUILDING}}
        self.assertEqual(
            building, allocations.of_nodes(self.seen, self.ask))
        # One request for all of a class, and one for the node.
        self.assertEqual(2, len(self.asked))
        self.assertTrue(self.real.allocate(LEFT, NODES[5], CLASS))
        self.assertEqual({**building, NODES[5]: {LEFT}},
                         allocations.of_nodes(self.seen, self.ask))

    def test_no_more_than_a_number(self):
        self.useFixture(fixtures.MockPatchObject(allocations, 'LIMIT', 1))
        self.assertTrue(self.real.allocate(LEFT, NODES[5], CLASS))
        self.assertEqual(
            [NODES[2]], list(allocations.of_nodes(self.seen, self.ask)))

    def test_instances(self):
        self.assertEqual({LOST}, allocations.lacking(self.seen, self.ask))
        self.assertEqual(
            [f'/usages?project_id={PROJECT}'],
            [url for url in self.asked if 'usages' in url])
        self.asked.clear()
        self.real.add(NODES[1], NODES[1], **{CLASS: (1, 0)})
        self.assertTrue(self.real.allocate(
            LOST, NODES[1], CLASS, owner=PROJECT))
        self.assertEqual(set(), allocations.lacking(self.seen, self.ask))
        self.assertEqual(1, len(self.asked))
