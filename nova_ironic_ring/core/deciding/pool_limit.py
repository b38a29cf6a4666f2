# SPDX-License-Identifier: Apache-2.0

"""How many pools a service makes.

Each pool costs the resource tracker a record, a provider and some requests in
each pass, and whoever owns a node in Ironic can make one. So there is a limit,
and what is new gives way to what is there.
"""

from collections.abc import Collection, Mapping
import dataclasses

from nova_ironic_ring.core.values import pools


@dataclasses.dataclass(frozen=True)
class Limited:
    """The pools that a service makes, and those that it does not.

    :ivar kept: the pools that it makes, by name
    :ivar left_out: the other ones, by name; their nodes count nowhere
    """

    kept: Mapping[str, pools.Pool]
    left_out: Mapping[str, pools.Pool] = dataclasses.field(
        default_factory=dict)


def is_exceeded(found: Collection[str], most: int) -> bool:
    """Say whether there are more pools than a service makes.

    :param found: the pools of all kinds of its nodes, by name
    :param most: how many pools it makes at most; 0 if there is no limit
    """
    return 0 < most < len(found)


def limit(found: Mapping[str, pools.Pool], most: int,
          used: Collection[str], recorded: Collection[str]) -> Limited:
    """Choose the pools that a service makes.

    Those in use come first, and are made in any case. Then come those that
    have a record, then those with the most nodes: so who writes something new
    into a node ends no pool of others.

    :param found: the pools of all kinds of its nodes, by name
    :param most: how many pools it makes at most; 0 if there is no limit
    :param used: the names of those that have instances, that builds are on
        their way to, or that take instances over
    :param recorded: the names of those that have a record
    """
    if not is_exceeded(found, most):
        return Limited(found)
    first = sorted(found, key=lambda name: (
        name not in used, name not in recorded,
        -len(found[name].nodes), name))
    number = max(most, sum(name in used for name in first))
    left_out = frozenset(first[number:])
    return Limited(
        {name: pool for name, pool in found.items() if name not in left_out},
        {name: found[name] for name in first[number:]})
