# SPDX-License-Identifier: Apache-2.0

"""Shows progress, and changes as they happen.

On a terminal it uses bars and a table that is updated in place; in a file or a
pipe plain lines.
"""

import abc
import argparse
from collections.abc import Iterable, Iterator, Sequence
import contextlib
import time
from typing import Any, NoReturn, TextIO

from cliff import columns
from cliff.formatters import base
from cliff.formatters import commaseparated
from cliff import lister
from rich import console
from rich import live
from rich import measure
from rich import progress
from rich import table
from rich import text

from nova_ironic_ring.core.values import bounds

# The formats that escape what is not printable.
_ESCAPING = ('json', 'yaml')
# The width of a column below which words are cut.
_LEAST = 4


class Styled(columns.FormattableColumn[str]):
    """A cell with a style, for those who see it on a terminal."""

    def __init__(self, words: str, style: str) -> None:
        """Choose the cell.

        :param words: its text
        :param style: a style of rich
        """
        super().__init__(words)
        self.style = style

    def human_readable(self) -> str:
        return self._value


class _Console(console.Console):
    """Prints lines that cannot do anything else to a terminal."""

    def print(self, *shown: Any, **kwargs: Any) -> None:
        super().print(*map(_printable, shown), **kwargs)


def make_console(stream: TextIO) -> console.Console:
    """Make a console that prints lines whole, even above bars.

    :param stream: where to
    """
    return _Console(
        file=stream, soft_wrap=True, markup=False, emoji=False,
        highlight=False)


class Progress(abc.ABC):
    """Shows the progress of steps."""

    @abc.abstractmethod
    def show(self, words: str, left: int | None, most: int = 0) -> None:
        """Show the progress of a step.

        :param words: what it does
        :param left: how much is left; None if that is not known yet
        :param most: how much there was at the beginning, as far as known
        """


class _Bars(Progress):

    def __init__(self, shown: progress.Progress) -> None:
        self._shown = shown
        self._tasks: dict[str, progress.TaskID] = {}
        self._most: dict[str, int] = {}

    def show(self, words: str, left: int | None, most: int = 0) -> None:
        if left is None:
            # A bar without a total only shows activity.
            if words not in self._tasks:
                self._tasks[words] = self._shown.add_task(words, total=None)
            return
        # While a service joins, the rest may grow for a time.
        most = self._most[words] = max(
            left, most, self._most.get(words, 1))
        if words not in self._tasks:
            self._tasks[words] = self._shown.add_task(
                words, total=most, completed=most - left)
        self._shown.update(
            self._tasks[words], total=most, completed=most - left)


class _Lines(Progress):

    def __init__(self, shown: console.Console) -> None:
        self._shown = shown
        self._start = time.monotonic()
        self._left: dict[str, int | None] = {}

    def show(self, words: str, left: int | None, most: int = 0) -> None:
        if words not in self._left or self._left[words] != left:
            self._left[words] = left
            far = ('how much is left is not known yet' if left is None
                   else f'{left} left')
            self._shown.print(f'[{time.monotonic() - self._start:3.0f} s] '
                              f'{words}: {far}')


@contextlib.contextmanager
def progressing(shown: console.Console) -> Iterator[Progress]:
    """Show the progress of steps while the context lasts.

    :param shown: where to
    """
    if not is_live(shown):
        yield _Lines(shown)
        return
    with progress.Progress(
            progress.SpinnerColumn(finished_text=' '),
            progress.TextColumn('{task.description}', markup=False),
            progress.BarColumn(), progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(), console=shown) as bars:
        yield _Bars(bars)


def is_live(shown: console.Console) -> bool:
    """Return whether the output can be updated in place.

    :param shown: where it is shown
    """
    return shown.is_terminal and not shown.is_dumb_terminal


class CsvOfOne(commaseparated.CSVLister, base.SingleFormatter):
    """Prints the one thing that a command shows as CSV, with its titles."""

    def emit_one(self, column_names: Sequence[str], data: Sequence[Any],
                 stdout: TextIO, parsed_args: argparse.Namespace) -> None:
        self.emit_list(column_names, [data], stdout, parsed_args)


