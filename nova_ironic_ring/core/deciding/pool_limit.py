# SPDX-License-Identifier: Apache-2.0

"""How many pools a service makes.

Each pool costs the resource tracker a record, a provider and some requests in
each pass, and whoever owns a node in Ironic can cause one. So there is a
limit, and existing pools have precedence over new ones. Pools with instances
do not count: there are no more of them than nodes with instances, and they
would leave no room for free nodes.
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
    """Return whether there may be more pools than a service makes.

    :param found: the pools of all kinds of its nodes, by name
    :param most: how many pools without instances it makes at most; 0 if there
        is no limit
    """
    return 0 < most < len(found)


def limit(found: Mapping[str, pools.Pool], most: int, used: Collection[str],
          awaited: Collection[str], recorded: Collection[str]) -> Limited:
    """Choose the pools that a service makes.

    Pools with instances are always made, and do not count. Of the others,
    pools that builds are on their way to are always made as well. Then come
    those that have a record, then those with the most nodes: so nobody can end
    a pool of others by writing something new into a node.

    :param found: the pools of all kinds of its nodes, by name
    :param most: how many pools without instances it makes at most; 0 if there
        is no limit
    :param used: the names of those that have instances, or that take them over
    :param awaited: the names of those that builds may be on their way to
    :param recorded: the names of those that have a record
    """
    if not is_exceeded(found, most):
        return Limited(found)
    first = sorted(found.keys() - used, key=lambda name: (
        name not in awaited, name not in recorded,
        -len(found[name].nodes), name))
    number = max(most, sum(name in awaited for name in first))
    left_out = frozenset(first[number:])
    return Limited(
        {name: pool for name, pool in found.items() if name not in left_out},
        {name: found[name] for name in first[number:]})
