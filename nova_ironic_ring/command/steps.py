# SPDX-License-Identifier: Apache-2.0

"""The steps of commands that change something, for people and programs.

A step says what is done with what, and its outcome. Who does so is in
``work``.
"""

from collections.abc import Mapping
import dataclasses
import enum


class Action(enum.Enum):
    """What a step does, for programs: these names stay."""

    DISABLE_SERVICE = enum.auto()
    ENABLE_SERVICE = enum.auto()
    FORCE_SERVICE_DOWN = enum.auto()
    GIVE_INSTANCE = enum.auto()
    DELETE_RECORD = enum.auto()
    DELETE_PROVIDER = enum.auto()
    #: Nodes without a shard get one.
    SET_SHARD = enum.auto()
    #: Nodes are in it no more.
    CLEAR_SHARD = enum.auto()
    #: Until the free nodes of a service are with others.
    WAIT_FOR_NODES = enum.auto()
    #: Until the instances of a service are with others.
    WAIT_FOR_INSTANCES = enum.auto()
    #: Until a service has its share of free nodes.
    WAIT_FOR_SHARE = enum.auto()
    #: Until a node is with the service that it was given to.
    WAIT_FOR_NODE = enum.auto()


class Result(enum.Enum):
    """What has come of a step; the names are for programs, and stay."""

    DONE = 'done'
    #: It was a dry run, the answer was no, or a step before it has failed.
    NOT_DONE = 'not done'
    #: It goes on without the command.
    NOT_YET = 'not done in time'
    FAILED = 'failed'


@dataclasses.dataclass(frozen=True)
class Step:
    """A step.

    :ivar action: what it does
    :ivar subject: the name of the service, of the pool or of the shard, or the
        UUID of the node
    :ivar words: what it does, for people
    :ivar count: how much it waits for, as far as that is known before
    """

    action: Action
    subject: str
    words: str
    count: int = 0


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What has come of a step.

    :ivar result: that
    :ivar error: why it has failed, in a sentence; empty if it has not
    """

    result: Result
    error: str = ''


DONE = Outcome(Result.DONE)
NOT_DONE = Outcome(Result.NOT_DONE)
NOT_YET = Outcome(Result.NOT_YET)

Outcomes = Mapping[Step, Outcome]


def worst(outcomes: Outcomes) -> Result:
    """Return what has come of all steps together.

    :param outcomes: what has come of each
    """
    found = {outcome.result for outcome in outcomes.values()}
    return next((result for result in (
        Result.FAILED, Result.NOT_YET, Result.NOT_DONE) if result in found),
        Result.DONE)


def failed(error: Exception) -> Outcome:
    """Return the outcome of a step that has failed.

    :param error: why
    """
    return Outcome(Result.FAILED, str(error))
