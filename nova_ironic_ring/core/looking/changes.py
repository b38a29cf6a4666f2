# SPDX-License-Identifier: Apache-2.0

"""Which nodes have changed in Ironic since they were listed.

A listing of all nodes costs Ironic by their number. Between two passes it is
asked for those that it has changed last, whatever is new of them, a page at a
time. Ironic's own stamps alone are compared, by Ironic itself, which sorts by
them: it does not tell them with the fields that are asked for. It stamps a
node also when a conductor locks it, or a ramdisk sends a heartbeat; so what is
told of each node is compared with what was told before.
"""

from collections.abc import Iterable, Sequence

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

#: How many nodes are asked for at a time.
PAGE = 100
# So many pages are read at most. What has changed of other nodes, the next
# pass sees.
_PAGES = 10


def due(asked: float | None, now: float, interval: float) -> float | None:
    """Say when Ironic is to be asked for what has changed.

    Where passes list all nodes as often, it is never asked.

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

    Page after page is read for as long as there is something new in it.

    :param ironic: what Ironic has
    :param scope: the nodes that this service and its peers divide
    :returns: the UUIDs of those of which something has changed that builds
        depend on; none that was not listed
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
    """Say whether a node that has changed is updated before the next pass.

    :param step: what the last pass has decided on it, if anything
    :param is_tracked: whether Nova's resource tracker tracks it, or need not
        as it has come without the tracker
    :returns: False for one that this service is still to get
    """
    return step is not None and step.decision.lists and (
        is_tracked or not (
            step.decision.takes or step.decision.takes_instance))


def queue(waiting: Sequence[str], nodes: Iterable[str]) -> tuple[str, ...]:
    """Put nodes that have changed behind those that wait for their update.

    One that changes all the time keeps no other waiting.

    :param waiting: the UUIDs of those that wait
    :param nodes: the UUIDs of those that have changed
    """
    return tuple(dict.fromkeys((*waiting, *nodes)))
