# SPDX-License-Identifier: Apache-2.0

"""The base class of events: an event knows its text and its level."""

from collections.abc import Hashable
import dataclasses
import enum
import typing


class Level(enum.Enum):
    """The level of an event, by the names that logs use."""

    DEBUG = enum.auto()
    INFO = enum.auto()
    WARNING = enum.auto()
    ERROR = enum.auto()


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened.

    :cvar LEVEL: the level of events of this kind
    """

    LEVEL: typing.ClassVar[Level]

    def level(self) -> Level:
        """Return the level of this event."""
        return self.LEVEL

    def text(self) -> str:
        """Return the line for the log; empty if there is nothing to log."""
        raise NotImplementedError(self)


@dataclasses.dataclass(frozen=True)
class Move(Event):
    """Something has moved; in a failover, many things move at once."""

    LEVEL = Level.INFO

    def kind(self) -> Hashable:
        """Return a key that is equal for moves that share one line."""
        raise NotImplementedError(self)

    def text_of_many(self, count: int) -> str:
        """Return the line for this move and others of its kind.

        :param count: the number of moves, including this one
        """
        raise NotImplementedError(self)
