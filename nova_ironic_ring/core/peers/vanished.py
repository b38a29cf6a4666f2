# SPDX-License-Identifier: Apache-2.0

"""Whether nodes that are missing from Ironic are believed deleted."""

from collections.abc import Callable, Collection
import dataclasses
import itertools

#: The number of nodes that may always vanish, unless the percentage is 0.
_HANDFUL = 5


@dataclasses.dataclass(frozen=True)
class Limits:
    """How many nodes may vanish.

    :ivar percent: percent of a service's nodes; with 0, none may vanish
    :ivar window: seconds in which so many may vanish
    """

    percent: int
    window: float

    def of(self, total: int) -> int:
        """Return how many of a service's nodes may vanish.

        :param total: how many nodes it has
        """
        return max(_HANDFUL, total * self.percent // 100) if (
            self.percent) else 0


@dataclasses.dataclass
class Guard:
    """How many of a service's nodes have vanished in some time.

    :ivar has_too_many: whether more nodes were missing than may be
    :ivar deleted: when nodes were believed deleted, in seconds, by the node
    :ivar left: how many more may be believed deleted until the next look
    """

    has_too_many: bool = False
    deleted: dict[str, float] = dataclasses.field(default_factory=dict)
    left: int = _HANDFUL

    @property
    def is_closed(self) -> bool:
        """Whether no node is believed deleted now.

        Ironic may have shown the nodes at the last look, and no longer now.
        """
        return self.has_too_many or self.left <= 0

    def copied(self) -> 'Guard':
        """Return a copy, which shares nothing with this one."""
        return dataclasses.replace(self, deleted=dict(self.deleted))

    def note(self, node: str, at: float) -> None:
        """Note that a node is believed deleted.

        :param node: the node's UUID
        :param at: the present time, in seconds
        """
        self.deleted[node] = at
        self.left -= 1

    def note_unnamed(self, count: int, at: float) -> None:
        """Note that nodes without a name are believed deleted.

        The look that released them has counted them already.

        :param count: how many they are
        :param at: when that was, in seconds
        """
        names = (name for name in map('unnamed-{}'.format, itertools.count())
                 if name not in self.deleted)
        self.deleted |= dict.fromkeys(
            list(itertools.islice(names, count)), at)


@dataclasses.dataclass(frozen=True)
class Missing:
    """The nodes of a service that were not listed.

    :ivar nodes: their UUIDs; some may only have left what is listed
    :ivar total: how many nodes the service has, with those without a name
    :ivar is_deleted: says whether Ironic does not have a node; asked only
        where the missing ones are too many, and of no more than needed
    :ivar unnamed: how many more nodes are missing, where only their number is
        known, as after a restart
    """

    nodes: Collection[str]
    total: int
    is_deleted: Callable[[str], bool]
    unnamed: int = 0


def look(before: Guard, missing: Missing, limits: Limits, at: float) -> Guard:
    """Open or close the guard.

    :param before: the guard as it was
    :param missing: the nodes that were not listed
    :param limits: how many may vanish
    :param at: the present time, in seconds
    """
    deleted = {node: then for node, then in before.deleted.items()
               if at - then < limits.window}
    counted = len(deleted.keys() - set(missing.nodes))
    allowed = max(0, limits.of(missing.total + counted) - counted)
    has_too_many = False
    named = allowed - missing.unnamed
    if len(missing.nodes) > named:
        gone = filter(missing.is_deleted, missing.nodes)
        has_too_many = named < 0 or len(
            list(itertools.islice(gone, named + 1))) > named
    return Guard(has_too_many, deleted, max(0, named))
