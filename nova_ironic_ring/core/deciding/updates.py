# SPDX-License-Identifier: Apache-2.0

"""Which nodes Nova's resource tracker updates in a pass.

The tracker makes some twenty requests for a node, and most nodes have not
changed. The record contains a fingerprint of what the tracker last made the
record and the resource provider of. If a service reads the fingerprint that it
would write, the node needs no update, also after a restart. Each node still
has its turn once in ``[ironic_ring] full_update_interval``, since the tracker
also heals what others have changed in Placement.
"""

from collections.abc import Collection, Container, Iterable, Mapping
import dataclasses
import hashlib

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.core.values import settings

# The fraction of its time that a service spends on updates of nodes that have
# only their turn: with thousands of nodes, others would wait for these.
_SHARE = 0.25
# The weight of one update in the mean of how long they take.
_WEIGHT = 0.02
# So many nodes are told of in a pass: builds and takeovers wait for the pass.
_MOST_TOLD = 100
# Seconds that others have to take what a disabled service gives away, before
# the scheduler is kept away from it.
_PATIENCE = 120
# Digits of a fingerprint: enough to see that settings have changed.
_LENGTH = 8


def of_settings(current: settings.Settings, process: ports.Process) -> str:
    """Return a fingerprint of what a service writes into all its rows.

    :param current: its settings
    :param process: what it knows of itself
    """
    said = repr((profile.of(current), process.makes_with()))
    return hashlib.sha256(said.encode()).hexdigest()[:_LENGTH]


def made_of(answer: str, decision: decisions.Decision, said: str) -> str:
    """Return the fingerprint of what the tracker has made of a node.

    :param answer: a fingerprint of what Ironic says of the node
    :param decision: what was decided on it
    :param said: the fingerprint of the service's settings
    """
    # The instance on a node that is recorded first still belongs to another
    # service, so Nova does not count it.
    first = decision is decisions.Decision.RECORD_FIRST
    return f'{answer} {said}{" first" if first else ""}'


@dataclasses.dataclass(frozen=True)
class Circumstances:
    """What the rows of a service contain in addition to the decisions.

    :ivar answers: a fingerprint of what Ironic says of each node, by UUID
    :ivar said: a fingerprint of what the service writes into all its rows
    :ivar held: the codes of the shards that the service holds; None if nodes
        are not divided by their shards
    :ivar busy: the nodes that have to be updated in any case: one has the time
        of the last pass in its row, and builds are looked for on the others
    """

    answers: Mapping[str, str]
    said: str
    held: frozenset[str] | None
    busy: Container[str | None]


@dataclasses.dataclass(frozen=True)
class Changes:
    """The listed nodes that this service has already.

    :ivar changed: the nodes whose rows are out of date
    :ivar offers: those of them whose rows are out of date only in their offer,
        or in a former consent by ring
    :ivar unchanged: those that need no update
    :ivar given: those of them that another service may take
    """

    changed: frozenset[str] = frozenset()
    offers: frozenset[str] = frozenset()
    unchanged: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()


def find(steps: Mapping[str, planner.Step], rows: Mapping[str, model.Row],
         seen: Circumstances) -> Changes:
    """Return the nodes that have changed since their rows were written.

    :param steps: what was decided, by the node's UUID
    :param rows: the rows of this service, by the node's UUID
    :param seen: what else the rows are to contain
    """
    held = seen.held or frozenset()
    own, changed, offers = set(), set(), set()
    for node, step in steps.items():
        row = rows.get(node)
        if row is None or not step.decision.lists:
            continue
        own.add(node)
        answer, decision = seen.answers.get(node), step.decision
        # Nova does not count yet what comes to this service now.
        is_new = decision.takes or decision.takes_instance
        if is_new or answer is None or row.held != held or (
                row.made_of != made_of(answer, decision, seen.said)):
            changed.add(node)
        elif row.taker != step.in_row or (
                node not in seen.busy and row.last_pass is not None
                and row.last_pass.consent is not None):
            offers.add(node)
    unchanged = frozenset(node for node in own - changed - offers
                          if node not in seen.busy)
    return Changes(
        frozenset(changed | offers),
        frozenset(node for node in offers if node not in seen.busy),
        unchanged,
        frozenset(node for node in unchanged if steps[node].offer))


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


