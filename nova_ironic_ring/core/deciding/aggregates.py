# SPDX-License-Identifier: Apache-2.0

"""Which aggregates the provider of a node, or of a pool, is to be in.

Where a host is added to an aggregate, Nova tells Placement of the host's first
compute node, and of no other; and it does nothing where a compute node comes
to another host.
"""

from collections.abc import Set as AbstractSet


def wanted(found: AbstractSet[str], own: AbstractSet[str],
           of_others: AbstractSet[str]) -> frozenset[str]:
    """Name the aggregates that a provider is to be in.

    It is in those of its service's host. It leaves those that another service
    with nodes of Ironic has brought. What else there is, somebody has put
    there by hand: it stays.

    :param found: those that it is in, in Placement
    :param own: those that Nova has its service's host in
    :param of_others: those of ``found`` that Nova has another service of
        Ironic in, or has had this one in
    """
    return frozenset(own | (found - of_others))
