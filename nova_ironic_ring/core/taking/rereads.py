# SPDX-License-Identifier: Apache-2.0

"""Reads inventories again that others may have written.

The others reserve all pools of a service that they believe lost, or whose
passes fail or are so late that they seem to fail.
"""

from collections.abc import Iterable

from nova_ironic_ring.core.deciding import turns
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import pools

# Another service may be in a pass that began before this one was back: so the
# inventories are read in two passes.
_REREADS = 2
# Each inventory is read again once in so many intervals between passes.
_TURNS = 5


def notice(this: one_pass.Pass) -> None:
    """Read inventories again if others may have written them.

    :param this: the pass, or the look between two
    """
    before, now, host = this.before, this.view, this.current.host
    was = before.view
    if now.is_trusted and (
            was.trust is not trust.Trust.FULL or before.own_work.is_failing
            or before.work_watch.is_late
            or was.is_lost(host)
            and not now.is_lost(host)):
        this.memory.pooled.rereads = _REREADS


def reread(this: one_pass.Pass, names: Iterable[str]) -> None:
    """Read inventories again, and note that.

    A single service may believe this one lost, which this one does not notice:
    so each inventory has its turn every few intervals between passes.

    :param this: the pass
    :param names: the names of this service's pools
    """
    pooled = this.memory.pooled
    now = this.world.process.now()
    for name in names:
        # The former pass began no longer ago than a cycle.
        if pooled.rereads or turns.is_due(
                pools.uuid_of(name), now - this.memory.work_watch.cycle, now,
                _TURNS * this.current.pass_interval):
            this.world.placement.reread(name)
    pooled.rereads = max(0, pooled.rereads - 1)
