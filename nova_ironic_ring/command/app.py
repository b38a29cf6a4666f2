# SPDX-License-Identifier: Apache-2.0

"""The command line for the controller, and the class of all its commands.

It reads nova.conf as nova-manage does: the databases of the cells, and Ironic
with Nova's own account.
"""

import argparse
from collections.abc import Sequence
import functools
import gc
from importlib import metadata
import logging
import sys
from typing import Any, TYPE_CHECKING

from cliff import app
from cliff import command
from cliff import commandmanager
from rich import console

from nova_ironic_ring.command import display
from nova_ironic_ring.command.telling import snapshot

if TYPE_CHECKING:
    from nova_ironic_ring.command.access import source as sources

#: Exit statuses: done, something to look at, could not.
DONE, LOOK, FAILED = 0, 1, 2

#: The ways to name a node.
NODE = ('its name or UUID, the name or UUID of the server on it, or the '
        'beginning of its UUID')

_ALLOCATIONS = 200_000


class RingApp(app.App):
    """The command line as a whole."""

    NAME = 'nova-ironic-ring'

    def __init__(self, **streams: Any) -> None:
        manager = commandmanager.CommandManager('nova_ironic_ring.command')
        #: The arguments of the command line.
        self.arguments: list[str] = []
        #: The exit status of a command that has not failed.
        self.status = DONE
        super().__init__(
            'Shows and manages the ring of nova-computes of one Ironic. '
            'Exits with 0 when done, 1 if there is something to look at, '
            '2 after a failure.', version=metadata.version(self.NAME),
            command_manager=manager, deferred_help=True, **streams)

    def build_option_parser(
            self, description: str | None, version: str | None,
            argparse_kwargs: dict | None = None) -> argparse.ArgumentParser:
        parser = super().build_option_parser(
            description, version, argparse_kwargs)
        # Else it is called by the file that Python runs.
        parser.prog = self.NAME
        parser.add_argument(
            '--config-file', action='append', default=[], metavar='PATH',
            help='as for nova-manage; more than once for several')
        parser.add_argument('--config-dir', metavar='PATH',
                            help='as for nova-manage')
        parser.add_argument(
            '--cell', metavar='NAME',
            help='the name or UUID of the only cell that is read (default: '
                 'all)')
        return parser

    def configure_logging(self) -> None:
        super().configure_logging()
        # The messages of libraries are shown only on request.
        if self.options.verbose_level < 2 and not self.options.debug:
            logging.getLogger().setLevel(logging.ERROR)
            logging.getLogger('nova').setLevel(logging.CRITICAL)

    def prepare_to_run_command(self, cmd: command.Command) -> None:
        if isinstance(cmd, Command):
            configure(self.options.config_file, self.options.config_dir)

    def interact(self) -> None:
        # Without a command, cliff would start an interactive shell.
        self.stderr.write(
            f'Name a command: "{self.NAME} --help" lists them.\n')

    def run(self, argv: list[str]) -> int:
        self.arguments = list(argv)
        result = super().run(argv)
        # Cliff's own exit status for a failure means a finding here.
        return max(self.status, FAILED if result == LOOK else result)


class Command:
    """A command of this project, to be mixed into one of cliff."""

    app: RingApp

    @functools.cached_property
    def source(self) -> 'sources.Source':
        """The deployment, with one session for the whole run."""
        # The help does not need the modules that read databases.
        from nova_ironic_ring.command.access import source as sources
        return sources.Source(self.app.options.cell)

    @functools.cached_property
    def console(self) -> console.Console:
        """Prints lines without disturbing a table."""
        return display.make_console(self.app.stderr)

    def get_epilog(self) -> str:
        """Return the end of the help, which is empty.

        Cliff would read the metadata of all installed distributions to name
        the one of the command.
        """
        return ''

    def say(self, line: str) -> None:
        """Print a line at once, without disturbing a table."""
        self.console.print(line)

    def see(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """Report the cells that could not be read, in the exit status too.

        :param seen: what was read
        :returns: the same
        """
        for error in filter(None, seen.unread.values()):
            self.say(f'{error} What is said here is without this cell.')
            self.app.status = LOOK
        return seen

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Any) -> int:
        return super().produce_output(  # type: ignore[misc]
            parsed_args, column_names, display.printable(data, parsed_args))


class Codes(Command):
    """A command with columns that are for programs.

    The table, which is for people, has them only on request.
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
        return super().produce_output(parsed_args, column_names, data)


def configure(files: Sequence[str], directory: str | None) -> None:
    """Read nova.conf.

    :param files: its files; empty for where Nova looks by itself
    :param directory: a directory of more files; None for where Nova looks
    :raises CommandError: if they cannot be read
    """
    # The help does not need all options of Nova.
    from nova_ironic_ring.command.access import settings
    settings.configure(files, directory)


def main() -> int:
    """Run the command line.

    :returns: the exit status
    """
    # The data of many nodes stay until the end: repeated garbage collection of
    # them takes a quarter of the time.
    gc.set_threshold(_ALLOCATIONS)
    return RingApp().run(sys.argv[1:] or ['--help'])
