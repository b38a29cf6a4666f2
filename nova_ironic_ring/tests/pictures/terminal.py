# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A terminal that a command believes in, and a picture of what it shows."""

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

_END = 30
# As the emulator names them, and as rich does.
_COLOURS = {'brown': 'yellow', 'default': None}


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
        :param until: what it shows when the picture is taken; it is
            interrupted then. None to wait for its end
        :raises RuntimeError: if it ends before, or takes too long
        """
        self._screen.reset()
        self._stream.feed(f'$ {shown}\r\n'.encode())
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack(
            'HHHH', self._screen.lines, self._screen.columns, 0, 0))
        started = subprocess.Popen(
            command, stdin=its, stdout=its, stderr=its,
            start_new_session=True,
            env={**os.environ, 'TERM': 'xterm-256color'})
        os.close(its)
        try:
            is_there = self._follow(ours, until)
        finally:
            # What the command has started as well. Ctrl-C is ignored where a
            # shell has started this in its background.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGTERM)
            # What it says then is in no picture, and is not to block it.
            while _read(ours, _END):
                pass
            started.wait()
            os.close(ours)
        if until is not None and not is_there:
            raise RuntimeError(f'"{shown}" has not shown "{until}":\n'
                               + '\n'.join(self._screen.display).rstrip())

    def _follow(self, ours: int, until: str | None) -> bool:
        """Show what a command writes, until the picture or its end."""
        deadline = time.monotonic() + 10 * _END
        while time.monotonic() < deadline and (read := _read(ours, _END)):
            self._stream.feed(read)
            if until is not None and any(
                    until in line for line in self._screen.display):
                return True
        return False

    def draw(self, title: str, path: pathlib.Path) -> None:
        """Write what is shown now as SVG.

        :param title: what is written above it
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
            # The same each time: the picture is in git.
            recorded.save_svg(str(path), title=title, unique_id=path.stem)

    def _line(self, number: int) -> text.Text:
        made = text.Text()
        row = self._screen.buffer[number]
        cells = [row[column] for column in range(self._screen.columns)]
        # Not one by one: each piece is an element of the picture.
        for (colour, bold, reverse), alike in itertools.groupby(
                cells, lambda cell: (cell.fg, cell.bold, cell.reverse)):
            made.append(''.join(cell.data for cell in alike), style.Style(
                color=_colour(colour), bold=bold, reverse=reverse))
        made.rstrip()
        return made


def _colour(named: str) -> str | None:
    """Return a colour as rich names it; None for the default one."""
    if named in _COLOURS:
        return _COLOURS[named]
    if named.startswith('bright'):
        return f'bright_{named.removeprefix("bright")}'
    return named if named.isalpha() and len(named) != 6 else f'#{named}'


def _read(ours: int, timeout: float) -> bytes:
    """Return what was written next; nothing at the end, or if it is late."""
    if not select.select([ours], [], [], timeout)[0]:
        return b''
    try:
        return os.read(ours, 65536)
    except OSError:
        # So Linux says that the last writer has closed it.
        return b''
