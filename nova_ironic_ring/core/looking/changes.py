# SPDX-License-Identifier: Apache-2.0

"""The nodes that have changed in Ironic since they were listed.

The cost of a listing of all nodes grows with their number. So between two
passes, Ironic is asked for the nodes that it has changed last, a page at a
time. Only Ironic compares their time stamps, which it sorts by: they are not
among the requested fields. Ironic also stamps a node when a conductor locks
it, or a ramdisk sends a heartbeat; so each node is compared with its former
listing.
"""

from collections.abc import Iterable, Sequence

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

#: The number of nodes to ask for at a time.
PAGE = 100
# The most pages to read. The next pass sees changes of other nodes.
_PAGES = 10


def due(asked: float | None, now: float, interval: float) -> float | None:
    """Return when to ask Ironic for what has changed.

    If passes list all nodes as often, it is never asked.

    :param asked: when it was last asked, or listed all nodes, in seconds;
        None if it was not
    :param now: the present time, in seconds
    :param interval: how often to ask, in seconds; 0 for never
    :returns: in how many seconds; None if not for now
    """
    if asked is None or interval <= 0:
        return None
    return max(0.0, asked + interval - now)


def ask(ironic: ports.Ironic, scope: settings.Scope) -> list[str]:
    """Ask for the nodes that have changed since they were listed.

    It reads page after page as long as there is something new.

    :param ironic: what Ironic has
    :param scope: the nodes that this service and its peers divide
    :returns: the UUIDs of listed nodes that have changed in something that
        builds depend on
    """
    found: list[str] = []
    after = None
    for _ in range(_PAGES):
        try:
            page = ironic.latest(scope, after)
        except Exception:
            # What was told of the pages before that is not told again.
            if found:
                break
            raise
        found.extend(each.node for each in page if each.before != each.now)
        if not any(each.before for each in page):
            break
        after = page[-1].node
    return found


def is_watched(step: planner.Step | None, is_tracked: bool) -> bool:
    """Return whether to update a changed node before the next pass.

    :param step: what the last pass has decided on it, if anything
    :param is_tracked: whether Nova's resource tracker tracks it, or need not
        because the node has come without the tracker
    :returns: False for a node that this service does not have yet
    """
    return step is not None and step.decision.lists and (
        is_tracked or not (
            step.decision.takes or step.decision.takes_instance))


def queue(waiting: Sequence[str], nodes: Iterable[str]) -> tuple[str, ...]:
    """Put changed nodes behind those that wait for their update.

    So a node that changes all the time does not delay others.

    :param waiting: the UUIDs of those that wait
    :param nodes: the UUIDs of those that have changed
    """
    return tuple(dict.fromkeys((*waiting, *nodes)))