class LiveTable(base.ListFormatter):
    """Shows each table of cliff in place of the one before."""

    def __init__(self, shown: live.Live) -> None:
        """Choose where.

        :param shown: where
        """
        self._shown = shown

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add no argument: this is no format to choose."""

    def emit_list(self, column_names: Sequence[str],
                  data: Iterable[Sequence[Any]], stdout: TextIO,
                  parsed_args: argparse.Namespace) -> None:
        lines = [list(line) for line in data]
        widths = _widths(column_names, lines, self._shown.console)
        made = table.Table()
        for index, name in enumerate(column_names):
            is_number = all(isinstance(line[index], int) for line in lines)
            made.add_column(
                name, justify='right' if is_number and lines else 'left',
                width=widths[index], overflow='fold')
        for line in lines:
            made.add_row(*map(_cell, line))
        self._shown.update(made, refresh=True)


def _cell(value: object) -> text.Text:
    if isinstance(value, Styled):
        return text.Text(value.human_readable(), style=value.style)
    return text.Text(str(value))


def _printable(shown: Any) -> Any:
    """Return what a terminal is to show, each text of it as one line."""
    if isinstance(shown, str):
        return bounds.line(shown)
    if isinstance(shown, Styled):
        return Styled(bounds.line(shown.human_readable()), shown.style)
    if isinstance(shown, (list, tuple)):
        return type(shown)(map(_printable, shown))
    return shown


def printable(data: Any, parsed_args: argparse.Namespace) -> Any:
    """Return what a command shows, so that a terminal can show it.

    Others write some of it, such as the last error of a node.

    :param data: the values, or lines of values
    :param parsed_args: the arguments, with the format, which may escape by
        itself
    """
    return (data if parsed_args.formatter in _ESCAPING
            else _printable(list(data)))


def _widths(titles: Sequence[str], lines: Sequence[Sequence[Any]],
            shown: console.Console) -> list[int]:
    """Compute the width of each column, so that the table fits the terminal.

    What has a style is a sentence, and is folded first; then the others, the
    widest first. Words stay whole as long as there is room for them, and the
    names of hosts and rings for longer than all else.

    :param titles: those of the columns
    :param lines: the cells of each line
    :param shown: the terminal
    :returns: characters of each column, without what is between columns
    """
    found = [measure.measure_renderables(shown, shown.options, [
        text.Text(title), *(_cell(line[index]) for line in lines)])
        for index, title in enumerate(titles)]
    widths = [each.maximum for each in found]
    # A line and two blanks for each column, and the last line.
    excess = sum(widths) + 3 * len(widths) + 1 - shown.width
    places = range(len(widths))
    are_styled = [any(isinstance(line[index], Styled) for line in lines)
                  for index in places]
    are_names = [not are_styled[index] and any(
        isinstance(line[index], str) for line in lines) for index in places]
    by_words = sorted(places, key=lambda index: (
        not are_styled[index], -widths[index]))
    for index, least in (
            *((index, found[index].minimum) for index in by_words),
            *((index, _LEAST) for index in reversed(places)
              if not are_names[index]),
            *((index, 1) for index in reversed(places))):
        cut = max(0, min(excess, widths[index] - least))
        widths[index] -= cut
        excess -= cut
    return widths


def watching(shown: console.Console) -> live.Live:
    """Return a display that shows tables in place of each other.

    :param shown: where
    """
    return live.Live(console=shown, auto_refresh=False)


class Watched(lister.Lister):
    """A list that can be watched."""

    #: Errors that do not end it, but for the first time.
    forgiven: tuple[type[Exception], ...] = ()

    #: The display, when watched on a terminal.
    _live: live.Live | None = None

    def watch(self, parsed_args: argparse.Namespace, interval: float) -> None:
        """Show the list again and again, until Ctrl-C.

        :param parsed_args: as :meth:`run` has them
        :param interval: seconds between two looks
        """
        shown = make_console(self.app.stdout)
        with contextlib.suppress(KeyboardInterrupt):
            if parsed_args.formatter != 'table' or not is_live(shown):
                self._repeat(parsed_args, interval,
                             make_console(self.app.stderr))
            with watching(shown) as self._live:
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
                # Watching is meant for outages, too.
                shown.print(str(error))

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Any) -> int:
        if self._live is not None:
            self.formatter = LiveTable(self._live)
        return super().produce_output(parsed_args, column_names, data)
