# SPDX-License-Identifier: Apache-2.0

"""The reservation of a node for an instance that is to be built in a pool.

Ironic gives a node to one instance, whoever asks. So it does no harm if two
services regard a node as free: one of them tries the next node.
"""

from collections.abc import Container, Iterable, Iterator
import dataclasses
import enum
import hashlib

from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings


# Ironic fails for some nodes if a conductor has died. If it fails for all, a
# build must not try thousands.
_MOST_FAILURES = 3


class Refusal(enum.Enum):
    """Why the node that a build names cannot be used."""

    UNKNOWN = 'Ironic does not have it'
    HAS_INSTANCE = 'it has an instance'
    NOT_READY = 'nothing can be built on it now'
    OTHER_KIND = 'it is of another kind than the pool'
    ELSEWHERE = 'it is none of those that the service and its peers divide'
    TAKEN = 'another was faster, or it has changed'


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The node that a build needs.

    :ivar instance: the UUID of the instance
    :ivar kind: the kind of the pool that the scheduler has chosen; None if it
        is not known
    :ivar own: the nodes of this service's share, in the order to try, without
        those that come last; a node is taken from it when it is tried
    :ivar avoid: nodes on which its deployment has failed
    :ivar failing: nodes on which other deployments have failed, which are
        tried after all others
    :ivar named: the one node that will do; None if each of the kind will
    :ivar rule: what makes a kind
    """

    instance: str
    kind: pools.Kind | None
    own: Iterable[str] = ()
    avoid: frozenset[str] = frozenset()
    named: str | None = None
    failing: failures.Failures = dataclasses.field(default_factory=dict)
    rule: kinds.Rule = kinds.Rule()


@dataclasses.dataclass(frozen=True)
class Reserved:
    """The result of a reservation.

    :ivar node: the UUID of the node; None if there is none
    :ivar conflicts: the number of nodes tried that others already had
    :ivar had: the UUID of a node that the instance has from before, which is
        cleaned up first; None if it has none
    :ivar refused: why the one node that is wanted cannot be had; None if it
        can, or none was named
    """

    node: str | None = None
    conflicts: int = 0
    had: str | None = None
    refused: Refusal | None = None


def reserve(ironic: ports.Ironic, wanted: Wanted,
            scope: settings.Scope) -> Reserved:
    """Reserve a node.

    The nodes of this service's share come first, because its peers do not try
    them as long as they have others. Then come all others of the same kind:
    with few services, the scheduler may have no other service left to try.

    :param ironic: the port
    :param wanted: what is wanted
    :param scope: the nodes that this service and its peers divide
    :raises Exception: if Ironic fails for several nodes, or has given one that
        cannot be built on, and does not take it back
    """
    # Its clean-up comes first: it may be deployed by another service, which
    # was silent for so long that it has lost the build.
    if had := ironic.nodes_of([wanted.instance]):
        return Reserved(had=min(had))
    if wanted.named is not None:
        refused = _reserve_named(ironic, wanted, wanted.named, scope)
        return Reserved(None if refused else wanted.named, refused=refused)
    if wanted.kind is None:
        return Reserved()
    tried: set[str] = set()
    failures = 0
    for node in _to_try(ironic, wanted, scope, tried):
        tried.add(node)
        try:
            is_reserved = ironic.reserve(
                node, wanted.instance, wanted.kind, wanted.rule)
        except Exception:
            failures += 1
            if failures >= _MOST_FAILURES or (
                    ironic.nodes_of([wanted.instance])):
                raise
            continue
        if is_reserved:
            return Reserved(node, len(tried) - failures - 1)
        # Ironic gives no second node to an instance that has one, for instance
        # because an answer was lost.
        if (failures or len(tried) == 1) and (
                had := ironic.nodes_of([wanted.instance])):
            given = tried.intersection(had)
            return Reserved(min(given)) if given else Reserved(had=min(had))
    return Reserved(conflicts=len(tried) - failures)


def _reserve_named(ironic: ports.Ironic, wanted: Wanted, node: str,
                   scope: settings.Scope) -> Refusal | None:
    """Reserve one node and no other, or return why that is not possible."""
    said = ironic.find(node)
    if said is None:
        return Refusal.UNKNOWN
    if said.instance is not None:
        return Refusal.HAS_INSTANCE
    if not said.is_ready:
        return Refusal.NOT_READY
    if wanted.kind is None or wanted.rule.kind(said.kind) != wanted.kind:
        return Refusal.OTHER_KIND
    if node not in ironic.free_nodes(scope):
        return Refusal.ELSEWHERE
    return None if ironic.reserve(
        node, wanted.instance, wanted.kind, wanted.rule
    ) else Refusal.TAKEN


def _to_try(ironic: ports.Ironic, wanted: Wanted, scope: settings.Scope,
            tried: Container[str]) -> Iterator[str]:
    """Return the nodes to try, one after the other."""
    for node in wanted.own:
        if node not in tried and node not in wanted.avoid:
            yield node
    free = wanted.rule.nodes(ironic.free_nodes(scope))
    others = [node for node, said in free.items()
              if said.kind == wanted.kind and node not in tried
              and node not in wanted.avoid]
    yield from in_turn((node for node in others if node not in wanted.failing),
                       wanted.instance)
    yield from failures.in_turn(wanted.failing.keys() & others, wanted.failing)


def in_turn(nodes: Iterable[str], instance: str) -> list[str]:
    """Put nodes into an order that differs for each instance.

    Many builds at once then do not all try the same node first.

    :param nodes: UUIDs of nodes
    :param instance: the UUID of the instance
    """
    return sorted(nodes, key=lambda node: hashlib.sha256(
        f'{instance} {node}'.encode()).digest())
