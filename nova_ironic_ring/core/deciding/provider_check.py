# SPDX-License-Identifier: Apache-2.0

"""Whether the resource providers of unchanged nodes are as they should be.

Nova's resource tracker sees to the provider of each node that it updates: that
it exists, and that the scheduler is kept away from it while the service is
disabled. A pass looks at the providers of the nodes that the tracker skips,
whenever they may have changed.
"""

from collections.abc import Iterable, Mapping
import dataclasses

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import updates
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation

# So many nodes are told of in a pass: builds and takeovers wait for the pass.
_MOST_TOLD = 100
# Seconds that others have to take what a disabled service gives away, before
# the scheduler is kept away from it.
_PATIENCE = 120


@dataclasses.dataclass(frozen=True)
class Moment:
    """When the providers are looked at, and what is known then.

    :ivar now: the time of a monotonic clock, in seconds
    :ivar standing: what the service knows of the others
    :ivar me: its canonical name
    """

    now: float
    standing: observation.Standing
    me: str


@dataclasses.dataclass(frozen=True)
class Wrong:
    """The nodes whose providers are not as they should be.

    :ivar to_tell: the UUIDs of some that the scheduler is wrongly kept away
        from, or not kept away from
    :ivar to_update: the UUIDs of those that the tracker has to update
    """

    to_tell: frozenset[str]
    to_update: frozenset[str]


class ProviderCheck:
    """The checks of the providers of nodes that are not updated."""

    def __init__(self, now: float) -> None:
        """Begin without a check.

        :param now: the present time of a monotonic clock, in seconds
        """
        #: The states of the services at the last check; None before that.
        self._checked: Mapping[str, membership.State] | None = None
        #: The nodes of which Placement was told after the last check.
        self._told = frozenset[str]()
        #: Since when, in seconds, others have been given nodes that the
        #: scheduler is not kept away from, although the service is disabled.
        self._given: float | None = None
        #: The time, in seconds, until which each pass checks the providers.
        self._doubted = now

    def doubt(self, until: float) -> None:
        """Let each pass check the providers for some time.

        When the record of a service is deleted, Nova's API deletes, one by
        one, the providers of the nodes that the service had at that time.

        :param until: the end of that time, in seconds
        """
        self._doubted = max(self._doubted, until)

    def came(self, claims: Iterable[planner.Claim], seen: Moment,
             interval: float) -> None:
        """Note the claims by which nodes have come without the tracker.

        If the service that had them is lost, or no member of the ring any
        more, its record may just be deleted.

        :param claims: the claims
        :param seen: when this is, and what is known then
        :param interval: how often each node is updated, in seconds
        """
        lost = seen.standing.membership.is_lost
        if any(each.is_abandoned or (
                each.owner is not None and lost(each.owner))
               for each in claims):
            self.doubt(seen.now + interval)

    def is_due(self, seen: Moment) -> bool:
        """Return whether the providers need a check.

        While a process was down, they may have been deleted, and the service
        disabled or enabled. And when the record of a service is deleted, Nova
        deletes the providers that the service had; some may belong to another
        service then.

        :param seen: when this is, and what is known then
        """
        return seen.now < self._doubted or (
            self._checked != seen.standing.membership.states)

    def find(self, changes: updates.Changes, providers: Mapping[str, bool],
             seen: Moment) -> Wrong:
        """Find the nodes whose providers are not as they should be.

        Those without a provider are updated, and those of which Placement was
        told in vain. For some time, Placement is not told of the nodes that
        other services may take: the service that takes one sees to the
        scheduler.

        :param changes: the nodes that need no update otherwise
        :param providers: all providers: whether the scheduler is kept away
        :param seen: when this is, and what is known then
        """
        missing = (changes.unchanged | changes.offers) - providers.keys()
        is_disabled = seen.standing.is_disabled(seen.me)
        wrong = {node for node in changes.unchanged
                 if providers.get(node, is_disabled) is not is_disabled}
        given = wrong & changes.given
        self._given = (self._given or seen.now) if given else None
        if self._given is not None and seen.now - self._given < _PATIENCE:
            wrong -= given
        if is_disabled and not seen.standing.is_trusted:
            # Nothing is given away now, and may be soon.
            wrong, given = set(), wrong
        in_vain = wrong & self._told
        wrong -= self._told
        self._told = frozenset(sorted(wrong)[:_MOST_TOLD])
        # The next pass goes on, and sees whether Placement has been told.
        self._checked = (None if wrong or given
                         else seen.standing.membership.states)
        return Wrong(self._told, frozenset(missing | in_vain))

    def doubt_told(self) -> None:
        """Note that Placement was not told of what the last check found."""
        self._told = frozenset()
        self._checked = None
