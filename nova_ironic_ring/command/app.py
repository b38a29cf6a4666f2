# SPDX-License-Identifier: Apache-2.0

"""The command line for the controller.

It reads nova.conf as nova-manage does: the databases of the cells, and Ironic
with Nova's own account.
"""

import argparse
from collections.abc import Sequence
import gc
from importlib import metadata
import logging
import sys
from typing import Any

from cliff import app
from cliff import command
from cliff import commandmanager

from nova_ironic_ring.command import base

_ALLOCATIONS = 200_000


class RingApp(app.App):
    """The command line as a whole."""

    NAME = 'nova-ironic-ring'

    def __init__(self, **streams: Any) -> None:
        manager = commandmanager.CommandManager('nova_ironic_ring.command')
        #: What was typed behind its name.
        self.arguments: list[str] = []
        #: What a command wants to exit with that has not failed.
        self.status = base.DONE
        super().__init__(
            'Shows and tends the ring of nova-computes that share an Ironic. '
            'Exits with 0 if it is done, 1 if there is something to look at, '
            '2 if it could not.', version=metadata.version(self.NAME),
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
        # What the libraries have to say is for those who ask for it.
        if self.options.verbose_level < 2 and not self.options.debug:
            logging.getLogger().setLevel(logging.ERROR)
            logging.getLogger('nova').setLevel(logging.CRITICAL)

    def prepare_to_run_command(self, cmd: command.Command) -> None:
        if isinstance(cmd, base.Command):
            configure(self.options.config_file, self.options.config_dir)

    def interact(self) -> None:
        # Cliff would ask for commands, one after the other.
        self.stderr.write(
            f'Name a command: "{self.NAME} --help" lists them.\n')

    def run(self, argv: list[str]) -> int:
        self.arguments = list(argv)
        result = super().run(argv)
        # Cliff's own status of a failure would be that of a finding.
        return max(self.status, base.FAILED if result == base.LOOK else result)


def configure(files: Sequence[str], directory: str | None) -> None:
    """Read nova.conf.

    :param files: its files; empty for where Nova looks by itself
    :param directory: a directory of more files; None for where Nova looks
    :raises CommandError: if they cannot be read
    """
    # Who asks for help does not wait for all options of Nova.
    from nova_ironic_ring.command import settings
    settings.configure(files, directory)


def main() -> int:
    """Run the command line.

    :returns: the exit status
    """
    # What is read of many nodes stays until the end: to look again and again
    # for what is garbage among it takes a quarter of the time.
    gc.set_threshold(_ALLOCATIONS)
    return RingApp().run(sys.argv[1:] or ['--help'])
