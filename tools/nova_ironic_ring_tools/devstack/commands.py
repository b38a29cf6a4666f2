# SPDX-License-Identifier: Apache-2.0

"""Runs programs of this machine."""

from collections.abc import Mapping, Sequence
import pathlib
import shlex
import subprocess

from nova_ironic_ring_tools.devstack import errors

# How many of the last lines of a program that has failed are shown.
_LAST = 20


def run(*argv: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a program, and return what it prints.

    :param argv: the program and its arguments
    :param environment: its environment; None for that of this process
    :raises DevstackError: if it fails
    """
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors='replace',
            env=environment)
    except OSError as error:
        raise missing(argv[0], error) from error
    if done.returncode:
        raise errors.DevstackError(_failure(argv, done.stdout + done.stderr))
    return done.stdout


def log(path: pathlib.Path, *argv: str) -> None:
    """Run a program that takes long, with its output in a file.

    :param path: the file
    :param argv: the program and its arguments
    :raises DevstackError: if it fails
    """
    try:
        with path.open('w') as output:
            code = subprocess.call(
                argv, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT)
    except OSError as error:
        raise missing(argv[0], error) from error
    if code:
        raise errors.DevstackError(_failure(
            argv, path.read_text(errors='replace')) + f'\nMore is in {path}.')


def missing(program: str, error: OSError) -> errors.DevstackError:
    """Return an error that says that a program cannot be run.

    :param program: its name
    :param error: the error from running it
    """
    return errors.DevstackError(
        f'{program} cannot be run: {error.strerror}; install it.')


def _failure(argv: Sequence[str], output: str) -> str:
    """Return a message that says that a program has failed."""
    last = '\n'.join(output.rstrip().splitlines()[-_LAST:])
    return f'{shlex.join(argv)} has failed:\n{last}'
