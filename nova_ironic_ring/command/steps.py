# SPDX-License-Identifier: Apache-2.0

"""The steps of commands that change something, and the wait for them.

A step is an action on a subject. The services take some of them; the command
waits for these, and shows their progress.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
import dataclasses
import enum
from typing import TYPE_CHECKING

from rich import console
import tenacity

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import display
from nova_ironic_ring.command import standstill
from nova_ironic_ring.command.telling import counting
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.values import model

if TYPE_CHECKING:
    from nova_ironic_ring.command.access import source
    from nova_ironic_ring.command import trail

#: Returns what was read, and reports what could not be read.
See = Callable[[snapshot.Snapshot], snapshot.Snapshot]

#: Counts what is left to wait for; None if that is not known yet.
Left = Callable[[snapshot.Snapshot], int | None]

_POLL = 2


class StepAction(enum.Enum):
    """What a step does; programs know the names: they stay."""

    DISABLE_SERVICE = enum.auto()
    ENABLE_SERVICE = enum.auto()
    FORCE_SERVICE_DOWN = enum.auto()
    GIVE_INSTANCE = enum.auto()
    DELETE_RECORD = enum.auto()
    DELETE_PROVIDER = enum.auto()
    #: Nodes without a shard get one.
    SET_SHARD = enum.auto()
    #: Nodes leave it.
    CLEAR_SHARD = enum.auto()
    #: Until the free nodes of a service are with others.
    WAIT_FOR_NODES = enum.auto()
    #: Until the instances of a service are with others.
    WAIT_FOR_INSTANCES = enum.auto()
    #: Until a service has its share of free nodes.
    WAIT_FOR_SHARE = enum.auto()
    #: Until a node is with the service to which it was given.
    WAIT_FOR_NODE = enum.auto()


class ResultCode(enum.Enum):
    """The results that a step can have; programs know the names: they stay."""

    DONE = 'done'
    #: It was a dry run, the answer was no, or an earlier step has failed.
    NOT_DONE = 'not done'
    #: It continues without the command.
    NOT_YET = 'not done in time'
    FAILED = 'failed'


@dataclasses.dataclass(frozen=True)
class PlannedStep:
    """A step.

    :ivar action: what it does
    :ivar subject: the name of the service, of the pool or of the shard, or the
        UUID of the node
    :ivar words: what it does, for people
    :ivar count: the amount that it waits for, as far as known before
    """

    action: StepAction
    subject: str
    words: str
    count: int = 0


@dataclasses.dataclass(frozen=True)
class StepResult:
    """The result of a step.

    :ivar code: the result, as programs know it
    :ivar error: why it has failed, in a sentence; empty if it has not
    """

    code: ResultCode
    error: str = ''


DONE = StepResult(ResultCode.DONE)
NOT_DONE = StepResult(ResultCode.NOT_DONE)
NOT_YET = StepResult(ResultCode.NOT_YET)

StepResults = Mapping[PlannedStep, StepResult]


def worst(results: StepResults) -> ResultCode:
    """Return the worst result of all steps.

    :param results: the result of each step
    """
    found = {result.code for result in results.values()}
    return next((code for code in (
        ResultCode.FAILED, ResultCode.NOT_YET, ResultCode.NOT_DONE)
        if code in found), ResultCode.DONE)


def failed(error: Exception) -> StepResult:
    """Return the result of a step that has failed.

    :param error: why
    """
    return StepResult(ResultCode.FAILED, str(error))


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

    def wait(self, seen: snapshot.Snapshot, left: Mapping[PlannedStep, Left],
             timeout: float) -> StepResults:
        """Wait until nothing is left to wait for, and show the progress.

        Only Nova's databases are read meanwhile, and Placement for pools.

        :param seen: what was read before
        :param left: the steps to wait for, each with a function that counts
            what is left
        :param timeout: how long to wait, in seconds
        """
        with display.progressing(self._console) as shown:
            counts = self._count(seen, left, timeout, shown)
        return {step: DONE if count == 0 else NOT_YET
                for step, count in counts.items()}

    def _count(self, seen: snapshot.Snapshot, left: Mapping[PlannedStep, Left],
               timeout: float, shown: display.Progress
               ) -> Mapping[PlannedStep, int | None]:
        """Count what is left until that is nothing, or the time is over."""
        counts: dict[PlannedStep, int | None] = dict.fromkeys(left)

        def is_over() -> bool:
            nonlocal seen
            try:
                seen = self._source.refresh(seen)
                for step, count in left.items():
                    counts[step] = count(seen)
                    shown.show(step.words, counts[step], step.count)
            except errors.CommandError as error:
                # What has begun continues without this command.
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
                f'This has not finished in {timeout:g} s, and continues: see '
                '"nova-ironic-ring show --watch" and "nova-ironic-ring '
                'check".')
        return counts


class Changer:
    """What changes a deployment, step by step, and waits for the services.

    It first plans the steps, and takes them after a yes.
    """

    def __init__(self, where: 'source.Source', see: See, waiter: Waiter,
                 written: 'Callable[[], trail.Trail]') -> None:
        """Choose the deployment.

        :param where: the deployment
        :param see: is given what was read first
        :param waiter: what waits for its services
        :param written: returns the records of what is done; slow to import
        """
        self._source = where
        self._see = see
        self._waiter = waiter
        self._trail = written
        #: What was read when the steps were planned.
        self._seen: snapshot.Snapshot | None = None
        self._standstill = standstill.Standstill(where)

    def _inventories(self, seen: snapshot.Snapshot, hosts: Iterable[str]
                     ) -> dict[str, snapshot.Inventory]:
        """Read what Placement has of the pools of services."""
        wanted = frozenset(hosts)
        return self._source.inventories(
            name for name, row in seen.pools.items()
            if model.canonical(row.owner) in wanted)

    def _not_counted(self, seen: snapshot.Snapshot, hosts: Collection[str]
                     ) -> int:
        """Count the nodes that the pools of services do not count yet."""
        inventories = self._inventories(seen, hosts)
        return self._standstill.count(
            seen, lambda now: counting.missing(now, hosts, inventories))
