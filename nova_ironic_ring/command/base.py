# SPDX-License-Identifier: Apache-2.0

"""The class that all commands are made with: source, console, exit status.

What each command does is in ``reading``, ``changing`` and ``looking_back``.
"""

import argparse
from collections.abc import Sequence
import functools
from typing import Any, Protocol, TextIO, TYPE_CHECKING

from rich import console

from nova_ironic_ring.command import display
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.command import waiting

if TYPE_CHECKING:
    from nova_ironic_ring.command import source as sources

#: Exit statuses: done, something to look at, could not.
DONE, LOOK, FAILED = 0, 1, 2

#: What a node can be called by.
NODE = ('its name or UUID, the name or UUID of the server on it, or the '
        'beginning of its UUID')


class App(Protocol):
    """What a command uses of the command line that it is run by.

    :ivar options: what was typed before the name of the command
    :ivar arguments: what was typed behind the name of the program
    :ivar stdin: where answers come from
    :ivar stdout: where tables go
    :ivar stderr: where lines go that are in no table's way
    :ivar status: what the program exits with, unless it fails
    """

    options: argparse.Namespace
    arguments: list[str]
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    status: int


class Command:
    """A command of this project, to be mixed into one of cliff."""

    app: App

    @functools.cached_property
    def source(self) -> 'sources.Source':
        """The deployment, with one session for as long as it runs."""
        # Who asks for help does not wait for what reads databases.
        from nova_ironic_ring.command import source as sources
        return sources.Source(self.app.options.cell)

    @functools.cached_property
    def console(self) -> console.Console:
        """What prints lines that are in no table's way."""
        return display.make_console(self.app.stderr)

    @property
    def waiter(self) -> waiting.Waiter:
        """What waits for the services of the deployment."""
        return waiting.Waiter(self.source, self.console)

    def get_epilog(self) -> str:
        """Return what ends the help: nothing.

        Cliff would read what is known of each distribution that is installed,
        to say which one the command is of.
        """
        return ''

    def say(self, line: str) -> None:
        """Print a line at once, where it is in no table's way."""
        self.console.print(line)

    def see(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Say which cells could not be read, and exit with that.

        :param seen: what was read
        :returns: the same
        """
        for error in filter(None, seen.unread.values()):
            self.say(f'{error} What is said here is without this cell.')
            self.app.status = LOOK
        return seen


class Codes(Command):
    """A command with columns that are for programs.

    The table, which is for people, has them only where they are asked for.
    """

    #: The titles of these columns.
    codes: tuple[str, ...] = ()

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Any) -> int:
        data = list(data)
        if parsed_args.formatter == 'table' and not (
                data or getattr(parsed_args, 'print_empty', False)):
            # Cliff would print an empty line.
            return DONE
        if parsed_args.formatter == 'table' and not parsed_args.columns:
            parsed_args = argparse.Namespace(**{
                **vars(parsed_args), 'columns': [
                    name for name in column_names if name not in self.codes]})
        return super().produce_output(  # type: ignore[misc]
            parsed_args, column_names, data)
