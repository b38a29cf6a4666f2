# SPDX-License-Identifier: Apache-2.0

"""Which nodes Nova's resource tracker updates in a pass.

The tracker makes some twenty requests for a node, and most nodes have not
changed. The record contains a fingerprint of what the tracker last made the
record and the resource provider of. If a service reads the fingerprint that it
would write, the node needs no update, also after a restart. Each node still
has its turn (:mod:`nova_ironic_ring.core.deciding.turns`), since the tracker
also heals what others have changed in Placement.
"""

from collections.abc import Container, Mapping
import dataclasses
import hashlib

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.core.values import settings

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
