# SPDX-License-Identifier: Apache-2.0

"""Shows a list again and again."""

import argparse
from collections.abc import Sequence
import contextlib
import time
from typing import Any, NoReturn

from cliff import lister
from rich import console
from rich import live

from nova_ironic_ring.command import display


class Watched(lister.Lister):
    """A list that can be watched."""

    #: Errors that do not end it, but for the first time.
    forgiven: tuple[type[Exception], ...] = ()

    #: Where it is watched on a terminal.
    _live: live.Live | None = None

    def watch(self, parsed_args: argparse.Namespace, interval: float) -> None:
        """Show the list again and again, until Ctrl-C.

        :param parsed_args: as :meth:`run` has them
        :param interval: seconds between two looks
        """
        shown = display.make_console(self.app.stdout)
        with contextlib.suppress(KeyboardInterrupt):
            if parsed_args.formatter != 'table' or not display.is_live(shown):
                self._repeat(parsed_args, interval,
                             display.make_console(self.app.stderr))
            with display.watching(shown) as self._live:
                self._repeat(parsed_args, interval, shown)

    def _repeat(self, parsed_args: argparse.Namespace, interval: float,
                shown: console.Console) -> NoReturn:
        lister.Lister.run(self, parsed_args)
        while True:
            self.app.stdout.flush()
            time.sleep(interval)
            try:
                lister.Lister.run(self, parsed_args)
            except self.forgiven as error:
                # What is watched may well be an outage.
                shown.print(str(error))

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Any) -> int:
        if self._live is not None:
            self.formatter = display.LiveTable(self._live)
        return super().produce_output(parsed_args, column_names, data)
