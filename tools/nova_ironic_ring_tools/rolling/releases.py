# SPDX-License-Identifier: Apache-2.0

"""Virtual environments with a release of Nova and a commit of the driver."""

import dataclasses
import os
import pathlib
import subprocess
import sys

from nova_ironic_ring.lab import errors

_CHECKOUT = pathlib.Path(__file__).resolve().parents[3]


@dataclasses.dataclass(frozen=True)
class Release:
    """What a nova-compute is to run.

    :ivar nova: the release of Nova, such as ``33``; empty for the one here
    :ivar commit: the commit of the driver; empty for the files here
    """

    nova: str = ''
    commit: str = ''

    def __str__(self) -> str:
        return ', '.join((
            f'Nova {self.nova}' if self.nova else 'the Nova of here',
            f'the driver of {self.commit}' if self.commit
            else 'the driver of here'))

    def install(self, directory: pathlib.Path) -> str:
        """Install it.

        :param directory: the directory for the virtual environment
        :returns: the path of its nova-compute
        :raises LabError: if it cannot be installed
        """
        if self == Release():
            return str(pathlib.Path(sys.prefix, 'bin', 'nova-compute'))
        constraints = _CHECKOUT / 'constraints' / (
            f'nova{self.nova}.txt' if self.nova else 'newest.txt')
        driver = (f'git+file://{_CHECKOUT}@{self.commit}' if self.commit
                  else str(_CHECKOUT))
        _run(sys.executable, '-m', 'venv', str(directory))
        _run(str(directory / 'bin/python'), '-m', 'pip', 'install', '--quiet',
             '--constraint', str(constraints), driver,
             f'nova=={self.nova}.*' if self.nova else 'nova',
             # The lab's database and its messages.
             'PyMySQL')
        return str(directory / 'bin/nova-compute')


def _run(*command: str) -> None:
    """Run a command.

    :raises LabError: if it fails
    """
    # tox tells pip which constraints to take, and these are of one release.
    environment = {name: value for name, value in os.environ.items()
                   if name != 'PIP_CONSTRAINT'}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise errors.LabError(
            f'"{" ".join(command)}" has failed; its last lines are:\n'
            f'{"".join(done.stdout.splitlines(keepends=True)[-5:])}')
