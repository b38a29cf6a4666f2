# SPDX-License-Identifier: Apache-2.0

"""Measures the decisions of this revision; see decide.py."""

from collections.abc import Callable

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring_tools.benchmarks import rounds


def main() -> None:
    """Measure the scenes that standard input names."""
    known = rounds.situation(
        lambda members: ring.Ring(members, rounds.PARTITIONS).owner)
    current = settings.Settings(known.me, partitions=rounds.PARTITIONS)
    rows = {node: model.Row(known.me) for node in known.mine}

    def look(members: list[str]) -> Callable[[], int]:
        seen = observation.Observation(
            0, view.View(
                states=dict.fromkeys(members, membership.State.MEMBER),
                trust=trust.Trust.FULL,
                ring=ring.Ring(members, rounds.PARTITIONS)),
            known.nodes, rows, observation.Instances(known.instances))

        def decide() -> int:
            planner.needs(seen, current)
            plan = planner.decide(seen, observation.Memory(), current)
            return sum(step.offer is not None for step in plan.steps.values())
        return decide

    steady = look(known.members)
    # The ring remembers the owner of each node; one of other members does not.
    steady()
    rounds.serve({'steady': lambda: steady,
                  'join': lambda: look(known.members_after_join)})


if __name__ == '__main__':
    main()
