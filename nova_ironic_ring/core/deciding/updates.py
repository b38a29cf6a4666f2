# SPDX-License-Identifier: Apache-2.0

"""Which nodes Nova's resource tracker updates in a pass.

The tracker makes some twenty requests for a node, and most nodes have not
changed. The record contains a fingerprint of what the tracker last made the
record and the resource provider of, and when. If a service reads the
fingerprint that it would write, the node needs no update, also after a
restart, until it has its turn (:mod:`nova_ironic_ring.core.deciding.turns`):
the tracker also heals what others have changed in Placement.
"""

from collections.abc import Container, Mapping
import dataclasses
import hashlib
import itertools

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.deciding import turns
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports

# Digits of a fingerprint: enough to see that settings have changed.
_LENGTH = 8


def of_process(process: ports.Process) -> str:
    """Return a fingerprint of what a service makes all rows with.

    :param process: what it knows of itself
    """
    return hashlib.sha256(
        process.makes_with().encode()).hexdigest()[:_LENGTH]


def made_of(answer: str, decision: decisions.Decision, said: str) -> str:
    """Return the fingerprint of what the tracker has made of a node.

    :param answer: a fingerprint of what Ironic says of the node
    :param decision: what was decided on it
    :param said: the fingerprint of what the service makes all rows with
    """
    # The instance on a node that is recorded first still belongs to another
    # service, so Nova does not count it.
    first = decision is decisions.Decision.RECORD_FIRST
    return f'{answer} {said}{" first" if first else ""}'


@dataclasses.dataclass(frozen=True)
class Circumstances:
    """What the rows of a service contain in addition to the decisions.

    :ivar answers: a fingerprint of what Ironic says of each node, by UUID
    :ivar said: a fingerprint of what the service makes all rows with
    :ivar busy: the nodes that have to be updated in any case, because their
        providers are not as they should be
    :ivar listed: the instance that Ironic has on each node, by UUID
    :ivar now: the time of the wall clock, in seconds
    :ivar interval: after how many seconds an unchanged node has its turn; 0
        for in each pass
    """

    answers: Mapping[str, str]
    said: str
    busy: Container[str]
    listed: model.Nodes
    now: float
    interval: float


@dataclasses.dataclass(frozen=True)
class Changes:
    """The listed nodes that this service has already.

    :ivar unchanged: the nodes whose rows are as they are to be
    :ivar turns: those of them that are updated all the same, because they have
        their turn; when each was last updated, in seconds of the wall clock,
        the oldest first
    :ivar changed: other nodes, and what their rows say that they were made of
    :ivar oldest: when the oldest update of a node was, likewise; None if no
        row says it
    """

    unchanged: frozenset[str] = frozenset()
    turns: Mapping[str, float] = dataclasses.field(default_factory=dict)
    changed: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    oldest: float | None = None

    def needs_update(self, node: str) -> bool:
        """Return whether the tracker is to update a listed node.

        :param node: the node's UUID
        """
        return node not in self.unchanged or node in self.turns

    def limited(self, room: int | None) -> 'Changes':
        """Return the same with fewer turns; the other nodes wait for theirs.

        :param room: how many nodes can be updated for their turn; None for all
        """
        return dataclasses.replace(self, turns=dict(
            itertools.islice(self.turns.items(), room)))


def find(steps: Mapping[str, planner.Step], rows: Mapping[str, model.Row],
         seen: Circumstances) -> Changes:
    """Return the nodes that have changed since their rows were written.

    :param steps: what was decided, by the node's UUID
    :param rows: the rows of this service, by the node's UUID
    :param seen: what else the rows are to contain
    """
    own, changed = dict[str, model.Row](), set()
    for node, step in steps.items():
        row = rows.get(node)
        if row is None or not step.decision.lists:
            continue
        own[node] = row
        answer, decision = seen.answers.get(node), step.decision
        # Nova does not count yet what comes to this service now, and may still
        # count what is gone: it deletes an instance after Ironic has let go.
        is_counted_anew = decision.takes or decision.takes_instance or (
            row.counts and seen.listed.get(node) is None)
        if is_counted_anew or answer is None or (
                row.made_of != made_of(answer, decision, seen.said)):
            changed.add(node)
    at = {node: row.made_at or 0.0 for node, row in own.items()
          if node not in changed and node not in seen.busy}
    return Changes(
        frozenset(at),
        {node: at[node] for node in sorted(at, key=lambda node: at[node])
         if turns.is_due(node, at[node], seen.now, seen.interval)},
        {node: own[node].made_of for node in changed},
        min((row.made_at for row in own.values() if row.made_at),
            default=None))
