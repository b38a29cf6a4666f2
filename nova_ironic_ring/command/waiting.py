# SPDX-License-Identifier: Apache-2.0

"""Waits for what the services make of a change, and shows how far it is."""

from collections.abc import Callable, Mapping

from typing import TYPE_CHECKING

from rich import console
import tenacity

from nova_ironic_ring.command import display
from nova_ironic_ring.command import errors
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.command import steps

if TYPE_CHECKING:
    from nova_ironic_ring.command import source

#: Counts what is left to wait for; None if that is not known yet.
Left = Callable[[snapshot.Snapshot], int | None]

_POLL = 2


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

    def wait(self, seen: snapshot.Snapshot, left: Mapping[steps.Step, Left],
             timeout: float) -> steps.Outcomes:
        """Wait until nothing is left to wait for, and show how far it is.

        Only Nova's databases are read meanwhile, and Placement for pools.

        :param seen: what was read before
        :param left: the steps that are to come about, and what says how far
            each is
        :param timeout: how long to wait, in seconds
        """
        with display.progressing(self._console) as shown:
            counts = self._count(seen, left, timeout, shown)
        return {step: steps.DONE if count == 0 else steps.NOT_YET
                for step, count in counts.items()}

    def _count(self, seen: snapshot.Snapshot, left: Mapping[steps.Step, Left],
               timeout: float, shown: display.Progress
               ) -> Mapping[steps.Step, int | None]:
        """Count what is left until nothing is, or the time is over."""
        counts: dict[steps.Step, int | None] = dict.fromkeys(left)

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
