# SPDX-License-Identifier: Apache-2.0

"""Measures the CPU time that a service takes to decide on all nodes in a pass.

There are ten thousand nodes and a hundred members. It measures a pass in which
nothing moves, and the pass after one more service has come. If the clone has
the revision of the project's first stage, in which one class made all
decisions, that revision does the same, in turn with this one.
"""

import contextlib
import io
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile

_STAGE_ONE = 'be15fa8'
_SCENES = ('steady', 'join')
_ROUNDS = 20
_PROGRAMS = pathlib.Path(__file__).resolve().parents[1]
_ROOT = _PROGRAMS.parents[1]


class Measured:
    """A process that decides each time it is told to."""

    def __init__(self, name: str, root: pathlib.Path) -> None:
        """Start the process.

        :param name: the name of its module in this package
        :param root: the directory that has the project's package, and
            ``tools``
        """
        self.times: dict[str, list[float]] = {scene: [] for scene in _SCENES}
        self.offers: dict[str, int] = {}
        self._process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m',
             f'nova_ironic_ring_tools.benchmarks.{name}'],
            cwd=root,
            env={**os.environ, 'PYTHONPATH': str(root / 'tools')},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, scene: str) -> None:
        """Let the process decide once.

        :param scene: the name of what it sees
        """
        assert self._process.stdin and self._process.stdout
        print(scene, file=self._process.stdin, flush=True)
        seconds, self.offers[scene] = json.loads(
            self._process.stdout.readline())
        self.times[scene].append(seconds)

    def end(self) -> None:
        """End the process."""
        self._process.communicate()

    def line(self, scene: str) -> str:
        """Return the seconds that the decisions took, as text.

        :param scene: the name of what the process saw
        """
        times = self.times[scene]
        return (f'min {min(times):.4f} s, median '
                f'{statistics.median(times):.4f} s')


def _unpack_stage_one(directory: pathlib.Path) -> bool:
    """Write the first stage, and these programs, into a directory.

    :returns: False if the clone does not have it
    """
    archive = subprocess.run(
        ['git', 'archive', _STAGE_ONE, 'nova_ironic_ring'], cwd=_ROOT,
        capture_output=True)
    if archive.returncode:
        return False
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(directory, filter='data')
    shutil.copytree(_PROGRAMS, directory / 'tools' / _PROGRAMS.name)
    return True


def main() -> None:
    """Measure, and print the results."""
    with contextlib.ExitStack() as stack:
        measured = {'core': Measured('core', _ROOT)}
        stack.callback(measured['core'].end)
        directory = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory()))
        if _unpack_stage_one(directory):
            measured['stage one'] = Measured('stage_one', directory)
            stack.callback(measured['stage one'].end)
        else:
            print(f'This clone does not have revision {_STAGE_ONE}: there is '
                  'nothing to compare with.')
        for _ in range(_ROUNDS):
            for scene in _SCENES:
                for each in measured.values():
                    each.run(scene)
        _print(measured)


def _print(measured: dict[str, Measured]) -> None:
    for scene in _SCENES:
        print(f'{scene}:')
        for name, each in measured.items():
            print(f'  {name:9} {each.line(scene)} ({each.offers[scene]} '
                  'offers)')
        if len(measured) > 1:
            core, old = (each.times[scene] for each in measured.values())
            print(f'  ratio     min {min(core) / min(old):.2f}, median '
                  f'{statistics.median(core) / statistics.median(old):.2f}')


if __name__ == '__main__':
    main()