class Turns:
    """The turns of nodes to be updated, and the updates that have failed."""

    def __init__(self, now: float) -> None:
        """Begin without an update.

        :param now: the present time of a monotonic clock, in seconds
        """
        #: When the process began, in seconds.
        self.began = now
        #: The states of the services at the last check of the providers that
        #: are not updated; None before that.
        self._checked: Mapping[str, membership.State] | None = None
        #: The nodes of which Placement was told after the last check.
        self._told = frozenset[str]()
        #: Since when, in seconds, others have been given nodes that the
        #: scheduler is not kept away from, although the service is disabled.
        self._given: float | None = None
        #: The time, in seconds, until which each pass checks the providers.
        self._doubted = now
        #: When each node was updated last, in seconds.
        self._at: dict[str, float] = {}
        #: The nodes whose last update has failed.
        self._failed: set[str] = set()
        #: How long such an update takes on average, in seconds.
        self._cost = 0.0
        #: How many times longer than configured the interval is: a power of
        #: two, so that each turn of a longer interval is one of a shorter.
        self._factor = 1
        #: When the interval has become shorter, in seconds: turns before that
        #: have not been missed.
        self._shortened = now

    def updated(self, node: str, now: float) -> None:
        """Note that the tracker has updated a node.

        :param node: the node's UUID
        :param now: when, in seconds
        """
        self._at[node] = now
        self._failed.discard(node)

    def took(self, seconds: float) -> None:
        """Note how long the update of a node took that had only its turn.

        :param seconds: how much longer the pass takes for it
        """
        self._cost += _WEIGHT * (seconds - self._cost)

    def pace(self, count: int, interval: float, now: float) -> None:
        """Choose how much longer the interval has to be for all nodes.

        :param count: how many nodes have turns
        :param interval: how often each node is to be updated, in seconds
        :param now: the present time, in seconds
        """
        needed = count * self._cost / (_SHARE * interval) if interval else 1
        while needed > self._factor:
            self._factor *= 2
        while self._factor > 1 and needed < self._factor / 4:
            self._factor //= 2
            self._shortened = now

    def failed(self, node: str) -> None:
        """Note that the tracker could not update a node.

        :param node: the node's UUID
        """
        self._failed.add(node)

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

    def is_checked(self, standing: observation.Standing, now: float) -> bool:
        """Return whether the providers need no check.

        While a process was down, they may have been deleted, and the service
        disabled or enabled. And when the record of a service is deleted, Nova
        deletes the providers that the service had; some may belong to another
        service then.

        :param standing: what the service knows of the others
        :param now: the present time, in seconds
        """
        return now >= self._doubted and (
            self._checked == standing.membership.states)

    def check(self, changes: Changes, providers: Mapping[str, bool],
              seen: Moment) -> frozenset[str]:
        """Find the nodes whose providers are not as they should be.

        Those without a provider are updated, and those of which Placement was
        told in vain.

        :param changes: the nodes that need no update otherwise
        :param providers: all providers: whether the scheduler is kept away
        :param seen: when this is, and what is known then
        :returns: the UUIDs of some that the scheduler is wrongly kept away
            from, or not kept away from; for some time not of those that others
            may take: the service that takes one sees to the scheduler
        """
        self._failed.update(
            (changes.unchanged | changes.offers) - providers.keys())
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
        self._failed.update(wrong & self._told)
        wrong -= self._told
        self._told = frozenset(sorted(wrong)[:_MOST_TOLD])
        # The next pass goes on, and sees whether Placement has been told.
        self._checked = (None if wrong or given
                         else seen.standing.membership.states)
        return self._told

    def doubt_told(self) -> None:
        """Note that Placement was not told of what the last check found."""
        self._told = frozenset()
        self._checked = None

    def keep(self, nodes: Collection[str]) -> None:
        """Forget all nodes but some.

        :param nodes: the UUIDs of those
        """
        # Replaced as a whole: others may add to them meanwhile.
        self._at = {node: at for node, at in self._at.copy().items()
                    if node in nodes}
        self._failed = self._failed.copy() & set(nodes)

    def has(self, node: str, now: float, interval: float) -> bool:
        """Return whether a node is to be updated, changed or not.

        The turns of the nodes are spread over the interval by their UUIDs. The
        interval is longer if all updates take too much time.

        :param node: the node's UUID
        :param now: until when turns count, in seconds
        :param interval: how often each node is updated, in seconds; 0 for in
            each pass
        """
        if interval <= 0 or node in self._failed:
            return True
        last = max(self._at.get(node, self.began), self._shortened)
        return self._turn(node, last / interval) < self._turn(
            node, now / interval)

    def _turn(self, node: str, intervals: float) -> int:
        """Count the turns of a node.

        :param node: the node's UUID
        :param intervals: the time, in intervals as configured
        """
        share, phase = _places(node)
        return (int(intervals + share) + phase) // self._factor

    def oldest(self, nodes: Collection[str], now: float) -> float:
        """Return how long ago the oldest update of a node was.

        :param nodes: the UUIDs of the nodes
        :param now: the present time, in seconds
        :returns: seconds; since the start of those that were not updated yet
        """
        return now - min((self._at.get(node, self.began) for node in nodes),
                         default=now)


def _places(node: str) -> tuple[float, int]:
    """Return where a node's turn is.

    :returns: in which part of an interval, from 0 to 1, and a number of
        intervals by which longer ones are spread
    """
    digest = hashlib.md5(node.encode(), usedforsecurity=False).digest()
    return (int.from_bytes(digest[:4], 'big') / 2 ** 32,
            int.from_bytes(digest[4:8], 'big'))
