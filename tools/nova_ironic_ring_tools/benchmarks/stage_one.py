# SPDX-License-Identifier: Apache-2.0

"""Measures the decisions of the project's first stage; see decide.py."""

from collections.abc import Callable
import datetime
import importlib

from nova_ironic_ring_tools.benchmarks import rounds


def main() -> None:
    """Measure the scenes that standard input names."""
    # These modules are of the revision of the first stage.
    keeper, membership, ownership, ring, settings = (
        importlib.import_module(f'nova_ironic_ring.{name}') for name in (
            'keeper', 'membership', 'ownership', 'ring', 'settings'))
    known = rounds.situation(
        lambda members: ring.Ring(members, rounds.PARTITIONS).owner)
    rows = {node: ownership.Row(known.me) for node in known.mine}
    current = settings.Settings(
        host=known.me, down_time=60, conductor_group=None, shard=None,
        peers=None, partitions=rounds.PARTITIONS, pass_interval=60,
        report_interval=10, cooperative=True, handover_timeout=120,
        vanished_nodes_limit=20, fails_over=True, follows=False,
        failover_after=0)
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)

    def look(members: list[str]) -> Callable[[], int]:
        kept = keeper.Keeper()
        # After the second heartbeat, what the service sees is trusted.
        for now in start, start + datetime.timedelta(seconds=1):
            services = [membership.Service(host, now) for host in members]
            kept.look(current, services, services[0], 0, now)

        def decide() -> int:
            # What a pass of the driver called, in turn.
            kept.unwanted(known.nodes, rows)
            kept.wanted(known.nodes, rows)
            kept.foreign(known.nodes, known.instances)
            kept.misplaced(known.nodes, known.instances)
            plan = kept.plan(known.nodes, known.instances, frozenset(), rows,
                             {}, frozenset(), [], frozenset(), now)
            return len(plan.offers)
        return decide

    steady = look(known.members)
    rounds.serve({'steady': lambda: steady,
                  'join': lambda: look(known.members_after_join)})


if __name__ == '__main__':
    main()
