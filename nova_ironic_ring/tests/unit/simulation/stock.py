# SPDX-License-Identifier: Apache-2.0

"""A nova-compute with Nova's own driver, which asks nobody."""

from __future__ import annotations

import datetime

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.simulation import host
from nova_ironic_ring.tests.unit.simulation import times


class StockHost(host.Host):
    """Takes all that its ring gives it, whoever has it."""

    IS_OURS = False

    def _pass(self, is_tracking: bool = True) -> None:
        self._begin()
        self.tracker.current = self.settings
        # Ironic has no node of the name: Nova removes the record.
        self.world.cloud.members.pop(self.me, None)
        try:
            self._list()
            if is_tracking:
                self._track()
        except host.Unreachable:
            pass

    def _list(self) -> None:
        nova, ironic = self.ports.nova, self.ports.ironic
        services = [each for each in nova.services()
                    if each.is_ironic and not each.disabled]
        # It goes by the clock of its machine.
        now = clouds.EPOCH + datetime.timedelta(
            seconds=self.world.now + self.world.skews.get(self.me, 0))
        points = ring.Ring({self.me} | {
            service.name for service in services
            if not service.forced_down
            and not membership.is_late(service, now, times.DOWN_TIME)},
            times.PARTITIONS)
        mine = nova.instances_of(self.name)
        keep = planner.Step(decisions.Decision.KEEP, 'stock', None,
                            planner.Claim())
        nodes = ironic.nodes(self.settings.scope)
        listed = {node: instance for node, instance in nodes.items()
                  if (points.owner(node) == self.me if instance is None
                      else instance in mine)}
        self.result = node_places.PassResult(
            self.memory, plan=planner.Plan(dict.fromkeys(listed, keep)),
            listed=listed)
