# SPDX-License-Identifier: Apache-2.0

"""What a command that waits knows of Ironic's nodes."""

import dataclasses
from unittest import mock

from oslotest import base

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import standstill
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.tests.unit.command import deployment


def _unused(seen: snapshot.Snapshot) -> int:
    """Count the nodes without an instance."""
    return sum(node.instance is None for node in seen.nodes.values())


class StandstillTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.source = mock.Mock()
        self.counted = standstill.Standstill(self.source)
        #: What Nova says, which lacks an instance that Ironic has.
        self.seen = deployment.make(instances={1: 'a'})
        self.free = _unused(self.seen)

    def _asked(self, **instances: str) -> snapshot.Snapshot:
        """Return the same with instances that Ironic has on more nodes."""
        return dataclasses.replace(self.seen, nodes={
            uuid: dataclasses.replace(
                node, instance=instances.get(uuid, node.instance))
            for uuid, node in self.seen.nodes.items()})

    def _count(self) -> int:
        return self.counted.count(self.seen, _unused)

    def test_ironic_is_asked_after_some_looks(self):
        node = next(uuid for uuid, node in self.seen.nodes.items()
                    if node.instance is None)
        self.source.with_nodes.return_value = self._asked(**{node: 'x'})
        counts = [self._count() for _ in range(standstill.LOOKS)]
        self.assertEqual(
            [self.free] * (standstill.LOOKS - 1) + [self.free - 1], counts)
        self.source.with_nodes.assert_called_once()

    def test_what_nova_learns_after_that(self):
        self.source.with_nodes.return_value = self._asked()
        for _ in range(standstill.LOOKS):
            self._count()
        # The instance that Nova had is deleted: its node is free.
        self.seen = dataclasses.replace(self.seen, instances={})
        self.assertEqual(self.free + 1, self._count())

    def test_node_that_ironic_has_no_more(self):
        gone = next(uuid for uuid, node in self.seen.nodes.items()
                    if node.instance is None and uuid in self.seen.rows)
        asked = self._asked()
        self.source.with_nodes.return_value = dataclasses.replace(
            asked, nodes={uuid: node for uuid, node in asked.nodes.items()
                          if uuid != gone})
        for _ in range(standstill.LOOKS):
            self._count()
        # Nova has its record for some time.
        self.assertEqual(self.free - 1, self._count())

    def test_ironic_that_does_not_answer(self):
        self.source.with_nodes.side_effect = errors.CommandError('no')
        self.assertEqual([self.free] * 20, [self._count() for _ in range(20)])
        self.assertEqual(20 // standstill.LOOKS,
                         self.source.with_nodes.call_count)
