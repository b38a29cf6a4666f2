# SPDX-License-Identifier: Apache-2.0

"""What an event is: it knows its text, and how urgent that is."""

from collections.abc import Hashable
import dataclasses
import enum
import typing


class Level(enum.Enum):
    """How urgent an event is, by the names that logs have for it."""

    DEBUG = enum.auto()
    INFO = enum.auto()
    WARNING = enum.auto()
    ERROR = enum.auto()


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened.

    :cvar LEVEL: how urgent events of this kind are
    """

    LEVEL: typing.ClassVar[Level]

    def level(self) -> Level:
        """Return how urgent this one is."""
        return self.LEVEL

    def text(self) -> str:
        """Return the line that says it; empty where it is no news."""
        raise NotImplementedError(self)


@dataclasses.dataclass(frozen=True)
class Move(Event):
    """Something has gone elsewhere, and in a failover much goes at once."""

    LEVEL = Level.INFO

    def kind(self) -> Hashable:
        """Return what is the same in all moves that one line can tell of."""
        raise NotImplementedError(self)

    def text_of_many(self, count: int) -> str:
        """Return the line that tells of this move and others of its kind.

        :param count: how many they are, this one included
        """
        raise NotImplementedError(self)
