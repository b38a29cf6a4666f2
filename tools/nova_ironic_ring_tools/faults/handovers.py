# SPDX-License-Identifier: Apache-2.0

"""The effects of an event on the records of nodes."""

import dataclasses
import time

from nova_ironic_ring.lab import cloud
from nova_ironic_ring_tools.faults import events
from nova_ironic_ring_tools.faults import watch

#: The titles of the columns.
COLUMNS = ('changes (needed)', 'most for a node', 'settled after',
           'rows/providers lost')
# Seconds: an event is over if nothing has changed for so long, which is longer
# than it takes to find a service absent; and how long to wait for that.
_QUIET = 20
_PATIENCE = 75


@dataclasses.dataclass(frozen=True)
class Result:
    """The effects of an event.

    :ivar changes: how often nodes changed hands
    :ivar needed: how many of these changes were necessary
    :ivar most: the largest number of changes of one node
    :ivar settled: seconds from the beginning to the last change; None if
        nodes went on to change hands, or are not with their desired owners
    :ivar deleted: how many records were deleted
    :ivar providers: how many resource providers were deleted
    :ivar passed: whether there are no more effects than are allowed
    """

    changes: int
    needed: int
    most: int
    settled: float | None
    deleted: int
    providers: int
    passed: bool

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        settled = 'never' if self.settled is None else f'{self.settled:.0f} s'
        return [f'{self.changes} ({self.needed})', str(self.most), settled,
                f'{self.deleted}/{self.providers}']


def _errors(lab: cloud.Lab, text: str) -> dict[str, int]:
    """Count the lines at ERROR with a text in each nova-compute's log."""
    return {name: sum(
        ' ERROR ' in line and text in line
        for line in lab.compute(name).log.read_text().splitlines())
        for name in lab.state.computes} if text else {}


def measure(lab: cloud.Lab, event: events.Event) -> Result:
    """Make an event happen, and measure its effects.

    :param lab: the lab
    :param event: the event
    """
    observer = watch.Watch(lab)
    nodes = sum(1 for _ in lab.connect().baremetal.nodes())
    before, providers = lab.owners(), observer.lost_providers()
    errors_before = _errors(lab, event.error)
    observer.restart()
    start = observer.now()
    event.happen(lab)
    over = observer.now()

    deadline = time.monotonic() + _PATIENCE
    settled = False
    while not settled and time.monotonic() < deadline:
        time.sleep(1)
        last = max([over, *(change.at for change in observer.changes())])
        settled = ((observer.now() - last).total_seconds() > _QUIET
                   and (not event.settles or lab.is_settled(nodes)))
    changes = observer.changes()
    moved = [change for change in changes if change.new is not None]
    needed = watch.needed(before, lab.owners())
    most = watch.most_for_one_node(changes)
    deleted = len(changes) - len(moved)
    lost = observer.lost_providers() - providers
    last = max([change.at for change in changes], default=start)
    errors_after = _errors(lab, event.error)
    return Result(
        len(changes), needed, most,
        (last - start).total_seconds() if settled else None, deleted, lost,
        # Nodes may change hands as often as needed, or as the event allows.
        settled and not deleted and not lost
        # A service has logged the error, and none more than once.
        and all(count <= errors_before[name] + 1
                for name, count in errors_after.items())
        and (not event.error or errors_after != errors_before)
        and (most <= event.allowance if event.allowance
             else len(changes) == needed))
