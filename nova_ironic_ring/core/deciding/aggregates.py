# SPDX-License-Identifier: Apache-2.0

"""The aggregates that the provider of a node, or of a pool, is to be in.

When a host is added to an aggregate, Nova updates only the host's first
compute node in Placement. When a compute node moves to another host, Nova
updates nothing.
"""

from collections.abc import Set as AbstractSet


def wanted(found: AbstractSet[str], own: AbstractSet[str],
           of_others: AbstractSet[str]) -> frozenset[str]:
    """Return the aggregates that a provider is to be in.

    These are the aggregates of its service's host. The provider leaves those
    that it has from another service of Ironic. All others were set by hand:
    they stay.

    :param found: the aggregates that it is in, in Placement
    :param own: those that Nova has its service's host in
    :param of_others: those of ``found`` that Nova has another service of
        Ironic in, or has had this one in
    """
    return frozenset(own | (found - of_others))
