# SPDX-License-Identifier: Apache-2.0

"""The steps of commands that change something, and the wait for them.

A step says what is done with what. Some of them the services take, and the
command waits for these, and shows how far they are.
"""

from collections.abc import Callable, Mapping
import dataclasses
import enum
from typing import TYPE_CHECKING

from rich import console
import tenacity

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import display
from nova_ironic_ring.command.telling import snapshot

if TYPE_CHECKING:
    from nova_ironic_ring.command.access import source

#: Counts what is left to wait for; None if that is not known yet.
Left = Callable[[snapshot.Snapshot], int | None]

_POLL = 2


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


class Waiter:
    """Waits for services."""

    def __init__(self, where: 'source.Source', shown: console.Console) -> None:
        """Choose the deployment.

        :param where: the deployment
        :param shown: where to show it
        """
        self._source = where
        self._console = shown

    def say(self, line: str) -> None:
        """Print a line.

        :param line: the line
        """
        self._console.print(line)

    def wait(self, seen: snapshot.Snapshot, left: Mapping[Step, Left],
             timeout: float) -> Outcomes:
        """Wait until nothing is left to wait for, and show how far it is.

        Only Nova's databases are read meanwhile, and Placement for pools.

        :param seen: what was read before
        :param left: the steps that are to come about, and what says how far
            each is
        :param timeout: how long to wait, in seconds
        """
        with display.progressing(self._console) as shown:
            counts = self._count(seen, left, timeout, shown)
        return {step: DONE if count == 0 else NOT_YET
                for step, count in counts.items()}

    def _count(self, seen: snapshot.Snapshot, left: Mapping[Step, Left],
               timeout: float, shown: display.Progress
               ) -> Mapping[Step, int | None]:
        """Count what is left until nothing is, or the time is over."""
        counts: dict[Step, int | None] = dict.fromkeys(left)

        def is_over() -> bool:
            nonlocal seen
            try:
                seen = self._source.refresh(seen)
                for step, count in left.items():
                    counts[step] = count(seen)
                    shown.show(step.words, counts[step], step.count)
            except errors.CommandError as error:
                # What was begun goes on without this command.
                self._console.print(str(error))
                return False
            return all(count == 0 for count in counts.values())

        try:
            tenacity.Retrying(
                retry=tenacity.retry_if_not_result(bool),
                stop=tenacity.stop_after_delay(timeout),
                wait=tenacity.wait_fixed(_POLL))(is_over)
        except tenacity.RetryError:
            self._console.print(
                f'This has not come about in {timeout:g} s, and goes on: see '
                '"nova-ironic-ring show --watch" and "nova-ironic-ring '
                'check".')
        return counts
