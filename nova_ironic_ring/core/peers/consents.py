# SPDX-License-Identifier: Apache-2.0

"""Consent by ring: one entry for all free nodes that others may take.

An owner whose nodes go to others writes the ring into its member record. A
service that sees the same ring knows which of the nodes are for it. An offer
in the row of a node has precedence.
"""

import hashlib

from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import model

#: The most exceptions to name, with some 40 bytes each. A record has 64 KiB,
#: and each peer reads this one in each look. Builds on more nodes than that
#: are seldom under way at once.
MOST = 100


def fingerprint(seen: ring.Ring, scope: model.Scope) -> str:
    """Return a text that is equal for services that map nodes alike.

    :param seen: the ring that a service sees
    :param scope: the nodes that the service divides
    """
    group = scope.conductor_group
    said = repr((seen.fingerprint, None if group is None else group.lower(),
                 scope.shard or None))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def taker(node: str, row: model.Row, said: model.Consent | None,
          seen: str, desired: str | None) -> str | None:
    """Return the service that may take a free node.

    :param node: the node's UUID
    :param row: its row
    :param said: its owner's consent by ring, if there is one
    :param seen: the fingerprint of a ring
    :param desired: the canonical name of the service that the node is for by
        that ring
    :returns: as :class:`~nova_ironic_ring.core.values.model.Row` has it; None
        as well if the owner goes by another ring, which is no consent
    """
    if row.taker is not None or said is None:
        return row.taker
    if not said.ring or node in said.but:
        return ''
    return desired if said.ring == seen else None


def lets(said: model.LastPass | None, ring: str, node: str) -> bool:
    """Return whether the owner of a node lets it go.

    :param said: what the owner says of its passes; None if it says nothing
    :param ring: the fingerprint of the ring of whoever is to take the node
    :param node: the node's UUID
    """
    found = said.consent if said else None
    return found is not None and found.ring == ring and node not in found.but
