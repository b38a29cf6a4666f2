# SPDX-License-Identifier: Apache-2.0

"""Chooses shards for nodes without one, so that all are equally large.

The shards that it makes have recognizable names: so they can be filled evenly
when new nodes were enrolled, and removed again.
"""

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
import string
from typing import TypeAlias

from nova_ironic_ring.core.values import plural

#: Shards for each service that make a balance of 1.05 or better.
ADVISED = 20

# In requests, Ironic turns names into lower case and splits them at commas.
_LETTERS = frozenset(string.ascii_lowercase + '._-')
_LONGEST_PREFIX = 200
# Digits of a number, so that names are in the order of the numbers.
_DIGITS = 3


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a node is in Ironic.

    :ivar group: its conductor group
    :ivar shard: its shard, if it has one
    :ivar host: the canonical name of the service of the instance on it; empty
        if there is none
    """

    group: str = ''
    shard: str | None = None
    host: str = ''


Places: TypeAlias = Mapping[str, Place]
_Counts: TypeAlias = collections.Counter[str | None]


@dataclasses.dataclass(frozen=True)
class Names:
    """The names of the shards that are made.

    :ivar prefix: what all of them begin with
    """

    prefix: str = 'ironic-ring-'

    def __post_init__(self) -> None:
        """Check that Ironic can be asked for shards of these names.

        :raises ValueError: if it cannot, or others could have such names
        """
        if not self.prefix or len(self.prefix) > _LONGEST_PREFIX or (
                not _LETTERS.union(string.digits).issuperset(self.prefix)
                or self.prefix[-1] not in _LETTERS):
            raise ValueError(
                f'--prefix cannot be "{self.prefix}": give small letters, '
                'digits, ".", "_" and "-", with no digit at the end, and '
                f'{_LONGEST_PREFIX} of them at most.')

    def of(self, number: int) -> str:
        """Return the name of a shard.

        :param number: its number, from 1 on
        """
        return f'{self.prefix}{number:0{_DIGITS}}'

    def number(self, shard: str | None) -> int | None:
        """Return the number of a shard.

        :param shard: its name; None for no shard
        :returns: None if the name is none of these
        """
        digits = (shard or '')[len(self.prefix):]
        if not digits or not set(string.digits).issuperset(digits):
            return None
        number = int(digits)
        return number if number and self.of(number) == shard else None

    def made(self, places: Places) -> dict[str, str]:
        """Return the nodes that are in shards of these names.

        :param places: all nodes, by UUID
        :returns: the name of the shard of each
        """
        return {node: place.shard for node, place in places.items()
                if place.shard is not None
                and self.number(place.shard) is not None}


def count(places: Places, names: Names, wanted: int | None, services: int
          ) -> int:
    """Return the number of shards into which to divide nodes.

    :param places: all nodes that there are to divide, by UUID
    :param names: the names of the shards
    :param wanted: how many an operator wants; None for as many as there are
    :param services: how many services the largest ring of these nodes has
    :raises ValueError: if that makes no sense; the message says why
    """
    made = [names.number(shard) or 0 for shard in names.made(places).values()]
    there = max(made, default=0)
    nodes = len(made) + len(unsharded(places))
    if not nodes:
        raise ValueError(
            'There is no node to divide: each is in a shard of another name.'
            if places else 'There is no node to divide: Ironic shows none.')
    if wanted is None:
        if not there:
            raise ValueError(
                f'No node is in a shard "{names.prefix}..." yet: say with '
                f'--shards how many to make; {ADVISED} for each service are '
                f'{ADVISED * max(1, services)}.')
        wanted = there
    elif wanted < 1:
        raise ValueError('--shards has to be 1 at least.')
    if wanted < services:
        raise ValueError(
            plural.of(wanted, 'shard is', 'shards are')
            + f' fewer than the {services} services of a '
            'ring, so that some would have no node: give more with --shards; '
            f'{ADVISED} for each service are {ADVISED * services}.')
    if wanted < there:
        raise ValueError(
            f'There are {there} shards "{names.prefix}..." already: give '
            f'--shards {there} or more, or take them away with --clear first.')
    if wanted > max(there, nodes):
        raise ValueError(
            f'{wanted} shards are more than there are nodes for them '
            f'({nodes}): give --shards {nodes} or fewer.')
    return wanted


def unsharded(places: Places) -> list[str]:
    """Name the nodes without a shard.

    :param places: all nodes, by UUID
    """
    return [node for node, place in places.items() if place.shard is None]


def divide(places: Places, names: Names, number: int) -> dict[str, str]:
    """Give a shard to each node that has none.

    The shards are equally large in each conductor group, because its services
    list no other nodes, and then in total. Nodes that have a shard stay in it.
    Nodes with instances of one service go into as few shards as possible,
    because the service has to list all of these.

    :param places: all nodes, by UUID
    :param names: the names of the shards
    :param number: how many shards there are to be
    :returns: the name of the shard of each node that gets one
    """
    total = collections.Counter(place.shard for place in places.values())
    groups: dict[str, list[str]] = {}
    for node, place in places.items():
        groups.setdefault(place.group.lower(), []).append(node)
    shards = [names.of(each + 1) for each in range(number)]
    found: dict[str, str] = {}
    for _, nodes in sorted(groups.items()):
        sizes_here = collections.Counter(places[node].shard for node in nodes)
        free = [node for node in nodes if places[node].shard is None]
        # Each kind separately, so that each shard has nodes to build on.
        for kind in ([node for node in free if places[node].host],
                     [node for node in free if not places[node].host]):
            chosen: list[str] = []
            while len(chosen) < len(kind):
                chosen += _smallest(shards, sizes_here, total,
                                    len(kind) - len(chosen))
            found.update(zip(
                sorted(kind, key=lambda node: (places[node].host, node)),
                sorted(chosen)))
    return found


def _smallest(shards: Sequence[str], sizes_here: _Counts, total: _Counts,
              most: int) -> list[str]:
    """Name the shards that get the next nodes, one each.

    :param shards: all shards
    :param sizes_here: how many nodes of a conductor group each has; changed
    :param total: how many each has in all; likewise
    :param most: how many nodes there are to get one
    """
    least = min(sizes_here[shard] for shard in shards)
    found = sorted((shard for shard in shards if sizes_here[shard] == least),
                   key=lambda shard: (total[shard], shard))[:most]
    sizes_here.update(found)
    total.update(found)
    return found


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How many nodes shards have.

    :ivar least: the smallest of them
    :ivar most: the largest
    """

    least: int
    most: int

    @property
    def are_even(self) -> bool:
        """Whether the ring can divide nodes evenly by these shards."""
        return self.most - self.least <= max(1, self.least // 10)

    def __str__(self) -> str:
        return (f'{self.least}' if self.least == self.most
                else f'{self.least} to {self.most}')


def sizes(shards: Iterable[str | None], names: Names, number: int) -> Sizes:
    """Return how large the shards are.

    :param shards: the shard of each node that is in one of these
    :param names: the names of the shards
    :param number: how many there are
    """
    found = collections.Counter(shards)
    counts = [found[names.of(each + 1)] for each in range(number)]
    return Sizes(min(counts), max(counts))


def see_unused(names: Collection[str], scopes: Mapping[str, str]) -> None:
    """Check that no service is limited to a shard that is about to change.

    :param names: the names of the shards
    :param scopes: the shard that each service is limited to, by its name; of
        those that are limited to one
    :raises ValueError: if one is
    """
    for host, shard in sorted(scopes.items()):
        if shard in names:
            raise ValueError(
                f'[ironic] shard limits {host} to shard "{shard}", which is '
                'not to be a scope and a part of a ring at once: choose other '
                f'names with --prefix, or change the option on {host}.')


def warnings(places: Places, names: Names, scopes: Mapping[str, str]
             ) -> list[str]:
    """Return warnings about other uses of shards.

    :param places: all nodes, by UUID
    :param names: the names of the shards that are made
    :param scopes: as :func:`see_unused`
    :returns: sentences
    """
    found = []
    others = collections.Counter(
        place.shard for place in places.values() if place.shard is not None
        and names.number(place.shard) is None)
    if others:
        found.append(
            plural.of(others.total(), 'node is', 'nodes are') + ' in '
            f'{plural.of(len(others), "shard")} of other names, such as '
            f'"{min(others)}": they stay there. With '
            '[ironic_ring] listing = shards the ring divides these shards as '
            'well, however large they are.')
    if scopes:
        host = min(scopes)
        found.append(
            '[ironic] shard limits '
            f'{plural.of(len(scopes), "service")}, such as {host} to '
            f'shard "{scopes[host]}": they have none of the nodes that are in '
            'other shards, and cannot have listing = shards.')
    return found
