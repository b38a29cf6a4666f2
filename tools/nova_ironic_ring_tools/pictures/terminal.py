# SPDX-License-Identifier: Apache-2.0

"""A terminal in which a command runs, and a picture of what it shows."""

from collections.abc import Sequence
import contextlib
import fcntl
import itertools
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pyte
from rich import console
from rich import style
from rich import text

# How long to wait, in seconds: for the output of a command, and for its end.
_PATIENCE, _END = 300, 30
# Colours that the emulator names as rich does, and the others.
_PLAIN = frozenset({'black', 'red', 'green', 'blue', 'magenta', 'cyan',
                    'white'})
_COLOURS = {'brown': 'yellow', 'default': ''}


class Terminal:
    """Runs commands one after the other, as a person would."""

    def __init__(self, columns: int, lines: int = 40) -> None:
        """Choose its size.

        :param columns: characters in a line
        :param lines: how many there are
        """
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)

    def run(self, shown: str, command: Sequence[str], *,
            until: str | None = None) -> None:
        """Run a command in a cleared terminal.

        :param shown: the command, as a person types it
        :param command: the command, as it is run here
        :param until: interrupt the command when it shows this text; None to
            wait for its end
        :raises RuntimeError: if the command ends before the text appears, or
            takes too long
        """
        self._screen.reset()
        self._stream.feed(f'$ {shown}\r\n'.encode())
        with contextlib.ExitStack() as stack:
            ours, its = pty.openpty()
            stack.callback(os.close, ours)
            fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack(
                'HHHH', self._screen.lines, self._screen.columns, 0, 0))
            started = subprocess.Popen(
                command, stdin=its, stdout=its, stderr=its,
                start_new_session=True,
                env={**os.environ, 'TERM': 'xterm-256color'})
            stack.callback(_end, started)
            os.close(its)
            if not self._follow(ours, until):
                raise RuntimeError(
                    f'"{shown}" has not shown what it should:\n'
                    + '\n'.join(self._screen.display).rstrip())

    def _follow(self, ours: int, until: str | None) -> bool:
        """Show what a command writes, until the text appears or it ends.

        :returns: False if that does not happen in time
        """
        deadline = time.monotonic() + _PATIENCE
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([ours], [], [], left)[0]:
                return False
            try:
                self._stream.feed(os.read(ours, 65536))
            except OSError:
                # Linux reports an error when the last writer has closed it.
                return until is None
            if until is not None and any(
                    until in line for line in self._screen.display):
                return True
        return False

    def draw(self, title: str, path: pathlib.Path) -> None:
        """Write what the terminal shows now into a file, in SVG.

        :param title: the title of the picture
        :param path: the file
        """
        lines = [self._line(number) for number in range(self._screen.lines)]
        while lines and not lines[-1].plain.strip():
            lines.pop()
        with open(os.devnull, 'w') as nowhere:
            recorded = console.Console(
                record=True, width=self._screen.columns, file=nowhere,
                force_terminal=True)
            for line in lines:
                recorded.print(line, no_wrap=True, soft_wrap=True)
            # With the same IDs each time, because the picture is in git.
            recorded.save_svg(str(path), title=title, unique_id=path.stem)

    def _line(self, number: int) -> text.Text:
        made = text.Text()
        row = self._screen.buffer[number]
        cells = [row[column] for column in range(self._screen.columns)]
        # Together if they are alike: each text is an element of the picture.
        for (colour, bold, reverse), alike in itertools.groupby(
                cells, lambda cell: (cell.fg, cell.bold, cell.reverse)):
            made.append(''.join(cell.data for cell in alike), style.Style(
                color=_colour(colour), bold=bold, reverse=reverse))
        made.rstrip()
        return made


def _colour(named: str) -> str | None:
    """Return the name of a colour in rich; None for the default colour."""
    bright = 'bright' if named.startswith('bright') else ''
    plain = named.removeprefix(bright)
    if plain in _COLOURS:
        plain = _COLOURS[plain]
    elif plain not in _PLAIN:
        # Six hexadecimal digits.
        return f'#{plain}'
    return f'{bright}_{plain}' if bright else plain or None


def _end(started: subprocess.Popen) -> None:
    """End a command, and the processes that it has started."""
    # Not by SIGINT: programs that a shell has started in the background ignore
    # it.
    for number in signal.SIGTERM, signal.SIGKILL:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(_END)
            return
